//! Ranks a few numbers: how many are smaller than each, by comparing all with all.

use super::split::{Magnitude, SMALL};
use crate::isa::{Isa, vectorised};

/// A few numbers, padded by ones above all, and how many are smaller than each.
pub(super) struct Tally<M> {
    numbers: [M; SMALL],
    smaller: [M; SMALL],
}

impl<M: Magnitude> Tally<M> {
    /// The tally of at most [`SMALL`] numbers, each with its sign away.
    pub(super) fn of(isa: Isa, numbers: &[M]) -> Tally<M> {
        let mut tally = Tally { numbers: [M::MOST; SMALL], smaller: [M::ZERO; SMALL] };
        tally.numbers[..numbers.len()].copy_from_slice(numbers);
        vectorised(isa, || tally.count(numbers));
        tally
    }

    #[inline(always)]
    fn count(&mut self, numbers: &[M]) {
        // All lanes each time, the padding's too: a loop of known length, that stays in a few registers.
        for &number in numbers {
            for (smaller, &own) in self.smaller.iter_mut().zip(&self.numbers) {
                *smaller = smaller.plus_one_if(number < own);
            }
        }
    }

    /// The number of a rank below the count: the largest of those that have at most as many below them.
    #[inline]
    pub(super) fn nth(&self, isa: Isa, rank: usize) -> M {
        M::nth(isa, &self.numbers, &self.smaller, M::of_count(rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_of_few_numbers_is_found() {
        for count in 1..=SMALL {
            for distinct in [1, 2, 5, 1000] {
                let numbers: Vec<u32> = (0..count as u32).map(|i| i * 7919 % 1009 % distinct * 31).collect();
                let wide: Vec<u64> = numbers.iter().map(|&x| u64::from(x) << 30).collect();
                let mut ordered = numbers.clone();
                ordered.sort_unstable();
                for &isa in Isa::available() {
                    let (tally, other) = (Tally::of(isa, &numbers), Tally::of(isa, &wide));
                    for (rank, &number) in ordered.iter().enumerate() {
                        assert_eq!(tally.nth(isa, rank), number, "rank {rank} of {count} on {isa}");
                        assert_eq!(other.nth(isa, rank), u64::from(number) << 30);
                    }
                }
            }
        }
    }
}
