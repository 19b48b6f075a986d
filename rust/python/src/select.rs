//! `bitldp.Select`.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;

use crate::arrays::{Form, Target, contiguous, detached, input, packed_len, tuple, wrong_dtype};
use crate::error::to_python;
use crate::fixed_point::FLOATS;
use crate::numbers::{Weight, Whole, count, threads};

/// The pickled law: counts, weights, and the weight of reporting nothing.
type Runs<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>, Option<u64>);

/// Selection of one coordinate of a vector, by a law on the rank of its magnitude.
///
/// Parameters
/// ----------
/// counts : array of uint32, shape (runs,)
///     Ranks of each run, smallest magnitude first; they sum to the number of coordinates d, 2 or more.
/// weights : array of uint64, shape (runs,)
///     Weight of each rank of a run.
/// nothing : int, optional
///     Weight of reporting no coordinate at all, as d. None: there is no such report.
///
/// Raises
/// ------
/// ValueError
///     An empty run, too few coordinates, or weights that sum to 0 or to 2**64 or more.
///
/// Notes
/// -----
/// A rank is drawn with its weight over the sum of all, exactly; equal magnitudes are ranked at random. ``epsilon`` is the
/// log-ratio of the largest and the smallest weight, rounded up. Neighbours are any two vectors. The search for the
/// coordinate is not constant-time.
#[pyclass(frozen, module = "bitldp._core")]
pub(crate) struct Select(bitldp_core::Select);

#[pymethods]
impl Select {
    #[new]
    #[pyo3(signature = (counts, weights, nothing = None))]
    fn new(
        counts: PyReadonlyArray1<'_, u32>,
        weights: PyReadonlyArray1<'_, u64>,
        nothing: Option<Weight>,
    ) -> PyResult<Select> {
        let nothing = nothing
            .map(|nothing| nothing.get("nothing", "2**64 - 1", |nothing| nothing.try_into().ok()))
            .transpose()?;
        let counts: Vec<u32> = counts.as_array().iter().copied().collect();
        let weights: Vec<u64> = weights.as_array().iter().copied().collect();
        bitldp_core::Select::new(&counts, &weights, nothing).map(Select).map_err(to_python)
    }

    /// Coordinates of a vector, d.
    #[getter]
    fn dimensions(&self) -> u32 {
        self.0.dimensions()
    }

    /// How many reports there are: d, and one more where nothing can be reported.
    #[getter]
    fn outputs(&self) -> u32 {
        self.0.outputs()
    }

    /// Vectors in one chunk of the key's stream.
    #[getter]
    fn chunk(&self) -> usize {
        bitldp_core::Select::CHUNK
    }

    /// The exact epsilon of a vector, rounded up.
    #[getter]
    fn epsilon(&self) -> f64 {
        self.0.epsilon()
    }

    /// The sum of all weights.
    #[getter]
    fn total(&self) -> u64 {
        self.0.total()
    }

    /// The weight of reporting nothing; None where that is no report.
    #[getter]
    fn nothing(&self) -> Option<u64> {
        self.0.nothing()
    }

    /// The weight of each rank, smallest magnitude first: uint64, shape (d,). MemoryError where there is no room for them.
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let (mut all, d) = (Vec::new(), self.0.dimensions() as usize);
        all.try_reserve_exact(d).map_err(|_| PyMemoryError::new_err(format!("no room for {d} weights")))?;
        for (count, weight) in self.0.runs() {
            all.resize(all.len() + count as usize, weight);
        }
        Ok(all.into_pyarray(py))
    }

    /// Select a coordinate of each vector.
    ///
    /// Parameters
    /// ----------
    /// x : array of float32 or float64, shape (n, d)
    ///     Finite numbers.
    /// key : bytes or None
    ///     32 bytes, or None for a fresh key from the operating system.
    /// output : {"codes", "packed"}
    /// out : array or None
    /// threads : int or None
    /// first_chunk : int
    ///     How many chunks of ``chunk`` vectors of the key's stream to skip.
    #[pyo3(signature = (x, key, output, out, threads, first_chunk, /))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of the Python method")]
    fn randomize<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        key: Option<&[u8]>,
        output: &str,
        out: Option<&Bound<'py, PyAny>>,
        threads: Option<Whole>,
        first_chunk: Whole,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (threads, first_chunk) = (self::threads(threads)?, count("first_chunk", first_chunk)?);
        let form = Form::parse(output, &[Form::Codes, Form::Packed])?;
        let x = contiguous(x)?;
        let values = input(&x, FLOATS)?;
        if !values.is_real() {
            return Err(wrong_dtype("x", &x, FLOATS));
        }
        let d = self.0.dimensions() as usize;
        let n = match x.shape() {
            &[n, columns] if columns == d => n,
            shape => {
                let reason = format!("x: shape {} is not allowed; (n, {d}) is", tuple(shape));
                return Err(PyValueError::new_err(reason));
            }
        };
        let bits = self.0.report_bits();
        let shape = if form == Form::Packed { vec![packed_len(n, bits)?] } else { vec![n] };
        let target = Target::new(&x, out, form, bits, &shape, false)?;
        let key = crate::arrays::key(key)?;
        let filled = target.output()?;
        detached(py, n.saturating_mul(d), || self.0.randomize(values, filled, &key, first_chunk, threads))
            .map_err(to_python)?;
        Ok(target.into_any())
    }

    fn __repr__(&self) -> String {
        format!("<Select: {} coordinates, exact epsilon {:.6}>", self.0.dimensions(), self.0.epsilon())
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> Runs<'py> {
        let (counts, weights): (Vec<u32>, Vec<u64>) = self.0.runs().unzip();
        (counts.into_pyarray(py), weights.into_pyarray(py), self.0.nothing())
    }
}
