//! Thirty-two words of up to 16 bits at a time.

use std::arch::x86_64::{self as arch, *};

use safe_unaligned_simd::x86_64::{_mm512_loadu_si512, _mm512_storeu_si512};

use super::{Rows, Unpack};
use crate::codec::Code;

/// Words that one register holds.
const WORDS: usize = 32;

/// Where 32 words lie in 64 bytes of which the first one begins at some bit of the first byte.
///
/// Eight words are as many bytes as one word has bits, so each lane of 128 bits gets the 16 bytes around eight words. There
/// a word's first two bytes are moved into one element, most significant first, and its third byte, where it has one, into
/// another.
#[repr(C, align(64))]
struct WordWindow {
    /// For each element, the two bytes to take.
    spread: [u16; WORDS],
    /// For each byte of a lane, the byte that belongs there: of the first two of a word, and of the third.
    upper: [u8; 2 * WORDS],
    lower: [u8; 2 * WORDS],
    /// How far the upper ones go down, or up where a third byte follows, and the lower ones down.
    down: [u16; WORDS],
    up: [u16; WORDS],
    lower_down: [u16; WORDS],
}

impl WordWindow {
    /// The window of words of `width` bits, up to 16, of which the first one begins at bit `phase`; none where the bytes around eight
    /// words are more than 16.
    fn new(width: usize, phase: usize) -> Option<WordWindow> {
        // A lane's 16 bytes begin at an even byte.
        let odd = width % 2;
        if 8 * odd + phase + 8 * width > 128 {
            return None;
        }
        let mut window = WordWindow {
            spread: [0; WORDS],
            upper: [0x80; 2 * WORDS],
            lower: [0x80; 2 * WORDS],
            down: [0; WORDS],
            up: [0; WORDS],
            lower_down: [0; WORDS],
        };
        for word in 0..WORDS {
            let (lane, position) = (word / 8, word % 8);
            let start = lane * width;
            window.spread[word] = (start / 2 + position) as u16;
            let at = 8 * (start % 2) + phase + position * width;
            let (byte, bit) = (at / 8, at % 8);
            window.upper[2 * word] = (byte + 1) as u8;
            window.upper[2 * word + 1] = byte as u8;
            if byte == 15 {
                // The last byte of the lane holds all of the word.
                window.upper[2 * word] = 0x80;
            }
            if bit + width <= 16 {
                window.down[word] = (16 - bit - width) as u16;
            } else {
                window.up[word] = (bit + width - 16) as u16;
                window.lower[2 * word] = (byte + 2) as u8;
                window.lower_down[word] = (24 - bit - width) as u16;
            }
        }
        Some(window)
    }
}

/// The windows of words of some number of bits, for each bit of a byte at which the first one may begin.
pub(super) struct Windows {
    bits: u32,
    phases: [Option<WordWindow>; 8],
}

impl Windows {
    /// The windows of words of `bits` bits, up to 16.
    pub(super) fn new(bits: u32) -> Windows {
        Windows { bits, phases: std::array::from_fn(|phase| WordWindow::new(bits as usize, phase)) }
    }

    /// Unpacks words from bit `start` on, 32 at a time, as long as 64 bytes can be read, and says how many.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
    fn row<W: Code>(&self, packed: &[u8], start: usize, out: &mut [W]) -> usize {
        let Some(window) = &self.phases[start % 8] else { return 0 };
        let (at, step) = (start / 8, 4 * self.bits as usize);
        let readable = packed.len().checked_sub(at + 64).map_or(0, |more| more / step + 1);
        let steps = readable.min(out.len() / WORDS);
        let WordWindow { spread, upper, lower, down, up, lower_down } = window;
        let (spread, down) = (_mm512_loadu_si512(spread), _mm512_loadu_si512(down));
        let (upper, lower) = (_mm512_loadu_si512(upper), _mm512_loadu_si512(lower));
        let (up, lower_down) = (_mm512_loadu_si512(up), _mm512_loadu_si512(lower_down));
        let mask = _mm512_set1_epi16(((1u32 << self.bits) - 1) as i16);
        for (i, out) in out.as_chunks_mut::<WORDS>().0[..steps].iter_mut().enumerate() {
            // SAFETY: 64 bytes from here on were counted.
            let bytes = unsafe { arch::_mm512_loadu_si512(packed.as_ptr().add(at + i * step).cast()) };
            let bytes = _mm512_permutexvar_epi16(spread, bytes);
            let high = _mm512_sllv_epi16(_mm512_srlv_epi16(_mm512_shuffle_epi8(bytes, upper), down), up);
            let low = _mm512_srlv_epi16(_mm512_shuffle_epi8(bytes, lower), lower_down);
            // Truth table of (high | low) & mask.
            store(_mm512_ternarylogic_epi64::<0xA8>(high, low, mask), out);
        }
        WORDS * steps
    }
}

impl Unpack {
    /// [`Unpack::rows`].
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
    pub(super) fn on_avx512<W: Code>(
        &self,
        packed: &[u8],
        first: usize,
        stride: usize,
        words: usize,
        out: &mut [W],
    ) {
        let Some(windows) = &self.windows else {
            return self.on_avx2(packed, first, stride, words, out);
        };
        for (row, out) in out.chunks_exact_mut(words).enumerate() {
            let first = first + row * stride;
            let done = windows.row(packed, first * self.bits as usize, out);
            if done < words {
                self.lanes.row(packed, first + done, &mut out[done..]);
            }
        }
    }
}

/// 32 words in the width of `W`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
fn store<W: Code>(words: __m512i, out: &mut [W; WORDS]) {
    let to = out.as_mut_ptr();
    // SAFETY: 32 elements of one, two or four bytes.
    unsafe {
        match size_of::<W>() {
            1 => _mm256_storeu_si256(to.cast(), _mm512_cvtepi16_epi8(words)),
            2 => arch::_mm512_storeu_si512(to.cast(), words),
            _ => {
                let (low, high) = (_mm512_castsi512_si256(words), _mm512_extracti64x4_epi64::<1>(words));
                arch::_mm512_storeu_si512(to.cast(), _mm512_cvtepu16_epi32(low));
                arch::_mm512_storeu_si512(to.add(16).cast(), _mm512_cvtepu16_epi32(high));
            }
        }
    }
}

/// [`super::squeeze_rows`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2")]
pub(super) fn squeeze(stream: &[u8], rows: Rows, packed: &mut [u8]) -> u8 {
    // The first of eight bytes is the most significant bit.
    let backwards = _mm512_set4_epi32(0x0809_0a0b, 0x0c0d_0e0f, 0x0001_0203, 0x0405_0607);
    let one = _mm512_set1_epi8(1);
    let mut seen = _mm512_setzero_si512();
    for (bits, packed) in rows.of(stream, packed) {
        let (whole, last) = bits.as_chunks::<64>();
        for (bits, packed) in whole.iter().zip(packed.as_chunks_mut::<8>().0) {
            let bytes = _mm512_loadu_si512(bits);
            seen = _mm512_or_si512(seen, bytes);
            *packed = _mm512_test_epi8_mask(_mm512_shuffle_epi8(bytes, backwards), one).to_le_bytes();
        }
        if !last.is_empty() {
            // SAFETY: as many bytes as the mask has ones; the others are zeros, and are not read.
            let bytes =
                unsafe { _mm512_maskz_loadu_epi8(u64::MAX >> (64 - last.len()), last.as_ptr().cast()) };
            seen = _mm512_or_si512(seen, bytes);
            let mask = _mm512_test_epi8_mask(_mm512_shuffle_epi8(bytes, backwards), one).to_le_bytes();
            packed[8 * whole.len()..].copy_from_slice(&mask[..last.len().div_ceil(8)]);
        }
    }
    let mut all = [0u8; 64];
    _mm512_storeu_si512(&mut all, seen);
    all.iter().fold(0, |seen, byte| seen | byte)
}
