//! ChaCha as RFC 8439 writes it, with any number of rounds: the oracle of the faster paths.

use super::{BLOCKS, GROUP, Key};

/// `"expand 32-byte k"`.
pub(super) const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

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
pub(super) fn rounds<const ROUNDS: usize>(initial: [u32; 16]) -> [u32; 16] {
    let mut s = initial;
    for _ in 0..ROUNDS / 2 {
        quarter_round(&mut s, 0, 4, 8, 12);
        quarter_round(&mut s, 1, 5, 9, 13);
        quarter_round(&mut s, 2, 6, 10, 14);
        quarter_round(&mut s, 3, 7, 11, 15);
        quarter_round(&mut s, 0, 5, 10, 15);
        quarter_round(&mut s, 1, 6, 11, 12);
        quarter_round(&mut s, 2, 7, 8, 13);
        quarter_round(&mut s, 3, 4, 9, 14);
    }
    for (word, start) in s.iter_mut().zip(initial) {
        *word = word.wrapping_add(start);
    }
    s
}

/// Fills `out` with whole groups from `group` on.
pub(super) fn fill<const ROUNDS: usize>(key: &Key, nonce: u64, group: u64, out: &mut [u8]) {
    for (g, out) in (group..).zip(out.chunks_exact_mut(GROUP)) {
        for b in 0..BLOCKS {
            let words = block::<ROUNDS>(key, g.wrapping_mul(BLOCKS as u64).wrapping_add(b as u64), nonce);
            for (w, word) in words.iter().enumerate() {
                out[(w * BLOCKS + b) * 4..][..4].copy_from_slice(&word.to_le_bytes());
            }
        }
    }
}
