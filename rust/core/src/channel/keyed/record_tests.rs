//! Keyed calls of the channels whose reports are of whole records.

use super::tests::{chi_square, grid, key, samples};
use super::*;
use crate::channel::{Bit, Bits, Cube, Design, Select, Subset, Unary};
use crate::codec::{FixedPoint, Infinities, SignBit, pack};
use crate::error::Error;
use crate::probability::Probability;
use crate::random::{Ids, Key};

/// The reports of a channel: those bits of the values that the random bits depend on, instruction set, values, ids and threads. Bits are a
/// byte each; a code is the report's.
type Reports = Box<dyn Fn(u64, Isa, Input<'_>, KeyedRandomness<'_>, usize) -> Result<Vec<u32>>>;

/// A channel: the values of a record, the words of its report, and whether the values are numbers.
struct Way {
    name: &'static str,
    values: usize,
    words: usize,
    real: bool,
    reports: Reports,
}

const P: f64 = 0.7;
const Q: f64 = 0.2;

fn unary() -> Unary {
    Unary::new(5, Bit::new(P, Q).unwrap()).unwrap()
}

/// Two laws: one bit is told apart less well than the others.
fn bits() -> Bits {
    let law = |p, q| vec![Bit::new(p, q).unwrap(), Bit::new(P, Q).unwrap(), Bit::new(P, Q).unwrap()];
    Bits::new(vec![law(P, Q), law(0.9, 0.4)], 2, Some(vec![1, 0])).unwrap()
}

fn codec() -> FixedPoint {
    FixedPoint::new(3, 1, SignBit::OneIfNonNegative, Infinities::Refuse).unwrap()
}

fn cube() -> Cube {
    Cube::new(5, 3, 2, Probability::from_numerator(3 << 62).unwrap()).unwrap()
}

fn select() -> Select {
    Select::new(&[2, 1, 1], &[1, 3, 9], Some(2)).unwrap()
}

fn subset() -> Subset {
    Subset::new(4, 2, 0.75).unwrap()
}

fn design() -> Design {
    Design::translates(5, 2, 0.7, vec![3, 0, 6, 1, 4, 5, 2]).unwrap()
}

macro_rules! reports {
    ($channel:expr, $codec:expr, $out:expr, $words:expr, $values:expr) => {
        Box::new(move |heard, isa, input, randomness, threads| {
            let (channel, codec) = (&$channel, $codec);
            let codec = codec.as_ref();
            let mut out = vec![Default::default(); input.len() / $values * $words];
            let (output, threads) = ($out(&mut out), Some(threads));
            let call = KeyedCall { codec, input, letters: None, output, randomness, threads };
            channel.randomize_hearing(heard, isa, call)?;
            Ok(out.into_iter().map(u32::from).collect())
        })
    };
}

fn plain(
    reports: impl Fn(u64, Isa, Input<'_>, KeyedRandomness<'_>, usize) -> Result<Vec<u32>> + 'static,
) -> Reports {
    Box::new(reports)
}

fn ways() -> Vec<Way> {
    let way = |name, values, words, real, reports| Way { name, values, words, real, reports };
    let of_unary = |heard, isa, input: Input<'_>, randomness: KeyedRandomness<'_>, threads| {
        let mut out = vec![0u8; input.len() * 5];
        let (output, threads) = (Output::Bits(&mut out), Some(threads));
        let call = KeyedCall { codec: (), input, letters: None, output, randomness, threads };
        unary().randomize_hearing(heard, isa, call)?;
        Ok(out.into_iter().map(u32::from).collect())
    };
    let of_select = |heard, isa, input: Input<'_>, randomness: KeyedRandomness<'_>, threads| {
        let mut out = vec![0u8; input.len() / 4];
        let (output, threads) = (Output::U8(&mut out), Some(threads));
        let call = KeyedCall { codec: (), input, letters: None, output, randomness, threads };
        select().randomize_hearing(heard, isa, call)?;
        Ok(out.into_iter().map(u32::from).collect())
    };
    let of_subset = |heard, isa, input: Input<'_>, randomness: KeyedRandomness<'_>, threads| {
        let mut out = vec![0u8; input.len() * 4];
        let (output, threads) = (Output::Bits(&mut out), Some(threads));
        let call = KeyedCall { codec: (), input, letters: None, output, randomness, threads };
        subset().randomize_hearing(heard, isa, call)?;
        Ok(out.into_iter().map(u32::from).collect())
    };
    let of_design = |heard, isa, input: Input<'_>, randomness: KeyedRandomness<'_>, threads| {
        let mut out = vec![0u16; input.len()];
        let (output, threads) = (Output::U16(&mut out), Some(threads));
        let call = KeyedCall { codec: (), input, letters: None, output, randomness, threads };
        design().randomize_hearing(heard, isa, call)?;
        Ok(out.into_iter().map(u32::from).collect())
    };
    vec![
        way("unary", 1, 5, false, plain(of_unary)),
        way("subset", 1, 4, false, plain(of_subset)),
        way("design", 1, 1, false, plain(of_design)),
        way("bits", 2, 2, true, reports!(bits(), Some(codec()), Output::U16, 2, 2)),
        way("bits of codes", 2, 2, false, reports!(bits(), None::<FixedPoint>, Output::U8, 2, 2)),
        way("cube", 5, 5, true, reports!(cube(), Some(grid(2)), Output::Bits, 5, 5)),
        way("cube of signs", 5, 5, false, reports!(cube(), None::<Grid>, Output::Bits, 5, 5)),
        way("select", 4, 1, true, plain(of_select)),
    ]
}

/// The input of a way: numbers, or codes that all of them take.
fn input<'a>(way: &Way, numbers: &'a [f64], codes: &'a [u8]) -> Input<'a> {
    if way.real { Input::F64(numbers) } else { Input::U8(codes) }
}

/// 1,003 ids of two columns each, whichever batch, order, threads and instruction set.
#[test]
fn a_report_depends_on_nothing_but_its_record_and_column() {
    const IDS: usize = 1003;
    let key = key();
    let ids: Vec<u64> = (0..IDS as u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    for way in ways() {
        let width = 2 * way.values;
        let numbers: Vec<f64> = (0..IDS * width).map(|i| (i % 997) as f64 / 250.0 - 2.0).collect();
        let codes: Vec<u8> = (0..IDS * width).map(|i| (i * 7 / 3 % 2) as u8).collect();
        let of = |isa, ids: &[u64], input: Input<'_>, threads| {
            let randomness =
                KeyedRandomness { column: 3, ..KeyedRandomness::new(&key, b"test", Ids::Numbers(ids)) };
            (way.reports)(u64::MAX, isa, input, randomness, threads).unwrap()
        };
        let all = input(&way, &numbers, &codes);
        let expected = of(Isa::Scalar, &ids, all, 1);
        assert!(expected.iter().any(|report| *report != expected[0]), "{}", way.name);
        for &isa in Isa::available() {
            for threads in [1, 2, 5] {
                assert_eq!(of(isa, &ids, all, threads), expected, "{}, {isa}", way.name);
            }
            for part in [1, 7, 64, 500] {
                let mut parts = Vec::new();
                for start in (0..IDS).step_by(part).take(samples(IDS)) {
                    let end = IDS.min(start + part);
                    parts.extend(of(isa, &ids[start..end], all.part(start * width..end * width), 1));
                }
                assert_eq!(parts, expected[..parts.len()], "{}, {isa}, {part} at a time", way.name);
            }
            let backward: Vec<u64> = ids.iter().rev().copied().collect();
            let turned = |i: usize, width: usize| width * (IDS - 1 - i / width) + i % width;
            let codes: Vec<u8> = (0..codes.len()).map(|i| codes[turned(i, width)]).collect();
            let numbers: Vec<f64> = (0..numbers.len()).map(|i| numbers[turned(i, width)]).collect();
            let result = of(isa, &backward, input(&way, &numbers, &codes), 2);
            let same = |i| result[i] == expected[turned(i, 2 * way.words)];
            assert!((0..result.len()).all(same), "{}, {isa}, backward", way.name);
        }
        // The second column by itself.
        let second = |slice: &[f64]| -> Vec<f64> {
            slice.chunks(width).flat_map(|record| record[way.values..].to_vec()).collect()
        };
        let (numbers, all) = (second(&numbers), codes.iter().map(|&code| code.into()).collect::<Vec<f64>>());
        let codes: Vec<u8> = second(&all).iter().map(|&code| code as u8).collect();
        let randomness =
            KeyedRandomness { column: 4, ..KeyedRandomness::new(&key, b"test", Ids::Numbers(&ids)) };
        let result =
            (way.reports)(u64::MAX, Isa::Scalar, input(&way, &numbers, &codes), randomness, 1).unwrap();
        let columns = expected.chunks(2 * way.words).flat_map(|report| report[way.words..].to_vec());
        assert!(columns.eq(result), "{}, second column", way.name);
    }
}

/// Counts of the reports of [`samples`] of 10^6 records alike.
fn counts(way: &Way, isa: Isa, record: &[f64], base: u32, cells: usize) -> Vec<f64> {
    let records = samples(1_000_000);
    let ids: Vec<u64> = (0..records as u64).collect();
    let codes: Vec<u8> = record.iter().map(|&code| code as u8).collect();
    let (numbers, codes) = (record.repeat(records), codes.repeat(records));
    let key = key();
    let randomness = KeyedRandomness::new(&key, b"law", Ids::Numbers(&ids));
    let reports = (way.reports)(u64::MAX, isa, input(way, &numbers, &codes), randomness, 2).unwrap();
    let mut counts = vec![0.0; cells];
    for report in reports.chunks(way.words) {
        counts[report.iter().fold(0, |all, word| all * base + word) as usize] += 1.0;
    }
    counts
}

/// The chances of all strings of bits, most significant first, each of which is 1 with its own chance.
fn strings(chances: &[f64]) -> Vec<f64> {
    let bits = chances.len();
    let chance = |string: usize| {
        let of = |(i, p): (usize, &f64)| if string >> (bits - 1 - i) & 1 == 1 { *p } else { 1.0 - p };
        chances.iter().enumerate().map(of).product()
    };
    (0..1 << bits).map(chance).collect()
}

/// The chances of all strings of five signs, given the input's.
fn agreements(input: usize) -> [f64; 32] {
    // Sixteen strings agree in three positions or more, the likely ones.
    std::array::from_fn(|report| {
        let apart = (report ^ input).count_ones();
        if apart <= 2 { 0.75 / 16.0 } else { 0.25 / 16.0 }
    })
}

/// n = 10^6 records (or [`samples`] of them) a law and instruction set, alpha = 1e-6 each; fixed key.
#[test]
fn the_law_is_that_of_the_integers() {
    let ways = ways();
    let of = |name: &str| ways.iter().find(|way| way.name == name).unwrap();
    // 1.25 is sign 1, and 10 in halves; -0.6 is sign 0, and 01.
    let (first, second) = ([0.9, P, Q], [Q, Q, P]);
    // The signs 1, 0, 1, 1 are certain at the ends of the grid; 1 lies at three quarters of it.
    let (up, down) = (agreements(0b10111), agreements(0b10110));
    let dithered: Vec<f64> = up.iter().zip(down).map(|(up, down)| 0.75 * up + 0.25 * down).collect();
    // Three of the six pairs hold element 2; the block of input 2 are the cells 3 + 2 and 0 + 2.
    let held = (0..16u32).map(|bits| match (bits.count_ones(), bits & 2 > 0) {
        (2, true) => 0.25,
        (2, false) => 0.25 / 3.0,
        _ => 0.0,
    });
    let blocks = (0..7).map(|cell| if cell == 5 || cell == 2 { 0.35 } else { 0.06 });
    let cases: [(&Way, &[f64], u32, Vec<f64>); 8] = [
        (of("subset"), &[2.0], 2, held.collect()),
        (of("design"), &[2.0], 8, blocks.collect()),
        (of("unary"), &[3.0], 2, strings(&[Q, Q, Q, P, Q])),
        (of("bits"), &[1.25, -0.6], 8, strings(&[first, second].concat())),
        (of("bits of codes"), &[6.0, 1.0], 8, strings(&[first, second].concat())),
        (of("cube"), &[2.0, -2.0, 9.0, 2.0, 1.0], 2, dithered),
        (of("cube of signs"), &[1.0, 0.0, 1.0, 1.0, 0.0], 2, down.to_vec()),
        // Magnitudes .2, .5 and .5, and 1.5: two share the ranks of weights 1 and 3.
        (of("select"), &[-0.5, 1.5, 0.2, 0.5], 8, [2.0, 9.0, 1.0, 2.0, 2.0].map(|w| w / 16.0).to_vec()),
    ];
    for (way, record, base, chances) in cases {
        for &isa in Isa::available() {
            let (chi, most) = chi_square(&counts(way, isa, record, base, chances.len()), &chances);
            assert!(chi < most, "{}, {isa}: {chi} against {most}", way.name);
        }
    }
}

/// Reports of [`samples`] of 50,000 ids, of two records that differ in their last value.
fn two(way: &Way, heard: u64) -> [Vec<u32>; 2] {
    let count = samples(50_000);
    let ids: Vec<u64> = (0..count as u64).collect();
    let key = key();
    // On the points of grid and codec: no dither hides what random bits alone would tell.
    [-1.0, 1.0].map(|last| {
        let mut record = vec![2.0; way.values];
        record[way.values - 1] = 2.0 * last;
        let codes: Vec<u8> = record.iter().map(|&x| u8::from(x > 0.0)).collect();
        let randomness = KeyedRandomness::new(&key, b"two", Ids::Numbers(&ids));
        let (numbers, codes) = (record.repeat(count), codes.repeat(count));
        (way.reports)(heard, Isa::current().unwrap(), input(way, &numbers, &codes), randomness, 2).unwrap()
    })
}

/// A word of each report that is about what both records share: of a category, a position that is neither's.
fn shared<'a>(way: &Way, reports: &'a [u32]) -> impl ExactSizeIterator<Item = u32> + use<'a> {
    let of_category = ["unary", "subset"].contains(&way.name);
    let (words, position) = (way.words, if of_category { way.words - 1 } else { 0 });
    reports.chunks(words).map(move |report| report[position])
}

/// The same word for the other record, if the random bits are the same: blocks are translates.
fn moved(way: &Way, word: u32) -> u32 {
    if way.name == "design" { (word + 1) % 7 } else { word }
}

/// How often that word is for both records what one draw makes of them.
fn agree(way: &Way, heard: u64) -> f64 {
    let [one, other] = two(way, heard);
    let same =
        shared(way, &one).zip(shared(way, &other)).filter(|&(one, other)| moved(way, one) == other).count();
    same as f64 / shared(way, &one).len() as f64
}

/// n = 50,000 ids, or [`samples`] of them. With random bits of the id alone what is said of the values that two records share is the same, always; with
/// the record inside, it agrees as often as in independent reports: five standard errors; fixed key.
#[test]
fn the_record_is_in_the_randomness() {
    let n = samples(50_000) as f64;
    for way in ways() {
        let [one, other] = two(&way, u64::MAX);
        let chances = |words: &mut dyn Iterator<Item = u32>| {
            let mut shares = [0.0; 8];
            words.for_each(|word| shares[word as usize] += 1.0 / n);
            shares
        };
        let moved = chances(&mut shared(&way, &one).map(|word| moved(&way, word)));
        let alike: f64 = moved.iter().zip(chances(&mut shared(&way, &other))).map(|(a, b)| a * b).sum();
        let (share, leaked) = (agree(&way, u64::MAX), agree(&way, 0));
        let bound = 5.0 * (alike * (1.0 - alike) / n).sqrt();
        assert!((share - alike).abs() < bound, "{}: {share} against {alike}", way.name);
        assert_eq!(leaked, 1.0, "{}", way.name);
    }
}

/// Another key, context, stage, column, id or law: other random bits.
#[test]
fn everything_else_changes_the_randomness() {
    let (key, other) = (key(), Key::from_bytes([1; 32]));
    let (ids, later): (Vec<u64>, Vec<u64>) = ((0..500).collect(), (1..501).collect());
    let digests: Vec<[u8; 32]> =
        (0..500u16).map(|i| std::array::from_fn(|j| i.to_le_bytes()[j % 2])).collect();
    let randomness = KeyedRandomness::new(&key, b"a", Ids::Numbers(&ids));
    let all = [
        randomness,
        KeyedRandomness { key: &other, ..randomness },
        KeyedRandomness { context: b"b", ..randomness },
        KeyedRandomness { stage: 1, ..randomness },
        KeyedRandomness { column: 1, ..randomness },
        KeyedRandomness { ids: Ids::Numbers(&later), ..randomness },
        KeyedRandomness { ids: Ids::Digests(&digests), ..randomness },
    ];
    for way in ways() {
        let (numbers, codes) = (vec![1.0; 500 * way.values], vec![1; 500 * way.values]);
        let of = |randomness| {
            (way.reports)(u64::MAX, Isa::Scalar, input(&way, &numbers, &codes), randomness, 1).unwrap()
        };
        let reports = all.map(of);
        for (i, a) in reports.iter().enumerate() {
            for b in &reports[..i] {
                assert!(a != b, "{}: {i}", way.name);
            }
        }
    }
}

/// Bound randomness is of the record, and not of what is drawn from.
#[test]
fn bound_randomness_depends_on_the_record_alone() {
    let (key, ids) = (key(), (0..500).collect::<Vec<u64>>());
    let randomness = KeyedRandomness::new(&key, b"", Ids::Numbers(&ids));
    let records: Vec<f64> = (0..1000).map(|i| f64::from(i % 7)).collect();
    let bound = randomness.bound(Input::F64(&records), Some(2)).unwrap();
    assert_eq!(bound, randomness.bound(Input::F64(&records), Some(1)).unwrap());
    let integers: Vec<u8> = records.iter().map(|&x| x as u8).collect();
    // Integers are categories: who means numbers gives numbers.
    assert_ne!(bound, randomness.bound(Input::U8(&integers), None).unwrap());
    let mut other = records.clone();
    other[7] = 9.0;
    let changed = randomness.bound(Input::F64(&other), None).unwrap();
    let differ: Vec<usize> = (0..500).filter(|&i| bound[i] != changed[i]).collect();
    assert_eq!(differ, [3]);
    for apart in [
        KeyedRandomness { stage: 1, ..randomness },
        KeyedRandomness { column: 1, ..randomness },
        KeyedRandomness { context: b"x", ..randomness },
    ] {
        assert_ne!(apart.bound(Input::F64(&records), None).unwrap()[0], bound[0]);
    }
    let more: Vec<f64> = records.iter().map(|x| x + 1.0).collect();
    let changed = randomness.bound(Input::F64(&more), None).unwrap();
    for way in ways() {
        let of = |x: f64, ids: &[[u8; 32]]| {
            let randomness = KeyedRandomness { ids: Ids::Bound(ids), ..randomness };
            let (numbers, codes) = (vec![x; 500 * way.values], vec![1; 500 * way.values]);
            (way.reports)(u64::MAX, Isa::current().unwrap(), input(&way, &numbers, &codes), randomness, 1)
                .unwrap()
        };
        assert_eq!(of(1.1, &bound), of(1.1f64.next_down(), &bound), "{}", way.name);
        assert_ne!(of(1.1, &bound), of(1.1, &changed), "{}", way.name);
    }
}

/// n = 10^6 words of 500 records: bits are fair to five standard errors; streams and records have words of their own.
#[test]
fn words_are_the_records_own() {
    let (key, ids) = (key(), (0..500).collect::<Vec<u64>>());
    let randomness = KeyedRandomness::new(&key, b"", Ids::Numbers(&ids));
    let words = randomness.words(2000, 3, Some(2)).unwrap();
    assert_eq!(randomness.words(2000, 3, Some(1)).unwrap(), words);
    let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
    assert!((f64::from(ones) - 32e6).abs() < 5.0 * 4e3, "{ones}");
    let some = KeyedRandomness { ids: Ids::Numbers(&ids[7..9]), ..randomness }.words(5, 3, None).unwrap();
    assert_eq!(some, [&words[14_000..14_005], &words[16_000..16_005]].concat());
    for other in [randomness.words(1, 4, None), KeyedRandomness { stage: 2, ..randomness }.words(1, 3, None)]
    {
        assert_ne!(other.unwrap()[0], words[0]);
    }
    assert!(randomness.words(0, 0, None).unwrap().is_empty());
}

#[test]
fn equal_numbers_of_any_type_are_one_value() {
    let (key, ids) = (key(), (0..500).collect::<Vec<u64>>());
    for way in ways().iter().filter(|way| way.real) {
        let of = |input: Input<'_>| {
            let randomness = KeyedRandomness::new(&key, b"", Ids::Numbers(&ids));
            (way.reports)(u64::MAX, Isa::current().unwrap(), input, randomness, 1).unwrap()
        };
        let n = 500 * way.values;
        let one = of(Input::F64(&vec![1.0; n]));
        assert_eq!(of(Input::F32(&vec![1.0; n])), one, "{}", way.name);
        assert_eq!(of(Input::I64(&vec![1; n])), one, "{}", way.name);
        let zero = of(Input::F64(&vec![0.0; n]));
        // A subnormal is 0 for the draw, too: random bits alike with code words that differ would tell which it was.
        for same in [-0.0, -5e-324] {
            assert_eq!(of(Input::F64(&vec![same; n])), zero, "{}", way.name);
        }
    }
}

#[test]
fn packed_reports_are_the_others_side_by_side() {
    let (key, ids) = (key(), (0..133).collect::<Vec<u64>>());
    let randomness = || KeyedRandomness::new(&key, b"", Ids::Numbers(&ids));
    let (categories, numbers) = (vec![3u8; 133], vec![0.5; 133 * 5]);
    let isa = Isa::current().unwrap();
    for way in ways() {
        let input = if way.real { Input::F64(&numbers[..133 * way.values]) } else { continue };
        let codes = (way.reports)(u64::MAX, isa, input, randomness(), 1).unwrap();
        let width = if way.name == "cube" { 1 } else { 3 };
        let expected = pack(&codes, width).unwrap();
        let mut out = vec![0; expected.len()];
        let output = Output::Packed(&mut out);
        let (codec, ends, letters, threads) = (codec(), grid(2), None, Some(2));
        match way.name {
            "bits" => {
                let call = KeyedCall {
                    codec: Some(&codec),
                    input,
                    letters,
                    output,
                    randomness: randomness(),
                    threads,
                };
                bits().randomize_keyed(call).unwrap();
            }
            "cube" => {
                let call = KeyedCall {
                    codec: Some(&ends),
                    input,
                    letters,
                    output,
                    randomness: randomness(),
                    threads,
                };
                cube().randomize_keyed(call).unwrap();
            }
            _ => {
                let call =
                    KeyedCall { codec: None, input, letters, output, randomness: randomness(), threads };
                select().randomize_keyed(call).unwrap();
            }
        }
        assert_eq!(out, expected, "{}", way.name);
    }
    let unary_way = &ways()[0];
    let bits = (unary_way.reports)(u64::MAX, isa, Input::U8(&categories), randomness(), 1).unwrap();
    let mut out = vec![0; (133usize * 5).div_ceil(8)];
    let (input, output) = (Input::U8(&categories), Output::Packed(&mut out));
    let call = KeyedCall { codec: (), input, letters: None, output, randomness: randomness(), threads: None };
    unary().randomize_keyed(call).unwrap();
    assert_eq!(out, pack(&bits, 1).unwrap());
}

/// A record of more features than a chunk: every feature has draws of its own.
#[test]
fn long_records_take_more_than_one_chunk() {
    const FEATURES: usize = CHUNK + 1000;
    let channel = Bits::new(vec![vec![Bit::new(0.5, 0.5).unwrap(); 8]], FEATURES, None).unwrap();
    let (key, ids) = (key(), [1, 2, 3]);
    let values = vec![0u8; 3 * FEATURES];
    let mut out = vec![0u8; 3 * FEATURES];
    let randomness = KeyedRandomness::new(&key, b"", Ids::Numbers(&ids));
    let (input, output) = (Input::U8(&values), Output::U8(&mut out));
    let call = KeyedCall { codec: None, input, letters: None, output, randomness, threads: None };
    channel.randomize_keyed(call).unwrap();
    let same = out[..1000].iter().zip(&out[CHUNK..FEATURES]).filter(|(a, b)| a == b).count();
    assert!(same < 30, "{same} of 1000 words are those of the chunk before");
    assert_ne!(out[..FEATURES], out[FEATURES..2 * FEATURES]);
}

#[test]
fn a_mute_cube_does_not_hear_the_record() {
    let (key, ids, cube, ends) = (key(), (0..100).collect::<Vec<u64>>(), cube().muted(), grid(2));
    let of = |x: f64| {
        let (mut out, values) = (vec![0; 500], [x; 500]);
        let randomness = KeyedRandomness::new(&key, b"", Ids::Numbers(&ids));
        let (input, output) = (Input::F64(&values), Output::Bits(&mut out));
        let call = KeyedCall { codec: Some(&ends), input, letters: None, output, randomness, threads: None };
        cube.randomize_keyed(call).map(|()| out)
    };
    assert_eq!(of(-2.0).unwrap(), of(1.5).unwrap());
    assert!(of(f64::NAN).is_err());
}

/// The first of two refused values, on any number of threads; what is left are zeros.
#[test]
fn what_has_no_law_is_refused_by_its_place() {
    let (key, ids) = (key(), (0..700).collect::<Vec<u64>>());
    for way in ways() {
        let n = 700 * way.values;
        let (mut numbers, mut codes) = (vec![0.5; n], vec![1u8; n]);
        for position in [n - 3, n / 2] {
            (numbers[position], codes[position]) = (f64::NAN, 9);
        }
        for threads in [1, 3] {
            let randomness = KeyedRandomness::new(&key, b"", Ids::Numbers(&ids));
            let error =
                (way.reports)(u64::MAX, Isa::Scalar, input(&way, &numbers, &codes), randomness, threads);
            let error = error.unwrap_err();
            assert!(matches!(error, Error::Value { name: "x", index, .. } if index == n / 2), "{}", way.name);
        }
        let randomness = KeyedRandomness::new(&key, b"", Ids::Numbers(&ids[1..]));
        let error =
            (way.reports)(u64::MAX, Isa::Scalar, input(&way, &vec![0.5; n], &vec![1; n]), randomness, 1);
        assert!(matches!(error.unwrap_err(), Error::Shape { name: "ids", .. }), "{}", way.name);
    }
    let mut out = vec![7u8; 10];
    let (randomness, letters, threads) =
        (KeyedRandomness::new(&key, b"", Ids::Numbers(&ids[..2])), None, None);
    let (input, output) = (Input::U8(&[1, 5]), Output::Bits(&mut out));
    let call = KeyedCall { codec: (), input, letters, output, randomness, threads };
    assert!(matches!(unary().randomize_keyed(call), Err(Error::Value { index: 1, .. })));
    assert_eq!(out, [0; 10]);
}
