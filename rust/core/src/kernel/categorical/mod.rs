//! How a categorical law is sampled: input to rows, rows to reports, reports to output, a block of 256 samples at a time,
//! so that everything between input and output stays in the first-level cache.
//!
//! Windows and matrices differ only in the middle step, a [`Law`]. The loops are written without branches on values and
//! compiled anew for each instruction set; a lane whose draw is not settled by its first bits is drawn again by the law's
//! plain function, which is also the scalar path. So every path consumes the same random words in the same order.

mod emit;
mod look_up;
mod matrix;
mod rows;
mod window;

pub(crate) use matrix::MatrixLaw;
pub(crate) use rows::{first_outside, load_on as load_rows};
pub(crate) use window::{NarrowWindow, WideWindow};

use super::Isa;
use super::bits::Word;
use crate::channel::{Input, Output};
use crate::codec::{Grid, GridRounding};
use crate::random::{GROUP, Key, Purpose, Refine, fill, nonce};

/// Samples in a block. The last block of a chunk is padded with row 0, which changes nothing for the others.
pub(crate) const BLOCK: usize = 256;

/// The most keystream that a block takes.
const MOST_KEYSTREAM: usize = 16 * BLOCK;
/// Dither that a block takes: four bytes a sample.
const DITHER: usize = 4 * BLOCK;

/// A categorical law: for each row, a distribution over reports.
pub(crate) trait Law: Sync {
    /// Holds a row and a report.
    type Word: Word;
    /// Bytes of keystream that a block takes, whole groups.
    const KEYSTREAM: usize;
    /// How many rows there are.
    fn rows(&self) -> u32;
    /// Replaces 256 rows by reports. `keystream` holds [`Law::KEYSTREAM`] bytes.
    fn block(&self, isa: Isa, keystream: &[u8], words: &mut [Self::Word; BLOCK], refine: &mut Refine);
}

/// Everything that sampling one chunk takes, but the law, its number, its input and its output.
pub(crate) struct Sampler<'a> {
    pub(crate) isa: Isa,
    pub(crate) key: &'a Key,
    /// How numbers become rows; without it the input is rows.
    pub(crate) grid: Option<&'a Grid>,
    /// What reports stand for.
    pub(crate) letters: Option<&'a [f64]>,
    /// Bits of a packed report.
    pub(crate) bits: u32,
}

#[repr(C, align(64))]
struct Scratch<W> {
    keystream: [u8; MOST_KEYSTREAM],
    dither: [u8; DITHER],
    words: [W; BLOCK],
}

impl Sampler<'_> {
    /// Randomizes chunk `chunk` of the key's stream: `output` has room for just the reports of `input`.
    pub(crate) fn chunk<L: Law>(&self, law: &L, chunk: u64, input: Input<'_>, output: Output<'_>) {
        match self.isa {
            // SAFETY: an `Isa` that reaches the kernels was checked against this processor.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { self.blocks_on_avx512(law, chunk, input, output) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { self.blocks_on_avx2(law, chunk, input, output) },
            _ => self.blocks(law, chunk, input, output),
        }
    }

    // What these two call is inlined into them, and with that compiled for their instruction set.

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn blocks_on_avx512<L: Law>(&self, law: &L, chunk: u64, input: Input<'_>, output: Output<'_>) {
        self.blocks(law, chunk, input, output);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn blocks_on_avx2<L: Law>(&self, law: &L, chunk: u64, input: Input<'_>, output: Output<'_>) {
        self.blocks(law, chunk, input, output);
    }

    #[inline(always)]
    fn blocks<L: Law>(&self, law: &L, chunk: u64, input: Input<'_>, mut output: Output<'_>) {
        const { assert!(L::KEYSTREAM <= MOST_KEYSTREAM && L::KEYSTREAM.is_multiple_of(GROUP)) };
        let main = nonce(Purpose::Main, chunk);
        let dither = nonce(Purpose::Dither, chunk);
        let mut refine = Refine::new(self.isa, self.key, nonce(Purpose::Refine, chunk));
        let mut scratch = Scratch {
            keystream: [0; MOST_KEYSTREAM],
            dither: [0; DITHER],
            words: [L::Word::default(); BLOCK],
        };
        let dithered = self.grid.is_some_and(|grid| grid.rounding() == GridRounding::Dither);
        let total = input.len();
        for (block, start) in (0..total).step_by(BLOCK).enumerate() {
            let count = BLOCK.min(total - start);
            let keystream = &mut scratch.keystream[..L::KEYSTREAM];
            fill(self.isa, self.key, main, (block * (L::KEYSTREAM / GROUP)) as u64, keystream);
            if dithered {
                fill(self.isa, self.key, dither, (block * (DITHER / GROUP)) as u64, &mut scratch.dither);
            }
            let words = &mut scratch.words;
            let input = input.part(start..start + count);
            rows::load(input, self.grid, &scratch.dither, law.rows(), &mut words[..count]);
            words[count..].fill(L::Word::default());
            law.block(self.isa, keystream, words, &mut refine);
            let output = output.reports(start..start + count, self.bits as usize);
            emit::emit(&words[..count], self.letters, self.bits, output);
        }
    }
}
