//! The class `Unary`: independent bits on one-hot strings.

use bitldp_core::{Bit, Channel};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{self, Form};
use crate::channel::{channel, wrong_shape};
use crate::error::to_python;
use crate::keyed::Source;
use crate::numbers::{Weight, Whole, count, probability};

/// Independent bits on one-hot input: category x becomes k bits, of which position x is reported as 1 with
/// probability p and every other with q.
///
/// Parameters
/// ----------
/// categories : int
///     Positions of a string, k, at least 2.
/// p, q : float
///     Probability that a 1, and that a 0, is reported as 1. Both are rounded toward each other to multiples of 2**-64.
///
/// Raises
/// ------
/// ValueError
///     Fewer than two categories; a probability that is NaN or outside [0, 1].
///
/// Notes
/// -----
/// The domain decides the exact epsilon. On one-hot strings two inputs differ in two positions, and ``epsilon`` is what
/// those tell; on arbitrary strings every position could differ: ``epsilon_arbitrary``. Neighbours are any two inputs.
#[pyclass(frozen, module = "bitldp._core")]
pub(crate) struct Unary(bitldp_core::Unary);

channel! {
    impl Unary, |unary| format!("{} categories", unary.categories());

    get {
        /// Positions of a string, k.
        categories: usize,
        /// Records in one chunk of the key's stream.
        chunk: usize,
        /// The exact epsilon of a record if strings were arbitrary.
        epsilon_arbitrary: f64,
    }

    wrapper {
        const FORMS: &'static [Form] = &[Form::Bits, Form::Packed];

        fn shape(&self, x: &Bound<'_, PyUntypedArray>, form: Form) -> PyResult<Vec<usize>> {
            let &[n] = x.shape() else {
                return Err(wrong_shape(x, "(n,) is"));
            };
            let k = self.0.categories();
            Ok(if form == Form::Bits { vec![n, k] } else { vec![arrays::packed_len(n, k)?] })
        }

        fn work(&self, values: usize) -> usize {
            values.saturating_mul(self.0.categories())
        }
    }

    methods {
        #[new]
        fn new(categories: Whole, p: f64, q: f64) -> PyResult<Unary> {
            let bit = Bit::new(p, q).map_err(to_python)?;
            bitldp_core::Unary::new(count("categories", categories)?, bit).map(Unary).map_err(to_python)
        }

        /// The channel of probabilities that are integers over 2**64.
        ///
        /// Parameters
        /// ----------
        /// categories : int
        ///     As of the constructor.
        /// p, q : int
        ///     T_p and T_q, 0 to 2**64 each: what `thresholds` gives.
        #[staticmethod]
        fn from_integers(categories: Whole, p: Weight, q: Weight) -> PyResult<Unary> {
            let bit = Bit { p: probability("p", p)?, q: probability("q", q)? };
            bitldp_core::Unary::new(count("categories", categories)?, bit).map(Unary).map_err(to_python)
        }

        /// The exact epsilon of the worst bit, and of a record (twice: it has one feature), on one-hot input.
        #[getter]
        fn epsilon(&self) -> (f64, f64, f64) {
            (self.0.bit().epsilon(), self.0.epsilon(), self.0.epsilon())
        }

        /// The integers (T_p, T_q) over 2**64 that the sampler compares with.
        fn thresholds(&self) -> (u128, u128) {
            (self.0.bit().p.numerator(), self.0.bit().q.numerator())
        }

        /// Through the integers: floats would be rounded to others.
        fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (usize, u128, u128))> {
            let (p, q) = slf.get().thresholds();
            Ok((slf.get_type().getattr("from_integers")?, (slf.get().0.categories(), p, q)))
        }
    }

    /// Randomize categories.
    ///
    /// Parameters
    /// ----------
    /// x : array of shape (n,)
    ///     Integers in [0, categories).
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
