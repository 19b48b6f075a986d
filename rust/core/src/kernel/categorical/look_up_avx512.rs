//! Reads a small table whole, at 64 positions at once: no address tells which they were.

use std::arch::x86_64::*;

use super::look_up::PLACES;
use crate::codec::Code;

/// Cells of 32 bits in a register.
pub(super) const VECTOR: usize = 16;
/// Registers that are read together.
pub(super) const VECTORS: usize = PLACES / VECTOR;
/// Cells that `vpermt2d` reads, by the low five bits of a position: two registers.
const PAIR: usize = 2 * VECTOR;

/// The cells at the positions `index`, all of which are below the length of `table`, a multiple of 32 cells.
///
/// Two registers of the table at a time are read at every position; what comes out is kept where the other bits of the position
/// are those of the pair.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn pick<T>(table: &[T], index: &[__m512i; VECTORS]) -> [__m512i; VECTORS] {
    const { assert!(size_of::<T>() == 4) };
    let mut result = [_mm512_setzero_si512(); VECTORS];
    for (number, pair) in (0..).zip(table.as_chunks::<PAIR>().0) {
        // SAFETY: a pair is twice 64 bytes.
        let (low, high) = unsafe {
            (_mm512_loadu_si512(pair.as_ptr().cast()), _mm512_loadu_si512(pair[VECTOR..].as_ptr().cast()))
        };
        for (result, &index) in result.iter_mut().zip(index) {
            let here = _mm512_cmpeq_epi32_mask(_mm512_srli_epi32::<5>(index), _mm512_set1_epi32(number));
            *result = _mm512_mask_mov_epi32(*result, here, _mm512_permutex2var_epi32(low, index, high));
        }
    }
    result
}

/// Writes the letter of each report. `letters` are padded to a multiple of 32; no report stands for the padding.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn spell<W: Code>(reports: &[W], letters: &[f32], out: &mut [f32]) {
    let (groups, rest) = reports.as_chunks::<PLACES>();
    let (rooms, rest_room) = out.as_chunks_mut::<PLACES>();
    for (reports, out) in groups.iter().zip(rooms) {
        let index = reports.map(|report| report.widen());
        let load =
            |v: usize| safe_unaligned_simd::x86_64::_mm512_loadu_si512(&index.as_chunks::<VECTOR>().0[v]);
        let result = pick(letters, &[0, 1, 2, 3].map(load));
        for (out, result) in out.as_chunks_mut::<VECTOR>().0.iter_mut().zip(result) {
            safe_unaligned_simd::x86_64::_mm512_storeu_ps(out, _mm512_castsi512_ps(result));
        }
    }
    for (out, &report) in rest_room.iter_mut().zip(rest) {
        *out = letters[report.widen() as usize];
    }
}
