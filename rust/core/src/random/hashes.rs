//! Keyed BLAKE3 hashes of sixteen messages of one length side by side: the same bytes as one by one.
//!
//! A message of at most 1024 bytes is one chunk: a chain of blocks of 64 bytes, the last of which is the root (the BLAKE3
//! paper, sections 2.1 to 2.4).

use super::{BLOCKS, Key};
use crate::isa::{BATCHES, Isa, Unit, compiled};
use crate::vector::{Kernel, Vector};

/// Words of a hash; word by word, lane by lane.
pub(super) type Half = [[u32; BLOCKS]; 8];

/// The most words of a message: those of a chunk.
pub(super) const MOST_WORDS: usize = 256;

/// Words of a block.
const BLOCK: usize = 16;

pub(super) const IV: [u32; 4] = [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a];
pub(super) const CHUNK_START: u32 = 1;
pub(super) const CHUNK_END: u32 = 2;
pub(super) const ROOT: u32 = 8;
pub(super) const KEYED_HASH: u32 = 16;
const ROUNDS: usize = 7;
/// The order of the words of a message in a round, of those in the round before.
const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];

/// The order of the words of the message in each round.
pub(super) const SCHEDULE: [[usize; 16]; ROUNDS] = {
    let mut schedule = [[0; 16]; ROUNDS];
    let mut word = 0;
    while word < 16 {
        schedule[0][word] = word;
        word += 1;
    }
    let mut round = 1;
    while round < ROUNDS {
        let mut word = 0;
        while word < 16 {
            schedule[round][word] = schedule[round - 1][PERMUTATION[word]];
            word += 1;
        }
        round += 1;
    }
    schedule
};

/// Four mixes of words of state, step by step side by side, so that the processor always has independent work.
macro_rules! mixes {
    ($v:ident, $message:ident, $words:expr, $(($i:expr, $a:expr, $b:expr, $c:expr, $d:expr)),*) => {
        $( $v[$a] = plus($v[$a].plus_32($v[$b]), &$message, $words[2 * $i]); )*
        $( $v[$d] = $v[$d].xor($v[$a]).rotate_32::<16, 16>(); )*
        $( $v[$c] = $v[$c].plus_32($v[$d]); )*
        $( $v[$b] = $v[$b].xor($v[$c]).rotate_32::<12, 20>(); )*
        $( $v[$a] = plus($v[$a].plus_32($v[$b]), &$message, $words[2 * $i + 1]); )*
        $( $v[$d] = $v[$d].xor($v[$a]).rotate_32::<8, 24>(); )*
        $( $v[$c] = $v[$c].plus_32($v[$d]); )*
        $( $v[$b] = $v[$b].xor($v[$c]).rotate_32::<7, 25>(); )*
    };
}

/// Adds a word of the message; those behind its end are zeros.
#[inline(always)]
fn plus<V: Vector, const WORDS: usize>(sum: V, message: &[V; WORDS], word: usize) -> V {
    message.get(word).map_or(sum, |&word| sum.plus_32(word))
}

/// A block of `WORDS` words of each message, zeros behind those, and the chaining values that it goes into.
struct Compress<'a, const WORDS: usize> {
    chaining: &'a mut Half,
    block: &'a [[u32; BLOCKS]],
    last: [u32; 4],
}

impl<const WORDS: usize> Kernel for Compress<'_, WORDS> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(self, any: V) {
        for lane in (0..BLOCKS).step_by(V::LANES) {
            let mut message = [any.repeat_32(0); WORDS];
            for (word, lanes) in message.iter_mut().zip(self.block) {
                *word = any.load(&lanes[lane..]);
            }
            let mut v = [any; 16];
            for (word, start) in v.iter_mut().zip(&*self.chaining) {
                *word = any.load(&start[lane..]);
            }
            for (word, &start) in v[8..].iter_mut().zip(IV.iter().chain(&self.last)) {
                *word = any.repeat_32(start);
            }
            macro_rules! rounds {
                ($($words:expr),*) => { $(
                    mixes!(v, message, $words, (0, 0, 4, 8, 12), (1, 1, 5, 9, 13), (2, 2, 6, 10, 14), (3, 3, 7, 11, 15));
                    mixes!(v, message, $words, (4, 0, 5, 10, 15), (5, 1, 6, 11, 12), (6, 2, 7, 8, 13), (7, 3, 4, 9, 14));
                )* };
            }
            if BATCHES {
                rounds!(
                    SCHEDULE[0],
                    SCHEDULE[1],
                    SCHEDULE[2],
                    SCHEDULE[3],
                    SCHEDULE[4],
                    SCHEDULE[5],
                    SCHEDULE[6]
                );
            } else {
                for words in &SCHEDULE {
                    rounds!(words);
                }
            }
            for (word, out) in self.chaining.iter_mut().enumerate() {
                v[word].xor(v[word + 8]).store(&mut out[lane..]);
            }
        }
    }
}

/// The keyed hashes of sixteen messages of as many little-endian words each, 1 to [`MOST_WORDS`]: word by word, lane by lane.
pub(super) fn hashes(isa: Isa, key: &Key, messages: &[[u32; BLOCKS]]) -> Half {
    debug_assert!((1..=MOST_WORDS).contains(&messages.len()));
    let mut chaining = key.0.map(|word| [word; BLOCKS]);
    let blocks = messages.len().div_ceil(BLOCK);
    for (number, block) in messages.chunks(BLOCK).enumerate() {
        let start = if number == 0 { CHUNK_START } else { 0 };
        let end = if number + 1 == blocks { CHUNK_END | ROOT } else { 0 };
        let last = [0, 0, 4 * block.len() as u32, KEYED_HASH | start | end];
        // Words behind the end of a block cost nothing, or code.
        match block.len() {
            ..=2 if BATCHES => compress::<2>(isa, &mut chaining, block, last),
            3..=5 if BATCHES => compress::<5>(isa, &mut chaining, block, last),
            6..=8 if BATCHES => compress::<8>(isa, &mut chaining, block, last),
            _ => compress::<16>(isa, &mut chaining, block, last),
        }
    }
    chaining
}

/// Takes a block of at most `WORDS` words of each message into its chaining value.
#[inline]
fn compress<const WORDS: usize>(isa: Isa, chaining: &mut Half, block: &[[u32; BLOCKS]], last: [u32; 4]) {
    if BATCHES && isa.unit() == Unit::Scalar {
        portable::<WORDS>(chaining, block, last);
    } else {
        compiled(isa, Compress::<WORDS> { chaining, block, last });
    }
}

/// [`compress`] without a vector unit of its own: the lanes go side by side through every round, as those of
/// [`chacha`](super::chacha) do.
fn portable<const WORDS: usize>(chaining: &mut Half, block: &[[u32; BLOCKS]], last: [u32; 4]) {
    let mut message = [[0; BLOCKS]; WORDS];
    message.iter_mut().zip(block).for_each(|(word, lanes)| *word = *lanes);
    let mut states = [[0; BLOCKS]; 16];
    states[..8].copy_from_slice(chaining);
    for (word, &start) in states[8..].iter_mut().zip(IV.iter().chain(&last)) {
        *word = [start; BLOCKS];
    }
    portable_round::<0, WORDS>(&mut states, &message);
    portable_round::<1, WORDS>(&mut states, &message);
    portable_round::<2, WORDS>(&mut states, &message);
    portable_round::<3, WORDS>(&mut states, &message);
    portable_round::<4, WORDS>(&mut states, &message);
    portable_round::<5, WORDS>(&mut states, &message);
    portable_round::<6, WORDS>(&mut states, &message);
    *chaining =
        std::array::from_fn(|word| std::array::from_fn(|lane| states[word][lane] ^ states[word + 8][lane]));
}

/// One round on a state; `word(i)` is the word of the message that it takes in the `i`-th place.
#[inline(always)]
pub(super) fn round(v: &mut [u32; 16], word: impl Fn(usize) -> u32) {
    let mut mix = |i: usize, a: usize, b: usize, c: usize, d: usize| {
        v[a] = v[a].wrapping_add(v[b]).wrapping_add(word(2 * i));
        v[d] = (v[d] ^ v[a]).rotate_right(16);
        v[c] = v[c].wrapping_add(v[d]);
        v[b] = (v[b] ^ v[c]).rotate_right(12);
        v[a] = v[a].wrapping_add(v[b]).wrapping_add(word(2 * i + 1));
        v[d] = (v[d] ^ v[a]).rotate_right(8);
        v[c] = v[c].wrapping_add(v[d]);
        v[b] = (v[b] ^ v[c]).rotate_right(7);
    };
    mix(0, 0, 4, 8, 12);
    mix(1, 1, 5, 9, 13);
    mix(2, 2, 6, 10, 14);
    mix(3, 3, 7, 11, 15);
    mix(4, 0, 5, 10, 15);
    mix(5, 1, 6, 11, 12);
    mix(6, 2, 7, 8, 13);
    mix(7, 3, 4, 9, 14);
}

/// One round of every lane. The number of the round is known, so that words behind the end of a message cost nothing.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "a lane is a column: its words are in sixteen rows")]
fn portable_round<const ROUND: usize, const WORDS: usize>(
    states: &mut [[u32; BLOCKS]; 16],
    messages: &[[u32; BLOCKS]; WORDS],
) {
    for lane in 0..BLOCKS {
        let mut v: [u32; 16] = std::array::from_fn(|word| states[word][lane]);
        let message: [u32; WORDS] = std::array::from_fn(|word| messages[word][lane]);
        let word = |at: usize| message.get(SCHEDULE[ROUND][at]).copied().unwrap_or(0);
        round(&mut v, word);
        for word in 0..16 {
            states[word][lane] = v[word];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One block and several, whole and begun.
    #[test]
    fn each_lane_is_the_published_function() {
        let key = Key::from_bytes(std::array::from_fn(|i| (i * 9) as u8));
        for words in [1, 2, 3, 5, 8, 9, 11, 15, 16, 17, 32, 35, 255, MOST_WORDS] {
            let bytes = |lane: usize| -> Vec<u8> {
                (0..4 * words).map(|i| (lane * 37 + i * 11 + i / 256) as u8).collect()
            };
            let mut messages = vec![[0; BLOCKS]; words];
            for lane in 0..BLOCKS {
                for (word, part) in messages.iter_mut().zip(bytes(lane).as_chunks::<4>().0) {
                    word[lane] = u32::from_le_bytes(*part);
                }
            }
            for &isa in Isa::available() {
                let result = hashes(isa, &key, &messages);
                #[allow(clippy::needless_range_loop)] // a lane is a column of the result, not a row
                for lane in 0..BLOCKS {
                    let expected = blake3::keyed_hash(&key.to_bytes(), &bytes(lane));
                    let own = Key(std::array::from_fn(|word| result[word][lane]));
                    assert_eq!(own.to_bytes(), *expected.as_bytes(), "{isa}, {words} words, lane {lane}");
                }
            }
        }
    }
}
