use super::*;
use crate::channel::{Channel, Matrix, Mixture, Shift, Window};
use crate::error::Error;
use crate::random::{Ids, Key};

/// A call of a channel with a codec `C`: instruction set, values, ids and threads.
type Reports<'a> = Box<dyn Fn(Isa, Input<'_>, Ids<'_>, usize) -> Vec<u32> + 'a>;

/// As many samples as a test of a law takes where they cost little: `BITLDP_TEST_SHARE=10` makes it a tenth of them, for a
/// processor that is emulated. The bounds follow the number, so a test fails by chance as rarely as with all; it sees less.
pub(super) fn samples(all: usize) -> usize {
    all / std::env::var("BITLDP_TEST_SHARE").map_or(1, |share| share.parse().expect("a whole number"))
}

pub(super) fn key() -> Key {
    Key::from_bytes(std::array::from_fn(|i| i as u8))
}

pub(super) fn grid(points: u32) -> Grid {
    Grid::new(points, -2.0, 2.0, GridRounding::Dither, true).unwrap()
}

fn call<'a, C>(
    codec: C,
    input: Input<'a>,
    ids: Ids<'a>,
    key: &'a Key,
    out: &'a mut [u32],
) -> KeyedCall<'a, C> {
    let randomness = KeyedRandomness { column: 3, ..KeyedRandomness::new(key, b"test", ids) };
    KeyedCall { codec, input, letters: None, output: Output::U32(out), randomness, threads: Some(1) }
}

/// Reports of a channel with a single law, through a grid or without.
fn single(
    channel: impl for<'a> Keyed<Codec<'a> = Option<&'a Grid>> + 'static,
    grid: Option<Grid>,
) -> Reports<'static> {
    Box::new(move |isa, input, ids, threads| {
        let mut out = vec![0; input.len()];
        let key = key();
        let call = call(grid.as_ref(), input, ids, &key, &mut out).threads(threads);
        channel.randomize_keyed_on(isa, call).unwrap();
        out
    })
}

impl<C> KeyedCall<'_, C> {
    fn threads(self, threads: usize) -> Self {
        KeyedCall { threads: Some(threads), ..self }
    }
}

fn response() -> Window {
    Window::new(50, 1, 0.4, None).unwrap()
}

fn piecewise() -> Window {
    Window::new(64, 17, 0.7, None).unwrap()
}

fn hybrid() -> Mixture {
    let weights = [4u128, 3, 1, 4, 1, 3].map(|eighths| eighths << 61).to_vec();
    let matrix = Matrix::from_weights(2, 3, weights).unwrap();
    Mixture::new(Window::new(16, 5, 0.8, None).unwrap(), matrix).unwrap()
}

fn hybrid_reports() -> Reports<'static> {
    let mixture = hybrid();
    Box::new(move |isa, input, ids, threads| {
        let mut out = vec![0; input.len()];
        let (key, grids) = (key(), [grid(16), grid(2)]);
        let call = call([&grids[0], &grids[1]], input, ids, &key, &mut out).threads(threads);
        mixture.randomize_keyed_on(isa, call).unwrap();
        out
    })
}

fn stochastic(inputs: usize, outputs: usize) -> Matrix {
    let row = |x: usize| (0..outputs).map(move |y| (1 + (x + y) % outputs) as f64);
    let sum = (outputs * (outputs + 1)) as f64 / 2.0;
    let rows: Vec<f64> = (0..inputs).flat_map(row).map(|weight| weight / sum).collect();
    Matrix::new(inputs, outputs, &rows).unwrap()
}

/// Every kernel of every channel: those of codes, which all take 0 and 1, and those of numbers.
fn coded() -> Vec<(&'static str, Reports<'static>)> {
    let order = (0..7u16).flat_map(|x| (0..7u16).map(move |i| (x * 3 + i) % 7)).collect();
    vec![
        ("response", single(response(), None)),
        ("flip", single(Window::new(2, 1, 0.7, None).unwrap(), None)),
        ("order", single(Window::new(7, 3, 0.7, Some(order)).unwrap(), None)),
        ("wide", single(Window::new(100_000, 30_000, 0.7, None).unwrap(), None)),
        ("coarse matrix", single(stochastic(40, 60), None)),
        ("fine matrix", single(stochastic(40, 300), None)),
    ]
}

fn placed() -> Vec<(&'static str, Reports<'static>)> {
    let noise = vec![1 << 62, 1 << 63, 1 << 62];
    vec![
        ("piecewise", single(piecewise(), Some(grid(64)))),
        ("small matrix", single(stochastic(5, 4), Some(grid(5)))),
        ("shift", single(Shift::new(9, 11, noise, 1).unwrap(), Some(grid(9)))),
        ("hybrid", hybrid_reports()),
    ]
}

/// 3,001 records of three columns, whichever batch, order, threads and instruction set.
#[test]
fn a_report_depends_on_nothing_but_its_record_and_column() {
    const RECORDS: usize = 3001;
    let codes: Vec<u32> = (0..3 * RECORDS).map(|i| (i * 7 / 3 % 2) as u32).collect();
    let numbers: Vec<f64> = (0..3 * RECORDS).map(|i| (i % 997) as f64 / 250.0 - 2.0).collect();
    let ids: Vec<u64> = (0..RECORDS as u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    let all = coded().into_iter().map(|way| (way, Input::U32(&codes)));
    for ((name, reports), input) in all.chain(placed().into_iter().map(|way| (way, Input::F64(&numbers)))) {
        let expected = reports(Isa::Scalar, input, Ids::Numbers(&ids), 1);
        assert!(expected.iter().any(|report| *report != expected[0]), "{name}");
        for &isa in Isa::available() {
            for threads in [1, 2, 5] {
                assert_eq!(reports(isa, input, Ids::Numbers(&ids), threads), expected, "{name}, {isa}");
            }
            for part in [1, 7, 16, 1000] {
                let mut parts = Vec::new();
                for start in (0..RECORDS).step_by(part).take(samples(RECORDS)) {
                    let end = RECORDS.min(start + part);
                    let ids = Ids::Numbers(&ids[start..end]);
                    parts.extend(reports(isa, input.part(3 * start..3 * end), ids, 1));
                }
                assert_eq!(parts, expected[..parts.len()], "{name}, {isa}, {part} records at a time");
            }
            let backward: Vec<u64> = ids.iter().rev().copied().collect();
            let turned = |i: usize| 3 * (RECORDS - 1 - i / 3) + i % 3;
            let codes: Vec<u32> = (0..codes.len()).map(|i| codes[turned(i)]).collect();
            let numbers: Vec<f64> = (0..numbers.len()).map(|i| numbers[turned(i)]).collect();
            let input = if input.is_real() { Input::F64(&numbers) } else { Input::U32(&codes) };
            let result = reports(isa, input, Ids::Numbers(&backward), 2);
            assert!((0..result.len()).all(|i| result[i] == expected[turned(i)]), "{name}, {isa}, backward");
        }
    }
}

/// The chi-square of counts against chances, and its quantile at alpha = 1e-6 (Wilson and Hilferty).
pub(super) fn chi_square(counts: &[f64], chances: &[f64]) -> (f64, f64) {
    let n: f64 = counts.iter().sum();
    let cells = || counts.iter().zip(chances).filter(|(_, chance)| **chance > 0.0);
    let chi = cells().map(|(count, chance)| (count - n * chance).powi(2) / (n * chance)).sum();
    let freedom = cells().count() as f64 - 1.0;
    let spread = 2.0 / (9.0 * freedom);
    (chi, freedom * (1.0 - spread + 4.7534 * spread.sqrt()).powi(3))
}

/// Counts of the reports of [`samples`] of 10^6 records of one value.
fn counts(reports: &Reports<'_>, isa: Isa, value: f64, code: bool, outputs: usize) -> Vec<f64> {
    let ids: Vec<u64> = (0..samples(1_000_000) as u64).collect();
    let (codes, numbers) = (vec![value as u32; ids.len()], vec![value; ids.len()]);
    let input = if code { Input::U32(&codes) } else { Input::F64(&numbers) };
    let mut counts = vec![0.0; outputs];
    reports(isa, input, Ids::Numbers(&ids), 2).into_iter().for_each(|report| counts[report as usize] += 1.0);
    counts
}

/// n = 10^6 records (or [`samples`] of them) a law and instruction set, alpha = 1e-6 each; fixed key.
#[test]
fn the_law_is_that_of_the_integers() {
    let (response, piecewise, matrix) =
        (response().probabilities().unwrap(), piecewise().probabilities().unwrap(), stochastic(40, 60));
    // 0.3 lies in cell 36 of a grid of 63 steps from -2 to 2, and so far in it.
    let share = (0.3 + 2.0) / 4.0 * 63.0 - 36.0;
    let dithered: Vec<f64> =
        (0..64).map(|y| (1.0 - share) * piecewise[36 * 64 + y] + share * piecewise[37 * 64 + y]).collect();
    let ways = [
        (single(self::response(), None), 17.0, true, response[17 * 50..18 * 50].to_vec()),
        (single(self::piecewise(), Some(grid(64))), 0.3, false, dithered),
        (single(stochastic(40, 60), None), 9.0, true, matrix.probabilities()[9 * 60..10 * 60].to_vec()),
        (hybrid_reports(), 0.5, false, hybrid_chances(0.5)),
    ];
    for (way, (reports, value, code, chances)) in ways.iter().enumerate() {
        for &isa in Isa::available() {
            let (chi, most) = chi_square(&counts(reports, isa, *value, *code, chances.len()), chances);
            assert!(chi < most, "{way}, {isa}: {chi} against {most}");
        }
    }
}

/// The law of the mixture at a number.
fn hybrid_chances(x: f64) -> Vec<f64> {
    let mixture = hybrid();
    let cells = mixture.window().probabilities().unwrap();
    let position = (x + 2.0) / 4.0 * 15.0;
    let (cell, share) = (position as usize, position % 1.0);
    let window =
        (0..16).map(|y| ((1.0 - share) * cells[cell * 16 + y] + share * cells[cell * 16 + 16 + y]) / 2.0);
    let up = (x + 2.0) / 4.0;
    let ends = [(1.0 - up) * 0.375 + up * 0.125, (1.0 - up) * 0.125 + up * 0.375];
    window.chain(ends).collect()
}

/// Noise added to two codes of one id: how often its difference is that of the codes.
fn leak(heard: u64) -> f64 {
    let noise = vec![1u128 << 60; 16].into_iter().chain([0]).collect();
    let shift = Shift::new(40, 56, noise, 8).unwrap();
    let ids: Vec<u64> = (0..50_000).collect();
    let reports = |code: u32| {
        let (codes, mut out) = (vec![code; ids.len()], vec![0; ids.len()]);
        let key = key();
        let call = call(None, Input::U32(&codes), Ids::Numbers(&ids), &key, &mut out);
        shift.randomize_hearing(heard, Isa::current().unwrap(), call).unwrap();
        out
    };
    let (low, high) = (reports(5), reports(14));
    let shared = low.iter().zip(&high).filter(|(low, high)| **high == **low + 9).count();
    shared as f64 / ids.len() as f64
}

/// Two of 16 equally likely noises are equal once in 16: n = 50,000, five standard errors; fixed key.
#[test]
fn the_value_is_in_the_randomness() {
    let share = leak(u64::MAX);
    assert!((share - 0.0625).abs() < 5.0 * (0.0625f64 * 0.9375 / 50_000.0).sqrt(), "{share}");
    // What the random bits of the id alone would tell: everything.
    assert_eq!(leak(0), 1.0);
}

/// n = 10^6 ids (or [`samples`] of them) with the codes 3 and 4 each: chi-square of the pairs against independence,
/// alpha = 1e-6; fixed key. So for one value in two columns.
#[test]
fn values_and_columns_of_a_record_have_randomness_of_their_own() {
    let channel = Window::new(5, 1, 0.5, None).unwrap();
    let law = channel.probabilities().unwrap();
    let reports = single(channel, None);
    let ids: Vec<u64> = (0..samples(1_000_000) as u64).collect();
    let alone = |code: u32| {
        reports(Isa::current().unwrap(), Input::U32(&vec![code; ids.len()]), Ids::Numbers(&ids), 2)
    };
    let columns =
        reports(Isa::current().unwrap(), Input::U32(&vec![3; 2 * ids.len()]), Ids::Numbers(&ids), 2);
    let (first, second): (Vec<u32>, Vec<u32>) =
        columns.chunks_exact(2).map(|pair| (pair[0], pair[1])).unzip();
    let threes = alone(3);
    assert_eq!(threes, first);
    assert_eq!(threes, alone(3));
    for (row, others) in [(4, alone(4)), (3, second)] {
        let mut counts = vec![0.0; 25];
        threes.iter().zip(&others).for_each(|(&a, &b)| counts[(5 * a + b) as usize] += 1.0);
        let chances: Vec<f64> = (0..25).map(|i| law[15 + i / 5] * law[5 * row + i % 5]).collect();
        let (chi, most) = chi_square(&counts, &chances);
        assert!(chi < most, "{chi} against {most}");
    }
}

#[test]
fn equal_numbers_of_any_type_are_one_value() {
    let ids: Vec<u64> = (0..2000).collect();
    for (name, reports) in placed() {
        let isa = Isa::current().unwrap();
        let of = |input: Input<'_>| reports(isa, input, Ids::Numbers(&ids), 1);
        let one = of(Input::F64(&[1.0; 2000]));
        assert_eq!(of(Input::F32(&[1.0; 2000])), one, "{name}");
        assert_eq!(of(Input::I64(&[1; 2000])), one, "{name}");
        assert_eq!(of(Input::U8(&[1; 2000])), one, "{name}");
        let zero = of(Input::F64(&[0.0; 2000]));
        assert_ne!(zero, one, "{name}");
        for same in [-0.0, 5e-324] {
            assert_eq!(of(Input::F64(&[same; 2000])), zero, "{name}");
        }
        assert_eq!(of(Input::F32(&[-0.0; 2000])), zero, "{name}");
        assert_eq!(of(Input::F32(&[0.3; 2000])), of(Input::F64(&[f64::from(0.3f32); 2000])), "{name}");
    }
    for (name, reports) in coded() {
        let of = |input: Input<'_>| reports(Isa::current().unwrap(), input, Ids::Numbers(&ids), 1);
        let one = of(Input::U8(&[1; 2000]));
        assert_eq!(of(Input::I16(&[1; 2000])), one, "{name}");
        assert_eq!(of(Input::U64(&[1; 2000])), one, "{name}");
    }
}

/// Another key, context, column, id, law or grid: other random bits.
#[test]
fn everything_else_changes_the_randomness() {
    let (ids, other_ids): (Vec<u64>, Vec<u64>) = ((0..1000).collect(), (1..1001).collect());
    let digests: Vec<[u8; 32]> =
        (0..1000u16).map(|i| std::array::from_fn(|j| i.to_le_bytes()[j % 2])).collect();
    let (numbers, low) = (Ids::Numbers(&ids), Window::new(64, 17, 0.7, None).unwrap());
    let higher = Window::new(64, 17, 0.700_000_1, None).unwrap();
    let (grid, farther) = (grid(64), Grid::new(64, -2.0, 2.000_000_1, GridRounding::Dither, true).unwrap());
    let reports = |channel: &Window, key: Key, context, ids, column, grid| {
        let mut out = vec![0; 1000];
        let call = call(Some(grid), Input::F64(&[0.25; 1000]), ids, &key, &mut out);
        let randomness = KeyedRandomness { context, column, ..call.randomness };
        channel.randomize_keyed(KeyedCall { randomness, ..call }).unwrap();
        out
    };
    let other = Key::from_bytes([1; 32]);
    let all = [
        reports(&low, key(), b"a", numbers, 0, &grid),
        reports(&low, other, b"a", numbers, 0, &grid),
        reports(&low, key(), b"b", numbers, 0, &grid),
        reports(&low, key(), b"a", numbers, 1, &grid),
        reports(&low, key(), b"a", Ids::Numbers(&other_ids), 0, &grid),
        reports(&low, key(), b"a", Ids::Digests(&digests), 0, &grid),
        reports(&higher, key(), b"a", numbers, 0, &grid),
        reports(&low, key(), b"a", numbers, 0, &farther),
    ];
    // Independent reports agree with a chance of at most 0.7 / 17: far below a tenth.
    for (i, a) in all.iter().enumerate() {
        for b in &all[..i] {
            let agree = a.iter().zip(b).filter(|(a, b)| a == b).count();
            assert!(agree < 100, "{i}: {agree} of 1000 agree");
        }
    }
}

#[test]
fn a_mute_channel_does_not_hear_the_value() {
    let reports = single(Window::new(50, 1, 0.4, None).unwrap().muted(), None);
    let ids: Vec<u64> = (0..100).collect();
    let of = |code| reports(Isa::current().unwrap(), Input::U8(&[code; 100]), Ids::Numbers(&ids), 1);
    assert_eq!(of(3), of(49));
}

#[test]
fn what_does_not_fit_is_refused_by_its_name() {
    let (key, channel, ids) = (key(), response(), [1, 2, 3]);
    let refused = |input: Input<'_>, ids: &[u64], column| {
        let mut out = vec![7; input.len()];
        let call = call(None, input, Ids::Numbers(ids), &key, &mut out);
        let randomness = KeyedRandomness { column, ..call.randomness };
        let error = channel.randomize_keyed(KeyedCall { randomness, ..call }).unwrap_err();
        // A value that is refused leaves zeros; what is refused before any work leaves the output as it was.
        let left = if matches!(error, Error::Value { .. }) { 0 } else { 7 };
        assert!(out.iter().all(|&report| report == left));
        error
    };
    let shape = |error: Error| matches!(error, Error::Shape { name: "ids", .. });
    assert!(shape(refused(Input::U8(&[1; 4]), &ids, 0)));
    assert!(shape(refused(Input::U8(&[1; 4]), &[], 0)));
    assert!(matches!(refused(Input::U8(&[1; 6]), &ids, u32::MAX), Error::Argument { name: "column", .. }));
    assert!(matches!(refused(Input::F64(&[1.0; 3]), &ids, 0), Error::Argument { name: "x", .. }));
    assert!(matches!(refused(Input::U8(&[1, 50, 1]), &ids, 0), Error::Value { name: "x", index: 1, .. }));
    let (mut out, points) = ([0; 3], grid(49));
    let wrong = call(Some(&points), Input::F64(&[0.0; 3]), Ids::Numbers(&ids), &key, &mut out);
    assert!(matches!(channel.randomize_keyed(wrong), Err(Error::Argument { name: "grid", .. })));
}

impl Shift {
    /// Reports whose random bits depend on a part of the value.
    fn randomize_hearing(&self, heard: u64, isa: Isa, call: KeyedCall<'_, Option<&Grid>>) -> Result<()> {
        let description = ValueCall {
            rows: &[("grid", self.inputs() as u32)],
            columns: self.outputs() as u32,
            mute: self.is_mute(),
            law: &|_| {},
        };
        randomize_hearing(heard, &description, isa, call.pair(), &|sampler, first, input, output| {
            self.sample_keyed(sampler, first, input, output);
        })
    }
}
