//! Grids in single or double precision.

/// Values that are placed together.
pub(super) const TOGETHER: usize = 64;

/// A grid in one precision.
#[doc(hidden)]
pub struct Ruler<F> {
    /// The bits of a magnitude that no fraction shows: smaller numbers are taken as 0.
    pub(super) tiny: u64,
    pub(super) low: F,
    /// Points a unit of length.
    pub(super) scale: F,
    /// The last index.
    pub(super) last: F,
}

macro_rules! ruler {
    ($float:ident, $bits:ident, $cell:ident) => {
        impl Ruler<$float> {
            /// The cell that a number lies in, and how far in it, from 0 to 1.
            #[inline(always)]
            pub(super) fn split(&self, x: $float) -> ($cell, $float) {
                // By integers: arithmetic with subnormals can take longer, and would tell them from 0.
                let bits = x.to_bits();
                let seen = <$bits>::from(bits & (<$bits>::MAX >> 1) >= self.tiny as $bits).wrapping_neg();
                let x = $float::from_bits(bits & seen);
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
ruler!(f32, u32, i32);
ruler!(f64, u64, u32);
