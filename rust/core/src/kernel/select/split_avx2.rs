//! [`split`](super::split) with AVX2: the lanes within the bracket are moved to the front by a table of permutations.

use std::arch::x86_64::*;

use safe_unaligned_simd::x86_64::{_mm256_loadu_si256, _mm256_storeu_si256};

use super::split::{Magnitude, Split, behind_runs, in_registers};

/// For each set of eight lanes, the positions of those in it, in order; the other entries do not matter.
static FRONT: [[u32; 8]; 256] = front();

const fn front() -> [[u32; 8]; 256] {
    let mut table = [[0; 8]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut lane, mut position) = (0, 0);
        while lane < 8 {
            if set >> lane & 1 == 1 {
                table[set][position] = lane;
                position += 1;
            }
            lane += 1;
        }
        set += 1;
    }
    table
}

/// The lanes of `inside`, a set of 32-bit lanes, in front, and whatever behind them.
#[inline]
#[target_feature(enable = "avx2")]
fn to_front(sizes: __m256i, inside: usize) -> __m256i {
    _mm256_permutevar8x32_epi32(sizes, _mm256_loadu_si256(&FRONT[inside & 255]))
}

/// Eight 32-bit magnitudes at a time. They are below 2^31, so signed comparisons do.
#[target_feature(enable = "avx2,popcnt")]
pub(super) fn split_32(
    values: &[u32],
    low: u32,
    high: u32,
    within: &mut [u32],
    marks: &mut [u32],
    ahead: usize,
) -> Split<u32> {
    let sign = _mm256_set1_epi32(u32::MOST as i32);
    let (lows, highs) = (_mm256_set1_epi32(low as i32), _mm256_set1_epi32(high as i32));
    let (mut below, mut most) = (0, _mm256_setzero_si256());
    let kept = in_registers(values, within, marks, ahead, |lane: &[u32; 8], room| {
        let sizes = _mm256_and_si256(_mm256_loadu_si256(lane), sign);
        most = _mm256_max_epu32(most, sizes);
        let under = _mm256_cmpgt_epi32(lows, sizes);
        let outside = _mm256_or_si256(under, _mm256_cmpgt_epi32(sizes, highs));
        let inside = !_mm256_movemask_ps(_mm256_castsi256_ps(outside)) as usize & 255;
        _mm256_storeu_si256(room, to_front(sizes, inside));
        below += _mm256_movemask_ps(_mm256_castsi256_ps(under)).count_ones() as usize;
        inside.count_ones() as usize
    });
    let mut largest = [0; 8];
    _mm256_storeu_si256(&mut largest, most);
    let result = Split { below, kept, most: largest.into_iter().max().unwrap_or(0) };
    behind_runs(values, low, high, within, marks, result)
}

/// Four 64-bit magnitudes at a time, each as two lanes of 32 bits. They are below 2^63, so signed comparisons do.
#[target_feature(enable = "avx2,popcnt")]
pub(super) fn split_64(
    values: &[u64],
    low: u64,
    high: u64,
    within: &mut [u64],
    marks: &mut [u32],
    ahead: usize,
) -> Split<u64> {
    let sign = _mm256_set1_epi64x(u64::MOST as i64);
    let (lows, highs) = (_mm256_set1_epi64x(low as i64), _mm256_set1_epi64x(high as i64));
    let (mut below, mut most) = (0, _mm256_setzero_si256());
    let kept = in_registers(values, within, marks, ahead, |lane: &[u64; 4], room| {
        let sizes = _mm256_and_si256(_mm256_loadu_si256(lane), sign);
        most = _mm256_blendv_epi8(most, sizes, _mm256_cmpgt_epi64(sizes, most));
        let under = _mm256_cmpgt_epi64(lows, sizes);
        let outside = _mm256_or_si256(under, _mm256_cmpgt_epi64(sizes, highs));
        let inside = !_mm256_movemask_ps(_mm256_castsi256_ps(outside)) as usize & 255;
        _mm256_storeu_si256(room, to_front(sizes, inside));
        below += _mm256_movemask_pd(_mm256_castsi256_pd(under)).count_ones() as usize;
        inside.count_ones() as usize / 2
    });
    let mut largest = [0; 4];
    _mm256_storeu_si256(&mut largest, most);
    let result = Split { below, kept, most: largest.into_iter().max().unwrap_or(0) };
    behind_runs(values, low, high, within, marks, result)
}
