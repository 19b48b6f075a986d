//! `bitldp.Bits`.

use bitldp_core::Bit;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{Form, Target, contiguous, detached, input, packed_len, tuple, wrong_dtype};
use crate::error::to_python;
use crate::fixed_point::{CODES, FLOATS, FixedPoint, is_single};
use crate::numbers::{List, Whole, count, threads};

/// Independent bits: each position of a bit string is reported as 1 with a probability that depends on that bit alone.
///
/// Parameters
/// ----------
/// p, q : sequence of sequences of float
///     p[k][i] is the probability that position i is reported as 1 when it is 1, q[k][i] when it is 0, under law k;
///     position 0 is the most significant bit of a code word. Both are rounded toward each other to multiples of 2**-64.
/// features : int
///     Features of a record, r. Each is a code word of ``len(p[0])`` bits, 1 to 32.
/// pattern : sequence of int, optional
///     The law of each feature. Needed where there are several laws.
///
/// Raises
/// ------
/// ValueError
///     A probability that is NaN or outside [0, 1], laws of different lengths, or a pattern that does not fit.
///
/// Notes
/// -----
/// ``epsilon`` is exact for the integers that the sampler compares with, and rounded up: (worst bit, worst feature,
/// record). Neighbours are any two records of arbitrary bit strings, so every bit may differ.
#[pyclass(frozen, module = "bitldp._core")]
pub(crate) struct Bits(bitldp_core::Bits);

/// A probability for each position of each law.
type Laws = Vec<Vec<f64>>;

#[pymethods]
impl Bits {
    #[new]
    #[pyo3(signature = (p, q, features, pattern = None))]
    fn new(
        p: List<List<f64>>,
        q: List<List<f64>>,
        features: Whole,
        pattern: Option<List<Whole>>,
    ) -> PyResult<Bits> {
        let (p, q) = (p.0, q.0);
        if p.len() != q.len() || p.iter().zip(&q).any(|(p, q)| p.0.len() != q.0.len()) {
            return Err(PyValueError::new_err("q: as many probabilities as in p are needed, law by law"));
        }
        let law =
            |(p, q): (List<f64>, List<f64>)| p.0.into_iter().zip(q.0).map(|(p, q)| Bit::new(p, q)).collect();
        let laws = p.into_iter().zip(q).map(law).collect::<Result<_, _>>().map_err(to_python)?;
        let pattern =
            pattern.map(|of| of.0.into_iter().map(|law| count("pattern", law)).collect()).transpose()?;
        bitldp_core::Bits::new(laws, count("features", features)?, pattern).map(Bits).map_err(to_python)
    }

    /// Bits of a feature, l.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits()
    }

    /// Features of a record, r.
    #[getter]
    fn features(&self) -> usize {
        self.0.features()
    }

    /// Number of laws.
    #[getter]
    fn laws(&self) -> usize {
        self.0.laws().len()
    }

    /// Whether every bit is flipped as often from 1 as from 0.
    #[getter]
    fn symmetric(&self) -> bool {
        self.0.is_symmetric()
    }

    /// The exact epsilon of the worst bit, the worst feature, and a record. Infinite where an output rules an input out.
    #[getter]
    fn epsilon(&self) -> (f64, f64, f64) {
        let epsilon = self.0.epsilon();
        (epsilon.bit, epsilon.feature, epsilon.record)
    }

    /// For each law and position the integers (T_p, T_q) over 2**64 that the sampler compares with.
    fn thresholds(&self) -> Vec<Vec<(u128, u128)>> {
        let of_bit = |bit: &Bit| (bit.p.numerator(), bit.q.numerator());
        self.0.laws().iter().map(|law| law.iter().map(of_bit).collect()).collect()
    }

    /// Randomize records.
    ///
    /// Parameters
    /// ----------
    /// x : array of shape (n, features), or (features,) for one record ((n,) where features is 1)
    ///     float32 or float64 with a codec, code words (uint8, uint16, uint32) without one.
    /// codec : FixedPoint or None
    /// key : bytes or None
    ///     32 bytes, or None for a fresh key from the operating system.
    /// output : {"codes", "bits", "values", "packed"}
    /// out : array or None
    /// threads : int or None
    /// first_chunk : int
    ///     How many chunks of CHUNK features of the key's stream to skip.
    #[pyo3(signature = (x, codec, key, output, out, threads, first_chunk, /))]
    #[allow(clippy::too_many_arguments, reason = "the arguments of the Python method")]
    fn randomize<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        codec: Option<&Bound<'py, FixedPoint>>,
        key: Option<&[u8]>,
        output: &str,
        out: Option<&Bound<'py, PyAny>>,
        threads: Option<Whole>,
        first_chunk: Whole,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (threads, first_chunk) = (self::threads(threads)?, count("first_chunk", first_chunk)?);
        let x = contiguous(x)?;
        let values = input(&x, if codec.is_some() { FLOATS } else { CODES })?;
        let (form, single) = match codec {
            Some(_) => (
                Form::parse(output, &[Form::Codes, Form::Bits, Form::Values, Form::Packed])?,
                is_single(&values),
            ),
            None => (Form::parse(output, &[Form::Codes, Form::Bits, Form::Packed])?, true),
        };
        if codec.is_some() != values.is_real() {
            return Err(wrong_dtype("x", &x, if codec.is_some() { FLOATS } else { CODES }));
        }
        let shape = self.report_shape(&x, form)?;
        let target = Target::new(&x, out, form, self.0.bits(), &shape[..], single)?;
        let key = crate::arrays::key(key)?;
        let codec = codec.map(|codec| codec.get().0);
        let filled = target.output()?;
        detached(py, values.len(), || {
            self.0.randomize(codec.as_ref(), values, filled, &key, first_chunk, threads)
        })
        .map_err(to_python)?;
        Ok(target.into_any())
    }

    fn __repr__(&self) -> String {
        let (features, bits, laws) = (self.0.features(), self.0.bits(), self.0.laws().len());
        format!(
            "<Bits: {features} features of {bits} bits, laws: {laws}, exact epsilon {:.6}>",
            self.0.epsilon().record
        )
    }

    fn __getnewargs__(&self) -> (Laws, Laws, usize, Option<Vec<u32>>) {
        let column =
            |of: fn(&Bit) -> f64| self.0.laws().iter().map(|law| law.iter().map(of).collect()).collect();
        let (p, q) = (column(|bit| bit.p.to_f64()), column(|bit| bit.q.to_f64()));
        (p, q, self.0.features(), self.0.pattern().map(<[u32]>::to_vec))
    }
}

impl Bits {
    /// The shape of the reports of `x` in a form.
    fn report_shape(&self, x: &Bound<'_, PyUntypedArray>, form: Form) -> PyResult<Vec<usize>> {
        let (features, bits) = (self.0.features(), self.0.bits() as usize);
        let shape = x.shape();
        let fits = match shape {
            [n] => features == 1 || *n == features,
            [_, r] => *r == features,
            _ => false,
        };
        if !fits {
            let one = if features == 1 {
                "(n,) or (n, 1)".into()
            } else {
                format!("(n, {features}) or ({features},)")
            };
            return Err(PyValueError::new_err(format!("x: shape {} is not allowed; {one} is", tuple(shape))));
        }
        Ok(match form {
            Form::Codes | Form::Values => shape.to_vec(),
            Form::Packed => vec![packed_len(x.len(), bits)?],
            Form::Bits if features == 1 => vec![shape[0], bits],
            Form::Bits => shape.iter().rev().skip(1).copied().chain([features * bits]).collect(),
        })
    }
}
