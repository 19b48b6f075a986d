//! Sampling a matrix 32 lanes at a time, from tables of 16-bit entries.

use std::arch::x86_64::*;

use super::matrix::MatrixLaw;
use crate::random::Refine;

/// Samples that are drawn together.
const LANES: usize = 32;

impl MatrixLaw<u16> {
    /// Replaces rows, a multiple of 32, by reports, like the oracle. `keystream` holds two bytes for each.
    #[target_feature(enable = "avx512f,avx512bw,bmi1")]
    pub(super) fn on_avx512(&self, keystream: &[u8], words: &mut [u16], refine: &mut Refine) {
        let mask = _mm512_set1_epi16(self.mask() as i16);
        let by = _mm_cvtsi32_si128(self.bits as i32);
        let cells = self.entries.cells();
        let groups = words.as_chunks_mut::<LANES>().0.iter_mut().zip(keystream.as_chunks::<{ 2 * LANES }>().0);
        for (words, keystream) in groups {
            // SAFETY: 64 bytes each.
            let (draws, rows) = unsafe {
                (_mm512_loadu_si512(keystream.as_ptr().cast()), _mm512_loadu_si512(words.as_ptr().cast()))
            };
            let columns = _mm512_and_si512(draws, mask);
            let half = |rows: __m256i, columns: __m256i| {
                let row = _mm512_sll_epi32(_mm512_cvtepu16_epi32(rows), by);
                let index = _mm512_or_si512(row, _mm512_cvtepu16_epi32(columns));
                // SAFETY: stage one and the padding leave only rows below `self.rows`, each has 2^k cells, and another
                // cell follows the last one, so the four bytes from a cell on lie in the table.
                let entries = unsafe { _mm512_i32gather_epi32::<2>(index, cells.as_ptr().cast()) };
                _mm512_cvtepi32_epi16(entries)
            };
            let low = half(_mm512_castsi512_si256(rows), _mm512_castsi512_si256(columns));
            let high = half(_mm512_extracti64x4_epi64::<1>(rows), _mm512_extracti64x4_epi64::<1>(columns));
            let entries = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            // The smaller of the two has the outcome in its low bits, unless the bits above are equal.
            let report = _mm512_and_si512(_mm512_min_epu16(draws, entries), mask);
            let open = _mm512_cmple_epu16_mask(_mm512_xor_si512(draws, entries), mask);
            let before = *words;
            // SAFETY: 64 bytes.
            unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), report) };
            if open != 0 {
                self.settle(open, &before, keystream, words, refine);
            }
        }
    }

    /// Draws the lanes that are marked in `open` again, in order.
    #[inline(never)]
    fn settle(
        &self,
        mut open: u32,
        rows: &[u16; LANES],
        keystream: &[u8; 2 * LANES],
        words: &mut [u16; LANES],
        refine: &mut Refine,
    ) {
        while open != 0 {
            let lane = open.trailing_zeros() as usize;
            open &= open - 1;
            let draw = u16::from_le_bytes([keystream[2 * lane], keystream[2 * lane + 1]]);
            words[lane] = self.draw(rows[lane], draw, refine);
        }
    }
}
