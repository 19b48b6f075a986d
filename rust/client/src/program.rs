//! Work of a client on records: codec, channel, second step and public draw of each part, and the fields of the report.

use bitldp_core::{
    Design, DesignFamily, Input, Key, Matrix, Output, Probability, Window, add_up, keystream, mul_up,
    pack_to, packed_len,
};
use zeroize::Zeroize;

use crate::codec::Codec;
use crate::draws::{PublicDraw, PublicRotation, coordinates, for_words, scaled};
use crate::fields::{Fields, integer, list};
use crate::law::{Coding, Law};
use crate::refused::{Kind, Refused, Result};
use crate::sampled::SampledParts;
use crate::values::{Record, ValueType, Values, with_room};

/// Parts of a document at most, whatever is inside what.
const MOST_PARTS: usize = 1024;

/// Keys of a part that are few: of a codec, two of a channel, of a second step, of a draw.
const FEW_KEYS: usize = 5;

/// Points at most that are placed by a draw of their own: a table of them is made.
const MOST_PLACED: u32 = 1 << 10;

/// How far a sum of epsilons may be from another one, relative to it where it is above 1.
const ROUNDING: f64 = 1e-12;

/// A program: the parts of a record in order.
pub(crate) struct Program {
    pub(crate) parts: Vec<Part>,
    /// The draw of the columns that are reported, of all parts; where there is none, all are.
    sampled: Option<SampledParts>,
    /// Keys of 32 bytes that the given ones are.
    pub(crate) keys: usize,
}

/// A part of a record, and its work.
pub(crate) struct Part {
    pub(crate) record: Record,
    pub(crate) draw: Option<PublicDraw>,
    pub(crate) rotation: Option<PublicRotation>,
    /// The column of the record that each window and subset of a cap of several kinds is about.
    pub(crate) order: Option<Vec<usize>>,
    pub(crate) codec: Option<Codec>,
    pub(crate) law: Law,
    pub(crate) second: Option<Law>,
    /// The channel that never leaves its cell: what signs and points that are placed draw is the dither alone.
    dither: Option<Law>,
    /// The channel of the ranks of cells that a step takes, which have the law of a progression's window.
    ranks: Option<Design>,
    /// Columns and bits of the arrays of its report.
    pub(crate) fields: Vec<(usize, u32)>,
    /// Its first key among those that are given, and how often each is replaced by the start of its keystream.
    pub(crate) first_key: usize,
    pub(crate) derived: usize,
    /// Bytes that the parts before it have of a record.
    pub(crate) before: usize,
}

impl Program {
    /// The program that the fields of a document describe.
    pub(crate) fn read(fields: &Fields<'_>) -> Result<Program> {
        let mut program = Program { parts: Vec::new(), sampled: None, keys: 0 };
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
        let record = Record::read(fields.get("record")?)?;
        let (mut draw, mut rotation) = (None, None);
        if let Some(draws) = fields.maybe("public") {
            let [public] = list(draws, 1)? else { return Err(fields.wrong()) };
            rotation = PublicRotation::read(public, record.columns)?;
            draw = if rotation.is_none() { Some(PublicDraw::read(public)?) } else { None };
        }
        let column = |json| integer(json, 0, record.columns as i64 - 1).map(|column| column as usize);
        let order =
            fields.maybe("order").map(|json| list(json, record.columns)?.iter().map(column).collect());
        let order = order.transpose()?;
        let codec = fields.maybe("codec").map(Codec::read).transpose()?;
        let law = Law::read(fields.get("channel")?)?;
        let second = fields.maybe("second").map(Law::read).transpose()?;
        let dither = codec.as_ref().map_or(Ok(None), dither)?;
        let ranks = match (draw, &law) {
            (Some(PublicDraw::Step { .. }), Law::Design(law)) => Some(ranks(law)?),
            _ => None,
        };
        let before = self.parts.iter().map(|part| part.record.bytes()).sum();
        let mut part = Part {
            record,
            draw,
            rotation,
            order,
            codec,
            law,
            second,
            dither,
            ranks,
            fields: Vec::new(),
            first_key: self.keys,
            derived,
            before,
        };
        part.fields = part.fitting().ok_or_else(|| fields.no_law())?;
        self.keys += part.keys();
        if self.parts.len() == MOST_PARTS {
            return Err(Refused { kind: Kind::Size, ..fields.wrong() });
        }
        self.parts.push(part);
        Ok(())
    }

    /// Bytes of a record.
    pub(crate) fn record_bytes(&self) -> usize {
        self.parts.iter().map(|part| part.record.bytes()).sum()
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

    /// Epsilon of a record from the integers, rounded up, where `claimed` and `delta` are those of the document.
    ///
    /// # Errors
    /// [`Kind::Epsilon`] where the document's are others.
    pub(crate) fn epsilon(&self, claimed: f64, delta: f64) -> Result<f64> {
        let one = |part: &Part| mul_up(part.law.epsilon(), part.uses() as f64);
        if let Some(sampled) = &self.sampled {
            return close(sampled.epsilon(&self.parts), claimed);
        }
        let follows = match self.parts.as_slice() {
            [part] if delta > 0.0 && part.uses() == 1 && matches!(part.law, Law::Shift(_)) => {
                part.law.delta(claimed).is_some_and(|exact| exact <= delta)
            }
            [part] if part.uses() == 1 => part.law.epsilon() == claimed,
            parts => {
                return close(parts.iter().map(one).fold(0.0, add_up), claimed);
            }
        };
        if follows { Ok(claimed) } else { Err(Kind::Epsilon.into()) }
    }

    /// Records that the values are.
    ///
    /// # Errors
    /// [`Kind::Shape`] for another type, for no record, and for parts of different numbers of records.
    pub(crate) fn records(&self, x: Values<'_>) -> Result<usize> {
        let whole = |count: usize, each: usize| {
            if count > 0 && count.is_multiple_of(each) { Ok(count / each) } else { Err(Kind::Shape.into()) }
        };
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
        self.for_parts(x, records, |part, values| part.record.with(values, |_| Ok(())))
    }

    /// Calls `work` with each part and its values. Places are counted over the values of all parts.
    pub(crate) fn for_parts<'p>(
        &'p self,
        x: Values<'_>,
        records: usize,
        mut work: impl FnMut(&'p Part, Values<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut place = 0;
        for (index, part) in self.parts.iter().enumerate() {
            let values = match x {
                Values::Bytes(bytes) => {
                    let start = records * part.before;
                    Values::Bytes(&bytes[start..start + records * part.record.bytes()])
                }
                Values::Parts(values) => values[index],
                values => values,
            };
            let done = work(part, values);
            done.map_err(|refused| Refused { place: refused.place.map(|at| at + place), ..refused })?;
            place += (records * part.record.columns) as u64;
        }
        Ok(())
    }

    /// Writes the reports of records, of each part with the keys that `keys` gives: those from a number on, each replaced so often by
    /// the start of its stream.
    pub(crate) fn randomize(
        &self,
        x: Values<'_>,
        out: &mut [u8],
        mut keys: impl FnMut(usize, usize, &mut [Key]) -> Result<()>,
    ) -> Result<()> {
        let records = self.records(x)?;
        if let Some(sampled) = &self.sampled {
            return self.randomize_sampled(sampled, x, records, out, keys);
        }
        let mut rest = out;
        self.for_parts(x, records, |part, values| {
            let size = part.report_bytes(records).filter(|&size| size <= rest.len()).ok_or(Kind::Output)?;
            let (own, after) = std::mem::take(&mut rest).split_at_mut(size);
            rest = after;
            part.with_keys(&mut keys, |keys| {
                part.record.with(values, |input| part.randomize(input, records, keys, own))
            })
        })
    }
}

/// The larger of two sums of epsilons that are equal but for their rounding.
fn close(exact: f64, claimed: f64) -> Result<f64> {
    let follows = (exact - claimed).abs() <= ROUNDING * exact.max(1.0);
    if follows { Ok(exact.max(claimed)) } else { Err(Kind::Epsilon.into()) }
}

/// Overwrites keys: the optimizer is kept from leaving it out.
pub(crate) fn overwrite(keys: &mut [Key]) {
    keys.fill(Key::from_bytes([0; 32]));
    std::hint::black_box(keys);
}

/// The first bytes of a key's stream, as a key.
pub(crate) fn derived(key: &Key) -> Result<Key> {
    let mut bytes = [0; 32];
    keystream(key, 0, &mut bytes)?;
    let derived = Key::from_bytes(bytes);
    bytes.zeroize();
    Ok(derived)
}

/// The channel that leaves a point of a grid where it is: what is drawn is the dither alone.
fn dither(codec: &Codec) -> Result<Option<Law>> {
    match codec {
        Codec::Signs { .. } => Ok(Some(Law::Window(Window::from_probability(2, 1, Probability::ONE, None)?))),
        Codec::Placed(grid) if (2..=MOST_PLACED).contains(&grid.points()) => {
            let points = grid.points() as usize;
            let mut weights = vec![0; points * points];
            weights.iter_mut().step_by(points + 1).for_each(|weight| *weight = Probability::ONE.numerator());
            Ok(Some(Law::Matrix(Matrix::from_weights(points, points, weights)?)))
        }
        Codec::Placed(_) => Err(Kind::Size.into()),
        _ => Ok(None),
    }
}

/// The channel of the ranks of cells of a design.
fn ranks(design: &Design) -> Result<Design> {
    let cells = design.cells();
    let order: Vec<u32> = (0..cells).collect();
    let made = Design::from_probability(
        DesignFamily::Translates(&order),
        cells,
        cells,
        design.width(),
        design.high(),
    );
    Ok(made.map_err(|_| Kind::Law)?)
}

impl Part {
    /// Calls `work` with the keys of this part, which are overwritten afterwards. A few are on the stack.
    pub(crate) fn with_keys(
        &self,
        mut keys: impl FnMut(usize, usize, &mut [Key]) -> Result<()>,
        work: impl FnOnce(&[Key]) -> Result<()>,
    ) -> Result<()> {
        let nothing = |_| Key::from_bytes([0; 32]);
        let (mut few, mut many): ([Key; FEW_KEYS], Vec<Key>) = (std::array::from_fn(nothing), Vec::new());
        let count = self.keys();
        let own = if count <= FEW_KEYS {
            &mut few[..count]
        } else {
            many.extend((0..count).map(nothing));
            &mut many[..]
        };
        let done = keys(self.first_key, self.derived, own).and_then(|()| work(own));
        overwrite(own);
        done
    }

    /// Keys of 32 bytes that a call takes: codec, channel, second step, draw.
    pub(crate) fn keys(&self) -> usize {
        if let Some(rotation) = &self.rotation {
            return rotation.reports + 1;
        }
        if self.order.is_some() {
            return 2;
        }
        let codec = usize::from(self.dither.is_some());
        codec + self.law.keys() + usize::from(self.second.is_some()) + usize::from(self.draw.is_some())
    }

    /// True where one use of the channel, of codes or through a grid or a fixed-point code, is all there is: it can be
    /// keyed, too.
    pub(crate) fn is_plain(&self) -> bool {
        let straight = matches!(self.codec, None | Some(Codec::Grid(_) | Codec::Fixed(_)));
        let drawn = self.draw.is_some() || self.rotation.is_some() || self.order.is_some();
        straight && !drawn && self.second.is_none()
    }

    /// The codec as the channel takes it.
    pub(crate) fn coding(&self) -> Coding<'_> {
        match &self.codec {
            Some(Codec::Grid(grid)) => Coding::Grid(grid),
            Some(Codec::Fixed(fixed)) => Coding::Fixed(fixed),
            _ => Coding::Codes,
        }
    }

    /// How often the channel is used on a record.
    pub(crate) fn uses(&self) -> usize {
        if let Some(rotation) = &self.rotation {
            return rotation.reports;
        }
        match (&self.codec, self.draw) {
            // Two categories differ in two entries.
            (Some(Codec::OneHot { .. }), _) => 2,
            (Some(Codec::Signs { .. }), _) => 1,
            (Some(Codec::Placed(_)), None) => self.record.columns,
            (Some(Codec::Placed(_)), Some(PublicDraw::Coordinates { k, .. })) => k,
            _ if matches!(self.law, Law::Bits(_) | Law::Cap(_) | Law::Cube(_) | Law::Select(_)) => 1,
            (_, Some(PublicDraw::Coordinates { k, .. })) => k,
            _ => self.record.columns,
        }
    }

    /// Bytes of the reports of so many records.
    pub(crate) fn report_bytes(&self, records: usize) -> Option<usize> {
        fields_bytes(&self.fields, records)
    }

    /// The fields of the report; none where record, draw, codec and channel do not fit each other.
    fn fitting(&self) -> Option<Vec<(usize, u32)>> {
        if let Some(rotation) = &self.rotation {
            return self.fitting_rotation(rotation);
        }
        if let Some(order) = &self.order {
            return self.fitting_cap(order);
        }
        let (mut fields, mut columns) = (Vec::new(), self.record.columns);
        match self.draw {
            None => {}
            Some(PublicDraw::Coordinates { of, k }) => {
                if of != columns || !self.record.is_real() {
                    return None;
                }
                fields.push((k, bits_of(of as u64).max(1)));
                columns = k;
            }
            Some(draw) => return self.fitting_function(draw),
        }
        if !self.second_fits() {
            return None;
        }
        let codes = self.coded(columns)?;
        let (values, width, bits) = self.law.form();
        let placed = matches!(self.codec, Some(Codec::Placed(_)));
        let uses = match self.law {
            Law::Bits(_) if placed => (values == 1).then_some(codes)?,
            Law::Bits(_) | Law::Cube(_) | Law::Cap(_) | Law::Select(_) => (values == codes).then_some(1)?,
            _ => codes,
        };
        fields.push((width.checked_mul(uses)?, bits));
        Some(fields)
    }

    /// Codes that the codec makes of so many columns; none where these are not the inputs of the channel.
    fn coded(&self, columns: usize) -> Option<usize> {
        let takes = self.law.inputs();
        let (below, real) = (self.record.below(), self.record.is_real());
        let one_of_each =
            matches!(self.law, Law::Unary(_) | Law::Subset(_) | Law::Design(_) | Law::Select(_));
        match &self.codec {
            None if real => {
                let unsigned = matches!(&self.law, Law::Select(law) if !law.is_signed());
                unsigned.then_some(columns)
            }
            None => {
                let plain = !matches!(self.law, Law::Bits(_) | Law::Cube(_) | Law::Cap(_) | Law::Mixture(..));
                (plain && takes.is_some() && takes == below).then_some(columns)
            }
            Some(Codec::OneHot { categories, top }) => {
                let fits =
                    columns == 1 && below == Some(*categories as u64) && takes == Some(u64::from(*top) + 1);
                (fits && matches!(self.law, Law::Shift(_) | Law::Matrix(_) | Law::Window(_)))
                    .then_some(*categories)
            }
            Some(_) if !real => None,
            Some(Codec::Fixed(codec)) => {
                matches!(&self.law, Law::Bits(law) if law.bits() == codec.bits()).then_some(columns)
            }
            Some(Codec::Signs { grid, columns: together }) => {
                let fits = grid.points() == 2 && *together == columns && takes == Some(1 << columns);
                (fits && !matches!(self.law, Law::Cube(_) | Law::Cap(_) | Law::Mixture(..))).then_some(1)
            }
            Some(Codec::Grid(grid)) => {
                (takes == Some(grid.points().into()) && !one_of_each).then_some(columns)
            }
            Some(Codec::Placed(grid)) => {
                let fits = matches!(&self.law, Law::Bits(law) if u64::from(grid.points()) == 1 << law.bits());
                (fits && grid.points() <= MOST_PLACED).then_some(columns)
            }
        }
    }

    /// The fields of a report that begins with a hash function or a step.
    fn fitting_function(&self, draw: PublicDraw) -> Option<Vec<(usize, u32)>> {
        let below = self.record.below()?;
        if self.record.columns != 1 || self.codec.is_some() || !self.second_fits() {
            return None;
        }
        match (draw, &self.law) {
            (PublicDraw::Affine { prime, values }, Law::Window(law)) => {
                (u64::from(law.cells()) == values && below <= prime).then(|| vec![(3, bits_of(prime))])
            }
            (PublicDraw::Step { count, cells }, Law::Design(law)) => {
                let steps = matches!(law.family(), DesignFamily::Progressions) && self.second.is_none();
                let sizes = (u64::from(law.cells()), u64::from(law.cells() - 1) / 2) == (cells, count);
                let fits = steps && sizes && u64::from(law.inputs()) == below;
                fits.then(|| vec![(1, bits_of(count).max(1)), (1, bits_of(cells))])
            }
            _ => None,
        }
    }

    /// True where there is no second step, or one that takes the reports of the channel.
    fn second_fits(&self) -> bool {
        match (&self.law, &self.second) {
            (_, None) => true,
            (Law::Unary(first), Some(Law::Bits(second))) => {
                (second.features(), second.bits()) == (first.categories(), 1) && self.uses() == 1
            }
            (Law::Window(first), Some(Law::Window(second))) => {
                first.cells() == second.cells() && second.order().is_none()
            }
            _ => false,
        }
    }

    /// Writes the reports of checked records.
    fn randomize(&self, input: Input<'_>, records: usize, keys: &[Key], out: &mut [u8]) -> Result<()> {
        let (last, others) = keys.split_last().ok_or(Kind::Shape)?;
        if let Some(rotation) = &self.rotation {
            return self.rotated(rotation, input, records, keys, out);
        }
        if let Some(order) = &self.order {
            return self.capped(order, input, records, last, out);
        }
        match self.draw {
            None => self.released(input, records, keys, Output::Packed(out)),
            Some(PublicDraw::Coordinates { of, k }) => {
                let bits = self.fields[0].1;
                with_room(records * k, |columns: &mut [u32]| {
                    coordinates(last, of, k, columns)?;
                    let (named, reports) = out.split_at_mut(packed_len(columns.len(), bits)?);
                    pack_to(columns, bits, named, Some(1))?;
                    let at = |index: usize| index / k * of + columns[index] as usize;
                    let mut released =
                        |input: Input<'_>| self.released(input, records, others, Output::Packed(reports));
                    match input {
                        Input::F32(x) => picked(x, columns.len(), at, |x| released(Input::F32(x))),
                        Input::F64(x) => picked(x, columns.len(), at, |x| released(Input::F64(x))),
                        _ => Err(Kind::Shape.into()),
                    }
                })?
            }
            Some(PublicDraw::Affine { prime, values }) => with_room(3 * records, |triples: &mut [u32]| {
                for_words(last, 2 * records, |at, word| {
                    let drawn = if at % 2 == 0 { 1 + scaled(word, prime - 1) } else { scaled(word, prime) };
                    triples[at / 2 * 3 + at % 2] = drawn as u32;
                })?;
                with_room(records, |hashed: &mut [u32]| {
                    for (at, (hashed, triple)) in hashed.iter_mut().zip(triples.chunks_exact(3)).enumerate() {
                        let mapped = (u64::from(triple[0]) * code(input, at) + u64::from(triple[1])) % prime;
                        *hashed = (mapped * values / prime) as u32;
                    }
                    with_room(records, |reports: &mut [u32]| {
                        self.released(Input::U32(hashed), records, others, Output::U32(reports))?;
                        for (triple, report) in triples.chunks_exact_mut(3).zip(reports) {
                            triple[2] = *report;
                        }
                        Ok(pack_to(triples, self.fields[0].1, out, Some(1))?)
                    })?
                })?
            })?,
            Some(PublicDraw::Step { count, cells }) => with_room(records, |steps: &mut [u32]| {
                for_words(last, records, |at, word| steps[at] = scaled(word, count) as u32)?;
                let (of_steps, of_cells) = out.split_at_mut(packed_len(records, self.fields[0].1)?);
                pack_to(steps, self.fields[0].1, of_steps, Some(1))?;
                self.stepped(input, steps, cells, others, of_cells)
            })?,
        }
    }

    /// Writes the cells of progressions that begin at the categories: a rank is drawn whatever the category is, which then
    /// enters an addition.
    fn stepped(
        &self,
        input: Input<'_>,
        steps: &[u32],
        cells: u64,
        keys: &[Key],
        out: &mut [u8],
    ) -> Result<()> {
        let (Some(ranks), Law::Design(law)) = (&self.ranks, &self.law) else {
            return Err(Kind::Shape.into());
        };
        let law_is_mute = bitldp_core::Channel::is_mute(law);
        with_room(steps.len(), |zeros: &mut [u32]| {
            with_room(steps.len(), |reported: &mut [u32]| {
                let ranks = Law::randomize_design(ranks, Input::U32(zeros), Output::U32(reported), keys);
                ranks?;
                for (at, (cell, &step)) in reported.iter_mut().zip(steps).enumerate() {
                    let (rank, step) = (u64::from(*cell), u64::from(step) + 1);
                    // The multiples of a step come back to 0 where it shares a divisor; then those beside them follow.
                    let offset = (rank * step + rank * divisor(step, cells) / cells) % cells;
                    let sum = offset + if law_is_mute { 0 } else { code(input, at) };
                    *cell = (sum - if sum >= cells { cells } else { 0 }) as u32;
                }
                Ok(pack_to(reported, self.fields[1].1, out, Some(1))?)
            })?
        })?
    }

    /// Writes the reports of values by codec, channel and second step.
    pub(crate) fn released(
        &self,
        input: Input<'_>,
        records: usize,
        keys: &[Key],
        output: Output<'_>,
    ) -> Result<()> {
        match (&self.codec, &self.dither) {
            (Some(Codec::Placed(grid)), Some(dither)) => {
                let (first, keys) = keys.split_at_checked(1).ok_or(Kind::Shape)?;
                with_room(input.len(), |codes: &mut [u32]| {
                    dither.randomize(Coding::Grid(grid), input, Output::U32(codes), first)?;
                    self.channelled(Input::U32(codes), keys, output)
                })?
            }
            (Some(Codec::Signs { grid, columns }), Some(dither)) => {
                let (first, keys) = keys.split_at_checked(1).ok_or(Kind::Shape)?;
                with_room(records * columns, |signs: &mut [u8]| {
                    dither.randomize(Coding::Grid(grid), input, Output::U8(signs), first)?;
                    with_room(records, |symbols: &mut [u32]| {
                        for (symbol, signs) in symbols.iter_mut().zip(signs.chunks_exact(*columns)) {
                            *symbol = signs.iter().fold(0, |symbol, &sign| symbol << 1 | u32::from(sign));
                        }
                        self.channelled(Input::U32(symbols), keys, output)
                    })?
                })?
            }
            (Some(Codec::OneHot { categories, top }), _) => {
                with_room(records * categories, |entries: &mut [u16]| {
                    for (at, entries) in entries.chunks_exact_mut(*categories).enumerate() {
                        let own = code(input, at);
                        for (entry, category) in entries.iter_mut().zip(0..) {
                            *entry = top & 0u16.wrapping_sub(u16::from(category == own));
                        }
                    }
                    self.channelled(Input::U16(entries), keys, output)
                })?
            }
            _ => self.channelled(input, keys, output),
        }
    }

    /// Writes the reports of codes, or of numbers through a grid or a fixed-point code.
    fn channelled(&self, input: Input<'_>, keys: &[Key], output: Output<'_>) -> Result<()> {
        let coding = self.coding();
        match (&self.law, &self.second, keys.last()) {
            (law, None, _) => law.randomize(coding, input, output, keys),
            (Law::Unary(first), Some(second), Some(key)) => {
                with_room(input.len() * first.categories(), |bits: &mut [u8]| {
                    self.law.randomize(coding, input, Output::Bits(bits), keys)?;
                    let mut key = [derived(key)?];
                    let done = second.randomize(Coding::Codes, Input::U8(bits), output, &key);
                    overwrite(&mut key);
                    done
                })?
            }
            (law, Some(second), Some(_)) => with_room(input.len(), |codes: &mut [u32]| {
                law.randomize(coding, input, Output::U32(codes), keys)?;
                second.randomize(Coding::Codes, Input::U32(codes), output, &keys[keys.len() - 1..])
            })?,
            _ => Err(Kind::Shape.into()),
        }
    }

    /// The type of the values.
    pub(crate) fn kind(&self) -> ValueType {
        self.record.kind
    }
}

/// Bytes of arrays of codes for so many records.
fn fields_bytes(fields: &[(usize, u32)], records: usize) -> Option<usize> {
    let size = |&(columns, bits): &(usize, u32)| packed_len(records.checked_mul(columns)?, bits).ok();
    fields.iter().try_fold(0usize, |sum, field| sum.checked_add(size(field)?))
}

/// Bits that tell so many codes apart.
pub(crate) fn bits_of(count: u64) -> u32 {
    u64::BITS - (count - 1).leading_zeros()
}

/// A category of the input.
pub(crate) fn code(input: Input<'_>, at: usize) -> u64 {
    match input {
        Input::U8(x) => x[at].into(),
        Input::U16(x) => x[at].into(),
        Input::U32(x) => x[at].into(),
        _ => 0,
    }
}

/// Gives `work` the values at some positions.
pub(crate) fn picked<T: zeroize::DefaultIsZeroes>(
    values: &[T],
    count: usize,
    at: impl Fn(usize) -> usize,
    work: impl FnOnce(&[T]) -> Result<()>,
) -> Result<()> {
    with_room(count, |chosen: &mut [T]| {
        chosen.iter_mut().enumerate().for_each(|(index, own)| *own = values[at(index)]);
        work(chosen)
    })?
}

/// The greatest common divisor.
fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
