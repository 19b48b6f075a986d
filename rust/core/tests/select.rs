//! Selection: every instruction set, thread count and split gives the same answer, and that answer follows the law.

use bitldp_core::{Call, Channel, Error, Input, Isa, Output, Select};
use proptest::prelude::*;

mod common;
use common::{chi_square, chi_square_limit, key, left_behind, scrambled};

fn codes(
    channel: &Select,
    isa: Isa,
    input: Input<'_>,
    seed: u8,
    first_chunk: u64,
    threads: usize,
) -> Vec<u32> {
    let mut out = vec![u32::MAX; input.len() / channel.dimensions() as usize];
    channel
        .randomize_on(
            isa,
            Call {
                first_chunk,
                threads: Some(threads),
                ..Call::new(None, input, Output::U32(&mut out), &key(seed))
            },
        )
        .unwrap();
    out
}

/// Numbers of either sign, a good part of them equal in size.
fn vectors(count: usize, distinct: u32) -> Vec<f32> {
    (0..count).map(|i| (scrambled(i) % distinct) as f32 * if i % 3 == 0 { -0.25 } else { 0.25 }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn selections_do_not_depend_on_the_instruction_set(d in 2u32..2000, n in 0usize..80, distinct in 1u32..5000, seed in 0u8..9) {
        let channel = Select::new(&[d / 2, d - d / 2], &[1 << 40, 3 << 40], Some(1 << 42)).unwrap();
        let x = vectors(n * d as usize, distinct);
        let doubles: Vec<f64> = x.iter().map(|&x| x.into()).collect();
        let expected = codes(&channel, Isa::Scalar, Input::F32(&x), seed, 0, 1);
        prop_assert!(expected.iter().all(|&code| code <= d));
        for &isa in Isa::available() {
            prop_assert_eq!(&codes(&channel, isa, Input::F32(&x), seed, 0, 3), &expected);
            prop_assert_eq!(&codes(&channel, isa, Input::F64(&doubles), seed, 0, 1), &expected);
        }
    }
}

#[test]
fn splits_change_nothing_and_packed_reports_are_the_codes() {
    let channel = Select::new(&[900, 100], &[1, 20], None).unwrap();
    let x = vectors(1000 * (channel.chunk() + 7), 100_000);
    let whole = codes(&channel, Isa::Scalar, Input::F32(&x), 1, 5, 1);
    let (head, tail) = x.split_at(1000 * channel.chunk());
    let parts = [
        codes(&channel, Isa::Scalar, Input::F32(head), 1, 5, 2),
        codes(&channel, Isa::Scalar, Input::F32(tail), 1, 6, 2),
    ];
    assert_eq!(parts.concat(), whole);
    let mut packed = vec![0; (whole.len() * 10).div_ceil(8)];
    channel
        .randomize(Call {
            first_chunk: 5,
            ..Call::new(None, Input::F32(&x), Output::Packed(&mut packed), &key(1))
        })
        .unwrap();
    assert_eq!(bitldp_core::unpack::<u32>(&packed, channel.report_bits(), whole.len()).unwrap(), whole);
}

/// n = 2^17 vectors of 9 numbers, two of them equal; alpha = 1e-6; the key is fixed.
#[test]
fn selections_follow_the_law() {
    let weights = [3u64, 5, 8, 13, 21, 34, 55, 89, 144];
    let channel = Select::new(&[1; 9], &weights, Some(50)).unwrap();
    assert_eq!((channel.total(), channel.nothing(), channel.outputs()), (422, Some(50), 10));
    let vector = [4.0, -3.0, 9.0, -0.0, 3.0, 1.0, -8.0, 2.0, 5.0];
    // Sizes in order: 0, 1, 2, 3, 3, 4, 5, 8, 9.
    let ranks: [&[u64]; 9] = [&[34], &[13, 21], &[144], &[3], &[13, 21], &[5], &[89], &[8], &[55]];
    let mut law: Vec<f64> =
        ranks.iter().map(|own| own.iter().sum::<u64>() as f64 / own.len() as f64 / 422.0).collect();
    law.push(50.0 / 422.0);
    let reports = codes(&channel, Isa::current().unwrap(), Input::F64(&vector.repeat(1 << 17)), 2, 0, 2);
    let (statistic, degrees) = chi_square(&reports, &law);
    assert!(statistic < chi_square_limit(degrees), "{statistic}");
}

#[test]
fn epsilon_is_the_log_ratio_of_the_weights() {
    let epsilon = |weights: &[u64]| Select::new(&vec![2; weights.len()], weights, Some(7)).unwrap().epsilon();
    assert_eq!(epsilon(&[5, 5, 5]), 0.0);
    assert!((epsilon(&[4, 9, 2]) - 4.5f64.ln()).abs() < 1e-14);
    assert_eq!(epsilon(&[0, 1]), f64::INFINITY);
}

#[test]
fn what_cannot_be_selected_from_leaves_the_output_or_zeros() {
    let channel = Select::new(&[3], &[1], None).unwrap();
    let mut out = [77u8; 2];
    let mut refused = |input: Input<'_>| {
        let result = channel.randomize(Call::new(None, input, Output::U8(&mut out), &key(1)));
        left_behind(&mut out, 77, result)
    };
    for bad in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let index = |error| match error {
            Error::Value { index, .. } => index,
            other => panic!("{other}"),
        };
        assert_eq!(index(refused(Input::F64(&[1.0, 2.0, 3.0, 4.0, bad, bad]))), 4);
        assert_eq!(index(refused(Input::F32(&[1.0, 2.0, 3.0, bad as f32, 5.0, 6.0]))), 3);
    }
    assert!(matches!(refused(Input::F64(&[1.0; 5])), Error::Shape { .. }));
    assert!(matches!(refused(Input::I64(&[1; 6])), Error::Argument { .. }));
    assert!(matches!(refused(Input::F64(&[1.0; 9])), Error::Output { .. }));
    let mut values = [0f32; 2];
    let error = channel.randomize(Call::new(None, Input::F64(&[1.0; 6]), Output::F32(&mut values), &key(1)));
    assert!(matches!(error, Err(Error::Argument { .. })));
}

#[test]
fn laws_that_are_none_are_refused() {
    for (counts, weights) in [(&[1u32][..], &[1u64][..]), (&[2, 0], &[1, 1]), (&[2], &[1, 1]), (&[2], &[0])] {
        assert!(Select::new(counts, weights, None).is_err());
    }
    assert!(Select::new(&[u32::MAX - 1, 1], &[1, 1], None).is_err());
    assert!(Select::new(&[u32::MAX - 1], &[1], Some(1)).is_ok());
}
