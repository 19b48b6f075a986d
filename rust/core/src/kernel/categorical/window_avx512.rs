//! Samples a window with AVX-512, 32 lanes at a time.

use std::arch::x86_64::*;

use safe_unaligned_simd::x86_64::{_mm512_loadu_si512, _mm512_storeu_si512};

use super::law::BLOCK;
use super::window::{LANES, NarrowWindow, groups};
use crate::isa::ones;
use crate::random::Refine;

impl NarrowWindow<'_> {
    /// Writes a report for each of at most a block of rows, like the oracle.
    #[target_feature(enable = "avx512f,avx512bw,bmi1")]
    pub(super) fn on_avx512(&self, keystream: &[u8], rows: &[u16], reports: &mut [u16], refine: &mut Refine) {
        let all = |number: u16| _mm512_set1_epi16(number as i16);
        let (width, others, half) = (all(self.width), all(self.others), all(self.width / 2));
        let (reject_inside, reject_outside) = (all(self.reject_inside), all(self.reject_outside));
        let (top, certain) = (all(self.top()), if self.chance.certain { u32::MAX } else { 0 });
        // The lanes that are not settled, and the groups that have some, which is hard to predict: they are drawn behind the
        // block.
        let (mut unsettled, mut unsettled_in) = ([0u32; BLOCK / LANES], 0u32);
        for (group, (keystream, own, reports)) in groups(keystream, rows, reports).enumerate() {
            let draws = keystream.as_chunks::<64>().0;
            let (chances, positions) = (_mm512_loadu_si512(&draws[0]), _mm512_loadu_si512(&draws[1]));
            let rows = _mm512_loadu_si512(own);
            let inside = _mm512_cmplt_epu16_mask(chances, top) ^ certain;
            let equal = _mm512_cmpeq_epu16_mask(chances, top);
            // Lemire: the position is the upper half of the product, unless the lower one is to be rejected.
            let bound = _mm512_mask_mov_epi16(others, inside, width);
            let reject = _mm512_mask_mov_epi16(reject_outside, inside, reject_inside);
            let rejected = _mm512_cmplt_epu16_mask(_mm512_mullo_epi16(positions, bound), reject);
            let position = _mm512_mulhi_epu16(positions, bound);
            // The window is moved inside at the edges; the cells outside are counted past it.
            let start = _mm512_min_epu16(_mm512_subs_epu16(rows, half), others);
            let past = _mm512_maskz_mov_epi16(_mm512_cmpge_epu16_mask(position, start), width);
            let report = _mm512_add_epi16(position, _mm512_mask_mov_epi16(past, inside, start));
            _mm512_storeu_si512(reports, report);
            unsettled[group] = equal | rejected;
            unsettled_in |= u32::from(equal | rejected != 0) << group;
        }
        for group in ones(unsettled_in) {
            if let Some((keystream, own, reports)) = groups(keystream, rows, reports).nth(group) {
                self.settle(unsettled[group], own, keystream, reports, refine);
            }
        }
    }
}
