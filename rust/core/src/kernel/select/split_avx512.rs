//! [`split`](super::split) with AVX-512: the lanes within the bracket are compressed to the front.

use std::arch::x86_64::*;

use super::split::{MARKED, Magnitude, SLACK, Split, more, prefetch};

/// Stores the first half of a vector, and if `all` the other half too: brackets are narrow, so it seldom is, and a short store
/// straddles two lines of the cache less often.
///
/// # Safety
/// There is room for the whole vector.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store(place: *mut __m512i, numbers: __m512i, all: bool) {
    // SAFETY: passed on from the caller.
    unsafe {
        if all {
            _mm512_storeu_si512(place, numbers);
        } else {
            _mm256_storeu_si256(place.cast(), _mm512_castsi512_si256(numbers));
        }
    }
}

/// Sixteen 32-bit magnitudes at a time.
///
/// # Safety
/// The CPU has AVX-512 F and POPCNT.
#[target_feature(enable = "avx512f,popcnt")]
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
    let sign = _mm512_set1_epi32(u32::MOST as i32);
    let lows = _mm512_set1_epi32(low as i32);
    let width = _mm512_set1_epi32((high - low) as i32);
    let (mut below, mut kept, mut most) = (_mm512_setzero_si512(), 0, _mm512_setzero_si512());
    for (run, mark) in runs.iter().zip(marks) {
        *mark = kept as u32;
        if ahead > 0 {
            prefetch(run.as_ptr(), ahead);
        }
        for lane in run.as_chunks::<16>().0 {
            // SAFETY: a lane is sixteen numbers of 32 bits.
            let sizes = _mm512_and_si512(unsafe { _mm512_loadu_si512(lane.as_ptr().cast()) }, sign);
            most = _mm512_max_epu32(most, sizes);
            // Below the low end the difference is negative: its top bit is a count, and it is above any width.
            let excess = _mm512_sub_epi32(sizes, lows);
            below = _mm512_add_epi32(below, _mm512_srli_epi32::<31>(excess));
            let inside = _mm512_cmple_epu32_mask(excess, width);
            let (count, inside) = (inside.count_ones() as usize, _mm512_maskz_compress_epi32(inside, sizes));
            // SAFETY: at most as many as were read have been kept, so sixteen more are within the values and their slack.
            unsafe { store(within.as_mut_ptr().add(kept).cast(), inside, count > 8) };
            kept += count;
        }
    }
    let below = _mm512_reduce_add_epi32(below) as u32 as usize;
    let found = Split { below, kept, most: _mm512_reduce_max_epu32(most) };
    more(rest, low, high, within, last, found)
}

/// Eight 64-bit magnitudes at a time.
///
/// # Safety
/// The CPU has AVX-512 F and POPCNT.
#[target_feature(enable = "avx512f,popcnt")]
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
    let sign = _mm512_set1_epi64(u64::MOST as i64);
    let lows = _mm512_set1_epi64(low as i64);
    let width = _mm512_set1_epi64((high - low) as i64);
    let (mut below, mut kept, mut most) = (_mm512_setzero_si512(), 0, _mm512_setzero_si512());
    for (run, mark) in runs.iter().zip(marks) {
        *mark = kept as u32;
        if ahead > 0 {
            prefetch(run.as_ptr(), ahead);
        }
        for lane in run.as_chunks::<8>().0 {
            // SAFETY: a lane is eight numbers of 64 bits.
            let sizes = _mm512_and_si512(unsafe { _mm512_loadu_si512(lane.as_ptr().cast()) }, sign);
            most = _mm512_max_epu64(most, sizes);
            // Below the low end the difference is negative: its top bit is a count, and it is above any width.
            let excess = _mm512_sub_epi64(sizes, lows);
            below = _mm512_add_epi64(below, _mm512_srli_epi64::<63>(excess));
            let inside = _mm512_cmple_epu64_mask(excess, width);
            let (count, inside) = (inside.count_ones() as usize, _mm512_maskz_compress_epi64(inside, sizes));
            // SAFETY: at most as many as were read have been kept, so eight more are within the values and their slack.
            unsafe { store(within.as_mut_ptr().add(kept).cast(), inside, count > 4) };
            kept += count;
        }
    }
    let below = _mm512_reduce_add_epi64(below) as usize;
    let found = Split { below, kept, most: _mm512_reduce_max_epu64(most) };
    more(rest, low, high, within, last, found)
}
