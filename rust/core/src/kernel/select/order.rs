//! Finds the number of a given rank in linear time: Floyd and Rivest's selection (CACM 18, 1975).
//!
//! Two numbers of a small sample bracket the one that is looked for; a single pass counts what is below the bracket, keeps
//! what is within, and looks at whether all are finite. The search goes on among those that were kept, whose ends are
//! known, by interpolation. Where sample or interpolation mislead, the standard library's selection ends the search, which
//! takes linear time whatever the numbers are. The answer is the number of that rank in any case, so it does not depend on
//! the instruction set.

use super::split::{MARKED, Magnitude, SLACK, SMALL, Split};
use super::tally::Tally;
use crate::isa::{Isa, vectorised};

/// As few numbers as are not worth a sample.
const FEW: usize = 160;

/// From as many numbers on, a sample of more than [`SMALL`] is worth its while.
const MANY: usize = 1 << 15;

/// Half the width of a bracket, in standard deviations of the rank in the sample, or among those that were kept. Wider ones
/// keep more numbers, narrower ones miss more often.
const DEVIATIONS: f64 = 2.5;

/// How far, in parts of the numbers, those between two ends may be from evenly spread; the next ends are closer by this
/// factor at least, and the numbers between them more even.
const UNEVEN: f64 = 0.06;

/// Numbers that are looked through for equals at a time.
const BLOCK: usize = 256;

/// Numbers of a vector up to which the one behind it is fetched meanwhile.
const AHEAD: usize = 1 << 15;

/// Working memory, kept from vector to vector.
#[derive(Default)]
pub(super) struct SelectBuffers<M> {
    sample: Vec<M>,
    kept: Vec<M>,
    marks: Vec<u32>,
    near: Vec<M>,
    spare: Vec<M>,
    unused: Vec<u32>,
}

impl<M: Magnitude> SelectBuffers<M> {
    /// The position of one of `values` that are equal in size to the one of rank `rank`: of `n` such, the `choose(n)`-th.
    ///
    /// Nothing if a number is not finite.
    pub(super) fn place_of_rank(
        &mut self,
        isa: Isa,
        values: &[M],
        rank: usize,
        choose: impl FnOnce(u64) -> u64,
    ) -> Option<usize> {
        room_for(values.len(), &mut self.kept, &mut self.marks);
        let (mut low, mut high) = (M::ZERO, M::MOST);
        if values.len() > FEW {
            (low, high) = bracket(isa, &mut self.sample, values, rank);
        }
        // The vector behind this one, in most cases: both stay in the second-level cache.
        let ahead = if values.len() <= AHEAD { values.len() } else { 0 };
        let mut result = M::split(isa, values, low, high, &mut self.kept, &mut self.marks, ahead);
        if result.most >= M::INFINITE {
            return None;
        }
        if !holds(&result, rank) {
            // The sample misled; what is looked for is on the other side of one end.
            (low, high) = if rank < result.below { (M::ZERO, low.before()) } else { (high.after(), M::MOST) };
            result = M::split(isa, values, low, high, &mut self.kept, &mut self.marks, 0);
        }
        // Only what was changed while it was looked at can have other numbers than were counted: any answer will do then.
        let rank = rank.saturating_sub(result.below).min(result.kept.saturating_sub(1));
        for buffers in [&mut self.near, &mut self.spare] {
            room_for(result.kept, buffers, &mut self.unused);
        }
        let value = self.value_of_rank(isa, result.kept, rank, low, high);
        let kept = &self.kept[..result.kept];
        let at = nth_equal(isa, kept, value, choose);
        let run = self.marks[..values.len().div_ceil(MARKED)]
            .partition_point(|&mark| mark as usize <= at)
            .saturating_sub(1);
        let before = self.marks[run] as usize;
        let within =
            values[run * MARKED..].iter().enumerate().filter(|(_, x)| (low..=high).contains(&x.size()));
        Some(within.map(|(position, _)| run * MARKED + position).nth(at - before).unwrap_or(0))
    }

    /// The size of rank `rank` among the first `count` that were kept, all of them in `[low, high]`.
    fn value_of_rank(&mut self, isa: Isa, mut count: usize, mut rank: usize, mut low: M, mut high: M) -> M {
        let (mut uneven, mut whole) = (UNEVEN, true);
        while low < high && count > SMALL {
            let numbers = if whole { &self.kept[..count] } else { &self.near[..count] };
            let even = uneven > 0.0 && high < M::INFINITE;
            let (lower, upper) = if even {
                between(low, high, count, rank, uneven)
            } else if count > FEW {
                bracket(isa, &mut self.sample, numbers, rank)
            } else {
                break;
            };
            let result = M::split(isa, numbers, lower, upper, &mut self.spare, &mut self.unused, 0);
            if holds(&result, rank) && result.kept <= count / 4 * 3 {
                std::mem::swap(&mut self.near, &mut self.spare);
                (low, high, whole) = (lower, upper, false);
                (rank, count) = (rank - result.below, result.kept);
                uneven *= if even { UNEVEN } else { 1.0 };
            } else if even {
                uneven = 0.0; // not even at all: samples from now on
            } else {
                break;
            }
        }
        let numbers = if whole { &self.kept[..count] } else { &self.near[..count] };
        if low == high {
            low
        } else if count <= SMALL {
            Tally::of(isa, numbers).nth(isa, rank)
        } else {
            let copy = &mut self.spare[..count];
            copy.copy_from_slice(numbers);
            *copy.select_nth_unstable(rank).1
        }
    }
}

/// Makes room for as many numbers as a pass over `count` may keep, and for its marks.
fn room_for<M: Magnitude>(count: usize, kept: &mut Vec<M>, marks: &mut Vec<u32>) {
    if kept.len() < count + SLACK {
        kept.resize(count + SLACK, M::ZERO);
    }
    if marks.len() < count.div_ceil(MARKED) {
        marks.resize(count.div_ceil(MARKED), 0);
    }
}

/// The position in `numbers` of one that equals `value`: of `n` such, the `choose(n)`-th; 0 if there is none.
fn nth_equal<M: Magnitude>(isa: Isa, numbers: &[M], value: M, choose: impl FnOnce(u64) -> u64) -> usize {
    let equals = |block: &[M]| vectorised(isa, || equal(block, value));
    let (mut count, mut first) = (0, 0);
    for (at, block) in numbers.chunks(BLOCK).enumerate() {
        let result = equals(block);
        if count == 0 && result > 0 {
            first = at * BLOCK;
        }
        count += result;
    }
    let mut left = if count > 1 { choose(count) } else { 0 };
    for (at, block) in numbers[first..].chunks(BLOCK).enumerate() {
        let result = equals(block);
        if left < result {
            let positions = block.iter().enumerate().filter(|&(_, &x)| x == value);
            return first
                + at * BLOCK
                + positions.map(|(position, _)| position).nth(left as usize).unwrap_or(0);
        }
        left -= result;
    }
    0
}

/// How many of at most [`BLOCK`] numbers equal `value`.
#[inline(always)]
fn equal<M: Magnitude>(block: &[M], value: M) -> u64 {
    block.iter().fold(M::ZERO, |count, &x| count.plus_one_if(x == value)).count()
}

/// True where the number of a rank is among those that were kept.
fn holds<M>(result: &Split<M>, rank: usize) -> bool {
    (result.below..result.below + result.kept).contains(&rank)
}

/// Two sizes in `[low, high]`, in order, between which the number of a rank lies most likely, if the numbers are spread
/// evenly but for a part `uneven` of them.
fn between<M: Magnitude>(low: M, high: M, count: usize, rank: usize, uneven: f64) -> (M, M) {
    let share = (rank as f64 + 0.5) / count as f64;
    let half = DEVIATIONS * libm::sqrt(share * (1.0 - share) / count as f64) + 1.0 / count as f64 + uneven;
    let (start, width) = (low.real(), high.real() - low.real());
    let lower = M::of_real(start + width * (share - half).max(0.0)).clamp(low, high);
    let upper = M::of_real(start + width * (share + half).min(1.0)).clamp(low, high);
    (lower, upper)
}

/// Two sizes, in order, between which the number of a rank lies most likely; many more numbers than [`FEW`] are needed
/// for that to be worth it.
fn bracket<M: Magnitude>(isa: Isa, sample: &mut Vec<M>, values: &[M], rank: usize) -> (M, M) {
    let count = values.len();
    let wanted = if count < MANY { SMALL } else { (libm::sqrt(count as f64) * 1.3) as usize };
    sample.clear();
    sample.extend(values.iter().step_by(count.div_ceil(wanted)).map(|x| x.size()));
    let share = (rank as f64 + 0.5) / count as f64;
    let drawn = sample.len() as f64;
    let half = DEVIATIONS * libm::sqrt(drawn * share * (1.0 - share)) + 1.0;
    let (low, high) = (share * drawn - half, share * drawn + half);
    let low = (low >= 1.0).then_some(low as usize);
    let high = Some(high as usize).filter(|&high| high < sample.len());
    if sample.len() <= SMALL {
        let tally = Tally::of(isa, sample);
        return (
            low.map_or(M::ZERO, |low| tally.nth(isa, low)),
            high.map_or(M::MOST, |high| tally.nth(isa, high)),
        );
    }
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
        let mut buffers = SelectBuffers::<u32>::default();
        for rank in ranks {
            for &isa in Isa::available() {
                let equals = values.iter().enumerate().filter(|(_, x)| x.abs() == ordered[rank]);
                let positions: Vec<usize> = equals.map(|(position, _)| position).collect();
                for wanted in [0, positions.len() / 2, positions.len() - 1] {
                    let choose = |count| {
                        assert_eq!(count, positions.len() as u64);
                        wanted as u64
                    };
                    let result = buffers.place_of_rank(isa, u32::of(values), rank, choose);
                    assert_eq!(result, Some(positions[wanted]), "rank {rank} of {} on {isa}", values.len());
                }
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
