//! Counts of reports: `count_ones`, `count_words`, `histogram` and `sums`.

use bitldp_core::{Batch, Hashes, Input, Reports};
use numpy::{
    PyArray1, PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Form, contiguous_of, detached, input, wrong_dtype};
use crate::error::to_python;
use crate::fixed_point::CODES;
use crate::numbers::{Whole, count, threads};

const UNSIGNED: &str = "uint8, uint16, uint32 and bool are";

/// Reports of one argument, and how they are to be read.
pub(crate) struct Argument<'py> {
    name: &'static str,
    pub(crate) array: Bound<'py, PyUntypedArray>,
    form: Form,
    records: usize,
    columns: usize,
    bits: u32,
}

impl<'py> Argument<'py> {
    /// # Errors
    /// An array or a form that is not allowed; packed reports without `records`.
    pub(crate) fn new(
        name: &'static str,
        reports: &Bound<'py, PyAny>,
        form: &str,
        records: Option<Whole>,
        columns: usize,
        bits: u32,
    ) -> PyResult<Argument<'py>> {
        let form = Form::parse_as("form", form, &[Form::Codes, Form::Bits, Form::Packed])?;
        let mut array = contiguous_of(name, reports)?;
        if array.dtype().kind() == b'b' {
            // Bytes of 0 and 1, seen as such.
            array = array.call_method1("view", ("uint8",))?.cast_into::<PyUntypedArray>()?;
        }
        // The core looks at the numbers' ranges; here they only must not be divided by.
        let of_record =
            columns.max(1).saturating_mul(if form == Form::Bits { bits.max(1) as usize } else { 1 });
        let records = match (records, form) {
            (Some(records), _) => count("records", records)?,
            (None, Form::Packed) => {
                let text = "records: None is not allowed for packed reports; their number is needed";
                return Err(PyValueError::new_err(text));
            }
            (None, _) if !array.len().is_multiple_of(of_record) => {
                let text = format!(
                    "{name}: {} elements are not a whole number of records of {of_record}",
                    array.len()
                );
                return Err(PyValueError::new_err(text));
            }
            (None, _) => array.len() / of_record,
        };
        Ok(Argument { name, array, form, records, columns, bits })
    }

    pub(crate) fn batch(&self, threads: Option<usize>) -> PyResult<Batch<'_>> {
        let refuse = || wrong_dtype(self.name, &self.array, UNSIGNED);
        let reports = match (self.form, input(&self.array, CODES).map_err(|_| refuse())?) {
            (Form::Bits, Input::U8(bytes)) => Reports::Bits(bytes),
            (Form::Packed, Input::U8(bytes)) => Reports::Packed(bytes),
            (Form::Bits | Form::Packed, _) => {
                return Err(wrong_dtype(self.name, &self.array, "uint8 and bool are"));
            }
            (_, Input::U8(codes)) => Reports::U8(codes),
            (_, Input::U16(codes)) => Reports::U16(codes),
            (_, Input::U32(codes)) => Reports::U32(codes),
            _ => return Err(refuse()),
        };
        let batch = Batch::new(reports, self.records, self.columns, self.bits);
        batch.and_then(|batch| batch.threads(threads)).map_err(to_python)
    }
}

/// Bits that a code of an alphabet has in packed form.
pub(crate) fn width(alphabet: usize) -> u32 {
    (usize::BITS - alphabet.saturating_sub(1).leading_zeros()).clamp(1, 32)
}

/// The counts that `work` makes, as an array of `shape`; the interpreter is free meanwhile.
pub(crate) fn counted<'py>(
    py: Python<'py>,
    elements: usize,
    shape: &[usize],
    work: impl FnOnce() -> bitldp_core::Result<Vec<u64>> + Send,
) -> PyResult<Bound<'py, PyArrayDyn<u64>>> {
    let counts = detached(py, elements, work).map_err(to_python)?;
    PyArray1::from_vec(py, counts).reshape(shape)
}

/// Count, for each bit of a record, the records in which it is 1.
///
/// Parameters
/// ----------
/// reports : array of uint8 or bool
///     With ``form="bits"``, bytes of 0 and 1, ``width`` a record, in C order; with ``form="packed"``, one-dimensional:
///     the bits of all records, most significant of a byte first, nothing between records, zeros at the end.
/// width : int
///     Bits of a record, 1 or more.
/// form : {"bits", "packed"}
/// records : int or None
///     How many records there are: needed for packed ones, and checked for others.
/// threads : int or None
///     Number of threads; the counts do not depend on it. None chooses by the size of the batch.
///
/// Returns
/// -------
/// array of uint64, shape (width,)
///     Counts of other batches can be added to them.
///
/// Raises
/// ------
/// ValueError
///     A byte that is neither 0 nor 1 (its position is given, never its value), another length, or a number outside its
///     range. Nothing is counted then.
/// TypeError
///     Another dtype.
/// MemoryError
///     No room for the counts.
#[pyfunction]
#[pyo3(signature = (reports, width, *, form = "bits", records = None, threads = None))]
pub(crate) fn count_ones<'py>(
    py: Python<'py>,
    reports: &Bound<'py, PyAny>,
    width: Whole,
    form: &str,
    records: Option<Whole>,
    threads: Option<Whole>,
) -> PyResult<Bound<'py, PyArrayDyn<u64>>> {
    let (width, threads) = (count("width", width)?, self::threads(threads)?);
    let reports = Argument::new("reports", reports, form, records, width, 1)?;
    let batch = reports.batch(threads)?;
    counted(py, reports.array.len(), &[width], || batch.ones())
}

/// Count, for each column of sign-magnitude words, which of their bits are 1, alone and by twos.
///
/// From these counts the mean and the variance of decoded words follow exactly, whatever the letters, as long as a word is
/// decoded to a letter of its sign times a sum of letters of its other bits.
///
/// Parameters
/// ----------
/// reports : array of uint8, uint16 or uint32 (bits and packed: uint8)
///     Records of ``columns`` words, in C order. The highest of the ``bits`` bits of a word is its sign.
/// columns : int
///     Words of a record.
/// bits : int
///     Bits of a word: 2 to 32.
/// form : {"codes", "bits", "packed"}
///     Code words; bytes of 0 and 1, most significant first; or packed bits.
/// records, threads
///     As for `count_ones`.
///
/// Returns
/// -------
/// array of uint64, shape (columns, 2, 1 + m + m * (m - 1) // 2), with m = bits - 1
///     ``[:, 0]`` is about all records, ``[:, 1]`` about those whose sign bit is 1. Each is the number of records; of those
///     in which each of the m other bits is 1, most significant first; and in which two of them are 1: the first and the
///     second, the first and the third, and so on, as ``numpy.triu_indices(m, 1)`` has them.
///
/// Raises
/// ------
/// ValueError, TypeError, MemoryError
///     As `count_ones`, and for a word of more bits.
#[pyfunction]
#[pyo3(signature = (reports, columns, bits, *, form = "codes", records = None, threads = None))]
pub(crate) fn count_words<'py>(
    py: Python<'py>,
    reports: &Bound<'py, PyAny>,
    columns: Whole,
    bits: Whole,
    form: &str,
    records: Option<Whole>,
    threads: Option<Whole>,
) -> PyResult<Bound<'py, PyArrayDyn<u64>>> {
    let (columns, threads) = (count("columns", columns)?, self::threads(threads)?);
    let reports = Argument::new("reports", reports, form, records, columns, count("bits", bits)?)?;
    let batch = reports.batch(threads)?;
    counted(py, reports.array.len(), &[columns, 2, batch.word_statistics()], || batch.word_counts())
}

/// The arguments of what counts codes of an alphabet: reports, columns, alphabet and threads.
fn codes<'py>(
    reports: &Bound<'py, PyAny>,
    columns: Whole,
    alphabet: Whole,
    form: &str,
    records: Option<Whole>,
    threads: Option<Whole>,
) -> PyResult<(Argument<'py>, usize, usize, Option<usize>)> {
    let (columns, alphabet) = (count("columns", columns)?, count("alphabet", alphabet)?);
    let threads = self::threads(threads)?;
    let reports = Argument::new("reports", reports, form, records, columns, width(alphabet))?;
    Ok((reports, columns, alphabet, threads))
}

/// Count how often each code was reported in each column.
///
/// Parameters
/// ----------
/// reports : array of uint8, uint16, uint32 or bool (bits and packed: uint8)
///     Records of ``columns`` codes, in C order.
/// columns : int
///     Codes of a record.
/// alphabet : int
///     Codes are below it: 1 to 2**32. Bits and packed reports have as many bits a code as ``alphabet - 1`` needs, and at
///     least one.
/// form, records, threads
///     As for `count_words`.
///
/// Returns
/// -------
/// array of uint64, shape (columns, alphabet)
///
/// Raises
/// ------
/// ValueError, TypeError, MemoryError
///     As `count_ones`, and for a code outside the alphabet.
#[pyfunction]
#[pyo3(signature = (reports, columns, alphabet, *, form = "codes", records = None, threads = None))]
pub(crate) fn histogram<'py>(
    py: Python<'py>,
    reports: &Bound<'py, PyAny>,
    columns: Whole,
    alphabet: Whole,
    form: &str,
    records: Option<Whole>,
    threads: Option<Whole>,
) -> PyResult<Bound<'py, PyArrayDyn<u64>>> {
    let (reports, columns, alphabet, threads) = codes(reports, columns, alphabet, form, records, threads)?;
    let batch = reports.batch(threads)?;
    counted(py, reports.array.len(), &[columns, alphabet], || batch.histogram(alphabet))
}

/// Add up the codes of each column, and their squares.
///
/// Parameters
/// ----------
/// reports, columns, alphabet, form, records, threads
///     As for `histogram`.
///
/// Returns
/// -------
/// array of uint64, shape (columns, 2)
///     The sum of the codes and the sum of their squares.
///
/// Raises
/// ------
/// ValueError, TypeError, MemoryError
///     As `histogram`, and for so many records of so large codes that 64 bits might not hold a sum of squares.
#[pyfunction]
#[pyo3(signature = (reports, columns, alphabet, *, form = "codes", records = None, threads = None))]
pub(crate) fn sums<'py>(
    py: Python<'py>,
    reports: &Bound<'py, PyAny>,
    columns: Whole,
    alphabet: Whole,
    form: &str,
    records: Option<Whole>,
    threads: Option<Whole>,
) -> PyResult<Bound<'py, PyArrayDyn<u64>>> {
    let (reports, columns, alphabet, threads) = codes(reports, columns, alphabet, form, records, threads)?;
    let batch = reports.batch(threads)?;
    counted(py, reports.array.len(), &[columns, 2], || batch.sums(alphabet))
}

/// Count the reports that count for each input, where blocks are progressions (`Design.progressions`).
///
/// Parameters
/// ----------
/// reports : array of uint8, uint16 or uint32 (packed: uint8)
///     Codes of the reports: ``(a - 1) * modulus + y``.
/// inputs, modulus, width : int
///     As of `Design.progressions`.
/// form, records, threads
///     As for `histogram`.
///
/// Returns
/// -------
/// array of uint64, shape (inputs,)
///
/// Raises
/// ------
/// ValueError, TypeError, MemoryError
///     As `histogram`.
#[pyfunction]
#[pyo3(signature = (reports, inputs, modulus, width, *, form = "codes", records = None, threads = None))]
#[allow(clippy::too_many_arguments, reason = "the arguments of the Python function")]
pub(crate) fn count_progressions<'py>(
    py: Python<'py>,
    reports: &Bound<'py, PyAny>,
    inputs: Whole,
    modulus: Whole,
    width: Whole,
    form: &str,
    records: Option<Whole>,
    threads: Option<Whole>,
) -> PyResult<Bound<'py, PyArrayDyn<u64>>> {
    let (inputs, modulus): (usize, u32) = (count("inputs", inputs)?, count("modulus", modulus)?);
    let (of_block, threads): (u32, _) = (count("width", width)?, self::threads(threads)?);
    if inputs > modulus as usize {
        return Err(PyValueError::new_err(format!("inputs: {inputs} are not allowed; up to {modulus} are")));
    }
    let outputs = (modulus as usize).saturating_mul(modulus.saturating_sub(1) as usize / 2);
    let reports = Argument::new("reports", reports, form, records, 1, self::width(outputs))?;
    let batch = reports.batch(threads)?;
    counted(py, reports.array.len(), &[inputs], || {
        let mut counts = batch.progressions(modulus, of_block)?;
        counts.truncate(inputs);
        Ok(counts)
    })
}

/// Count the reports whose hash function gives an input the reported value, for each input.
///
/// The function of a report is x -> floor(values * ((a * x + b) mod prime) / prime).
///
/// Parameters
/// ----------
/// reports : array of uint32, shape (n, 3)
///     a, b and the value of each report.
/// inputs : int
///     How many there are, up to the prime.
/// prime : int
///     3 to 2**31 - 1.
/// values : int
///     2 to the prime.
/// threads : int or None
///     Number of threads; the counts do not depend on it.
///
/// Returns
/// -------
/// array of uint64, shape (inputs,)
///
/// Raises
/// ------
/// ValueError, TypeError, MemoryError
///     As `histogram`.
#[pyfunction]
#[pyo3(signature = (reports, inputs, prime, values, *, threads = None))]
pub(crate) fn count_hashes<'py>(
    py: Python<'py>,
    reports: &Bound<'py, PyAny>,
    inputs: Whole,
    prime: Whole,
    values: Whole,
    threads: Option<Whole>,
) -> PyResult<Bound<'py, PyArrayDyn<u64>>> {
    let hashes = Hashes::new(count("prime", prime)?, count("values", values)?).map_err(to_python)?;
    let (inputs, threads) = (count::<usize>("inputs", inputs)?, self::threads(threads)?);
    let array = contiguous_of("reports", reports)?;
    let Input::U32(triples) =
        input(&array, "uint32 is").map_err(|_| wrong_dtype("reports", &array, "uint32 is"))?
    else {
        return Err(wrong_dtype("reports", &array, "uint32 is"));
    };
    counted(py, triples.len().saturating_mul(inputs) / 16, &[inputs], || {
        hashes.count(triples, inputs, threads)
    })
}
