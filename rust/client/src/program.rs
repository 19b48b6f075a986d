//! Work of a client on records: the parts of a document, which may be drawn from, and their epsilon.

use bitldp_core::{KeyedRandomness, add_up, mul_up};

use crate::cells::Cells;
use crate::draws::PublicDraw;
use crate::fields::{Fields, integer, list};
use crate::keys::GiveKeys;
use crate::law::Law;
use crate::part::{Part, fields_bytes, for_parts};
use crate::refused::{Kind, Refused, Result};
use crate::sampled::SampledParts;
use crate::values::{Record, Values};

/// Parts of a document at most, whatever is inside what.
const MOST_PARTS: usize = 1024;

/// How far a sum of epsilons may be from another one, relative to it where it is above 1.
const ROUNDING: f64 = 1e-12;

/// A program: the parts of a record in order.
pub(crate) struct Program {
    pub(crate) parts: Vec<Part>,
    /// The draw of the columns that are reported, of all parts; where there is none, all are.
    sampled: Option<SampledParts>,
    /// The record that the columns of the parts are made of; where there is none, they are the record's.
    pub(crate) cells: Option<Cells>,
    /// Keys of 32 bytes that the given ones are.
    pub(crate) keys: usize,
}

impl Program {
    /// The program that the fields of a document describe.
    pub(crate) fn read(fields: &Fields<'_>) -> Result<Program> {
        let mut program = Program { parts: Vec::new(), sampled: None, cells: None, keys: 0 };
        program.add(fields, 0)?;
        Ok(program)
    }

    /// Adds the parts of an object; says how many fields they report.
    fn add(&mut self, fields: &Fields<'_>, derived: usize) -> Result<()> {
        let (first_part, first_key) = (self.parts.len(), self.keys);
        match fields.maybe("parts") {
            None => self.add_part(fields, derived)?,
            Some(parts) => {
                let chunked = fields.flag("chunked")?;
                self.keys += usize::from(chunked);
                let listed = list(parts, MOST_PARTS)?;
                let draw = fields.maybe("public");
                // A list of parts inside another one is never drawn from.
                let outermost = first_part == 0 && derived == 0;
                if listed.is_empty() || draw.is_some() && !(chunked && outermost) {
                    return Err(fields.wrong());
                }
                for part in listed {
                    let inner = Fields::of(part)?;
                    self.add(&inner, derived + usize::from(chunked))?;
                    inner.finish()?;
                }
                if let Some(draw) = draw {
                    let [draw] = list(draw, 1)? else { return Err(fields.wrong()) };
                    let sampled = SampledParts::of(PublicDraw::read(draw)?, &self.parts[first_part..]);
                    self.sampled = Some(sampled.ok_or_else(|| fields.no_law())?);
                    let cells = fields.maybe("cells");
                    let read = |json| Cells::read(fields.get("record")?, json, &self.parts);
                    self.cells = cells.map(read).transpose()?;
                }
            }
        }
        let stated = fields.integer("keys", 1, 1 << 16)? as usize;
        if stated != self.keys - first_key {
            return Err(fields.wrong());
        }
        let drawn =
            self.sampled.as_ref().filter(|_| fields.maybe("parts").is_some()).map(|sampled| &sampled.fields);
        let every = self.parts[first_part..].iter().filter(|_| drawn.is_none()).flat_map(|part| &part.fields);
        let mut own = drawn.into_iter().flatten().chain(every);
        let report = Fields::of(fields.get("report")?)?;
        if report.text("form")? != "packed" {
            return Err(report.wrong());
        }
        for pair in list(report.get("fields")?, 2 * MOST_PARTS)? {
            let [columns, bits] = list(pair, 2)? else { return Err(report.wrong()) };
            let stated = (integer(columns, 1, 1 << 32)? as usize, integer(bits, 1, 32)? as u32);
            if own.next() != Some(&stated) {
                return Err(report.wrong());
            }
        }
        if own.next().is_some() { Err(report.wrong()) } else { report.finish() }
    }

    fn add_part(&mut self, fields: &Fields<'_>, derived: usize) -> Result<()> {
        if self.parts.len() == MOST_PARTS {
            return Err(Refused { kind: Kind::Size, ..fields.wrong() });
        }
        let part = Part::read(fields, self.keys, derived, self.record_bytes())?;
        self.keys += part.keys();
        self.parts.push(part);
        Ok(())
    }

    /// The values of a record, in order: those of the parts, or those that these are made of.
    pub(crate) fn inputs(&self) -> impl ExactSizeIterator<Item = &Record> {
        let made = self.cells.as_ref().map(|cells| &cells.record);
        let count = if made.is_some() { 1 } else { self.parts.len() };
        (0..count).map(move |index| made.unwrap_or(&self.parts[index].record))
    }

    /// Bytes of a record.
    pub(crate) fn record_bytes(&self) -> usize {
        self.inputs().map(Record::bytes).sum()
    }

    /// Bytes of the reports of so many records in one call; none where that is more than memory holds.
    pub(crate) fn report_bytes(&self, records: usize) -> Option<usize> {
        match &self.sampled {
            Some(sampled) => fields_bytes(&sampled.fields, records),
            None => {
                self.parts.iter().try_fold(0usize, |sum, part| sum.checked_add(part.report_bytes(records)?))
            }
        }
    }

    /// Arrays of codes of a report: columns and bits of each.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &(usize, u32)> + Clone {
        let every = self.parts.iter().filter(|_| self.sampled.is_none()).flat_map(|part| &part.fields);
        self.sampled.iter().flat_map(|sampled| &sampled.fields).chain(every)
    }

    /// Epsilon of so many records from the integers, rounded up, where `claimed` and `delta` are those of the document.
    ///
    /// # Errors
    /// [`Kind::Epsilon`] where the document's are others.
    pub(crate) fn epsilon(&self, claimed: f64, delta: f64, records: usize) -> Result<f64> {
        let one = |part: &Part| mul_up(part.epsilon(), part.uses() as f64);
        if let Some(sampled) = &self.sampled {
            return close(mul_up(sampled.epsilon(&self.parts), records as f64), claimed);
        }
        let follows = match self.parts.as_slice() {
            [part]
                if delta > 0.0
                    && part.uses().saturating_mul(records) == 1
                    && matches!(part.law, Law::Shift(_)) =>
            {
                part.law.delta(claimed).is_some_and(|exact| exact <= delta)
            }
            [part] if part.uses().saturating_mul(records) == 1 && part.item().is_none() => {
                part.law.epsilon() == claimed
            }
            parts => {
                return close(mul_up(parts.iter().map(one).fold(0.0, add_up), records as f64), claimed);
            }
        };
        if follows { Ok(claimed) } else { Err(Kind::Epsilon.into()) }
    }

    /// True where one use of a channel for each part is all there is: it can be keyed, too.
    pub(crate) fn is_plain(&self) -> bool {
        self.sampled.is_none() && self.parts.iter().all(|part| part.derived == 0 && part.is_plain())
    }

    /// Writes the report of one record whose random bits are those of a key, of an id, and of each part's columns.
    pub(crate) fn randomize_keyed(
        &self,
        x: Values<'_>,
        out: &mut [u8],
        randomness: KeyedRandomness<'_>,
    ) -> Result<()> {
        let (mut rest, mut column) = (out, randomness.column);
        for_parts(&self.parts, x, 1, &mut |part, values| {
            let size = part.report_bytes(1).filter(|&size| size <= rest.len()).ok_or(Kind::Output)?;
            let (own, after) = std::mem::take(&mut rest).split_at_mut(size);
            rest = after;
            let randomness = KeyedRandomness { column, ..randomness };
            column = column.checked_add(part.record.columns as u32).ok_or(Kind::Keyed)?;
            part.record
                .with(values, &mut |input| part.law.randomize_keyed(part.coding(), input, own, randomness))
        })
    }

    /// Records that the values are.
    ///
    /// # Errors
    /// [`Kind::Shape`] for another type, for no record, and for parts of different numbers of records.
    pub(crate) fn records(&self, x: Values<'_>) -> Result<usize> {
        let whole = |count: usize, each: usize| {
            if count > 0 && count.is_multiple_of(each) { Ok(count / each) } else { Err(Kind::Shape.into()) }
        };
        if let Some(Cells { record, .. }) = &self.cells {
            return whole(record.count(x)?, record.columns);
        }
        match (self.parts.as_slice(), x) {
            (_, Values::Bytes(bytes)) => whole(bytes.len(), self.record_bytes()),
            ([part], x) if !matches!(x, Values::Parts(_)) => {
                whole(part.record.count(x)?, part.record.columns)
            }
            (parts, Values::Parts(values)) if parts.len() == values.len() => {
                let mut records = None;
                for (part, &values) in parts.iter().zip(values) {
                    let own = whole(part.record.count(values)?, part.record.columns)?;
                    if *records.get_or_insert(own) != own {
                        return Err(Kind::Shape.into());
                    }
                }
                records.ok_or(Kind::Shape.into())
            }
            _ => Err(Kind::Shape.into()),
        }
    }

    /// Refuses values that are not allowed.
    pub(crate) fn check(&self, x: Values<'_>, records: usize) -> Result<()> {
        if let Some(cells) = &self.cells {
            return cells.record.with(x, &mut |_| Ok(()));
        }
        for_parts(&self.parts, x, records, &mut |part, values| part.record.with(values, &mut |_| Ok(())))
    }

    /// Writes the reports of records, of each part with the keys that `keys` gives: those from a number on, each replaced so often by
    /// the start of its stream.
    pub(crate) fn randomize(&self, x: Values<'_>, out: &mut [u8], keys: &mut GiveKeys<'_>) -> Result<()> {
        let records = self.records(x)?;
        match (&self.sampled, &self.cells) {
            (None, _) => {}
            (Some(sampled), None) => return sampled.randomize(&self.parts, x, records, out, keys),
            (Some(sampled), Some(cells)) => {
                return cells.with(&self.parts, x, records, &mut |x| {
                    sampled.randomize(&self.parts, x, records, out, keys)
                });
            }
        }
        let mut rest = out;
        for_parts(&self.parts, x, records, &mut |part, values| {
            let size = part.report_bytes(records).filter(|&size| size <= rest.len()).ok_or(Kind::Output)?;
            let (own, after) = std::mem::take(&mut rest).split_at_mut(size);
            rest = after;
            part.with_keys(keys, &mut |keys| {
                part.record.with(values, &mut |input| part.randomize(input, records, keys, own))
            })
        })
    }
}

/// The larger of two sums of epsilons that are equal but for their rounding.
fn close(exact: f64, claimed: f64) -> Result<f64> {
    let follows = (exact - claimed).abs() <= ROUNDING * exact.max(1.0);
    if follows { Ok(exact.max(claimed)) } else { Err(Kind::Epsilon.into()) }
}
