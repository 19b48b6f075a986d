//! `bitldp.channels.Shift`: integer noise that is added to the input.

use bitldp_core::Channel;
use numpy::PyArray2;
use pyo3::prelude::*;

use crate::arrays::{self, table};
use crate::channel::{Face, Letters, channel, letters};
use crate::error::to_python;
use crate::grid::Grid;
use crate::numbers::{Weight, Whole, count, weights};

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

impl Face for Shift {
    type Core = bitldp_core::Shift;

    fn core(&self) -> &Self::Core {
        &self.0
    }

    fn summary(&self) -> String {
        format!("{} inputs, {} reports", self.0.inputs(), self.0.outputs())
    }
}

channel! {
    impl Shift {
        #[new]
        #[pyo3(signature = (inputs, outputs, weights, offset = Whole::ZERO), text_signature = "(inputs, outputs, weights, offset=0)")]
        fn new(inputs: Whole, outputs: Whole, weights: Vec<Weight>, offset: Whole) -> PyResult<Shift> {
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

        fn __getnewargs__(&self) -> (usize, usize, Vec<u128>, i32) {
            (self.0.inputs(), self.0.outputs(), self.0.weights().to_vec(), self.0.offset())
        }
    }

    /// Randomize values; as for Window, with ``inputs`` rows and ``outputs`` letters.
    fn randomize(call, grid: Option<Bound<'py, Grid>>, letters: Letters<'py>, key: Option<&[u8]>) {
        let (codec, letters, key) = (grid.as_ref().map(|grid| &grid.get().0), self::letters(&letters)?, arrays::key(key)?);
        call.run(codec.is_some(), codec, letters, &key)
    }
}
