//! Keyed BLAKE3 hashes of sixteen short messages side by side: the same bytes as one by one.
//!
//! A message of at most 64 bytes is one block, the first, the last and the root at once (the BLAKE3 paper, sections 2.1 to
//! 2.3). The lanes are plain loops, which the compiler turns into vectors of the instruction set that is enabled around them.

use super::{BLOCKS, Key};
use crate::kernel::Isa;

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

/// The words of state that the eight mixes of a round take: columns, then diagonals.
const MIXES: [[usize; 4]; 8] = [
    [0, 4, 8, 12],
    [1, 5, 9, 13],
    [2, 6, 10, 14],
    [3, 7, 11, 15],
    [0, 5, 10, 15],
    [1, 6, 11, 12],
    [2, 7, 8, 13],
    [3, 4, 9, 14],
];

#[inline(always)]
fn each(f: impl Fn(usize) -> u32) -> [u32; BLOCKS] {
    let mut lanes = [0; BLOCKS];
    for (lane, word) in lanes.iter_mut().enumerate() {
        *word = f(lane);
    }
    lanes
}

#[inline(always)]
fn mix(v: &mut [[u32; BLOCKS]; 16], [a, b, c, d]: [usize; 4], x: &[u32; BLOCKS], y: &[u32; BLOCKS]) {
    let (mut va, mut vb, mut vc, mut vd) = (v[a], v[b], v[c], v[d]);
    for (message, [first, second]) in [(x, [16, 12]), (y, [8, 7])] {
        va = each(|i| va[i].wrapping_add(vb[i]).wrapping_add(message[i]));
        vd = each(|i| (vd[i] ^ va[i]).rotate_right(first));
        vc = each(|i| vc[i].wrapping_add(vd[i]));
        vb = each(|i| (vb[i] ^ vc[i]).rotate_right(second));
    }
    (v[a], v[b], v[c], v[d]) = (va, vb, vc, vd);
}

#[inline(always)]
fn compress(key: &Key, messages: &Half, length: u32) -> Half {
    let zero = [0; BLOCKS];
    let last = [0, 0, length, FLAGS];
    let mut v = std::array::from_fn(|word| match word {
        0..8 => [key.0[word]; BLOCKS],
        8..12 => [IV[word - 8]; BLOCKS],
        _ => [last[word - 12]; BLOCKS],
    });
    let word = |at: usize| messages.get(at).unwrap_or(&zero);
    for order in SCHEDULE {
        for (i, places) in MIXES.into_iter().enumerate() {
            mix(&mut v, places, word(order[2 * i]), word(order[2 * i + 1]));
        }
    }
    std::array::from_fn(|word| each(|lane| v[word][lane] ^ v[word + 8][lane]))
}

/// The keyed hashes of sixteen messages of `length` bytes, at most 32: little-endian words, with zeros behind their end.
pub(super) fn hashes(isa: Isa, key: &Key, messages: &Half, length: u32) -> Half {
    match isa {
        // SAFETY: an `Isa` is made only of what this processor has.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { on_avx512(key, messages, length) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { on_avx2(key, messages, length) },
        _ => compress(key, messages, length),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl")]
fn on_avx512(key: &Key, messages: &Half, length: u32) -> Half {
    compress(key, messages, length)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn on_avx2(key: &Key, messages: &Half, length: u32) -> Half {
    compress(key, messages, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lane_is_the_published_function() {
        let key = Key::from_bytes(std::array::from_fn(|i| (i * 9) as u8));
        for length in [8, 32] {
            let bytes =
                |lane: usize| -> Vec<u8> { (0..length).map(|i| (lane * 37 + i * 11) as u8).collect() };
            let mut messages = [[0; BLOCKS]; 8];
            for lane in 0..BLOCKS {
                for (word, part) in messages.iter_mut().zip(bytes(lane).as_chunks::<4>().0) {
                    word[lane] = u32::from_le_bytes(*part);
                }
            }
            for &isa in Isa::available() {
                let found = hashes(isa, &key, &messages, length as u32);
                for lane in 0..BLOCKS {
                    let expected = blake3::keyed_hash(&key.to_bytes(), &bytes(lane));
                    let own = Key(std::array::from_fn(|word| found[word][lane]));
                    assert_eq!(own.to_bytes(), *expected.as_bytes(), "{isa}, {length} bytes, lane {lane}");
                }
            }
        }
    }
}
