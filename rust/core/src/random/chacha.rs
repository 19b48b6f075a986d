//! ChaCha, with any number of rounds: one block as RFC 8439 writes it, and as many as a register has lanes side by side.

use super::{BLOCKS, GROUP, Key};
use crate::isa::{Isa, on_keystream_unit};
use crate::vector::{Kernel, Vector};

/// `"expand 32-byte k"`.
pub(super) const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// The words of sixteen states or blocks: word by word, lane by lane.
pub(super) type Sixteen = [[u32; BLOCKS]; 16];

/// The state before the first round. Words 12 and 13 count blocks, words 14 and 15 are the nonce.
fn initial(key: &Key, counter: u64, nonce: u64) -> [u32; 16] {
    let mut state = [0; 16];
    state[..4].copy_from_slice(&CONSTANTS);
    state[4..12].copy_from_slice(&key.0);
    state[12] = counter as u32;
    state[13] = (counter >> 32) as u32;
    state[14] = nonce as u32;
    state[15] = (nonce >> 32) as u32;
    state
}

/// Columns, then diagonals.
#[inline(always)]
fn double_round(s: &mut [u32; 16]) {
    let mut quarter_round = |a: usize, b: usize, c: usize, d: usize| {
        s[a] = s[a].wrapping_add(s[b]);
        s[d] = (s[d] ^ s[a]).rotate_left(16);
        s[c] = s[c].wrapping_add(s[d]);
        s[b] = (s[b] ^ s[c]).rotate_left(12);
        s[a] = s[a].wrapping_add(s[b]);
        s[d] = (s[d] ^ s[a]).rotate_left(8);
        s[c] = s[c].wrapping_add(s[d]);
        s[b] = (s[b] ^ s[c]).rotate_left(7);
    };
    quarter_round(0, 4, 8, 12);
    quarter_round(1, 5, 9, 13);
    quarter_round(2, 6, 10, 14);
    quarter_round(3, 7, 11, 15);
    quarter_round(0, 5, 10, 15);
    quarter_round(1, 6, 11, 12);
    quarter_round(2, 7, 8, 13);
    quarter_round(3, 4, 9, 14);
}

/// One block of sixteen words: the oracle of what goes side by side.
pub(super) fn block<const ROUNDS: usize>(key: &Key, counter: u64, nonce: u64) -> [u32; 16] {
    let initial = initial(key, counter, nonce);
    let mut s = initial;
    (0..ROUNDS / 2).for_each(|_| double_round(&mut s));
    std::array::from_fn(|w| s[w].wrapping_add(initial[w]))
}

/// Four quarter rounds of every state, step by step side by side, so that the processor always has independent work.
macro_rules! quarter_rounds {
    ($states:ident, $(($a:expr, $b:expr, $c:expr, $d:expr)),*) => {
        for s in $states.iter_mut() {
            $( s[$a] = s[$a].plus_32(s[$b]); s[$d] = s[$d].xor(s[$a]).rotate_32::<16, 16>(); )*
        }
        for s in $states.iter_mut() {
            $( s[$c] = s[$c].plus_32(s[$d]); s[$b] = s[$b].xor(s[$c]).rotate_32::<20, 12>(); )*
        }
        for s in $states.iter_mut() {
            $( s[$a] = s[$a].plus_32(s[$b]); s[$d] = s[$d].xor(s[$a]).rotate_32::<24, 8>(); )*
        }
        for s in $states.iter_mut() {
            $( s[$c] = s[$c].plus_32(s[$d]); s[$b] = s[$b].xor(s[$c]).rotate_32::<25, 7>(); )*
        }
    };
}

/// Does the rounds of `N` registers of states. What is added at the end is left to the caller.
#[inline(always)]
fn rounds<const ROUNDS: usize, const N: usize, V: Vector>(states: &mut [[V; 16]; N]) {
    for _ in 0..ROUNDS / 2 {
        quarter_rounds!(states, (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15));
        quarter_rounds!(states, (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14));
    }
}

/// Fills `out` with whole groups from `group` on.
#[cfg_attr(feature = "batches", inline)]
#[cfg_attr(not(feature = "batches"), inline(never))]
pub(super) fn fill<const ROUNDS: usize>(isa: Isa, key: &Key, nonce: u64, group: u64, out: &mut [u8]) {
    let first = group.wrapping_mul(BLOCKS as u64);
    let Some(Fill { out, .. }) = on_keystream_unit(isa, Fill::<ROUNDS> { key, nonce, first, out }) else {
        return;
    };
    let mut words = [[0; BLOCKS]; 16];
    for (counter, out) in
        (0..).map(|g| first.wrapping_add(g * BLOCKS as u64)).zip(out.chunks_exact_mut(GROUP))
    {
        let mut states = initial(key, counter, nonce).map(|word| [word; BLOCKS]);
        // A multiple of sixteen: adding the lane to its low word never carries.
        (0..).zip(&mut states[12]).for_each(|(lane, counter): (u32, _)| *counter += lane);
        portable::<ROUNDS>(&states, &mut words);
        for (out, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(words.as_flattened()) {
            *out = word.to_le_bytes();
        }
    }
}

/// The bytes to fill, from the block `first` on.
struct Fill<'a, const ROUNDS: usize> {
    key: &'a Key,
    nonce: u64,
    first: u64,
    out: &'a mut [u8],
}

impl<const ROUNDS: usize> Kernel for Fill<'_, ROUNDS> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(mut self, any: V) {
        let (mut at, blocks) = (0, self.out.len() / GROUP * BLOCKS);
        while at < blocks {
            // The steps of a round wait for each other: a second state gives the processor something to do meanwhile.
            if V::TWICE && at + 2 * V::LANES <= blocks {
                self.pass::<2, V>(any, at);
                at += 2 * V::LANES;
            } else {
                self.pass::<1, V>(any, at);
                at += V::LANES;
            }
        }
    }
}

impl<const ROUNDS: usize> Fill<'_, ROUNDS> {
    /// Writes the blocks of `N` registers from block `at` of the output on.
    #[inline(always)]
    fn pass<const N: usize, V: Vector>(&mut self, any: V, at: usize) {
        let lanes = any.load(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        let mut initials = [[any; 16]; N];
        for (n, initial) in initials.iter_mut().enumerate() {
            // A multiple of the lanes: adding one to its low word never carries.
            let counter = self.first.wrapping_add((at + n * V::LANES) as u64);
            for (word, start) in initial.iter_mut().zip(self::initial(self.key, counter, self.nonce)) {
                *word = any.repeat_32(start);
            }
            initial[12] = initial[12].plus_32(lanes);
        }
        let mut states = initials;
        rounds::<ROUNDS, N, V>(&mut states);
        for n in 0..N {
            let block = at + n * V::LANES;
            let group = &mut self.out[block / BLOCKS * GROUP..][..GROUP];
            for w in 0..16 {
                let out = &mut group[4 * (BLOCKS * w + block % BLOCKS)..][..V::BYTES];
                let word = states[n][w].plus_32(initials[n][w]);
                // SAFETY: as many bytes as a register has.
                unsafe { word.write(out.as_mut_ptr()) };
            }
        }
    }
}

/// Writes sixteen blocks, each of a state of its own.
#[cfg_attr(feature = "batches", inline)]
#[cfg_attr(not(feature = "batches"), inline(never))]
pub(super) fn blocks<const ROUNDS: usize>(isa: Isa, states: &Sixteen, out: &mut Sixteen) {
    if let Some(LaneBlocks { out, .. }) = on_keystream_unit(isa, LaneBlocks::<ROUNDS> { states, out }) {
        portable::<ROUNDS>(states, out);
    }
}

/// States, and what their blocks are written to.
struct LaneBlocks<'a, const ROUNDS: usize> {
    states: &'a Sixteen,
    out: &'a mut Sixteen,
}

impl<const ROUNDS: usize> Kernel for LaneBlocks<'_, ROUNDS> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(self, any: V) {
        for lane in (0..BLOCKS).step_by(V::LANES) {
            let mut initial = [any; 16];
            for (word, lanes) in initial.iter_mut().zip(self.states) {
                *word = any.load(&lanes[lane..]);
            }
            let mut states = [initial];
            rounds::<ROUNDS, 1, V>(&mut states);
            for ((word, start), out) in states[0].into_iter().zip(initial).zip(&mut *self.out) {
                word.plus_32(start).store(&mut out[lane..]);
            }
        }
    }
}

/// [`blocks`] without a vector unit of its own.
///
/// The lanes go side by side through every double round. That loop has no branches, so the compiler makes vectors of as many
/// lanes as the processor's registers hold; where it has none, a lane is a block like any other. Four lanes of every word
/// ([`Portable`](crate::vector::Portable)) take twice the time on x86-64.
#[allow(clippy::needless_range_loop, reason = "a lane is a column: its words are in sixteen rows")]
fn portable<const ROUNDS: usize>(initial: &Sixteen, out: &mut Sixteen) {
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
