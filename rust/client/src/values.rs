//! Values of records: their types in memory and in a document, and room for those that are copied.

use bitldp_core::Input;
use zeroize::{DefaultIsZeroes, Zeroize};

use crate::fields::{Fields, integer, list, text, wrong};
use crate::json::{Json, JsonValue};
use crate::plain::{Plain, in_place};
use crate::prepared::{Prepared, interval};
use crate::refused::{Kind, Refused, Result};

/// Columns of a record at most.
const MOST_COLUMNS: u32 = 1 << 22;

/// Labels at most.
const MOST_LABELS: usize = 1 << 16;

/// Points of an interval at most.
const MOST_POINTS: i64 = 1 << 31;

/// The units of numbers that are dates or times.
const UNITS: [&str; 6] = ["days", "hours", "minutes", "seconds", "milliseconds", "microseconds"];

/// The values of one record, or of several, record by record.
///
/// Codes may have any width; numbers have the one that the document says.
#[derive(Clone, Copy)]
pub enum Values<'a> {
    /// Categories of one byte each.
    U8(&'a [u8]),
    /// Categories of two bytes each.
    U16(&'a [u16]),
    /// Categories of four bytes each.
    U32(&'a [u32]),
    /// Numbers in single precision.
    F32(&'a [f32]),
    /// Numbers in double precision.
    F64(&'a [f64]),
    /// Categories by the texts that the document lists.
    Labels(&'a [&'a str]),
    /// Values as their bytes, little-endian, of the type that the document says; of a document of parts, those of the
    /// first part for all records, then those of the next.
    Bytes(&'a [u8]),
    /// The values of each part of a document of parts, in order.
    Parts(&'a [Values<'a>]),
}

/// How many values of which type there are: the values are private.
impl std::fmt::Debug for Values<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, count) = match self {
            Values::U8(x) => ("u8", x.len()),
            Values::U16(x) => ("u16", x.len()),
            Values::U32(x) => ("u32", x.len()),
            Values::F32(x) => ("f32", x.len()),
            Values::F64(x) => ("f64", x.len()),
            Values::Labels(x) => ("labels", x.len()),
            Values::Bytes(x) => ("bytes", x.len()),
            Values::Parts(x) => ("parts", x.len()),
        };
        write!(f, "Values(<{count} {kind}>)")
    }
}

/// The type of a value in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A number in single precision.
    F32,
    /// A number in double precision.
    F64,
    /// A category of one byte.
    U8,
    /// A category of two bytes.
    U16,
    /// A category of four bytes.
    U32,
}

impl ValueType {
    /// True for numbers.
    fn is_number(self) -> bool {
        matches!(self, ValueType::F32 | ValueType::F64)
    }

    /// Bytes of a value.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            ValueType::U8 => 1,
            ValueType::U16 => 2,
            ValueType::U32 | ValueType::F32 => 4,
            ValueType::F64 => 8,
        }
    }
}

/// The values that a record of a document has.
pub(crate) struct Record {
    pub(crate) kind: ValueType,
    pub(crate) columns: usize,
    pub(crate) range: ValueRange,
    /// The steps that numbers go through before they are checked, where there are any.
    pub(crate) prepared: Option<Prepared>,
    /// The texts of categories: of all columns, or of each.
    labels: Vec<Vec<String>>,
    /// The code that says that a category is missing, and the category that it counts as.
    missing: Option<(u32, u32)>,
}

/// The values that are allowed.
pub(crate) enum ValueRange {
    /// Categories below a number; of numbers, the points of an interval.
    Below(u64),
    /// Categories below a number of each column.
    Each(Vec<u64>),
    /// Numbers from one to another; those outside are refused.
    Within(f64, f64),
    /// Every number but NaN.
    Numbers,
    /// Every finite number, and NaN, which says that there is none.
    Gaps,
}

impl Record {
    /// The record that an object of a document describes.
    pub(crate) fn read(json: &Json<'_>) -> Result<Record> {
        let fields = Fields::of(json)?;
        let kind = match fields.text("type")? {
            "f32" => ValueType::F32,
            "f64" => ValueType::F64,
            "u8" => ValueType::U8,
            "u16" => ValueType::U16,
            "u32" => ValueType::U32,
            _ => return Err(fields.wrong()),
        };
        let columns = fields.integer("columns", 1, MOST_COLUMNS.into())? as usize;
        let mut missing = None;
        let (range, prepared, labels) = if kind.is_number() {
            (numbers(&fields)?, Prepared::read(&fields, columns)?, Vec::new())
        } else {
            let range = categories(&fields, 1 << (8 * kind.bytes()), columns, &mut missing)?;
            let filled = u64::from(missing.is_some());
            let labels = fields.maybe("labels").map(|json| labels(json, &range, filled, columns));
            (range, None, labels.transpose()?.unwrap_or_default())
        };
        if kind == ValueType::F32 && prepared.as_ref().is_some_and(Prepared::maps) {
            return Err(fields.wrong());
        }
        if let Some(names) = fields.maybe("names") {
            let listed = list(names, columns)?;
            listed.iter().try_for_each(|name| text(name).map(drop))?;
            if listed.len() != columns {
                return Err(wrong(names));
            }
        }
        fields.finish()?;
        Ok(Record { kind, columns, range, prepared, labels, missing })
    }

    /// True where the values are numbers, and stay some.
    pub(crate) fn is_real(&self) -> bool {
        !matches!(self.range, ValueRange::Below(_) | ValueRange::Each(_))
    }

    /// True where NaN says that a value is not there, and all others lie on [-1, 1].
    pub(crate) fn has_gaps(&self) -> bool {
        matches!(self.range, ValueRange::Gaps)
    }

    /// Categories, where the values are some and all columns have as many.
    pub(crate) fn below(&self) -> Option<u64> {
        if let ValueRange::Below(below) = self.range { Some(below) } else { None }
    }

    /// Categories of a column, where the values are some.
    pub(crate) fn below_of(&self, column: usize) -> Option<u64> {
        match &self.range {
            ValueRange::Below(below) => Some(*below),
            ValueRange::Each(below) => below.get(column).copied(),
            _ => None,
        }
    }

    /// Bytes of a record.
    pub(crate) fn bytes(&self) -> usize {
        self.columns * self.kind.bytes()
    }

    /// How many values were given.
    ///
    /// # Errors
    /// Another type than the record's.
    pub(crate) fn count(&self, x: Values<'_>) -> Result<usize> {
        let real = self.kind.is_number();
        match (x, self.kind) {
            (Values::F32(x), ValueType::F32) => Ok(x.len()),
            (Values::F64(x), ValueType::F64) => Ok(x.len()),
            (Values::U8(x), _) if !real => Ok(x.len()),
            (Values::U16(x), _) if !real => Ok(x.len()),
            (Values::U32(x), _) if !real => Ok(x.len()),
            (Values::Labels(x), _) if !self.labels.is_empty() => Ok(x.len()),
            (Values::Bytes(x), kind) if x.len().is_multiple_of(kind.bytes()) => Ok(x.len() / kind.bytes()),
            _ => Err(Kind::Shape.into()),
        }
    }

    /// Gives `work` the values, checked, as the core takes them; copies are overwritten afterwards.
    pub(crate) fn with(&self, x: Values<'_>, work: &mut dyn FnMut(Input<'_>) -> Result<()>) -> Result<()> {
        let mut allowed = |input: Input<'_>| self.check(input).and_then(|()| work(input));
        let mut checked = |input: Input<'_>| match (&self.prepared, input) {
            (Some(prepared), Input::F32(x)) => with_room(x.len(), |own: &mut [f32]| {
                own.iter_mut().zip(x).for_each(|(own, &x)| *own = prepared.single(x));
                allowed(Input::F32(own))
            })?,
            (Some(prepared), Input::F64(x)) => with_room(x.len(), |own: &mut [f64]| {
                own.copy_from_slice(x);
                prepared.apply(own);
                if self.is_real() { allowed(Input::F64(own)) } else { placed(own, &mut allowed) }
            })?,
            (_, input) => match self.missing {
                None => allowed(input),
                Some((missing, fill)) => with_room(input.len(), |own: &mut [u32]| {
                    for (at, own) in own.iter_mut().enumerate() {
                        let given = code(input, at) as u32;
                        let mask = u32::from(given == missing).wrapping_neg();
                        *own = given ^ (given ^ fill) & mask;
                    }
                    allowed(Input::U32(own))
                })?,
            },
        };
        match (x, self.kind) {
            (Values::F32(x), ValueType::F32) => checked(Input::F32(x)),
            (Values::F64(x), ValueType::F64) => checked(Input::F64(x)),
            (Values::U8(x), _) => checked(Input::U8(x)),
            (Values::U16(x), _) => checked(Input::U16(x)),
            (Values::U32(x), _) => checked(Input::U32(x)),
            (Values::Bytes(x), ValueType::U8) => checked(Input::U8(x)),
            (Values::Bytes(x), ValueType::U16) => {
                copied(x.as_chunks().0, u16::from_le_bytes, |x| checked(Input::U16(x)))
            }
            (Values::Bytes(x), ValueType::U32) => {
                copied(x.as_chunks().0, u32::from_le_bytes, |x| checked(Input::U32(x)))
            }
            (Values::Bytes(x), ValueType::F32) => {
                copied(x.as_chunks().0, f32::from_le_bytes, |x| checked(Input::F32(x)))
            }
            (Values::Bytes(x), ValueType::F64) => {
                copied(x.as_chunks().0, f64::from_le_bytes, |x| checked(Input::F64(x)))
            }
            (Values::Labels(x), _) => with_room(x.len(), |codes: &mut [u32]| {
                for ((index, code), label) in codes.iter_mut().enumerate().zip(x) {
                    *code = self.code(label, index).ok_or(Refused::at(Kind::Value, index))?;
                }
                checked(Input::U32(codes))
            })?,
            _ => Err(Kind::Shape.into()),
        }
    }

    /// The code of a label at a position. All labels of its column are looked at whatever it is.
    fn code(&self, label: &str, position: usize) -> Option<u32> {
        let mut code = u32::MAX;
        for (own, index) in self.labels.get(position % self.labels.len().max(1))?.iter().zip(0u32..) {
            let differ = own.bytes().zip(label.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
            let same = u32::from(differ == 0 && own.len() == label.len());
            code &= index | same.wrapping_sub(1);
        }
        Some(code).filter(|&code| code != u32::MAX)
    }

    /// Refuses the first value that is not allowed. All are looked at where all are.
    fn check(&self, input: Input<'_>) -> Result<()> {
        /// The position of the first value that is not allowed, sought where there is one.
        fn first<T: Copy>(values: &[T], allowed: impl Fn(T) -> bool) -> Option<usize> {
            // Ones of whole words, which compilers add side by side.
            if values.iter().fold(0, |wrong, &value| wrong | u32::from(!allowed(value))) == 0 {
                return None;
            }
            values.iter().position(|&value| !allowed(value))
        }
        /// The same, where each column has a bound of its own.
        fn first_by<T: Copy + Into<u64>>(values: &[T], below: &[u64]) -> Option<usize> {
            let allowed =
                || values.iter().zip(below.iter().cycle()).map(|(&value, below)| value.into() < *below);
            if allowed().fold(true, |all, allowed| all & allowed) {
                None
            } else {
                allowed().position(|allowed| !allowed)
            }
        }
        let refused = match (&self.range, input) {
            (ValueRange::Below(below), codes) if !codes.is_real() => {
                u32::try_from(*below).ok().and_then(|below| codes.first_outside(below))
            }
            (ValueRange::Each(below), Input::U8(x)) => first_by(x, below),
            (ValueRange::Each(below), Input::U16(x)) => first_by(x, below),
            (ValueRange::Each(below), Input::U32(x)) => first_by(x, below),
            (ValueRange::Within(low, high), Input::F32(x)) => {
                let (low, high) = (*low as f32, *high as f32);
                first(x, |x| x >= low && x <= high)
            }
            (ValueRange::Within(low, high), Input::F64(x)) => first(x, |x| x >= *low && x <= *high),
            (ValueRange::Numbers, Input::F32(x)) if !any_nan(x) => None,
            (ValueRange::Numbers, Input::F32(x)) => first(x, |x| !x.is_nan()),
            (ValueRange::Numbers, Input::F64(x)) => first(x, |x| !x.is_nan()),
            (ValueRange::Gaps, Input::F64(x)) => first(x, |x| !x.is_infinite()),
            _ => return Err(Kind::Shape.into()),
        };
        refused.map_or(Ok(()), |index| Err(Refused::at(Kind::Value, index)))
    }
}

/// True where one is NaN. Two go side by side in a word: a carry says that one is above infinity.
fn any_nan(numbers: &[f32]) -> bool {
    const SIZES: u64 = 0x7fff_ffff_7fff_ffff;
    const PAST_INFINITY: u64 = 0x007f_ffff_007f_ffff;
    let (pairs, last) = numbers.as_chunks::<2>();
    let pair = |[a, b]: [f32; 2]| u64::from(b.to_bits()) << 32 | u64::from(a.to_bits());
    let any = pairs.iter().fold(0, |any, &numbers| any | ((pair(numbers) & SIZES) + PAST_INFINITY));
    any & !SIZES != 0 || last.iter().any(|x| x.is_nan())
}

fn numbers(fields: &Fields<'_>) -> Result<ValueRange> {
    let ends = fields.maybe("interval").map(interval).transpose()?;
    // A unit of time is for people and for hosts, who count in it.
    if !UNITS.contains(&fields.maybe("unit").map_or(Ok(UNITS[0]), text)?) {
        return Err(fields.wrong());
    }
    let span = fields.maybe("span").map(interval).transpose()?;
    let gaps = fields.flag("gaps")?;
    if let Some(points) = fields.maybe("points") {
        let alone = ends.is_none() && span.is_none() && !gaps && fields.text("outside")? == "clip";
        let below = ValueRange::Below(integer(points, 2, MOST_POINTS)? as u64);
        return if alone { Ok(below) } else { Err(fields.wrong()) };
    }
    match (fields.text("outside")?, ends, span) {
        ("clip" | "refuse", None, Some((-1.0, 1.0))) if gaps => Ok(ValueRange::Gaps),
        _ if gaps => Err(fields.wrong()),
        ("clip", ..) => Ok(ValueRange::Numbers),
        // Those outside the interval of their column have been made infinite.
        ("refuse", None, Some((low, high))) | ("refuse", Some((low, high)), _) => {
            Ok(ValueRange::Within(low, high))
        }
        _ => Err(fields.wrong()),
    }
}

/// The categories that a record may hold; what a missing one is and counts as is written to `missing`.
fn categories(
    fields: &Fields<'_>,
    most: i64,
    columns: usize,
    missing: &mut Option<(u32, u32)>,
) -> Result<ValueRange> {
    let json = fields.get("below")?;
    if let Ok(below) = list(json, columns) {
        let below = below.iter().map(|below| integer(below, 2, most).map(|below| below as u64));
        let below = below.collect::<Result<Vec<_>>>()?;
        return if below.len() == columns { Ok(ValueRange::Each(below)) } else { Err(wrong(json)) };
    }
    let below = integer(json, 2, most)?;
    if let Some(fill) = fields.maybe("fill") {
        // It has a code and a label of its own.
        integer(json, 2, most - 1)?;
        *missing = Some((below as u32, integer(fill, 0, below - 1)? as u32));
    }
    Ok(ValueRange::Below(below as u64))
}

/// The texts of categories: one list for all columns, or one for each.
fn labels(json: &Json<'_>, range: &ValueRange, filled: u64, columns: usize) -> Result<Vec<Vec<String>>> {
    let given = list(json, MOST_LABELS)?;
    let nested = given.first().is_some_and(|first| matches!(first.value, JsonValue::List(_)));
    let lists = if nested { given } else { std::slice::from_ref(json) };
    if nested && lists.len() != columns {
        return Err(wrong(json));
    }
    let mut labels = Vec::new();
    for (column, json) in lists.iter().enumerate() {
        let texts = list(json, MOST_LABELS)?.iter().map(text).collect::<Result<Vec<_>>>()?;
        let below = match range {
            ValueRange::Below(below) => *below + filled,
            ValueRange::Each(below) if nested => below[column],
            _ => return Err(wrong(json)),
        };
        let mut ordered = texts.clone();
        ordered.sort_unstable();
        let twice = ordered.windows(2).any(|pair| pair[0] == pair[1]);
        if texts.len() as u64 != below || twice {
            return Err(wrong(json));
        }
        labels.push(texts.into_iter().map(String::from).collect());
    }
    Ok(labels)
}

/// Gives `work` the numbers of the points that are nearest to prepared numbers: of two as near, the even one.
fn placed(numbers: &[f64], work: &mut dyn FnMut(Input<'_>) -> Result<()>) -> Result<()> {
    if let Some(index) = numbers.iter().position(|x| x.is_nan()) {
        return Err(Refused::at(Kind::Value, index));
    }
    with_room(numbers.len(), |points: &mut [u32]| {
        points.iter_mut().zip(numbers).for_each(|(point, x)| *point = x.round_ties_even() as u32);
        work(Input::U32(points))
    })?
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

/// Gives `work` values of bytes, wherever these begin: where numbers can, nothing is copied.
fn copied<T, R, const N: usize>(
    bytes: &[[u8; N]],
    value: impl Fn([u8; N]) -> T,
    work: impl FnOnce(&[T]) -> Result<R>,
) -> Result<R>
where
    T: DefaultIsZeroes + Plain,
{
    if let Some(values) = in_place(bytes) {
        return work(values);
    }
    with_room(bytes.len(), |values: &mut [T]| {
        values.iter_mut().zip(bytes).for_each(|(own, &bytes)| *own = value(bytes));
        work(values)
    })?
}

/// Gives `work` room for so many values, zeros at first, which is overwritten afterwards. Little of it is on the stack:
/// then nothing is allocated.
///
/// # Errors
/// [`Kind::Memory`].
pub(crate) fn with_room<T, R>(count: usize, work: impl FnOnce(&mut [T]) -> R) -> Result<R>
where
    T: DefaultIsZeroes,
{
    const FEW: usize = 16;
    const SOME: usize = 512;
    // One call of `work`, for it is compiled where it is called.
    let (mut few, mut some, mut many);
    let room = if count <= FEW {
        few = [T::default(); FEW];
        &mut few[..count]
    } else if count <= SOME {
        some = [T::default(); SOME];
        &mut some[..count]
    } else {
        many = Vec::new();
        many.try_reserve_exact(count).map_err(|_| Kind::Memory)?;
        many.resize(count, T::default());
        &mut many[..]
    };
    let result = work(room);
    room.zeroize();
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &str) -> Record {
        Record::read(&Json::read(text).unwrap()).unwrap()
    }

    fn refused(record: &Record, x: Values<'_>) -> Refused {
        record.with(x, &mut |_| Ok(())).unwrap_err()
    }

    #[test]
    fn labels_are_their_codes() {
        let record = record(r#"{"below":3,"columns":1,"labels":["a","ab","b"],"type":"u8"}"#);
        let code = |label| record.code(label, 0);
        assert_eq!((code("a"), code("ab"), code("b")), (Some(0), Some(1), Some(2)));
        assert_eq!((code(""), code("abc"), code("c")), (None, None, None));
        assert_eq!(refused(&record, Values::Labels(&["a", "x"])), Refused::at(Kind::Value, 1));
        assert_eq!(refused(&record, Values::Bytes(&[0, 1, 3])), Refused::at(Kind::Value, 2));
    }

    #[test]
    fn a_missing_category_counts_as_a_public_one() {
        let record = record(r#"{"below":3,"columns":1,"fill":1,"labels":["a","b","c",""],"type":"u8"}"#);
        let mut given = Vec::new();
        let codes = |input: Input<'_>| (0..input.len()).map(|at| code(input, at)).collect::<Vec<_>>();
        for x in [Values::Labels(&["a", "", "c"]), Values::Bytes(&[0, 3, 2]), Values::U16(&[0, 3, 2])] {
            let mut keep = |input: Input<'_>| {
                given.push(codes(input));
                Ok(())
            };
            record.with(x, &mut keep).unwrap();
        }
        assert_eq!(given, [[0, 1, 2]; 3]);
        assert_eq!(refused(&record, Values::Bytes(&[0, 4])), Refused::at(Kind::Value, 1));
    }

    #[test]
    fn labels_may_be_those_of_each_column() {
        let record = record(r#"{"below":[2,3],"columns":2,"labels":[["b","a"],["a","b","c"]],"type":"u8"}"#);
        let mut given = Vec::new();
        let mut keep = |input: Input<'_>| {
            given = (0..input.len()).map(|at| code(input, at)).collect();
            Ok(())
        };
        record.with(Values::Labels(&["a", "a", "b", "c"]), &mut keep).unwrap();
        assert_eq!(given, [1, 0, 0, 2]);
        assert_eq!(refused(&record, Values::Labels(&["a", "b", "c", "c"])), Refused::at(Kind::Value, 2));
    }

    #[test]
    fn numbers_may_be_the_points_nearest_to_them() {
        let ends = r#""intervals":[["0000000000000000","4010000000000000"]]"#;
        let record = record(&format!(r#"{{"columns":1,{ends},"outside":"clip","points":5,"type":"f64"}}"#));
        let mut given = Vec::new();
        let mut keep = |input: Input<'_>| {
            given = (0..input.len()).map(|at| code(input, at)).collect();
            Ok(())
        };
        let numbers = [-1.0, 0.4, 0.5, 1.5, 2.51, f64::INFINITY, f64::NEG_INFINITY];
        record.with(Values::F64(&numbers), &mut keep).unwrap();
        assert_eq!(given, [0, 0, 0, 2, 3, 4, 0]);
        assert_eq!((record.below(), record.is_real()), (Some(5), false));
        assert_eq!(refused(&record, Values::F64(&[0.0, f64::NAN])), Refused::at(Kind::Value, 1));
        assert!(record.count(Values::U8(&[1])).is_err());
    }

    #[test]
    fn numbers_outside_are_refused_in_their_own_precision() {
        let interval = r#""interval":["0000000000000000","3fb999999999999a"]"#;
        let single = record(&format!(r#"{{"columns":1,{interval},"outside":"refuse","type":"f32"}}"#));
        assert!(single.with(Values::F32(&[0.0, 0.1]), &mut |_| Ok(())).is_ok());
        assert!(single.with(Values::Bytes(&0.1f32.to_le_bytes()), &mut |_| Ok(())).is_ok());
        assert_eq!(refused(&single, Values::F32(&[0.1, 0.2])).place, Some(1));
        assert_eq!(refused(&single, Values::F32(&[f32::NAN])).place, Some(0));
        assert_eq!(refused(&single, Values::F64(&[0.1])).kind, Kind::Shape);
        let any = record(r#"{"columns":1,"outside":"clip","type":"f64"}"#);
        assert!(any.with(Values::F64(&[f64::INFINITY]), &mut |_| Ok(())).is_ok());
        assert_eq!(refused(&any, Values::F64(&[0.0, f64::NAN])), Refused::at(Kind::Value, 1));
    }

    #[test]
    fn a_nan_is_found_at_every_position() {
        let plain = [0.0, -0.0, f32::MAX, f32::MIN, f32::INFINITY, f32::NEG_INFINITY, 1e-45, -1.0, 3.0];
        assert!(!any_nan(&[]) && (1..=plain.len()).all(|count| !any_nan(&plain[..count])));
        for nan in [0x7f80_0001, 0x7fff_ffff, 0xff80_0001, 0xffff_ffff].map(f32::from_bits) {
            for position in 0..plain.len() {
                let mut numbers = plain;
                numbers[position] = nan;
                assert!(any_nan(&numbers), "{position}");
            }
        }
    }

    #[test]
    fn records_are_what_the_schema_says() {
        let wrong = [
            r#"{"columns":0,"outside":"clip","type":"f64"}"#,
            r#"{"columns":1,"outside":"refuse","type":"f64"}"#,
            r#"{"below":257,"columns":1,"type":"u8"}"#,
            r#"{"below":2,"columns":1,"labels":["a"],"type":"u8"}"#,
            r#"{"below":2,"columns":1,"labels":["a","a"],"type":"u8"}"#,
            r#"{"below":2,"columns":1,"outside":"clip","type":"u8"}"#,
            r#"{"below":256,"columns":1,"fill":0,"type":"u8"}"#,
            r#"{"below":2,"columns":1,"fill":2,"type":"u8"}"#,
            r#"{"below":2,"columns":1,"fill":1,"labels":["a","b"],"type":"u8"}"#,
            r#"{"below":[2],"columns":1,"fill":1,"type":"u8"}"#,
            r#"{"below":[2],"columns":1,"labels":["a","b"],"type":"u8"}"#,
            r#"{"below":2,"columns":2,"labels":[["a","b"]],"type":"u8"}"#,
            r#"{"below":2,"columns":2,"labels":[["a","b"],"ab"],"type":"u8"}"#,
            r#"{"below":[2,3],"columns":2,"labels":[["a","b","c"],["a","b"]],"type":"u8"}"#,
            r#"{"columns":1,"outside":"clip","points":5,"type":"f64"}"#,
            r#"{"columns":1,"outside":"clip","type":"f64","unit":"weeks"}"#,
            r#"{"columns":1,"interval":["3ff0000000000000","0000000000000000"],"outside":"clip","type":"f64"}"#,
        ];
        for text in wrong {
            assert!(Record::read(&Json::read(text).unwrap()).is_err(), "{text}");
        }
    }
}
