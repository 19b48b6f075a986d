//! Where words lie in the bytes of a stream, for registers of 16 bytes.

use super::one_by_one;
use crate::codec::Code;

/// Where four words of up to 16 bits, or two of up to 32, lie behind a bit of their first byte: the bytes of each
/// lane, most significant last, and how far to shift them down.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) bytes: [u8; 16],
    pub(super) shifts: [u8; 16],
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

/// The bytes to look at and the shifts of eight words of up to 16 bits, in two lanes; or of four more, in two others.
pub(super) struct WordLayout {
    pub(super) bits: u32,
    pub(super) low: [Lane; 2],
    pub(super) high: [Lane; 2],
}

impl WordLayout {
    pub(super) fn new(bits: u32) -> WordLayout {
        let width = bits as usize;
        let phase = 4 * width % 8;
        let (low, high) = if bits <= 16 {
            ([lane(0, width, 4), lane(phase, width, 4)], [Lane::default(), Lane::default()])
        } else {
            (
                [lane(0, width, 8), lane(2 * width % 8, width, 8)],
                [lane(phase, width, 8), lane((phase + 2 * width) % 8, width, 8)],
            )
        };
        WordLayout { bits, low, high }
    }

    /// The words from `first` on. Eight words are whole bytes: from the first of those on `eights` unpacks what it can,
    /// from a byte on, and says how many words that were; the others are unpacked one by one.
    #[inline(always)]
    pub(super) fn row_by<W: Code>(
        &self,
        packed: &[u8],
        first: usize,
        out: &mut [W],
        eights: impl FnOnce(usize, &mut [W]) -> usize,
    ) {
        let head = (first.next_multiple_of(8) - first).min(out.len());
        let (head, body) = out.split_at_mut(head);
        one_by_one(packed, first, self.bits, head);
        let first = first + head.len();
        let done = eights(first / 8 * self.bits as usize, body);
        one_by_one(packed, first + done, self.bits, &mut body[done..]);
    }

    /// How many times eight of `words` words can be read from byte `at` on, if every load is of 16 bytes: the last one of
    /// eight words begins before their end.
    #[inline(always)]
    pub(super) fn whole(&self, packed: &[u8], at: usize, words: usize) -> usize {
        (packed.len().saturating_sub(at + 16) / self.bits as usize).min(words / 8)
    }
}
