//! `csv_rows`: columns of a table as the rows of a text.

use bitldp_core::{Fields, Words};
use numpy::{IntoPyArray, PyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::arrays::{contiguous_of, detached, input, slice, wrong_dtype};
use crate::error::to_python;
use crate::numbers::List;

/// The numbers that are written.
const NUMBERS: &str = "float32, float64 and integers are";

/// A column: an array of numbers, or the positions, offsets and bytes of words, and whether they are in quotes.
#[derive(FromPyObject)]
pub(crate) enum Column<'py> {
    Words(Option<Bound<'py, PyAny>>, Bound<'py, PyAny>, Bound<'py, PyAny>, bool),
    Numbers(Bound<'py, PyAny>),
}

/// The arrays of a column, which are borrowed while it is written.
enum Arrays<'py> {
    Words(Option<Bound<'py, PyUntypedArray>>, Bound<'py, PyUntypedArray>, Bound<'py, PyUntypedArray>, bool),
    Numbers(Bound<'py, PyUntypedArray>),
}

impl<'py> Column<'py> {
    fn arrays(&self) -> PyResult<Arrays<'py>> {
        let line = |name: &str, array: &Bound<'py, PyAny>| {
            let array = contiguous_of(name, array)?;
            if array.ndim() == 1 {
                return Ok(array);
            }
            Err(PyValueError::new_err(format!("{name}: an array of one axis is needed")))
        };
        Ok(match self {
            Column::Numbers(numbers) => Arrays::Numbers(line("columns", numbers)?),
            Column::Words(positions, offsets, bytes, quoted) => Arrays::Words(
                positions.as_ref().map(|positions| line("positions", positions)).transpose()?,
                line("offsets", offsets)?,
                line("bytes", bytes)?,
                *quoted,
            ),
        })
    }
}

impl Arrays<'_> {
    fn fields(&self) -> PyResult<Fields<'_>> {
        Ok(match self {
            Arrays::Numbers(numbers) => Fields::Numbers(input(numbers, NUMBERS)?),
            Arrays::Words(positions, offsets, bytes, quoted) => {
                let positions = positions.as_ref().map(|positions| {
                    slice::<i32>(positions).ok_or_else(|| wrong_dtype("positions", positions, "int32 is"))
                });
                Fields::Words(Words {
                    positions: positions.transpose()?,
                    offsets: slice::<i64>(offsets)
                        .ok_or_else(|| wrong_dtype("offsets", offsets, "int64 is"))?,
                    bytes: slice::<u8>(bytes).ok_or_else(|| wrong_dtype("bytes", bytes, "uint8 is"))?,
                    quoted: *quoted,
                })
            }
        })
    }
}

/// Write columns as the rows of a CSV file: numbers in the fewest digits that give them back, and words.
///
/// Parameters
/// ----------
/// columns : list of arrays of numbers, and of tuples (positions, offsets, bytes, quoted)
///     Of words that lie one behind another in `bytes` (uint8): where each begins and the last one ends (`offsets`, int64),
///     which of them each row has (`positions`, int32; none where negative; None: each its own), and whether they are written in
///     quotes, those in them doubled.
/// delimiter : str
///     One ASCII character, between the fields.
///
/// Returns
/// -------
/// array of uint8
///
/// Raises
/// ------
/// ValueError, TypeError
///     For columns of different lengths, arrays of another form, or positions that do not fit.
#[pyfunction]
pub(crate) fn csv_rows<'py>(
    py: Python<'py>,
    columns: List<Column<'py>>,
    delimiter: char,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let delimiter = u8::try_from(delimiter).ok().filter(u8::is_ascii);
    let delimiter =
        delimiter.ok_or_else(|| PyTypeError::new_err("delimiter: one ASCII character is needed"))?;
    let arrays: Vec<Arrays<'_>> = columns.0.iter().map(Column::arrays).collect::<PyResult<_>>()?;
    let fields: Vec<Fields<'_>> = arrays.iter().map(Arrays::fields).collect::<PyResult<_>>()?;
    let values: usize = fields.iter().map(Fields::len).sum();
    let text = detached(py, values, || bitldp_core::rows(&fields, delimiter)).map_err(to_python)?;
    Ok(text.into_pyarray(py))
}
