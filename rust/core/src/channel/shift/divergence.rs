//! Exact ε of a shift, and its exact δ at any ε.

use std::collections::VecDeque;

use crate::error::{Result, argument, reason};
use crate::probability::log_ratio;

/// Certainty, in the units of weights.
const UNIT: u128 = 1 << 64;

/// Bits that a term of δ has below a weight's last one.
const FINER: u32 = 32;

/// Noise that is added to an input, the sum clamped to the reports.
pub(super) struct Noise<'a> {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
    /// The number that is added to an input and the position of the noise among the weights.
    pub(super) base: i64,
    /// The integers over 2^64 of the noise; they sum to 2^64.
    pub(super) weights: &'a [u128],
}

impl Noise<'_> {
    /// Sums of the first `0, 1, …` weights.
    fn sums(&self) -> Vec<u128> {
        let mut sums = Vec::with_capacity(self.weights.len() + 1);
        sums.push(0);
        sums.extend(self.weights.iter().scan(0, |sum, &weight| {
            *sum += weight;
            Some(*sum)
        }));
        sums
    }

    /// The chance of the first report, and that of the last one, for input `x`.
    fn ends(&self, sums: &[u128], x: usize) -> (u128, u128) {
        let below = |count: i64| sums[count.clamp(0, self.weights.len() as i64) as usize];
        let start = -(x as i64 + self.base);
        (below(start + 1), UNIT - below(start + self.outputs as i64 - 1))
    }

    /// The largest log-ratio within a column, in time proportional to reports and weights.
    ///
    /// Report `y` between the ends has the weights at `y - base - x`: a window that slides with `y`, as wide as there are
    /// inputs; its extremes are kept in queues. The ends have the most for one of the extreme inputs, the least for the
    /// other.
    pub(super) fn exact_epsilon(&self) -> f64 {
        if self.outputs == 1 || self.inputs == 1 {
            return 0.0;
        }
        let sums = self.sums();
        let (left, right) = (self.ends(&sums, 0), self.ends(&sums, self.inputs - 1));
        let mut worst = log_ratio(left.0, right.0).max(log_ratio(right.1, left.1));
        let weight = |j: i64| usize::try_from(j).ok().and_then(|j| self.weights.get(j)).copied().unwrap_or(0);
        let (mut most, mut least) = (VecDeque::new(), VecDeque::new());
        let from = 1 - self.base - (self.inputs as i64 - 1);
        let to = self.outputs as i64 - 2 - self.base;
        for j in from..=to {
            let new = weight(j);
            while most.back().is_some_and(|&(_, weight)| weight <= new) {
                most.pop_back();
            }
            while least.back().is_some_and(|&(_, weight)| weight >= new) {
                least.pop_back();
            }
            most.push_back((j, new));
            least.push_back((j, new));
            let first = j - (self.inputs as i64 - 1);
            if first < from {
                continue;
            }
            // At most one of either leaves with a step.
            if most[0].0 < first {
                most.pop_front();
            }
            if least[0].0 < first {
                least.pop_front();
            }
            worst = worst.max(log_ratio(most[0].1, least[0].1));
        }
        worst
    }

    /// The exact δ at `epsilon`, rounded up: the largest Σ max(0, P(z|x) - e^ε P(z|x')) over all pairs of inputs, summed
    /// over all reports z.
    pub(super) fn delta(&self, epsilon: f64) -> Result<f64> {
        if !(0.0..=f64::INFINITY).contains(&epsilon) {
            return Err(argument("epsilon", reason!("{epsilon} is not allowed; zero or more is")));
        }
        if self.outputs == 1 {
            return Ok(0.0);
        }
        let factor = Factor::below_exp(epsilon);
        let sums = self.sums();
        let ends: Vec<(u128, u128)> = (0..self.inputs).map(|x| self.ends(&sums, x)).collect();
        let count = self.weights.len();
        let mut excess = vec![0; count + 1];
        let mut worst = 0;
        for distance in 1..self.inputs {
            for sign in [1, -1] {
                // Input x has the weights at j, input x + sign * distance those at j - sign * distance.
                let shifted = |j: usize| {
                    j.checked_add_signed(-sign * distance as isize).and_then(|j| self.weights.get(j))
                };
                let mut sum = 0;
                for (j, &weight) in self.weights.iter().enumerate() {
                    sum += factor.excess(weight, shifted(j).copied().unwrap_or(0));
                    excess[j + 1] = sum;
                }
                for x in 0..self.inputs - distance {
                    let (x, other) = if sign == 1 { (x, x + distance) } else { (x + distance, x) };
                    let start = -(x as i64 + self.base);
                    let below = |positions: i64| excess[positions.clamp(0, count as i64) as usize];
                    let inner = below(start + self.outputs as i64 - 1) - below(start + 1);
                    let first = factor.excess(ends[x].0, ends[other].0);
                    let last = factor.excess(ends[x].1, ends[other].1);
                    worst = worst.max(inner + first + last);
                }
            }
        }
        Ok(fraction_up(worst).min(1.0))
    }
}

/// A lower bound of e^ε: `mantissa * 2^exponent`.
struct Factor {
    mantissa: u128,
    exponent: i32,
}

impl Factor {
    fn below_exp(epsilon: f64) -> Factor {
        // `libm`'s exponential is within one unit in the last place, far less than 2^-50; e^0 is 1.
        let value = if epsilon == 0.0 { 1.0 } else { libm::exp(epsilon) * (1.0 - f64::EPSILON * 4.0) };
        if value.is_infinite() {
            return Factor { mantissa: 1, exponent: i32::MAX };
        }
        // At least 1 (or its neighbour below), so never subnormal.
        let bits = value.to_bits();
        Factor {
            mantissa: u128::from(bits & ((1 << 52) - 1) | 1 << 52),
            exponent: (bits >> 52) as i32 - 1023 - 52,
        }
    }

    /// `max(0, a - e^ε b)` in units of `2^-96`, rounded up: weights have units of `2^-64` and are at most `2^64`.
    fn excess(&self, a: u128, b: u128) -> u128 {
        let a = a << FINER;
        if b == 0 {
            return a;
        }
        // At most 53 and 65 bits.
        let product = self.mantissa * b;
        let shift = self.exponent.saturating_add(FINER as i32);
        let scaled = if shift < 0 {
            product >> shift.unsigned_abs().min(127)
        } else if shift.unsigned_abs() < product.leading_zeros() {
            product << shift
        } else {
            u128::MAX
        };
        a.saturating_sub(scaled)
    }
}

/// `units` of `2^-96` as a float, rounded up.
fn fraction_up(units: u128) -> f64 {
    let nearest = units as f64;
    let above = if (nearest as u128) < units { nearest.next_up() } else { nearest };
    above / (UNIT as f64 * (1u64 << FINER) as f64)
}
