//! NumPy arrays in and out.

use std::ops::Range;

use bitldp_core::{Input, Key, Output};
use numpy::ndarray::{ArrayView, Dimension};
use numpy::npyffi::flags::NPY_ARRAY_ALIGNED;
use numpy::{
    Element, PyArray1, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::error::to_python;

/// The key that was given, or a fresh one from the operating system.
pub(crate) fn key(bytes: Option<&[u8]>) -> PyResult<Key> {
    key_of("key", bytes)
}

/// [`key`] of an argument `name`.
pub(crate) fn key_of(name: &str, bytes: Option<&[u8]>) -> PyResult<Key> {
    match bytes {
        None => Key::from_os().map_err(to_python),
        Some(bytes) => match bytes.try_into() {
            Ok(bytes) => Ok(Key::from_bytes(bytes)),
            Err(_) => {
                Err(PyValueError::new_err(format!("{name}: {} bytes are not allowed; 32 are", bytes.len())))
            }
        },
    }
}

/// Batches smaller than this are done before another thread could have used the interpreter.
const WORTH_DETACHING: usize = 1 << 14;

/// Runs `work` without the interpreter lock, where it is long enough to give it up.
pub(crate) fn detached<R: Send>(py: Python<'_>, values: usize, work: impl FnOnce() -> R + Send) -> R {
    if values < WORTH_DETACHING { work() } else { py.detach(work) }
}

/// The form of the reports that `output` names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Codes,
    Bits,
    Values,
    Packed,
}

impl Form {
    /// # Errors
    /// Anything but the forms that are `allowed`.
    pub(crate) fn parse(output: &str, allowed: &[Form]) -> PyResult<Form> {
        Form::parse_as("output", output, allowed)
    }

    /// [`parse`](Self::parse) of an argument `argument`.
    pub(crate) fn parse_as(argument: &str, output: &str, allowed: &[Form]) -> PyResult<Form> {
        let form = allowed.iter().find(|form| form.name() == output);
        form.copied().ok_or_else(|| {
            let names: Vec<_> = allowed.iter().map(|form| format!("{:?}", form.name())).collect();
            PyValueError::new_err(format!("{argument}: {output:?} is not allowed; {} are", names.join(", ")))
        })
    }

    fn name(self) -> &'static str {
        match self {
            Form::Codes => "codes",
            Form::Bits => "bits",
            Form::Values => "values",
            Form::Packed => "packed",
        }
    }
}

/// A shape as Python writes it.
pub(crate) fn tuple(shape: &[usize]) -> String {
    match shape {
        [length] => format!("({length},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// `x` as a C-contiguous array: itself where it is one, NumPy's view or copy of it otherwise.
///
/// # Errors
/// What NumPy makes no array of, a scalar, and a masked array.
pub(crate) fn contiguous<'py>(x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    contiguous_of("x", x)
}

/// [`contiguous`] of an argument `name`.
pub(crate) fn contiguous_of<'py>(name: &str, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    if let Ok(array) = x.cast_exact::<PyUntypedArray>()
        && array.is_c_contiguous()
        && is_aligned(array)
        && array.ndim() > 0
    {
        return Ok(array.clone());
    }
    let numpy = x.py().import("numpy")?;
    if x.is_instance(&numpy.getattr("ma")?.getattr("MaskedArray")?)? {
        // What is masked is still there, and would be randomized and released like the rest.
        let text = format!("{name}: a masked array is not allowed; fill or drop what is masked");
        return Err(PyTypeError::new_err(text));
    }
    let array = numpy.call_method1("asarray", (x,))?;
    if array.cast::<PyUntypedArray>()?.ndim() == 0 {
        return Err(PyValueError::new_err(format!("{name}: an array is needed, not a scalar")));
    }
    Ok(numpy.call_method1("require", (array, x.py().None(), ["C", "A"]))?.cast_into::<PyUntypedArray>()?)
}

/// True where the elements lie where the processor wants numbers of their size.
fn is_aligned(array: &Bound<'_, PyUntypedArray>) -> bool {
    // SAFETY: the array is alive.
    unsafe { (*array.as_array_ptr()).fields.flags & NPY_ARRAY_ALIGNED != 0 }
}

/// The elements of a C-contiguous array, if they are of type `T`.
pub(crate) fn slice<'a, T: Element>(array: &'a Bound<'_, PyUntypedArray>) -> Option<&'a [T]> {
    let array = array.cast::<PyArrayDyn<T>>().ok()?;
    // SAFETY: the array is C-contiguous and its elements are T. Nobody else may write to it meanwhile, as for any
    // function of NumPy that releases the interpreter lock; a value that changes after it was checked is clamped.
    unsafe { array.as_slice() }.ok()
}

/// The elements of a C-contiguous array, whatever number they are.
///
/// # Errors
/// `TypeError` where they are no plain numbers of native byte order; `allowed` says which are.
pub(crate) fn input<'a>(array: &'a Bound<'_, PyUntypedArray>, allowed: &str) -> PyResult<Input<'a>> {
    macro_rules! first_of {
        ($($type:ty => $variant:ident),*) => {
            $(if let Some(slice) = slice::<$type>(array) {
                return Ok(Input::$variant(slice));
            })*
        };
    }
    first_of!(f32 => F32, f64 => F64, u16 => U16, u8 => U8, i64 => I64, u32 => U32, i32 => I32, u64 => U64, i16 => I16, i8 => I8);
    Err(wrong_dtype("x", array, allowed))
}

pub(crate) fn wrong_dtype(name: &str, array: &Bound<'_, PyUntypedArray>, allowed: &str) -> PyErr {
    let dtype = array.dtype();
    let native = if dtype.byteorder() == b'>' { ", in native byte order" } else { "" };
    PyTypeError::new_err(format!("{name}: dtype {dtype} is not allowed; {allowed}{native}"))
}

/// The elements of an array that the kernels write to.
#[allow(clippy::mut_from_ref, reason = "Python arrays are shared; below is why nobody else writes")]
fn slice_mut<'a, T: Element>(array: &'a Bound<'_, PyArrayDyn<T>>) -> PyResult<&'a mut [T]> {
    // SAFETY: the array is C-contiguous, writeable and does not overlap the input, which `target` made sure of, or was
    // allocated just now; nobody else may touch it meanwhile, as for any function of NumPy that releases the lock.
    unsafe { array.as_slice_mut() }.map_err(|_| PyValueError::new_err("out: a C-contiguous array is needed"))
}

/// An output array and the form in which the core fills it.
pub(crate) enum Target<'py> {
    U8(Bound<'py, PyArrayDyn<u8>>),
    U16(Bound<'py, PyArrayDyn<u16>>),
    U32(Bound<'py, PyArrayDyn<u32>>),
    Bits(Bound<'py, PyArrayDyn<u8>>),
    Packed(Bound<'py, PyArrayDyn<u8>>),
    F32(Bound<'py, PyArrayDyn<f32>>),
    F64(Bound<'py, PyArrayDyn<f64>>),
}

impl<'py> Target<'py> {
    /// The array that reports of `bits` bits go to: `out` if it fits, a new one otherwise.
    ///
    /// # Errors
    /// `out` of another dtype (`TypeError`), of another shape, not C-contiguous, read-only or overlapping `x`
    /// (`ValueError`).
    pub(crate) fn new(
        x: &Bound<'py, PyUntypedArray>,
        out: Option<&Bound<'py, PyAny>>,
        form: Form,
        bits: u32,
        shape: &[usize],
        single: bool,
    ) -> PyResult<Target<'py>> {
        let py = x.py();
        let of_values = |double: bool| -> PyResult<Target<'py>> {
            Ok(if double {
                Target::F64(array(py, x, out, shape)?)
            } else {
                Target::F32(array(py, x, out, shape)?)
            })
        };
        Ok(match form {
            Form::Bits => Target::Bits(array(py, x, out, shape)?),
            Form::Packed => Target::Packed(array(py, x, out, shape)?),
            Form::Codes if bits <= 8 => Target::U8(array(py, x, out, shape)?),
            Form::Codes if bits <= 16 => Target::U16(array(py, x, out, shape)?),
            Form::Codes => Target::U32(array(py, x, out, shape)?),
            // Values leave in the precision of `out` where there is one.
            Form::Values => match out.map(|out| out.cast::<PyArrayDyn<f64>>().is_ok()) {
                Some(true) => of_values(true)?,
                Some(false) => of_values(false)?,
                None => of_values(!single)?,
            },
        })
    }

    /// The slice to fill.
    pub(crate) fn output(&self) -> PyResult<Output<'_>> {
        Ok(match self {
            Target::U8(array) => Output::U8(slice_mut(array)?),
            Target::U16(array) => Output::U16(slice_mut(array)?),
            Target::U32(array) => Output::U32(slice_mut(array)?),
            Target::Bits(array) => Output::Bits(slice_mut(array)?),
            Target::Packed(array) => Output::Packed(slice_mut(array)?),
            Target::F32(array) => Output::F32(slice_mut(array)?),
            Target::F64(array) => Output::F64(slice_mut(array)?),
        })
    }

    /// True where the array has memory in common with `numbers`.
    pub(crate) fn overlaps(&self, numbers: &[f64]) -> bool {
        let Range { start, end } = numbers.as_ptr_range();
        let numbers = start as usize..end as usize;
        let bytes = |start: usize, length: usize, size: usize| start..start + length * size;
        let written = match self {
            Target::U8(array) | Target::Bits(array) | Target::Packed(array) => {
                bytes(array.data() as usize, array.len(), 1)
            }
            Target::U16(array) => bytes(array.data() as usize, array.len(), 2),
            Target::U32(array) => bytes(array.data() as usize, array.len(), 4),
            Target::F32(array) => bytes(array.data() as usize, array.len(), 4),
            Target::F64(array) => bytes(array.data() as usize, array.len(), 8),
        };
        meet(&written, &numbers)
    }

    pub(crate) fn into_any(self) -> Bound<'py, PyAny> {
        match self {
            Target::U8(array) | Target::Bits(array) | Target::Packed(array) => array.into_any(),
            Target::U16(array) => array.into_any(),
            Target::U32(array) => array.into_any(),
            Target::F32(array) => array.into_any(),
            Target::F64(array) => array.into_any(),
        }
    }
}

/// Bytes that reports of `bits` bits fill.
///
/// # Errors
/// `MemoryError` where no address reaches them.
pub(crate) fn packed_len(reports: usize, bits: impl TryInto<usize>) -> PyResult<usize> {
    let bits = bits.try_into().ok().and_then(|bits| reports.checked_mul(bits));
    let too_many = || PyMemoryError::new_err(format!("not enough memory for {reports} packed reports"));
    bits.map(|bits| bits.div_ceil(8)).ok_or_else(too_many)
}

/// True where two ranges of addresses have one in common.
fn meet(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// A new array, not filled yet.
///
/// # Errors
/// `MemoryError` where there is no room for it.
fn new_array<'py, T: Element>(py: Python<'py>, shape: &[usize]) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    let elements = shape.iter().try_fold(size_of::<T>(), |product, &length| product.checked_mul(length));
    if elements.is_some_and(|bytes| bytes < LARGE) {
        // SAFETY: every element is written before the array is handed out, or the array is dropped.
        return Ok(unsafe { PyArrayDyn::<T>::new(py, shape, false) });
    }
    // Through Python, because the short way panics where there is no memory.
    let shape = pyo3::types::PyTuple::new(py, shape)?;
    let array = py.import("numpy")?.call_method1("empty", (shape, T::get_dtype(py)))?;
    Ok(array.cast_into::<PyArrayDyn<T>>()?)
}

/// A new array of zeros for `rows` rows of `columns`, one behind another.
///
/// # Errors
/// `MemoryError` where there is no room for it.
pub(crate) fn new_zeros<'py, T: Element>(
    py: Python<'py>,
    rows: usize,
    columns: usize,
) -> PyResult<Bound<'py, PyArray1<T>>> {
    let elements = rows.checked_mul(columns);
    let bytes = elements.and_then(|elements| elements.checked_mul(size_of::<T>()));
    match (elements, bytes) {
        (Some(elements), Some(bytes)) if bytes < LARGE => Ok(PyArray1::zeros(py, [elements], false)),
        (Some(elements), Some(bytes)) if isize::try_from(bytes).is_ok() => {
            let array = py.import("numpy")?.call_method1("zeros", (elements, T::get_dtype(py)))?;
            Ok(array.cast_into::<PyArray1<T>>()?)
        }
        _ => Err(PyMemoryError::new_err(format!("not enough memory for {rows} rows of {columns}"))),
    }
}

/// A copy of the elements of an array in C order. An array that repeats its elements may have more than memory holds.
///
/// # Errors
/// `MemoryError` where there is no room for it.
pub(crate) fn copied<T: Element + Copy, D: Dimension>(array: ArrayView<'_, T, D>) -> PyResult<Vec<T>> {
    let mut elements = Vec::new();
    let refused = |_| PyMemoryError::new_err(format!("not enough memory for {} elements", array.len()));
    elements.try_reserve_exact(array.len()).map_err(refused)?;
    elements.extend(array.iter().copied());
    Ok(elements)
}

/// Arrays of this many bytes or more may not fit into memory.
const LARGE: usize = 1 << 20;

/// `out`, if it can be written to as an array of `T` and `shape`; a new array where there is none.
fn array<'py, T: Element>(
    py: Python<'py>,
    x: &Bound<'py, PyUntypedArray>,
    out: Option<&Bound<'py, PyAny>>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    let Some(out) = out else {
        return new_array(py, shape);
    };
    let untyped = out.cast::<PyUntypedArray>().map_err(|_| {
        let kind = out.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string());
        PyTypeError::new_err(format!("out: a NumPy array is needed, not {kind}"))
    })?;
    let array = out.cast::<PyArrayDyn<T>>().map_err(|_| {
        wrong_dtype(
            "out",
            untyped,
            &format!(
                "{} is needed",
                T::get_dtype(py).typeobj().name().map_or_else(|_| "another".into(), |n| n.to_string())
            ),
        )
    })?;
    if array.shape() != shape {
        let reason =
            format!("out: shape {} is not allowed; {} is needed", tuple(array.shape()), tuple(shape));
        return Err(PyValueError::new_err(reason));
    }
    if !array.is_c_contiguous() || !is_aligned(untyped) {
        return Err(PyValueError::new_err("out: a C-contiguous, aligned array is needed"));
    }
    let flags = out.getattr("flags")?;
    if !flags.getattr("writeable")?.extract::<bool>()? {
        return Err(PyValueError::new_err("out: a writeable array is needed, this one is read-only"));
    }
    let written = array.data() as usize..array.data() as usize + array.len() * size_of::<T>();
    // SAFETY: only the address is used.
    let read_from = unsafe { (*x.as_array_ptr()).fields.data } as usize;
    if meet(&written, &(read_from..read_from + x.len() * x.dtype().itemsize())) {
        return Err(PyValueError::new_err("out: an array that shares no memory with x is needed"));
    }
    Ok(array.clone())
}
