//! Sums of codes and of their squares: what the mean and the variance take where letters are affine in the code.

use super::histogram::{largest, most};
use super::source::{PIECE, Source, SourceBuffers, with_words};
use super::{Batch, Failed, Totals, table};
use crate::codec::Code;
use crate::error::{Result, argument, reason, zeros};
use crate::isa::vectorised;
use crate::parallel::for_chunks;

/// Rows after which narrow sums go over into wide ones: 2^16 codes of 16 bits are below 2^32.
const NARROW_ROWS: usize = 1 << 16;

impl Batch<'_> {
    /// The sum of the codes of each column, then of their squares: `columns` rows of two.
    ///
    /// # Errors
    /// An alphabet of none or more than 2^32, so many records of so large codes that 64 bits might not hold a sum of
    /// squares, a code outside the alphabet (by its index), a byte that is neither 0 nor 1, or no memory. Nothing is added
    /// then.
    pub fn sums(&self, alphabet: usize) -> Result<Vec<u64>> {
        let most = most(alphabet)?;
        let square = u128::from(most) * u128::from(most);
        if square * self.records as u128 > u128::from(u64::MAX) {
            let reason = reason!(
                "{} with codes up to {most} are not allowed: 64 bits do not hold their squares",
                self.records
            );
            return Err(argument("records", reason));
        }
        if let Some(ones) = self.ones_of_two(most) {
            // A bit is its own square.
            return Ok(ones?.into_iter().flat_map(|ones| [ones; 2]).collect());
        }
        let totals = Totals::new(table(&[self.columns, 2])?);
        with_words!(self, words: Words => self.add_codes::<Words, _>(&words, most, &totals));
        totals.finish(|| self.refusal(most))
    }

    fn add_codes<W: Code, S: Source<W>>(&self, words: &S, most: u32, totals: &Totals) {
        // Short rows are laid side by side, so that every sum has a lane of its own.
        let merged = if self.columns < 64 { 256 / self.columns } else { 1 };
        let width = self.columns * merged;
        let (strip, narrow) = (PIECE.min(width), most < 1 << 16);
        let strips = width.div_ceil(strip);
        let rows = self.records.div_ceil(merged);
        let together = (rows * strips / 16).clamp(64, NARROW_ROWS);
        let parts = strips * rows.div_ceil(together);
        for_chunks(parts, 1, self.threads, (together.min(rows) * strip / 8).max(1), |number, _| {
            let (row, at) = (number / strips * together, number % strips * strip);
            let rows = row..rows.min(row + together);
            let strip = strip.min(width - at);
            totals.take(self.add_part(words, rows, width, at, strip, most, narrow).map(|sums| {
                move |counts: &mut [u64]| {
                    for (i, [sum, square]) in sums.into_iter().enumerate() {
                        let column = (at + i) % self.columns;
                        counts[2 * column] += sum;
                        counts[2 * column + 1] += square;
                    }
                }
            }));
        });
    }

    #[allow(clippy::too_many_arguments, reason = "a part of the work, and the shape of the whole")]
    fn add_part<W: Code, S: Source<W>>(
        &self,
        words: &S,
        rows: std::ops::Range<usize>,
        width: usize,
        at: usize,
        strip: usize,
        most: u32,
        narrow: bool,
    ) -> std::result::Result<Vec<[u64; 2]>, Failed> {
        let mut scratch = SourceBuffers::new(strip)?;
        let mut sums = zeros::<[u64; 2]>(strip)?;
        // Sums of codes, and of the low and the high halves of their squares.
        let mut halves = [zeros::<u32>(strip)?, zeros::<u32>(strip)?, zeros::<u32>(strip)?];
        for row in rows {
            let start = row * width + at;
            let piece = words.piece(start, strip.min(words.len().saturating_sub(start)), &mut scratch);
            if largest(self.isa, piece) > most {
                return Err(Failed::Refused);
            }
            let [codes, low, high] = &mut halves;
            vectorised(self.isa, || {
                if narrow {
                    for (((word, code), low), high) in piece.iter().zip(codes).zip(low).zip(high) {
                        // The low half only: nothing else is there, unless somebody changed it meanwhile.
                        let word = word.widen() & 0xffff;
                        let square = word * word;
                        *code += word;
                        *low += square & 0xffff;
                        *high += square >> 16;
                    }
                } else {
                    for (word, [sum, square]) in piece.iter().zip(&mut sums) {
                        let word = u64::from(word.widen());
                        *sum = sum.wrapping_add(word);
                        *square = square.wrapping_add(word * word);
                    }
                }
            });
        }
        if scratch.met_other_bytes() {
            return Err(Failed::Refused);
        }
        let [codes, low, high] = halves;
        for (((sum, code), low), high) in sums.iter_mut().zip(codes).zip(low).zip(high) {
            sum[0] += u64::from(code);
            sum[1] += u64::from(low) + (u64::from(high) << 16);
        }
        Ok(sums)
    }
}
