//! Grids: a real number as the index of one of equidistant points.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod coordinate;
mod placer;
mod ruler;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;

pub use coordinate::Coordinate;

use ruler::{Ruler, TOGETHER};

use crate::codec::Code;
use crate::error::{Result, argument, element, reason, zeros};
use crate::isa::{BATCHES, Isa, ones};
use crate::random::Refine;

/// The choice between the two points around a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GridRounding {
    /// A random one: between the points `a < b`, `x` becomes `b` with probability `(x - a) / (b - a)`, so that the
    /// expected point is `x`. The dither is not subtracted again. It only mixes the rows of the channel behind it, so no
    /// privacy rests on it.
    Dither,
    /// The nearer one, the upper of two that are equally near.
    Nearest,
}

/// `points` equidistant points of `[low, high]`, both ends among them.
///
/// Placing a number takes one subtraction and one multiplication in the number's own precision; the fraction, an integer
/// over 2^32, is compared with 8 random bits and, where its own are the same, with more. That happens to any number in one
/// of 256 draws, so it tells nothing about the number. Where single precision would blur the grid (more than 65,536
/// points, or ends that it cannot tell within 2^-16 of a step), float32 input is placed in double precision. Nothing is
/// fused, so every instruction set gives the same index.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Grid {
    points: u32,
    low: f64,
    high: f64,
    rounding: GridRounding,
    clip: bool,
    single: bool,
}

impl Grid {
    /// A grid of `points` (2 to 2^32 - 1) points.
    ///
    /// With `clip`, numbers outside `[low, high]` (infinities too) become the
    /// nearer end; without, they are refused. NaN is always refused.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) for too few points, ends that are not finite or not in order, or an interval whose length is
    /// no finite number.
    pub fn new(points: u32, low: f64, high: f64, rounding: GridRounding, clip: bool) -> Result<Grid> {
        // Minus zero is zero: equal grids have the same ends, bit by bit.
        let (low, high) = (low + 0.0, high + 0.0);
        if points < 2 {
            return Err(argument("points", reason!("{points} are not allowed; 2 to 2^32 - 1 are")));
        }
        if !low.is_finite() {
            return Err(argument("low", reason!("must be finite, not {low}")));
        }
        if !high.is_finite() {
            return Err(argument("high", reason!("must be finite, not {high}")));
        }
        let step = (high - low) / f64::from(points - 1);
        if !(step > 0.0 && step.is_finite() && (1.0 / step).is_finite()) {
            let reason = reason!(
                "must be above low={low}, by a length and a step that are normal numbers, not {high}"
            );
            return Err(argument("high", reason));
        }
        let blurred = |end: f64| (f64::from(end as f32) - end).abs();
        let single = points <= 1 << 16
            && (1.0 / step as f32).is_finite()
            && blurred(low).max(blurred(high)) <= step / f64::from(1 << 16);
        Ok(Grid { points, low, high, rounding, clip, single })
    }

    /// How many points there are.
    pub fn points(&self) -> u32 {
        self.points
    }

    /// The first point.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The last point.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// The choice between the two points around a number.
    pub fn rounding(&self) -> GridRounding {
        self.rounding
    }

    /// True where numbers outside become the nearer end.
    pub fn clip(&self) -> bool {
        self.clip
    }

    /// The points, ascending.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::Error::Memory).
    pub fn values(&self) -> Result<Vec<f64>> {
        let last = self.points - 1;
        let point = |i: u32| {
            let share = f64::from(i) / f64::from(last);
            // Exact at both ends, whatever their ratio.
            self.low * (1.0 - share) + self.high * share
        };
        let mut points = zeros(self.points as usize)?;
        points.iter_mut().zip(0..).for_each(|(at, i)| *at = point(i));
        Ok(points)
    }

    /// How many of `values` lie outside `[low, high]`, which `clip` would move. NaN is not counted: it is refused.
    pub fn outside<F: Coordinate>(&self, values: &[F]) -> usize {
        let (low, high) = (F::nearest(self.low), F::nearest(self.high));
        values.iter().filter(|x| **x < low || **x > high).count()
    }

    /// Refuses NaN and, without `clip`, numbers outside.
    ///
    /// # Errors
    /// [`Error::Value`](crate::Error::Value) with the flat index of the first of them, never its value.
    pub fn check<F: Coordinate>(&self, values: &[F]) -> Result<()> {
        match self.first_refused(values) {
            None => Ok(()),
            Some(index) => Err(element("x", index, self.allowed())),
        }
    }

    /// The numbers that [`check`](Self::check) lets pass, as a sentence.
    pub(crate) fn allowed(&self) -> &'static str {
        if self.clip {
            "NaN has no place on a grid"
        } else {
            "a number must lie between low and high, and not be NaN"
        }
    }

    /// The position of the first number that is refused.
    #[inline(always)]
    pub(crate) fn first_refused<F: Coordinate>(&self, values: &[F]) -> Option<usize> {
        let (low, high) = if self.clip {
            (F::nearest(f64::NEG_INFINITY), F::nearest(f64::INFINITY))
        } else {
            (F::nearest(self.low), F::nearest(self.high))
        };
        // Written so that NaN fails. Counting, not stopping early, lets the loop be vectorised.
        let accepted = |x: &F| *x >= low && *x <= high;
        if values.iter().fold(true, |all, x| all & accepted(x)) {
            return None;
        }
        values.iter().position(|x| !accepted(x))
    }

    /// Writes the index of a point beside each value; where that is random, `dither` holds a byte for each. Sound for any
    /// value, also for one that was changed after it was checked: NaN becomes the last point.
    #[cfg_attr(feature = "batches", inline(always))]
    #[cfg_attr(not(feature = "batches"), inline(never))]
    pub(crate) fn place<F: Coordinate, W: Code>(
        &self,
        isa: Isa,
        values: &[F],
        dither: &[u8],
        indices: &mut [W],
        refine: &mut Refine,
    ) {
        if !BATCHES {
            self.place_pieces(isa, values, dither, indices, refine);
        } else if F::SINGLE && !self.single {
            self.place_as(isa, values, |x| x.flushed().into(), &self.ruler::<f64>(), dither, indices, refine);
        } else {
            self.place_as(isa, values, |x| x, &self.ruler::<F>(), dither, indices, refine);
        }
    }

    /// [`place`](Self::place) by way of pieces of one type, so that little is compiled for each.
    fn place_pieces<F: Coordinate, W: Code>(
        &self,
        isa: Isa,
        values: &[F],
        dither: &[u8],
        indices: &mut [W],
        refine: &mut Refine,
    ) {
        let (mut doubles, mut words) = ([0.0; PIECE], [0; PIECE]);
        for (start, (values, indices)) in
            (0..).step_by(PIECE).zip(values.chunks(PIECE).zip(indices.chunks_mut(PIECE)))
        {
            let dither = dither.get(start..start + values.len()).unwrap_or(&[]);
            let words = &mut words[..values.len()];
            if F::SINGLE && self.single {
                self.place_words(isa, values, dither, words, refine);
            } else {
                let doubles = &mut doubles[..values.len()];
                doubles.iter_mut().zip(values).for_each(|(double, x)| {
                    *double = if F::SINGLE { x.flushed().into() } else { (*x).into() };
                });
                self.place_words::<f64>(isa, doubles, dither, words, refine);
            }
            indices.iter_mut().zip(words).for_each(|(index, &mut word)| *index = W::narrow(word));
        }
    }

    /// Indices of 32 bits, in one precision.
    #[inline(never)]
    fn place_words<F: Coordinate>(
        &self,
        isa: Isa,
        values: &[F],
        dither: &[u8],
        words: &mut [u32],
        refine: &mut Refine,
    ) {
        self.place_as(isa, values, |x| x, &self.ruler::<F>(), dither, words, refine);
    }

    /// The grid in one precision.
    #[inline(always)]
    fn ruler<F: Coordinate>(&self) -> Ruler<F> {
        let last = f64::from(self.points - 1);
        Ruler {
            // 2^-34 of a step, where that is a normal number. What is left never makes a subnormal product.
            tiny: F::magnitude_bits((self.high - self.low) / last / (1u64 << 34) as f64),
            low: F::nearest(self.low),
            scale: F::nearest(last / (self.high - self.low)),
            last: F::nearest(last),
        }
    }

    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "what place takes, in one precision")]
    fn place_as<X: Coordinate, F: Coordinate, W: Code>(
        &self,
        isa: Isa,
        values: &[X],
        precise: impl Fn(X) -> F,
        ruler: &Ruler<F>,
        dither: &[u8],
        indices: &mut [W],
        refine: &mut Refine,
    ) {
        if self.rounding == GridRounding::Nearest {
            for (&x, index) in values.iter().zip(indices) {
                let (cell, fraction) = precise(x).place(ruler);
                *index = W::narrow(cell + (fraction >> 31));
            }
            return;
        }
        let whole = values.len() / TOGETHER * TOGETHER;
        let piece = |start: usize| start..whole.min(start + PIECE);
        for range in (0..whole).step_by(PIECE).map(piece) {
            let (values, draws, indices) =
                (&values[range.clone()], &dither[range.clone()], &mut indices[range]);
            let groups = values.as_chunks::<TOGETHER>().0.iter().zip(draws.as_chunks::<TOGETHER>().0);
            // Whether a group has an open draw is hard to predict: they wait until the piece is done.
            let (mut open, mut open_in) = ([0; PIECE / TOGETHER], 0u32);
            for (group, ((values, draws), indices)) in
                groups.zip(indices.as_chunks_mut::<TOGETHER>().0).enumerate()
            {
                let mut cells = [0; TOGETHER];
                open[group] = F::heads(isa, &values.map(&precise), draws, ruler, &mut cells);
                open_in |= u32::from(open[group] != 0) << group;
                for (index, cell) in indices.iter_mut().zip(cells) {
                    *index = W::narrow(cell);
                }
            }
            for i in ones(open_in).flat_map(|group| ones(open[group]).map(move |i| group * TOGETHER + i)) {
                indices[i] = W::narrow(dithered(precise(values[i]).place(ruler), draws[i], refine));
            }
        }
        let rest = &values[whole..];
        for ((&x, &draw), index) in rest.iter().zip(&dither[whole..]).zip(&mut indices[whole..]) {
            *index = W::narrow(dithered(precise(x).place(ruler), draw, refine));
        }
    }
}

/// Values after which the draws that were left open are settled.
const PIECE: usize = 8 * TOGETHER;

/// The index of a point for one value, whatever its draw: the oracle.
#[inline]
fn dithered((cell, fraction): (u32, u32), draw: u8, refine: &mut Refine) -> u32 {
    let (head, rest) = (fraction >> 24, u64::from(fraction) << 40);
    let up = if u32::from(draw) == head { refine.less(&[rest]) } else { u32::from(draw) < head };
    cell + u32::from(up)
}

#[cfg(test)]
mod tests;
