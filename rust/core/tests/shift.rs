//! Shifts: every path against the scalar one, the law, its exact ε and δ, and what is refused.

mod common;

use bitldp_core::{CHUNK, Channel, Error, Grid, GridRounding, Input, Isa, Output, Shift, pack};
use common::*;
use proptest::prelude::*;

const UNIT: u128 = 1 << 64;

/// Noise from `-reach` to `reach` that falls off, with zeros where asked; the middle makes up for the sum.
fn noise(reach: usize, zeros: bool) -> Vec<u128> {
    let mut weights: Vec<u128> = (0..=2 * reach)
        .map(|j| {
            let keep = !(zeros && scrambled(j).is_multiple_of(3));
            if keep { UNIT / (4 * reach as u128 + 4) / (1 + j.abs_diff(reach) as u128 / 3) } else { 0 }
        })
        .collect();
    weights[reach] = 0;
    weights[reach] = UNIT - weights.iter().sum::<u128>();
    weights
}

fn shift(inputs: usize, outputs: usize, reach: usize, offset: i32) -> Categorical {
    Categorical::Shift(Shift::new(inputs, outputs, noise(reach, false), offset).unwrap())
}

fn rows(count: usize, inputs: usize) -> Vec<u32> {
    (0..count).map(|i| ((u64::from(scrambled(i)) * inputs as u64) >> 32) as u32).collect()
}

/// The law by its definition, in integers.
fn law(inputs: usize, outputs: usize, weights: &[u128], offset: i64) -> Vec<Vec<u128>> {
    let reach = weights.len() as i64 / 2;
    (0..inputs as i64)
        .map(|x| {
            let mut row = vec![0; outputs];
            for (k, weight) in (-reach..).zip(weights) {
                row[(x + k + offset).clamp(0, outputs as i64 - 1) as usize] += weight;
            }
            row
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_instruction_set_draws_what_the_oracle_draws(
        inputs in 1usize..300,
        outputs in prop_oneof![1usize..400, Just(65_536)],
        // 16 and 32 bits a draw, tables that are read whole and such that are not.
        reach in prop_oneof![0usize..20, 100usize..130, 300usize..400],
        offset in -300i32..300,
        count in prop_oneof![0usize..70, 200usize..800],
        seed: u8,
    ) {
        let channel = shift(inputs, outputs, reach, offset);
        let x = rows(count, inputs);
        let expected = channel.codes(ORACLE, None, Input::U32(&x), &key(seed));
        prop_assert!(expected.iter().all(|&report| (report as usize) < outputs));
        for &isa in Isa::available() {
            let call = Way { isa, ..ORACLE };
            prop_assert_eq!(&channel.codes(call, None, Input::U32(&x), &key(seed)), &expected, "{}", isa);
        }
    }

    #[test]
    fn epsilon_and_delta_are_those_of_all_pairs(
        inputs in 1usize..8,
        outputs in 1usize..12,
        reach in 0usize..9,
        offset in -12i32..12,
        zeros: bool,
        epsilon in prop_oneof![Just(0.0), 0.0f64..4.0],
    ) {
        let weights = noise(reach, zeros);
        let channel = Shift::new(inputs, outputs, weights.clone(), offset).unwrap();
        let law = law(inputs, outputs, &weights, i64::from(offset));
        let rows: Vec<Vec<f64>> =
            law.iter().map(|row| row.iter().map(|&weight| weight as f64 / UNIT as f64).collect()).collect();
        prop_assert_eq!(channel.probabilities().unwrap(), rows.concat());
        let expected = epsilon_by_enumeration(&rows);
        prop_assert!(channel.epsilon() == expected || (channel.epsilon() - expected).abs() <= 1e-12 * expected);
        let mut most = 0.0f64;
        for a in &rows {
            for b in &rows {
                most = most.max(a.iter().zip(b).map(|(p, q)| (p - epsilon.exp() * q).max(0.0)).sum());
            }
        }
        let delta = channel.delta(epsilon).unwrap();
        prop_assert!((delta - most).abs() < 1e-13, "{} is not {}", delta, most);
    }
}

#[test]
fn delta_is_rounded_up_and_ends_at_epsilon() {
    // At epsilon 0 it is the total variation distance.
    let weights = vec![UNIT / 4, UNIT / 2, UNIT / 4];
    let channel = Shift::new(2, 4, weights, 1).unwrap();
    assert_eq!(channel.delta(0.0).unwrap(), 0.5);
    assert_eq!(channel.epsilon(), f64::INFINITY);
    assert_eq!(channel.delta(f64::INFINITY).unwrap(), 0.25);
    // Two units: 2^-64 apart, and no double between.
    let channel = Shift::new(2, 2, vec![UNIT / 2 - 1, 1, UNIT / 2], 0).unwrap();
    assert_eq!(channel.delta(0.0).unwrap(), 2f64.powi(-64));
    let clamped = Shift::new(2, 2, vec![UNIT / 4, UNIT / 2, UNIT / 4], 0).unwrap();
    assert!((clamped.epsilon() - 3f64.ln()).abs() < 1e-12);
    assert!(clamped.delta(clamped.epsilon()).unwrap() < 1e-14);
    assert!(clamped.delta(clamped.epsilon() - 1e-9).unwrap() > 1e-10);
    for wrong in [f64::NAN, -1.0, f64::NEG_INFINITY] {
        assert!(matches!(clamped.delta(wrong), Err(Error::Argument { name: "epsilon", .. })));
    }
}

#[test]
fn threads_and_chunks_change_nothing() {
    let grid = Grid::new(200, -1.0, 1.0, GridRounding::Dither, true).unwrap();
    let x: Vec<f32> =
        (0..3 * CHUNK + 77).map(|i| scrambled(i) as f32 / u32::MAX as f32 * 2.4 - 1.2).collect();
    for reach in [10, 100, 1000] {
        let channel = shift(200, 400, reach, 100);
        let expected = channel.codes(ORACLE, Some(&grid), Input::F32(&x), &key(1));
        for &isa in Isa::available() {
            for threads in [None, Some(1), Some(2), Some(3), Some(7)] {
                let call = Way { isa, first_chunk: 0, threads };
                assert_eq!(channel.codes(call, Some(&grid), Input::F32(&x), &key(1)), expected);
            }
        }
        let mut pieces = Vec::new();
        for (chunk, part) in x.chunks(CHUNK).enumerate() {
            let call = Way { first_chunk: chunk as u64, ..ORACLE };
            pieces.extend(channel.codes(call, Some(&grid), Input::F32(part), &key(1)));
        }
        assert_eq!(pieces, expected);
    }
}

#[test]
fn every_output_tells_the_same() {
    let channel = shift(30, 30, 40, 0);
    let x = rows(1000, 30);
    let expected = channel.codes(ORACLE, None, Input::U32(&x), &key(2));
    let letters: Vec<f64> = (0..30).map(|report| f64::from(report) / 3.0).collect();
    for &isa in Isa::available() {
        let call = Way { isa, ..ORACLE };
        let go = |output: Output<'_>| {
            channel.randomize(call, None, Input::U32(&x), Some(&letters), output, &key(2)).unwrap()
        };
        let (mut bytes, mut double, mut packed) = (vec![0u8; 1000], vec![0f64; 1000], vec![0u8; 625]);
        go(Output::U8(&mut bytes));
        go(Output::F64(&mut double));
        go(Output::Packed(&mut packed));
        assert!(bytes.iter().zip(&expected).all(|(&byte, &report)| u32::from(byte) == report));
        assert!(double.iter().zip(&expected).all(|(&value, &report)| value == letters[report as usize]));
        assert_eq!(packed, pack(&expected, channel.report_bits()).unwrap());
    }
}

/// n = 1,000,000 samples each, alpha = 1e-6, fixed key.
#[test]
fn reports_follow_the_law() {
    for (inputs, outputs, reach, offset) in [(5, 9, 3, 2), (9, 200, 100, 90), (4, 700, 500, 300)] {
        let law = Shift::new(inputs, outputs, noise(reach, false), offset).unwrap();
        let p = law.probabilities().unwrap();
        let channel = Categorical::Shift(law);
        for x in [0, inputs - 1] {
            let call = Way { isa: Isa::available()[0], first_chunk: (x as u64) << 20, threads: None };
            let reports = channel.codes(call, None, Input::U32(&vec![x as u32; 1_000_000]), &key(3));
            let (statistic, degrees) = chi_square(&reports, &p[x * outputs..][..outputs]);
            assert!(statistic < chi_square_limit(degrees), "{inputs} to {outputs}, x = {x}: {statistic}");
        }
    }
}

/// With 16 bits a draw, and with 32.
#[test]
fn golden_reports() {
    for (reach, golden) in [(100, GOLDEN_COARSE), (300, GOLDEN_FINE)] {
        // As good as uniform: the draws show.
        let mut weights = vec![UNIT / (2 * reach as u128 + 1); 2 * reach + 1];
        weights[reach] += UNIT - weights.iter().sum::<u128>();
        let channel = Categorical::Shift(Shift::new(50, 650, weights, 300).unwrap());
        assert_eq!(channel.codes(ORACLE, None, Input::U32(&rows(16, 50)), &key(6)), golden);
    }
}

const GOLDEN_COARSE: [u32; 16] =
    [204, 293, 320, 410, 292, 238, 269, 234, 393, 413, 399, 315, 346, 297, 275, 310];
const GOLDEN_FINE: [u32; 16] = [244, 259, 197, 76, 602, 512, 417, 483, 112, 46, 323, 533, 170, 440, 417, 262];

#[test]
fn shifts_that_are_none_are_refused() {
    let new = |inputs, outputs, weights: &[u128], offset| {
        Shift::new(inputs, outputs, weights.to_vec(), offset).err().unwrap()
    };
    for wrong in [0, 65_537] {
        assert!(matches!(new(wrong, 2, &[UNIT], 0), Error::Argument { name: "inputs", .. }));
        assert!(matches!(new(2, wrong, &[UNIT], 0), Error::Argument { name: "outputs", .. }));
    }
    for wrong in [i32::MIN, -(1 << 17) - 1, (1 << 17) + 1, i32::MAX] {
        assert!(matches!(new(2, 2, &[UNIT], wrong), Error::Argument { name: "offset", .. }));
    }
    assert!(matches!(new(2, 2, &[], 0), Error::Shape { name: "weights", .. }));
    assert!(matches!(new(2, 2, &[UNIT, 0], 0), Error::Shape { name: "weights", .. }));
    assert!(matches!(new(2, 2, &vec![0; 65_537], 0), Error::Shape { name: "weights", .. }));
    for wrong in [[1, UNIT, 0], [u128::MAX, 1, UNIT], [0, 0, UNIT - 1]] {
        assert!(matches!(new(2, 2, &wrong, 0), Error::Argument { name: "weights", .. }));
    }
    let channel = shift(3, 3, 1, 0);
    let mut out = [7u32; 2];
    let call = channel.randomize(ORACLE, None, Input::U32(&[0, 3]), None, Output::U32(&mut out), &key(0));
    assert!(matches!(call, Err(Error::Value { name: "x", index: 1, .. })));
    assert_eq!(out, [0; 2]);
}
