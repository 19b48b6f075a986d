//! Upright counters: how often each bit of a row is 1, over many rows of bytes.
//!
//! Rows are added eight at a time. What they come to in eights goes up a ladder of levels, of which each keeps one bit of
//! every count and, every other time, a carry that waits for the next one: 2^15 rows take 16 levels.

use crate::isa::{Isa, compiled};
use crate::vector::{Kernel, Vector};

/// Rows that are added at once.
pub(super) const ROWS: usize = 8;
/// The most rows that the counters hold.
pub(super) const MOST_ROWS: usize = 1 << 15;
/// Bits of a count.
const LEVELS: usize = 16;
/// Bytes of a row that one set of counters is for: one register of the widest kind.
pub(super) const BYTES: usize = 64;

/// One bit of the counts of a set, and a carry of the same weight.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Level {
    bits: [u8; BYTES],
    waiting: [u8; BYTES],
}

/// How often each bit of 64 bytes was 1.
#[derive(Clone)]
pub(super) struct Counters {
    levels: [Level; LEVELS],
}

impl Default for Counters {
    fn default() -> Counters {
        Counters { levels: [Level { bits: [0; BYTES], waiting: [0; BYTES] }; LEVELS] }
    }
}

impl Counters {
    /// Adds eight registers of the bytes from `at` on; `before`, below 2^12, is how often that was done with those bytes.
    #[inline(always)]
    pub(super) fn add<V: Vector>(&mut self, at: usize, rows: [V; ROWS], before: usize) {
        assert!(at + V::BYTES <= BYTES && before < MOST_ROWS / ROWS);
        // SAFETY: a register at `at` lies within a level, as was looked at.
        let load = |bytes: &[u8; BYTES]| unsafe { rows[0].read(bytes.as_ptr().add(at)) };
        let store = |bytes: &mut [u8; BYTES], bits: V| {
            // SAFETY: as above.
            unsafe { bits.write(bytes.as_mut_ptr().add(at)) };
        };
        let levels = &mut self.levels;
        let (ones, two_a) = load(&levels[0].bits).sum(rows[0], rows[1]);
        let (ones, two_b) = ones.sum(rows[2], rows[3]);
        let (twos, four_a) = load(&levels[1].bits).sum(two_a, two_b);
        let (ones, two_a) = ones.sum(rows[4], rows[5]);
        let (ones, two_b) = ones.sum(rows[6], rows[7]);
        let (twos, four_b) = twos.sum(two_a, two_b);
        let (fours, mut carry) = load(&levels[2].bits).sum(four_a, four_b);
        store(&mut levels[0].bits, ones);
        store(&mut levels[1].bits, twos);
        store(&mut levels[2].bits, fours);
        // At most 12 bits of `before` are ones, and the levels above the first three are 13.
        let (mut level, mut waits) = (3, before);
        while waits & 1 == 1 {
            let here = &mut levels[level];
            let (bits, up) = load(&here.bits).sum(load(&here.waiting), carry);
            store(&mut here.bits, bits);
            (carry, level, waits) = (up, level + 1, waits >> 1);
        }
        store(&mut levels[level].waiting, carry);
    }

    /// The counts after `blocks` times eight rows: of bit `i` of byte `b`, counted from the least significant, `[i][b]`.
    pub(super) fn read(&self, isa: Isa, blocks: usize) -> [[u16; BYTES]; 8] {
        compiled(isa, ReadCounters { levels: &self.levels, blocks })
    }
}

/// Adds up the levels of a set after some blocks of eight rows.
struct ReadCounters<'a> {
    levels: &'a [Level; LEVELS],
    blocks: usize,
}

impl Kernel for ReadCounters<'_> {
    type Answer = [[u16; BYTES]; 8];

    #[inline(always)]
    fn run<V: Vector>(self, _: V) -> [[u16; BYTES]; 8] {
        let mut counts = [[0u16; BYTES]; 8];
        for (number, level) in self.levels.iter().enumerate() {
            // What no carry has reached yet is zeros.
            let carried = number < 3 || self.blocks >> (number - 3) > 1;
            let waits = number >= 3 && self.blocks >> (number - 3) & 1 == 1;
            for (bytes, counted) in [(&level.bits, carried), (&level.waiting, waits)] {
                if !counted {
                    continue;
                }
                for (i, counts) in counts.iter_mut().enumerate() {
                    for (count, byte) in counts.iter_mut().zip(bytes) {
                        *count += u16::from(byte >> i & 1) << number;
                    }
                }
            }
        }
        counts
    }
}
