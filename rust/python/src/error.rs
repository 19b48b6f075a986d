//! The core's errors as Python exceptions.

use bitldp_core::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};

/// Exhaustive on purpose: a new kind of error must be given its exception here.
pub(crate) fn to_python(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Argument { .. } | Error::Value { .. } | Error::Shape { .. } | Error::Output { .. } => {
            PyValueError::new_err(text)
        }
        Error::Memory { .. } => PyMemoryError::new_err(text),
        Error::Entropy | Error::Isa { .. } | Error::Threads { .. } => PyRuntimeError::new_err(text),
    }
}
