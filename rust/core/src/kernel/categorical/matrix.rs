//! Samples a matrix: one alias table a row.

use std::ops::{BitAnd, BitXor, Shr};

use super::look_up::{Cell, LookUpTable, PLACES};
use crate::alias::Alias;
use crate::isa::Isa;
use crate::random::Refine;

/// A draw, or an entry of an alias table: 16 or 32 bits.
pub(crate) trait Entry:
    Cell + Ord + BitAnd<Output = Self> + BitXor<Output = Self> + Shr<u32, Output = Self>
{
    const BYTES: usize;
    /// The low bits of `word`.
    fn narrow(word: u32) -> Self;
    fn widen(self) -> u32;
    /// `draws` in little-endian order.
    fn read(bytes: &[u8], draws: &mut [Self; PLACES]);
}

macro_rules! entry {
    ($($type:ty),*) => {$(
        impl Entry for $type {
            const BYTES: usize = size_of::<$type>();

            #[inline(always)]
            fn narrow(word: u32) -> $type {
                word as $type
            }

            #[inline(always)]
            fn widen(self) -> u32 {
                u32::from(self)
            }

            #[inline(always)]
            fn read(bytes: &[u8], draws: &mut [$type; PLACES]) {
                for (draw, &bytes) in draws.iter_mut().zip(bytes.as_chunks::<{ size_of::<$type>() }>().0) {
                    *draw = <$type>::from_le_bytes(bytes);
                }
            }
        }
    )*};
}
entry!(u16, u32);

/// The alias tables of a row-stochastic matrix of integers over `2^64`, drawn with `E`.
///
/// Each row has `2^k` columns, those past the matrix with weight 0, of capacity `2^(64 - k)`. The low `k` bits of a draw
/// are a column, the others are compared with the leading bits of its threshold; if they are equal, a word of the
/// refinement stream is compared with the rest of it, in the order of the samples.
pub(crate) struct MatrixLaw<E> {
    pub(super) rows: u32,
    /// `k`.
    pub(super) bits: u32,
    /// For each row and column the leading bits of its threshold, and below them its alias.
    pub(super) entries: LookUpTable<E>,
    /// The other bits of the thresholds, left-aligned.
    pub(super) rest: LookUpTable<u64>,
}

/// `k` of a matrix of `columns` columns.
fn column_bits(columns: usize) -> u32 {
    columns.next_power_of_two().trailing_zeros().max(1)
}

impl<E: Entry> MatrixLaw<E> {
    /// `weights` are rows of `columns` integers, each row summing to `2^64`. With `whole`, no address depends on the input.
    fn new(weights: &[u128], columns: usize, whole: bool) -> MatrixLaw<E> {
        let bits = column_bits(columns);
        let top = 8 * E::BYTES - bits as usize;
        let rows = weights.len() / columns;
        let (mut entries, mut rest) = (Vec::with_capacity(rows << bits), Vec::with_capacity(rows << bits));
        let mut row = vec![0; 1 << bits];
        for weights in weights.chunks_exact(columns) {
            row[..columns].copy_from_slice(weights);
            let table = Alias::of_weights(bits as usize, &row);
            for column in 0..1 << bits {
                let (head, alias, limbs) = table.column(column, top);
                entries.push(E::narrow((head as u32) << bits | u32::from(alias)));
                rest.push(limbs[0]);
            }
        }
        MatrixLaw {
            rows: rows as u32,
            bits,
            entries: LookUpTable::new(entries, whole),
            rest: LookUpTable::new(rest, whole),
        }
    }

    #[inline(always)]
    pub(super) fn mask(&self) -> E {
        E::narrow((1 << self.bits) - 1)
    }

    #[inline(always)]
    fn index(&self, row: u16, draw: E) -> u32 {
        u32::from(row) << self.bits | (draw & self.mask()).widen()
    }

    /// True where the leading bits leave the choice between a column and its alias open.
    #[inline(always)]
    fn is_open(&self, draw: E, entry: E) -> bool {
        (draw ^ entry) >> self.bits == E::default()
    }

    /// One report, whatever its draw: the oracle.
    pub(super) fn draw(&self, row: u16, draw: E, refine: &mut Refine) -> u16 {
        let index = self.index(row, draw);
        let entry = self.entries.at(index);
        // Where the bits above the column differ, the columns below them do not matter.
        let keep = if self.is_open(draw, entry) { refine.less(&[self.rest.at(index)]) } else { draw < entry };
        ((if keep { draw } else { entry }) & self.mask()).widen() as u16
    }

    /// [`draw`](Self::draw) of each row.
    #[cfg(test)]
    pub(super) fn oracle(
        &self,
        draws: &[E; PLACES],
        rows: &[u16; PLACES],
        reports: &mut [u16; PLACES],
        refine: &mut Refine,
    ) {
        for ((report, &row), &draw) in reports.iter_mut().zip(rows).zip(draws) {
            *report = self.draw(row, draw, refine);
        }
    }

    /// Writes a report for each row: [`draw`](Self::draw) without branches, and again where that is open.
    #[inline(always)]
    pub(super) fn fast(
        &self,
        isa: Isa,
        draws: &[E; PLACES],
        rows: &[u16; PLACES],
        reports: &mut [u16; PLACES],
        refine: &mut Refine,
    ) {
        let mut index = [0; PLACES];
        for ((index, &row), &draw) in index.iter_mut().zip(rows).zip(draws) {
            *index = self.index(row, draw);
        }
        let mut entries = [E::default(); PLACES];
        // SAFETY: stage one and the padding leave only rows below `self.rows`, and each has 2^k entries.
        unsafe { self.entries.look_up(isa, &index, &mut entries) };
        let mut open = false;
        for ((report, &entry), &draw) in reports.iter_mut().zip(&entries).zip(draws) {
            open |= self.is_open(draw, entry);
            *report = (draw.min(entry) & self.mask()).widen() as u16;
        }
        if open {
            for i in (0..PLACES).filter(|&i| self.is_open(draws[i], entries[i])) {
                reports[i] = self.draw(rows[i], draws[i], refine);
            }
        }
    }
}

/// The laws of both widths.
pub(crate) enum AnyMatrix {
    /// 16 bits a draw: half the keystream and half the table, and a second look once in `2^(16 - k)` draws.
    Coarse(MatrixLaw<u16>),
    /// 32 bits a draw.
    Fine(MatrixLaw<u32>),
}

/// Rows and columns up to which a table is read whole for every sample.
const WHOLE: usize = 32;
/// The most columns that are drawn with 16 bits.
const COARSE: usize = 256;

impl AnyMatrix {
    /// `weights` are rows of `columns` integers, each row summing to `2^64`.
    pub(crate) fn new(weights: &[u128], columns: usize) -> AnyMatrix {
        debug_assert!((1..=1 << 16).contains(&columns) && weights.len().is_multiple_of(columns));
        // A second look takes time, and which draw needs it depends on the row: a table that is read whole, so that
        // nothing tells the row, is drawn with so many bits that it hardly ever happens.
        if weights.len() / columns <= WHOLE && columns <= WHOLE {
            AnyMatrix::Fine(MatrixLaw::new(weights, columns, true))
        } else if columns <= COARSE {
            AnyMatrix::Coarse(MatrixLaw::new(weights, columns, false))
        } else {
            AnyMatrix::Fine(MatrixLaw::new(weights, columns, false))
        }
    }

    /// True where every sample reads the whole table, so that no address depends on the input.
    pub(crate) fn is_read_whole(&self) -> bool {
        matches!(self, AnyMatrix::Fine(law) if law.entries.is_read_whole())
    }
}
