//! Reads a table at many positions: by address, or whole for every position, so that no address tells which it was.

use std::ops::BitOr;

use crate::isa::{Isa, dispatch};

/// Places that are read together.
pub(super) const PLACES: usize = 64;

/// The cells of a table.
pub(crate) trait Cell: Copy + Default + Sync + BitOr<Output = Self> {
    /// `out[i] = table[index[i]]`, reading all of `table`, a multiple of 32 cells, for each of them, or the first `used`, a
    /// multiple of 8; what is behind them is zeros.
    #[inline(always)]
    fn look_up_whole(
        _isa: Isa,
        table: &[Self],
        used: usize,
        index: &[u32; PLACES],
        out: &mut [Self; PLACES],
    ) {
        whole(&table[..used], index, out);
    }
}

impl Cell for u16 {}
impl Cell for u64 {}

impl Cell for u32 {
    #[inline(always)]
    fn look_up_whole(isa: Isa, table: &[u32], used: usize, index: &[u32; PLACES], out: &mut [u32; PLACES]) {
        dispatch!(isa, (table, used, index, out),
            avx512 => whole_avx2, avx2 => whole_avx2, neon => super::look_up_neon::whole,
            _ => whole(&table[..used], index, out));
    }
}

fn at_whole<T: Cell>(table: &[T], index: u32) -> T {
    (0..)
        .zip(table)
        .fold(T::default(), |result, (i, &cell)| result | if i == index { cell } else { T::default() })
}

/// Cells that every position is compared with in one pass over the positions.
const AT_ONCE: usize = 8;

/// [`at_whole`] of each position, position by position side by side.
#[inline(always)]
fn whole<T: Cell>(table: &[T], index: &[u32; PLACES], out: &mut [T; PLACES]) {
    *out = [T::default(); PLACES];
    for (first, cells) in (0..).step_by(AT_ONCE).zip(table.as_chunks::<AT_ONCE>().0) {
        for (out, &index) in out.iter_mut().zip(index) {
            for (i, &cell) in (first..).zip(cells) {
                *out = *out | if i == index { cell } else { T::default() };
            }
        }
    }
}

/// A table, and how it is read.
pub(crate) struct LookUpTable<T> {
    cells: Vec<T>,
    /// Where it is read whole, the cells that are read: what is behind them fills it up to a multiple of 32.
    used: usize,
    whole: bool,
}

impl<T: Cell> LookUpTable<T> {
    /// A table of `cells`; with `whole`, all of it is read for every position.
    pub(super) fn new(mut cells: Vec<T>, whole: bool) -> LookUpTable<T> {
        let used = cells.len().next_multiple_of(AT_ONCE);
        if whole {
            cells.resize(cells.len().next_multiple_of(32), T::default());
        }
        LookUpTable { cells, used, whole }
    }

    pub(super) fn is_read_whole(&self) -> bool {
        self.whole
    }

    /// The cells; where the table is read whole, a multiple of 32.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn cells(&self) -> &[T] {
        &self.cells
    }

    /// The cell at `index`.
    pub(super) fn at(&self, index: u32) -> T {
        if self.whole { at_whole(&self.cells, index) } else { self.cells[index as usize] }
    }

    /// Asks memory for the cell at `index`, which will be read soon.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn send_for(&self, index: u32) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: nothing is read; an address without a cell does no harm.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(self.cells.as_ptr().wrapping_add(index as usize).cast()) };
    }

    /// `out[i]` becomes the cell at `index[i]`.
    ///
    /// # Safety
    /// Every index is that of a cell.
    #[inline(always)]
    pub(super) unsafe fn look_up(&self, isa: Isa, index: &[u32; PLACES], out: &mut [T; PLACES]) {
        if self.whole {
            return T::look_up_whole(isa, &self.cells, self.used, index, out);
        }
        // SAFETY: the caller's indices are those of cells.
        unsafe { self.look_up_some(index, out) }
    }

    /// [`look_up`](Self::look_up) by address, for any number of positions.
    ///
    /// # Safety
    /// Every index is that of a cell.
    #[inline(always)]
    pub(super) unsafe fn look_up_some(&self, index: &[u32], out: &mut [T]) {
        let cells = self.cells.as_ptr();
        for (out, &index) in out.iter_mut().zip(index) {
            // Volatile, or the compiler assembles vectors from single cells, which takes longer than storing each.
            // SAFETY: the caller's index is that of a cell, which is aligned and initialised.
            *out = unsafe { cells.add(index as usize).read_volatile() };
        }
    }
}

/// A register of the table at a time, which `vpermd` reads at 8 positions by the low three bits of the index; kept where the
/// other bits are those of the register.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn whole_avx2(table: &[u32], used: usize, index: &[u32; PLACES], out: &mut [u32; PLACES]) {
    use std::arch::x86_64::*;

    use safe_unaligned_simd::x86_64::{_mm256_loadu_si256, _mm256_storeu_si256};
    let eights = table[..used].as_chunks::<8>().0;
    for (index, out) in index.as_chunks::<8>().0.iter().zip(out.as_chunks_mut::<8>().0) {
        let index = _mm256_loadu_si256(index);
        let wanted = _mm256_srli_epi32::<3>(index);
        let mut result = _mm256_setzero_si256();
        for (number, eight) in (0..).zip(eights) {
            let eight = _mm256_loadu_si256(eight);
            let here = _mm256_cmpeq_epi32(wanted, _mm256_set1_epi32(number));
            result = _mm256_blendv_epi8(result, _mm256_permutevar8x32_epi32(eight, index), here);
        }
        _mm256_storeu_si256(out, result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_reads_the_same() {
        for cells in [2u32, 32, 33, 64, 96, 512, 1024] {
            let table: Vec<u32> = (0..cells).map(|i| i.wrapping_mul(0x9E37_79B9) ^ 7).collect();
            let index: [u32; PLACES] = std::array::from_fn(|i| (i as u32).wrapping_mul(40_503) % cells);
            let expected = index.map(|i| table[i as usize]);
            for whole in [false, true] {
                let short = LookUpTable::new(table.iter().map(|&cell| cell as u16).collect(), whole);
                let table = LookUpTable::new(table.clone(), whole);
                for &isa in Isa::available() {
                    let (mut out, mut shorts) = ([0; PLACES], [0; PLACES]);
                    // SAFETY: the indices are taken modulo the number of cells.
                    unsafe { table.look_up(isa, &index, &mut out) };
                    // SAFETY: as above.
                    unsafe { short.look_up(isa, &index, &mut shorts) };
                    assert_eq!(out, expected, "{cells} cells, {isa}, whole: {whole}");
                    assert_eq!(shorts, expected.map(|cell| cell as u16));
                }
                assert_eq!(table.at(index[9]), expected[9]);
            }
        }
    }
}
