//! Samples a shift: noise from the alias table of one row, added to the input.

use super::law::{BLOCK, Law};
use super::laws::Versions;
use super::matrix::MatrixLaw;
use crate::isa::Isa;
use crate::random::Refine;

/// Noise that is added to a row, the sum clamped to the reports.
///
/// The noise is drawn like a report of a matrix that has a single row. So neither branches nor addresses depend on the
/// input, whatever the size of the table: the input only enters an addition and a clamp.
pub(crate) struct ShiftLaw<'a, E> {
    /// A matrix of one row.
    pub(crate) noise: &'a MatrixLaw<E>,
    pub(crate) inputs: u32,
    /// The number that is added to row and noise; the sum of the three stays far inside 32 bits.
    pub(crate) base: i32,
    /// The last report.
    pub(crate) last: u16,
}

impl<E> ShiftLaw<'_, E> {
    /// The report of a row and the position of its noise.
    #[inline(always)]
    pub(super) fn shifted(&self, row: u16, noise: u16) -> u16 {
        (i32::from(row) + i32::from(noise) + self.base).clamp(0, self.last.into()) as u16
    }
}

impl<E: Versions> Law for ShiftLaw<'_, E> {
    type Word = u16;
    const BITS: usize = <MatrixLaw<E> as Law>::BITS;
    type Keystream = <MatrixLaw<E> as Law>::Keystream;
    const KEYSTREAM: Self::Keystream = <MatrixLaw<E> as Law>::KEYSTREAM;

    fn rows(&self) -> u32 {
        self.inputs
    }

    #[inline(always)]
    fn block(&self, isa: Isa, keystream: &[u8], rows: &[u16], reports: &mut [u16], refine: &mut Refine) {
        self.noise.block(isa, keystream, &[0; BLOCK][..rows.len()], reports, refine);
        for (report, &row) in reports.iter_mut().zip(rows) {
            *report = self.shifted(row, *report);
        }
    }
}
