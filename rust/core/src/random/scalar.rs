//! ChaCha as RFC 8439 writes it, with any number of rounds: the oracle of the faster paths, and the path of every other
//! processor.

use super::{BLOCKS, GROUP, Key};

/// `"expand 32-byte k"`.
pub(super) const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

#[inline(always)]
fn quarter_round(s: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize) {
    s[a] = s[a].wrapping_add(s[b]);
    s[d] = (s[d] ^ s[a]).rotate_left(16);
    s[c] = s[c].wrapping_add(s[d]);
    s[b] = (s[b] ^ s[c]).rotate_left(12);
    s[a] = s[a].wrapping_add(s[b]);
    s[d] = (s[d] ^ s[a]).rotate_left(8);
    s[c] = s[c].wrapping_add(s[d]);
    s[b] = (s[b] ^ s[c]).rotate_left(7);
}

/// Columns, then diagonals.
#[inline(always)]
fn double_round(s: &mut [u32; 16]) {
    quarter_round(s, 0, 4, 8, 12);
    quarter_round(s, 1, 5, 9, 13);
    quarter_round(s, 2, 6, 10, 14);
    quarter_round(s, 3, 7, 11, 15);
    quarter_round(s, 0, 5, 10, 15);
    quarter_round(s, 1, 6, 11, 12);
    quarter_round(s, 2, 7, 8, 13);
    quarter_round(s, 3, 4, 9, 14);
}

/// The state before the first round. Words 12 and 13 count blocks, words 14 and 15 are the nonce.
pub(super) fn initial(key: &Key, counter: u64, nonce: u64) -> [u32; 16] {
    let mut state = [0; 16];
    state[..4].copy_from_slice(&CONSTANTS);
    state[4..12].copy_from_slice(&key.0);
    state[12] = counter as u32;
    state[13] = (counter >> 32) as u32;
    state[14] = nonce as u32;
    state[15] = (nonce >> 32) as u32;
    state
}

/// One block of sixteen words.
pub(super) fn block<const ROUNDS: usize>(key: &Key, counter: u64, nonce: u64) -> [u32; 16] {
    rounds::<ROUNDS>(initial(key, counter, nonce))
}

/// The block of a state.
fn rounds<const ROUNDS: usize>(initial: [u32; 16]) -> [u32; 16] {
    let mut s = initial;
    for _ in 0..ROUNDS / 2 {
        double_round(&mut s);
    }
    for (word, start) in s.iter_mut().zip(initial) {
        *word = word.wrapping_add(start);
    }
    s
}

/// The blocks of sixteen states, all word by word, lane by lane: [`rounds`] of each.
///
/// The lanes go side by side through every double round. That loop has no branches, so the compiler makes vectors of as many
/// lanes as the processor's registers hold; where it has none, a lane is a block like any other.
#[allow(clippy::needless_range_loop, reason = "a lane is a column: its words are in sixteen rows")]
pub(super) fn lanes<const ROUNDS: usize>(initial: &[[u32; BLOCKS]; 16], out: &mut [[u32; BLOCKS]; 16]) {
    *out = *initial;
    for _ in 0..ROUNDS / 2 {
        for lane in 0..BLOCKS {
            let mut s: [u32; 16] = std::array::from_fn(|w| out[w][lane]);
            double_round(&mut s);
            for w in 0..16 {
                out[w][lane] = s[w];
            }
        }
    }
    for (word, start) in out.as_flattened_mut().iter_mut().zip(initial.as_flattened()) {
        *word = word.wrapping_add(*start);
    }
}

/// Fills `out` with whole groups from `group` on.
pub(super) fn fill<const ROUNDS: usize>(key: &Key, nonce: u64, group: u64, out: &mut [u8]) {
    let mut blocks = [[0; BLOCKS]; 16];
    for (g, out) in (group..).zip(out.chunks_exact_mut(GROUP)) {
        let mut states = initial(key, g.wrapping_mul(BLOCKS as u64), nonce).map(|word| [word; BLOCKS]);
        // A multiple of sixteen: adding the lane to its low word never carries.
        (0..).zip(&mut states[12]).for_each(|(lane, counter): (u32, _)| *counter += lane);
        lanes::<ROUNDS>(&states, &mut blocks);
        for (out, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(blocks.as_flattened()) {
            *out = word.to_le_bytes();
        }
    }
}
