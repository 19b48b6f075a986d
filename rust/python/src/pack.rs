//! `bitldp.pack` and `bitldp.unpack`.

use bitldp_core::Input;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{contiguous, input, wrong_dtype};
use crate::error::to_python;
use crate::fixed_point::CODES;
use crate::numbers::{Whole, count as number};

/// Pack reports of ``bits`` bits each side by side: most significant bit first, nothing between reports.
///
/// Parameters
/// ----------
/// reports : array of uint8, uint16 or uint32
///     Any shape; taken in C order. Each is below 2**bits.
/// bits : int
///     1 to 32.
///
/// Returns
/// -------
/// array of uint8, shape (ceil(reports.size * bits / 8),)
///     As ``numpy.packbits`` of the reports' bits; zeros fill up the last byte.
///
/// Raises
/// ------
/// ValueError
///     A report that has more bits, or ``bits`` outside its range.
#[pyfunction]
pub(crate) fn pack<'py>(
    py: Python<'py>,
    reports: &Bound<'py, PyAny>,
    bits: Whole,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let bits = number::<u32>("bits", bits)?;
    let reports = contiguous(reports)?;
    let packed = match input(&reports, CODES).map_err(|_| wrong_dtype("reports", &reports, CODES))? {
        Input::U8(reports) => bitldp_core::pack(reports, bits),
        Input::U16(reports) => bitldp_core::pack(reports, bits),
        Input::U32(reports) => bitldp_core::pack(reports, bits),
        _ => return Err(wrong_dtype("reports", &reports, CODES)),
    };
    Ok(packed.map_err(to_python)?.into_pyarray(py))
}

/// Unpack ``count`` reports that `pack` packed.
///
/// Parameters
/// ----------
/// packed : array of uint8, shape (ceil(count * bits / 8),)
/// bits : int
///     1 to 32.
/// count : int
///
/// Returns
/// -------
/// array of shape (count,)
///     uint8, uint16 or uint32, the smallest that holds ``bits`` bits.
///
/// Raises
/// ------
/// ValueError
///     An array of another length, bits after the last report that are not 0, or ``bits`` outside its range.
#[pyfunction]
pub(crate) fn unpack<'py>(
    py: Python<'py>,
    packed: PyReadonlyArray1<'py, u8>,
    bits: Whole,
    count: Whole,
) -> PyResult<Bound<'py, PyAny>> {
    let (bits, count) = (number::<u32>("bits", bits)?, number::<usize>("count", count)?);
    let packed =
        packed.as_slice().map_err(|_| PyValueError::new_err("packed: a contiguous array is needed"))?;
    Ok(match bits {
        0..=8 => {
            bitldp_core::unpack::<u8>(packed, bits, count).map_err(to_python)?.into_pyarray(py).into_any()
        }
        9..=16 => {
            bitldp_core::unpack::<u16>(packed, bits, count).map_err(to_python)?.into_pyarray(py).into_any()
        }
        _ => bitldp_core::unpack::<u32>(packed, bits, count).map_err(to_python)?.into_pyarray(py).into_any(),
    })
}
