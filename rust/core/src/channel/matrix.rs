//! Matrices: any law of finitely many inputs and reports.

use super::call::{Call, Channel};
use super::categorical::{Categorical, randomize, report_bits};
use super::keyed::{self, Keyed, KeyedCall};
use crate::codec::Grid;
use crate::error::{Error, Result, argument, element, reason};
use crate::io::{Input, Output};
use crate::isa::Isa;
use crate::kernel::categorical::{AnyMatrix, CategoricalSampler};
use crate::probability::log_ratio;
use crate::random::{Digest, Key};

/// The most inputs, and the most reports.
const MOST: usize = 1 << 16;

/// How far from 1 the sum of a row of probabilities may be.
const TOLERANCE: f64 = 1e-9;

const UNIT: u128 = 1 << 64;

/// The channel of a row-stochastic table: input `i` is reported as `j` with probability `weights[i][j] / 2^64`.
///
/// Tables of up to 32 inputs and 32 reports are read whole for every sample. In larger ones the address depends on the
/// input's row, so sampling is not constant-time. In both, a comparison rarely needs more random bits than it was given,
/// and which one does depends on the row: in a table that is read whole once in `2^27` draws or less.
pub struct Matrix {
    inputs: usize,
    outputs: usize,
    weights: Vec<u128>,
    epsilon: f64,
    law: AnyMatrix,
}

impl Matrix {
    /// The matrix of `inputs` rows of probabilities.
    ///
    /// Each becomes a multiple of 2^-64: rounded down, but not to 0, and the
    /// row's largest entry takes up what is missing to exactly 1.
    ///
    /// # Errors
    /// [`Error::Shape`] if `probabilities` is no table of 1 to 65,536 rows and columns, [`Error::Value`] for an entry that
    /// is no probability, [`Error::Argument`] if a row does not sum to 1 within 1e-9.
    pub fn new(inputs: usize, outputs: usize, probabilities: &[f64]) -> Result<Matrix> {
        check_shape("probabilities", inputs, outputs, probabilities.len())?;
        if let Some(index) = probabilities.iter().position(|p| !(0.0..=1.0 + TOLERANCE).contains(p)) {
            return Err(element("probabilities", index, "a number from 0 to 1 is"));
        }
        let mut weights = Vec::with_capacity(probabilities.len());
        for (i, row) in probabilities.chunks_exact(outputs).enumerate() {
            let sum: f64 = row.iter().sum();
            if (sum - 1.0).abs() > TOLERANCE {
                let reason = reason!("row {i} sums to {sum}, not to 1 within {TOLERANCE}");
                return Err(argument("probabilities", reason));
            }
            let start = weights.len();
            // Scaling by a power of two is exact, and so is the conversion of a float's integer part.
            weights.extend(row.iter().map(|&p| if p > 0.0 { ((p * UNIT as f64) as u128).max(1) } else { 0 }));
            balance(&mut weights[start..], i)?;
        }
        Matrix::from_weights(inputs, outputs, weights)
    }

    /// The matrix of `inputs` rows of integers, each row summing to exactly 2^64.
    ///
    /// # Errors
    /// [`Error::Shape`] if `weights` is no table of 1 to 65,536 rows and columns, [`Error::Argument`] if a row sums to
    /// something else.
    pub fn from_weights(inputs: usize, outputs: usize, weights: Vec<u128>) -> Result<Matrix> {
        check_shape("weights", inputs, outputs, weights.len())?;
        let unbalanced =
            |row: &[u128]| row.iter().try_fold(0u128, |sum, &weight| sum.checked_add(weight)) != Some(UNIT);
        if let Some(i) = weights.chunks_exact(outputs).position(unbalanced) {
            return Err(argument("weights", reason!("row {i} does not sum to 2^64")));
        }
        let epsilon = exact_epsilon(outputs, &weights);
        let law = AnyMatrix::new(&weights, outputs);
        Ok(Matrix { inputs, outputs, weights, epsilon, law })
    }

    /// Inputs, the rows.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Reports, the columns.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The integers over 2^64 that are sampled, one row of `outputs` an input.
    pub fn weights(&self) -> &[u128] {
        &self.weights
    }

    /// `P(report | input)`, one row of `outputs` an input, each the nearest float.
    pub fn probabilities(&self) -> Vec<f64> {
        self.weights.iter().map(|&weight| weight as f64 / UNIT as f64).collect()
    }

    /// Absorbs the law.
    pub(super) fn absorb(&self, digest: &mut Digest) {
        digest.text(b"matrix");
        digest.numbers([self.inputs as u128, self.outputs as u128].into_iter());
        digest.numbers(self.weights.iter().copied());
    }

    /// The law in the form in which it is sampled.
    pub(super) fn sampled(&self) -> &AnyMatrix {
        &self.law
    }

    /// True where every sample reads the whole table, so that no address depends on the input.
    pub fn is_constant_time(&self) -> bool {
        self.law.is_read_whole()
    }
}

impl Channel for Matrix {
    type Codec<'a> = Option<&'a Grid>;
    type Keys<'a> = &'a Key;

    fn epsilon(&self) -> f64 {
        self.epsilon
    }

    fn report_bits(&self) -> u32 {
        report_bits(self.columns())
    }

    /// The input is rows (any integers) without a codec, or numbers (`F32`, `F64`) with a grid of `inputs` points. The
    /// output takes code words of any width that holds a report, packed reports, or numbers if there are letters, one for
    /// each report.
    fn randomize_on(&self, isa: Isa, call: Call<'_, Option<&Grid>, &Key>) -> Result<()> {
        randomize(self, isa, call)
    }
}

impl Categorical for Matrix {
    fn rows(&self) -> u32 {
        self.inputs as u32
    }

    fn columns(&self) -> u32 {
        self.outputs as u32
    }

    fn sample(&self, sampler: &CategoricalSampler<'_>, chunk: u64, input: Input<'_>, output: Output<'_>) {
        match &self.law {
            AnyMatrix::Coarse(law) => sampler.chunk(law, chunk, input, output),
            AnyMatrix::Fine(law) => sampler.chunk(law, chunk, input, output),
        }
    }
}

impl Keyed for Matrix {
    fn randomize_keyed_on(&self, isa: Isa, call: KeyedCall<'_, Option<&Grid>>) -> Result<()> {
        let description = keyed::ValueCall {
            rows: &[("grid", self.rows())],
            columns: self.columns(),
            mute: false,
            law: &|digest| self.absorb(digest),
        };
        keyed::randomize(&description, isa, call.pair(), |sampler, first, input, output| match &self.law {
            AnyMatrix::Coarse(law) => sampler.samples(law, first, input, output),
            AnyMatrix::Fine(law) => sampler.samples(law, first, input, output),
        })
    }
}

fn check_shape(name: &'static str, inputs: usize, outputs: usize, entries: usize) -> Result<()> {
    let size = 1..=MOST;
    if !size.contains(&inputs) || !size.contains(&outputs) {
        let reason = reason!("{inputs} rows of {outputs} columns are not allowed; 1 to {MOST} of each are");
        return Err(Error::Shape { name, reason });
    }
    if entries != inputs * outputs {
        let reason = reason!("{entries} entries, where {inputs} rows of {outputs} are needed");
        return Err(Error::Shape { name, reason });
    }
    Ok(())
}

/// Lets the largest entry (the first of several) take up what is missing to 2^64, or what is too much.
fn balance(row: &mut [u128], i: usize) -> Result<()> {
    let sum: u128 = row.iter().sum();
    let largest = row.iter_mut().rev().max_by_key(|weight| **weight);
    match largest.map(|largest| (*largest + UNIT).checked_sub(sum).map(|balanced| *largest = balanced)) {
        Some(Some(())) => Ok(()),
        _ => Err(argument("probabilities", reason!("row {i} cannot be made to sum to 1 exactly"))),
    }
}

/// The largest log-ratio within a column.
fn exact_epsilon(outputs: usize, weights: &[u128]) -> f64 {
    let mut extremes = vec![(u128::MAX, 0); outputs];
    for row in weights.chunks_exact(outputs) {
        for ((least, most), &weight) in extremes.iter_mut().zip(row) {
            *least = weight.min(*least);
            *most = weight.max(*most);
        }
    }
    extremes.into_iter().map(|(least, most)| log_ratio(most, least)).fold(0.0, f64::max)
}
