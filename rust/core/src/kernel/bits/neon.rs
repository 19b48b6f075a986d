//! Samples code words with NEON, 16 draws at a time.
//!
//! A look-up is `tbl` in up to 64 bytes: the low bytes of 64 entries, or the high ones. `tbx` reads on in larger tables.

use std::arch::aarch64::*;

use safe_unaligned_simd::aarch64 as safe;

use super::laws::Laws;
use super::plan::BitsTable;
use crate::codec::FixedPoint;
use crate::isa::ones;
use crate::random::Refine;

/// Picks the instance for the largest table of the plan: 32, 64, 128 or 256 entries.
macro_rules! by_size {
    ($shape:ident, $laws:expr, $($argument:expr),*) => {
        match $laws.shape().registers {
            1 => $shape::<32, _>($laws, $($argument),*),
            2 => $shape::<64, _>($laws, $($argument),*),
            4 => $shape::<128, _>($laws, $($argument),*),
            _ => $shape::<256, _>($laws, $($argument),*),
        }
    };
}

/// Randomizes `words` of up to 16 bits, a multiple of 32, in place, like [`super::scalar::randomize`] under one plan.
#[target_feature(enable = "neon")]
pub(crate) fn randomize16(laws: Laws<'_>, keystream: &[u8], words: &mut [u16], refine: &mut Refine) {
    let load = |_, words: &[u16; 8]| safe::vld1q_u16(words);
    by_size!(shape16, laws, keystream, words, refine, vdupq_n_u16(0), load);
}

/// Encodes `values` and randomizes their code words, a multiple of 32, in one pass.
#[target_feature(enable = "neon")]
pub(crate) fn encode_and_randomize16(
    codec: &FixedPoint,
    values: &[f32],
    laws: Laws<'_>,
    keystream: &[u8],
    words: &mut [u16],
    refine: &mut Refine,
) {
    assert!(codec.bits() <= 16 && values.len() == words.len());
    let encode = Encoder::new(codec);
    let turned = vdupq_n_u16(codec.sign_mask() as u16 ^ codec.negative_sign() as u16);
    // SAFETY: eights of words are as many as eights of values.
    let load = |eight: usize, _: &[u16; 8]| unsafe { encode.eight(values.as_ptr().add(8 * eight)) };
    by_size!(shape16, laws, keystream, words, refine, turned, load);
}

/// The constants of a fixed-point code of up to 16 bits.
struct Encoder {
    scale: float32x4_t,
    most: uint32x4_t,
    sign: uint16x8_t,
}

impl Encoder {
    #[inline]
    #[target_feature(enable = "neon")]
    fn new(codec: &FixedPoint) -> Encoder {
        Encoder {
            scale: vdupq_n_f32(codec.scale() as f32),
            most: vdupq_n_u32(codec.magnitude_mask()),
            sign: vdupq_n_u16(codec.sign_mask() as u16),
        }
    }

    /// The code words of eight numbers, with 1 for the sign of a negative one.
    ///
    /// # Safety
    /// They are readable.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn eight(&self, values: *const f32) -> uint16x8_t {
        let (above, normal) = (vdupq_n_u32(1 << 31), vdupq_n_u32(0x0080_0000));
        // SAFETY: the caller's numbers.
        let bits = unsafe { [vld1q_u32(values.cast()), vld1q_u32(values.add(4).cast())] };
        let magnitudes = bits.map(|bits| {
            // Arithmetic with subnormals can take longer. The least normal number is 0 for the code, so it stands for them.
            let size = vreinterpretq_f32_u32(vmaxq_u32(vbicq_u32(bits, above), normal));
            // The conversion saturates, and makes 0 of a NaN that somebody put there after the check.
            vminq_u32(vcvtq_u32_f32(vmulq_f32(size, self.scale)), self.most)
        });
        // The bits of -0 are the sign alone.
        let below_zero = bits.map(|bits| vreinterpretq_u16_u32(vcgtq_u32(bits, above)));
        let [low, high] = magnitudes.map(|magnitude| vreinterpretq_u16_u32(magnitude));
        vorrq_u16(vuzp1q_u16(low, high), vandq_u16(vuzp1q_u16(below_zero[0], below_zero[1]), self.sign))
    }
}

/// Randomizes what `load` gives of each eight words, once the bits of `turned` are turned in it.
#[inline]
#[target_feature(enable = "neon")]
fn shape16<const ENTRIES: usize, L: Fn(usize, &[u16; 8]) -> uint16x8_t>(
    laws: Laws<'_>,
    keystream: &[u8],
    words: &mut [u16],
    refine: &mut Refine,
    turned: uint16x8_t,
    load: L,
) {
    let plan = laws.shape();
    let vectors = plan.vectors();
    assert!(keystream.len() >= 2 * words.len() * vectors && words.len().is_multiple_of(32));
    let draws = keystream.as_chunks::<64>().0.chunks_exact(vectors);
    for (g, (group, draws)) in words.as_chunks_mut::<32>().0.iter_mut().zip(draws).enumerate() {
        // Bits to flip; or bits that a one keeps, and that a zero gets. No two tables have a bit in common.
        let none = vdupq_n_u16(0);
        let (mut first, mut second) = ([if plan.symmetric { turned } else { none }; 4], [none; 4]);
        for (v, (table, draws)) in plan.tables.iter().zip(draws).enumerate() {
            let outcomes = outcomes::<ENTRIES, 16>(draws, laws, (v, table), 32 * g, refine);
            let (by, mask) = (vdupq_n_s16(table.shift as i16), vdupq_n_u16(table.mask));
            let insert = |all: &mut [uint16x8_t; 4]| {
                for (flips, outcome) in all.iter_mut().zip(outcomes) {
                    *flips = veorq_u16(*flips, vshlq_u16(vandq_u16(outcome, mask), by));
                }
            };
            if plan.symmetric || v.is_multiple_of(2) { insert(&mut first) } else { insert(&mut second) }
        }
        let eights = group.as_chunks_mut::<8>().0;
        let old: [uint16x8_t; 4] = std::array::from_fn(|i| load(4 * g + i, &eights[i]));
        let new: [uint16x8_t; 4] = if plan.symmetric {
            std::array::from_fn(|i| veorq_u16(old[i], first[i]))
        } else {
            std::array::from_fn(|i| vbslq_u16(veorq_u16(old[i], turned), first[i], second[i]))
        };
        for (words, new) in eights.iter_mut().zip(new) {
            safe::vst1q_u16(words, new);
        }
    }
}

/// Randomizes `words` of 17 to 32 bits, a multiple of 32, in place, like [`super::scalar::randomize`] under one plan.
#[target_feature(enable = "neon")]
pub(crate) fn randomize32(laws: Laws<'_>, keystream: &[u8], words: &mut [u32], refine: &mut Refine) {
    match laws.shape().registers {
        1 => shape32::<32>(laws, keystream, words, refine),
        2 => shape32::<64>(laws, keystream, words, refine),
        4 => shape32::<128>(laws, keystream, words, refine),
        _ => shape32::<256>(laws, keystream, words, refine),
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn shape32<const ENTRIES: usize>(laws: Laws<'_>, keystream: &[u8], words: &mut [u32], refine: &mut Refine) {
    let plan = laws.shape();
    let vectors = plan.vectors();
    assert!(keystream.len() >= 2 * words.len() * vectors && words.len().is_multiple_of(32));
    let draws = keystream.as_chunks::<64>().0.chunks_exact(vectors);
    for (g, (group, draws)) in words.as_chunks_mut::<32>().0.iter_mut().zip(draws).enumerate() {
        let mut lanes = |v: usize| {
            let (mut lanes, table) = ([0u16; 32], &plan.tables[v]);
            let outcomes = outcomes::<ENTRIES, 32>(&draws[v], laws, (v, table), 32 * g, refine);
            let mask = vdupq_n_u16(table.mask);
            for (lanes, outcome) in lanes.as_chunks_mut::<8>().0.iter_mut().zip(outcomes) {
                safe::vst1q_u16(lanes, vandq_u16(outcome, mask));
            }
            lanes
        };
        // The lanes lie in the first-level cache; what follows are plain loops that the compiler vectorises.
        if plan.symmetric {
            for (v, table) in plan.tables.iter().enumerate() {
                for (word, flip) in group.iter_mut().zip(lanes(v)) {
                    *word ^= u32::from(flip) << table.shift;
                }
            }
        } else {
            for v in (0..vectors).step_by(2) {
                let (keep, set) = (lanes(v), lanes(v + 1));
                let (shift, field) = (plan.tables[v].shift, plan.tables[v].field());
                for (word, (keep, set)) in group.iter_mut().zip(keep.into_iter().zip(set)) {
                    let old = *word;
                    let new = (old & u32::from(keep) << shift) | (!old & u32::from(set) << shift);
                    *word = (old & !field) | (new & field);
                }
            }
        }
    }
}

/// 32 draws: lane `i` from table `v` of the plan of feature `first + i`. What stands above the
/// table's bits in a lane is left over from the comparison.
///
/// There is an instance for the words of each width, so that each has one caller, into which it is inlined.
#[inline]
#[target_feature(enable = "neon")]
fn outcomes<const ENTRIES: usize, const WIDTH: usize>(
    draws: &[u8; 64],
    laws: Laws<'_>,
    (v, shape): (usize, &BitsTable),
    first: usize,
    refine: &mut Refine,
) -> [uint16x8_t; 4] {
    // SAFETY: 64 bytes.
    let uint8x16x4_t(a, b, c, d) = unsafe { vld1q_u8_x4(draws.as_ptr()) };
    let entries = entries::<ENTRIES>([vuzp1q_u8(a, b), vuzp1q_u8(c, d)], laws, (v, shape), first);
    let random = [a, b, c, d].map(|random| vreinterpretq_u16_u8(random));
    // Where the bits above the column differ, the smaller one is taken. The least difference tells whether they always do.
    let differ: [uint16x8_t; 4] = std::array::from_fn(|i| veorq_u16(random[i], entries[i]));
    let least = vminq_u16(vminq_u16(differ[0], differ[1]), vminq_u16(differ[2], differ[3]));
    let mut outcomes: [uint16x8_t; 4] = std::array::from_fn(|i| vminq_u16(random[i], entries[i]));
    if vminvq_u16(least) <= shape.mask {
        let open = marked(differ.map(|differ| vcleq_u16(differ, vdupq_n_u16(shape.mask))));
        let mut lanes = [0u16; 32];
        for (lanes, outcome) in lanes.as_chunks_mut::<8>().0.iter_mut().zip(outcomes) {
            safe::vst1q_u16(lanes, outcome);
        }
        settle(open, draws, &mut lanes, refine, |lane| laws.table(v, first + lane));
        for (outcome, lanes) in outcomes.iter_mut().zip(lanes.as_chunks::<8>().0) {
            *outcome = safe::vld1q_u16(lanes);
        }
    }
    outcomes
}

/// The entries of 32 draws by their low bytes, which hold the columns: lane `i` from table `v` of the plan of feature
/// `first + i`.
#[inline]
#[target_feature(enable = "neon")]
fn entries<const ENTRIES: usize>(
    bytes: [uint8x16_t; 2],
    laws: Laws<'_>,
    (v, shape): (usize, &BitsTable),
    first: usize,
) -> [uint16x8_t; 4] {
    let columns = bytes.map(|bytes| vandq_u8(bytes, vdupq_n_u8((ENTRIES - 1) as u8)));
    let [mut low, mut high] = look_up::<ENTRIES>(columns, shape);
    if !laws.is_one() {
        let classes = laws.classes::<32>(first).as_chunks::<16>().0;
        let classes = [safe::vld1q_u8(&classes[0]), safe::vld1q_u8(&classes[1])];
        for (k, plan) in laws.plans.iter().enumerate().skip(1) {
            let [other_low, other_high] = look_up::<ENTRIES>(columns, &plan.tables[v]);
            for half in 0..2 {
                let here = vceqq_u8(classes[half], vdupq_n_u8(k as u8));
                low[half] = vbslq_u8(here, other_low[half], low[half]);
                high[half] = vbslq_u8(here, other_high[half], high[half]);
            }
        }
    }
    std::array::from_fn(|i| {
        let (low, high) = (low[i / 2], high[i / 2]);
        vreinterpretq_u16_u8(if i.is_multiple_of(2) { vzip1q_u8(low, high) } else { vzip2q_u8(low, high) })
    })
}

/// The low and the high bytes of the entries of twice 16 columns.
#[inline]
#[target_feature(enable = "neon")]
fn look_up<const ENTRIES: usize>(columns: [uint8x16_t; 2], table: &BitsTable) -> [[uint8x16_t; 2]; 2] {
    table.bytes.each_ref().map(|bytes| {
        if ENTRIES == 32 {
            // SAFETY: 32 bytes of 256.
            let entries = unsafe { vld1q_u8_x2(bytes.as_ptr()) };
            return columns.map(|columns| vqtbl2q_u8(entries, columns));
        }
        let mut result = [vdupq_n_u8(0); 2];
        for start in (0..ENTRIES).step_by(64) {
            // SAFETY: 64 bytes of 256, from a multiple of 64 on.
            let entries = unsafe { vld1q_u8_x4(bytes.as_ptr().add(start)) };
            for (result, columns) in result.iter_mut().zip(columns) {
                // A column before the table wraps around, and one that is not in it leaves the result.
                *result = vqtbx4q_u8(*result, entries, vsubq_u8(columns, vdupq_n_u8(start as u8)));
            }
        }
        result
    })
}

/// Draws again, in lane order, the lanes that are marked in `open`: their leading bits leave the outcome open.
#[cold]
#[inline(never)]
fn settle<'a>(
    open: u32,
    draws: &[u8; 64],
    lanes: &mut [u16; 32],
    refine: &mut Refine,
    table: impl Fn(usize) -> &'a BitsTable,
) {
    let draws = draws.as_chunks::<2>().0;
    for lane in ones(open) {
        lanes[lane] = table(lane).draw(u16::from_le_bytes(draws[lane]), refine) as u16;
    }
}

/// A bit for each of 32 lanes that are all ones or all zeros.
#[target_feature(enable = "neon")]
pub(crate) fn marked(lanes: [uint16x8_t; 4]) -> u32 {
    let bits: [u16; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
    let bits = safe::vld1q_u16(&bits);
    let eight = |(i, lanes): (usize, uint16x8_t)| u32::from(vaddvq_u16(vandq_u16(lanes, bits))) << (8 * i);
    lanes.into_iter().enumerate().map(eight).fold(0, |marked, eight| marked | eight)
}
