//! Writes code words in the form that was asked for: codes, numbers, or a byte for each bit.

use crate::codec::{Code, FixedPoint, Real};

/// How the bits of 32 code words become bytes of 0 and 1: a table for each 64 bytes of output, in lanes of 16, which look
/// at eight consecutive words.
pub(crate) struct BitSpreader {
    bits: usize,
    /// Empty for words of one bit and of over 16, which are spread one by one.
    tables: Vec<SpreadTable>,
}

/// Where each of 64 bytes of output comes from.
#[repr(C, align(64))]
struct SpreadTable {
    /// The eight words that each lane looks at.
    word: [u16; 32],
    /// The byte of those words that each byte looks at.
    byte: [u8; 64],
    /// The bit of that byte.
    bit: [u8; 64],
}

impl BitSpreader {
    pub(crate) fn new(bits: usize) -> BitSpreader {
        // The first of the eight words that a lane looks at.
        let first = |at: usize| (at / 16 * 16 / bits).min(24);
        let table = |start: usize| SpreadTable {
            word: std::array::from_fn(|i| (first(start + 2 * i) + i % 8) as u16),
            byte: std::array::from_fn(|i| {
                let at = start + i;
                (2 * (at / bits - first(at)) + (bits - 1 - at % bits) / 8) as u8
            }),
            bit: std::array::from_fn(|i| 1 << ((bits - 1 - (start + i) % bits) % 8)),
        };
        let tables = if (2..=16).contains(&bits) {
            (0..32 * bits).step_by(64).map(table).collect()
        } else {
            Vec::new()
        };
        BitSpreader { bits, tables }
    }

    /// True where the vectorised versions can be used.
    pub(crate) fn has_tables(&self) -> bool {
        !self.tables.is_empty()
    }

    /// Every bit as a byte of 0 or 1, most significant first.
    #[inline(always)]
    pub(crate) fn scalar<W: Code>(&self, words: &[W], out: &mut [u8]) {
        for (word, bytes) in words.iter().zip(out.chunks_exact_mut(self.bits)) {
            for (i, byte) in bytes.iter_mut().rev().enumerate() {
                *byte = (word.widen() >> i & 1) as u8;
            }
        }
    }

    /// [`scalar`](Self::scalar), 64 bytes at a time.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(crate) fn on_avx512(&self, words: &[u16], out: &mut [u8]) {
        use std::arch::x86_64::*;

        use safe_unaligned_simd::x86_64::{_mm256_storeu_si256, _mm512_loadu_si512, _mm512_storeu_si512};
        assert!(out.len() == words.len() * self.bits);
        let whole = words.len() - words.len() % 32;
        let one = _mm512_set1_epi8(1);
        for (group, bytes) in words.as_chunks::<32>().0.iter().zip(out.chunks_exact_mut(32 * self.bits)) {
            let words = _mm512_loadu_si512(group);
            for (table, bytes) in self.tables.iter().zip(bytes.chunks_mut(64)) {
                let (word, byte) = (_mm512_loadu_si512(&table.word), _mm512_loadu_si512(&table.byte));
                let (looked_at, bit) = (
                    _mm512_shuffle_epi8(_mm512_permutexvar_epi16(word, words), byte),
                    _mm512_loadu_si512(&table.bit),
                );
                let spread = _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(looked_at, bit), one);
                if let Some(bytes) = bytes.first_chunk_mut::<64>() {
                    _mm512_storeu_si512(bytes, spread);
                } else if let Some(bytes) = bytes.first_chunk_mut::<32>() {
                    _mm256_storeu_si256(bytes, _mm512_castsi512_si256(spread));
                }
            }
        }
        self.scalar(&words[whole..], &mut out[whole * self.bits..]);
    }

    /// [`scalar`](Self::scalar), 16 bytes at a time.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    pub(crate) fn on_avx2(&self, words: &[u16], out: &mut [u8]) {
        use std::arch::x86_64::*;
        assert!(out.len() == words.len() * self.bits);
        let whole = words.len() - words.len() % 32;
        let (one, zero) = (_mm_set1_epi8(1), _mm_setzero_si128());
        for (group, bytes) in words[..whole].chunks_exact(32).zip(out.chunks_exact_mut(32 * self.bits)) {
            for (table, bytes) in self.tables.iter().zip(bytes.chunks_mut(64)) {
                for (lane, bytes) in bytes.chunks_exact_mut(16).enumerate() {
                    // SAFETY: the lane's eight words, from its first on, lie in the group; 16 bytes of the tables and of
                    // the output are a lane.
                    unsafe {
                        let words =
                            _mm_loadu_si128(group.as_ptr().add(usize::from(table.word[8 * lane])).cast());
                        let looked_at = _mm_shuffle_epi8(
                            words,
                            _mm_load_si128(table.byte.as_ptr().add(16 * lane).cast()),
                        );
                        let bit = _mm_and_si128(
                            looked_at,
                            _mm_load_si128(table.bit.as_ptr().add(16 * lane).cast()),
                        );
                        _mm_storeu_si128(
                            bytes.as_mut_ptr().cast(),
                            _mm_andnot_si128(_mm_cmpeq_epi8(bit, zero), one),
                        );
                    }
                }
            }
        }
        self.scalar(&words[whole..], &mut out[whole * self.bits..]);
    }
    /// [`scalar`](Self::scalar), 16 bytes at a time.
    #[cfg(target_arch = "aarch64")]
    #[target_feature(enable = "neon")]
    pub(crate) fn on_neon(&self, words: &[u16], out: &mut [u8]) {
        use std::arch::aarch64::*;
        assert!(out.len() == words.len() * self.bits);
        let whole = words.len() - words.len() % 32;
        for (group, bytes) in words[..whole].chunks_exact(32).zip(out.chunks_exact_mut(32 * self.bits)) {
            for (table, bytes) in self.tables.iter().zip(bytes.chunks_mut(64)) {
                for (lane, bytes) in bytes.chunks_exact_mut(16).enumerate() {
                    // SAFETY: the lane's eight words, from its first on, lie in the group; 16 bytes of the tables and of
                    // the output are a lane.
                    unsafe {
                        let words = vld1q_u16(group.as_ptr().add(usize::from(table.word[8 * lane])));
                        let byte = vld1q_u8(table.byte.as_ptr().add(16 * lane));
                        let looked_at = vqtbl1q_u8(vreinterpretq_u8_u16(words), byte);
                        let bit = vtstq_u8(looked_at, vld1q_u8(table.bit.as_ptr().add(16 * lane)));
                        vst1q_u8(bytes.as_mut_ptr(), vshrq_n_u8::<7>(bit));
                    }
                }
            }
        }
        self.scalar(&words[whole..], &mut out[whole * self.bits..]);
    }
}

/// Code words in another width.
#[inline(always)]
pub(crate) fn resize<From: Code, To: Code>(words: &[From], out: &mut [To]) {
    for (out, word) in out.iter_mut().zip(words) {
        *out = To::narrow(word.widen());
    }
}

/// The numbers that code words stand for.
#[inline(always)]
pub(crate) fn decode<W: Code, F: Real>(codec: &FixedPoint, words: &[W], out: &mut [F]) {
    for (out, word) in out.iter_mut().zip(words) {
        *out = codec.decode(word.widen());
    }
}
