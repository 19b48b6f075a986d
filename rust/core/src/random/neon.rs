//! ChaCha with NEON: four blocks in a vector.
//!
//! The sixteen words of a state and what a step needs fit the 32 registers. With two vectors side by side they do not:
//! that takes a quarter more instructions, and by llvm-mca's estimate a quarter more cycles on a processor with two vector
//! units (Neoverse N1), and a quarter less on one that has three and waits for the single chain (`benches/records/arm.jsonl`
//! has the figures of what is built).

use std::arch::aarch64::*;

use super::vector::Vector;
use super::{BLOCKS, GROUP, Key, scalar};

/// Blocks side by side: lane `i` of a vector belongs to block `i`.
const LANES: usize = 4;

/// A rotation by half a word exchanges its halves.
#[inline]
#[target_feature(enable = "neon")]
fn rotate_16(x: uint32x4_t) -> uint32x4_t {
    vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(x)))
}

/// A rotation by a whole byte is one look-up; `bytes` are the places.
#[inline]
#[target_feature(enable = "neon")]
fn rotate_8(x: uint32x4_t, bytes: uint8x16_t) -> uint32x4_t {
    vreinterpretq_u32_u8(vqtbl1q_u8(vreinterpretq_u8_u32(x), bytes))
}

/// Shifts right, and inserts what is shifted left.
#[inline]
#[target_feature(enable = "neon")]
fn rotate<const LEFT: i32, const RIGHT: i32>(x: uint32x4_t) -> uint32x4_t {
    const { assert!(LEFT + RIGHT == 32) };
    vsliq_n_u32::<LEFT>(vshrq_n_u32::<RIGHT>(x), x)
}

/// Four quarter rounds step by step side by side, so that the processor always has independent work.
macro_rules! quarter_rounds {
    ($s:ident, $bytes:ident, $(($a:expr, $b:expr, $c:expr, $d:expr)),*) => {
        $( $s[$a] = vaddq_u32($s[$a], $s[$b]); )*
        $( $s[$d] = rotate_16(veorq_u32($s[$d], $s[$a])); )*
        $( $s[$c] = vaddq_u32($s[$c], $s[$d]); )*
        $( $s[$b] = rotate::<12, 20>(veorq_u32($s[$b], $s[$c])); )*
        $( $s[$a] = vaddq_u32($s[$a], $s[$b]); )*
        $( $s[$d] = rotate_8(veorq_u32($s[$d], $s[$a]), $bytes); )*
        $( $s[$c] = vaddq_u32($s[$c], $s[$d]); )*
        $( $s[$b] = rotate::<7, 25>(veorq_u32($s[$b], $s[$c])); )*
    };
}

/// Four blocks.
#[inline]
#[target_feature(enable = "neon")]
fn rounds<const ROUNDS: usize>(initial: [uint32x4_t; 16]) -> [uint32x4_t; 16] {
    let places: [u8; 16] = [3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14];
    // SAFETY: 16 bytes.
    let bytes = unsafe { vld1q_u8(places.as_ptr()) };
    let mut s = initial;
    for _ in 0..ROUNDS / 2 {
        quarter_rounds!(s, bytes, (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15));
        quarter_rounds!(s, bytes, (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14));
    }
    std::array::from_fn(|w| vaddq_u32(s[w], initial[w]))
}

/// Fills `out` with whole groups from `group` on.
#[target_feature(enable = "neon")]
pub(super) fn fill<const ROUNDS: usize>(key: &Key, nonce: u64, group: u64, out: &mut [u8]) {
    let lanes: [u32; LANES] = [0, 1, 2, 3];
    // SAFETY: four words.
    let lanes = unsafe { vld1q_u32(lanes.as_ptr()) };
    for (g, out) in (group..).zip(out.chunks_exact_mut(GROUP)) {
        for first in (0..BLOCKS).step_by(LANES) {
            // A multiple of LANES: adding the lane to its low word never carries.
            let counter = g.wrapping_mul(BLOCKS as u64).wrapping_add(first as u64);
            let mut initial = scalar::initial(key, counter, nonce).map(|word| vdupq_n_u32(word));
            initial[12] = vaddq_u32(initial[12], lanes);
            for (w, word) in rounds::<ROUNDS>(initial).into_iter().enumerate() {
                let out = &mut out[(w * BLOCKS + first) * 4..][..LANES * 4];
                // SAFETY: `out` is 16 writable bytes, and the store asks for no alignment.
                unsafe { vst1q_u8(out.as_mut_ptr(), vreinterpretq_u8_u32(word)) };
            }
        }
    }
}

/// Sixteen blocks, each of a state of its own: word by word, lane by lane.
#[target_feature(enable = "neon")]
pub(super) fn lanes<const ROUNDS: usize>(state: &[[u32; BLOCKS]; 16], out: &mut [[u32; BLOCKS]; 16]) {
    for first in (0..BLOCKS).step_by(LANES) {
        // SAFETY: four words.
        let initial = state.each_ref().map(|lanes| unsafe { vld1q_u32(lanes[first..][..LANES].as_ptr()) });
        for (word, out) in rounds::<ROUNDS>(initial).into_iter().zip(out.iter_mut()) {
            // SAFETY: four words.
            unsafe { vst1q_u32(out[first..][..LANES].as_mut_ptr(), word) };
        }
    }
}

impl Vector for uint32x4_t {
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self {
        // SAFETY: the caller's words, and a processor that has the instruction; so below.
        unsafe { vld1q_u32(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: as above.
        unsafe { vst1q_u32(to, self) }
    }

    #[inline(always)]
    unsafe fn repeat(word: u32) -> Self {
        // SAFETY: as above.
        unsafe { vdupq_n_u32(word) }
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { vaddq_u32(self, other) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { veorq_u32(self, other) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { vandq_u32(self, other) }
    }

    #[inline(always)]
    unsafe fn right<const BY: i32>(self) -> Self {
        // SAFETY: as above.
        unsafe { vshrq_n_u32::<BY>(self) }
    }

    #[inline(always)]
    unsafe fn rotate<const BY: i32, const REST: i32>(self) -> Self {
        const { assert!(BY + REST == 32) };
        // SAFETY: as above.
        unsafe { vsliq_n_u32::<REST>(vshrq_n_u32::<BY>(self), self) }
    }
}
