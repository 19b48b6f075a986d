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

/// A program: what is done with a record, step by step.
pub(crate) struct Program {
    steps: Vec<Step>,
    /// Keys of 32 bytes that the given ones are.
    pub(crate) keys: usize,
}

/// One part of a record, or several that are drawn from together.
struct Step {
    parts: Vec<Part>,
    /// The draw of the columns that are reported, of all parts; where there is none, one part reports all.
    sampled: Option<SampledParts>,
    /// The record that the columns of the parts are made of; where there is none, they are the record's.
    cells: Option<Cells>,
}

/// Work on a step, its values, and its piece of the report.
type OnStep<'a> = dyn FnMut(&Step, Values<'_>, &mut [u8]) -> Result<()> + 'a;

impl Step {
    /// The values of a record, in order: those of the parts, or those that these are made of.
    fn inputs(&self) -> impl Iterator<Item = &Record> {
        let made = self.cells.as_ref().map(|cells| &cells.record);
        let count = if made.is_some() { 1 } else { self.parts.len() };
        (0..count).map(move |index| made.unwrap_or(&self.parts[index].record))
    }

    /// Columns and bits of the arrays of its report.
    fn fields(&self) -> &[(usize, u32)] {
        self.sampled.as_ref().map_or(&self.parts[0].fields, |sampled| &sampled.fields)
    }

    /// Refuses values that are not allowed.
    fn check(&self, x: Values<'_>, records: usize) -> Result<()> {
        if let Some(cells) = &self.cells {
            return cells.record.with(x, &mut |_| Ok(()));
        }
        for_parts(&self.parts, x, records, &mut |part, values| part.record.with(values, &mut |_| Ok(())))
    }

    /// Writes the reports of records.
    fn randomize(
        &self,
        x: Values<'_>,
        records: usize,
        out: &mut [u8],
        keys: &mut GiveKeys<'_>,
    ) -> Result<()> {
        match (&self.sampled, &self.cells) {
            (None, _) => {
                let part = &self.parts[0];
                part.with_keys(keys, &mut |keys| {
                    part.record.with(x, &mut |input| part.randomize(input, records, keys, out))
                })
            }
            (Some(sampled), None) => sampled.randomize(&self.parts, x, records, out, keys),
            (Some(sampled), Some(cells)) => cells.with(&self.parts, x, records, &mut |x| {
                sampled.randomize(&self.parts, x, records, out, keys)
            }),
        }
    }
}

impl Program {
    /// The program that the fields of a document describe.
    pub(crate) fn read(fields: &Fields<'_>) -> Result<Program> {
        let mut program = Program { steps: Vec::new(), keys: 0 };
        program.add(fields, 0)?;
        Ok(program)
    }

    /// Adds the parts of an object; says how many fields they report.
    fn add(&mut self, fields: &Fields<'_>, derived: usize) -> Result<()> {
        let (first_step, first_key) = (self.steps.len(), self.keys);
        match fields.maybe("parts") {
            None => self.add_part(fields, derived)?,
            Some(parts) => {
                let chunked = fields.flag("chunked")?;
                let derived = derived + usize::from(chunked);
                self.keys += usize::from(chunked);
                let listed = list(parts, MOST_PARTS)?;
                let draw = fields.maybe("public");
                if listed.is_empty() || draw.is_some() && !chunked {
                    return Err(fields.wrong());
                }
                for part in listed {
                    let inner = Fields::of(part)?;
                    self.add(&inner, derived)?;
                    inner.finish()?;
                }
                if let Some(draw) = draw {
                    let [draw] = list(draw, 1)? else { return Err(fields.wrong()) };
                    // A list of parts that is drawn from is in no other one.
                    if self.steps[first_step..].iter().any(|step| step.sampled.is_some()) {
                        return Err(fields.wrong());
                    }
                    let mut parts = Vec::new();
                    self.steps.drain(first_step..).for_each(|mut step| parts.append(&mut step.parts));
                    let sampled = SampledParts::of(PublicDraw::read(draw)?, &parts, first_key, derived);
                    let sampled = Some(sampled.ok_or_else(|| fields.no_law())?);
                    let cells = fields.maybe("cells");
                    let read = |json| Cells::read(fields.get("record")?, json, &parts);
                    let cells = cells.map(read).transpose()?;
                    self.steps.push(Step { parts, sampled, cells });
                }
            }
        }
        let stated = fields.integer("keys", 1, 1 << 16)? as usize;
        if stated != self.keys - first_key {
            return Err(fields.wrong());
        }
        let mut own = self.steps[first_step..].iter().flat_map(Step::fields);
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
        if self.steps.iter().map(|step| step.parts.len()).sum::<usize>() >= MOST_PARTS {
            return Err(Refused { kind: Kind::Size, ..fields.wrong() });
        }
        let part = Part::read(fields, self.keys, derived)?;
        self.keys += part.keys();
        self.steps.push(Step { parts: vec![part], sampled: None, cells: None });
        Ok(())
    }

    /// The part that is all there is.
    pub(crate) fn single(&self) -> Option<&Part> {
        match self.steps.as_slice() {
            [Step { parts, sampled: None, .. }] => parts.first(),
            _ => None,
        }
    }

    /// The values of a record, in order.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Record> {
        self.steps.iter().flat_map(Step::inputs)
    }

    /// Bytes of a record.
    pub(crate) fn record_bytes(&self) -> usize {
        self.inputs().map(Record::bytes).sum()
    }

    /// Bytes of the reports of so many records in one call; none where that is more than memory holds.
    pub(crate) fn report_bytes(&self, records: usize) -> Option<usize> {
        let size = |step: &Step| fields_bytes(step.fields(), records);
        self.steps.iter().try_fold(0usize, |sum, step| sum.checked_add(size(step)?))
    }

    /// Arrays of codes of a report: columns and bits of each.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &(usize, u32)> + Clone {
        self.steps.iter().flat_map(Step::fields)
    }

    /// Epsilon of so many records from the integers, rounded up, where `claimed` and `delta` are those of the document.
    ///
    /// # Errors
    /// [`Kind::Epsilon`] where the document's are others.
    pub(crate) fn epsilon(&self, claimed: f64, delta: f64, records: usize) -> Result<f64> {
        let follows = match self.single() {
            Some(part)
                if delta > 0.0
                    && part.uses().saturating_mul(records) == 1
                    && matches!(part.law, Law::Shift(_)) =>
            {
                part.law.delta(claimed).is_some_and(|exact| exact <= delta)
            }
            Some(part) if part.uses().saturating_mul(records) == 1 && part.item().is_none() => {
                part.law.epsilon() == claimed
            }
            _ => {
                let of_part = |part: &Part| mul_up(part.epsilon(), part.uses() as f64);
                let of_step = |step: &Step| match &step.sampled {
                    Some(sampled) => sampled.epsilon(&step.parts),
                    None => of_part(&step.parts[0]),
                };
                let sum = self.steps.iter().map(of_step).fold(0.0, add_up);
                return close(mul_up(sum, records as f64), claimed);
            }
        };
        if follows { Ok(claimed) } else { Err(Kind::Epsilon.into()) }
    }

    /// True where one use of a channel for each part is all there is: it can be keyed, too.
    pub(crate) fn is_plain(&self) -> bool {
        let plain = |step: &Step| {
            step.sampled.is_none() && step.parts.iter().all(|part| part.derived == 0 && part.is_plain())
        };
        self.steps.iter().all(plain)
    }

    /// Calls `work` with each step, its values, and its piece of `out`, of which nothing is cut where that is none. Places
    /// are counted over all values.
    fn for_steps(
        &self,
        x: Values<'_>,
        records: usize,
        out: Option<&mut [u8]>,
        work: &mut OnStep<'_>,
    ) -> Result<()> {
        let (writes, mut rest) = (out.is_some(), out.unwrap_or(&mut []));
        let (mut first, mut start, mut place) = (0, 0, 0);
        for step in &self.steps {
            let (mut inputs, mut bytes, mut columns) = (0, 0, 0);
            for input in step.inputs() {
                (inputs, bytes, columns) = (inputs + 1, bytes + input.bytes(), columns + input.columns);
            }
            let values = match x {
                Values::Bytes(x) => Values::Bytes(&x[start..start + records * bytes]),
                Values::Parts(x) if inputs == 1 => x[first],
                Values::Parts(x) => Values::Parts(&x[first..first + inputs]),
                x => x,
            };
            let size = if writes { fields_bytes(step.fields(), records) } else { Some(0) };
            let size = size.filter(|&size| size <= rest.len()).ok_or(Kind::Output)?;
            let (own, after) = std::mem::take(&mut rest).split_at_mut(size);
            let done = work(step, values, own);
            done.map_err(|refused| Refused { place: refused.place.map(|at| at + place), ..refused })?;
            (rest, first, start) = (after, first + inputs, start + records * bytes);
            place += (records * columns) as u64;
        }
        Ok(())
    }

    /// Writes the report of one record whose random bits are those of a key, of an id, and of each part's columns.
    pub(crate) fn randomize_keyed(
        &self,
        x: Values<'_>,
        out: &mut [u8],
        randomness: KeyedRandomness<'_>,
    ) -> Result<()> {
        let mut column = randomness.column;
        self.for_steps(x, 1, Some(out), &mut |step, values, own| {
            let part = &step.parts[0];
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
        let mut inputs = self.inputs();
        match x {
            Values::Bytes(bytes) => whole(bytes.len(), self.record_bytes()),
            Values::Parts(values) => {
                let mut records = None;
                for &values in values {
                    let input = inputs.next().ok_or(Kind::Shape)?;
                    let own = whole(input.count(values)?, input.columns)?;
                    if *records.get_or_insert(own) != own {
                        return Err(Kind::Shape.into());
                    }
                }
                records.filter(|_| inputs.next().is_none()).ok_or(Kind::Shape.into())
            }
            values => match (inputs.next(), inputs.next()) {
                (Some(input), None) => whole(input.count(values)?, input.columns),
                _ => Err(Kind::Shape.into()),
            },
        }
    }

    /// Refuses values that are not allowed.
    pub(crate) fn check(&self, x: Values<'_>, records: usize) -> Result<()> {
        self.for_steps(x, records, None, &mut |step, values, _| step.check(values, records))
    }

    /// Writes the reports of records, of each part with the keys that `keys` gives: those from a number on, each replaced so often by
    /// the start of its stream.
    pub(crate) fn randomize(&self, x: Values<'_>, out: &mut [u8], keys: &mut GiveKeys<'_>) -> Result<()> {
        let records = self.records(x)?;
        let mut work =
            |step: &Step, values: Values<'_>, own: &mut [u8]| step.randomize(values, records, own, keys);
        self.for_steps(x, records, Some(out), &mut work)
    }
}

/// The larger of two sums of epsilons that are equal but for their rounding.
fn close(exact: f64, claimed: f64) -> Result<f64> {
    let follows = (exact - claimed).abs() <= ROUNDING * exact.max(1.0);
    if follows { Ok(exact.max(claimed)) } else { Err(Kind::Epsilon.into()) }
}
