//! Public hash functions of words: a word becomes one of a few cells, and reports of cells support words again.
//!
//! Nothing here makes anything private: a function is public and drawn without looking, and its cell is what a channel
//! behind it randomizes.

use std::sync::Mutex;

use crate::error::{Error, Result, argument, reason, zeros};
use crate::isa::{Isa, compiled};
use crate::parallel::for_chunks;
use crate::vector::{Kernel, Vector};

/// Hash functions from 64-bit words to `cells` cells, one for each 32-bit seed.
///
/// A word of two halves hashes to the upper 32 bits of `a * low + b * high + c`, modulo 2^64, which then choose a cell by
/// the upper half of their product with `cells`. With a, b and c uniform, two words hash independently and uniformly to
/// 32 bits (multiply-shift of vectors: Dietzfelbinger et al. 1997; Thorup, "High speed hashing for integers and strings",
/// Section 3), so a cell has its chance within 2^-32. The three numbers are SplitMix64's of the seed.
#[derive(Clone, Copy, Debug)]
pub struct Hashing {
    cells: u32,
}

/// One function of the family.
#[derive(Clone, Copy)]
struct Function {
    a: u64,
    b: u64,
    c: u64,
}

impl Function {
    #[inline(always)]
    fn of(seed: u32) -> Function {
        // Steps of SplitMix64 (Steele, Lea and Flood 2014), whose state begins at a position of each seed's own.
        let draw = |step: u64| {
            let state = (u64::from(seed) * 3 + step).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            state ^ (state >> 31)
        };
        Function { a: draw(1), b: draw(2), c: draw(3) }
    }

    #[inline(always)]
    fn cell(&self, low: u64, high: u64, cells: u64) -> u64 {
        let sum = self.a.wrapping_mul(low).wrapping_add(self.b.wrapping_mul(high)).wrapping_add(self.c);
        ((sum >> 32) * cells) >> 32
    }
}

/// The lower and the upper half of a word.
fn halves(word: u64) -> (u64, u64) {
    (word & 0xFFFF_FFFF, word >> 32)
}

/// Words that are looked at together: they and their counts stay in the innermost cache.
const BLOCK: usize = 512;

/// Reports of a chunk.
const REPORTS: usize = 4096;

impl Hashing {
    /// Functions to `cells` cells.
    ///
    /// # Errors
    /// Fewer than 2 cells, or more than 2^16.
    pub fn new(cells: u32) -> Result<Hashing> {
        if !(2..=1 << 16).contains(&cells) {
            return Err(argument("cells", reason!("{cells} are not allowed; 2 to 65536 are")));
        }
        Ok(Hashing { cells })
    }

    /// The cell of each word under the function of its own seed.
    ///
    /// # Errors
    /// Other than one seed for each word, or no memory.
    pub fn cells(&self, seeds: &[u32], words: &[u64]) -> Result<Vec<u32>> {
        same("seeds", seeds.len(), words.len(), "words")?;
        let mut cells = zeros::<u32>(words.len())?;
        for ((cell, &seed), &word) in cells.iter_mut().zip(seeds).zip(words) {
            let (low, high) = halves(word);
            *cell = Function::of(seed).cell(low, high, u64::from(self.cells)) as u32;
        }
        Ok(cells)
    }

    /// How many reports support each word: those whose cell is the word's under their seed's function.
    ///
    /// # Errors
    /// Other than one cell for each seed, or no memory.
    pub fn supports(
        &self,
        seeds: &[u32],
        reports: &[u32],
        words: &[u64],
        threads: Option<usize>,
    ) -> Result<Vec<u64>> {
        self.supports_on(Isa::current()?, seeds, reports, words, threads)
    }

    /// [`supports`](Self::supports) with the kernel compiled for `isa`: the counts do not depend on it.
    ///
    /// # Errors
    /// As there.
    pub fn supports_on(
        &self,
        isa: Isa,
        seeds: &[u32],
        reports: &[u32],
        words: &[u64],
        threads: Option<usize>,
    ) -> Result<Vec<u64>> {
        same("seeds", seeds.len(), reports.len(), "reports")?;
        let (mut low, mut high) = (zeros::<u64>(words.len())?, zeros::<u64>(words.len())?);
        for ((low, high), &word) in low.iter_mut().zip(&mut high).zip(words) {
            (*low, *high) = halves(word);
        }
        let counts = Mutex::new(zeros::<u64>(words.len())?);
        // About half a nanosecond for a word and a report.
        for_chunks(seeds.len(), REPORTS, threads, 1 + words.len() / 2, |_, range| {
            for start in (0..words.len()).step_by(BLOCK) {
                let those = start..words.len().min(start + BLOCK);
                let mut result = [0u32; BLOCK];
                compiled(
                    isa,
                    Supports {
                        seeds: &seeds[range.clone()],
                        reports: &reports[range.clone()],
                        low: &low[those.clone()],
                        high: &high[those.clone()],
                        cells: u64::from(self.cells),
                        result: &mut result[..those.len()],
                    },
                );
                let mut counts = counts.lock().unwrap_or_else(|broken| broken.into_inner());
                counts[those].iter_mut().zip(result).for_each(|(count, more)| *count += u64::from(more));
            }
        });
        Ok(counts.into_inner().unwrap_or_else(|broken| broken.into_inner()))
    }
}

/// The inner loop: a block of words against a chunk of reports.
struct Supports<'a> {
    seeds: &'a [u32],
    reports: &'a [u32],
    low: &'a [u64],
    high: &'a [u64],
    cells: u64,
    result: &'a mut [u32],
}

impl Kernel for Supports<'_> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(self, _: V) {
        for (&seed, &report) in self.seeds.iter().zip(self.reports) {
            let function = Function::of(seed);
            for ((&low, &high), count) in self.low.iter().zip(self.high).zip(&mut *self.result) {
                *count += u32::from(function.cell(low, high, self.cells) == u64::from(report));
            }
        }
    }
}

fn same(name: &'static str, given: usize, needed: usize, of: &str) -> Result<()> {
    if given == needed {
        return Ok(());
    }
    Err(Error::Shape { name, reason: reason!("{given} for {needed} {of}; one for each is needed") })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that differ in few bits, as prefixes do.
    fn words(count: u64) -> Vec<u64> {
        (0..count).map(|word| word | (word % 7) << 45).collect()
    }

    #[test]
    fn a_report_supports_the_words_of_its_cell() {
        let hashing = Hashing::new(5).unwrap();
        let (seeds, reports, words) = ([7, 1 << 31, 0], [3, 0, 4], words(600));
        let expected: Vec<u64> = words
            .iter()
            .map(|&word| {
                let cells = hashing.cells(&seeds, &[word; 3]).unwrap();
                cells.iter().zip(reports).filter(|&(&cell, report)| cell == report).count() as u64
            })
            .collect();
        assert_eq!(hashing.supports(&seeds, &reports, &words, None).unwrap(), expected);
        assert!(expected.iter().sum::<u64>() > 0);
    }

    #[test]
    fn every_instruction_set_and_any_threads_count_alike() {
        let hashing = Hashing::new(55).unwrap();
        let seeds: Vec<u32> = (0..9000u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let reports: Vec<u32> = (0..9000).map(|i| i % 55).collect();
        let words = words(700);
        let counts = hashing.supports_on(Isa::Scalar, &seeds, &reports, &words, Some(1)).unwrap();
        for &isa in Isa::available() {
            for threads in [1, 3] {
                let same = hashing.supports_on(isa, &seeds, &reports, &words, Some(threads)).unwrap();
                assert_eq!(counts, same, "{isa}");
            }
        }
    }

    /// Over seeds, the cells of two words that differ in one bit are uniform and independent: chi-square over 81 pairs of
    /// cells, n = 200,000, 80 degrees of freedom; above 150 with a chance of 3e-6.
    #[test]
    fn two_words_hash_independently() {
        let hashing = Hashing::new(9).unwrap();
        let n = 200_000u32;
        let seeds: Vec<u32> = (0..n).collect();
        for (one, other) in [(0, 1), (5, 5 | 1 << 63), (1 << 32, 0), (u64::MAX, u64::MAX ^ 4)] {
            let cells = |word| hashing.cells(&seeds, &vec![word; n as usize]).unwrap();
            let mut counts = [0f64; 81];
            cells(one).iter().zip(cells(other)).for_each(|(a, b)| counts[(a * 9 + b) as usize] += 1.0);
            let expected = f64::from(n) / 81.0;
            let square: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
            assert!(square < 150.0, "{one} {other}: {square}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let hashing = Hashing::new(2).unwrap();
        assert!(Hashing::new(1).is_err() && Hashing::new((1 << 16) + 1).is_err());
        assert!(hashing.cells(&[1], &[]).is_err() && hashing.supports(&[1], &[], &[1], None).is_err());
        assert_eq!(hashing.supports(&[], &[], &[1, 2], None).unwrap(), [0, 0]);
    }
}
