//! Matrices: every path against the scalar one, the law, its exact ε, and what is refused.

mod common;

use bitldp_core::{CHUNK, Channel, Error, Grid, GridRounding, Input, Isa, Matrix, Output, pack};
use common::*;
use proptest::prelude::*;

const UNIT: u128 = 1 << 64;

/// A table of rows that fall off from the diagonal, some entries 0.
fn table(inputs: usize, outputs: usize, zeros: bool) -> Vec<f64> {
    let weight = |i: usize, j: usize| {
        let distance = (i as f64 / inputs as f64 - j as f64 / outputs as f64).abs();
        if zeros && scrambled(i * outputs + j).is_multiple_of(3) && j > 0 {
            0.0
        } else {
            (-4.0 * distance).exp()
        }
    };
    let rows = (0..inputs).flat_map(|i| {
        let row: Vec<f64> = (0..outputs).map(|j| weight(i, j)).collect();
        let sum: f64 = row.iter().sum();
        row.into_iter().map(move |p| p / sum)
    });
    rows.collect()
}

fn matrix(inputs: usize, outputs: usize) -> Categorical {
    Categorical::Matrix(Matrix::new(inputs, outputs, &table(inputs, outputs, false)).unwrap())
}

fn rows(count: usize, inputs: usize) -> Vec<u32> {
    (0..count).map(|i| ((u64::from(scrambled(i)) * inputs as u64) >> 32) as u32).collect()
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| scrambled(i) as f32 / u32::MAX as f32 * 2.4 - 1.2).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_instruction_set_draws_what_the_oracle_draws(
        (inputs, outputs) in prop_oneof![
            (1usize..40, 1usize..40),
            (1usize..20, 1usize..600),
            Just((32, 32)), Just((33, 32)), Just((32, 33)), Just((2, 65_536)), Just((300, 2)),
        ],
        zeros: bool,
        count in prop_oneof![0usize..70, 200usize..800],
        seed: u8,
    ) {
        let channel = Categorical::Matrix(Matrix::new(inputs, outputs, &table(inputs, outputs, zeros)).unwrap());
        let x = rows(count, inputs);
        let expected = channel.codes(ORACLE, None, Input::U32(&x), &key(seed));
        prop_assert!(expected.iter().all(|&report| (report as usize) < outputs));
        for &isa in Isa::available() {
            let call = Way { isa, ..ORACLE };
            prop_assert_eq!(&channel.codes(call, None, Input::U32(&x), &key(seed)), &expected, "{}", isa);
        }
    }

    #[test]
    fn dithered_numbers_take_the_same_rows_everywhere(
        inputs in prop_oneof![2usize..40, Just(256)],
        count in 0usize..800,
        clip: bool,
        seed: u8,
    ) {
        let channel = matrix(inputs, 8);
        let grid = Grid::new(inputs as u32, -1.3, 1.3, GridRounding::Dither, clip).unwrap();
        let single = numbers(count);
        let double: Vec<f64> = single.iter().map(|&x| f64::from(x)).collect();
        for input in [Input::F32(&single), Input::F64(&double)] {
            let expected = channel.codes(ORACLE, Some(&grid), input, &key(seed));
            for &isa in Isa::available() {
                prop_assert_eq!(&channel.codes(Way { isa, ..ORACLE }, Some(&grid), input, &key(seed)), &expected);
            }
        }
    }
}

#[test]
fn threads_and_chunks_change_nothing() {
    let grid = Grid::new(200, -1.0, 1.0, GridRounding::Dither, true).unwrap();
    for outputs in [8, 200] {
        let channel = matrix(200, outputs);
        let x = numbers(3 * CHUNK + 77);
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
    let channel = matrix(30, 30);
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
        assert_eq!(packed, pack(&expected, 5).unwrap());
    }
}

/// Around the numbers of letters that vector units read at once, and the most that they read whole.
#[test]
fn letters_of_single_precision_are_the_nearest_whatever_their_number() {
    for outputs in [1, 2, 3, 31, 32, 33, 255, 256, 257, 1000] {
        let channel = matrix(5, outputs);
        let letters: Vec<f64> = (0..outputs).map(|report| (report as f64 - 7.0) / 3.0).collect();
        for count in [0, 1, 63, 64, 65, 1000] {
            let x = rows(count, 5);
            let expected = channel.codes(ORACLE, None, Input::U32(&x), &key(2));
            for &isa in Isa::available() {
                let mut single = vec![f32::NAN; count];
                let (call, output) = (Way { isa, ..ORACLE }, Output::F32(&mut single));
                channel.randomize(call, None, Input::U32(&x), Some(&letters), output, &key(2)).unwrap();
                let result = single.iter().zip(&expected);
                assert!(result.into_iter().all(|(&value, &report)| value == letters[report as usize] as f32));
            }
        }
    }
}

/// n = 1,000,000 samples each, alpha = 1e-6, fixed key.
#[test]
fn reports_follow_the_law() {
    for (inputs, outputs) in [(8, 8), (5, 3), (256, 256), (3, 1000)] {
        let law = Matrix::new(inputs, outputs, &table(inputs, outputs, inputs == 5)).unwrap();
        let p = law.probabilities();
        let channel = Categorical::Matrix(law);
        for x in [0, inputs / 2, inputs - 1] {
            let call = Way { isa: Isa::available()[0], first_chunk: (x as u64) << 20, threads: None };
            let reports = channel.codes(call, None, Input::U32(&vec![x as u32; 1_000_000]), &key(3));
            let (statistic, degrees) = chi_square(&reports, &p[x * outputs..][..outputs]);
            assert!(statistic < chi_square_limit(degrees), "{inputs} by {outputs}, x = {x}: {statistic}");
        }
    }
}

/// n = 1,000,000 samples, alpha = 1e-6, fixed key: between two points the rows mix by the distance.
#[test]
fn dither_mixes_the_two_rows_around_a_number() {
    let call = Way { isa: Isa::available()[0], first_chunk: 0, threads: None };
    let law = Matrix::new(9, 6, &table(9, 6, false)).unwrap();
    let p = law.probabilities();
    let channel = Categorical::Matrix(law);
    let grid = Grid::new(9, -1.0, 1.0, GridRounding::Dither, true).unwrap();
    for (x, row, up) in [(-0.7f32, 1, 0.2), (0.0, 4, 0.0), (0.6875, 6, 0.75), (5.0, 7, 1.0)] {
        let reports = channel.codes(call, Some(&grid), Input::F32(&vec![x; 1_000_000]), &key(40));
        let mixed: Vec<f64> =
            (0..6).map(|j| (1.0 - up) * p[row * 6 + j] + up * p[(row + 1) * 6 + j]).collect();
        let (statistic, degrees) = chi_square(&reports, &mixed);
        assert!(statistic < chi_square_limit(degrees), "x = {x}: {statistic}");
    }
}

#[test]
fn rows_are_integers_that_sum_to_one() {
    for (inputs, outputs, zeros) in [(1, 1, false), (3, 7, true), (40, 1000, true), (300, 300, false)] {
        let p = table(inputs, outputs, zeros);
        let law = Matrix::new(inputs, outputs, &p).unwrap();
        for (row, weights) in p.chunks(outputs).zip(law.weights().chunks(outputs)) {
            assert_eq!(weights.iter().sum::<u128>(), UNIT);
            for (p, &weight) in row.iter().zip(weights) {
                assert_eq!(*p == 0.0, weight == 0);
                assert!((p - weight as f64 / UNIT as f64).abs() < 1e-9);
            }
        }
        let again = Matrix::from_weights(inputs, outputs, law.weights().to_vec()).unwrap();
        assert_eq!(again.epsilon(), law.epsilon());
    }
    // A probability below 2^-64 is not lost: losing it would make a report impossible that another input gives.
    let tiny = Matrix::new(1, 2, &[1e-30, 1.0]).unwrap();
    assert_eq!(tiny.weights(), [1, UNIT - 1]);
}

#[test]
fn the_exact_epsilon_is_that_of_all_pairs() {
    for inputs in 1..=12 {
        for outputs in 1..=12 {
            for zeros in [false, true] {
                let law = Matrix::new(inputs, outputs, &table(inputs, outputs, zeros)).unwrap();
                let p = law.probabilities();
                let rows: Vec<Vec<f64>> = p.chunks(outputs).map(<[f64]>::to_vec).collect();
                let expected = epsilon_by_enumeration(&rows);
                assert!(law.epsilon() == expected || (law.epsilon() - expected).abs() <= 1e-12 * expected);
            }
        }
    }
    assert_eq!(Matrix::new(2, 2, &[1.0, 0.0, 0.5, 0.5]).unwrap().epsilon(), f64::INFINITY);
    // A report that nobody gives tells nothing.
    assert_eq!(Matrix::new(2, 2, &[1.0, 0.0, 1.0, 0.0]).unwrap().epsilon(), 0.0);
}

#[test]
fn small_tables_are_read_whole() {
    for (inputs, outputs, whole) in [(1, 1, true), (32, 32, true), (33, 2, false), (2, 33, false)] {
        assert_eq!(
            Matrix::new(inputs, outputs, &table(inputs, outputs, false)).unwrap().is_constant_time(),
            whole
        );
    }
}

#[test]
fn certain_reports_are_certain() {
    for outputs in [4, 100] {
        let mut weights = vec![0; outputs * outputs];
        (0..outputs).for_each(|i| weights[i * outputs + (i + 1) % outputs] = UNIT);
        let channel = Categorical::Matrix(Matrix::from_weights(outputs, outputs, weights).unwrap());
        let x = rows(100_000, outputs);
        for &isa in Isa::available() {
            let reports = channel.codes(Way { isa, ..ORACLE }, None, Input::U32(&x), &key(5));
            assert!(reports.iter().zip(&x).all(|(&report, &x)| report == (x + 1) % outputs as u32));
        }
    }
}

/// Drawn with 16 bits, with 32 bits from a table that is read whole, and with 32 bits from a wide one.
#[test]
fn golden_reports() {
    for (inputs, outputs, golden) in [(100, 50, GOLDEN_COARSE), (10, 5, GOLDEN_WHOLE), (10, 300, GOLDEN_FINE)]
    {
        // Integers only: the same table on every platform. One report is preferred, ten to one.
        let share = UNIT / (outputs as u128 + 9);
        let rest = UNIT - (outputs as u128 - 1) * share;
        let weight = |i: usize, j: usize| if i * outputs / inputs == j { rest } else { share };
        let weights = (0..inputs).flat_map(|i| (0..outputs).map(move |j| weight(i, j))).collect();
        let channel = Categorical::Matrix(Matrix::from_weights(inputs, outputs, weights).unwrap());
        let grid = Grid::new(inputs as u32, -1.0, 1.0, GridRounding::Dither, true).unwrap();
        let x: Vec<f32> = (0..16).map(|i| i as f32 / 8.0 - 1.0).collect();
        assert_eq!(channel.codes(ORACLE, Some(&grid), Input::F32(&x), &key(6)), golden);
    }
}

const GOLDEN_COARSE: [u32; 16] = [4, 49, 37, 9, 27, 34, 34, 13, 48, 28, 31, 12, 49, 31, 20, 33];
const GOLDEN_WHOLE: [u32; 16] = [4, 0, 3, 1, 0, 4, 1, 1, 2, 2, 2, 3, 3, 3, 4, 2];
const GOLDEN_FINE: [u32; 16] = [259, 230, 219, 34, 277, 295, 105, 234, 65, 18, 22, 275, 150, 149, 132, 250];

#[test]
fn tables_that_are_none_are_refused() {
    let new = |inputs, outputs, p: &[f64]| Matrix::new(inputs, outputs, p).err().unwrap();
    assert!(matches!(new(0, 2, &[]), Error::Shape { name: "probabilities", .. }));
    assert!(matches!(new(1, 65_537, &[]), Error::Shape { .. }));
    assert!(matches!(new(2, 2, &[1.0, 0.0, 1.0]), Error::Shape { .. }));
    for wrong in [f64::NAN, -0.5, 1.5, f64::INFINITY] {
        assert!(matches!(new(1, 2, &[0.5, wrong]), Error::Value { name: "probabilities", index: 1, .. }));
    }
    for wrong in [0.4, 0.5 + 1e-8, 0.5 - 1e-8] {
        assert!(matches!(new(1, 2, &[0.5, wrong]), Error::Argument { name: "probabilities", .. }));
    }
    assert!(Matrix::new(1, 2, &[0.5, 0.5 + 1e-10]).is_ok());
    let weights = |weights: &[u128]| Matrix::from_weights(1, 2, weights.to_vec()).err();
    assert!(matches!(weights(&[UNIT, 1]), Some(Error::Argument { name: "weights", .. })));
    assert!(matches!(weights(&[u128::MAX, UNIT + 1]), Some(Error::Argument { name: "weights", .. })));
    assert!(weights(&[1, UNIT - 1]).is_none());
}
