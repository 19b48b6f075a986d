//! Mixtures: a coin that does not look at the input decides which of two answers counts.

use super::categorical::{NANOSECONDS, check_grid, check_output, check_values, report_bits};
use super::check::Split;
use super::{Matrix, Window};
use crate::codec::Grid;
use crate::error::{Result, argument};
use crate::io::{Input, Output, OutputParts};
use crate::isa::Isa;
use crate::kernel::categorical::{Letters, Sampler};
use crate::parallel::{CHUNK, for_chunks};
use crate::random::Key;

/// The most reports: they are sampled in lanes of 16 bits.
const MOST: u64 = 1 << 16;

/// As many numbers as are worth room of their own.
const FEW: usize = 512;

/// The channel that reports what a window says where a matrix answers 0, and otherwise the matrix's answer: reports below
/// `window.cells()` are cells, the answers 1, 2, … come behind them.
///
/// The answer 0 is as likely for every input, so the matrix is the coin and the other answer in one. Both are drawn for every
/// number and selected by masks, so the work tells nothing that the two do not tell.
pub struct Mixture<'a> {
    window: &'a Window,
    matrix: &'a Matrix,
}

impl<'a> Mixture<'a> {
    /// The mixture of a window and a matrix, together of at most 65,536 reports.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) for more reports, a matrix of fewer than two, and one whose answer 0 is
    /// likelier for some inputs than for others.
    pub fn new(window: &'a Window, matrix: &'a Matrix) -> Result<Mixture<'a>> {
        let (cells, answers) = (window.cells(), matrix.outputs());
        if answers < 2 {
            return Err(argument("matrix", "it has no answer but 0; at least 2 columns are needed".into()));
        }
        if u64::from(cells) + answers as u64 - 1 > MOST {
            let more = answers - 1;
            let reason =
                format!("{cells} cells and {more} more answers are not allowed; up to {MOST} reports are");
            return Err(argument("window", reason));
        }
        let mut coins = matrix.weights().iter().step_by(answers);
        let first = coins.next();
        if coins.any(|coin| Some(coin) != first) {
            let reason = "its answer 0 must be as likely for every input, to the integer over 2^64";
            return Err(argument("matrix", reason.into()));
        }
        Ok(Mixture { window, matrix })
    }

    /// How many reports there are.
    pub fn outputs(&self) -> u32 {
        self.window.cells() + self.matrix.outputs() as u32 - 1
    }

    /// The exact ε: a report tells which of the two answered, with a chance that is the same for every input, so it is
    /// that of the worse one of those that ever answer.
    pub fn epsilon(&self) -> f64 {
        let never = self.matrix.weights()[0] == 0;
        self.matrix.epsilon().max(if never { 0.0 } else { self.window.epsilon() })
    }

    /// Bits of a packed report.
    pub fn report_bits(&self) -> u32 {
        report_bits(self.outputs())
    }

    /// Randomizes `input`, numbers (`F32`, `F64`), into `output`; `grids` and `keys` are the window's and the matrix's. The
    /// keys must differ: with one for both, their draws would be the same bits, and the ε of the two no longer that of the
    /// mixture.
    ///
    /// `output` takes code words of any width that holds a report, packed reports, or numbers if there are `letters`: what
    /// each of the reports stands for. The samples are chunks `first_chunk, first_chunk + 1, …` of
    /// [`CHUNK`](crate::CHUNK) in the keys' streams; the answer does not depend on `threads`.
    ///
    /// # Errors
    /// An input, grids, output or letters that do not fit the channel, and equal keys; nothing is written then.
    #[allow(clippy::too_many_arguments, reason = "the three steps, and where the randomness comes from")]
    pub fn randomize(
        &self,
        grids: [&Grid; 2],
        input: Input<'_>,
        letters: Option<&[f64]>,
        output: Output<'_>,
        keys: [&Key; 2],
        first_chunk: u64,
        threads: Option<usize>,
    ) -> Result<()> {
        self.randomize_on(Isa::current()?, grids, input, letters, output, keys, first_chunk, threads)
    }

    /// [`randomize`](Self::randomize) with the kernels of one instruction set: the answer does not depend on it.
    ///
    /// # Errors
    /// As [`randomize`](Self::randomize), and [`Error::Isa`](crate::Error::Isa) if this processor lacks it.
    #[allow(clippy::too_many_arguments, reason = "what randomize takes, and the instruction set")]
    pub fn randomize_on(
        &self,
        isa: Isa,
        grids: [&Grid; 2],
        input: Input<'_>,
        letters: Option<&[f64]>,
        output: Output<'_>,
        keys: [&Key; 2],
        first_chunk: u64,
        threads: Option<usize>,
    ) -> Result<()> {
        if keys[0] == keys[1] {
            return Err(argument("keys", "two different ones are needed".into()));
        }
        let (cells, bits) = (self.window.cells(), self.report_bits());
        let rows = [cells, self.matrix.inputs() as u32];
        for ((name, rows), grid) in ["grids[0]", "grids[1]"].into_iter().zip(rows).zip(grids) {
            check_grid(name, rows, Some(grid), input)?;
        }
        let split = Split { reports: input.len(), bits, chunk: CHUNK, first_chunk, threads };
        check_output(self.outputs(), letters, &output, split)?;
        // What clips refuses the same, whatever its ends.
        check_values(isa, rows[0], Some(grids[0]), input, threads)?;
        if !grids[1].clip() {
            check_values(isa, rows[1], Some(grids[1]), input, threads)?;
        }
        let single = Letters::single(letters, &output);
        let sampler = |i: usize| Sampler {
            isa,
            key: keys[i],
            grid: Some(grids[i]),
            letters: Letters { double: letters, single: &single },
            bits,
        };
        let [window, matrix] = [0, 1].map(sampler);
        let parts = OutputParts::new(output);
        let draw = |chunk, input: Input<'_>, output: Output<'_>, cell: &mut [u16], answer: &mut [u16]| {
            let (cell, answer) = (&mut cell[..input.len()], &mut answer[..input.len()]);
            self.window.chunk(&window, chunk, input, Output::U16(cell));
            self.matrix.chunk(&matrix, chunk, input, Output::U16(answer));
            window.merge(cell, answer, cells, output);
        };
        for_chunks(input.len(), CHUNK, threads, 2 * NANOSECONDS, |chunk, range| {
            // SAFETY: chunks do not overlap.
            let output = unsafe { parts.part(range.clone(), bits as usize) };
            let (chunk, input) = (first_chunk + chunk as u64, input.part(range));
            // Clearing room for a whole chunk would take longer than a few numbers do.
            if input.len() <= FEW {
                draw(chunk, input, output, &mut [0; FEW], &mut [0; FEW]);
            } else {
                draw(chunk, input, output, &mut [0; CHUNK], &mut [0; CHUNK]);
            }
        });
        Ok(())
    }
}
