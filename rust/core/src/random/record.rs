//! The keys of records: keyed hashes of their ids.

use std::fmt;

#[cfg(feature = "batches")]
use blake3::Hasher;

#[cfg(not(feature = "batches"))]
use super::hash::Hasher;
use super::hashes::{MOST_WORDS, hashes};
use super::lanes::Keys;
use super::{BLOCKS, Key};
use crate::kernel::Isa;

/// Words of a digest.
const DIGEST: usize = 8;

/// The names of records, unique among those of one key.
#[derive(Clone, Copy)]
pub enum Ids<'a> {
    /// Numbers.
    Numbers(&'a [u64]),
    /// Digests of 32 bytes.
    Digests(&'a [[u8; 32]]),
    /// Digests of records and of all their values, as [`KeyedRandomness::bound`](crate::KeyedRandomness::bound) gives them: random bits depend on no
    /// value besides, so that what was computed from the record may be off by a rounding.
    Bound(&'a [[u8; 32]]),
}

impl Ids<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Ids::Numbers(ids) => ids.len(),
            Ids::Digests(ids) | Ids::Bound(ids) => ids.len(),
        }
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bits of a value that random bits depend on.
    pub(crate) fn heard(&self) -> u64 {
        if matches!(self, Ids::Bound(_)) { 0 } else { u64::MAX }
    }
}

/// How many there are: an id says who is in the data.
impl fmt::Debug for Ids<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Ids::Numbers(_) => "Numbers",
            Ids::Digests(_) => "Digests",
            Ids::Bound(_) => "Bound",
        };
        write!(f, "{kind}(<{} ids>)", self.len())
    }
}

/// The digest of all that random bits depend on besides the record: absorbed part by part, each of a length that the part
/// before it gives.
pub(crate) struct Digest(Hasher);

impl Digest {
    /// The digest under a key of a text of the caller's.
    pub(crate) fn new(key: &Key, context: &[u8]) -> Digest {
        let mut digest = Digest(Hasher::new_keyed(&key.to_bytes()));
        digest.text(b"bitldp keyed reports 1");
        digest.text(context);
        digest
    }

    /// Absorbs bytes, and how many there are.
    pub(crate) fn text(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Absorbs which of several draws of one release this is; the first absorbs nothing.
    pub(crate) fn stage(&mut self, stage: u32) {
        if stage > 0 {
            self.text(b"stage");
            self.numbers([stage.into()].into_iter());
        }
    }

    /// Absorbs numbers, and how many there are.
    pub(crate) fn numbers(&mut self, numbers: impl ExactSizeIterator<Item = u128>) {
        self.0.update(&(numbers.len() as u64).to_le_bytes());
        for number in numbers {
            self.0.update(&number.to_le_bytes());
        }
    }
}

/// The keys of records. It is never shown.
pub(crate) struct RecordKeys<'a> {
    key: [u8; 32],
    ids: Ids<'a>,
}

impl<'a> RecordKeys<'a> {
    /// The records of these ids, under what was absorbed.
    pub(crate) fn new(digest: &Digest, ids: Ids<'a>) -> RecordKeys<'a> {
        RecordKeys { key: *digest.0.finalize().as_bytes(), ids }
    }

    /// The key of one record: the oracle of what goes side by side.
    #[cfg(test)]
    pub(crate) fn key(&self, record: usize) -> Key {
        // Messages of different lengths, so no number meets a digest.
        let hash = match self.ids {
            Ids::Numbers(ids) => blake3::keyed_hash(&self.key, &ids[record].to_le_bytes()),
            Ids::Digests(ids) | Ids::Bound(ids) => blake3::keyed_hash(&self.key, &ids[record]),
        };
        Key::from_bytes(*hash.as_bytes())
    }

    /// The keys of `count` records from `first` on, sixteen together; what room is left in the last ones has no meaning.
    pub(crate) fn keys(&self, isa: Isa, first: usize, count: usize, keys: &mut [Keys]) {
        let mut messages = [[0; BLOCKS]; DIGEST];
        for (start, keys) in (first..first + count).step_by(BLOCKS).zip(keys) {
            let records = start..(start + BLOCKS).min(first + count);
            let words = self.name(records, &mut messages);
            keys.0 = hashes(isa, &Key::from_bytes(self.key), &messages[..words]);
        }
    }

    /// Writes the ids of at most sixteen records, and says how many words one has.
    fn name(&self, records: impl Iterator<Item = usize>, messages: &mut [[u32; BLOCKS]]) -> usize {
        match self.ids {
            Ids::Numbers(ids) => {
                for (lane, record) in records.enumerate() {
                    let id = ids[record];
                    (messages[0][lane], messages[1][lane]) = (id as u32, (id >> 32) as u32);
                }
                2
            }
            Ids::Digests(ids) | Ids::Bound(ids) => {
                for (lane, record) in records.enumerate() {
                    for (word, part) in messages.iter_mut().zip(ids[record].as_chunks::<4>().0) {
                        word[lane] = u32::from_le_bytes(*part);
                    }
                }
                DIGEST
            }
        }
    }

    /// The keys of whole records, each of an id, a column and all values in it, sixteen together; what room is left in the
    /// last ones has no meaning.
    ///
    /// The values are as many for every record of a law, and so a number and a digest have messages of different lengths
    /// here, too.
    pub(crate) fn keys_with(&self, isa: Isa, records: &WholeRecords<'_>) -> Vec<Keys> {
        let WholeRecords { count, width, values, .. } = *records;
        let words = if matches!(self.ids, Ids::Numbers(_)) { 2 } else { DIGEST } + 1 + 2 * width;
        let mut keys = vec![Keys::none(); count.div_ceil(BLOCKS)];
        if words > MOST_WORDS {
            let mut message = Vec::with_capacity(4 * words);
            for at in 0..count {
                keys[at / BLOCKS].set(at % BLOCKS, &self.key_with(records, at, &mut message));
            }
            return keys;
        }
        let mut messages = vec![[0; BLOCKS]; words];
        for (start, keys) in (0..count).step_by(BLOCKS).zip(&mut keys) {
            let lanes = BLOCKS.min(count - start);
            let own = self.name((start..start + lanes).map(|at| records.column(at).0), &mut messages);
            let (column, rest) = messages[own..].split_first_mut().expect("a column behind the id");
            for (lane, at) in (start..start + lanes).enumerate() {
                column[lane] = records.column(at).1;
                let of_record = &values[at * width..(at + 1) * width];
                for (words, &value) in rest.as_chunks_mut::<2>().0.iter_mut().zip(of_record) {
                    (words[0][lane], words[1][lane]) = (value as u32, (value >> 32) as u32);
                }
            }
            keys.0 = hashes(isa, &Key::from_bytes(self.key), &messages);
        }
        keys
    }

    /// The key of one of these records, by way of `message`.
    fn key_with(&self, records: &WholeRecords<'_>, at: usize, message: &mut Vec<u8>) -> Key {
        let (record, column) = records.column(at);
        message.clear();
        match self.ids {
            Ids::Numbers(ids) => message.extend(ids[record].to_le_bytes()),
            Ids::Digests(ids) | Ids::Bound(ids) => message.extend(ids[record]),
        }
        message.extend(column.to_le_bytes());
        let values = &records.values[at * records.width..(at + 1) * records.width];
        message.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let mut hasher = Hasher::new_keyed(&self.key);
        hasher.update(message);
        Key::from_bytes(*hasher.finalize().as_bytes())
    }
}

/// Columns of records, each a whole record by itself, and their values.
pub(crate) struct WholeRecords<'a> {
    /// The first one, counted id by id, and how many there are.
    pub(crate) first: usize,
    pub(crate) count: usize,
    /// The number of an id's first column, and how many it has.
    pub(crate) column: u32,
    pub(crate) columns: usize,
    /// Values of a column, and those of all.
    pub(crate) width: usize,
    pub(crate) values: &'a [u64],
}

impl WholeRecords<'_> {
    /// The index of the id of the `at`-th, and the number of the column.
    #[inline(always)]
    fn column(&self, at: usize) -> (usize, u32) {
        let (at, columns) = (self.first + at, self.columns);
        // Most have one column, and a division takes long.
        if columns == 1 { (at, self.column) } else { (at / columns, self.column + (at % columns) as u32) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(key: u8, context: &[u8], ids: Ids<'_>) -> [u8; 32] {
        RecordKeys::new(&Digest::new(&Key::from_bytes([key; 32]), context), ids).key(0).to_bytes()
    }

    #[test]
    fn a_record_has_another_key_for_another_key_context_or_id() {
        let (one, two, digest) = (Ids::Numbers(&[1]), Ids::Numbers(&[2]), Ids::Digests(&[[1; 32]]));
        let keys = [
            first(1, b"a", one),
            first(2, b"a", one),
            first(1, b"b", one),
            first(1, b"", one),
            first(1, b"a", two),
            first(1, b"a", digest),
        ];
        for (i, key) in keys.iter().enumerate() {
            assert!(!keys[..i].contains(key), "{i}");
        }
        assert_eq!(first(1, b"a", one), keys[0]);
    }

    #[test]
    fn keys_together_are_those_one_by_one() {
        let numbers: Vec<u64> = (0..45).map(|i| i << 30 | 7).collect();
        let digests: Vec<[u8; 32]> = (0..45).map(|i| std::array::from_fn(|j| i * 5 + j as u8)).collect();
        for ids in [Ids::Numbers(&numbers), Ids::Digests(&digests), Ids::Bound(&digests)] {
            let records = RecordKeys { key: [9; 32], ids };
            for &isa in Isa::available() {
                for (first, count) in [(0, 45), (3, 16), (40, 5), (7, 0), (1, 33)] {
                    let mut keys = vec![Keys::none(); usize::div_ceil(count, BLOCKS)];
                    records.keys(isa, first, count, &mut keys);
                    let key = |at: usize| keys[at / BLOCKS].key(at % BLOCKS);
                    assert!((0..count).all(|at| key(at) == records.key(first + at)), "{isa}");
                }
            }
        }
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let digest = |parts: [&[u8]; 2]| {
            let mut digest = Digest::new(&Key::from_bytes([5; 32]), parts[0]);
            digest.text(parts[1]);
            RecordKeys::new(&digest, Ids::Numbers(&[0])).key(0).to_bytes()
        };
        assert_ne!(digest([b"ab", b"c"]), digest([b"a", b"bc"]));
    }

    /// Numbers and digests, one column and several, records of no values and of many.
    #[test]
    fn keys_of_whole_records_are_those_one_by_one() {
        let numbers: Vec<u64> = (0..45).map(|i| i << 30 | 7).collect();
        let digests: Vec<[u8; 32]> = (0..45).map(|i| std::array::from_fn(|j| i * 5 + j as u8)).collect();
        for ids in [Ids::Numbers(&numbers), Ids::Digests(&digests), Ids::Bound(&digests)] {
            let records = RecordKeys { key: [9; 32], ids };
            for (first, count, columns) in [(0, 45, 1), (3, 16, 1), (7, 83, 2), (1, 33, 3), (4, 0, 1)] {
                for width in [0, 1, 2, 7, 124, 130] {
                    let values: Vec<u64> = (0..count * width).map(|i| (i as u64) << 29 | 5).collect();
                    let whole = WholeRecords { first, count, column: 6, columns, width, values: &values };
                    for &isa in Isa::available() {
                        let keys = records.keys_with(isa, &whole);
                        let mut message = Vec::new();
                        for at in 0..count {
                            let expected = records.key_with(&whole, at, &mut message);
                            assert!(
                                keys[at / BLOCKS].key(at % BLOCKS) == expected,
                                "{isa}, {width} values, {at}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn values_and_columns_have_keys_of_their_own() {
        let records = RecordKeys { key: [9; 32], ids: Ids::Numbers(&[3, 4]) };
        let digests = RecordKeys { key: [9; 32], ids: Ids::Digests(&[[3; 32]]) };
        let of = |records: &RecordKeys<'_>, first, column, values: &[u64]| {
            let whole = WholeRecords { first, count: 1, column, columns: 1, width: values.len(), values };
            records.keys_with(Isa::Scalar, &whole)[0].key(0)
        };
        let keys = [
            records.key(0),
            of(&records, 0, 0, &[]),
            of(&records, 0, 0, &[1, 2]),
            of(&records, 0, 0, &[2, 1]),
            of(&records, 0, 1, &[1, 2]),
            of(&records, 1, 0, &[1, 2]),
            of(&digests, 0, 0, &[1, 2]),
        ];
        for (i, key) in keys.iter().enumerate() {
            assert!(!keys[..i].contains(key), "{i}");
        }
        assert!(of(&records, 0, 0, &[1, 2]) == keys[2]);
    }

    #[test]
    fn stages_are_parts_of_their_own() {
        let key = |stages: &[u32]| {
            let mut digest = Digest::new(&Key::from_bytes([5; 32]), b"");
            stages.iter().for_each(|&stage| digest.stage(stage));
            RecordKeys::new(&digest, Ids::Numbers(&[0])).key(0)
        };
        assert!(key(&[]) == key(&[0]));
        assert!(key(&[1]) != key(&[0]) && key(&[1]) != key(&[2]));
    }

    #[test]
    fn ids_are_not_printed() {
        assert_eq!(format!("{:?}", Ids::Numbers(&[7731, 5])), "Numbers(<2 ids>)");
        assert_eq!(format!("{:?}", Ids::Digests(&[[77; 32]])), "Digests(<1 ids>)");
    }

    /// By the published function: a keyed hash of the id's eight bytes.
    #[test]
    fn a_key_is_a_keyed_hash() {
        let records = RecordKeys { key: [9; 32], ids: Ids::Numbers(&[3]) };
        let expected = blake3::keyed_hash(&[9; 32], &[3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(records.key(0).to_bytes(), *expected.as_bytes());
    }
}
