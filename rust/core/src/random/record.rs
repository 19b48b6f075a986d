//! The keys of records: keyed hashes of their ids.

use std::fmt;

use super::hashes::hashes;
use super::lanes::Keys;
use super::{BLOCKS, Key};
use crate::kernel::Isa;

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
pub(crate) struct Digest(blake3::Hasher);

impl Digest {
    /// The digest under a key of a text of the caller's.
    pub(crate) fn new(key: &Key, context: &[u8]) -> Digest {
        let mut digest = Digest(blake3::Hasher::new_keyed(&key.to_bytes()));
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

    /// The key of one record.
    #[inline]
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
        let own = Key::from_bytes(self.key);
        for (start, keys) in (first..first + count).step_by(BLOCKS).zip(keys) {
            let those = start..(start + BLOCKS).min(first + count);
            let mut messages = [[0; BLOCKS]; 8];
            keys.0 = match self.ids {
                Ids::Numbers(ids) => {
                    for (lane, &id) in ids[those].iter().enumerate() {
                        (messages[0][lane], messages[1][lane]) = (id as u32, (id >> 32) as u32);
                    }
                    hashes::<2>(isa, &own, &messages)
                }
                Ids::Digests(ids) | Ids::Bound(ids) => {
                    for (lane, id) in ids[those].iter().enumerate() {
                        for (word, part) in messages.iter_mut().zip(id.as_chunks::<4>().0) {
                            word[lane] = u32::from_le_bytes(*part);
                        }
                    }
                    hashes::<8>(isa, &own, &messages)
                }
            };
        }
    }

    /// The key of a record's column and all values in it, by way of `message`.
    ///
    /// The values are as many for every record of a law, and so a number and a digest have messages of different lengths
    /// here, too.
    pub(crate) fn key_with(&self, record: usize, column: u32, values: &[u64], message: &mut Vec<u8>) -> Key {
        message.clear();
        match self.ids {
            Ids::Numbers(ids) => message.extend(ids[record].to_le_bytes()),
            Ids::Digests(ids) | Ids::Bound(ids) => message.extend(ids[record]),
        }
        message.extend(column.to_le_bytes());
        message.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        Key::from_bytes(*blake3::keyed_hash(&self.key, message).as_bytes())
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

    #[test]
    fn values_and_columns_have_keys_of_their_own() {
        let records = RecordKeys { key: [9; 32], ids: Ids::Numbers(&[3, 4]) };
        let digests = RecordKeys { key: [9; 32], ids: Ids::Digests(&[[3; 32]]) };
        let mut buffers = Vec::new();
        let keys = [
            records.key(0),
            records.key_with(0, 0, &[], &mut buffers),
            records.key_with(0, 0, &[1, 2], &mut buffers),
            records.key_with(0, 0, &[2, 1], &mut buffers),
            records.key_with(0, 1, &[1, 2], &mut buffers),
            records.key_with(1, 0, &[1, 2], &mut buffers),
            digests.key_with(0, 0, &[1, 2], &mut buffers),
        ];
        for (i, key) in keys.iter().enumerate() {
            assert!(!keys[..i].contains(key), "{i}");
        }
        assert!(records.key_with(0, 0, &[1, 2], &mut buffers) == keys[2]);
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
