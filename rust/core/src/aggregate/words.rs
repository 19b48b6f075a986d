//! Counts that the mean and the variance of decoded sign-magnitude words take: which of their bits are 1, alone and by twos.
//!
//! A decoded word is S · M: S depends on its sign bit s, and M = a + Σ u_i b_i is affine in its other bits. So over records
//! the sum of S · M takes counts of s, of b_i and of s b_i, and that of its square counts of b_i b_j and of s b_i b_j: no
//! more, whatever the letters.

use super::layout::Layout;
use super::pairs::{TilesPart, value};
use super::planes::AT_ONCE;
use super::planes::Register;
use super::source::{Flat, Source, with_words};
use super::vertical::BYTES;
use super::{Batch, Failed, Reports, Totals, table};
use crate::codec::{Code, Rows, squeeze_rows};
use crate::error::{Result, argument, reason, zeros};
use crate::parallel::for_chunks;

/// Tiles that one part of the work counts at most: their counts fit 16 bits.
const MOST_TILES: usize = 32;
/// Bytes that rows of 0/1 bytes are squeezed to at once, at most: a thousand records of a thousand words of 8 bits. It is
/// more than the second-level cache holds, and yet a fifth faster than rows that are read in parts.
const SQUEEZED: usize = 1 << 20;
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
                reason!("{} is not allowed; a sign and 1 to 31 more are", self.bits),
            ));
        }
        let statistics = self.word_statistics();
        let mut counts = table(&[self.columns, 2, statistics])?;
        for column in counts.chunks_exact_mut(2 * statistics) {
            column[0] = self.records as u64;
        }
        let totals = Totals::new(counts);
        if let Reports::Bits(stream) = self.reports {
            if self.bits <= 16 {
                self.count_spread::<u16, 16>(stream, &totals);
            } else {
                self.count_spread::<u32, 32>(stream, &totals);
            }
            return totals.finish(|| self.refusal(u32::MAX >> (32 - self.bits)));
        }
        with_words!(self, words: Words => {
            const LANE: usize = Words::BITS as usize;
            if self.bits as usize > LANE {
                let reason = reason!("{} do not fit code words of {LANE} bits", self.bits);
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
        let words = BYTES / size;
        let groups = stride.div_ceil(words);
        let tile = TilesPart::<S, LANE>::tile_rows(self.bits);
        // Few columns are cut by rows, so that there is work for every thread.
        let together = (rows.div_ceil(tile) * groups / 16).clamp(1, MOST_TILES) * tile;
        let work = rows.min(together) * words / WORDS_A_NANOSECOND;
        for_chunks(groups * rows.div_ceil(together), 1, self.threads, work.max(1), |number, _| {
            let (row, at) = (number / groups * together, number % groups * words);
            let rows = row..rows.min(row + together);
            let part = TilesPart::<S, LANE> { source, bits: self.bits, stride, rows, at };
            let there = words.min(stride - at);
            totals.take(part.count::<W>(self.isa).map(|result| self.adding::<LANE>(result, at, there)));
        });
    }

    /// The function that adds the counts of `words` words of a row, from `at` on.
    fn adding<const LANE: usize>(
        &self,
        result: Vec<Register>,
        at: usize,
        words: usize,
    ) -> impl FnOnce(&mut [u64]) {
        let statistics = self.word_statistics();
        move |counts: &mut [u64]| {
            for word in 0..words {
                let column = (at + word) % self.columns * 2 * statistics;
                for (position, count) in counts[column..][..2 * statistics].iter_mut().enumerate() {
                    *count += value::<LANE>(&result, position, word);
                }
            }
        }
    }

    /// Counts words that are bytes of 0 and 1. A tile's rows are squeezed first, whole if they are not too long: memory is
    /// read in one stretch, which the few bytes that a group has of each row are not.
    fn count_spread<W: Code, const LANE: usize>(&self, stream: &[u8], totals: &Totals) {
        let (bits, size) = (self.bits as usize, size_of::<W>());
        let layout = Layout::new(self.columns * size, self.words() * size);
        let (stride, words) = (layout.stride / size, BYTES / size);
        // Few records are cut finer, so that threads end together.
        let share = (layout.rows / 16).next_multiple_of(LANE * AT_ONCE).max(LANE * AT_ONCE);
        let tile = TilesPart::<Flat, LANE>::tile_rows(self.bits).min(share);
        let strip = (SQUEEZED * 8 / (tile * bits * words)).clamp(1, stride.div_ceil(words)) * words;
        let strips = stride.div_ceil(strip);
        let work = (tile * strip / WORDS_A_NANOSECOND).max(1);
        for_chunks(strips * layout.rows.div_ceil(tile), 1, self.threads, work, |number, _| {
            let (row, at) = (number / strips * tile, number % strips * strip);
            let rows = tile.min(layout.rows - row);
            let strip = strip.min((stride - at).next_multiple_of(words));
            let there = strip.min(stride - at);
            let packed = match self.squeezed(stream, row * stride + at, stride, rows, [there, strip]) {
                Ok(packed) => packed,
                Err(failed) => return totals.take(Err::<fn(&mut [u64]), _>(failed)),
            };
            let source = &self.flat(&packed, false).of(rows * strip);
            for group in (0..strip).step_by(words) {
                let part = TilesPart::<Flat, LANE> {
                    source,
                    bits: self.bits,
                    stride: strip,
                    rows: 0..rows,
                    at: group,
                };
                let there = words.min(there - group);
                let result = part.count::<W>(self.isa);
                totals.take(result.map(|result| self.adding::<LANE>(result, at + group, there)));
            }
        });
    }

    /// The bits of the first `there` words of `rows` rows, from word `start` on, each row to the bytes of `strip` words;
    /// zeros where there are none.
    fn squeezed(
        &self,
        stream: &[u8],
        start: usize,
        stride: usize,
        rows: usize,
        [there, strip]: [usize; 2],
    ) -> std::result::Result<Vec<u8>, Failed> {
        let bits = self.bits as usize;
        let mut packed = zeros::<u8>(rows * strip * bits / 8)?;
        let mut seen = 0;
        let mut squeeze = |row: usize, rows: usize, words: usize| {
            let first = (start + row * stride) * bits;
            let of = Rows { first, stride: stride * bits, rows, length: words * bits };
            seen |= squeeze_rows(self.isa, stream, of, &mut packed[row * strip * bits / 8..]);
        };
        // The last row may end early. Rows of fewer words than their bytes have room for are squeezed one by one.
        let left = |row: usize| there.min(self.words().saturating_sub(start + row * stride));
        let whole = if there == strip { rows - usize::from(left(rows - 1) < there) } else { 0 };
        if whole > 0 {
            squeeze(0, whole, strip);
        }
        (whole..rows).filter(|&row| left(row) > 0).for_each(|row| squeeze(row, 1, left(row)));
        if seen > 1 { Err(Failed::Refused) } else { Ok(packed) }
    }
}
