//! Reports in aggregate: integer counts and sums, from which estimates are made once, at the end.
//!
//! A count or sum of one batch is a plain array of `u64` that adds: batches, threads and machines in any order give the
//! same numbers. Reports come in the forms in which they leave a channel ([`Reports`]); what a code word or a bit is decoded to
//! is applied to the counts, never to a report.
//!
//! Bits are counted by position: eight registers of them are added up into registers of ones, twos, fours and eights, a
//! binary counter for each bit that stands upright in memory (the carry-save adders of Harley and Seal; Muła, Kurz and
//! Lemire 2018, "Faster population counts using AVX2 instructions", for positions).

mod columns;
mod hashes;
mod histogram;
mod layout;
mod ones;
mod pairs;
mod planes;
mod progressions;
mod sampled;
mod sliding;
mod source;
mod sums;
mod undo;
mod vertical;
mod words;

use std::sync::Mutex;

use crate::error::{Error, Result, argument, element, reason, zeros};
use crate::isa::Isa;

pub use hashes::Hashes;
pub use sampled::Sampled;
pub use sliding::{Maximization, Sliding};
pub use undo::{Undo, undo_counts};

/// Reports in one of the forms in which they leave a channel.
#[derive(Clone, Copy, Debug)]
pub enum Reports<'a> {
    /// Code words of at most 8 bits.
    U8(&'a [u8]),
    /// Code words of at most 16 bits.
    U16(&'a [u16]),
    /// Code words of at most 32 bits.
    U32(&'a [u32]),
    /// A byte of 0 or 1 for each bit, most significant bit of a word first.
    Bits(&'a [u8]),
    /// The bits of all words, most significant first, eight to a byte, nothing between words; zeros fill up the last byte.
    Packed(&'a [u8]),
}

/// Records of `columns` code words of `bits` bits each, to be counted.
///
/// ```
/// use bitldp_core::{Batch, Reports};
///
/// // Two records of three bits: 101 and 001.
/// let packed = [0b1010_0100];
/// assert_eq!(Batch::new(Reports::Packed(&packed), 2, 3, 1)?.ones()?, [1, 0, 2]);
/// # Ok::<(), bitldp_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    reports: Reports<'a>,
    records: usize,
    columns: usize,
    bits: u32,
    isa: Isa,
    threads: Option<usize>,
}

impl<'a> Batch<'a> {
    /// `records` records of `columns` words (1 or more) of `bits` bits (1 to 32): of 1 bit, they are bits.
    ///
    /// # Errors
    /// A number outside its range, or reports of another length; in packed ones, bits after the last that are not 0.
    pub fn new(reports: Reports<'a>, records: usize, columns: usize, bits: u32) -> Result<Batch<'a>> {
        if !(1..=32).contains(&bits) {
            return Err(argument("bits", reason!("{bits} is not allowed; 1 to 32 are")));
        }
        if columns == 0 {
            return Err(argument("columns", "0 is not allowed; a record has at least one".into()));
        }
        let isa = Isa::current()?;
        let total = columns.checked_mul(bits as usize).and_then(|row| row.checked_mul(records));
        let Some(total) = total.filter(|&total| total <= isize::MAX as usize) else {
            return Err(argument("records", reason!("{records} are more than memory holds")));
        };
        let (given, needed) = match reports {
            Reports::U8(codes) => (codes.len(), records * columns),
            Reports::U16(codes) => (codes.len(), records * columns),
            Reports::U32(codes) => (codes.len(), records * columns),
            Reports::Bits(bits) => (bits.len(), total),
            Reports::Packed(packed) => (packed.len(), total.div_ceil(8)),
        };
        if given != needed {
            let reason = reason!("{given} elements, where {records} records are {needed}");
            return Err(Error::Shape { name: "reports", reason });
        }
        if let Reports::Packed(&[.., last]) = reports
            && last & (((1u32 << (8 * needed - total)) - 1) as u8) != 0
        {
            return Err(element("reports", needed - 1, "the bits after the last report are 0"));
        }
        Ok(Batch { reports, records, columns, bits, isa, threads: None })
    }

    /// The same, counted with the kernels of `isa`: the counts do not depend on it.
    #[must_use]
    pub fn on(self, isa: Isa) -> Batch<'a> {
        Batch { isa, ..self }
    }

    /// The same, counted on so many threads (`None`: as many as pay off): the counts do not depend on it.
    ///
    /// # Errors
    /// No threads.
    pub fn threads(self, threads: Option<usize>) -> Result<Batch<'a>> {
        if threads == Some(0) {
            return Err(argument("threads", "0 is not allowed; at least 1 is".into()));
        }
        Ok(Batch { threads, ..self })
    }

    fn words(&self) -> usize {
        self.records * self.columns
    }

    /// The error of the first code word above `most`, or of the first byte that is no bit.
    fn refused(&self, most: u32) -> Option<Error> {
        fn above<C: Copy + Into<u32>>(codes: &[C], most: u32) -> Option<usize> {
            codes.iter().position(|&code| code.into() > most)
        }
        if let Reports::Bits(bits) = self.reports
            && let Some(position) = above(bits, 1)
        {
            return Some(element("reports", position, "a bit is 0 or 1"));
        }
        let position = match self.reports {
            Reports::U8(codes) => above(codes, most),
            Reports::U16(codes) => above(codes, most),
            Reports::U32(codes) => above(codes, most),
            Reports::Bits(_) | Reports::Packed(_) => self.packed_above(most),
        };
        position.map(|position| element("reports", position, reason!("code words from 0 to {most} are")))
    }

    /// [`refused`](Self::refused) after something was: it is there still, unless somebody changed the reports meanwhile.
    fn refusal(&self, most: u32) -> Error {
        let changed = || argument("reports", "must not be written to while they are counted".into());
        self.refused(most).unwrap_or_else(changed)
    }
}

/// [`zeros`] for a product of lengths.
fn table(lengths: &[usize]) -> Result<Vec<u64>> {
    let count = lengths.iter().try_fold(1usize, |product, &length| product.checked_mul(length));
    zeros(count.ok_or(Error::Memory { bytes: usize::MAX })?)
}

/// The counts that the threads add to, and whether one of them met what is refused or had no memory.
struct Totals {
    counts: Mutex<Vec<u64>>,
    failed: Mutex<Option<Failed>>,
}

/// Why nothing is handed out.
enum Failed {
    /// A code word or bit that is not allowed.
    Refused,
    /// No memory.
    Memory(Error),
}

impl Totals {
    fn new(counts: Vec<u64>) -> Totals {
        Totals { counts: Mutex::new(counts), failed: Mutex::new(None) }
    }

    /// Takes what a part of the work came to: an addition to the counts, or why there is none.
    fn take(&self, part: std::result::Result<impl FnOnce(&mut [u64]), Failed>) {
        match part {
            // Nobody panics while holding the lock; if it happened, the panic is on its way to the caller anyway.
            Ok(add) => add(&mut self.counts.lock().unwrap_or_else(|broken| broken.into_inner())),
            Err(failed) => {
                self.failed.lock().unwrap_or_else(|broken| broken.into_inner()).get_or_insert(failed);
            }
        }
    }

    /// The counts; or, of all that was refused, what `refusal` says.
    fn finish(self, refusal: impl FnOnce() -> Error) -> Result<Vec<u64>> {
        match self.failed.into_inner().unwrap_or_else(|broken| broken.into_inner()) {
            None => Ok(self.counts.into_inner().unwrap_or_else(|broken| broken.into_inner())),
            Some(Failed::Refused) => Err(refusal()),
            Some(Failed::Memory(error)) => Err(error),
        }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Memory(error)
    }
}
