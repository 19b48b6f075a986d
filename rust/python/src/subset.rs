//! The class `Subset`: subsets of the inputs.

use bitldp_core::Channel;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{self, Form};
use crate::channel::{channel, wrong_shape};
use crate::error::to_python;
use crate::keyed::Source;
use crate::numbers::{Weight, Whole, count, probability};

/// Subsets of ``size`` of ``elements`` elements: one of those that hold the input, uniformly, with probability ``high``, and
/// otherwise one of the others, uniformly.
///
/// Parameters
/// ----------
/// elements : int
///     k, 2 to 65,536.
/// size : int
///     w, 1 to k - 1.
/// high : float
///     Probability of a subset that holds the input, rounded toward w / k to a multiple of 2**-64.
/// mute : bool
///     Whether the input is checked, and zeros are randomized in its place: epsilon is 0 then, whatever the law is.
///
/// Raises
/// ------
/// ValueError
///     A parameter outside its range.
///
/// Notes
/// -----
/// ``epsilon`` is exact for the integers that the sampler compares with, and rounded up. Neighbours are any two inputs.
/// Neither branches nor addresses depend on the input.
#[pyclass(frozen, module = "bitldp._core")]
pub(crate) struct Subset(bitldp_core::Subset);

/// The arguments that make the channel again.
type Integers = (u32, u32, u128, bool);

fn muted(subset: bitldp_core::Result<bitldp_core::Subset>, mute: bool) -> PyResult<Subset> {
    let subset = subset.map_err(to_python)?;
    Ok(Subset(if mute { subset.muted() } else { subset }))
}

channel! {
    impl Subset, |subset| format!("{} of {} elements", subset.size(), subset.elements());

    get {
        /// k.
        elements: u32,
        /// Elements of a subset, w.
        size: u32,
        /// Records in one chunk of the key's stream.
        chunk: usize,
        /// The exact epsilon of a value.
        epsilon: f64,
    }

    wrapper {
        const FORMS: &'static [Form] = &[Form::Bits, Form::Packed];

        fn shape(&self, x: &Bound<'_, PyUntypedArray>, form: Form) -> PyResult<Vec<usize>> {
            let &[n] = x.shape() else {
                return Err(wrong_shape(x, "(n,) is"));
            };
            let k = self.0.elements() as usize;
            Ok(if form == Form::Bits { vec![n, k] } else { vec![arrays::packed_len(n, k)?] })
        }

        fn work(&self, values: usize) -> usize {
            values.saturating_mul(self.0.elements() as usize)
        }
    }

    methods {
        #[new]
        #[pyo3(signature = (elements, size, high, mute = false))]
        fn new(elements: Whole, size: Whole, high: f64, mute: bool) -> PyResult<Subset> {
            let (elements, size) = (count("elements", elements)?, count("size", size)?);
            muted(bitldp_core::Subset::new(elements, size, high), mute)
        }

        /// The subsets of a probability that is an integer over 2**64.
        ///
        /// Parameters
        /// ----------
        /// high : int
        ///     T, 0 to 2**64: what `high` gives.
        /// elements, size, mute
        ///     As of the constructor.
        #[staticmethod]
        #[pyo3(signature = (elements, size, high, mute = false))]
        fn from_integers(elements: Whole, size: Whole, high: Weight, mute: bool) -> PyResult<Subset> {
            let (elements, size) = (count("elements", elements)?, count("size", size)?);
            muted(bitldp_core::Subset::from_probability(elements, size, probability("high", high)?), mute)
        }

        /// The integer T over 2**64: the probability of a subset that holds the input.
        #[getter]
        fn high(&self) -> u128 {
            self.0.high().numerator()
        }

        /// True where the input is checked, and zeros are randomized in its place.
        #[getter]
        fn mute(&self) -> bool {
            self.0.is_mute()
        }

        /// Through the integer: a float would be rounded to another.
        fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Integers)> {
            let own = &slf.get().0;
            let arguments = (own.elements(), own.size(), own.high().numerator(), own.is_mute());
            Ok((slf.get_type().getattr("from_integers")?, arguments))
        }
    }

    /// Randomize elements.
    ///
    /// Parameters
    /// ----------
    /// x : array of shape (n,)
    ///     Integers in [0, elements).
    /// key : bytes, KeyedRandomness or None
    ///     32 bytes, keyed randomness of the records, or None for a fresh key from the operating system.
    /// output : {"bits", "packed"}
    /// out : array or None
    /// threads : int or None
    /// first_chunk : int
    ///     How many chunks of ``chunk`` records of the key's stream to skip.
    fn randomize(call, key: Option<Source<'_, 'py>>) {
        call.run_from(false, (), None, key)
    }
}
