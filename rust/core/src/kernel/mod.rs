//! How a law is sampled: the scalar oracle, and the versions for vector units that give the same answers.

pub(crate) mod bits;
pub(crate) mod categorical;
pub(crate) mod cube;
mod isa;
pub(crate) mod select;
pub(crate) mod unary;

pub use isa::{ISA_VARIABLE, Isa};

/// The places of the ones in `mask`, from the lowest.
#[inline(always)]
pub(crate) fn ones(mask: impl Into<u64>) -> impl Iterator<Item = usize> {
    let mut left = mask.into();
    std::iter::from_fn(move || {
        let place = left.trailing_zeros() as usize;
        let any = left != 0;
        left &= left.wrapping_sub(1);
        any.then_some(place)
    })
}

/// Runs `work`, a loop that the compiler can vectorise, compiled for `isa`: for what needs no intrinsics.
#[inline]
pub(crate) fn vectorised<R>(isa: Isa, work: impl FnOnce() -> R) -> R {
    /// Compiles `work` with AVX-512.
    ///
    /// # Safety
    /// The CPU has it.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn on_avx512<R>(work: impl FnOnce() -> R) -> R {
        work()
    }
    /// Compiles `work` with AVX2.
    ///
    /// # Safety
    /// The CPU has it.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn on_avx2<R>(work: impl FnOnce() -> R) -> R {
        work()
    }
    match isa {
        // SAFETY: an `Isa` that reaches the kernels was checked against this processor.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { on_avx512(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { on_avx2(work) },
        _ => work(),
    }
}

/// A loop that the compiler can vectorise, where [`vectorised`] is too weak: a closure that is called once an instruction
/// set is inlined only if it is short, and is not compiled for any of them otherwise.
pub(crate) trait Loop {
    /// What it comes to.
    type Answer;
    /// The loop. An implementation is marked `#[inline(always)]`.
    fn run(self) -> Self::Answer;
}

/// Runs a loop compiled for `isa`.
#[inline]
pub(crate) fn compiled<L: Loop>(isa: Isa, work: L) -> L::Answer {
    /// Compiles `work` with AVX-512.
    ///
    /// # Safety
    /// The CPU has it.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn on_avx512<L: Loop>(work: L) -> L::Answer {
        work.run()
    }
    /// Compiles `work` with AVX2.
    ///
    /// # Safety
    /// The CPU has it.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn on_avx2<L: Loop>(work: L) -> L::Answer {
        work.run()
    }
    match isa {
        // SAFETY: an `Isa` that reaches the kernels was checked against this processor.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { on_avx512(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { on_avx2(work) },
        _ => work.run(),
    }
}
