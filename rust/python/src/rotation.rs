//! The class `Rotation`: vectors of a ball as directions, turned by public randomness.

use bitldp_core::{Input, Rotated, RotationKind, Undo};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{self, contiguous, detached, input, new_zeros};
use crate::error::to_python;
use crate::fixed_point::FLOATS;
use crate::numbers::{Whole, count, threads};

/// Public rotations of the vectors of an l2 ball, each with a number.
///
/// Parameters
/// ----------
/// features : int
///     Numbers of a vector, d, 1 to 2**31; 1 to 127 of "haar".
/// radius : float
///     Radius of the ball, 1e-100 to 1e100.
/// kind : {"hadamard", "haar"}
///     Three passes of random signs and a Hadamard transform, or products of Householder reflections.
/// key : bytes
///     32 bytes, which are public: the rotations follow from them.
///
/// Raises
/// ------
/// ValueError
///     A parameter outside its range.
///
/// Notes
/// -----
/// A vector x is lifted to (x/R, sqrt(1 - |x/R|^2), 0, ...), of D coordinates, the power of two above d; outside the ball it
/// counts as the end of the ball. Above 2**24 numbers a vector is cut into blocks, and each rotation is of one of them,
/// lifted alike. No privacy rests on a rotation.
#[pyclass(frozen, module = "bitldp._core")]
pub(crate) struct Rotation(pub(crate) bitldp_core::Rotation, [u8; 32]);

/// Numbers of rotations, reports: one for each vector.
type Row<'py> = PyReadonlyArray1<'py, u32>;

/// The numbers of a contiguous array.
///
/// # Errors
/// An array with gaps.
pub(crate) fn row<'a>(name: &str, array: &'a Row<'_>) -> PyResult<&'a [u32]> {
    array.as_slice().map_err(|_| PyValueError::new_err(format!("{name}: a contiguous array is needed")))
}

impl Rotation {
    fn undo<'a>(&'a self, rotations: &'a Row<'_>, reports: &'a Row<'_>) -> PyResult<Undo<'a>> {
        let numbers = row("rotations", rotations)?;
        Undo::new(Rotated { rotation: &self.0, numbers }, row("reports", reports)?).map_err(to_python)
    }
}

#[pymethods]
impl Rotation {
    #[new]
    fn new(features: Whole, radius: f64, kind: &str, key: &[u8]) -> PyResult<Rotation> {
        let kind = match kind {
            "hadamard" => RotationKind::Hadamard,
            "haar" => RotationKind::Haar,
            _ => {
                let text = format!("rotation: {kind:?} is not allowed; \"hadamard\", \"haar\" are");
                return Err(PyValueError::new_err(text));
            }
        };
        let (features, public) = (count("features", features)?, arrays::key(Some(key))?);
        let rotation = bitldp_core::Rotation::new(features, radius, kind, public).map_err(to_python)?;
        Ok(Rotation(rotation, key.try_into()?))
    }

    /// Numbers of a vector, d.
    #[getter]
    fn features(&self) -> usize {
        self.0.features()
    }

    /// Blocks of a vector, of which a rotation takes one; 1 up to 2**24 numbers.
    #[getter]
    fn blocks(&self) -> usize {
        self.0.blocks()
    }

    /// Coordinates of a rotated vector, D.
    #[getter]
    fn dimensions(&self) -> usize {
        self.0.dimensions()
    }

    /// Lift and rotate vectors.
    ///
    /// Parameters
    /// ----------
    /// x : array of float32 or float64, shape (n, d)
    /// rotations : array of uint32, shape (n,)
    ///     The number of each vector's rotation.
    /// threads : int or None
    ///
    /// Returns
    /// -------
    /// array of float32, shape (n, D)
    ///     Up to a factor for each row, which does not change the order of its coordinates.
    #[pyo3(signature = (x, rotations, threads = None))]
    fn rotate<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        rotations: Row<'py>,
        threads: Option<Whole>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let threads = self::threads(threads)?;
        let x = contiguous(x)?;
        let values = input(&x, FLOATS)?;
        let numbers = row("rotations", &rotations)?;
        let out = new_zeros::<f32>(py, numbers.len(), self.0.dimensions())?;
        // SAFETY: the array was made just now, and nobody else has it.
        let slice = unsafe { out.as_slice_mut() }?;
        let rotated = Rotated { rotation: &self.0, numbers };
        detached(py, slice.len(), || match values {
            Input::F32(x) => rotated.rotate(x, slice, threads),
            Input::F64(x) => rotated.rotate(x, slice, threads),
            _ => rotated.rotate::<f64>(&[], slice, threads),
        })
        .map_err(to_python)?;
        out.reshape([numbers.len(), self.0.dimensions()])
    }

    /// Decoded reports: rows of their rotations, times `scale`.
    ///
    /// Parameters
    /// ----------
    /// rotations, reports : array of uint32, shape (n,)
    ///     Of each report the number of its rotation, and its code: 2 j + 1 for coordinate j, 2 j for its negative.
    /// scale : float
    /// threads : int or None
    ///
    /// Returns
    /// -------
    /// array of float64, shape (n, d)
    #[pyo3(signature = (rotations, reports, scale, threads = None))]
    fn letters<'py>(
        &self,
        py: Python<'py>,
        rotations: Row<'py>,
        reports: Row<'py>,
        scale: f64,
        threads: Option<Whole>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (threads, undo) = (self::threads(threads)?, self.undo(&rotations, &reports)?);
        let (n, features) = (reports.len(), self.0.features());
        let out = new_zeros::<f64>(py, n, features)?;
        // SAFETY: the array was made just now, and nobody else has it.
        let slice = unsafe { out.as_slice_mut() }?;
        detached(py, slice.len(), || undo.letters(scale, slice, threads)).map_err(to_python)?;
        out.reshape([n, features])
    }

    /// The sums of decoded reports, times `scale`, and of their squares.
    ///
    /// Parameters
    /// ----------
    /// rotations, reports, scale, threads
    ///     As of `letters`.
    ///
    /// Returns
    /// -------
    /// (array of float64, array of float64), shape (d,) each
    #[pyo3(signature = (rotations, reports, scale, threads = None))]
    fn sums<'py>(
        &self,
        py: Python<'py>,
        rotations: Row<'py>,
        reports: Row<'py>,
        scale: f64,
        threads: Option<Whole>,
    ) -> PyResult<[Bound<'py, PyArray1<f64>>; 2]> {
        let (threads, undo) = (self::threads(threads)?, self.undo(&rotations, &reports)?);
        let work = reports.len() * self.0.dimensions();
        let sums = detached(py, work, || undo.sums(scale, threads)).map_err(to_python)?;
        Ok(sums.map(|sum| PyArray1::from_vec(py, sum)))
    }

    /// The sums of decoded reports by rotation, of how often each was given under it.
    ///
    /// Parameters
    /// ----------
    /// rotations : array of uint32, shape (rows,)
    /// counts : array of uint64, shape (rows, 2 D)
    ///     How often each report was given, under the rotation of the row's number.
    /// scale, threads
    ///     As of `letters`.
    ///
    /// Returns
    /// -------
    /// array of float64, shape (rows, d)
    #[pyo3(signature = (rotations, counts, scale, threads = None))]
    fn undo_counts<'py>(
        &self,
        py: Python<'py>,
        rotations: Row<'py>,
        counts: PyReadonlyArray2<'py, u64>,
        scale: f64,
        threads: Option<Whole>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (threads, features) = (self::threads(threads)?, self.0.features());
        let rows = rotations.len();
        let rotated = Rotated { rotation: &self.0, numbers: row("rotations", &rotations)? };
        let counts =
            counts.as_slice().map_err(|_| PyValueError::new_err("counts: a contiguous array is needed"))?;
        let out = new_zeros::<f64>(py, rows, features)?;
        // SAFETY: the array was made just now, and nobody else has it.
        let slice = unsafe { out.as_slice_mut() }?;
        let undo = || bitldp_core::undo_counts(rotated, counts, scale, slice, threads);
        detached(py, counts.len(), undo).map_err(to_python)?;
        out.reshape([rows, features])
    }

    fn __getnewargs__(&self) -> (usize, f64, &'static str, [u8; 32]) {
        let kind = match self.0.kind() {
            RotationKind::Hadamard => "hadamard",
            RotationKind::Haar => "haar",
        };
        (self.0.features(), self.0.radius(), kind, self.1)
    }

    fn __repr__(&self) -> String {
        format!("<Rotation: {} features, {} dimensions>", self.0.features(), self.0.dimensions())
    }
}
