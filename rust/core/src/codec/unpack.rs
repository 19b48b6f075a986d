//! Packed reports and 0/1 bytes as code words again: what everything that reads reports in these forms calls.

use crate::codec::Code;
use crate::isa::Isa;

/// The code words `first ..` of a stream of `bits` bits each, as many as `out` has room for. The stream has them all.
#[inline]
pub(crate) fn unpack_into<W: Code>(isa: Isa, packed: &[u8], first: usize, bits: u32, out: &mut [W]) {
    debug_assert!(((first + out.len()) * bits as usize).div_ceil(8) <= packed.len());
    // Eight words are whole bytes: up to the first of those, one by one.
    let head = (first.next_multiple_of(8) - first).min(out.len());
    let (head, body) = out.split_at_mut(head);
    one_by_one(packed, first, bits, head);
    let first = first + head.len();
    #[cfg(target_arch = "x86_64")]
    let done = match isa {
        Isa::Scalar => 0,
        // SAFETY: an `Isa` that reaches the kernels was checked against this processor, and both have AVX2.
        Isa::Avx2 | Isa::Avx512 => unsafe { avx2::unpack(packed, first / 8 * bits as usize, bits, body) },
    };
    #[cfg(not(target_arch = "x86_64"))]
    let done = {
        let _ = isa;
        0
    };
    one_by_one(packed, first + done, bits, &mut body[done..]);
}

/// [`unpack_into`] by the definition: a word's bits, most significant first, one byte of the stream after the other.
fn one_by_one<W: Code>(packed: &[u8], first: usize, bits: u32, out: &mut [W]) {
    if out.is_empty() {
        return;
    }
    let start = first * bits as usize;
    let mut bytes = packed[start / 8..].iter();
    let (mut held, mut have) = (0u64, 0u32);
    let mut skip = (start % 8) as u32;
    let mask = u64::from(u32::MAX >> (32 - bits));
    for out in out {
        while have < bits + skip {
            held = held << 8 | u64::from(bytes.next().copied().unwrap_or(0));
            have += 8;
        }
        have -= bits + skip;
        skip = 0;
        *out = W::narrow((held >> have & mask) as u32);
    }
}

/// Packs bytes of 0 and 1, most significant bit of a byte first, and gives all of them ORed: above 1, one of them was.
pub(crate) fn squeeze(isa: Isa, bits: &[u8], packed: &mut [u8]) -> u8 {
    debug_assert_eq!(packed.len(), bits.len().div_ceil(8));
    #[cfg(target_arch = "x86_64")]
    let (done, mut seen) = match isa {
        Isa::Scalar => (0, 0),
        // SAFETY: as above.
        Isa::Avx2 | Isa::Avx512 => unsafe { avx2::squeeze(bits, packed) },
    };
    #[cfg(not(target_arch = "x86_64"))]
    let (done, mut seen) = {
        let _ = isa;
        (0, 0)
    };
    for (eight, packed) in bits[8 * done..].chunks(8).zip(&mut packed[done..]) {
        *packed = eight.iter().enumerate().fold(0, |byte, (i, bit)| byte | (bit & 1) << (7 - i));
        seen |= eight.iter().fold(0, |seen, bit| seen | bit);
    }
    seen
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use crate::codec::Code;

    /// Where four words of up to 16 bits, or two of up to 32, lie behind a bit of their first byte: the bytes of each
    /// lane, most significant last, and how far to shift them down.
    struct Lane {
        bytes: [u8; 16],
        shifts: [u8; 16],
    }

    /// A lane of words of `bits` bits that begin at bit `phase`; an element has `size` bytes, of which `size - 1` or, of
    /// eight, five are looked at.
    fn lane(phase: usize, bits: usize, size: usize) -> Lane {
        let looked_at = if size == 4 { 3 } else { 5 };
        let (mut bytes, mut shifts) = ([0x80u8; 16], [0u8; 16]);
        for j in 0..16 / size {
            let at = phase + j * bits;
            for b in 0..looked_at {
                bytes[size * j + b] = (at / 8 + looked_at - 1 - b) as u8;
            }
            shifts[size * j] = (8 * looked_at - at % 8 - bits) as u8;
        }
        Lane { bytes, shifts }
    }

    /// Two lanes as one register: the bytes to look at, and the shifts.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn both(low: &Lane, high: &Lane) -> (__m256i, __m256i) {
        let pair = |low: &[u8; 16], high: &[u8; 16]| {
            // SAFETY: 16 bytes each.
            unsafe {
                let low = _mm_loadu_si128(low.as_ptr().cast());
                _mm256_inserti128_si256::<1>(
                    _mm256_castsi128_si256(low),
                    _mm_loadu_si128(high.as_ptr().cast()),
                )
            }
        };
        (pair(&low.bytes, &high.bytes), pair(&low.shifts, &high.shifts))
    }

    /// Unpacks words from byte `at` on, eight at a time, as long as 16 bytes can be read wherever that is needed, and says
    /// how many.
    #[target_feature(enable = "avx2")]
    pub(super) fn unpack<W: Code>(packed: &[u8], at: usize, bits: u32, out: &mut [W]) -> usize {
        let width = bits as usize;
        // The last load of eight words begins before their end.
        let readable = packed.len().saturating_sub(at + 16) / width;
        let eights = readable.min(out.len() / 8);
        let from = packed[at.min(packed.len())..].as_ptr();
        if bits <= 16 {
            let start = 4 * width / 8;
            let (bytes, shifts) = both(&lane(0, width, 4), &lane(4 * width % 8, width, 4));
            let mask = _mm256_set1_epi32(((1u32 << bits) - 1) as i32);
            for (i, out) in out.as_chunks_mut::<8>().0[..eights].iter_mut().enumerate() {
                // SAFETY: the bytes of these eight words, and 16 from the start of the last four, were counted.
                let words = unsafe { load(from.add(i * width), start) };
                let words = _mm256_srlv_epi32(_mm256_shuffle_epi8(words, bytes), shifts);
                store(_mm256_and_si256(words, mask), out);
            }
        } else {
            let half = 4 * width / 8;
            let phase = 4 * width % 8;
            let (first, second) = (2 * width / 8, (phase + 2 * width) / 8);
            let low = both(&lane(0, width, 8), &lane(2 * width % 8, width, 8));
            let high = both(&lane(phase, width, 8), &lane((phase + 2 * width) % 8, width, 8));
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

    /// [`super::squeeze`] of whole 32 bytes: how many bytes were written, and what was seen.
    #[target_feature(enable = "avx2")]
    pub(super) fn squeeze(bits: &[u8], packed: &mut [u8]) -> (usize, u8) {
        let backwards = _mm256_set_epi64x(
            0x0809_0a0b_0c0d_0e0f,
            0x0001_0203_0405_0607,
            0x0809_0a0b_0c0d_0e0f,
            0x0001_0203_0405_0607,
        );
        let (bits, packed) = (bits.as_chunks::<32>().0, packed.as_chunks_mut::<4>().0);
        let mut seen = _mm256_setzero_si256();
        for (bits, packed) in bits.iter().zip(packed.iter_mut()) {
            // SAFETY: 32 bytes.
            let bytes = unsafe { _mm256_loadu_si256(bits.as_ptr().cast()) };
            seen = _mm256_or_si256(seen, bytes);
            let top = _mm256_slli_epi16::<7>(_mm256_shuffle_epi8(bytes, backwards));
            *packed = (_mm256_movemask_epi8(top) as u32).to_le_bytes();
        }
        let mut all = [0u8; 32];
        // SAFETY: 32 bytes.
        unsafe { _mm256_storeu_si256(all.as_mut_ptr().cast(), seen) };
        (4 * bits.len(), all.iter().fold(0, |seen, byte| seen | byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bit(packed: &[u8], at: usize) -> u32 {
        u32::from(packed[at / 8] >> (7 - at % 8) & 1)
    }

    proptest! {
        #[test]
        fn any_part_of_a_stream_is_unpacked_the_same_everywhere(
            bits in 1u32..=32, first in 0usize..40, count in 0usize..150, packed in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let needed = ((first + count) * bits as usize).div_ceil(8);
            let packed: Vec<u8> = (0..needed).map(|i| packed.get(i % packed.len().max(1)).map_or(i as u8, |b| b ^ i as u8)).collect();
            let word = |i: usize| (0..bits as usize).fold(0, |word, b| word << 1 | bit(&packed, (first + i) * bits as usize + b));
            let expected: Vec<u32> = (0..count).map(word).collect();
            for &isa in Isa::available() {
                let mut out = vec![u32::MAX; count];
                unpack_into(isa, &packed, first, bits, &mut out);
                prop_assert_eq!(&out, &expected);
                if bits <= 16 {
                    let mut out = vec![u16::MAX; count];
                    unpack_into(isa, &packed, first, bits, &mut out);
                    prop_assert!(out.iter().zip(&expected).all(|(&a, &b)| u32::from(a) == b));
                }
                if bits <= 8 {
                    let mut out = vec![u8::MAX; count];
                    unpack_into(isa, &packed, first, bits, &mut out);
                    prop_assert!(out.iter().zip(&expected).all(|(&a, &b)| u32::from(a) == b));
                }
            }
        }

        #[test]
        fn bytes_are_squeezed_the_same_everywhere(bits in prop::collection::vec(0u8..2, 0..200), wrong in any::<Option<u8>>()) {
            let mut bits = bits;
            if let (Some(wrong), Some(last)) = (wrong, bits.len().checked_sub(1)) {
                bits[usize::from(wrong) % (last + 1)] = wrong;
            }
            let naive: Vec<u8> = bits.chunks(8).map(|e| e.iter().enumerate().map(|(i, b)| (b & 1) << (7 - i)).sum()).collect();
            let all = bits.iter().fold(0, |all, byte| all | byte);
            for &isa in Isa::available() {
                let mut packed = vec![0xff; naive.len()];
                prop_assert_eq!(squeeze(isa, &bits, &mut packed), all);
                prop_assert_eq!(&packed, &naive);
            }
        }
    }
}
