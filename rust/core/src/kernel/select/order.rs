//! The number of a given rank, in time proportional to the numbers: Floyd and Rivest's selection (CACM 18, 1975).
//!
//! Two numbers of a small sample bracket the one that is looked for; a single pass counts what is below the bracket and
//! keeps what is within, and the search goes on among those. Where the sample misled it, the whole is searched by the
//! standard library's selection, which takes linear time whatever the numbers are. The answer is the number of that rank
//! in any case, so it does not depend on the instruction set.

use super::split::{Magnitude, SLACK};
use crate::kernel::Isa;

/// As few numbers as are not worth a bracket.
const FEW: usize = 160;

/// Half the width of a bracket, in standard deviations of the rank in the sample. Wider ones keep more numbers, narrower
/// ones miss more often.
const DEVIATIONS: f64 = 2.2;

/// Working memory, kept from vector to vector.
#[derive(Default)]
pub(super) struct Room<M> {
    sample: Vec<M>,
    kept: Vec<M>,
    spare: Vec<M>,
}

impl<M: Magnitude> Room<M> {
    /// The size that `rank` of `values` are smaller than or, of those that are equal to it, come before it.
    pub(super) fn value_of_rank(&mut self, isa: Isa, values: &[M], rank: usize) -> M {
        let needed = values.len() + SLACK;
        if self.kept.len() < needed {
            self.kept.resize(needed, M::ZERO);
        }
        let (mut rank, mut count) = (rank, values.len());
        if count <= FEW {
            self.kept.iter_mut().zip(values).for_each(|(kept, x)| *kept = x.size());
        } else {
            let (low, high) = bracket(&mut self.sample, values, rank);
            let (below, kept) = M::split(isa, values, low, high, &mut self.kept);
            if (below..below + kept).contains(&rank) {
                if low == high {
                    return low;
                }
                (rank, count) = (rank - below, kept);
            } else {
                M::split(isa, values, M::ZERO, M::MOST, &mut self.kept);
            }
        }
        while count > FEW {
            let (low, high) = bracket(&mut self.sample, &self.kept[..count], rank);
            if self.spare.len() < count + SLACK {
                self.spare.resize(count + SLACK, M::ZERO);
            }
            let (below, kept) = M::split(isa, &self.kept[..count], low, high, &mut self.spare);
            // A bracket that missed, or that hardly narrows the search down, is given up.
            if !(below..below + kept).contains(&rank) || kept > count / 4 * 3 {
                break;
            }
            if low == high {
                return low;
            }
            std::mem::swap(&mut self.kept, &mut self.spare);
            (rank, count) = (rank - below, kept);
        }
        // Only what was changed while it was looked at can have fewer numbers than the rank says.
        let rank = rank.min(count - 1);
        *self.kept[..count].select_nth_unstable(rank).1
    }
}

/// Two sizes, in order, between which the number of a rank lies most likely; many more numbers than [`FEW`] are needed
/// for that to be worth it.
fn bracket<M: Magnitude>(sample: &mut Vec<M>, values: &[M], rank: usize) -> (M, M) {
    let count = values.len();
    let wanted = libm::sqrt(count as f64) * 1.3;
    let step = (count as f64 / wanted) as usize;
    sample.clear();
    sample.extend(values.iter().step_by(step.max(1)).map(|x| x.size()));
    let share = (rank as f64 + 0.5) / count as f64;
    let drawn = sample.len() as f64;
    let half = DEVIATIONS * libm::sqrt(drawn * share * (1.0 - share)) + 1.0;
    let (low, high) = (share * drawn - half, share * drawn + half);
    let low = (low >= 1.0).then_some(low as usize);
    let high = Some(high as usize).filter(|&high| high < sample.len());
    let mut from = 0;
    let low = low.map_or(M::ZERO, |low| {
        from = low;
        *sample.select_nth_unstable(low).1
    });
    let high = high.map_or(M::MOST, |high| *sample[from..].select_nth_unstable(high - from).1);
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(values: &[f32], ranks: impl Iterator<Item = usize>) {
        let mut ordered: Vec<f32> = values.iter().map(|x| x.abs()).collect();
        ordered.sort_by(f32::total_cmp);
        let mut room = Room::<u32>::default();
        for rank in ranks {
            for &isa in Isa::available() {
                let found = room.value_of_rank(isa, u32::of(values), rank);
                assert_eq!(found, ordered[rank].to_bits(), "rank {rank} of {} on {isa}", values.len());
            }
        }
    }

    /// Patterns that mislead a sample taken at regular steps, and sorted, constant and two-valued vectors.
    #[test]
    fn the_rank_is_found_whatever_the_numbers_are() {
        for count in [2usize, 399, 400, 401, 1000, 5000] {
            let all = || (0..count).step_by((count / 37).max(1)).chain([count - 1]);
            check(&(0..count).map(|i| i as f32).collect::<Vec<_>>(), all());
            check(&(0..count).map(|i| -(i as f32)).rev().collect::<Vec<_>>(), all());
            check(&vec![-0.0; count], all());
            check(&(0..count).map(|i| if i % 7 == 0 { 5.0 } else { 0.0 }).collect::<Vec<_>>(), all());
            for period in 2..24 {
                check(
                    &(0..count).map(|i| (i % period * 1000 + i / period) as f32).collect::<Vec<_>>(),
                    all(),
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn the_rank_is_that_of_the_sorted_magnitudes(values in prop::collection::vec(-1e3f32..1e3, 1..3000), share in 0.0f64..1.0) {
            let rank = (share * values.len() as f64) as usize;
            check(&values, [rank, 0, values.len() - 1].into_iter());
        }
    }
}
