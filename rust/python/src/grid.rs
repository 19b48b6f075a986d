//! The class `Grid`: equidistant points of an interval.

use bitldp_core::{GridRounding, Input};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{contiguous, input, wrong_dtype};
use crate::error::to_python;
use crate::fixed_point::FLOATS;
use crate::numbers::{Whole, count};

/// A real value as the index of one of equidistant points of an interval.
///
/// Parameters
/// ----------
/// points : int
///     Number of points, at least 2; the first is ``low`` and the last ``high``.
/// low, high : float
///     The interval, low < high, both finite.
/// rounding : {"dither", "nearest"}
///     "dither": a value between the points a < b goes to b with probability (x - a) / (b - a), so that the mean of the
///     points is the value. "nearest": to the nearest point.
/// clip : bool
///     Whether values outside the interval are moved to its ends; otherwise they are refused. NaN always is.
///
/// Raises
/// ------
/// ValueError
///     A parameter outside its range.
///
/// Notes
/// -----
/// Dither is not what privacy rests on: it only mixes rows of the channel behind it.
///
/// Examples
/// --------
/// >>> Grid(5, low=-1.0, high=1.0).values()
/// array([-1. , -0.5,  0. ,  0.5,  1. ])
#[pyclass(frozen, eq, module = "bitldp._core")]
#[derive(Clone, PartialEq)]
pub(crate) struct Grid(pub(crate) bitldp_core::Grid);

#[pymethods]
impl Grid {
    #[new]
    #[pyo3(signature = (points, *, low, high, rounding = "dither", clip = true))]
    fn new(points: Whole, low: f64, high: f64, rounding: &str, clip: bool) -> PyResult<Grid> {
        let rounding = match rounding {
            "dither" => GridRounding::Dither,
            "nearest" => GridRounding::Nearest,
            other => {
                let text = format!("rounding: {other:?} is not allowed; \"dither\", \"nearest\" are");
                return Err(PyValueError::new_err(text));
            }
        };
        bitldp_core::Grid::new(count("points", points)?, low, high, rounding, clip)
            .map(Grid)
            .map_err(to_python)
    }

    /// Number of points.
    #[getter]
    fn points(&self) -> u32 {
        self.0.points()
    }

    /// The first point.
    #[getter]
    fn low(&self) -> f64 {
        self.0.low()
    }

    /// The last point.
    #[getter]
    fn high(&self) -> f64 {
        self.0.high()
    }

    /// "dither" or "nearest".
    #[getter]
    fn rounding(&self) -> &'static str {
        match self.0.rounding() {
            GridRounding::Dither => "dither",
            GridRounding::Nearest => "nearest",
        }
    }

    /// True where values outside the interval are moved to its ends.
    #[getter]
    fn clip(&self) -> bool {
        self.0.clip()
    }

    /// The points, float64. MemoryError where there is no room for them.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(self.0.values().map_err(to_python)?.into_pyarray(py))
    }

    /// How many float32 or float64 values lie outside the interval.
    fn outside(&self, x: &Bound<'_, PyAny>) -> PyResult<usize> {
        let x = contiguous(x)?;
        match input(&x, FLOATS)? {
            Input::F32(values) => Ok(self.0.outside(values)),
            Input::F64(values) => Ok(self.0.outside(values)),
            _ => Err(wrong_dtype("x", &x, FLOATS)),
        }
    }

    fn __hash__(&self) -> u64 {
        let ends = (self.low().to_bits(), self.high().to_bits());
        std::hash::BuildHasher::hash_one(
            &std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default(),
            (self.points(), ends, self.rounding(), self.clip()),
        )
    }

    fn __repr__(&self) -> String {
        let clip = if self.clip() { "" } else { ", clip=False" };
        let (points, low, high, rounding) = (self.points(), self.low(), self.high(), self.rounding());
        format!("Grid({points}, low={low:?}, high={high:?}, rounding='{rounding}'{clip})")
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((u32,), Bound<'py, PyDict>)> {
        let keywords = PyDict::new(py);
        keywords.set_item("low", self.low())?;
        keywords.set_item("high", self.high())?;
        keywords.set_item("rounding", self.rounding())?;
        keywords.set_item("clip", self.clip())?;
        Ok(((self.points(),), keywords))
    }
}
