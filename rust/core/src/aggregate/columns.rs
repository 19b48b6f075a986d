//! Counting bits by column: rows of any length in parts that upright counters hold, on any number of threads.

use std::ops::Range;

use super::layout::Layout;
use super::source::{Scratch, Source};
use super::vector::Vector;
use super::vertical::{BYTES, Counters, MOST_ROWS, ROWS};
use super::{Batch, Failed, Totals};
use crate::codec::Code;
use crate::error::zeros;
use crate::isa::Isa;
use crate::parallel::for_chunks;

/// Groups of counters that one thread works on at a time: 2 KB each.
const MOST_GROUPS: usize = 4;

/// What a group of counters has counted.
pub(super) struct Columns {
    /// The first byte of a row.
    pub(super) at: usize,
    /// How many bytes, up to the end of a row.
    pub(super) bytes: usize,
    /// How often eight rows were added.
    pub(super) blocks: usize,
}

/// A part of the work: some rows, and some groups of 64 of their bytes.
struct Part<'a, S> {
    source: &'a S,
    /// Bits that no byte may have.
    forbidden: u8,
    stride: usize,
    rows: Range<usize>,
    at: usize,
    groups: usize,
}

impl Batch<'_> {
    /// Counts the bits of `source` by column and calls `fold(counters, columns, counts)` for each group of counters.
    pub(super) fn count_columns<W: Code, S: Source<W>>(
        &self,
        source: &S,
        layout: &Layout,
        forbidden: u8,
        totals: &Totals,
        fold: impl Fn(&Counters, Columns, &mut [u64]) + Sync,
    ) {
        let groups = layout.stride.div_ceil(BYTES);
        let together = MOST_GROUPS.min(groups);
        let pieces = groups.div_ceil(together);
        // Few columns are cut by rows, so that there is work for every thread.
        let rows = (layout.rows * pieces / 16).clamp(512, MOST_ROWS).next_multiple_of(ROWS);
        let parts = pieces * layout.rows.div_ceil(rows);
        // Roughly what a register takes, for each row: a nanosecond a few.
        let work = rows.min(layout.rows) * together;
        for_chunks(parts, 1, self.threads, work, |number, _| {
            let (row, piece) = (number / pieces * rows, number % pieces);
            let part = Part {
                source,
                forbidden,
                stride: layout.stride,
                rows: row..layout.rows.min(row + rows),
                at: piece * together * BYTES,
                groups: together.min(groups - piece * together),
            };
            let blocks = part.rows.len().div_ceil(ROWS);
            totals.take(part.count::<W>(self.isa).map(|sets| {
                let fold = &fold;
                move |counts: &mut [u64]| {
                    for (group, counters) in sets.iter().enumerate() {
                        let at = part.at + group * BYTES;
                        fold(counters, Columns { at, bytes: BYTES.min(layout.stride - at), blocks }, counts);
                    }
                }
            }));
        });
    }
}

impl<S> Part<'_, S> {
    /// The counters of the part, those of each group together.
    fn count<W: Code>(&self, isa: Isa) -> Result<Vec<Counters>, Failed>
    where
        S: Source<W>,
    {
        let mut sets = zeros::<Counters>(self.groups)?;
        let words = self.groups * BYTES / size_of::<W>();
        let mut room = Room { scratch: Vec::new(), padded: zeros(ROWS * words)? };
        for _ in 0..ROWS {
            room.scratch.push(Scratch::new(words)?);
        }
        let refused = match isa {
            // SAFETY: an `Isa` that reaches the kernels was checked against this processor.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { x86::avx512(self, &mut sets, &mut room) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { x86::avx2(self, &mut sets, &mut room) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe { arm::neon(self, &mut sets, &mut room) },
            // SAFETY: every processor has 64-bit integers.
            _ => unsafe { self.blocks::<u64, W>(&mut sets, &mut room) },
        };
        if refused || room.scratch.iter().any(Scratch::met_other_bytes) {
            Err(Failed::Refused)
        } else {
            Ok(sets)
        }
    }

    /// Adds the rows, eight at a time; whether a word had a bit that is not allowed.
    ///
    /// # Safety
    /// As [`Vector`].
    #[inline(always)]
    unsafe fn blocks<V: Vector, W: Code>(&self, sets: &mut [Counters], room: &mut Room<W>) -> bool
    where
        S: Source<W>,
    {
        assert!(sets.len() == self.groups && self.rows.len() <= MOST_ROWS);
        // SAFETY: the caller's processor.
        let mut seen = unsafe { V::repeat(0) };
        for block in 0..self.rows.len().div_ceil(ROWS) {
            let from = self.eight(self.rows.start + block * ROWS, room);
            for (group, counters) in sets.iter_mut().enumerate() {
                for at in (0..BYTES).step_by(V::BYTES) {
                    // SAFETY: the caller's processor; each of the eight rows has all bytes of the groups; a register at
                    // `at` lies within a group, and there are fewer than 2^12 blocks.
                    unsafe {
                        let mut rows = [V::repeat(0); ROWS];
                        for (row, from) in rows.iter_mut().zip(from) {
                            *row = V::load(from.add(group * BYTES + at));
                            seen = seen.or(*row);
                        }
                        counters.add(at, rows, block);
                    }
                }
            }
        }
        let mut bytes = [0; BYTES];
        // SAFETY: a register is at most 64 bytes; the caller's processor.
        unsafe {
            seen.and(V::repeat(u64::from(self.forbidden) * (u64::MAX / 0xff))).store(bytes.as_mut_ptr())
        };
        bytes != [0; BYTES]
    }

    /// Where the bytes of the groups begin in eight rows from `first` on; of rows that are not there, zeros.
    #[inline(always)]
    fn eight<W: Code>(&self, first: usize, room: &mut Room<W>) -> [*const u8; ROWS]
    where
        S: Source<W>,
    {
        let words = self.groups * BYTES / size_of::<W>();
        let mut from = [std::ptr::null(); ROWS];
        let padded = room.padded.chunks_exact_mut(words);
        for (r, (scratch, padded)) in room.scratch.iter_mut().zip(padded).enumerate() {
            let start = ((first + r) * self.stride + self.at) / size_of::<W>();
            // The rows of the next time lie far from each other: nobody guesses them.
            self.source.ask(start + ROWS * self.stride / size_of::<W>(), words);
            let there = if first + r < self.rows.end { self.source.len().saturating_sub(start) } else { 0 };
            from[r] = if there >= words {
                self.source.piece(start, words, scratch).as_ptr().cast()
            } else {
                padded.fill(W::default());
                if there > 0 {
                    padded[..there].copy_from_slice(self.source.piece(start, there, scratch));
                }
                padded.as_ptr().cast()
            };
        }
        from
    }
}

/// Where eight rows are put that have to be made first.
struct Room<W> {
    scratch: Vec<Scratch<W>>,
    padded: Vec<W>,
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256i, __m512i};

    use super::{Code, Counters, Part, Room, Source};

    /// # Safety
    /// The CPU has AVX-512 F, BW, DQ and VL.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn avx512<W: Code, S: Source<W>>(
        part: &Part<'_, S>,
        sets: &mut [Counters],
        room: &mut Room<W>,
    ) -> bool {
        // SAFETY: this function's own condition.
        unsafe { part.blocks::<__m512i, W>(sets, room) }
    }

    /// # Safety
    /// The CPU has AVX2.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn avx2<W: Code, S: Source<W>>(
        part: &Part<'_, S>,
        sets: &mut [Counters],
        room: &mut Room<W>,
    ) -> bool {
        // SAFETY: this function's own condition.
        unsafe { part.blocks::<__m256i, W>(sets, room) }
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::uint64x2_t;

    use super::{Code, Counters, Part, Room, Source};

    /// # Safety
    /// The CPU has NEON.
    #[target_feature(enable = "neon")]
    pub(super) unsafe fn neon<W: Code, S: Source<W>>(
        part: &Part<'_, S>,
        sets: &mut [Counters],
        room: &mut Room<W>,
    ) -> bool {
        // SAFETY: this function's own condition.
        unsafe { part.blocks::<uint64x2_t, W>(sets, room) }
    }
}
