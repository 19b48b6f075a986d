//! Kernels by instruction set, for code words of 16 and of 32 bits.

use std::cell::RefCell;

use super::emit::BitSpreader;
use super::laws::Laws;
#[cfg(target_arch = "aarch64")]
use super::neon;
use super::plan::{MOST_FEATURES, MOST_KEYSTREAM};
use super::scalar;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use super::wasm;
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::codec::{Code, FixedPoint};
use crate::io::Output;
use crate::isa::{Isa, dispatch, dispatch_unit, vectorised};
use crate::random::Refine;

/// A thread's working memory. It is kept from call to call, because clearing it would take a tenth of a short one.
#[repr(C, align(64))]
pub(crate) struct BitsScratch<W> {
    pub(super) keystream: [u8; MOST_KEYSTREAM],
    pub(super) words: [W; MOST_FEATURES],
}

/// A thread's own [`BitsScratch`] for words of `$word`, lent to `$work`.
macro_rules! lend_scratch {
    ($word:ty, $work:expr) => {{
        thread_local! {
            static SCRATCH: RefCell<BitsScratch<$word>> =
                const { RefCell::new(BitsScratch { keystream: [0; MOST_KEYSTREAM], words: [0; MOST_FEATURES] }) };
        }
        SCRATCH.with_borrow_mut($work)
    }};
}

/// The kernels of which each width of code word has vectorised versions.
pub(crate) trait CodeWord: Code {
    /// Lends `work` the thread's working memory.
    fn with_scratch<R>(work: impl FnOnce(&mut BitsScratch<Self>) -> R) -> R;

    /// Randomizes a multiple of 32 words in place.
    fn randomize(isa: Isa, laws: Laws<'_>, keystream: &[u8], words: &mut [Self], refine: &mut Refine);

    /// Encodes and randomizes in one pass, where there is such a version; otherwise nothing happens and the answer is no.
    fn encode_and_randomize(
        _isa: Isa,
        _codec: &FixedPoint,
        _values: &[f32],
        _laws: Laws<'_>,
        _keystream: &[u8],
        _words: &mut [Self],
        _refine: &mut Refine,
    ) -> bool {
        false
    }

    /// The output itself, where it takes code words of this width.
    fn of_output<'o>(output: &'o mut Output<'_>) -> Option<&'o mut [Self]>;

    /// Bytes of 0 and 1.
    fn spread(isa: Isa, spread: &BitSpreader, words: &[Self], out: &mut [u8]);
}

impl CodeWord for u16 {
    fn with_scratch<R>(work: impl FnOnce(&mut BitsScratch<u16>) -> R) -> R {
        lend_scratch!(u16, work)
    }

    fn randomize(isa: Isa, laws: Laws<'_>, keystream: &[u8], words: &mut [u16], refine: &mut Refine) {
        dispatch_unit!(isa.keystream_unit(), (laws, keystream, words, refine),
            avx512 => avx512::randomize16, avx2 => avx2::randomize16, neon => neon::randomize16,
            simd128 => wasm::randomize16, _ => scalar::randomize_by(laws, keystream, words, refine));
    }

    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128")),
        allow(unused_variables, unreachable_code, reason = "there is none")
    )]
    fn encode_and_randomize(
        isa: Isa,
        codec: &FixedPoint,
        values: &[f32],
        laws: Laws<'_>,
        keystream: &[u8],
        words: &mut [u16],
        refine: &mut Refine,
    ) -> bool {
        dispatch!(isa, (codec, values, laws, keystream, words, refine),
            avx512 => avx512::encode_and_randomize16, neon => neon::encode_and_randomize16,
            simd128 => wasm::encode_and_randomize16, _ => return false);
        true
    }

    fn of_output<'o>(output: &'o mut Output<'_>) -> Option<&'o mut [u16]> {
        if let Output::U16(out) = output { Some(out) } else { None }
    }

    fn spread(isa: Isa, spread: &BitSpreader, words: &[u16], out: &mut [u8]) {
        if spread.has_tables() {
            dispatch!(isa, (spread, words, out),
                avx512 => BitSpreader::on_avx512, avx2 => BitSpreader::on_avx2, neon => BitSpreader::on_neon,
                _ => spread.scalar(words, out));
        } else {
            spread.scalar(words, out);
        }
    }
}

impl CodeWord for u32 {
    fn with_scratch<R>(work: impl FnOnce(&mut BitsScratch<u32>) -> R) -> R {
        lend_scratch!(u32, work)
    }

    fn randomize(isa: Isa, laws: Laws<'_>, keystream: &[u8], words: &mut [u32], refine: &mut Refine) {
        dispatch!(isa, (laws, keystream, words, refine),
            avx512 => avx512::randomize32, avx2 => avx2::randomize32, neon => neon::randomize32,
            _ => scalar::randomize_by(laws, keystream, words, refine));
    }

    fn of_output<'o>(output: &'o mut Output<'_>) -> Option<&'o mut [u32]> {
        if let Output::U32(out) = output { Some(out) } else { None }
    }

    fn spread(isa: Isa, spread: &BitSpreader, words: &[u32], out: &mut [u8]) {
        vectorised(isa, || spread.scalar(words, out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_set_spreads_the_same_bits() {
        let words: Vec<u16> = (0..101u32).map(|i| (i.wrapping_mul(40503) >> 3) as u16).collect();
        for bits in 1..=16 {
            let spread = BitSpreader::new(bits);
            let words: Vec<u16> = words.iter().map(|word| word & ((1u32 << bits) - 1) as u16).collect();
            for &isa in Isa::available() {
                let mut got = vec![9; words.len() * bits];
                CodeWord::spread(isa, &spread, &words, &mut got);
                for (i, byte) in got.iter().enumerate() {
                    let expected = words[i / bits] >> (bits - 1 - i % bits) & 1;
                    assert_eq!(u16::from(*byte), expected, "{bits} bits, {isa}, byte {i}");
                }
            }
        }
    }
}
