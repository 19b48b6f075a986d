//! What the mean and the variance of decoded sign-magnitude words take: which of their bits are 1, alone and by twos.
//!
//! A word is worth S · M: S depends on its sign bit s, and M = a + Σ u_i b_i is affine in its other bits. So over records
//! the sum of S · M takes counts of s, of b_i and of s b_i, and that of its square counts of b_i b_j and of s b_i b_j: no
//! more, whatever the letters.

use super::layout::Layout;
use super::pairs::{Part, Register, value};
use super::source::{Source, with_words};
use super::vertical::BYTES;
use super::{Batch, Totals, table};
use crate::codec::Code;
use crate::error::{Result, argument};
use crate::parallel::for_chunks;

/// Tiles that one part of the work counts at most: their counts fit 16 bits.
const MOST_TILES: usize = 32;
/// Words that are counted in a nanosecond, roughly.
const WORDS_A_NANOSECOND: usize = 4;

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
            const LANE: usize = Words::BITS as usize;
            if self.bits as usize > LANE {
                let reason = format!("{} do not fit code words of {LANE} bits", self.bits);
                return Err(argument("bits", reason));
            }
            self.count_pairs::<Words, LANE, _>(&words, &totals);
        });
        totals.finish(|| self.refusal(u32::MAX >> (32 - self.bits)))
    }

    /// Counts `source`, whose words have `LANE` bits.
    fn count_pairs<W: Code, const LANE: usize, S: Source<W>>(&self, source: &S, totals: &Totals) {
        let size = size_of::<W>();
        let layout = Layout::new(self.columns * size, source.len() * size);
        let (stride, rows) = (layout.stride / size, layout.rows);
        let (words, statistics) = (BYTES / size, self.word_statistics());
        let groups = stride.div_ceil(words);
        let tile = Part::<S, LANE>::tile_rows(self.bits);
        // Few columns are cut by rows, so that there is work for every thread.
        let together = (rows.div_ceil(tile) * groups / 16).clamp(1, MOST_TILES) * tile;
        let work = rows.min(together) * words / WORDS_A_NANOSECOND;
        for_chunks(groups * rows.div_ceil(together), 1, self.threads, work.max(1), |number, _| {
            let (row, at) = (number / groups * together, number % groups * words);
            let rows = row..rows.min(row + together);
            let part = Part::<S, LANE> { source, bits: self.bits, stride, rows, at };
            totals.take(part.count::<W>(self.isa).map(|found: Vec<Register>| {
                move |counts: &mut [u64]| {
                    for word in 0..words.min(stride - at) {
                        let column = (at + word) % self.columns * 2 * statistics;
                        for (place, count) in counts[column..][..2 * statistics].iter_mut().enumerate() {
                            *count += value::<LANE>(&found, place, word);
                        }
                    }
                }
            }));
        });
    }
}
