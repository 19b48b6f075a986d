//! [`split`](super::split) with AVX-512: the lanes within the bracket are compressed to the front.

use std::arch::x86_64::*;

use safe_unaligned_simd::x86_64::{_mm256_storeu_si256, _mm512_loadu_si512, _mm512_storeu_si512};

use super::split::{Magnitude, SMALL, Split, behind_runs, in_registers};

/// Sixteen 32-bit magnitudes at a time.
#[target_feature(enable = "avx512f,popcnt")]
pub(super) fn split_32(
    values: &[u32],
    low: u32,
    high: u32,
    within: &mut [u32],
    marks: &mut [u32],
    ahead: usize,
) -> Split<u32> {
    let sign = _mm512_set1_epi32(u32::MOST as i32);
    let (lows, width) = (_mm512_set1_epi32(low as i32), _mm512_set1_epi32((high - low) as i32));
    let (mut below, mut most) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    let kept = in_registers(values, within, marks, ahead, |lane: &[u32; 16], room| {
        let sizes = _mm512_and_si512(_mm512_loadu_si512(lane), sign);
        most = _mm512_max_epu32(most, sizes);
        // Below the low end the difference is negative: its top bit is a count, and it is above any width.
        let excess = _mm512_sub_epi32(sizes, lows);
        below = _mm512_add_epi32(below, _mm512_srli_epi32::<31>(excess));
        let inside = _mm512_cmple_epu32_mask(excess, width);
        let (count, inside) = (inside.count_ones() as usize, _mm512_maskz_compress_epi32(inside, sizes));
        // Brackets are narrow, so that the other half seldom is needed, and a short store straddles two lines of the cache
        // less often.
        match room.first_chunk_mut::<8>() {
            Some(room) if count <= 8 => _mm256_storeu_si256(room, _mm512_castsi512_si256(inside)),
            _ => _mm512_storeu_si512(room, inside),
        }
        count
    });
    let below = _mm512_reduce_add_epi32(below) as u32 as usize;
    let result = Split { below, kept, most: _mm512_reduce_max_epu32(most) };
    behind_runs(values, low, high, within, marks, result)
}

/// Eight 64-bit magnitudes at a time.
#[target_feature(enable = "avx512f,popcnt")]
pub(super) fn split_64(
    values: &[u64],
    low: u64,
    high: u64,
    within: &mut [u64],
    marks: &mut [u32],
    ahead: usize,
) -> Split<u64> {
    let sign = _mm512_set1_epi64(u64::MOST as i64);
    let (lows, width) = (_mm512_set1_epi64(low as i64), _mm512_set1_epi64((high - low) as i64));
    let (mut below, mut most) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    let kept = in_registers(values, within, marks, ahead, |lane: &[u64; 8], room| {
        let sizes = _mm512_and_si512(_mm512_loadu_si512(lane), sign);
        most = _mm512_max_epu64(most, sizes);
        // Below the low end the difference is negative: its top bit is a count, and it is above any width.
        let excess = _mm512_sub_epi64(sizes, lows);
        below = _mm512_add_epi64(below, _mm512_srli_epi64::<63>(excess));
        let inside = _mm512_cmple_epu64_mask(excess, width);
        let (count, inside) = (inside.count_ones() as usize, _mm512_maskz_compress_epi64(inside, sizes));
        // Brackets are narrow, so that the other half seldom is needed, and a short store straddles two lines of the cache
        // less often.
        match room.first_chunk_mut::<4>() {
            Some(room) if count <= 4 => _mm256_storeu_si256(room, _mm512_castsi512_si256(inside)),
            _ => _mm512_storeu_si512(room, inside),
        }
        count
    });
    let below = _mm512_reduce_add_epi64(below) as u64 as usize;
    let result = Split { below, kept, most: _mm512_reduce_max_epu64(most) };
    behind_runs(values, low, high, within, marks, result)
}

macro_rules! nth {
    ($name:ident, $bits:ident, $one:ident, $at_most:ident, $larger:ident, $largest:ident) => {
        /// The largest of the numbers that have at most `rank` smaller ones: the compiler leaves it one number at a time.
        #[target_feature(enable = "avx512f")]
        pub(super) fn $name(numbers: &[$bits; SMALL], smaller: &[$bits; SMALL], rank: $bits) -> $bits {
            const LANES: usize = 64 / size_of::<$bits>();
            let (rank, mut largest) = ($one(rank as _), _mm512_setzero_si512());
            for (numbers, smaller) in
                numbers.as_chunks::<LANES>().0.iter().zip(smaller.as_chunks::<LANES>().0)
            {
                let few = $at_most(_mm512_loadu_si512(smaller), rank);
                largest = $larger(largest, few, largest, _mm512_loadu_si512(numbers));
            }
            $largest(largest)
        }
    };
}
nth!(nth_32, u32, _mm512_set1_epi32, _mm512_cmple_epu32_mask, _mm512_mask_max_epu32, _mm512_reduce_max_epu32);
nth!(nth_64, u64, _mm512_set1_epi64, _mm512_cmple_epu64_mask, _mm512_mask_max_epu64, _mm512_reduce_max_epu64);
