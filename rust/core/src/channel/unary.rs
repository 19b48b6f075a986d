//! Independent bits on one-hot strings: a category as `k` bits, of which one is 1.

use super::bit::Bit;
use super::call::{Call, Channel};
use super::categorical::no_row;
use super::chunks::Chunks;
use super::keyed::{Keyed, KeyedCall, records};
use crate::error::{Result, argument, reason, words};
use crate::io::{Input, Output};
use crate::isa::Isa;
use crate::kernel::bits::Plan;
use crate::kernel::categorical::first_outside;
use crate::kernel::unary::{UnaryRows, UnarySampler};
use crate::parallel::CHUNK;
use crate::probability::{add_up, log_ratio, mul_up};
use crate::random::{Digest, Key, Keys};

/// Nanoseconds that a single thread takes for a byte of eight positions, roughly.
const NANOSECONDS: usize = 2;

/// The channel of independent bits on one-hot input: category `x` becomes `k` bits, of which position `x` is reported as
/// 1 with probability `p` and every other with `q`.
///
/// The domain is one-hot strings: two inputs differ in two bits, and the exact ε is what those two can tell.
pub struct Unary {
    categories: usize,
    bit: Bit,
    /// Eight positions without the category: flips of zeros.
    others: Plan,
    /// The category's own position: a 1 that is kept.
    own: Plan,
}

impl Unary {
    /// One-hot strings of `categories` positions (at least 2), each following `bit`.
    ///
    /// # Errors
    /// Fewer than two categories, or more than `2^31`.
    pub fn new(categories: usize, bit: Bit) -> Result<Unary> {
        if !(2..=1 << 31).contains(&categories) {
            return Err(argument("categories", reason!("{categories} is not allowed; 2 to 2^31 are")));
        }
        let others = Plan::new(&[bit.q.complement(); 8], &[bit.q; 8], true);
        let own = Plan::new(&[bit.p.complement()], &[bit.p], true);
        Ok(Unary { categories, bit, others, own })
    }

    /// Positions of a string, k.
    pub fn categories(&self) -> usize {
        self.categories
    }

    /// The law of each position.
    pub fn bit(&self) -> Bit {
        self.bit
    }

    /// The exact ε if the strings were arbitrary: every position could differ.
    pub fn epsilon_arbitrary(&self) -> f64 {
        mul_up(self.bit.epsilon(), self.categories as f64)
    }

    fn check(&self, input: Input<'_>, output: &Output<'_>, chunks: &Chunks) -> Result<()> {
        if input.is_real() {
            return Err(argument("x", words("categories are integers")));
        }
        if !matches!(output, Output::Bits(_) | Output::Packed(_)) {
            return Err(argument("output", words("one-hot strings have the outputs bits and packed")));
        }
        chunks.check(output)
    }
}

impl Channel for Unary {
    type Codec<'a> = ();
    type Keys<'a> = &'a Key;

    /// Neighbours: any two categories.
    ///
    /// A report's likelihood under one category against another is that of two positions, each at its worst:
    /// max(p/q, (1-p)/(1-q)) · max(q/p, (1-q)/(1-p)).
    fn epsilon(&self) -> f64 {
        let (p, q) = (self.bit.p.numerator(), self.bit.q.numerator());
        let (not_p, not_q) = (self.bit.p.complement().numerator(), self.bit.q.complement().numerator());
        let own = log_ratio(p, q).max(log_ratio(not_p, not_q));
        let other = log_ratio(q, p).max(log_ratio(not_q, not_p));
        add_up(own, other)
    }

    fn report_bits(&self) -> u32 {
        self.categories as u32
    }

    /// About [`CHUNK`] bytes of positions, and a multiple of eight.
    fn chunk(&self) -> usize {
        (CHUNK / self.categories.div_ceil(8) / 8 * 8).max(8)
    }

    /// The input is categories, integers in `[0, k)`. The output takes bits and packed bits.
    fn randomize_on(&self, isa: Isa, call: Call<'_, (), &Key>) -> Result<()> {
        call.refuse_letters()?;
        let Call { input, output, keys: key, first_chunk, threads, .. } = call;
        let (bits, chunk) = (self.report_bits(), self.chunk());
        let chunks = Chunks { reports: input.len(), bits, codes: 1, values: 1, chunk, first_chunk, threads };
        self.check(input, &output, &chunks)?;
        let sampler =
            UnarySampler { isa, key, categories: self.categories, others: &self.others, own: &self.own };
        let work = NANOSECONDS * self.categories.div_ceil(8);
        let rows = self.categories as u32;
        let refused = |range| first_outside(isa, input.part(range), rows);
        let draw = |chunk, range, output: Output<'_>| sampler.chunk(chunk, input.part(range), output);
        chunks.walk(output, work, refused, draw).map_err(|index| no_row(rows, None, index))
    }
}

impl Keyed for Unary {
    /// The bits of a category are one report: those of two categories of a record share nothing.
    fn randomize_keyed_on(&self, isa: Isa, call: KeyedCall<'_, ()>) -> Result<()> {
        self.randomize_hearing(u64::MAX, isa, call)
    }
}

impl Unary {
    /// Randomizes with keyed randomness that depends on those bits of the values that `heard` marks.
    pub(super) fn randomize_hearing(&self, heard: u64, isa: Isa, call: KeyedCall<'_, ()>) -> Result<()> {
        call.refuse_letters()?;
        let law = |digest: &mut Digest| self.absorb(digest);
        let (bits, rows) = (self.report_bits(), self.categories as u32);
        let description = records::WholeRecordCall {
            isa,
            values: 1,
            words: 1,
            codes: 1,
            bits,
            numbers: false,
            mute: false,
            law: &law,
            heard,
        };
        self.check(call.input, &call.output, &description.chunks(&call)?)?;
        let refused = |input: Input<'_>| first_outside(isa, input, rows);
        let (categories, others, own) = (self.categories, &self.others, &self.own);
        let result = if categories <= UnaryRows::MOST {
            let draw = |keys: &[Keys], input: Input<'_>, output: Output<'_>| {
                UnaryRows { isa, categories, others, own }.chunk(keys, input, output);
                None
            };
            description.randomize_together(call, NANOSECONDS * categories.div_ceil(8), refused, draw)
        } else {
            let draw = |key: &Key, input: Input<'_>, output: Output<'_>| {
                UnarySampler { isa, key, categories, others, own }.chunk(0, input, output);
                None
            };
            description.randomize(call, refused, draw)
        };
        result?.map_err(|index| no_row(rows, None, index))
    }

    /// Absorbs the law.
    pub(super) fn absorb(&self, digest: &mut Digest) {
        let (p, q) = (self.bit.p.numerator(), self.bit.q.numerator());
        digest.text(b"unary");
        digest.numbers([self.categories as u128, p, q].into_iter());
    }
}
