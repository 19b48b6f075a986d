//! One pass over a vector: how many magnitudes lie below a bracket, and which lie within.

use crate::kernel::Isa;

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

    /// Writes the sizes of `[low, high]` among `values` to the start of `within`, in their order; returns how many are
    /// below `low`, and how many were written. There is room for all values and [`SLACK`] more.
    fn split(isa: Isa, values: &[Self], low: Self, high: Self, within: &mut [Self]) -> (usize, usize);
}

/// [`Magnitude::split`], one number after the other.
pub(super) fn scalar<M: Magnitude>(values: &[M], low: M, high: M, within: &mut [M]) -> (usize, usize) {
    let (mut below, mut kept) = (0, 0);
    for x in values {
        let size = x.size();
        // Written always, kept where the place moves on: no branch to mispredict.
        within[kept] = size;
        kept += usize::from(size >= low && size <= high);
        below += usize::from(size < low);
    }
    (below, kept)
}

macro_rules! magnitude {
    ($bits:ident, $float:ident, $infinite:literal, $vector:ident) => {
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

            #[inline]
            fn split(
                isa: Isa,
                values: &[$bits],
                low: $bits,
                high: $bits,
                within: &mut [$bits],
            ) -> (usize, usize) {
                assert!(within.len() >= values.len() + SLACK, "room for all values and some more");
                match isa {
                    // SAFETY: an `Isa` that reaches the kernels was checked against this processor.
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => unsafe { super::split_avx512::$vector(values, low, high, within) },
                    // SAFETY: as above.
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => unsafe { super::split_avx2::$vector(values, low, high, within) },
                    _ => scalar(values, low, high, within),
                }
            }
        }
    };
}
magnitude!(u32, f32, 0x7f80_0000, split_32);
magnitude!(u64, f64, 0x7ff0_0000_0000_0000, split_64);

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
        for &(low, high) in brackets {
            let mut expected = vec![M::ZERO; values.len() + SLACK];
            let (below, kept) = scalar(values, low, high, &mut expected);
            assert_eq!(below, values.iter().filter(|x| x.size() < low).count());
            assert_eq!(kept, values.iter().filter(|x| (low..=high).contains(&x.size())).count());
            for &isa in Isa::available() {
                let mut found = vec![M::MOST; values.len() + SLACK];
                assert_eq!(M::split(isa, values, low, high, &mut found), (below, kept), "{isa}");
                assert_eq!(found[..kept], expected[..kept], "{isa}");
            }
        }
    }

    #[test]
    fn every_instruction_set_splits_alike() {
        for count in [0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 100, 1000] {
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
