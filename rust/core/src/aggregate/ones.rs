//! How often each bit of a record is 1.

use super::columns::Columns;
use super::layout::Layout;
use super::vertical::Counters;
use super::{Batch, Reports, Totals, table};
use crate::error::{Result, argument};

impl Batch<'_> {
    /// How many records have a 1 in each of their `columns * bits` bits, in the order of the bits.
    ///
    /// It takes reports that are bits: 0/1 bytes and packed bits.
    ///
    /// # Errors
    /// Reports in another form, a byte that is neither 0 nor 1 (by its index), or no memory. Nothing is counted then.
    pub fn ones(&self) -> Result<Vec<u64>> {
        let width = self.columns * self.bits as usize;
        let totals = Totals::new(table(&[width])?);
        let (stream, lanes) = match self.reports {
            Reports::Bits(stream) => (stream, 1),
            Reports::Packed(stream) => (stream, 8),
            _ => return Err(argument("reports", "bits or packed bits are needed".into())),
        };
        // Of packed records, as many as begin with a whole byte.
        let whole = if lanes == 1 { 1 } else { 8 >> width.trailing_zeros().min(3) };
        let layout = Layout::new(width * whole / lanes, stream.len());
        let forbidden = if lanes == 1 { 0xfe } else { 0 };
        self.count_columns::<u8, _>(
            &stream,
            &layout,
            forbidden,
            &totals,
            |counters: &Counters, columns: Columns, counts| {
                let ones = counters.read(self.isa, columns.blocks);
                let bits = if lanes == 1 { 1 } else { 8 };
                let mut column = columns.at * bits % width;
                for byte in 0..columns.bytes {
                    for ones in ones[..bits].iter().rev() {
                        counts[column] += u64::from(ones[byte]);
                        column = if column + 1 == width { 0 } else { column + 1 };
                    }
                }
            },
        );
        totals.finish(|| self.refusal(1))
    }
}
