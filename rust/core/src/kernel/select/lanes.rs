//! Kernels by instruction set, for magnitudes of 32 and of 64 bits.

use super::split::{MARKED, Magnitude, SLACK, SMALL, Split, in_runs};
#[cfg(target_arch = "aarch64")]
use super::split_neon;
#[cfg(target_arch = "x86_64")]
use super::{split_avx2, split_avx512};
use crate::isa::{Isa, dispatch};

macro_rules! magnitude {
    ($bits:ident, $float:ident, $infinite:literal, $split:ident, $nth:ident) => {
        impl Magnitude for $bits {
            type Float = $float;
            const ZERO: $bits = 0;
            const INFINITE: $bits = $infinite;
            const MOST: $bits = $bits::MAX >> 1;

            fn of(values: &[$float]) -> &[$bits] {
                // SAFETY: the two types have the same size and alignment, and any bits are a number of either.
                unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
            }

            #[inline(always)]
            fn size(self) -> $bits {
                self & Self::MOST
            }

            #[inline(always)]
            fn plus_one_if(self, yes: bool) -> $bits {
                self + $bits::from(yes)
            }

            #[inline(always)]
            fn count(self) -> u64 {
                u64::from(self)
            }

            #[inline(always)]
            fn of_count(count: usize) -> $bits {
                count as $bits
            }

            #[inline(always)]
            fn before(self) -> $bits {
                self.saturating_sub(1)
            }

            #[inline(always)]
            fn after(self) -> $bits {
                (self + 1).min(Self::MOST)
            }

            #[inline(always)]
            fn real(self) -> f64 {
                f64::from($float::from_bits(self))
            }

            #[inline(always)]
            fn of_real(number: f64) -> $bits {
                (number as $float).to_bits() & Self::MOST
            }

            #[inline]
            fn nth(isa: Isa, numbers: &[$bits; SMALL], smaller: &[$bits; SMALL], rank: $bits) -> $bits {
                dispatch!(isa, (numbers, smaller, rank), avx512 => split_avx512::$nth, _ => {
                    let candidates = numbers.iter().zip(smaller).filter(|(_, smaller)| **smaller <= rank);
                    candidates.map(|(&number, _)| number).max().unwrap_or(Self::ZERO)
                })
            }

            #[inline]
            #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(unused_variables, reason = "nothing is asked for ahead"))]
            fn split(
                isa: Isa,
                values: &[$bits],
                low: $bits,
                high: $bits,
                within: &mut [$bits],
                marks: &mut [u32],
                ahead: usize,
            ) -> Split<$bits> {
                assert!(within.len() >= values.len() + SLACK, "room for all values and some more");
                assert!(marks.len() >= values.len().div_ceil(MARKED), "room for all marks");
                dispatch!(isa, (values, low, high, within, marks, ahead),
                    avx512 => split_avx512::$split, avx2 => split_avx2::$split, neon => split_neon::$split,
                    _ => in_runs(values, low, high, within, marks))
            }
        }
    };
}
magnitude!(u32, f32, 0x7f80_0000, split_32, nth_32);
magnitude!(u64, f64, 0x7ff0_0000_0000_0000, split_64, nth_64);

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of every sign and size, zeros of both signs among them.
    fn numbers(count: usize) -> Vec<f64> {
        (0..count)
            .map(|i| (((i * 7919 + 13) % 101) as f64 - 50.0) * if i % 3 == 0 { -0.5 } else { 2.0 })
            .collect()
    }

    fn agree<M: Magnitude + std::fmt::Debug>(values: &[M], brackets: &[(M, M)]) {
        let runs = values.len().div_ceil(MARKED);
        for &(low, high) in brackets {
            let kept = |values: &[M]| -> Vec<M> {
                values.iter().map(|x| x.size()).filter(|x| (low..=high).contains(x)).collect()
            };
            let expected = kept(values);
            let split = Split {
                below: values.iter().filter(|x| x.size() < low).count(),
                kept: expected.len(),
                most: values.iter().map(|x| x.size()).max().unwrap_or(M::ZERO),
            };
            let before: Vec<u32> = (0..runs).map(|run| kept(&values[..run * MARKED]).len() as u32).collect();
            for &isa in Isa::available() {
                let mut result = vec![M::MOST; values.len() + SLACK];
                let mut marks = vec![u32::MAX; runs];
                assert_eq!(M::split(isa, values, low, high, &mut result, &mut marks, 1), split, "{isa}");
                assert_eq!(result[..split.kept], expected, "{isa}");
                assert_eq!(marks, before, "{isa}");
            }
        }
    }

    #[test]
    fn every_instruction_set_splits_alike() {
        for count in (0..=200).chain([1000]) {
            let doubles = numbers(count);
            let singles: Vec<f32> = doubles.iter().map(|&x| x as f32).collect();
            let ends = [(0.0, 0.0), (1.0, 40.0), (7.5, 7.5), (0.0, 1e30), (60.0, 60.0), (101.0, 200.0)];
            agree(u64::of(&doubles), &ends.map(|(a, b)| (f64::to_bits(a), f64::to_bits(b))));
            agree(u32::of(&singles), &ends.map(|(a, b)| (f32::to_bits(a as f32), f32::to_bits(b as f32))));
            agree(u32::of(&singles), &[(u32::ZERO, u32::MOST), (u32::MOST, u32::MOST)]);
            agree(u64::of(&doubles), &[(u64::ZERO, u64::MOST), (u64::MOST, u64::MOST)]);
        }
    }
}
