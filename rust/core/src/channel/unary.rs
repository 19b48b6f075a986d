//! Independent bits on one-hot strings: a category as `k` bits, of which one is 1.

use super::bits::Bit;
use super::check::{Split, first_place};
use crate::error::{Result, argument, element};
use crate::io::{Input, Output, OutputParts};
use crate::isa::Isa;
use crate::kernel::bits::Plan;
use crate::kernel::categorical::first_outside;
use crate::kernel::unary::Sampler;
use crate::parallel::{CHUNK, for_chunks};
use crate::probability::{add_up, log_ratio, mul_up};
use crate::random::Key;

/// What a single thread takes for a byte of eight positions, roughly, in nanoseconds.
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
            return Err(argument("categories", format!("{categories} is not allowed; 2 to 2^31 are")));
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

    /// The exact ε on one-hot input, rounded up. Neighbours: any two categories.
    ///
    /// A report's likelihood under one category against another is that of two positions, each at its worst:
    /// max(p/q, (1-p)/(1-q)) · max(q/p, (1-q)/(1-p)).
    pub fn epsilon(&self) -> f64 {
        let (p, q) = (self.bit.p.numerator(), self.bit.q.numerator());
        let (not_p, not_q) = (self.bit.p.complement().numerator(), self.bit.q.complement().numerator());
        let own = log_ratio(p, q).max(log_ratio(not_p, not_q));
        let other = log_ratio(q, p).max(log_ratio(not_q, not_p));
        add_up(own, other)
    }

    /// What the exact ε would be if the strings were arbitrary: every position could differ.
    pub fn epsilon_arbitrary(&self) -> f64 {
        mul_up(self.bit.epsilon(), self.categories as f64)
    }

    /// Records in a chunk of the key's stream: about [`CHUNK`] bytes of positions, and a multiple of eight.
    pub fn chunk(&self) -> usize {
        (CHUNK / self.categories.div_ceil(8) / 8 * 8).max(8)
    }

    /// Randomizes categories, integers in `[0, k)`, into `Bits` or `Packed` output.
    ///
    /// The records are chunks `first_chunk, first_chunk + 1, …` of [`chunk`](Self::chunk) in the key's stream; the answer
    /// does not depend on `threads`.
    ///
    /// # Errors
    /// A category outside the range, or an output that does not fit; nothing is written then.
    pub fn randomize(
        &self,
        input: Input<'_>,
        output: Output<'_>,
        key: &Key,
        first_chunk: u64,
        threads: Option<usize>,
    ) -> Result<()> {
        self.randomize_on(Isa::current()?, input, output, key, first_chunk, threads)
    }

    /// [`randomize`](Self::randomize) with the kernels of one instruction set: the answer does not depend on it.
    ///
    /// # Errors
    /// As [`randomize`](Self::randomize).
    pub fn randomize_on(
        &self,
        isa: Isa,
        input: Input<'_>,
        output: Output<'_>,
        key: &Key,
        first_chunk: u64,
        threads: Option<usize>,
    ) -> Result<()> {
        let bits = self.categories as u32;
        let split = Split { reports: input.len(), bits, chunk: self.chunk(), first_chunk, threads };
        self.check(isa, input, &output, &split)?;
        let sampler = Sampler { isa, key, categories: self.categories, others: &self.others, own: &self.own };
        let parts = OutputParts::new(output);
        let work = NANOSECONDS * self.categories.div_ceil(8);
        for_chunks(input.len(), split.chunk, threads, work, |chunk, range| {
            // SAFETY: chunks do not overlap.
            let output = unsafe { parts.part(range.clone(), self.categories) };
            sampler.chunk(first_chunk + chunk as u64, input.part(range), output);
        });
        Ok(())
    }

    fn check(&self, isa: Isa, input: Input<'_>, output: &Output<'_>, split: &Split) -> Result<()> {
        if input.is_real() {
            return Err(argument("x", "categories are integers".into()));
        }
        if !matches!(output, Output::Bits(_) | Output::Packed(_)) {
            return Err(argument("output", "one-hot strings leave as bits or packed bits".into()));
        }
        split.check(output)?;
        let rows = self.categories as u32;
        let first =
            first_place(input.len(), split.threads, |range| first_outside(isa, input.part(range), rows));
        let allowed = || format!("integers from 0 to {} are", rows - 1);
        first.map_or(Ok(()), |index| Err(element("x", index, allowed())))
    }
}
