//! Batches of every small size: each instruction set gives what the scalar path gives, in every form of input and output
//! that has loops of its own, and what lies behind the reports is not touched.

mod common;

use bitldp_core::{
    Call, Channel, Cube, Grid, GridRounding, Input, Isa, Matrix, Output, Probability, Select, Shift, Window,
};
use common::*;

const SIZES: std::ops::RangeInclusive<usize> = 0..=200;

fn every_size_agrees(channel: &Categorical, rows: u32, reports: u32) {
    let bits = channel.report_bits() as usize;
    let grid = (rows > 1).then(|| Grid::new(rows, -1.0, 1.0, GridRounding::Dither, true).unwrap());
    let letters: Vec<f64> = (0..reports).map(|report| f64::from(report) / 3.0).collect();
    for size in SIZES {
        let words: Vec<u16> =
            (0..size).map(|i| ((u64::from(scrambled(i)) * u64::from(rows)) >> 32) as u16).collect();
        let wide: Vec<i64> = words.iter().map(|&row| row.into()).collect();
        let doubles: Vec<f64> =
            (0..size).map(|i| f64::from(scrambled(i)) / f64::from(u32::MAX) * 2.4 - 1.2).collect();
        let singles: Vec<f32> = doubles.iter().map(|&x| x as f32).collect();
        let inputs = [
            (Input::U16(&words), None),
            (Input::I64(&wide), None),
            (Input::F32(&singles), grid.as_ref()),
            (Input::F64(&doubles), grid.as_ref()),
        ];
        for (input, grid) in inputs.into_iter().filter(|(input, grid)| grid.is_some() || !input.is_real()) {
            let expected = channel.codes(ORACLE, grid, input, &key(3));
            assert!(expected.iter().all(|&report| report < reports));
            let packed_size = (size * bits).div_ceil(8);
            for &isa in Isa::available() {
                let call = Way { isa, ..ORACLE };
                let go = |output: Output<'_>| {
                    channel.randomize(call, grid, input, Some(&letters), output, &key(3)).unwrap();
                };
                let mut codes = vec![9u16; size + 64];
                go(Output::U16(&mut codes[..size]));
                assert!(
                    codes[..size].iter().zip(&expected).all(|(&code, &report)| u32::from(code) == report)
                );
                let (mut single, mut packed) = (vec![-1f32; size + 64], vec![0xa5; packed_size + 64]);
                go(Output::F32(&mut single[..size]));
                go(Output::Packed(&mut packed[..packed_size]));
                let spelled = expected.iter().map(|&report| letters[report as usize] as f32);
                assert!(single[..size].iter().copied().eq(spelled), "{size} on {isa}");
                assert_eq!(packed[..packed_size], bitldp_core::pack(&expected, bits as u32).unwrap());
                assert_eq!(channel.codes(call, grid, input, &key(3)), expected, "{size} on {isa}");
                let behind = (&codes[size..], &single[size..], &packed[packed_size..]);
                assert_eq!(behind, (&[9u16; 64][..], &[-1f32; 64][..], &[0xa5u8; 64][..]));
            }
        }
    }
}

#[test]
fn flips_and_windows_of_every_size() {
    for (cells, width, high) in [(2, 1, 0.73), (2, 1, 0.2), (2, 1, 1.0), (9, 4, 0.6), (1000, 268, 0.7)] {
        let channel = Categorical::Window(Window::new(cells, width, high, None).unwrap());
        every_size_agrees(&channel, cells, cells);
    }
}

#[test]
fn matrices_and_shifts_of_every_size() {
    const UNIT: u128 = 1 << 64;
    // Read whole, drawn with 16 bits, and with 32.
    for reach in [3usize, 60, 200] {
        let noise = 2 * reach + 1;
        let mut weights = vec![UNIT / (noise as u128 + 7); noise];
        weights[reach] = UNIT - (noise as u128 - 1) * weights[0];
        let shift = Shift::new(40, 50, weights.clone(), 4).unwrap();
        every_size_agrees(&Categorical::Shift(shift), 40, 50);
        let reversed: Vec<u128> = weights.iter().rev().copied().collect();
        let matrix = Matrix::from_weights(2, noise, [weights, reversed].concat()).unwrap();
        every_size_agrees(&Categorical::Matrix(matrix), 2, noise as u32);
    }
}

#[test]
fn records_of_every_size() {
    let grid = Grid::new(2, -1.0, 1.0, GridRounding::Dither, true).unwrap();
    for bits in 1..=200u32 {
        let near = bits.div_ceil(2);
        let channel = Cube::new(bits, near, near - 1, Probability::from_numerator(3 << 62).unwrap()).unwrap();
        for records in [1, 3, 8] {
            let size = records * bits as usize;
            let signs: Vec<u8> = (0..size).map(|i| (scrambled(i) % 2) as u8).collect();
            let numbers: Vec<f32> = (0..size).map(|i| (scrambled(i) % 99) as f32 / 40.0 - 1.2).collect();
            for (input, grid) in [(Input::U8(&signs), None), (Input::F32(&numbers), Some(&grid))] {
                let run = |isa| {
                    let mut out = vec![7u8; size + 64];
                    let room = Output::Bits(&mut out[..size]);
                    channel
                        .randomize_on(isa, Call { threads: Some(1), ..Call::new(grid, input, room, &key(5)) })
                        .unwrap();
                    assert_eq!(out.split_off(size), [7; 64]);
                    let mut packed = vec![7u8; size.div_ceil(8) + 64];
                    let room = Output::Packed(&mut packed[..size.div_ceil(8)]);
                    channel
                        .randomize_on(isa, Call { threads: Some(1), ..Call::new(grid, input, room, &key(5)) })
                        .unwrap();
                    assert_eq!(packed.split_off(size.div_ceil(8)), [7; 64]);
                    assert_eq!(packed, bitldp_core::pack(&out, 1).unwrap());
                    out
                };
                let expected = run(Isa::Scalar);
                assert!(Isa::available().iter().all(|&isa| run(isa) == expected), "{bits} bits");
            }
        }
    }
}

/// Numbers from the smallest to the largest, of either sign, a few of them equal in size, zeros of both signs: each rank
/// by itself, in both precisions.
#[test]
fn selections_of_every_size() {
    for d in (2..=200usize).chain([1000]) {
        let single = |i: usize| {
            let size = match scrambled(i) % 5 {
                0 => f32::from_bits(scrambled(i) % 40),
                1 => f32::MIN_POSITIVE * (i % 3) as f32,
                2 => f32::MAX / (1 + i % 9) as f32,
                _ => f32::from_bits(scrambled(i) % 0x7f80_0000),
            };
            if scrambled(i + 7).is_multiple_of(2) { -size } else { size }
        };
        let x: Vec<f32> = (0..d).map(single).collect();
        let double: Vec<f64> = x.iter().map(|&x| x.into()).collect();
        let mut ordered: Vec<f32> = x.iter().map(|x| x.abs()).collect();
        ordered.sort_by(f32::total_cmp);
        for rank in (0..d).step_by(1 + d / 12).chain([d - 1]) {
            let mut weights = vec![0; d];
            weights[rank] = 1;
            let channel = Select::new(&vec![1; d], &weights, None).unwrap();
            let run = |isa, input| {
                let mut out = [u32::MAX];
                channel
                    .randomize_on(
                        isa,
                        Call { threads: Some(1), ..Call::new(None, input, Output::U32(&mut out), &key(6)) },
                    )
                    .unwrap();
                out[0]
            };
            let expected = run(Isa::Scalar, Input::F32(&x));
            assert_eq!(x[expected as usize].abs(), ordered[rank]);
            for &isa in Isa::available() {
                assert_eq!((run(isa, Input::F32(&x)), run(isa, Input::F64(&double))), (expected, expected));
            }
        }
    }
}
