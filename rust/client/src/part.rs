//! Parts of a record: how each is drawn, what of a report it has, and its keys.

use bitldp_core::{Design, DesignFamily, Key, Matrix, Probability, Window, packed_len};

use crate::codec::Codec;
use crate::draws::{PublicDraw, PublicRotation};
use crate::fields::{Fields, integer, list};
use crate::item::Item;
use crate::keys::{GiveKeys, overwrite};
use crate::law::{Coding, Law};
use crate::refused::{Kind, Refused, Result};
use crate::values::{Record, Values, with_room};

/// Keys of a part that are few: of a codec, two of a channel, of a second step, of a draw.
const FEW_KEYS: usize = 5;

/// Points at most that are placed by a draw of their own: a table of them is made.
pub(crate) const MOST_PLACED: u32 = 1 << 10;

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
    pub(crate) dither: Option<Law>,
    /// The channel of the ranks of cells that a step takes, which have the law of a progression's window.
    pub(crate) ranks: Option<Design>,
    /// Columns and bits of the arrays of its report.
    pub(crate) fields: Vec<(usize, u32)>,
    /// Its first key among those that are given, and how often each is replaced by the start of its keystream.
    pub(crate) first_key: usize,
    pub(crate) derived: usize,
}

impl Part {
    /// The part that the fields of a document describe: its first key, and how often its keys are replaced.
    pub(crate) fn read(fields: &Fields<'_>, first_key: usize, derived: usize) -> Result<Part> {
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
            first_key,
            derived,
        };
        part.fields = part.fitting().ok_or_else(|| fields.no_law())?;
        Ok(part)
    }

    /// Calls `work` with the keys of this part, which are overwritten afterwards. A few are on the stack.
    pub(crate) fn with_keys(
        &self,
        keys: &mut GiveKeys<'_>,
        work: &mut dyn FnMut(&[Key]) -> Result<()>,
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
        let item = self.item().map_or(0, |item| item.keys());
        let codec = usize::from(self.dither.is_some()) + item;
        codec + self.law.keys() + usize::from(self.second.is_some()) + usize::from(self.draw.is_some())
    }

    /// True where one use of the channel, of codes or through a grid or a fixed-point code, is all there is: it can be
    /// keyed, too.
    pub(crate) fn is_plain(&self) -> bool {
        let straight = matches!(self.codec, None | Some(Codec::Grid(_) | Codec::Fixed(_)));
        let drawn = self.draw.is_some() || self.rotation.is_some() || self.order.is_some();
        straight && !drawn && self.second.is_none()
    }

    /// The draw of an item, where a record is a set.
    pub(crate) fn item(&self) -> Option<&Item> {
        if let Some(Codec::Item(item)) = &self.codec { Some(item) } else { None }
    }

    /// Epsilon of one use of the channel on a record.
    pub(crate) fn epsilon(&self) -> f64 {
        let amplified = match (self.item(), &self.law, self.draw, &self.second) {
            (Some(item), Law::Window(law), None, None) => item.amplified(law),
            _ => None,
        };
        amplified.unwrap_or_else(|| self.law.epsilon())
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
            (Some(Codec::Signs { .. } | Codec::Item(_)), _) => 1,
            (Some(Codec::Placed(_)), None) => self.record.columns,
            (Some(Codec::Placed(_)), Some(PublicDraw::Coordinates { k, .. })) => k,
            _ if matches!(self.law, Law::Bits(_) | Law::Cap(_) | Law::Cube(_) | Law::Select(_)) => 1,
            (_, Some(PublicDraw::Coordinates { k, .. })) => k,
            _ => self.record.columns,
        }
    }
}

/// Calls `work` with each part and its values. Places are counted over the values of all parts.
pub(crate) fn for_parts<'p>(
    parts: &'p [Part],
    x: Values<'_>,
    records: usize,
    work: &mut dyn FnMut(&'p Part, Values<'_>) -> Result<()>,
) -> Result<()> {
    let (mut start, mut place) = (0, 0);
    for (index, part) in parts.iter().enumerate() {
        let end = start + records * part.record.bytes();
        let values = match x {
            Values::Bytes(bytes) => Values::Bytes(&bytes[start..end]),
            Values::Parts(values) => values[index],
            values => values,
        };
        let done = work(part, values);
        done.map_err(|refused| Refused { place: refused.place.map(|at| at + place), ..refused })?;
        start = end;
        place += (records * part.record.columns) as u64;
    }
    Ok(())
}

/// Bytes of arrays of codes for so many records.
pub(crate) fn fields_bytes(fields: &[(usize, u32)], records: usize) -> Option<usize> {
    let size = |&(columns, bits): &(usize, u32)| packed_len(records.checked_mul(columns)?, bits).ok();
    fields.iter().try_fold(0usize, |sum, field| sum.checked_add(size(field)?))
}

/// Bits that tell so many codes apart.
pub(crate) fn bits_of(count: u64) -> u32 {
    u64::BITS - (count - 1).leading_zeros()
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
