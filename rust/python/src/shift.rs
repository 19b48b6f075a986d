//! `bitldp.channels.Shift`: integer noise that is added to the input.

use numpy::{PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays;
use crate::categorical::{Call, table};
use crate::error::to_python;
use crate::grid::Grid;
use crate::numbers::{List, Weight, Whole, count, weights};

/// Integer noise that is added: input x gives the report ``clamp(x + k + offset, 0, outputs - 1)``, where the noise k, from
/// -K to K, has the probability ``weights[k + K] / 2**64``.
///
/// Parameters
/// ----------
/// inputs : int
///     N, 1 to 65,536.
/// outputs : int
///     Reports, M: 1 to 65,536. A report at either end stands for all the sums beyond it, too.
/// weights : sequence of int
///     An odd number 2 K + 1 of integers, up to 65,535, that sum to 2**64.
/// offset : int
///     What is added to every input, -2**17 to 2**17. With ``offset=K`` and M = N + 2 K, no sum is clamped.
///
/// Raises
/// ------
/// ValueError
///     A parameter outside its range, or weights that do not sum to 2**64.
///
/// Notes
/// -----
/// ``epsilon`` and ``delta`` are exact for the integers that are sampled, and rounded up; ``epsilon`` is infinite where one
/// input never gives a report that another gives. Neighbours are any two inputs. Neither branches nor addresses depend on
/// the input.
#[pyclass(frozen, module = "bitldp._core")]
pub(crate) struct Shift(bitldp_core::Shift);

#[pymethods]
impl Shift {
    #[new]
    #[pyo3(signature = (inputs, outputs, weights, offset = Whole::ZERO), text_signature = "(inputs, outputs, weights, offset=0)")]
    fn new(inputs: Whole, outputs: Whole, weights: List<Weight>, offset: Whole) -> PyResult<Shift> {
        let weights = self::weights(weights)?;
        let (inputs, outputs) = (count("inputs", inputs)?, count("outputs", outputs)?);
        bitldp_core::Shift::new(inputs, outputs, weights, count("offset", offset)?)
            .map(Shift)
            .map_err(to_python)
    }

    /// N.
    #[getter]
    fn inputs(&self) -> usize {
        self.0.inputs()
    }

    /// Reports, M.
    #[getter]
    fn outputs(&self) -> usize {
        self.0.outputs()
    }

    /// The largest noise, K.
    #[getter]
    fn reach(&self) -> usize {
        self.0.reach()
    }

    /// What is added to every input besides the noise.
    #[getter]
    fn offset(&self) -> i32 {
        self.0.offset()
    }

    /// The exact epsilon of a value, at delta 0.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon()
    }

    /// The integers over 2**64 of the noise -K, ..., K.
    fn weights(&self) -> Vec<u128> {
        self.0.weights().to_vec()
    }

    /// The exact delta of a value at an epsilon of zero or more: the largest hockey-stick divergence of any two inputs.
    ///
    /// Parameters
    /// ----------
    /// epsilon : float
    ///
    /// Returns
    /// -------
    /// float
    ///     Rounded up: by at most 2**-50 of the chance of the reports where the term is positive, and 2**-78. It takes time
    ///     proportional to inputs times (inputs and weights).
    fn delta(&self, py: Python<'_>, epsilon: f64) -> PyResult<f64> {
        py.detach(|| self.0.delta(epsilon)).map_err(to_python)
    }

    /// P(report | input), shape (N, M), float64; up to 2**26 entries.
    fn probabilities<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        table(py, self.0.probabilities().map_err(to_python)?, self.0.outputs())
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
        let (inputs, outputs) = (self.0.inputs(), self.0.outputs());
        format!("<Shift: {inputs} inputs, {outputs} reports, exact epsilon {:.6}>", self.0.epsilon())
    }

    fn __getnewargs__(&self) -> (usize, usize, Vec<u128>, i32) {
        (self.0.inputs(), self.0.outputs(), self.0.weights().to_vec(), self.0.offset())
    }
}
