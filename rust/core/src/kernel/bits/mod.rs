//! How the law of independent bits is sampled: encode, randomize, emit, a block of up to 1024 features at a time, so
//! that everything between input and output stays in the first-level cache.

use std::cell::RefCell;

mod emit;
mod plan;
mod scalar;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

pub(crate) use emit::Spread;
pub(crate) use plan::Plan;
pub(crate) use scalar::Word;

use super::{Isa, compiled, vectorised};
use crate::channel::{Input, Output};
use crate::codec::{Encode, FixedPoint, Real, pack_into};
use crate::random::{GROUP, Key, Purpose, Refine, fill, nonce};

/// Everything that sampling one chunk takes, but its number, its input and its output.
pub(crate) struct Sampler<'a> {
    pub(crate) isa: Isa,
    pub(crate) key: &'a Key,
    /// One plan for every feature, or one for each class of them.
    pub(crate) plans: &'a [Plan],
    /// The plan of each feature of a record, where there are several.
    pub(crate) pattern: Option<&'a [u32]>,
    /// Bits of a code word.
    pub(crate) bits: u32,
    pub(crate) spread: &'a Spread,
    /// How numbers become code words; without it the input is code words.
    pub(crate) codec: Option<&'a FixedPoint>,
}

/// The most keystream that a block takes: 1024 features under a law of three tables, or 512 under one of six.
const MOST_KEYSTREAM: usize = 6144;
/// The most features in a block.
const MOST_FEATURES: usize = 1024;

/// A thread's working memory. It is kept from call to call, because clearing it would take a tenth of a short one.
#[repr(C, align(64))]
pub(crate) struct Scratch<W> {
    keystream: [u8; MOST_KEYSTREAM],
    words: [W; MOST_FEATURES],
}

impl Sampler<'_> {
    /// Randomizes chunk `chunk` of the key's stream: `input` are its features, the first of them feature `first` of the
    /// whole array (or of any array that starts a whole number of records before); `output` has room for just them.
    pub(crate) fn chunk(&self, chunk: u64, first: usize, input: Input<'_>, output: Output<'_>) {
        if self.bits <= 16 {
            self.blocks::<u16>(chunk, first, input, output);
        } else {
            self.blocks::<u32>(chunk, first, input, output);
        }
    }

    fn blocks<W: Lanes>(&self, chunk: u64, first: usize, input: Input<'_>, output: Output<'_>) {
        W::with_scratch(|scratch| self.blocks_in(scratch, chunk, first, input, output));
    }

    fn blocks_in<W: Lanes>(
        &self,
        scratch: &mut Scratch<W>,
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

            // The one combination worth a path of its own: numbers to codes in one pass over registers.
            if let (Some(codec), Input::F32(values), [plan]) = (self.codec, input, self.plans)
                && count == padded
            {
                let fused = |words: &mut [W], refine: &mut Refine| {
                    W::encode_and_randomize(self.isa, codec, values, plan, keystream, words, refine)
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
            match (self.pattern, self.plans) {
                (None, [plan]) => W::randomize(self.isa, plan, keystream, words, &mut refine),
                (pattern, plans) => {
                    let mut classes = [0; MOST_FEATURES];
                    let cycle = pattern.unwrap_or(&[0]);
                    let (before, from) = cycle.split_at((first + start) % cycle.len());
                    let features = from.iter().chain(before).cycle();
                    classes.iter_mut().zip(features).for_each(|(class, &of_feature)| *class = of_feature);
                    scalar::randomize(|i| &plans[classes[i] as usize], keystream, words, &mut refine);
                }
            }
            self.emit(&words[..count], output);
        }
    }

    /// Stage one: code words of the input.
    fn load<W: Word>(&self, input: Input<'_>, words: &mut [W]) {
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
    fn mask<From: Word, W: Word>(&self, codes: &[From], words: &mut [W]) {
        let mask = u32::MAX >> (32 - self.bits);
        vectorised(self.isa, || {
            for (word, code) in words.iter_mut().zip(codes) {
                *word = W::narrow(code.widen() & mask);
            }
        });
    }

    fn encode<W: Word, F: Real>(&self, codec: &FixedPoint, values: &[F], words: &mut [W]) {
        compiled(self.isa, Encode { codec, values, words });
    }

    /// Stage three: the reports in the form that was asked for.
    fn emit<W: Lanes>(&self, words: &[W], output: Output<'_>) {
        match (output, self.codec) {
            (Output::U8(out), _) => vectorised(self.isa, || emit::resize(words, out)),
            (Output::U16(out), _) => vectorised(self.isa, || emit::resize(words, out)),
            (Output::U32(out), _) => vectorised(self.isa, || emit::resize(words, out)),
            (Output::Bits(out), _) => W::spread(self.isa, self.spread, words, out),
            (Output::Packed(out), _) => pack_into(self.isa, words, self.bits, out),
            (Output::F32(out), Some(codec)) => vectorised(self.isa, || emit::decode(codec, words, out)),
            (Output::F64(out), Some(codec)) => vectorised(self.isa, || emit::decode(codec, words, out)),
            (Output::F32(_) | Output::F64(_), None) => {
                unreachable!("the channel gives numbers only with a codec")
            }
        }
    }
}

/// A thread's own [`Scratch`] for words of `$word`, lent to `$work`.
macro_rules! lend_scratch {
    ($word:ty, $work:expr) => {{
        thread_local! {
            static SCRATCH: RefCell<Scratch<$word>> =
                const { RefCell::new(Scratch { keystream: [0; MOST_KEYSTREAM], words: [0; MOST_FEATURES] }) };
        }
        SCRATCH.with_borrow_mut($work)
    }};
}

/// What each width of code word has vectorised versions of.
pub(crate) trait Lanes: Word {
    /// Lends `work` the thread's working memory.
    fn with_scratch<R>(work: impl FnOnce(&mut Scratch<Self>) -> R) -> R;

    /// Randomizes a multiple of 32 words in place.
    fn randomize(isa: Isa, plan: &Plan, keystream: &[u8], words: &mut [Self], refine: &mut Refine);

    /// Encodes and randomizes in one pass, where there is such a version; otherwise nothing happens and the answer is no.
    fn encode_and_randomize(
        _isa: Isa,
        _codec: &FixedPoint,
        _values: &[f32],
        _plan: &Plan,
        _keystream: &[u8],
        _words: &mut [Self],
        _refine: &mut Refine,
    ) -> bool {
        false
    }

    /// The output itself, where it takes code words of this width.
    fn of_output<'o>(output: &'o mut Output<'_>) -> Option<&'o mut [Self]>;

    /// Bytes of 0 and 1.
    fn spread(isa: Isa, spread: &Spread, words: &[Self], out: &mut [u8]);
}

impl Lanes for u16 {
    fn with_scratch<R>(work: impl FnOnce(&mut Scratch<u16>) -> R) -> R {
        lend_scratch!(u16, work)
    }

    fn randomize(isa: Isa, plan: &Plan, keystream: &[u8], words: &mut [u16], refine: &mut Refine) {
        match isa {
            // SAFETY: an `Isa` that reaches the kernels was checked against this processor.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512::randomize16(plan, keystream, words, refine) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::randomize16(plan, keystream, words, refine) },
            _ => scalar::randomize(|_| plan, keystream, words, refine),
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn encode_and_randomize(
        isa: Isa,
        codec: &FixedPoint,
        values: &[f32],
        plan: &Plan,
        keystream: &[u8],
        words: &mut [u16],
        refine: &mut Refine,
    ) -> bool {
        if isa == Isa::Avx512 {
            // SAFETY: an `Isa` that reaches the kernels was checked against this processor.
            unsafe { avx512::encode_and_randomize16(codec, values, plan, keystream, words, refine) };
        }
        isa == Isa::Avx512
    }

    fn of_output<'o>(output: &'o mut Output<'_>) -> Option<&'o mut [u16]> {
        if let Output::U16(out) = output { Some(out) } else { None }
    }

    fn spread(isa: Isa, spread: &Spread, words: &[u16], out: &mut [u8]) {
        match isa {
            // SAFETY: an `Isa` that reaches the kernels was checked against this processor.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if spread.has_tables() => unsafe { spread.avx512(words, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 if spread.has_tables() => unsafe { spread.avx2(words, out) },
            _ => spread.scalar(words, out),
        }
    }
}

impl Lanes for u32 {
    fn with_scratch<R>(work: impl FnOnce(&mut Scratch<u32>) -> R) -> R {
        lend_scratch!(u32, work)
    }

    fn randomize(isa: Isa, plan: &Plan, keystream: &[u8], words: &mut [u32], refine: &mut Refine) {
        match isa {
            // SAFETY: an `Isa` that reaches the kernels was checked against this processor.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512::randomize32(plan, keystream, words, refine) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::randomize32(plan, keystream, words, refine) },
            _ => scalar::randomize(|_| plan, keystream, words, refine),
        }
    }

    fn of_output<'o>(output: &'o mut Output<'_>) -> Option<&'o mut [u32]> {
        if let Output::U32(out) = output { Some(out) } else { None }
    }

    fn spread(isa: Isa, spread: &Spread, words: &[u32], out: &mut [u8]) {
        vectorised(isa, || spread.scalar(words, out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probability::Probability;

    /// What a racing writer could put into the input after it was checked.
    #[test]
    fn bits_beyond_the_channels_never_leave() {
        for symmetric in [true, false] {
            let ones = [if symmetric { Probability::HALF } else { Probability::ONE }; 3];
            let plans = [Plan::new(&ones, &[Probability::HALF; 3], symmetric)];
            let key = Key::from_bytes([1; 32]);
            for &isa in Isa::available() {
                let spread = Spread::new(3);
                let sampler = Sampler {
                    isa,
                    key: &key,
                    plans: &plans,
                    pattern: None,
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
