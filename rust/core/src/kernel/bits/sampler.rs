//! Samples the law of independent bits: encode, randomize, emit, a block of up to 1024 features at a time, so that everything
//! between input and output stays in the first-level cache.

use super::emit::{self, BitSpreader};
use super::lanes::{BitsScratch, CodeWord};
use super::laws::Laws;
use super::plan::{MOST_FEATURES, Plan};
use super::scalar;
use crate::codec::{Code, Encode, FixedPoint, Real, pack_into};
use crate::io::{Input, Output};
use crate::isa::{BATCHES, Isa, compiled, vectorised};
use crate::random::{GROUP, Key, Purpose, Refine, fill, nonce};

/// Everything that sampling one chunk takes, but its number, its input and its output.
pub(crate) struct BitsSampler<'a> {
    pub(crate) isa: Isa,
    pub(crate) key: &'a Key,
    /// One plan for every feature, or one for each class of them.
    pub(crate) plans: &'a [Plan],
    /// The plan of each feature of a record, where there are several.
    pub(crate) pattern: Option<&'a [u32]>,
    /// The same as [`unrolled`](super::unrolled) gives it: nothing where there are too many laws for that.
    pub(crate) classes: &'a [u8],
    /// Bits of a code word.
    pub(crate) bits: u32,
    pub(crate) spread: &'a BitSpreader,
    /// How numbers become code words; without it the input is code words.
    pub(crate) codec: Option<&'a FixedPoint>,
}

impl BitsSampler<'_> {
    /// Randomizes chunk `chunk` of the key's stream: `input` are its features, the first of them feature `first` of the
    /// whole array (or of any array that starts a whole number of records before); `output` has room for just them.
    pub(crate) fn chunk(&self, chunk: u64, first: usize, input: Input<'_>, output: Output<'_>) {
        if self.bits <= 16 {
            self.blocks::<u16>(chunk, first, input, output);
        } else {
            self.blocks::<u32>(chunk, first, input, output);
        }
    }

    fn blocks<W: CodeWord>(&self, chunk: u64, first: usize, input: Input<'_>, output: Output<'_>) {
        W::with_scratch(|scratch| self.blocks_in(scratch, chunk, first, input, output));
    }

    fn blocks_in<W: CodeWord>(
        &self,
        scratch: &mut BitsScratch<W>,
        chunk: u64,
        first: usize,
        input: Input<'_>,
        mut output: Output<'_>,
    ) {
        let shape = &self.plans[0];
        let main = nonce(Purpose::Main, chunk);
        let mut refine = Refine::new(self.isa, self.key, nonce(Purpose::Refine, chunk));
        let total = input.len();
        for start in (0..total).step_by(shape.block()) {
            let count = shape.block().min(total - start);
            let padded = count.next_multiple_of(32);
            // Blocks are whole groups of keystream; only the last one of a chunk can be shorter.
            let taken = padded / 32 * shape.vectors() * 64;
            let keystream = &mut scratch.keystream[..taken.next_multiple_of(GROUP)];
            let group = start / 32 * shape.vectors() * 64 / GROUP;
            let input = input.part(start..start + count);
            let mut output = output.reports(start..start + count, self.bits as usize);
            fill(self.isa, self.key, main, group as u64, keystream);
            let keystream = &keystream[..taken];

            let laws = self.laws(first + start, padded);
            // The one combination worth a path of its own: numbers to codes in one pass over registers.
            if let (Some(codec), Input::F32(values), Some(laws)) = (self.codec, input, laws)
                && count == padded
            {
                let fused = |words: &mut [W], refine: &mut Refine| {
                    W::encode_and_randomize(self.isa, codec, values, laws, keystream, words, refine)
                };
                if let Some(words) = W::of_output(&mut output) {
                    if fused(words, &mut refine) {
                        continue;
                    }
                } else if fused(&mut scratch.words[..count], &mut refine) {
                    self.emit(&scratch.words[..count], output);
                    continue;
                }
            }
            let words = &mut scratch.words[..padded];
            self.load(input, &mut words[..count]);
            match laws {
                Some(laws) => W::randomize(self.isa, laws, keystream, words, &mut refine),
                None => {
                    let mut classes = [0; MOST_FEATURES];
                    let cycle = self.pattern.unwrap_or(&[0]);
                    let (mut filled, mut from) = (0, &cycle[(first + start) % cycle.len()..]);
                    while filled < padded {
                        let next = from.len().min(padded - filled);
                        classes[filled..][..next].copy_from_slice(&from[..next]);
                        (filled, from) = (filled + next, cycle);
                    }
                    scalar::randomize(|i| &self.plans[classes[i] as usize], keystream, words, &mut refine);
                }
            }
            self.emit(&words[..count], output);
        }
    }

    /// The laws of `count` features from `feature` on, if the kernels of vector units have them.
    fn laws(&self, feature: usize, count: usize) -> Option<Laws<'_>> {
        match (self.pattern, self.plans) {
            (None, [plan]) => Some(Laws::one(plan)),
            (Some(pattern), plans) if !self.classes.is_empty() => {
                Some(Laws::several(plans, &self.classes[feature % pattern.len()..][..count]))
            }
            // A pattern of a single law.
            (Some(_), [plan]) => Some(Laws::one(plan)),
            _ => None,
        }
    }

    /// Stage one: code words of the input.
    fn load<W: Code>(&self, input: Input<'_>, words: &mut [W]) {
        match (input, self.codec) {
            (Input::F32(values), Some(codec)) => self.encode(codec, values, words),
            (Input::F64(values), Some(codec)) => self.encode(codec, values, words),
            (Input::U8(codes), None) => self.mask(codes, words),
            (Input::U16(codes), None) => self.mask(codes, words),
            (Input::U32(codes), None) => self.mask(codes, words),
            _ => unreachable!("the channel takes numbers with a codec and unsigned code words without one"),
        }
    }

    /// The code words as they are: they were checked. Somebody else may have changed them since, and bits beyond the
    /// channel's would leave without being randomized, so those are cut off.
    fn mask<From: Code, W: Code>(&self, codes: &[From], words: &mut [W]) {
        let mask = u32::MAX >> (32 - self.bits);
        vectorised(self.isa, || {
            for (word, code) in words.iter_mut().zip(codes) {
                *word = W::narrow(code.widen() & mask);
            }
        });
    }

    fn encode<W: Code, F: Real>(&self, codec: &FixedPoint, values: &[F], words: &mut [W]) {
        compiled(self.isa, Encode { codec, values, words });
    }

    /// Stage three: the reports in the form that was asked for.
    fn emit<W: CodeWord>(&self, words: &[W], output: Output<'_>) {
        match (output, self.codec) {
            (Output::U8(out), _) => vectorised(self.isa, || emit::resize(words, out)),
            (Output::U16(out), _) => vectorised(self.isa, || emit::resize(words, out)),
            (Output::U32(out), _) => vectorised(self.isa, || emit::resize(words, out)),
            (Output::Bits(out), _) => W::spread(self.isa, self.spread, words, out),
            (Output::Packed(out), _) => pack_into(self.isa, words, self.bits, out),
            (Output::F32(out), Some(codec)) if BATCHES => {
                vectorised(self.isa, || emit::decode(codec, words, out));
            }
            (Output::F64(out), Some(codec)) if BATCHES => {
                vectorised(self.isa, || emit::decode(codec, words, out));
            }
            (Output::F32(_) | Output::F64(_), _) => {
                unreachable!("the channel gives numbers only with a codec")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probability::Probability;

    /// Values that a racing writer could put into the input after it was checked.
    #[test]
    fn bits_beyond_the_channels_never_leave() {
        for symmetric in [true, false] {
            let ones = [if symmetric { Probability::HALF } else { Probability::ONE }; 3];
            let plans = [Plan::new(&ones, &[Probability::HALF; 3], symmetric)];
            let key = Key::from_bytes([1; 32]);
            for &isa in Isa::available() {
                let spread = BitSpreader::new(3);
                let sampler = BitsSampler {
                    isa,
                    key: &key,
                    plans: &plans,
                    pattern: None,
                    classes: &[],
                    bits: 3,
                    spread: &spread,
                    codec: None,
                };
                let mut out = [0u8; 100];
                sampler.chunk(0, 0, Input::U8(&[0xff; 100]), Output::U8(&mut out));
                assert!(out.iter().all(|&code| code < 8), "{isa}");
            }
        }
    }
}
