//! Selection: one coordinate of a vector, more likely the larger its magnitude, or the larger it is with a sign.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::call::{Call, Channel};
use super::categorical::report_bits;
use super::chunks::Chunks;
use super::keyed::{Keyed, KeyedCall, records};
use crate::codec::{FINITE, Part, Rotated, RotationBuffers, pack, packed_len};
use crate::error::{Error, Result, argument, element, reason, words, zeros};
use crate::io::{Input, Output};
use crate::isa::{BATCHES, Isa};
use crate::kernel::select::{Magnitude, Plain, RankLaw, SLOTS, SelectSampler, Vectors};
use crate::parallel::{Parts, for_chunks};
use crate::probability::abs_log_ratio;
use crate::random::{Digest, Key};

/// Numbers that get a task of their own.
const TASK: usize = 1 << 17;

/// The channel that reports the position of one coordinate of a vector of `d` numbers.
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
/// The *signed* form orders the `2 d` numbers `+y_j` and `-y_j` by value and reports one of them, `2 j` for `-y_j` and
/// `2 j + 1` for `+y_j`; its weights are of `2 d` ranks. Every one of the numbers takes every rank in some vector, so its
/// exact ε is the same. A codec may lift and rotate vectors first ([`Rotated`]); the law, and so ε, holds for any rotation.
///
/// It is not constant-time: after the rank is drawn, the search for its coordinate takes branches and addresses that
/// depend on the vector and on the rank, as the matrix channel's on its row.
pub struct Select {
    law: RankLaw,
    dimensions: u32,
    empty: bool,
    signed: bool,
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
        Select::of(counts, weights, nothing, false)
    }

    /// A signed law: runs of an even number of ranks of the coordinates with either sign, smallest value first.
    ///
    /// # Errors
    /// As [`new`](Self::new), and an odd number of ranks.
    pub fn signed(counts: &[u32], weights: &[u64]) -> Result<Select> {
        Select::of(counts, weights, None, true)
    }

    fn of(counts: &[u32], weights: &[u64], nothing: Option<u64>, signed: bool) -> Result<Select> {
        if counts.len() != weights.len() {
            let reason =
                reason!("{} weights, where {} are needed: one for each run", weights.len(), counts.len());
            return Err(Error::Shape { name: "weights", reason });
        }
        if let Some(run) = counts.iter().position(|&count| count == 0) {
            return Err(argument("counts", reason!("run {run} is empty; every run has a rank at least")));
        }
        let ranks = counts.iter().map(|&count| u64::from(count)).sum::<u64>();
        if !(2..u64::from(u32::MAX)).contains(&ranks) {
            return Err(argument("counts", reason!("{ranks} ranks are not allowed; 2 to 2^32 - 2 are")));
        }
        if signed && !ranks.is_multiple_of(2) {
            return Err(argument(
                "counts",
                reason!("{ranks} signed ranks are not allowed; two a coordinate are"),
            ));
        }
        let dimensions = if signed { ranks / 2 } else { ranks } as u32;
        let law = RankLaw::new(counts, weights, nothing.unwrap_or(0))
            .ok_or_else(|| argument("weights", words("must sum to 1 to 2^64 - 1 over all ranks")))?;
        let most = weights.iter().copied().max().unwrap_or(0);
        let least = weights.iter().copied().min().unwrap_or(0);
        let epsilon = abs_log_ratio(most.into(), least.into());
        Ok(Select { law, dimensions, empty: nothing.is_some(), signed, epsilon })
    }

    /// Coordinates of a vector, d.
    pub fn dimensions(&self) -> u32 {
        self.dimensions
    }

    /// True where coordinates are ordered with either sign.
    pub fn is_signed(&self) -> bool {
        self.signed
    }

    /// Ranks that the law is of: the coordinates, or twice as many.
    fn ranks(&self) -> u32 {
        if self.signed { 2 * self.dimensions } else { self.dimensions }
    }

    /// How many reports there are: the coordinates (with either sign), and `d` where nothing can be reported.
    pub fn outputs(&self) -> u32 {
        self.ranks() + u32::from(self.empty)
    }

    /// The runs of the law, smallest magnitude first: how many ranks, and the weight of each.
    pub fn runs(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.law.runs(self.ranks())
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
    type Codec<'a> = Option<Rotated<'a>>;
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
    ///
    /// With a codec, vectors of as many numbers as that one takes are lifted and rotated to `d` coordinates first.
    fn randomize_on(&self, isa: Isa, call: Call<'_, Option<Rotated<'_>>, &Key>) -> Result<()> {
        call.refuse_letters()?;
        let Call { codec, input, mut output, keys: key, first_chunk, threads, .. } = call;
        let rotated = codec.map(|codec| codec.rotation);
        if let Some(rotation) = rotated.filter(|rotation| rotation.dimensions() != self.dimensions as usize) {
            let reason = reason!("{} dimensions do not fit {}", rotation.dimensions(), self.dimensions);
            return Err(argument("rotation", reason));
        }
        let dimensions = rotated.map_or(self.dimensions as usize, |rotation| rotation.features());
        if !input.is_real() {
            return Err(argument("x", words("float32 or float64 is needed")));
        }
        if !input.len().is_multiple_of(dimensions) {
            let reason = reason!("{} numbers are no whole vectors of {dimensions}", input.len());
            return Err(Error::Shape { name: "x", reason });
        }
        check_form(&output)?;
        let reports = input.len() / dimensions;
        if let Some(codec) = codec.filter(|codec| codec.numbers.len() != reports) {
            let reason = reason!("{} numbers for {reports} vectors", codec.numbers.len());
            return Err(Error::Shape { name: "rotations", reason });
        }
        let bits = self.report_bits();
        packed_len(reports, bits)?;
        Chunks { reports, bits, codes: 1, values: dimensions, chunk: SLOTS, first_chunk, threads }
            .check(&output)?;
        let law = &self.law;
        let sampler =
            SelectSampler { isa, key, law, dimensions: self.dimensions as usize, signed: self.signed };
        let walk = VectorWalk { sampler: &sampler, reports, width: dimensions, first_chunk, threads };
        let codes = match (input, codec) {
            _ if !BATCHES => walk.chosen_once(isa, input, codec),
            (Input::F32(values), None) => walk.chosen(plain(u32::of(values), dimensions)),
            (Input::F64(values), None) => walk.chosen(plain(u64::of(values), dimensions)),
            (Input::F32(values), Some(codec)) => walk.chosen(turned(isa, values, codec)),
            (Input::F64(values), Some(codec)) => walk.chosen(turned(isa, values, codec)),
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
    /// A vector is one value: two that differ in one number have independent reports. The input may also be integers; vectors
    /// that are to be rotated come rotated.
    fn randomize_keyed_on(&self, isa: Isa, call: KeyedCall<'_, Option<Rotated<'_>>>) -> Result<()> {
        if call.codec.is_some() {
            return Err(argument("rotation", words("with keyed randomness, rotate the vectors beforehand")));
        }
        self.randomize_hearing(u64::MAX, isa, call)
    }
}

impl Select {
    /// Randomizes with keyed randomness that depends on those bits of the values that `heard` marks.
    pub(super) fn randomize_hearing<C>(&self, heard: u64, isa: Isa, call: KeyedCall<'_, C>) -> Result<()> {
        call.refuse_letters()?;
        let law = |digest: &mut Digest| {
            let (counts, weights): (Vec<_>, Vec<_>) = self.runs().unzip();
            digest.text(if self.signed { b"signed" } else { b"select" });
            digest.numbers([self.empty.into(), self.law.nothing().into()].into_iter());
            digest.numbers(counts.into_iter().map(u128::from));
            digest.numbers(weights.into_iter().map(u128::from));
        };
        let (values, bits) = (self.dimensions as usize, self.report_bits());
        let description = records::WholeRecordCall {
            isa,
            values,
            words: 1,
            codes: 1,
            bits,
            numbers: true,
            mute: false,
            law: &law,
            heard,
        };
        check_form(&call.output)?;
        description.chunks(&call)?.check(&call.output)?;
        let draw = |key: &Key, input: Input<'_>, output: Output<'_>| {
            let Input::F64(vector) = input else { unreachable!("the values count as numbers") };
            let sampler = SelectSampler { isa, key, law: &self.law, dimensions: values, signed: self.signed };
            let mut code = [0];
            let refused = sampler.vectors(0, 0, Plain(u64::of(vector), values), &mut code);
            records::write(code[0], output);
            refused
        };
        description.randomize(call, |_| None, draw)?.map_err(|index| element("x", index, FINITE))
    }
}

/// Refuses an output that takes no codes.
fn check_form(output: &Output<'_>) -> Result<()> {
    match output {
        Output::U8(_) | Output::U16(_) | Output::U32(_) | Output::Packed(_) => Ok(()),
        _ => Err(argument("output", words("a report is a code word: codes, or packed"))),
    }
}

/// Vectors of a range of a batch as they are.
fn plain<'a, M>(values: &'a [M], width: usize) -> impl Fn(Range<usize>) -> Plain<'a, M> {
    move |range| Plain(&values[range.start * width..range.end * width], width)
}

/// Vectors of a range of a batch, lifted and rotated.
struct Turned<'a, F> {
    values: &'a [F],
    numbers: &'a [u32],
    buffers: RotationBuffers<'a>,
}

fn turned<'a, F: Part>(
    isa: Isa,
    values: &'a [F],
    codec: Rotated<'a>,
) -> impl Fn(Range<usize>) -> Turned<'a, F> {
    let width = codec.rotation.features();
    move |range| Turned {
        values: &values[range.start * width..range.end * width],
        numbers: &codec.numbers[range],
        buffers: codec.rotation.buffers(isa),
    }
}

impl<F: Part> Vectors<u32> for Turned<'_, F> {
    fn width(&self) -> usize {
        self.values.len() / self.numbers.len()
    }

    fn vector(&mut self, at: usize) -> std::result::Result<&[u32], usize> {
        let width = self.width();
        self.buffers.rotate(self.numbers[at], &self.values[at * width..(at + 1) * width]).map(u32::of)
    }
}

/// Vectors of single precision in double precision, in which they have the same order.
struct Widened<V> {
    vectors: V,
    own: Vec<u64>,
}

impl<V: Vectors<u32>> Vectors<u64> for Widened<V> {
    fn width(&self) -> usize {
        self.vectors.width()
    }

    fn vector(&mut self, at: usize) -> std::result::Result<&[u64], usize> {
        let vector = self.vectors.vector(at)?;
        self.own.clear();
        self.own.extend(vector.iter().map(|&bits| f64::from(f32::from_bits(bits)).to_bits()));
        Ok(&self.own)
    }
}

/// A walk over the vectors of a batch.
struct VectorWalk<'a> {
    sampler: &'a SelectSampler<'a>,
    reports: usize,
    /// Numbers of a vector as the caller has them.
    width: usize,
    first_chunk: u64,
    threads: Option<usize>,
}

impl VectorWalk<'_> {
    /// [`chosen`](Self::chosen) of any vectors, compiled once: in double precision.
    fn chosen_once(&self, isa: Isa, input: Input<'_>, codec: Option<Rotated<'_>>) -> Result<Vec<u32>> {
        let width = self.width;
        self.chosen(|range| -> Box<dyn Vectors<u64> + '_> {
            let own = Vec::new();
            match (input, codec) {
                (Input::F32(values), None) => {
                    Box::new(Widened { vectors: plain(u32::of(values), width)(range), own })
                }
                (Input::F64(values), None) => Box::new(plain(u64::of(values), width)(range)),
                (Input::F32(values), Some(codec)) => {
                    Box::new(Widened { vectors: turned(isa, values, codec)(range), own })
                }
                (Input::F64(values), Some(codec)) => {
                    Box::new(Widened { vectors: turned(isa, values, codec)(range), own })
                }
                _ => unreachable!("integers were refused"),
            }
        })
    }

    /// The reports of all vectors, or the position of the first number that is not finite.
    fn chosen<M: Magnitude, V: Vectors<M>>(
        &self,
        vectors: impl Fn(Range<usize>) -> V + Sync,
    ) -> Result<Vec<u32>> {
        let &VectorWalk { sampler, reports, width, first_chunk, threads } = self;
        let dimensions = sampler.dimensions;
        let mut codes = zeros(reports)?;
        let (parts, bad) = (Parts::new(&mut codes), AtomicUsize::new(usize::MAX));
        // A part of a chunk that divides it, so that a task never spans two.
        let task =
            if dimensions * SLOTS <= TASK { SLOTS } else { (TASK / dimensions).max(1).next_power_of_two() };
        // About half a nanosecond a number, and a microsecond besides.
        for_chunks(reports, task, threads, 1_000 + dimensions / 2, |_, range| {
            // SAFETY: chunks do not overlap.
            let codes = unsafe { parts.part(range.clone()) };
            let (chunk, slot) = (first_chunk + (range.start / SLOTS) as u64, range.start % SLOTS);
            let start = range.start * width;
            if let Some(position) = sampler.vectors(chunk, slot, vectors(range), codes) {
                bad.fetch_min(start + position, Ordering::Relaxed);
            }
        });
        match bad.into_inner() {
            usize::MAX => Ok(codes),
            index => Err(element("x", index, FINITE)),
        }
    }
}
