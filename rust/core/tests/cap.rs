//! Caps: every instruction set, thread count and split gives the same answer, and that answer follows the law, which is what
//! `epsilon` and `share` say.

use std::collections::BTreeMap;

use bitldp_core::{
    Call, Cap, Channel, Error, Grid, GridRounding, Ids, Input, Isa, Keyed, KeyedCall, KeyedRandomness,
    Output, Probability,
};
use proptest::prelude::*;

mod common;
use common::{key, left_behind};

fn cap(windows: &[(u32, u32)], subsets: &[(u32, u32)], hits: u32, high: f64) -> Cap {
    let high = Probability::from_numerator((high * 2f64.powi(64)) as u128).unwrap();
    Cap::new(windows.to_vec(), subsets.to_vec(), hits, high).unwrap()
}

/// The part of a report that stands for a column, one of all that there are.
fn parts(channel: &Cap) -> Vec<Vec<Vec<u32>>> {
    let windows =
        channel.windows().iter().map(|&(points, reach)| (0..points + 2 * reach).map(|y| vec![y]).collect());
    let subset = |&(elements, size): &(u32, u32)| -> Vec<Vec<u32>> {
        if size == 1 {
            return (0..elements).map(|y| vec![y]).collect();
        }
        let strings = (0..1u32 << elements).filter(|set| set.count_ones() == size);
        strings.map(|set| (0..elements).map(|y| set >> y & 1).collect()).collect()
    };
    windows.chain(channel.subsets().iter().map(subset)).collect()
}

/// Every report, and whether it is near a record.
fn reports(channel: &Cap, x: &[u32]) -> Vec<(Vec<u32>, bool)> {
    let mut all = vec![(Vec::new(), true, 0)];
    for (at, column) in parts(channel).iter().enumerate() {
        let windows = channel.windows();
        all = all
            .iter()
            .flat_map(|(report, near, hits): &(Vec<u32>, bool, u32)| {
                column.iter().map(move |part| {
                    let whole = [&report[..], part].concat();
                    if let Some(&(_, reach)) = windows.get(at) {
                        return (whole, *near && (x[at]..=x[at] + 2 * reach).contains(&part[0]), *hits);
                    }
                    let (_, size) = channel.subsets()[at - windows.len()];
                    let hit = if size == 1 { part[0] == x[at] } else { part[x[at] as usize] == 1 };
                    (whole, *near, hits + u32::from(hit))
                })
            })
            .collect();
    }
    all.into_iter().map(|(report, near, hits)| (report, near && hits >= channel.hits())).collect()
}

/// The chance of each report of a record.
fn law(channel: &Cap, x: &[u32]) -> BTreeMap<Vec<u32>, f64> {
    let all = reports(channel, x);
    let near = all.iter().filter(|(_, near)| *near).count() as f64;
    let (high, count) = (channel.high().to_f64(), all.len() as f64);
    let chance = |is_near| if is_near { high / near } else { 0.0 } + (1.0 - high) / count;
    all.into_iter().map(|(report, near)| (report, chance(near))).collect()
}

/// Small channels of every kind, and a record of each.
fn small() -> Vec<(Cap, Vec<u32>)> {
    vec![
        (cap(&[(5, 1), (3, 2)], &[], 0, 0.4), vec![4, 0]),
        (cap(&[(9, 0)], &[], 0, 0.7), vec![8]),
        (cap(&[], &[(3, 1), (4, 2), (2, 1)], 2, 0.3), vec![2, 1, 0]),
        (cap(&[], &[(2, 1); 5], 3, 0.6), vec![1, 0, 0, 1, 1]),
        (cap(&[], &[(5, 1), (5, 1)], 2, 0.5), vec![4, 1]),
        (cap(&[], &[(6, 3)], 1, 0.5), vec![5]),
        (cap(&[(4, 1)], &[(3, 1), (3, 2)], 1, 0.5), vec![3, 2, 0]),
        (cap(&[(2, 0)], &[(3, 1)], 0, 0.5), vec![1, 1]),
    ]
}

/// Reports of a batch of codes, as code words.
fn run(channel: &Cap, isa: Isa, x: &[u32], threads: usize, first_chunk: u64) -> Vec<u32> {
    let mut out = vec![7; x.len() / channel.values() * channel.codes()];
    let key = key(3);
    let call = Call::new(None, Input::U32(x), Output::U32(&mut out), &key);
    channel.randomize_on(isa, Call { threads: Some(threads), first_chunk, ..call }).unwrap();
    out
}

/// The same with keyed randomness, a record for each id.
fn keyed(channel: &Cap, isa: Isa, x: &[u32], ids: &[u64]) -> Vec<u32> {
    let mut out = vec![7; ids.len() * channel.codes()];
    let key = key(4);
    let randomness = KeyedRandomness::new(&key, b"test", Ids::Numbers(ids));
    let (input, output) = (Input::U32(x), Output::U32(&mut out));
    let call = KeyedCall { codec: None, input, letters: None, output, randomness, threads: Some(2) };
    channel.randomize_keyed_on(isa, call).unwrap();
    out
}

/// The chi-square of reports against a law, and its quantile at alpha = 1e-6 (Wilson and Hilferty).
fn chi_square(reports: &[u32], codes: usize, law: &BTreeMap<Vec<u32>, f64>) -> (f64, f64) {
    let mut counts: BTreeMap<&[u32], f64> = BTreeMap::new();
    reports.chunks_exact(codes).for_each(|report| *counts.entry(report).or_default() += 1.0);
    assert!(counts.keys().all(|report| law.contains_key(*report)), "a report that there is not");
    let n = (reports.len() / codes) as f64;
    let of = |(report, chance): (&Vec<u32>, &f64)| {
        let count = counts.get(&report[..]).copied().unwrap_or(0.0);
        (count - n * chance).powi(2) / (n * chance)
    };
    let freedom = law.len() as f64 - 1.0;
    let spread = 2.0 / (9.0 * freedom);
    (law.iter().map(of).sum(), freedom * (1.0 - spread + 4.7534 * spread.sqrt()).powi(3))
}

/// n = 60,000 records a channel and instruction set, alpha = 1e-6 each; fixed key.
#[test]
fn reports_follow_the_law_on_every_instruction_set() {
    for (channel, x) in small() {
        let law = law(&channel, &x);
        let batch: Vec<u32> = x.iter().copied().cycle().take(60_000 * x.len()).collect();
        let expected = run(&channel, Isa::Scalar, &batch, 1, 0);
        for &isa in Isa::available() {
            let reports = run(&channel, isa, &batch, 1, 0);
            assert!(reports == expected, "{isa} differs");
            let (chi, most) = chi_square(&reports, channel.codes(), &law);
            assert!(chi < most, "{x:?} on {isa}: {chi} against {most}");
        }
    }
}

/// n = 20,000 records a channel, alpha = 1e-6 each; fixed key.
#[test]
fn keyed_reports_follow_the_law_and_are_those_of_their_record() {
    let ids: Vec<u64> = (0..20_000).collect();
    for (channel, x) in small() {
        let batch: Vec<u32> = x.iter().copied().cycle().take(ids.len() * x.len()).collect();
        let reports = keyed(&channel, Isa::Scalar, &batch, &ids);
        let (chi, most) = chi_square(&reports, channel.codes(), &law(&channel, &x));
        assert!(chi < most, "{x:?}: {chi} against {most}");
        for &isa in Isa::available() {
            assert!(keyed(&channel, isa, &batch, &ids) == reports, "{isa} differs");
        }
        for record in [0, 7, 19_999] {
            let alone = keyed(&channel, Isa::Scalar, &x, &ids[record..=record]);
            assert_eq!(alone, reports[record * channel.codes()..][..channel.codes()]);
        }
    }
}

/// The whole matrix of chances: the largest ratio of two rows in a report.
#[test]
fn epsilon_is_that_of_the_whole_law() {
    for (channel, _) in small() {
        let rows: Vec<u32> = channel.windows().iter().chain(channel.subsets()).map(|each| each.0).collect();
        let records = rows.iter().fold(vec![Vec::new()], |records: Vec<Vec<u32>>, &rows| {
            records
                .iter()
                .flat_map(|record| (0..rows).map(move |code| [&record[..], &[code]].concat()))
                .collect()
        });
        let table: Vec<Vec<f64>> =
            records.iter().map(|record| law(&channel, record).into_values().collect()).collect();
        let mut epsilon = 0f64;
        for report in 0..table[0].len() {
            let column = || table.iter().map(|row| row[report]);
            epsilon = epsilon.max((column().fold(0.0, f64::max) / column().fold(1.0, f64::min)).ln());
        }
        assert!((channel.epsilon() / epsilon - 1.0).abs() < 1e-9, "{} against {epsilon}", channel.epsilon());
        let (part, whole) = channel.share();
        let near = reports(&channel, &records[0]).iter().filter(|(_, near)| *near).count();
        assert_eq!(part * table[0].len(), whole * near);
    }
}

/// Windows, subsets, hits and the probability of channels of every kind of column, of any size.
type Parts = (Vec<(u32, u32)>, Vec<(u32, u32)>, u32, f64);

fn any_parts() -> impl Strategy<Value = Parts> {
    let windows = prop::collection::vec((1u32..40, 1u32..9), 0..5);
    let subsets = prop::collection::vec((2u32..20, 0.0..1.0), 0..6);
    (windows, subsets, 0.0..1.0, 0.0..1.0).prop_map(|(mut windows, subsets, hits, high)| {
        let of = |&(k, share): &(u32, f64)| (k, 1 + (share * f64::from(k - 1)) as u32);
        let subsets: Vec<(u32, u32)> = subsets.iter().map(of).collect();
        if windows.is_empty() && subsets.is_empty() {
            windows.push((3, 0));
        }
        let hits = (hits * (subsets.len() + 1) as f64) as u32;
        (windows, subsets, hits, high)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn forms_and_threads_change_nothing((windows, subsets, hits, high) in any_parts(), records in 0usize..100) {
        let channel = cap(&windows, &subsets, hits, high);
        let rows: Vec<u32> = channel.windows().iter().chain(channel.subsets()).map(|each| each.0).collect();
        let x: Vec<u32> = (0..records * rows.len()).map(|i| (i * 7 / 3) as u32 % rows[i % rows.len()]).collect();
        let expected = run(&channel, Isa::Scalar, &x, 1, 0);
        let bits = channel.report_bits() as usize;
        let spelled: Vec<u8> = expected.chunks_exact(channel.codes()).flat_map(|report| {
            let mut codes = report.iter();
            let cells = channel.windows().iter().map(|&(points, reach)| (points + 2 * reach, 1));
            let mut string = Vec::new();
            for (below, size) in cells.chain(channel.subsets().iter().copied()) {
                if size > 1 {
                    string.extend(codes.by_ref().take(below as usize).map(|&bit| bit as u8));
                } else {
                    let (code, length) = (codes.next().unwrap(), 32 - (below - 1).leading_zeros());
                    string.extend((0..length).rev().map(|bit| (code >> bit & 1) as u8));
                }
            }
            string
        }).collect();
        prop_assert_eq!(spelled.len(), records * bits);
        for &isa in Isa::available() {
            prop_assert_eq!(&run(&channel, isa, &x, 3, 0), &expected);
            let mut out = vec![7u8; records * bits];
            channel.randomize_on(isa, Call::new(None, Input::U32(&x), Output::Bits(&mut out), &key(3))).unwrap();
            prop_assert_eq!(&out, &spelled);
            let mut packed = vec![7u8; (records * bits).div_ceil(8)];
            channel.randomize_on(isa, Call::new(None, Input::U32(&x), Output::Packed(&mut packed), &key(3))).unwrap();
            for (byte, ones) in packed.iter().zip(spelled.chunks(8)) {
                prop_assert_eq!(*byte, ones.iter().enumerate().fold(0, |byte, (i, bit)| byte | bit << (7 - i)));
            }
        }
        let narrow: Vec<u8> = x.iter().map(|&code| code as u8).collect();
        let mut out = vec![7u16; expected.len()];
        channel.randomize(Call::new(None, Input::U8(&narrow), Output::U16(&mut out), &key(3))).unwrap();
        prop_assert!(out.iter().zip(&expected).all(|(&a, &b)| u32::from(a) == b));
    }
}

#[test]
fn chunks_one_by_one_are_the_batch() {
    for (channel, x) in small() {
        let records = 2 * channel.chunk() + 5;
        let batch: Vec<u32> = x.iter().copied().cycle().take(records * x.len()).collect();
        let whole = run(&channel, Isa::Scalar, &batch, 1, 0);
        assert_eq!(run(&channel, Isa::Scalar, &batch, 3, 0), whole);
        let second = run(&channel, Isa::Scalar, &batch[channel.chunk() * x.len()..], 1, 1);
        assert_eq!(second, whole[channel.chunk() * channel.codes()..]);
        // The first records of a chunk do not depend on those behind them.
        for some in [1, 5, 16, 100] {
            let first = run(&channel, Isa::Scalar, &batch[..some * x.len()], 1, 0);
            assert_eq!(first, whole[..some * channel.codes()]);
        }
    }
}

/// n = 100,000 numbers, five standard errors of the mean; fixed key.
#[test]
fn numbers_are_dithered_and_letters_stand_for_cells() {
    let (channel, records) = (cap(&[(5, 2); 2], &[], 0, 0.5), 50_000);
    let grid = Grid::new(5, -1.0, 1.0, GridRounding::Dither, true).unwrap();
    let letters: Vec<f64> = (0..9).map(|cell| f64::from(cell) - 4.0).collect();
    let x: Vec<f32> = [0.3f32, -0.9].iter().copied().cycle().take(2 * records).collect();
    let run = |isa: Isa| {
        let mut out = vec![7f64; x.len()];
        let key = key(6);
        let call = Call::new(Some(&grid), Input::F32(&x), Output::F64(&mut out), &key);
        channel.randomize_on(isa, Call { letters: Some(&letters), ..call }).unwrap();
        out
    };
    let out = run(Isa::Scalar);
    assert!(Isa::available().iter().all(|&isa| run(isa) == out));
    // A near cell has the mean of its input, half the reports are near; a step is 0.5.
    for (column, value) in [(0, 0.3), (1, -0.9)] {
        let mean = out.iter().skip(column).step_by(2).sum::<f64>() / records as f64;
        assert!((mean - value).abs() < 5.0 * (60.0f64 / 9.0 / records as f64).sqrt(), "{mean} of {value}");
    }
}

#[test]
fn a_mute_cap_reports_what_it_says_of_zeros() {
    for (channel, x) in small() {
        let batch: Vec<u32> = x.iter().copied().cycle().take(1000 * x.len()).collect();
        let zeros = run(&channel, Isa::Scalar, &vec![0; batch.len()], 1, 0);
        assert_ne!(run(&channel, Isa::Scalar, &batch, 1, 0), zeros);
        let mute = channel.muted();
        assert_eq!((mute.epsilon(), mute.is_mute()), (0.0, true));
        assert_eq!(run(&mute, Isa::Scalar, &batch, 1, 0), zeros);
    }
}

#[test]
fn what_does_not_fit_is_refused_by_its_name() {
    let half = Probability::HALF;
    let refused = |windows: &[(u32, u32)], subsets: &[(u32, u32)], hits| match Cap::new(
        windows.to_vec(),
        subsets.to_vec(),
        hits,
        half,
    ) {
        Err(Error::Argument { name, .. }) => name,
        _ => "nothing",
    };
    assert_eq!(refused(&[], &[], 0), "windows");
    assert_eq!(refused(&[(0, 3)], &[], 0), "windows");
    assert_eq!(refused(&[(1, 0)], &[], 0), "windows");
    assert_eq!(refused(&[(u32::MAX, 1)], &[], 0), "windows");
    assert_eq!(refused(&[(2, u32::MAX)], &[], 0), "windows");
    assert_eq!(refused(&[], &[(1, 1)], 0), "subsets");
    assert_eq!(refused(&[], &[(5, 5)], 0), "subsets");
    assert_eq!(refused(&[], &[(5, 0)], 0), "subsets");
    assert_eq!(refused(&[], &[(70_000, 2)], 0), "subsets");
    assert_eq!(refused(&[], &[(5, 2); 257], 0), "subsets");
    assert_eq!(refused(&[], &[(5, 2)], 2), "hits");
    assert_eq!(refused(&[(3, 1)], &[], 1), "hits");
    let (channel, key) = (cap(&[(4, 1)], &[(300, 1)], 1, 0.5), key(1));
    let mut out = vec![7u16; 4];
    let mut call = |input: Input<'_>| {
        let call = Call::new(None, input, Output::U16(&mut out), &key);
        let result = channel.randomize(call);
        left_behind(&mut out, 7, result)
    };
    assert!(matches!(call(Input::U32(&[3, 299, 4, 5])), Error::Value { name: "x", index: 2, .. }));
    assert!(matches!(call(Input::I64(&[3, 300, 0, 5])), Error::Value { name: "x", index: 1, .. }));
    assert!(matches!(call(Input::I64(&[3, 299, 0, -1])), Error::Value { name: "x", index: 3, .. }));
    assert!(matches!(call(Input::U8(&[3, 2, 1])), Error::Shape { name: "x", .. }));
    assert!(matches!(call(Input::F32(&[0.0; 4])), Error::Argument { name: "x", .. }));
    let mut narrow = vec![7u8; 4];
    let result = channel.randomize(Call::new(None, Input::U8(&[1; 4]), Output::U8(&mut narrow), &key));
    assert!(matches!(result, Err(Error::Output { .. })), "codes of nine bits");
    let grid = Grid::new(4, 0.0, 1.0, GridRounding::Dither, true).unwrap();
    let result =
        channel.randomize(Call::new(Some(&grid), Input::F32(&[0.0; 4]), Output::U16(&mut out), &key));
    assert!(matches!(result, Err(Error::Argument { name: "grid", .. })));
    let windows = cap(&[(4, 1); 2], &[], 0, 0.5);
    let (letters, mut values) = ([0.0; 5], vec![7f32; 4]);
    let call = Call::new(Some(&grid), Input::F32(&[0.0; 4]), Output::F32(&mut values), &key);
    let result = windows.randomize(Call { letters: Some(&letters), ..call });
    assert!(matches!(result, Err(Error::Shape { name: "letters", .. })));
    let result =
        windows.randomize(Call::new(Some(&grid), Input::F32(&[0.0; 4]), Output::F32(&mut values), &key));
    assert!(matches!(result, Err(Error::Argument { name: "output", .. })));
}
