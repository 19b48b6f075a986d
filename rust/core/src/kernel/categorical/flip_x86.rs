//! Samples flips in vector units, 64 of them from 16 draws.

use std::arch::x86_64::*;

use safe_unaligned_simd::x86_64::{
    _mm_loadu_si128, _mm256_loadu_si256, _mm256_storeu_si256, _mm512_loadu_si512, _mm512_storeu_si512,
};

use super::flip::{COLUMN, DRAWS, Flip, groups};
use crate::random::Refine;

impl Flip {
    /// Writes a report for each row, like the oracle.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(super) fn on_avx512(&self, keystream: &[u8], rows: &[u16], reports: &mut [u16], refine: &mut Refine) {
        let table = _mm256_loadu_si256(&self.entries);
        let column = _mm256_set1_epi16(COLUMN as i16);
        let one = _mm512_set1_epi16(1);
        let zero_and_one = _mm512_inserti64x4::<1>(_mm512_setzero_si512(), _mm256_set1_epi16(1));
        let two_and_three = _mm512_add_epi16(zero_and_one, _mm512_set1_epi16(2));
        for (keystream, rows, reports) in groups(keystream, rows, reports) {
            let draws = _mm256_loadu_si256(keystream);
            // Only the low four bits of a position are looked at.
            let entries = _mm256_permutexvar_epi16(draws, table);
            let mut flips = _mm256_and_si256(_mm256_min_epu16(draws, entries), column);
            let open = _mm256_cmple_epu16_mask(_mm256_xor_si256(draws, entries), column);
            if open != 0 {
                flips = settled(self, open.into(), keystream, flips, refine);
            }
            let flips = _mm512_broadcast_i64x4(flips);
            let halves = rows.as_chunks::<32>().0.iter().zip(reports.as_chunks_mut::<32>().0);
            for ((rows, reports), by) in halves.zip([zero_and_one, two_and_three]) {
                let flipped = _mm512_xor_si512(_mm512_loadu_si512(rows), _mm512_srlv_epi16(flips, by));
                _mm512_storeu_si512(reports, _mm512_and_si512(flipped, one));
            }
        }
    }

    /// Writes a report for each row, like the oracle.
    #[target_feature(enable = "avx2")]
    pub(super) fn on_avx2(&self, keystream: &[u8], rows: &[u16], reports: &mut [u16], refine: &mut Refine) {
        let byte = |at: u32| self.entries.map(|entry| (entry >> (8 * at)) as u8);
        let [low, high] = [0, 1].map(|at| _mm256_broadcastsi128_si256(_mm_loadu_si128(&byte(at))));
        let (column, one) = (_mm256_set1_epi16(COLUMN as i16), _mm256_set1_epi16(1));
        // A position with its top bit set reads zero.
        let not_high = _mm256_set1_epi16(0x8000_u16 as i16);
        let not_low = _mm256_set1_epi16(0x0080);
        for (keystream, rows, reports) in groups(keystream, rows, reports) {
            let draws = _mm256_loadu_si256(keystream);
            let position = _mm256_and_si256(draws, column);
            let entries = _mm256_or_si256(
                _mm256_shuffle_epi8(low, _mm256_or_si256(position, not_high)),
                _mm256_shuffle_epi8(high, _mm256_or_si256(_mm256_slli_epi16::<8>(position), not_low)),
            );
            let mut flips = _mm256_and_si256(_mm256_min_epu16(draws, entries), column);
            let above = _mm256_andnot_si256(column, _mm256_xor_si256(draws, entries));
            let bytes = _mm256_movemask_epi8(_mm256_cmpeq_epi16(above, _mm256_setzero_si256())) as u32;
            if bytes != 0 {
                let open = (0..DRAWS).fold(0, |open, i| open | (bytes >> (2 * i) & 1) << i);
                flips = settled(self, open, keystream, flips, refine);
            }
            for (quarter, (rows, reports)) in
                rows.as_chunks::<DRAWS>().0.iter().zip(reports.as_chunks_mut::<DRAWS>().0).enumerate()
            {
                let by = _mm_cvtsi32_si128(quarter as i32);
                let flipped = _mm256_xor_si256(_mm256_loadu_si256(rows), _mm256_srl_epi16(flips, by));
                _mm256_storeu_si256(reports, _mm256_and_si256(flipped, one));
            }
        }
    }
}

/// `flips` with those that are marked in `open` drawn again.
#[target_feature(enable = "avx2")]
fn settled(
    law: &Flip,
    open: u32,
    keystream: &[u8; 2 * DRAWS],
    flips: __m256i,
    refine: &mut Refine,
) -> __m256i {
    let mut words = [0u16; DRAWS];
    _mm256_storeu_si256(&mut words, flips);
    law.settle(open, keystream, &mut words, refine);
    _mm256_loadu_si256(&words)
}
