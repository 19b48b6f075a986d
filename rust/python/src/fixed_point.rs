//! The class `FixedPoint`: sign, integer and fraction bits.

use bitldp_core::{Infinities, Input, Output, SignBit};
use numpy::PyUntypedArrayMethods;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{Form, Target, contiguous, contiguous_of, detached, input, wrong_dtype};
use crate::error::to_python;
use crate::numbers::{Whole, count, threads};

/// The fixed-point code of BitRand and LDPFL: sign, integer and fraction bits.
///
/// A number is truncated toward zero to a multiple of ``step`` and saturated at ``limit``.
/// The sign is the highest of the ``bits`` bits of a code word; bit i >= 1 below it weighs
/// 2**(integer_bits - i).
///
/// Parameters
/// ----------
/// bits : int
///     Bits of a code word, l: 2 to 32. Code words are uint8, uint16 or uint32, the smallest that holds them.
/// integer_bits : int
///     Bits before the point, m: 0 to l - 1. The other l - 1 - m are fraction bits.
/// sign : {"bitrand", "ldpfl"}
///     "bitrand": the sign bit is 1 where x >= 0. "ldpfl": it is 0 there.
/// infinities : {"refuse", "saturate"}
///     What becomes of an infinite input. NaN is always refused.
///
/// Raises
/// ------
/// ValueError
///     A parameter outside its range.
///
/// Notes
/// -----
/// BitRand (ICLR 2022), section 3.1; LDPFL, section IV, whose Eq. 14 has no sign as printed: its text is followed.
/// Neither paper saturates; without it, 40 would wrap around to 8. "-0" is a code of its own.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> codec = FixedPoint(10, integer_bits=5)
/// >>> codec.encode(np.array([0.9, -100.0]))
/// array([526, 511], dtype=uint16)
/// >>> codec.decode(np.array([526, 511], dtype=np.uint16))
/// array([  0.875 , -31.9375], dtype=float32)
#[pyclass(frozen, eq, hash, module = "bitldp._core")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct FixedPoint(pub(crate) bitldp_core::FixedPoint);

#[pymethods]
impl FixedPoint {
    #[new]
    #[pyo3(signature = (bits, *, integer_bits, sign = "bitrand", infinities = "refuse"))]
    fn new(bits: Whole, integer_bits: Whole, sign: &str, infinities: &str) -> PyResult<FixedPoint> {
        let sign = match sign {
            "bitrand" => SignBit::OneIfNonNegative,
            "ldpfl" => SignBit::ZeroIfNonNegative,
            other => {
                return Err(PyValueError::new_err(format!(
                    "sign: {other:?} is not allowed; \"bitrand\", \"ldpfl\" are"
                )));
            }
        };
        let infinities = match infinities {
            "refuse" => Infinities::Refuse,
            "saturate" => Infinities::Saturate,
            other => {
                let text = format!("infinities: {other:?} is not allowed; \"refuse\", \"saturate\" are");
                return Err(PyValueError::new_err(text));
            }
        };
        bitldp_core::FixedPoint::new(
            count("bits", bits)?,
            count("integer_bits", integer_bits)?,
            sign,
            infinities,
        )
        .map(FixedPoint)
        .map_err(to_python)
    }

    /// Bits of a code word, l.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits()
    }

    /// Bits before the point, m.
    #[getter]
    fn integer_bits(&self) -> u32 {
        self.0.integer_bits()
    }

    /// Bits after the point, l - 1 - m.
    #[getter]
    fn fraction_bits(&self) -> u32 {
        self.0.fraction_bits()
    }

    /// "bitrand" or "ldpfl".
    #[getter]
    fn sign(&self) -> &'static str {
        match self.0.sign() {
            SignBit::OneIfNonNegative => "bitrand",
            SignBit::ZeroIfNonNegative => "ldpfl",
        }
    }

    /// "refuse" or "saturate".
    #[getter]
    fn infinities(&self) -> &'static str {
        match self.0.infinities() {
            Infinities::Refuse => "refuse",
            Infinities::Saturate => "saturate",
        }
    }

    /// Distance of neighbouring values, 2**-fraction_bits.
    #[getter]
    fn step(&self) -> f64 {
        self.0.step()
    }

    /// The largest magnitude.
    #[getter]
    fn limit(&self) -> f64 {
        self.0.limit()
    }

    /// Code words of float32 or float64 values, in an array of the same shape, or in ``out`` of the smallest unsigned dtype.
    ///
    /// ``threads`` changes nothing but the time. Raises ValueError where a value is NaN or, unless they saturate, infinite
    /// (its position is given, and ``out`` is zeros), and for unfit ``out``; TypeError for other dtypes.
    #[pyo3(signature = (x, *, out = None, threads = None))]
    fn encode<'py>(
        &self,
        x: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        threads: Option<Whole>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let threads = self::threads(threads)?;
        let x = contiguous(x)?;
        let values = input(&x, FLOATS)?;
        let target = Target::new(&x, out, Form::Codes, self.0.bits(), x.shape(), false)?;
        let filled = target.output()?;
        detached(x.py(), x.len(), || self.0.encode_all(values, filled, threads)).map_err(to_python)?;
        Ok(target.into_any())
    }

    /// The values of unsigned code words, float32 or float64, in an array of the same shape, or in ``out``.
    ///
    /// ``dtype`` is that of ``out`` where there is one. ``threads`` changes nothing but the time. Raises ValueError where a
    /// code word has more bits than the codec (its position is given, and ``out`` is zeros), and for unfit ``out``; TypeError
    /// for other dtypes.
    #[pyo3(signature = (codes, dtype = None, *, out = None, threads = None))]
    fn decode<'py>(
        &self,
        codes: &Bound<'py, PyAny>,
        dtype: Option<&Bound<'py, PyAny>>,
        out: Option<&Bound<'py, PyAny>>,
        threads: Option<Whole>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let threads = self::threads(threads)?;
        let codes = contiguous_of("codes", codes)?;
        let single = match dtype {
            None => true,
            Some(dtype) => single_precision(dtype)?,
        };
        let words = input(&codes, CODES).map_err(|_| wrong_dtype("codes", &codes, CODES))?;
        let target = Target::new(&codes, out, Form::Values, self.0.bits(), codes.shape(), single)?;
        let filled = target.output()?;
        if dtype.is_some() && single != matches!(filled, Output::F32(_)) {
            return Err(PyValueError::new_err("dtype: is not that of out"));
        }
        detached(codes.py(), codes.len(), || self.0.decode_all(words, filled, threads)).map_err(to_python)?;
        Ok(target.into_any())
    }

    fn __repr__(&self) -> String {
        let tail = match self.0.infinities() {
            Infinities::Refuse => "",
            Infinities::Saturate => ", infinities='saturate'",
        };
        format!(
            "FixedPoint({}, integer_bits={}, sign='{}'{tail})",
            self.bits(),
            self.integer_bits(),
            self.sign()
        )
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((u32,), Bound<'py, PyDict>)> {
        let keywords = PyDict::new(py);
        keywords.set_item("integer_bits", self.integer_bits())?;
        keywords.set_item("sign", self.sign())?;
        keywords.set_item("infinities", self.infinities())?;
        Ok(((self.bits(),), keywords))
    }
}

pub(crate) const FLOATS: &str = "float32 and float64 are";
pub(crate) const CODES: &str = "uint8, uint16 and uint32 are";

/// True where a dtype is float32 rather than float64.
fn single_precision(dtype: &Bound<'_, PyAny>) -> PyResult<bool> {
    let dtype = dtype.py().import("numpy")?.call_method1("dtype", (dtype,))?;
    match dtype.getattr("str")?.extract::<String>()?.trim_start_matches(['<', '>', '=']) {
        "f4" => Ok(true),
        "f8" => Ok(false),
        _ => Err(pyo3::exceptions::PyTypeError::new_err(format!("dtype: {dtype} is not allowed; {FLOATS}"))),
    }
}

/// True where an input is single precision: its values then leave in single precision too.
pub(crate) fn is_single(input: &Input<'_>) -> bool {
    matches!(input, Input::F32(_))
}
