//! Helpers that the tests of the categorical channels share.
#![allow(dead_code, reason = "every test file uses a part of it")]

use bitldp_core::{Call, Channel, Error, Grid, Input, Isa, Key, Matrix, Output, Result, Shift, Window};

/// A fixed key: these tests are repeatable.
pub fn key(seed: u8) -> Key {
    Key::from_bytes([seed; 32])
}

/// Checks what a refused call left of an output that was full of `mark`: zeros where a value was refused, for that is
/// found while others are randomized, and otherwise the mark. Marks it again and gives the error.
pub fn left_behind<T: Copy + Default + PartialEq + std::fmt::Debug>(
    out: &mut [T],
    mark: T,
    result: Result<()>,
) -> Error {
    let error = result.expect_err("a refusal");
    let left = if matches!(error, Error::Value { .. }) { T::default() } else { mark };
    assert!(out.iter().all(|&element| element == left), "{error}: something else than {left:?} is left");
    out.fill(mark);
    error
}

/// A categorical channel.
#[allow(clippy::large_enum_variant, reason = "a handful in a test")]
pub enum Categorical {
    Window(Window),
    Matrix(Matrix),
    Shift(Shift),
}

/// How a call is made; none of it but `first_chunk` may change the answer.
#[derive(Clone, Copy)]
pub struct Way {
    pub isa: Isa,
    pub first_chunk: u64,
    pub threads: Option<usize>,
}

/// One thread of the scalar path, from the start of the stream.
pub const ORACLE: Way = Way { isa: Isa::Scalar, first_chunk: 0, threads: Some(1) };

impl Categorical {
    pub fn randomize(
        &self,
        call: Way,
        grid: Option<&Grid>,
        input: Input<'_>,
        letters: Option<&[f64]>,
        output: Output<'_>,
        key: &Key,
    ) -> Result<()> {
        let Way { isa, first_chunk, threads } = call;
        match self {
            Categorical::Window(channel) => channel.randomize_on(
                isa,
                Call { letters, first_chunk, threads, ..Call::new(grid, input, output, key) },
            ),
            Categorical::Matrix(channel) => channel.randomize_on(
                isa,
                Call { letters, first_chunk, threads, ..Call::new(grid, input, output, key) },
            ),
            Categorical::Shift(channel) => channel.randomize_on(
                isa,
                Call { letters, first_chunk, threads, ..Call::new(grid, input, output, key) },
            ),
        }
    }

    /// The reports of `input` as 32-bit code words.
    pub fn codes(&self, call: Way, grid: Option<&Grid>, input: Input<'_>, key: &Key) -> Vec<u32> {
        let mut out = vec![u32::MAX; input.len()];
        self.randomize(call, grid, input, None, Output::U32(&mut out), key).unwrap();
        out
    }

    pub fn report_bits(&self) -> u32 {
        match self {
            Categorical::Window(channel) => channel.report_bits(),
            Categorical::Matrix(channel) => channel.report_bits(),
            Categorical::Shift(channel) => channel.report_bits(),
        }
    }
}

/// Pearson's statistic of `reports` against probabilities, and its degrees of freedom. Cells that expect fewer than five
/// reports are put together; a report where none can be is a failure by itself.
pub fn chi_square(reports: &[u32], probabilities: &[f64]) -> (f64, f64) {
    let mut counts = vec![0.0; probabilities.len()];
    reports.iter().for_each(|&report| counts[report as usize] += 1.0);
    let (mut statistic, mut cells, mut rare) = (0.0, 0.0, (0.0, 0.0));
    for (&count, &p) in counts.iter().zip(probabilities) {
        let expected = p * reports.len() as f64;
        assert!(expected > 0.0 || count == 0.0, "a report that is impossible");
        if expected < 5.0 {
            rare = (rare.0 + count, rare.1 + expected);
        } else {
            statistic += (count - expected).powi(2) / expected;
            cells += 1.0;
        }
    }
    if rare.1 > 0.0 {
        statistic += (rare.0 - rare.1).powi(2) / rare.1;
        cells += 1.0;
    }
    (statistic, cells - 1.0)
}

/// The quantile of the chi-square distribution at 1 - 1e-6, by Wilson and Hilferty's approximation (1931), which is
/// slightly conservative here: `z = 4.7534` is the normal quantile.
pub fn chi_square_limit(degrees: f64) -> f64 {
    let spread = 2.0 / (9.0 * degrees);
    degrees * (1.0 - spread + 4.7534 * spread.sqrt()).powi(3)
}

/// The exact ε of a table of integers over 2^64 by its definition: all reports, all pairs of inputs.
pub fn epsilon_by_enumeration(rows: &[Vec<f64>]) -> f64 {
    let mut worst = 0.0f64;
    for report in 0..rows[0].len() {
        for a in rows {
            for b in rows {
                let (p, q) = (a[report], b[report]);
                worst = worst.max(if p > 0.0 { (p / q).ln() } else { 0.0 });
            }
        }
    }
    worst
}

/// A cheap sequence that looks random: inputs need no more.
pub fn scrambled(i: usize) -> u32 {
    ((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}
