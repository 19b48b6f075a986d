//! Packing 8 reports of up to 16 bits at a time with WebAssembly's SIMD.

use std::arch::wasm32::*;

use crate::codec::Code;

/// Packs reports of at most `bits` bits (1 to 16), eight at a time, as long as a whole register can be written, and says
/// how many.
pub(super) fn pack<W: Code>(reports: &[W], bits: u32, out: &mut [u8]) -> usize {
    let width = bits as usize;
    // Eight reports are `width` bytes, and the register that is written is 16.
    let steps = (reports.len() / 8).min((out.len() + width).saturating_sub(16) / width);
    let (first, second) = (order(width, 0), order(width, 8));
    // Four reports, 4 * bits bits, are moved to the upper end of 64. Where they end within a byte, the next four are moved
    // half a byte less, so that the two share that byte.
    let (by, less) = (64 - 4 * bits, 4 * (bits % 2));
    for (i, eight) in reports.as_chunks::<8>().0[..steps].iter().enumerate() {
        let words = load(eight);
        // The earlier of two is the lower one in memory, and the higher one in the stream.
        let pairs = v128_or(u32x4_shl(v128_and(words, u32x4_splat(0xffff)), bits), u32x4_shr(words, 16));
        let fours =
            v128_or(u64x2_shl(v128_and(pairs, u64x2_splat(0xffff_ffff)), 2 * bits), u64x2_shr(pairs, 32));
        let aligned = u64x2_shl(fours, by);
        let bytes = v128_or(u8x16_swizzle(aligned, first), u8x16_swizzle(u64x2_shr(aligned, less), second));
        // SAFETY: 16 bytes from the start of the eight reports lie in `out`, as was counted. The bytes behind the first
        // `width` are zeros, which the next reports replace.
        unsafe { v128_store(out[width * i..].as_mut_ptr().cast(), bytes) };
    }
    8 * steps
}

/// For each byte of eight packed reports, the byte of one half of a register (which begins at byte `half`) that belongs
/// there, or nothing.
fn order(width: usize, half: usize) -> v128 {
    // Bytes of the first four reports, and those before the second four.
    let (ends, begins) = ((4 * width).div_ceil(8), 4 * width / 8);
    let position = |i: usize| match half {
        0 if i < ends => 7 - i,
        8 if (begins..width).contains(&i) => 15 - (i - begins),
        _ => 0x80,
    };
    let bytes: [u8; 16] = std::array::from_fn(|i| position(i) as u8);
    // SAFETY: sixteen bytes.
    unsafe { v128_load(bytes.as_ptr().cast()) }
}

/// Eight reports in lanes of 16 bits.
#[inline(always)]
fn load<W: Code>(reports: &[W; 8]) -> v128 {
    // SAFETY: eight elements of 1, 2 or 4 bytes; no alignment is needed.
    unsafe {
        match size_of::<W>() {
            1 => u16x8_load_extend_u8x8(reports.as_ptr().cast()),
            2 => v128_load(reports.as_ptr().cast()),
            _ => {
                let [low, high] = [0, 4].map(|at| v128_load(reports.as_ptr().add(at).cast()));
                u16x8_shuffle::<0, 2, 4, 6, 8, 10, 12, 14>(low, high)
            }
        }
    }
}
