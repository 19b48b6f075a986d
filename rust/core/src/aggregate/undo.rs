//! Reports about rotated vectors: the rotations are undone, for each report or for sums of reports.

use std::ops::Range;
use std::sync::Mutex;

use crate::codec::{Rotated, RotationBuffers, Undone};
use crate::error::{Error, Result, argument, element, reason, zeros};
use crate::isa::{Isa, vectorised};
use crate::parallel::{Parts, for_chunks};

/// Parts of a batch that are summed apart, in an order that does not depend on the threads.
const PARTS: usize = 16;

/// As few reports as get no part of their own.
const FEW: usize = 64;

/// Numbers that all parts together hold at most.
const HELD: usize = 1 << 22;

/// Reports of a task that writes a vector each.
const TASK: usize = 64;

/// Undoes the rotations of reports `2 j + s`: coordinate `j` of the rotated vector, with a minus where `s` is 0.
///
/// A decoded report is a row of its rotation, of the length 1, as a vector of the ball: the lift is dropped, and outside of
/// the rotation's block it is 0. With Hadamard rotations the row is integers over their stretch, so sums of rows are exact,
/// and the same in any order, up to about 2^53.
pub struct Undo<'a> {
    rotated: Rotated<'a>,
    codes: &'a [u32],
    isa: Isa,
}

impl<'a> Undo<'a> {
    /// The reports of rotated vectors.
    ///
    /// # Errors
    /// Other than one number for each report, a report of no coordinate (by its position); [`Error::Isa`] as
    /// [`Isa::current`].
    pub fn new(rotated: Rotated<'a>, codes: &'a [u32]) -> Result<Undo<'a>> {
        Undo::on(Isa::current()?, rotated, codes)
    }

    /// [`new`](Self::new) on the kernels of one instruction set: the answers do not depend on it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn on(isa: Isa, rotated: Rotated<'a>, codes: &'a [u32]) -> Result<Undo<'a>> {
        if codes.len() != rotated.numbers.len() {
            let reason = reason!("{} numbers for {} reports", rotated.numbers.len(), codes.len());
            return Err(Error::Shape { name: "rotations", reason });
        }
        let outputs = 2 * rotated.rotation.dimensions() as u32;
        if let Some(index) = codes.iter().position(|&code| code >= outputs) {
            return Err(element("reports", index, reason!("codes below {outputs} are")));
        }
        Ok(Undo { rotated, codes, isa })
    }

    /// Nanoseconds that a report takes, about.
    fn work(&self) -> usize {
        500 + 2 * self.rotated.rotation.dimensions()
    }

    /// The decoded reports, times `scale`: as many rows of `features` numbers.
    ///
    /// # Errors
    /// An output of another length, or no threads.
    pub fn letters(&self, scale: f64, out: &mut [f64], threads: Option<usize>) -> Result<()> {
        let features = self.rotated.rotation.features();
        if self.codes.len().checked_mul(features) != Some(out.len()) {
            let reason = reason!("{} elements, where {features} a report are needed", out.len());
            return Err(Error::Output { reason });
        }
        check(threads)?;
        let scale = scale / self.rotated.rotation.stretch();
        let parts = Parts::new(out);
        for_chunks(self.codes.len(), TASK, threads, self.work(), |_, range| {
            // SAFETY: chunks do not overlap.
            let out = unsafe { parts.part(range.start * features..range.end * features) };
            let mut buffers = self.rotated.rotation.buffers(self.isa);
            for (out, at) in out.chunks_exact_mut(features).zip(range) {
                let (block, undone) = self.undone(&mut buffers, at);
                out[..block.start].fill(0.0);
                out[block.end..].fill(0.0);
                let out = &mut out[block];
                match undone {
                    Undone::Whole(row) => {
                        out.iter_mut().zip(row).for_each(|(out, &x)| *out = f64::from(x) * scale);
                    }
                    Undone::Real(row) => out.iter_mut().zip(row).for_each(|(out, &x)| *out = x * scale),
                }
            }
        });
        Ok(())
    }

    /// The sums of the decoded reports, times `scale`, and of the squares of that.
    ///
    /// # Errors
    /// [`Error::Memory`] where there is none for them, or no threads.
    pub fn sums(&self, scale: f64, threads: Option<usize>) -> Result<[Vec<f64>; 2]> {
        check(threads)?;
        let (reports, features) = (self.codes.len(), self.rotated.rotation.features());
        let parts = (reports / FEW).min(HELD / features).clamp(1, PARTS);
        let each = reports.div_ceil(parts).max(1);
        let sums: Vec<Mutex<Vec<f64>>> =
            (0..parts).map(|_| zeros(2 * features).map(Mutex::new)).collect::<Result<_>>()?;
        for_chunks(reports, each, threads, self.work(), |part, range| {
            let mut sums = sums[part].lock().expect("nobody panics with it");
            let mut buffers = self.rotated.rotation.buffers(self.isa);
            for at in range {
                let (sum, square) = sums.split_at_mut(features);
                let (block, undone) = self.undone(&mut buffers, at);
                let (sum, square) = (&mut sum[block.clone()], &mut square[block]);
                match undone {
                    Undone::Whole(row) => add(self.isa, row.iter().map(|&x| f64::from(x)), sum, square),
                    Undone::Real(row) => add(self.isa, row.iter().copied(), sum, square),
                }
            }
        });
        let mut parts = sums.into_iter().map(|sums| sums.into_inner().expect("nobody panicked"));
        let mut total = parts.next().expect("one at least");
        for part in parts {
            total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        }
        let scale = scale / self.rotated.rotation.stretch();
        let mut squares = total.split_off(features);
        total.iter_mut().for_each(|x| *x *= scale);
        squares.iter_mut().for_each(|x| *x *= scale * scale);
        Ok([total, squares])
    }

    fn undone<'b>(&self, buffers: &'b mut RotationBuffers<'_>, at: usize) -> (Range<usize>, Undone<'b>) {
        buffers.undo(self.rotated.numbers[at], self.codes[at])
    }
}

/// Adds numbers and their squares.
fn add(isa: Isa, row: impl ExactSizeIterator<Item = f64>, sum: &mut [f64], square: &mut [f64]) {
    vectorised(isa, || {
        for ((x, sum), square) in row.zip(sum).zip(square) {
            *sum += x;
            *square += x * x;
        }
    });
}

/// Undoes one rotation for each row of counts, `2 D` a row: how often each report was given under the rotation of that
/// row's number. Rows of `features` numbers: the sums of those decoded reports, times `scale`.
///
/// # Errors
/// Counts or an output of other than one row for each number, no threads; [`Error::Isa`] as [`Isa::current`].
pub fn undo_counts(
    rotated: Rotated<'_>,
    counts: &[u64],
    scale: f64,
    out: &mut [f64],
    threads: Option<usize>,
) -> Result<()> {
    let isa = Isa::current()?;
    let Rotated { rotation, numbers } = rotated;
    let (features, dimensions) = (rotation.features(), rotation.dimensions());
    if numbers.len().checked_mul(2 * dimensions) != Some(counts.len()) {
        let reason = reason!("{} counts for {} rotations", counts.len(), numbers.len());
        return Err(Error::Shape { name: "counts", reason });
    }
    if numbers.len().checked_mul(features) != Some(out.len()) {
        return Err(Error::Output {
            reason: reason!("{} elements for {} rotations", out.len(), numbers.len()),
        });
    }
    check(threads)?;
    let scale = scale / rotation.stretch();
    let parts = Parts::new(out);
    for_chunks(numbers.len(), 1, threads, 500 + 10 * dimensions, |row, _| {
        // SAFETY: rows do not overlap.
        let out = unsafe { parts.part(row * features..(row + 1) * features) };
        let counts = counts[row * 2 * dimensions..(row + 1) * 2 * dimensions].as_chunks::<2>().0;
        let mut vector: Vec<f64> = counts.iter().map(|&[minus, plus]| plus as f64 - minus as f64).collect();
        let block = rotation.buffers(isa).undo_all(numbers[row], &mut vector);
        out.fill(0.0);
        out[block].iter_mut().zip(vector).for_each(|(out, x)| *out = x * scale);
    });
    Ok(())
}

fn check(threads: Option<usize>) -> Result<()> {
    match threads {
        Some(0) => Err(argument("threads", "0 is not allowed; at least 1 is".into())),
        _ => Ok(()),
    }
}
