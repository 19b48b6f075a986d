//! Counts of reports about sampled coordinates: `sampled_histogram` and `sampled_sums`.

use bitldp_core::Sampled;
use numpy::{PyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::aggregate::{Argument, counted, width};
use crate::error::to_python;
use crate::numbers::{Whole, count};

/// The two arguments of reports about sampled coordinates.
fn pairs<'py>(
    indices: &Bound<'py, PyAny>,
    codes: &Bound<'py, PyAny>,
    (dimensions, alphabet): (usize, usize),
    form: &str,
    pairs: Option<Whole>,
) -> PyResult<[Argument<'py>; 2]> {
    Ok([
        Argument::new("indices", indices, form, pairs, 1, width(dimensions))?,
        Argument::new("codes", codes, form, pairs, 1, width(alphabet))?,
    ])
}

/// Count how often each code was reported about each coordinate.
///
/// Parameters
/// ----------
/// indices, codes : array of uint8, uint16 or uint32 (packed: uint8)
///     Of each report the coordinate that it is about, and its code; equally many, in C order.
/// dimensions : int
///     Indices are below it: 1 to 2**32.
/// alphabet : int
///     Codes are below it: 1 to 2**32.
/// form : {"codes", "packed"}
///     The form of both; packed ones have as many bits as ``dimensions - 1`` and ``alphabet - 1`` need, and at least one.
/// pairs : int or None
///     How many reports there are: needed for packed ones, and checked for others.
///
/// Returns
/// -------
/// array of uint64, shape (dimensions, alphabet)
///
/// Raises
/// ------
/// ValueError, TypeError, MemoryError
///     As `histogram`.
#[pyfunction]
#[pyo3(signature = (indices, codes, dimensions, alphabet, *, form = "codes", pairs = None))]
pub(crate) fn sampled_histogram<'py>(
    py: Python<'py>,
    indices: &Bound<'py, PyAny>,
    codes: &Bound<'py, PyAny>,
    dimensions: Whole,
    alphabet: Whole,
    form: &str,
    pairs: Option<Whole>,
) -> PyResult<Bound<'py, PyArrayDyn<u64>>> {
    let sizes = (count("dimensions", dimensions)?, count("alphabet", alphabet)?);
    let [indices, codes] = self::pairs(indices, codes, sizes, form, pairs)?;
    let sampled = Sampled::new(indices.batch(None)?, codes.batch(None)?, sizes.0).map_err(to_python)?;
    counted(py, codes.array.len(), &[sizes.0, sizes.1], || sampled.histogram(sizes.1))
}

/// Count the codes about each coordinate, add them up, and add up their squares.
///
/// Parameters
/// ----------
/// indices, codes, dimensions, alphabet, form, pairs
///     As for `sampled_histogram`.
///
/// Returns
/// -------
/// array of uint64, shape (dimensions, 3)
///     The number of codes, their sum and the sum of their squares.
///
/// Raises
/// ------
/// ValueError, TypeError, MemoryError
///     As `sums`.
#[pyfunction]
#[pyo3(signature = (indices, codes, dimensions, alphabet, *, form = "codes", pairs = None))]
pub(crate) fn sampled_sums<'py>(
    py: Python<'py>,
    indices: &Bound<'py, PyAny>,
    codes: &Bound<'py, PyAny>,
    dimensions: Whole,
    alphabet: Whole,
    form: &str,
    pairs: Option<Whole>,
) -> PyResult<Bound<'py, PyArrayDyn<u64>>> {
    let sizes = (count("dimensions", dimensions)?, count("alphabet", alphabet)?);
    let [indices, codes] = self::pairs(indices, codes, sizes, form, pairs)?;
    let sampled = Sampled::new(indices.batch(None)?, codes.batch(None)?, sizes.0).map_err(to_python)?;
    counted(py, codes.array.len(), &[sizes.0, 3], || sampled.sums(sizes.1))
}
