//! The class `Matrix`: any row-stochastic table.

use std::sync::Arc;

use bitldp_core::Channel;
use numpy::{PyArray2, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::copied;
use crate::channel::{Letters, channel, letters, table};
use crate::error::to_python;
use crate::grid::Grid;
use crate::keyed::Source;
use crate::numbers::{List, Weight, weights};

/// Any row-stochastic table: input x gives report z with probability ``probabilities[x, z]``.
///
/// Parameters
/// ----------
/// probabilities : array of float64, shape (R, C)
///     Rows that sum to 1 within 1e-9. They are rounded to multiples of 2**-64, and each row's largest entry makes up for
///     the rounding, so that the integers sum to 2**64.
///
/// Raises
/// ------
/// ValueError
///     An entry outside [0, 1], a row that does not sum to 1, or more than 65,536 rows or columns.
///
/// Notes
/// -----
/// ``epsilon`` is exact for the integers that are sampled, and rounded up; it is infinite where one input never gives a
/// report that another gives. Neighbours are any two inputs. Small tables (``constant_time``) are read whole for every
/// sample; of larger ones, the row that is read depends on the input.
#[pyclass(frozen, module = "bitldp._core")]
pub(crate) struct Matrix(pub(crate) Arc<bitldp_core::Matrix>);

/// Integer rows.
type Weights = Vec<Vec<u128>>;

channel! {
    impl Matrix, |matrix| format!("{} inputs, {} reports", matrix.inputs(), matrix.outputs());

    get {
        /// Rows, R.
        inputs: usize,
        /// Columns, C.
        outputs: usize,
        /// The exact epsilon of a value.
        epsilon: f64,
    }

    methods {
        #[new]
        fn new(probabilities: PyReadonlyArray2<'_, f64>) -> PyResult<Matrix> {
            let [rows, columns] = [probabilities.shape()[0], probabilities.shape()[1]];
            let entries = copied(probabilities.as_array())?;
            bitldp_core::Matrix::new(rows, columns, &entries).map(|matrix| Matrix(matrix.into())).map_err(to_python)
        }

        /// True where every sample reads the whole table, so that no address depends on the input.
        #[getter]
        fn constant_time(&self) -> bool {
            self.0.is_constant_time()
        }

        /// The integer rows that are sampled; each sums to 2**64.
        fn weights(&self) -> Weights {
            self.0.weights().chunks_exact(self.0.outputs()).map(<[u128]>::to_vec).collect()
        }

        /// The table of integer rows over 2**64.
        ///
        /// Parameters
        /// ----------
        /// weights : sequence of sequences of int
        ///     Rows of equal length, each summing to 2**64: what `weights` gives.
        ///
        /// Raises
        /// ------
        /// ValueError
        ///     Rows of different lengths, or a row that does not sum to 2**64.
        #[staticmethod]
        fn from_weights(weights: List<List<Weight>>) -> PyResult<Matrix> {
            let weights = weights.0.into_iter().map(self::weights).collect::<PyResult<Weights>>()?;
            let columns = weights.first().map_or(0, Vec::len);
            if weights.iter().any(|row| row.len() != columns) {
                return Err(PyValueError::new_err("weights: rows of equal length are needed"));
            }
            bitldp_core::Matrix::from_weights(weights.len(), columns, weights.concat())
                .map(|matrix| Matrix(matrix.into()))
                .map_err(to_python)
        }

        /// P(report | input), shape (R, C), float64.
        fn probabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
            table(py, self.0.probabilities(), self.0.outputs())
        }

        /// Through the integers: floats would be rounded to others.
        fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Weights,))> {
            Ok((slf.get_type().getattr("from_weights")?, (slf.get().weights(),)))
        }
    }

    /// Randomize values; as for Window, with ``inputs`` rows and ``outputs`` letters.
    fn randomize(
        call,
        grid: Option<Bound<'py, Grid>>,
        letters: Letters<'py>,
        key: Option<Source<'_, 'py>>
    ) {
        let (codec, letters) = (grid.as_ref().map(|grid| &grid.get().0), self::letters(&letters)?);
        call.run_from(codec.is_some(), codec, letters, key)
    }
}
