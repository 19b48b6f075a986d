//! What windows and matrices share: what they refuse, and the walk over the chunks of a batch.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::io::{Input, Output, OutputParts};
use crate::codec::{Coordinate, Grid};
use crate::error::{Error, Result, argument};
use crate::kernel::categorical::{Law, Sampler, first_outside};
use crate::kernel::{Isa, vectorised};
use crate::parallel::{CHUNK, for_chunks};
use crate::random::Key;

/// What a single thread takes for a sample, roughly, in nanoseconds.
const NANOSECONDS: usize = 2;

/// Values that one thread checks at a time.
const CHECKED: usize = 8 * CHUNK;

/// The chunks that a key's stream has.
const CHUNKS: u64 = 1 << 56;

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
    let isa = request.isa.checked()?;
    let bits = report_bits(outputs);
    check_parameters(law.rows(), outputs, bits, &request)?;
    let Request { grid, input, letters, output, key, first_chunk, threads, .. } = request;
    check_values(isa, law.rows(), grid, input, threads)?;
    let sampler = Sampler { isa, key, grid, letters, bits };
    let parts = OutputParts::new(output);
    for_chunks(input.len(), CHUNK, threads, NANOSECONDS, |chunk, range| {
        // SAFETY: chunks do not overlap.
        let output = unsafe { parts.part(range.clone(), bits as usize) };
        sampler.chunk(law, first_chunk + chunk as u64, input.part(range), output);
    });
    Ok(())
}

fn check_parameters(rows: u32, outputs: u32, bits: u32, request: &Request<'_>) -> Result<()> {
    let Request { grid, input, letters, output, first_chunk, threads, .. } = request;
    match (grid, input) {
        (Some(grid), _) if grid.points() != rows => {
            let reason = format!("{} points do not fit a channel of {rows} inputs", grid.points());
            return Err(argument("grid", reason));
        }
        (Some(_), Input::F32(_) | Input::F64(_)) => {}
        (Some(_), _) => return Err(argument("x", "a grid takes float32 or float64".into())),
        (None, Input::F32(_) | Input::F64(_)) => {
            return Err(argument("x", "without a grid, integers are needed".into()));
        }
        (None, _) => {}
    }
    if let Some(letters) = letters
        && letters.len() != outputs as usize
    {
        let reason = format!("{} letters, where {outputs} are needed: one for each report", letters.len());
        return Err(Error::Shape { name: "letters", reason });
    }
    let width = match output {
        Output::U8(_) => 8,
        Output::U16(_) => 16,
        Output::Bits(_) => {
            let reason = "a report is a code word: codes, packed, or values where there are letters";
            return Err(argument("output", reason.into()));
        }
        Output::F32(_) | Output::F64(_) if letters.is_none() => {
            return Err(argument("output", "values need letters: what each report stands for".into()));
        }
        _ => 32,
    };
    if width < bits {
        let reason =
            format!("code words of {width} bits do not hold {outputs} reports; {bits} bits are needed");
        return Err(Error::Output { reason });
    }
    let needed = output.needed(input.len(), bits as usize);
    if output.len() != needed {
        return Err(Error::Output {
            reason: format!("{} elements, where {needed} are needed", output.len()),
        });
    }
    if *threads == Some(0) {
        return Err(argument("threads", "0 is not allowed; at least 1 is".into()));
    }
    let chunks = input.len().div_ceil(CHUNK) as u64;
    if first_chunk.checked_add(chunks).is_none_or(|end| end > CHUNKS) {
        return Err(argument(
            "first_chunk",
            format!("{first_chunk} is past the end of the stream, 2^56 chunks"),
        ));
    }
    Ok(())
}

/// Refuses values that have no row, before anything is written.
fn check_values(
    isa: Isa,
    rows: u32,
    grid: Option<&Grid>,
    input: Input<'_>,
    threads: Option<usize>,
) -> Result<()> {
    let first = AtomicUsize::new(usize::MAX);
    for_chunks(input.len(), CHECKED, threads, 1, |_, range| {
        let start = range.start;
        let outside = match (input.part(range), grid) {
            (Input::F32(values), Some(grid)) => off_grid(isa, grid, values),
            (Input::F64(values), Some(grid)) => off_grid(isa, grid, values),
            (integers, _) => first_outside(isa, integers, rows),
        };
        if let Some(index) = outside {
            first.fetch_min(start + index, Ordering::Relaxed);
        }
    });
    match first.into_inner() {
        usize::MAX => Ok(()),
        index => {
            let reason = grid.map_or("an integer from 0 to below the number of inputs is", Grid::allowed);
            Err(Error::Value { name: "x", index, reason })
        }
    }
}

fn off_grid<F: Coordinate>(isa: Isa, grid: &Grid, values: &[F]) -> Option<usize> {
    vectorised(isa, || grid.first_refused(values))
}
