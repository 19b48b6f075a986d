//! [`split`](super::split) with AVX2: the lanes within the bracket are moved to the front by a table of permutations.

use std::arch::x86_64::*;

use super::split::{MARKED, Magnitude, SLACK, Split, more, prefetch};

/// For each set of eight lanes, the places of those in it, in order; the other entries do not matter.
static FRONT: [[u32; 8]; 256] = front();

const fn front() -> [[u32; 8]; 256] {
    let mut table = [[0; 8]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut lane, mut place) = (0, 0);
        while lane < 8 {
            if set >> lane & 1 == 1 {
                table[set][place] = lane;
                place += 1;
            }
            lane += 1;
        }
        set += 1;
    }
    table
}

/// Stores the lanes of `inside`, a set of 32-bit lanes, at `place`, and whatever behind them.
///
/// # Safety
/// The CPU has AVX2, and 32 bytes from `place` on can be written.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_front(place: *mut __m256i, sizes: __m256i, inside: usize) {
    // SAFETY: a row of the table is 32 bytes, and the caller vouches for as many at `place`.
    unsafe {
        let order = _mm256_loadu_si256(FRONT[inside & 255].as_ptr().cast());
        _mm256_storeu_si256(place, _mm256_permutevar8x32_epi32(sizes, order));
    }
}

/// Eight 32-bit magnitudes at a time. They are below 2^31, so signed comparisons do.
///
/// # Safety
/// The CPU has AVX2 and POPCNT.
#[target_feature(enable = "avx2,popcnt")]
pub(super) unsafe fn split_32(
    values: &[u32],
    low: u32,
    high: u32,
    within: &mut [u32],
    marks: &mut [u32],
    ahead: usize,
) -> Split<u32> {
    assert!(within.len() >= values.len() + SLACK);
    let (runs, rest) = values.as_chunks::<MARKED>();
    let (marks, last) = marks.split_at_mut(runs.len());
    let sign = _mm256_set1_epi32(u32::MOST as i32);
    let (lows, highs) = (_mm256_set1_epi32(low as i32), _mm256_set1_epi32(high as i32));
    let (mut below, mut kept, mut most) = (0, 0, _mm256_setzero_si256());
    for (run, mark) in runs.iter().zip(marks) {
        *mark = kept as u32;
        if ahead > 0 {
            prefetch(run.as_ptr(), ahead);
        }
        for lane in run.as_chunks::<8>().0 {
            // SAFETY: a lane is eight numbers of 32 bits.
            let sizes = _mm256_and_si256(unsafe { _mm256_loadu_si256(lane.as_ptr().cast()) }, sign);
            most = _mm256_max_epu32(most, sizes);
            let under = _mm256_cmpgt_epi32(lows, sizes);
            let outside = _mm256_or_si256(under, _mm256_cmpgt_epi32(sizes, highs));
            let inside = !_mm256_movemask_ps(_mm256_castsi256_ps(outside)) as usize & 255;
            // SAFETY: at most as many as were read have been kept, so eight more are within the values and their slack.
            unsafe { store_front(within.as_mut_ptr().add(kept).cast(), sizes, inside) };
            below += _mm256_movemask_ps(_mm256_castsi256_ps(under)).count_ones() as usize;
            kept += inside.count_ones() as usize;
        }
    }
    let mut largest = [0; 8];
    // SAFETY: there is room for eight numbers of 32 bits.
    unsafe { _mm256_storeu_si256(largest.as_mut_ptr().cast(), most) };
    let found = Split { below, kept, most: largest.into_iter().max().unwrap_or(0) };
    more(rest, low, high, within, last, found)
}

/// Four 64-bit magnitudes at a time, each as two lanes of 32 bits. They are below 2^63, so signed comparisons do.
///
/// # Safety
/// The CPU has AVX2 and POPCNT.
#[target_feature(enable = "avx2,popcnt")]
pub(super) unsafe fn split_64(
    values: &[u64],
    low: u64,
    high: u64,
    within: &mut [u64],
    marks: &mut [u32],
    ahead: usize,
) -> Split<u64> {
    assert!(within.len() >= values.len() + SLACK);
    let (runs, rest) = values.as_chunks::<MARKED>();
    let (marks, last) = marks.split_at_mut(runs.len());
    let sign = _mm256_set1_epi64x(u64::MOST as i64);
    let (lows, highs) = (_mm256_set1_epi64x(low as i64), _mm256_set1_epi64x(high as i64));
    let (mut below, mut kept, mut most) = (0, 0, _mm256_setzero_si256());
    for (run, mark) in runs.iter().zip(marks) {
        *mark = kept as u32;
        if ahead > 0 {
            prefetch(run.as_ptr(), ahead);
        }
        for lane in run.as_chunks::<4>().0 {
            // SAFETY: a lane is four numbers of 64 bits.
            let sizes = _mm256_and_si256(unsafe { _mm256_loadu_si256(lane.as_ptr().cast()) }, sign);
            most = _mm256_blendv_epi8(most, sizes, _mm256_cmpgt_epi64(sizes, most));
            let under = _mm256_cmpgt_epi64(lows, sizes);
            let outside = _mm256_or_si256(under, _mm256_cmpgt_epi64(sizes, highs));
            let inside = !_mm256_movemask_ps(_mm256_castsi256_ps(outside)) as usize & 255;
            // SAFETY: at most as many as were read have been kept, so four more are within the values and their slack.
            unsafe { store_front(within.as_mut_ptr().add(kept).cast(), sizes, inside) };
            below += _mm256_movemask_pd(_mm256_castsi256_pd(under)).count_ones() as usize;
            kept += inside.count_ones() as usize / 2;
        }
    }
    let mut largest = [0; 4];
    // SAFETY: there is room for four numbers of 64 bits.
    unsafe { _mm256_storeu_si256(largest.as_mut_ptr().cast(), most) };
    let found = Split { below, kept, most: largest.into_iter().max().unwrap_or(0) };
    more(rest, low, high, within, last, found)
}
