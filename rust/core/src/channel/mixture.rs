//! Mixtures: a window or a matrix reports, as a coin decides that does not look at the input.

use std::ops::Range;
use std::sync::Arc;

use super::call::{Call, Channel};
use super::categorical::{
    Categorical, NANOSECONDS, check_grid, check_output, first_refused, no_row, report_bits,
};
use super::chunks::Chunks;
use super::keyed::{self, Keyed, KeyedCall};
use super::matrix::Matrix;
use super::window::Window;
use crate::codec::Grid;
use crate::error::{Result, argument, reason, words};
use crate::io::{Input, Output};
use crate::isa::Isa;
use crate::kernel::categorical::{AnyMatrix, CategoricalSampler, Letters, MixtureLaw};
use crate::parallel::CHUNK;
use crate::random::{Digest, Key};

/// The most reports: they are sampled in lanes of 16 bits.
const MOST: u64 = 1 << 16;

/// As many numbers as get a buffer of their own.
const FEW: usize = 512;

/// The channel that reports what a window says where a matrix answers 0, and otherwise the matrix's answer: reports below
/// `window.cells()` are cells, the answers 1, 2, … come behind them.
///
/// The answer 0 is as likely for every input, so the matrix is the coin and the other answer in one. Both are drawn for every
/// number and selected by masks, so the work tells nothing that the two do not tell.
pub struct Mixture {
    window: Arc<Window>,
    matrix: Arc<Matrix>,
}

impl Mixture {
    /// The mixture of a window and a matrix, together of at most 65,536 reports.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) for a mute window, more reports, a matrix of fewer than two, and one
    /// whose answer 0 is likelier for some inputs than for others.
    pub fn new(window: impl Into<Arc<Window>>, matrix: impl Into<Arc<Matrix>>) -> Result<Mixture> {
        let (window, matrix) = (window.into(), matrix.into());
        let (cells, answers) = (window.cells(), matrix.outputs());
        if window.is_mute() {
            return Err(argument("window", words("must not be mute: the mixture would show it the input")));
        }
        if answers < 2 {
            return Err(argument("matrix", words("needs at least 2 columns: answer 0 and one more")));
        }
        if u64::from(cells) + answers as u64 - 1 > MOST {
            let more = answers - 1;
            let reason =
                reason!("{cells} cells and {more} more answers are not allowed; up to {MOST} reports are");
            return Err(argument("window", reason));
        }
        let mut shares = matrix.weights().iter().step_by(answers);
        let first = shares.next();
        if shares.any(|share| Some(share) != first) {
            let reason = "answer 0 must have the same probability for every input, to the integer over 2^64";
            return Err(argument("matrix", words(reason)));
        }
        Ok(Mixture { window, matrix })
    }

    /// The window, which answers where the matrix says 0.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// How many reports there are.
    pub fn outputs(&self) -> u32 {
        self.window.cells() + self.matrix.outputs() as u32 - 1
    }
}

impl Channel for Mixture {
    type Codec<'a> = [&'a Grid; 2];
    type Keys<'a> = [&'a Key; 2];

    /// A report tells which of the two answered, with a chance that is the same for every input, so it is that of the worse
    /// one of those that ever answer.
    fn epsilon(&self) -> f64 {
        let never = self.matrix.weights()[0] == 0;
        self.matrix.epsilon().max(if never { 0.0 } else { self.window.epsilon() })
    }

    fn report_bits(&self) -> u32 {
        report_bits(self.outputs())
    }

    /// The input is numbers (`F32`, `F64`); grids and keys are the window's and the matrix's. The keys must differ: with one
    /// for both, their draws would be the same bits, and the ε of the two no longer that of the mixture. The output takes
    /// code words of any width that holds a report, packed reports, or numbers if there are letters, one for each report.
    fn randomize_on(&self, isa: Isa, call: Call<'_, [&Grid; 2], [&Key; 2]>) -> Result<()> {
        let Call { codec: grids, input, letters, output, keys, first_chunk, threads } = call;
        if keys[0] == keys[1] {
            return Err(argument("keys", words("two different ones are needed")));
        }
        let (cells, bits) = (self.window.cells(), self.report_bits());
        let rows = [cells, self.matrix.inputs() as u32];
        for ((name, rows), grid) in ["grids[0]", "grids[1]"].into_iter().zip(rows).zip(grids) {
            check_grid(name, rows, Some(grid), input)?;
        }
        let chunks =
            Chunks { reports: input.len(), bits, codes: 1, values: 1, chunk: CHUNK, first_chunk, threads };
        check_output(self.outputs(), letters, &output, &chunks)?;
        let single = Letters::single(letters, &output);
        let sampler = |i: usize| CategoricalSampler {
            isa,
            key: keys[i],
            grid: Some(grids[i]),
            letters: Letters { double: letters, single: &single },
            bits,
        };
        let [window, matrix] = [0, 1].map(sampler);
        let draw = |chunk, input: Input<'_>, output: Output<'_>, cell: &mut [u16], answer: &mut [u16]| {
            let (cell, answer) = (&mut cell[..input.len()], &mut answer[..input.len()]);
            self.window.sample(&window, chunk, input, Output::U16(cell));
            self.matrix.sample(&matrix, chunk, input, Output::U16(answer));
            window.merge(cell, answer, cells, output);
        };
        let refused_by = |i: usize, range| first_refused(isa, rows[i], Some(grids[i]), input.part(range));
        let refused = |range: Range<usize>| {
            // What clips refuses the same, whatever its ends.
            let second = if grids[1].clip() { None } else { refused_by(1, range.clone()) };
            refused_by(0, range).into_iter().chain(second).min()
        };
        let walked = chunks.walk(output, 2 * NANOSECONDS, refused, |chunk, range, output| {
            let input = input.part(range);
            // Clearing room for a whole chunk would take longer than a few numbers do.
            if input.len() <= FEW {
                draw(chunk, input, output, &mut [0; FEW], &mut [0; FEW]);
            } else {
                draw(chunk, input, output, &mut [0; CHUNK], &mut [0; CHUNK]);
            }
        });
        walked.map_err(|index| {
            let by = usize::from(refused_by(0, index..index + 1).is_none());
            no_row(rows[by], Some(grids[by]), index)
        })
    }
}

impl Keyed for Mixture {
    fn randomize_keyed_on(&self, isa: Isa, call: KeyedCall<'_, [&Grid; 2]>) -> Result<()> {
        let law = |digest: &mut Digest| {
            digest.text(b"mixture");
            self.window.absorb(digest);
            self.matrix.absorb(digest);
        };
        let rows = [("grids[0]", self.window.cells()), ("grids[1]", self.matrix.inputs() as u32)];
        let description = keyed::ValueCall { rows: &rows, columns: self.outputs(), mute: false, law: &law };
        let grids = call.codec.map(Some);
        keyed::randomize(&description, isa, call.with(grids), |sampler, first, input, output| {
            let window = self.window.narrow();
            match self.matrix.sampled() {
                AnyMatrix::Coarse(matrix) => {
                    sampler.samples(&MixtureLaw { window, matrix }, first, input, output);
                }
                AnyMatrix::Fine(matrix) => {
                    sampler.samples(&MixtureLaw { window, matrix }, first, input, output);
                }
            }
        })
    }
}
