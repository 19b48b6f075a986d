//! Samples code words with WebAssembly's SIMD, 16 draws at a time.
//!
//! A look-up is a swizzle in 16 bytes, which gives 0 for a column outside them: the low bytes of 16 entries, or the high ones.

use std::arch::wasm32::*;

use super::laws::Laws;
use super::plan::BitsTable;
use super::scalar;
use crate::codec::FixedPoint;
use crate::isa::ones;
use crate::random::Refine;

/// The largest tables that are looked up by swizzles; reads one by one are as fast in larger ones.
const SWIZZLED: usize = 2;

/// Randomizes `words` of up to 16 bits, a multiple of 32, in place, like [`super::scalar::randomize`] under one plan.
pub(crate) fn randomize16(laws: Laws<'_>, keystream: &[u8], words: &mut [u16], refine: &mut Refine) {
    match laws.shape().registers {
        1 if laws.is_one() => shape16::<32>(laws, keystream, words, refine),
        SWIZZLED if laws.is_one() => shape16::<64>(laws, keystream, words, refine),
        _ => scalar::randomize_by(laws, keystream, words, refine),
    }
}

/// Encodes `values`, and randomizes their code words, a multiple of 32.
pub(crate) fn encode_and_randomize16(
    codec: &FixedPoint,
    values: &[f32],
    laws: Laws<'_>,
    keystream: &[u8],
    words: &mut [u16],
    refine: &mut Refine,
) {
    assert!(codec.bits() <= 16 && values.len() == words.len());
    let (scale, most) = (f32x4_splat(codec.scale() as f32), f32x4_splat(codec.magnitude_mask() as f32));
    let (sign, turned) = (codec.sign_mask() as u16, codec.sign_mask() as u16 ^ codec.negative_sign() as u16);
    let (sign, turned) = (u16x8_splat(sign), u16x8_splat(turned));
    let (above, normal) = (u32x4_splat(1 << 31), u32x4_splat(0x0080_0000));
    for (words, values) in words.as_chunks_mut::<8>().0.iter_mut().zip(values.as_chunks::<8>().0) {
        // SAFETY: eight numbers; no alignment is needed.
        let bits = [0, 4].map(|at| unsafe { v128_load(values.as_ptr().add(at).cast()) });
        let [low, high] = bits.map(|bits| {
            // Arithmetic with subnormals can take longer. The least normal number is 0 for the code, so it stands for them.
            let size = i32x4_max(v128_andnot(bits, above), normal);
            // The conversion makes 0 of a NaN that somebody put there after the check.
            i32x4_trunc_sat_f32x4(f32x4_pmin(most, f32x4_mul(size, scale)))
        });
        // The bits of -0 are the sign alone.
        let [first, second] = bits.map(|bits| v128_andnot(i32x4_shr(bits, 31), i32x4_eq(bits, above)));
        let negative = v128_and(i16x8_narrow_i32x4(first, second), sign);
        let code = v128_or(u16x8_narrow_i32x4(low, high), negative);
        // SAFETY: eight words of 16 bits.
        unsafe { v128_store(words.as_mut_ptr().cast(), v128_xor(code, turned)) }
    }
    randomize16(laws, keystream, words, refine);
}

fn shape16<const ENTRIES: usize>(laws: Laws<'_>, keystream: &[u8], words: &mut [u16], refine: &mut Refine) {
    let plan = laws.shape();
    let vectors = plan.vectors();
    assert!(keystream.len() >= 2 * words.len() * vectors && words.len().is_multiple_of(32));
    let draws = keystream.as_chunks::<64>().0.chunks_exact(vectors);
    for (group, draws) in words.as_chunks_mut::<32>().0.iter_mut().zip(draws) {
        // Bits to flip; or bits that a one keeps, and that a zero gets. No two tables have a bit in common.
        let none = u16x8_splat(0);
        let (mut first, mut second) = ([none; 4], [none; 4]);
        for (v, (table, draws)) in plan.tables.iter().zip(draws).enumerate() {
            let outcomes = outcomes::<ENTRIES>(draws, table, refine);
            let mask = u16x8_splat(table.mask);
            let bits = four(|i| u16x8_shl(v128_and(outcomes[i], mask), table.shift));
            if plan.symmetric || v.is_multiple_of(2) {
                first = four(|i| v128_xor(first[i], bits[i]));
            } else {
                second = four(|i| v128_xor(second[i], bits[i]));
            }
        }
        let words = group.as_chunks_mut::<8>().0;
        // SAFETY: eight words of 16 bits, no alignment is needed.
        let old = four(|i| unsafe { v128_load(words[i].as_ptr().cast()) });
        let new = if plan.symmetric {
            four(|i| v128_xor(old[i], first[i]))
        } else {
            four(|i| v128_bitselect(first[i], second[i], old[i]))
        };
        for (words, new) in words.iter_mut().zip(new) {
            // SAFETY: as above.
            unsafe { v128_store(words.as_mut_ptr().cast(), new) }
        }
    }
}

/// The answers for 0 to 3, in registers: a build for size would keep those of a loop in memory.
#[inline(always)]
fn four<T>(of: impl Fn(usize) -> T) -> [T; 4] {
    [of(0), of(1), of(2), of(3)]
}

/// 32 draws. What stands above the table's bits in a lane is left over from the comparison.
#[inline(always)]
fn outcomes<const ENTRIES: usize>(draws: &[u8; 64], table: &BitsTable, refine: &mut Refine) -> [v128; 4] {
    let bytes = draws.as_chunks::<16>().0;
    let random = four(|i| load(&bytes[i]));
    let entries = entries::<ENTRIES>(random, table);
    // Where the bits above the column differ, the smaller one is taken. The least difference tells whether they always do.
    let differ = four(|i| v128_xor(random[i], entries[i]));
    let least = u16x8_min(u16x8_min(differ[0], differ[1]), u16x8_min(differ[2], differ[3]));
    let outcomes = four(|i| u16x8_min(random[i], entries[i]));
    let mask = u16x8_splat(table.mask);
    if v128_any_true(u16x8_le(least, mask)) {
        return settled(four(|i| u16x8_le(differ[i], mask)), draws, outcomes, table, refine);
    }
    outcomes
}

/// The entries of 32 draws by their low bytes, which hold the columns.
#[inline(always)]
fn entries<const ENTRIES: usize>(random: [v128; 4], table: &BitsTable) -> [v128; 4] {
    let column = u16x8_splat((ENTRIES - 1) as u16);
    let of = four(|i| v128_and(random[i], column));
    let columns = [u8x16_narrow_i16x8(of[0], of[1]), u8x16_narrow_i16x8(of[2], of[3])];
    let [low, high] = [&table.bytes[0], &table.bytes[1]];
    let low = [looked_up::<ENTRIES>(low, columns[0]), looked_up::<ENTRIES>(low, columns[1])];
    let high = [looked_up::<ENTRIES>(high, columns[0]), looked_up::<ENTRIES>(high, columns[1])];
    let firsts = |half: usize| {
        u8x16_shuffle::<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(low[half], high[half])
    };
    let lasts = |half: usize| {
        u8x16_shuffle::<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(low[half], high[half])
    };
    [firsts(0), lasts(0), firsts(1), lasts(1)]
}

/// The bytes of a table at 16 columns. A column before a register of them wraps around, and one beyond it is not in it, either.
#[inline(always)]
fn looked_up<const ENTRIES: usize>(table: &[u8; 256], columns: v128) -> v128 {
    let table = table.as_chunks::<16>().0;
    let part = |number: usize| {
        u8x16_swizzle(load(&table[number]), u8x16_sub(columns, u8x16_splat(16 * number as u8)))
    };
    let first = v128_or(part(0), part(1));
    if ENTRIES == 32 { first } else { v128_or(first, v128_or(part(2), part(3))) }
}

/// `outcomes` with those drawn again, in lane order, that are marked in `open`: their leading bits leave them open.
#[cold]
#[inline(never)]
fn settled(
    open: [v128; 4],
    draws: &[u8; 64],
    outcomes: [v128; 4],
    table: &BitsTable,
    refine: &mut Refine,
) -> [v128; 4] {
    let mut lanes = [[0u16; 8]; 4];
    for (lanes, outcome) in lanes.iter_mut().zip(outcomes) {
        // SAFETY: eight words of 16 bits.
        unsafe { v128_store(lanes.as_mut_ptr().cast(), outcome) }
    }
    let draws = draws.as_chunks::<2>().0;
    for lane in ones(marked(open)) {
        lanes[lane / 8][lane % 8] = table.draw(u16::from_le_bytes(draws[lane]), refine) as u16;
    }
    // SAFETY: as above.
    four(|i| unsafe { v128_load(lanes[i].as_ptr().cast()) })
}

/// A bit for each of 32 lanes that are all ones or all zeros.
#[inline(always)]
pub(crate) fn marked(lanes: [v128; 4]) -> u32 {
    let [a, b, c, d] = four(|i| u32::from(u16x8_bitmask(lanes[i])));
    a | b << 8 | c << 16 | d << 24
}

/// Sixteen bytes.
#[inline(always)]
fn load(bytes: &[u8; 16]) -> v128 {
    // SAFETY: as many as a register holds; no alignment is needed.
    unsafe { v128_load(bytes.as_ptr().cast()) }
}
