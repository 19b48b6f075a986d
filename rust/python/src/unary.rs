//! `bitldp.Unary`.

use bitldp_core::Bit;
use numpy::PyUntypedArrayMethods;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Form, Target, contiguous, detached, input, packed_len, tuple, wrong_dtype};
use crate::error::to_python;
use crate::numbers::{Whole, count, threads};

pub(crate) const INTEGERS: &str = "integers are";

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

#[pymethods]
impl Unary {
    #[new]
    fn new(categories: Whole, p: f64, q: f64) -> PyResult<Unary> {
        let bit = Bit::new(p, q).map_err(to_python)?;
        bitldp_core::Unary::new(count("categories", categories)?, bit).map(Unary).map_err(to_python)
    }

    /// Positions of a string, k.
    #[getter]
    fn categories(&self) -> usize {
        self.0.categories()
    }

    /// Records in one chunk of the key's stream.
    #[getter]
    fn chunk(&self) -> usize {
        self.0.chunk()
    }

    /// The exact epsilon of the worst bit, and of a record (twice: it has one feature), on one-hot input.
    #[getter]
    fn epsilon(&self) -> (f64, f64, f64) {
        (self.0.bit().epsilon(), self.0.epsilon(), self.0.epsilon())
    }

    /// What the exact epsilon of a record would be on arbitrary strings.
    #[getter]
    fn epsilon_arbitrary(&self) -> f64 {
        self.0.epsilon_arbitrary()
    }

    /// The integers (T_p, T_q) over 2**64 that the sampler compares with.
    fn thresholds(&self) -> (u128, u128) {
        (self.0.bit().p.numerator(), self.0.bit().q.numerator())
    }

    /// Randomize categories.
    ///
    /// Parameters
    /// ----------
    /// x : array of shape (n,)
    ///     Integers in [0, categories).
    /// key : bytes or None
    ///     32 bytes, or None for a fresh key from the operating system.
    /// output : {"bits", "packed"}
    /// out : array or None
    /// threads : int or None
    /// first_chunk : int
    ///     How many chunks of ``chunk`` records of the key's stream to skip.
    #[pyo3(signature = (x, key, output, out, threads, first_chunk, /))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of the Python method")]
    fn randomize<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        key: Option<&[u8]>,
        output: &str,
        out: Option<&Bound<'py, PyAny>>,
        threads: Option<Whole>,
        first_chunk: Whole,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (threads, first_chunk) = (self::threads(threads)?, count("first_chunk", first_chunk)?);
        let form = Form::parse(output, &[Form::Bits, Form::Packed])?;
        let x = contiguous(x)?;
        let categories = input(&x, INTEGERS)?;
        if categories.is_real() {
            return Err(wrong_dtype("x", &x, INTEGERS));
        }
        let &[n] = x.shape() else {
            return Err(PyValueError::new_err(format!(
                "x: shape {} is not allowed; (n,) is",
                tuple(x.shape())
            )));
        };
        let k = self.0.categories();
        let shape = if form == Form::Bits { vec![n, k] } else { vec![packed_len(n, k)?] };
        let target = Target::new(&x, out, form, 1, &shape, false)?;
        let key = crate::arrays::key(key)?;
        let filled = target.output()?;
        detached(py, n.saturating_mul(k), || {
            self.0.randomize(categories, filled, &key, first_chunk, threads)
        })
        .map_err(to_python)?;
        Ok(target.into_any())
    }

    fn __repr__(&self) -> String {
        format!("<Unary: {} categories, exact epsilon {:.6}>", self.0.categories(), self.0.epsilon())
    }

    fn __getnewargs__(&self) -> (usize, f64, f64) {
        (self.0.categories(), self.0.bit().p.to_f64(), self.0.bit().q.to_f64())
    }
}
