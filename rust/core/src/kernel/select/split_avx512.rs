//! [`split`](super::split) with AVX-512: the lanes within the bracket are compressed to the front.

use std::arch::x86_64::*;

use super::split::{Magnitude, SLACK, scalar};

/// Sixteen 32-bit magnitudes at a time.
///
/// # Safety
/// The CPU has AVX-512 F and POPCNT.
#[target_feature(enable = "avx512f,popcnt")]
pub(super) unsafe fn split_32(values: &[u32], low: u32, high: u32, within: &mut [u32]) -> (usize, usize) {
    assert!(within.len() >= values.len() + SLACK);
    let (lanes, rest) = values.as_chunks::<16>();
    let sign = _mm512_set1_epi32(u32::MOST as i32);
    let (lows, highs) = (_mm512_set1_epi32(low as i32), _mm512_set1_epi32(high as i32));
    let (mut below, mut kept) = (0, 0);
    for lane in lanes {
        // SAFETY: a lane is sixteen numbers of 32 bits.
        let sizes = _mm512_and_si512(unsafe { _mm512_loadu_si512(lane.as_ptr().cast()) }, sign);
        let under = _mm512_cmplt_epu32_mask(sizes, lows);
        let inside = _mm512_cmple_epu32_mask(sizes, highs) & !under;
        // SAFETY: at most as many as were read have been kept, so sixteen more are within the values and their slack.
        unsafe {
            let place = within.as_mut_ptr().add(kept);
            _mm512_storeu_si512(place.cast(), _mm512_maskz_compress_epi32(inside, sizes));
        }
        below += under.count_ones() as usize;
        kept += inside.count_ones() as usize;
    }
    let (more_below, more) = scalar(rest, low, high, &mut within[kept..]);
    (below + more_below, kept + more)
}

/// Eight 64-bit magnitudes at a time.
///
/// # Safety
/// The CPU has AVX-512 F and POPCNT.
#[target_feature(enable = "avx512f,popcnt")]
pub(super) unsafe fn split_64(values: &[u64], low: u64, high: u64, within: &mut [u64]) -> (usize, usize) {
    assert!(within.len() >= values.len() + SLACK);
    let (lanes, rest) = values.as_chunks::<8>();
    let sign = _mm512_set1_epi64(u64::MOST as i64);
    let (lows, highs) = (_mm512_set1_epi64(low as i64), _mm512_set1_epi64(high as i64));
    let (mut below, mut kept) = (0, 0);
    for lane in lanes {
        // SAFETY: a lane is eight numbers of 64 bits.
        let sizes = _mm512_and_si512(unsafe { _mm512_loadu_si512(lane.as_ptr().cast()) }, sign);
        let under = _mm512_cmplt_epu64_mask(sizes, lows);
        let inside = _mm512_cmple_epu64_mask(sizes, highs) & !under;
        // SAFETY: at most as many as were read have been kept, so eight more are within the values and their slack.
        unsafe {
            let place = within.as_mut_ptr().add(kept);
            _mm512_storeu_si512(place.cast(), _mm512_maskz_compress_epi64(inside, sizes));
        }
        below += under.count_ones() as usize;
        kept += inside.count_ones() as usize;
    }
    let (more_below, more) = scalar(rest, low, high, &mut within[kept..]);
    (below + more_below, kept + more)
}
