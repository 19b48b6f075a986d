//! Shifts: integer noise that is added to the input, the sum clamped to the reports.

mod divergence;

use divergence::Noise;

use super::call::{Call, Channel};
use super::categorical::{Categorical, randomize, report_bits};
use super::keyed::{self, Keyed, KeyedCall};
use crate::codec::Grid;
use crate::error::{Error, Result, argument, reason, words};
use crate::io::{Input, Output};
use crate::isa::Isa;
use crate::kernel::categorical::{AnyMatrix, CategoricalSampler, KeyedSampler, ShiftLaw};
use crate::random::{Digest, Key};

/// The most inputs, reports and values of the noise.
const MOST: usize = 1 << 16;

/// The largest offset: beyond it every report would be the same.
const FARTHEST: i32 = 1 << 17;

/// The most entries of a table of probabilities.
const LARGEST_TABLE: usize = 1 << 26;

const UNIT: u128 = 1 << 64;

/// The channel that adds noise: input `x` is reported as `clamp(x + k + offset, 0, outputs - 1)`, where the noise `k`, from
/// `-K` to `K`, has the probability `weights[k + K] / 2^64`.
///
/// A report at either end stands for all the sums beyond it, too. Neither branches nor addresses depend on the input.
pub struct Shift {
    inputs: usize,
    outputs: usize,
    weights: Vec<u128>,
    offset: i32,
    epsilon: f64,
    mute: bool,
    noise: AnyMatrix,
}

impl Shift {
    /// The channel of `inputs` inputs, `outputs` reports and an odd number of `weights` that sum to exactly 2^64.
    ///
    /// # Errors
    /// [`Error::Argument`] if there are no inputs or reports or more than 65,536, for an offset beyond 2^17, or if the
    /// weights sum to something else; [`Error::Shape`] if their number is even or above 65,535.
    pub fn new(inputs: usize, outputs: usize, weights: Vec<u128>, offset: i32) -> Result<Shift> {
        for (name, count) in [("inputs", inputs), ("outputs", outputs)] {
            if !(1..=MOST).contains(&count) {
                return Err(argument(name, reason!("{count} is not allowed; 1 to {MOST} is")));
            }
        }
        if !(-FARTHEST..=FARTHEST).contains(&offset) {
            let reason = reason!("{offset} is not allowed; -{FARTHEST} to {FARTHEST} is");
            return Err(argument("offset", reason));
        }
        if weights.len().is_multiple_of(2) || weights.len() >= MOST {
            let reason =
                reason!("{} entries, where an odd number up to {} is needed", weights.len(), MOST - 1);
            return Err(Error::Shape { name: "weights", reason });
        }
        if weights.iter().try_fold(0u128, |sum, &weight| sum.checked_add(weight)) != Some(UNIT) {
            return Err(argument("weights", words("must sum to 2^64")));
        }
        let noise = AnyMatrix::new(&weights, weights.len());
        let mut shift = Shift { inputs, outputs, weights, offset, epsilon: 0.0, mute: false, noise };
        shift.epsilon = shift.law().exact_epsilon();
        Ok(shift)
    }

    /// The channel that checks its input and randomizes zeros in its place: its exact ε is 0, whatever the noise.
    #[must_use]
    pub fn muted(self) -> Shift {
        Shift { epsilon: 0.0, mute: true, ..self }
    }

    /// Inputs, N.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Reports, M.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The largest noise, K.
    pub fn reach(&self) -> usize {
        self.weights.len() / 2
    }

    /// The number that is added to every input besides the noise.
    pub fn offset(&self) -> i32 {
        self.offset
    }

    /// The integers over 2^64 of the noise `-K, …, K`.
    pub fn weights(&self) -> &[u128] {
        &self.weights
    }

    /// The exact δ at `epsilon`, rounded up: the largest Σ max(0, P(z|x) - e^ε P(z|x')) over all pairs of inputs, summed
    /// over all reports z.
    ///
    /// It comes from the integers that are sampled, and is at most `2^-50` of the chance of the reports where the term is
    /// positive, and `2^-78`, above the true value. It takes time proportional to inputs times (inputs and weights).
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) if `epsilon` is NaN or negative.
    pub fn delta(&self, epsilon: f64) -> Result<f64> {
        self.law().delta(epsilon)
    }

    /// `P(report | input)`, one row of `outputs` an input, each the nearest float.
    ///
    /// # Errors
    /// [`Error::Argument`] if that were more than 2^26 entries.
    pub fn probabilities(&self) -> Result<Vec<f64>> {
        if self.inputs * self.outputs > LARGEST_TABLE {
            let reason = reason!(
                "a table of {} by {} is not made; up to {LARGEST_TABLE} entries are",
                self.inputs,
                self.outputs
            );
            return Err(argument("outputs", reason));
        }
        let mut table = vec![0u128; self.inputs * self.outputs];
        let last = self.outputs as i64 - 1;
        let given = |x: usize| if self.mute { 0 } else { x as i64 };
        for (x, row) in table.chunks_exact_mut(self.outputs).enumerate() {
            for (j, &weight) in self.weights.iter().enumerate() {
                row[(given(x) + j as i64 + self.base()).clamp(0, last) as usize] += weight;
            }
        }
        Ok(table.into_iter().map(|weight| weight as f64 / UNIT as f64).collect())
    }

    /// The law, to be compared input by input.
    fn law(&self) -> Noise<'_> {
        Noise {
            inputs: if self.mute { 1 } else { self.inputs },
            outputs: self.outputs,
            base: self.base(),
            weights: &self.weights,
        }
    }

    /// The number that is added to an input and the position of the noise among the weights.
    fn base(&self) -> i64 {
        i64::from(self.offset) - self.reach() as i64
    }
}

impl Channel for Shift {
    type Codec<'a> = Option<&'a Grid>;
    type Keys<'a> = &'a Key;

    fn epsilon(&self) -> f64 {
        self.epsilon
    }

    fn report_bits(&self) -> u32 {
        report_bits(self.columns())
    }

    fn is_mute(&self) -> bool {
        self.mute
    }

    /// The input is integers below `inputs` without a codec, or numbers (`F32`, `F64`) with a grid of `inputs` points. The
    /// output takes code words of any width that holds a report, packed reports, or numbers if there are letters, one for
    /// each report.
    fn randomize_on(&self, isa: Isa, call: Call<'_, Option<&Grid>, &Key>) -> Result<()> {
        randomize(self, isa, call)
    }
}

impl Categorical for Shift {
    fn rows(&self) -> u32 {
        self.inputs as u32
    }

    fn columns(&self) -> u32 {
        self.outputs as u32
    }

    fn sample(&self, sampler: &CategoricalSampler<'_>, chunk: u64, input: Input<'_>, output: Output<'_>) {
        let (inputs, base, last) = (self.rows(), self.base() as i32, (self.outputs - 1) as u16);
        match &self.noise {
            AnyMatrix::Coarse(noise) => {
                sampler.chunk(&ShiftLaw { noise, inputs, base, last }, chunk, input, output)
            }
            AnyMatrix::Fine(noise) => {
                sampler.chunk(&ShiftLaw { noise, inputs, base, last }, chunk, input, output)
            }
        }
    }
}

impl Keyed for Shift {
    fn randomize_keyed_on(&self, isa: Isa, call: KeyedCall<'_, Option<&Grid>>) -> Result<()> {
        let law = |digest: &mut Digest| {
            let numbers = [self.inputs as u128, self.outputs as u128, self.offset as u128, self.mute.into()];
            digest.text(b"shift");
            digest.numbers(numbers.into_iter());
            digest.numbers(self.weights.iter().copied());
        };
        let (rows, columns) = (&[("grid", self.rows())], self.columns());
        let description = keyed::ValueCall { rows, columns, mute: self.mute, law: &law };
        keyed::randomize(&description, isa, call.pair(), |sampler, first, input, output| {
            self.sample_keyed(sampler, first, input, output);
        })
    }
}

impl Shift {
    /// Samples with keyed randomness, with what was checked.
    pub(super) fn sample_keyed(
        &self,
        sampler: &KeyedSampler<'_>,
        first: usize,
        input: Input<'_>,
        output: Output<'_>,
    ) {
        let (inputs, base, last) = (self.rows(), self.base() as i32, (self.outputs - 1) as u16);
        match &self.noise {
            AnyMatrix::Coarse(noise) => {
                sampler.samples(&ShiftLaw { noise, inputs, base, last }, first, input, output);
            }
            AnyMatrix::Fine(noise) => {
                sampler.samples(&ShiftLaw { noise, inputs, base, last }, first, input, output);
            }
        }
    }
}
