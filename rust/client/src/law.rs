//! Channels of documents: read from their integers, called with keys of one record or of several.

use bitldp_core::{
    Bit, Bits, Call, Cap, Channel, Cube, Design, DesignFamily, FixedPoint, Grid, Input, Isa, Key, Keyed,
    KeyedCall, KeyedRandomness, Matrix, Mixture, Output, Probability, Rotated, Select, Shift, Subset, Unary,
    Window,
};

use crate::fields::{Fields, integer, list, share, wrong};
use crate::json::Json;
use crate::refused::{Kind, Refused, Result};

/// Entries of a table at most, and bytes of its Base64 text by that.
const MOST_ENTRIES: usize = 1 << 21;
const MOST_CELLS: u32 = 1 << 16;
const MOST_ORDERED: u32 = 1 << 11;
const MOST_FEATURES: u32 = 1 << 22;
const MOST_CATEGORIES: u32 = 1 << 24;
const MOST_DESIGN: u32 = 1 << 28;
const MOST_CUBE: u32 = 1 << 16;
const MOST_LAWS: usize = 256;
const MOST_LISTED: usize = 1 << 12;
const MOST_RUNS: usize = 1 << 16;

/// Bits of the counts of a cap's subsets.
const MOST_COUNTED: u64 = 1 << 27;

/// Steps that the exact delta of noise may take, a second or so.
const MOST_STEPS: usize = 1 << 28;

/// Bytes of an integer of a table.
const WEIGHT: usize = 9;

/// A channel of a document.
pub(crate) enum Law {
    Window(Window),
    Matrix(Matrix),
    Shift(Shift),
    Bits(Bits),
    Unary(Unary),
    Subset(Subset),
    Design(Design),
    Select(Select),
    Cube(Cube),
    Cap(Cap),
    Mixture(Mixture, Grid),
}

/// The codec of a call: a grid, a fixed-point code, or none.
#[derive(Clone, Copy)]
pub(crate) enum Coding<'a> {
    Codes,
    Grid(&'a Grid),
    Fixed(&'a FixedPoint),
}

impl<'a> Coding<'a> {
    fn grid(self) -> Option<&'a Grid> {
        if let Coding::Grid(grid) = self { Some(grid) } else { None }
    }

    fn fixed(self) -> Option<&'a FixedPoint> {
        if let Coding::Fixed(fixed) = self { Some(fixed) } else { None }
    }
}

/// A call on one thread, from the start of the keys' streams.
fn call<'a, C, K>(codec: C, input: Input<'a>, output: Output<'a>, keys: K) -> Call<'a, C, K> {
    Call { threads: Some(1), ..Call::new(codec, input, output, keys) }
}

impl Law {
    /// The channel that an object of a document describes.
    pub(crate) fn read(json: &Json<'_>) -> Result<Law> {
        let fields = Fields::of(json)?;
        let law = match fields.text("kind")? {
            "window" => Law::Window(window(&fields)?),
            "matrix" => Law::Matrix(matrix(&fields)?),
            "shift" => Law::Shift(shift(&fields)?),
            "bits" => Law::Bits(bits(&fields)?),
            "unary" => Law::Unary(unary(&fields)?),
            "subset" => Law::Subset(subset(&fields)?),
            "design" => Law::Design(design(&fields)?),
            "select" => Law::Select(select(&fields)?),
            "cube" => Law::Cube(cube(&fields)?),
            "cap" => Law::Cap(cap(&fields)?),
            "mixture" => mixture(&fields)?,
            _ => return Err(fields.unknown()),
        };
        fields.finish()?;
        Ok(law)
    }

    /// The exact epsilon of one use: any two inputs.
    pub(crate) fn epsilon(&self) -> f64 {
        match self {
            Law::Window(law) => law.epsilon(),
            Law::Matrix(law) => law.epsilon(),
            Law::Shift(law) => law.epsilon(),
            Law::Bits(law) => law.epsilon(),
            Law::Unary(law) => law.epsilon(),
            Law::Subset(law) => law.epsilon(),
            Law::Design(law) => law.epsilon(),
            Law::Select(law) => law.epsilon(),
            Law::Cube(law) => law.epsilon(),
            Law::Cap(law) => law.epsilon(),
            Law::Mixture(law, _) => law.epsilon(),
        }
    }

    /// The exact delta at an epsilon, where the channel adds noise.
    pub(crate) fn delta(&self, epsilon: f64) -> Option<f64> {
        let Law::Shift(law) = self else { return None };
        let steps = law.inputs().saturating_mul(law.inputs() + law.weights().len());
        if steps > MOST_STEPS { None } else { law.delta(epsilon).ok() }
    }

    /// Values that one report is about, and columns and bits of its codes.
    pub(crate) fn form(&self) -> (usize, usize, u32) {
        match self {
            Law::Bits(law) => (law.features(), law.features(), law.bits()),
            Law::Unary(law) => (1, law.categories(), 1),
            Law::Subset(law) => (1, law.elements() as usize, 1),
            Law::Cube(law) => (law.bits() as usize, law.bits() as usize, 1),
            Law::Cap(law) => (law.values(), law.codes(), law.code_bits()),
            Law::Select(law) => (law.dimensions() as usize, 1, law.report_bits()),
            Law::Window(law) => (1, 1, law.report_bits()),
            Law::Matrix(law) => (1, 1, law.report_bits()),
            Law::Shift(law) => (1, 1, law.report_bits()),
            Law::Design(law) => (1, 1, law.report_bits()),
            Law::Mixture(law, _) => (1, 1, law.report_bits()),
        }
    }

    /// Codes that the channel takes, and points of the grid before it; none where it takes numbers or words alone.
    pub(crate) fn inputs(&self) -> Option<u64> {
        match self {
            Law::Window(law) => Some(law.cells().into()),
            Law::Matrix(law) => Some(law.inputs() as u64),
            Law::Shift(law) => Some(law.inputs() as u64),
            Law::Design(law) => Some(law.inputs().into()),
            Law::Unary(law) => Some(law.categories() as u64),
            Law::Subset(law) => Some(law.elements().into()),
            Law::Mixture(law, _) => Some(law.window().cells().into()),
            Law::Cube(_) => Some(2),
            Law::Cap(law) => {
                let alike =
                    law.windows().windows(2).all(|pair| pair[0] == pair[1]) && law.subsets().is_empty();
                law.windows().first().filter(|_| alike).map(|window| window.0.into())
            }
            Law::Bits(_) | Law::Select(_) => None,
        }
    }

    /// Keys that a call takes.
    pub(crate) fn keys(&self) -> usize {
        if matches!(self, Law::Mixture(..)) { 2 } else { 1 }
    }

    /// Randomizes one record with keyed randomness, packed.
    pub(crate) fn randomize_keyed(
        &self,
        coding: Coding<'_>,
        input: Input<'_>,
        out: &mut [u8],
        randomness: KeyedRandomness<'_>,
    ) -> Result<()> {
        fn keyed<'a, C>(
            codec: C,
            input: Input<'a>,
            out: &'a mut [u8],
            randomness: KeyedRandomness<'a>,
        ) -> KeyedCall<'a, C> {
            let output = Output::Packed(out);
            KeyedCall { codec, input, letters: None, output, randomness, threads: Some(1) }
        }
        let (grid, isa) = (coding.grid(), Isa::current()?);
        let done = match self {
            Law::Window(law) => law.randomize_keyed_on(isa, keyed(grid, input, out, randomness)),
            Law::Matrix(law) => law.randomize_keyed_on(isa, keyed(grid, input, out, randomness)),
            Law::Shift(law) => law.randomize_keyed_on(isa, keyed(grid, input, out, randomness)),
            Law::Bits(law) => law.randomize_keyed_on(isa, keyed(coding.fixed(), input, out, randomness)),
            Law::Unary(law) => law.randomize_keyed_on(isa, keyed((), input, out, randomness)),
            Law::Subset(law) => law.randomize_keyed_on(isa, keyed((), input, out, randomness)),
            Law::Design(law) => law.randomize_keyed_on(isa, keyed((), input, out, randomness)),
            Law::Select(law) => law.randomize_keyed_on(isa, keyed(None, input, out, randomness)),
            Law::Cube(law) => law.randomize_keyed_on(isa, keyed(grid, input, out, randomness)),
            Law::Cap(law) => law.randomize_keyed_on(isa, keyed(grid, input, out, randomness)),
            Law::Mixture(law, ends) => {
                let Some(grid) = grid else { return Err(Kind::Shape.into()) };
                law.randomize_keyed_on(isa, keyed([grid, ends], input, out, randomness))
            }
        };
        done.map_err(Refused::from)
    }

    /// Rotates vectors, and selects from their signed coordinates.
    pub(crate) fn randomize_rotated(
        law: &Select,
        rotated: Rotated<'_>,
        input: Input<'_>,
        output: Output<'_>,
        key: &Key,
    ) -> Result<()> {
        Ok(law.randomize(call(Some(rotated), input, output, key))?)
    }

    /// Draws the ranks of a design's cells.
    pub(crate) fn randomize_design(
        law: &Design,
        input: Input<'_>,
        output: Output<'_>,
        keys: &[Key],
    ) -> Result<()> {
        let key = keys.first().ok_or(Kind::Shape)?;
        Ok(law.randomize(call((), input, output, key))?)
    }

    /// Randomizes; refuses what does not fit, and then the output is zeros or as it was.
    pub(crate) fn randomize(
        &self,
        coding: Coding<'_>,
        input: Input<'_>,
        output: Output<'_>,
        keys: &[Key],
    ) -> Result<()> {
        let (Some(key), grid) = (keys.first(), coding.grid()) else { return Err(Kind::Shape.into()) };
        let isa = Isa::current()?;
        let done = match self {
            Law::Window(law) => law.randomize_on(isa, call(grid, input, output, key)),
            Law::Matrix(law) => law.randomize_on(isa, call(grid, input, output, key)),
            Law::Shift(law) => law.randomize_on(isa, call(grid, input, output, key)),
            Law::Bits(law) => law.randomize_on(isa, call(coding.fixed(), input, output, key)),
            Law::Unary(law) => law.randomize_on(isa, call((), input, output, key)),
            Law::Subset(law) => law.randomize_on(isa, call((), input, output, key)),
            Law::Design(law) => law.randomize_on(isa, call((), input, output, key)),
            Law::Select(law) => law.randomize_on(isa, call(None, input, output, key)),
            Law::Cube(law) => law.randomize_on(isa, call(grid, input, output, key)),
            Law::Cap(law) => law.randomize_on(isa, call(grid, input, output, key)),
            Law::Mixture(law, ends) => {
                let (Some(grid), Some(other)) = (grid, keys.get(1)) else { return Err(Kind::Shape.into()) };
                law.randomize_on(isa, call([grid, ends], input, output, [key, other]))
            }
        };
        done.map_err(Refused::from)
    }
}

/// Law, or the refusal of an object whose integers make none.
fn law<T>(fields: &Fields<'_>, made: bitldp_core::Result<T>) -> Result<T> {
    made.map_err(|_| fields.no_law())
}

fn high(fields: &Fields<'_>, name: &str) -> Result<Probability> {
    let share = fields.share(name)?;
    law(fields, Probability::from_numerator(share))
}

fn window(fields: &Fields<'_>) -> Result<Window> {
    let cells = fields.count("cells", u32::MAX)?;
    let (width, high, mute) = (fields.count("width", u32::MAX)?, high(fields, "high")?, fields.flag("mute")?);
    let order = match fields.maybe("order") {
        None => None,
        Some(json) if cells > MOST_ORDERED => return Err(Refused::at(Kind::Size, json.at)),
        Some(_) => {
            let bytes = fields.base64("order", 2 * (cells as usize).pow(2))?;
            let (cells, rest) = bytes.as_chunks::<2>();
            if !rest.is_empty() {
                return Err(fields.wrong());
            }
            Some(cells.iter().map(|&cell| u16::from_le_bytes(cell)).collect())
        }
    };
    let window = law(fields, Window::from_probability(cells, width, high, order))?;
    Ok(if mute { window.muted() } else { window })
}

/// A table of integers over 2^64.
fn weights(fields: &Fields<'_>, most: usize) -> Result<Vec<u128>> {
    let bytes = fields.base64("weights", WEIGHT * most)?;
    let (weights, rest) = bytes.as_chunks::<WEIGHT>();
    if !rest.is_empty() {
        return Err(fields.wrong());
    }
    let weight =
        |bytes: &[u8; WEIGHT]| bytes.iter().rev().fold(0, |weight, &byte| weight << 8 | u128::from(byte));
    let weights: Vec<u128> = weights.iter().map(weight).collect();
    if weights.iter().any(|&weight| weight > 1 << 64) { Err(fields.no_law()) } else { Ok(weights) }
}

fn matrix(fields: &Fields<'_>) -> Result<Matrix> {
    let inputs = fields.count("inputs", MOST_CELLS)? as usize;
    let outputs = fields.count("outputs", MOST_CELLS)? as usize;
    if inputs * outputs > MOST_ENTRIES || outputs < 2 {
        return Err(Refused { kind: Kind::Size, ..fields.wrong() });
    }
    law(fields, Matrix::from_weights(inputs, outputs, weights(fields, inputs * outputs)?))
}

fn shift(fields: &Fields<'_>) -> Result<Shift> {
    let inputs = fields.integer("inputs", 2, MOST_CELLS.into())? as usize;
    let outputs = fields.integer("outputs", 2, MOST_CELLS.into())? as usize;
    let offset = fields.integer("offset", i32::MIN.into(), i32::MAX.into())? as i32;
    let mute = fields.flag("mute")?;
    let weights = weights(fields, MOST_CELLS as usize)?;
    let shift = law(fields, Shift::new(inputs, outputs, weights, offset))?;
    Ok(if mute { shift.muted() } else { shift })
}

fn bits(fields: &Fields<'_>) -> Result<Bits> {
    let features = fields.integer("features", 1, MOST_FEATURES.into())? as usize;
    let share = |json| share(json).and_then(|share| law(fields, Probability::from_numerator(share)));
    let pair = |json| match list(json, 2)? {
        [p, q] => Ok(Bit { p: share(p)?, q: share(q)? }),
        _ => Err(wrong(json)),
    };
    let bits = |json| list(json, 32)?.iter().map(pair).collect::<Result<Vec<_>>>();
    let laws = list(fields.get("laws")?, MOST_LAWS)?.iter().map(bits).collect::<Result<Vec<_>>>()?;
    let pattern = match fields.maybe("pattern") {
        None => None,
        Some(_) => Some(numbers(fields, "pattern", features)?),
    };
    law(fields, Bits::new(laws, features, pattern))
}

/// Integers of four bytes, at most so many.
fn numbers(fields: &Fields<'_>, name: &str, most: usize) -> Result<Vec<u32>> {
    let bytes = fields.base64(name, 4 * most)?;
    let (numbers, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(fields.wrong());
    }
    Ok(numbers.iter().map(|&number| u32::from_le_bytes(number)).collect())
}

fn unary(fields: &Fields<'_>) -> Result<Unary> {
    let categories = fields.integer("categories", 2, MOST_CATEGORIES.into())? as usize;
    let bit = Bit { p: high(fields, "p")?, q: high(fields, "q")? };
    law(fields, Unary::new(categories, bit))
}

fn subset(fields: &Fields<'_>) -> Result<Subset> {
    let (elements, size) =
        (fields.count("elements", MOST_CATEGORIES)?, fields.count("size", MOST_CATEGORIES)?);
    let (high, mute) = (high(fields, "high")?, fields.flag("mute")?);
    let subset = law(fields, Subset::from_probability(elements, size, high))?;
    Ok(if mute { subset.muted() } else { subset })
}

fn design(fields: &Fields<'_>) -> Result<Design> {
    let inputs = fields.count("inputs", MOST_CATEGORIES)?;
    let (cells, width) = (fields.count("cells", MOST_DESIGN)?, fields.count("width", MOST_DESIGN)?);
    let (high, mute) = (high(fields, "high")?, fields.flag("mute")?);
    let made = match fields.text("family")? {
        "translates" => {
            let order = numbers(fields, "order", MOST_ENTRIES)?;
            Design::from_probability(DesignFamily::Translates(&order), inputs, cells, width, high)
        }
        "progressions" => Design::from_probability(DesignFamily::Progressions, inputs, cells, width, high),
        "halves" => Design::from_probability(DesignFamily::Halves, inputs, cells, width, high),
        _ => return Err(fields.unknown()),
    };
    let design = law(fields, made)?;
    Ok(if mute { design.muted() } else { design })
}

fn select(fields: &Fields<'_>) -> Result<Select> {
    let weight = |json| match share(json).map(u64::try_from) {
        Ok(Ok(weight)) => Ok(weight),
        _ => Err(wrong(json)),
    };
    let count = |json| integer(json, 1, u32::MAX.into()).map(|count| count as u32);
    let counts = list(fields.get("counts")?, MOST_RUNS)?.iter().map(count).collect::<Result<Vec<_>>>()?;
    let weights = list(fields.get("weights")?, MOST_RUNS)?.iter().map(weight).collect::<Result<Vec<_>>>()?;
    let nothing = fields.maybe("nothing").map(weight).transpose()?;
    if counts.iter().map(|&count| u64::from(count)).sum::<u64>() > 2 * u64::from(MOST_FEATURES) {
        return Err(Refused { kind: Kind::Size, ..fields.wrong() });
    }
    match (fields.flag("signed")?, nothing) {
        (false, nothing) => law(fields, Select::new(&counts, &weights, nothing)),
        (true, None) => law(fields, Select::signed(&counts, &weights)),
        (true, Some(_)) => Err(fields.no_law()),
    }
}

fn cube(fields: &Fields<'_>) -> Result<Cube> {
    let bits = fields.count("bits", MOST_CUBE)?;
    let (near, far) = (fields.count("near", MOST_CUBE)?, fields.count("far", MOST_CUBE)?);
    let (high, mute) = (high(fields, "high")?, fields.flag("mute")?);
    let cube = law(fields, Cube::new(bits, near, far, high))?;
    Ok(if mute { cube.muted() } else { cube })
}

fn cap(fields: &Fields<'_>) -> Result<Cap> {
    let number = |json| integer(json, 0, u32::MAX.into()).map(|number| number as u32);
    let pair = |json| match list(json, 2)? {
        [one, other] => Ok((number(one)?, number(other)?)),
        _ => Err(wrong(json)),
    };
    let pairs = |name| list(fields.get(name)?, MOST_LISTED)?.iter().map(pair).collect::<Result<Vec<_>>>();
    let (windows, subsets) = (pairs("windows")?, pairs("subsets")?);
    // Twice the reach and the points are a number of 32 bits.
    if windows.iter().any(|&(points, reach)| u64::from(points) + 2 * u64::from(reach) >= 1 << 32) {
        return Err(fields.no_law());
    }
    // As many counts as pairs of subsets are made, of as many bits as there are elements.
    let elements = subsets.iter().fold(0u64, |sum, subset| sum + u64::from(subset.0));
    if elements.saturating_mul((subsets.len() as u64).pow(2)) > MOST_COUNTED {
        return Err(Refused { kind: Kind::Size, ..fields.wrong() });
    }
    let hits = fields.count("hits", MOST_LISTED as u32)?;
    let (high, mute) = (high(fields, "high")?, fields.flag("mute")?);
    let cap = law(fields, Cap::new(windows, subsets, hits, high))?;
    Ok(if mute { cap.muted() } else { cap })
}

fn mixture(fields: &Fields<'_>) -> Result<Law> {
    let inner = |name| fields.get(name).and_then(|json| Ok((Law::read(json)?, json)));
    let ((window, of_window), (matrix, of_matrix)) = (inner("window")?, inner("matrix")?);
    let (Law::Window(window), Law::Matrix(matrix)) = (window, matrix) else {
        return Err(wrong(if of_window.at < of_matrix.at { of_window } else { of_matrix }));
    };
    let inputs = matrix.inputs();
    let Some(ends) =
        crate::codec::read_grid(fields.get("ends")?)?.filter(|ends| ends.points() as usize == inputs)
    else {
        return Err(fields.no_law());
    };
    Ok(Law::Mixture(law(fields, Mixture::new(window, matrix))?, ends))
}
