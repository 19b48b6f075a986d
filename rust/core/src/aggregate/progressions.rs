//! How often each number was in the arithmetic progression of a report.

use super::histogram::largest;
use super::source::{PIECE, Scratch, Source, with_words};
use super::{Batch, Failed, Totals, table};
use crate::codec::Code;
use crate::error::{Result, argument, zeros};
use crate::parallel::for_chunks;

/// Words that one part of the work counts at least: below 2^32, what a counter holds.
const PART: usize = 1 << 16;

impl Batch<'_> {
    /// For how many reports each number below `prime` is one of `y, y - a, y - 2a, …` modulo `prime`, `width` in all, where
    /// the report is the code `(a - 1) prime + y`, with `a` up to `(prime - 1) / 2`. Records have one code.
    ///
    /// # Errors
    /// More than one column, a prime below 3 or past `2^16`, a width of 0 or past the prime, a code that is no report (by
    /// its index), or no memory. Nothing is counted then.
    pub fn progressions(&self, prime: u32, width: u32) -> Result<Vec<u64>> {
        if self.columns != 1 {
            return Err(argument("columns", format!("{} are not allowed; 1 is", self.columns)));
        }
        if !(3..=1 << 16).contains(&prime) {
            return Err(argument("prime", format!("{prime} is not allowed; 3 to 65,536 are")));
        }
        if !(1..=prime).contains(&width) {
            return Err(argument("width", format!("{width} is not allowed; 1 to {prime} are")));
        }
        let outputs = prime as usize * ((prime as usize - 1) / 2);
        // Walking through the progressions takes about as long a number as counting a code and adding it up.
        if self.records.saturating_mul(width as usize) > 2 * outputs {
            return Ok(added_up(&self.histogram(outputs)?, prime as usize, width as usize));
        }
        let most = outputs as u32 - 1;
        let totals = Totals::new(table(&[prime as usize])?);
        with_words!(self, words: Words => self.walk::<Words, _>(&words, (prime, width, most), &totals));
        totals.finish(|| self.refusal(most))
    }

    fn walk<W: Code, S: Source<W>>(&self, words: &S, (prime, width, most): (u32, u32, u32), totals: &Totals) {
        for_chunks(self.records, PART, self.threads, 2 * width as usize, |_, range| {
            let part = || -> std::result::Result<Vec<u32>, Failed> {
                let mut counts = zeros::<u32>(prime as usize)?;
                let mut scratch = Scratch::new(PIECE)?;
                for start in range.clone().step_by(PIECE) {
                    let piece = words.piece(start, PIECE.min(range.end - start), &mut scratch);
                    if largest(self.isa, piece) > most {
                        return Err(Failed::Refused);
                    }
                    for word in piece {
                        let (step, mut place) = (word.widen() / prime + 1, word.widen() % prime);
                        for _ in 0..width {
                            counts[place as usize] += 1;
                            // Below zero it wraps around, and is the larger of both.
                            place =
                                place.wrapping_sub(step).min(place.wrapping_sub(step).wrapping_add(prime));
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
fn added_up(codes: &[u64], prime: usize, width: usize) -> Vec<u64> {
    let mut counts = vec![0; prime];
    for (step, row) in (1..).zip(codes.chunks_exact(prime)) {
        let next = |place: usize| if place + step < prime { place + step } else { place + step - prime };
        // The progression of x = 0 has its first `width` multiples.
        let (mut sum, mut end) = (0, 0);
        for _ in 0..width {
            sum += row[end];
            end = next(end);
        }
        let mut x = 0;
        for _ in 0..prime {
            counts[x] += sum;
            sum = sum + row[end] - row[x];
            (x, end) = (next(x), next(end));
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Reports};

    #[test]
    fn walking_and_adding_up_are_the_definition() {
        for (prime, width) in [(3u32, 1u32), (5, 2), (11, 3), (11, 11), (131, 20)] {
            let outputs = prime * ((prime - 1) / 2);
            for records in [0, 1, 7, 40_000] {
                let codes: Vec<u32> =
                    (0..records).map(|i: u32| i.wrapping_mul(2_654_435_761) % outputs).collect();
                let mut expected = vec![0u64; prime as usize];
                for code in &codes {
                    for j in 0..width {
                        let back = u64::from(code / prime + 1) * u64::from(j) % u64::from(prime);
                        expected[((u64::from(code % prime) + u64::from(prime) - back) % u64::from(prime))
                            as usize] += 1;
                    }
                }
                let bits = u32::BITS - (outputs - 1).leading_zeros();
                let batch = Batch::new(Reports::U32(&codes), codes.len(), 1, bits).unwrap();
                assert_eq!(
                    batch.progressions(prime, width).unwrap(),
                    expected,
                    "{prime}, {width}, {records}"
                );
            }
        }
        let beyond = [3u8];
        let batch = Batch::new(Reports::U8(&beyond), 1, 1, 2).unwrap();
        assert!(batch.progressions(3, 1).is_err());
    }
}
