//! Packing 8 reports of up to 16 bits at a time with NEON.

use std::arch::aarch64::*;

use crate::codec::Code;

/// Packs reports of at most `bits` bits (1 to 16), eight at a time, as long as a whole register can be written, and says
/// how many.
#[target_feature(enable = "neon")]
pub(super) fn pack<W: Code>(reports: &[W], bits: u32, out: &mut [u8]) -> usize {
    let width = bits as usize;
    // Eight reports are `width` bytes, and the register that is written is 16.
    let steps = (reports.len() / 8).min((out.len() + width).saturating_sub(16) / width);
    let one = vdupq_n_s32(bits as i32);
    let two = vdupq_n_s64(2 * i64::from(bits));
    // Four reports, 4 * bits bits, are moved to the upper end of 64. Where they end within a byte, the next four are moved
    // half a byte less, so that the two share that byte.
    let top = i64::from(64 - 4 * bits);
    let by = [top, top - i64::from(4 * (bits % 2))];
    let by = safe_unaligned_simd::aarch64::vld1q_s64(&by);
    let (first, second) = (order(width, 0), order(width, 8));
    for (i, eight) in reports.as_chunks::<8>().0[..steps].iter().enumerate() {
        let words = vreinterpretq_u32_u16(load(eight));
        // The earlier of two is the lower one in memory, and the higher one in the stream.
        let pairs = vshlq_u32(vandq_u32(words, vdupq_n_u32(0xffff)), one);
        let pairs = vreinterpretq_u64_u32(vsraq_n_u32::<16>(pairs, words));
        let fours = vshlq_u64(vandq_u64(pairs, vdupq_n_u64(0xffff_ffff)), two);
        let fours = vsraq_n_u64::<32>(fours, pairs);
        let aligned = vreinterpretq_u8_u64(vshlq_u64(fours, by));
        let bytes = vorrq_u8(vqtbl1q_u8(aligned, first), vqtbl1q_u8(aligned, second));
        // SAFETY: 16 bytes from the start of the eight reports lie in `out`, as was counted. The bytes behind the first
        // `width` are zeros, which the next reports replace.
        unsafe { vst1q_u8(out[width * i..].as_mut_ptr(), bytes) };
    }
    8 * steps
}

/// For each byte of eight packed reports, the byte of one half of a register (which begins at byte `half`) that belongs
/// there, or nothing.
#[inline]
#[target_feature(enable = "neon")]
fn order(width: usize, half: usize) -> uint8x16_t {
    // Bytes of the first four reports, and those before the second four.
    let (ends, begins) = ((4 * width).div_ceil(8), 4 * width / 8);
    let position = |i: usize| match half {
        0 if i < ends => 7 - i,
        8 if (begins..width).contains(&i) => 15 - (i - begins),
        _ => 0x80,
    };
    let bytes: [u8; 16] = std::array::from_fn(|i| position(i) as u8);
    safe_unaligned_simd::aarch64::vld1q_u8(&bytes)
}

/// Eight reports in lanes of 16 bits.
#[inline]
#[target_feature(enable = "neon")]
fn load<W: Code>(reports: &[W; 8]) -> uint16x8_t {
    // SAFETY: eight elements of 1, 2 or 4 bytes, at their type's alignment.
    unsafe {
        match size_of::<W>() {
            1 => vmovl_u8(vld1_u8(reports.as_ptr().cast())),
            2 => vld1q_u16(reports.as_ptr().cast()),
            _ => {
                let both = vld1q_u16_x2(reports.as_ptr().cast());
                vuzp1q_u16(both.0, both.1)
            }
        }
    }
}
