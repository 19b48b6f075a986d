//! Instruction sets: the one that the kernels run on is detected once, or forced by `BITLDP_ISA`.

use std::fmt;
use std::sync::OnceLock;

use crate::error::{Error, Result, reason};
#[cfg(target_arch = "aarch64")]
use crate::vector::neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use crate::vector::wasm;
#[cfg(target_arch = "x86_64")]
use crate::vector::x86;
use crate::vector::{Kernel, Portable, Vector};

/// A family of instructions with kernels of its own. All of them give the same answers.
///
/// A value is a proof that this processor has the instructions: but for [`Isa::Scalar`], there is no other way to one than
/// [`available`](Isa::available), [`current`](Isa::current) and [`named`](Isa::named).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Isa(Unit);

/// The vector units that kernels are written for. A value proves nothing: an [`Isa`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Unit {
    /// Portable Rust, in loops that compilers vectorise.
    Scalar,
    /// AArch64 with Advanced SIMD.
    Neon,
    /// WebAssembly with SIMD of 128 bits. A module is compiled with it or without it.
    Simd128,
    /// x86-64 with AVX2, BMI1, BMI2, LZCNT and POPCNT.
    Avx2,
    /// All of [`Unit::Avx2`], and AVX-512 F, BW, DQ and VL.
    Avx512,
}

#[allow(non_upper_case_globals, reason = "it reads as the variant that it is")]
impl Isa {
    /// Portable Rust, in loops that compilers vectorise: the path of every processor without kernels of its own, and what
    /// the kernels are compared with. The tests compare it with single draws.
    pub const Scalar: Isa = Isa(Unit::Scalar);
}

/// The environment variable that forces an instruction set.
pub const ISA_VARIABLE: &str = "BITLDP_ISA";

/// True where code may be compiled anew for each instruction set, law and form of input and output.
pub(crate) const BATCHES: bool = cfg!(feature = "batches");

/// Every instruction set with kernels of its own.
const ALL: [Isa; 5] = [Isa(Unit::Avx512), Isa(Unit::Avx2), Isa(Unit::Neon), Isa(Unit::Simd128), Isa::Scalar];

/// Those of this architecture, best first: a processor that has one of them has all that come behind it.
const OWN: &[Isa] = if cfg!(target_arch = "x86_64") {
    &[Isa(Unit::Avx512), Isa(Unit::Avx2), Isa::Scalar]
} else if cfg!(target_arch = "aarch64") {
    &[Isa(Unit::Neon), Isa::Scalar]
} else if cfg!(all(target_arch = "wasm32", target_feature = "simd128")) {
    &[Isa(Unit::Simd128), Isa::Scalar]
} else {
    &[Isa::Scalar]
};

impl Isa {
    /// The instruction sets that this processor has, best first.
    #[must_use]
    pub fn available() -> &'static [Isa] {
        let best = detect();
        let skipped = OWN.iter().position(|&isa| isa == best).unwrap_or(OWN.len() - 1);
        &OWN[skipped..]
    }

    /// The instruction set that the kernels run on: the best one, or the one that `BITLDP_ISA` names.
    ///
    /// It is looked up once a process.
    ///
    /// # Errors
    /// [`Error::Isa`] if the variable names an unknown instruction set, or one that this processor lacks.
    pub fn current() -> Result<Isa> {
        // A page has no environment.
        if cfg!(all(target_arch = "wasm32", target_os = "unknown")) {
            return Ok(detect());
        }
        static CURRENT: OnceLock<Result<Isa>> = OnceLock::new();
        CURRENT
            .get_or_init(|| {
                select(std::env::var_os(ISA_VARIABLE).as_deref().map(|v| v.to_string_lossy()).as_deref())
            })
            .clone()
    }

    /// The instruction set of this name.
    ///
    /// # Errors
    /// [`Error::Isa`] if the name is unknown, or if this processor lacks it.
    pub fn named(name: &str) -> Result<Isa> {
        if let Some(&isa) = Isa::available().iter().find(|isa| isa.name() == name) {
            return Ok(isa);
        }
        let known = ALL.iter().any(|isa| isa.name() == name);
        let allowed = || Isa::available().iter().map(|isa| isa.name()).collect::<Vec<_>>().join(", ");
        let reason =
            if known { reason!("this processor lacks {name}") } else { reason!("{name:?} is unknown") };
        Err(Error::Isa { reason: reason!("{reason}; allowed are {}", allowed()) })
    }

    /// The vector unit of kernels, for [`dispatch!`]. Without the feature `batches` a target has kernels of one, and the
    /// compiler leaves out all others.
    #[inline(always)]
    pub(crate) const fn unit(self) -> Unit {
        if BATCHES || cfg!(target_arch = "wasm32") { self.keystream_unit() } else { Unit::Scalar }
    }

    /// The vector unit of the keystream and of short words of bits, which are most of the work where a call has one record.
    #[inline(always)]
    pub(crate) const fn keystream_unit(self) -> Unit {
        let only = !BATCHES && cfg!(all(target_arch = "wasm32", target_feature = "simd128"));
        if only { Unit::Simd128 } else { self.0 }
    }

    /// `"scalar"`, `"simd128"`, `"neon"`, `"avx2"` or `"avx512"`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            Unit::Scalar => "scalar",
            Unit::Neon => "neon",
            Unit::Simd128 => "simd128",
            Unit::Avx2 => "avx2",
            Unit::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The instruction set that `wanted` names; an empty name is none.
fn select(wanted: Option<&str>) -> Result<Isa> {
    match wanted {
        None | Some("") => Ok(detect()),
        Some(name) => Isa::named(name),
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Isa {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (true, true) => Isa(Unit::Avx512),
        (true, false) => Isa(Unit::Avx2),
        _ => Isa::Scalar,
    }
}

#[cfg(target_arch = "aarch64")]
fn detect() -> Isa {
    // The kernels read words as bytes and back, so the order of bytes has to be the keystream's.
    if cfg!(target_endian = "little") && std::arch::is_aarch64_feature_detected!("neon") {
        Isa(Unit::Neon)
    } else {
        Isa::Scalar
    }
}

/// An engine that lacks the instructions refuses the whole module.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
fn detect() -> Isa {
    Isa(Unit::Simd128)
}

#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
)))]
fn detect() -> Isa {
    Isa::Scalar
}

/// Calls the kernel that was written for a vector unit, or evaluates what stands behind `_` where there is none.
///
/// A kernel is a safe function that is compiled, by `#[target_feature]`, for no more than its [`Unit`] has. The arguments are
/// names, the same for every kernel; they must be no more than names, so that nothing else is evaluated as unsafe.
#[cfg(target_arch = "x86_64")]
macro_rules! dispatch_unit {
    ($unit:expr, $arguments:tt, $(avx512 => $avx512:path,)? $(avx2 => $avx2:path,)? $(neon => $neon:path,)?
     $(simd128 => $simd128:path,)? _ => $otherwise:expr) => {
        match $unit {
            // SAFETY: the unit is of an `Isa`, which is made only of what this processor has.
            $($crate::isa::Unit::Avx512 => unsafe { $avx512 $arguments },)?
            // SAFETY: as above.
            $($crate::isa::Unit::Avx2 => unsafe { $avx2 $arguments },)?
            _ => $otherwise,
        }
    };
}

/// The same for AArch64.
#[cfg(target_arch = "aarch64")]
macro_rules! dispatch_unit {
    ($unit:expr, $arguments:tt, $(avx512 => $avx512:path,)? $(avx2 => $avx2:path,)? $(neon => $neon:path,)?
     $(simd128 => $simd128:path,)? _ => $otherwise:expr) => {
        match $unit {
            // SAFETY: the unit is of an `Isa`, which is made only of what this processor has.
            $($crate::isa::Unit::Neon => unsafe { $neon $arguments },)?
            _ => $otherwise,
        }
    };
}

/// The same for WebAssembly.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
macro_rules! dispatch_unit {
    ($unit:expr, $arguments:tt, $(avx512 => $avx512:path,)? $(avx2 => $avx2:path,)? $(neon => $neon:path,)?
     $(simd128 => $simd128:path,)? _ => $otherwise:expr) => {
        match $unit {
            $($crate::isa::Unit::Simd128 => $simd128 $arguments,)?
            _ => $otherwise,
        }
    };
}

/// The same for an architecture without kernels of its own.
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "wasm32", target_feature = "simd128")
)))]
macro_rules! dispatch_unit {
    ($unit:expr, $arguments:tt, $(avx512 => $avx512:path,)? $(avx2 => $avx2:path,)? $(neon => $neon:path,)?
     $(simd128 => $simd128:path,)? _ => $otherwise:expr) => {{
        let _ = $unit;
        $otherwise
    }};
}
pub(crate) use dispatch_unit;

/// The same for the unit of an instruction set that kernels have.
macro_rules! dispatch {
    ($isa:expr, $($kernels:tt)*) => {
        $crate::isa::dispatch_unit!($crate::isa::Isa::unit($isa), $($kernels)*)
    };
}
pub(crate) use dispatch;

/// Runs a kernel compiled for `isa`.
#[inline]
pub(crate) fn compiled<K: Kernel>(isa: Isa, kernel: K) -> K::Answer {
    dispatch!(isa, (kernel),
        avx512 => x86::on_avx512, avx2 => x86::on_avx2, neon => neon::on_neon,
        simd128 => wasm::on_simd128, _ => kernel.run(Portable::default()))
}

/// Runs a kernel of the keystream compiled for the vector unit; gives it back where there is none.
#[inline]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128")),
    allow(unreachable_code, reason = "there is none")
)]
pub(crate) fn on_keystream_unit<K: Kernel<Answer = ()>>(isa: Isa, kernel: K) -> Option<K> {
    dispatch_unit!(isa.keystream_unit(), (kernel),
        avx512 => x86::on_avx512, avx2 => x86::on_avx2, neon => neon::on_neon,
        simd128 => wasm::on_simd128, _ => return Some(kernel));
    None
}

/// Runs `work`, a short loop that the compiler can vectorise, compiled for `isa`. A closure that is called once an
/// instruction set is inlined only if it is short, and is not compiled for any of them otherwise: a longer loop is a
/// [`Kernel`].
#[inline]
pub(crate) fn vectorised<R>(isa: Isa, work: impl FnOnce() -> R) -> R {
    struct Closure<F>(F);
    impl<R, F: FnOnce() -> R> Kernel for Closure<F> {
        type Answer = R;
        const ALIGNED: bool = false;

        #[inline(always)]
        fn run<V: Vector>(self, _: V) -> R {
            (self.0)()
        }
    }
    compiled(isa, Closure(work))
}

/// 64 bytes of 0 or 1 as a mask, the first of them lowest.
#[inline(always)]
pub(crate) fn mask_of(bytes: &[u8; 64]) -> u64 {
    bytes.as_chunks::<8>().0.iter().rev().fold(0, |mask, eight| {
        // Byte i goes to bit 56 + i; no two products meet.
        mask << 8 | u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

/// The positions of the ones in `mask`, from the lowest.
#[inline(always)]
pub(crate) fn ones(mask: impl Into<u64>) -> impl Iterator<Item = usize> {
    let mut left = mask.into();
    std::iter::from_fn(move || {
        let position = left.trailing_zeros() as usize;
        let any = left != 0;
        left &= left.wrapping_sub(1);
        any.then_some(position)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_place_in_a_mask() {
        for position in 0..64 {
            let mut bytes = [0; 64];
            bytes[position] = 1;
            assert_eq!(mask_of(&bytes), 1 << position);
            assert!(ones(mask_of(&bytes.map(|byte| 1 - byte))).eq((0..64).filter(|&at| at != position)));
        }
    }

    #[test]
    fn scalar_is_always_there_and_last() {
        assert_eq!(Isa::available().last(), Some(&Isa::Scalar));
        assert_eq!(Isa::named("scalar"), Ok(Isa::Scalar));
        assert_eq!(Isa::available()[0], detect());
    }

    #[test]
    fn no_processor_has_the_units_of_two_architectures() {
        let has = |name| Isa::named(name).is_ok();
        assert!(!(has("neon") && has("avx2")));
        let other = if cfg!(target_arch = "aarch64") { "avx512" } else { "neon" };
        let Err(Error::Isa { reason }) = Isa::named(other) else { panic!("{other} was accepted") };
        assert!(reason.starts_with("this processor lacks"), "{reason}");
    }

    #[test]
    fn a_name_selects_and_anything_else_is_refused() {
        assert_eq!(select(None), Ok(detect()));
        assert_eq!(select(Some("")), Ok(detect()));
        for &isa in Isa::available() {
            assert_eq!(select(Some(isa.name())), Ok(isa));
        }
        for wrong in ["AVX2", "sse2", "avx512 ", "NEON"] {
            let Err(Error::Isa { reason }) = select(Some(wrong)) else { panic!("{wrong} was accepted") };
            assert!(reason.contains("scalar"), "{reason}");
        }
    }

    #[test]
    fn a_name_gives_only_what_the_processor_has() {
        for isa in ALL {
            assert_eq!(Isa::named(isa.name()).ok(), Isa::available().contains(&isa).then_some(isa));
        }
    }
}
