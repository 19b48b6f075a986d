//! Reports about sampled coordinates: pairs of an index and a code.

use super::histogram::{largest, most};
use super::source::{PIECE, Source, SourceBuffers, with_words};
use super::{Batch, Failed, Totals, table};
use crate::codec::Code;
use crate::error::{Error, Result, argument, reason};

/// Codes with the index of the coordinate that each is about: what is counted is counted for each index.
///
/// The two batches have equally many words. Counting goes from one pair to the next, on one thread: its additions meet in
/// memory.
#[derive(Clone, Copy, Debug)]
pub struct Sampled<'a> {
    indices: Batch<'a>,
    codes: Batch<'a>,
    dimensions: usize,
}

impl<'a> Sampled<'a> {
    /// Codes about `dimensions` coordinates.
    ///
    /// # Errors
    /// Batches of different lengths, or no coordinates or more than 2^32.
    pub fn new(indices: Batch<'a>, codes: Batch<'a>, dimensions: usize) -> Result<Sampled<'a>> {
        most(dimensions)
            .map_err(|_| argument("dimensions", reason!("{dimensions} is not allowed; 1 to 2^32 are")))?;
        if indices.words() != codes.words() {
            let reason = reason!("{} codes for {} indices", codes.words(), indices.words());
            return Err(Error::Shape { name: "reports", reason });
        }
        Ok(Sampled { indices, codes, dimensions })
    }

    /// How often each code was reported about each coordinate: `dimensions` rows of `alphabet` counts.
    ///
    /// # Errors
    /// A code or an index outside its range (by its position), or no memory. Nothing is counted then.
    pub fn histogram(&self, alphabet: usize) -> Result<Vec<u64>> {
        let counts = table(&[self.dimensions, alphabet])?;
        self.each(alphabet, counts, |counts, index, code| counts[index * alphabet + code as usize] += 1)
    }

    /// How many codes were reported about each coordinate, their sum and the sum of their squares: `dimensions` rows of
    /// three.
    ///
    /// # Errors
    /// As [`histogram`](Self::histogram), and so many so large codes that 64 bits might not hold the sum of squares.
    pub fn sums(&self, alphabet: usize) -> Result<Vec<u64>> {
        let largest = u128::from(most(alphabet)?);
        if largest * largest * self.codes.words() as u128 > u128::from(u64::MAX) {
            let reason =
                reason!("{alphabet} is not allowed for so many codes: 64 bits do not hold their squares");
            return Err(argument("alphabet", reason));
        }
        let sums = table(&[self.dimensions, 3])?;
        self.each(alphabet, sums, |sums, index, code| {
            let here = &mut sums[3 * index..][..3];
            here[0] += 1;
            here[1] += u64::from(code);
            here[2] += u64::from(code) * u64::from(code);
        })
    }

    fn each(
        &self,
        alphabet: usize,
        counts: Vec<u64>,
        add: impl Fn(&mut [u64], usize, u32),
    ) -> Result<Vec<u64>> {
        let (last, most) = (most(self.dimensions)?, most(alphabet)?);
        let totals = Totals::new(counts);
        let counted = with_words!(self.indices, indices: Index => {
            with_words!(self.codes, codes: Coded => {
                self.pairs::<Index, _, Coded, _>(&indices, &codes, [last, most], &totals, add)
            })
        });
        totals.take(counted.map(|()| |_: &mut [u64]| ()));
        totals.finish(|| match self.indices.refused(last) {
            Some(error) => rename(error, "indices"),
            None => rename(self.codes.refusal(most), "codes"),
        })
    }

    fn pairs<I: Code, P: Source<I>, C: Code, Q: Source<C>>(
        &self,
        indices: &P,
        codes: &Q,
        [last, most]: [u32; 2],
        totals: &Totals,
        add: impl Fn(&mut [u64], usize, u32),
    ) -> std::result::Result<(), Failed> {
        let (mut of_indices, mut of_codes) = (SourceBuffers::new(PIECE)?, SourceBuffers::new(PIECE)?);
        let mut counts = totals.counts.lock().unwrap_or_else(|broken| broken.into_inner());
        for start in (0..indices.len()).step_by(PIECE) {
            let count = PIECE.min(indices.len() - start);
            let (indices, codes) =
                (indices.piece(start, count, &mut of_indices), codes.piece(start, count, &mut of_codes));
            if largest(self.indices.isa, indices) > last || largest(self.codes.isa, codes) > most {
                return Err(Failed::Refused);
            }
            for (index, code) in indices.iter().zip(codes) {
                add(&mut counts, index.widen() as usize, code.widen());
            }
        }
        if of_indices.met_other_bytes() || of_codes.met_other_bytes() { Err(Failed::Refused) } else { Ok(()) }
    }
}

/// The same error about the argument `name`.
fn rename(error: Error, name: &'static str) -> Error {
    match error {
        Error::Value { index, reason, .. } => Error::Value { name, index, reason },
        other => other,
    }
}
