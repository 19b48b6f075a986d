//! Samples a matrix with AVX-512: 32 lanes at a time by address from tables of 16-bit entries, 64 at a time from small tables
//! of 32-bit ones that are read whole.

use std::arch::x86_64::*;

use safe_unaligned_simd::x86_64::{
    _mm256_loadu_si256, _mm256_storeu_si256, _mm512_loadu_si512, _mm512_storeu_si512,
};

use super::law::BLOCK;
use super::look_up::PLACES;
use super::look_up_avx512::{VECTOR, VECTORS, pick};
use super::matrix::MatrixLaw;
use crate::isa::ones;
use crate::random::Refine;

/// Samples that are drawn together.
const LANES: usize = 32;

impl MatrixLaw<u16> {
    /// Writes a report for each of `rows`, a multiple of 32 and at most a block, like the oracle. `keystream` holds two bytes
    /// for each.
    ///
    /// The positions of all entries first, then the entries, then the reports: what a loop writes in one width the next reads in
    /// another, and would have to wait for if it came at once.
    #[target_feature(enable = "avx512f,avx512bw,bmi1")]
    pub(super) fn on_avx512(&self, keystream: &[u8], rows: &[u16], reports: &mut [u16], refine: &mut Refine) {
        let mask = _mm512_set1_epi16(self.mask() as i16);
        let by = _mm_cvtsi32_si128(self.bits as i32);
        let (all_rows, all_draws) = (rows.as_chunks::<LANES>().0, keystream.as_chunks::<{ 2 * LANES }>().0);
        let mut index = [0u32; BLOCK];
        for ((rows, draws), index) in all_rows.iter().zip(all_draws).zip(index.as_chunks_mut::<LANES>().0) {
            let (draws, rows) = (_mm512_loadu_si512(draws), _mm512_loadu_si512(rows));
            let columns = _mm512_and_si512(draws, mask);
            let half = |rows: __m256i, columns: __m256i| {
                _mm512_or_si512(
                    _mm512_sll_epi32(_mm512_cvtepu16_epi32(rows), by),
                    _mm512_cvtepu16_epi32(columns),
                )
            };
            let low = half(_mm512_castsi512_si256(rows), _mm512_castsi512_si256(columns));
            let high = half(_mm512_extracti64x4_epi64::<1>(rows), _mm512_extracti64x4_epi64::<1>(columns));
            let halves = index.as_chunks_mut::<VECTOR>().0;
            _mm512_storeu_si512(&mut halves[0], low);
            _mm512_storeu_si512(&mut halves[1], high);
        }
        // SAFETY: stage one and the padding leave only rows below `self.rows`, and each has 2^k cells.
        unsafe { self.entries.look_up_some(&index[..rows.len()], reports) };
        // Which lanes are open, and which groups have some: that is hard to predict, and the rest of a threshold far away. So
        // it is sent for at once, and looked at behind the block.
        let (mut open, mut open_in) = ([0u32; BLOCK / LANES], 0u32);
        let groups =
            all_draws.iter().zip(reports.as_chunks_mut::<LANES>().0).zip(index.as_chunks::<LANES>().0);
        for (group, ((draws, reports), index)) in groups.enumerate() {
            let (draws, entries) = (_mm512_loadu_si512(draws), _mm512_loadu_si512(reports));
            // The smaller of the two has the outcome in its low bits, unless the bits above are equal.
            let report = _mm512_and_si512(_mm512_min_epu16(draws, entries), mask);
            _mm512_storeu_si512(reports, report);
            open[group] = _mm512_cmple_epu16_mask(_mm512_xor_si512(draws, entries), mask);
            open_in |= u32::from(open[group] != 0) << group;
            // Of the first that is open: more seldom are, and where none is this does no harm.
            self.rest.send_for(index[open[group].trailing_zeros() as usize % LANES]);
        }
        for group in ones(open_in) {
            let reports = &mut reports.as_chunks_mut::<LANES>().0[group];
            self.settle(open[group], &all_rows[group], &all_draws[group], reports, refine);
        }
    }

    /// Draws the lanes that are marked in `open` again, in order.
    #[inline(never)]
    fn settle(
        &self,
        open: u32,
        rows: &[u16; LANES],
        keystream: &[u8; 2 * LANES],
        reports: &mut [u16; LANES],
        refine: &mut Refine,
    ) {
        for lane in ones(open) {
            let draw = u16::from_le_bytes([keystream[2 * lane], keystream[2 * lane + 1]]);
            reports[lane] = self.draw(rows[lane], draw, refine);
        }
    }
}

impl MatrixLaw<u32> {
    /// Writes a report for each of `rows`, a multiple of 64, like the oracle, reading the whole table for each.
    /// `keystream` holds four bytes for each.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1")]
    pub(super) fn whole_on_avx512(
        &self,
        keystream: &[u8],
        rows: &[u16],
        reports: &mut [u16],
        refine: &mut Refine,
    ) {
        let mask = _mm512_set1_epi32(self.mask() as i32);
        let by = _mm_cvtsi32_si128(self.bits as i32);
        let groups = rows.as_chunks::<PLACES>().0.iter().zip(reports.as_chunks_mut::<PLACES>().0);
        for ((rows, reports), keystream) in groups.zip(keystream.as_chunks::<{ 4 * PLACES }>().0) {
            let (mut draws, mut index) =
                ([_mm512_setzero_si512(); VECTORS], [_mm512_setzero_si512(); VECTORS]);
            for v in 0..VECTORS {
                let draw = _mm512_loadu_si512(&keystream.as_chunks::<{ 4 * VECTOR }>().0[v]);
                let row = _mm256_loadu_si256(&rows.as_chunks::<VECTOR>().0[v]);
                draws[v] = draw;
                index[v] = _mm512_or_si512(
                    _mm512_sll_epi32(_mm512_cvtepu16_epi32(row), by),
                    _mm512_and_si512(draw, mask),
                );
            }
            let entries = pick(self.entries.cells(), &index);
            let mut open = 0;
            for v in 0..VECTORS {
                // The smaller of the two has the outcome in its low bits, unless the bits above are equal.
                let report = _mm512_and_si512(_mm512_min_epu32(draws[v], entries[v]), mask);
                let equal = _mm512_cmple_epu32_mask(_mm512_xor_si512(draws[v], entries[v]), mask);
                open |= u64::from(equal) << (VECTOR * v);
                _mm256_storeu_si256(
                    &mut reports.as_chunks_mut::<VECTOR>().0[v],
                    _mm512_cvtepi32_epi16(report),
                );
            }
            for lane in ones(open) {
                let draw = u32::from_le_bytes(keystream.as_chunks::<4>().0[lane]);
                reports[lane] = self.draw(rows[lane], draw, refine);
            }
        }
    }
}
