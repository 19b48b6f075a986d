//! Samples code words with AVX2, 16 lanes at a time.
//!
//! A table lookup is made of `vpshufb`, which reads 16 bytes: 32 entries of 16 bits are two such tables for the low bytes
//! and two for the high ones.

use std::arch::x86_64::*;

use safe_unaligned_simd::x86_64 as safe;

use super::laws::Laws;
use super::plan::BitsTable;
use crate::random::Refine;

/// Picks the instance for the largest table of the plan.
macro_rules! by_quarters {
    ($shape:ident, $laws:expr, $($argument:expr),*) => {
        match $laws.shape().registers {
            // SAFETY: passed on from the caller.
            1 => unsafe { $shape::<1>($laws, $($argument),*) },
            // SAFETY: passed on from the caller.
            2 => unsafe { $shape::<2>($laws, $($argument),*) },
            // SAFETY: passed on from the caller.
            4 => unsafe { $shape::<4>($laws, $($argument),*) },
            // SAFETY: passed on from the caller.
            _ => unsafe { $shape::<8>($laws, $($argument),*) },
        }
    };
}

/// Randomizes `words` of up to 16 bits, a multiple of 32, in place, like [`super::scalar::randomize`] under one plan.
#[target_feature(enable = "avx2")]
pub(crate) fn randomize16(laws: Laws<'_>, keystream: &[u8], words: &mut [u16], refine: &mut Refine) {
    by_quarters!(shape16, laws, keystream, words, refine)
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn shape16<const QUARTERS: usize>(
    laws: Laws<'_>,
    keystream: &[u8],
    words: &mut [u16],
    refine: &mut Refine,
) {
    let plan = laws.shape();
    let vectors = plan.vectors();
    assert!(keystream.len() >= 2 * words.len() * vectors && words.len().is_multiple_of(32));
    for (g, group) in words.chunks_exact_mut(32).enumerate() {
        // Masks of the two halves; with a symmetric law only the first pair is used.
        let mut masks = [[_mm256_setzero_si256(); 2]; 2];
        for (v, table) in plan.tables.iter().enumerate() {
            let by = _mm_cvtsi32_si128(table.shift as i32);
            let kind = if plan.symmetric { 0 } else { v % 2 };
            for (half, mask) in masks[kind].iter_mut().enumerate() {
                let at = 64 * (g * vectors + v) + 32 * half;
                // SAFETY: 32 bytes of vector `g * vectors + v`, inside `keystream` by the assertion above.
                let random = unsafe { _mm256_loadu_si256(keystream.as_ptr().add(at).cast()) };
                let drawn = outcome::<QUARTERS>(random, laws, v, 32 * g + 16 * half, refine);
                let drawn = _mm256_sll_epi16(drawn, by);
                *mask = _mm256_or_si256(*mask, drawn);
            }
        }
        for (half, words) in group.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let old = safe::_mm256_loadu_si256(words);
            let [first, second] = [masks[0][half], masks[1][half]];
            let new = if plan.symmetric {
                _mm256_xor_si256(old, first)
            } else {
                _mm256_or_si256(_mm256_and_si256(old, first), _mm256_andnot_si256(old, second))
            };
            safe::_mm256_storeu_si256(words, new);
        }
    }
}

/// Randomizes `words` of 17 to 32 bits, a multiple of 32, in place, like [`super::scalar::randomize`] under one plan.
#[target_feature(enable = "avx2")]
pub(crate) fn randomize32(laws: Laws<'_>, keystream: &[u8], words: &mut [u32], refine: &mut Refine) {
    by_quarters!(shape32, laws, keystream, words, refine)
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn shape32<const QUARTERS: usize>(
    laws: Laws<'_>,
    keystream: &[u8],
    words: &mut [u32],
    refine: &mut Refine,
) {
    let plan = laws.shape();
    let vectors = plan.vectors();
    assert!(keystream.len() >= 2 * words.len() * vectors && words.len().is_multiple_of(32));
    for (g, group) in words.chunks_exact_mut(32).enumerate() {
        let mut outcomes = |v: usize| {
            let mut lanes = [0u16; 32];
            for half in 0..2 {
                let at = 64 * (g * vectors + v) + 32 * half;
                // SAFETY: 32 bytes of vector `g * vectors + v`, inside `keystream` by the assertion above.
                let random = unsafe { _mm256_loadu_si256(keystream.as_ptr().add(at).cast()) };
                let outcome = outcome::<QUARTERS>(random, laws, v, 32 * g + 16 * half, refine);
                safe::_mm256_storeu_si256(&mut lanes.as_chunks_mut::<16>().0[half], outcome);
            }
            lanes
        };
        // The lanes lie in the first-level cache; what follows are plain loops that the compiler vectorises.
        if plan.symmetric {
            for (v, table) in plan.tables.iter().enumerate() {
                let flips = outcomes(v);
                for (word, flip) in group.iter_mut().zip(flips) {
                    *word ^= u32::from(flip) << table.shift;
                }
            }
        } else {
            for v in (0..vectors).step_by(2) {
                let (keep, set) = (outcomes(v), outcomes(v + 1));
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

/// 32 entries of a table: the low bytes of the first and the last 16, then the high bytes, each in both halves of a register.
#[inline]
#[target_feature(enable = "avx2")]
fn quarter(table: &BitsTable, number: usize) -> [__m256i; 4] {
    std::array::from_fn(|part| {
        let bytes = &table.bytes[part / 2].as_chunks::<16>().0[2 * number + part % 2];
        _mm256_broadcastsi128_si256(safe::_mm_loadu_si128(bytes))
    })
}

/// 16 draws: lane `i` from table `v` of the plan of feature `first + i`.
#[inline]
#[target_feature(enable = "avx2")]
fn outcome<const QUARTERS: usize>(
    random: __m256i,
    laws: Laws<'_>,
    v: usize,
    first: usize,
    refine: &mut Refine,
) -> __m256i {
    let shape = &laws.shape().tables[v];
    let mut entry = look_up::<QUARTERS>(random, shape);
    if !laws.is_one() {
        let classes = _mm256_cvtepu8_epi16(safe::_mm_loadu_si128(laws.classes::<16>(first)));
        for (k, plan) in laws.plans.iter().enumerate().skip(1) {
            let here = _mm256_cmpeq_epi16(classes, _mm256_set1_epi16(k as i16));
            entry = _mm256_blendv_epi8(entry, look_up::<QUARTERS>(random, &plan.tables[v]), here);
        }
    }
    let mask = _mm256_set1_epi16(shape.mask as i16);
    let flip = _mm256_set1_epi16(i16::MIN); // AVX2 compares signed numbers only
    let mut keep = _mm256_cmpgt_epi16(_mm256_xor_si256(entry, flip), _mm256_xor_si256(random, flip));
    let differ = _mm256_andnot_si256(mask, _mm256_xor_si256(random, entry));
    let undecided = _mm256_movemask_epi8(_mm256_cmpeq_epi16(differ, _mm256_setzero_si256()));
    if undecided != 0 {
        keep = settle(undecided as u32, random, keep, refine, |lane| laws.table(v, first + lane));
    }
    _mm256_and_si256(_mm256_blendv_epi8(entry, random, keep), mask)
}

/// The entry of each lane's column.
#[inline]
#[target_feature(enable = "avx2")]
fn look_up<const QUARTERS: usize>(random: __m256i, table: &BitsTable) -> __m256i {
    let index = _mm256_and_si256(random, _mm256_set1_epi16(31));
    let both = _mm256_or_si256(index, _mm256_slli_epi16::<8>(index)); // the index in both bytes of a lane
    let upper = _mm256_slli_epi16::<3>(both); // bit 4 of the index becomes the sign bit that `vpblendvb` looks at
    let in_quarter = |number: usize| {
        let quarter = quarter(table, number);
        let low = _mm256_blendv_epi8(
            _mm256_shuffle_epi8(quarter[0], both),
            _mm256_shuffle_epi8(quarter[1], both),
            upper,
        );
        let high = _mm256_blendv_epi8(
            _mm256_shuffle_epi8(quarter[2], both),
            _mm256_shuffle_epi8(quarter[3], both),
            upper,
        );
        _mm256_blendv_epi8(low, high, _mm256_set1_epi16(0xff00u16 as i16))
    };
    let mut entry = in_quarter(0);
    if QUARTERS > 1 {
        let quarter_bits = _mm256_set1_epi16(32 * (QUARTERS as i16 - 1));
        let number = _mm256_and_si256(random, quarter_bits);
        for i in 1..QUARTERS {
            let here = _mm256_cmpeq_epi16(number, _mm256_set1_epi16(32 * i as i16));
            entry = _mm256_blendv_epi8(entry, in_quarter(i), here);
        }
    }
    entry
}

/// Decides the lanes of `undecided` (two bits a lane), in lane order.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx2")]
fn settle<'a>(
    mut undecided: u32,
    random: __m256i,
    keep: __m256i,
    refine: &mut Refine,
    table: impl Fn(usize) -> &'a BitsTable,
) -> __m256i {
    let (mut lanes, mut kept) = ([0u16; 16], [0u16; 16]);
    safe::_mm256_storeu_si256(&mut lanes, random);
    safe::_mm256_storeu_si256(&mut kept, keep);
    while undecided != 0 {
        let lane = undecided.trailing_zeros() as usize / 2;
        undecided &= !(3 << (2 * lane));
        kept[lane] = if table(lane).settle(lanes[lane], refine) { u16::MAX } else { 0 };
    }
    safe::_mm256_loadu_si256(&kept)
}
