//! Calls of channels: the arguments are checked and unpacked here for all classes.

use bitldp_core::{Channel, Input};
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Form, Target, contiguous, detached, input, packed_len, tuple, wrong_dtype};
use crate::error::to_python;
use crate::fixed_point::{FLOATS, is_single};
use crate::numbers::{Whole, count, threads};

/// The face of a channel: what its calls take and give.
pub(crate) trait Face {
    /// The channel.
    type Core: Channel;
    /// The forms in which reports leave.
    const FORMS: &'static [Form] = &[Form::Codes, Form::Packed];
    /// The forms where reports stand for numbers.
    const FORMS_WITH_VALUES: &'static [Form] = &[Form::Codes, Form::Values, Form::Packed];
    /// What its codes are to the core.
    const CODES: Form = Form::Codes;
    /// Whether a codec says what reports stand for; otherwise letters do.
    const SPELLED: bool = false;
    /// The inputs that are taken without a codec.
    const TYPES: &'static str = "integers are";

    /// The channel itself.
    fn core(&self) -> &Self::Core;

    /// Whether an input is taken without a codec.
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

    /// Values that take as long as `values` of them do.
    fn work(&self, values: usize) -> usize {
        values
    }
}

/// An `x` whose shape is none of those that `allowed` says.
pub(crate) fn wrong_shape(x: &Bound<'_, PyUntypedArray>, allowed: &str) -> PyErr {
    PyValueError::new_err(format!("x: shape {} is not allowed; {allowed}", tuple(x.shape())))
}

/// What reports stand for, as Python gives it.
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
    pub(crate) face: &'a F,
    pub(crate) x: &'a Bound<'py, PyAny>,
    pub(crate) output: &'a str,
    pub(crate) out: Option<&'a Bound<'py, PyAny>>,
    pub(crate) threads: Option<Whole>,
    pub(crate) first_chunk: Whole,
}

impl<'py, F: Face> Call<'_, 'py, F> {
    /// Lets the channel fill an array, and gives it back. `real`: whether the input is numbers, not codes.
    pub(crate) fn run(
        self,
        real: bool,
        codec: <F::Core as Channel>::Codec<'_>,
        letters: Option<&[f64]>,
        keys: <F::Core as Channel>::Keys<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (threads, first_chunk) = (threads(self.threads)?, count("first_chunk", self.first_chunk)?);
        let valued = letters.is_some() || F::SPELLED && real;
        let form = Form::parse(self.output, if valued { F::FORMS_WITH_VALUES } else { F::FORMS })?;
        let form = if form == Form::Codes { F::CODES } else { form };
        let x = contiguous(self.x)?;
        let types = if real { FLOATS } else { F::TYPES };
        let values = input(&x, types)?;
        if !(if real { values.is_real() } else { F::takes(&values) }) {
            return Err(wrong_dtype("x", &x, types));
        }
        let (channel, shape) = (self.face.core(), self.face.shape(&x, form)?);
        let target = Target::new(&x, self.out, form, channel.report_bits(), &shape, is_single(&values))?;
        if letters.is_some_and(|letters| target.overlaps(letters)) {
            return Err(PyValueError::new_err("out: an array that shares no memory with letters is needed"));
        }
        let work = self.face.work(values.len());
        let output = target.output()?;
        let call = bitldp_core::Call { codec, input: values, letters, output, keys, first_chunk, threads };
        detached(self.py, work, || channel.randomize(call)).map_err(to_python)?;
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
/// `get` lists properties that the channel has as methods, `face` what its calls differ in, `methods` the others; `randomize`
/// takes what all channels take, and the given arguments after `x`; `randomize_keyed`, of the channels that have it, what all
/// of them take, and the type of its grids.
macro_rules! channel {
    (
        impl $face:ident, $summary:expr;

        get { $($(#[$of_getter:meta])* $getter:ident: $got:ty,)* }

        $(face { $($item:tt)* })?

        methods { $($method:tt)* }

        $(#[$of_call:meta])*
        fn randomize($call:ident, $($name:ident: $type:ty),*) $body:block

        $(fn randomize_keyed($keyed:ident, $grid:ident: $of_grid:ty) $keyed_body:block)?
    ) => {
        impl $crate::channel::Face for $face {
            type Core = bitldp_core::$face;

            fn core(&self) -> &Self::Core {
                &self.0
            }

            $($($item)*)?
        }

        #[pymethods]
        impl $face {
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
                let $call = $crate::channel::Call { py, face: self, x, output, out, threads, first_chunk };
                $body
            }

            $(
            /// Randomize values with coins that are a function of key, context, law, id, column and value.
            ///
            /// Parameters
            /// ----------
            /// x : array, shape (n,) or (n, columns)
            ///     As for `randomize`; with a grid also integers. float32 1.0, float64 1.0 and the integer 1 are one value
            ///     of a grid, and so are 0.0, -0.0 and subnormals.
            /// grid : Grid or None
            ///     As for `randomize`; of a Mixture, a pair.
            /// letters : array of float64 or None
            ///     As for `randomize`.
            /// key : bytes
            ///     32 of them.
            /// context : bytes
            ///     What the coins are for: the plan and the snapshot.
            /// ids : array of uint64, shape (n,), or of uint8, shape (n, 32)
            ///     The ids of the records, unique under key and context.
            /// column : int
            ///     The number of the first column, from 0; it and those behind it fit 32 bits.
            /// output : {"codes", "values", "packed"}
            /// threads : int or None
            ///
            /// Raises
            /// ------
            /// ValueError, TypeError
            ///     As for `randomize`; ids that are not as many as the records.
            #[pyo3(signature = (x, $grid, letters, key, context, ids, column, output, threads, /))]
            #[allow(clippy::too_many_arguments, reason = "the arguments of the Python method")]
            fn randomize_keyed<'py>(
                &self,
                py: Python<'py>,
                x: &Bound<'py, PyAny>,
                $grid: $of_grid,
                letters: $crate::channel::Letters<'py>,
                key: &[u8],
                context: &[u8],
                ids: &Bound<'py, PyAny>,
                column: $crate::numbers::Whole,
                output: &str,
                threads: Option<$crate::numbers::Whole>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let letters = $crate::channel::letters(&letters)?;
                let $keyed = $crate::keyed::Call {
                    py, face: self, x, letters, key, context, ids, column, output, threads,
                };
                $keyed_body
            }
            )?

            fn __repr__(&self) -> String {
                let summary: fn(&bitldp_core::$face) -> String = $summary;
                let core = $crate::channel::Face::core(self);
                let (summary, epsilon) = (summary(core), bitldp_core::Channel::epsilon(core));
                format!("<{}: {summary}, exact epsilon {epsilon:.6}>", stringify!($face))
            }
        }
    };
}
pub(crate) use channel;
