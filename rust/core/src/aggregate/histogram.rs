//! How often each code of an alphabet was reported.

use super::source::{PIECE, Source, SourceBuffers, with_words};
use super::{Batch, Failed, Reports, Totals, table};
use crate::codec::Code;
use crate::error::{Error, Result, argument, reason, zeros};
use crate::isa::{Isa, vectorised};
use crate::parallel::for_chunks;

/// Counters that a thread keeps at most, of 4 bytes: those of a part of the columns, if the alphabet is large.
const MOST_COUNTERS: usize = 1 << 16;
/// Words that one part of the work counts at least: below 2^32, what a counter holds.
const PART: usize = 1 << 20;

impl Batch<'_> {
    /// How often each code from 0 to `alphabet - 1` was reported in each column: `columns` rows of `alphabet` counts.
    ///
    /// # Errors
    /// An alphabet of none or more than 2^32, a code outside it (by its index), a byte that is neither 0 nor 1, or no
    /// memory. Nothing is counted then.
    pub fn histogram(&self, alphabet: usize) -> Result<Vec<u64>> {
        let most = most(alphabet)?;
        if let Some(ones) = self.ones_of_two(most) {
            let pair = |ones| [self.records as u64 - ones, ones];
            return Ok(ones?.into_iter().flat_map(pair).collect());
        }
        let totals = Totals::new(table(&[self.columns, alphabet])?);
        with_words!(self, words: Words => self.count_codes::<Words, _>(&words, alphabet, most, &totals));
        totals.finish(|| self.refusal(most))
    }

    /// The number of ones in each column where codes are bits, which are counted by the register; `None` elsewhere.
    pub(super) fn ones_of_two(&self, most: u32) -> Option<Result<Vec<u64>>> {
        let reports = match self.reports {
            Reports::U8(codes) if most == 1 => Reports::Bits(codes),
            Reports::Bits(_) | Reports::Packed(_) if most == 1 && self.bits == 1 => self.reports,
            _ => return None,
        };
        let ones = Batch { reports, bits: 1, ..*self }.ones();
        // They are codes, and refused as such.
        Some(ones.map_err(|error| if let Error::Value { .. } = error { self.refusal(most) } else { error }))
    }

    fn count_codes<W: Code, S: Source<W>>(&self, words: &S, alphabet: usize, most: u32, totals: &Totals) {
        // Columns whose counters fit, but at least one: all of them, mostly.
        let together = (MOST_COUNTERS / alphabet).clamp(1, self.columns);
        let strips = self.columns.div_ceil(together);
        let rows = (PART / self.columns).max(1);
        let parts = strips * self.records.div_ceil(rows);
        let work = rows.min(self.records) * together;
        for_chunks(parts, 1, self.threads, work, |number, _| {
            let (row, strip) = (number / strips * rows, number % strips * together);
            let rows = row..self.records.min(row + rows);
            let columns = together.min(self.columns - strip);
            totals.take(self.part(words, rows, strip, columns, alphabet, most).map(|part| {
                move |counts: &mut [u64]| {
                    let counts = &mut counts[strip * alphabet..][..columns * alphabet];
                    for (i, part) in part.into_iter().enumerate() {
                        counts[i % (columns * alphabet)] += u64::from(part);
                    }
                }
            }));
        });
    }

    /// The counts of some rows and some columns. Of short ones there are several tables, whose counts add: neighbours
    /// that are alike would wait for each other's addition.
    fn part<W: Code, S: Source<W>>(
        &self,
        words: &S,
        rows: std::ops::Range<usize>,
        first: usize,
        columns: usize,
        alphabet: usize,
        most: u32,
    ) -> std::result::Result<Vec<u32>, Failed> {
        let size = columns * alphabet;
        let mut counts = zeros::<u32>(if size <= SHORT { TABLES * size } else { size })?;
        let mut scratch = SourceBuffers::new(PIECE)?;
        let mut count = |start: usize, count: usize, column: usize| {
            let piece = words.piece(start, count, &mut scratch);
            if largest(self.isa, piece) > most {
                return Err(Failed::Refused);
            }
            tally(piece, column, columns, alphabet, size, &mut counts);
            Ok(())
        };
        if columns == self.columns {
            // Whole rows are one run of words.
            let (start, end) = (rows.start * columns, rows.end * columns);
            for at in (start..end).step_by(PIECE) {
                count(at, PIECE.min(end - at), at % columns)?;
            }
        } else {
            for row in rows {
                for at in (0..columns).step_by(PIECE) {
                    count(row * self.columns + first + at, PIECE.min(columns - at), at)?;
                }
            }
        }
        if scratch.met_other_bytes() { Err(Failed::Refused) } else { Ok(counts) }
    }
}

/// Tables of up to this many counters are kept fourfold.
const SHORT: usize = 1 << 12;
const TABLES: usize = 4;

/// Counts a piece that begins at `column`.
#[inline]
fn tally<W: Code>(
    piece: &[W],
    column: usize,
    columns: usize,
    alphabet: usize,
    size: usize,
    counts: &mut [u32],
) {
    if columns == 1 && counts.len() == TABLES * size {
        let (fours, rest) = piece.as_chunks::<TABLES>();
        let [a, b, c, d] = {
            let (ab, cd) = counts.split_at_mut(2 * size);
            let (a, b) = ab.split_at_mut(size);
            let (c, d) = cd.split_at_mut(size);
            [a, b, c, d]
        };
        for &[w, x, y, z] in fours {
            // In range: the largest of the piece was looked at; if it has changed since, this panics.
            a[w.widen() as usize] += 1;
            b[x.widen() as usize] += 1;
            c[y.widen() as usize] += 1;
            d[z.widen() as usize] += 1;
        }
        for w in rest {
            a[w.widen() as usize] += 1;
        }
        return;
    }
    if columns == 1 {
        for word in piece {
            counts[word.widen() as usize] += 1;
        }
        return;
    }
    let mut base = column * alphabet;
    for word in piece {
        counts[base + word.widen() as usize] += 1;
        base += alphabet;
        if base == columns * alphabet {
            base = 0;
        }
    }
}

/// The largest code of an alphabet.
pub(super) fn most(alphabet: usize) -> Result<u32> {
    match alphabet.checked_sub(1).map(u32::try_from) {
        Some(Ok(most)) => Ok(most),
        _ => Err(argument("alphabet", reason!("{alphabet} is not allowed; 1 to 2^32 are"))),
    }
}

/// The largest of some words.
#[inline]
pub(super) fn largest<W: Code>(isa: Isa, piece: &[W]) -> u32 {
    vectorised(isa, || piece.iter().fold(0, |largest, word| word.widen().max(largest)))
}
