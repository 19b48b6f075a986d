//! The class `KeyedRandomness`, which keyed calls draw from.

use std::sync::Arc;

use bitldp_core::{Ids, Key};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::Borrowed;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::arrays::{contiguous, contiguous_of, copied, detached, input, key, slice, tuple, wrong_dtype};
use crate::error::to_python;
use crate::numbers::{Whole, count, threads};

/// The ids that are taken.
const IDS: &str = "uint64, or uint8 of shape (n, 32), are";

/// The numbers that are taken with keyed randomness.
pub(crate) const NUMBERS: &str = "float32, float64 and integers are";

/// Random bits that are a function of a key, of what they are for, and of the records. Given for a key, they make a channel's
/// `randomize` report the same whenever it is asked for a record and its values again.
///
/// Parameters
/// ----------
/// key : bytes
///     32 of them, secret; they are not shown, and not pickled.
/// context : bytes
///     What the randomness is for: the plan and the snapshot.
/// ids : array of uint64, shape (n,), or of uint8, shape (n, 32)
///     The ids of the records, unique under key and context; copied.
/// column : int
///     The number of the first column, from 0; it and those behind it fit 32 bits.
///
/// Raises
/// ------
/// ValueError, TypeError
///     A key of another length, ids of another shape or dtype, a column out of range.
///
/// Notes
/// -----
/// Numbers count as the float64 that they are, with -0.0 and subnormals as 0.0. Values of a batch are its records' in C
/// order, equally many of each. Where a channel's report is of many values (Bits, Cap, Cube, Select), each of its records takes a column.
#[pyclass(frozen, module = "bitldp._core")]
pub(crate) struct KeyedRandomness {
    key: Key,
    context: Arc<[u8]>,
    stage: u32,
    ids: Arc<Names>,
    column: u32,
}

/// The ids of records.
enum Names {
    Numbers(Vec<u64>),
    Digests(Vec<[u8; 32]>),
    Bound(Vec<[u8; 32]>),
}

impl Names {
    fn ids(&self) -> Ids<'_> {
        match self {
            Names::Numbers(ids) => Ids::Numbers(ids),
            Names::Digests(ids) => Ids::Digests(ids),
            Names::Bound(ids) => Ids::Bound(ids),
        }
    }
}

impl KeyedRandomness {
    /// The randomness as the core takes it.
    pub(crate) fn core(&self) -> bitldp_core::KeyedRandomness<'_> {
        let randomness = bitldp_core::KeyedRandomness::new(&self.key, &self.context, self.ids.ids());
        bitldp_core::KeyedRandomness { stage: self.stage, column: self.column, ..randomness }
    }

    /// The same with other ids.
    fn with(&self, ids: Names, column: u32) -> KeyedRandomness {
        let (key, context, stage) = (self.key.clone(), Arc::clone(&self.context), self.stage);
        KeyedRandomness { key, context, stage, ids: ids.into(), column }
    }
}

#[pymethods]
impl KeyedRandomness {
    #[new]
    #[pyo3(signature = (key, context, ids, column = Whole::ZERO))]
    fn new(key: &[u8], context: &[u8], ids: &Bound<'_, PyAny>, column: Whole) -> PyResult<KeyedRandomness> {
        let (key, column) = (self::key(Some(key))?, count("column", column)?);
        let ids = names(&contiguous_of("ids", ids)?)?;
        Ok(KeyedRandomness { key, context: context.into(), stage: 0, ids: ids.into(), column })
    }

    /// The same randomness for another draw of one release: that of different stages shares nothing. 0 is the first.
    fn stage(&self, stage: Whole) -> PyResult<KeyedRandomness> {
        let (key, context, ids) = (self.key.clone(), Arc::clone(&self.context), Arc::clone(&self.ids));
        Ok(KeyedRandomness { key, context, stage: count("stage", stage)?, ids, column: self.column })
    }

    /// Keyed randomness that depends on all values of each record: two records that differ in one share nothing, in any column or stage.
    /// It depends on no value that is drawn from besides, which may be computed from the record.
    ///
    /// Parameters
    /// ----------
    /// x : array of numbers, the records on its first axis
    /// threads : int or None
    #[pyo3(signature = (x, threads = None))]
    fn bound(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        threads: Option<Whole>,
    ) -> PyResult<KeyedRandomness> {
        let threads = self::threads(threads)?;
        let x = contiguous(x)?;
        let values = input(&x, NUMBERS)?;
        if x.shape()[0] != self.__len__() {
            let text = format!("ids: {} of them do not fit {} records", self.__len__(), x.shape()[0]);
            return Err(PyValueError::new_err(text));
        }
        let randomness = self.core();
        let digests = detached(py, values.len(), || randomness.bound(values, threads)).map_err(to_python)?;
        Ok(self.with(Names::Bound(digests), self.column))
    }

    /// The randomness of one column of some of the records, by their indices: one value of each.
    fn taken(&self, records: PyReadonlyArray1<'_, i64>, column: Whole) -> PyResult<KeyedRandomness> {
        let (indices, column) = (copied(records.as_array())?, count("column", column)?);
        let outside = || PyIndexError::new_err("records: an index is out of range");
        let index = |&index: &i64| usize::try_from(index).ok().filter(|&index| index < self.__len__());
        let indices: Vec<usize> = indices.iter().map(index).collect::<Option<_>>().ok_or_else(outside)?;
        let digests = |ids: &[[u8; 32]]| indices.iter().map(|&index| ids[index]).collect();
        let ids = match &*self.ids {
            Names::Numbers(ids) => Names::Numbers(indices.iter().map(|&index| ids[index]).collect()),
            Names::Digests(ids) => Names::Digests(digests(ids)),
            Names::Bound(ids) => Names::Bound(digests(ids)),
        };
        Ok(self.with(ids, column))
    }

    /// Draws of 64 bits, uint64 of shape (n * count,): `count` for each record, of its stream `stream`. They depend on the
    /// ids alone, so those of randomness that is `bound` depend on the values.
    #[pyo3(signature = (count, stream, threads = None))]
    fn words<'py>(
        &self,
        py: Python<'py>,
        count: Whole,
        stream: u64,
        threads: Option<Whole>,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let (count, threads) = (self::count("count", count)?, self::threads(threads)?);
        let randomness = self.core();
        let draw = || randomness.words(count, stream, threads);
        Ok(detached(py, self.__len__().saturating_mul(count), draw).map_err(to_python)?.into_pyarray(py))
    }

    /// The number of records.
    fn __len__(&self) -> usize {
        self.ids.ids().len()
    }

    /// Without the key.
    fn __repr__(&self) -> String {
        format!("<KeyedRandomness of {} records>", self.__len__())
    }

    /// Refused: a key travels by reference, never in a pickle.
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("KeyedRandomness: holds a key, and is not pickled"))
    }
}

/// An argument `key`: a key, or keyed randomness.
pub(crate) enum Source<'a, 'py> {
    Key(&'a [u8]),
    Keyed(Bound<'py, KeyedRandomness>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Source<'a, 'py> {
    type Error = PyErr;

    fn extract(source: Borrowed<'a, 'py, PyAny>) -> PyResult<Source<'a, 'py>> {
        match source.cast::<KeyedRandomness>() {
            Ok(randomness) => Ok(Source::Keyed(randomness.to_owned())),
            Err(_) => Ok(Source::Key(source.extract()?)),
        }
    }
}

/// The ids of records: numbers, or digests of 32 bytes.
fn names(ids: &Bound<'_, PyUntypedArray>) -> PyResult<Names> {
    let refused = |allowed: &str| {
        let text = format!("ids: shape {} is not allowed; {allowed} is", tuple(ids.shape()));
        PyValueError::new_err(text)
    };
    if let Some(numbers) = slice::<u64>(ids) {
        return if ids.ndim() == 1 { Ok(Names::Numbers(numbers.to_vec())) } else { Err(refused("(n,)")) };
    }
    match slice::<u8>(ids) {
        Some(bytes) if ids.ndim() == 2 && ids.shape()[1] == 32 => {
            Ok(Names::Digests(bytes.as_chunks().0.to_vec()))
        }
        Some(_) => Err(refused("(n, 32) of uint8, a digest a row,")),
        None => Err(wrong_dtype("ids", ids, IDS)),
    }
}
