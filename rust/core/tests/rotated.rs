//! Rotated vectors: the same reports and sums on every instruction set and thread count, by the law of signed ranks.

use bitldp_core::{
    Call, Channel, Error, Input, Isa, Output, Rotated, Rotation, RotationKind, Select, Undo, undo_counts,
};
use proptest::prelude::*;

mod common;
use common::{chi_square, chi_square_limit, key, scrambled};

fn rotation(features: usize, kind: RotationKind) -> Rotation {
    Rotation::new(features, 2.0, kind, key(3)).unwrap()
}

/// The law by which the `k` largest of the `2 d` signed coordinates are nine times as likely as the others.
fn signed(dimensions: usize, k: u32) -> Select {
    Select::signed(&[2 * dimensions as u32 - k, k], &[1, 9]).unwrap()
}

fn vectors(count: usize) -> Vec<f32> {
    (0..count).map(|i| (scrambled(i) % 4001) as f32 * 1e-4 - 0.2).collect()
}

fn numbers(count: usize) -> Vec<u32> {
    (0..count).map(|i| scrambled(i) % 1000).collect()
}

struct Asked<'a> {
    isa: Isa,
    rotated: Rotated<'a>,
    first_chunk: u64,
    threads: usize,
}

fn codes(channel: &Select, asked: &Asked<'_>, input: Input<'_>) -> Vec<u32> {
    let (mut out, key) = (vec![u32::MAX; asked.rotated.numbers.len()], key(7));
    let call = Call {
        first_chunk: asked.first_chunk,
        threads: Some(asked.threads),
        ..Call::new(Some(asked.rotated), input, Output::U32(&mut out), &key)
    };
    channel.randomize_on(asked.isa, call).unwrap();
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn reports_and_sums_do_not_depend_on_the_instruction_set(d in 1usize..700, n in 0usize..150, haar: bool) {
        let d = if haar { d % 40 + 1 } else { d };
        let rotation = rotation(d, if haar { RotationKind::Haar } else { RotationKind::Hadamard });
        let channel = signed(rotation.dimensions(), rotation.dimensions() as u32 / 5 + 1);
        let (x, numbers) = (vectors(n * d), numbers(n));
        let doubles: Vec<f64> = x.iter().map(|&x| x.into()).collect();
        let rotated = Rotated { rotation: &rotation, numbers: &numbers };
        let ask = |isa, threads| Asked { isa, rotated, first_chunk: 0, threads };
        let expected = codes(&channel, &ask(Isa::Scalar, 1), Input::F32(&x));
        prop_assert!(expected.iter().all(|&code| code < 2 * rotation.dimensions() as u32));
        let oracle = Undo::on(Isa::Scalar, rotated, &expected).unwrap();
        let (sums, mut letters) = (oracle.sums(0.7, Some(1)).unwrap(), vec![0.0; n * d]);
        oracle.letters(0.7, &mut letters, Some(1)).unwrap();
        for &isa in Isa::available() {
            prop_assert_eq!(&codes(&channel, &ask(isa, 3), Input::F32(&x)), &expected);
            prop_assert_eq!(&codes(&channel, &ask(isa, 1), Input::F64(&doubles)), &expected);
            let undo = Undo::on(isa, rotated, &expected).unwrap();
            prop_assert_eq!(&undo.sums(0.7, Some(3)).unwrap(), &sums);
            let mut result = vec![0.0; n * d];
            undo.letters(0.7, &mut result, Some(2)).unwrap();
            prop_assert_eq!(&result, &letters);
        }
        for (position, (sum, square)) in sums[0].iter().zip(&sums[1]).enumerate() {
            let column = letters.iter().skip(position).step_by(d);
            let (one, two) = column.fold((0.0, 0.0), |(one, two), &x| (one + x, two + x * x));
            prop_assert!((one - sum).abs() < 1e-9 * (1.0 + two) && (two - square).abs() < 1e-9 * (1.0 + two));
        }
    }
}

#[test]
fn splits_change_nothing() {
    let rotation = rotation(300, RotationKind::Hadamard);
    let channel = signed(512, 20);
    let n = channel.chunk() + 9;
    let (x, numbers) = (vectors(n * 300), numbers(n));
    let rotated = |range: std::ops::Range<usize>| Rotated { rotation: &rotation, numbers: &numbers[range] };
    let asked = |range, first_chunk, threads| Asked {
        isa: Isa::Scalar,
        rotated: rotated(range),
        first_chunk,
        threads,
    };
    let whole = codes(&channel, &asked(0..n, 5, 1), Input::F32(&x));
    let head = codes(&channel, &asked(0..64, 5, 2), Input::F32(&x[..64 * 300]));
    let tail = codes(&channel, &asked(64..n, 6, 1), Input::F32(&x[64 * 300..]));
    assert_eq!(channel.chunk(), 64);
    assert_eq!([head, tail].concat(), whole);
}

/// Signed ranks of one vector with equal sizes and a zero; n = 64,000, alpha = 1e-6.
#[test]
fn reports_follow_the_law_of_signed_ranks() {
    let weights = [1u64, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    let channel = Select::signed(&[1; 10], &weights).unwrap();
    let y = [0.0f32, -3.0, 1.0, 3.0, 0.5];
    let n = 64_000;
    let (mut result, key) = (vec![0u32; n], key(2));
    for &isa in Isa::available() {
        let x = y.repeat(n);
        let call = Call::new(None, Input::F32(&x), Output::U32(&mut result), &key);
        channel.randomize_on(isa, call).unwrap();
        let values: Vec<f32> = y.iter().flat_map(|&y| [-y, y]).collect();
        let expected: Vec<f64> = values
            .iter()
            .map(|value| {
                let below = values.iter().filter(|other| *other < value).count();
                let equal = values.iter().filter(|other| *other == value).count();
                let weight: u64 = weights[below..below + equal].iter().sum();
                weight as f64 / (55 * equal) as f64
            })
            .collect();
        let (statistic, degrees) = chi_square(&result, &expected);
        assert!(statistic < chi_square_limit(degrees), "{isa}: {statistic}");
    }
}

#[test]
fn counts_of_reports_are_undone_as_their_sum() {
    for kind in [RotationKind::Hadamard, RotationKind::Haar] {
        let rotation = rotation(9, kind);
        let outputs = 2 * rotation.dimensions();
        let (reports, numbers): (Vec<u32>, Vec<u32>) =
            (0..200).map(|i| (scrambled(i) % outputs as u32, [4u32, 900][i % 2])).unzip();
        let undo = Undo::new(Rotated { rotation: &rotation, numbers: &numbers }, &reports).unwrap();
        let [sum, _] = undo.sums(1.5, None).unwrap();
        let mut counts = vec![0; 2 * outputs];
        for (report, number) in reports.iter().zip(&numbers) {
            counts[usize::from(*number == 900) * outputs + *report as usize] += 1;
        }
        let mut out = [0.0; 18];
        let both = Rotated { rotation: &rotation, numbers: &[4, 900] };
        undo_counts(both, &counts, 1.5, &mut out, Some(2)).unwrap();
        for (position, sum) in sum.iter().enumerate() {
            assert!((out[position] + out[9 + position] - sum).abs() < 1e-9);
        }
        assert!(undo_counts(both, &counts[1..], 1.5, &mut out, None).is_err());
        assert!(undo_counts(both, &counts, 1.5, &mut out[1..], None).is_err());
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let (rotation, other) = (rotation(5, RotationKind::Hadamard), rotation(40, RotationKind::Hadamard));
    let channel = signed(32, 3);
    let x = [0.1f32; 10];
    let (mut out, key) = ([9u8; 2], key(1));
    let mut run = |rotation, numbers: &[u32], x: &[f32]| {
        let call = Call::new(Some(Rotated { rotation, numbers }), Input::F32(x), Output::U8(&mut out), &key);
        channel.randomize(call)
    };
    assert!(matches!(run(&other, &[0, 1], &x), Err(Error::Argument { name: "rotation", .. })));
    assert!(matches!(run(&rotation, &[0], &x), Err(Error::Shape { name: "rotations", .. })));
    assert!(matches!(run(&rotation, &[0, 1], &x[1..]), Err(Error::Shape { name: "x", .. })));
    let mut bad = x;
    bad[7] = f32::NAN;
    assert!(matches!(run(&rotation, &[0, 1], &bad), Err(Error::Value { name: "x", index: 7, .. })));
    assert_eq!(out, [0, 0]);
    assert!(Select::signed(&[3], &[1]).is_err());
    assert_eq!(Select::signed(&[3, 1], &[1, 1]).unwrap().outputs(), 4);
    let numbers = [0, 1];
    let rotated = Rotated { rotation: &rotation, numbers: &numbers };
    assert!(matches!(Undo::new(rotated, &[1]), Err(Error::Shape { .. })));
    assert!(matches!(Undo::new(rotated, &[1, 64]), Err(Error::Value { name: "reports", index: 1, .. })));
    let undo = Undo::new(rotated, &[1, 63]).unwrap();
    assert!(undo.letters(1.0, &mut [0.0; 9], None).is_err());
    assert!(undo.sums(1.0, Some(0)).is_err());
}

/// No error text holds a value of the data.
#[test]
fn errors_hold_no_values() {
    let rotation = rotation(2, RotationKind::Hadamard);
    let rotated = Rotated { rotation: &rotation, numbers: &[0] };
    let error = rotated.rotate(&[f64::INFINITY, 0.123_456], &mut [0.0; 32], None).unwrap_err();
    assert!(error.to_string().contains("element 0") && !error.to_string().contains("123"));
}
