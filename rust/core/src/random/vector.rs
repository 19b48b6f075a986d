//! Words of 32 bits side by side: what hashing needs of an instruction set.
//!
//! Each file of an instruction set only says which instruction does it; the functions are written once.

use super::BLOCKS;
use crate::kernel::Isa;

/// Words side by side, of as many messages: no operation looks across them.
///
/// # Safety
/// Every operation needs a processor with the type's instruction set, and must be inlined into a function that is compiled
/// for it.
pub(super) trait Vector: Copy {
    /// How many they are.
    const LANES: usize;

    /// The words at `from`, which are readable; no alignment is needed.
    unsafe fn load(from: *const u32) -> Self;
    /// Writes the words to `to`, which are writable; no alignment is needed.
    unsafe fn store(self, to: *mut u32);
    /// The same word everywhere.
    unsafe fn repeat(word: u32) -> Self;
    /// Sums modulo 2^32.
    unsafe fn plus(self, other: Self) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    /// Shifted to the right.
    unsafe fn right<const BY: i32>(self) -> Self;
    /// Rotated to the right by `BY`; `REST` is what is left of 32.
    unsafe fn rotate<const BY: i32, const REST: i32>(self) -> Self;
}

/// Portable: the path of a processor without kernels of its own.
impl Vector for u32 {
    const LANES: usize = 1;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> u32 {
        // SAFETY: the caller's word.
        unsafe { from.read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: the caller's word.
        unsafe { to.write_unaligned(self) }
    }

    #[inline(always)]
    unsafe fn repeat(word: u32) -> u32 {
        word
    }

    #[inline(always)]
    unsafe fn plus(self, other: u32) -> u32 {
        self.wrapping_add(other)
    }

    #[inline(always)]
    unsafe fn xor(self, other: u32) -> u32 {
        self ^ other
    }

    #[inline(always)]
    unsafe fn and(self, other: u32) -> u32 {
        self & other
    }

    #[inline(always)]
    unsafe fn right<const BY: i32>(self) -> u32 {
        self >> BY
    }

    #[inline(always)]
    unsafe fn rotate<const BY: i32, const REST: i32>(self) -> u32 {
        self.rotate_right(BY as u32)
    }
}

/// What is computed in every lane of sixteen messages.
pub(super) trait Lanewise {
    /// Computes the lanes of a register, from `lane` on.
    ///
    /// # Safety
    /// As of [`Vector`]; an implementation is marked `#[inline(always)]`.
    unsafe fn at<V: Vector>(&mut self, lane: usize);
}

/// Computes all lanes with the registers of an instruction set.
pub(super) fn lanewise(isa: Isa, work: &mut impl Lanewise) {
    /// Computes register by register.
    ///
    /// # Safety
    /// As of [`Vector`].
    #[inline(always)]
    unsafe fn all<V: Vector>(work: &mut impl Lanewise) {
        for lane in (0..BLOCKS).step_by(V::LANES) {
            // SAFETY: the caller's.
            unsafe { work.at::<V>(lane) }
        }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f")]
    fn on_avx512(work: &mut impl Lanewise) {
        // SAFETY: compiled for the instructions of the type.
        unsafe { all::<std::arch::x86_64::__m512i>(work) }
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn on_avx2(work: &mut impl Lanewise) {
        // SAFETY: as above.
        unsafe { all::<std::arch::x86_64::__m256i>(work) }
    }
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    fn on_neon(work: &mut impl Lanewise) {
        // SAFETY: as above.
        unsafe { all::<std::arch::aarch64::uint32x4_t>(work) }
    }
    match isa {
        // SAFETY: an `Isa` is made only of what this processor has.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { on_avx512(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { on_avx2(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => unsafe { on_neon(work) },
        // SAFETY: plain words.
        _ => unsafe { all::<u32>(work) },
    }
}
