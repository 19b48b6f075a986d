//! Codecs of documents: the step from a record's values to the codes that a channel takes.

use bitldp_core::{FixedPoint, Grid, GridRounding, Infinities, SignBit};

use crate::fields::{Fields, wrong};
use crate::item::Item;
use crate::json::{Json, JsonValue};
use crate::refused::Result;

/// A codec of a document.
pub(crate) enum Codec {
    Grid(Grid),
    Fixed(FixedPoint),
    /// Numbers dithered to the ends of an interval, all together as one code, the first its highest bit.
    Signs {
        grid: Grid,
        columns: usize,
    },
    /// A number dithered by a draw of its own to a point, whose bits go into a channel of bits.
    Placed(Grid),
    /// A set as one of its items, drawn in secret.
    Item(Item),
    /// A category as an entry for each: `top` for its own, 0 elsewhere.
    OneHot {
        categories: usize,
        top: u16,
    },
}

impl Codec {
    /// The codec that an object of a document describes.
    pub(crate) fn read(json: &Json<'_>) -> Result<Codec> {
        let fields = Fields::of(json)?;
        let codec = match fields.text("kind")? {
            "grid" => Codec::Grid(grid(&fields)?),
            "placed" => Codec::Placed(grid(&fields)?),
            "signs" => {
                Codec::Signs { grid: grid(&fields)?, columns: fields.integer("columns", 1, 16)? as usize }
            }
            "onehot" => Codec::OneHot {
                categories: fields.integer("categories", 2, 1 << 16)? as usize,
                top: fields.integer("top", 1, u16::MAX.into())? as u16,
            },
            "item" => Codec::Item(Item::read(&fields)?),
            "fixed" => Codec::Fixed(fixed(&fields)?),
            _ => return Err(fields.unknown()),
        };
        fields.finish()?;
        Ok(codec)
    }
}

/// The grid that an object of a document describes; none where it is another codec.
pub(crate) fn read_grid(json: &Json<'_>) -> Result<Option<Grid>> {
    Ok(if let Codec::Grid(grid) = Codec::read(json)? { Some(grid) } else { None })
}

fn grid(fields: &Fields<'_>) -> Result<Grid> {
    let rounding = match fields.text("rounding")? {
        "dither" => GridRounding::Dither,
        "nearest" => GridRounding::Nearest,
        _ => return Err(fields.wrong()),
    };
    let clip = match fields.get("clip")? {
        Json { value: JsonValue::Bool(clip), .. } => *clip,
        json => return Err(wrong(json)),
    };
    let points = fields.count("points", u32::MAX)?;
    let (low, high) = (fields.double("low")?, fields.double("high")?);
    Grid::new(points, low, high, rounding, clip).map_err(|_| fields.no_law())
}

fn fixed(fields: &Fields<'_>) -> Result<FixedPoint> {
    let sign = match fields.text("sign")? {
        "bitrand" => SignBit::OneIfNonNegative,
        "ldpfl" => SignBit::ZeroIfNonNegative,
        _ => return Err(fields.wrong()),
    };
    let infinities = match fields.text("infinities")? {
        "refuse" => Infinities::Refuse,
        "saturate" => Infinities::Saturate,
        _ => return Err(fields.wrong()),
    };
    let (bits, whole) = (fields.count("bits", 32)?, fields.count("integer_bits", 32)?);
    FixedPoint::new(bits, whole, sign, infinities).map_err(|_| fields.no_law())
}
