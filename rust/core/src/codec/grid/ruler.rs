//! Grids in single or double precision.

/// Values that are placed together.
pub(super) const TOGETHER: usize = 64;

/// A grid in one precision.
#[doc(hidden)]
pub struct Ruler<F> {
    pub(super) low: F,
    /// Points a unit of length.
    pub(super) scale: F,
    /// The last index.
    pub(super) last: F,
}

macro_rules! ruler {
    ($float:ident, $cell:ident) => {
        impl Ruler<$float> {
            /// The cell that a number lies in, and how far in it, from 0 to 1.
            #[inline(always)]
            pub(super) fn split(&self, x: $float) -> ($cell, $float) {
                let scaled = (x - self.low) * self.scale;
                // In this order NaN becomes `last`.
                let bounded = if scaled < self.last { scaled } else { self.last };
                let bounded = if bounded > 0.0 { bounded } else { 0.0 };
                // SAFETY: 0 <= bounded <= last < 2^32. Single precision is only used where last < 2^16.
                let cell: $cell = unsafe { bounded.to_int_unchecked() };
                // Exact: a float minus its integer part. So are its products with powers of two.
                (cell, bounded - cell as $float)
            }
        }
    };
}
ruler!(f32, i32);
ruler!(f64, u32);
