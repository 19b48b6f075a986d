//! Places numbers on a grid with WebAssembly's SIMD, 64 at a time.

use std::arch::wasm32::*;

use super::ruler::{Ruler, TOGETHER};

/// Above any index of single precision: the integer of a number that is added to it stands in the low bits of the sum.
const INTEGERS: f32 = (1 << 23) as f32;

/// [`Coordinate::heads`](super::coordinate::Coordinate::heads) of single precision, to the bit.
pub(super) fn heads(
    values: &[f32; TOGETHER],
    draws: &[u8; TOGETHER],
    ruler: &Ruler<f32>,
    cells: &mut [u32; TOGETHER],
) -> u64 {
    let (low, scale) = (f32x4_splat(ruler.low), f32x4_splat(ruler.scale));
    let (last, zero) = (f32x4_splat(ruler.last), f32x4_splat(0.0));
    let (tiny, sign) = (i32x4_splat(ruler.tiny as i32), u32x4_splat(1 << 31));
    let integer = |whole| v128_and(f32x4_add(whole, f32x4_splat(INTEGERS)), u32x4_splat((1 << 23) - 1));
    let mut open = 0;
    let sixteens = values.as_chunks::<16>().0.iter().zip(cells.as_chunks_mut::<16>().0);
    for (i, ((values, cells), draws)) in sixteens.zip(draws.as_chunks::<16>().0).enumerate() {
        // SAFETY: sixteen bytes; no alignment is needed.
        let draws = unsafe { v128_load(draws.as_ptr().cast()) };
        let [first, second] = [u16x8_extend_low_u8x16(draws), u16x8_extend_high_u8x16(draws)];
        let draws = [
            u32x4_extend_low_u16x8(first),
            u32x4_extend_high_u16x8(first),
            u32x4_extend_low_u16x8(second),
            u32x4_extend_high_u16x8(second),
        ];
        let mut equal = [zero; 4];
        for (v, (draw, equal)) in draws.into_iter().zip(&mut equal).enumerate() {
            // SAFETY: four numbers of sixteen.
            let value = unsafe { v128_load(values.as_ptr().add(4 * v).cast()) };
            // As in the scalar version: what no fraction shows is 0 before any arithmetic.
            let value = v128_and(value, i32x4_ge(v128_andnot(value, sign), tiny));
            let scaled = f32x4_mul(f32x4_sub(value, low), scale);
            // NaN becomes `last`.
            let bounded = f32x4_pmax(zero, f32x4_pmin(last, scaled));
            let whole = f32x4_floor(bounded);
            let head = integer(f32x4_floor(f32x4_mul(f32x4_sub(bounded, whole), f32x4_splat(256.0))));
            *equal = i32x4_eq(draw, head);
            // What is true is -1.
            let cell = i32x4_sub(integer(whole), i32x4_lt(draw, head));
            // SAFETY: four cells of sixteen.
            unsafe { v128_store(cells.as_mut_ptr().add(4 * v).cast(), cell) };
        }
        let [a, b] = [[0, 1], [2, 3]].map(|[a, b]: [usize; 2]| i16x8_narrow_i32x4(equal[a], equal[b]));
        open |= u64::from(u8x16_bitmask(i8x16_narrow_i16x8(a, b))) << (16 * i);
    }
    open
}
