//! Laws of ranks: integer weights, drawn by a comparison with their running sums.

/// Weights of runs of ranks, smallest magnitude first, after the weight of reporting nothing.
pub(crate) struct RankLaw {
    nothing: u64,
    /// The first rank of each run.
    firsts: Vec<u32>,
    /// The weight of each rank of a run.
    weights: Vec<u64>,
    /// The sum of all weights up to the end of each run.
    ends: Vec<u64>,
}

impl RankLaw {
    /// `counts[i]` ranks of weight `weights[i]` each. None if the sum of all weights is 0 or above `2^64 - 1`; the sum of
    /// `counts` must be below `2^32`.
    pub(crate) fn new(counts: &[u32], weights: &[u64], nothing: u64) -> Option<RankLaw> {
        let (mut firsts, mut ends) = (Vec::with_capacity(counts.len()), Vec::with_capacity(counts.len()));
        let (mut first, mut end) = (0, nothing);
        for (&count, &weight) in counts.iter().zip(weights) {
            firsts.push(first);
            first += count;
            end = weight.checked_mul(u64::from(count)).and_then(|sum| end.checked_add(sum))?;
            ends.push(end);
        }
        (end > 0).then_some(RankLaw { nothing, firsts, weights: weights.to_vec(), ends })
    }

    pub(crate) fn nothing(&self) -> u64 {
        self.nothing
    }

    pub(crate) fn total(&self) -> u64 {
        self.ends.last().copied().unwrap_or(self.nothing)
    }

    /// How many ranks each run has, and the weight of each.
    pub(crate) fn runs(&self, ranks: u32) -> impl Iterator<Item = (u32, u64)> + '_ {
        let ends = self.firsts.iter().skip(1).copied().chain([ranks]);
        self.firsts.iter().zip(ends).map(|(first, end)| end - first).zip(self.weights.iter().copied())
    }

    /// The rank that a uniform draw below the total stands for; None stands for nothing.
    pub(crate) fn rank(&self, draw: u64) -> Option<u32> {
        if draw < self.nothing {
            return None;
        }
        // A run without weight ends where the one before it does, and is passed over.
        let run = self.ends.partition_point(|&end| end <= draw);
        let start = if run == 0 { self.nothing } else { self.ends[run - 1] };
        Some(self.firsts[run] + ((draw - start) / self.weights[run]) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_draw_stands_for_the_rank_of_its_weight() {
        let law = RankLaw::new(&[2, 1, 3, 1], &[3, 0, 2, 7], 4).unwrap();
        assert_eq!((law.total(), law.nothing()), (4 + 6 + 6 + 7, 4));
        let mut counts = [0u64; 8];
        for draw in 0..law.total() {
            counts[law.rank(draw).map_or(7, |rank| rank as usize)] += 1;
        }
        assert_eq!(counts, [3, 3, 0, 2, 2, 2, 7, 4]);
        assert_eq!(law.runs(7).collect::<Vec<_>>(), [(2, 3), (1, 0), (3, 2), (1, 7)]);
    }

    #[test]
    fn sums_past_64_bits_and_no_weight_are_no_law() {
        assert!(RankLaw::new(&[2], &[1 << 63], 0).is_none());
        assert!(RankLaw::new(&[1, 1], &[u64::MAX, 1], 0).is_none());
        assert!(RankLaw::new(&[1], &[u64::MAX], 1).is_none());
        assert!(RankLaw::new(&[2, 3], &[0, 0], 0).is_none());
        assert_eq!(RankLaw::new(&[1], &[u64::MAX], 0).unwrap().total(), u64::MAX);
    }
}
