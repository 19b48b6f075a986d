//! The class `Design`: blocks of likely reports.

use bitldp_core::Channel;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::channel::channel;
use crate::error::to_python;
use crate::keyed::Source;
use crate::numbers::{Whole, count};

/// Reports of which every input has a block that is likely: a report is of the block, uniformly, with probability ``high``,
/// and otherwise one of the others, uniformly.
///
/// The static methods make one: `translates`, `progressions`, `halves`.
///
/// Notes
/// -----
/// ``epsilon`` is exact for the integers that the sampler compares with, and rounded up. Neighbours are any two inputs.
/// Neither branches nor addresses depend on the input.
#[pyclass(frozen, module = "bitldp._core")]
pub(crate) struct Design(bitldp_core::Design);

fn muted(design: bitldp_core::Result<bitldp_core::Design>, mute: bool) -> PyResult<Design> {
    let design = design.map_err(to_python)?;
    Ok(Design(if mute { design.muted() } else { design }))
}

channel! {
    impl Design, |design| format!("{} inputs, blocks of {} in {} cells", design.inputs(), design.width(), design.cells());

    get {
        /// Inputs, k.
        inputs: u32,
        /// Cells that a block is of, v.
        cells: u32,
        /// Cells of a block, b.
        width: u32,
        /// Reports: the cells, or the pairs of a step and a cell.
        outputs: u32,
        /// The exact epsilon of a value.
        epsilon: f64,
    }

    methods {
        /// The translates of the first ``width`` cells of ``order`` (uint32, which lists all cells) modulo their number.
        #[staticmethod]
        #[pyo3(signature = (inputs, width, high, order, mute = false))]
        fn translates(
            inputs: Whole,
            width: Whole,
            high: f64,
            order: PyReadonlyArray1<'_, u32>,
            mute: bool,
        ) -> PyResult<Design> {
            let order = order.as_slice().map_err(|_| PyValueError::new_err("order: a contiguous array is needed"))?;
            let (inputs, width) = (count("inputs", inputs)?, count("width", width)?);
            muted(bitldp_core::Design::translates(inputs, width, high, order.to_vec()), mute)
        }

        /// Progressions of ``width`` numbers of an odd modulus below 2**16 without divisors below ``width``.
        ///
        /// Each has a random step that is reported: ``(a - 1) * modulus + y`` is the cell y of step a, which is 1 to
        /// ``(modulus - 1) // 2``.
        #[staticmethod]
        #[pyo3(signature = (inputs, modulus, width, high, mute = false))]
        fn progressions(inputs: Whole, modulus: Whole, width: Whole, high: f64, mute: bool) -> PyResult<Design> {
            let (inputs, modulus, width) = (count("inputs", inputs)?, count("modulus", modulus)?, count("width", width)?);
            muted(bitldp_core::Design::progressions(inputs, modulus, width, high), mute)
        }

        /// Halves of ``2**apart`` blocks of ``2**bits`` cells, by the rows of Hadamard matrices.
        #[staticmethod]
        #[pyo3(signature = (inputs, bits, apart, high, mute = false))]
        fn halves(inputs: Whole, bits: Whole, apart: Whole, high: f64, mute: bool) -> PyResult<Design> {
            let (inputs, bits, apart) = (count("inputs", inputs)?, count("bits", bits)?, count("apart", apart)?);
            muted(bitldp_core::Design::halves(inputs, bits, apart, high), mute)
        }

        /// The integer T over 2**64: the probability of a report of the block.
        #[getter]
        fn high(&self) -> u128 {
            self.0.high().numerator()
        }

        /// True where the input is checked, and zeros are randomized in its place.
        #[getter]
        fn mute(&self) -> bool {
            self.0.is_mute()
        }

        /// All cells, the block of input 0 in front, where blocks are translates.
        #[getter]
        fn order<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<u32>>> {
            self.0.order().map(|order| PyArray1::from_slice(py, order))
        }
    }

    /// Randomize values.
    ///
    /// Parameters
    /// ----------
    /// x : array of any shape
    ///     Integers in [0, inputs).
    /// key : bytes, KeyedRandomness or None
    /// output : {"codes", "packed"}
    /// out : array or None
    /// threads : int or None
    /// first_chunk : int
    ///     How many chunks of CHUNK values of the key's stream to skip.
    fn randomize(call, key: Option<Source<'_, 'py>>) {
        call.run_from(false, (), None, key)
    }
}
