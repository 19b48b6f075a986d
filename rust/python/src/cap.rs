//! The class `Cap`: uniform about the input with one probability, uniform on everything otherwise.

use bitldp_core::Channel;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::{Form, packed_len};
use crate::channel::{Letters, channel, letters, wrong_shape};
use crate::error::to_python;
use crate::grid::Grid;
use crate::keyed::Source;
use crate::numbers::{List, Weight, Whole, count, large, probability};

/// Records of several codes: with probability ``high`` over 2**64 the report is uniform on the set N(x) about the record x,
/// and otherwise uniform on everything.
///
/// Parameters
/// ----------
/// windows : sequence of (int, int)
///     Points P and reach b of each: of an input c in [0, P) the report is one of P + 2b cells, near where it is c to c + 2b.
/// subsets : sequence of (int, int)
///     Elements k (2 to 65,536) and size w (1 to k - 1) of each: the report is w of k elements, a hit where the input is one of
///     them. At most 256.
/// hits : int
///     N(x) asks for so many hits at least, and for nearness in every window; 0 to the number of subsets.
/// high : int
///     T: the report is uniform on N(x) with probability T over 2**64.
/// mute : bool
///     Whether the input is checked, and zeros are randomized in its place: epsilon is 0 then, whatever the law is.
///
/// Raises
/// ------
/// ValueError
///     A parameter outside its range.
///
/// Notes
/// -----
/// With A = T / 2**64 and t, the share of all reports that is in N(x), ``epsilon`` is ln(1 + A / ((1 - A) t)): exact, from
/// integers, and rounded up. Neighbours are any two records. Neither branches nor addresses depend on the input, and as
/// much is drawn for a report of either kind.
#[pyclass(frozen, module = "bitldp._core")]
pub(crate) struct Cap(bitldp_core::Cap);

/// Pairs of integers.
type Pairs = List<(Whole, Whole)>;

fn pairs(name: &str, pairs: Pairs) -> PyResult<Vec<(u32, u32)>> {
    pairs.0.into_iter().map(|(a, b)| Ok((count(name, a)?, count(name, b)?))).collect()
}

channel! {
    impl Cap, |cap| format!("{} windows, {} of {} hits", cap.windows().len(), cap.hits(), cap.subsets().len());

    get {
        /// The least hits of a report in N(x).
        hits: u32,
        /// Codes of a record.
        values: usize,
        /// Code words of a report.
        codes: usize,
        /// Bits of a packed report.
        report_bits: u32,
        /// Records in one chunk of the key's stream.
        chunk: usize,
        /// The exact epsilon of a record.
        epsilon: f64,
    }

    wrapper {
        const FORMS: &'static [Form] = &[Form::Codes, Form::Bits, Form::Packed];
        const FORMS_WITH_VALUES: &'static [Form] = &[Form::Codes, Form::Values, Form::Bits, Form::Packed];

        fn shape(&self, x: &Bound<'_, PyUntypedArray>, form: Form) -> PyResult<Vec<usize>> {
            let values = self.0.values();
            let (&[ref first @ .., last], true) = (x.shape(), x.ndim() <= 2) else {
                return Err(wrong_shape(x, &format!("(n, {values}) and ({values},) are")));
            };
            if last != values {
                return Err(wrong_shape(x, &format!("(n, {values}) and ({values},) are")));
            }
            let bits = self.0.report_bits();
            let width = match form {
                Form::Packed => return Ok(vec![packed_len(first.iter().product(), bits)?]),
                Form::Codes => self.0.codes(),
                Form::Bits => bits as usize,
                Form::Values => values,
            };
            Ok(first.iter().copied().chain([width]).collect())
        }

        fn code_bits(&self) -> u32 {
            self.0.code_bits()
        }

        fn work(&self, values: usize) -> usize {
            values / self.0.values() * self.0.codes()
        }
    }

    methods {
        #[new]
        #[pyo3(signature = (windows, subsets, hits, high, mute = false))]
        fn new(
            py: Python<'_>,
            windows: Pairs,
            subsets: Pairs,
            hits: Whole,
            high: Weight,
            mute: bool,
        ) -> PyResult<Cap> {
            let (windows, subsets) = (pairs("windows", windows)?, pairs("subsets", subsets)?);
            let high = probability("high", high)?;
            let hits = count("hits", hits)?;
            // Hundreds of subsets take a second to count.
            let cap = py.detach(|| bitldp_core::Cap::new(windows, subsets, hits, high)).map_err(to_python)?;
            Ok(Cap(if mute { cap.muted() } else { cap }))
        }

        /// Points and reach of each window.
        #[getter]
        fn windows(&self) -> Vec<(u32, u32)> {
            self.0.windows().to_vec()
        }

        /// Elements and size of each subset.
        #[getter]
        fn subsets(&self) -> Vec<(u32, u32)> {
            self.0.subsets().to_vec()
        }

        /// The integer T over 2**64: the probability of a report that is drawn from N(x).
        #[getter]
        fn high(&self) -> u128 {
            self.0.high().numerator()
        }

        /// The share of all reports that is in N(x), t: numerator and denominator, in lowest terms.
        #[getter]
        fn share<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
            let (part, whole) = self.0.share();
            Ok((large(py, &part.to_bytes_le())?, large(py, &whole.to_bytes_le())?))
        }

        /// True where the input is checked, and zeros are randomized in its place.
        #[getter]
        fn mute(&self) -> bool {
            self.0.is_mute()
        }

        #[allow(clippy::type_complexity, reason = "the arguments of the constructor")]
        fn __getnewargs__(&self) -> (Vec<(u32, u32)>, Vec<(u32, u32)>, u32, u128, bool) {
            let cap = &self.0;
            let (windows, subsets) = (cap.windows().to_vec(), cap.subsets().to_vec());
            (windows, subsets, cap.hits(), cap.high().numerator(), cap.is_mute())
        }
    }

    /// Randomize records.
    ///
    /// Parameters
    /// ----------
    /// x : array of shape (n, values) or (values,)
    ///     Integers, those of windows first, in [0, P) and [0, k); with a grid, float32 or float64.
    /// grid : Grid or None
    ///     A grid of P points, where a record is nothing but windows, and all are alike.
    /// letters : array of float64, shape (P + 2b,), or None
    ///     What each cell of such windows stands for: needed for output "values".
    /// key : bytes, KeyedRandomness or None
    ///     32 bytes, keyed randomness of the records, or None for a fresh key from the operating system.
    /// output : {"codes", "values", "bits", "packed"}
    ///     "codes": shape (n, codes): a cell for each window, an element for each subset of size 1, k zeros and ones for each
    ///     other subset. "values": letters of the shape of ``x``. "bits": shape (n, report_bits), each code in as many bits as
    ///     its column needs. "packed": those bits, eight to a byte, nothing between records.
    /// out : array or None
    /// threads : int or None
    /// first_chunk : int
    ///     How many chunks of ``chunk`` records of the key's stream to skip.
    fn randomize(
        call,
        grid: Option<Bound<'py, Grid>>,
        letters: Letters<'py>,
        key: Option<Source<'_, 'py>>
    ) {
        let (codec, letters) = (grid.as_ref().map(|grid| &grid.get().0), self::letters(&letters)?);
        call.run_from(codec.is_some(), codec, letters, key)
    }
}
