//! Random bits that are a function of a key, of what they are for, and of the records: keyed calls draw from them.

use std::ops::Range;

use crate::codec::canonical;
use crate::error::{Error, Result, argument, zeros};
use crate::io::Input;
use crate::isa::Isa;
use crate::parallel::{Parts, for_chunks};
use crate::random::{Digest, GROUP, Ids, Key, RecordKeys, fill};

/// Records that one thread takes at a time.
const CHUNK: usize = 256;

/// Nanoseconds that a single thread takes for a record, roughly.
const NANOSECONDS: usize = 300;

/// The random bits of a keyed call: a function of a key, of what they are for, and of the records.
#[derive(Clone, Copy)]
pub struct KeyedRandomness<'a> {
    /// The key.
    pub key: &'a Key,
    /// The purpose of the random bits: the plan and the snapshot, in bytes of the caller's.
    pub context: &'a [u8],
    /// Which of several draws of one release they are for.
    pub stage: u32,
    /// The ids of the records; each may come up once, or with equal values.
    pub ids: Ids<'a>,
    /// The number of the first column.
    pub column: u32,
}

impl<'a> KeyedRandomness<'a> {
    /// The randomness of the first stage and column.
    pub fn new(key: &'a Key, context: &'a [u8], ids: Ids<'a>) -> KeyedRandomness<'a> {
        KeyedRandomness { key, context, stage: 0, ids, column: 0 }
    }

    /// The digest that all records' keys depend on; a law is to be absorbed next.
    pub(super) fn digest(&self) -> Digest {
        let mut digest = Digest::new(self.key, self.context);
        digest.stage(self.stage);
        digest
    }

    /// Columns of a record, where there are so many values.
    pub(super) fn columns(&self, values: usize) -> Result<usize> {
        let (ids, first) = (self.ids.len(), self.column);
        let columns = values.checked_div(ids).unwrap_or(0);
        if columns * ids != values {
            let reason = format!("{ids} of them do not fit {values} values: one is needed for each record");
            return Err(Error::Shape { name: "ids", reason });
        }
        if u64::from(first) + columns as u64 > 1 << 32 {
            return Err(argument(
                "column",
                format!("{first} and the {columns} from it on do not fit 32 bits"),
            ));
        }
        Ok(columns.max(1))
    }

    /// Calls `work` with some records and their part of `result`, `count` elements for each, until all are done.
    fn for_records<T: Send>(
        &self,
        result: &mut [T],
        count: usize,
        nanoseconds: usize,
        threads: Option<usize>,
        work: impl Fn(Range<usize>, &mut [T]) + Sync,
    ) {
        let parts = Parts::new(result);
        for_chunks(self.ids.len(), CHUNK, threads, nanoseconds, |_, range| {
            // SAFETY: chunks do not overlap.
            let result = unsafe { parts.part(range.start * count..range.end * count) };
            work(range, result);
        });
    }

    /// Digests of records and all of their values, [`Ids::Bound`]: for releases that take more than one draw, or whose draws are
    /// of what was computed from the record.
    ///
    /// Numbers count as in a [`KeyedCall`](super::KeyedCall).
    ///
    /// # Errors
    /// Ids that do not fit the values; [`Error::Memory`].
    pub fn bound(&self, input: Input<'_>, threads: Option<usize>) -> Result<Vec<[u8; 32]>> {
        let columns = self.columns(input.len())?;
        let mut digest = self.digest();
        digest.text(b"bound");
        let records = RecordKeys::new(&digest, self.ids);
        let mut result = zeros(self.ids.len())?;
        self.for_records(&mut result, 1, NANOSECONDS + columns, threads, |range, result| {
            let width = input.len() / self.ids.len();
            let (mut values, mut message) = (vec![0; width], Vec::new());
            for (result, record) in result.iter_mut().zip(range) {
                canonical(input.part(record * width..(record + 1) * width), &mut values);
                *result = records.key_with(record, self.column, &values, &mut message).to_bytes();
            }
        });
        Ok(result)
    }

    /// Draws of 64 bits, `count` for each record, the first ones of its stream `stream`. They depend on the id alone, so take the
    /// ids of [`bound`](Self::bound) where two values of a record must not share them.
    ///
    /// # Errors
    /// [`Error::Memory`], or [`Error::Isa`] as [`Isa::current`].
    pub fn words(&self, count: usize, stream: u64, threads: Option<usize>) -> Result<Vec<u64>> {
        let isa = Isa::current()?;
        let mut digest = self.digest();
        digest.text(b"words");
        let records = RecordKeys::new(&digest, self.ids);
        let total = self.ids.len().checked_mul(count).ok_or(Error::Memory { bytes: usize::MAX })?;
        let mut result = zeros(total)?;
        self.for_records(&mut result, count, NANOSECONDS + count, threads, |range, result| {
            let mut bytes = vec![0; (8 * count).next_multiple_of(GROUP)];
            for (result, record) in result.chunks_mut(count.max(1)).zip(range) {
                fill(isa, &records.key(record), stream, 0, &mut bytes);
                let drawn = bytes.as_chunks::<8>().0;
                result.iter_mut().zip(drawn).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
            }
        });
        Ok(result)
    }
}
