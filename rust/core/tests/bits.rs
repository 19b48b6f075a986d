//! The bit channels: every instruction set, thread count and split gives the scalar oracle's answer, and that answer
//! follows the law.

use bitldp_core::{
    Bit, Bits, CHUNK, Call, Channel, Error, FixedPoint, Infinities, Input, Isa, Key, Output, SignBit,
};
use common::left_behind;
use proptest::prelude::*;

mod common;

fn key(seed: u8) -> Key {
    Key::from_bytes(std::array::from_fn(|i| seed.wrapping_mul(31).wrapping_add(i as u8)))
}

/// A law of `bits` bits with flip probabilities that differ from bit to bit.
fn symmetric(bits: usize) -> Vec<Bit> {
    (0..bits).map(|i| 0.29 + 0.21 * i as f64 / bits as f64).map(|q| Bit::new(1.0 - q, q).unwrap()).collect()
}

fn asymmetric(bits: usize) -> Vec<Bit> {
    (0..bits)
        .map(|i| Bit::new(if i % 2 == 0 { 0.9 } else { 0.001 }, 0.05 + 0.3 * i as f64 / bits as f64).unwrap())
        .collect()
}

fn codec(bits: u32) -> FixedPoint {
    FixedPoint::new(bits, bits / 2, SignBit::OneIfNonNegative, Infinities::Refuse).unwrap()
}

/// Values of all sizes and both signs.
fn values(n: usize) -> Vec<f64> {
    (0..n).map(|i| ((i as f64) * 0.7311).sin() * 2f64.powi((i % 23) as i32 - 6)).collect()
}

fn codes_on(
    isa: Isa,
    channel: &Bits,
    x: &[f32],
    key: &Key,
    first_chunk: u64,
    threads: Option<usize>,
) -> Vec<u32> {
    let codec = codec(channel.bits());
    let mut out = vec![0u32; x.len()];
    channel
        .randomize_on(
            isa,
            Call {
                first_chunk,
                threads,
                ..Call::new(Some(&codec), Input::F32(x), Output::U32(&mut out), key)
            },
        )
        .unwrap();
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_instruction_set_gives_the_oracles_codes(
        bits in 1u32..=32, records in 0usize..100, features in 1usize..30, seed in 0u8..9,
        is_symmetric: bool, classes in 1u32..11, first_chunk in 0u64..3,
    ) {
        let law = |shift: usize| {
            let mut law = if is_symmetric { symmetric(bits as usize) } else { asymmetric(bits as usize) };
            law.rotate_left(shift % bits as usize);
            law
        };
        // Some of them are followed by no feature, and of many laws the kernels blend none.
        let pattern = (classes > 1).then(|| (0..features as u32).map(|j| j % classes).collect());
        let laws = (0..classes as usize).map(law).collect();
        let channel = Bits::new(laws, features, pattern).unwrap();
        let most = u32::MAX >> (32 - bits);
        let input: Vec<u32> = (0..(records * features) as u32).map(|i| i.wrapping_mul(2_654_435_769) & most).collect();
        let run = |isa: Isa| {
            let mut out = vec![0; input.len()];
            let key = key(seed);
            let call = Call::new(None, Input::U32(&input), Output::U32(&mut out), &key);
            channel.randomize_on(isa, Call { first_chunk, ..call }).unwrap();
            out
        };
        let expected = run(Isa::Scalar);
        prop_assert!(expected.iter().all(|&code| code <= most));
        for &isa in Isa::available() {
            prop_assert_eq!(run(isa), expected.clone(), "{}", isa);
        }
    }

    #[test]
    fn every_form_of_output_says_the_same(bits in 2u32..=32, records in 1usize..300, seed in 0u8..9, is_symmetric: bool) {
        let law = if is_symmetric { symmetric(bits as usize) } else { asymmetric(bits as usize) };
        let channel = Bits::new(vec![law], 3, None).unwrap();
        let codec = codec(bits);
        let double = values(3 * records);
        let single: Vec<f32> = double.iter().map(|&x| x as f32).collect();
        let width = bits as usize;
        for &isa in Isa::available() {
            let run = |output: Output<'_>| {
                channel.randomize_on(isa, Call::new(Some(&codec), Input::F32(&single), output, &key(seed))).unwrap();
            };
            let expected = codes_on(Isa::Scalar, &channel, &single, &key(seed), 0, None);
            let mut ones = vec![7u8; width * single.len()];
            run(Output::Bits(&mut ones));
            for (i, &bit) in ones.iter().enumerate() {
                prop_assert_eq!(u32::from(bit), expected[i / width] >> (width - 1 - i % width) & 1);
            }
            let mut packed = vec![7u8; ones.len().div_ceil(8)];
            run(Output::Packed(&mut packed));
            for (byte, ones) in packed.iter().zip(ones.chunks(8)) {
                let held = ones.iter().enumerate().fold(0, |byte, (i, bit)| byte | bit << (7 - i));
                prop_assert_eq!(*byte, held);
            }
            let (mut f32s, mut f64s) = (vec![0f32; single.len()], vec![0f64; single.len()]);
            run(Output::F32(&mut f32s));
            run(Output::F64(&mut f64s));
            for (i, &code) in expected.iter().enumerate() {
                prop_assert_eq!(f32s[i].to_bits(), codec.decode::<f32>(code).to_bits());
                prop_assert_eq!(f64s[i].to_bits(), codec.decode::<f64>(code).to_bits());
            }
            if bits <= 16 {
                let mut narrow = vec![0u16; single.len()];
                run(Output::U16(&mut narrow));
                prop_assert!(narrow.iter().zip(&expected).all(|(&a, &b)| u32::from(a) == b));
            }
            // Double precision input that single precision represents takes the same codes.
            let widened: Vec<f64> = single.iter().map(|&x| f64::from(x)).collect();
            let mut from_double = vec![0u32; single.len()];
            channel
                .randomize_on(isa, Call::new(Some(&codec), Input::F64(&widened), Output::U32(&mut from_double), &key(seed)))
                .unwrap();
            prop_assert_eq!(&from_double, &expected);
        }
    }
}

#[test]
fn threads_and_splits_change_nothing() {
    // Records of three features: chunks end inside a record, but a cut is a whole number of both.
    const CUT: usize = 3 * CHUNK;
    let x: Vec<u16> =
        (0..2 * CUT as u32 + 3 * 77).map(|i| (i.wrapping_mul(2_654_435_769) >> 22) as u16).collect();
    let turned = |by| {
        let mut law = asymmetric(10);
        law.rotate_left(by);
        law
    };
    let channels = [
        Bits::new(vec![symmetric(10)], 3, None).unwrap(),
        Bits::new(vec![asymmetric(10)], 3, None).unwrap(),
        Bits::new(vec![turned(0), turned(3)], 3, Some(vec![0, 1, 1])).unwrap(),
    ];
    for (channel, &isa) in
        channels.iter().flat_map(|channel| Isa::available().iter().map(move |isa| (channel, isa)))
    {
        let packed = |x: &[u16], first_chunk, threads| {
            let mut out = vec![7u8; (10 * x.len()).div_ceil(8)];
            channel
                .randomize_on(
                    isa,
                    Call {
                        first_chunk,
                        threads,
                        ..Call::new(None, Input::U16(x), Output::Packed(&mut out), &key(1))
                    },
                )
                .unwrap();
            out
        };
        let whole = packed(&x, 0, Some(1));
        for threads in [None, Some(2), Some(3), Some(7)] {
            assert_eq!(packed(&x, 0, threads), whole);
        }
        for cut in [1, 2] {
            let (head, tail) = x.split_at(cut * CUT);
            let joined = [packed(head, 0, None), packed(tail, 3 * cut as u64, None)].concat();
            assert_eq!(joined, whole);
        }
    }
}

/// The stream is part of the interface: a change here breaks everybody's reproducible experiments, and must be in
/// CHANGELOG.md.
#[test]
fn golden_streams() {
    let digest = |codes: &[u32]| {
        codes.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, &c| (h ^ u64::from(c)).wrapping_mul(0x100_0000_01b3))
    };
    let x: Vec<f32> = (0..CHUNK + 1000).map(|i| i as f32 / 512.0 - 8.0).collect();
    let golden = |law: Vec<Bit>| {
        let channel = Bits::new(vec![law], 1, None).unwrap();
        let codes = codes_on(Isa::Scalar, &channel, &x, &key(0), 0, None);
        (codes[..4].to_vec(), digest(&codes))
    };
    let seen: Vec<_> = [2usize, 8, 10, 12, 16, 20, 32]
        .map(symmetric)
        .into_iter()
        .chain([asymmetric(10), asymmetric(32)])
        .map(golden)
        .collect();
    assert_eq!(seen, expected_streams());
}

fn expected_streams() -> Vec<(Vec<u32>, u64)> {
    vec![
        (vec![3, 1, 1, 3], 3747187651870046278),
        (vec![178, 191, 62, 165], 5523535359592050131),
        (vec![658, 189, 19, 549], 9296854898133661942),
        (vec![1330, 373, 61, 421], 2265678419407670329),
        (vec![54770, 50558, 33022, 1893], 179511204343828804),
        (vec![80114, 847068, 3697, 352231], 5829582183608651412),
        (vec![1077989874, 1089485122, 4357249, 2199321562], 11141278895357155098),
        (vec![145, 42, 42, 42], 12744691409084168711),
        (vec![135275556, 174726, 174723, 2238065156], 9655012470007316980),
    ]
}

/// Chi-square of the flip masks of n = 2^21 code words of 10 bits against the exact product law: 1023 degrees of freedom,
/// whose quantile at α = 1e-6 is 1243. The key is fixed, so the test cannot flake.
#[test]
fn flips_follow_the_law() {
    const N: usize = 1 << 21;
    for law in [symmetric(10), asymmetric(10)] {
        for input in [0u16, 0x3ff, 0x2a5] {
            let channel = Bits::new(vec![law.clone()], 1, None).unwrap();
            let x = vec![input; N];
            let mut out = vec![0u16; N];
            channel.randomize(Call::new(None, Input::U16(&x), Output::U16(&mut out), &key(5))).unwrap();
            let mut counts = vec![0f64; 1024];
            out.iter().for_each(|&code| counts[usize::from(code)] += 1.0);
            let chance = |code: usize| -> f64 {
                (0..10)
                    .map(|i| {
                        let bit = law[9 - i];
                        let one = if input >> i & 1 == 1 { bit.p } else { bit.q };
                        if code >> i & 1 == 1 { one.to_f64() } else { one.complement().to_f64() }
                    })
                    .product()
            };
            // Cells of fewer than five expected are put together, as the test asks for.
            let (mut chi, mut rest_seen, mut rest_expected) = (0.0, 0.0, 0.0);
            for (code, seen) in counts.iter().enumerate() {
                let expected = chance(code) * N as f64;
                if expected < 5.0 {
                    rest_seen += seen;
                    rest_expected += expected;
                } else {
                    chi += (seen - expected).powi(2) / expected;
                }
            }
            if rest_expected > 5.0 {
                chi += (rest_seen - rest_expected).powi(2) / rest_expected;
            }
            assert!(chi < 1243.0, "input {input:#x}: chi-square {chi}");
        }
    }
}

/// Certain bits are certain: no draw of n = 2^18 ever contradicts a probability of 0 or 1.
#[test]
fn extremes_are_exact() {
    let bit = |p: f64, q: f64| Bit::new(p, q).unwrap();
    let law = vec![bit(1.0, 0.0), bit(0.0, 1.0), bit(1.0, 1.0), bit(0.0, 0.0), bit(0.5, 0.5)];
    let channel = Bits::new(vec![law], 1, None).unwrap();
    assert_eq!(channel.epsilon(), f64::INFINITY);
    let x: Vec<u8> = (0..1 << 18).map(|i| (i % 32) as u8).collect();
    for &isa in Isa::available() {
        let mut out = vec![0u8; x.len()];
        channel.randomize_on(isa, Call::new(None, Input::U8(&x), Output::U8(&mut out), &key(3))).unwrap();
        for (x, z) in x.iter().zip(&out) {
            let expected = (x & 0b10000) | (!x & 0b01000) | 0b00100;
            assert_eq!(z & 0b11110, expected & 0b11110);
        }
        let ones = out.iter().filter(|&&z| z & 1 == 1).count() as f64;
        // Six standard deviations of a fair coin.
        assert!((ones - x.len() as f64 / 2.0).abs() < 6.0 * (x.len() as f64 / 4.0).sqrt());
    }
}

#[test]
fn exact_epsilon_is_that_of_the_enumerated_distribution() {
    // r = 1, l = 3: all 8 inputs and 8 reports.
    for law in [symmetric(3), asymmetric(3)] {
        let channel = Bits::new(vec![law.clone()], 1, None).unwrap();
        let chance = |x: usize, z: usize| -> f64 {
            (0..3)
                .map(|i| {
                    let one = if x >> i & 1 == 1 { law[2 - i].p } else { law[2 - i].q };
                    if z >> i & 1 == 1 { one.to_f64() } else { one.complement().to_f64() }
                })
                .product()
        };
        let worst = (0..8)
            .flat_map(|z| (0..8).flat_map(move |x| (0..8).map(move |y| (x, y, z))))
            .map(|(x, y, z)| (chance(x, z) / chance(y, z)).ln())
            .fold(0.0, f64::max);
        let exact = channel.epsilon();
        assert!(exact >= worst * (1.0 - 1e-14) && exact <= worst * (1.0 + 1e-12), "{exact} against {worst}");
    }
}

#[test]
fn what_does_not_fit_leaves_the_output_and_refused_values_leave_zeros() {
    let channel = Bits::new(vec![symmetric(10)], 4, None).unwrap();
    let codec = codec(10);
    let refused = |input: Input<'_>, length: usize| {
        let mut out = vec![9u16; length];
        let result = channel.randomize(Call::new(Some(&codec), input, Output::U16(&mut out), &key(0)));
        left_behind(&mut out, 9, result)
    };
    let mut x = vec![0.5f32; 4 * CHUNK];
    assert!(matches!(refused(Input::F32(&x[..7]), 7), Error::Shape { .. }));
    assert!(matches!(refused(Input::F32(&x), 7), Error::Output { .. }));
    x[4 * CHUNK - 1] = f32::NAN;
    let error = refused(Input::F32(&x), 4 * CHUNK);
    assert_eq!(
        error,
        Error::Value { name: "x", index: 4 * CHUNK - 1, reason: "NaN and infinities have no code".into() }
    );
    assert!(matches!(refused(Input::U16(&[1; 4]), 4), Error::Argument { .. }));
    let mut out = [9u16; 4];
    let result =
        channel.randomize(Call::new(None, Input::U16(&[1, 2, 3, 1024]), Output::U16(&mut out), &key(0)));
    assert!(matches!(left_behind(&mut out, 9, result), Error::Value { index: 3, .. }));
}
