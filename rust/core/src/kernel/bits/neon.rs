//! Samples code words with NEON, 16 draws at a time.
//!
//! A table lookup is `tbl`, which reads up to 64 bytes: the low bytes of 64 entries are one such table, the high bytes
//! another. `tbx` reads on where a table has more.

use std::arch::aarch64::*;

use super::laws::Laws;
use super::plan::Table;
use crate::random::Refine;

/// 16 draws or outcomes of 16 bits.
type Sixteen = uint16x8x2_t;

/// Picks the instance for the largest table of the plan: 32, 64, 128 or 256 entries.
macro_rules! by_size {
    ($shape:ident, $laws:expr, $($argument:expr),*) => {
        match $laws.shape().registers {
            1 => $shape::<32>($laws, $($argument),*),
            2 => $shape::<64>($laws, $($argument),*),
            4 => $shape::<128>($laws, $($argument),*),
            _ => $shape::<256>($laws, $($argument),*),
        }
    };
}

/// Randomizes `words` of up to 16 bits, a multiple of 32, in place, like [`super::scalar::randomize`] under one plan.
#[target_feature(enable = "neon")]
pub(crate) fn randomize16(laws: Laws<'_>, keystream: &[u8], words: &mut [u16], refine: &mut Refine) {
    by_size!(shape16, laws, keystream, words, refine);
}

#[inline]
#[target_feature(enable = "neon")]
fn shape16<const ENTRIES: usize>(laws: Laws<'_>, keystream: &[u8], words: &mut [u16], refine: &mut Refine) {
    let plan = laws.shape();
    let vectors = plan.vectors();
    assert!(keystream.len() >= 2 * words.len() * vectors && words.len().is_multiple_of(32));
    for (g, group) in words.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let mut masks = [[vdupq_n_u16(0); 4]; 2];
        for (v, table) in plan.tables.iter().enumerate() {
            let draws = &keystream[64 * (g * vectors + v)..];
            let outcomes = outcomes::<ENTRIES, 16>(draws, laws, v, 32 * g, refine);
            let by = vdupq_n_s16(table.shift as i16);
            // With a symmetric law only the first masks are used.
            let kind = if plan.symmetric { 0 } else { v % 2 };
            for i in 0..4 {
                masks[kind][i] = vorrq_u16(masks[kind][i], vshlq_u16(outcomes[i], by));
            }
        }
        for (i, words) in group.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let [first, second] = [masks[0][i], masks[1][i]];
            // SAFETY: eight words.
            unsafe {
                let old = vld1q_u16(words.as_ptr());
                let new = if plan.symmetric { veorq_u16(old, first) } else { vbslq_u16(old, first, second) };
                vst1q_u16(words.as_mut_ptr(), new);
            }
        }
    }
}

/// Randomizes `words` of 17 to 32 bits, a multiple of 32, in place, like [`super::scalar::randomize`] under one plan.
#[target_feature(enable = "neon")]
pub(crate) fn randomize32(laws: Laws<'_>, keystream: &[u8], words: &mut [u32], refine: &mut Refine) {
    by_size!(shape32, laws, keystream, words, refine);
}

#[inline]
#[target_feature(enable = "neon")]
fn shape32<const ENTRIES: usize>(laws: Laws<'_>, keystream: &[u8], words: &mut [u32], refine: &mut Refine) {
    let plan = laws.shape();
    let vectors = plan.vectors();
    assert!(keystream.len() >= 2 * words.len() * vectors && words.len().is_multiple_of(32));
    for (g, group) in words.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let mut lanes = |v: usize| {
            let draws = &keystream[64 * (g * vectors + v)..];
            let mut lanes = [0u16; 32];
            let outcomes = outcomes::<ENTRIES, 32>(draws, laws, v, 32 * g, refine);
            for (lanes, outcome) in lanes.as_chunks_mut::<8>().0.iter_mut().zip(&outcomes) {
                // SAFETY: eight lanes.
                unsafe { vst1q_u16(lanes.as_mut_ptr(), *outcome) };
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

/// 32 draws from the front of `draws`: lane `i` from table `v` of the plan of feature `first + i`.
///
/// There is an instance for the words of each width, so that each has one caller, into which it is inlined.
#[inline]
#[target_feature(enable = "neon")]
fn outcomes<const ENTRIES: usize, const WIDTH: usize>(
    draws: &[u8],
    laws: Laws<'_>,
    v: usize,
    first: usize,
    refine: &mut Refine,
) -> [uint16x8_t; 4] {
    let draws: &[u8; 64] = draws.first_chunk().expect("64 bytes for each table");
    let shape = &laws.shape().tables[v];
    let mask = vdupq_n_u16(shape.mask);
    // Where the bits above the column differ, the smaller one is taken. The least difference tells whether they always do.
    let (mut outcomes, mut least) = ([mask; 4], vdupq_n_u16(u16::MAX));
    for half in 0..2 {
        // SAFETY: twice 16 bytes of 64.
        let random = unsafe { vld1q_u8_x2(draws.as_ptr().add(32 * half)) };
        let entry = entries::<ENTRIES>(random, laws, v, first + 16 * half);
        let random = [vreinterpretq_u16_u8(random.0), vreinterpretq_u16_u8(random.1)];
        let entry = [entry.0, entry.1];
        for i in 0..2 {
            least = vminq_u16(least, veorq_u16(random[i], entry[i]));
            outcomes[2 * half + i] = vandq_u16(vminq_u16(random[i], entry[i]), mask);
        }
    }
    if vminvq_u16(least) <= shape.mask {
        return settle(draws, outcomes, refine, |lane| laws.table(v, first + lane));
    }
    outcomes
}

/// The entries of 16 draws: lane `i` from table `v` of the plan of feature `first + i`.
#[inline]
#[target_feature(enable = "neon")]
fn entries<const ENTRIES: usize>(random: uint8x16x2_t, laws: Laws<'_>, v: usize, first: usize) -> Sixteen {
    // The low bytes of the draws hold their columns.
    let columns = vuzp1q_u8(random.0, random.1);
    let [mut low, mut high] = look_up::<ENTRIES>(columns, &laws.shape().tables[v]);
    if !laws.is_one() {
        // SAFETY: 16 bytes.
        let classes = unsafe { vld1q_u8(laws.classes::<16>(first).as_ptr()) };
        for (k, plan) in laws.plans.iter().enumerate().skip(1) {
            let here = vceqq_u8(classes, vdupq_n_u8(k as u8));
            let [other_low, other_high] = look_up::<ENTRIES>(columns, &plan.tables[v]);
            low = vbslq_u8(here, other_low, low);
            high = vbslq_u8(here, other_high, high);
        }
    }
    uint16x8x2_t(vreinterpretq_u16_u8(vzip1q_u8(low, high)), vreinterpretq_u16_u8(vzip2q_u8(low, high)))
}

/// The low and the high bytes of the entries of 16 columns.
#[inline]
#[target_feature(enable = "neon")]
fn look_up<const ENTRIES: usize>(columns: uint8x16_t, table: &Table) -> [uint8x16_t; 2] {
    let columns = vandq_u8(columns, vdupq_n_u8((ENTRIES - 1) as u8));
    let of_bytes = |bytes: &[u8; 256]| {
        if ENTRIES == 32 {
            // SAFETY: 32 bytes of 256.
            return vqtbl2q_u8(unsafe { vld1q_u8_x2(bytes.as_ptr()) }, columns);
        }
        // SAFETY: 64 bytes of 256.
        let mut found = vqtbl4q_u8(unsafe { vld1q_u8_x4(bytes.as_ptr()) }, columns);
        for start in (64..ENTRIES).step_by(64) {
            // A column before the table wraps around, and one that is not in it leaves what was found.
            let columns = vsubq_u8(columns, vdupq_n_u8(start as u8));
            // SAFETY: 64 bytes of 256, from a multiple of 64 on.
            found = vqtbx4q_u8(found, unsafe { vld1q_u8_x4(bytes.as_ptr().add(start)) }, columns);
        }
        found
    };
    [of_bytes(&table.bytes[0]), of_bytes(&table.bytes[1])]
}

/// Draws again, in lane order, the lanes whose leading bits leave the outcome open.
#[cold]
#[inline(never)]
#[target_feature(enable = "neon")]
fn settle<'a>(
    draws: &[u8; 64],
    outcomes: [uint16x8_t; 4],
    refine: &mut Refine,
    table: impl Fn(usize) -> &'a Table,
) -> [uint16x8_t; 4] {
    let mut lanes = [0u16; 32];
    for (lanes, outcome) in lanes.as_chunks_mut::<8>().0.iter_mut().zip(outcomes) {
        // SAFETY: eight lanes.
        unsafe { vst1q_u16(lanes.as_mut_ptr(), outcome) };
    }
    for (i, (lane, bytes)) in lanes.iter_mut().zip(draws.as_chunks::<2>().0).enumerate() {
        let (random, table) = (u16::from_le_bytes(*bytes), table(i));
        if table.is_open(random) {
            *lane = table.draw(random, refine) as u16;
        }
    }
    let mut settled = outcomes;
    for (settled, lanes) in settled.iter_mut().zip(lanes.as_chunks::<8>().0) {
        // SAFETY: eight lanes.
        *settled = unsafe { vld1q_u16(lanes.as_ptr()) };
    }
    settled
}
