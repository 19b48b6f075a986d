//! Keyed BLAKE3 hashes of sixteen short messages side by side: the same bytes as one by one.
//!
//! A message of at most 64 bytes is one block, the first, the last and the root at once (the BLAKE3 paper, sections 2.1 to
//! 2.3).

use super::{BLOCKS, Key};
use crate::isa::{Isa, compiled};
use crate::vector::{Kernel, Vector};

/// Words of eight bytes or of a digest at most, and of a hash; word by word, lane by lane.
pub(super) type Half = [[u32; BLOCKS]; 8];

const IV: [u32; 4] = [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a];
/// `CHUNK_START`, `CHUNK_END`, `ROOT` and `KEYED_HASH`.
const FLAGS: u32 = 1 | 2 | 8 | 16;
const ROUNDS: usize = 7;
/// The order of the words of a message in a round, of those in the round before.
const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];

/// The order of the words of the message in each round.
const SCHEDULE: [[usize; 16]; ROUNDS] = {
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
    ($v:ident, $message:ident, $round:expr, $(($i:expr, $a:expr, $b:expr, $c:expr, $d:expr)),*) => {
        $( $v[$a] = plus($v[$a].plus_32($v[$b]), &$message, SCHEDULE[$round][2 * $i]); )*
        $( $v[$d] = $v[$d].xor($v[$a]).rotate_32::<16, 16>(); )*
        $( $v[$c] = $v[$c].plus_32($v[$d]); )*
        $( $v[$b] = $v[$b].xor($v[$c]).rotate_32::<12, 20>(); )*
        $( $v[$a] = plus($v[$a].plus_32($v[$b]), &$message, SCHEDULE[$round][2 * $i + 1]); )*
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

/// Messages of `WORDS` words each, and room for their hashes.
struct Messages<'a, const WORDS: usize> {
    key: &'a Key,
    messages: &'a Half,
    out: &'a mut Half,
}

impl<const WORDS: usize> Kernel for Messages<'_, WORDS> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(self, any: V) {
        let last = [0, 0, 4 * WORDS as u32, FLAGS];
        for lane in (0..BLOCKS).step_by(V::LANES) {
            let mut message = [any; WORDS];
            for (word, lanes) in message.iter_mut().zip(self.messages) {
                *word = any.load(&lanes[lane..]);
            }
            let mut v = [any; 16];
            let start = self.key.0.iter().chain(&IV).chain(&last);
            for (word, &start) in v.iter_mut().zip(start) {
                *word = any.repeat_32(start);
            }
            macro_rules! rounds {
                ($($round:expr),*) => { $(
                    mixes!(v, message, $round, (0, 0, 4, 8, 12), (1, 1, 5, 9, 13), (2, 2, 6, 10, 14), (3, 3, 7, 11, 15));
                    mixes!(v, message, $round, (4, 0, 5, 10, 15), (5, 1, 6, 11, 12), (6, 2, 7, 8, 13), (7, 3, 4, 9, 14));
                )* };
            }
            rounds!(0, 1, 2, 3, 4, 5, 6);
            for (word, out) in self.out.iter_mut().enumerate() {
                v[word].xor(v[word + 8]).store(&mut out[lane..]);
            }
        }
    }
}

/// The keyed hashes of sixteen messages of `WORDS` little-endian words each, at most eight.
pub(super) fn hashes<const WORDS: usize>(isa: Isa, key: &Key, messages: &Half) -> Half {
    if isa == Isa::Scalar {
        return portable::<WORDS>(key, messages);
    }
    let mut out = [[0; BLOCKS]; 8];
    compiled(isa, Messages::<WORDS> { key, messages, out: &mut out });
    out
}

/// [`hashes`] without a vector unit of its own: the lanes go side by side through every round, as those of
/// [`chacha`](super::chacha) do.
fn portable<const WORDS: usize>(key: &Key, messages: &Half) -> Half {
    let mut states = [[0; BLOCKS]; 16];
    let last = [0, 0, 4 * WORDS as u32, FLAGS];
    for (word, &start) in states.iter_mut().zip(key.0.iter().chain(&IV).chain(&last)) {
        *word = [start; BLOCKS];
    }
    portable_round::<0, WORDS>(&mut states, messages);
    portable_round::<1, WORDS>(&mut states, messages);
    portable_round::<2, WORDS>(&mut states, messages);
    portable_round::<3, WORDS>(&mut states, messages);
    portable_round::<4, WORDS>(&mut states, messages);
    portable_round::<5, WORDS>(&mut states, messages);
    portable_round::<6, WORDS>(&mut states, messages);
    std::array::from_fn(|word| std::array::from_fn(|lane| states[word][lane] ^ states[word + 8][lane]))
}

/// One round of every lane. The number of the round is known, so that words behind the end of a message cost nothing.
#[inline(always)]
#[allow(clippy::needless_range_loop, reason = "a lane is a column: its words are in sixteen rows")]
fn portable_round<const ROUND: usize, const WORDS: usize>(states: &mut [[u32; BLOCKS]; 16], messages: &Half) {
    for lane in 0..BLOCKS {
        let mut v: [u32; 16] = std::array::from_fn(|word| states[word][lane]);
        let message: [u32; WORDS] = std::array::from_fn(|word| messages[word][lane]);
        let word = |at: usize| message.get(SCHEDULE[ROUND][at]).copied().unwrap_or(0);
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
        for word in 0..16 {
            states[word][lane] = v[word];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lane_is_the_published_function() {
        check::<2>();
        check::<8>();
    }

    fn check<const WORDS: usize>() {
        let key = Key::from_bytes(std::array::from_fn(|i| (i * 9) as u8));
        let bytes = |lane: usize| -> Vec<u8> { (0..4 * WORDS).map(|i| (lane * 37 + i * 11) as u8).collect() };
        let mut messages = [[0; BLOCKS]; 8];
        for lane in 0..BLOCKS {
            for (word, part) in messages.iter_mut().zip(bytes(lane).as_chunks::<4>().0) {
                word[lane] = u32::from_le_bytes(*part);
            }
        }
        for &isa in Isa::available() {
            let result = hashes::<WORDS>(isa, &key, &messages);
            (0..BLOCKS).for_each(|lane| {
                let expected = blake3::keyed_hash(&key.to_bytes(), &bytes(lane));
                let own = Key(std::array::from_fn(|word| result[word][lane]));
                assert_eq!(own.to_bytes(), *expected.as_bytes(), "{isa}, {WORDS} words, lane {lane}");
            });
        }
    }
}
