//! Windows: every path against the scalar one, the law, its exact ε, and what is refused.

mod common;

use bitldp_core::{
    CHUNK, Call, Channel, Error, Grid, GridRounding, Input, Isa, Output, Probability, Window, pack,
};
use common::*;
use proptest::prelude::*;

fn window(cells: u32, width: u32, high: f64) -> Categorical {
    Categorical::Window(Window::new(cells, width, high, None).unwrap())
}

/// A scrambled order: row `x` is a rotation of one permutation.
fn order(cells: u32) -> Vec<u16> {
    let mut base: Vec<u16> = (0..cells as u16).collect();
    base.sort_by_key(|&cell| scrambled(usize::from(cell)));
    (0..cells as usize)
        .flat_map(|x| base.iter().cycle().skip(x).take(base.len()).copied().collect::<Vec<_>>())
        .collect()
}

fn inputs(count: usize, cells: u32) -> Vec<u32> {
    (0..count).map(|i| ((u64::from(scrambled(i)) * u64::from(cells)) >> 32) as u32).collect()
}

fn every_call() -> impl Iterator<Item = Way> {
    let threads = [None, Some(1), Some(2), Some(3), Some(7)];
    Isa::available().iter().flat_map(move |&isa| threads.map(|threads| Way { isa, first_chunk: 0, threads }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_instruction_set_draws_what_the_oracle_draws(
        cells in prop_oneof![2u32..40, 2u32..=65_536, Just(65_536), 65_537u32..=u32::MAX],
        width_share in 0.0f64..1.0,
        high in prop_oneof![0.0f64..=1.0, Just(0.0), Just(1.0), Just(0.5)],
        count in prop_oneof![0usize..70, 200usize..800],
        ordered: bool,
        seed: u8,
    ) {
        let width = (1.0 + width_share * f64::from(cells - 2)) as u32;
        let order = (ordered && cells < 500).then(|| order(cells));
        let channel = Categorical::Window(Window::new(cells, width, high, order).unwrap());
        let x = inputs(count, cells);
        let expected = channel.codes(ORACLE, None, Input::U32(&x), &key(seed));
        prop_assert!(expected.iter().all(|&report| report < cells));
        for &isa in Isa::available() {
            let call = Way { isa, ..ORACLE };
            prop_assert_eq!(&channel.codes(call, None, Input::U32(&x), &key(seed)), &expected, "{}", isa);
        }
        // What was there before does not depend on what follows.
        let part = channel.codes(ORACLE, None, Input::U32(&x[..count / 2]), &key(seed));
        prop_assert_eq!(&part[..], &expected[..count / 2]);
    }
}

#[test]
fn threads_and_chunks_change_nothing() {
    for channel in [window(128, 1, 0.3), window(1000, 268, 0.73), window(70_000, 9_000, 0.4)] {
        let Categorical::Window(law) = &channel else { unreachable!() };
        let x = inputs(3 * CHUNK + 77, law.cells());
        let expected = channel.codes(ORACLE, None, Input::U32(&x), &key(1));
        for call in every_call() {
            assert_eq!(channel.codes(call, None, Input::U32(&x), &key(1)), expected);
        }
        let mut pieces = Vec::new();
        for (chunk, part) in x.chunks(CHUNK).enumerate() {
            let call = Way { first_chunk: chunk as u64, ..ORACLE };
            pieces.extend(channel.codes(call, None, Input::U32(part), &key(1)));
        }
        assert_eq!(pieces, expected);
    }
}

#[test]
fn every_input_and_output_tells_the_same() {
    let cells = 100;
    let channel = window(cells, 7, 0.5);
    let x = inputs(1000, cells);
    let expected = channel.codes(ORACLE, None, Input::U32(&x), &key(2));
    let letters: Vec<f64> = (0..cells).map(|cell| f64::from(cell) * 0.5 - 7.0).collect();
    macro_rules! input {
        ($($variant:ident as $type:ty),*) => {$(
            let same: Vec<$type> = x.iter().map(|&x| x as $type).collect();
            assert_eq!(channel.codes(ORACLE, None, Input::$variant(&same), &key(2)), expected);
        )*};
    }
    input!(U8 as u8, U16 as u16, U64 as u64, I8 as i8, I16 as i16, I32 as i32, I64 as i64);
    for call in every_call() {
        let go = |output: Output<'_>| {
            channel.randomize(call, None, Input::U32(&x), Some(&letters), output, &key(2)).unwrap()
        };
        let (mut bytes, mut words) = (vec![0u8; 1000], vec![0u16; 1000]);
        let (mut single, mut double) = (vec![0f32; 1000], vec![0f64; 1000]);
        let mut packed = vec![0xff; 1000 * 7 / 8];
        go(Output::U8(&mut bytes));
        go(Output::U16(&mut words));
        go(Output::F32(&mut single));
        go(Output::F64(&mut double));
        go(Output::Packed(&mut packed));
        for (i, &report) in expected.iter().enumerate() {
            let letter = letters[report as usize];
            assert_eq!((u32::from(bytes[i]), u32::from(words[i])), (report, report));
            assert_eq!((single[i], double[i]), (letter as f32, letter));
        }
        assert_eq!(packed, pack(&expected, 7).unwrap());
    }
}

#[test]
fn a_grid_gives_the_rows_that_it_rounds_to() {
    let channel = window(50, 3, 0.6);
    let grid = Grid::new(50, 0.0, 49.0, GridRounding::Nearest, true).unwrap();
    let rows = inputs(5000, 50);
    let expected = channel.codes(ORACLE, None, Input::U32(&rows), &key(3));
    let single: Vec<f32> = rows.iter().map(|&row| row as f32 + 0.25).collect();
    let double: Vec<f64> = rows.iter().map(|&row| f64::from(row) - 0.25).collect();
    for call in every_call() {
        assert_eq!(channel.codes(call, Some(&grid), Input::F32(&single), &key(3)), expected);
        assert_eq!(channel.codes(call, Some(&grid), Input::F64(&double), &key(3)), expected);
    }
}

/// n = 1,200,000 samples each, alpha = 1e-6, fixed key.
#[test]
fn reports_follow_the_law() {
    let n = 1_200_000;
    let ordered = Categorical::Window(Window::new(20, 6, 0.7, Some(order(20))).unwrap());
    let cases = [
        window(128, 1, 0.3),
        window(1000, 268, 0.73),
        window(3, 2, 0.9),
        window(65_537, 20_000, 0.5),
        ordered,
    ];
    for channel in cases {
        let Categorical::Window(law) = &channel else { unreachable!() };
        for x in [0, law.cells() / 3, law.cells() - 1] {
            let call = Way { isa: Isa::available()[0], first_chunk: u64::from(x) << 20, threads: None };
            let reports = channel.codes(call, None, Input::U32(&vec![x; n]), &key(4));
            let inside = law.high().to_f64() / f64::from(law.width());
            let outside = law.high().complement().to_f64() / f64::from(law.cells() - law.width());
            let window: Vec<u32> = match law.order() {
                Some(order) => order[x as usize * 20..][..6].iter().map(|&cell| u32::from(cell)).collect(),
                None => (law.start(x).unwrap()..).take(law.width() as usize).collect(),
            };
            let mut p = vec![outside; law.cells() as usize];
            window.iter().for_each(|&cell| p[cell as usize] = inside);
            let (statistic, degrees) = chi_square(&reports, &p);
            assert!(
                statistic < chi_square_limit(degrees),
                "x = {x}: {statistic} with {degrees} degrees of freedom"
            );
        }
    }
}

#[test]
fn the_exact_epsilon_is_that_of_all_pairs() {
    for cells in 2..=12 {
        for width in 1..cells {
            for high in [0.9, 0.5, 0.1, f64::from(width) / f64::from(cells)] {
                for order in [None, Some(order(cells))] {
                    let law = Window::new(cells, width, high, order).unwrap();
                    let p = law.probabilities().unwrap();
                    let rows: Vec<Vec<f64>> = p.chunks(cells as usize).map(<[f64]>::to_vec).collect();
                    for row in &rows {
                        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                    }
                    let expected = epsilon_by_enumeration(&rows);
                    assert!(
                        (law.epsilon() - expected).abs() <= 1e-12 * (1.0 + expected),
                        "N={cells} m={width}"
                    );
                }
            }
        }
    }
}

#[test]
fn epsilon_at_its_extremes() {
    let epsilon = |high| Window::new(10, 3, high, None).unwrap().epsilon();
    assert_eq!((epsilon(0.0), epsilon(1.0)), (f64::INFINITY, f64::INFINITY));
    assert_eq!(Window::new(10, 5, 0.5, None).unwrap().epsilon(), 0.0);
    // Rounding goes toward the uniform law: 3/10 is no multiple of 2^-64, and its neighbour leaks next to nothing.
    assert!(epsilon(0.3) < 1e-15);
    let alike = [2, 0, 1, 3, 0, 2, 3, 1, 2, 0, 3, 1, 0, 2, 1, 3].to_vec();
    assert_eq!(Window::new(4, 2, 0.9, Some(alike)).unwrap().epsilon(), 0.0);
}

#[test]
fn certain_reports_are_certain() {
    for &isa in Isa::available() {
        let call = Way { isa, ..ORACLE };
        for cells in [10, 70_000] {
            let x = inputs(100_000, cells);
            assert_eq!(window(cells, 1, 1.0).codes(call, None, Input::U32(&x), &key(5)), x);
            let never = window(cells, 1, 0.0).codes(call, None, Input::U32(&x), &key(5));
            assert!(never.iter().zip(&x).all(|(report, x)| report != x));
        }
    }
}

#[test]
fn windows_are_the_nearest_cells_shifted_inside() {
    for cells in 2..=12u32 {
        for width in 1..cells {
            let law = Window::new(cells, width, 0.9, None).unwrap();
            for x in 0..cells {
                let mut nearest: Vec<u32> = (0..cells).collect();
                nearest.sort_by_key(|&cell| (cell.abs_diff(x), cell));
                nearest.truncate(width as usize);
                nearest.sort_unstable();
                assert_eq!(nearest[0], law.start(x).unwrap(), "N={cells} m={width} x={x}");
            }
        }
    }
}

#[test]
fn golden_reports() {
    let x: Vec<u16> = (0..16).map(|i| i * 60).collect();
    let narrow = window(1000, 268, 0.73).codes(ORACLE, None, Input::U16(&x), &key(6));
    let wide = window(100_000, 268, 0.73).codes(ORACLE, None, Input::U16(&x), &key(6));
    assert_eq!(narrow, GOLDEN_NARROW);
    assert_eq!(wide, GOLDEN_WIDE);
}

const GOLDEN_NARROW: [u32; 16] =
    [112, 261, 162, 373, 124, 373, 892, 918, 365, 672, 537, 668, 733, 889, 713, 510];
const GOLDEN_WIDE: [u32; 16] =
    [85119, 222, 73138, 44266, 344, 352, 36403, 522, 490, 613, 515, 622, 642, 887, 783, 868];

#[test]
fn what_does_not_fit_leaves_the_output_and_refused_values_leave_zeros() {
    let law = Window::new(300, 3, 0.5, None).unwrap();
    let grid = |points| Grid::new(points, 0.0, 1.0, GridRounding::Dither, false).unwrap();
    let letters = [0.0; 300];
    let mut out = [77u16; 4];
    let mut refused = |grid: Option<&Grid>, input: Input<'_>, first_chunk, threads| {
        let result = law.randomize(Call {
            first_chunk,
            threads,
            ..Call::new(grid, input, Output::U16(&mut out), &key(7))
        });
        left_behind(&mut out, 77, result)
    };
    let x = [0u16, 1, 2, 299];
    assert!(matches!(
        refused(None, Input::U16(&[0, 1, 300, 2]), 0, None),
        Error::Value { name: "x", index: 2, .. }
    ));
    assert!(matches!(
        refused(None, Input::I64(&[0, -1, 0, 2]), 0, None),
        Error::Value { name: "x", index: 1, .. }
    ));
    assert!(matches!(refused(None, Input::F32(&[0.0; 4]), 0, None), Error::Argument { name: "x", .. }));
    assert!(matches!(refused(Some(&grid(300)), Input::U16(&x), 0, None), Error::Argument { name: "x", .. }));
    assert!(matches!(
        refused(Some(&grid(299)), Input::F32(&[0.0; 4]), 0, None),
        Error::Argument { name: "grid", .. }
    ));
    let nan = refused(Some(&grid(300)), Input::F64(&[0.0, 0.5, 1.0, f64::NAN]), 0, None);
    assert!(matches!(nan, Error::Value { name: "x", index: 3, .. }));
    assert!(matches!(refused(None, Input::U16(&x[..3]), 0, None), Error::Output { .. }));
    assert!(matches!(
        refused(None, Input::U16(&x), 1 << 56, None),
        Error::Argument { name: "first_chunk", .. }
    ));
    assert!(matches!(refused(None, Input::U16(&x), 0, Some(0)), Error::Argument { name: "threads", .. }));
    let other = |letters: Option<&[f64]>, output: Output<'_>| {
        law.randomize(Call { letters, ..Call::new(None, Input::U16(&x), output, &key(7)) }).unwrap_err()
    };
    assert!(matches!(other(None, Output::U8(&mut [0; 4])), Error::Output { .. }));
    assert!(matches!(other(None, Output::F32(&mut [0.0; 4])), Error::Argument { name: "output", .. }));
    assert!(matches!(other(None, Output::Bits(&mut [0; 36])), Error::Argument { name: "output", .. }));
    assert!(matches!(
        other(Some(&letters[1..]), Output::F32(&mut [0.0; 4])),
        Error::Shape { name: "letters", .. }
    ));

    let new = |cells, width, high, order| Window::new(cells, width, high, order).err().unwrap();
    assert!(matches!(new(1, 1, 0.5, None), Error::Argument { name: "cells", .. }));
    assert!(matches!(new(5, 0, 0.5, None), Error::Argument { name: "width", .. }));
    assert!(matches!(new(5, 5, 0.5, None), Error::Argument { name: "width", .. }));
    for high in [f64::NAN, -0.1, 1.1] {
        assert!(matches!(new(5, 2, high, None), Error::Argument { name: "high", .. }));
    }
    assert!(matches!(new(2, 1, 0.5, Some(vec![0; 3])), Error::Shape { name: "order", .. }));
    for (entries, index) in [([0, 0, 0, 1], 1), ([0, 1, 1, 2], 3), ([0, 1, 1, 1], 3)] {
        assert!(
            matches!(new(2, 1, 0.5, Some(entries.to_vec())), Error::Value { index: at, .. } if at == index)
        );
    }
    assert!(Window::from_probability(2, 1, Probability::HALF, None).unwrap().start(2).is_err());
}

#[test]
fn nothing_in_nothing_out() {
    let law = Window::new(300, 3, 0.5, None).unwrap();
    law.randomize(Call::new(None, Input::I64(&[]), Output::U16(&mut []), &key(8))).unwrap();
}
