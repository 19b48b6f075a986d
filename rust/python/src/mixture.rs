//! The class `Mixture`: a coin decides which of two answers counts.

use std::sync::Arc;

use bitldp_core::{Channel, Key};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::arrays::key_of;
use crate::channel::{Letters, channel, letters};
use crate::error::to_python;
use crate::grid::Grid;
use crate::keyed::Source;
use crate::matrix::Matrix;
use crate::window::Window;

/// The report of a window where a table answers 0, and otherwise the table's answer: codes below ``window.cells`` are cells, the
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
pub(crate) struct Mixture(bitldp_core::Mixture, Py<Window>, Py<Matrix>);

channel! {
    impl Mixture, |mixture| {
        let cells = mixture.window().cells();
        format!("{cells} cells or {} answers", mixture.outputs() - cells)
    };

    get {
        /// How many codes there are.
        outputs: u32,
        /// The exact epsilon of a value.
        epsilon: f64,
    }

    methods {
        #[new]
        fn new(window: Py<Window>, matrix: Py<Matrix>) -> PyResult<Mixture> {
            let (cells, answers) = (Arc::clone(&window.get().0), Arc::clone(&matrix.get().0));
            let core = bitldp_core::Mixture::new(cells, answers).map_err(to_python)?;
            Ok(Mixture(core, window, matrix))
        }

        /// The channel of the codes below its number of cells.
        #[getter]
        fn window(&self, py: Python<'_>) -> Py<Window> {
            self.1.clone_ref(py)
        }

        /// The table whose answer 0 leaves the code to the window.
        #[getter]
        fn matrix(&self, py: Python<'_>) -> Py<Matrix> {
            self.2.clone_ref(py)
        }

        fn __getnewargs__(&self, py: Python<'_>) -> (Py<Window>, Py<Matrix>) {
            (self.window(py), self.matrix(py))
        }
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
    /// keys : (bytes or None, bytes or None), or (KeyedRandomness, KeyedRandomness), of which the first are taken
    ///     Of the window and of the matrix. They must differ: with one for both, their draws would be the same bits, and the
    ///     epsilon of the two no longer that of the mixture.
    /// output : {"codes", "values", "packed"}
    /// out : array or None
    /// threads : int or None
    /// first_chunk : int
    ///     How many chunks of CHUNK values of the keys' streams to skip.
    fn randomize(
        call,
        grids: (Bound<'py, Grid>, Bound<'py, Grid>),
        letters: Letters<'py>,
        keys: (Option<Source<'_, 'py>>, Option<Source<'_, 'py>>)
    ) {
        let (grids, letters) = ([&grids.0.get().0, &grids.1.get().0], self::letters(&letters)?);
        let keys = match keys {
            (Some(Source::Keyed(randomness)), Some(Source::Keyed(_))) => {
                return call.run_keyed(true, grids, letters, randomness.get());
            }
            (own, other) => [key_from("keys[0]", own)?, key_from("keys[1]", other)?],
        };
        call.run(true, grids, letters, [&keys[0], &keys[1]])
    }
}

/// The key that was given, or a fresh one.
fn key_from(name: &str, source: Option<Source<'_, '_>>) -> PyResult<Key> {
    match source {
        None => key_of(name, None),
        Some(Source::Key(bytes)) => key_of(name, Some(bytes)),
        Some(Source::Keyed(_)) => {
            Err(PyTypeError::new_err(format!("{name}: keyed randomness is needed for both, or for neither")))
        }
    }
}
