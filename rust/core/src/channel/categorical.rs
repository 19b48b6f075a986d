//! Checks and calls of channels of finitely many inputs and reports.

use super::call::{Call, Channel};
use super::chunks::{Chunks, heard};
use crate::codec::{Coordinate, Grid};
use crate::error::{Error, Result, argument, element, reason, words};
use crate::io::{Input, Output};
use crate::isa::{Isa, vectorised};
use crate::kernel::categorical::{CategoricalSampler, Letters, first_outside};
use crate::parallel::CHUNK;
use crate::random::Key;

/// Nanoseconds that a single thread takes for a sample, roughly.
pub(super) const NANOSECONDS: usize = 2;

/// A channel that gives one of finitely many reports for one of finitely many inputs.
pub(super) trait Categorical: Channel {
    /// How many inputs there are.
    fn rows(&self) -> u32;

    /// How many reports there are.
    fn columns(&self) -> u32;

    /// Samples chunk `chunk` of the key's stream, with what was checked.
    fn sample(&self, sampler: &CategoricalSampler<'_>, chunk: u64, input: Input<'_>, output: Output<'_>);
}

/// Bits of a report: as few as tell `outputs` reports apart.
pub(super) fn report_bits(outputs: u32) -> u32 {
    (u32::BITS - (outputs - 1).leading_zeros()).max(1)
}

/// Randomizes the call's input by the law of a channel.
pub(super) fn randomize(
    channel: &impl Categorical,
    isa: Isa,
    call: Call<'_, Option<&Grid>, &Key>,
) -> Result<()> {
    let size = (channel.rows(), channel.columns());
    randomize_by(size, channel.is_mute(), isa, call, &|sampler, chunk, input, output| {
        channel.sample(sampler, chunk, input, output);
    })
}

/// A [`Categorical::sample`].
type Sample<'f> = dyn Fn(&CategoricalSampler<'_>, u64, Input<'_>, Output<'_>) + Sync + 'f;

/// [`randomize`] by the law of any channel of so many rows and columns, compiled once.
fn randomize_by(
    (rows, columns): (u32, u32),
    mute: bool,
    isa: Isa,
    call: Call<'_, Option<&Grid>, &Key>,
    sample: &Sample<'_>,
) -> Result<()> {
    let Call { codec: grid, input, letters, output, keys: key, first_chunk, threads } = call;
    let bits = report_bits(columns);
    check_grid("grid", rows, grid, input)?;
    let chunks =
        Chunks { reports: input.len(), bits, codes: 1, values: 1, chunk: CHUNK, first_chunk, threads };
    check_output(columns, letters, &output, &chunks)?;
    let mut zeros = Vec::new();
    let (heard_grid, heard_input) = heard(mute, grid, input, &mut zeros);
    let single = Letters::single(letters, &output);
    let letters = Letters { double: letters, single: &single };
    let sampler = CategoricalSampler { isa, key, grid: heard_grid, letters, bits };
    let refused = |range| first_refused(isa, rows, grid, input.part(range));
    let draw = |chunk, range, output: Output<'_>| {
        sample(&sampler, chunk, heard_input.part(range), output);
    };
    chunks.walk(output, NANOSECONDS, refused, draw).map_err(|index| no_row(rows, grid, index))
}

/// Refuses an input that does not fit its grid, or a grid that does not fit a channel of `rows` inputs.
pub(super) fn check_grid(name: &'static str, rows: u32, grid: Option<&Grid>, input: Input<'_>) -> Result<()> {
    match grid {
        Some(grid) if grid.points() != rows => {
            let reason = reason!("{} points do not fit a channel of {rows} inputs", grid.points());
            Err(argument(name, reason))
        }
        Some(_) if !input.is_real() => Err(argument("x", words("a grid takes float32 or float64"))),
        None if input.is_real() => Err(argument("x", words("without a grid, integers are needed"))),
        _ => Ok(()),
    }
}

/// Refuses an output, or letters, that do not fit reports below `outputs`.
pub(super) fn check_output(
    outputs: u32,
    letters: Option<&[f64]>,
    output: &Output<'_>,
    chunks: &Chunks,
) -> Result<()> {
    if let Some(letters) = letters
        && letters.len() != outputs as usize
    {
        let reason = reason!("{} letters, where {outputs} are needed: one for each report", letters.len());
        return Err(Error::Shape { name: "letters", reason });
    }
    match output {
        Output::Bits(_) => {
            let reason = "a report is a code word: codes, packed, or values where there are letters";
            return Err(argument("output", words(reason)));
        }
        Output::F32(_) | Output::F64(_) if letters.is_none() => {
            return Err(argument("output", words("values need letters: the number for each report")));
        }
        _ => {}
    }
    chunks.check(output)
}

/// The position of the first value that has no row.
pub(super) fn first_refused(isa: Isa, rows: u32, grid: Option<&Grid>, input: Input<'_>) -> Option<usize> {
    match (input, grid) {
        (Input::F32(values), Some(grid)) => off_grid(isa, grid, values),
        (Input::F64(values), Some(grid)) => off_grid(isa, grid, values),
        (integers, _) => first_outside(isa, integers, rows),
    }
}

/// The refusal of a value that has no row.
pub(super) fn no_row(rows: u32, grid: Option<&Grid>, index: usize) -> Error {
    let integers = || reason!("integers from 0 to {} are", rows - 1);
    element("x", index, grid.map_or_else(integers, |grid| grid.allowed().into()))
}

fn off_grid<F: Coordinate>(isa: Isa, grid: &Grid, values: &[F]) -> Option<usize> {
    vectorised(isa, || grid.first_refused(values))
}
