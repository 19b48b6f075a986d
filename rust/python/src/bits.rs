//! The class `Bits`: independent bits.

use bitldp_core::Bit;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrays::{self, Form};
use crate::channel::{channel, wrong_shape};
use crate::error::to_python;
use crate::fixed_point::{CODES, FixedPoint};
use crate::keyed::Source;
use crate::numbers::{List, Weight, Whole, count, probability};

/// Independent bits: each position of a bit string is reported as 1 with a probability that depends on that bit alone.
///
/// Parameters
/// ----------
/// p, q : sequence of sequences of float
///     `p[k][i]` is the probability that position i is reported as 1 when it is 1, `q[k][i]` when it is 0, under law k;
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

/// For each law and position the integers over 2^64 of a 1 and of a 0.
type Thresholds = Vec<Vec<(u128, u128)>>;

/// Makes the channel of laws.
fn made(laws: Vec<Vec<Bit>>, features: Whole, pattern: Option<List<Whole>>) -> PyResult<Bits> {
    let pattern =
        pattern.map(|of| of.0.into_iter().map(|law| count("pattern", law)).collect()).transpose()?;
    bitldp_core::Bits::new(laws, count("features", features)?, pattern).map(Bits).map_err(to_python)
}

channel! {
    impl Bits, |bits| {
        let (features, bits, laws) = (bits.features(), bits.bits(), bits.laws().len());
        format!("{features} features of {bits} bits, laws: {laws}")
    };

    get {
        /// Bits of a feature, l.
        bits: u32,
        /// Features of a record, r.
        features: usize,
    }

    wrapper {
        const FORMS: &'static [Form] = &[Form::Codes, Form::Bits, Form::Packed];
        const FORMS_WITH_VALUES: &'static [Form] = &[Form::Codes, Form::Bits, Form::Values, Form::Packed];
        const SPELLED: bool = true;
        const TYPES: &'static str = CODES;

        fn shape(&self, x: &Bound<'_, PyUntypedArray>, form: Form) -> PyResult<Vec<usize>> {
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
                return Err(wrong_shape(x, &format!("{one} is")));
            }
            Ok(match form {
                Form::Codes | Form::Values => shape.to_vec(),
                Form::Packed => vec![arrays::packed_len(x.len(), bits)?],
                Form::Bits if features == 1 => vec![shape[0], bits],
                Form::Bits => shape.iter().rev().skip(1).copied().chain([features * bits]).collect(),
            })
        }
    }

    methods {
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
            let law = |(p, q): (List<f64>, List<f64>)| p.0.into_iter().zip(q.0).map(|(p, q)| Bit::new(p, q)).collect();
            made(p.into_iter().zip(q).map(law).collect::<Result<_, _>>().map_err(to_python)?, features, pattern)
        }

        /// The channel of probabilities that are integers over 2**64.
        ///
        /// Parameters
        /// ----------
        /// thresholds : sequence of sequences of (int, int)
        ///     For each law and position T_p and T_q, 0 to 2**64 each: what `thresholds` gives.
        /// features, pattern
        ///     As of the constructor.
        #[staticmethod]
        #[pyo3(signature = (thresholds, features, pattern = None))]
        fn from_integers(
            thresholds: List<List<(Weight, Weight)>>,
            features: Whole,
            pattern: Option<List<Whole>>,
        ) -> PyResult<Bits> {
            let bit = |(p, q)| Ok(Bit { p: probability("thresholds", p)?, q: probability("thresholds", q)? });
            let law = |law: List<_>| law.0.into_iter().map(bit).collect();
            made(thresholds.0.into_iter().map(law).collect::<PyResult<_>>()?, features, pattern)
        }

        /// Number of laws.
        #[getter]
        fn laws(&self) -> usize {
            self.0.laws().len()
        }

        /// True where every bit is flipped as often from 1 as from 0.
        #[getter]
        fn symmetric(&self) -> bool {
            self.0.is_symmetric()
        }

        /// The exact epsilon of the worst bit, the worst feature, and a record. Infinite where an output rules an input out.
        #[getter]
        fn epsilon(&self) -> (f64, f64, f64) {
            let epsilon = self.0.epsilons();
            (epsilon.bit, epsilon.feature, epsilon.record)
        }

        /// The law of each feature of a record; None where there is one for all.
        #[getter]
        fn pattern(&self) -> Option<Vec<u32>> {
            self.0.pattern().map(<[u32]>::to_vec)
        }

        /// For each law and position the integers (T_p, T_q) over 2**64 that the sampler compares with.
        fn thresholds(&self) -> Thresholds {
            let of_bit = |bit: &Bit| (bit.p.numerator(), bit.q.numerator());
            self.0.laws().iter().map(|law| law.iter().map(of_bit).collect()).collect()
        }

        /// Through the integers: floats would be rounded to others.
        #[allow(clippy::type_complexity, reason = "the arguments of the constructor")]
        fn __reduce__<'py>(
            slf: &Bound<'py, Self>,
        ) -> PyResult<(Bound<'py, PyAny>, (Thresholds, usize, Option<Vec<u32>>))> {
            let own = slf.get();
            let arguments = (own.thresholds(), own.0.features(), own.pattern());
            Ok((slf.get_type().getattr("from_integers")?, arguments))
        }
    }

    /// Randomize records.
    ///
    /// Parameters
    /// ----------
    /// x : array of shape (n, features), or (features,) for one record ((n,) where features is 1)
    ///     float32 or float64 with a codec, code words (uint8, uint16, uint32) without one.
    /// codec : FixedPoint or None
    /// key : bytes, KeyedRandomness or None
    ///     32 bytes, keyed randomness of the records, or None for a fresh key from the operating system.
    /// output : {"codes", "bits", "values", "packed"}
    /// out : array or None
    /// threads : int or None
    /// first_chunk : int
    ///     How many chunks of CHUNK features of the key's stream to skip.
    fn randomize(call, codec: Option<Bound<'py, FixedPoint>>, key: Option<Source<'_, 'py>>) {
        let codec = codec.as_ref().map(|codec| &codec.get().0);
        call.run_from(codec.is_some(), codec, None, key)
    }
}
