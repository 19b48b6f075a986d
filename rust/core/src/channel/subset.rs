//! Subset selection: a report is a subset of the inputs, likely one that holds the input.

use super::call::{Call, Channel};
use super::categorical::no_row;
use super::chunks::{Chunks, heard};
use super::keyed::{Keyed, KeyedCall, records};
use super::window::{Window, toward_uniform};
use crate::error::{Result, argument, reason, words};
use crate::io::{Input, Output};
use crate::isa::Isa;
use crate::kernel::categorical::first_outside;
use crate::kernel::subset::{SubsetRows, SubsetSampler};
use crate::parallel::CHUNK;
use crate::probability::Probability;
use crate::random::{Digest, Key, Keys};

/// The most elements: a draw takes 32 bits, and is seldom drawn anew.
const MOST: u32 = 1 << 16;

/// Nanoseconds that a single thread takes for an element of a subset, and for eight positions, roughly.
const NANOSECONDS: usize = 3;

/// The channel that reports a subset of `size` of `elements` elements: one of those that hold the input, uniformly, with
/// probability `high`, and otherwise one of the others, uniformly (Ye and Barg 2018).
///
/// Of all subsets of that size, a share of `size / elements` holds the input: it is a window of that share over all of them,
/// and the exact ε is the same as over a window of `size` of `elements` cells.
pub struct Subset {
    window: Window,
}

impl Subset {
    /// Subsets of `size` elements, 1 to `elements - 1`, of 2 to 65,536.
    ///
    /// `high`, the probability of a subset that holds the input, is rounded toward `size / elements`, where the report tells
    /// nothing.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) for a number outside its range or a `high` that is no probability.
    pub fn new(elements: u32, size: u32, high: f64) -> Result<Subset> {
        Subset::from_probability(elements, size, toward_uniform(elements, size, high)?)
    }

    /// Subsets whose probability is an integer over 2^64.
    ///
    /// # Errors
    /// As [`Subset::new`].
    pub fn from_probability(elements: u32, size: u32, high: Probability) -> Result<Subset> {
        if !(2..=MOST).contains(&elements) {
            return Err(argument("elements", reason!("{elements} are not allowed; 2 to {MOST} are")));
        }
        if !(1..elements).contains(&size) {
            let reason =
                reason!("{size} is not allowed; with elements={elements}, 1 to {} are", elements - 1);
            return Err(argument("size", reason));
        }
        Ok(Subset { window: Window::from_probability(elements, size, high, None)? })
    }

    /// The channel that checks its input and randomizes zeros in its place: its exact ε is 0.
    #[must_use]
    pub fn muted(self) -> Subset {
        Subset { window: self.window.muted() }
    }

    /// Elements, k.
    pub fn elements(&self) -> u32 {
        self.window.cells()
    }

    /// Elements of a subset, w.
    pub fn size(&self) -> u32 {
        self.window.width()
    }

    /// The probability of a subset that holds the input.
    pub fn high(&self) -> Probability {
        self.window.high()
    }
}

impl Channel for Subset {
    type Codec<'a> = ();
    type Keys<'a> = &'a Key;

    /// A subset has the probability T / C(k - 1, w - 1) for inputs that it holds and (2^64 - T) / C(k - 1, w) for others, in
    /// units of 2^-64: their ratio is T (k - w) / ((2^64 - T) w), that of a window of w in k cells.
    fn epsilon(&self) -> f64 {
        self.window.epsilon()
    }

    fn report_bits(&self) -> u32 {
        self.elements()
    }

    fn is_mute(&self) -> bool {
        self.window.is_mute()
    }

    /// About [`CHUNK`] bytes of positions, and a multiple of eight.
    fn chunk(&self) -> usize {
        (CHUNK / (self.elements() as usize).div_ceil(8) / 8 * 8).max(8)
    }

    /// The input is elements, integers in `[0, k)`. The output takes bits and packed bits, one for each element.
    fn randomize_on(&self, isa: Isa, call: Call<'_, (), &Key>) -> Result<()> {
        call.refuse_letters()?;
        let Call { input, output, keys: key, first_chunk, threads, .. } = call;
        check(input, &output)?;
        let (bits, chunk, elements) = (self.report_bits(), self.chunk(), self.elements());
        let chunks = Chunks { reports: input.len(), bits, codes: 1, values: 1, chunk, first_chunk, threads };
        chunks.check(&output)?;
        let mut zeros = Vec::new();
        let (_, heard) = heard(self.is_mute(), None::<()>, input, &mut zeros);
        let sampler = SubsetSampler { isa, key, elements, size: self.size(), own: self.high() };
        let work = self.nanoseconds();
        let refused = |range| first_outside(isa, input.part(range), elements);
        let draw = |chunk, range, output: Output<'_>| sampler.chunk(chunk, heard.part(range), output);
        chunks.walk(output, work, refused, draw).map_err(|index| no_row(elements, None, index))
    }
}

impl Keyed for Subset {
    /// The bits of a subset are one report: those of two elements of a record share nothing.
    fn randomize_keyed_on(&self, isa: Isa, call: KeyedCall<'_, ()>) -> Result<()> {
        self.randomize_hearing(u64::MAX, isa, call)
    }
}

impl Subset {
    /// Nanoseconds that a single thread takes for a subset, roughly.
    fn nanoseconds(&self) -> usize {
        NANOSECONDS * (self.size() as usize + (self.elements() as usize).div_ceil(8))
    }

    /// Randomizes with keyed randomness that depends on those bits of the values that `heard` marks.
    pub(super) fn randomize_hearing(&self, heard: u64, isa: Isa, call: KeyedCall<'_, ()>) -> Result<()> {
        call.refuse_letters()?;
        let (elements, size, mute) = (self.elements(), self.size(), self.is_mute());
        let law = |digest: &mut Digest| self.absorb(digest);
        let bits = self.report_bits();
        let description = records::WholeRecordCall {
            isa,
            values: 1,
            words: 1,
            codes: 1,
            bits,
            numbers: false,
            mute,
            law: &law,
            heard,
        };
        check(call.input, &call.output)?;
        description.chunks(&call)?.check(&call.output)?;
        let refused = |input: Input<'_>| first_outside(isa, input, elements);
        let own = self.high();
        let result = if size <= SubsetRows::MOST {
            let draw = |keys: &[Keys], input: Input<'_>, output: Output<'_>| {
                SubsetRows { isa, elements, size, own }.chunk(keys, input, output);
                None
            };
            description.randomize_together(call, self.nanoseconds(), refused, draw)
        } else {
            let draw = |key: &Key, input: Input<'_>, output: Output<'_>| {
                SubsetSampler { isa, key, elements, size, own }.chunk(0, input, output);
                None
            };
            description.randomize(call, refused, draw)
        };
        result?.map_err(|index| no_row(elements, None, index))
    }

    /// Absorbs the law.
    pub(super) fn absorb(&self, digest: &mut Digest) {
        let (elements, size, mute) = (self.elements().into(), self.size().into(), self.is_mute().into());
        digest.text(b"subset");
        digest.numbers([elements, size, self.high().numerator(), mute].into_iter());
    }
}

/// Refuses what is no element, and an output that takes no subset.
fn check(input: Input<'_>, output: &Output<'_>) -> Result<()> {
    if input.is_real() {
        return Err(argument("x", words("elements are integers")));
    }
    if !matches!(output, Output::Bits(_) | Output::Packed(_)) {
        return Err(argument("output", words("subsets have the outputs bits and packed")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probability::log_ratio;

    fn choose(n: u32, k: u32) -> u128 {
        (0..k).fold(1, |product, i| product * u128::from(n - i) / u128::from(i + 1))
    }

    /// With the chances of whole subsets, counted one by one.
    #[test]
    fn epsilon_is_that_of_the_subsets() {
        for (elements, size, high) in [(2, 1, 0.7), (6, 2, 0.6), (9, 4, 0.9), (12, 11, 0.95)] {
            let channel = Subset::new(elements, size, high).unwrap();
            let inside = channel.high().numerator() * choose(elements - 1, size);
            let outside = channel.high().complement().numerator() * choose(elements - 1, size - 1);
            let exact = log_ratio(inside, outside);
            assert!((channel.epsilon() - exact).abs() <= 1e-14 * exact, "{elements}, {size}");
        }
    }
}
