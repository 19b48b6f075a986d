//! Draws from alias tables, 32 lanes at a time.
//!
//! An alias table over 5 bits is 32 entries of 16 bits: one register, which `vpermw` reads with 32 indices at once and in
//! constant time. Tables over 6, 7 and 8 bits take 2, 4 and 8 registers.

use std::arch::x86_64::*;

use safe_unaligned_simd::x86_64::{_mm256_loadu_si256, _mm512_loadu_si512, _mm512_storeu_si512};

use super::laws::Laws;
use super::plan::BitsTable;
use crate::isa::ones;
use crate::random::Refine;

/// The registers of a table.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn load_table<const REGISTERS: usize>(table: &BitsTable) -> [__m512i; REGISTERS] {
    const { assert!(REGISTERS <= 8) };
    std::array::from_fn(|i| _mm512_loadu_si512(&table.entries.as_chunks::<32>().0[i]))
}

/// 32 draws from one table.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn outcome<const REGISTERS: usize>(
    random: __m512i,
    registers: &[__m512i; REGISTERS],
    table: &BitsTable,
    refine: &mut Refine,
) -> __m512i {
    let entry = look_up(random, registers);
    decide(random, entry, table.mask, refine, |_, random, refine| table.settle(random, refine))
}

/// [`outcome`] where lane `i` draws from table `v` of the plan of feature `first + i`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn blended<const REGISTERS: usize>(
    random: __m512i,
    laws: Laws<'_>,
    v: usize,
    first: usize,
    refine: &mut Refine,
) -> __m512i {
    let shape = &laws.shape().tables[v];
    let mut entry = look_up(random, &load_table::<REGISTERS>(shape));
    if !laws.is_one() {
        let classes = _mm256_loadu_si256(laws.classes::<32>(first));
        for (k, plan) in laws.plans.iter().enumerate().skip(1) {
            let here = _mm256_cmpeq_epi8_mask(classes, _mm256_set1_epi8(k as i8));
            let other = look_up(random, &load_table::<REGISTERS>(&plan.tables[v]));
            entry = _mm512_mask_mov_epi16(entry, here, other);
        }
    }
    decide(random, entry, shape.mask, refine, |lane, random, refine| {
        laws.table(v, first + lane).settle(random, refine)
    })
}

/// The outcomes of 32 draws: their own bits where they are below the threshold of their entry, and its alias elsewhere.
/// `settle` decides a lane whose threshold bits are equal.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn decide(
    random: __m512i,
    entry: __m512i,
    mask: u16,
    refine: &mut Refine,
    settle_lane: impl Fn(usize, u16, &mut Refine) -> bool,
) -> __m512i {
    let mask = _mm512_set1_epi16(mask as i16);
    let mut keep = _mm512_cmplt_epu16_mask(random, entry);
    let undecided = _mm512_cmple_epu16_mask(_mm512_xor_si512(random, entry), mask);
    if undecided != 0 {
        let mut lanes = [0u16; 32];
        _mm512_storeu_si512(&mut lanes, random);
        keep = keep & !undecided | settle(undecided, &lanes, refine, settle_lane);
    }
    _mm512_and_si512(_mm512_mask_mov_epi16(entry, keep, random), mask)
}

/// The entry of each lane's column: the low 5, 6, 7 or 8 bits of a lane are its index.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn look_up<const REGISTERS: usize>(index: __m512i, table: &[__m512i; REGISTERS]) -> __m512i {
    if REGISTERS == 1 {
        return _mm512_permutexvar_epi16(index, table[0]);
    }
    let pair = |i: usize| _mm512_permutex2var_epi16(table[2 * i], index, table[2 * i + 1]);
    let bit_6 = || _mm512_test_epi16_mask(index, _mm512_set1_epi16(1 << 6));
    let quad = |i: usize| _mm512_mask_mov_epi16(pair(2 * i), bit_6(), pair(2 * i + 1));
    match REGISTERS {
        2 => pair(0),
        4 => quad(0),
        _ => {
            _mm512_mask_mov_epi16(quad(0), _mm512_test_epi16_mask(index, _mm512_set1_epi16(1 << 7)), quad(1))
        }
    }
}

/// Lanes of `undecided` that keep their own outcome, in lane order.
#[cold]
#[inline(never)]
fn settle(
    undecided: u32,
    random: &[u16; 32],
    refine: &mut Refine,
    settle_lane: impl Fn(usize, u16, &mut Refine) -> bool,
) -> u32 {
    let mut keep = 0;
    for lane in ones(undecided) {
        keep |= u32::from(settle_lane(lane, random[lane], refine)) << lane;
    }
    keep
}
