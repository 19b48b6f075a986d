//! Counting bits by column: rows of any length in parts that upright counters hold, on any number of threads.

use std::ops::Range;

use super::layout::Layout;
use super::source::{Source, SourceBuffers};
use super::vertical::{BYTES, Counters, MOST_ROWS, ROWS};
use super::{Batch, Failed, Totals};
use crate::codec::Code;
use crate::error::zeros;
use crate::isa::{Isa, compiled};
use crate::parallel::for_chunks;
use crate::vector::{Kernel, Vector};

/// Groups of counters that one thread works on at a time: 2 KB each.
const MOST_GROUPS: usize = 4;

/// The part of the rows that a group of counters has counted.
pub(super) struct Columns {
    /// The first byte of a row.
    pub(super) at: usize,
    /// How many bytes, up to the end of a row.
    pub(super) bytes: usize,
    /// How often eight rows were added.
    pub(super) blocks: usize,
}

/// A part of the work: some rows, and some groups of 64 of their bytes.
struct RowsPart<'a, S> {
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
            let part = RowsPart {
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

impl<S> RowsPart<'_, S> {
    /// The counters of the part, those of each group together.
    fn count<W: Code>(&self, isa: Isa) -> Result<Vec<Counters>, Failed>
    where
        S: Source<W>,
    {
        let mut sets = zeros::<Counters>(self.groups)?;
        let words = self.groups * BYTES / size_of::<W>();
        let (mut scratch, mut padded) = (Vec::with_capacity(ROWS), zeros(ROWS * words)?);
        for _ in 0..ROWS {
            scratch.push(SourceBuffers::new(words)?);
        }
        let buffers = Buffers { scratch: &mut scratch, padded: &mut padded };
        let refused = compiled(isa, AddRows { part: self, sets: &mut sets, buffers });
        if refused || scratch.iter().any(SourceBuffers::met_other_bytes) {
            Err(Failed::Refused)
        } else {
            Ok(sets)
        }
    }

    /// Where the bytes of the groups begin in eight rows from `first` on; of rows that are not there, zeros.
    #[inline(always)]
    fn eight<W: Code>(&self, first: usize, buffers: &mut Buffers<'_, W>) -> [*const u8; ROWS]
    where
        S: Source<W>,
    {
        let words = self.groups * BYTES / size_of::<W>();
        let mut from = [std::ptr::null(); ROWS];
        for (r, scratch) in buffers.scratch.iter_mut().enumerate() {
            let start = ((first + r) * self.stride + self.at) / size_of::<W>();
            // The rows of the next time lie far from each other: nobody guesses them.
            self.source.ask(start + ROWS * self.stride / size_of::<W>(), words);
            let there = if first + r < self.rows.end { self.source.len().saturating_sub(start) } else { 0 };
            from[r] = if there >= words {
                self.source.piece(start, words, scratch).as_ptr().cast()
            } else {
                let padded = &mut buffers.padded[r * words..][..words];
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
struct Buffers<'a, W> {
    scratch: &'a mut [SourceBuffers<W>],
    padded: &'a mut [W],
}

/// Adds the rows of a part, eight at a time; whether a word had a bit that is not allowed.
struct AddRows<'a, 's, S, W> {
    part: &'a RowsPart<'s, S>,
    sets: &'a mut [Counters],
    buffers: Buffers<'a, W>,
}

impl<S: Source<W>, W: Code> Kernel for AddRows<'_, '_, S, W> {
    type Answer = bool;

    #[inline(always)]
    fn run<V: Vector>(self, any: V) -> bool {
        let AddRows { part, sets, mut buffers } = self;
        // A copy that nothing else refers to: the compiler does not read it again for each block.
        let part = &RowsPart { rows: part.rows.clone(), ..*part };
        assert!(sets.len() == part.groups && part.rows.len() <= MOST_ROWS);
        let mut seen = any.repeat_64(0);
        for block in 0..part.rows.len().div_ceil(ROWS) {
            let from = part.eight(part.rows.start + block * ROWS, &mut buffers);
            for (group, counters) in sets.iter_mut().enumerate() {
                for at in (0..BYTES).step_by(V::BYTES) {
                    let mut rows = [any; ROWS];
                    for (row, from) in rows.iter_mut().zip(from) {
                        // SAFETY: each of the eight rows has all bytes of the groups, and a register at `at` lies within one.
                        *row = unsafe { any.read(from.add(group * BYTES + at)) };
                        seen = seen.or(*row);
                    }
                    counters.add(at, rows, block);
                }
            }
        }
        let forbidden = any.repeat_64(u64::from(part.forbidden) * (u64::MAX / 0xff));
        seen.and(forbidden).any()
    }
}
