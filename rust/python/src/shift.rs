//! The class `Shift`: integer noise that is added to the input.

use bitldp_core::Channel;
use numpy::PyArray2;
use pyo3::prelude::*;

use crate::channel::{Letters, channel, letters, table};
use crate::error::to_python;
use crate::grid::Grid;
use crate::keyed::Source;
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
/// mute : bool
///     Whether the input is checked, and zeros are randomized in its place: epsilon is 0 then, whatever the law is.
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

channel! {
    impl Shift, |shift| format!("{} inputs, {} reports", shift.inputs(), shift.outputs());

    get {
        /// N.
        inputs: usize,
        /// Reports, M.
        outputs: usize,
        /// The largest noise, K.
        reach: usize,
        /// The number that is added to every input besides the noise.
        offset: i32,
        /// The exact epsilon of a value, at delta 0.
        epsilon: f64,
    }

    methods {
        #[new]
        #[pyo3(
            signature = (inputs, outputs, weights, offset = Whole::ZERO, mute = false),
            text_signature = "(inputs, outputs, weights, offset=0, mute=False)"
        )]
        fn new(inputs: Whole, outputs: Whole, weights: List<Weight>, offset: Whole, mute: bool) -> PyResult<Shift> {
            let weights = self::weights(weights)?;
            let (inputs, outputs) = (count("inputs", inputs)?, count("outputs", outputs)?);
            let shift = bitldp_core::Shift::new(inputs, outputs, weights, count("offset", offset)?).map_err(to_python)?;
            Ok(Shift(if mute { shift.muted() } else { shift }))
        }

        /// True where the input is checked, and zeros are randomized in its place.
        #[getter]
        fn mute(&self) -> bool {
            self.0.is_mute()
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

        fn __getnewargs__(&self) -> (usize, usize, Vec<u128>, i32, bool) {
            (self.0.inputs(), self.0.outputs(), self.0.weights().to_vec(), self.0.offset(), self.0.is_mute())
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
