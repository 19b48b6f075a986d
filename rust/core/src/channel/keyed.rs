//! Calls whose random bits are a function of a key, a record's id and its value: whoever repeats one gets the same reports.

mod randomness;
pub(super) mod records;

use std::borrow::Cow;
use std::ops::Range;

use super::call::refuse;
use super::categorical::{check_output, first_refused, no_row, report_bits};
use super::chunks::{self, Chunks};
use crate::codec::{Grid, GridRounding};
use crate::error::{Result, argument, reason, words};
use crate::io::{Input, Output};
use crate::isa::{BATCHES, Isa};
use crate::kernel::categorical::{KeyedSampler, Letters};
use crate::parallel::CHUNK;
use crate::random::Digest;

pub use randomness::KeyedRandomness;

/// Nanoseconds that a single thread takes for a sample, roughly.
const NANOSECONDS: usize = 40;

/// One call of a channel with keyed randomness.
///
/// The report of a record and column is a function of the key, the context, the channel and its codec, the record's id, the
/// column and the value, and of nothing else: not of its batch, order or threads. Numbers count as the `f64` that they are, with -0.0 and
/// subnormals as 0.0.
///
/// Where a report is of a whole record (of [`Bits`](super::Bits), [`Cap`](super::Cap), [`Cube`](super::Cube) and [`Select`](super::Select)), the record is
/// the value: two that differ in one number have independent reports. There may be several for each id: its columns.
///
/// Under one key a report that changes says that its record changed, so a key and context serve one frozen snapshot of
/// the data. Whoever has the key can test values.
pub struct KeyedCall<'a, C> {
    /// How numbers become codes.
    pub codec: C,
    /// The values, record by record: as many of each as there are columns.
    pub input: Input<'a>,
    /// The decoded value of each report: needed where numbers leave.
    pub letters: Option<&'a [f64]>,
    /// Where the reports go.
    pub output: Output<'a>,
    /// The randomness to draw from.
    pub randomness: KeyedRandomness<'a>,
    /// Threads to work on; where there is no number, as many as pay off.
    pub threads: Option<usize>,
}

impl<'a, C> KeyedCall<'a, C> {
    /// Refuses letters, where reports stand for none.
    pub(super) fn refuse_letters(&self) -> Result<()> {
        refuse(self.letters)
    }

    /// The same call with another codec.
    pub(super) fn with<D>(self, codec: D) -> KeyedCall<'a, D> {
        let KeyedCall { input, letters, output, randomness, threads, .. } = self;
        KeyedCall { codec, input, letters, output, randomness, threads }
    }
}

impl<'a> KeyedCall<'a, Option<&'a Grid>> {
    /// The call of a channel of a single law.
    pub(super) fn pair(self) -> KeyedCall<'a, [Option<&'a Grid>; 2]> {
        let grids = [self.codec, None];
        self.with(grids)
    }
}

/// A channel that can be called with keyed randomness.
pub trait Keyed: super::Channel {
    /// Randomizes on the kernels of one instruction set: the answer does not depend on it, nor on the threads. The input may
    /// also be integers where there is a grid.
    ///
    /// # Errors
    /// A call that does not fit the channel; nothing is written then.
    fn randomize_keyed_on(&self, isa: Isa, call: KeyedCall<'_, Self::Codec<'_>>) -> Result<()>;

    /// Randomizes on the kernels of [`Isa::current`].
    ///
    /// # Errors
    /// As [`randomize_keyed_on`](Self::randomize_keyed_on), and [`Error::Isa`](crate::Error::Isa) as [`Isa::current`].
    fn randomize_keyed(&self, call: KeyedCall<'_, Self::Codec<'_>>) -> Result<()> {
        self.randomize_keyed_on(Isa::current()?, call)
    }
}

/// The properties of a channel that a keyed call needs.
pub(super) struct ValueCall<'a> {
    /// Rows of each law, by the name of its grid.
    pub(super) rows: &'a [(&'static str, u32)],
    /// How many reports there are.
    pub(super) columns: u32,
    pub(super) mute: bool,
    /// Absorbs the law: random bits of another are others.
    pub(super) law: &'a dyn Fn(&mut Digest),
}

/// Checks a call, and gives `draw` the sampler, the position of the first sample, the values and the output of each chunk.
pub(super) fn randomize(
    description: &ValueCall<'_>,
    isa: Isa,
    call: KeyedCall<'_, [Option<&Grid>; 2]>,
    draw: impl Fn(&KeyedSampler<'_>, usize, Input<'_>, Output<'_>) + Sync,
) -> Result<()> {
    randomize_hearing(u64::MAX, description, isa, call, &draw)
}

/// Draws the samples of a chunk.
type DrawSamples<'a> = dyn Fn(&KeyedSampler<'_>, usize, Input<'_>, Output<'_>) + Sync + 'a;

/// [`randomize`], where the random bits depend on those bits of the value that `heard` marks.
fn randomize_hearing(
    heard: u64,
    description: &ValueCall<'_>,
    isa: Isa,
    call: KeyedCall<'_, [Option<&Grid>; 2]>,
    draw: &DrawSamples<'_>,
) -> Result<()> {
    let KeyedCall { codec: grids, input, letters, output, randomness, threads } = call;
    let columns = randomness.columns(input.len())?;
    let bits = report_bits(description.columns);
    let batch =
        Chunks { reports: input.len(), bits, codes: 1, values: 1, chunk: CHUNK, first_chunk: 0, threads };
    check_output(description.columns, letters, &output, &batch)?;
    if grids[0].is_none() && input.is_real() {
        return Err(argument("x", words("without a grid, integers are needed")));
    }
    let numbers =
        if grids[0].is_some() && !input.is_real() { doubles(input) } else { Cow::Borrowed(&[][..]) };
    let input = if numbers.is_empty() { input } else { Input::F64(&numbers) };
    for (&(name, rows), grid) in description.rows.iter().zip(grids) {
        if let Some(grid) = grid
            && grid.points() != rows
        {
            let reason = reason!("{} points do not fit a channel of {rows} inputs", grid.points());
            return Err(argument(name, reason));
        }
    }
    let checked = input;
    let laws = || description.rows.iter().zip(grids).map(|(&(_, rows), grid)| (rows, grid));
    let refused = |range: Range<usize>| {
        laws().filter_map(|(rows, grid)| first_refused(isa, rows, grid, checked.part(range.clone()))).min()
    };
    let mut zeros = Vec::new();
    let (first, input) = chunks::heard(description.mute, grids[0], input, &mut zeros);
    let numbers = if matches!(input, Input::F32(_)) { doubles(input) } else { Cow::Borrowed(&[][..]) };
    let input = if numbers.is_empty() { input } else { Input::F64(&numbers) };
    let single = Letters::single(letters, &output);
    let mut digest = randomness.digest();
    (description.law)(&mut digest);
    grids.into_iter().for_each(|grid| absorb(grid, &mut digest));
    let sampler = KeyedSampler {
        isa,
        records: crate::random::RecordKeys::new(&digest, randomness.ids),
        column: randomness.column,
        columns,
        grids: [first, grids[1]],
        rows: description.rows[0].1,
        heard: heard & randomness.ids.heard(),
        letters: Letters { double: letters, single: &single },
        bits,
    };
    let walked = batch.walk(output, NANOSECONDS, refused, |_, range, output| {
        draw(&sampler, range.start, input.part(range), output);
    });
    walked.map_err(|index| {
        let one = index..index + 1;
        let refuses = |&(rows, grid): &(u32, Option<&Grid>)| {
            first_refused(isa, rows, grid, checked.part(one.clone())).is_some()
        };
        let (rows, grid) = laws().find(refuses).unwrap_or((description.rows[0].1, grids[0]));
        no_row(rows, grid, index)
    })
}

/// The numbers in double precision.
fn doubles(input: Input<'_>) -> Cow<'_, [f64]> {
    macro_rules! cast {
        ($numbers:expr) => {
            Cow::Owned($numbers.iter().map(|&x| x as f64).collect())
        };
    }
    match input {
        Input::F64(numbers) => Cow::Borrowed(numbers),
        Input::F32(numbers) => cast!(numbers),
        Input::U8(numbers) => cast!(numbers),
        Input::U16(numbers) => cast!(numbers),
        Input::U32(numbers) => cast!(numbers),
        Input::U64(numbers) if BATCHES => cast!(numbers),
        Input::I8(numbers) if BATCHES => cast!(numbers),
        Input::I16(numbers) if BATCHES => cast!(numbers),
        Input::I32(numbers) if BATCHES => cast!(numbers),
        Input::I64(numbers) if BATCHES => cast!(numbers),
        _ => Cow::Borrowed(&[]), // they are refused
    }
}

/// Absorbs a grid, or that there is none.
pub(super) fn absorb(grid: Option<&Grid>, digest: &mut Digest) {
    let Some(grid) = grid else { return digest.text(b"no grid") };
    let (low, high) = (grid.low().to_bits(), grid.high().to_bits());
    let rounding = u128::from(grid.rounding() == GridRounding::Nearest);
    let parts = [grid.points().into(), low.into(), high.into(), rounding, grid.clip().into()];
    digest.text(b"grid");
    digest.numbers(parts.into_iter());
}

#[cfg(test)]
mod lane_tests;
#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod tests;
