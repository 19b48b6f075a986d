//! Calls one case some times and does nothing else: what `instructions.py` counts under emulation (`make bench-arm`).
//!
//! Its arguments are a case and how many calls; `BITLDP_ISA` names the kernels. It prints a checksum of what came out last, so
//! that the bytes of all instruction sets are compared in the very runs that are counted. Without a case it lists them, and
//! what a call makes how many of.

use bitldp_core::{
    Batch, Bit, Bits, Call, Channel, FixedPoint, Grid, GridRounding, Infinities, Input, Key, Matrix, Output,
    Reports, SignBit, Unary, Window, keystream, pack, pack_to, unpack_to,
};

/// Values of a call. Emulation is slow, and what a value takes hardly depends on how many there are.
const VALUES: usize = 1 << 15;
/// Categories of one-hot strings, and columns of the records that are counted.
const WIDE: usize = 128;

/// A call; of the last one the answer is a checksum.
type Run = Box<dyn FnMut(bool) -> u64>;
/// A name, what a call makes many of, how many, and the call.
type Case = (&'static str, &'static str, usize, Run);

fn key() -> Key {
    Key::from_bytes([7; 32])
}

/// A call that fills an output of so many elements.
fn filling<T: Copy + Default + Into<f64> + 'static>(
    elements: usize,
    fill: impl Fn(&mut [T]) + 'static,
) -> Run {
    let mut out = vec![T::default(); elements];
    Box::new(move |last| {
        fill(&mut out);
        let add = |sum: u64, &x: &T| {
            (sum.rotate_left(23) ^ Into::<f64>::into(x).to_bits()).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        };
        if last { out.iter().fold(0, add) } else { 0 }
    })
}

/// Independent bits of numbers, ten each.
fn numbers<T: Copy + Default + Into<f64> + 'static>(
    laws: Vec<Vec<Bit>>,
    elements: usize,
    output: fn(&mut [T]) -> Output<'_>,
) -> Run {
    let pattern = (laws.len() > 1).then(|| (0..WIDE).map(|i| (i % laws.len()) as u32).collect());
    let channel = Bits::new(laws, WIDE, pattern).unwrap();
    let codec = FixedPoint::new(10, 5, SignBit::OneIfNonNegative, Infinities::Refuse).unwrap();
    let x: Vec<f32> = (0..VALUES).map(|i| (i as f32 * 0.37).sin() * 9.0).collect();
    filling(elements, move |out| {
        let key = key();
        let call = Call::new(Some(&codec), Input::F32(&x), output(out), &key);
        channel.randomize(Call { threads: Some(1), ..call }).unwrap();
    })
}

fn window(cells: usize, width: u32, inside: f64) -> Run {
    let channel = Window::new(cells as u32, width, inside, None).unwrap();
    let x: Vec<u16> = (0..VALUES).map(|i| (i * 7919 % cells) as u16).collect();
    filling(VALUES, move |out| {
        let key = key();
        let call = Call::new(None, Input::U16(&x), Output::U16(out), &key);
        channel.randomize(Call { threads: Some(1), ..call }).unwrap();
    })
}

/// Numbers dithered to the rows of a table.
fn matrix(size: usize) -> Run {
    let weight = |i: usize, j: usize| (-(i.abs_diff(j) as f64) / 60.0).exp();
    let row = |i: usize| {
        let sum: f64 = (0..size).map(|j| weight(i, j)).sum();
        (0..size).map(move |j| weight(i, j) / sum)
    };
    let channel = Matrix::new(size, size, &(0..size).flat_map(row).collect::<Vec<_>>()).unwrap();
    let grid = Grid::new(size as u32, -1.0, 1.0, GridRounding::Dither, true).unwrap();
    let x: Vec<f32> = (0..VALUES).map(|i| (i as f32 * 0.37).sin()).collect();
    filling(VALUES, move |out| {
        let key = key();
        let call = Call::new(Some(&grid), Input::F32(&x), Output::U8(out), &key);
        channel.randomize(Call { threads: Some(1), ..call }).unwrap();
    })
}

fn one_hot() -> Run {
    let channel = Unary::new(WIDE, Bit::new(0.5, 0.02).unwrap()).unwrap();
    let x: Vec<u8> = (0..VALUES / WIDE).map(|i| (i * 5 % WIDE) as u8).collect();
    filling(VALUES, move |out| {
        let key = key();
        let call = Call::new((), Input::U8(&x), Output::Bits(out), &key);
        channel.randomize(Call { threads: Some(1), ..call }).unwrap();
    })
}

fn cases() -> Vec<Case> {
    let flips: Vec<f64> = (0..10).map(|i| 0.29 + 0.0255 * f64::from(i)).collect();
    let flips = |of: f64| flips.iter().map(|&q| Bit::new(1.0 - q * of, q * of).unwrap()).collect::<Vec<_>>();
    let symmetric = || vec![flips(1.0)];
    let kept = |i: usize| Bit::new(if i.is_multiple_of(2) { 0.909 } else { 0.001 }, 0.091).unwrap();
    let asymmetric = vec![(0..10).map(kept).collect()];
    let words: Vec<u16> = (0..VALUES).map(|i| (((i * 40503) >> 3) & 1023) as u16).collect();
    let packed = pack(&words, 10).unwrap();
    let [counted, spread] = [packed.clone(), words.iter().map(|word| (word & 1) as u8).collect()];
    let count = |reports: Reports<'_>, bits, out: &mut [f64]| {
        let batch = Batch::new(reports, VALUES / WIDE, WIDE, bits).unwrap().threads(Some(1)).unwrap();
        out.iter_mut().zip(batch.ones().unwrap()).for_each(|(out, ones)| *out = ones as f64);
    };
    vec![
        ("keystream", "byte", VALUES, filling(VALUES, |out: &mut [u8]| keystream(&key(), 0, out).unwrap())),
        ("f-RR, codes", "value", VALUES, numbers(symmetric(), VALUES, |out| Output::U16(out))),
        ("f-RR, values", "value", VALUES, numbers(symmetric(), VALUES, |out| Output::F32(out))),
        ("f-RR, bits", "value", VALUES, numbers(symmetric(), 10 * VALUES, |out| Output::Bits(out))),
        ("f-RR, packed", "value", VALUES, numbers(symmetric(), 10 * VALUES / 8, |out| Output::Packed(out))),
        (
            "two laws, codes",
            "value",
            VALUES,
            numbers(vec![flips(1.0), flips(0.5)], VALUES, |out| Output::U16(out)),
        ),
        ("MOUE, codes", "value", VALUES, numbers(asymmetric, VALUES, |out| Output::U16(out))),
        ("GRR, k = 128", "value", VALUES, window(WIDE, 1, 0.3)),
        ("BRR, N = 1000", "value", VALUES, window(1000, 268, 0.73)),
        ("matrix 8 x 8, dithered", "value", VALUES, matrix(8)),
        ("matrix 256 x 256, dithered", "value", VALUES, matrix(256)),
        ("one-hot strings of 128", "position", VALUES, one_hot()),
        ("count, bits", "bit", VALUES, filling(WIDE, move |out| count(Reports::Bits(&spread), 1, out))),
        (
            "count, packed",
            "word",
            VALUES,
            filling(10 * WIDE, move |out| count(Reports::Packed(&counted), 10, out)),
        ),
        (
            "pack",
            "word",
            VALUES,
            filling(10 * VALUES / 8, move |out: &mut [u8]| pack_to(&words, 10, out, Some(1)).unwrap()),
        ),
        (
            "unpack",
            "word",
            VALUES,
            filling(VALUES, move |out: &mut [u16]| unpack_to(&packed, 10, out, Some(1)).unwrap()),
        ),
    ]
}

fn main() {
    // Cargo says that it benches.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match &arguments[..] {
        [] => cases().iter().for_each(|(name, unit, count, _)| println!("{name}\t{unit}\t{count}")),
        [wanted, calls] => {
            let mut case =
                cases().into_iter().find(|(name, ..)| name == wanted).expect("a case of this name");
            let calls: u32 = calls.parse().expect("a number of calls");
            let checksum = (1..=calls).fold(0, |_, call| case.3(call == calls));
            println!("{checksum:016x}");
        }
        _ => panic!("give a case and a number of calls"),
    }
}
