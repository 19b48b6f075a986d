//! The class `Window`: some cells are likely.

use std::sync::Arc;

use bitldp_core::Channel;
use numpy::{PyArray2, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{copied, tuple};
use crate::channel::{Letters, channel, letters, table};
use crate::error::to_python;
use crate::grid::Grid;
use crate::keyed::Source;
use crate::numbers::{Weight, Whole, count, probability};

/// N cells of which an input makes some likely: the report is one of those, uniformly, with probability ``high``, and
/// otherwise one of the others, uniformly.
///
/// Parameters
/// ----------
/// cells : int
///     N, 2 to 2**32 - 1.
/// width : int
///     Likely cells, m: 1 to N - 1. They are the m cells nearest to the input, ties to the lower one, moved inside at the
///     edges.
/// high : float
///     Probability of a report inside the window, rounded toward m / N to a multiple of 2**-64.
/// order : array of uint16, shape (N, N), optional
///     Row x lists all cells from best to worst; the window of x is the first m of them. At most 65,536 cells.
/// mute : bool
///     Whether the input is checked, and zeros are randomized in its place: epsilon is 0 then, whatever the law is.
///
/// Raises
/// ------
/// ValueError
///     A parameter outside its range, or a row of ``order`` that does not list every cell once.
///
/// Notes
/// -----
/// ``epsilon`` is exact for the integers that the sampler compares with, and rounded up. Neighbours are any two inputs.
/// Without an order, neither branches nor addresses depend on the input; with one, the row that is read does.
#[pyclass(frozen, module = "bitldp._core")]
pub(crate) struct Window(pub(crate) Arc<bitldp_core::Window>);

/// The rows of cells from best to worst.
type Order<'py> = Bound<'py, PyArray2<u16>>;

/// The arguments that make the channel again.
type Integers<'py> = (u32, u32, u128, Option<Order<'py>>, bool);

/// The entries of an order.
///
/// # Errors
/// Another shape than that of `cells` rows of as many.
fn rows(cells: u32, order: Option<PyReadonlyArray2<'_, u16>>) -> PyResult<Option<Vec<u16>>> {
    match order {
        None => Ok(None),
        Some(order) if order.shape() == [cells as usize, cells as usize] => {
            copied(order.as_array()).map(Some)
        }
        Some(order) => {
            let text = format!("order: shape {} is not allowed; ({cells}, {cells}) is", tuple(order.shape()));
            Err(PyValueError::new_err(text))
        }
    }
}

fn muted(window: bitldp_core::Result<bitldp_core::Window>, mute: bool) -> PyResult<Window> {
    let window = window.map_err(to_python)?;
    Ok(Window(Arc::new(if mute { window.muted() } else { window })))
}

channel! {
    impl Window, |window| format!("{} of {} cells", window.width(), window.cells());

    get {
        /// N.
        cells: u32,
        /// Likely cells, m.
        width: u32,
        /// The exact epsilon of a value.
        epsilon: f64,
    }

    methods {
        #[new]
        #[pyo3(signature = (cells, width, high, order = None, mute = false))]
        fn new(
            cells: Whole,
            width: Whole,
            high: f64,
            order: Option<PyReadonlyArray2<'_, u16>>,
            mute: bool,
        ) -> PyResult<Window> {
            let (cells, width) = (count::<u32>("cells", cells)?, count("width", width)?);
            muted(bitldp_core::Window::new(cells, width, high, rows(cells, order)?), mute)
        }

        /// The window of a probability that is an integer over 2**64.
        ///
        /// Parameters
        /// ----------
        /// high : int
        ///     T, 0 to 2**64: what `high` gives.
        /// cells, width, order, mute
        ///     As of the constructor.
        #[staticmethod]
        #[pyo3(signature = (cells, width, high, order = None, mute = false))]
        fn from_integers(
            cells: Whole,
            width: Whole,
            high: Weight,
            order: Option<PyReadonlyArray2<'_, u16>>,
            mute: bool,
        ) -> PyResult<Window> {
            let (cells, width) = (count::<u32>("cells", cells)?, count("width", width)?);
            let (high, order) = (probability("high", high)?, rows(cells, order)?);
            muted(bitldp_core::Window::from_probability(cells, width, high, order), mute)
        }

        /// The integer T over 2**64: the probability of a report inside the window.
        #[getter]
        fn high(&self) -> u128 {
            self.0.high().numerator()
        }

        /// True where the input is checked, and zeros are randomized in its place.
        #[getter]
        fn mute(&self) -> bool {
            self.0.is_mute()
        }

        /// The first cell of the window of cell x, where there is no order.
        fn start(&self, x: Whole) -> PyResult<u32> {
            self.0.start(count("x", x)?).map_err(to_python)
        }

        /// P(report | input), shape (N, N), float64; for N up to 8192.
        fn probabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
            table(py, self.0.probabilities().map_err(to_python)?, self.0.cells() as usize)
        }

        /// Row x lists all cells from best to worst, shape (N, N); None where the window is of the nearest cells.
        #[getter]
        fn order<'py>(&self, py: Python<'py>) -> PyResult<Option<Order<'py>>> {
            let cells = self.0.cells() as usize;
            self.0.order().map(|order| table(py, order.to_vec(), cells)).transpose()
        }

        /// Through the integers: floats would be rounded to others.
        fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Integers<'py>)> {
            let (window, order) = (slf.get(), slf.get().order(slf.py())?);
            let own = &window.0;
            let arguments = (own.cells(), own.width(), window.high(), order, own.is_mute());
            Ok((slf.get_type().getattr("from_integers")?, arguments))
        }
    }

    /// Randomize values.
    ///
    /// Parameters
    /// ----------
    /// x : array of any shape
    ///     Integers in [0, cells), or float32 or float64 with a grid.
    /// grid : Grid or None
    ///     A grid of ``cells`` points.
    /// letters : array of float64, shape (cells,), or None
    ///     What each report stands for: needed for output "values".
    /// key : bytes, KeyedRandomness or None
    /// output : {"codes", "values", "packed"}
    /// out : array or None
    /// threads : int or None
    /// first_chunk : int
    ///     How many chunks of CHUNK values of the key's stream to skip.
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
