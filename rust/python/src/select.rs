//! The class `Select`: one coordinate of a vector.

use bitldp_core::{Channel, Rotated};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;

use crate::arrays::{self, Form, copied};
use crate::channel::{Call, ChannelWrapper, channel, wrong_shape};
use crate::error::to_python;
use crate::keyed::Source;
use crate::numbers::{Weight, Whole};
use crate::rotation::{Rotation, row};

/// The pickled law: counts, weights, the weight of reporting nothing, and whether it is signed.
type Runs<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>);

/// The arguments that make the channel again.
type NewArguments<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u64>>, Option<u64>, bool);

/// The calls of a selection from vectors of so many numbers, which are rotated first.
struct Turned<'a>(&'a bitldp_core::Select, usize);

/// The shape of the reports of vectors of `columns` numbers.
fn shape(x: &Bound<'_, PyUntypedArray>, form: Form, columns: usize, bits: u32) -> PyResult<Vec<usize>> {
    match x.shape() {
        &[n, given] if given == columns => Ok(match form {
            Form::Packed => vec![arrays::packed_len(n, bits)?],
            _ => vec![n],
        }),
        _ => Err(wrong_shape(x, &format!("(n, {columns}) is"))),
    }
}

impl ChannelWrapper for Turned<'_> {
    type Core = bitldp_core::Select;

    fn core(&self) -> &Self::Core {
        self.0
    }

    fn shape(&self, x: &Bound<'_, PyUntypedArray>, form: Form) -> PyResult<Vec<usize>> {
        shape(x, form, self.1, self.0.report_bits())
    }
}

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
/// signed : bool
///     Whether the ranks are of the 2 d numbers +y_j and -y_j by value, of which 2 j + 1 reports the first and 2 j the other.
///     ``counts`` sum to 2 d then.
///
/// Raises
/// ------
/// ValueError
///     An empty run, too few coordinates, weights that sum to 0 or to 2**64 or more, or both ``nothing`` and ``signed``.
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
        /// How many reports there are: d or 2 d, and one more where nothing can be reported.
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

    wrapper {
        fn shape(&self, x: &Bound<'_, PyUntypedArray>, form: Form) -> PyResult<Vec<usize>> {
            shape(x, form, self.0.dimensions() as usize, self.0.report_bits())
        }
    }

    methods {
        #[new]
        #[pyo3(signature = (counts, weights, nothing = None, signed = false))]
        fn new(
            counts: PyReadonlyArray1<'_, u32>,
            weights: PyReadonlyArray1<'_, u64>,
            nothing: Option<Weight>,
            signed: bool,
        ) -> PyResult<Select> {
            if signed && nothing.is_some() {
                return Err(PyValueError::new_err("nothing: is not available with signed=True"));
            }
            let nothing = nothing
                .map(|nothing| nothing.get("nothing", "2**64 - 1", |nothing| nothing.try_into().ok()))
                .transpose()?;
            let counts = copied(counts.as_array())?;
            let weights = copied(weights.as_array())?;
            let made = match signed {
                true => bitldp_core::Select::signed(&counts, &weights),
                false => bitldp_core::Select::new(&counts, &weights, nothing),
            };
            made.map(Select).map_err(to_python)
        }

        /// True where the ranks are of coordinates with either sign.
        #[getter]
        fn signed(&self) -> bool {
            self.0.is_signed()
        }

        /// Select a coordinate of each vector, after it was lifted and rotated.
        ///
        /// Parameters
        /// ----------
        /// x : array of float32 or float64, shape (n, features)
        ///     Finite numbers, as many a vector as the rotation takes; its dimensions are d.
        /// rotation : Rotation
        /// rotations : array of uint32, shape (n,)
        ///     The number of each vector's rotation.
        /// key, output, out, threads, first_chunk
        ///     As of `randomize`.
        #[pyo3(signature = (x, rotation, rotations, key, output, out, threads, first_chunk, /))]
        #[allow(clippy::too_many_arguments, reason = "the arguments of the Python method")]
        fn randomize_rotated<'py>(
            &self,
            py: Python<'py>,
            x: &Bound<'py, PyAny>,
            rotation: &Bound<'py, Rotation>,
            rotations: PyReadonlyArray1<'py, u32>,
            key: Option<&[u8]>,
            output: &str,
            out: Option<&Bound<'py, PyAny>>,
            threads: Option<Whole>,
            first_chunk: Whole,
        ) -> PyResult<Bound<'py, PyAny>> {
            let rotation = &rotation.get().0;
            let wrapper = Turned(&self.0, rotation.features());
            let rotated = Rotated { rotation, numbers: row("rotations", &rotations)? };
            let call = Call { py, wrapper: &wrapper, x, output, out, threads, first_chunk };
            call.run(true, Some(rotated), None, &arrays::key(key)?)
        }

        /// The weight of each rank, smallest magnitude (or value) first: uint64, shape (d,) or (2 d,). MemoryError where there
        /// is no room for them.
        fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
            let (mut all, d) = (Vec::new(), self.0.runs().map(|(count, _)| count as usize).sum());
            all.try_reserve_exact(d).map_err(|_| PyMemoryError::new_err(format!("not enough memory for {d} weights")))?;
            for (count, weight) in self.0.runs() {
                all.resize(all.len() + count as usize, weight);
            }
            Ok(all.into_pyarray(py))
        }

        /// Runs of ranks of one weight, smallest magnitude (or value) first: how many ranks each has, and their weight.
        fn runs<'py>(&self, py: Python<'py>) -> Runs<'py> {
            let (counts, weights): (Vec<u32>, Vec<u64>) = self.0.runs().unzip();
            (counts.into_pyarray(py), weights.into_pyarray(py))
        }

        fn __getnewargs__<'py>(&self, py: Python<'py>) -> NewArguments<'py> {
            let (counts, weights) = self.runs(py);
            (counts, weights, self.0.nothing(), self.0.is_signed())
        }
    }

    /// Select a coordinate of each vector.
    ///
    /// Parameters
    /// ----------
    /// x : array of float32 or float64, shape (n, d)
    ///     Finite numbers.
    /// key : bytes, KeyedRandomness or None
    ///     32 bytes, keyed randomness of the records, or None for a fresh key from the operating system.
    /// output : {"codes", "packed"}
    /// out : array or None
    /// threads : int or None
    /// first_chunk : int
    ///     How many chunks of ``chunk`` vectors of the key's stream to skip.
    fn randomize(call, key: Option<Source<'_, 'py>>) {
        call.run_from(true, None, None, key)
    }
}
