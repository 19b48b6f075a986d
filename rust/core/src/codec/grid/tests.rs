//! Grids: where numbers go, for which draws, on every instruction set.

use super::*;
use crate::error::Error;
use crate::random::Key;
use proptest::prelude::*;

fn grid(points: u32, low: f64, high: f64, rounding: GridRounding) -> Grid {
    Grid::new(points, low, high, rounding, true).unwrap()
}

/// The indices of values whose draws all begin with the same byte.
fn place<F: Coordinate>(grid: &Grid, values: &[F], draw: u8) -> Vec<u32> {
    let key = Key::from_bytes([4; 32]);
    let dither = vec![draw; values.len()];
    let mut indices = vec![0u32; values.len()];
    // One by one: no value has others beside it.
    let mut refine = Refine::new(Isa::Scalar, &key, 2);
    for (value, index) in values.chunks(1).zip(indices.chunks_mut(1)) {
        grid.place(Isa::Scalar, value, &dither[..1], index, &mut refine);
    }
    for &isa in Isa::available() {
        let mut again = vec![0u32; values.len()];
        grid.place(isa, values, &dither, &mut again, &mut Refine::new(isa, &key, 2));
        assert_eq!(again, indices, "{isa}");
    }
    indices
}

#[test]
fn points_go_to_themselves_whatever_the_draw() {
    for points in [2, 3, 5, 17, 257] {
        let grid = grid(points, -1.0, 1.0, GridRounding::Dither);
        let last = points - 1;
        // Exactly representable points: -1 + 2 i / (points - 1) for powers of two.
        if last.is_power_of_two() {
            let all: Vec<u32> = (0..points).collect();
            for draw in [0, u8::MAX] {
                assert_eq!(place(&grid, &grid.values().unwrap(), draw), all);
                let single: Vec<f32> = grid.values().unwrap().iter().map(|&x| x as f32).collect();
                assert_eq!(place(&grid, &single, draw), all);
            }
        }
    }
}

#[test]
fn the_fraction_is_compared_with_the_draw() {
    let grid = grid(5, 0.0, 4.0, GridRounding::Dither);
    // 1.25 is a quarter past point 1: up for the lower quarter of all draws.
    for (draw, index) in [(0, 2), (63, 2), (64, 1), (u8::MAX, 1)] {
        assert_eq!(place(&grid, &[1.25f32], draw), [index]);
        assert_eq!(place(&grid, &[1.25f64], draw), [index]);
    }
}

#[test]
fn equal_bytes_are_decided_by_the_bits_behind_them() {
    // n = 100,000 draws that begin like the fraction, and go up for a quarter of what follows; alpha = 1e-6 is 4.9
    // standard errors; fixed key.
    let grid = grid(5, 0.0, 4.0, GridRounding::Dither);
    let n = 100_000;
    let up = |x: f64| place(&grid, &vec![x; n], 64).iter().filter(|&&i| i == 2).count() as f64;
    let quarter = up(1.25 + 0.25 / 256.0);
    assert!((quarter - 0.25 * n as f64).abs() < 4.9 * (n as f64 * 0.1875).sqrt(), "{quarter}");
    assert_eq!(up(1.25), 0.0);
}

#[test]
fn the_bits_behind_equal_bytes_are_the_rest_of_the_fraction() {
    let key = Key::from_bytes([4; 32]);
    for fraction in [0u32, 1, 0x40_0000, 0x40FF_FFFF, 0xFF00_0000, 0xFFFF_FFFF, 0x8000_0001] {
        let (byte, rest) = ((fraction >> 24) as u8, u64::from(fraction & 0xFF_FFFF) << 40);
        for (word, up) in [(rest.checked_sub(1), 1), (Some(rest), 0), (rest.checked_add(1), 0)] {
            let Some(word) = word else { continue };
            let mut stream = Refine::after(&[word], &key);
            assert_eq!(dithered((7, fraction), byte, &mut stream), 7 + up, "{fraction:x}");
            assert_eq!(stream.untaken(), 0);
        }
        for (byte, up) in [(byte.checked_sub(1), 1), (byte.checked_add(1), 0)] {
            let Some(byte) = byte else { continue };
            let mut stream = Refine::after(&[3], &key);
            assert_eq!(dithered((7, fraction), byte, &mut stream), 7 + up, "{fraction:x}");
            assert_eq!(stream.untaken(), 1);
        }
    }
}

#[test]
fn every_instruction_set_places_alike() {
    // All sizes around those that are placed together.
    for count in (0..=200).chain([1000]) {
        let values: Vec<f64> = (0..count).map(|i| (i as f64 * 0.37).sin() * 1.1).collect();
        let single: Vec<f32> = values.iter().map(|&x| x as f32).collect();
        for points in [2, 3, 256, 65_536, 100_000] {
            let grid = grid(points, -1.0, 1.0, GridRounding::Dither);
            for draw in (0..=u8::MAX).step_by(51) {
                place(&grid, &values, draw);
                place(&grid, &single, draw);
            }
        }
    }
}

#[test]
fn nearest_goes_up_at_the_middle() {
    let grid = grid(5, 0.0, 4.0, GridRounding::Nearest);
    assert_eq!(place(&grid, &[0.0, 0.49, 0.5, 1.5, 3.49, 3.5, 4.0], 0), [0, 0, 1, 2, 3, 4, 4]);
    // The largest float below one half stays below.
    assert_eq!(place(&grid, &[0.5f32.next_down()], 0), [0]);
}

#[test]
fn what_is_outside_is_clipped_or_refused() {
    let clip = grid(3, -1.0, 1.0, GridRounding::Dither);
    let values = [-2.0, f64::NEG_INFINITY, 0.0, 1.5, f64::INFINITY];
    assert_eq!(place(&clip, &values, 7), [0, 0, 1, 2, 2]);
    assert_eq!(clip.outside(&values), 4);
    assert_eq!(clip.check(&values), Ok(()));
    let refuse = Grid::new(3, -1.0, 1.0, GridRounding::Dither, false).unwrap();
    let index = |grid: &Grid, values: &[f32]| match grid.check(values) {
        Err(Error::Value { index, .. }) => Some(index),
        _ => None,
    };
    assert_eq!(index(&refuse, &[1.0, -1.0, 1.0f32.next_up()]), Some(2));
    assert_eq!(index(&refuse, &[0.0, f32::NAN]), Some(1));
    assert_eq!(index(&clip, &[0.0, 9.0, f32::NAN]), Some(2));
    assert_eq!(index(&clip, &[0.0, 9.0]), None);
    // An end that float32 cannot hold is still inside.
    let tenths = Grid::new(3, -0.1, 0.1, GridRounding::Dither, false).unwrap();
    assert_eq!(index(&tenths, &[-0.1f32, 0.1]), None);
}

#[test]
fn unsound_values_stay_on_the_grid() {
    for points in [2, 65_536, 65_537, u32::MAX] {
        for rounding in [GridRounding::Dither, GridRounding::Nearest] {
            let grid = grid(points, -1e30, 1e30, rounding);
            // So many that whole vectors of them are placed together.
            let values = [f32::NAN, -f32::NAN, f32::MAX, f32::INFINITY, f32::NEG_INFINITY, 1e-45].repeat(50);
            let double: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
            // At 0 the draw of a number on a point is open, and settled one by one.
            for draw in [0, 7, u8::MAX] {
                let indices = place(&grid, &values, draw).into_iter().chain(place(&grid, &double, draw));
                for (index, value) in indices.zip(double.iter().cycle()) {
                    assert!(if value.is_nan() { index == points - 1 } else { index < points });
                }
            }
        }
    }
}

#[test]
fn grids_that_are_none_are_refused() {
    for (points, low, high, name) in [
        (0, 0.0, 1.0, "points"),
        (1, 0.0, 1.0, "points"),
        (2, f64::NAN, 1.0, "low"),
        (2, 0.0, f64::INFINITY, "high"),
        (2, 1.0, 1.0, "high"),
        (2, 1.0, 0.0, "high"),
        (2, -f64::MAX, f64::MAX, "high"),
        (2, 0.0, f64::from_bits(1), "high"),
    ] {
        match Grid::new(points, low, high, GridRounding::Dither, true) {
            Err(Error::Argument { name: wrong, .. }) => assert_eq!(wrong, name),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_ends_are_points() {
    let values = grid(7, 0.1, 0.7, GridRounding::Dither).values().unwrap();
    assert_eq!((values[0], values[6], values.len()), (0.1, 0.7, 7));
}

proptest! {
    #[test]
    fn the_expected_point_is_the_value(points in 2u32..300, x in -1.0f64..=1.0) {
        let grid = grid(points, -1.0, 1.0, GridRounding::Dither);
        let (cell, fraction) = x.place(&grid.ruler());
        let step = 2.0 / f64::from(points - 1);
        let mean = -1.0 + step * (f64::from(cell) + f64::from(fraction) / 2f64.powi(32));
        prop_assert!((mean - x).abs() <= step * (2f64.powi(-32) + 2f64.powi(-40)));
        let (cell, fraction) = (x as f32).place(&grid.ruler());
        let mean = -1.0 + step * (f64::from(cell) + f64::from(fraction) / 2f64.powi(32));
        prop_assert!((mean - x).abs() <= 2f64.powi(-22));
    }
}

/// A number too small to show is 0 before any arithmetic, and lies where it lay: one by one, and many together.
#[test]
fn subnormals_lie_where_zero_lies() {
    let single = [1e-40f32, -1e-40, f32::from_bits(1), f32::MIN_POSITIVE, -0.0].repeat(20);
    let double = [1e-310, -1e-310, f64::from_bits(1), f64::MIN_POSITIVE, -0.0].repeat(20);
    for (points, low, high) in [(5, -1.0, 1.0), (4, 0.0, 1e6), (300, -2.0, 0.0), (1 << 20, 0.0, 1.0)] {
        let grid = grid(points, low, high, GridRounding::Dither);
        for draw in [0, 1, 255] {
            let zeros = place(&grid, &[0.0f32; 100], draw);
            assert_eq!(place(&grid, &single, draw), zeros);
            assert_eq!(place(&grid, &double, draw), zeros);
        }
    }
}
