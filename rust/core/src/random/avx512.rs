//! ChaCha, sixteen blocks in a vector: one pass is two groups, or the last one alone.

use std::arch::x86_64::*;

use super::vector::Vector;
use super::{BLOCKS, GROUP, Key, scalar};

/// Groups that a pass works on side by side. The steps of a round wait for each other; two groups are as many as fit the 32
/// registers, and give the processor something to do in the meantime.
const TOGETHER: usize = 2;

/// Four quarter rounds of every state, step by step side by side, so that the processor always has independent work.
macro_rules! quarter_rounds {
    ($states:ident, $(($a:expr, $b:expr, $c:expr, $d:expr)),*) => {
        for s in &mut $states { $( s[$a] = _mm512_add_epi32(s[$a], s[$b]); )* }
        for s in &mut $states { $( s[$d] = _mm512_rol_epi32::<16>(_mm512_xor_si512(s[$d], s[$a])); )* }
        for s in &mut $states { $( s[$c] = _mm512_add_epi32(s[$c], s[$d]); )* }
        for s in &mut $states { $( s[$b] = _mm512_rol_epi32::<12>(_mm512_xor_si512(s[$b], s[$c])); )* }
        for s in &mut $states { $( s[$a] = _mm512_add_epi32(s[$a], s[$b]); )* }
        for s in &mut $states { $( s[$d] = _mm512_rol_epi32::<8>(_mm512_xor_si512(s[$d], s[$a])); )* }
        for s in &mut $states { $( s[$c] = _mm512_add_epi32(s[$c], s[$d]); )* }
        for s in &mut $states { $( s[$b] = _mm512_rol_epi32::<7>(_mm512_xor_si512(s[$b], s[$c])); )* }
    };
}

/// Fills `out` with whole groups from `group` on.
#[target_feature(enable = "avx512f")]
pub(super) fn fill<const ROUNDS: usize>(key: &Key, nonce: u64, group: u64, out: &mut [u8]) {
    let mut passes = out.chunks_exact_mut(TOGETHER * GROUP);
    let mut group = group;
    for out in &mut passes {
        pass::<ROUNDS, TOGETHER>(key, nonce, group, out);
        group = group.wrapping_add(TOGETHER as u64);
    }
    for (g, out) in (group..).zip(passes.into_remainder().chunks_exact_mut(GROUP)) {
        pass::<ROUNDS, 1>(key, nonce, g, out);
    }
}

/// Fills `out` with `N` groups from `group` on.
#[inline]
#[target_feature(enable = "avx512f")]
fn pass<const ROUNDS: usize, const N: usize>(key: &Key, nonce: u64, group: u64, out: &mut [u8]) {
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let mut initials = [[_mm512_setzero_si512(); 16]; N];
    for (g, initial) in initials.iter_mut().enumerate() {
        // The counter is a multiple of 16: adding the lane to its low word never carries.
        let counter = group.wrapping_add(g as u64).wrapping_mul(BLOCKS as u64);
        *initial = scalar::initial(key, counter, nonce).map(|word| _mm512_set1_epi32(word as i32));
        initial[12] = _mm512_add_epi32(initial[12], lanes);
    }
    let mut states = initials;
    for _ in 0..ROUNDS / 2 {
        quarter_rounds!(states, (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15));
        quarter_rounds!(states, (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14));
    }
    for (g, out) in out.chunks_exact_mut(GROUP).enumerate() {
        for (w, out) in out.chunks_exact_mut(BLOCKS * 4).enumerate() {
            let word = _mm512_add_epi32(states[g][w], initials[g][w]);
            // SAFETY: `out` is 64 writable bytes, and the store asks for no alignment.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), word) };
        }
    }
}

/// Sixteen blocks, each of a state of its own: word by word, lane by lane.
#[target_feature(enable = "avx512f")]
pub(super) fn lanes<const ROUNDS: usize>(state: &[[u32; BLOCKS]; 16], out: &mut [[u32; BLOCKS]; 16]) {
    let mut initial = [_mm512_setzero_si512(); 16];
    for (word, lanes) in initial.iter_mut().zip(state) {
        // SAFETY: sixteen words are 64 bytes, and the load asks for no alignment.
        *word = unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) };
    }
    let mut states = [initial];
    for _ in 0..ROUNDS / 2 {
        quarter_rounds!(states, (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15));
        quarter_rounds!(states, (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14));
    }
    for (w, out) in out.iter_mut().enumerate() {
        let word = _mm512_add_epi32(states[0][w], initial[w]);
        // SAFETY: as above, of a store.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), word) };
    }
}

impl Vector for __m512i {
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self {
        // SAFETY: the caller's words, and a processor that has the instruction; so below.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn repeat(word: u32) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_set1_epi32(word as i32) }
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_add_epi32(self, other) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_xor_si512(self, other) }
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_and_si512(self, other) }
    }

    #[inline(always)]
    unsafe fn right<const BY: i32>(self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_srlv_epi32(self, _mm512_set1_epi32(BY)) }
    }

    #[inline(always)]
    unsafe fn rotate<const BY: i32, const REST: i32>(self) -> Self {
        const { assert!(BY + REST == 32) };
        // SAFETY: as above.
        unsafe { _mm512_ror_epi32::<BY>(self) }
    }
}
