//! Registers of NEON.

use std::arch::aarch64::*;

use super::vector::Vector;

impl Vector for uint64x2_t {
    const BYTES: usize = 16;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> uint64x2_t {
        // SAFETY: the caller's bytes and processor.
        unsafe { vreinterpretq_u64_u8(vld1q_u8(from)) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's bytes and processor.
        unsafe { vst1q_u8(to, vreinterpretq_u8_u64(self)) }
    }

    #[inline(always)]
    unsafe fn repeat(word: u64) -> uint64x2_t {
        // SAFETY: the caller's processor.
        unsafe { vdupq_n_u64(word) }
    }

    #[inline(always)]
    unsafe fn and(self, other: uint64x2_t) -> uint64x2_t {
        // SAFETY: the caller's processor.
        unsafe { vandq_u64(self, other) }
    }

    #[inline(always)]
    unsafe fn or(self, other: uint64x2_t) -> uint64x2_t {
        // SAFETY: the caller's processor.
        unsafe { vorrq_u64(self, other) }
    }

    #[inline(always)]
    unsafe fn plus(self, other: uint64x2_t) -> uint64x2_t {
        // SAFETY: the caller's processor.
        unsafe { vaddq_u64(self, other) }
    }

    #[inline(always)]
    unsafe fn left(self, by: u32) -> uint64x2_t {
        // SAFETY: the caller's processor.
        unsafe { vshlq_u64(self, vdupq_n_s64(by.into())) }
    }

    #[inline(always)]
    unsafe fn right(self, by: u32) -> uint64x2_t {
        // SAFETY: the caller's processor.
        unsafe { vshlq_u64(self, vdupq_n_s64(-i64::from(by))) }
    }

    #[inline(always)]
    unsafe fn select(self, yes: uint64x2_t, no: uint64x2_t) -> uint64x2_t {
        // SAFETY: the caller's processor.
        unsafe { vbslq_u64(self, yes, no) }
    }

    #[inline(always)]
    unsafe fn sum(self, b: uint64x2_t, c: uint64x2_t) -> (uint64x2_t, uint64x2_t) {
        // SAFETY: the caller's processor.
        unsafe {
            // Where the first two differ the third decides, and elsewhere either of them.
            let differ = veorq_u64(self, b);
            (veorq_u64(differ, c), vbslq_u64(differ, c, b))
        }
    }

    #[inline(always)]
    unsafe fn ones_of_bytes(self) -> uint64x2_t {
        // SAFETY: the caller's processor.
        unsafe { vreinterpretq_u64_u8(vcntq_u8(vreinterpretq_u8_u64(self))) }
    }
}
