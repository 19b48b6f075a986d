//! Mute channels: the input is checked as ever, and zeros are randomized in its place.

use bitldp_core::{
    CHUNK, Call, Channel, Cube, Error, Grid, GridRounding, Input, Isa, Key, Output, Probability, Shift,
    Window,
};

use common::left_behind;

mod common;

const UNIT: u128 = 1 << 64;

fn key() -> Key {
    Key::from_bytes([11; 32])
}

fn grid(points: u32) -> Grid {
    Grid::new(points, -1.0, 1.0, GridRounding::Dither, false).unwrap()
}

/// The reports of a channel, a byte for each value.
fn bytes<C>(channel: &C, isa: Isa, codec: Option<&Grid>, input: Input<'_>, bits: bool) -> Vec<u8>
where
    C: for<'a> Channel<Codec<'a> = Option<&'a Grid>, Keys<'a> = &'a Key>,
{
    let mut out = vec![77; input.len()];
    let output = if bits { Output::Bits(&mut out) } else { Output::U8(&mut out) };
    channel.randomize_on(isa, Call::new(codec, input, output, &key())).unwrap();
    out
}

/// A refused value leaves zeros and another refusal the output as it is, with the error of the same channel that listens.
fn refused<C>(channel: &C, codec: Option<&Grid>, input: Input<'_>, bits: bool) -> Error
where
    C: for<'a> Channel<Codec<'a> = Option<&'a Grid>, Keys<'a> = &'a Key>,
{
    let mut out = vec![77; input.len()];
    let output = if bits { Output::Bits(&mut out) } else { Output::U8(&mut out) };
    let result = channel.randomize(Call::new(codec, input, output, &key()));
    left_behind(&mut out, 77, result)
}

/// The stream is that of the same law on zeros, for any input, codec and instruction set; what it refuses is the same.
fn check<C>(loud: &C, mute: &C, grid: &Grid, cells: u8, count: usize, bits: bool)
where
    C: for<'a> Channel<Codec<'a> = Option<&'a Grid>, Keys<'a> = &'a Key>,
{
    assert!(loud.epsilon() > 0.0 && !loud.is_mute());
    assert_eq!((mute.epsilon(), mute.is_mute()), (0.0, true));
    assert_eq!((mute.report_bits(), mute.chunk()), (loud.report_bits(), loud.chunk()));
    let codes: Vec<u8> = (0..count).map(|i| (i * 7919 % usize::from(cells)) as u8).collect();
    let numbers: Vec<f32> = codes.iter().map(|&code| f32::from(code) / f32::from(cells)).collect();
    let expected = bytes(loud, Isa::Scalar, None, Input::U8(&vec![0; count]), bits);
    assert_ne!(bytes(loud, Isa::Scalar, None, Input::U8(&codes), bits), expected, "the input counts");
    for &isa in Isa::available() {
        assert_eq!(bytes(mute, isa, None, Input::U8(&codes), bits), expected, "{isa}");
        assert_eq!(bytes(mute, isa, Some(grid), Input::F32(&numbers), bits), expected, "{isa}, dithered");
    }
    let (mut beyond, mut missing) = (codes, numbers);
    beyond[count - 1] = cells;
    missing[3] = f32::NAN;
    for (codec, input) in [(None, Input::U8(&beyond)), (Some(grid), Input::F32(&missing))] {
        let error = refused(mute, codec, input, bits);
        assert!(matches!(error, Error::Value { name: "x", .. }), "{error}");
        assert_eq!(error, refused(loud, codec, input, bits));
    }
    let small = Grid::new(cells.into(), -1.0, 1.0, GridRounding::Nearest, true).unwrap();
    assert_eq!(
        refused(mute, Some(&small), Input::U8(&[0; 4]), bits),
        refused(loud, Some(&small), Input::U8(&[0; 4]), bits)
    );
}

#[test]
fn a_mute_window_reports_what_it_says_of_zeros() {
    for (cells, width) in [(2, 1), (7, 3), (100, 7)] {
        // As near to uniform as a float is, which is no multiple of 2^-64.
        let window = || Window::new(cells, width, f64::from(width) / f64::from(cells) + 1e-3, None).unwrap();
        check(&window(), &window().muted(), &grid(cells), cells as u8, 2 * CHUNK + 77, false);
        let (rows, loud) = (window().muted().probabilities().unwrap(), window().probabilities().unwrap());
        assert!(rows.chunks_exact(cells as usize).all(|row| *row == loud[..cells as usize]));
    }
    let order = [[0u16, 1, 2], [1, 2, 0], [2, 0, 1]].concat();
    let window = || Window::new(3, 1, 0.5, Some(order.clone())).unwrap();
    check(&window(), &window().muted(), &grid(3), 3, 1000, false);
}

#[test]
fn a_mute_shift_reports_what_it_says_of_zeros() {
    let shift = || Shift::new(5, 7, vec![UNIT / 4, UNIT / 2, UNIT / 4], 1).unwrap();
    check(&shift(), &shift().muted(), &grid(5), 5, CHUNK + 77, false);
    let (rows, loud) = (shift().muted().probabilities().unwrap(), shift().probabilities().unwrap());
    assert!(rows.chunks_exact(7).all(|row| *row == loud[..7]));
    assert!(shift().delta(0.0).unwrap() > 0.1);
    assert_eq!(shift().muted().delta(0.0).unwrap(), 0.0);
}

#[test]
fn a_mute_cube_reports_what_it_says_of_zeros() {
    let high = Probability::from_numerator(UNIT / 3).unwrap();
    for bits in [3, 70] {
        let cube = || Cube::new(bits, bits / 2 + 1, bits / 2, high).unwrap();
        check(&cube(), &cube().muted(), &grid(2), 2, (bits * 300) as usize, true);
        assert!(cube().muted().with_high(high).epsilon() > 0.0, "another law is another channel");
    }
}
