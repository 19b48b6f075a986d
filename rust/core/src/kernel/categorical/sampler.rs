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
use crate::isa::{BATCHES, Isa, compiled};
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
        let nothing = [L::Word::default(); BLOCK];
        let mut scratch: BlockScratch<L> =
            BlockScratch { keystream: L::KEYSTREAM, dither: [0; AT_ONCE], rows: nothing, reports: nothing };
        let BlockScratch { keystream, dither, rows, reports } = &mut scratch;
        let buffers = BlockBuffers { keystream: keystream.as_mut(), dither, rows, reports };
        let Chunk { sampler, law, chunk, input, output } = self;
        const {
            let (bytes, room) = (L::BITS * BLOCK / 8, size_of::<L::Keystream>());
            assert!(room.is_multiple_of(bytes) && room.is_multiple_of(AT_ONCE));
            assert!(AT_ONCE.is_multiple_of(DITHER * BLOCK / 8));
        };
        if BATCHES {
            sampler.blocks(law, buffers, chunk, input, output);
        } else {
            sampler.blocks_once::<L::Word>(law, buffers, chunk, input, output);
        }
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

/// The parts of a [`BlockScratch`], whatever the law is.
struct BlockBuffers<'a, W> {
    keystream: &'a mut [u8],
    dither: &'a mut [u8; AT_ONCE],
    rows: &'a mut [W; BLOCK],
    reports: &'a mut [W; BLOCK],
}

/// A [`Law`] of words of one width, as a build calls it that has one loop for all of them.
trait AnyLaw<W> {
    fn bits(&self) -> usize;
    fn rows(&self) -> u32;
    fn rows_of<'i>(&self, input: Input<'i>) -> Option<&'i [W]>;
    fn block(&self, isa: Isa, keystream: &[u8], rows: &[W], reports: &mut [W], refine: &mut Refine);
}

impl<L: Law> AnyLaw<L::Word> for L {
    #[inline(always)]
    fn bits(&self) -> usize {
        L::BITS
    }

    #[inline(always)]
    fn rows(&self) -> u32 {
        Law::rows(self)
    }

    #[inline(always)]
    fn rows_of<'i>(&self, input: Input<'i>) -> Option<&'i [L::Word]> {
        Law::rows_of(self, input)
    }

    #[inline(always)]
    fn block(
        &self,
        isa: Isa,
        keystream: &[u8],
        rows: &[L::Word],
        reports: &mut [L::Word],
        refine: &mut Refine,
    ) {
        Law::block(self, isa, keystream, rows, reports, refine);
    }
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

    /// [`blocks`](Self::blocks), compiled once for each width of word.
    #[inline(never)]
    fn blocks_once<W: CodeWord>(
        &self,
        law: &dyn AnyLaw<W>,
        buffers: BlockBuffers<'_, W>,
        chunk: u64,
        input: Input<'_>,
        output: Output<'_>,
    ) {
        self.blocks(law, buffers, chunk, input, output);
    }

    #[inline(always)]
    fn blocks<W: CodeWord, L: AnyLaw<W> + ?Sized>(
        &self,
        law: &L,
        scratch: BlockBuffers<'_, W>,
        chunk: u64,
        input: Input<'_>,
        mut output: Output<'_>,
    ) {
        let main = nonce(Purpose::Main, chunk);
        let dither = nonce(Purpose::Dither, chunk);
        let mut refine = Refine::new(self.isa, self.key, nonce(Purpose::Refine, chunk));
        let dithered = self.grid.is_some_and(|grid| grid.rounding() == GridRounding::Dither);
        let total = input.len();
        for (block, start) in (0..total).step_by(BLOCK).enumerate() {
            let count = BLOCK.min(total - start);
            let padded = count.next_multiple_of(LANES);
            let left = (total - start).next_multiple_of(LANES);
            let dither = if dithered { self.draw(dither, DITHER, block, left, scratch.dither) } else { &[] };
            let input = input.part(start..start + count);
            let rows = match law.rows_of(input) {
                Some(rows) if count == padded => rows,
                _ => {
                    let grid = self.grid.map(|grid| (grid, dither, &mut refine));
                    load(self.isa, input, grid, law.rows(), &mut scratch.rows[..count]);
                    scratch.rows[count..padded].fill(W::default());
                    &scratch.rows[..padded]
                }
            };
            let keystream = self.draw(main, law.bits(), block, left, scratch.keystream);
            let mut output = output.reports(start..start + count, self.bits as usize);
            match W::of_output(&mut output) {
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
