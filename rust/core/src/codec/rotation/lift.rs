//! Vectors of a ball as directions: one more coordinate holds what the length leaves.

use std::ops::Range;

use crate::codec::sealed::Sealed;
use crate::isa::{Isa, compiled};
use crate::vector::{Kernel, Vector};

/// Squares that are summed side by side, in an order that is the same on every instruction set.
const LANES: usize = 8;

/// Coordinates below this share of the ball, or of the largest coordinate, count as 0: no product, square or single of the
/// others leaves the normal numbers, so that how long arithmetic takes does not depend on them.
const LEAST: f64 = 1.0 / (1u128 << 100) as f64;

/// A coordinate of a vector: float32 or float64.
pub trait Part: Copy + Send + Sync + Sealed + 'static {
    /// The same number.
    fn wide(self) -> f64;
}

impl Part for f32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self.into()
    }
}

impl Part for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
}

/// The bits of a size, which are ordered as the sizes are; infinity comes last, and NaN after it.
#[inline(always)]
fn size(x: f64) -> u64 {
    x.to_bits() & (u64::MAX >> 1)
}

/// The kernel that finds the largest size.
struct Largest<'a, F>(&'a [F]);

impl<F: Part> Kernel for Largest<'_, F> {
    type Answer = u64;

    #[inline(always)]
    fn run<V: Vector>(self, _: V) -> u64 {
        self.0.iter().fold(0, |most, x| most.max(size(x.wide())))
    }
}

/// A coordinate times `scale`, 0 where its size is below that of the bits `least`.
#[inline(always)]
fn scaled<F: Part>(x: F, scale: f64, least: u64) -> f64 {
    let x = x.wide();
    let kept = if size(x) >= least { x.to_bits() } else { 0 };
    f64::from_bits(kept) * scale
}

/// The kernel that scales coordinates and sums their squares.
struct Scaled<'a, F> {
    x: &'a [F],
    scale: f64,
    least: u64,
    out: &'a mut [f32],
}

impl<F: Part> Kernel for Scaled<'_, F> {
    type Answer = f64;

    #[inline(always)]
    fn run<V: Vector>(self, _: V) -> f64 {
        let Scaled { x, scale, least, out } = self;
        let mut sums = [0.0; LANES];
        let (runs, rest) = x.as_chunks::<LANES>();
        let (outs, last) = out[..x.len()].as_chunks_mut::<LANES>();
        for (run, out) in runs.iter().zip(outs) {
            for ((x, out), sum) in run.iter().zip(out).zip(&mut sums) {
                let x = scaled(*x, scale, least);
                *out = x as f32;
                *sum += x * x;
            }
        }
        for ((x, out), sum) in rest.iter().zip(last).zip(&mut sums) {
            let x = scaled(*x, scale, least);
            *out = x as f32;
            *sum += x * x;
        }
        let [a, b, c, d, e, f, g, h] = sums;
        ((a + b) + (c + d)) + ((e + f) + (g + h))
    }
}

/// The kernel that sums the squares of scaled coordinates.
struct Squares<'a, F> {
    x: &'a [F],
    scale: f64,
    least: u64,
}

impl<F: Part> Kernel for Squares<'_, F> {
    type Answer = f64;

    #[inline(always)]
    fn run<V: Vector>(self, _: V) -> f64 {
        let Squares { x, scale, least } = self;
        let mut sums = [0.0; LANES];
        let (runs, rest) = x.as_chunks::<LANES>();
        for run in runs.iter().map(|run| &run[..]).chain([rest]) {
            for (x, sum) in run.iter().zip(&mut sums) {
                let x = scaled(*x, scale, least);
                *sum += x * x;
            }
        }
        sums.iter().sum()
    }
}

/// Writes the direction that a block of a vector of the ball of a radius is lifted to, as [`lift`] does that of a whole one.
///
/// A vector outside the ball is scaled to it as a whole, and its block with it.
///
/// # Errors
/// As of [`lift`]: all of the vector is looked at.
pub(super) fn lift_block<F: Part>(
    isa: Isa,
    x: &[F],
    block: Range<usize>,
    radius: f64,
    out: &mut [f32],
) -> Result<(), usize> {
    let largest = compiled(isa, Largest(x));
    if largest >= f64::INFINITY.to_bits() {
        return Err(x.iter().position(|x| !x.wide().is_finite()).unwrap_or(0));
    }
    let most = f64::from_bits(largest.max(radius.to_bits()));
    let (scale, least) = (1.0 / most, (most * LEAST).to_bits());
    let whole = compiled(isa, Squares { x, scale, least });
    let (x, inside) = (&x[block], largest <= radius.to_bits());
    let square = compiled(isa, Scaled { x, scale, least, out });
    // The square of the length that the vector, with its lift, has: that of the ball, or what is outside of it.
    let length = if inside { whole.max(1.0) } else { whole };
    // A vector whose largest number is outside the ball may still be zero in this block: then all of it is lift.
    let (height, rest) = out[x.len()..].split_first_mut().expect("a dimension more than numbers");
    *height = (length - square).max(0.0).sqrt() as f32;
    rest.fill(0.0);
    Ok(())
}

/// Writes the direction that a vector of the ball of a radius is lifted to, up to a factor: the vector itself, then what is
/// missing to the radius, then zeros. One outside the ball is its own direction, which is that of the end of the ball.
///
/// # Errors
/// The position of the first number that is not finite; what was written is of no use then.
pub(super) fn lift<F: Part>(isa: Isa, x: &[F], radius: f64, out: &mut [f32]) -> Result<(), usize> {
    let largest = compiled(isa, Largest(x));
    if largest >= f64::INFINITY.to_bits() {
        return Err(x.iter().position(|x| !x.wide().is_finite()).unwrap_or(0));
    }
    // Both are positive, so the larger one has the larger bits.
    let most = f64::from_bits(largest.max(radius.to_bits()));
    let square = compiled(isa, Scaled { x, scale: 1.0 / most, least: (most * LEAST).to_bits(), out });
    let (height, rest) = out[x.len()..].split_first_mut().expect("a dimension more than numbers");
    let missing = if largest > radius.to_bits() { 0.0 } else { (1.0 - square).max(0.0).sqrt() };
    *height = missing as f32;
    rest.fill(0.0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifted<F: Part>(x: &[F], radius: f64) -> Vec<f32> {
        let mut expected = vec![9.0; x.len() + 3];
        lift(Isa::Scalar, x, radius, &mut expected).unwrap();
        for &isa in Isa::available() {
            let mut result = vec![9.0; x.len() + 3];
            lift(isa, x, radius, &mut result).unwrap();
            assert_eq!(result, expected, "{isa}");
        }
        expected
    }

    #[test]
    fn every_vector_of_the_ball_becomes_as_long_as_the_radius() {
        for count in [1usize, 7, 8, 23, 100] {
            for share in [0.0, 1e-40, 1e-3, 0.6, 1.0] {
                let x: Vec<f64> = (0..count).map(|i| ((i * 37 % 11) as f64 - 5.0) + 0.25).collect();
                let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt();
                let x: Vec<f64> = x.iter().map(|x| x / norm * share * 3.0).collect();
                let result = lifted(&x, 3.0);
                let length: f64 = result.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
                assert!((length - 1.0).abs() < 1e-6, "{length}");
                for (result, x) in result.iter().zip(&x) {
                    assert!((f64::from(*result) - x / 3.0).abs() < 1e-7);
                }
                assert_eq!(result[count + 1..], [0.0, 0.0]);
            }
        }
    }

    #[test]
    fn a_block_is_lifted_to_the_length_of_the_whole() {
        let lift_block = |x: &[f64], block: Range<usize>, radius: f64| {
            let mut expected = vec![9.0; block.len() + 2];
            super::lift_block(Isa::Scalar, x, block.clone(), radius, &mut expected).unwrap();
            for &isa in Isa::available() {
                let mut result = vec![9.0; block.len() + 2];
                super::lift_block(isa, x, block.clone(), radius, &mut result).unwrap();
                assert_eq!(result, expected, "{isa}");
            }
            expected
        };
        // Inside the ball of radius 2, on it, and outside of it by the norm alone, and by a number.
        assert_eq!(lift_block(&[0.0, 1.2, 0.0, 0.0], 1..3, 2.0), [0.6, 0.0, 0.8, 0.0]);
        assert_eq!(lift_block(&[1.6, 1.2, 0.0, 0.0], 1..3, 2.0), [0.6, 0.0, 0.8, 0.0]);
        assert_eq!(lift_block(&[0.75, 0.75, 0.0, 1.0], 0..2, 1.0), [0.75, 0.75, 1.0, 0.0]);
        assert_eq!(lift_block(&[4.0, 3.0, 0.0, 0.0], 1..3, 1.0), [0.75, 0.0, 1.0, 0.0]);
        assert_eq!(lift_block(&[4.0, 3.0, 0.0, 0.0], 2..4, 1.0), [0.0, 0.0, 1.25, 0.0]);
        for bad in [f64::NAN, f64::INFINITY] {
            let x = [0.0, 0.0, 0.0, bad];
            assert_eq!(super::lift_block(Isa::Scalar, &x, 0..2, 1.0, &mut [0.0; 4]), Err(3));
        }
    }

    #[test]
    fn outside_the_ball_nothing_is_missing_and_no_number_is_too_large() {
        assert_eq!(lifted(&[3.0f64, -4.0], 1.0), [0.75, -1.0, 0.0, 0.0, 0.0]);
        assert_eq!(lifted(&[0.8f64, 0.8], 1.0), [0.8, 0.8, 0.0, 0.0, 0.0]);
        assert_eq!(lifted(&[f64::MAX, -f64::MAX], 1e-100), [1.0, -1.0, 0.0, 0.0, 0.0]);
        assert_eq!(lifted(&[f32::MAX, f32::MIN_POSITIVE], 1e100), [0.0, 0.0, 1.0, 0.0, 0.0]);
        assert_eq!(lifted(&[5e-324f64, 0.0], 1e-100), [0.0, 0.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn what_is_not_finite_is_refused_by_its_place() {
        for bad in [f64::NAN, f64::INFINITY, -f64::INFINITY] {
            for &isa in Isa::available() {
                let x = [1.0, 0.0, bad, bad];
                assert_eq!(lift(isa, &x, 1.0, &mut [0.0; 8]), Err(2));
            }
        }
    }
}
