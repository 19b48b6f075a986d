//! Random bits that are a function of a key, of what they are for, and of the records: keyed calls draw from them.

use std::ops::Range;

use crate::codec::canonical;
use crate::error::{Error, Result, argument, reason, zeros};
use crate::io::Input;
use crate::isa::Isa;
use crate::parallel::{Parts, for_chunks};
use crate::random::{Digest, GROUP, Ids, Key, Keys, Lanes, RecordKeys, WholeRecords, fill, first_words};

/// Records that one thread takes at a time.
const CHUNK: usize = 256;

/// Values of as many records as are read at once, where these are short.
const VALUES: usize = 8192;

/// Nanoseconds that a single thread takes for a record, roughly.
const NANOSECONDS: usize = 50;

/// Words of a record up to which sixteen records are drawn together: as many as a group has.
const TOGETHER: usize = GROUP / 4;

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
            let reason = reason!("{ids} of them do not fit {values} values: one is needed for each record");
            return Err(Error::Shape { name: "ids", reason });
        }
        if u64::from(first) + columns as u64 > 1 << 32 {
            return Err(argument(
                "column",
                reason!("{first} and the {columns} from it on do not fit 32 bits"),
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
    /// Ids that do not fit the values; [`Error::Memory`], or [`Error::Isa`] as [`Isa::current`].
    pub fn bound(&self, input: Input<'_>, threads: Option<usize>) -> Result<Vec<[u8; 32]>> {
        let columns = self.columns(input.len())?;
        let mut digest = self.digest();
        digest.text(b"bound");
        let records = RecordKeys::new(&digest, self.ids);
        let mut result = zeros(self.ids.len())?;
        let isa = Isa::current()?;
        self.for_records(&mut result, 1, NANOSECONDS + columns, threads, |range, result| {
            let width = input.len() / self.ids.len();
            let most = (VALUES / width.max(1)).clamp(1, CHUNK);
            for (first, result) in range.step_by(most).zip(result.chunks_mut(most)) {
                let count = result.len();
                let mut values = vec![0; count * width];
                canonical(input.part(first * width..(first + count) * width), &mut values);
                let whole =
                    WholeRecords { first, count, column: self.column, columns: 1, width, values: &values };
                let keys = records.keys_with(isa, &whole);
                keys.iter().zip(result.chunks_mut(Lanes::COUNT)).for_each(|(keys, out)| keys.write(out));
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
        self.for_records(&mut result, count, NANOSECONDS + 20 * count, threads, |range, result| {
            let mut keys = vec![Keys::none(); range.len().div_ceil(Lanes::COUNT)];
            records.keys(isa, range.start, range.len(), &mut keys);
            if 2 * count <= TOGETHER {
                let mut words = vec![[0; Lanes::COUNT]; 2 * count];
                for (keys, result) in keys.iter().zip(result.chunks_mut(Lanes::COUNT * count.max(1))) {
                    first_words(isa, keys, stream, &mut words);
                    for (lane, result) in result.chunks_mut(count.max(1)).enumerate() {
                        for (drawn, halves) in result.iter_mut().zip(words.as_chunks::<2>().0) {
                            *drawn = u64::from(halves[1][lane]) << 32 | u64::from(halves[0][lane]);
                        }
                    }
                }
                return;
            }
            let mut bytes = vec![0; (8 * count).next_multiple_of(GROUP)];
            for (at, result) in result.chunks_mut(count).enumerate() {
                let key = keys[at / Lanes::COUNT].key(at % Lanes::COUNT);
                fill(isa, &key, stream, 0, &mut bytes);
                let drawn = bytes.as_chunks::<8>().0;
                result.iter_mut().zip(drawn).for_each(|(word, bytes)| *word = u64::from_le_bytes(*bytes));
            }
        });
        Ok(result)
    }
}
