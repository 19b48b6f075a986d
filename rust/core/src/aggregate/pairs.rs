//! The kernel that counts bits of words alone and by twos: rows are turned tile by tile, then every two bits are counted.

use std::ops::Range;

use super::Failed;
use super::planes::{AT_ONCE, MOST, One, Plane, Register, Sum, Two, turn};
use super::source::{Source, SourceBuffers};
use super::vertical::BYTES;
use crate::codec::Code;
use crate::error::zeros;
use crate::isa::{Isa, compiled};
use crate::vector::{Kernel, Vector};

/// Registers of all bits of a tile: 40 KB, which stay in the first-level cache.
const TILE: usize = 640;

/// Registers that the counts of one position take.
const fn wide(lane: usize) -> usize {
    if lane == 8 { 2 } else { 1 }
}

/// The count that `result` has at `position` for the word `word` of a group: see [`Sum::of_lanes`].
pub(super) fn value<const LANE: usize>(result: &[Register], position: usize, word: usize) -> u64 {
    let Register(bytes) = &result[position * wide(LANE) + if LANE == 8 { word % 2 } else { 0 }];
    let at = |i: usize, b: usize| u64::from(bytes[i + b]) << (8 * b);
    match LANE {
        8 => at(word / 2 * 2, 0) | at(word / 2 * 2, 1),
        16 => at(2 * word, 0) | at(2 * word, 1),
        _ => (0..4).fold(0, |value, b| value | at(4 * word, b)),
    }
}

/// Adds counts to those of `position`, in the register at `at`.
#[inline(always)]
fn put<V: Vector, const LANE: usize>(result: &mut [Register], position: usize, at: usize, counts: [V; 2]) {
    for (i, counts) in counts.into_iter().take(wide(LANE)).enumerate() {
        let line = &mut result[position * wide(LANE) + i];
        line.write(at, line.read(counts, at).plus_64(counts));
    }
}

/// A part of the work: some rows, and one group of 64 of their bytes.
pub(super) struct TilesPart<'a, S, const LANE: usize> {
    pub(super) source: &'a S,
    pub(super) bits: u32,
    /// Words from one row to the next.
    pub(super) stride: usize,
    pub(super) rows: Range<usize>,
    /// The first word of the group.
    pub(super) at: usize,
}

/// The counts, and the rows that are being turned.
struct TileBuffers<W> {
    planes: Vec<Register>,
    result: Vec<Register>,
    scratch: SourceBuffers<W>,
    padded: Vec<W>,
}

impl<S, const LANE: usize> TilesPart<'_, S, LANE> {
    /// Squares of a tile.
    fn squares(bits: u32) -> usize {
        (TILE / bits as usize / AT_ONCE * AT_ONCE).clamp(AT_ONCE, MOST)
    }

    /// Rows of a tile.
    pub(super) fn tile_rows(bits: u32) -> usize {
        LANE * Self::squares(bits)
    }

    /// The counts of the part: a position for each of the two halves of a column's counts, as [`value`] reads them. The position
    /// of the number of records stays 0 in the first half.
    pub(super) fn count<W: Code>(&self, isa: Isa) -> Result<Vec<Register>, Failed>
    where
        S: Source<W>,
    {
        let m = self.bits as usize - 1;
        let positions = 2 * (1 + m + m * (m - 1) / 2);
        let words = BYTES / size_of::<W>();
        let mut buffers = TileBuffers {
            planes: zeros(self.bits as usize * Self::squares(self.bits))?,
            result: zeros(positions * wide(LANE))?,
            scratch: SourceBuffers::new(LANE * words)?,
            padded: zeros(LANE * words)?,
        };
        let refused = compiled(isa, CountTiles { part: self, buffers: &mut buffers });
        if refused || buffers.scratch.met_other_bytes() { Err(Failed::Refused) } else { Ok(buffers.result) }
    }

    /// Turns the squares of a tile from the row `first` on; whether a word had a bit that is not allowed.
    #[inline(always)]
    fn turn_tile<V: Vector, W: Code>(
        &self,
        any: V,
        first: usize,
        squares: usize,
        buffers: &mut TileBuffers<W>,
    ) -> bool
    where
        S: Source<W>,
    {
        let (bits, most) = (self.bits as usize, Self::squares(self.bits));
        assert!(buffers.planes.len() >= bits * most && squares <= most);
        let mut seen = any.repeat_64(0);
        for number in 0..squares {
            let (from, stride) = self.square(first + number * LANE, buffers);
            for at in (0..BYTES).step_by(V::BYTES) {
                let mut square = [any; LANE];
                for (row, word) in square.iter_mut().enumerate() {
                    // SAFETY: each of the rows has all bytes of the group, and a register at `at` lies within them.
                    *word = unsafe { any.read(from.add(row * stride).cast::<u8>().add(at)) };
                }
                turn(&mut square);
                for (bit, turned) in square.into_iter().enumerate() {
                    if bit < bits {
                        buffers.planes[bit * most + number].write(at, turned);
                    } else {
                        seen = seen.or(turned);
                    }
                }
            }
        }
        seen.any()
    }

    /// Counts a turned tile, in the register at `at` of each group; meanwhile asks memory for the rows from `next` on.
    #[inline(always)]
    fn count_tile<V: Vector, W: Code>(
        &self,
        any: V,
        next: usize,
        squares: usize,
        at: usize,
        buffers: &mut TileBuffers<W>,
    ) where
        S: Source<W>,
    {
        let TileBuffers { planes, result, .. } = buffers;
        let (m, most) = (self.bits as usize - 1, Self::squares(self.bits));
        let half = 1 + m + m * (m - 1) / 2;
        assert!(squares <= most && squares.is_multiple_of(AT_ONCE));
        // The rows of the next tile are asked for little by little.
        let calls = half * (BYTES / V::BYTES);
        let share = Self::tile_rows(self.bits).div_ceil(calls);
        let mut asked = next + at / V::BYTES * half * share;
        let mut ask = || {
            for row in asked..self.rows.end.min(asked + share) {
                self.source.ask(row * self.stride + self.at, BYTES / size_of::<W>());
            }
            asked += share;
        };
        let plane = |bit: usize| Plane::new::<V>(&planes[bit * most..][..squares], at);
        let (mut sign, rows) = (Sum::zero(any), One(plane(m)));
        for start in (0..squares).step_by(AT_ONCE) {
            // SAFETY: there are `squares`, a multiple of those that are added at once.
            unsafe { sign.add(&rows, start) };
        }
        put::<V, LANE>(result, half, at, sign.of_lanes::<LANE>(0));
        let mut pair = 1 + m;
        for first in (0..m).rev() {
            for second in (0..=first).rev() {
                ask();
                // A bit together with itself is the bit alone.
                let (mut both, rows) = (Sum::zero(any), Two([plane(first), plane(second), plane(m)]));
                for start in (0..squares).step_by(AT_ONCE) {
                    // SAFETY: as above.
                    unsafe { both.add(&rows, start) };
                }
                let position = if first == second { m - first } else { pair };
                pair += usize::from(first != second);
                put::<V, LANE>(result, position, at, both.of_lanes::<LANE>(0));
                put::<V, LANE>(result, half + position, at, both.of_lanes::<LANE>(1));
            }
        }
    }

    /// Where the words of the group begin in the rows from `first` on, as many as a word has bits, and how many words after
    /// each other; of rows that are not there, zeros.
    #[inline(always)]
    fn square<W: Code>(&self, first: usize, buffers: &mut TileBuffers<W>) -> (*const W, usize)
    where
        S: Source<W>,
    {
        let words = BYTES / size_of::<W>();
        let start = first * self.stride + self.at;
        let end = start + (LANE - 1) * self.stride + words;
        if first + LANE <= self.rows.end && end <= self.source.len() {
            return self.source.rows(start, self.stride, LANE, words, &mut buffers.scratch);
        }
        for (row, padded) in buffers.padded.chunks_exact_mut(words).enumerate() {
            let start = start + row * self.stride;
            let there = if first + row < self.rows.end { self.source.len().saturating_sub(start) } else { 0 };
            let there = there.min(words);
            padded.fill(W::default());
            if there > 0 {
                padded[..there].copy_from_slice(self.source.piece(start, there, &mut buffers.scratch));
            }
        }
        (buffers.padded.as_ptr(), words)
    }
}

/// Counts tile after tile of a part; whether a word had a bit that is not allowed.
struct CountTiles<'a, 's, S, W, const LANE: usize> {
    part: &'a TilesPart<'s, S, LANE>,
    buffers: &'a mut TileBuffers<W>,
}

impl<S: Source<W>, W: Code, const LANE: usize> Kernel for CountTiles<'_, '_, S, W, LANE> {
    type Answer = bool;

    #[inline(always)]
    fn run<V: Vector>(self, any: V) -> bool {
        let CountTiles { part, buffers } = self;
        let tile = TilesPart::<S, LANE>::tile_rows(part.bits);
        let mut refused = false;
        for first in part.rows.clone().step_by(tile) {
            let rows = tile.min(part.rows.end - first);
            let squares = rows.div_ceil(LANE).next_multiple_of(AT_ONCE);
            refused |= part.turn_tile(any, first, squares, buffers);
            for at in (0..BYTES).step_by(V::BYTES) {
                part.count_tile(any, first + tile, squares, at, buffers);
            }
        }
        refused
    }
}
