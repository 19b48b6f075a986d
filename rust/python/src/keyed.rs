//! Calls with keyed coins: the arguments are checked and unpacked here for all classes.

use bitldp_core::{Ids, Keyed, KeyedCall};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{
    self, Form, Target, contiguous, contiguous_of, detached, input, slice, tuple, wrong_dtype,
};
use crate::channel::{Face, wrong_shape};
use crate::error::to_python;
use crate::fixed_point::is_single;
use crate::numbers::{Whole, count, threads};

/// The inputs that are taken with a grid.
const NUMBERS: &str = "float32, float64 and integers are";

/// The ids that are taken.
const IDS: &str = "uint64, or uint8 of shape (n, 32), are";

/// A call of a channel with keyed coins.
pub(crate) struct Call<'a, 'py, F> {
    pub(crate) py: Python<'py>,
    pub(crate) face: &'a F,
    pub(crate) x: &'a Bound<'py, PyAny>,
    pub(crate) letters: Option<&'a [f64]>,
    pub(crate) key: &'a [u8],
    pub(crate) context: &'a [u8],
    pub(crate) ids: &'a Bound<'py, PyAny>,
    pub(crate) column: Whole,
    pub(crate) output: &'a str,
    pub(crate) threads: Option<Whole>,
}

impl<'py, F: Face> Call<'_, 'py, F>
where
    F::Core: Keyed,
{
    /// Lets the channel fill a new array. `real`: whether the input goes through a grid.
    pub(crate) fn run(
        self,
        real: bool,
        codec: <F::Core as bitldp_core::Channel>::Codec<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let letters = self.letters;
        let (threads, column) = (threads(self.threads)?, count("column", self.column)?);
        let key = arrays::key(Some(self.key))?;
        let form = Form::parse(self.output, if letters.is_some() { F::FORMS_WITH_VALUES } else { F::FORMS })?;
        let x = contiguous(self.x)?;
        let types = if real { NUMBERS } else { F::TYPES };
        let values = input(&x, types)?;
        if !real && values.is_real() {
            return Err(wrong_dtype("x", &x, types));
        }
        let ids = contiguous_of("ids", self.ids)?;
        let ids = names(&ids)?;
        if x.ndim() > 2 {
            return Err(wrong_shape(&x, "(n,) and (n, columns) are"));
        }
        if x.shape()[0] != ids.len() {
            let text = format!("ids: {} of them do not fit {} records", ids.len(), x.shape()[0]);
            return Err(PyValueError::new_err(text));
        }
        let (channel, shape) = (self.face.core(), self.face.shape(&x, form)?);
        let single = is_single(&values);
        let target = Target::new(&x, None, form, bitldp_core::Channel::report_bits(channel), &shape, single)?;
        let (length, output) = (values.len(), target.output()?);
        let context = self.context;
        let call =
            KeyedCall { codec, input: values, letters, output, key: &key, context, ids, column, threads };
        detached(self.py, length, || channel.randomize_keyed(call)).map_err(to_python)?;
        Ok(target.into_any())
    }
}

/// The ids of records: numbers, or digests of 32 bytes.
fn names<'a>(ids: &'a Bound<'_, PyUntypedArray>) -> PyResult<Ids<'a>> {
    let refused = |allowed: &str| {
        let text = format!("ids: shape {} is not allowed; {allowed} is", tuple(ids.shape()));
        PyValueError::new_err(text)
    };
    if let Some(numbers) = slice::<u64>(ids) {
        return if ids.ndim() == 1 { Ok(Ids::Numbers(numbers)) } else { Err(refused("(n,)")) };
    }
    match slice::<u8>(ids) {
        Some(bytes) if ids.ndim() == 2 && ids.shape()[1] == 32 => Ok(Ids::Digests(bytes.as_chunks().0)),
        Some(_) => Err(refused("(n, 32) of uint8, a digest a row,")),
        None => Err(wrong_dtype("ids", ids, IDS)),
    }
}
