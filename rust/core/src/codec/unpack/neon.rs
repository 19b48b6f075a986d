//! Eight words at a time, with NEON.

use std::arch::aarch64::*;

use safe_unaligned_simd::aarch64 as safe;

use super::lanes::{Lane, WordLayout};
use super::{Rows, Unpack};
use crate::codec::Code;

impl Unpack {
    /// [`Unpack::rows`].
    #[target_feature(enable = "neon")]
    pub(super) fn on_neon<W: Code>(
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
    #[target_feature(enable = "neon")]
    fn row<W: Code>(&self, packed: &[u8], first: usize, out: &mut [W]) {
        self.row_by(packed, first, out, |at, words| self.eights(packed, at, words));
    }

    /// Unpacks words from byte `at` on, eight at a time, as long as 16 bytes can be read wherever that is needed, and says
    /// how many.
    #[inline]
    #[target_feature(enable = "neon")]
    fn eights<W: Code>(&self, packed: &[u8], at: usize, out: &mut [W]) -> usize {
        let (bits, width) = (self.bits, self.bits as usize);
        let eights = self.whole(packed, at, out.len());
        let from = packed[at.min(packed.len())..].as_ptr();
        let half = 4 * width / 8;
        let [low, next] = [ready(&self.low[0]), ready(&self.low[1])];
        if bits <= 16 {
            let mask = vdupq_n_u16(((1u32 << bits) - 1) as u16);
            for (i, out) in out.as_chunks_mut::<8>().0[..eights].iter_mut().enumerate() {
                // SAFETY: the bytes of these eight words, and 16 from the start of the last four, were counted.
                let (low, high) =
                    unsafe { (four(from.add(i * width), low), four(from.add(i * width + half), next)) };
                let words = vuzp1q_u16(vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(high));
                store_short(vandq_u16(words, mask), out);
            }
        } else {
            let phase = 4 * width % 8;
            let (first, second) = (2 * width / 8, (phase + 2 * width) / 8);
            let [high, last] = [ready(&self.high[0]), ready(&self.high[1])];
            let mask = vdupq_n_u32(u32::MAX >> (32 - bits));
            for (i, out) in out.as_chunks_mut::<8>().0[..eights].iter_mut().enumerate() {
                // SAFETY: as above.
                let words = unsafe {
                    let (start, middle) = (from.add(i * width), from.add(i * width + half));
                    [
                        vuzp1q_u32(two(start, low), two(start.add(first), next)),
                        vuzp1q_u32(two(middle, high), two(middle.add(second), last)),
                    ]
                };
                store(words.map(|words| vandq_u32(words, mask)), out);
            }
        }
        8 * eights
    }
}

/// The bytes that a lane looks at, and its shifts, which go down where they are negative.
type Ready = (uint8x16_t, uint8x16_t);

#[inline]
#[target_feature(enable = "neon")]
fn ready(lane: &Lane) -> Ready {
    (safe::vld1q_u8(&lane.bytes), safe::vld1q_u8(&lane.shifts))
}

/// Four words of up to 16 bits, and whatever above them.
///
/// # Safety
/// 16 bytes are readable at `from`.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn four(from: *const u8, (bytes, shifts): Ready) -> uint32x4_t {
    // SAFETY: the caller's bytes.
    let bytes = vqtbl1q_u8(unsafe { vld1q_u8(from) }, bytes);
    vshlq_u32(vreinterpretq_u32_u8(bytes), vnegq_s32(vreinterpretq_s32_u8(shifts)))
}

/// Two words of up to 32 bits, in the lower halves of 64 bits, and whatever above them.
///
/// # Safety
/// 16 bytes are readable at `from`.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn two(from: *const u8, (bytes, shifts): Ready) -> uint32x4_t {
    // SAFETY: the caller's bytes.
    let bytes = vqtbl1q_u8(unsafe { vld1q_u8(from) }, bytes);
    vreinterpretq_u32_u64(vshlq_u64(vreinterpretq_u64_u8(bytes), vnegq_s64(vreinterpretq_s64_u8(shifts))))
}

/// Eight words of up to 16 bits in the width of `W`.
#[inline]
#[target_feature(enable = "neon")]
fn store_short<W: Code>(words: uint16x8_t, out: &mut [W; 8]) {
    match size_of::<W>() {
        4 => store([vmovl_u16(vget_low_u16(words)), vmovl_high_u16(words)], out),
        // SAFETY: eight elements of two bytes.
        2 => unsafe { vst1q_u16(out.as_mut_ptr().cast(), words) },
        // SAFETY: eight elements of one byte.
        _ => unsafe { vst1_u8(out.as_mut_ptr().cast(), vmovn_u16(words)) },
    }
}

/// Eight words in the width of `W`; those of more than 16 bits are asked for as such.
#[inline]
#[target_feature(enable = "neon")]
fn store<W: Code>([low, high]: [uint32x4_t; 2], out: &mut [W; 8]) {
    if size_of::<W>() == 4 {
        // SAFETY: eight elements of four bytes.
        unsafe { vst1q_u32_x2(out.as_mut_ptr().cast(), uint32x4x2_t(low, high)) };
    } else {
        store_short(vuzp1q_u16(vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(high)), out);
    }
}

/// [`super::squeeze_rows`].
#[target_feature(enable = "neon")]
pub(super) fn squeeze(stream: &[u8], rows: Rows, packed: &mut [u8]) -> u8 {
    // The first of eight bytes is the most significant bit.
    let positions: [i8; 16] = [7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0];
    let positions = safe::vld1q_s8(&positions);
    let (mut seen, mut rest, one) = (vdupq_n_u8(0), 0, vdupq_n_u8(1));
    for (bits, packed) in rows.of(stream, packed) {
        let (whole, last) = bits.as_chunks::<64>();
        for (bits, packed) in whole.iter().zip(packed.as_chunks_mut::<8>().0) {
            // SAFETY: 64 bytes.
            let bytes = unsafe { vld1q_u8_x4(bits.as_ptr()) };
            seen = vorrq_u8(seen, vorrq_u8(vorrq_u8(bytes.0, bytes.1), vorrq_u8(bytes.2, bytes.3)));
            let in_place = |bytes| vshlq_u8(vandq_u8(bytes, one), positions);
            // Sums of two neighbours, of four, of eight.
            let low = vpaddq_u8(in_place(bytes.0), in_place(bytes.1));
            let high = vpaddq_u8(in_place(bytes.2), in_place(bytes.3));
            let fours = vpaddq_u8(low, high);
            safe::vst1_u8(packed, vget_low_u8(vpaddq_u8(fours, fours)));
        }
        rest |= super::squeeze(last, &mut packed[8 * whole.len()..]);
    }
    let mut all = [0u8; 16];
    safe::vst1q_u8(&mut all, seen);
    all.iter().fold(rest, |seen, byte| seen | byte)
}
