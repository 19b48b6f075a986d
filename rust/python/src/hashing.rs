//! Public hash functions: `hash_cells` and `hash_supports` of words, `text_digests` of texts.

use bitldp_core::Hashing;
use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::arrays::detached;
use crate::error::to_python;
use crate::numbers::{Whole, count, threads};

/// A C-contiguous array of one axis.
fn line<'py, T: Element>(
    name: &str,
    array: &Bound<'py, PyAny>,
    dtype: &str,
) -> PyResult<PyReadonlyArray1<'py, T>> {
    let wrong =
        || PyTypeError::new_err(format!("{name}: a contiguous array of {dtype} of one axis is needed"));
    let result: PyReadonlyArray1<'py, T> = array.extract().map_err(|_| wrong())?;
    result.as_slice().map_err(|_| wrong())?;
    Ok(result)
}

/// Hash each word by the public function of its own seed.
///
/// Parameters
/// ----------
/// seeds : array of uint32, shape (n,)
/// words : array of uint64, shape (n,)
/// cells : int
///     2 to 65536.
///
/// Returns
/// -------
/// array of uint32, shape (n,)
///     Cells, below `cells`. Over uniform seeds, those of two words are independent and uniform, within 2**-32.
///
/// Raises
/// ------
/// ValueError, TypeError, MemoryError
///     For arrays of another form or of different lengths, or a number outside its range.
#[pyfunction]
pub(crate) fn hash_cells<'py>(
    py: Python<'py>,
    seeds: &Bound<'py, PyAny>,
    words: &Bound<'py, PyAny>,
    cells: Whole,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let hashing = Hashing::new(count("cells", cells)?).map_err(to_python)?;
    let (seeds, words) = (line::<u32>("seeds", seeds, "uint32")?, line::<u64>("words", words, "uint64")?);
    let (seeds, words) = (seeds.as_slice()?, words.as_slice()?);
    let result = detached(py, words.len(), || hashing.cells(seeds, words)).map_err(to_python)?;
    Ok(PyArray1::from_vec(py, result))
}

/// Count the reports that support each word: those whose cell is the word's under the function of their seed.
///
/// Parameters
/// ----------
/// seeds, reports : array of uint32, shape (n,)
///     The seed and the reported cell of each report.
/// words : array of uint64, shape (m,)
/// cells : int
///     2 to 65536.
/// threads : int or None
///     Number of threads; the counts do not depend on it.
///
/// Returns
/// -------
/// array of uint64, shape (m,)
///
/// Raises
/// ------
/// ValueError, TypeError, MemoryError
///     As `hash_cells`.
#[pyfunction]
#[pyo3(signature = (seeds, reports, words, cells, *, threads = None))]
pub(crate) fn hash_supports<'py>(
    py: Python<'py>,
    seeds: &Bound<'py, PyAny>,
    reports: &Bound<'py, PyAny>,
    words: &Bound<'py, PyAny>,
    cells: Whole,
    threads: Option<Whole>,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let hashing = Hashing::new(count("cells", cells)?).map_err(to_python)?;
    let threads = self::threads(threads)?;
    let (seeds, reports) =
        (line::<u32>("seeds", seeds, "uint32")?, line::<u32>("reports", reports, "uint32")?);
    let words = line::<u64>("words", words, "uint64")?;
    let (seeds, reports, words) = (seeds.as_slice()?, reports.as_slice()?, words.as_slice()?);
    let result = py.detach(|| hashing.supports(seeds, reports, words, threads)).map_err(to_python)?;
    Ok(PyArray1::from_vec(py, result))
}

/// Digest each text of a column by SHA-256.
///
/// Parameters
/// ----------
/// offsets : array of int64, shape (n + 1,)
///     Where each text begins in `texts`, and where the last one ends.
/// texts : array of uint8
///     The bytes of all texts.
/// threads : int or None
///
/// Returns
/// -------
/// array of uint8, shape (n, 32)
///     A digest a row.
///
/// Raises
/// ------
/// ValueError, TypeError, MemoryError
///     For arrays of another form, or offsets that fall or reach past the end.
#[pyfunction]
#[pyo3(signature = (offsets, texts, *, threads = None))]
pub(crate) fn text_digests<'py>(
    py: Python<'py>,
    offsets: &Bound<'py, PyAny>,
    texts: &Bound<'py, PyAny>,
    threads: Option<Whole>,
) -> PyResult<Bound<'py, PyArray2<u8>>> {
    let threads = self::threads(threads)?;
    let (offsets, texts) = (line::<i64>("offsets", offsets, "int64")?, line::<u8>("texts", texts, "uint8")?);
    let (offsets, texts) = (offsets.as_slice()?, texts.as_slice()?);
    let work = || bitldp_core::text_digests(offsets, texts, threads);
    let result = detached(py, texts.len() + 64 * offsets.len(), work).map_err(to_python)?;
    result.into_flattened().into_pyarray(py).reshape([offsets.len() - 1, 32])
}
