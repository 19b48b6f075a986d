//! The class `Design`: blocks of likely reports.

use bitldp_core::{Channel, DesignFamily};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::channel::channel;
use crate::error::to_python;
use crate::keyed::Source;
use crate::numbers::{Weight, Whole, count, probability};

/// Reports of which every input has a block that is likely: a report is of the block, uniformly, with probability ``high``,
/// and otherwise one of the others, uniformly.
///
/// The static methods make one: `translates`, `progressions`, `halves`; `from_integers` makes one again.
///
/// Notes
/// -----
/// ``epsilon`` is exact for the integers that the sampler compares with, and rounded up. Neighbours are any two inputs.
/// Neither branches nor addresses depend on the input.
#[pyclass(frozen, module = "bitldp._core")]
pub(crate) struct Design(bitldp_core::Design);

/// The arguments that make the channel again.
type Integers<'py> = (&'static str, u32, u32, u32, u128, Option<Bound<'py, PyArray1<u32>>>, bool);

/// The cells of an order.
///
/// # Errors
/// An array with gaps.
fn cells<'a>(order: &'a PyReadonlyArray1<'_, u32>) -> PyResult<&'a [u32]> {
    order.as_slice().map_err(|_| PyValueError::new_err("order: a contiguous array is needed"))
}

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
            let order = cells(&order)?;
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

        /// The design of a probability that is an integer over 2**64.
        ///
        /// Parameters
        /// ----------
        /// family : {"translates", "progressions", "halves"}
        /// inputs, cells, width : int
        ///     The properties of those names.
        /// high : int
        ///     T, 0 to 2**64: what `high` gives.
        /// order : array of uint32, shape (cells,), or None
        ///     What `order` gives: of translates, and of no other family.
        /// mute : bool
        #[staticmethod]
        #[pyo3(signature = (family, inputs, cells, width, high, order = None, mute = false))]
        #[allow(clippy::too_many_arguments, reason = "the arguments of the Python method")]
        fn from_integers(
            family: &str,
            inputs: Whole,
            cells: Whole,
            width: Whole,
            high: Weight,
            order: Option<PyReadonlyArray1<'_, u32>>,
            mute: bool,
        ) -> PyResult<Design> {
            let order = order.as_ref().map(self::cells).transpose()?;
            let family = match (family, order) {
                ("translates", Some(order)) => DesignFamily::Translates(order),
                ("progressions", None) => DesignFamily::Progressions,
                ("halves", None) => DesignFamily::Halves,
                ("translates" | "progressions" | "halves", _) => {
                    return Err(PyValueError::new_err("order: is required for translates, and not allowed for other families"));
                }
                _ => return Err(PyValueError::new_err("family: translates, progressions or halves is needed")),
            };
            let (inputs, cells, width) = (count("inputs", inputs)?, count("cells", cells)?, count("width", width)?);
            let high = probability("high", high)?;
            muted(bitldp_core::Design::from_probability(family, inputs, cells, width, high), mute)
        }

        /// The name of the static method that makes such a design.
        #[getter]
        fn family(&self) -> &'static str {
            match self.0.family() {
                DesignFamily::Translates(_) => "translates",
                DesignFamily::Progressions => "progressions",
                DesignFamily::Halves => "halves",
            }
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

        /// Through the integer: a float would be rounded to another.
        fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Integers<'py>)> {
            let (design, order) = (slf.get(), slf.get().order(slf.py()));
            let own = &design.0;
            let sizes = (own.inputs(), own.cells(), own.width());
            let arguments = (design.family(), sizes.0, sizes.1, sizes.2, design.high(), order, own.is_mute());
            Ok((slf.get_type().getattr("from_integers")?, arguments))
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
