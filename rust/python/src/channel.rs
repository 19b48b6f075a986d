//! Calls of channels: the arguments are checked and unpacked here for all classes.

use bitldp_core::{Channel, Input, Keyed, KeyedCall, Output};
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Form, Target, contiguous, detached, input, key, packed_len, tuple, wrong_dtype};
use crate::error::to_python;
use crate::fixed_point::{FLOATS, is_single};
use crate::keyed::{KeyedRandomness, NUMBERS, Source};
use crate::numbers::{Whole, count, threads};

/// The class of a channel: what its calls take and give.
pub(crate) trait ChannelWrapper {
    /// The channel.
    type Core: Channel;
    /// The forms in which reports leave.
    const FORMS: &'static [Form] = &[Form::Codes, Form::Packed];
    /// The forms where reports stand for numbers.
    const FORMS_WITH_VALUES: &'static [Form] = &[Form::Codes, Form::Values, Form::Packed];
    /// The codec as the core takes it.
    const CODES: Form = Form::Codes;
    /// True where a codec says what reports stand for; otherwise letters do.
    const SPELLED: bool = false;
    /// The inputs that are taken without a codec.
    const TYPES: &'static str = "integers are";

    /// The channel itself.
    fn core(&self) -> &Self::Core;

    /// True where an input is taken without a codec.
    fn takes(input: &Input<'_>) -> bool {
        !input.is_real()
    }

    /// The shape of the reports of `x`.
    ///
    /// # Errors
    /// An `x` of a shape that is not allowed.
    fn shape(&self, x: &Bound<'_, PyUntypedArray>, form: Form) -> PyResult<Vec<usize>> {
        Ok(match form {
            Form::Packed => vec![packed_len(x.len(), self.core().report_bits())?],
            _ => x.shape().to_vec(),
        })
    }

    /// Bits of the longest code word.
    fn code_bits(&self) -> u32 {
        self.core().report_bits()
    }

    /// Values that take as long as `values` of them do.
    fn work(&self, values: usize) -> usize {
        values
    }
}

/// An `x` whose shape is none of those that `allowed` says.
pub(crate) fn wrong_shape(x: &Bound<'_, PyUntypedArray>, allowed: &str) -> PyErr {
    PyValueError::new_err(format!("x: shape {} is not allowed; {allowed}", tuple(x.shape())))
}

/// The decoded values of reports, as Python gives them.
pub(crate) type Letters<'py> = Option<PyReadonlyArray1<'py, f64>>;

/// The numbers of letters.
///
/// # Errors
/// An array with gaps.
pub(crate) fn letters<'a>(letters: &'a Letters<'_>) -> PyResult<Option<&'a [f64]>> {
    let slice = letters.as_ref().map(PyReadonlyArray1::as_slice).transpose();
    slice.map_err(|_| PyValueError::new_err("letters: a contiguous array is needed"))
}

/// A call of a channel: the arguments that all channels take.
pub(crate) struct Call<'a, 'py, F> {
    pub(crate) py: Python<'py>,
    pub(crate) wrapper: &'a F,
    pub(crate) x: &'a Bound<'py, PyAny>,
    pub(crate) output: &'a str,
    pub(crate) out: Option<&'a Bound<'py, PyAny>>,
    pub(crate) threads: Option<Whole>,
    pub(crate) first_chunk: Whole,
}

impl<'py, F: ChannelWrapper> Call<'_, 'py, F> {
    /// Lets the channel fill an array, and gives it back. `real`: whether the input is numbers, not codes.
    pub(crate) fn run(
        self,
        real: bool,
        codec: <F::Core as Channel>::Codec<'_>,
        letters: Option<&[f64]>,
        keys: <F::Core as Channel>::Keys<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let first_chunk = count("first_chunk", self.first_chunk)?;
        let taken = |input: &Input<'_>| if real { input.is_real() } else { F::takes(input) };
        let types = if real { FLOATS } else { F::TYPES };
        self.fill(real, letters, (types, taken), |channel, input, output, threads| {
            channel.randomize(bitldp_core::Call { codec, input, letters, output, keys, first_chunk, threads })
        })
    }

    /// Lets the channel fill an array from keyed randomness, and gives it back.
    pub(crate) fn run_keyed(
        self,
        real: bool,
        codec: <F::Core as Channel>::Codec<'_>,
        letters: Option<&[f64]>,
        randomness: &KeyedRandomness,
    ) -> PyResult<Bound<'py, PyAny>>
    where
        F::Core: Keyed,
    {
        if count::<u64>("first_chunk", self.first_chunk)? != 0 {
            return Err(PyValueError::new_err(
                "first_chunk: 0 is needed with keyed randomness, which has no chunks",
            ));
        }
        let taken = |input: &Input<'_>| real || F::takes(input);
        let types = if real { NUMBERS } else { F::TYPES };
        self.fill(real, letters, (types, taken), |channel, input, output, threads| {
            channel.randomize_keyed(KeyedCall {
                codec,
                input,
                letters,
                output,
                randomness: randomness.core(),
                threads,
            })
        })
    }

    /// Lets the channel fill an array from whichever of the two was given.
    pub(crate) fn run_from(
        self,
        real: bool,
        codec: <F::Core as Channel>::Codec<'_>,
        letters: Option<&[f64]>,
        source: Option<Source<'_, 'py>>,
    ) -> PyResult<Bound<'py, PyAny>>
    where
        F::Core: Keyed + for<'k> Channel<Keys<'k> = &'k bitldp_core::Key>,
    {
        match source {
            None => self.run(real, codec, letters, &key(None)?),
            Some(Source::Key(bytes)) => self.run(real, codec, letters, &key(Some(bytes))?),
            Some(Source::Keyed(randomness)) => self.run_keyed(real, codec, letters, randomness.get()),
        }
    }

    /// Checks the call, and gives `randomize` the channel, the values, the room for the reports and the threads. `allowed` says
    /// which inputs are taken.
    fn fill(
        self,
        real: bool,
        letters: Option<&[f64]>,
        (types, taken): (&str, impl Fn(&Input<'_>) -> bool),
        randomize: impl FnOnce(&F::Core, Input<'_>, Output<'_>, Option<usize>) -> bitldp_core::Result<()> + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        let threads = threads(self.threads)?;
        let valued = letters.is_some() || F::SPELLED && real;
        let form = Form::parse(self.output, if valued { F::FORMS_WITH_VALUES } else { F::FORMS })?;
        let form = if form == Form::Codes { F::CODES } else { form };
        let x = contiguous(self.x)?;
        let values = input(&x, types)?;
        if !taken(&values) {
            return Err(wrong_dtype("x", &x, types));
        }
        let (channel, shape) = (self.wrapper.core(), self.wrapper.shape(&x, form)?);
        let bits = self.wrapper.code_bits();
        let target = Target::new(&x, self.out, form, bits, &shape, is_single(&values))?;
        if letters.is_some_and(|letters| target.overlaps(letters)) {
            return Err(PyValueError::new_err("out: an array that shares no memory with letters is needed"));
        }
        let work = self.wrapper.work(values.len());
        let output = target.output()?;
        detached(self.py, work, || randomize(channel, values, output, threads)).map_err(to_python)?;
        Ok(target.into_any())
    }
}

/// Entries, row after row, as an array of rows of `columns`.
pub(crate) fn table<'py, T: numpy::Element>(
    py: Python<'py>,
    entries: Vec<T>,
    columns: usize,
) -> PyResult<Bound<'py, PyArray2<T>>> {
    let rows = entries.len() / columns;
    numpy::PyArray1::from_vec(py, entries).reshape([rows, columns])
}

/// The class of a channel: a tuple struct of the channel itself, and what else it holds.
///
/// `get` lists properties that the channel has as methods, `wrapper` what its calls differ in, `methods` the others; `randomize`
/// takes what all channels take, and the given arguments after `x`.
macro_rules! channel {
    (
        impl $wrapper:ident, $summary:expr;

        get { $($(#[$of_getter:meta])* $getter:ident: $got:ty,)* }

        $(wrapper { $($item:tt)* })?

        methods { $($method:tt)* }

        $(#[$of_call:meta])*
        fn randomize($call:ident, $($name:ident: $type:ty),*) $body:block
    ) => {
        impl $crate::channel::ChannelWrapper for $wrapper {
            type Core = bitldp_core::$wrapper;

            fn core(&self) -> &Self::Core {
                &self.0
            }

            $($($item)*)?
        }

        #[pymethods]
        impl $wrapper {
            $($(#[$of_getter])*
            #[getter]
            fn $getter(&self) -> $got {
                self.0.$getter()
            })*

            $($method)*

            $(#[$of_call])*
            #[pyo3(signature = (x, $($name,)* output, out, threads, first_chunk, /))]
            #[allow(clippy::too_many_arguments, reason = "the arguments of the Python method")]
            fn randomize<'py>(
                &self,
                py: Python<'py>,
                x: &Bound<'py, PyAny>,
                $($name: $type,)*
                output: &str,
                out: Option<&Bound<'py, PyAny>>,
                threads: Option<$crate::numbers::Whole>,
                first_chunk: $crate::numbers::Whole,
            ) -> PyResult<Bound<'py, PyAny>> {
                let $call = $crate::channel::Call { py, wrapper: self, x, output, out, threads, first_chunk };
                $body
            }

            fn __repr__(&self) -> String {
                let summary: fn(&bitldp_core::$wrapper) -> String = $summary;
                let core = $crate::channel::ChannelWrapper::core(self);
                let (summary, epsilon) = (summary(core), bitldp_core::Channel::epsilon(core));
                format!("<{}: {summary}, exact epsilon {epsilon:.6}>", stringify!($wrapper))
            }
        }
    };
}
pub(crate) use channel;
