//! Lanes: sixteen blocks of the keystream side by side, each with a key, a counter and a nonce of its own.

use super::{BLOCKS, Key, Purpose, ROUNDS, chacha};
use crate::kernel::Isa;

/// The words of sixteen blocks: word by word, lane by lane.
pub(crate) type Words = chacha::Sixteen;

/// The counter at which a column's lane begins for a purpose; 2^24 blocks later the next column's begins.
#[inline(always)]
pub(crate) fn counter(purpose: Purpose, column: u32) -> u64 {
    (purpose as u64) << 56 | u64::from(column) << 24
}

/// The keys of sixteen records: word by word, lane by lane.
#[derive(Clone)]
pub(crate) struct Keys(pub(super) [[u32; BLOCKS]; 8]);

impl Keys {
    /// Room for keys.
    pub(crate) fn none() -> Keys {
        Keys([[0; BLOCKS]; 8])
    }

    /// Sets the key of a lane.
    pub(super) fn set(&mut self, lane: usize, key: &Key) {
        for (word, &part) in self.0.iter_mut().zip(&key.0) {
            word[lane] = part;
        }
    }

    /// Writes the bytes of the first keys.
    pub(crate) fn write(&self, out: &mut [[u8; 32]]) {
        for (lane, out) in out.iter_mut().enumerate() {
            for (bytes, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(&self.0) {
                *bytes = word[lane].to_le_bytes();
            }
        }
    }

    /// The key of a lane.
    pub(crate) fn key(&self, lane: usize) -> Key {
        Key(self.0.map(|word| word[lane]))
    }
}

/// The states of sixteen blocks.
#[repr(C, align(64))]
pub(crate) struct Lanes(Words);

impl Lanes {
    /// How many there are.
    pub(crate) const COUNT: usize = BLOCKS;

    /// Lanes of no key yet.
    pub(crate) fn new() -> Lanes {
        let mut state = [[0; Lanes::COUNT]; 16];
        for (word, constant) in state.iter_mut().zip(chacha::CONSTANTS) {
            *word = [constant; Lanes::COUNT];
        }
        Lanes(state)
    }

    /// Sets the keys of all lanes.
    #[inline(always)]
    pub(crate) fn set_keys(&mut self, keys: &Keys) {
        self.0[4..12].copy_from_slice(&keys.0);
    }

    /// Sets the key of one lane to that of a lane of others.
    #[inline(always)]
    pub(crate) fn set_key(&mut self, lane: usize, keys: &Keys, theirs: usize) {
        for (word, key) in self.0[4..12].iter_mut().zip(&keys.0) {
            word[lane] = key[theirs];
        }
    }

    /// Sets where the block of each lane is.
    #[inline(always)]
    pub(crate) fn set_places(&mut self, counters: &[u64; BLOCKS], nonces: &[u64; BLOCKS]) {
        for (words, positions) in self.0[12..].as_chunks_mut::<2>().0.iter_mut().zip([counters, nonces]) {
            for (lane, &position) in positions.iter().enumerate() {
                (words[0][lane], words[1][lane]) = (position as u32, (position >> 32) as u32);
            }
        }
    }

    /// Sets where the blocks of all lanes are.
    #[inline(always)]
    fn set_place(&mut self, counter: u64, nonce: u64) {
        for (words, position) in self.0[12..].as_chunks_mut::<2>().0.iter_mut().zip([counter, nonce]) {
            *words = [[position as u32; BLOCKS], [(position >> 32) as u32; BLOCKS]];
        }
    }

    /// Writes the blocks.
    #[inline]
    pub(crate) fn blocks(&self, isa: Isa, out: &mut Words) {
        chacha::blocks::<ROUNDS>(isa, &self.0, out);
    }
}

/// A block of the streams of sixteen keys.
pub(crate) fn blocks_at(isa: Isa, keys: &Keys, counter: u64, nonce: u64, out: &mut Words) {
    let mut lanes = Lanes::new();
    lanes.set_keys(keys);
    lanes.set_place(counter, nonce);
    lanes.blocks(isa, out);
}

/// The first words of the streams of sixteen keys, in canonical order: the first words of sixteen blocks come first.
pub(crate) fn first_words(isa: Isa, keys: &Keys, nonce: u64, out: &mut [[u32; BLOCKS]]) {
    let mut lanes = Lanes::new();
    lanes.set_keys(keys);
    let mut block = [[0; BLOCKS]; 16];
    for (group, out) in (0..).step_by(BLOCKS).zip(out.chunks_mut(BLOCKS * 16)) {
        for number in 0..BLOCKS.min(out.len()) {
            lanes.set_place(group + number as u64, nonce);
            lanes.blocks(isa, &mut block);
            for (word, out) in block.iter().zip(out[number..].iter_mut().step_by(BLOCKS)) {
                *out = *word;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{block, keystream_on};

    #[test]
    fn every_lane_is_the_block_of_its_own_key_counter_and_nonce() {
        let key = |lane: usize| Key::from_bytes(std::array::from_fn(|i| (i * 7 + lane * 31) as u8));
        let (counter, nonce) = (|lane: usize| (lane as u64) << 54 | 5, |lane: usize| !(lane as u64 * 977));
        let mut lanes = Lanes::new();
        let mut keys = Keys::none();
        for lane in 0..Lanes::COUNT {
            for (words, word) in keys.0.iter_mut().zip(key(lane).0) {
                words[lane] = word;
            }
        }
        let mut bytes = [[0; 32]; Lanes::COUNT];
        keys.write(&mut bytes);
        assert!(
            (0..Lanes::COUNT).all(|lane| keys.key(lane) == key(lane) && bytes[lane] == key(lane).to_bytes())
        );
        lanes.set_keys(&keys);
        lanes.set_places(&std::array::from_fn(counter), &std::array::from_fn(nonce));
        for &isa in Isa::available() {
            let mut out = [[0; Lanes::COUNT]; 16];
            lanes.blocks(isa, &mut out);
            for lane in 0..Lanes::COUNT {
                let expected = block::<ROUNDS>(&key(lane), counter(lane), nonce(lane));
                for (word, expected) in out.iter().zip(expected.as_chunks::<4>().0) {
                    assert_eq!(word[lane], u32::from_le_bytes(*expected), "{isa}, lane {lane}");
                }
            }
        }
    }

    #[test]
    fn a_lane_takes_the_key_of_another() {
        let keys = Keys(std::array::from_fn(|word| std::array::from_fn(|lane| (word * 16 + lane) as u32)));
        let mut lanes = Lanes::new();
        lanes.set_key(2, &keys, 5);
        assert_eq!(lanes.0[4..12].iter().map(|word| word[2]).collect::<Vec<_>>(), keys.key(5).0);
        assert!(lanes.0[4..12].iter().all(|word| word[5] == 0));
    }

    #[test]
    fn first_words_are_those_of_each_key() {
        let mut keys = Keys::none();
        let key = |lane: usize| Key::from_bytes(std::array::from_fn(|i| (i * 5 + lane * 23) as u8));
        (0..Lanes::COUNT).for_each(|lane| keys.set(lane, &key(lane)));
        for &isa in Isa::available() {
            for count in [1, 2, 15, 16, 17, 33, 256, 257, 300] {
                let mut words = vec![[0; BLOCKS]; count];
                first_words(isa, &keys, 3 << 56, &mut words);
                for lane in 0..Lanes::COUNT {
                    let mut expected = vec![0; 4 * count];
                    keystream_on::<ROUNDS>(isa, &key(lane), 3 << 56, 0, &mut expected);
                    for (word, expected) in words.iter().zip(expected.as_chunks::<4>().0) {
                        assert_eq!(word[lane], u32::from_le_bytes(*expected), "{isa}, {count}, lane {lane}");
                    }
                }
            }
            let mut out = [[0; BLOCKS]; 16];
            blocks_at(isa, &keys, 4, 7, &mut out);
            let expected = block::<ROUNDS>(&key(5), 4, 7);
            assert!(
                out.iter()
                    .zip(expected.as_chunks::<4>().0)
                    .all(|(word, bytes)| word[5].to_le_bytes() == *bytes)
            );
        }
    }

    #[test]
    fn counters_of_purposes_and_columns_never_meet() {
        assert_eq!(counter(Purpose::Main, 0), 0);
        assert_eq!(counter(Purpose::Main, u32::MAX), (1 << 56) - (1 << 24));
        assert_eq!(counter(Purpose::Refine, 3), 1 << 56 | 3 << 24);
    }
}
