//! Samples flips with NEON, 64 of them from 16 draws.

use std::arch::aarch64::*;

use safe_unaligned_simd::aarch64 as safe;

use super::flip::{COLUMN, DRAWS, Flip, groups};
use crate::random::Refine;

impl Flip {
    /// Writes a report for each row, like the oracle.
    #[target_feature(enable = "neon")]
    pub(super) fn on_neon(&self, keystream: &[u8], rows: &[u16], reports: &mut [u16], refine: &mut Refine) {
        let byte = |at: u32| self.entries.map(|entry| (entry >> (8 * at)) as u8);
        let [low, high] = [0, 1].map(|at| safe::vld1q_u8(&byte(at)));
        let (column, one) = (vdupq_n_u16(COLUMN), vdupq_n_u16(1));
        for (keystream, rows, reports) in groups(keystream, rows, reports) {
            // SAFETY: 16 draws are twice 16 bytes.
            let draws = unsafe { vld1q_u8_x2(keystream.as_ptr()) };
            let columns = vandq_u8(vuzp1q_u8(draws.0, draws.1), vdupq_n_u8(COLUMN as u8));
            let (low, high) = (vqtbl1q_u8(low, columns), vqtbl1q_u8(high, columns));
            let entries =
                [vzip1q_u8(low, high), vzip2q_u8(low, high)].map(|bytes| vreinterpretq_u16_u8(bytes));
            let draws = [draws.0, draws.1].map(|bytes| vreinterpretq_u16_u8(bytes));
            let mut flips = [0, 1].map(|i| vandq_u16(vminq_u16(draws[i], entries[i]), column));
            let above = [0, 1].map(|i| veorq_u16(draws[i], entries[i]));
            if vminvq_u16(vminq_u16(above[0], above[1])) <= COLUMN {
                flips = self.settled(above, keystream, flips, refine);
            }
            for quarter in 0..4 {
                for (half, flips) in flips.iter_mut().enumerate() {
                    let at = DRAWS * quarter + 8 * half;
                    let row = safe::vld1q_u16(&rows.as_chunks::<8>().0[at / 8]);
                    let report = vandq_u16(veorq_u16(row, *flips), one);
                    safe::vst1q_u16(&mut reports.as_chunks_mut::<8>().0[at / 8], report);
                    *flips = vshrq_n_u16::<1>(*flips);
                }
            }
        }
    }

    /// `flips` with those drawn again whose draws differ from their entries in no bit `above` the column.
    #[cold]
    #[inline(never)]
    #[target_feature(enable = "neon")]
    fn settled(
        &self,
        above: [uint16x8_t; 2],
        keystream: &[u8; 2 * DRAWS],
        flips: [uint16x8_t; 2],
        refine: &mut Refine,
    ) -> [uint16x8_t; 2] {
        let (mut words, mut differ) = ([0u16; DRAWS], [0u16; DRAWS]);
        // SAFETY: 16 words are twice 8.
        unsafe {
            vst1q_u16_x2(words.as_mut_ptr(), uint16x8x2_t(flips[0], flips[1]));
            vst1q_u16_x2(differ.as_mut_ptr(), uint16x8x2_t(above[0], above[1]));
        }
        let open = (0..DRAWS).fold(0, |open, i| open | u32::from(differ[i] <= COLUMN) << i);
        self.settle(open, keystream, &mut words, refine);
        // SAFETY: as above.
        let settled = unsafe { vld1q_u16_x2(words.as_ptr()) };
        [settled.0, settled.1]
    }
}
