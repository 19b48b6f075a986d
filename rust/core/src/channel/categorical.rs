//! What windows, matrices and shifts share: what they refuse, and the walk over the chunks of a batch.

use super::check::{Split, first_place};
use crate::codec::{Coordinate, Grid};
use crate::error::{Error, Result, argument, element};
use crate::io::{Input, Output, OutputParts};
use crate::isa::{Isa, vectorised};
use crate::kernel::categorical::{Law, Letters, Sampler, first_outside};
use crate::parallel::{CHUNK, for_chunks};
use crate::random::Key;

/// What a single thread takes for a sample, roughly, in nanoseconds.
pub(super) const NANOSECONDS: usize = 2;

/// Everything that `randomize` takes, but the law.
pub(super) struct Request<'a> {
    pub(super) isa: Isa,
    pub(super) grid: Option<&'a Grid>,
    pub(super) input: Input<'a>,
    pub(super) letters: Option<&'a [f64]>,
    pub(super) output: Output<'a>,
    pub(super) key: &'a Key,
    pub(super) first_chunk: u64,
    pub(super) threads: Option<usize>,
}

/// Bits of a report: as few as tell `outputs` reports apart.
pub(super) fn report_bits(outputs: u32) -> u32 {
    (u32::BITS - (outputs - 1).leading_zeros()).max(1)
}

/// Randomizes the request's input under `law`, whose reports are below `outputs`.
pub(super) fn randomize<L: Law>(law: &L, outputs: u32, request: Request<'_>) -> Result<()> {
    let bits = report_bits(outputs);
    let Request { isa, grid, input, letters, output, key, first_chunk, threads } = request;
    check_grid("grid", law.rows(), grid, input)?;
    let split = Split { reports: input.len(), bits, chunk: CHUNK, first_chunk, threads };
    check_output(outputs, letters, &output, split)?;
    check_values(isa, law.rows(), grid, input, threads)?;
    let single = Letters::single(letters, &output);
    let sampler = Sampler { isa, key, grid, letters: Letters { double: letters, single: &single }, bits };
    let parts = OutputParts::new(output);
    for_chunks(input.len(), CHUNK, threads, NANOSECONDS, |chunk, range| {
        // SAFETY: chunks do not overlap.
        let output = unsafe { parts.part(range.clone(), bits as usize) };
        sampler.chunk(law, first_chunk + chunk as u64, input.part(range), output);
    });
    Ok(())
}

/// Refuses an input that does not fit its grid, or a grid that does not fit a channel of `rows` inputs.
pub(super) fn check_grid(name: &'static str, rows: u32, grid: Option<&Grid>, input: Input<'_>) -> Result<()> {
    match grid {
        Some(grid) if grid.points() != rows => {
            let reason = format!("{} points do not fit a channel of {rows} inputs", grid.points());
            Err(argument(name, reason))
        }
        Some(_) if !input.is_real() => Err(argument("x", "a grid takes float32 or float64".into())),
        None if input.is_real() => Err(argument("x", "without a grid, integers are needed".into())),
        _ => Ok(()),
    }
}

/// Refuses an output, or letters, that do not fit reports below `outputs`.
pub(super) fn check_output(
    outputs: u32,
    letters: Option<&[f64]>,
    output: &Output<'_>,
    split: Split,
) -> Result<()> {
    if let Some(letters) = letters
        && letters.len() != outputs as usize
    {
        let reason = format!("{} letters, where {outputs} are needed: one for each report", letters.len());
        return Err(Error::Shape { name: "letters", reason });
    }
    match output {
        Output::Bits(_) => {
            let reason = "a report is a code word: codes, packed, or values where there are letters";
            return Err(argument("output", reason.into()));
        }
        Output::F32(_) | Output::F64(_) if letters.is_none() => {
            return Err(argument("output", "values need letters: what each report stands for".into()));
        }
        _ => {}
    }
    split.check(output)
}

/// Refuses values that have no row, before anything is written.
pub(super) fn check_values(
    isa: Isa,
    rows: u32,
    grid: Option<&Grid>,
    input: Input<'_>,
    threads: Option<usize>,
) -> Result<()> {
    let outside = |range| match (input.part(range), grid) {
        (Input::F32(values), Some(grid)) => off_grid(isa, grid, values),
        (Input::F64(values), Some(grid)) => off_grid(isa, grid, values),
        (integers, _) => first_outside(isa, integers, rows),
    };
    match first_place(input.len(), threads, outside) {
        None => Ok(()),
        Some(index) => {
            let reason = match grid {
                Some(grid) => grid.allowed().into(),
                None => format!("integers from 0 to {} are", rows - 1),
            };
            Err(element("x", index, reason))
        }
    }
}

fn off_grid<F: Coordinate>(isa: Isa, grid: &Grid, values: &[F]) -> Option<usize> {
    vectorised(isa, || grid.first_refused(values))
}
