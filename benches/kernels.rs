//! The kernels alone, on each instruction set of this processor: `make bench-kernels`.
//!
//! Every benchmark asserts its result against the scalar oracle before it is timed.

use bitldp_core::{
    Bit, Bits, Call, Channel, FixedPoint, Grid, GridRounding, Infinities, Input, Isa, Key, Matrix, Output,
    ROUNDS, SignBit, Window, keystream_on,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const FEATURES: usize = 1 << 18;
const SAMPLES: usize = 1 << 18;

fn key() -> Key {
    Key::from_bytes([7; 32])
}

/// Fills `out` by `run`, which must give the same as the scalar oracle, then times it on each instruction set.
fn on_each<T: Clone + PartialEq + std::fmt::Debug>(
    criterion: &mut Criterion,
    name: &str,
    throughput: Throughput,
    out: &mut [T],
    mut run: impl FnMut(Isa, &mut [T]),
) {
    run(Isa::Scalar, out);
    let expected = out.to_vec();
    let mut group = criterion.benchmark_group(name);
    group.throughput(throughput).sample_size(20);
    for &isa in Isa::available() {
        run(isa, out);
        assert!(out == expected, "{name} on {isa}");
        group.bench_function(isa.name(), |bencher| bencher.iter(|| run(isa, out)));
    }
    group.finish();
}

fn chacha(criterion: &mut Criterion) {
    let mut out = vec![0u8; 1 << 20];
    on_each(criterion, "keystream", Throughput::Bytes(1 << 20), &mut out, |isa, out| {
        keystream_on::<ROUNDS>(isa, &key(), 0, 0, out);
    });
}

fn bits(criterion: &mut Criterion) {
    let flips: Vec<f64> = (0..10).map(|i| 0.29 + 0.0255 * f64::from(i)).collect();
    let symmetric = flips.iter().map(|&q| Bit::new(1.0 - q, q).unwrap()).collect();
    let asymmetric =
        (0..10).map(|i| Bit::new(if i % 2 == 0 { 0.909 } else { 0.001 }, 0.091).unwrap()).collect();
    let codec = FixedPoint::new(10, 5, SignBit::OneIfNonNegative, Infinities::Refuse).unwrap();
    let x: Vec<f32> = (0..FEATURES).map(|i| (i as f32 * 0.37).sin() * 9.0).collect();
    let values = Throughput::Elements(FEATURES as u64);
    for (law, channel) in [("symmetric", symmetric), ("asymmetric", asymmetric)] {
        let channel = Bits::new(vec![channel], 1, None).unwrap();
        let run = |isa, output: Output<'_>| {
            channel
                .randomize_on(
                    isa,
                    Call { threads: Some(1), ..Call::new(Some(&codec), Input::F32(&x), output, &key()) },
                )
                .unwrap();
        };
        let name = |form: &str| format!("float32 to {form}, l=10, {law}");
        on_each(criterion, &name("codes"), values.clone(), &mut vec![0u16; FEATURES], |isa, out| {
            run(isa, Output::U16(out))
        });
        on_each(criterion, &name("bits"), values.clone(), &mut vec![0u8; 10 * FEATURES], |isa, out| {
            run(isa, Output::Bits(out))
        });
        on_each(criterion, &name("values"), values.clone(), &mut vec![0f32; FEATURES], |isa, out| {
            run(isa, Output::F32(out))
        });
        let packed = &mut vec![0u8; 10 * FEATURES / 8];
        on_each(criterion, &name("packed"), values.clone(), packed, |isa, out| run(isa, Output::Packed(out)));
    }
}

fn categorical(criterion: &mut Criterion) {
    let samples = Throughput::Elements(SAMPLES as u64);
    for (name, cells, width, high) in [("GRR, k=128", 128u16, 1, 0.3), ("BRR, N=1000", 1000, 268, 0.73)] {
        let window = Window::new(u32::from(cells), width, high, None).unwrap();
        let x: Vec<u16> = (0..SAMPLES).map(|i| (i * 7919 % usize::from(cells)) as u16).collect();
        on_each(criterion, name, samples.clone(), &mut vec![0u16; SAMPLES], |isa, out| {
            window
                .randomize_on(
                    isa,
                    Call { threads: Some(1), ..Call::new(None, Input::U16(&x), Output::U16(out), &key()) },
                )
                .unwrap();
        });
    }
    for size in [8usize, 256] {
        let weight = |i: usize, j: usize| (-(i.abs_diff(j) as f64) / 60.0).exp();
        let row = |i: usize| {
            let sum: f64 = (0..size).map(|j| weight(i, j)).sum();
            (0..size).map(move |j| weight(i, j) / sum)
        };
        let table: Vec<f64> = (0..size).flat_map(row).collect();
        let matrix = Matrix::new(size, size, &table).unwrap();
        let grid = Grid::new(size as u32, -1.0, 1.0, GridRounding::Dither, true).unwrap();
        let x: Vec<f32> = (0..SAMPLES).map(|i| (i as f32 * 0.37).sin()).collect();
        let name = format!("matrix {size}x{size}, dithered");
        on_each(criterion, &name, samples.clone(), &mut vec![0u8; SAMPLES], |isa, out| {
            matrix
                .randomize_on(
                    isa,
                    Call {
                        threads: Some(1),
                        ..Call::new(Some(&grid), Input::F32(&x), Output::U8(out), &key())
                    },
                )
                .unwrap();
        });
    }
}

criterion_group!(kernels, chacha, bits, categorical);
criterion_main!(kernels);
