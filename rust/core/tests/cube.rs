//! Whole records of signs: every instruction set, thread count and split gives the same answer, and that answer follows
//! the law, which is what `epsilon` says.

use bitldp_core::{Call, Channel, Cube, Error, Grid, GridRounding, Input, Isa, Output, Probability};
use proptest::prelude::*;

mod common;
use common::{key, left_behind};

fn probability(p: f64) -> Probability {
    Probability::from_numerator((p * 2f64.powi(64)) as u128).unwrap()
}

fn cube(bits: u32, near: u32, far: u32, p: f64) -> Cube {
    Cube::new(bits, near, far, probability(p)).unwrap()
}

fn choose(n: u32, k: u32) -> f64 {
    (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1))
}

/// The probability of one string that agrees with the input in `a` positions, written out.
fn chance(cube: &Cube, a: u32) -> f64 {
    let (r, p) = (cube.bits(), cube.high().to_f64());
    let near: f64 = (cube.near()..=r).map(|a| choose(r, a)).sum();
    let far: f64 = (0..=cube.far()).map(|a| choose(r, a)).sum();
    f64::from(u8::from(a >= cube.near())) * p / near + f64::from(u8::from(a <= cube.far())) * (1.0 - p) / far
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn records_do_not_depend_on_the_instruction_set(bits in 1u32..300, records in 0usize..200, position in 0.0f64..1.0, seed in 0u8..9) {
        let near = 1 + (position * f64::from(bits)) as u32;
        let channel = cube(bits, near.min(bits), near.min(bits) - 1, 0.7);
        let total = records * bits as usize;
        let x: Vec<u8> = (0..total).map(|i| (i * 7 % 3 % 2) as u8).collect();
        let run = |isa: Isa, threads: usize| {
            let mut out = vec![7u8; total];
            let key = key(seed);
            let call = Call::new(None, Input::U8(&x), Output::Bits(&mut out), &key);
            channel.randomize_on(isa, Call { threads: Some(threads), ..call }).unwrap();
            out
        };
        let expected = run(Isa::Scalar, 1);
        prop_assert!(expected.iter().all(|&bit| bit <= 1));
        for &isa in Isa::available() {
            prop_assert_eq!(&run(isa, 1), &expected);
            prop_assert_eq!(&run(isa, 3), &expected);
        }
        let mut packed = vec![7u8; total.div_ceil(8)];
        channel.randomize(Call::new(None, Input::U8(&x), Output::Packed(&mut packed), &key(seed))).unwrap();
        for (byte, ones) in packed.iter().zip(expected.chunks(8)) {
            prop_assert_eq!(*byte, ones.iter().enumerate().fold(0, |byte, (i, bit)| byte | bit << (7 - i)));
        }
        let (mut single, mut double) = (vec![0f32; total], vec![0f64; total]);
        let letters = Some(&[-1.5, 2.5][..]);
        channel.randomize(Call { letters, ..Call::new(None, Input::U8(&x), Output::F32(&mut single), &key(seed)) }).unwrap();
        channel.randomize(Call { letters, ..Call::new(None, Input::U8(&x), Output::F64(&mut double), &key(seed)) }).unwrap();
        for ((bit, single), double) in expected.iter().zip(single).zip(double) {
            prop_assert_eq!((f64::from(single), double), ([-1.5, 2.5][usize::from(*bit)], [-1.5, 2.5][usize::from(*bit)]));
        }
    }

    #[test]
    fn numbers_at_the_ends_are_bits(bits in 1u32..600, records in 0usize..40, seed in 0u8..9) {
        let channel = cube(bits, bits / 2 + 1, bits / 2, 0.6);
        let grid = Grid::new(2, -3.0, 5.0, GridRounding::Dither, true).unwrap();
        let x: Vec<u8> = (0..records * bits as usize).map(|i| (i * 5 % 7 % 2) as u8).collect();
        let single: Vec<f32> = x.iter().map(|&bit| [-3.0, 5.0][usize::from(bit)]).collect();
        let double: Vec<f64> = x.iter().map(|&bit| [-9.0, 7.0][usize::from(bit)]).collect();
        let mut outs = vec![vec![7u8; x.len()]; 2 + Isa::available().len()];
        let (head, tail) = outs.split_at_mut(2);
        channel.randomize(Call::new(None, Input::U8(&x), Output::Bits(&mut head[0]), &key(seed))).unwrap();
        channel.randomize(Call::new(Some(&grid), Input::F32(&single), Output::Bits(&mut head[1]), &key(seed))).unwrap();
        for (&isa, out) in Isa::available().iter().zip(tail) {
            channel.randomize_on(isa, Call::new(Some(&grid), Input::F64(&double), Output::Bits(out), &key(seed))).unwrap();
        }
        prop_assert!(outs.iter().all(|out| *out == outs[0]));
    }
}

#[test]
fn threads_and_splits_change_nothing() {
    for (bits, real) in [(13u32, false), (13, true), (768, true), (5000, false)] {
        let channel = cube(bits, bits / 2 + 1, bits / 2, 0.8);
        let grid = Grid::new(2, -1.0, 1.0, GridRounding::Dither, true).unwrap();
        let records = 2 * channel.chunk() + 5;
        let total = records * bits as usize;
        let numbers: Vec<f32> = (0..total).map(|i| (i * 7 % 13) as f32 / 6.0 - 1.0).collect();
        let signs: Vec<u8> = (0..total).map(|i| (i % 3 % 2) as u8).collect();
        let run = |range: std::ops::Range<usize>, first_chunk, threads| {
            let values = range.start * bits as usize..range.end * bits as usize;
            let mut out = vec![7u8; values.len()];
            let (grid, input) = if real {
                (Some(&grid), Input::F32(&numbers[values]))
            } else {
                (None, Input::U8(&signs[values]))
            };
            channel
                .randomize(Call {
                    first_chunk,
                    threads,
                    ..Call::new(grid, input, Output::Bits(&mut out), &key(1))
                })
                .unwrap();
            out
        };
        let whole = run(0..records, 0, Some(1));
        for threads in [None, Some(2), Some(3), Some(7)] {
            assert_eq!(run(0..records, 0, threads), whole);
        }
        let chunk = channel.chunk();
        assert_eq!([run(0..chunk, 0, None), run(chunk..records, 1, None)].concat(), whole);
    }
}

/// Chi-square of n = 2^17 records against the exact law over all strings, for every threshold of 1 to 6 bits; α = 1e-6 by
/// the bound of Laurent and Massart (2000): a chi-square with k degrees of freedom is above k + 2 sqrt(kx) + 2x with
/// probability below e^-x. The key is fixed.
#[test]
fn records_follow_the_joint_law() {
    const N: usize = 1 << 17;
    for bits in 1..=6u32 {
        for (near, far) in (0..=bits).map(|near| (near, near)).chain((1..=bits).map(|near| (near, near - 1)))
        {
            let channel = cube(bits, near, far, 0.6);
            let v = 0b10_0110usize & ((1 << bits) - 1);
            let record: Vec<u8> = (0..bits).map(|i| (v >> (bits - 1 - i) & 1) as u8).collect();
            let x = record.repeat(N);
            let mut out = vec![0u8; x.len()];
            channel.randomize(Call::new(None, Input::U8(&x), Output::Bits(&mut out), &key(4))).unwrap();
            let mut counts = vec![0f64; 1 << bits];
            for string in out.chunks_exact(bits as usize) {
                counts[string.iter().fold(0, |code, &bit| code << 1 | usize::from(bit))] += 1.0;
            }
            let chi: f64 = (0..1usize << bits)
                .map(|z| {
                    let mean = chance(&channel, bits - (z ^ v).count_ones()) * N as f64;
                    (counts[z] - mean).powi(2) / mean
                })
                .sum();
            let (k, x) = (f64::from((1u32 << bits) - 1), 1e6f64.ln());
            let bound = k + 2.0 * (k * x).sqrt() + 2.0 * x;
            assert!(chi < bound, "{bits} bits, {near}, {far}: {chi} against {bound}");
        }
    }
}

/// The number of agreements of long records, in both ways of drawing positions: n = 40,000, four classes, 3 degrees of
/// freedom, α = 1e-6: 30.7. The key is fixed. So is the mean of one position.
#[test]
fn long_records_follow_the_law_of_agreements() {
    for bits in [768u32, 5000] {
        let n = 40_000 / (bits as usize / 768);
        let near = bits / 2 + 10;
        let channel = cube(bits, near, near - 1, 0.6);
        let x = vec![1u8; n * bits as usize];
        let mut out = vec![0u8; x.len()];
        channel.randomize(Call::new(None, Input::U8(&x), Output::Bits(&mut out), &key(6))).unwrap();
        // Weights relative to the middle one; the ratio is all that matters.
        let mut weights = vec![1f64; bits as usize + 1];
        for a in bits / 2..bits {
            weights[a as usize + 1] = weights[a as usize] * f64::from(bits - a) / f64::from(a + 1);
        }
        for a in (0..bits / 2).rev() {
            weights[a as usize] = weights[a as usize + 1] * f64::from(a + 1) / f64::from(bits - a);
        }
        let sum = |range: std::ops::Range<u32>| {
            weights[range.start as usize..range.end as usize].iter().sum::<f64>()
        };
        let cuts = [0, bits / 2, near, near + 12, bits + 1];
        let expected: Vec<f64> = cuts
            .windows(2)
            .map(|cut| {
                if cut[0] >= near {
                    0.6 * sum(cut[0]..cut[1]) / sum(near..bits + 1)
                } else {
                    0.4 * sum(cut[0]..cut[1]) / sum(0..near)
                }
            })
            .collect();
        let mut counts = [0f64; 4];
        for record in out.chunks_exact(bits as usize) {
            let a: u32 = record.iter().map(|&bit| u32::from(bit)).sum();
            counts[cuts.iter().rposition(|&cut| cut <= a).unwrap()] += 1.0;
        }
        let chi: f64 =
            (0..4).map(|i| (counts[i] - expected[i] * n as f64).powi(2) / (expected[i] * n as f64)).sum();
        assert!(chi < 30.7, "{bits} bits: {chi}, {counts:?} against {expected:?}");
        // First, middle and last place agree equally often: five standard errors.
        for position in [0, bits as usize / 2, bits as usize - 1] {
            let ones =
                out.iter().skip(position).step_by(bits as usize).map(|&bit| f64::from(bit)).sum::<f64>();
            let all = out.iter().map(|&bit| f64::from(bit)).sum::<f64>() / f64::from(bits);
            assert!((ones - all).abs() < 5.0 * (n as f64 / 4.0).sqrt(), "position {position}");
        }
    }
}

/// The exact ε is that of the enumerated law, over all reports and all pairs of inputs.
#[test]
fn epsilon_is_that_of_the_enumerated_law() {
    for bits in 1..=6u32 {
        for (near, far) in (0..=bits).map(|near| (near, near)).chain((1..=bits).map(|near| (near, near - 1)))
        {
            for p in [0.1, 0.5, 0.9] {
                let channel = cube(bits, near, far, p);
                let mut worst = 0f64;
                for z in 0..1u32 << bits {
                    for v in 0..1u32 << bits {
                        for w in 0..1u32 << bits {
                            let of = |v: u32| chance(&channel, bits - (z ^ v).count_ones());
                            worst = worst.max((of(v) / of(w)).ln());
                        }
                    }
                }
                let exact = channel.epsilon();
                assert!(
                    (exact - worst).abs() <= 1e-12 * (1.0 + worst),
                    "{bits}, {near}, {far}, {p}: {exact} {worst}"
                );
                if worst.is_infinite() {
                    assert_eq!(exact, worst);
                }
            }
        }
    }
    assert_eq!(cube(5, 3, 2, 1.0).epsilon(), f64::INFINITY);
    assert_eq!(cube(5, 3, 2, 0.5).epsilon(), 0.0);
}

#[test]
fn another_probability_shares_the_sets() {
    let channel = cube(64, 40, 39, 0.5);
    let other = channel.with_high(probability(0.75));
    assert_eq!((other.high(), other.sizes()), (probability(0.75), channel.sizes()));
    assert_eq!(other.epsilon(), cube(64, 40, 39, 0.75).epsilon());
}

#[test]
fn what_does_not_fit_leaves_the_output_and_refused_values_leave_zeros() {
    let half = Probability::HALF;
    for (bits, near, far, name) in [
        (0, 0, 0, "bits"),
        ((1 << 22) + 1, 2, 1, "bits"),
        (5, 6, 5, "near"),
        (5, 3, 1, "far"),
        (5, 3, 4, "far"),
        (5, 0, u32::MAX, "far"),
    ] {
        let wrong = |error| matches!(error, Error::Argument { name: wrong, .. } if wrong == name);
        assert!(Cube::new(bits, near, far, half).err().is_some_and(wrong), "{bits}, {near}, {far}");
    }
    let channel = cube(3, 2, 1, 0.5);
    let grid = Grid::new(2, -1.0, 1.0, GridRounding::Dither, true).unwrap();
    let three = Grid::new(3, -1.0, 1.0, GridRounding::Dither, true).unwrap();
    let mut out = [9u8; 6];
    let mut run = |grid: Option<&Grid>, input: Input<'_>, length: usize, first_chunk: u64| {
        let result = channel.randomize(Call {
            first_chunk,
            ..Call::new(grid, input, Output::Bits(&mut out[..length]), &key(1))
        });
        let error = left_behind(&mut out[..length], 9, result);
        assert_eq!(out, [9; 6], "nothing beyond it is written");
        error
    };
    assert!(matches!(
        run(None, Input::U8(&[0, 1, 0, 1, 2, 3]), 6, 0),
        Error::Value { name: "x", index: 4, .. }
    ));
    let nan = [0.0, 1.0, -1.0, 0.5, 0.5, f32::NAN];
    assert!(matches!(run(Some(&grid), Input::F32(&nan), 6, 0), Error::Value { name: "x", index: 5, .. }));
    assert!(matches!(run(None, Input::U8(&[0; 5]), 5, 0), Error::Shape { name: "x", .. }));
    assert!(matches!(run(None, Input::U8(&[0; 6]), 5, 0), Error::Output { .. }));
    assert!(matches!(run(None, Input::F32(&[0.0; 6]), 6, 0), Error::Argument { name: "x", .. }));
    assert!(matches!(run(None, Input::I64(&[0; 6]), 6, 0), Error::Argument { name: "x", .. }));
    assert!(matches!(run(Some(&grid), Input::U8(&[0; 6]), 6, 0), Error::Argument { name: "x", .. }));
    assert!(matches!(run(Some(&three), Input::F32(&[0.0; 6]), 6, 0), Error::Argument { name: "grid", .. }));
    assert!(matches!(run(None, Input::U8(&[0; 6]), 6, 1 << 56), Error::Argument { name: "first_chunk", .. }));
    // The stream's last chunk is one, in whatever form its reports leave.
    let last = (1 << 56) - 1;
    channel
        .randomize(Call {
            first_chunk: last,
            ..Call::new(None, Input::U8(&[0; 6]), Output::Bits(&mut [0; 6]), &key(1))
        })
        .unwrap();
    let long = cube(1 << 14, 1 << 13, 1 << 13, 0.5);
    let x = vec![0; 1 << 14];
    let mut values = vec![0.0; 1 << 14];
    let letters = Some(&[-1.0, 1.0][..]);
    let mut run = |first| {
        let out = Output::F32(&mut values);
        long.randomize(Call { letters, first_chunk: first, ..Call::new(None, Input::U8(&x), out, &key(1)) })
    };
    assert_eq!(run(last), Ok(()));
    assert!(matches!(run(last + 1), Err(Error::Argument { name: "first_chunk", .. })));
    let codes = Output::U16(&mut [0; 6]);
    let refused = channel.randomize(Call::new(None, Input::U8(&[0; 6]), codes, &key(1)));
    assert!(matches!(refused, Err(Error::Argument { name: "output", .. })));
    let values = Output::F32(&mut [0.0; 6]);
    let refused = channel.randomize(Call::new(None, Input::U8(&[0; 6]), values, &key(1)));
    assert!(matches!(refused, Err(Error::Argument { name: "output", .. })));
    let refused = channel.randomize(Call {
        threads: Some(0),
        ..Call::new(None, Input::U8(&[0; 6]), Output::Bits(&mut [0; 6]), &key(1))
    });
    assert!(matches!(refused, Err(Error::Argument { name: "threads", .. })));
}
