//! Places numbers on a grid, 64 at a time.

use std::arch::x86_64::*;

use safe_unaligned_simd::x86_64::{_mm_loadu_si128, _mm512_loadu_ps, _mm512_storeu_si512};

use super::ruler::{Ruler, TOGETHER};

/// Numbers of single precision in a register.
const VECTOR: usize = 16;

/// [`Coordinate::heads`](super::coordinate::Coordinate::heads) of single precision, to the bit.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn heads(
    values: &[f32; TOGETHER],
    draws: &[u8; TOGETHER],
    ruler: &Ruler<f32>,
    cells: &mut [u32; TOGETHER],
) -> u64 {
    let (low, scale) = (_mm512_set1_ps(ruler.low), _mm512_set1_ps(ruler.scale));
    let (last, heads) = (_mm512_set1_ps(ruler.last), _mm512_set1_ps(256.0));
    let tiny = _mm512_set1_epi32(ruler.tiny as i32);
    let mut open = 0;
    for v in 0..TOGETHER / VECTOR {
        let value = _mm512_loadu_ps(&values.as_chunks::<VECTOR>().0[v]);
        let draw = _mm_loadu_si128(&draws.as_chunks::<VECTOR>().0[v]);
        let size = _mm512_andnot_si512(_mm512_set1_epi32(i32::MIN), _mm512_castps_si512(value));
        // As in the scalar version: what no fraction shows is 0 before any arithmetic.
        let value = _mm512_maskz_mov_ps(_mm512_cmpge_epi32_mask(size, tiny), value);
        let scaled = _mm512_mul_ps(_mm512_sub_ps(value, low), scale);
        // Both give their second operand where one is NaN, and where they are equal.
        let bounded = _mm512_max_ps(_mm512_min_ps(scaled, last), _mm512_setzero_ps());
        let cell = _mm512_cvttps_epi32(bounded);
        let past = _mm512_sub_ps(bounded, _mm512_cvtepi32_ps(cell));
        let head = _mm512_cvttps_epi32(_mm512_mul_ps(past, heads));
        let draw = _mm512_cvtepu8_epi32(draw);
        let up = _mm512_cmplt_epi32_mask(draw, head);
        open |= u64::from(_mm512_cmpeq_epi32_mask(draw, head)) << (VECTOR * v);
        let cell = _mm512_mask_add_epi32(cell, up, cell, _mm512_set1_epi32(1));
        _mm512_storeu_si512(&mut cells.as_chunks_mut::<VECTOR>().0[v], cell);
    }
    open
}
