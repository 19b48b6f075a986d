//! Probabilities as integers over `2^64`, and bounds on their ratios.
//!
//! A mechanism's parameters arrive as floats and become integers once, rounded in a stated direction. The samplers
//! compare random integers with these integers, and the privacy loss is computed from the same integers, so every
//! epsilon is a statement about what is really drawn. Bounds are rounded up, never down.

use std::fmt;

use num_bigint::BigUint;

use crate::error::{Error, Result, reason};

/// The direction in which a float becomes a multiple of `2^-64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// The largest multiple that is not above it.
    Down,
    /// The smallest multiple that is not below it.
    Up,
}

/// A probability `T / 2^64` with an integer `T` from 0 to `2^64`, both included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probability(u128);

const UNIT: u128 = 1 << 64;

impl Probability {
    /// Probability 0.
    pub const ZERO: Probability = Probability(0);
    /// Probability 1/2.
    pub const HALF: Probability = Probability(UNIT / 2);
    /// Probability 1.
    pub const ONE: Probability = Probability(UNIT);

    /// The multiple of `2^-64` beside `value`; exact where `value` is one.
    ///
    /// # Errors
    /// [`Error::Argument`] if `value` is NaN, negative or above 1.
    pub fn from_f64(value: f64, rounding: Rounding) -> Result<Probability> {
        if !(0.0..=1.0).contains(&value) {
            return Err(Error::Argument {
                name: "probability",
                reason: reason!("must be a number from 0 to 1, not {value}"),
            });
        }
        // Scaling by a power of two is exact (the exponent only grows, so subnormals lose nothing either), and so is
        // the conversion of an integral float of at most 2^64.
        let scaled = value * UNIT as f64;
        Ok(Probability(match rounding {
            Rounding::Down => libm::floor(scaled) as u128,
            Rounding::Up => libm::ceil(scaled) as u128,
        }))
    }

    /// The multiple of `2^-64` beside `part / whole`.
    ///
    /// # Errors
    /// [`Error::Argument`] if `whole` is 0 or `part` is above it.
    pub fn from_ratio(part: u64, whole: u64, rounding: Rounding) -> Result<Probability> {
        if whole == 0 || part > whole {
            return Err(Error::Argument {
                name: "probability",
                reason: reason!("must be a ratio from 0 to 1, not {part} / {whole}"),
            });
        }
        let (part, whole) = (u128::from(part) << 64, u128::from(whole));
        Ok(Probability(match rounding {
            Rounding::Down => part / whole,
            Rounding::Up => part.div_ceil(whole),
        }))
    }

    /// The probability `numerator / 2^64`.
    ///
    /// # Errors
    /// [`Error::Argument`] if `numerator` is above `2^64`.
    pub fn from_numerator(numerator: u128) -> Result<Probability> {
        if numerator > UNIT {
            return Err(Error::Argument {
                name: "probability",
                reason: reason!("must be at most 2^64 over 2^64, not {numerator}"),
            });
        }
        Ok(Probability(numerator))
    }

    /// One minus the probability.
    #[must_use]
    pub const fn complement(self) -> Probability {
        Probability(UNIT - self.0)
    }

    /// `T`, from 0 to `2^64`.
    #[must_use]
    pub const fn numerator(self) -> u128 {
        self.0
    }

    /// The nearest float.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        // The conversion rounds to nearest; dividing by a power of two is exact.
        self.0 as f64 / UNIT as f64
    }
}

impl fmt::Debug for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Probability({} / 2^64)", self.0)
    }
}

/// `1 + 2^-49`: sixteen units of `u = 2^-53`, twice what the errors below add up to.
const OUTWARD: f64 = 1.0 + 1.0 / (1u64 << 49) as f64;
/// `1 - 2^-49`.
const INWARD: f64 = 1.0 - 1.0 / (1u64 << 49) as f64;

/// An upper bound of `ln(a / b)`, at most a factor `1 ± 2^-48` from it.
///
/// 0 where `a = b` (also where both are 0: an outcome that neither input produces tells nothing), `+inf` where
/// `b = 0 < a`, `-inf` where `a = 0 < b`.
#[must_use]
pub fn log_ratio(a: u128, b: u128) -> f64 {
    match (a, b) {
        _ if a == b => 0.0,
        (_, 0) => f64::INFINITY,
        (0, _) => f64::NEG_INFINITY,
        _ if a > b => ln_above_one(a, b) * OUTWARD,
        _ => -(ln_above_one(b, a) * INWARD),
    }
}

/// `ln(a / b)` for `a > b > 0` with a relative error below `7u`, `u = 2^-53`.
///
/// Integers become floats with a relative error of at most `u` each, their quotient adds another `u`: `3u` in all
/// (and terms of order `u^2`). `libm`'s `log` and `log1p` are within one unit in the last place, so within `2u`.
///
/// - `a < 2b`: with `r = (a - b) / b`, an exact difference, the error of `ln(1 + r)` is that of `r` times
///   `r / ((1 + r) ln(1 + r)) <= 1`: `3u + 2u`.
/// - `a >= 2b`: an error of `3u` in `a / b` moves the logarithm by `3u`, relative to at least `ln 2`: `4.4u + 2u`.
///
/// Nothing over- or underflows, since both integers are below `2^128`. The product with [`OUTWARD`] or [`INWARD`]
/// loses at most one more `u`, so `16u` outweigh everything.
fn ln_above_one(a: u128, b: u128) -> f64 {
    let difference = a - b;
    if difference < b { libm::log1p(difference as f64 / b as f64) } else { libm::log(a as f64 / b as f64) }
}

/// An upper bound of `|ln(a / b)|`, as tight as [`log_ratio`].
#[must_use]
pub fn abs_log_ratio(a: u128, b: u128) -> f64 {
    log_ratio(a.max(b), a.min(b))
}

/// The sum, rounded up.
#[must_use]
pub fn add_up(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        return sum;
    }
    // Knuth's TwoSum: `error` is exactly (a + b) - sum.
    let of_b = sum - a;
    let error = (a - (sum - of_b)) + (b - of_b);
    if error > 0.0 { sum.next_up() } else { sum }
}

/// The product, rounded up; 0 where a factor is 0, even beside an infinite one (no part at all loses nothing).
#[must_use]
pub fn mul_up(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 {
        return 0.0;
    }
    let product = a * b;
    if !product.is_finite() {
        return product;
    }
    // The fused residual is exact, unless it is so small that it underflows: there it is not asked.
    const RESIDUAL_EXACT: f64 = f64::MIN_POSITIVE * (1u64 << 54) as f64;
    if product.abs() < RESIDUAL_EXACT || libm::fma(a, b, -product) > 0.0 {
        product.next_up()
    } else {
        product
    }
}

/// An upper bound of `ln(a / b)` for `a >= b`: 126 bits of the two are kept, `a` rounded up and `b` down.
pub(crate) fn large_log_ratio(a: &BigUint, b: &BigUint) -> f64 {
    if a == b {
        return 0.0;
    }
    if *b == BigUint::ZERO {
        return f64::INFINITY;
    }
    let beyond = |x: &BigUint| x.bits().saturating_sub(126);
    // One shift for both, unless little would be left of b: so neighbours keep their difference.
    let of_a = beyond(a);
    let of_b = if a.bits() - b.bits() <= 60 { of_a } else { beyond(b) };
    let down = |x: &BigUint, shift: u64| u128::try_from(x >> shift).expect("126 bits are left");
    let up = down(a, of_a) + u128::from(a.trailing_zeros().is_some_and(|zeros| zeros < of_a));
    // The constant of the standard library is below ln 2, its neighbour above.
    let whole = mul_up((of_a - of_b) as f64, std::f64::consts::LN_2.next_up());
    add_up(log_ratio(up, down(b, of_b)), whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn floats_become_the_multiple_beside_them() {
        let down = |p| Probability::from_f64(p, Rounding::Down).unwrap().numerator();
        let up = |p| Probability::from_f64(p, Rounding::Up).unwrap().numerator();
        for (p, t) in [(0.0, 0), (-0.0, 0), (0.5, 1 << 63), (1.0, 1 << 64), (2f64.powi(-64), 1)] {
            assert_eq!((down(p), up(p)), (t, t));
        }
        for p in [2f64.powi(-65), 2f64.powi(-64) * 0.75, f64::from_bits(1)] {
            assert_eq!((down(p), up(p)), (0, 1));
        }
        // From 2^-12 upward every float is a multiple of 2^-64.
        assert_eq!(down(0.1), up(0.1));
        assert_eq!(down(0.1) as f64 / UNIT as f64, 0.1);
        assert_eq!(down(1.0 - f64::EPSILON / 2.0), (1 << 64) - (1 << 11));
    }

    #[test]
    fn what_is_no_probability_is_refused() {
        for p in [f64::NAN, -f64::MIN_POSITIVE, 1.0 + f64::EPSILON, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(matches!(Probability::from_f64(p, Rounding::Down), Err(Error::Argument { .. })));
        }
        assert!(Probability::from_ratio(1, 0, Rounding::Up).is_err());
        assert!(Probability::from_ratio(2, 1, Rounding::Up).is_err());
        assert!(Probability::from_numerator(UNIT + 1).is_err());
    }

    #[test]
    fn ratios_are_rounded_as_asked() {
        let third = |rounding| Probability::from_ratio(1, 3, rounding).unwrap().numerator();
        assert_eq!(third(Rounding::Down) * 3 + 1, UNIT);
        assert_eq!(third(Rounding::Up), third(Rounding::Down) + 1);
        assert_eq!(Probability::from_ratio(u64::MAX, u64::MAX, Rounding::Up).unwrap(), Probability::ONE);
    }

    #[test]
    fn log_ratio_at_its_edges() {
        assert_eq!(log_ratio(0, 0), 0.0);
        assert_eq!(log_ratio(5, 5), 0.0);
        assert_eq!(log_ratio(5, 0), f64::INFINITY);
        assert_eq!(log_ratio(0, 5), f64::NEG_INFINITY);
        assert_eq!(abs_log_ratio(0, 5), f64::INFINITY);
        assert!(log_ratio(u128::MAX, 1) > 128.0 * std::f64::consts::LN_2 - 1e-13);
    }

    #[test]
    fn tiny_ratios_keep_their_relative_precision() {
        for shift in [60u32, 63, 64, 90, 100] {
            let b = 1u128 << shift;
            let bound = log_ratio(b + 1, b);
            // ln(1 + r) is between r - r^2/2 and r with r = 2^-shift, an exact float; r^2/2 < r 2^-60.
            let r = 2f64.powi(-(shift as i32));
            assert!(bound >= r * (1.0 - 2f64.powi(-53)) && bound <= r * (1.0 + 2f64.powi(-48)), "{shift}");
            let below = log_ratio(b, b + 1);
            assert!(below >= -r && below <= -r * (1.0 - 2f64.powi(-48)));
        }
    }

    /// `ln 2` to 200 bits, as two floats of which the second is rounded down.
    const LN2: (f64, f64) = (std::f64::consts::LN_2, 2.319_046_813_846_299_6e-17);

    #[test]
    fn powers_of_two_are_bounded_from_above_and_tightly() {
        for k in 1..127 {
            let bound = log_ratio(1 << k, 1);
            // k * LN2.0 is not exact; its residual is.
            let head = f64::from(k) * LN2.0;
            let tail = libm::fma(f64::from(k), LN2.0, -head) + f64::from(k) * LN2.1;
            assert!(bound - head > tail, "{k}");
            assert!(bound <= head * (1.0 + 2f64.powi(-48)), "{k}");
            assert!(log_ratio(1, 1 << k) + head > -tail && log_ratio(1, 1 << k) < 0.0);
        }
    }

    proptest! {
        #[test]
        fn log_ratio_is_an_upper_bound_that_agrees_both_ways(a in 1u128.., b in 1u128..) {
            let (up, back) = (log_ratio(a, b), log_ratio(b, a));
            // Upper bounds of y and -y cannot add up to less than zero.
            prop_assert!(up + back >= 0.0);
            prop_assert!((up + back).abs() <= 2f64.powi(-47) * up.abs());
        }

        #[test]
        fn chains_of_ratios_add_up(a in 1u128..1 << 100, b in 1u128..1 << 100, c in 1u128..1 << 100) {
            // ln(a/c) = ln(a/b) + ln(b/c): the bounds respect it up to their width.
            let sum = add_up(log_ratio(a, b), log_ratio(b, c));
            let width = 2f64.powi(-47) * (log_ratio(a, b).abs() + log_ratio(b, c).abs() + log_ratio(a, c).abs());
            prop_assert!((sum - log_ratio(a, c)).abs() <= width);
        }

        #[test]
        fn sums_and_products_are_rounded_up(a in -1e18f64..1e18, b in -1e-3f64..1e3) {
            let (sum, nearest) = (add_up(a, b), a + b);
            prop_assert!(sum == nearest || sum == nearest.next_up());
            // Where |a| >= |b|, a - sum is exact, and so is the sign of what is left.
            let (large, small) = if a.abs() >= b.abs() { (a, b) } else { (b, a) };
            prop_assert!((large - sum) + small <= 0.0);
            let product = mul_up(a, b);
            prop_assert!(libm::fma(a, b, -product) <= 0.0);
            prop_assert!(product == a * b || product == (a * b).next_up());
        }
    }

    #[test]
    fn sums_go_up_by_one_neighbour_only_when_they_must() {
        assert_eq!(add_up(1.0, 2f64.powi(-60)), 1.0 + f64::EPSILON);
        assert_eq!(add_up(1.0, -2f64.powi(-60)), 1.0);
        assert_eq!(add_up(1.0, 2.0), 3.0);
        assert_eq!(add_up(1.0, f64::INFINITY), f64::INFINITY);
        assert_eq!(mul_up(0.0, f64::INFINITY), 0.0);
        assert_eq!(mul_up(3.0, f64::INFINITY), f64::INFINITY);
        assert_eq!(mul_up(3.0, 7.0), 21.0);
        assert!(mul_up(f64::MIN_POSITIVE, 0.5f64.powi(60)) > 0.0);
    }

    #[test]
    fn complements_add_up_to_one() {
        for p in [0.0, 1e-30, 0.3, 0.5, 1.0] {
            let p = Probability::from_f64(p, Rounding::Down).unwrap();
            assert_eq!(p.numerator() + p.complement().numerator(), UNIT);
        }
        assert_eq!(Probability::ONE.complement(), Probability::ZERO);
        assert_eq!(Probability::HALF.to_f64(), 0.5);
    }

    #[test]
    fn ratios_of_large_numbers_are_bounded_from_above() {
        let power = |exponent: u32| BigUint::from(1u32) << exponent;
        let three = || BigUint::from(3u32);
        for (a, b, exact) in [
            (power(5000), power(4000), 1000.0 * std::f64::consts::LN_2),
            (three() << 5000u32, power(5000), 3f64.ln()),
            (three() << 300u32, power(10), 290.0 * std::f64::consts::LN_2 + 3f64.ln()),
            (power(800) + 1u32, power(800), 0.0),
        ] {
            let bound = large_log_ratio(&a, &b);
            assert!(bound >= exact && bound <= exact * (1.0 + 1e-13) + 1e-37, "{bound} against {exact}");
        }
        assert_eq!(large_log_ratio(&power(9), &power(9)), 0.0);
        assert_eq!(large_log_ratio(&power(9), &BigUint::ZERO), f64::INFINITY);
        // The difference in the last of 900 bits is not lost, and not rounded away.
        assert!(large_log_ratio(&(power(900) + 1u32), &power(900)) > 0.0);
    }
}
