//! Whole arrays of numbers as code words, and back: on any number of threads, in one pass.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::fixed_point::FixedPoint;
use super::real::Real;
use crate::codec::Code;
use crate::error::{Error, Result, argument, element, reason};
use crate::io::{Input, Output};
use crate::isa::{Isa, compiled, vectorised};
use crate::parallel::{CHUNK, Parts, for_chunks};
use crate::vector::{Kernel, Vector};

/// The code words of numbers.
pub(crate) struct Encode<'a, F, W> {
    pub(crate) codec: &'a FixedPoint,
    pub(crate) values: &'a [F],
    pub(crate) words: &'a mut [W],
}

impl<F: Real, W: Code> Kernel for Encode<'_, F, W> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(self, _: V) {
        F::encode_each(self.codec.spelling(), self.values, self.words);
    }
}

/// The numbers that code words stand for; the answer is all words ORed.
pub(crate) struct Decode<'a, W, F> {
    pub(crate) codec: &'a FixedPoint,
    pub(crate) words: &'a [W],
    pub(crate) values: &'a mut [F],
}

impl<F: Real, W: Code> Kernel for Decode<'_, W, F> {
    type Answer = u32;

    #[inline(always)]
    fn run<V: Vector>(self, _: V) -> u32 {
        let mut seen = 0;
        for (value, word) in self.values.iter_mut().zip(self.words) {
            seen |= word.widen();
            *value = self.codec.decode(word.widen());
        }
        seen
    }
}

/// Nanoseconds that a single thread takes for four numbers, roughly.
const NANOSECONDS: usize = 1;

impl FixedPoint {
    /// Code words of numbers (`F32`, `F64`), in elements of at least `l` bits, on `threads` threads (`None`: as many as it is
    /// worth).
    ///
    /// # Errors
    /// Other types, different lengths, or a number without a code: the first index is named, and `output` is zeros.
    pub fn encode_all(&self, input: Input<'_>, output: Output<'_>, threads: Option<usize>) -> Result<()> {
        fits(input.len(), output.len())?;
        match input {
            Input::F32(values) => self.encode_to(values, output, threads),
            Input::F64(values) => self.encode_to(values, output, threads),
            _ => Err(argument("x", "float32 or float64 is needed".into())),
        }
    }

    fn encode_to<F: Real>(&self, values: &[F], output: Output<'_>, threads: Option<usize>) -> Result<()> {
        match output {
            Output::U8(out) if self.bits() <= 8 => self.encode_words(values, out, threads),
            Output::U16(out) if self.bits() <= 16 => self.encode_words(values, out, threads),
            Output::U32(out) => self.encode_words(values, out, threads),
            _ => {
                Err(Error::Output { reason: reason!("unsigned elements of {} bits are needed", self.bits()) })
            }
        }
    }

    fn encode_words<F: Real, W: Code>(
        &self,
        values: &[F],
        out: &mut [W],
        threads: Option<usize>,
    ) -> Result<()> {
        let isa = Isa::current()?;
        let refused = each_chunk(values, out, threads, |values, words| {
            compiled(isa, Encode { codec: self, values, words });
            vectorised(isa, || self.first_refused(values))
        });
        refused.map_or(Ok(()), |index| Err(element("x", index, self.refusal())))
    }

    /// The numbers (`F32`, `F64`) that code words (`U8`, `U16`, `U32`) stand for, on `threads` threads (`None`: as many as it
    /// is worth).
    ///
    /// # Errors
    /// Other types, different lengths, or a code word of more than `l` bits: the first index is named, and `output` is
    /// zeros.
    pub fn decode_all(&self, input: Input<'_>, output: Output<'_>, threads: Option<usize>) -> Result<()> {
        fits(input.len(), output.len())?;
        match input {
            Input::U8(codes) => self.decode_to(codes, output, threads),
            Input::U16(codes) => self.decode_to(codes, output, threads),
            Input::U32(codes) => self.decode_to(codes, output, threads),
            _ => Err(argument("codes", "uint8, uint16 or uint32 is needed".into())),
        }
    }

    fn decode_to<W: Code>(&self, codes: &[W], output: Output<'_>, threads: Option<usize>) -> Result<()> {
        match output {
            Output::F32(out) => self.decode_words(codes, out, threads),
            Output::F64(out) => self.decode_words(codes, out, threads),
            _ => Err(Error::Output { reason: "float32 or float64 is needed".into() }),
        }
    }

    fn decode_words<W: Code, F: Real>(
        &self,
        codes: &[W],
        out: &mut [F],
        threads: Option<usize>,
    ) -> Result<()> {
        let most = self.sign_mask() | self.magnitude_mask();
        let isa = Isa::current()?;
        let refused = each_chunk(codes, out, threads, |words, values| {
            let seen = compiled(isa, Decode { codec: self, words, values });
            if seen <= most { None } else { words.iter().position(|word| word.widen() > most) }
        });
        let reason = "a code word has no more bits than the codec";
        refused.map_or(Ok(()), |index| Err(element("codes", index, reason)))
    }
}

fn fits(values: usize, elements: usize) -> Result<()> {
    if values == elements {
        return Ok(());
    }
    Err(Error::Output { reason: reason!("{elements} elements, where {values} are needed") })
}

/// Fills `out` chunk by chunk. `work` answers with the position of the first value in its chunk that it refuses; the first of
/// all is the answer, and `out` is zeros then.
fn each_chunk<A: Sync, B: Copy + Default + Send + Sync>(
    values: &[A],
    out: &mut [B],
    threads: Option<usize>,
    work: impl Fn(&[A], &mut [B]) -> Option<usize> + Sync,
) -> Option<usize> {
    let first = AtomicUsize::new(usize::MAX);
    let parts = Parts::new(out);
    // Four numbers a nanosecond: chunks are counted in fours.
    let fours = values.len().div_ceil(4);
    for_chunks(fours, CHUNK, threads, NANOSECONDS, |_, range| {
        let range = 4 * range.start..values.len().min(4 * range.end);
        // SAFETY: chunks do not overlap.
        let out = unsafe { parts.part(range.clone()) };
        if let Some(position) = work(&values[range.clone()], out) {
            first.fetch_min(range.start + position, Ordering::Relaxed);
        }
    });
    let first = Some(first.into_inner()).filter(|&position| position != usize::MAX);
    if first.is_some() {
        out.fill(B::default());
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Infinities, SignBit};

    #[test]
    fn threads_change_nothing_and_the_first_place_is_named() {
        let codec = FixedPoint::new(10, 5, SignBit::OneIfNonNegative, Infinities::Refuse).unwrap();
        let mut values: Vec<f32> = (0..100_001).map(|i| i as f32 / 1024.0 - 48.0).collect();
        let expected: Vec<u16> = values.iter().map(|&x| codec.encode(x) as u16).collect();
        let (mut codes, mut back) = (vec![7u16; values.len()], vec![7f64; values.len()]);
        for threads in [None, Some(1), Some(3)] {
            codec.encode_all(Input::F32(&values), Output::U16(&mut codes), threads).unwrap();
            assert!(codes == expected);
            codec.decode_all(Input::U16(&codes), Output::F64(&mut back), threads).unwrap();
            assert!(
                back.iter()
                    .zip(&codes)
                    .all(|(x, &code)| x.to_bits() == codec.decode::<f64>(code.into()).to_bits())
            );
        }
        for bad in [90_000, 40_000, 3] {
            (values[bad], codes[bad]) = (f32::NAN, 1 << 10);
            let decoded = codec.decode_all(Input::U16(&codes), Output::F64(&mut back), Some(3));
            assert!(matches!(decoded, Err(Error::Value { name: "codes", index, .. }) if index == bad));
            assert!(back.iter().all(|&x| x == 0.0));
            let mut out = vec![7u16; values.len()];
            let encoded = codec.encode_all(Input::F32(&values), Output::U16(&mut out), Some(3));
            assert!(matches!(encoded, Err(Error::Value { name: "x", index, .. }) if index == bad));
            assert!(out.iter().all(|&code| code == 0));
        }
    }
}
