//! What the mean and the variance of decoded sign-magnitude words take: which of their bits are 1, alone and by twos.
//!
//! A word is worth S · M: S depends on its sign bit s, and M = a + Σ u_i b_i is affine in its other bits. So over records
//! the sum of S · M takes counts of s, of b_i and of s b_i, and that of its square counts of b_i b_j and of s b_i b_j: no
//! more, whatever the letters.

use super::columns::Columns;
use super::shape::{Layout, Shape};
use super::source::with_words;
use super::vertical::Counters;
use super::{Batch, Totals, table};
use crate::error::{Result, argument};

impl Batch<'_> {
    /// How many counts [`word_counts`](Self::word_counts) has for each column and for each of its two halves: 1 + m +
    /// m (m - 1) / 2, where m is the number of bits less one.
    #[must_use]
    pub fn word_statistics(&self) -> usize {
        let m = self.bits as usize - 1;
        1 + m + m * m.saturating_sub(1) / 2
    }

    /// Counts for each column: over all records, then over those whose word has a 1 as its highest bit, the sign. Each
    /// half is the number of records; the ones of each bit below the sign, most significant first; and the ones of each two
    /// of those bits at once, the first with the second, the first with the third, and so on.
    ///
    /// # Errors
    /// Words of fewer than 2 bits, a word with more bits or a byte that is neither 0 nor 1 (by its index), or no memory.
    /// Nothing is counted then.
    pub fn word_counts(&self) -> Result<Vec<u64>> {
        if self.bits < 2 {
            return Err(argument(
                "bits",
                format!("{} is not allowed; a sign and 1 to 31 more are", self.bits),
            ));
        }
        let statistics = self.word_statistics();
        let mut counts = table(&[self.columns, 2, statistics])?;
        for column in counts.chunks_exact_mut(2 * statistics) {
            column[0] = self.records as u64;
        }
        let totals = Totals::new(counts);
        with_words!(self, words: Words => {
            let lane = 8 * size_of::<Words>() as u32;
            if self.bits > lane {
                let reason = format!("{} do not fit code words of {lane} bits", self.bits);
                return Err(argument("bits", reason));
            }
            let shape = Shape::of_words(self.bits, lane);
            let places = places(self.bits);
            let layout = Layout::new(self.columns * size_of::<Words>(), self.words() * size_of::<Words>());
            self.count_columns::<Words, _>(&words, &layout, &shape, &totals, |sets: &[Counters], columns: Columns, counts| {
                for (set, places) in sets.iter().zip(&places) {
                    let ones = set.read(self.isa, columns.blocks);
                    let first = columns.at / size_of::<Words>();
                    for (i, byte) in (0..columns.bytes).step_by(size_of::<Words>()).enumerate() {
                        let column = &mut counts[(first + i) % self.columns * 2 * statistics..][..2 * statistics];
                        for &(bit, place) in places {
                            column[place] += u64::from(ones[bit % 8][byte + bit / 8]);
                        }
                    }
                }
            });
        });
        totals.finish(|| self.refusal(u32::MAX >> (32 - self.bits)))
    }
}

/// For each set of counters of a word: which bits of it go where among a column's counts.
fn places(bits: u32) -> Vec<Vec<(usize, usize)>> {
    let m = bits as usize - 1;
    let half = 1 + m + m * m.saturating_sub(1) / 2;
    let alone = |bit: usize| 1 + (m - 1 - bit);
    let pair = |one: usize, other: usize| {
        let (first, second) = (m - 1 - one.max(other), m - 1 - one.min(other));
        1 + m + first * (2 * m - first - 1) / 2 + (second - first - 1)
    };
    let words = (0..m).map(|bit| (bit, alone(bit))).chain([(m, half)]).collect();
    let negative = (0..m).map(|bit| (bit, half + alone(bit))).collect();
    let mut sets: Vec<Vec<(usize, usize)>> = vec![words, negative];
    for k in 1..=m / 2 {
        // Bit j of the k-th rotation is bit j and the one k places below it, around the ring; half around, each two of
        // them meet twice.
        let from = if 2 * k == m { k } else { 0 };
        let together: Vec<_> = (from..m).map(|bit| (bit, pair(bit, (bit + m - k) % m))).collect();
        sets.push(together.clone());
        sets.push(together.into_iter().map(|(bit, place)| (bit, half + place)).collect());
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_has_one_place() {
        for bits in 2..=32 {
            let m = bits as usize - 1;
            let half = 1 + m + m * (m - 1) / 2;
            let mut places: Vec<usize> = places(bits).into_iter().flatten().map(|(_, place)| place).collect();
            places.sort_unstable();
            // All but the number of records, which is known.
            assert_eq!(places, (1..2 * half).collect::<Vec<_>>(), "{bits} bits");
        }
    }
}
