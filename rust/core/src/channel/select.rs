//! Selection: one coordinate of a vector, more likely the larger its magnitude.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::call::{Call, Channel};
use super::categorical::report_bits;
use super::chunks::Chunks;
use super::keyed::{Keyed, KeyedCall, records};
use crate::codec::{pack, packed_len};
use crate::error::{Error, Result, argument, element};
use crate::io::{Input, Output};
use crate::isa::Isa;
use crate::kernel::select::{Magnitude, RankLaw, SLOTS, Sampler};
use crate::parallel::{Parts, for_chunks};
use crate::probability::abs_log_ratio;
use crate::random::{Digest, Key};

/// Numbers that are worth a task of their own.
const TASK: usize = 1 << 17;

/// The channel that reports the place of one coordinate of a vector of `d` numbers.
///
/// The law is about ranks: the coordinates are ordered by magnitude, ties at random, and the coordinate of rank `z` (0 is
/// the smallest) is reported with probability `w_z / S`. The weights `w_z` are integers and so is their sum `S`, which
/// includes the weight of reporting nothing, `d`, where the channel has that report. So any law that treats the
/// coordinates alike and looks at nothing but their order is such a table.
///
/// A report's probability is a weight, or a mean of weights where magnitudes are equal, over the same `S` for every
/// vector, and every coordinate takes every rank in some vector. Hence the exact ε is the log-ratio of the largest and the
/// smallest weight. Reporting nothing is equally likely for all vectors.
///
/// It is not constant-time: after the rank is drawn, the search for its coordinate takes branches and addresses that
/// depend on the vector and on the rank, as the matrix channel's on its row.
pub struct Select {
    law: RankLaw,
    dimensions: u32,
    empty: bool,
    epsilon: f64,
}

impl Select {
    /// A law of runs of ranks, smallest magnitude first: `counts[i]` ranks of weight `weights[i]` each.
    ///
    /// `nothing` is the
    /// weight of reporting no coordinate at all; `None` where that is no report of the channel.
    ///
    /// # Errors
    /// [`Error::Shape`] for runs of another number than weights; [`Error::Argument`] for an empty run, fewer than 2 or
    /// more than `2^32 - 2` coordinates, and weights whose sum is 0 or past `2^64 - 1`.
    pub fn new(counts: &[u32], weights: &[u64], nothing: Option<u64>) -> Result<Select> {
        if counts.len() != weights.len() {
            let reason =
                format!("{} weights, where {} are needed: one for each run", weights.len(), counts.len());
            return Err(Error::Shape { name: "weights", reason });
        }
        if let Some(run) = counts.iter().position(|&count| count == 0) {
            return Err(argument("counts", format!("run {run} is empty; every run has a rank at least")));
        }
        let dimensions = counts.iter().map(|&count| u64::from(count)).sum::<u64>();
        if !(2..u64::from(u32::MAX)).contains(&dimensions) {
            return Err(argument("counts", format!("{dimensions} ranks are not allowed; 2 to 2^32 - 2 are")));
        }
        let law = RankLaw::new(counts, weights, nothing.unwrap_or(0))
            .ok_or_else(|| argument("weights", "must sum to 1 to 2^64 - 1 over all ranks".into()))?;
        let most = weights.iter().copied().max().unwrap_or(0);
        let least = weights.iter().copied().min().unwrap_or(0);
        let epsilon = abs_log_ratio(most.into(), least.into());
        Ok(Select { law, dimensions: dimensions as u32, empty: nothing.is_some(), epsilon })
    }

    /// Coordinates of a vector, d.
    pub fn dimensions(&self) -> u32 {
        self.dimensions
    }

    /// How many reports there are: the coordinates, and `d` where nothing can be reported.
    pub fn outputs(&self) -> u32 {
        self.dimensions + u32::from(self.empty)
    }

    /// The runs of the law, smallest magnitude first: how many ranks, and the weight of each.
    pub fn runs(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.law.runs(self.dimensions)
    }

    /// The weight of reporting nothing, where that is a report.
    pub fn nothing(&self) -> Option<u64> {
        self.empty.then(|| self.law.nothing())
    }

    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.law.total()
    }
}

impl Channel for Select {
    type Codec<'a> = ();
    type Keys<'a> = &'a Key;

    fn epsilon(&self) -> f64 {
        self.epsilon
    }

    fn report_bits(&self) -> u32 {
        report_bits(self.outputs())
    }

    fn chunk(&self) -> usize {
        SLOTS
    }

    /// The input is vectors that lie one after the other, `F32` or `F64`; a report is of one vector. Codes and packed codes
    /// are given. What vector `i` draws depends on the key and on `i` alone.
    fn randomize_on(&self, isa: Isa, call: Call<'_, (), &Key>) -> Result<()> {
        call.refuse_letters()?;
        let Call { input, mut output, keys: key, first_chunk, threads, .. } = call;
        let dimensions = self.dimensions as usize;
        if !input.is_real() {
            return Err(argument("x", "float32 or float64 is needed".into()));
        }
        if !input.len().is_multiple_of(dimensions) {
            let reason = format!("{} numbers are no whole vectors of {dimensions}", input.len());
            return Err(Error::Shape { name: "x", reason });
        }
        check_form(&output)?;
        let reports = input.len() / dimensions;
        let bits = self.report_bits();
        packed_len(reports, bits)?;
        Chunks { reports, bits, values: dimensions, chunk: SLOTS, first_chunk, threads }.check(&output)?;
        let sampler = Sampler { isa, key, law: &self.law, dimensions };
        let codes = match input {
            Input::F32(values) => chosen(&sampler, u32::of(values), first_chunk, threads),
            Input::F64(values) => chosen(&sampler, u64::of(values), first_chunk, threads),
            _ => unreachable!("integers were refused"),
        }
        .inspect_err(|_| output.clear())?;
        match output {
            Output::U8(out) => out.iter_mut().zip(codes).for_each(|(out, code)| *out = code as u8),
            Output::U16(out) => out.iter_mut().zip(codes).for_each(|(out, code)| *out = code as u16),
            Output::U32(out) => out.copy_from_slice(&codes),
            Output::Packed(out) => out.copy_from_slice(&pack(&codes, bits)?),
            _ => unreachable!("other forms were refused"),
        }
        Ok(())
    }
}

impl Keyed for Select {
    /// A vector is one value: two that differ in one number have independent reports. The input may also be integers.
    fn randomize_keyed_on(&self, isa: Isa, call: KeyedCall<'_, ()>) -> Result<()> {
        self.randomize_hearing(u64::MAX, isa, call)
    }
}

impl Select {
    /// Randomizes with coins that depend on those bits of the values that `heard` marks.
    pub(super) fn randomize_hearing(&self, heard: u64, isa: Isa, call: KeyedCall<'_, ()>) -> Result<()> {
        call.refuse_letters()?;
        let law = |digest: &mut Digest| {
            let (counts, weights): (Vec<_>, Vec<_>) = self.runs().unzip();
            digest.text(b"select");
            digest.numbers([self.empty.into(), self.law.nothing().into()].into_iter());
            digest.numbers(counts.into_iter().map(u128::from));
            digest.numbers(weights.into_iter().map(u128::from));
        };
        let (values, bits) = (self.dimensions as usize, self.report_bits());
        let face =
            records::Face { isa, values, words: 1, bits, numbers: true, mute: false, law: &law, heard };
        check_form(&call.output)?;
        face.chunks(&call)?.check(&call.output)?;
        let draw = |key: &Key, input: Input<'_>, output: Output<'_>| {
            let Input::F64(values) = input else { unreachable!("the values count as numbers") };
            let sampler = Sampler { isa, key, law: &self.law, dimensions: self.dimensions as usize };
            let mut code = [0];
            let refused = sampler.vectors(0, 0, u64::of(values), &mut code);
            records::write(code[0], output);
            refused
        };
        face.randomize(call, |_| None, draw)?.map_err(|index| element("x", index, FINITE))
    }
}

/// What is selected from.
const FINITE: &str = "a finite number is needed, not NaN and not infinite";

/// Refuses an output that takes no codes.
fn check_form(output: &Output<'_>) -> Result<()> {
    match output {
        Output::U8(_) | Output::U16(_) | Output::U32(_) | Output::Packed(_) => Ok(()),
        _ => Err(argument("output", "a report is a code word: codes, or packed".into())),
    }
}

/// The reports of all vectors, or the place of the first number that is not finite.
fn chosen<M: Magnitude>(
    sampler: &Sampler<'_>,
    values: &[M],
    first_chunk: u64,
    threads: Option<usize>,
) -> Result<Vec<u32>> {
    let dimensions = sampler.dimensions;
    let mut codes = vec![0; values.len() / dimensions];
    let (parts, bad) = (Parts::new(&mut codes), AtomicUsize::new(usize::MAX));
    // A part of a chunk that divides it, so that a task never spans two.
    let task =
        if dimensions * SLOTS <= TASK { SLOTS } else { (TASK / dimensions).max(1).next_power_of_two() };
    let count = values.len() / dimensions;
    // About half a nanosecond a number, and a microsecond besides.
    for_chunks(count, task, threads, 1_000 + dimensions / 2, |_, range| {
        // SAFETY: chunks do not overlap.
        let codes = unsafe { parts.part(range.clone()) };
        let (chunk, slot) = (first_chunk + (range.start / SLOTS) as u64, range.start % SLOTS);
        let part = &values[range.start * dimensions..range.end * dimensions];
        if let Some(place) = sampler.vectors(chunk, slot, part, codes) {
            bad.fetch_min(range.start * dimensions + place, Ordering::Relaxed);
        }
    });
    match bad.into_inner() {
        usize::MAX => Ok(codes),
        index => Err(element("x", index, FINITE)),
    }
}
