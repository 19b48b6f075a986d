//! Fixed-point codes: a real number as sign, integer and fraction bits.

use super::real::{Real, Spelling};
use crate::error::{Result, argument, element, reason};

/// The sign bit of numbers that are not negative.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SignBit {
    /// BitRand, section 3.1: the sign bit is 1 iff `x >= 0`.
    OneIfNonNegative,
    /// LDPFL, section IV: the sign bit is 0 iff `x >= 0`.
    ZeroIfNonNegative,
}

/// The treatment of infinite inputs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Infinities {
    /// An error, as for NaN.
    Refuse,
    /// The largest magnitude.
    Saturate,
}

/// The fixed-point code of BitRand and LDPFL: 1 sign bit, `m` integer bits, `l - 1 - m` fraction bits.
///
/// A number is truncated toward zero and saturated (neither paper saturates; without it 40 would wrap around to 8).
/// The sign is the highest of the `l` bits of a code word, and bit `i >= 1` below it weighs `2^(m - i)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FixedPoint {
    bits: u32,
    integer_bits: u32,
    sign: SignBit,
    infinities: Infinities,
}

impl FixedPoint {
    /// A code of `bits` bits (2 to 32), `integer_bits` of them (0 to `bits - 1`) before the point.
    ///
    /// # Errors
    /// Either number outside its range.
    pub fn new(bits: u32, integer_bits: u32, sign: SignBit, infinities: Infinities) -> Result<FixedPoint> {
        if !(2..=32).contains(&bits) {
            return Err(argument("bits", reason!("{bits} is not allowed; 2 to 32 are")));
        }
        if integer_bits >= bits {
            let most = bits - 1;
            return Err(argument(
                "integer_bits",
                reason!(
                    "{integer_bits} is not allowed; with bits={bits}, one of them the sign, 0 to {most} are"
                ),
            ));
        }
        Ok(FixedPoint { bits, integer_bits, sign, infinities })
    }

    /// Bits of a code word, l.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Bits before the point, m.
    pub fn integer_bits(&self) -> u32 {
        self.integer_bits
    }

    /// Bits after the point.
    pub fn fraction_bits(&self) -> u32 {
        self.bits - 1 - self.integer_bits
    }

    /// The sign convention.
    pub fn sign(&self) -> SignBit {
        self.sign
    }

    /// The treatment of infinite inputs.
    pub fn infinities(&self) -> Infinities {
        self.infinities
    }

    /// Distance of neighbouring magnitudes, `2^-fraction_bits`.
    pub fn step(&self) -> f64 {
        1.0 / self.scale()
    }

    /// The largest magnitude that has a code.
    pub fn limit(&self) -> f64 {
        f64::from(self.magnitude_mask()) / self.scale()
    }

    pub(crate) fn scale(&self) -> f64 {
        (1u64 << self.fraction_bits()) as f64
    }

    pub(crate) fn magnitude_mask(&self) -> u32 {
        (1u32 << (self.bits - 1)) - 1
    }

    pub(crate) fn sign_mask(&self) -> u32 {
        1 << (self.bits - 1)
    }

    /// The sign bit of a negative number, in its place: the sign bit of any other is the opposite.
    pub(crate) fn negative_sign(&self) -> u32 {
        match self.sign {
            SignBit::OneIfNonNegative => 0,
            SignBit::ZeroIfNonNegative => self.sign_mask(),
        }
    }

    /// Refuses NaN and, unless they saturate, infinities.
    ///
    /// # Errors
    /// [`Error::Value`](crate::Error::Value) with the flat index of the first of them, never its value.
    pub fn check<F: Real>(&self, values: &[F]) -> Result<()> {
        let refused = |index| Err(element("x", index, self.refusal()));
        self.first_refused(values).map_or(Ok(()), refused)
    }

    /// The position of the first number without a code.
    #[inline(always)]
    pub(crate) fn first_refused<F: Real>(&self, values: &[F]) -> Option<usize> {
        let saturate = self.infinities == Infinities::Saturate;
        // Not stopping early lets the loop be vectorised.
        if F::all_encodable(values, saturate) {
            None
        } else {
            values.iter().position(|x| !x.is_encodable(saturate))
        }
    }

    /// Why such a number is refused.
    pub(crate) fn refusal(&self) -> &'static str {
        match self.infinities {
            Infinities::Refuse => "NaN and infinities have no code",
            Infinities::Saturate => "NaN has no code",
        }
    }

    /// The code word of one number that [`check`](Self::check) lets pass.
    #[inline(always)]
    pub fn encode<F: Real>(&self, x: F) -> u32 {
        x.magnitude(self.scale(), self.magnitude_mask()) | self.spelling().sign_of(x)
    }

    #[inline(always)]
    pub(super) fn spelling(&self) -> Spelling {
        let (scale, most) = (self.scale(), self.magnitude_mask());
        Spelling { scale, most, negative: self.negative_sign(), sign: self.sign_mask() }
    }

    /// The number that a code word stands for.
    #[inline(always)]
    pub fn decode<F: Real>(&self, code: u32) -> F {
        let negative = code & self.sign_mask() == self.negative_sign();
        F::from_magnitude(code & self.magnitude_mask(), self.step(), negative)
    }
}

#[cfg(test)]
mod tests {
    use super::super::real::Flushed;
    use super::*;
    use crate::error::Error;

    fn codec(bits: u32, integer_bits: u32, sign: SignBit) -> FixedPoint {
        FixedPoint::new(bits, integer_bits, sign, Infinities::Saturate).unwrap()
    }

    #[test]
    fn the_papers_examples() {
        let bitrand = codec(10, 5, SignBit::OneIfNonNegative);
        for (x, code, back) in [
            (5.8125, 0b1001011101, 5.8125),
            (-5.8125, 0b0001011101, -5.8125),
            (0.9, 0b1000001110, 0.875),
            (-0.03, 0b0000000000, -0.0),
            (-100.0, 0b0111111111, -31.9375),
            (f64::INFINITY, 0b1111111111, 31.9375),
            (-0.0, 0b1000000000, 0.0),
        ] {
            assert_eq!(bitrand.encode(x), code);
            assert_eq!(bitrand.encode(x as f32), code);
            assert_eq!(bitrand.decode::<f64>(code).to_bits(), f64::to_bits(back));
            assert_eq!(bitrand.decode::<f32>(code), back as f32);
        }
        let ldpfl = codec(10, 4, SignBit::ZeroIfNonNegative);
        for (x, code) in [(5.8125, 0b0010111010), (-5.8125, 0b1010111010), (0.9, 0b0000011100)] {
            assert_eq!(ldpfl.encode(x), code);
        }
    }

    #[test]
    fn subnormals_have_the_codes_of_zeros_of_their_sign() {
        for bits in [10, 26, 32] {
            let codec = codec(bits, 5, SignBit::OneIfNonNegative);
            let all = [
                1e-40f32,
                -1e-40,
                f32::from_bits(1),
                f32::from_bits(0x807f_ffff),
                f32::MIN_POSITIVE,
                -0.0,
                0.0,
            ];
            let mut words = [7u32; 7];
            Real::encode_each(codec.spelling(), &all, &mut words);
            let plus = codec.sign_mask();
            assert_eq!(words, [plus, 0, plus, 0, plus, plus, plus]);
            assert_eq!(all.map(|x| codec.encode(x)), words);
            let all = [
                1e-310,
                -1e-310,
                f64::from_bits(1),
                f64::from_bits((1 << 63) + 9),
                -f64::MIN_POSITIVE,
                -0.0,
                0.0,
            ];
            Real::encode_each(codec.spelling(), &all, &mut words);
            assert_eq!(words, [plus, 0, plus, 0, 0, plus, plus]);
            assert_eq!(all.map(|x| codec.encode(x)), words);
        }
        assert_eq!((-1e-40f32).flushed().to_bits(), (-0.0f32).to_bits());
        assert_eq!((1.5f32.flushed(), (-f64::MIN_POSITIVE).flushed()), (1.5, -f64::MIN_POSITIVE));
        assert!(f32::NAN.flushed().is_nan() && f64::NEG_INFINITY.flushed() == f64::NEG_INFINITY);
    }

    #[test]
    fn every_length_saturates_at_its_limit() {
        for bits in 2..=32 {
            for integer_bits in 0..bits {
                let codec = codec(bits, integer_bits, SignBit::OneIfNonNegative);
                for x in [1e30, codec.limit(), codec.limit() + 0.9 * codec.step()] {
                    assert_eq!(
                        codec.encode(x),
                        codec.sign_mask() | codec.magnitude_mask(),
                        "l={bits} m={integer_bits}"
                    );
                }
                assert_eq!(codec.encode(1e30f32), codec.sign_mask() | codec.magnitude_mask());
                assert_eq!(codec.decode::<f64>(codec.encode(-codec.limit())), -codec.limit());
            }
        }
    }

    #[test]
    fn what_has_no_code_is_refused_by_its_place() {
        let refuse = FixedPoint::new(8, 3, SignBit::OneIfNonNegative, Infinities::Refuse).unwrap();
        let saturate = FixedPoint::new(8, 3, SignBit::OneIfNonNegative, Infinities::Saturate).unwrap();
        for (values, refused, saturated) in [
            ([1.0, -2.0, f32::MAX], None, None),
            ([1.0, f32::NEG_INFINITY, 1.0], Some(1), None),
            ([1.0, f32::INFINITY, f32::NAN], Some(1), Some(2)),
            ([-f32::NAN, 0.0, 0.0], Some(0), Some(0)),
        ] {
            let position = |result: Result<()>| {
                result.err().map(|error| match error {
                    Error::Value { index, .. } => index,
                    other => panic!("{other}"),
                })
            };
            assert_eq!(position(refuse.check(&values)), refused);
            assert_eq!(position(saturate.check(&values)), saturated);
            assert_eq!(position(refuse.check(&values.map(f64::from))), refused);
        }
    }

    #[test]
    fn lengths_outside_their_range_are_refused() {
        for (bits, integer_bits) in [(0, 0), (1, 0), (33, 5), (10, 10), (2, 2)] {
            assert!(
                FixedPoint::new(bits, integer_bits, SignBit::OneIfNonNegative, Infinities::Refuse).is_err()
            );
        }
    }
}
