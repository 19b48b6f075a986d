//! `bitldp.Window` and `bitldp.Matrix`: what they share is how they are called.

use bitldp_core::{Input, Key, Output, Result};
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{self, Form, Target, contiguous, detached, input, packed_len, tuple, wrong_dtype};
use crate::error::to_python;
use crate::fixed_point::{FLOATS, is_single};
use crate::grid::Grid;
use crate::numbers::{List, Weight, Whole, count, threads, weights};
use crate::unary::INTEGERS;

/// The arguments of `randomize` of a categorical channel.
pub(crate) struct Call<'a, 'py> {
    pub(crate) x: &'a Bound<'py, PyAny>,
    pub(crate) grid: Option<&'a Bound<'py, Grid>>,
    pub(crate) letters: Option<&'a PyReadonlyArray1<'py, f64>>,
    pub(crate) key: Key,
    pub(crate) output: &'a str,
    pub(crate) out: Option<&'a Bound<'py, PyAny>>,
    pub(crate) threads: Option<Whole>,
}

impl<'py> Call<'_, 'py> {
    /// Unpacks the arguments, lets `randomize` fill an output for reports of `bits` bits, and gives it back.
    pub(crate) fn run(
        self,
        py: Python<'py>,
        bits: u32,
        randomize: impl FnOnce(
            Option<&bitldp_core::Grid>,
            Input<'_>,
            Option<&[f64]>,
            Output<'_>,
            &Key,
            Option<usize>,
        ) -> Result<()>
        + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        let threads = threads(self.threads)?;
        let allowed: &[Form] = match self.letters {
            Some(_) => &[Form::Codes, Form::Values, Form::Packed],
            None => &[Form::Codes, Form::Packed],
        };
        let form = Form::parse(self.output, allowed)?;
        let letters = self
            .letters
            .map(PyReadonlyArray1::as_slice)
            .transpose()
            .map_err(|_| PyValueError::new_err("letters: a contiguous array is needed"))?;
        let x = contiguous(self.x)?;
        let types = if self.grid.is_some() { FLOATS } else { INTEGERS };
        let values = input(&x, types)?;
        if values.is_real() != self.grid.is_some() {
            return Err(wrong_dtype("x", &x, types));
        }
        let shape = if form == Form::Packed { vec![packed_len(x.len(), bits)?] } else { x.shape().to_vec() };
        let target = Target::new(&x, self.out, form, bits, &shape, is_single(&values))?;
        if letters.is_some_and(|letters| target.overlaps(letters)) {
            return Err(PyValueError::new_err("out: an array that shares no memory with letters is needed"));
        }
        let grid = self.grid.map(|grid| &grid.get().0);
        let filled = target.output()?;
        detached(py, values.len(), || randomize(grid, values, letters, filled, &self.key, threads))
            .map_err(to_python)?;
        Ok(target.into_any())
    }
}

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
pub(crate) struct Window(pub(crate) bitldp_core::Window);

/// The rows of cells from best to worst.
type Order<'py> = Bound<'py, PyArray2<u16>>;

#[pymethods]
impl Window {
    #[new]
    #[pyo3(signature = (cells, width, high, order = None))]
    fn new(
        cells: Whole,
        width: Whole,
        high: f64,
        order: Option<PyReadonlyArray2<'_, u16>>,
    ) -> PyResult<Window> {
        let (cells, width) = (count::<u32>("cells", cells)?, count("width", width)?);
        let order = match order {
            None => None,
            Some(order) if order.shape() == [cells as usize, cells as usize] => {
                Some(order.as_array().iter().copied().collect())
            }
            Some(order) => {
                let text =
                    format!("order: shape {} is not allowed; ({cells}, {cells}) is", tuple(order.shape()));
                return Err(PyValueError::new_err(text));
            }
        };
        bitldp_core::Window::new(cells, width, high, order).map(Window).map_err(to_python)
    }

    /// N.
    #[getter]
    fn cells(&self) -> u32 {
        self.0.cells()
    }

    /// Likely cells, m.
    #[getter]
    fn width(&self) -> u32 {
        self.0.width()
    }

    /// The integer T over 2**64: the probability of a report inside the window.
    #[getter]
    fn high(&self) -> u128 {
        self.0.high().numerator()
    }

    /// The exact epsilon of a value.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon()
    }

    /// The first cell of the window of cell x, where there is no order.
    fn start(&self, x: Whole) -> PyResult<u32> {
        self.0.start(count("x", x)?).map_err(to_python)
    }

    /// P(report | input), shape (N, N), float64; for N up to 8192.
    fn probabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        table(py, self.0.probabilities().map_err(to_python)?, self.0.cells() as usize)
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
    /// key : bytes or None
    /// output : {"codes", "values", "packed"}
    /// out : array or None
    /// threads : int or None
    /// first_chunk : int
    ///     How many chunks of CHUNK values of the key's stream to skip.
    #[pyo3(signature = (x, grid, letters, key, output, out, threads, first_chunk, /))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of the Python method")]
    fn randomize<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        grid: Option<&Bound<'py, Grid>>,
        letters: Option<PyReadonlyArray1<'py, f64>>,
        key: Option<&[u8]>,
        output: &str,
        out: Option<&Bound<'py, PyAny>>,
        threads: Option<Whole>,
        first_chunk: Whole,
    ) -> PyResult<Bound<'py, PyAny>> {
        let first_chunk = count("first_chunk", first_chunk)?;
        let key = arrays::key(key)?;
        let call = Call { x, grid, letters: letters.as_ref(), key, output, out, threads };
        call.run(py, self.0.report_bits(), |grid, values, letters, output, key, threads| {
            self.0.randomize(grid, values, letters, output, key, first_chunk, threads)
        })
    }

    fn __repr__(&self) -> String {
        let (cells, width) = (self.0.cells(), self.0.width());
        format!("<Window: {width} of {cells} cells, exact epsilon {:.6}>", self.0.epsilon())
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<(u32, u32, f64, Option<Order<'py>>)> {
        let cells = self.0.cells() as usize;
        let order = self.0.order().map(|order| table(py, order.to_vec(), cells)).transpose()?;
        Ok((self.0.cells(), self.0.width(), self.0.high().to_f64(), order))
    }
}

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
pub(crate) struct Matrix(pub(crate) bitldp_core::Matrix);

/// Integer rows.
type Weights = Vec<Vec<u128>>;

#[pymethods]
impl Matrix {
    #[new]
    fn new(probabilities: PyReadonlyArray2<'_, f64>) -> PyResult<Matrix> {
        let [rows, columns] = [probabilities.shape()[0], probabilities.shape()[1]];
        let entries: Vec<f64> = probabilities.as_array().iter().copied().collect();
        bitldp_core::Matrix::new(rows, columns, &entries).map(Matrix).map_err(to_python)
    }

    /// Rows, R.
    #[getter]
    fn inputs(&self) -> usize {
        self.0.inputs()
    }

    /// Columns, C.
    #[getter]
    fn outputs(&self) -> usize {
        self.0.outputs()
    }

    /// The exact epsilon of a value.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon()
    }

    /// Whether every sample reads the whole table, so that no address depends on the input.
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
            .map(Matrix)
            .map_err(to_python)
    }

    /// P(report | input), shape (R, C), float64.
    fn probabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        table(py, self.0.probabilities(), self.0.outputs())
    }

    /// Randomize values; as for Window, with ``inputs`` rows and ``outputs`` letters.
    #[pyo3(signature = (x, grid, letters, key, output, out, threads, first_chunk, /))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of the Python method")]
    fn randomize<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        grid: Option<&Bound<'py, Grid>>,
        letters: Option<PyReadonlyArray1<'py, f64>>,
        key: Option<&[u8]>,
        output: &str,
        out: Option<&Bound<'py, PyAny>>,
        threads: Option<Whole>,
        first_chunk: Whole,
    ) -> PyResult<Bound<'py, PyAny>> {
        let first_chunk = count("first_chunk", first_chunk)?;
        let key = arrays::key(key)?;
        let call = Call { x, grid, letters: letters.as_ref(), key, output, out, threads };
        call.run(py, self.0.report_bits(), |grid, values, letters, output, key, threads| {
            self.0.randomize(grid, values, letters, output, key, first_chunk, threads)
        })
    }

    fn __repr__(&self) -> String {
        let (rows, columns) = (self.0.inputs(), self.0.outputs());
        format!("<Matrix: {rows} inputs, {columns} reports, exact epsilon {:.6}>", self.0.epsilon())
    }

    /// Through the integers: floats would be rounded to others.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Weights,))> {
        Ok((slf.get_type().getattr("from_weights")?, (slf.get().weights(),)))
    }
}

/// Entries, row after row, as an array of rows of `columns`.
pub(crate) fn table<'py, T: numpy::Element>(
    py: Python<'py>,
    entries: Vec<T>,
    columns: usize,
) -> PyResult<Bound<'py, PyArray2<T>>> {
    let rows = entries.len() / columns;
    numpy::PyArray1::from_vec(py, entries).reshape([rows, columns])
}
