//! One pass over a vector: how many magnitudes lie below a bracket, which lie within, and whether all are finite.

use super::tally::SMALL;
use crate::isa::Isa;

/// Numbers between two marks: how many were kept up to there leads back from a kept one to its place.
pub(super) const MARKED: usize = 64;

/// How many numbers ahead memory is asked for them, to be in the first-level cache.
#[cfg(target_arch = "x86_64")]
const NEAR: usize = 512;

/// Asks for the run of [`MARKED`] numbers that is `ahead` of this one to be brought into the second-level cache, and for one
/// that comes soon to be brought into the first; neither need exist.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn prefetch<M>(run: *const M, ahead: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
    for line in (0..MARKED * size_of::<M>()).step_by(64) {
        let at = |numbers: usize| run.wrapping_add(numbers).cast::<i8>().wrapping_add(line);
        // SAFETY: hints, that read nothing and cannot fault.
        unsafe {
            _mm_prefetch::<_MM_HINT_T1>(at(ahead));
            _mm_prefetch::<_MM_HINT_T0>(at(NEAR));
        }
    }
}

/// What a pass over numbers has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Split<M> {
    /// How many sizes are below the bracket.
    pub(super) below: usize,
    /// How many are within it.
    pub(super) kept: usize,
    /// The largest of all sizes, or zero.
    pub(super) most: M,
}

/// Elements past the end of the room for those within a bracket that a vector unit may overwrite.
pub(super) const SLACK: usize = 16;

/// A float's bits. Without the sign they are ordered as the magnitudes are, and zeros of either sign are equal.
pub(crate) trait Magnitude: Copy + Ord + Default + Send + Sync + 'static {
    /// The float.
    type Float;
    const ZERO: Self;
    /// Above every finite number's bits without the sign.
    const INFINITE: Self;
    /// Above every number's bits without the sign.
    const MOST: Self;

    /// The bits of floats.
    fn of(values: &[Self::Float]) -> &[Self];

    /// The bits without the sign.
    fn size(self) -> Self;

    /// Counts in a lane as wide as the number, so that the loop can be vectorised; the caller counts few at a time.
    fn plus_one_if(self, yes: bool) -> Self;

    /// The number as a count.
    fn count(self) -> u64;

    /// A count of less than `2^31` as a number.
    fn of_count(count: usize) -> Self;

    /// The number before and the one after, for brackets' ends that leave room for them.
    fn before(self) -> Self;
    fn after(self) -> Self;

    /// The size as a number, and the size of a positive number.
    fn real(self) -> f64;
    fn of_real(number: f64) -> Self;

    /// The largest of the numbers that have at most `rank` smaller ones, or zero.
    fn nth(isa: Isa, numbers: &[Self; SMALL], smaller: &[Self; SMALL], rank: Self) -> Self;

    /// Writes the sizes of `[low, high]` among `values` to the start of `within`, in their order, and how many of them
    /// come before each run of [`MARKED`] values to `marks`. There is room for all values and [`SLACK`] more, and for
    /// all marks. The numbers `ahead` of these, if that is not 0, are brought into the cache meanwhile.
    fn split(
        isa: Isa,
        values: &[Self],
        low: Self,
        high: Self,
        within: &mut [Self],
        marks: &mut [u32],
        ahead: usize,
    ) -> Split<Self>;
}

/// Goes on with [`Magnitude::split`], one number after the other.
#[inline]
pub(super) fn more<M: Magnitude>(
    values: &[M],
    low: M,
    high: M,
    within: &mut [M],
    marks: &mut [u32],
    found: Split<M>,
) -> Split<M> {
    let Split { mut below, mut kept, mut most } = found;
    for (run, mark) in values.chunks(MARKED).zip(marks) {
        *mark = kept as u32;
        for x in run {
            let size = x.size();
            // Written always, kept where the place moves on: no branch to mispredict.
            within[kept] = size;
            kept += usize::from(size >= low && size <= high);
            below += usize::from(size < low);
            most = if size > most { size } else { most };
        }
    }
    Split { below, kept, most }
}

macro_rules! magnitude {
    ($bits:ident, $float:ident, $infinite:literal, $vector:ident, $nth:ident) => {
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
                match isa {
                    // SAFETY: an `Isa` is made only of what this processor has.
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => unsafe { super::tally_avx512::$nth(numbers, smaller, rank) },
                    _ => {
                        let candidates = numbers.iter().zip(smaller).filter(|(_, smaller)| **smaller <= rank);
                        candidates.map(|(&number, _)| number).max().unwrap_or(Self::ZERO)
                    }
                }
            }

            #[inline]
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
                match isa {
                    // SAFETY: an `Isa` is made only of what this processor has.
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => unsafe {
                        super::split_avx512::$vector(values, low, high, within, marks, ahead)
                    },
                    // SAFETY: as above.
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => unsafe {
                        super::split_avx2::$vector(values, low, high, within, marks, ahead)
                    },
                    _ => more(values, low, high, within, marks, Split::default()),
                }
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
                let mut found = vec![M::MOST; values.len() + SLACK];
                let mut marks = vec![u32::MAX; runs];
                assert_eq!(M::split(isa, values, low, high, &mut found, &mut marks, 1), split, "{isa}");
                assert_eq!(found[..split.kept], expected, "{isa}");
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
