//! Fields of a document's objects: each is read once, by its type; what nobody reads is refused.

use std::cell::Cell;

use crate::json::{Json, JsonValue};
use crate::refused::{Kind, Refused, Result};

/// An object that is being read.
pub(crate) struct Fields<'j> {
    fields: &'j [(std::borrow::Cow<'j, str>, Json<'j>)],
    at: usize,
    /// A bit for each field that was read; no object of the schema has so many.
    seen: Cell<u64>,
}

/// A refusal of a value that is not what the schema says.
pub(crate) fn wrong(json: &Json<'_>) -> Refused {
    Refused::at(Kind::Field, json.at)
}

impl<'j> Fields<'j> {
    /// The fields of an object.
    pub(crate) fn of(json: &'j Json<'j>) -> Result<Fields<'j>> {
        match &json.value {
            JsonValue::Object(fields) if fields.len() <= 64 => {
                Ok(Fields { fields, at: json.at, seen: Cell::new(0) })
            }
            _ => Err(wrong(json)),
        }
    }

    /// A refusal of the object as a whole.
    pub(crate) fn wrong(&self) -> Refused {
        Refused::at(Kind::Field, self.at)
    }

    /// A refusal of a kind that nobody knows.
    pub(crate) fn unknown(&self) -> Refused {
        Refused::at(Kind::Unknown, self.at)
    }

    /// A refusal of the object's integers.
    pub(crate) fn no_law(&self) -> Refused {
        Refused::at(Kind::Law, self.at)
    }

    /// A field that may be missing.
    pub(crate) fn maybe(&self, name: &str) -> Option<&'j Json<'j>> {
        let index = self.fields.iter().position(|(own, _)| own == name)?;
        self.seen.set(self.seen.get() | 1 << index);
        Some(&self.fields[index].1)
    }

    /// A field that must be there.
    pub(crate) fn get(&self, name: &str) -> Result<&'j Json<'j>> {
        self.maybe(name).ok_or_else(|| self.wrong())
    }

    /// A text.
    pub(crate) fn text(&self, name: &str) -> Result<&'j str> {
        text(self.get(name)?)
    }

    /// An integer from `least` to `most`.
    pub(crate) fn integer(&self, name: &str, least: i64, most: i64) -> Result<i64> {
        integer(self.get(name)?, least, most)
    }

    /// A count up to `most`.
    pub(crate) fn count(&self, name: &str, most: u32) -> Result<u32> {
        self.integer(name, 0, most.into()).map(|count| count as u32)
    }

    /// True, or false where it is missing.
    pub(crate) fn flag(&self, name: &str) -> Result<bool> {
        match self.maybe(name) {
            None => Ok(false),
            Some(Json { value: JsonValue::Bool(true), .. }) => Ok(true),
            Some(json) => Err(wrong(json)),
        }
    }

    /// A finite double, by the sixteen hexadecimal digits of its bits.
    pub(crate) fn double(&self, name: &str) -> Result<f64> {
        double(self.get(name)?)
    }

    /// An integer over 2^64, in decimal.
    pub(crate) fn share(&self, name: &str) -> Result<u128> {
        share(self.get(name)?)
    }

    /// As many bytes, in hexadecimal.
    pub(crate) fn hex<const N: usize>(&self, name: &str) -> Result<[u8; N]> {
        let json = self.get(name)?;
        let bytes = hex(text(json)?).ok_or_else(|| wrong(json))?;
        <[u8; N]>::try_from(bytes.as_slice()).map_err(|_| wrong(json))
    }

    /// Bytes in Base64, at most so many.
    pub(crate) fn base64(&self, name: &str, most: usize) -> Result<Vec<u8>> {
        let json = self.get(name)?;
        base64(json, most)
    }

    /// Refuses a field that nobody read.
    pub(crate) fn finish(self) -> Result<()> {
        let unread = |index: &usize| self.seen.get() >> index & 1 == 0;
        match (0..self.fields.len()).find(unread) {
            Some(index) => Err(wrong(&self.fields[index].1)),
            None => Ok(()),
        }
    }
}

/// A text.
pub(crate) fn text<'j>(json: &'j Json<'j>) -> Result<&'j str> {
    match &json.value {
        JsonValue::Text(text) => Ok(text),
        _ => Err(wrong(json)),
    }
}

/// A list of at most so many values.
pub(crate) fn list<'j>(json: &'j Json<'j>, most: usize) -> Result<&'j [Json<'j>]> {
    match &json.value {
        JsonValue::List(values) if values.len() <= most => Ok(values),
        JsonValue::List(_) => Err(Refused::at(Kind::Size, json.at)),
        _ => Err(wrong(json)),
    }
}

/// An integer from `least` to `most`.
pub(crate) fn integer(json: &Json<'_>, least: i64, most: i64) -> Result<i64> {
    match json.value {
        JsonValue::Number(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(wrong(json)),
    }
}

/// A decimal integer up to 2^64.
pub(crate) fn share(json: &Json<'_>) -> Result<u128> {
    let digits = text(json)?;
    let plain =
        digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    match digits.parse::<u128>() {
        Ok(number) if plain && number <= 1 << 64 => Ok(number),
        _ => Err(wrong(json)),
    }
}

/// A finite double.
pub(crate) fn double(json: &Json<'_>) -> Result<f64> {
    let digits = text(json)?;
    let lower = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match u64::from_str_radix(digits, 16).map(f64::from_bits) {
        Ok(number) if lower && digits.len() == 16 && number.is_finite() => Ok(number),
        _ => Err(wrong(json)),
    }
}

/// The bytes that hexadecimal digits stand for.
pub(crate) fn hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

/// Bytes in Base64, with padding, at most so many: refused before they are allocated.
pub(crate) fn base64(json: &Json<'_>, most: usize) -> Result<Vec<u8>> {
    let letters = text(json)?.as_bytes();
    if letters.len() / 4 * 3 > most.saturating_add(2) {
        return Err(Refused::at(Kind::Size, json.at));
    }
    decoded(letters).filter(|bytes| bytes.len() <= most).ok_or_else(|| wrong(json))
}

fn decoded(letters: &[u8]) -> Option<Vec<u8>> {
    let (groups, rest) = letters.as_chunks::<4>();
    if !rest.is_empty() {
        return None;
    }
    let mut bytes = Vec::with_capacity(3 * groups.len());
    for (index, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|&&letter| letter == b'=').count();
        if padding > 2 || padding > 0 && index + 1 < groups.len() {
            return None;
        }
        let mut word = 0u32;
        for &letter in &group[..4 - padding] {
            let digit = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                b'0'..=b'9' => letter - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            word = word << 6 | u32::from(digit);
        }
        word <<= 6 * padding;
        let own = &word.to_be_bytes()[1..];
        if own[3 - padding..].iter().any(|&byte| byte != 0) {
            return None;
        }
        bytes.extend_from_slice(&own[..3 - padding]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_strict() {
        let of = |letters: &str| decoded(letters.as_bytes());
        assert_eq!(of("").unwrap(), b"");
        assert_eq!(of("TWFu").unwrap(), b"Man");
        assert_eq!(of("TWE=").unwrap(), b"Ma");
        assert_eq!(of("TQ==").unwrap(), b"M");
        for wrong in ["T", "TQ=", "TR==", "TWF=", "T===", "TQ==TWFu", "TW u", "====", "TW-u"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn numbers_are_written_in_one_way() {
        let json = |value: &str| format!("\"{value}\"");
        let shares = ["0", "1", "18446744073709551616"].map(json);
        for (text, number) in shares.iter().zip([0, 1, 1 << 64]) {
            assert_eq!(share(&Json::read(text).unwrap()).unwrap(), number);
        }
        for wrong in ["", "01", "+1", "-1", "18446744073709551617", "1e3", " 1"] {
            assert!(share(&Json::read(&json(wrong)).unwrap()).is_err(), "{wrong}");
        }
        assert_eq!(double(&Json::read("\"3ff0000000000000\"").unwrap()).unwrap(), 1.0);
        for wrong in ["3ff", "3FF0000000000000", "7ff8000000000000", "7ff0000000000000", "+ff0000000000000"] {
            assert!(double(&Json::read(&json(wrong)).unwrap()).is_err(), "{wrong}");
        }
        assert_eq!(hex("00ff"), Some(vec![0, 255]));
        assert_eq!((hex("0"), hex("0F"), hex("gg")), (None, None, None));
    }

    #[test]
    fn a_field_that_nobody_reads_is_refused() {
        let text = "{\"a\":1,\"b\":2,\"c\":3}";
        let json = Json::read(text).unwrap();
        let fields = Fields::of(&json).unwrap();
        assert_eq!(fields.integer("a", 0, 9).unwrap(), 1);
        assert!(fields.maybe("c").is_some() && fields.get("d").is_err());
        assert_eq!(fields.finish().unwrap_err().place, Some(11));
    }
}
