//! Numbers that a grid takes, `f32` and `f64`, and the kernels that place them.

#[cfg(target_arch = "x86_64")]
use super::avx512;
use super::ruler::{Ruler, TOGETHER};
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use super::wasm;
use crate::codec::real::Real;
#[cfg(any(target_arch = "x86_64", target_feature = "simd128"))]
use crate::isa::dispatch;
use crate::isa::{Isa, mask_of};

/// The two floating-point types that a grid takes: `f32` and `f64`.
pub trait Coordinate: Real + PartialOrd + Into<f64> {
    /// True where this is single precision.
    #[doc(hidden)]
    const SINGLE: bool;
    /// The nearest number of this type.
    #[doc(hidden)]
    fn nearest(x: f64) -> Self;
    /// The bits of a positive number, or of the smallest normal one.
    #[doc(hidden)]
    fn magnitude_bits(x: f64) -> u64;
    /// The cell between two points that the number lies in, and how far in it, in units of 2^-32, rounded down.
    #[doc(hidden)]
    fn place(self, ruler: &Ruler<Self>) -> (u32, u32);
    /// The cell, and the first 8 bits of how far in it: all that most draws need.
    #[doc(hidden)]
    fn head(self, ruler: &Ruler<Self>) -> (u32, i32);

    /// Writes the point beside each value that the first 8 bits of dither choose, and says, a bit for each, which of them
    /// they leave open.
    #[doc(hidden)]
    #[inline(always)]
    fn heads(
        _isa: Isa,
        values: &[Self; TOGETHER],
        draws: &[u8; TOGETHER],
        ruler: &Ruler<Self>,
        cells: &mut [u32; TOGETHER],
    ) -> u64 {
        any_heads(values, draws, ruler, cells)
    }
}

/// [`Coordinate::heads`] for any instruction set: a loop without branches.
#[inline(always)]
fn any_heads<F: Coordinate>(
    values: &[F; TOGETHER],
    draws: &[u8; TOGETHER],
    ruler: &Ruler<F>,
    cells: &mut [u32; TOGETHER],
) -> u64 {
    let mut open = [0; TOGETHER];
    for i in 0..TOGETHER {
        let (cell, head) = values[i].head(ruler);
        let draw = i32::from(draws[i]);
        cells[i] = cell + u32::from(draw < head);
        open[i] = u8::from(draw == head);
    }
    mask_of(&open)
}

macro_rules! coordinate {
    ($float:ident, $single:literal, { $($own:item)* }) => {
        impl Coordinate for $float {
            $($own)*

            const SINGLE: bool = $single;

            #[inline(always)]
            fn nearest(x: f64) -> $float {
                x as $float
            }

            fn magnitude_bits(x: f64) -> u64 {
                u64::from((x as $float).max($float::MIN_POSITIVE).to_bits())
            }

            #[inline(always)]
            fn place(self, ruler: &Ruler<$float>) -> (u32, u32) {
                let (cell, past) = ruler.split(self);
                // SAFETY: 0 <= past < 1.
                (cell as u32, unsafe { (past * (1u64 << 32) as $float).to_int_unchecked() })
            }

            #[inline(always)]
            fn head(self, ruler: &Ruler<$float>) -> (u32, i32) {
                let (cell, past) = ruler.split(self);
                // SAFETY: 0 <= past < 1.
                (cell as u32, unsafe { (past * 256.0).to_int_unchecked() })
            }
        }
    };
}
coordinate!(f32, true, {
    #[cfg(any(target_arch = "x86_64", target_feature = "simd128"))]
    #[inline(always)]
    fn heads(
        isa: Isa,
        values: &[f32; TOGETHER],
        draws: &[u8; TOGETHER],
        ruler: &Ruler<f32>,
        cells: &mut [u32; TOGETHER],
    ) -> u64 {
        dispatch!(isa, (values, draws, ruler, cells), avx512 => avx512::heads,
            simd128 => wasm::heads, _ => any_heads(values, draws, ruler, cells))
    }
});
coordinate!(f64, false, {});
