//! `bitldp.pack` and `bitldp.unpack`.

use bitldp_core::{Input, Output};
use numpy::PyUntypedArrayMethods;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Form, Target, contiguous_of, detached, input, packed_len, wrong_dtype};
use crate::error::to_python;
use crate::fixed_point::CODES;
use crate::numbers::{Whole, count as number, threads};

/// Pack reports of ``bits`` bits each side by side: most significant bit first, nothing between reports.
///
/// Parameters
/// ----------
/// reports : array of uint8, uint16 or uint32
///     Any shape; taken in C order. Each is below 2**bits.
/// bits : int
///     1 to 32.
/// out : array of uint8, optional
///     C-contiguous array of that shape to fill; must not overlap ``reports``.
/// threads : int or None
///     Number of threads; the bytes do not depend on it.
///
/// Returns
/// -------
/// array of uint8, shape (ceil(reports.size * bits / 8),)
///     As ``numpy.packbits`` of the reports' bits; zeros fill up the last byte.
///
/// Raises
/// ------
/// ValueError
///     A report that has more bits (its position is given, and ``out`` is zeros), ``bits`` outside its range, or unfit ``out``.
/// TypeError
///     Another dtype.
/// MemoryError
///     No room for the bytes.
#[pyfunction]
#[pyo3(signature = (reports, bits, *, out = None, threads = None))]
pub(crate) fn pack<'py>(
    py: Python<'py>,
    reports: &Bound<'py, PyAny>,
    bits: Whole,
    out: Option<&Bound<'py, PyAny>>,
    threads: Option<Whole>,
) -> PyResult<Bound<'py, PyAny>> {
    let (bits, threads) = (number::<u32>("bits", bits)?, self::threads(threads)?);
    let reports = contiguous_of("reports", reports)?;
    let refuse = || wrong_dtype("reports", &reports, CODES);
    let codes = input(&reports, CODES).map_err(|_| refuse())?;
    let target = Target::new(&reports, out, Form::Packed, bits, &[packed_len(reports.len(), bits)?], false)?;
    let Output::Packed(bytes) = target.output()? else { unreachable!("packed reports are bytes") };
    detached(py, reports.len(), || match codes {
        Input::U8(codes) => Some(bitldp_core::pack_to(codes, bits, bytes, threads)),
        Input::U16(codes) => Some(bitldp_core::pack_to(codes, bits, bytes, threads)),
        Input::U32(codes) => Some(bitldp_core::pack_to(codes, bits, bytes, threads)),
        _ => None,
    })
    .ok_or_else(refuse)?
    .map_err(to_python)?;
    Ok(target.into_any())
}

/// Unpack ``count`` reports that `pack` packed.
///
/// Parameters
/// ----------
/// packed : array of uint8, shape (ceil(count * bits / 8),)
/// bits : int
///     1 to 32.
/// count : int
/// out : array of that shape and dtype, optional
///     C-contiguous array to fill; must not overlap ``packed``.
/// threads : int or None
///     Number of threads; the reports do not depend on it.
///
/// Returns
/// -------
/// array of shape (count,)
///     uint8, uint16 or uint32, the smallest that holds ``bits`` bits.
///
/// Raises
/// ------
/// ValueError
///     An array of another length, bits after the last report that are not 0, ``bits`` outside its range, or unfit ``out``.
/// TypeError
///     Another dtype.
/// MemoryError
///     No room for the reports.
#[pyfunction]
#[pyo3(signature = (packed, bits, count, *, out = None, threads = None))]
pub(crate) fn unpack<'py>(
    py: Python<'py>,
    packed: &Bound<'py, PyAny>,
    bits: Whole,
    count: Whole,
    out: Option<&Bound<'py, PyAny>>,
    threads: Option<Whole>,
) -> PyResult<Bound<'py, PyAny>> {
    let (bits, count) = (number::<u32>("bits", bits)?, number::<usize>("count", count)?);
    let threads = self::threads(threads)?;
    let packed = contiguous_of("packed", packed)?;
    let Ok(Input::U8(bytes)) = input(&packed, "uint8 is") else {
        return Err(wrong_dtype("packed", &packed, "uint8 is"));
    };
    // Before there is room for so many: a wrong length is no reason to look for it.
    let needed = packed_len(count, bits)?;
    if packed.shape() != [needed] {
        let text = format!("packed: {count} reports of {bits} bits are an array of shape ({needed},)");
        return Err(PyValueError::new_err(text));
    }
    let target = Target::new(&packed, out, Form::Codes, bits, &[count], false)?;
    let filled = target.output()?;
    detached(py, count, || match filled {
        Output::U8(codes) => bitldp_core::unpack_to(bytes, bits, codes, threads),
        Output::U16(codes) => bitldp_core::unpack_to(bytes, bits, codes, threads),
        Output::U32(codes) => bitldp_core::unpack_to(bytes, bits, codes, threads),
        _ => unreachable!("codes are unsigned"),
    })
    .map_err(to_python)?;
    Ok(target.into_any())
}
