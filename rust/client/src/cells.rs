//! Records of categories at several levels: each column of the parts is a sum of cells that the record's values are in.

use bitldp_core::Input;

use crate::fields::{integer, list, wrong};
use crate::json::Json;
use crate::part::Part;
use crate::refused::Result;
use crate::values::{Record, Values, code, with_room};

/// Columns of the parts at most.
const MOST_COLUMNS: usize = 1 << 12;

/// Terms of a column at most.
const MOST_TERMS: usize = 8;

/// Factors at most: with values of 32 bits, a product has 64.
const MOST_TIMES: i64 = 1 << 31;

/// The cell of a value of the record, `value * times / over` rounded down, times a stride.
struct Term {
    column: usize,
    times: u64,
    over: u64,
    stride: u64,
}

/// A record, and how the columns of the parts are made of it.
pub(crate) struct Cells {
    pub(crate) record: Record,
    columns: Vec<Vec<Term>>,
}

impl Cells {
    /// The record and the terms that a document says, of all columns of these parts.
    pub(crate) fn read(given: &Json<'_>, json: &Json<'_>, parts: &[Part]) -> Result<Cells> {
        let record = Record::read(given)?;
        if record.is_real() {
            return Err(wrong(given));
        }
        let mut below =
            parts.iter().flat_map(|part| (0..part.record.columns).map(|at| part.record.below_of(at)));
        let mut columns = Vec::new();
        for terms in list(json, MOST_COLUMNS)? {
            let own = list(terms, MOST_TERMS)?.iter().map(|term| Term::read(term, &record));
            let own = own.collect::<Result<Vec<_>>>()?;
            let largest = own.iter().try_fold(0u64, |sum, term| sum.checked_add(term.largest(&record)?));
            let fits = largest.zip(below.next().flatten()).is_some_and(|(largest, below)| largest < below);
            if !fits {
                return Err(wrong(terms));
            }
            columns.push(own);
        }
        if below.next().is_some() { Err(wrong(json)) } else { Ok(Cells { record, columns }) }
    }

    /// Gives `work` the values of each part; the copy is overwritten afterwards.
    pub(crate) fn with(
        &self,
        parts: &[Part],
        x: Values<'_>,
        records: usize,
        work: &mut dyn FnMut(Values<'_>) -> Result<()>,
    ) -> Result<()> {
        self.record.with(x, &mut |input| {
            with_room(records * self.columns.len(), |codes: &mut [u32]| {
                let mut values = Vec::with_capacity(parts.len());
                let (mut rest, mut columns) = (codes, self.columns.as_slice());
                for part in parts {
                    let (own, after) = rest.split_at_mut(records * part.record.columns);
                    let (terms, others) = columns.split_at(part.record.columns);
                    for (record, own) in own.chunks_exact_mut(terms.len()).enumerate() {
                        let start = record * self.record.columns;
                        for (cell, terms) in own.iter_mut().zip(terms) {
                            *cell = terms.iter().map(|term| term.of(input, start)).sum::<u64>() as u32;
                        }
                    }
                    values.push(Values::U32(own));
                    (rest, columns) = (after, others);
                }
                work(Values::Parts(&values))
            })?
        })
    }
}

impl Term {
    fn read(json: &Json<'_>, record: &Record) -> Result<Term> {
        let [column, times, over, stride] = list(json, 4)? else { return Err(wrong(json)) };
        Ok(Term {
            column: integer(column, 0, record.columns as i64 - 1)? as usize,
            times: integer(times, 1, MOST_TIMES)? as u64,
            over: integer(over, 1, 1 << 32)? as u64,
            stride: integer(stride, 1, 1 << 32)? as u64,
        })
    }

    /// The term of the last category; none where it is no word.
    fn largest(&self, record: &Record) -> Option<u64> {
        ((record.below_of(self.column)? - 1) * self.times / self.over).checked_mul(self.stride)
    }

    /// The term of the value in its column of a record that begins there.
    fn of(&self, input: Input<'_>, start: usize) -> u64 {
        code(input, start + self.column) * self.times / self.over * self.stride
    }
}
