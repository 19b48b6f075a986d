//! ChaCha, eight blocks at a time.

use std::arch::x86_64::*;

use super::vector::Vector;
use super::{BLOCKS, GROUP, Key, scalar};

/// Blocks that one pass works on: lane `i` of every vector belongs to block `i`.
const LANES: usize = 8;

// Rotations by whole bytes are one shuffle.
#[inline]
#[target_feature(enable = "avx2")]
fn rotate_16(x: __m256i) -> __m256i {
    let bytes = _mm256_set_epi64x(
        0x0d0c_0f0e_0908_0b0a,
        0x0504_0706_0100_0302,
        0x0d0c_0f0e_0908_0b0a,
        0x0504_0706_0100_0302,
    );
    _mm256_shuffle_epi8(x, bytes)
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate_8(x: __m256i) -> __m256i {
    let bytes = _mm256_set_epi64x(
        0x0e0d_0c0f_0a09_080b,
        0x0605_0407_0201_0003,
        0x0e0d_0c0f_0a09_080b,
        0x0605_0407_0201_0003,
    );
    _mm256_shuffle_epi8(x, bytes)
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate<const LEFT: i32, const RIGHT: i32>(x: __m256i) -> __m256i {
    const { assert!(LEFT + RIGHT == 32) };
    _mm256_or_si256(_mm256_slli_epi32::<LEFT>(x), _mm256_srli_epi32::<RIGHT>(x))
}

/// Four quarter rounds, step by step side by side, so that the processor always has independent work.
macro_rules! quarter_rounds {
    ($s:ident, $(($a:expr, $b:expr, $c:expr, $d:expr)),*) => {
        $( $s[$a] = _mm256_add_epi32($s[$a], $s[$b]); $s[$d] = rotate_16(_mm256_xor_si256($s[$d], $s[$a])); )*
        $( $s[$c] = _mm256_add_epi32($s[$c], $s[$d]); $s[$b] = rotate::<12, 20>(_mm256_xor_si256($s[$b], $s[$c])); )*
        $( $s[$a] = _mm256_add_epi32($s[$a], $s[$b]); $s[$d] = rotate_8(_mm256_xor_si256($s[$d], $s[$a])); )*
        $( $s[$c] = _mm256_add_epi32($s[$c], $s[$d]); $s[$b] = rotate::<7, 25>(_mm256_xor_si256($s[$b], $s[$c])); )*
    };
}

/// Fills `out` with whole groups from `group` on.
#[target_feature(enable = "avx2")]
pub(super) fn fill<const ROUNDS: usize>(key: &Key, nonce: u64, group: u64, out: &mut [u8]) {
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (g, out) in (group..).zip(out.chunks_exact_mut(GROUP)) {
        for half in 0..BLOCKS / LANES {
            // A multiple of LANES: adding the lane to its low word never carries.
            let counter = g.wrapping_mul(BLOCKS as u64).wrapping_add((half * LANES) as u64);
            let mut initial = scalar::initial(key, counter, nonce).map(|word| _mm256_set1_epi32(word as i32));
            initial[12] = _mm256_add_epi32(initial[12], lanes);
            let mut s = initial;
            for _ in 0..ROUNDS / 2 {
                quarter_rounds!(s, (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15));
                quarter_rounds!(s, (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14));
            }
            for w in 0..16 {
                let out = &mut out[(w * BLOCKS + half * LANES) * 4..][..LANES * 4];
                // SAFETY: `out` is 32 writable bytes, and the store asks for no alignment.
                unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm256_add_epi32(s[w], initial[w])) };
            }
        }
    }
}

/// Sixteen blocks, each of a state of its own: word by word, lane by lane.
#[target_feature(enable = "avx2")]
pub(super) fn lanes<const ROUNDS: usize>(state: &[[u32; BLOCKS]; 16], out: &mut [[u32; BLOCKS]; 16]) {
    for half in (0..BLOCKS).step_by(LANES) {
        let mut initial = [_mm256_setzero_si256(); 16];
        for (word, lanes) in initial.iter_mut().zip(state) {
            // SAFETY: eight words are 32 bytes, and the load asks for no alignment.
            *word = unsafe { _mm256_loadu_si256(lanes[half..half + LANES].as_ptr().cast()) };
        }
        let mut s = initial;
        for _ in 0..ROUNDS / 2 {
            quarter_rounds!(s, (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15));
            quarter_rounds!(s, (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14));
        }
        for (w, out) in out.iter_mut().enumerate() {
            let word = _mm256_add_epi32(s[w], initial[w]);
            // SAFETY: as above, of a store.
            unsafe { _mm256_storeu_si256(out[half..half + LANES].as_mut_ptr().cast(), word) };
        }
    }
}

impl Vector for __m256i {
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self {
        // SAFETY: the caller's words, and a processor that has the instruction; so below.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn repeat(word: u32) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_set1_epi32(word as i32) }
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_add_epi32(self, other) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_xor_si256(self, other) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_and_si256(self, other) }
    }

    #[inline(always)]
    unsafe fn right<const BY: i32>(self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_srli_epi32::<BY>(self) }
    }

    #[inline(always)]
    unsafe fn rotate<const BY: i32, const REST: i32>(self) -> Self {
        const { assert!(BY + REST == 32) };
        // SAFETY: as above.
        unsafe { _mm256_or_si256(_mm256_srli_epi32::<BY>(self), _mm256_slli_epi32::<REST>(self)) }
    }
}
