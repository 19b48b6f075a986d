//! Places numbers one by one, each by a draw of its own.

use super::ruler::Ruler;
use super::{Coordinate, Grid, GridRounding};
use crate::codec::fixed_point::Flushed;

/// A grid in double precision.
pub(crate) struct Placer {
    ruler: Ruler<f64>,
    nearest: bool,
}

impl Grid {
    /// The grid, ready to place numbers one by one.
    pub(crate) fn placer(&self) -> Placer {
        Placer { ruler: self.ruler(), nearest: self.rounding == GridRounding::Nearest }
    }

    /// The number, with -0.0 and subnormals as 0.0: they are one value.
    #[inline(always)]
    pub(crate) fn settled(x: f64) -> f64 {
        x.flushed() + 0.0
    }
}

impl Placer {
    /// The index of a point beside the number. The fraction is an integer over 2^32, so a draw of 32 bits decides with just
    /// the chances of the draws of 8 bits and more that are taken without a key.
    #[inline(always)]
    pub(crate) fn place(&self, x: f64, draw: u32) -> u32 {
        let (cell, fraction) = x.place(&self.ruler);
        cell + if self.nearest { fraction >> 31 } else { u32::from(draw < fraction) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fraction_of_the_draws_below_it_goes_up() {
        let grid = |rounding| Grid::new(5, 0.0, 4.0, rounding, true).unwrap().placer();
        let dither = grid(GridRounding::Dither);
        let quarter = 1u32 << 30;
        assert_eq!([0, quarter - 1, quarter, u32::MAX].map(|draw| dither.place(1.25, draw)), [2, 2, 1, 1]);
        assert_eq!([0, u32::MAX].map(|draw| dither.place(3.0, draw)), [3, 3]);
        assert_eq!([-7.0, 7.0, f64::INFINITY].map(|x| dither.place(x, 0)), [0, 4, 4]);
        let nearest = grid(GridRounding::Nearest);
        assert_eq!([1.25, 1.5, 1.75].map(|x| nearest.place(x, 0)), [1, 2, 2]);
    }

    #[test]
    fn zeros_and_subnormals_are_one_value() {
        for x in [0.0, -0.0, 5e-324, -1e-310] {
            assert_eq!(Grid::settled(x).to_bits(), 0);
        }
        for x in [1.0, -f64::MIN_POSITIVE, f64::from(1e-40f32)] {
            assert_eq!(Grid::settled(x), x);
        }
    }
}
