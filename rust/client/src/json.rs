//! Canonical JSON, as documents are written: integers, texts, lists, and objects whose names ascend.
//!
//! A document has one text: no spaces, no number but whole ones to 2^53 - 1, no escapes but those that JSON demands, in
//! one spelling. So two readers cannot take it for different things, and its checksum is one of its bytes. Length, depth
//! and the number of values are limited while it is read.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

use crate::refused::{Kind, Refused, Result};

/// Bytes of a document at most: the largest tables have half a megabyte.
const MOST_BYTES: usize = 8_000_000;

/// Lists and objects inside one another at most.
const MOST_DEPTH: usize = 16;

/// Values of a document at most.
const MOST_VALUES: usize = 1 << 18;

/// The largest integer that every reader of JSON keeps.
const MOST_NUMBER: i64 = (1 << 53) - 1;

/// A value, and the byte that it begins with.
#[derive(Debug)]
pub(crate) struct Json<'a> {
    pub(crate) at: usize,
    pub(crate) value: JsonValue<'a>,
}

/// The kinds of values.
#[derive(Debug)]
pub(crate) enum JsonValue<'a> {
    Null,
    Bool(bool),
    Number(i64),
    Text(Cow<'a, str>),
    List(Vec<Json<'a>>),
    /// In the order of their names.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// The value of a whole document; newlines around it are no part of it.
    pub(crate) fn read(text: &'a str) -> Result<Json<'a>> {
        if text.len() > MOST_BYTES {
            return Err(Kind::Size.into());
        }
        let text = text.trim_matches('\n');
        let mut reader = Reader { text, at: 0, values: 0 };
        let json = reader.value(1)?;
        if reader.at < text.len() { Err(reader.wrong()) } else { Ok(json) }
    }
}

/// SHA-256 of the canonical text of a document without the field `sha256`, whose value begins at a byte of it.
pub(crate) fn sha256_without(text: &str, value: usize) -> Option<[u8; 32]> {
    /// Bytes before the value: the name and a colon.
    const NAME: &str = "\"sha256\":";
    /// Bytes of the value and of the comma behind it; another field always follows.
    const VALUE: usize = 64 + 2 + 1;
    let bytes = text.trim_matches('\n').as_bytes();
    let (before, rest) = bytes.split_at_checked(value.checked_sub(NAME.len())?)?;
    let (cut, after) = rest.split_at_checked(NAME.len() + VALUE)?;
    if cut.last() != Some(&b',') {
        return None;
    }
    Some(Sha256::new().chain_update(before).chain_update(after).finalize().into())
}

/// A position in a document.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    values: usize,
}

impl<'a> Reader<'a> {
    fn wrong(&self) -> Refused {
        Refused::at(Kind::Syntax, self.at)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// True, and past it, where the next byte is this one.
    fn takes(&mut self, byte: u8) -> bool {
        let taken = self.peek() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.takes(byte) { Ok(()) } else { Err(self.wrong()) }
    }

    fn word(&mut self, word: &str, value: JsonValue<'a>) -> Result<JsonValue<'a>> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.wrong());
        }
        self.at += word.len();
        Ok(value)
    }

    /// A value inside `depth - 1` others.
    fn value(&mut self, depth: usize) -> Result<Json<'a>> {
        let at = self.at;
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err(Refused::at(Kind::Size, at));
        }
        let value = match self.peek() {
            Some(b'[' | b'{') if depth > MOST_DEPTH => return Err(Refused::at(Kind::Size, at)),
            Some(b'n') => self.word("null", JsonValue::Null)?,
            Some(b't') => self.word("true", JsonValue::Bool(true))?,
            Some(b'f') => self.word("false", JsonValue::Bool(false))?,
            Some(b'"') => JsonValue::Text(self.string()?),
            Some(b'[') => self.list(depth)?,
            Some(b'{') => self.object(depth)?,
            _ => JsonValue::Number(self.number()?),
        };
        Ok(Json { at, value })
    }

    fn list(&mut self, depth: usize) -> Result<JsonValue<'a>> {
        self.at += 1;
        let mut values = Vec::new();
        if self.takes(b']') {
            return Ok(JsonValue::List(values));
        }
        loop {
            values.push(self.value(depth + 1)?);
            if self.takes(b']') {
                return Ok(JsonValue::List(values));
            }
            self.expect(b',')?;
        }
    }

    fn object(&mut self, depth: usize) -> Result<JsonValue<'a>> {
        self.at += 1;
        let mut fields: Vec<(Cow<'a, str>, Json<'a>)> = Vec::new();
        if self.takes(b'}') {
            return Ok(JsonValue::Object(fields));
        }
        loop {
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.wrong());
            }
            let name = self.string()?;
            if fields.last().is_some_and(|(before, _)| *before >= name) {
                return Err(Refused::at(Kind::Syntax, start));
            }
            self.expect(b':')?;
            fields.push((name, self.value(depth + 1)?));
            if self.takes(b'}') {
                return Ok(JsonValue::Object(fields));
            }
            self.expect(b',')?;
        }
    }

    /// An integer without leading zeros; minus zero is none.
    fn number(&mut self) -> Result<i64> {
        let start = self.at;
        let negative = self.takes(b'-');
        let digits = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        let written = &self.text[digits..self.at];
        let zero = written.starts_with('0') && (written.len() > 1 || negative);
        match self.text[start..self.at].parse() {
            Ok(number) if !zero && (-MOST_NUMBER..=MOST_NUMBER).contains(&number) => Ok(number),
            _ => Err(Refused::at(Kind::Syntax, start)),
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>> {
        self.at += 1;
        let start = self.at;
        let plain = self.run();
        if self.takes(b'"') {
            return Ok(Cow::Borrowed(&self.text[start..plain]));
        }
        let mut text = String::from(&self.text[start..plain]);
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(text));
                }
                Some(b'\\') => text.push(self.escape()?),
                _ => return Err(self.wrong()),
            }
            let start = self.at;
            let end = self.run();
            text.push_str(&self.text[start..end]);
        }
    }

    /// Goes past letters that stand for themselves; says where they end.
    fn run(&mut self) -> usize {
        while self.peek().is_some_and(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
            self.at += 1;
        }
        self.at
    }

    /// One of the escapes that JSON demands, in the shortest spelling.
    fn escape(&mut self) -> Result<char> {
        let rest = &self.text.as_bytes()[self.at + 1..];
        let (letter, length) = match rest {
            [b'"', ..] => ('"', 2),
            [b'\\', ..] => ('\\', 2),
            [b'b', ..] => ('\x08', 2),
            [b'f', ..] => ('\x0c', 2),
            [b'n', ..] => ('\n', 2),
            [b'r', ..] => ('\r', 2),
            [b't', ..] => ('\t', 2),
            [b'u', b'0', b'0', high @ b'0'..=b'1', low @ (b'0'..=b'9' | b'a'..=b'f'), ..] => {
                let low = if low.is_ascii_digit() { low - b'0' } else { low - b'a' + 10 };
                let code = (high - b'0') << 4 | low;
                if matches!(code, 8 | 9 | 10 | 12 | 13) {
                    return Err(self.wrong());
                }
                (char::from(code), 6)
            }
            _ => return Err(self.wrong()),
        };
        self.at += length;
        Ok(letter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Kind {
        Json::read(text).unwrap_err().kind
    }

    #[test]
    fn what_is_not_canonical_is_refused() {
        let wrong = [
            "",
            " ",
            "{",
            "[1,]",
            "[1 2]",
            "[1, 2]",
            " 1",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\" 1}",
            "01",
            "-0",
            "1.0",
            "1e3",
            "+1",
            "-",
            "NaN",
            "nul",
            "tru",
            "\"",
            "\"\\\"",
            "\"\\x\"",
            "\"\\/\"",
            "\"\\u0041\"",
            "\"\\u001\"",
            "\"\\u001F\"",
            "\"\\u000a\"",
            "\"\\ud800\"",
            "\"\n\"",
            "1 1",
            "{\"a\":1,\"a\":2}",
            "{\"b\":1,\"a\":2}",
            "9007199254740992",
            "\"\\",
        ];
        for text in wrong {
            assert_eq!(refused(text), Kind::Syntax, "{text}");
        }
        assert_eq!(refused(&"[".repeat(100)), Kind::Size);
        assert_eq!(refused(&" ".repeat(MOST_BYTES + 1)), Kind::Size);
        assert_eq!(refused(&format!("[0{}]", ",0".repeat(MOST_VALUES))), Kind::Size);
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Json::read(&nested(MOST_DEPTH)).is_ok());
        assert_eq!(refused(&nested(MOST_DEPTH + 1)), Kind::Size);
    }

    #[test]
    fn texts_are_read_with_their_escapes() {
        let text = "\"\u{e9}\u{1f600}\\n\\u001f\\\\\\\"\u{7f}\\b\\f\\r\\t~\"";
        let JsonValue::Text(read) = Json::read(text).unwrap().value else { panic!("a text") };
        assert_eq!(read, "\u{e9}\u{1f600}\n\x1f\\\"\x7f\x08\x0c\r\t~");
    }

    #[test]
    fn the_checksum_is_of_the_other_fields() {
        let digits = "0".repeat(64);
        let text = format!("{{\"a\":1,\"sha256\":\"{digits}\",\"unit\":\"record\"}}\n");
        let expected = <[u8; 32]>::from(Sha256::digest("{\"a\":1,\"unit\":\"record\"}"));
        assert_eq!(sha256_without(&text, 16), Some(expected));
        assert_eq!(sha256_without(&text, 3), None);
        assert_eq!(sha256_without(&text, 10_000), None);
    }
}
