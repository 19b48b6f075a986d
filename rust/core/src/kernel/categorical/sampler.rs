//! Samples a categorical law: input to rows, rows to reports, reports to output, a block of 512 samples at a time, so that
//! everything between input and output stays in the first-level cache.
//!
//! Windows, matrices and shifts differ only in the middle step, a [`Law`]. The loops are written without branches on values
//! and compiled anew for each instruction set; a lane whose draw is not settled by its first bits is drawn again by the law's
//! plain function, which is also the scalar path. So every path consumes the same random words in the same order.

use super::emit::{Letters, emit};
use super::law::{BLOCK, LANES, Law};
use super::rows::load;
use crate::codec::{Grid, GridRounding};
use crate::io::{Input, Output};
use crate::isa::{Isa, compiled};
use crate::kernel::bits::CodeWord;
use crate::random::{GROUP, Key, Purpose, Refine, fill, nonce};
use crate::vector::{Kernel, Vector};

/// The least keystream that is worth computing at once: two groups take hardly longer than one.
const AT_ONCE: usize = 2 * GROUP;

/// Bits of dither that a sample takes at first.
const DITHER: usize = 8;

/// Everything that sampling one chunk takes, but the law, its number, its input and its output.
pub(crate) struct CategoricalSampler<'a> {
    pub(crate) isa: Isa,
    pub(crate) key: &'a Key,
    /// How numbers become rows; without it the input is rows.
    pub(crate) grid: Option<&'a Grid>,
    /// The decoded reports.
    pub(crate) letters: Letters<'a>,
    /// Bits of a packed report.
    pub(crate) bits: u32,
}

/// A chunk that is sampled: what that calls is inlined, and with it compiled for each instruction set.
struct Chunk<'a, L> {
    sampler: &'a CategoricalSampler<'a>,
    law: &'a L,
    chunk: u64,
    input: Input<'a>,
    output: Output<'a>,
}

impl<L: Law> Kernel for Chunk<'_, L> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(self, _: V) {
        self.sampler.blocks(self.law, self.chunk, self.input, self.output);
    }
}

/// Reports where answers are 0; the others are so far behind `before`.
struct MergeAnswers<'a> {
    sampler: &'a CategoricalSampler<'a>,
    reports: &'a mut [u16],
    answers: &'a [u16],
    before: u16,
    output: Output<'a>,
}

impl Kernel for MergeAnswers<'_> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(self, _: V) {
        let CategoricalSampler { isa, letters, bits, .. } = *self.sampler;
        for (report, &answer) in self.reports.iter_mut().zip(self.answers) {
            let taken = 0u16.wrapping_sub(u16::from(answer != 0));
            *report ^= (*report ^ self.before.wrapping_add(answer)) & taken;
        }
        emit(isa, self.reports, letters, bits, self.output);
    }
}

#[repr(C, align(64))]
struct BlockScratch<L: Law> {
    keystream: L::Keystream,
    dither: [u8; AT_ONCE],
    rows: [L::Word; BLOCK],
    reports: [L::Word; BLOCK],
}

impl CategoricalSampler<'_> {
    /// Randomizes chunk `chunk` of the key's stream: `output` has room for just the reports of `input`.
    pub(crate) fn chunk<L: Law>(&self, law: &L, chunk: u64, input: Input<'_>, output: Output<'_>) {
        compiled(self.isa, Chunk { sampler: self, law, chunk, input, output });
    }

    /// The keystream of a block, at `bits` a sample, where `left` samples are left from its start on. `buffer` holds that of
    /// one or more whole blocks; it is filled anew when all of them are drawn, as far as there are samples.
    #[inline(always)]
    fn draw<'b>(&self, nonce: u64, bits: usize, block: usize, left: usize, buffer: &'b mut [u8]) -> &'b [u8] {
        let start = block * (bits * BLOCK / 8);
        let offset = start % buffer.len();
        if offset == 0 {
            let needed = (bits * left / 8).next_multiple_of(GROUP).min(buffer.len());
            fill(self.isa, self.key, nonce, (start / GROUP) as u64, &mut buffer[..needed]);
        }
        &buffer[offset..][..bits * left.min(BLOCK) / 8]
    }

    #[inline(always)]
    fn blocks<L: Law>(&self, law: &L, chunk: u64, input: Input<'_>, mut output: Output<'_>) {
        const {
            let (bytes, room) = (L::BITS * BLOCK / 8, size_of::<L::Keystream>());
            assert!(room.is_multiple_of(bytes) && room.is_multiple_of(AT_ONCE));
            assert!(AT_ONCE.is_multiple_of(DITHER * BLOCK / 8));
        };
        let main = nonce(Purpose::Main, chunk);
        let dither = nonce(Purpose::Dither, chunk);
        let mut refine = Refine::new(self.isa, self.key, nonce(Purpose::Refine, chunk));
        let nothing = [L::Word::default(); BLOCK];
        let mut scratch: BlockScratch<L> =
            BlockScratch { keystream: L::KEYSTREAM, dither: [0; AT_ONCE], rows: nothing, reports: nothing };
        let dithered = self.grid.is_some_and(|grid| grid.rounding() == GridRounding::Dither);
        let total = input.len();
        for (block, start) in (0..total).step_by(BLOCK).enumerate() {
            let count = BLOCK.min(total - start);
            let padded = count.next_multiple_of(LANES);
            let left = (total - start).next_multiple_of(LANES);
            let dither =
                if dithered { self.draw(dither, DITHER, block, left, &mut scratch.dither) } else { &[] };
            let input = input.part(start..start + count);
            let rows = match law.rows_of(input) {
                Some(rows) if count == padded => rows,
                _ => {
                    let grid = self.grid.map(|grid| (grid, dither, &mut refine));
                    load(self.isa, input, grid, law.rows(), &mut scratch.rows[..count]);
                    scratch.rows[count..padded].fill(L::Word::default());
                    &scratch.rows[..padded]
                }
            };
            let keystream = self.draw(main, L::BITS, block, left, scratch.keystream.as_mut());
            let mut output = output.reports(start..start + count, self.bits as usize);
            match L::Word::of_output(&mut output) {
                Some(reports) if count == padded => {
                    law.block(self.isa, keystream, rows, reports, &mut refine)
                }
                _ => {
                    law.block(self.isa, keystream, rows, &mut scratch.reports[..padded], &mut refine);
                    emit(self.isa, &scratch.reports[..count], self.letters, self.bits, output);
                }
            }
        }
    }

    /// Writes `reports` where `answers` are 0, and elsewhere what the answers 1, 2, … are behind `behind` reports.
    pub(crate) fn merge(&self, reports: &mut [u16], answers: &[u16], behind: u32, output: Output<'_>) {
        // Answer 1 is the report `behind`; it wraps around where the answer is 0, and is not taken then.
        let before = (behind as u16).wrapping_sub(1);
        compiled(self.isa, MergeAnswers { sampler: self, reports, answers, before, output });
    }
}
