//! Samples code words with AVX-512, 32 lanes at a time.
//!
//! The draws themselves are in [`super::draw_avx512`].

use std::arch::x86_64::*;

use safe_unaligned_simd::x86_64 as safe;

use super::draw_avx512::{blended, decide, load_table, look_up, outcome};
use super::laws::Laws;
use crate::codec::FixedPoint;
use crate::isa::BATCHES;
use crate::random::Refine;

/// The most table vectors in a law of up to 16 bits: two parts, each with a mask of ones and one of zeros.
const MOST_VECTORS: usize = 4;

/// How many values ahead memory is asked for them.
const AHEAD: usize = 512;

/// Randomizes `words`, a multiple of 32, in place, like [`super::scalar::randomize`] under one plan.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn randomize16(laws: Laws<'_>, keystream: &[u8], words: &mut [u16], refine: &mut Refine) {
    assert!(words.len().is_multiple_of(32));
    let start = words.as_mut_ptr();
    // SAFETY: group g is 32 words, 64 bytes, inside `words`.
    let load = |g: usize| unsafe { _mm512_loadu_si512(start.add(32 * g).cast()) };
    // SAFETY: this function's own condition; `load` and the stores stay inside `words`.
    unsafe { groups16(laws, keystream, start, words.len() / 32, refine, load) }
}

/// Encodes `values`, a multiple of 32, and randomizes their code words into `words`, in one pass.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn encode_and_randomize16(
    codec: &FixedPoint,
    values: &[f32],
    laws: Laws<'_>,
    keystream: &[u8],
    words: &mut [u16],
    refine: &mut Refine,
) {
    assert!(codec.bits() <= 16 && values.len() == words.len() && words.len().is_multiple_of(32));
    let scale = _mm512_set1_ps(codec.scale() as f32);
    let largest = _mm512_set1_ps(codec.magnitude_mask() as f32);
    let sign = _mm512_set1_epi32(codec.sign_mask() as i32);
    let invert = if codec.negative_sign() == 0 { 0xffff } else { 0 };
    let (above, normal) = (_mm512_set1_epi32(i32::MIN), _mm512_set1_epi32(0x0080_0000));
    let encode = |values: __m512| {
        let bits = _mm512_castps_si512(values);
        // Subnormals are zeros: arithmetic with them can take longer.
        let size = _mm512_andnot_si512(above, bits);
        let size = _mm512_maskz_mov_epi32(_mm512_cmpge_epi32_mask(size, normal), size);
        let scaled = _mm512_mul_ps(_mm512_castsi512_ps(size), scale);
        // `vminps` gives its second operand where the first is NaN: NaN saturates, as in the scalar codec.
        let magnitude = _mm512_cvttps_epi32(_mm512_min_ps(scaled, largest));
        // The bits of -0 are the sign alone.
        let below_zero = _mm512_cmpgt_epu32_mask(bits, above);
        _mm512_mask_or_epi32(magnitude, below_zero ^ invert, magnitude, sign)
    };
    // `vpackusdw` interleaves the halves by 128-bit lanes; this puts them in order again.
    let in_order = _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0);
    let load = |g: usize| {
        // SAFETY: group g is 32 values inside `values`.
        let (low, high) = unsafe {
            let from = values.as_ptr().add(32 * g);
            // The next block, to be there when its keystream is computed. A hint may point past the end.
            let ahead = from.wrapping_add(AHEAD).cast();
            _mm_prefetch::<_MM_HINT_T0>(ahead);
            _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(64));
            (_mm512_loadu_ps(from), _mm512_loadu_ps(from.add(16)))
        };
        _mm512_permutexvar_epi64(in_order, _mm512_packus_epi32(encode(low), encode(high)))
    };
    // SAFETY: this function's own condition; the stores stay inside `words`.
    unsafe { groups16(laws, keystream, words.as_mut_ptr(), words.len() / 32, refine, load) }
}

/// Picks the instance for the shape of the plan.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn groups16(
    laws: Laws<'_>,
    keystream: &[u8],
    words: *mut u16,
    groups: usize,
    refine: &mut Refine,
    load: impl Fn(usize) -> __m512i,
) {
    let plan = laws.shape();
    if !BATCHES || laws.plans.len() > 2 {
        // SAFETY: passed on from the caller.
        return unsafe {
            match plan.registers {
                1 => blended16::<1>(laws, keystream, words, groups, refine, load),
                2 => blended16::<2>(laws, keystream, words, groups, refine, load),
                4 => blended16::<4>(laws, keystream, words, groups, refine, load),
                _ => blended16::<8>(laws, keystream, words, groups, refine, load),
            }
        };
    }
    macro_rules! instance {
        ($laws:literal: $($registers:literal)*) => {
            match (plan.symmetric, plan.vectors(), plan.registers) {
                // SAFETY: passed on from the caller.
                $((true, 1, $registers) => unsafe { shape16::<$registers, 1, true, $laws>(laws, keystream, words, groups, refine, load) },
                // SAFETY: passed on from the caller.
                (true, 2, $registers) => unsafe { shape16::<$registers, 2, true, $laws>(laws, keystream, words, groups, refine, load) },
                // SAFETY: passed on from the caller.
                (false, 2, $registers) => unsafe { shape16::<$registers, 2, false, $laws>(laws, keystream, words, groups, refine, load) },
                // SAFETY: passed on from the caller.
                (false, 4, $registers) => unsafe { shape16::<$registers, 4, false, $laws>(laws, keystream, words, groups, refine, load) },)*
                other => unreachable!("words of up to 16 bits are drawn in one or two parts, not {other:?}"),
            }
        };
    }
    if laws.is_one() { instance!(1: 1 2 4 8) } else { instance!(2: 1 2 4 8) }
}

/// `LAWS` laws, one or two, of `VECTORS` tables of `REGISTERS` registers each; `words` has room for `groups` groups of 32.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn shape16<const REGISTERS: usize, const VECTORS: usize, const SYMMETRIC: bool, const LAWS: usize>(
    laws: Laws<'_>,
    keystream: &[u8],
    words: *mut u16,
    groups: usize,
    refine: &mut Refine,
    load: impl Fn(usize) -> __m512i,
) {
    let plan = laws.shape();
    assert!(plan.tables.len() == VECTORS && keystream.len() >= 64 * VECTORS * groups);
    assert!(laws.plans.len() == LAWS);
    let mut tables = [[[_mm512_setzero_si512(); REGISTERS]; LAWS]; MOST_VECTORS];
    for (k, plan) in laws.plans.iter().enumerate() {
        for (registers, table) in tables.iter_mut().zip(&plan.tables) {
            registers[k] = load_table(table);
        }
    }
    for g in 0..groups {
        // The lanes that follow the second law.
        let second = if LAWS == 2 {
            let classes = safe::_mm256_loadu_si256(laws.classes::<32>(32 * g));
            _mm256_cmpeq_epi8_mask(classes, _mm256_set1_epi8(1))
        } else {
            0
        };
        let draw = |v: usize, random: __m512i, refine: &mut Refine| {
            let mut entry = look_up(random, &tables[v][0]);
            if LAWS == 2 {
                entry = _mm512_mask_mov_epi16(entry, second, look_up(random, &tables[v][LAWS - 1]));
            }
            let table = &plan.tables[v];
            let outcome = decide(random, entry, table.mask, refine, |lane, random, refine| {
                laws.table(v, 32 * g + lane).settle(random, refine)
            });
            _mm512_sll_epi16(outcome, _mm_cvtsi32_si128(table.shift as i32))
        };
        // One vector of keystream for each table.
        let random = |v: usize| {
            // SAFETY: vector `g * VECTORS + v` lies inside `keystream`, by the assertion above.
            unsafe { _mm512_loadu_si512(keystream.as_ptr().add(64 * (g * VECTORS + v)).cast()) }
        };
        let old = load(g);
        let new = if SYMMETRIC {
            let mut flips = _mm512_setzero_si512();
            for v in 0..VECTORS {
                flips = _mm512_or_si512(flips, draw(v, random(v), refine));
            }
            _mm512_xor_si512(old, flips)
        } else {
            let (mut keep, mut set) = (_mm512_setzero_si512(), _mm512_setzero_si512());
            for v in (0..VECTORS).step_by(2) {
                keep = _mm512_or_si512(keep, draw(v, random(v), refine));
                set = _mm512_or_si512(set, draw(v + 1, random(v + 1), refine));
            }
            // Truth table of (old & keep) | (!old & set).
            _mm512_ternarylogic_epi32::<0xCA>(old, keep, set)
        };
        // SAFETY: the caller's `words` has room for group g.
        unsafe { _mm512_storeu_si512(words.add(32 * g).cast(), new) };
    }
}

/// [`shape16`] under any number of laws and tables, which are read anew for each group.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn blended16<const REGISTERS: usize>(
    laws: Laws<'_>,
    keystream: &[u8],
    words: *mut u16,
    groups: usize,
    refine: &mut Refine,
    load: impl Fn(usize) -> __m512i,
) {
    let plan = laws.shape();
    let vectors = plan.vectors();
    assert!(keystream.len() >= 64 * vectors * groups);
    for g in 0..groups {
        // With symmetric laws only the first mask is used.
        let mut masks = [_mm512_setzero_si512(); 2];
        for (v, table) in plan.tables.iter().enumerate() {
            // SAFETY: vector `g * vectors + v` lies inside `keystream`, by the assertion above.
            let random = unsafe { _mm512_loadu_si512(keystream.as_ptr().add(64 * (g * vectors + v)).cast()) };
            let outcome = blended::<REGISTERS>(random, laws, v, 32 * g, refine);
            let by = _mm_cvtsi32_si128(table.shift as i32);
            let kind = if plan.symmetric { 0 } else { v % 2 };
            masks[kind] = _mm512_or_si512(masks[kind], _mm512_sll_epi16(outcome, by));
        }
        let old = load(g);
        let new = if plan.symmetric {
            _mm512_xor_si512(old, masks[0])
        } else {
            _mm512_ternarylogic_epi32::<0xCA>(old, masks[0], masks[1])
        };
        // SAFETY: the caller's `words` has room for group g.
        unsafe { _mm512_storeu_si512(words.add(32 * g).cast(), new) };
    }
}

/// Randomizes words of 17 to 32 bits, a multiple of 32 words, in place, like [`super::scalar::randomize`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) fn randomize32(laws: Laws<'_>, keystream: &[u8], words: &mut [u32], refine: &mut Refine) {
    match laws.shape().registers {
        // SAFETY: passed on from the caller.
        1 | 2 => unsafe { shape32::<2>(laws, keystream, words, refine) },
        // SAFETY: passed on from the caller.
        4 => unsafe { shape32::<4>(laws, keystream, words, refine) },
        // SAFETY: passed on from the caller.
        _ => unsafe { shape32::<8>(laws, keystream, words, refine) },
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn shape32<const REGISTERS: usize>(
    laws: Laws<'_>,
    keystream: &[u8],
    words: &mut [u32],
    refine: &mut Refine,
) {
    let plan = laws.shape();
    let vectors = plan.vectors();
    assert!(keystream.len() >= 2 * words.len() * vectors && words.len().is_multiple_of(32));
    for (g, group) in words.chunks_exact_mut(32).enumerate() {
        // Masks of the 32 words, low and high half; with a symmetric law only the first pair is used.
        let mut masks = [[_mm512_setzero_si512(); 2]; 2];
        for (v, table) in plan.tables.iter().enumerate() {
            // SAFETY: vector `g * vectors + v` lies inside `keystream`, by the assertion above.
            let random = unsafe { _mm512_loadu_si512(keystream.as_ptr().add(64 * (g * vectors + v)).cast()) };
            let outcome = if laws.is_one() {
                outcome(random, &load_table::<REGISTERS>(table), table, refine)
            } else {
                blended::<REGISTERS>(random, laws, v, 32 * g, refine)
            };
            let halves = [_mm512_castsi512_si256(outcome), _mm512_extracti64x4_epi64::<1>(outcome)];
            let by = _mm_cvtsi32_si128(table.shift as i32);
            let kind = if plan.symmetric { 0 } else { v % 2 };
            for (mask, half) in masks[kind].iter_mut().zip(halves) {
                *mask = _mm512_or_si512(*mask, _mm512_sll_epi32(_mm512_cvtepu16_epi32(half), by));
            }
        }
        for (half, words) in group.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            let old = safe::_mm512_loadu_si512(words);
            let new = if plan.symmetric {
                _mm512_xor_si512(old, masks[0][half])
            } else {
                _mm512_ternarylogic_epi32::<0xCA>(old, masks[0][half], masks[1][half])
            };
            safe::_mm512_storeu_si512(words, new);
        }
    }
}
