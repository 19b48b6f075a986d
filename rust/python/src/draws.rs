//! Public draws: `words`, and what is made of them.

use bitldp_core::{CHUNK, Draws, Hashes, Key};
use numpy::{Element, IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{copied, detached, key};
use crate::error::to_python;
use crate::keyed::{KeyedRandomness, Source};
use crate::numbers::{Weight, Whole, count};

/// The source that a call draws from, or a fresh key.
enum Taken<'py> {
    Key(Key),
    Keyed(Bound<'py, KeyedRandomness>),
}

impl<'py> Taken<'py> {
    fn new(source: Option<Source<'_, 'py>>) -> PyResult<Taken<'py>> {
        Ok(match source {
            None => Taken::Key(key(None)?),
            Some(Source::Key(bytes)) => Taken::Key(key(Some(bytes))?),
            Some(Source::Keyed(randomness)) => Taken::Keyed(randomness),
        })
    }

    fn draws(&self, first_chunk: u64, chunk: usize) -> Draws<'_> {
        match self {
            Taken::Key(key) => Draws::Stream { key, first_chunk, chunk },
            Taken::Keyed(randomness) => {
                Draws::Records { randomness: randomness.get().core(), stream: first_chunk }
            }
        }
    }
}

/// Words of 64 bits for records, without looking at them.
///
/// Parameters
/// ----------
/// key : bytes, KeyedRandomness or None
///     32 bytes, keyed randomness of the records, or None for a fresh key from the operating system.
/// records, each : int
///     How many records there are, and how many words each has.
/// first_chunk : int
///     The number of the first chunk; with keyed randomness, that of the stream.
/// chunk : int or None
///     Words of a chunk, 1 or more; None: CHUNK.
///
/// Returns
/// -------
/// array of uint64, shape (records * each,)
///     Chunk c of a key's stream is the keystream of the nonce ``first_chunk + c``.
///
/// Raises
/// ------
/// ValueError, TypeError, MemoryError
///     For a number out of range, or keyed randomness of other records.
#[pyfunction]
#[pyo3(signature = (key, records, each, first_chunk, chunk = None))]
pub(crate) fn words<'py>(
    py: Python<'py>,
    key: Option<Source<'_, 'py>>,
    records: Whole,
    each: Whole,
    first_chunk: Weight,
    chunk: Option<Whole>,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let (records, each) = (count::<usize>("records", records)?, count::<usize>("each", each)?);
    let (first_chunk, chunk) = (number(first_chunk)?, words_of(chunk)?);
    let taken = Taken::new(key)?;
    let draws = taken.draws(first_chunk, chunk);
    let work = || draws.words(records, each);
    Ok(detached(py, records.saturating_mul(each), work).map_err(to_python)?.into_pyarray(py))
}

/// The number of a chunk or a stream.
fn number(first_chunk: Weight) -> PyResult<u64> {
    first_chunk.get("first_chunk", "2**64 - 1", |number| number.try_into().ok())
}

fn words_of(chunk: Option<Whole>) -> PyResult<usize> {
    match chunk.map(|chunk| count("chunk", chunk)).transpose()? {
        Some(0) => Err(PyValueError::new_err("chunk: 0 is not allowed; at least 1 is")),
        chunk => Ok(chunk.unwrap_or(CHUNK)),
    }
}

/// Different coordinates for every record, any subset as likely as another.
///
/// Parameters
/// ----------
/// key, records, first_chunk
///     As of `words`.
/// features : int
///     How many coordinates there are, 1 to 2**32 - 1.
/// k : int
///     How many each record has, 1 to `features`.
///
/// Returns
/// -------
/// array of uint8, uint16 or uint32, shape (records, k)
///     Below `features`, in the order in which they were drawn, by Floyd's algorithm.
///
/// Raises
/// ------
/// ValueError, TypeError, MemoryError
///     As `words`.
#[pyfunction]
pub(crate) fn coordinates<'py>(
    py: Python<'py>,
    key: Option<Source<'_, 'py>>,
    records: Whole,
    features: Whole,
    k: Whole,
    first_chunk: Weight,
) -> PyResult<Bound<'py, PyAny>> {
    let (records, features, k) = (count("records", records)?, count("features", features)?, count("k", k)?);
    let first_chunk = number(first_chunk)?;
    let taken = Taken::new(key)?;
    let draws = taken.draws(first_chunk, CHUNK);
    macro_rules! drawn {
        ($code:ty) => {
            detached(py, usize::saturating_mul(records, k), || {
                draws.coordinates::<$code>(records, features, k)
            })
        };
    }
    match features {
        0..=0x100 => table(py, drawn!(u8), k),
        0x101..=0x1_0000 => table(py, drawn!(u16), k),
        _ => table(py, drawn!(u32), k),
    }
}

/// The different coordinates that words stand for: those of `coordinates`.
///
/// Parameters
/// ----------
/// draws : array of uint64, shape (n, k)
///     Words of each record.
/// features : int
///     1 to 2**32 - 1, and at least k.
///
/// Returns
/// -------
/// array of uint8, uint16 or uint32, shape (n, k)
///
/// Raises
/// ------
/// ValueError, TypeError, MemoryError
///     For an array of another form, or fewer features than k.
#[pyfunction]
pub(crate) fn distinct<'py>(
    py: Python<'py>,
    draws: PyReadonlyArray2<'_, u64>,
    features: Whole,
) -> PyResult<Bound<'py, PyAny>> {
    let (features, k) = (count("features", features)?, draws.shape()[1]);
    let draws = copied(draws.as_array())?;
    macro_rules! chosen {
        ($code:ty) => {
            detached(py, draws.len(), || {
                let mut chosen: Vec<$code> = vec![0; draws.len()];
                bitldp_core::distinct(&draws, features, k, &mut chosen).map(|()| chosen)
            })
        };
    }
    match features {
        0..=0x100 => table(py, chosen!(u8), k),
        0x101..=0x1_0000 => table(py, chosen!(u16), k),
        _ => table(py, chosen!(u32), k),
    }
}

/// Rows of `columns` codes.
fn table<'py, T: Element>(
    py: Python<'py>,
    entries: bitldp_core::Result<Vec<T>>,
    columns: usize,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(crate::channel::table(py, entries.map_err(to_python)?, columns)?.into_any())
}

/// The products ``floor(draw * count / 2**64)``: numbers from 0 to below a count.
///
/// Parameters
/// ----------
/// draws : array of uint64, shape (n,)
/// counts : int, or array of int64, shape (n,)
///     One for all draws or one for each, 0 to 2**32 - 1.
///
/// Returns
/// -------
/// array of int64, shape (n,)
///
/// Raises
/// ------
/// ValueError, TypeError
///     For arrays of another form, or a count out of range.
#[pyfunction]
pub(crate) fn scaled<'py>(
    py: Python<'py>,
    draws: PyReadonlyArray1<'_, u64>,
    counts: Counts<'py>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let draws = draws.as_array();
    let scaled = |(&draw, bound)| i64::from(bitldp_core::scaled(draw, bound));
    let result: Vec<i64> = match counts {
        Counts::One(bound) => {
            let bound = count("counts", bound)?;
            draws.iter().map(|draw| scaled((draw, bound))).collect()
        }
        Counts::Each(bounds) => {
            let refused =
                || PyValueError::new_err(format!("counts: {} of 0 to 2**32 - 1 are needed", draws.len()));
            let bounds: Option<Vec<u32>> =
                bounds.as_array().iter().map(|&bound| bound.try_into().ok()).collect();
            let bounds = bounds.filter(|bounds| bounds.len() == draws.len()).ok_or_else(refused)?;
            draws.iter().zip(bounds).map(scaled).collect()
        }
    };
    Ok(result.into_pyarray(py))
}

/// One count for all draws, or one for each.
#[derive(FromPyObject)]
pub(crate) enum Counts<'py> {
    One(Whole),
    Each(PyReadonlyArray1<'py, i64>),
}

/// The hash functions of two words each: a from 1 and b from 0 to below a prime.
///
/// Parameters
/// ----------
/// draws : array of uint64, shape (n, 2)
/// prime : int
///     3 to 2**31 - 1.
///
/// Returns
/// -------
/// array of uint32, shape (n, 2)
///
/// Raises
/// ------
/// ValueError, TypeError
///     For an array of another form, or a prime out of range.
#[pyfunction]
pub(crate) fn functions<'py>(
    py: Python<'py>,
    draws: PyReadonlyArray2<'_, u64>,
    prime: Whole,
) -> PyResult<Bound<'py, PyAny>> {
    let hashes = Hashes::new(count("prime", prime)?, 2).map_err(to_python)?;
    if draws.shape()[1] != 2 {
        return Err(PyValueError::new_err("draws: two of each record are needed"));
    }
    let draws = draws.as_array();
    let function = |row: numpy::ndarray::ArrayView1<'_, u64>| hashes.function([row[0], row[1]]);
    let both: Vec<u32> = draws.rows().into_iter().flat_map(function).collect();
    table(py, Ok(both), 2)
}

/// The values of hash functions, each at an input of its own: ``floor(values * ((a * x + b) mod prime) / prime)``.
///
/// Parameters
/// ----------
/// functions : array of uint32, shape (n, 2)
///     a and b, as `functions` gives them.
/// inputs : array of uint32, shape (n,)
/// prime, values : int
///     The prime, 3 to 2**31 - 1, and how many values a function has, 2 to `prime`.
///
/// Returns
/// -------
/// array of uint32, shape (n,)
///
/// Raises
/// ------
/// ValueError, TypeError
///     For arrays of another form, or a number out of range.
#[pyfunction]
pub(crate) fn function_values<'py>(
    py: Python<'py>,
    functions: PyReadonlyArray2<'_, u32>,
    inputs: PyReadonlyArray1<'_, u32>,
    prime: Whole,
    values: Whole,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let hashes = Hashes::new(count("prime", prime)?, count("values", values)?).map_err(to_python)?;
    if functions.shape() != [inputs.len(), 2] {
        return Err(PyValueError::new_err("functions: one for each input is needed, shape (n, 2)"));
    }
    let (functions, inputs) = (functions.as_array(), inputs.as_array());
    let pairs = functions.rows().into_iter().zip(inputs);
    let result: Vec<u32> = pairs.map(|(row, &input)| hashes.value([row[0], row[1]], input)).collect();
    Ok(result.into_pyarray(py))
}
