//! The two floating-point types of the fixed-point codec, and the loops over them.

use super::code::Code;
use crate::codec::sealed::Sealed;

/// How a codec spells numbers.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Spelling {
    /// Codes a unit.
    pub(super) scale: f64,
    /// The largest magnitude's code.
    pub(super) most: u32,
    /// The sign of negative numbers, in its place.
    pub(super) negative: u32,
    /// The position of the sign.
    pub(super) sign: u32,
}

impl Spelling {
    /// The sign of a number, in its place.
    #[inline(always)]
    pub(super) fn sign_of<F: Real>(&self, x: F) -> u32 {
        self.negative ^ if x.is_negative() { 0 } else { self.sign }
    }
}

/// The two floating-point types that the codec takes and gives.
pub trait Real: Flushed + Copy + Default + Send + Sync + Sealed + 'static {
    /// True where the number has a code: not NaN and, unless they `saturate`, not infinite.
    fn is_encodable(self, saturate: bool) -> bool;
    /// True where every number has a code.
    fn all_encodable(values: &[Self], saturate: bool) -> bool;
    /// True where the number is below zero; -0 is not. By its bits: how long it takes does not depend on them.
    fn is_negative(self) -> bool;
    /// The code words of all numbers.
    #[doc(hidden)]
    fn encode_each<W: Code>(codec: Spelling, values: &[Self], words: &mut [W]);
    /// `min(floor(|x| * scale), most)`, with `scale` a power of two.
    fn magnitude(self, scale: f64, most: u32) -> u32;
    /// `±(magnitude * step)`, with `step` a power of two.
    fn from_magnitude(magnitude: u32, step: f64, negative: bool) -> Self;
}

macro_rules! real {
    ($float:ident, $word:ty, $infinity:expr, $sign:expr) => {
        impl Real for $float {
            #[inline(always)]
            fn is_encodable(self, saturate: bool) -> bool {
                !self.is_nan() && (saturate || self.is_finite())
            }

            #[inline(always)]
            fn all_encodable(values: &[Self], saturate: bool) -> bool {
                // The bits of a magnitude, as an integer, rise with it: infinity comes last, and NaN after it.
                let most: $word = if saturate { $infinity } else { $infinity - 1 };
                values.iter().fold(0, |largest, x| (x.to_bits() & !$sign).max(largest)) <= most
            }

            #[inline(always)]
            fn is_negative(self) -> bool {
                // The bits of -0 are the sign alone. NaN is refused before anybody asks.
                self.to_bits() > $sign
            }

            #[inline(always)]
            fn encode_each<W: Code>(codec: Spelling, values: &[$float], words: &mut [W]) {
                real!(@each $float, codec, values, words)
            }

            #[inline(always)]
            fn from_magnitude(magnitude: u32, step: f64, negative: bool) -> $float {
                let size = (magnitude as $float) * (step as $float);
                <$float>::from_bits(size.to_bits() | if negative { $sign } else { 0 })
            }

            #[inline(always)]
            fn magnitude(self, scale: f64, most: u32) -> u32 {
                real!(@magnitude $float, self, scale, most)
            }
        }
    };
    (@each f64, $codec:expr, $values:expr, $words:expr) => {{
        let (scale, most) = ($codec.scale, f64::from($codec.most));
        for (word, &x) in $words.iter_mut().zip($values) {
            *word = W::narrow(bounded64(x, scale, most) | $codec.sign_of(x));
        }
    }};
    (@each f32, $codec:expr, $values:expr, $words:expr) => {{
        let (scale, most) = ($codec.scale, $codec.most);
        if most < SINGLE {
            let (scale, most) = (scale as f32, most as f32);
            for (word, &x) in $words.iter_mut().zip($values) {
                *word = W::narrow(bounded32(x, scale, most) | $codec.sign_of(x));
            }
        } else {
            let most = f64::from(most);
            for (word, &x) in $words.iter_mut().zip($values) {
                *word = W::narrow(bounded64(f64::from(x.flushed()), scale, most) | $codec.sign_of(x));
            }
        }
    }};
    (@magnitude f64, $x:expr, $scale:expr, $most:expr) => {
        bounded64($x, $scale, f64::from($most))
    };
    (@magnitude f32, $x:expr, $scale:expr, $most:expr) => {
        if $most < SINGLE {
            bounded32($x, $scale as f32, $most as f32)
        } else {
            // `most` is no float32: compare in float64, which represents both sides.
            bounded64(f64::from($x.flushed()), $scale, f64::from($most))
        }
    };
}

/// Integers below this are float32 exactly.
const SINGLE: u32 = 1 << 24;

/// A number whose subnormals are zeros of their sign: arithmetic with those can take longer, and would tell them from 0.
#[doc(hidden)]
pub trait Flushed {
    /// The number, or zero of its sign.
    fn flushed(self) -> Self;
}

macro_rules! bounded {
    ($name:ident, $float:ident, $word:ty, $normal:expr, $sign:expr) => {
        impl Flushed for $float {
            #[inline(always)]
            fn flushed(self) -> $float {
                // Integers only: bits of a magnitude below the smallest normal number are cleared.
                let bits = self.to_bits();
                let normal = <$word>::from(bits & !$sign >= $normal).wrapping_neg();
                $float::from_bits(bits & (normal | $sign))
            }
        }

        /// `min(floor(|x| * scale), most)`.
        #[inline(always)]
        fn $name(x: $float, scale: $float, most: $float) -> u32 {
            let scaled = x.flushed().abs() * scale;
            // This order makes NaN saturate, as `vminps` does. NaN never comes here from a checked array, but the array
            // might be changed by somebody else after the check, and the conversion below must stay sound.
            let bounded = if scaled < most { scaled } else { most };
            // SAFETY: 0 <= bounded <= most, a magnitude of at most 31 bits that the type represents.
            unsafe { bounded.to_int_unchecked::<i32>() as u32 }
        }
    };
}
bounded!(bounded32, f32, u32, 0x0080_0000, 0x8000_0000u32);
bounded!(bounded64, f64, u64, 0x0010_0000_0000_0000, 0x8000_0000_0000_0000u64);

real!(f32, u32, 0x7f80_0000, 0x8000_0000u32);
real!(f64, u64, 0x7ff0_0000_0000_0000, 0x8000_0000_0000_0000u64);
