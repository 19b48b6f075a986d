//! Eight words at a time.

use std::arch::x86_64::*;

use safe_unaligned_simd::x86_64 as safe;

use super::lanes::{Lane, WordLayout};
use super::{Rows, Unpack};
use crate::codec::Code;

impl Unpack {
    /// [`Unpack::rows`].
    #[target_feature(enable = "avx2")]
    pub(super) fn on_avx2<W: Code>(
        &self,
        packed: &[u8],
        first: usize,
        stride: usize,
        words: usize,
        out: &mut [W],
    ) {
        for (row, out) in out.chunks_exact_mut(words).enumerate() {
            self.lanes.row(packed, first + row * stride, out);
        }
    }
}

impl WordLayout {
    /// The words from `first` on.
    #[target_feature(enable = "avx2")]
    pub(super) fn row<W: Code>(&self, packed: &[u8], first: usize, out: &mut [W]) {
        self.row_by(packed, first, out, |at, words| self.eights(packed, at, words));
    }

    /// Unpacks words from byte `at` on, eight at a time, as long as 16 bytes can be read wherever that is needed, and says
    /// how many.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn eights<W: Code>(&self, packed: &[u8], at: usize, out: &mut [W]) -> usize {
        let (bits, width) = (self.bits, self.bits as usize);
        let eights = self.whole(packed, at, out.len());
        let from = packed[at.min(packed.len())..].as_ptr();
        let half = 4 * width / 8;
        let low = both(&self.low);
        if bits <= 16 {
            let mask = _mm256_set1_epi32(((1u32 << bits) - 1) as i32);
            for (i, out) in out.as_chunks_mut::<8>().0[..eights].iter_mut().enumerate() {
                // SAFETY: the bytes of these eight words, and 16 from the start of the last four, were counted.
                let words = unsafe { load(from.add(i * width), half) };
                let words = _mm256_srlv_epi32(_mm256_shuffle_epi8(words, low.0), low.1);
                store(_mm256_and_si256(words, mask), out);
            }
        } else {
            let phase = 4 * width % 8;
            let (first, second) = (2 * width / 8, (phase + 2 * width) / 8);
            let high = both(&self.high);
            let mask = _mm256_set1_epi64x(i64::from(u32::MAX >> (32 - bits)));
            let even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
            for (i, out) in out.as_chunks_mut::<8>().0[..eights].iter_mut().enumerate() {
                // SAFETY: as above.
                let (one, two) =
                    unsafe { (load(from.add(i * width), first), load(from.add(i * width + half), second)) };
                let one = _mm256_and_si256(_mm256_srlv_epi64(_mm256_shuffle_epi8(one, low.0), low.1), mask);
                let two = _mm256_and_si256(_mm256_srlv_epi64(_mm256_shuffle_epi8(two, high.0), high.1), mask);
                let (one, two) =
                    (_mm256_permutevar8x32_epi32(one, even), _mm256_permutevar8x32_epi32(two, even));
                store(_mm256_blend_epi32::<0xF0>(one, two), out);
            }
        }
        8 * eights
    }
}

/// Two lanes as one register: the bytes to look at, and the shifts.
#[inline]
#[target_feature(enable = "avx2")]
fn both([low, high]: &[Lane; 2]) -> (__m256i, __m256i) {
    let pair = |low: &[u8; 16], high: &[u8; 16]| {
        _mm256_inserti128_si256::<1>(
            _mm256_castsi128_si256(safe::_mm_loadu_si128(low)),
            safe::_mm_loadu_si128(high),
        )
    };
    (pair(&low.bytes, &high.bytes), pair(&low.shifts, &high.shifts))
}

/// 16 bytes at `from`, and 16 at `start` behind it.
///
/// # Safety
/// They are readable.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load(from: *const u8, start: usize) -> __m256i {
    // SAFETY: the caller's bytes.
    unsafe {
        let low = _mm256_castsi128_si256(_mm_loadu_si128(from.cast()));
        _mm256_inserti128_si256::<1>(low, _mm_loadu_si128(from.add(start).cast()))
    }
}

/// Eight words in the width of `W`.
#[inline]
#[target_feature(enable = "avx2")]
fn store<W: Code>(words: __m256i, out: &mut [W; 8]) {
    let short = _mm256_permute4x64_epi64::<0xD8>(_mm256_packus_epi32(words, words));
    match size_of::<W>() {
        // SAFETY: eight elements of four bytes.
        4 => unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), words) },
        // SAFETY: eight elements of two bytes.
        2 => unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), _mm256_castsi256_si128(short)) },
        _ => {
            let short = _mm256_castsi256_si128(short);
            // SAFETY: eight elements of one byte.
            unsafe { _mm_storel_epi64(out.as_mut_ptr().cast(), _mm_packus_epi16(short, short)) }
        }
    }
}

/// [`super::squeeze_rows`].
#[target_feature(enable = "avx2")]
pub(super) fn squeeze(stream: &[u8], rows: Rows, packed: &mut [u8]) -> u8 {
    // The first of eight bytes is the most significant bit.
    let backwards = _mm256_broadcastsi128_si256(_mm_set_epi64x(0x0809_0a0b_0c0d_0e0f, 0x0001_0203_0405_0607));
    let (mut seen, mut rest) = (_mm256_setzero_si256(), 0);
    for (bits, packed) in rows.of(stream, packed) {
        let (whole, last) = bits.as_chunks::<32>();
        for (bits, packed) in whole.iter().zip(packed.as_chunks_mut::<4>().0) {
            let bytes = safe::_mm256_loadu_si256(bits);
            seen = _mm256_or_si256(seen, bytes);
            let top = _mm256_slli_epi16::<7>(_mm256_shuffle_epi8(bytes, backwards));
            *packed = (_mm256_movemask_epi8(top) as u32).to_le_bytes();
        }
        rest |= super::squeeze(last, &mut packed[4 * whole.len()..]);
    }
    let mut all = [0u8; 32];
    safe::_mm256_storeu_si256(&mut all, seen);
    all.iter().fold(rest, |seen, byte| seen | byte)
}
