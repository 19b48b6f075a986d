//! Independent bits: each position of a bit string is reported as 1 with a probability that depends on that bit alone.

use std::ops::Range;

use super::bit::Bit;
use super::call::{Call, Channel};
use super::chunks::Chunks;
use super::keyed::{Keyed, KeyedCall, records};
use crate::codec::{FixedPoint, Infinities, SignBit};
use crate::error::{Error, Result, argument, element, reason, words};
use crate::io::{Input, Output};
use crate::isa::{Isa, vectorised};
use crate::kernel::bits::{BitSpreader, BitsSampler, Plan, unrolled};
use crate::parallel::CHUNK;
use crate::probability::{add_up, mul_up};
use crate::random::{Digest, Key};

/// Nanoseconds that a single thread takes for a feature, roughly.
const NANOSECONDS: usize = 1;

/// The exact ε of a record of independent bits, at three granularities, each rounded up.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BitsEpsilon {
    /// The worst single bit.
    pub bit: f64,
    /// The worst feature: the sum over its bits.
    pub feature: f64,
    /// The record: the sum over all its bits.
    pub record: f64,
}

/// The channel of independent bits on arbitrary bit strings: records of `features` code words of `l` bits.
///
/// Two records may differ in every bit, so the exact ε of a record is the sum over all of them. (On one-hot strings it is
/// less: see [`Unary`](super::Unary).)
pub struct Bits {
    laws: Vec<Vec<Bit>>,
    pattern: Option<Vec<u32>>,
    /// The pattern as the kernels read it.
    classes: Vec<u8>,
    features: usize,
    bits: u32,
    plans: Vec<Plan>,
    spread: BitSpreader,
    epsilon: BitsEpsilon,
}

impl Bits {
    /// A channel of records of `features` code words.
    ///
    /// `laws[k]` is the law of a feature's `l` bits, most significant first; feature `j` follows `laws[pattern[j]]`, and
    /// without a pattern there is one law for all.
    ///
    /// # Errors
    /// No law, laws of different lengths, 0 or more than 32 bits, no feature, or a pattern that does not fit.
    pub fn new(laws: Vec<Vec<Bit>>, features: usize, pattern: Option<Vec<u32>>) -> Result<Bits> {
        let bits = laws.first().map_or(0, Vec::len);
        if !(1..=32).contains(&bits) {
            return Err(argument("p", reason!("{bits} bits a feature are not allowed; 1 to 32 are")));
        }
        if laws.iter().any(|law| law.len() != bits) {
            return Err(argument(
                "p",
                words("all laws must have the same length, since every feature has the same number of bits"),
            ));
        }
        if features == 0 {
            return Err(argument("features", words("0 is not allowed; a record has at least one")));
        }
        match &pattern {
            None if laws.len() > 1 => {
                let reason = "is needed with several laws: the number of a law for each feature";
                return Err(argument("pattern", words(reason)));
            }
            Some(pattern) if pattern.len() != features => {
                let reason =
                    reason!("{} entries for {features} features; one for each is needed", pattern.len());
                return Err(argument("pattern", reason));
            }
            Some(pattern) if pattern.iter().any(|&law| law as usize >= laws.len()) => {
                let reason = reason!("there is no such law; laws are numbered from 0 to {}", laws.len() - 1);
                return Err(argument("pattern", reason));
            }
            _ => {}
        }
        // All laws must be drawn alike, so one that is not symmetric makes the others be drawn as if they were not.
        let mut members = vec![0usize; laws.len()];
        match &pattern {
            None => members[0] = features,
            Some(pattern) => pattern.iter().for_each(|&law| members[law as usize] += 1),
        }
        let used = |law: usize| members[law] > 0;
        let symmetric = laws.iter().enumerate().all(|(k, law)| !used(k) || law.iter().all(Bit::is_symmetric));
        let plans = laws
            .iter()
            .map(|law| {
                let (ones, zeros): (Vec<_>, Vec<_>) = law.iter().rev().map(|bit| (bit.p, bit.q)).unzip();
                Plan::new(&ones, &zeros, symmetric)
            })
            .collect();
        let epsilon = exact_epsilon(&laws, &members);
        let classes = unrolled(pattern.as_deref(), laws.len());
        Ok(Bits {
            bits: bits as u32,
            spread: BitSpreader::new(bits),
            laws,
            pattern,
            classes,
            features,
            plans,
            epsilon,
        })
    }

    /// Bits of a feature, l.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Features of a record, r.
    pub fn features(&self) -> usize {
        self.features
    }

    /// The laws, most significant bit first.
    pub fn laws(&self) -> &[Vec<Bit>] {
        &self.laws
    }

    /// The law of each feature, where there are several.
    pub fn pattern(&self) -> Option<&[u32]> {
        self.pattern.as_deref()
    }

    /// True where every bit is flipped as often from 1 as from 0. Such laws are sampled at twice the speed.
    pub fn is_symmetric(&self) -> bool {
        self.plans[0].symmetric
    }

    /// The exact ε of a bit, a feature and a record, from the integers that the sampler compares with.
    ///
    /// Neighbours: any two records.
    pub fn epsilons(&self) -> BitsEpsilon {
        self.epsilon
    }

    /// Refuses what does not fit; says which values are allowed.
    fn check(
        &self,
        codec: Option<&FixedPoint>,
        input: Input<'_>,
        output: &Output<'_>,
        chunks: &Chunks,
    ) -> Result<&'static str> {
        if !input.len().is_multiple_of(self.features) {
            let reason = reason!(
                "{} values are not a whole number of records of {} features",
                input.len(),
                self.features
            );
            return Err(Error::Shape { name: "x", reason });
        }
        match codec {
            Some(codec) if codec.bits() != self.bits => {
                let reason = reason!("{} bits do not fit a channel of {}", codec.bits(), self.bits);
                return Err(argument("codec", reason));
            }
            None if matches!(output, Output::F32(_) | Output::F64(_)) => {
                return Err(argument("output", words("values are available only with a codec")));
            }
            _ => chunks.check(output)?,
        }
        match (codec, input) {
            (Some(codec), Input::F32(_) | Input::F64(_)) => Ok(codec.refusal()),
            (Some(_), _) => Err(argument("x", words("a codec takes float32 or float64"))),
            (None, Input::U8(_) | Input::U16(_) | Input::U32(_)) => Ok(TOO_LONG),
            (None, _) => {
                let reason = "without a codec, code words are needed: uint8, uint16 or uint32";
                Err(argument("x", words(reason)))
            }
        }
    }

    /// The position of the first value without a code word of `l` bits; the input's type was checked.
    fn first_refused(&self, isa: Isa, codec: Option<&FixedPoint>, input: Input<'_>) -> Option<usize> {
        let most = u32::MAX >> (32 - self.bits);
        match (codec, input) {
            (Some(codec), Input::F32(values)) => vectorised(isa, || codec.first_refused(values)),
            (Some(codec), Input::F64(values)) => vectorised(isa, || codec.first_refused(values)),
            (None, Input::U8(codes)) => first_above(isa, codes, most),
            (None, Input::U16(codes)) => first_above(isa, codes, most),
            (None, Input::U32(codes)) => first_above(isa, codes, most),
            _ => unreachable!("other types were refused"),
        }
    }
}

impl Channel for Bits {
    type Codec<'a> = Option<&'a FixedPoint>;
    type Keys<'a> = &'a Key;

    fn epsilon(&self) -> f64 {
        self.epsilon.record
    }

    fn report_bits(&self) -> u32 {
        self.bits
    }

    /// The input is whole records: numbers (`F32`, `F64`) with a codec, or code words (`U8`, `U16`, `U32`) without one. The
    /// output takes code words of any width that holds `l` bits, bits, packed bits, or numbers if there is a codec. A report
    /// is one feature's.
    fn randomize_on(&self, isa: Isa, call: Call<'_, Option<&FixedPoint>, &Key>) -> Result<()> {
        call.refuse_letters()?;
        let Call { codec, input, output, keys: key, first_chunk, threads, .. } = call;
        let bits = self.bits;
        let chunks =
            Chunks { reports: input.len(), bits, codes: 1, values: 1, chunk: CHUNK, first_chunk, threads };
        let reason = self.check(codec, input, &output, &chunks)?;
        let (plans, pattern, spread) = (&self.plans, self.pattern.as_deref(), &self.spread);
        let classes = &self.classes;
        let sampler = BitsSampler { isa, key, plans, pattern, classes, bits, spread, codec };
        let refused = |range| self.first_refused(isa, codec, input.part(range));
        let draw = |chunk, range: Range<usize>, output: Output<'_>| {
            sampler.chunk(chunk, range.start, input.part(range), output);
        };
        let walked = match codec {
            // Code words are looked at first: one that is too long has no law.
            None => chunks.walk(output, NANOSECONDS, refused, draw),
            // The codec has a code word for anything, NaN too, if only to be thrown away.
            Some(_) => chunks.walk_anyway(output, NANOSECONDS, |chunk, range, output| {
                draw(chunk, range.clone(), output);
                refused(range)
            }),
        };
        walked.map_err(|index| element("x", index, reason))
    }
}

impl Keyed for Bits {
    /// A record is one value: two that differ in one feature have independent reports of all of them.
    fn randomize_keyed_on(&self, isa: Isa, call: KeyedCall<'_, Option<&FixedPoint>>) -> Result<()> {
        self.randomize_hearing(u64::MAX, isa, call)
    }
}

impl Bits {
    /// Randomizes with keyed randomness that depends on those bits of the values that `heard` marks.
    pub(super) fn randomize_hearing(
        &self,
        heard: u64,
        isa: Isa,
        call: KeyedCall<'_, Option<&FixedPoint>>,
    ) -> Result<()> {
        call.refuse_letters()?;
        let (codec, features, numbers) = (call.codec, self.features, call.codec.is_some());
        let law = |digest: &mut Digest| self.absorb(codec, digest);
        let (values, words, bits) = (features, features, self.bits);
        let description = records::WholeRecordCall {
            isa,
            values,
            words,
            codes: 1,
            bits,
            numbers,
            mute: false,
            law: &law,
            heard,
        };
        // Integers are numbers where there is a codec.
        let seen = if numbers { Input::F64(&[]) } else { call.input };
        let reason = self.check(codec, seen, &call.output, &description.chunks(&call)?)?;
        let refused = |input: Input<'_>| self.first_refused(isa, codec, input);
        let draw = |key: &Key, input: Input<'_>, mut output: Output<'_>| {
            let (plans, pattern, spread) = (&self.plans, self.pattern.as_deref(), &self.spread);
            let classes = &self.classes;
            let sampler = BitsSampler { isa, key, plans, pattern, classes, bits, spread, codec };
            for (chunk, first) in (0..features).step_by(CHUNK).enumerate() {
                let range = first..features.min(first + CHUNK);
                let output = output.reports(range.clone(), bits as usize);
                sampler.chunk(chunk as u64, first, input.part(range), output);
            }
            None
        };
        description.randomize(call, refused, draw)?.map_err(|index| element("x", index, reason))
    }

    /// Absorbs the law and the codec.
    fn absorb(&self, codec: Option<&FixedPoint>, digest: &mut Digest) {
        let of_bit = |bit: &Bit| [bit.p.numerator(), bit.q.numerator()];
        let sizes = [self.features as u128, self.bits.into(), self.laws.len() as u128];
        digest.text(b"bits");
        digest.numbers(sizes.into_iter());
        self.laws.iter().for_each(|law| law.iter().for_each(|bit| digest.numbers(of_bit(bit).into_iter())));
        let pattern = self.pattern.as_deref().unwrap_or(&[]);
        digest.numbers(pattern.iter().map(|&law| law.into()));
        match codec {
            None => digest.text(b"no codec"),
            Some(codec) => {
                let sign = u128::from(codec.sign() == SignBit::OneIfNonNegative);
                let saturates = u128::from(codec.infinities() == Infinities::Saturate);
                let parts = [codec.bits().into(), codec.integer_bits().into(), sign, saturates];
                digest.text(b"fixed point");
                digest.numbers(parts.into_iter());
            }
        }
    }
}

/// A code word with bits beyond the channel's: they would leave as they are.
const TOO_LONG: &str = "a code word has no more bits than the channel";

fn first_above<C: Copy + Into<u32>>(isa: Isa, codes: &[C], most: u32) -> Option<usize> {
    // Not stopping early lets the loop be vectorised.
    let all = vectorised(isa, || codes.iter().fold(0, |all, &code| all | code.into()));
    if all <= most { None } else { codes.iter().position(|&code| code.into() > most) }
}

/// `members[k]` features follow law `k`; laws that none follows do not count.
fn exact_epsilon(laws: &[Vec<Bit>], members: &[usize]) -> BitsEpsilon {
    let mut epsilon = BitsEpsilon { bit: 0.0, feature: 0.0, record: 0.0 };
    for (law, &n) in laws.iter().zip(members).filter(|(_, n)| **n > 0) {
        let of_feature = law.iter().map(Bit::epsilon).fold(0.0, add_up);
        epsilon.bit = law.iter().map(Bit::epsilon).fold(epsilon.bit, f64::max);
        epsilon.feature = epsilon.feature.max(of_feature);
        epsilon.record = add_up(epsilon.record, mul_up(of_feature, n as f64));
    }
    epsilon
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_that_no_feature_follows_do_not_count() {
        let laws = vec![vec![Bit::new(0.9, 0.2).unwrap()], vec![Bit::new(0.6, 0.4).unwrap()]];
        let channel = Bits::new(laws, 1, Some(vec![1])).unwrap();
        assert!(channel.is_symmetric());
        assert!(channel.epsilons().bit <= channel.epsilons().record);
    }
}
