//! Counts of reports against their definitions, in every form, on every instruction set and any number of threads.

use bitldp_core::{Batch, Error, Isa, Reports, Sampled, pack};
use proptest::prelude::*;

mod common;
use common::scrambled;

/// Code words in every form that holds them.
struct Forms {
    words: Vec<u32>,
    narrow: Vec<u16>,
    short: Vec<u8>,
    spread: Vec<u8>,
    packed: Vec<u8>,
    bits: u32,
}

impl Forms {
    fn new(words: Vec<u32>, bits: u32) -> Forms {
        let spread =
            words.iter().flat_map(|word| (0..bits).rev().map(move |i| (word >> i & 1) as u8)).collect();
        Forms {
            narrow: words.iter().map(|&word| word as u16).collect(),
            short: words.iter().map(|&word| word as u8).collect(),
            packed: pack(&words, bits).unwrap(),
            spread,
            words,
            bits,
        }
    }

    fn all(&self) -> Vec<Reports<'_>> {
        let mut all =
            vec![Reports::U32(&self.words), Reports::Bits(&self.spread), Reports::Packed(&self.packed)];
        if self.bits <= 16 {
            all.push(Reports::U16(&self.narrow));
        }
        if self.bits <= 8 {
            all.push(Reports::U8(&self.short));
        }
        all
    }

    /// The counts of every form, on every instruction set and several numbers of threads, have to be `expected`.
    fn check(
        &self,
        columns: usize,
        expected: &[u64],
        count: impl Fn(Batch<'_>) -> Result<Vec<u64>, Error>,
        forms: impl Fn(&Reports<'_>) -> bool,
    ) {
        for reports in self.all().into_iter().filter(forms) {
            let batch = Batch::new(reports, self.words.len() / columns, columns, self.bits).unwrap();
            for &isa in Isa::available() {
                for threads in [Some(1), Some(3)] {
                    let batch = batch.on(isa).threads(threads).unwrap();
                    let form = format!("{reports:?}").chars().take(6).collect::<String>();
                    assert_eq!(count(batch).unwrap(), expected, "{isa} {form} {columns} {}", self.bits);
                }
            }
        }
    }
}

fn words(seed: u32, count: usize, bits: u32) -> Vec<u32> {
    (0..count).map(|i| scrambled(i ^ (seed as usize) << 8) >> (32 - bits)).collect()
}

fn bit(word: u32, i: u32) -> u64 {
    u64::from(word >> i & 1)
}

fn naive_ones(words: &[u32], columns: usize, bits: u32) -> Vec<u64> {
    let mut ones = vec![0; columns * bits as usize];
    for (i, &word) in words.iter().enumerate() {
        for b in 0..bits {
            ones[i % columns * bits as usize + (bits - 1 - b) as usize] += bit(word, b);
        }
    }
    ones
}

fn naive_word_counts(words: &[u32], columns: usize, bits: u32) -> Vec<u64> {
    let m = bits - 1;
    let mut counts = Vec::new();
    for column in 0..columns {
        for half in 0..2 {
            let chosen: Vec<u32> = words
                .iter()
                .skip(column)
                .step_by(columns)
                .copied()
                .filter(|w| half == 0 || bit(*w, m) == 1)
                .collect();
            counts.push(chosen.len() as u64);
            counts.extend((0..m).rev().map(|i| chosen.iter().map(|&w| bit(w, i)).sum::<u64>()));
            for first in (0..m).rev() {
                counts.extend(
                    (0..first).rev().map(|i| chosen.iter().map(|&w| bit(w, i) * bit(w, first)).sum::<u64>()),
                );
            }
        }
    }
    counts
}

fn naive_histogram(words: &[u32], columns: usize, alphabet: usize) -> Vec<u64> {
    let mut counts = vec![0; columns * alphabet];
    words.iter().enumerate().for_each(|(i, &word)| counts[i % columns * alphabet + word as usize] += 1);
    counts
}

fn naive_sums(words: &[u32], columns: usize) -> Vec<u64> {
    let mut sums = vec![0; 2 * columns];
    for (i, &word) in words.iter().enumerate() {
        sums[i % columns * 2] += u64::from(word);
        sums[i % columns * 2 + 1] += u64::from(word).pow(2);
    }
    sums
}

fn is_bits(reports: &Reports<'_>) -> bool {
    matches!(reports, Reports::Bits(_) | Reports::Packed(_))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn counts_are_their_definitions(
        seed in any::<u32>(), records in 0usize..70, columns in 1usize..45, bits in 1u32..=32,
    ) {
        let words = words(seed, records * columns, bits);
        let forms = Forms::new(words.clone(), bits);
        forms.check(columns, &naive_ones(&words, columns, bits), |batch| batch.ones(), is_bits);
        if bits >= 2 {
            let expected = naive_word_counts(&words, columns, bits);
            forms.check(columns, &expected, |batch| batch.word_counts(), |_| true);
        }
        if bits <= 10 {
            let expected = naive_histogram(&words, columns, 1 << bits);
            forms.check(columns, &expected, |batch| batch.histogram(1 << bits), |_| true);
        }
        if bits <= 28 {
            forms.check(columns, &naive_sums(&words, columns), |batch| batch.sums(1 << bits), |_| true);
        }
    }

    #[test]
    fn sampled_counts_are_their_definitions(
        seed in any::<u32>(), pairs in 0usize..3000, dimensions in 1usize..300, alphabet in 1usize..40,
    ) {
        let indices: Vec<u32> = words(seed, pairs, 32).iter().map(|i| i % dimensions as u32).collect();
        let codes: Vec<u32> = words(!seed, pairs, 32).iter().map(|i| i % alphabet as u32).collect();
        let (mut table, mut sums) = (vec![0; dimensions * alphabet], vec![0; 3 * dimensions]);
        for (&index, &code) in indices.iter().zip(&codes) {
            table[index as usize * alphabet + code as usize] += 1;
            for (power, sum) in sums[3 * index as usize..][..3].iter_mut().enumerate() {
                *sum += u64::from(code).pow(power as u32);
            }
        }
        let (indices, codes) = (Forms::new(indices, 9), Forms::new(codes, 6));
        for index in indices.all() {
            for code in codes.all() {
                let batches = (Batch::new(index, pairs, 1, 9).unwrap(), Batch::new(code, pairs, 1, 6).unwrap());
                let sampled = Sampled::new(batches.0, batches.1, dimensions).unwrap();
                prop_assert_eq!(&sampled.histogram(alphabet).unwrap(), &table);
                prop_assert_eq!(&sampled.sums(alphabet).unwrap(), &sums);
            }
        }
    }
}

/// Rows of every kind of length, and so many records that counters go over into others.
#[test]
fn long_batches_are_their_definitions() {
    for (records, columns, bits) in [
        (70_001, 1, 10),
        (40_003, 3, 7),
        (2_000, 96, 9),
        (1_000, 130, 4),
        (700, 33, 17),
        (200, 257, 16),
        (3, 5_000, 5),
    ] {
        let words = words(7, records * columns, bits);
        let forms = Forms::new(words.clone(), bits);
        forms.check(columns, &naive_ones(&words, columns, bits), |batch| batch.ones(), is_bits);
        let expected = naive_word_counts(&words, columns, bits);
        forms.check(columns, &expected, |batch| batch.word_counts(), |_| true);
        forms.check(columns, &naive_sums(&words, columns), |batch| batch.sums(1 << bits), |_| true);
        if columns << bits < 1 << 22 {
            let expected = naive_histogram(&words, columns, 1 << bits);
            forms.check(columns, &expected, |batch| batch.histogram(1 << bits), |_| true);
        }
    }
}

/// Counters, lanes and sums at their fullest.
#[test]
fn all_ones_do_not_overflow() {
    for bits in [8, 16] {
        let records = 140_000;
        let words = vec![u32::MAX >> (32 - bits); records];
        let forms = Forms::new(words.clone(), bits);
        forms.check(1, &vec![records as u64; bits as usize], |batch| batch.ones(), is_bits);
        forms.check(1, &naive_sums(&words, 1), |batch| batch.sums(1 << bits), |_| true);
        forms.check(1, &naive_word_counts(&words, 1, bits), |batch| batch.word_counts(), |_| true);
        forms.check(1, &naive_histogram(&words, 1, 1 << bits), |batch| batch.histogram(1 << bits), |_| true);
    }
}

/// The position of what was refused.
fn position<T: std::fmt::Debug>(result: Result<T, Error>) -> (&'static str, usize) {
    match result.unwrap_err() {
        Error::Value { name, index, .. } => (name, index),
        other => panic!("{other}"),
    }
}

#[test]
fn the_first_place_is_named_on_any_number_of_threads() {
    let (records, columns) = (60_000, 5);
    for at in [0, 7, 131_071, 299_999] {
        let mut codes = vec![2u16; records * columns];
        let mut bytes = vec![1u8; records * columns];
        for bad in (at..codes.len()).step_by(77_777) {
            codes[bad] = 700;
            bytes[bad] = 3;
        }
        let packed = pack(&codes, 10).unwrap();
        for threads in [Some(1), Some(4)] {
            let of = |reports, bits| {
                Batch::new(reports, records, columns, bits).unwrap().threads(threads).unwrap()
            };
            for &isa in Isa::available() {
                let codes = of(Reports::U16(&codes), 9).on(isa);
                assert_eq!(position(codes.word_counts()), ("reports", at));
                assert_eq!(position(codes.histogram(700)), ("reports", at));
                assert_eq!(position(codes.sums(700)), ("reports", at));
                let packed = of(Reports::Packed(&packed), 10).on(isa);
                assert_eq!(position(packed.histogram(700)), ("reports", at));
                assert_eq!(position(packed.sums(700)), ("reports", at));
                let bits = of(Reports::Bits(&bytes), 1).on(isa);
                assert_eq!(position(bits.ones()), ("reports", at));
                assert_eq!(position(bits.histogram(2)), ("reports", at));
                assert_eq!(position(bits.sums(2)), ("reports", at));
            }
        }
    }
}

#[test]
fn a_value_is_never_in_a_message() {
    let batch = Batch::new(Reports::U8(&[1, 177]), 2, 1, 3).unwrap();
    for error in
        [batch.word_counts().unwrap_err(), batch.histogram(5).unwrap_err(), batch.sums(5).unwrap_err()]
    {
        assert!(!error.to_string().contains("177"), "{error}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let bytes = [0u8; 6];
    for (records, columns, bits) in [(2, 3, 2), (6, 1, 0), (6, 1, 33), (6, 0, 1), (5, 1, 1)] {
        assert!(Batch::new(Reports::U8(&bytes), records, columns, bits).is_err() || bits == 2);
    }
    assert!(Batch::new(Reports::U8(&[]), usize::MAX, 2, 1).is_err());
    assert!(matches!(Batch::new(Reports::Packed(&[1]), 1, 7, 1), Err(Error::Value { index: 0, .. })));
    let batch = Batch::new(Reports::U8(&bytes), 6, 1, 1).unwrap();
    assert!(batch.word_counts().is_err() && batch.ones().is_err());
    assert!(Batch::new(Reports::U8(&bytes), 6, 1, 9).unwrap().word_counts().is_err());
    assert!(batch.threads(Some(0)).is_err());
    assert!(batch.histogram(0).is_err() && batch.histogram((1 << 32) + 1).is_err());
    let long = Batch::new(Reports::U32(&[5, 6]), 2, 1, 32).unwrap();
    assert!(long.sums(1 << 32).is_err() && long.sums(1 << 31).is_ok());
    let pair = Batch::new(Reports::U8(&bytes[..2]), 2, 1, 1).unwrap();
    assert!(Sampled::new(batch, pair, 4).is_err() && Sampled::new(pair, pair, 0).is_err());
    let nine = Batch::new(Reports::U8(&[1, 9]), 2, 1, 4).unwrap();
    assert_eq!(position(Sampled::new(nine, pair, 9).unwrap().histogram(2)), ("indices", 1));
    assert_eq!(position(Sampled::new(pair, nine, 9).unwrap().sums(9)), ("codes", 1));
}
