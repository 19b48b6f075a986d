//! The kernel that counts bits of words alone and by twos: rows are turned tile by tile, then every two bits are counted.

use std::ops::Range;

use super::Failed;
use super::planes::{AT_ONCE, MOST, One, Sum, Two, turn};
use super::source::{Scratch, Source};
use super::vector::Vector;
use super::vertical::BYTES;
use crate::codec::Code;
use crate::error::zeros;
use crate::isa::Isa;

/// Registers of all bits of a tile: 40 KB, which stay in the first-level cache.
const TILE: usize = 640;

/// Room for a register of the widest kind.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Register([u8; BYTES]);

impl Default for Register {
    fn default() -> Register {
        Register([0; BYTES])
    }
}

/// Registers that the counts of one place take.
const fn wide(lane: usize) -> usize {
    if lane == 8 { 2 } else { 1 }
}

/// What `found` has at `place` for the word `word` of a group: see [`Sum::of_lanes`].
pub(super) fn value<const LANE: usize>(found: &[Register], place: usize, word: usize) -> u64 {
    let Register(bytes) = &found[place * wide(LANE) + if LANE == 8 { word % 2 } else { 0 }];
    let at = |i: usize, b: usize| u64::from(bytes[i + b]) << (8 * b);
    match LANE {
        8 => at(word / 2 * 2, 0) | at(word / 2 * 2, 1),
        16 => at(2 * word, 0) | at(2 * word, 1),
        _ => (0..4).fold(0, |value, b| value | at(4 * word, b)),
    }
}

/// Adds counts to those of `place`, in the register at `at`.
///
/// # Safety
/// As [`Vector`]; a register at `at` lies within 64 bytes.
#[inline(always)]
unsafe fn put<V: Vector, const LANE: usize>(found: &mut [Register], place: usize, at: usize, counts: [V; 2]) {
    for (i, counts) in counts.into_iter().take(wide(LANE)).enumerate() {
        // SAFETY: the caller's processor and place.
        unsafe {
            let to = found[place * wide(LANE) + i].0.as_mut_ptr().add(at);
            V::load(to).plus(counts).store(to);
        }
    }
}

/// A part of the work: some rows, and one group of 64 of their bytes.
pub(super) struct Part<'a, S, const LANE: usize> {
    pub(super) source: &'a S,
    pub(super) bits: u32,
    /// Words from one row to the next.
    pub(super) stride: usize,
    pub(super) rows: Range<usize>,
    /// The first word of the group.
    pub(super) at: usize,
}

/// What is counted, and the rows that are being turned.
struct Room<W> {
    planes: Vec<Register>,
    found: Vec<Register>,
    scratch: Scratch<W>,
    padded: Vec<W>,
}

impl<S, const LANE: usize> Part<'_, S, LANE> {
    /// Squares of a tile.
    fn squares(bits: u32) -> usize {
        (TILE / bits as usize / AT_ONCE * AT_ONCE).clamp(AT_ONCE, MOST)
    }

    /// Rows of a tile.
    pub(super) fn tile_rows(bits: u32) -> usize {
        LANE * Self::squares(bits)
    }

    /// The counts of the part: a place for each of the two halves of a column's counts, as [`value`] reads them. The place
    /// of the number of records stays 0 in the first half.
    pub(super) fn count<W: Code>(&self, isa: Isa) -> Result<Vec<Register>, Failed>
    where
        S: Source<W>,
    {
        let m = self.bits as usize - 1;
        let places = 2 * (1 + m + m * (m - 1) / 2);
        let words = BYTES / size_of::<W>();
        let mut room = Room {
            planes: zeros(self.bits as usize * Self::squares(self.bits))?,
            found: zeros(places * wide(LANE))?,
            scratch: Scratch::new(LANE * words)?,
            padded: zeros(LANE * words)?,
        };
        let refused = match isa {
            // SAFETY: an `Isa` that reaches the kernels was checked against this processor.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { x86::avx512(self, &mut room) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { x86::avx2(self, &mut room) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe { arm::neon(self, &mut room) },
            // SAFETY: every processor has 64-bit integers.
            _ => unsafe { self.tiles::<u64, W>(&mut room) },
        };
        if refused || room.scratch.met_other_bytes() { Err(Failed::Refused) } else { Ok(room.found) }
    }

    /// Counts tile after tile; whether a word had a bit that is not allowed.
    ///
    /// # Safety
    /// As [`Vector`].
    #[inline(always)]
    unsafe fn tiles<V: Vector, W: Code>(&self, room: &mut Room<W>) -> bool
    where
        S: Source<W>,
    {
        let tile = Self::tile_rows(self.bits);
        let mut refused = false;
        for first in self.rows.clone().step_by(tile) {
            let rows = tile.min(self.rows.end - first);
            let squares = rows.div_ceil(LANE).next_multiple_of(AT_ONCE);
            // SAFETY: the caller's processor.
            unsafe {
                refused |= self.turn_tile::<V, W>(first, squares, room);
                for at in (0..BYTES).step_by(V::BYTES) {
                    self.count_tile::<V, W>(first + tile, squares, at, room);
                }
            }
        }
        refused
    }

    /// Turns the squares of a tile from the row `first` on; whether a word had a bit that is not allowed.
    ///
    /// # Safety
    /// As [`Vector`].
    #[inline(always)]
    unsafe fn turn_tile<V: Vector, W: Code>(&self, first: usize, squares: usize, room: &mut Room<W>) -> bool
    where
        S: Source<W>,
    {
        let bits = self.bits as usize;
        assert!(room.planes.len() >= bits * Self::squares(self.bits) && squares <= Self::squares(self.bits));
        // SAFETY: the caller's processor.
        let mut seen = unsafe { V::repeat(0) };
        for number in 0..squares {
            let (from, stride) = self.square(first + number * LANE, room);
            for at in (0..BYTES).step_by(V::BYTES) {
                // SAFETY: the caller's processor; each of the rows has all bytes of the group, and a register at `at` lies
                // within them.
                unsafe {
                    let mut square = [V::repeat(0); LANE];
                    for (row, word) in square.iter_mut().enumerate() {
                        *word = V::load(from.add(row * stride).cast::<u8>().add(at));
                    }
                    turn(&mut square);
                    for (bit, turned) in square.into_iter().enumerate() {
                        if bit < bits {
                            let to = &mut room.planes[bit * Self::squares(self.bits) + number].0;
                            turned.store(to.as_mut_ptr().add(at));
                        } else {
                            seen = seen.or(turned);
                        }
                    }
                }
            }
        }
        let mut bytes = [0; BYTES];
        // SAFETY: a register is at most 64 bytes; the caller's processor.
        unsafe { seen.store(bytes.as_mut_ptr()) };
        bytes != [0; BYTES]
    }

    /// Counts a turned tile, in the register at `at` of each group; meanwhile asks memory for the rows from `next` on.
    ///
    /// # Safety
    /// As [`Vector`].
    #[inline(always)]
    unsafe fn count_tile<V: Vector, W: Code>(
        &self,
        next: usize,
        squares: usize,
        at: usize,
        room: &mut Room<W>,
    ) where
        S: Source<W>,
    {
        let Room { planes, found, .. } = room;
        let (m, most) = (self.bits as usize - 1, Self::squares(self.bits));
        let half = 1 + m + m * (m - 1) / 2;
        assert!(planes.len() >= (m + 1) * most && squares <= most && squares.is_multiple_of(AT_ONCE));
        assert!(at + V::BYTES <= BYTES && found.len() == 2 * half * wide(LANE));
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
        // SAFETY: the caller's processor; of every bit there are `most` registers, and a register at `at` lies within one.
        unsafe {
            let plane = |bit: usize| planes.as_ptr().add(bit * most).cast::<u8>().add(at);
            let (mut sign, rows) = (Sum::zero(), One(plane(m)));
            for start in (0..squares).step_by(AT_ONCE) {
                sign.add(&rows, start);
            }
            put::<V, LANE>(found, half, at, sign.of_lanes::<LANE>(0));
            let mut pair = 1 + m;
            for first in (0..m).rev() {
                for second in (0..=first).rev() {
                    ask();
                    // A bit together with itself is the bit alone.
                    let (mut both, rows) = (Sum::zero(), Two([plane(first), plane(second), plane(m)]));
                    for start in (0..squares).step_by(AT_ONCE) {
                        both.add(&rows, start);
                    }
                    let place = if first == second { m - first } else { pair };
                    pair += usize::from(first != second);
                    put::<V, LANE>(found, place, at, both.of_lanes::<LANE>(0));
                    put::<V, LANE>(found, half + place, at, both.of_lanes::<LANE>(1));
                }
            }
        }
    }

    /// Where the words of the group begin in the rows from `first` on, as many as a word has bits, and how many words after
    /// each other; of rows that are not there, zeros.
    #[inline(always)]
    fn square<W: Code>(&self, first: usize, room: &mut Room<W>) -> (*const W, usize)
    where
        S: Source<W>,
    {
        let words = BYTES / size_of::<W>();
        let start = first * self.stride + self.at;
        let end = start + (LANE - 1) * self.stride + words;
        if first + LANE <= self.rows.end && end <= self.source.len() {
            return self.source.rows(start, self.stride, LANE, words, &mut room.scratch);
        }
        for (row, padded) in room.padded.chunks_exact_mut(words).enumerate() {
            let start = start + row * self.stride;
            let there = if first + row < self.rows.end { self.source.len().saturating_sub(start) } else { 0 };
            let there = there.min(words);
            padded.fill(W::default());
            if there > 0 {
                padded[..there].copy_from_slice(self.source.piece(start, there, &mut room.scratch));
            }
        }
        (room.padded.as_ptr(), words)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256i, __m512i};

    use super::{Code, Part, Room, Source};

    /// # Safety
    /// The CPU has AVX-512 F, BW, DQ and VL.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn avx512<W: Code, S: Source<W>, const LANE: usize>(
        part: &Part<'_, S, LANE>,
        room: &mut Room<W>,
    ) -> bool {
        // SAFETY: this function's own condition.
        unsafe { part.tiles::<__m512i, W>(room) }
    }

    /// # Safety
    /// The CPU has AVX2.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn avx2<W: Code, S: Source<W>, const LANE: usize>(
        part: &Part<'_, S, LANE>,
        room: &mut Room<W>,
    ) -> bool {
        // SAFETY: this function's own condition.
        unsafe { part.tiles::<__m256i, W>(room) }
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::uint64x2_t;

    use super::{Code, Part, Room, Source};

    /// # Safety
    /// The CPU has NEON.
    #[target_feature(enable = "neon")]
    pub(super) unsafe fn neon<W: Code, S: Source<W>, const LANE: usize>(
        part: &Part<'_, S, LANE>,
        room: &mut Room<W>,
    ) -> bool {
        // SAFETY: this function's own condition.
        unsafe { part.tiles::<uint64x2_t, W>(room) }
    }
}
