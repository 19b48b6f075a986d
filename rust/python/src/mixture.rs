//! `bitldp.Mixture`: a coin decides which of two answers counts.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::arrays::key_of;
use crate::categorical::{Call, Matrix, Window};
use crate::error::to_python;
use crate::grid::Grid;
use crate::numbers::{Whole, count};

/// What a window says where a table answers 0, and otherwise the table's answer: codes below ``window.cells`` are cells, the
/// answers 1, 2, ... come behind them.
///
/// Parameters
/// ----------
/// window : Window
/// matrix : Matrix
///     The coin and the other answer in one: its column 0, "the window decides", is the same in every row.
///
/// Raises
/// ------
/// ValueError
///     More than 65,536 codes, a table of a single column, or a column 0 that is not the same in every row, to the integer
///     over 2**64 (`Matrix.from_weights` takes integers).
///
/// Notes
/// -----
/// ``epsilon`` is exact: a report tells which of the two answered, by a chance that is the same for every input, so it is
/// that of the worse one. Neighbours are any two inputs. Both are drawn for every number and selected by masks, so the work
/// tells nothing that the two do not tell.
#[pyclass(frozen, module = "bitldp._core")]
pub(crate) struct Mixture {
    window: Py<Window>,
    matrix: Py<Matrix>,
}

impl Mixture {
    fn inner(&self) -> bitldp_core::Result<bitldp_core::Mixture<'_>> {
        bitldp_core::Mixture::new(&self.window.get().0, &self.matrix.get().0)
    }
}

#[pymethods]
impl Mixture {
    #[new]
    fn new(window: Py<Window>, matrix: Py<Matrix>) -> PyResult<Mixture> {
        let mixture = Mixture { window, matrix };
        mixture.inner().map_err(to_python)?;
        Ok(mixture)
    }

    /// The channel of the codes below its number of cells.
    #[getter]
    fn window(&self, py: Python<'_>) -> Py<Window> {
        self.window.clone_ref(py)
    }

    /// The table whose answer 0 leaves the code to the window.
    #[getter]
    fn matrix(&self, py: Python<'_>) -> Py<Matrix> {
        self.matrix.clone_ref(py)
    }

    /// How many codes there are.
    #[getter]
    fn outputs(&self) -> PyResult<u32> {
        Ok(self.inner().map_err(to_python)?.outputs())
    }

    /// The exact epsilon of a value.
    #[getter]
    fn epsilon(&self) -> PyResult<f64> {
        Ok(self.inner().map_err(to_python)?.epsilon())
    }

    /// Randomize numbers.
    ///
    /// Parameters
    /// ----------
    /// x : array of float32 or float64, any shape
    /// grids : (Grid, Grid)
    ///     Of ``window.cells`` and of ``matrix.inputs`` points.
    /// letters : array of float64, shape (outputs,), or None
    ///     What each report stands for: needed for output "values".
    /// keys : (bytes or None, bytes or None)
    ///     Of the window and of the matrix. They must differ: with one for both, their draws would be the same bits, and the
    ///     epsilon of the two no longer that of the mixture.
    /// output : {"codes", "values", "packed"}
    /// out : array or None
    /// threads : int or None
    /// first_chunk : int
    ///     How many chunks of CHUNK values of the keys' streams to skip.
    #[pyo3(signature = (x, grids, letters, keys, output, out, threads, first_chunk, /))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of the Python method")]
    fn randomize<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        grids: (Bound<'py, Grid>, Bound<'py, Grid>),
        letters: Option<PyReadonlyArray1<'py, f64>>,
        keys: (Option<&[u8]>, Option<&[u8]>),
        output: &str,
        out: Option<&Bound<'py, PyAny>>,
        threads: Option<Whole>,
        first_chunk: Whole,
    ) -> PyResult<Bound<'py, PyAny>> {
        let first_chunk = count("first_chunk", first_chunk)?;
        let mixture = self.inner().map_err(to_python)?;
        let (key, of_matrix) = (key_of("keys[0]", keys.0)?, key_of("keys[1]", keys.1)?);
        let both = [&grids.0.get().0, &grids.1.get().0];
        let call = Call { x, grid: Some(&grids.0), letters: letters.as_ref(), key, output, out, threads };
        call.run(py, mixture.report_bits(), |_, values, letters, output, key, threads| {
            mixture.randomize(both, values, letters, output, [key, &of_matrix], first_chunk, threads)
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        let mixture = self.inner().map_err(to_python)?;
        let cells = self.window.get().0.cells();
        let (answers, epsilon) = (mixture.outputs() - cells, mixture.epsilon());
        Ok(format!("<Mixture: {cells} cells or {answers} answers, exact epsilon {epsilon:.6}>"))
    }

    fn __getnewargs__(&self, py: Python<'_>) -> (Py<Window>, Py<Matrix>) {
        (self.window(py), self.matrix(py))
    }
}
