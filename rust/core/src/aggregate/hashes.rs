//! For how many reports each input has the reported value of the hash function of the report.

use super::{Failed, Totals, table};
use crate::draws::scaled;
use crate::error::{Error, Result, argument, element, reason, zeros};
use crate::isa::{Isa, compiled};
use crate::parallel::for_chunks;
use crate::vector::{Kernel, Vector};

/// Reports that one part of the work counts at least.
const PART: usize = 1 << 13;

/// Inputs that are looked at side by side, and those whose counters stay in the first-level cache.
const LANES: usize = 16;
const TILE: usize = 64 * LANES;

/// Hash functions x -> floor(values ((a x + b) mod prime) / prime), of which each report names one: how many values they have,
/// and the prime.
///
/// Over uniform `a` from 1 and `b` from 0 to below the prime, any two inputs have as many pairs of different remainders as
/// there are: that is all that estimates rest on.
#[derive(Clone, Copy, Debug)]
pub struct Hashes {
    prime: u32,
    values: u32,
}

impl Hashes {
    /// Remainders modulo `prime`, 3 to `2^31 - 1`, that are cut into `values` intervals, 2 or more, up to the prime.
    ///
    /// # Errors
    /// A number outside its range.
    pub fn new(prime: u32, values: u32) -> Result<Hashes> {
        if !(3..1 << 31).contains(&prime) {
            return Err(argument("prime", reason!("{prime} is not allowed; 3 to 2^31 - 1 are")));
        }
        if !(2..=prime).contains(&values) {
            return Err(argument("values", reason!("{values} is not allowed; 2 to {prime} are")));
        }
        Ok(Hashes { prime, values })
    }

    /// The function of two draws of 64 bits: `a` and `b`, whose chances differ from uniform by less than `prime / 2^64` of
    /// their value.
    #[must_use]
    pub const fn function(&self, draws: [u64; 2]) -> [u32; 2] {
        [1 + scaled(draws[0], self.prime - 1), scaled(draws[1], self.prime)]
    }

    /// The value that a function has at `input`.
    #[must_use]
    pub fn value(&self, [a, b]: [u32; 2], input: u32) -> u32 {
        // Factors below 2^32, and a remainder below 2^31: neither product overflows.
        let product = u64::from(a) * u64::from(input) + u64::from(b);
        let remainder = product % u64::from(self.prime);
        (remainder * u64::from(self.values) / u64::from(self.prime)) as u32
    }

    /// For how many `reports`, triples of `a`, `b` and a value, each input below `inputs` has that value.
    ///
    /// # Errors
    /// [`Error::Argument`] for more inputs than the prime, and no threads; [`Error::Shape`] for no whole number of triples;
    /// [`Error::Value`] for one outside its range (by its index), and [`Error::Memory`]. Nothing is counted then.
    pub fn count(&self, reports: &[u32], inputs: usize, threads: Option<usize>) -> Result<Vec<u64>> {
        let isa = Isa::current()?;
        if inputs > self.prime as usize {
            return Err(argument("inputs", reason!("{inputs} are not allowed; up to {} are", self.prime)));
        }
        if threads == Some(0) {
            return Err(argument("threads", "0 is not allowed; at least 1 is".into()));
        }
        let (triples, rest) = reports.as_chunks::<3>();
        if !rest.is_empty() {
            let reason = reason!("{} elements are not a whole number of triples", reports.len());
            return Err(Error::Shape { name: "reports", reason });
        }
        let totals = Totals::new(table(&[inputs])?);
        let nanoseconds = inputs / 4;
        for_chunks(triples.len(), PART, threads, nanoseconds, |_, range| {
            totals.take(self.part(isa, &triples[range], inputs).map(|part| {
                move |counts: &mut [u64]| {
                    counts.iter_mut().zip(part).for_each(|(count, more)| *count += u64::from(more));
                }
            }));
        });
        totals.finish(|| self.refusal(reports))
    }

    fn is_refused(&self, [a, b, value]: [u32; 3]) -> [bool; 3] {
        [!(1..self.prime).contains(&a), b >= self.prime, value >= self.values]
    }

    fn refusal(&self, reports: &[u32]) -> Error {
        let first = reports.as_chunks::<3>().0.iter().enumerate().find_map(|(at, &triple)| {
            self.is_refused(triple)
                .iter()
                .position(|&refused| refused)
                .map(|position| (3 * at + position, position))
        });
        match first {
            Some((index, position)) => {
                let (low, end) = [(1, self.prime), (0, self.prime), (0, self.values)][position];
                element("reports", index, reason!("integers from {low} to {} are", end - 1))
            }
            None => argument("reports", "must not be written to while they are counted".into()),
        }
    }

    fn part(&self, isa: Isa, triples: &[[u32; 3]], inputs: usize) -> std::result::Result<Vec<u32>, Failed> {
        let mut counts = zeros::<u32>(inputs.next_multiple_of(LANES))?;
        for (tile, first) in counts.chunks_mut(TILE).zip((0u64..).step_by(TILE)) {
            for &triple in triples {
                if self.is_refused(triple) != [false; 3] {
                    return Err(Failed::Refused);
                }
                let [a, b, value] = triple.map(u64::from);
                let prime = u64::from(self.prime);
                // The remainders with this value.
                let [low, end] =
                    [value, value + 1].map(|value| (value * prime).div_ceil(self.values.into()) as u32);
                let start = ((a * first + b) % prime) as u32;
                let (step, prime, count) = (a as u32, self.prime, end - low);
                compiled(isa, CountRemainders { counts: tile, start, step, prime, low, count });
            }
        }
        counts.truncate(inputs);
        Ok(counts)
    }
}

/// Adds 1 to each counter whose remainder, of `start, start + step, …` modulo the prime, is one of `count` from `low` on.
struct CountRemainders<'a> {
    counts: &'a mut [u32],
    start: u32,
    step: u32,
    prime: u32,
    low: u32,
    count: u32,
}

impl Kernel for CountRemainders<'_> {
    type Answer = ();
    const ALIGNED: bool = false;

    #[inline(always)]
    fn run<V: Vector>(self, _: V) {
        let CountRemainders { counts, start, step, prime, low, count } = self;
        // Below twice the prime, so below 2^32; where it was below the prime, the difference wraps around and is the larger.
        let plus = |a: u32, b: u32| (a + b).min((a + b).wrapping_sub(prime));
        let mut lanes = [start; LANES];
        let mut stride = step;
        for doubled in [1, 2, 4, 8] {
            for (lane, rest) in lanes.iter_mut().enumerate() {
                *rest = plus(*rest, if lane & doubled == 0 { 0 } else { stride });
            }
            stride = plus(stride, stride);
        }
        for counts in counts.as_chunks_mut::<LANES>().0 {
            for (hits, rest) in counts.iter_mut().zip(&mut lanes) {
                *hits += u32::from(rest.wrapping_sub(low) < count);
                *rest = plus(*rest, stride);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_the_definition() {
        for (prime, values, inputs) in
            [(3u32, 2u32, 2usize), (11, 3, 11), (1031, 8, 1030), (2_147_483_647, 1000, 3000)]
        {
            let hashes = Hashes::new(prime, values).unwrap();
            let draw = |i: u32, below: u32| i.wrapping_mul(2_654_435_761) % below;
            let reports: Vec<u32> = (0..300)
                .flat_map(|i| [1 + draw(i, prime - 1), draw(i + 7, prime), draw(i + 13, values)])
                .collect();
            let mut expected = vec![0u64; inputs];
            for &[a, b, value] in reports.as_chunks::<3>().0 {
                for (x, count) in expected.iter_mut().enumerate() {
                    let rest = (u128::from(a) * x as u128 + u128::from(b)) % u128::from(prime);
                    *count += u64::from(rest * u128::from(values) / u128::from(prime) == u128::from(value));
                }
            }
            for threads in [Some(1), Some(3), None] {
                assert_eq!(hashes.count(&reports, inputs, threads).unwrap(), expected, "{prime}, {values}");
            }
        }
    }

    #[test]
    fn what_is_no_report_is_refused_by_its_place() {
        let hashes = Hashes::new(11, 3).unwrap();
        for (reports, position) in [
            ([1, 0, 2, 0, 0, 0], 3),
            ([1, 0, 2, 1, 11, 0], 4),
            ([1, 0, 2, 10, 10, 3], 5),
            ([11, 0, 0, 1, 1, 1], 0),
        ] {
            let refused = hashes.count(&reports, 5, None).unwrap_err();
            assert!(matches!(refused, Error::Value { index, .. } if index == position), "{refused}");
        }
        assert!(hashes.count(&[1, 2], 5, None).is_err());
        assert!(hashes.count(&[], 12, None).is_err());
        assert!(Hashes::new(2, 2).is_err() && Hashes::new(11, 12).is_err() && Hashes::new(11, 1).is_err());
    }
}
