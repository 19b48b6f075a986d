//! Reads a whole table for each of many positions with NEON: 64 cells are four tables of 64 bytes, one for each byte of a cell.

use std::arch::aarch64::*;

/// Places that are looked up together: as many as the caller's.
const PLACES: usize = 64;

/// Cells that are read together.
const CELLS: usize = 64;

/// Places that a register of bytes serves.
const SIDE_BY_SIDE: usize = 16;

/// The bytes of the cells of 16 positions, byte by byte.
type Found = uint8x16x4_t;

/// `out[i] = table[index[i]]`; the table is a multiple of 32 cells, at most 2^16.
#[target_feature(enable = "neon")]
pub(super) fn whole(table: &[u32], _used: usize, index: &[u32; PLACES], out: &mut [u32; PLACES]) {
    let nothing = vdupq_n_u8(0);
    let mut result = [uint8x16x4_t(nothing, nothing, nothing, nothing); PLACES / SIDE_BY_SIDE];
    let mut positions = [(vdupq_n_u16(0), vdupq_n_u16(0)); PLACES / SIDE_BY_SIDE];
    for (positions, index) in positions.iter_mut().zip(index.as_chunks::<SIDE_BY_SIDE>().0) {
        // SAFETY: 16 numbers of 32 bits.
        let index = unsafe { vld1q_u32_x4(index.as_ptr()) };
        *positions = (
            vcombine_u16(vmovn_u32(index.0), vmovn_u32(index.1)),
            vcombine_u16(vmovn_u32(index.2), vmovn_u32(index.3)),
        );
    }
    let (whole, half) = table.as_chunks::<CELLS>();
    for (cells, start) in whole.iter().zip((0u16..).step_by(CELLS)) {
        // SAFETY: 64 cells are four times 16.
        let sixteens = [0, 16, 32, 48].map(|at| unsafe { vld4q_u8(cells.as_ptr().add(at).cast()) });
        look_in(sixteens, start, &positions, &mut result);
    }
    if let Some(cells) = half.first_chunk::<{ CELLS / 2 }>() {
        // Places behind the table are not asked for.
        // SAFETY: 32 cells are twice 16.
        let [low, high] = [0, 16].map(|at| unsafe { vld4q_u8(cells.as_ptr().add(at).cast()) });
        look_in([low, high, low, high], whole.as_flattened().len() as u16, &positions, &mut result);
    }
    for (result, out) in result.iter().zip(out.as_chunks_mut::<SIDE_BY_SIDE>().0) {
        // SAFETY: 16 numbers of 32 bits.
        unsafe { vst4q_u8(out.as_mut_ptr().cast(), *result) };
    }
}

/// Takes for each position that is one of 64 cells from `start` on the bytes of that cell.
#[inline]
#[target_feature(enable = "neon")]
fn look_in(
    cells: [uint8x16x4_t; 4],
    start: u16,
    positions: &[(uint16x8_t, uint16x8_t); PLACES / SIDE_BY_SIDE],
    result: &mut [Found; PLACES / SIDE_BY_SIDE],
) {
    let [a, b, c, d] = cells;
    let start = vdupq_n_u16(start);
    for (result, positions) in result.iter_mut().zip(positions) {
        // A position before the first cell wraps around; whatever is no byte becomes the largest, and that is no position.
        let low = vqmovn_u16(vsubq_u16(positions.0, start));
        let position = vqmovn_high_u16(low, vsubq_u16(positions.1, start));
        result.0 = vqtbx4q_u8(result.0, uint8x16x4_t(a.0, b.0, c.0, d.0), position);
        result.1 = vqtbx4q_u8(result.1, uint8x16x4_t(a.1, b.1, c.1, d.1), position);
        result.2 = vqtbx4q_u8(result.2, uint8x16x4_t(a.2, b.2, c.2, d.2), position);
        result.3 = vqtbx4q_u8(result.3, uint8x16x4_t(a.3, b.3, c.3, d.3), position);
    }
}
