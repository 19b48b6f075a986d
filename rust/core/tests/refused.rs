//! Values that a channel refuses: the first index is named on any number of threads, and the whole output is zeros,
//! though by then other chunks have been randomized.

use bitldp_core::{
    Bit, Bits, CHUNK, Call, Channel, Cube, Error, FixedPoint, Grid, GridRounding, Infinities, Input, Isa,
    Matrix, Mixture, Output, Probability, Result, Select, SignBit, Unary, Window,
};
use common::key;

mod common;

/// Values of a batch that is long enough for every channel to have several chunks.
const MANY: usize = 9 * CHUNK + 24;

/// Where values are refused: in a middle chunk and behind it, whose chunk another thread may well take first.
const PLACES: [usize; 3] = [3 * CHUNK + 5, 3 * CHUNK + 6, 8 * CHUNK];

/// Calls with values refused at `PLACES` and at two of them alone, on 1 to 4 threads and every instruction set; `run` gets
/// the positions and fills the marked bytes.
fn check(name: &str, elements: usize, run: impl Fn(&[usize], Isa, usize, &mut [u8]) -> Result<()>) {
    for &isa in Isa::available() {
        for threads in 1..=4 {
            let mut out = vec![7u8; elements];
            run(&[], isa, threads, &mut out).unwrap();
            assert!(out.iter().any(|&byte| byte != 0), "{name}: the good batch is answered");
            for positions in [&PLACES[..], &PLACES[1..], &PLACES[2..]] {
                out.fill(7);
                let error = run(positions, isa, threads, &mut out).unwrap_err();
                let first = matches!(error, Error::Value { name: "x", index, .. } if index == positions[0]);
                assert!(first, "{name} on {isa}, {threads} threads: {error}");
                assert!(
                    out.iter().all(|&byte| byte == 0),
                    "{name} on {isa}, {threads} threads: not all zeros"
                );
            }
        }
    }
}

/// Numbers of [0, 1] and NaN at `positions`.
fn numbers(positions: &[usize]) -> Vec<f32> {
    let mut x: Vec<f32> = (0..MANY).map(|i| (i % 11) as f32 / 10.0).collect();
    positions.iter().for_each(|&position| x[position] = f32::NAN);
    x
}

/// Codes below 2 and 200 at `positions`.
fn codes(positions: &[usize]) -> Vec<u8> {
    let mut x: Vec<u8> = (0..MANY).map(|i| (i % 2) as u8).collect();
    positions.iter().for_each(|&position| x[position] = 200);
    x
}

fn grid(points: u32) -> Grid {
    Grid::new(points, 0.0, 1.0, GridRounding::Dither, true).unwrap()
}

/// The first index, zeros, in every form that reports leave in: numbers, codes, bits and packed bits.
#[test]
fn bits_leave_zeros() {
    let law = || vec![Bit::new(0.7, 0.2).unwrap(); 7];
    let channel = Bits::new(vec![law()], 8, None).unwrap();
    let codec = FixedPoint::new(7, 2, SignBit::OneIfNonNegative, Infinities::Refuse).unwrap();
    type Form = (&'static str, usize, fn(&mut [u8]) -> Output<'_>);
    let forms: [Form; 3] = [
        ("codes", MANY, |out| Output::U8(out)),
        ("bits", 7 * MANY, |out| Output::Bits(out)),
        ("packed", 7 * MANY / 8, |out| Output::Packed(out)),
    ];
    for (name, elements, form) in forms {
        check(name, elements, |positions, isa, threads, out| {
            let (x, key) = (numbers(positions), key(1));
            let call = Call::new(Some(&codec), Input::F32(&x), form(out), &key);
            channel.randomize_on(isa, Call { threads: Some(threads), ..call })
        });
        check(name, elements, |positions, isa, threads, out| {
            let (x, key) = (codes(positions), key(1));
            let call = Call::new(None, Input::U8(&x), form(out), &key);
            channel.randomize_on(isa, Call { threads: Some(threads), ..call })
        });
    }
    let mut out = vec![7f64; MANY];
    let x = numbers(&PLACES);
    let call = channel.randomize(Call::new(Some(&codec), Input::F32(&x), Output::F64(&mut out), &key(1)));
    assert!(matches!(call, Err(Error::Value { index, .. }) if index == PLACES[0]));
    assert_eq!(out, vec![0.0; MANY]);
}

#[test]
fn categories_and_numbers_on_grids_leave_zeros() {
    let window = Window::new(6, 2, 0.6, None).unwrap();
    let matrix = Matrix::new(6, 3, &[0.2, 0.3, 0.5].repeat(6)).unwrap();
    let (six, two) = (grid(6), grid(2));
    let order: Vec<u16> = (0..36).map(|i| ((i / 6 + i) % 6) as u16).collect();
    let mute = Window::new(6, 2, 0.6, None).unwrap().muted();
    check("window", MANY, |positions, isa, threads, out| {
        let (x, key) = (codes(positions), key(2));
        let call = Call::new(None, Input::U8(&x), Output::U8(out), &key);
        window.randomize_on(isa, Call { threads: Some(threads), ..call })
    });
    let ordered = Window::new(6, 2, 0.6, Some(order)).unwrap();
    for (name, window) in [("on a grid", &window), ("in an order", &ordered), ("mute", &mute)] {
        check(name, MANY, |positions, isa, threads, out| {
            let (x, key) = (numbers(positions), key(2));
            let call = Call::new(Some(&six), Input::F32(&x), Output::U8(out), &key);
            window.randomize_on(isa, Call { threads: Some(threads), ..call })
        });
    }
    check("matrix", MANY, |positions, isa, threads, out| {
        let (x, key) = (numbers(positions), key(2));
        let call = Call::new(Some(&six), Input::F32(&x), Output::U8(out), &key);
        matrix.randomize_on(isa, Call { threads: Some(threads), ..call })
    });
    let coin = Matrix::new(2, 3, &[0.5, 0.1, 0.4, 0.5, 0.4, 0.1]).unwrap();
    let mixture = Mixture::new(Window::new(6, 2, 0.6, None).unwrap(), coin).unwrap();
    check("mixture", MANY, |positions, isa, threads, out| {
        let (x, keys) = (numbers(positions), [&key(2), &key(3)]);
        let call = Call::new([&six, &two], Input::F32(&x), Output::U8(out), keys);
        mixture.randomize_on(isa, Call { threads: Some(threads), ..call })
    });
}

#[test]
fn strings_and_vectors_leave_zeros() {
    let unary = Unary::new(9, Bit::new(0.7, 0.2).unwrap()).unwrap();
    check("unary", 9 * MANY, |positions, isa, threads, out| {
        let (x, key) = (codes(positions), key(4));
        let call = Call::new((), Input::U8(&x), Output::Bits(out), &key);
        unary.randomize_on(isa, Call { threads: Some(threads), ..call })
    });
    let cube = Cube::new(8, 5, 4, Probability::HALF).unwrap();
    let two = grid(2);
    check("cube", MANY, |positions, isa, threads, out| {
        let (x, key) = (numbers(positions), key(4));
        let call = Call::new(Some(&two), Input::F32(&x), Output::Bits(out), &key);
        cube.randomize_on(isa, Call { threads: Some(threads), ..call })
    });
    let select = Select::new(&[4, 4], &[1, 3], None).unwrap();
    check("select", MANY / 8, |positions, isa, threads, out| {
        let (x, key) = (numbers(positions), key(4));
        let call = Call::new(None, Input::F32(&x), Output::U8(out), &key);
        select.randomize_on(isa, Call { threads: Some(threads), ..call })
    });
}
