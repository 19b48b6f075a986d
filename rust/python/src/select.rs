//! The class `Select`: one coordinate of a vector.

use bitldp_core::Channel;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

use crate::arrays::{self, Form};
use crate::channel::{channel, wrong_shape};
use crate::error::to_python;
use crate::keyed::Source;
use crate::numbers::Weight;

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

channel! {
    impl Select, |select| format!("{} coordinates", select.dimensions());

    get {
        /// Coordinates of a vector, d.
        dimensions: u32,
        /// How many reports there are: d, and one more where nothing can be reported.
        outputs: u32,
        /// Vectors in one chunk of the key's stream.
        chunk: usize,
        /// The exact epsilon of a vector, rounded up.
        epsilon: f64,
        /// The sum of all weights.
        total: u64,
        /// The weight of reporting nothing; None where that is no report.
        nothing: Option<u64>,
    }

    face {
        fn shape(&self, x: &Bound<'_, PyUntypedArray>, form: Form) -> PyResult<Vec<usize>> {
            let d = self.0.dimensions() as usize;
            match x.shape() {
                &[n, columns] if columns == d => Ok(match form {
                    Form::Packed => vec![arrays::packed_len(n, self.0.report_bits())?],
                    _ => vec![n],
                }),
                _ => Err(wrong_shape(x, &format!("(n, {d}) is"))),
            }
        }
    }

    methods {
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

        /// The weight of each rank, smallest magnitude first: uint64, shape (d,). MemoryError where there is no room for them.
        fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
            let (mut all, d) = (Vec::new(), self.0.dimensions() as usize);
            all.try_reserve_exact(d).map_err(|_| PyMemoryError::new_err(format!("no room for {d} weights")))?;
            for (count, weight) in self.0.runs() {
                all.resize(all.len() + count as usize, weight);
            }
            Ok(all.into_pyarray(py))
        }

        fn __getnewargs__<'py>(&self, py: Python<'py>) -> Runs<'py> {
            let (counts, weights): (Vec<u32>, Vec<u64>) = self.0.runs().unzip();
            (counts.into_pyarray(py), weights.into_pyarray(py), self.0.nothing())
        }
    }

    /// Select a coordinate of each vector.
    ///
    /// Parameters
    /// ----------
    /// x : array of float32 or float64, shape (n, d)
    ///     Finite numbers.
    /// key : bytes, Coins or None
    ///     32 bytes, coins of the records, or None for a fresh key from the operating system.
    /// output : {"codes", "packed"}
    /// out : array or None
    /// threads : int or None
    /// first_chunk : int
    ///     How many chunks of ``chunk`` vectors of the key's stream to skip.
    fn randomize(call, key: Option<Source<'_, 'py>>) {
        call.run_from(true, (), None, key)
    }
}
