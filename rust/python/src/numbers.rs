//! Integers of Python: what the core's types do not hold is refused by its argument's name.

use bitldp_core::Probability;
use pyo3::Borrowed;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString};

/// A Python integer, or nothing where 64 bits with a sign do not hold it.
#[derive(Clone, Copy)]
pub(crate) struct Whole(Option<i64>);

impl Whole {
    pub(crate) const ZERO: Whole = Whole(Some(0));
}

/// A Python integer from 0 to 2^128 - 1, or nothing where it is another.
pub(crate) struct Weight(pub(crate) Option<u128>);

/// The number if it fits, or nothing.
fn fitting<'a, 'py, T: FromPyObject<'a, 'py, Error = PyErr>>(
    number: Borrowed<'a, 'py, PyAny>,
) -> PyResult<Option<T>> {
    match number.extract::<T>() {
        Ok(number) => Ok(Some(number)),
        Err(error) if error.is_instance_of::<PyOverflowError>(number.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Whole {
    type Error = PyErr;

    fn extract(number: Borrowed<'a, 'py, PyAny>) -> PyResult<Whole> {
        fitting(number).map(Whole)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Weight {
    type Error = PyErr;

    fn extract(number: Borrowed<'a, 'py, PyAny>) -> PyResult<Weight> {
        fitting(number).map(Weight)
    }
}

/// The items of a sequence that is no text, as many as it has: what it says its length is only has to agree.
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<'a, 'py, T: for<'b> FromPyObject<'b, 'py>> FromPyObject<'a, 'py> for List<T> {
    type Error = PyErr;

    fn extract(list: Borrowed<'a, 'py, PyAny>) -> PyResult<List<T>> {
        // SAFETY: the object is alive, and the interpreter is held.
        let is_sequence = unsafe { pyo3::ffi::PySequence_Check(list.as_ptr()) } != 0;
        if !is_sequence || list.is_instance_of::<PyString>() {
            let kind = list.get_type().name()?;
            return Err(PyTypeError::new_err(format!("a sequence is needed, not {kind}")));
        }
        let said = list.len()?;
        let mut items = Vec::new();
        for item in list.try_iter()? {
            items.push(item?.extract::<T>().map_err(Into::into)?);
        }
        if items.len() != said {
            return Err(PyValueError::new_err(
                "a sequence is needed whose length equals the number of its items",
            ));
        }
        Ok(List(items))
    }
}

impl Weight {
    /// The integer as `convert` takes it; `most` says up to what it does.
    ///
    /// # Errors
    /// Another integer.
    pub(crate) fn get<T>(
        self,
        name: &str,
        most: &str,
        convert: impl FnOnce(u128) -> Option<T>,
    ) -> PyResult<T> {
        let refused = || PyValueError::new_err(format!("{name}: an integer from 0 to {most} is needed"));
        self.0.and_then(convert).ok_or_else(refused)
    }
}

/// The probability of an integer over 2^64.
///
/// # Errors
/// An integer that is negative, or above 2^64.
pub(crate) fn probability(name: &str, integer: Weight) -> PyResult<Probability> {
    integer.get(name, "2**64", |integer| Probability::from_numerator(integer).ok())
}

/// The integers of weights; the core checks their sum.
///
/// # Errors
/// One that is negative, or above any sum of weights.
pub(crate) fn weights(weights: List<Weight>) -> PyResult<Vec<u128>> {
    weights.0.into_iter().map(|weight| weight.get("weights", "2**64", Some)).collect()
}

/// A number as the core takes it; the core checks the rest of its range.
///
/// # Errors
/// What `T` does not hold.
pub(crate) fn count<T: TryFrom<i64>>(name: &str, value: Whole) -> PyResult<T> {
    let Some(value) = value.0 else {
        let text = format!("{name}: an integer below -2**63 or above 2**63 - 1 is not allowed");
        return Err(PyValueError::new_err(text));
    };
    value.try_into().map_err(|_| {
        let signed = T::try_from(-1).is_ok();
        let allowed =
            if value < 0 && !signed { "from 0 up".into() } else { format!("of {} bits", 8 * size_of::<T>()) };
        PyValueError::new_err(format!("{name}: {value} is not allowed; it is a number {allowed}"))
    })
}

/// The number of threads that was asked for.
pub(crate) fn threads(wanted: Option<Whole>) -> PyResult<Option<usize>> {
    match wanted {
        None => Ok(None),
        Some(Whole(Some(wanted @ ..=0))) => {
            Err(PyValueError::new_err(format!("threads: {wanted} is not allowed; None or at least 1 is")))
        }
        Some(wanted) => count("threads", wanted).map(Some),
    }
}

/// A large integer of Python, from its bytes.
pub(crate) fn large<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    py.get_type::<PyInt>().call_method1("from_bytes", (PyBytes::new(py, bytes), "little"))
}
