//! Rows of a table as text: the fields of columns that are numbers, or words, one after another (RFC 4180).

mod numbers;

use crate::error::{Error, Result, reason};
use crate::io::Input;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub enum Fields<'a> {
    /// Numbers, in the fewest digits that give them back.
    Numbers(Input<'a>),
    /// Words.
    Words(Words<'a>),
}

/// Words that lie one behind another in some bytes, as Arrow has them.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    /// Which word each row has; none where it is negative. Without it, each row has its own.
    pub positions: Option<&'a [i32]>,
    /// Where each word begins in the bytes, and where the last one ends.
    pub offsets: &'a [i64],
    /// The bytes of all words.
    pub bytes: &'a [u8],
    /// True where they are written in quotes, and quotes in them doubled.
    pub quoted: bool,
}

/// How many there are: a kept column may be private.
impl std::fmt::Debug for Words<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Words(<{} words>)", self.offsets.len().saturating_sub(1))
    }
}

impl Fields<'_> {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        match self {
            Fields::Numbers(numbers) => numbers.len(),
            Fields::Words(words) => words.rows(),
        }
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

const QUOTE: u8 = b'"';

impl Words<'_> {
    fn rows(&self) -> usize {
        self.positions.map_or(self.offsets.len().saturating_sub(1), <[i32]>::len)
    }

    /// # Errors
    /// Offsets or positions that do not fit.
    fn check(&self) -> Result<()> {
        let wrong = |name, reason: &str| Err(Error::Shape { name, reason: reason.into() });
        let rising = self.offsets.is_sorted() && self.offsets.first().is_some_and(|&first| first >= 0);
        if !rising || self.offsets.last().is_some_and(|&last| last as u64 > self.bytes.len() as u64) {
            return wrong("offsets", "must not be empty or decrease, and must end within the bytes");
        }
        let words = self.offsets.len() - 1;
        if self
            .positions
            .is_some_and(|positions| positions.iter().any(|&position| i64::from(position) >= words as i64))
        {
            return wrong("positions", "a position is beyond the last word");
        }
        Ok(())
    }

    /// Bytes of a word: none where another thread has rewritten the offsets or positions since they were checked.
    fn word(&self, position: usize) -> &[u8] {
        let ends = self.offsets.get(position..).and_then(<[i64]>::first_chunk);
        ends.and_then(|&[start, end]| self.bytes.get(start as usize..end as usize)).unwrap_or_default()
    }

    fn write(&self, row: usize, doubled: bool, out: &mut Vec<u8>) {
        let position = match self.positions {
            None => row,
            Some(positions) => match usize::try_from(positions[row]) {
                Ok(position) => position,
                Err(_) => return,
            },
        };
        let word = self.word(position);
        if !self.quoted {
            out.extend_from_slice(word);
            return;
        }
        out.push(QUOTE);
        if doubled {
            for part in word.split_inclusive(|&byte| byte == QUOTE) {
                out.extend_from_slice(part);
                out.extend(part.last().filter(|&&byte| byte == QUOTE));
            }
        } else {
            out.extend_from_slice(word);
        }
        out.push(QUOTE);
    }
}

/// The rows of columns of one length: fields with `delimiter` between them, and a line feed behind each row.
///
/// # Errors
/// Columns of different lengths, or words whose positions do not fit.
pub fn rows(columns: &[Fields<'_>], delimiter: u8) -> Result<Vec<u8>> {
    let rows = columns.first().map_or(0, Fields::len);
    if let Some(other) = columns.iter().map(Fields::len).find(|&other| other != rows) {
        let reason = reason!("{other} rows of one, where another has {rows}");
        return Err(Error::Shape { name: "columns", reason });
    }
    // Few columns have a quote in them.
    let mut doubled = Vec::new();
    for column in columns {
        if let Fields::Words(words) = column {
            words.check()?;
        }
        doubled.push(matches!(column, Fields::Words(words) if words.quoted && words.bytes.contains(&QUOTE)));
    }
    let mut out = Vec::new();
    for row in 0..rows {
        for (position, (column, &doubled)) in columns.iter().zip(&doubled).enumerate() {
            if position > 0 {
                out.push(delimiter);
            }
            match column {
                Fields::Numbers(given) => numbers::write(*given, row, &mut out),
                Fields::Words(words) => words.write(row, doubled, &mut out),
            }
        }
        out.push(b'\n');
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Words<'_> =
        Words { positions: None, offsets: &[1, 2, 5, 5], bytes: b"-ab\"c-", quoted: true };

    fn text(columns: &[Fields<'_>]) -> String {
        String::from_utf8(rows(columns, b';').unwrap()).unwrap()
    }

    #[test]
    fn fields_stand_beside_each_other() {
        let plain = Words { positions: Some(&[1, -1, 0]), offsets: &[0, 2, 3], bytes: b"xyz", quoted: false };
        let columns = [
            Fields::Numbers(Input::F64(&[1.5, -2.0, 0.25])),
            Fields::Words(NAMES),
            Fields::Words(plain),
            Fields::Numbers(Input::I8(&[-128, 0, 7])),
        ];
        assert_eq!(text(&columns), "1.5;\"a\";z;-128\n-2;\"b\"\"c\";;0\n0.25;\"\";xy;7\n");
        assert_eq!(text(&columns[..1]), "1.5\n-2\n0.25\n");
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let words = |positions, offsets| Words { positions, offsets, ..NAMES };
        for wrong in [
            words(None, &[]),
            words(None, &[0, 7]),
            words(None, &[2, 1]),
            words(None, &[-1, 1]),
            words(Some(&[3]), NAMES.offsets),
        ] {
            assert!(
                rows(&[Fields::Words(wrong)], b',').is_err(),
                "{:?} {:?}",
                wrong.positions,
                wrong.offsets
            );
        }
        let short = Fields::Numbers(Input::U8(&[1]));
        assert!(rows(&[Fields::Words(NAMES), short], b',').is_err());
    }

    #[test]
    fn words_whose_positions_changed_after_the_check_are_empty() {
        for offsets in [[0, 7], [2, 1], [-1, 1], [-2, -1]] {
            let words = Words { offsets: &offsets, ..NAMES };
            assert!(words.check().is_err());
            assert_eq!(words.word(0), b"");
        }
        assert_eq!(NAMES.word(9), b"");
        assert_eq!(NAMES.word(0), b"a");
    }

    #[test]
    fn words_are_not_printed() {
        assert_eq!(format!("{:?}", Fields::Words(NAMES)), "Words(Words(<3 words>))");
    }
}
