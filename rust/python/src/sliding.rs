//! Distributions from counts of reports: `sliding_masses`.

use bitldp_core::{Maximization, Sliding};
use numpy::{PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::arrays::copied;
use crate::error::to_python;
use crate::numbers::{Whole, count, threads};

/// Find the distributions of inputs that make counts of reports likely, where a window slides over the reports' cells.
///
/// A report lies in the window of its input with probability ``high`` and elsewhere otherwise, evenly in both; input i has
/// the cells i to i + width - 1. Expectation maximization from the uniform distribution, O(cells) an iteration.
///
/// Parameters
/// ----------
/// counts : array of uint64, shape (rows, cells)
///     Reports by cell; a distribution is found for each row. At least one report a row.
/// width : int
///     Cells of a window, 1 to cells - 1.
/// high : float
///     Above 0 and below 1.
/// smoothing : bool
///     Whether an iteration ends with the weighted mean [1/4, 1/2, 1/4] of neighbours (EMS).
/// gain : float
///     It ends where the log-likelihood moves by less in each of eight iterations, on average.
/// most : int
///     The most iterations.
/// threads : int or None
///     Number of threads; the distributions do not depend on it.
///
/// Returns
/// -------
/// array of float64, shape (rows, cells - width + 1)
///     Each row sums to 1.
///
/// Raises
/// ------
/// ValueError, TypeError, MemoryError
///     For counts of another form, or a number outside its range.
#[pyfunction]
#[pyo3(signature = (counts, width, high, *, smoothing = true, gain = 1e-3, most = None, threads = None))]
#[expect(clippy::too_many_arguments, reason = "they are the arguments of the Python function")]
pub(crate) fn sliding_masses<'py>(
    py: Python<'py>,
    counts: &Bound<'py, PyAny>,
    width: Whole,
    high: f64,
    smoothing: bool,
    gain: f64,
    most: Option<Whole>,
    threads: Option<Whole>,
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let most = most.map_or(Ok(10_000), |most| count("most", most))?;
    let (width, threads) = (count("width", width)?, self::threads(threads)?);
    let counts: PyReadonlyArray2<'py, u64> = counts
        .extract()
        .map_err(|_| PyTypeError::new_err("counts: an array of uint64 of shape (rows, cells) is needed"))?;
    let (rows, cells) = (counts.shape()[0], counts.shape()[1]);
    let law = Sliding::new(cells, width, high).map_err(to_python)?;
    let numbers = copied(counts.as_array())?;
    let how = Maximization { smoothing, gain, most };
    let masses = py.detach(|| law.maximize(&numbers, how, threads)).map_err(to_python)?;
    PyArray1::from_vec(py, masses).reshape([rows, law.inputs()].as_slice())
}
