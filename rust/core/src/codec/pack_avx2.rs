//! Packing 16 reports of up to 16 bits at a time.

use std::arch::x86_64::*;

use crate::codec::Code;

/// Packs reports of at most `bits` bits (1 to 16), sixteen at a time, as long as whole registers can be written, and says
/// how many.
#[target_feature(enable = "avx2")]
pub(super) fn pack<W: Code>(reports: &[W], bits: u32, out: &mut [u8]) -> usize {
    let width = bits as usize;
    // Eight reports are `width` bytes; the second register of a step begins behind the first eight, and is 16 bytes.
    let steps = (reports.len() / 16).min((out.len() + width).saturating_sub(16) / (2 * width));
    let one = _mm_cvtsi32_si128(bits as i32);
    let two = _mm_cvtsi32_si128(2 * bits as i32);
    // Four reports, 4 * bits bits, are moved to the upper end of 64. Where they end within a byte, the next four are moved
    // half a byte less, so that the two share that byte.
    let half = 4 * (bits % 2);
    let top = i64::from(64 - 4 * bits);
    let by = _mm256_setr_epi64x(top, top - i64::from(half), top, top - i64::from(half));
    let (first, second) = (order(width, 0), order(width, 8));
    let low = _mm256_set1_epi64x(0xffff_ffff);
    for (i, sixteen) in reports.as_chunks::<16>().0[..steps].iter().enumerate() {
        let words = load(sixteen);
        // The earlier of two is the lower one in memory, and the higher one in the stream.
        let pairs = _mm256_or_si256(
            _mm256_sll_epi32(_mm256_and_si256(words, _mm256_set1_epi32(0xffff)), one),
            _mm256_srli_epi32::<16>(words),
        );
        let fours = _mm256_or_si256(
            _mm256_sll_epi64(_mm256_and_si256(pairs, low), two),
            _mm256_srli_epi64::<32>(pairs),
        );
        let aligned = _mm256_sllv_epi64(fours, by);
        let bytes =
            _mm256_or_si256(_mm256_shuffle_epi8(aligned, first), _mm256_shuffle_epi8(aligned, second));
        let to = out[2 * width * i..].as_mut_ptr();
        // SAFETY: 16 bytes from the start of each eight reports lie in `out`, as was counted. The bytes behind the first
        // `width` are zeros, which the next reports replace.
        unsafe {
            _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(bytes));
            _mm_storeu_si128(to.add(width).cast(), _mm256_extracti128_si256::<1>(bytes));
        }
    }
    16 * steps
}

/// For each byte of eight packed reports, the byte of one 64-bit half of a lane (which begins at byte `half`) that belongs
/// there, or nothing.
#[inline]
#[target_feature(enable = "avx2")]
fn order(width: usize, half: usize) -> __m256i {
    // Bytes of the first four reports, and those before the second four.
    let (ends, begins) = ((4 * width).div_ceil(8), 4 * width / 8);
    let position = |i: usize| match half {
        0 if i < ends => 7 - i,
        8 if (begins..width).contains(&i) => 15 - (i - begins),
        _ => 0x80,
    };
    let bytes: [u8; 16] = std::array::from_fn(|i| position(i) as u8);
    _mm256_broadcastsi128_si256(safe_unaligned_simd::x86_64::_mm_loadu_si128(&bytes))
}

/// Sixteen reports in lanes of 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn load<W: Code>(reports: &[W; 16]) -> __m256i {
    let from = reports.as_ptr();
    // SAFETY: 16 elements of 1, 2 or 4 bytes.
    unsafe {
        match size_of::<W>() {
            1 => _mm256_cvtepu8_epi16(_mm_loadu_si128(from.cast())),
            2 => _mm256_loadu_si256(from.cast()),
            _ => {
                let (low, high) = (_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.add(8).cast()));
                _mm256_permute4x64_epi64::<0xD8>(_mm256_packus_epi32(low, high))
            }
        }
    }
}
