//! Distributions from counts: expectation maximization for windows that slide over the cells of a report.

use std::sync::Mutex;

use crate::error::{Error, Result, argument, element, reason, zeros};
use crate::parallel::for_chunks;

/// The law of a report that lies in the window of its input with probability `high`, and elsewhere otherwise, evenly in
/// both.
///
/// Of N cells a window has m, and starts at cell 0, 1, .. N - m: an input for each. The table of the law is two numbers on
/// a band, so a product with it is a difference of running sums: an iteration takes O(N) time, not O(N^2).
#[derive(Clone, Copy, Debug)]
pub struct Sliding {
    cells: usize,
    width: usize,
    /// The probability of one cell inside the window, and how much that is above one outside.
    outside: f64,
    excess: f64,
}

/// When to stop, and whether to smooth between iterations.
#[derive(Clone, Copy, Debug)]
pub struct Maximization {
    /// True where each iteration ends with a weighted mean of neighbours, [1/4, 1/2, 1/4]: EMS of Li et al., SIGMOD 2020.
    pub smoothing: bool,
    /// The last iterations are those in which the log-likelihood moves by less than this in each, on average.
    pub gain: f64,
    /// The most iterations.
    pub most: usize,
}

/// The log-likelihood is looked at after so many iterations: its logarithms take longer than they do.
const BETWEEN: usize = 8;

/// Nanoseconds that an iteration takes for each cell, about.
const CELL_NS: usize = 5;

/// Iterations that are taken for granted when threads are counted.
const USUAL: usize = 100;

impl Sliding {
    /// Windows of `width` of `cells` cells.
    ///
    /// # Errors
    /// A width outside 1 to `cells - 1`, or a `high` that is no probability above 0 and below 1.
    pub fn new(cells: usize, width: usize, high: f64) -> Result<Sliding> {
        if !(1..cells).contains(&width) {
            let reason = reason!("{width} is not allowed; with cells={cells}, 1 to {} are", cells.max(2) - 1);
            return Err(argument("width", reason));
        }
        if !(high > 0.0 && high < 1.0) {
            return Err(argument("high", reason!("must be above 0 and below 1, not {high}")));
        }
        let outside = (1.0 - high) / (cells - width) as f64;
        Ok(Sliding { cells, width, outside, excess: high / width as f64 - outside })
    }

    /// Inputs: windows that there are.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.cells - self.width + 1
    }

    /// The distribution of inputs that makes each row of counts likely, row after row.
    ///
    /// # Errors
    /// Counts that are no whole number of rows of at least one report each, or no memory.
    pub fn maximize(&self, counts: &[u64], how: Maximization, threads: Option<usize>) -> Result<Vec<f64>> {
        if counts.is_empty() || !counts.len().is_multiple_of(self.cells) {
            let reason = reason!("{} are not a whole number of rows of {}", counts.len(), self.cells);
            return Err(Error::Shape { name: "counts", reason });
        }
        let rows = counts.len() / self.cells;
        if let Some(row) = counts.chunks_exact(self.cells).position(|row| row.iter().all(|&count| count == 0))
        {
            return Err(element("counts", row * self.cells, "a row counts at least one report"));
        }
        let result = Mutex::new(zeros::<f64>(rows * self.inputs())?);
        let failed = Mutex::new(None);
        for_chunks(rows, 1, threads, USUAL * CELL_NS * self.cells, |row, _| {
            match self.row(&counts[row * self.cells..][..self.cells], how) {
                Ok(masses) => {
                    let mut result = result.lock().unwrap_or_else(|broken| broken.into_inner());
                    result[row * masses.len()..][..masses.len()].copy_from_slice(&masses);
                }
                Err(error) => {
                    *failed.lock().unwrap_or_else(|broken| broken.into_inner()) = Some(error);
                }
            }
        });
        match failed.into_inner().unwrap_or_else(|broken| broken.into_inner()) {
            Some(error) => Err(error),
            None => Ok(result.into_inner().unwrap_or_else(|broken| broken.into_inner())),
        }
    }

    /// One row of counts.
    fn row(&self, counts: &[u64], how: Maximization) -> Result<Vec<f64>> {
        let inputs = self.inputs();
        let total = counts.iter().map(|&count| count as f64).sum::<f64>();
        let mut masses = zeros::<f64>(inputs)?;
        masses.fill(1.0 / inputs as f64);
        let (mut running, mut ratios) =
            (zeros::<f64>(inputs.max(self.cells) + 1)?, zeros::<f64>(self.cells)?);
        let mut before = f64::NEG_INFINITY;
        for iteration in 0..how.most {
            self.expect(&masses, counts, &mut running, &mut ratios);
            if iteration % BETWEEN == 0 {
                let likelihood = likelihood(counts, &ratios);
                if (likelihood - before).abs() < how.gain * BETWEEN as f64 {
                    break;
                }
                before = likelihood;
            }
            self.back(&ratios, &mut running, &mut masses, total);
            if how.smoothing {
                smooth(&mut masses);
            }
            let sum = masses.iter().sum::<f64>();
            masses.iter_mut().for_each(|mass| *mass /= sum);
        }
        Ok(masses)
    }

    /// Writes to `ratios` each count over its probability under `masses`.
    fn expect(&self, masses: &[f64], counts: &[u64], running: &mut [f64], ratios: &mut [f64]) {
        accumulate(masses, running);
        let inputs = masses.len();
        for (cell, (ratio, &count)) in ratios.iter_mut().zip(counts).enumerate() {
            // The windows that hold the cell start at cell - m + 1 to cell.
            let above =
                running[inputs.min(cell + 1)] - running[(cell + 1).saturating_sub(self.width).min(inputs)];
            *ratio = count as f64 / (self.outside + self.excess * above.max(0.0));
        }
    }

    /// Multiplies `masses` by what they share of the counts.
    fn back(&self, ratios: &[f64], running: &mut [f64], masses: &mut [f64], total: f64) {
        accumulate(ratios, running);
        let all = self.outside * running[self.cells];
        for (start, mass) in masses.iter_mut().enumerate() {
            let inside = (running[start + self.width] - running[start]).max(0.0);
            *mass *= (all + self.excess * inside) / total;
        }
    }
}

/// The log-likelihood of counts, but for a constant; `ratios` are counts over probabilities.
fn likelihood(counts: &[u64], ratios: &[f64]) -> f64 {
    let met = counts.iter().zip(ratios).filter(|&(&count, _)| count > 0);
    met.map(|(&count, ratio)| count as f64 * (count as f64 / ratio).ln()).sum()
}

/// Writes the sums of the first 0, 1, .. numbers.
fn accumulate(numbers: &[f64], sums: &mut [f64]) {
    let mut sum = 0.0;
    sums[0] = 0.0;
    for (number, position) in numbers.iter().zip(&mut sums[1..]) {
        sum += number;
        *position = sum;
    }
}

/// Replaces each number by a mean of it and its neighbours, of weights 1, 2, 1; at an end, 2 and 1.
fn smooth(numbers: &mut [f64]) {
    let [first, .., last] = *numbers else { return };
    let count = numbers.len();
    let (low, high) = ((2.0 * first + numbers[1]) / 3.0, (2.0 * last + numbers[count - 2]) / 3.0);
    let mut before = first;
    for position in 1..count - 1 {
        let here = numbers[position];
        numbers[position] = (before + 2.0 * here + numbers[position + 1]) / 4.0;
        before = here;
    }
    (numbers[0], numbers[count - 1]) = (low, high);
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOW: Maximization = Maximization { smoothing: false, gain: 0.0, most: 40 };

    /// The same with the whole table, in O(N^2).
    fn by_table(law: &Sliding, counts: &[u64], how: Maximization) -> Vec<f64> {
        let inputs = law.inputs();
        let chance = |input: usize, cell: usize| {
            law.outside + if (input..input + law.width).contains(&cell) { law.excess } else { 0.0 }
        };
        let total: f64 = counts.iter().map(|&count| count as f64).sum();
        let mut masses = vec![1.0 / inputs as f64; inputs];
        for _ in 0..how.most {
            let ratios: Vec<f64> = (0..law.cells)
                .map(|cell| {
                    counts[cell] as f64 / (0..inputs).map(|i| masses[i] * chance(i, cell)).sum::<f64>()
                })
                .collect();
            for (input, mass) in masses.iter_mut().enumerate() {
                *mass *= (0..law.cells).map(|cell| chance(input, cell) * ratios[cell]).sum::<f64>() / total;
            }
            if how.smoothing {
                let old = masses.clone();
                for (position, mass) in masses.iter_mut().enumerate() {
                    let weights =
                        [(position.checked_sub(1), 1.0), (Some(position), 2.0), (Some(position + 1), 1.0)];
                    let met = weights.iter().filter_map(|&(at, weight)| Some((*old.get(at?)?, weight)));
                    let (sum, weight) = met.fold((0.0, 0.0), |(s, w), (each, by)| (s + by * each, w + by));
                    *mass = sum / weight;
                }
                let sum: f64 = masses.iter().sum();
                masses.iter_mut().for_each(|mass| *mass /= sum);
            }
        }
        masses
    }

    #[test]
    fn running_sums_give_what_the_table_gives() {
        for (cells, width) in [(2, 1), (9, 1), (9, 4), (9, 8), (40, 13), (40, 33)] {
            let law = Sliding::new(cells, width, 0.7).unwrap();
            let counts: Vec<u64> = (0..cells as u64).map(|cell| cell * 7919 % 23).collect();
            for smoothing in [false, true] {
                let how = Maximization { smoothing, ..HOW };
                let result = law.maximize(&counts, how, Some(1)).unwrap();
                for (one, other) in result.iter().zip(by_table(&law, &counts, how)) {
                    assert!((one - other).abs() < 1e-9, "{cells} {width}: {one} {other}");
                }
            }
        }
    }

    #[test]
    fn expected_counts_give_the_distribution_back() {
        let law = Sliding::new(24, 5, 0.8).unwrap();
        let truth: Vec<f64> = (0..law.inputs()).map(|input| (1 + input % 3) as f64 / 39.0).collect();
        let chances = (0..law.cells).map(|cell| {
            let above: f64 =
                (0..law.inputs()).filter(|i| (*i..i + 5).contains(&cell)).map(|i| truth[i]).sum();
            law.outside + law.excess * above
        });
        let counts: Vec<u64> = chances.map(|chance| (chance * 1e15).round() as u64).collect();
        let how = Maximization { smoothing: false, gain: 0.0, most: 20_000 };
        let result = law.maximize(&counts, how, None).unwrap();
        assert!(
            result.iter().zip(&truth).all(|(one, other)| (one - other).abs() < 1e-3),
            "{result:?} {truth:?}"
        );
    }

    #[test]
    fn rows_are_alike_on_any_number_of_threads() {
        let law = Sliding::new(300, 40, 0.6).unwrap();
        let counts: Vec<u64> = (0..3000u64).map(|cell| cell * 7919 % 101).collect();
        let how = Maximization { smoothing: true, gain: 1e-3, most: 1000 };
        let one = law.maximize(&counts, how, Some(1)).unwrap();
        assert_eq!(one, law.maximize(&counts, how, Some(4)).unwrap());
        assert_eq!(one[..law.inputs()], law.maximize(&counts[..300], how, None).unwrap());
    }

    #[test]
    fn what_is_no_table_of_counts_is_refused() {
        let law = Sliding::new(5, 2, 0.5).unwrap();
        for counts in [&[][..], &[1; 4], &[1, 1, 1, 1, 1, 0, 0, 0, 0, 0]] {
            assert!(law.maximize(counts, HOW, None).is_err());
        }
        assert!(Sliding::new(5, 5, 0.5).is_err() && Sliding::new(5, 0, 0.5).is_err());
        assert!(Sliding::new(5, 1, 1.0).is_err() && Sliding::new(5, 1, f64::NAN).is_err());
    }
}
