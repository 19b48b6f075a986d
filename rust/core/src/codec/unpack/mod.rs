//! Packed reports and 0/1 bytes as code words again: what everything that reads reports in these forms calls.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod lanes;
#[cfg(target_arch = "aarch64")]
mod neon;

use crate::codec::Code;
#[cfg(target_arch = "x86_64")]
use crate::isa::Unit;
use crate::isa::{Isa, dispatch};

/// Everything that reading words of some number of bits takes: made once, used for any number of them.
pub(crate) struct Unpack {
    isa: Isa,
    bits: u32,
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    lanes: lanes::WordLayout,
    #[cfg(target_arch = "x86_64")]
    windows: Option<Box<avx512::Windows>>,
}

impl Unpack {
    /// For words of `bits` bits, 1 to 32.
    pub(crate) fn new(isa: Isa, bits: u32) -> Unpack {
        Unpack {
            isa,
            bits,
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            lanes: lanes::WordLayout::new(bits),
            #[cfg(target_arch = "x86_64")]
            windows: (isa.unit() == Unit::Avx512 && bits <= 16).then(|| Box::new(avx512::Windows::new(bits))),
        }
    }

    /// The code words `first ..` of a stream, as many as `out` has room for. The stream has them all.
    #[inline]
    pub(crate) fn words<W: Code>(&self, packed: &[u8], first: usize, out: &mut [W]) {
        if !out.is_empty() {
            let words = out.len();
            self.rows(packed, first, 0, words, out);
        }
    }

    /// For each `words` words of `out`, one after the other, those of the stream from `first`, `first + stride`, … on.
    #[inline]
    pub(crate) fn rows<W: Code>(
        &self,
        packed: &[u8],
        first: usize,
        stride: usize,
        words: usize,
        out: &mut [W],
    ) {
        debug_assert!(out.len().is_multiple_of(words));
        dispatch!(self.isa, (self, packed, first, stride, words, out),
        avx512 => Unpack::on_avx512, avx2 => Unpack::on_avx2, neon => Unpack::on_neon,
        _ => for (row, out) in out.chunks_exact_mut(words).enumerate() {
            by_eights(packed, first + row * stride, self.bits, out);
        });
    }
}

/// [`Unpack::words`], eight of up to 16 bits at a time: they are as many bytes as a word has bits, and four of them lie within
/// eight bytes.
fn by_eights<W: Code>(packed: &[u8], first: usize, bits: u32, out: &mut [W]) {
    let width = bits as usize;
    let before = (first.next_multiple_of(8) - first).min(out.len());
    let (head, body) = out.split_at_mut(if bits <= 16 { before } else { out.len() });
    one_by_one(packed, first, bits, head);
    let start = first + head.len();
    let mask = u64::from(u32::MAX >> (32 - bits));
    let mut done = 0;
    for eight in body.as_chunks_mut::<8>().0 {
        let at = (start + done) * width / 8;
        let Some(near) = packed.get(at..).and_then(<[u8]>::first_chunk::<16>) else { break };
        let load = |from: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&near[from..from + 8]);
            u64::from_be_bytes(bytes)
        };
        // The second four of words of an odd number of bits begin in the middle of a byte.
        let fours = [load(0), load(width / 2) << (4 * (bits % 2))];
        for (i, word) in (1..).zip(eight.iter_mut()) {
            let (four, position) = if i <= 4 { (fours[0], i) } else { (fours[1], i - 4) };
            *word = W::narrow((four >> (u64::BITS - position * bits) & mask) as u32);
        }
        done += 8;
    }
    one_by_one(packed, start + done, bits, &mut body[done..]);
}

/// [`Unpack::words`] by the definition: a word's bits, most significant first, lie within the eight bytes from its first one
/// on. Behind the stream are zeros.
fn one_by_one<W: Code>(packed: &[u8], first: usize, bits: u32, out: &mut [W]) {
    for (word, out) in (first..).zip(out) {
        let start = word * bits as usize;
        let rest = packed.get(start / 8..).unwrap_or(&[]);
        let bytes = rest.first_chunk().copied().unwrap_or_else(|| {
            let mut bytes = [0; 8];
            bytes[..rest.len()].copy_from_slice(rest);
            bytes
        });
        *out = W::narrow((u64::from_be_bytes(bytes) << (start % 8) >> (u64::BITS - bits)) as u32);
    }
}

/// Some rows of a stream of bytes: `length` bytes from `first`, `first + stride`, … on.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) first: usize,
    pub(crate) stride: usize,
    pub(crate) rows: usize,
    pub(crate) length: usize,
}

impl Rows {
    /// Each row of `stream`, and the whole bytes of `packed` for its bits.
    #[inline(always)]
    fn of<'a>(
        self,
        stream: &'a [u8],
        packed: &'a mut [u8],
    ) -> impl Iterator<Item = (&'a [u8], &'a mut [u8])> {
        let rows = (0..self.rows).map(move |row| &stream[self.first + row * self.stride..][..self.length]);
        rows.zip(packed.chunks_exact_mut(self.length.div_ceil(8).max(1)))
    }
}

/// Packs rows of bytes of 0 and 1, most significant bit of a byte first, each to whole bytes, and gives all of them ORed:
/// above 1, one of them was. `packed` has room for them.
pub(crate) fn squeeze_rows(isa: Isa, stream: &[u8], rows: Rows, packed: &mut [u8]) -> u8 {
    debug_assert!(packed.len() >= rows.rows * rows.length.div_ceil(8));
    dispatch!(isa, (stream, rows, packed),
        avx512 => avx512::squeeze, avx2 => avx2::squeeze, neon => neon::squeeze,
        _ => rows.of(stream, packed).fold(0, |seen, (bits, packed)| seen | squeeze(bits, packed)))
}

/// [`squeeze_rows`] of one row, eight bytes at a time.
fn squeeze(bits: &[u8], packed: &mut [u8]) -> u8 {
    let (eights, rest) = bits.as_chunks::<8>();
    let (whole, last) = packed.split_at_mut(eights.len());
    let mut seen = 0;
    for (packed, eight) in whole.iter_mut().zip(eights) {
        *packed = gathered(*eight);
        seen |= u64::from_le_bytes(*eight);
    }
    if let ([last, ..], false) = (last, rest.is_empty()) {
        let mut eight = [0; 8];
        eight[..rest.len()].copy_from_slice(rest);
        *last = gathered(eight);
        seen |= u64::from_le_bytes(eight);
    }
    seen.to_le_bytes().into_iter().fold(0, |seen, byte| seen | byte)
}

/// The lowest bits of eight bytes as one byte, the first of them on top.
#[inline(always)]
pub(crate) fn gathered(bytes: [u8; 8]) -> u8 {
    let ones = u64::from_le_bytes(bytes) & 0x0101_0101_0101_0101;
    // Byte i goes to bit 63 - i; no two products meet.
    (ones.wrapping_mul(0x8040_2010_0804_0201) >> 56) as u8
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
                Unpack::new(isa, bits).words(&packed, first, &mut out);
                prop_assert_eq!(&out, &expected);
                if bits <= 16 {
                    let mut out = vec![u16::MAX; count];
                    Unpack::new(isa, bits).words(&packed, first, &mut out);
                    prop_assert!(out.iter().zip(&expected).all(|(&a, &b)| u32::from(a) == b));
                }
                if bits <= 8 {
                    let mut out = vec![u8::MAX; count];
                    Unpack::new(isa, bits).words(&packed, first, &mut out);
                    prop_assert!(out.iter().zip(&expected).all(|(&a, &b)| u32::from(a) == b));
                }
            }
        }

        #[test]
        fn bytes_are_squeezed_the_same_everywhere(
            bits in prop::collection::vec(0u8..2, 0..400), rows in 1usize..4, wrong in any::<Option<u8>>(),
        ) {
            let mut bits = bits;
            if let (Some(wrong), Some(last)) = (wrong, bits.len().checked_sub(1)) {
                bits[usize::from(wrong) % (last + 1)] = wrong;
            }
            let rows = Rows { first: bits.len() % 3, stride: bits.len() / 4, rows, length: bits.len() / 5 };
            let one = |row: usize| &bits[(rows.first + row * rows.stride).min(bits.len())..][..rows.length];
            prop_assume!(rows.first + (rows.rows - 1) * rows.stride + rows.length <= bits.len());
            let of = |row: &[u8]| row.chunks(8).map(|e| e.iter().enumerate().map(|(i, b)| (b & 1) << (7 - i)).sum()).collect::<Vec<u8>>();
            let naive: Vec<u8> = (0..rows.rows).flat_map(|row| of(one(row))).collect();
            let all = (0..rows.rows).flat_map(one).fold(0, |all, byte| all | byte);
            for &isa in Isa::available() {
                let mut packed = vec![0xff; naive.len()];
                prop_assert_eq!(squeeze_rows(isa, &bits, rows, &mut packed), all);
                prop_assert_eq!(&packed, &naive);
            }
        }
    }
}
