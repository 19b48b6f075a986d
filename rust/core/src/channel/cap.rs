//! Caps: a report is uniform about the input with one probability, and uniform on everything otherwise.

use std::ops::Range;

use num_bigint::BigUint;

use super::call::{Call, Channel};
use super::chunks::{Chunks, heard};
use super::keyed::{Keyed, KeyedCall, absorb, records};
use crate::codec::Grid;
use crate::error::{Error, Result, argument, element, reason, words};
use crate::io::{Input, Output};
use crate::isa::{Isa, vectorised};
use crate::kernel::cap::{CapLaw, CapRows, CapSampler, Column, Share};
use crate::kernel::categorical::first_outside_by;
use crate::parallel::CHUNK;
use crate::probability::{Probability, large_log_ratio};
use crate::random::{Digest, Key, Keys};

/// The most subsets of a list: their counts take memory with the third power.
const MOST_SUBSETS: usize = 256;

/// The most windows.
const MOST_WINDOWS: usize = 1 << 16;

/// The most elements of a subset: a draw takes 32 bits, and is seldom drawn anew.
const MOST_ELEMENTS: u32 = 1 << 16;

/// The longest report.
const MOST_BITS: usize = 1 << 22;

/// Nanoseconds that a single thread takes for a number or a category, and for eight elements of a subset, roughly.
const NANOSECONDS: usize = 6;

/// The channel of caps: with probability `high` the report is uniform on a set `N(x)` about the input, otherwise uniform on
/// everything. Every `N(x)` has the same share `t` of everything, so ε is `ln(1 + A / ((1 - A) t))`.
///
/// A record is one code for each window and one for each subset. Of a window with `points` inputs and the reach `b` the report
/// is one of `points + 2b` cells, of which the `2b + 1` about the input are near. Of a subset the report is `size` of `elements`
/// elements; it is a hit where the input is among them. `N(x)` holds the reports that are near in every window and have
/// at least `hits` hits.
///
/// Both a near cell and any cell are drawn for each window, and chosen between by a mask; which subsets are hits is drawn
/// one after the other, each by comparing random bits with an exact rational. Nothing is rejected because of the input, or of
/// whether the report is from `N(x)`.
pub struct Cap {
    law: CapLaw,
    windows: Vec<(u32, u32)>,
    subsets: Vec<(u32, u32)>,
    hits: u32,
    high: Probability,
    /// How many reports are in `N(x)`, and how many there are, both over the same factor.
    near: BigUint,
    all: BigUint,
    bits: u32,
    mute: bool,
}

impl Cap {
    /// Windows of `(points, reach)`, subsets of `(elements, size)`, and at least `hits` hits.
    ///
    /// # Errors
    /// [`Error::Argument`] for a record of nothing, a size outside its range, or more hits than subsets.
    pub fn new(
        windows: Vec<(u32, u32)>,
        subsets: Vec<(u32, u32)>,
        hits: u32,
        high: Probability,
    ) -> Result<Cap> {
        if windows.is_empty() && subsets.is_empty() {
            return Err(argument("windows", words("a window or a subset is needed")));
        }
        if windows.len() > MOST_WINDOWS {
            return Err(argument(
                "windows",
                reason!("{} are not allowed; up to {MOST_WINDOWS} are", windows.len()),
            ));
        }
        if subsets.len() > MOST_SUBSETS {
            return Err(argument(
                "subsets",
                reason!("{} are not allowed; up to {MOST_SUBSETS} are", subsets.len()),
            ));
        }
        if hits as usize > subsets.len() {
            let reason = reason!("{hits} is not allowed; with {} subsets, 0 to {0} are", subsets.len());
            return Err(argument("hits", reason));
        }
        let mut columns = Vec::new();
        let (mut near, mut all) = (BigUint::from(1u32), BigUint::from(1u32));
        for &(points, reach) in &windows {
            let cells = u64::from(points) + 2 * u64::from(reach);
            if points < 1 || cells > u64::from(u32::MAX) || cells < 2 {
                let reason = reason!(
                    "({points}, {reach}) is not allowed; 1 point or more, and 2 to 2^32 - 1 cells are"
                );
                return Err(argument("windows", reason));
            }
            near *= 2 * reach + 1;
            all *= cells as u32;
            columns.push(Column::window(points, reach));
        }
        for &(elements, size) in &subsets {
            if !(2..=MOST_ELEMENTS).contains(&elements) || !(1..elements).contains(&size) {
                let reason = reason!(
                    "({elements}, {size}) is not allowed; 2 to {MOST_ELEMENTS} elements are, and a size from 1 to one fewer"
                );
                return Err(argument("subsets", reason));
            }
            columns.push(Column::subset(elements, size));
        }
        let counts = hit_counts(&subsets, hits);
        near *= &counts[0][hits as usize];
        all *= &counts[0][0];
        let shares = hit_shares(&subsets, &counts);
        let bits: usize = columns.iter().map(|column| column.bits as usize).sum();
        if bits > MOST_BITS {
            return Err(argument(
                "subsets",
                reason!("reports of {bits} bits are not allowed; {MOST_BITS} are"),
            ));
        }
        let own = Share::new(&BigUint::from(high.numerator()), &(BigUint::from(1u32) << 64u32));
        let law = CapLaw { own, columns, hits, shares };
        Ok(Cap { law, windows, subsets, hits, high, near, all, bits: bits as u32, mute: false })
    }

    /// The channel that checks its input and randomizes zeros in its place: its exact ε is 0.
    #[must_use]
    pub fn muted(self) -> Cap {
        Cap { mute: true, ..self }
    }

    /// Points and reach of each window.
    pub fn windows(&self) -> &[(u32, u32)] {
        &self.windows
    }

    /// Elements and size of each subset.
    pub fn subsets(&self) -> &[(u32, u32)] {
        &self.subsets
    }

    /// The least hits of a near report.
    pub fn hits(&self) -> u32 {
        self.hits
    }

    /// The probability of a report from `N(x)`, beside those that are there by chance.
    pub fn high(&self) -> Probability {
        self.high
    }

    /// The share of all reports that is in `N(x)`, a fraction in lowest terms.
    pub fn share(&self) -> (BigUint, BigUint) {
        let (mut divisor, mut rest) = (self.all.clone(), self.near.clone());
        while rest != BigUint::ZERO {
            (divisor, rest) = (rest.clone(), divisor % rest);
        }
        (&self.near / &divisor, &self.all / &divisor)
    }

    /// Codes of a record.
    pub fn values(&self) -> usize {
        self.windows.len() + self.subsets.len()
    }

    /// Code words of a report: one for each window and each subset of one element, and one for each element of the others.
    pub fn codes(&self) -> usize {
        self.law.columns.iter().map(|column| column.codes).sum()
    }

    /// Bits of the longest code word.
    pub fn code_bits(&self) -> u32 {
        self.law.columns.iter().map(|column| column.bits / column.codes as u32).max().expect("a column")
    }

    /// Cells of the windows, where there is nothing else and all are alike.
    fn cells(&self) -> Option<(u32, u32)> {
        let alike = self.subsets.is_empty() && self.windows.iter().all(|window| *window == self.windows[0]);
        alike.then(|| (self.windows[0].0, self.windows[0].0 + 2 * self.windows[0].1))
    }

    /// Refuses what does not fit.
    fn check(
        &self,
        grid: Option<&Grid>,
        input: Input<'_>,
        letters: Option<&[f64]>,
        output: &Output<'_>,
    ) -> Result<()> {
        match grid {
            None if input.is_real() => {
                return Err(argument("x", words("without a grid, integers are needed")));
            }
            Some(_) if !input.is_real() => {
                return Err(argument("x", words("a grid takes float32 or float64")));
            }
            Some(grid) if self.cells().is_none_or(|(points, _)| points != grid.points()) => {
                let reason = reason!("{} points are allowed with as many in every window", grid.points());
                return Err(argument("grid", reason!("{reason}, and nothing else in a record")));
            }
            _ => {}
        }
        if !input.len().is_multiple_of(self.values()) {
            let reason =
                reason!("{} values are not a whole number of records of {}", input.len(), self.values());
            return Err(Error::Shape { name: "x", reason });
        }
        if output.is_real() && letters.is_none() {
            return Err(argument("output", words("values need letters: the number for each cell")));
        }
        if let Some(letters) = letters {
            let Some((_, cells)) = self.cells() else {
                let reason = "letters need windows that are all equal";
                return Err(argument("letters", words(reason)));
            };
            if letters.len() != cells as usize {
                let reason =
                    reason!("{} letters, where {cells} are needed: one for each cell", letters.len());
                return Err(Error::Shape { name: "letters", reason });
            }
        }
        let width = match output {
            Output::U8(_) => 8,
            Output::U16(_) => 16,
            _ => u32::BITS,
        };
        if width < self.code_bits() {
            let reason = reason!("elements of {width} bits do not hold codes of {}", self.code_bits());
            return Err(Error::Output { reason });
        }
        Ok(())
    }

    /// The position of the first value that has no row.
    fn first_refused(&self, isa: Isa, grid: Option<&Grid>, input: Input<'_>) -> Option<usize> {
        match (input, grid) {
            (Input::F32(values), Some(grid)) => vectorised(isa, || grid.first_refused(values)),
            (Input::F64(values), Some(grid)) => vectorised(isa, || grid.first_refused(values)),
            _ => {
                let rows: Vec<u32> = self.law.columns.iter().map(|column| column.rows).collect();
                first_outside_by(isa, input, &rows)
            }
        }
    }

    /// The refusal of a value that has no row.
    fn refused(&self, grid: Option<&Grid>, index: usize) -> Error {
        let rows = self.law.columns[index % self.values()].rows;
        let integers = || reason!("integers from 0 to {} are", rows - 1);
        element("x", index, grid.map_or_else(integers, |grid| grid.allowed().into()))
    }
}

impl Channel for Cap {
    type Codec<'a> = Option<&'a Grid>;
    type Keys<'a> = &'a Key;

    /// In units of one over all reports, a report in `N(x)` has the probability A / t + (1 - A), another 1 - A.
    fn epsilon(&self) -> f64 {
        if self.mute || self.near == self.all {
            return 0.0;
        }
        let outside = &self.near * self.high.complement().numerator();
        large_log_ratio(&(&self.all * self.high.numerator() + &outside), &outside)
    }

    fn report_bits(&self) -> u32 {
        self.bits
    }

    fn is_mute(&self) -> bool {
        self.mute
    }

    /// About [`CHUNK`] bytes of the longest form of a report, and a multiple of sixteen.
    fn chunk(&self) -> usize {
        let elements: usize = self.law.columns.iter().map(|column| column.codes.div_ceil(8)).sum();
        (CHUNK / elements / 16 * 16).max(16)
    }

    /// The input is records of [`values`](Cap::values) integers each, windows first, one record after the other; real numbers
    /// need a grid of `points` points, and windows that are all alike. The output takes code words
    /// ([`codes`](Cap::codes) of each report; a subset of more than one element is a 0 or 1 for each), bits, packed bits
    /// (nothing between reports), or the letters of cells.
    fn randomize_on(&self, isa: Isa, call: Call<'_, Option<&Grid>, &Key>) -> Result<()> {
        let Call { codec: grid, input, letters, output, keys: key, first_chunk, threads } = call;
        self.check(grid, input, letters, &output)?;
        let (values, codes, bits) = (self.values(), self.codes(), self.bits);
        let (reports, chunk) = (input.len() / values, self.chunk());
        let chunks = Chunks { reports, bits, codes, values, chunk, first_chunk, threads };
        chunks.check(&output)?;
        let work = NANOSECONDS * (values + codes.div_ceil(8));
        let mut zeros = Vec::new();
        let (heard_grid, heard_input) = heard(self.mute, grid, input, &mut zeros);
        let sampler = CapSampler { isa, key, law: &self.law, grid: heard_grid, letters };
        let of = |reports: &Range<usize>| reports.start * values..reports.end * values;
        let refused = |reports| self.first_refused(isa, grid, input.part(of(&reports)));
        let draw = |chunk, reports: Range<usize>, output: Output<'_>| {
            sampler.chunk(chunk, heard_input.part(of(&reports)), output);
        };
        chunks.walk(output, work, refused, draw).map_err(|index| self.refused(grid, index))
    }
}

impl Keyed for Cap {
    /// A record is one value: two that differ in one code have independent reports.
    fn randomize_keyed_on(&self, isa: Isa, call: KeyedCall<'_, Option<&Grid>>) -> Result<()> {
        self.randomize_hearing(u64::MAX, isa, call)
    }
}

impl Cap {
    /// Randomizes with keyed randomness that depends on those bits of the values that `heard` marks.
    pub(super) fn randomize_hearing(
        &self,
        heard: u64,
        isa: Isa,
        call: KeyedCall<'_, Option<&Grid>>,
    ) -> Result<()> {
        let (grid, letters, numbers, mute) = (call.codec, call.letters, call.codec.is_some(), self.mute);
        let law = |digest: &mut Digest| {
            self.absorb(digest);
            absorb(grid, digest);
        };
        let (values, codes, bits) = (self.values(), self.codes(), self.bits);
        let description =
            records::WholeRecordCall { isa, values, words: 1, codes, bits, numbers, mute, law: &law, heard };
        // Integers are numbers where there is a grid.
        let seen = if numbers { Input::F64(&[]) } else { call.input };
        self.check(grid, seen, letters, &call.output)?;
        description.chunks(&call)?.check(&call.output)?;
        let heard_grid = if mute { None } else { grid };
        let refused = |input: Input<'_>| self.first_refused(isa, grid, input);
        let draw = |keys: &[Keys], input: Input<'_>, output: Output<'_>| {
            CapRows { isa, law: &self.law, grid: heard_grid, letters }.chunk(keys, input, output);
            None
        };
        description
            .randomize_together(call, NANOSECONDS * values, refused, draw)?
            .map_err(|index| self.refused(grid, index))
    }

    /// Absorbs the law.
    pub(super) fn absorb(&self, digest: &mut Digest) {
        let pairs = |pairs: &[(u32, u32)]| {
            pairs.iter().flat_map(|&(a, b)| [u128::from(a), b.into()]).collect::<Vec<_>>()
        };
        digest.text(b"cap");
        digest.numbers(pairs(&self.windows).into_iter());
        digest.numbers(pairs(&self.subsets).into_iter());
        digest.numbers([self.hits.into(), self.high.numerator(), self.mute.into()].into_iter());
    }
}

/// How many ways there are to have at least `h` hits among the subsets from the `j`-th on, at `[j][h]`: each counts its
/// input's `elements` positions, of which `size` are hits.
fn hit_counts(subsets: &[(u32, u32)], hits: u32) -> Vec<Vec<BigUint>> {
    let none = || vec![BigUint::ZERO; hits as usize + 1];
    let mut counts = vec![none(); subsets.len() + 1];
    counts[subsets.len()][0] = BigUint::from(1u32);
    for (j, &(elements, size)) in subsets.iter().enumerate().rev() {
        for h in 0..=hits as usize {
            let (behind, missed) = (&counts[j + 1], elements - size);
            counts[j][h] = &behind[h.saturating_sub(1)] * size + &behind[h] * missed;
        }
    }
    counts
}

/// The chance that subset `j` is a hit where at least `h` hits are needed from it on, at `[j][h]`.
fn hit_shares(subsets: &[(u32, u32)], counts: &[Vec<BigUint>]) -> Vec<Vec<Share>> {
    let of = |j: usize, size: u32| {
        let chance = |(h, whole): (usize, &BigUint)| {
            if *whole == BigUint::ZERO {
                return Share::never();
            }
            Share::new(&(&counts[j + 1][h.saturating_sub(1)] * size), whole)
        };
        counts[j].iter().enumerate().map(chance).collect()
    };
    subsets.iter().enumerate().map(|(j, &(_, size))| of(j, size)).collect()
}
