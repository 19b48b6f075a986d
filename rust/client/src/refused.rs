//! Refusals: what was wrong, and where, without a private value.

use std::fmt;

use bitldp_core::Error;

/// The reason of a refusal. Its number is the `kind` of the C face; 0 stands for success there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Kind {
    /// The document is no JSON of the accepted form: integers, texts, lists, objects without repeated names.
    Syntax = 1,
    /// The document is larger, deeper or asks for larger tables than is allowed.
    Size = 2,
    /// The document has a version of the schema that this build does not know.
    Version = 3,
    /// A field is missing, unknown, or of another type or range than the schema says.
    Field = 4,
    /// The document's checksum is not that of its other fields.
    Checksum = 5,
    /// The integers of a channel or of a codec make no law.
    Law = 6,
    /// The stated epsilon or delta is not the one of the integers.
    Epsilon = 7,
    /// The epsilon or delta is above the host's limit.
    Limit = 8,
    /// The document's own test gave other bytes.
    Golden = 9,
    /// The values are of another type, or are no whole records.
    Shape = 10,
    /// A value is outside what the document allows.
    Value = 11,
    /// The buffer for reports is not as long as the reports are.
    Output = 12,
    /// The operating system gave no random bytes.
    Entropy = 13,
    /// The budget is spent, or the document states one and no ledger was given.
    Budget = 14,
    /// The ledger could not be read or written.
    Ledger = 15,
    /// No memory is left.
    Memory = 16,
    /// The document has no keyed release, or keys must be fresh here.
    Keyed = 17,
    /// A null pointer.
    Pointer = 18,
    /// A kind of channel, codec or draw that this build does not know.
    Unknown = 19,
}

impl Kind {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Kind; 19] = [
        Kind::Syntax,
        Kind::Size,
        Kind::Version,
        Kind::Field,
        Kind::Checksum,
        Kind::Law,
        Kind::Epsilon,
        Kind::Limit,
        Kind::Golden,
        Kind::Shape,
        Kind::Value,
        Kind::Output,
        Kind::Entropy,
        Kind::Budget,
        Kind::Ledger,
        Kind::Memory,
        Kind::Keyed,
        Kind::Pointer,
        Kind::Unknown,
    ];

    /// One sentence, with a zero byte behind it for C.
    const fn terminated(self) -> &'static str {
        match self {
            Kind::Syntax => "document: no JSON of integers, texts, lists and objects\0",
            Kind::Size => "document: larger or deeper than is allowed\0",
            Kind::Version => "document: of a version that this build does not know\0",
            Kind::Field => "document: a field is missing, unknown or of the wrong type\0",
            Kind::Checksum => "document: its sha256 is not that of its fields\0",
            Kind::Law => "document: its integers make no law\0",
            Kind::Epsilon => "document: its epsilon or delta does not follow from its integers\0",
            Kind::Limit => "document: its epsilon or delta is above the limit\0",
            Kind::Golden => "document: its own test gave other bytes\0",
            Kind::Shape => "values: of another type, or no whole records\0",
            Kind::Value => "values: one is outside what the document allows\0",
            Kind::Output => "out: not as long as the reports are\0",
            Kind::Entropy => "the operating system gave no random bytes\0",
            Kind::Budget => "the budget is spent, or no ledger was given\0",
            Kind::Ledger => "the ledger could not be read or written\0",
            Kind::Memory => "no memory is left\0",
            Kind::Keyed => "document: it has no keyed release\0",
            Kind::Pointer => "a pointer is null\0",
            Kind::Unknown => "document: of a kind of mechanism that this build does not know\0",
        }
    }

    /// One sentence.
    #[must_use]
    pub fn reason(self) -> &'static str {
        self.terminated().trim_end_matches('\0')
    }

    /// The sentence as C reads it, by the number of the reason; a sentence of its own for success and for other numbers.
    #[must_use]
    pub fn c_reason(number: i32) -> &'static std::ffi::CStr {
        let kind = Kind::ALL.into_iter().find(|kind| *kind as i32 == number);
        let text = kind.map_or(if number == 0 { "done\0" } else { "unknown\0" }, Kind::terminated);
        std::ffi::CStr::from_bytes_with_nul(text.as_bytes()).unwrap_or(c"unknown")
    }
}

/// A refusal. It holds no value of the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The reason.
    pub kind: Kind,
    /// The position: a byte of the document, or a value among those that were given.
    pub place: Option<u64>,
}

impl Refused {
    /// A refusal at a byte of the document, or at a value.
    pub(crate) fn at(kind: Kind, place: usize) -> Refused {
        Refused { kind, place: Some(place as u64) }
    }
}

impl From<Kind> for Refused {
    fn from(kind: Kind) -> Refused {
        Refused { kind, place: None }
    }
}

/// Refusals of the core while values are randomized.
impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        match error {
            Error::Value { index, .. } => Refused::at(Kind::Value, index),
            Error::Argument { .. } | Error::Shape { .. } => Kind::Shape.into(),
            Error::Output { .. } => Kind::Output.into(),
            Error::Memory { .. } => Kind::Memory.into(),
            Error::Entropy => Kind::Entropy.into(),
            Error::Threads { .. } | Error::Isa { .. } => Kind::Law.into(),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.reason())?;
        match self.place {
            Some(place) => write!(f, " (at {place})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refused {}

/// The result of an operation of this crate.
pub type Result<T> = std::result::Result<T, Refused>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_sentence_of_its_own() {
        let mut reasons: Vec<_> = (-1..21).map(|number| Kind::c_reason(number).to_str().unwrap()).collect();
        assert_eq!((reasons[0], reasons[1], reasons[21]), ("unknown", "done", "unknown"));
        reasons.sort_unstable();
        reasons.dedup();
        assert_eq!(reasons.len(), Kind::ALL.len() + 2);
        assert!(Kind::ALL.iter().zip(1..).all(|(&kind, number)| kind as i32 == number));
    }

    #[test]
    fn a_refusal_says_where() {
        assert_eq!(Refused::at(Kind::Memory, 7).to_string(), "no memory is left (at 7)");
        assert_eq!(Refused::from(Kind::Memory).to_string(), "no memory is left");
    }
}
