//! Mixtures: the window where the matrix answers 0 and its answer elsewhere, on every path and in every form; its exact ε, and
//! what is refused.

mod common;

use bitldp_core::{
    CHUNK, Call, Channel, Error, Grid, GridRounding, Input, Isa, Matrix, Mixture, Output, Window, pack,
};
use common::*;
use proptest::prelude::*;

/// The coin says "window" with probability `share`; the two other answers are likelier for one input each.
fn coin(share: f64) -> Matrix {
    let rest = 1.0 - share;
    Matrix::new(2, 3, &[share, rest * 0.7, rest * 0.3, share, rest * 0.3, rest * 0.7]).unwrap()
}

fn grid(points: u32, clip: bool) -> Grid {
    Grid::new(points, -1.0, 1.0, GridRounding::Dither, clip).unwrap()
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| scrambled(i) as f32 / u32::MAX as f32 * 2.4 - 1.2).collect()
}

/// The reports of the two channels by themselves, put together by the definition.
fn by_definition(window: Window, matrix: Matrix, x: Input<'_>, first_chunk: u64) -> Vec<u32> {
    let cells = window.cells();
    let (coarse, fine) = (grid(cells, true), grid(matrix.inputs() as u32, true));
    let call = Way { first_chunk, ..ORACLE };
    let cell = Categorical::Window(window).codes(call, Some(&coarse), x, &key(1));
    let answer = Categorical::Matrix(matrix).codes(call, Some(&fine), x, &key(2));
    cell.into_iter()
        .zip(answer)
        .map(|(cell, answer)| if answer == 0 { cell } else { cells + answer - 1 })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_path_is_the_window_where_the_matrix_answers_0(
        (cells, width) in prop_oneof![Just((2u32, 1u32)), Just((253, 68)), Just((1000, 7)), Just((65_534, 9))],
        share in prop_oneof![Just(0.0), Just(1.0), 0.1f64..0.9],
        count in prop_oneof![0usize..70, Just(CHUNK), CHUNK + 1..2 * CHUNK + 100],
        first_chunk in 0u64..3,
    ) {
        let (window, matrix) = (|| Window::new(cells, width, 0.6, None).unwrap(), || coin(share));
        let single = numbers(count);
        let double: Vec<f64> = single.iter().map(|&x| f64::from(x)).collect();
        let mixture = Mixture::new(window(), matrix()).unwrap();
        let grids = [&grid(cells, true), &grid(2, true)];
        for input in [Input::F32(&single), Input::F64(&double)] {
            let expected = by_definition(window(), matrix(), input, first_chunk);
            for &isa in Isa::available() {
                for threads in [None, Some(1), Some(3)] {
                    let mut out = vec![u32::MAX; count];
                    let (keys, output) = ([&key(1), &key(2)], Output::U32(&mut out));
                    mixture.randomize_on(isa, Call { first_chunk, threads, ..Call::new(grids, input, output, keys) }).unwrap();
                    prop_assert_eq!(&out, &expected, "{}", isa);
                }
            }
        }
    }
}

#[test]
fn every_output_tells_the_same() {
    // 33 letters and 301: read whole, and one by one.
    for cells in [31, 299] {
        let mixture = Mixture::new(Window::new(cells, 5, 0.6, None).unwrap(), coin(0.5)).unwrap();
        let x = numbers(1000);
        let (grids, keys) = ([&grid(cells, true), &grid(2, true)], [&key(1), &key(2)]);
        let letters: Vec<f64> = (0..mixture.outputs()).map(|report| f64::from(report) / 3.0).collect();
        let expected = by_definition(Window::new(cells, 5, 0.6, None).unwrap(), coin(0.5), Input::F32(&x), 0);
        let bits = mixture.report_bits();
        for &isa in Isa::available() {
            let go = |output: Output<'_>| {
                mixture
                    .randomize_on(
                        isa,
                        Call { letters: Some(&letters), ..Call::new(grids, Input::F32(&x), output, keys) },
                    )
                    .unwrap();
            };
            let (mut single, mut double) = (vec![0f32; 1000], vec![0f64; 1000]);
            let mut packed = vec![0u8; (1000 * bits as usize).div_ceil(8)];
            go(Output::F32(&mut single));
            go(Output::F64(&mut double));
            go(Output::Packed(&mut packed));
            for ((&report, single), double) in expected.iter().zip(single).zip(double) {
                assert_eq!(single, letters[report as usize] as f32, "{isa}");
                assert_eq!(double, letters[report as usize], "{isa}");
            }
            assert_eq!(packed, pack(&expected, bits).unwrap(), "{isa}");
        }
    }
}

#[test]
fn epsilon_is_that_of_the_worse_part_that_ever_answers() {
    for (high, share) in [(0.6, 0.4), (0.95, 0.4), (0.95, 0.0), (0.6, 1.0)] {
        let (window, matrix) = (Window::new(9, 4, high, None).unwrap(), coin(share));
        let (cells, answers) = (window.probabilities().unwrap(), matrix.probabilities());
        let mixture = Mixture::new(window, matrix).unwrap();
        assert_eq!(mixture.outputs(), 11);
        // Every pair of an input of the window and one of the matrix: neither knows of the other.
        let rows: Vec<Vec<f64>> = (0..9)
            .flat_map(|x| (0..2).map(move |y| (x, y)))
            .map(|(x, y)| {
                let cells = cells[9 * x..9 * x + 9].iter().map(|p| p * answers[3 * y]);
                cells.chain(answers[3 * y + 1..3 * y + 3].iter().copied()).collect()
            })
            .collect();
        let result = epsilon_by_enumeration(&rows);
        assert!(
            (mixture.epsilon() - result).abs() < 1e-12,
            "{high}, {share}: {} {result}",
            mixture.epsilon()
        );
    }
}

#[test]
fn what_does_not_fit_leaves_the_output_and_refused_values_leave_zeros() {
    let window = || Window::new(9, 4, 0.6, None).unwrap();
    let biased = Matrix::new(2, 2, &[0.5, 0.5, 0.4, 0.6]).unwrap();
    assert!(matches!(Mixture::new(window(), biased), Err(Error::Argument { name: "matrix", .. })));
    let lone = Matrix::new(2, 1, &[1.0, 1.0]).unwrap();
    assert!(matches!(Mixture::new(window(), lone), Err(Error::Argument { name: "matrix", .. })));
    let mute = Mixture::new(window().muted(), coin(0.5));
    assert!(matches!(mute, Err(Error::Argument { name: "window", .. })));
    for cells in [65_535, 65_537] {
        let large = Window::new(cells, 4, 0.6, None).unwrap();
        assert!(matches!(Mixture::new(large, coin(0.5)), Err(Error::Argument { name: "window", .. })));
    }
    let mixture = Mixture::new(window(), coin(0.5)).unwrap();
    let (nine, two) = (grid(9, true), grid(2, true));
    let keys = [&key(1), &key(2)];
    let refused = |grids: [&Grid; 2], x: Input<'_>, letters: Option<&[f64]>, length: usize| {
        let mut out = vec![77u8; length];
        let answer = mixture.randomize(Call { letters, ..Call::new(grids, x, Output::U8(&mut out), keys) });
        left_behind(&mut out, 77, answer)
    };
    let good = [0f32, 0.5, -2.0];
    for grids in [[&two, &nine], [&nine, &nine], [&two, &two]] {
        let error = refused(grids, Input::F32(&good), None, 3);
        assert!(matches!(error, Error::Argument { name: "grids[0]" | "grids[1]", .. }), "{error}");
    }
    assert!(matches!(refused([&nine, &two], Input::U8(&[1]), None, 1), Error::Argument { name: "x", .. }));
    assert!(matches!(refused([&nine, &two], Input::F32(&good), Some(&[0.0; 10]), 3), Error::Shape { .. }));
    assert!(matches!(refused([&nine, &two], Input::F32(&good), None, 2), Error::Output { .. }));
    let mut out = [77u8; 3];
    let equal = [&key(1), &key(1)];
    let answer = mixture.randomize(Call::new([&nine, &two], Input::F32(&good), Output::U8(&mut out), equal));
    assert!(matches!(answer, Err(Error::Argument { name: "keys", .. })) && out == [77; 3]);
    let (closed, wide) = (grid(2, false), Grid::new(9, -9.0, 9.0, GridRounding::Dither, false).unwrap());
    for (grids, x, index) in [
        ([&nine, &two], [0f32, f32::NAN, 0.0], 1),
        ([&nine, &closed], [0f32, 0.0, 2.0], 2),
        ([&wide, &two], [9.5f32, 0.0, 0.0], 0),
        ([&wide, &closed], [0f32, 2.0, 0.0], 1),
    ] {
        let error = refused(grids, Input::F32(&x), None, 3);
        assert!(matches!(error, Error::Value { index: result, .. } if result == index), "{error}");
    }
}
