//! How often each number was in the arithmetic progression of a report.

use super::histogram::largest;
use super::source::{PIECE, Source, SourceBuffers, with_words};
use super::{Batch, Failed, Totals, table};
use crate::codec::Code;
use crate::error::{Result, argument, reason, zeros};
use crate::parallel::for_chunks;

/// Words that one part of the work counts at least: below 2^32, what a counter holds.
const PART: usize = 1 << 16;

/// Codes that are counted one by one at most, in 256 MB.
const COUNTED: usize = 1 << 25;

impl Batch<'_> {
    /// For how many reports each number below `modulus` is one of `y, y - a, y - 2a, …`, `width` in all, where the report is
    /// the code `(a - 1) modulus + y`, with `a` up to `(modulus - 1) / 2`. Records have one code.
    ///
    /// # Errors
    /// More than one column, a modulus below 3 or past `2^16`, a width of 0 or past the modulus, a code that is no report (by
    /// its index), or no memory. Nothing is counted then.
    pub fn progressions(&self, modulus: u32, width: u32) -> Result<Vec<u64>> {
        if self.columns != 1 {
            return Err(argument("columns", reason!("{} are not allowed; 1 is", self.columns)));
        }
        if !(3..=1 << 16).contains(&modulus) {
            return Err(argument("modulus", reason!("{modulus} is not allowed; 3 to 65,536 are")));
        }
        if !(1..=modulus).contains(&width) {
            return Err(argument("width", reason!("{width} is not allowed; 1 to {modulus} are")));
        }
        let outputs = modulus as usize * ((modulus as usize - 1) / 2);
        // Walking through the progressions takes about as long a number as counting a code and adding it up.
        if outputs <= COUNTED && self.records.saturating_mul(width as usize) > 2 * outputs {
            return Ok(added_up(&self.histogram(outputs)?, modulus as usize, width as usize));
        }
        let most = outputs as u32 - 1;
        let totals = Totals::new(table(&[modulus as usize])?);
        with_words!(self, words: Words => self.walk::<Words, _>(&words, (modulus, width, most), &totals));
        totals.finish(|| self.refusal(most))
    }

    fn walk<W: Code, S: Source<W>>(
        &self,
        words: &S,
        (modulus, width, most): (u32, u32, u32),
        totals: &Totals,
    ) {
        for_chunks(self.records, PART, self.threads, 2 * width as usize, |_, range| {
            let part = || -> std::result::Result<Vec<u32>, Failed> {
                let mut counts = zeros::<u32>(modulus as usize)?;
                let mut scratch = SourceBuffers::new(PIECE)?;
                for start in range.clone().step_by(PIECE) {
                    let piece = words.piece(start, PIECE.min(range.end - start), &mut scratch);
                    if largest(self.isa, piece) > most {
                        return Err(Failed::Refused);
                    }
                    for word in piece {
                        let (step, mut position) = (word.widen() / modulus + 1, word.widen() % modulus);
                        for _ in 0..width {
                            counts[position as usize] += 1;
                            // Below zero it wraps around, and is the larger of both.
                            position = position
                                .wrapping_sub(step)
                                .min(position.wrapping_sub(step).wrapping_add(modulus));
                        }
                    }
                }
                if scratch.met_other_bytes() { Err(Failed::Refused) } else { Ok(counts) }
            };
            totals.take(part().map(|part| {
                move |counts: &mut [u64]| {
                    counts.iter_mut().zip(part).for_each(|(count, more)| *count += u64::from(more));
                }
            }));
        });
    }
}

/// The same from the counts of the codes: of each step, sums over `width` neighbours, in the order of its multiples.
fn added_up(codes: &[u64], modulus: usize, width: usize) -> Vec<u64> {
    let mut counts = vec![0; modulus];
    for (step, row) in (1..).zip(codes.chunks_exact(modulus)) {
        let next = |position: usize| {
            if position + step < modulus { position + step } else { position + step - modulus }
        };
        // The multiples of a step that shares a divisor come back to 0 too early; from 1 on there are others.
        let circles = common_divisor(step, modulus);
        for first in 0..circles {
            let (mut sum, mut end) = (0, first);
            for _ in 0..width {
                sum += row[end];
                end = next(end);
            }
            let mut x = first;
            for _ in 0..modulus / circles {
                counts[x] += sum;
                sum = sum + row[end] - row[x];
                (x, end) = (next(x), next(end));
            }
        }
    }
    counts
}

/// The greatest common divisor.
fn common_divisor(mut a: usize, mut b: usize) -> usize {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Reports};

    #[test]
    fn walking_and_adding_up_are_the_definition() {
        for (modulus, width) in [(3u32, 1u32), (5, 2), (9, 3), (11, 3), (11, 11), (35, 5), (131, 20)] {
            let outputs = modulus * ((modulus - 1) / 2);
            for records in [0, 1, 7, 40_000] {
                let codes: Vec<u32> =
                    (0..records).map(|i: u32| i.wrapping_mul(2_654_435_761) % outputs).collect();
                let mut expected = vec![0u64; modulus as usize];
                for code in &codes {
                    for j in 0..width {
                        let back = u64::from(code / modulus + 1) * u64::from(j) % u64::from(modulus);
                        expected[((u64::from(code % modulus) + u64::from(modulus) - back)
                            % u64::from(modulus)) as usize] += 1;
                    }
                }
                let bits = u32::BITS - (outputs - 1).leading_zeros();
                let batch = Batch::new(Reports::U32(&codes), codes.len(), 1, bits).unwrap();
                assert_eq!(
                    batch.progressions(modulus, width).unwrap(),
                    expected,
                    "{modulus}, {width}, {records}"
                );
            }
        }
        let beyond = [3u8];
        let batch = Batch::new(Reports::U8(&beyond), 1, 1, 2).unwrap();
        assert!(batch.progressions(3, 1).is_err());
    }
}
