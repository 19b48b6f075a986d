//! One-hot strings: every instruction set, thread count and split gives the same answer, and that answer follows the law.

use bitldp_core::{Bit, Call, Channel, Input, Isa, Output, Unary};
use proptest::prelude::*;

mod common;
use common::key;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn one_hot_strings_do_not_depend_on_the_instruction_set(categories in 2usize..300, records in 0usize..700, seed in 0u8..9) {
        let channel = Unary::new(categories, Bit::new(0.5, 0.25).unwrap()).unwrap();
        let x: Vec<i64> = (0..records as i64).map(|i| i * 7 % categories as i64).collect();
        let run = |isa: Isa, threads: usize| {
            let mut out = vec![7u8; records * categories];
            let key = key(seed);
            let call = Call::new((), Input::I64(&x), Output::Bits(&mut out), &key);
            channel.randomize_on(isa, Call { threads: Some(threads), ..call }).unwrap();
            out
        };
        let expected = run(Isa::Scalar, 1);
        prop_assert!(expected.iter().all(|&bit| bit <= 1));
        for &isa in Isa::available() {
            prop_assert_eq!(&run(isa, 1), &expected);
            prop_assert_eq!(&run(isa, 3), &expected);
        }
        let mut packed = vec![7u8; expected.len().div_ceil(8)];
        channel.randomize(Call::new((), Input::I64(&x), Output::Packed(&mut packed), &key(seed))).unwrap();
        for (byte, ones) in packed.iter().zip(expected.chunks(8)) {
            prop_assert_eq!(*byte, ones.iter().enumerate().fold(0, |byte, (i, bit)| byte | bit << (7 - i)));
        }
    }
}

#[test]
fn threads_and_splits_change_nothing() {
    let channel = Unary::new(21, Bit::new(0.5, 0.25).unwrap()).unwrap();
    let x: Vec<u8> = (0..2 * channel.chunk() + 5).map(|i| (i % 21) as u8).collect();
    let bits = |x: &[u8], first_chunk, threads| {
        let mut out = vec![7u8; 21 * x.len()];
        channel
            .randomize(Call {
                first_chunk,
                threads,
                ..Call::new((), Input::U8(x), Output::Bits(&mut out), &key(1))
            })
            .unwrap();
        out
    };
    let whole = bits(&x, 0, Some(1));
    for threads in [None, Some(2), Some(3), Some(7)] {
        assert_eq!(bits(&x, 0, threads), whole);
    }
    let (head, tail) = x.split_at(channel.chunk());
    assert_eq!([bits(head, 0, None), bits(tail, 1, None)].concat(), whole);
}

/// Chi-square of n = 2^20 one-hot strings of 9 positions (two bytes) against the exact joint law: 511 degrees of freedom,
/// whose quantile at α = 1e-6 is 673. The key is fixed.
#[test]
fn one_hot_strings_follow_the_joint_law() {
    const N: usize = 1 << 20;
    let bit = Bit::new(0.5, 0.3).unwrap();
    let channel = Unary::new(9, bit).unwrap();
    for category in [0u8, 7, 8] {
        let x = vec![category; N];
        let mut out = vec![0u8; 9 * N];
        channel.randomize(Call::new((), Input::U8(&x), Output::Bits(&mut out), &key(4))).unwrap();
        let mut counts = vec![0f64; 512];
        for string in out.chunks_exact(9) {
            counts[string.iter().fold(0, |code, &bit| code << 1 | usize::from(bit))] += 1.0;
        }
        let chi: f64 = (0..512)
            .map(|code: usize| {
                let chance: f64 = (0..9)
                    .map(|position| {
                        let one = if position == usize::from(category) { bit.p } else { bit.q };
                        if code >> (8 - position) & 1 == 1 { one.to_f64() } else { one.complement().to_f64() }
                    })
                    .product();
                (counts[code] - chance * N as f64).powi(2) / (chance * N as f64)
            })
            .sum();
        assert!(chi < 673.0, "category {category}: chi-square {chi}");
    }
}

/// The exact ε on one-hot input is that of the enumerated distribution: 3 categories, 8 reports.
#[test]
fn one_hot_epsilon_is_that_of_the_enumerated_distribution() {
    for (p, q) in [(0.6, 0.2), (0.2, 0.6), (0.5, 0.5), (1.0, 0.25), (0.5, 0.0), (1.0, 0.0), (1.0, 1.0)] {
        let bit = Bit::new(p, q).unwrap();
        let chance = |x: usize, z: usize| -> f64 {
            (0..3)
                .map(|i| {
                    let one = if i == x { bit.p } else { bit.q };
                    if z >> i & 1 == 1 { one.to_f64() } else { one.complement().to_f64() }
                })
                .product()
        };
        let worst = (0..8)
            .flat_map(|z| (0..3).flat_map(move |x| (0..3).map(move |y| (x, y, z))))
            .filter(|&(x, _, z)| chance(x, z) > 0.0)
            .map(|(x, y, z)| (chance(x, z) / chance(y, z)).ln())
            .fold(0.0, f64::max);
        let exact = Unary::new(3, bit).unwrap().epsilon();
        let near = (exact - worst).abs() <= 1e-12 * worst || exact == worst;
        assert!(near, "p={p}, q={q}: {exact} against {worst}");
    }
}
