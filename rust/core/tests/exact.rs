//! Channels from their integers: the getters of a channel make it again, with the same law and the same reports.

use bitldp_core::{
    Bit, Bits, Call, Cap, Channel, Cube, Design, DesignFamily, Error, Grid, GridRounding, Input, Matrix,
    Mixture, Output, Probability, Select, Shift, Subset, Unary, Window,
};
use proptest::prelude::*;

mod common;
use common::{key, scrambled};

/// Values of a call.
const VALUES: usize = 300;

/// Sampled probabilities: few of them are floats.
fn chance(numerator: u64) -> Probability {
    Probability::from_numerator(numerator.into()).unwrap()
}

/// Random inputs below `inputs`.
fn values(inputs: u32) -> Vec<u32> {
    (0..VALUES).map(|i| scrambled(i) % inputs).collect()
}

/// The packed reports of some inputs.
fn reports<'k, C, K>(
    channel: &C,
    codec: C::Codec<'k>,
    keys: K,
    input: Input<'_>,
    reports: usize,
) -> (f64, Vec<u8>)
where
    C: Channel<Keys<'k> = K>,
{
    let mut packed = vec![0; (reports * channel.report_bits() as usize).div_ceil(8)];
    channel.randomize(Call::new(codec, input, Output::Packed(&mut packed), keys)).unwrap();
    (channel.epsilon(), packed)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn windows_subsets_and_strings(high in 1u64.., p in 1u64.., q in 1u64.., mute: bool) {
        let (high, key) = (chance(high), key(7));
        let order: Vec<u16> = (0..5).flat_map(|x| (0..5).map(move |i| (x + i) % 5)).collect();
        for (cells, width, order) in [(2, 1, None), (17, 5, None), (5, 2, Some(order)), (70_000, 9, None)] {
            let one = Window::from_probability(cells, width, high, order).unwrap();
            let one = if mute { one.muted() } else { one };
            let order = one.order().map(<[u16]>::to_vec);
            let two = Window::from_probability(one.cells(), one.width(), one.high(), order).unwrap();
            let two = if one.is_mute() { two.muted() } else { two };
            let x = values(cells);
            let [one, two] = [one, two].map(|it| reports(&it, None, &key, Input::U32(&x), VALUES));
            prop_assert_eq!(one, two);
        }
        for (elements, size) in [(2, 1), (40, 11)] {
            let one = Subset::from_probability(elements, size, high).unwrap();
            let two = Subset::from_probability(one.elements(), one.size(), one.high()).unwrap();
            let x = values(elements);
            let [one, two] = [one, two].map(|it| reports(&it, (), &key, Input::U32(&x), VALUES));
            prop_assert_eq!(one, two);
        }
        let one = Unary::new(23, Bit { p: chance(p), q: chance(q) }).unwrap();
        let two = Unary::new(one.categories(), one.bit()).unwrap();
        let x = values(23);
        let [one, two] = [one, two].map(|it| reports(&it, (), &key, Input::U32(&x), VALUES));
        prop_assert_eq!(one, two);
        let law = |p, q| vec![Bit { p: chance(p), q: chance(q) }; 6];
        let one = Bits::new(vec![law(p, q), law(q, p)], 3, Some(vec![0, 1, 0])).unwrap();
        let pattern = one.pattern().map(<[u32]>::to_vec);
        let two = Bits::new(one.laws().to_vec(), one.features(), pattern).unwrap();
        let x = values(64);
        let [one, two] = [one, two].map(|it| reports(&it, None, &key, Input::U32(&x), VALUES));
        prop_assert_eq!(one, two);
    }

    #[test]
    fn designs(high in 1u64.., mute: bool) {
        let (high, key, order) = (chance(high), key(8), [0, 1, 3, 2, 4, 5, 6]);
        for (family, inputs, cells, width) in [
            (DesignFamily::Translates(&order), 7, 7, 3),
            (DesignFamily::Progressions, 4_000, 4_001, 500),
            (DesignFamily::Halves, 20, 32, 4),
            (DesignFamily::Halves, 100_000, 1 << 17, 1 << 16),
        ] {
            let one = Design::from_probability(family, inputs, cells, width, high).unwrap();
            let one = if mute { one.muted() } else { one };
            prop_assert_eq!((one.family(), one.cells(), one.width()), (family, cells, width));
            let two =
                Design::from_probability(one.family(), one.inputs(), one.cells(), one.width(), one.high()).unwrap();
            let two = if one.is_mute() { two.muted() } else { two };
            let x = values(inputs);
            let [one, two] = [one, two].map(|it| reports(&it, (), &key, Input::U32(&x), VALUES));
            prop_assert_eq!(one, two);
        }
    }

    #[test]
    fn tables_and_noise(a in 1u64.., b in 1u64.., coin in 1u64.., high in 1u64..) {
        let (unit, keys) = (1u128 << 64, [key(9), key(10)]);
        let (a, b, coin) = (u128::from(a), u128::from(b), u128::from(coin));
        let one = Matrix::from_weights(2, 2, vec![a, unit - a, b, unit - b]).unwrap();
        let two = Matrix::from_weights(one.inputs(), one.outputs(), one.weights().to_vec()).unwrap();
        let x = values(2);
        let [one, two] = [one, two].map(|it| reports(&it, None, &keys[0], Input::U32(&x), VALUES));
        prop_assert_eq!(one, two);
        let one = Shift::new(9, 11, vec![a / 2, unit - a / 2 - b / 2, b / 2], 1).unwrap();
        let two = Shift::new(one.inputs(), one.outputs(), one.weights().to_vec(), one.offset()).unwrap();
        let x = values(9);
        let [one, two] = [one, two].map(|it| reports(&it, None, &keys[0], Input::U32(&x), VALUES));
        prop_assert_eq!(one, two);
        let answers = [coin, (unit - coin) / 3, unit - coin - (unit - coin) / 3];
        let matrix = || Matrix::from_weights(2, 3, [&answers[..], &[answers[0], answers[2], answers[1]]].concat());
        let made = |window: &Window| {
            let again = Window::from_probability(window.cells(), window.width(), window.high(), None).unwrap();
            Mixture::new(again, matrix().unwrap()).unwrap()
        };
        let one = made(&Window::from_probability(8, 3, chance(high), None).unwrap());
        let two = made(one.window());
        let grids = [8, 2].map(|points| Grid::new(points, -1.0, 1.0, GridRounding::Dither, true).unwrap());
        let x: Vec<f64> = values(2000).into_iter().map(|x| f64::from(x) / 1000.0 - 1.0).collect();
        let [one, two] =
            [one, two].map(|it| reports(&it, [&grids[0], &grids[1]], [&keys[0], &keys[1]], Input::F64(&x), VALUES));
        prop_assert_eq!(one, two);
    }

    #[test]
    fn whole_records(high in 1u64.., weights in proptest::collection::vec(1u64..1 << 60, 3)) {
        let (high, key) = (chance(high), key(11));
        let one = Cube::new(30, 16, 15, high).unwrap();
        let two = Cube::new(one.bits(), one.near(), one.far(), one.high()).unwrap();
        let x: Vec<u8> = values(2).into_iter().map(|bit| bit as u8).collect();
        let [one, two] = [one, two].map(|it| reports(&it, None, &key, Input::U8(&x), VALUES / 30));
        prop_assert_eq!(one, two);
        let one = Cap::new(vec![(7, 2)], vec![(9, 3), (5, 1)], 1, high).unwrap();
        let two = Cap::new(one.windows().to_vec(), one.subsets().to_vec(), one.hits(), one.high()).unwrap();
        let x = values(5);
        let [one, two] = [one, two].map(|it| reports(&it, None, &key, Input::U32(&x), VALUES / 3));
        prop_assert_eq!(one, two);
        let one = Select::new(&[3, 2, 5], &weights, Some(weights[0])).unwrap();
        let (counts, each): (Vec<u32>, Vec<u64>) = one.runs().unzip();
        let two = Select::new(&counts, &each, one.nothing()).unwrap();
        let x: Vec<f64> = values(1000).into_iter().map(f64::from).collect();
        let [one, two] = [one, two].map(|it| reports(&it, None, &key, Input::F64(&x), VALUES / 10));
        prop_assert_eq!(one, two);
    }
}

/// A float between them would be another channel.
#[test]
fn integers_between_two_floats_are_kept() {
    let high = chance(0xC000_0000_0000_0001);
    assert_ne!(Probability::from_numerator((high.to_f64() * 2f64.powi(64)) as u128).unwrap(), high);
    assert_eq!(Subset::from_probability(9, 2, high).unwrap().high(), high);
    assert_eq!(Window::from_probability(9, 2, high, None).unwrap().high(), high);
    assert_eq!(Design::from_probability(DesignFamily::Halves, 9, 16, 8, high).unwrap().high(), high);
}

#[test]
fn designs_that_are_none_are_refused() {
    let high = Probability::HALF;
    let made =
        |family, inputs, cells, width| match Design::from_probability(family, inputs, cells, width, high) {
            Err(Error::Argument { name, .. } | Error::Shape { name, .. } | Error::Value { name, .. }) => name,
            other => panic!("{:?}", other.map(|design| design.cells())),
        };
    assert_eq!(made(DesignFamily::Translates(&[0, 1, 2]), 3, 4, 2), "order");
    assert_eq!(made(DesignFamily::Translates(&[0, 1, 1]), 3, 3, 2), "order");
    assert_eq!(made(DesignFamily::Progressions, 4, 15, 4), "modulus");
    assert_eq!(made(DesignFamily::Progressions, 4, 65_521, u32::MAX), "width");
    for (inputs, cells, width, name) in [
        (9, 24, 8, "width"),
        (9, 16, 7, "width"),
        (9, 16, 16, "width"),
        (17, 16, 8, "inputs"),
        (9, 16, 0, "width"),
    ] {
        assert_eq!(made(DesignFamily::Halves, inputs, cells, width), name);
    }
    assert_eq!(made(DesignFamily::Halves, 9, 1 << 31, 8), "cells");
}
