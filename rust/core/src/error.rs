//! Errors: why an operation was refused, one sentence a variant.

use std::borrow::Cow;
use std::fmt;

/// The result of an operation of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why an operation was refused.
///
/// No variant holds a private value: a bad element of an input is named by its flat index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A parameter is outside what is allowed.
    Argument {
        /// The parameter.
        name: &'static str,
        /// The fault, and what is allowed.
        reason: String,
    },
    /// An element of an input array is outside what is allowed.
    Value {
        /// The array.
        name: &'static str,
        /// The element's position in the array, counted in C order.
        index: usize,
        /// The values that are allowed.
        reason: Cow<'static, str>,
    },
    /// An input array has the wrong number of elements.
    Shape {
        /// The array.
        name: &'static str,
        /// The fault, and what is allowed.
        reason: String,
    },
    /// The output buffer does not fit the answer.
    Output {
        /// The fault, and what is allowed.
        reason: String,
    },
    /// There is no memory for the answer, or for working on it.
    Memory {
        /// How much was asked for.
        bytes: usize,
    },
    /// The operating system gave no random bytes for a key.
    Entropy,
    /// `BITLDP_THREADS` says what is no number of threads.
    Threads {
        /// The variable's value, and what is allowed.
        reason: String,
    },
    /// The instruction set asked for is unknown, or this processor lacks it.
    Isa {
        /// The request, and what is allowed.
        reason: String,
    },
}

/// The words of an error, formatted: none without the feature `reasons`, where nobody reads them.
macro_rules! reason {
    ($($words:tt)*) => {
        if cfg!(feature = "reasons") { format!($($words)*) } else { String::new() }
    };
}
pub(crate) use reason;

/// The same of words that stand as they are.
#[inline]
pub(crate) fn words(text: &'static str) -> String {
    if cfg!(feature = "reasons") { text.into() } else { String::new() }
}

/// A parameter outside what is allowed.
pub(crate) fn argument(name: &'static str, reason: String) -> Error {
    Error::Argument { name, reason }
}

/// An element of an input array that is not allowed.
pub(crate) fn element(name: &'static str, index: usize, reason: impl Into<Cow<'static, str>>) -> Error {
    Error::Value { name, index, reason: reason.into() }
}

/// Zeros, if there is memory for them: what is allocated for a caller's number goes through here.
pub(crate) fn zeros<T: Clone + Default>(count: usize) -> Result<Vec<T>> {
    let mut zeros = Vec::new();
    let refused = |_| Error::Memory { bytes: count.saturating_mul(size_of::<T>()) };
    zeros.try_reserve_exact(count).map_err(refused)?;
    zeros.resize(count, T::default());
    Ok(zeros)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Argument { name, reason } | Error::Shape { name, reason } => write!(f, "{name}: {reason}"),
            Error::Value { name, index, reason } => {
                write!(f, "{name}: element {index} (in C order) is not allowed; {reason}")
            }
            Error::Output { reason } => write!(f, "out: {reason}"),
            Error::Memory { bytes } => write!(f, "not enough memory for {bytes} bytes"),
            Error::Entropy => f.write_str("the operating system gave no random bytes for a key"),
            Error::Threads { reason } => write!(f, "BITLDP_THREADS: {reason}"),
            Error::Isa { reason } => write!(f, "BITLDP_ISA: {reason}"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_is_one_sentence_that_names_its_argument() {
        let text = |error: Error| error.to_string();
        assert_eq!(
            text(Error::Argument { name: "bits", reason: "must be 2 to 32, not 1".into() }),
            "bits: must be 2 to 32, not 1"
        );
        assert_eq!(
            text(Error::Value { name: "x", index: 7, reason: "must not be NaN".into() }),
            "x: element 7 (in C order) is not allowed; must not be NaN"
        );
        assert_eq!(text(Error::Shape { name: "x", reason: "3 features".into() }), "x: 3 features");
        assert_eq!(text(Error::Output { reason: "too small".into() }), "out: too small");
        assert_eq!(text(Error::Memory { bytes: 8 }), "not enough memory for 8 bytes");
        assert!(text(Error::Entropy).contains("random"));
        assert!(text(Error::Isa { reason: "unknown".into() }).contains("BITLDP_ISA"));
    }
}
