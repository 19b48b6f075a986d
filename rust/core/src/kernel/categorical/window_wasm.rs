//! Samples a window with WebAssembly's SIMD, 8 lanes at a time.

use std::arch::wasm32::*;

use super::window::{LANES, NarrowWindow, groups};
use crate::kernel::bits::marked;
use crate::random::Refine;

impl NarrowWindow<'_> {
    /// Writes a report for each of at most a block of rows, like the oracle.
    pub(super) fn on_simd128(
        &self,
        keystream: &[u8],
        rows: &[u16],
        reports: &mut [u16],
        refine: &mut Refine,
    ) {
        let (width, others) = (u16x8_splat(self.width), u16x8_splat(self.others));
        let half = u16x8_splat(self.width / 2);
        let (reject_inside, reject_outside) =
            (u16x8_splat(self.reject_inside), u16x8_splat(self.reject_outside));
        let top = u16x8_splat(self.top());
        let certain = u16x8_splat(if self.chance.certain { u16::MAX } else { 0 });
        for (keystream, rows, reports) in groups(keystream, rows, reports) {
            let mut open = [u16x8_splat(0); LANES / 8];
            for (i, open) in open.iter_mut().enumerate() {
                // Eight of 32 chances, which come first, of as many positions, and of as many rows.
                let draws = keystream.as_chunks::<16>().0;
                let rows = &rows.as_chunks::<8>().0[i];
                // SAFETY: sixteen bytes, or eight words of 16 bits; no alignment is needed.
                let [chances, positions, rows] = unsafe {
                    [
                        v128_load(draws[i].as_ptr().cast()),
                        v128_load(draws[LANES / 8 + i].as_ptr().cast()),
                        v128_load(rows.as_ptr().cast()),
                    ]
                };
                let inside = v128_xor(u16x8_lt(chances, top), certain);
                // Lemire: the position is the upper half of the product, unless the lower one is to be rejected.
                let bound = v128_bitselect(width, others, inside);
                let reject = v128_bitselect(reject_inside, reject_outside, inside);
                let product = u16x8_mul(positions, bound);
                let (low, high) =
                    (u32x4_extmul_low_u16x8(positions, bound), u32x4_extmul_high_u16x8(positions, bound));
                let position = u16x8_shuffle::<1, 3, 5, 7, 9, 11, 13, 15>(low, high);
                *open = v128_or(u16x8_eq(chances, top), u16x8_lt(product, reject));
                // The window is moved inside at the edges; the cells outside are counted past it.
                let start = u16x8_min(u16x8_sub_sat(rows, half), others);
                let past = v128_and(u16x8_ge(position, start), width);
                let report = u16x8_add(position, v128_bitselect(start, past, inside));
                // SAFETY: eight words of 16 bits.
                unsafe { v128_store(reports.as_chunks_mut::<8>().0[i].as_mut_ptr().cast(), report) };
            }
            if v128_any_true(v128_or(v128_or(open[0], open[1]), v128_or(open[2], open[3]))) {
                self.settle(marked(open), rows, keystream, reports, refine);
            }
        }
    }
}
