//! Kernels against what is drawn one by one.

use proptest::prelude::*;

use super::*;
use crate::kernel::categorical::flip::{COLUMN, DRAWS, LANES};
use crate::kernel::categorical::{matrix, window};
use crate::probability::{Probability, Rounding};
use crate::random::Key;

#[test]
fn draws_that_need_more_bits_get_them_in_order() {
    let key = Key::from_bytes([3; 32]);
    let rows: [u16; LANES] = std::array::from_fn(|i| (i * 7 % 3 == 0).into());
    // Draws at their columns' thresholds are open: one of them, some, all, none.
    let singles = (0..DRAWS).map(|i| 1u16 << i);
    let opens = singles.chain([0, u16::MAX, 0x5555, 0xAAAA, 0x8001, 0x1234, 0xFEDC]);
    // Where reports are seldom their rows, all of the columns have thresholds, the first one too.
    for (open, kept) in opens.flat_map(|open| [(open, 0.731), (open, 0.29)]) {
        let law = Flip::new(Probability::from_f64(kept, Rounding::Down).unwrap());
        let mut keystream = [0; 2 * DRAWS];
        for (i, bytes) in keystream.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let far = if open >> i & 1 == 1 { 0 } else { 0x6660 };
            *bytes = (law.entries[i] & !COLUMN ^ far | i as u16).to_le_bytes();
        }
        let mut expected = [0; LANES];
        let mut stream = Refine::new(Isa::Scalar, &key, 9);
        law.oracle(&keystream, &rows, &mut expected, &mut stream);
        let next = stream.next();
        for &isa in Isa::available() {
            let mut reports = [9; LANES];
            let mut stream = Refine::new(isa, &key, 9);
            law.block(isa, &keystream, &rows, &mut reports, &mut stream);
            assert_eq!((reports, stream.next()), (expected, next), "{isa}, {open:x}");
        }
    }
}

/// Blocks of `law` on every instruction set against `oracle`, which draws one report after the other; both must leave the
/// refinement stream at the same word.
fn agree<L: Law<Word = u16>>(
    law: &L,
    keystream: &[u8],
    rows: &[u16],
    oracle: impl Fn(&mut [u16], &mut Refine),
) {
    let key = Key::from_bytes([3; 32]);
    let mut expected = vec![0; rows.len()];
    let mut stream = Refine::new(Isa::Scalar, &key, 9);
    oracle(&mut expected, &mut stream);
    let next = stream.next();
    for &isa in Isa::available() {
        let mut reports = vec![9; rows.len()];
        let mut stream = Refine::new(isa, &key, 9);
        law.block(isa, keystream, rows, &mut reports, &mut stream);
        assert_eq!((&reports, stream.next()), (&expected, next), "{isa}");
    }
}

/// Numbers that look random.
fn scrambled(seed: u64, i: usize) -> u32 {
    let mixed = (seed << 32 | i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32) as u32
}

fn matrix_agrees<E: Versions>(law: &MatrixLaw<E>, seed: u64) {
    let rows: Vec<u16> = (0..BLOCK).map(|i| (scrambled(seed, i) % law.rows) as u16).collect();
    let mut keystream = Vec::new();
    for (i, &row) in rows.iter().enumerate() {
        // One draw in four is at the threshold of its column, or just beside it.
        let draw = scrambled(!seed, i);
        let at = law.entries.at(u32::from(row) << law.bits | draw & law.mask().widen()).widen();
        let near = (at >> law.bits).wrapping_add(scrambled(seed, i + BLOCK) % 3).wrapping_sub(1);
        let near = near << law.bits | draw & law.mask().widen();
        keystream.extend(&(if i % 4 == 0 { near } else { draw }).to_le_bytes()[..E::BYTES]);
    }
    agree(law, &keystream, &rows, |reports, refine| {
        let groups = rows.as_chunks().0.iter().zip(reports.as_chunks_mut().0);
        for ((rows, reports), bytes) in groups.zip(keystream.chunks(PLACES * E::BYTES)) {
            let mut draws = [E::default(); PLACES];
            E::read(bytes, &mut draws);
            law.oracle(&draws, rows, reports, refine);
        }
    });
}

proptest! {
    #[test]
    fn blocks_of_windows_are_what_is_drawn_one_by_one(
        cells in prop_oneof![2u32..40, 2u32..=65_536, Just(65_536)],
        share in 0.0f64..1.0,
        inside in prop_oneof![0.0f64..=1.0, Just(0.0), Just(1.0), Just(0.5)],
        seed: u32,
    ) {
        let width = (1.0 + share * f64::from(cells - 2)) as u32;
        let law = NarrowWindow::new(cells, width, Probability::from_f64(inside, Rounding::Down).unwrap(), None);
        let mut keystream = vec![0; 4 * BLOCK];
        for (i, draw) in keystream.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let random = scrambled(seed.into(), i);
            // Chances and positions come in turn, a group's of each. Some chances are at the threshold or just beside it, some
            // positions at the lower end, where they are rejected most.
            let near = if (i / window::LANES).is_multiple_of(2) { law.top().wrapping_sub(1) } else { 0 };
            *draw = (if random.is_multiple_of(4) { near.wrapping_add((random >> 8) as u16 % 3) } else { (random >> 16) as u16 }).to_le_bytes();
        }
        let rows: Vec<u16> = (0..BLOCK).map(|i| (scrambled(!u64::from(seed), i) % cells) as u16).collect();
        agree(&law, &keystream, &rows, |reports, refine| law.oracle(&keystream, &rows, reports, refine));
    }

    #[test]
    fn blocks_of_flips_are_what_is_drawn_one_by_one(kept in 0.0f64..=1.0, seed: u32) {
        let law = Flip::new(Probability::from_f64(kept, Rounding::Down).unwrap());
        let draw = |i| scrambled(seed.into(), i) as u16;
        let keystream: Vec<u8> = (0..BLOCK / FLIPS).flat_map(|i| draw(i).to_le_bytes()).collect();
        let rows: Vec<u16> = (0..BLOCK).map(|i| draw(i + BLOCK) & 1).collect();
        agree(&law, &keystream, &rows, |reports, refine| law.oracle(&keystream, &rows, reports, refine));
    }

    #[test]
    fn blocks_of_matrices_are_what_is_drawn_one_by_one(
        rows in 1usize..40, columns in prop_oneof![1usize..40, 1usize..300], seed: u32,
    ) {
        let cell = |i: usize| u128::from(scrambled(seed.into(), i));
        let weights: Vec<u128> = (0..rows).flat_map(|row| {
            let mut own: Vec<u128> = (0..columns).map(|column| cell(row * columns + column) << 64 >> 42).collect();
            own[0] = 0;
            own[0] = (1 << 64) - own.iter().sum::<u128>();
            own
        }).collect();
        match matrix::AnyMatrix::new(&weights, columns) {
            matrix::AnyMatrix::Coarse(law) => matrix_agrees(&law, seed.into()),
            matrix::AnyMatrix::Fine(law) => matrix_agrees(&law, seed.into()),
        }
    }
}
