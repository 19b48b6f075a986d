//! Kernels by instruction set, for each of the categorical laws.

use super::flip::{FLIPS, Flip};
use super::law::{BLOCK, Law};
use super::look_up::PLACES;
use super::matrix::{Entry, MatrixLaw};
use super::window::{NarrowWindow, WideWindow};
use crate::io::Input;
use crate::isa::{Isa, dispatch};
use crate::random::Refine;

impl Law for Flip {
    type Word = u16;
    const BITS: usize = 16 / FLIPS;
    type Keystream = [u8; 4 * BLOCK];
    const KEYSTREAM: [u8; 4 * BLOCK] = [0; 4 * BLOCK];

    fn rows(&self) -> u32 {
        2
    }

    #[inline(always)]
    fn rows_of<'i>(&self, input: Input<'i>) -> Option<&'i [u16]> {
        if let Input::U16(rows) = input { Some(rows) } else { None }
    }

    #[inline(always)]
    fn block(&self, isa: Isa, keystream: &[u8], rows: &[u16], reports: &mut [u16], refine: &mut Refine) {
        dispatch!(isa, (self, keystream, rows, reports, refine),
            avx512 => Flip::on_avx512, avx2 => Flip::on_avx2, neon => Flip::on_neon,
            _ => self.fast(keystream, rows, reports, refine));
    }
}

impl NarrowWindow<'_> {
    #[inline(always)]
    fn sample(&self, isa: Isa, keystream: &[u8], rows: &[u16], reports: &mut [u16], refine: &mut Refine) {
        dispatch!(isa, (self, keystream, rows, reports, refine),
            avx512 => NarrowWindow::on_avx512, neon => NarrowWindow::on_neon,
            simd128 => NarrowWindow::on_simd128, _ => self.fast(keystream, rows, reports, refine));
    }
}

impl Law for NarrowWindow<'_> {
    type Word = u16;
    const BITS: usize = 32;
    type Keystream = [u8; 4 * BLOCK];
    const KEYSTREAM: [u8; 4 * BLOCK] = [0; 4 * BLOCK];

    fn rows(&self) -> u32 {
        self.cells
    }

    #[inline(always)]
    fn rows_of<'i>(&self, input: Input<'i>) -> Option<&'i [u16]> {
        match (self.order, input) {
            (None, Input::U16(rows)) => Some(rows),
            _ => None,
        }
    }

    #[inline(always)]
    fn block(&self, isa: Isa, keystream: &[u8], rows: &[u16], reports: &mut [u16], refine: &mut Refine) {
        let Some(order) = self.order else {
            return self.sample(isa, keystream, rows, reports, refine);
        };
        // The window of row 0 begins at cell 0, so its reports are ranks: the positions in any row's order.
        self.sample(isa, keystream, &[0; BLOCK][..rows.len()], reports, refine);
        for (report, &row) in reports.iter_mut().zip(rows) {
            *report = order[usize::from(row) * self.cells as usize + usize::from(*report)];
        }
    }
}

impl Law for WideWindow {
    type Word = u32;
    const BITS: usize = 128;
    type Keystream = [u8; 16 * BLOCK];
    const KEYSTREAM: [u8; 16 * BLOCK] = [0; 16 * BLOCK];

    fn rows(&self) -> u32 {
        self.cells
    }

    #[inline(always)]
    fn block(&self, _isa: Isa, keystream: &[u8], rows: &[u32], reports: &mut [u32], refine: &mut Refine) {
        self.oracle(keystream, rows, reports, refine);
    }
}

/// The versions of a matrix's draws that only one width has.
pub(crate) trait Versions: Entry {
    /// Writes a report for each row, where this width has a version of its own for `isa`; otherwise nothing happens and the
    /// answer is no.
    fn sample_wide(
        law: &MatrixLaw<Self>,
        isa: Isa,
        keystream: &[u8],
        rows: &[u16],
        reports: &mut [u16],
        refine: &mut Refine,
    ) -> bool;
}

macro_rules! versions {
    ($entry:ty, $on_avx512:ident, $law:ident, $is_for:expr) => {
        impl Versions for $entry {
            #[inline(always)]
            #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables, reason = "there is none"))]
            fn sample_wide(
                $law: &MatrixLaw<$entry>,
                isa: Isa,
                keystream: &[u8],
                rows: &[u16],
                reports: &mut [u16],
                refine: &mut Refine,
            ) -> bool {
                if $is_for {
                    dispatch!(isa, ($law, keystream, rows, reports, refine),
                        avx512 => MatrixLaw::<$entry>::$on_avx512, _ => return false);
                }
                $is_for
            }
        }
    };
}
versions!(u16, on_avx512, law, true);
versions!(u32, whole_on_avx512, law, law.entries.is_read_whole());

impl<E: Versions> Law for MatrixLaw<E> {
    type Word = u16;
    const BITS: usize = 8 * E::BYTES;
    type Keystream = [u8; 4 * BLOCK];
    const KEYSTREAM: [u8; 4 * BLOCK] = [0; 4 * BLOCK];

    fn rows(&self) -> u32 {
        self.rows
    }

    #[inline(always)]
    fn block(&self, isa: Isa, keystream: &[u8], rows: &[u16], reports: &mut [u16], refine: &mut Refine) {
        if E::sample_wide(self, isa, keystream, rows, reports, refine) {
            return;
        }
        let groups = rows.as_chunks::<PLACES>().0.iter().zip(reports.as_chunks_mut::<PLACES>().0);
        for ((rows, reports), keystream) in groups.zip(keystream.chunks_exact(PLACES * E::BYTES)) {
            let mut draws = [E::default(); PLACES];
            E::read(keystream, &mut draws);
            self.fast(isa, &draws, rows, reports, refine);
        }
    }
}

#[cfg(test)]
mod tests;
