//! Sampling a matrix: one alias table a row.

use super::look_up::{at, look_up};
use super::{BLOCK, Law};
use crate::alias::Alias;
use crate::kernel::Isa;
use crate::random::Refine;

/// Rows and columns up to which a table is read whole for every sample.
const WHOLE: usize = 32;

/// The alias tables of a row-stochastic matrix of integers over `2^64`.
///
/// Each row has `2^k` columns, those past the matrix with weight 0, of capacity `2^(64 - k)`. A sample takes 32 bits: `k`
/// of column and `32 - k` of threshold; if these equal the column's, 32 further bits decide, from the refinement stream,
/// in the order of the samples.
pub(crate) struct MatrixLaw {
    rows: u32,
    /// `k`.
    bits: u32,
    /// For each row and column the leading `32 - k` bits of its threshold, and below them its alias. Followed by zeros, up
    /// to a multiple of 32, where tables are read whole.
    entries: Vec<u32>,
    /// The other 32 bits of the thresholds.
    rest: Vec<u32>,
    whole: bool,
}

impl MatrixLaw {
    /// `weights` are rows of `columns` integers, each row summing to `2^64`.
    pub(crate) fn new(weights: &[u128], columns: usize) -> MatrixLaw {
        debug_assert!((1..=1 << 16).contains(&columns) && weights.len().is_multiple_of(columns));
        let rows = weights.len() / columns;
        let bits = columns.next_power_of_two().trailing_zeros().max(1);
        let whole = rows <= WHOLE && columns <= WHOLE;
        let (mut entries, mut rest) = (Vec::with_capacity(rows << bits), Vec::with_capacity(rows << bits));
        let mut row = vec![0; 1 << bits];
        for weights in weights.chunks_exact(columns) {
            row[..columns].copy_from_slice(weights);
            let table = Alias::of_weights(bits as usize, &row);
            for column in 0..1 << bits {
                let (head, alias, limbs) = table.column(column, 32 - bits as usize);
                entries.push((head as u32) << bits | u32::from(alias));
                rest.push((limbs[0] >> 32) as u32);
            }
        }
        if whole {
            let padded = entries.len().next_multiple_of(32);
            entries.resize(padded, 0);
            rest.resize(padded, 0);
        }
        MatrixLaw { rows: rows as u32, bits, entries, rest, whole }
    }

    /// Whether every sample reads the whole table, so that no address depends on the input.
    pub(crate) fn is_read_whole(&self) -> bool {
        self.whole
    }

    #[inline(always)]
    fn mask(&self) -> u32 {
        (1 << self.bits) - 1
    }

    #[inline(always)]
    fn index(&self, row: u16, draw: u32) -> u32 {
        u32::from(row) << self.bits | draw & self.mask()
    }

    /// One report, whatever its draw: the oracle.
    fn draw(&self, row: u16, draw: u32, refine: &mut Refine) -> u16 {
        let index = self.index(row, draw);
        let entry = at(&self.entries, self.whole, index);
        let keep = if (draw ^ entry) >> self.bits == 0 {
            ((refine.next() >> 32) as u32) < at(&self.rest, self.whole, index)
        } else {
            draw < entry
        };
        ((if keep { draw } else { entry }) & self.mask()) as u16
    }

    fn oracle(&self, draws: &[u32; BLOCK], words: &mut [u16; BLOCK], refine: &mut Refine) {
        for (word, &draw) in words.iter_mut().zip(draws) {
            *word = self.draw(*word, draw, refine);
        }
    }

    #[inline(always)]
    fn fast(&self, isa: Isa, draws: &[u32; BLOCK], words: &mut [u16; BLOCK], refine: &mut Refine) {
        let rows = *words;
        let mut index = [0; BLOCK];
        for ((index, &row), &draw) in index.iter_mut().zip(&rows).zip(draws) {
            *index = self.index(row, draw);
        }
        let mut entries = [0; BLOCK];
        // SAFETY: stage one and the padding leave only rows below `self.rows`, and each has 2^k entries.
        unsafe { look_up(isa, &self.entries, self.whole, &index, &mut entries) };
        let unsettled = |draw: u32, entry: u32| (draw ^ entry) >> self.bits == 0;
        let mut any = false;
        for ((word, &entry), &draw) in words.iter_mut().zip(&entries).zip(draws) {
            any |= unsettled(draw, entry);
            *word = ((if draw < entry { draw } else { entry }) & self.mask()) as u16;
        }
        if any {
            for (i, (&draw, &entry)) in draws.iter().zip(&entries).enumerate() {
                if unsettled(draw, entry) {
                    words[i] = self.draw(rows[i], draw, refine);
                }
            }
        }
    }
}

impl Law for MatrixLaw {
    type Word = u16;
    const KEYSTREAM: usize = 4 * BLOCK;

    fn rows(&self) -> u32 {
        self.rows
    }

    #[inline(always)]
    fn block(&self, isa: Isa, keystream: &[u8], words: &mut [u16; BLOCK], refine: &mut Refine) {
        let bytes = keystream.as_chunks::<4>().0;
        let mut draws = [0; BLOCK];
        for (draw, &bytes) in draws.iter_mut().zip(bytes) {
            *draw = u32::from_le_bytes(bytes);
        }
        match isa {
            Isa::Scalar => self.oracle(&draws, words, refine),
            _ => self.fast(isa, &draws, words, refine),
        }
    }
}
