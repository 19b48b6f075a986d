//! Samples a window with NEON, 8 lanes at a time.

use std::arch::aarch64::*;

use safe_unaligned_simd::aarch64::{vld1q_u8, vld1q_u16, vst1q_u16};

use super::window::{LANES, NarrowWindow, groups};
use crate::kernel::bits::marked;
use crate::random::Refine;

impl NarrowWindow<'_> {
    /// Writes a report for each of at most a block of rows, like the oracle.
    #[target_feature(enable = "neon")]
    pub(super) fn on_neon(&self, keystream: &[u8], rows: &[u16], reports: &mut [u16], refine: &mut Refine) {
        if self.chance.certain {
            self.eights::<true>(keystream, rows, reports, refine);
        } else {
            self.eights::<false>(keystream, rows, reports, refine);
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn eights<const CERTAIN: bool>(
        &self,
        keystream: &[u8],
        rows: &[u16],
        reports: &mut [u16],
        refine: &mut Refine,
    ) {
        let (width, others) = (vdupq_n_u16(self.width), vdupq_n_u16(self.others));
        let half = vdupq_n_u16(self.width / 2);
        let (reject_inside, reject_outside) =
            (vdupq_n_u16(self.reject_inside), vdupq_n_u16(self.reject_outside));
        let top = vdupq_n_u16(self.top());
        for (keystream, rows, reports) in groups(keystream, rows, reports) {
            let mut open = [vdupq_n_u16(0); LANES / 8];
            for (i, open) in open.iter_mut().enumerate() {
                // Eight of 32 chances, which come first, of as many positions, and of as many rows.
                let draws = keystream.as_chunks::<16>().0;
                let chances = vreinterpretq_u16_u8(vld1q_u8(&draws[i]));
                let positions = vreinterpretq_u16_u8(vld1q_u8(&draws[LANES / 8 + i]));
                let rows = vld1q_u16(&rows.as_chunks::<8>().0[i]);
                let below = vcltq_u16(chances, top);
                let inside = if CERTAIN { vmvnq_u16(below) } else { below };
                // Lemire: the position is the upper half of the product, unless the lower one is to be rejected.
                let bound = vbslq_u16(inside, width, others);
                let reject = vbslq_u16(inside, reject_inside, reject_outside);
                let low = vreinterpretq_u16_u32(vmull_u16(vget_low_u16(positions), vget_low_u16(bound)));
                let high = vreinterpretq_u16_u32(vmull_high_u16(positions, bound));
                let (product, position) = (vuzp1q_u16(low, high), vuzp2q_u16(low, high));
                *open = vorrq_u16(vceqq_u16(chances, top), vcltq_u16(product, reject));
                // The window is moved inside at the edges; the cells outside are counted past it.
                let start = vminq_u16(vqsubq_u16(rows, half), others);
                let past = vandq_u16(vcgeq_u16(position, start), width);
                let report = vaddq_u16(position, vbslq_u16(inside, start, past));
                vst1q_u16(&mut reports.as_chunks_mut::<8>().0[i], report);
            }
            let any = vorrq_u16(vorrq_u16(open[0], open[1]), vorrq_u16(open[2], open[3]));
            if vmaxvq_u16(any) != 0 {
                self.settle(marked(open), rows, keystream, reports, refine);
            }
        }
    }
}
