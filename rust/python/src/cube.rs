//! The class `Cube`: whole records of signs.

use bitldp_core::{Channel, Input};
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::Form;
use crate::channel::{channel, wrong_shape};
use crate::error::to_python;
use crate::grid::Grid;
use crate::keyed::Source;
use crate::numbers::{Weight, Whole, count, large, probability};

/// Whole records of signs: with probability ``high`` over 2**64 a report is uniform among the strings that agree with the
/// input in at least ``near`` places, otherwise among those that agree in at most ``far``.
///
/// Parameters
/// ----------
/// bits : int
///     Places of a record, r, 1 to 4,194,304.
/// near : int
///     Least agreements of the likely set, 0 to r.
/// far : int
///     Most agreements of the other set: ``near - 1`` (the two are all strings), or ``near`` (both hold the strings of just
///     so many agreements).
/// high : int
///     T: the probability of the likely set is T over 2**64.
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
/// ``epsilon`` is exact, from T and the sizes of the sets, which are big integers, and rounded up. Neighbours are any two
/// records; those that differ in one place reach it. Neither branches nor addresses depend on the input.
#[pyclass(frozen, module = "bitldp._core")]
pub(crate) struct Cube(bitldp_core::Cube);

channel! {
    impl Cube, |cube| format!("{} bits, {} agreements", cube.bits(), cube.near());

    get {
        /// Places of a record, r.
        bits: u32,
        /// Least agreements of the likely set.
        near: u32,
        /// Most agreements of the other set.
        far: u32,
        /// Records in one chunk of the key's stream.
        chunk: usize,
        /// The exact epsilon of a record.
        epsilon: f64,
    }

    wrapper {
        const CODES: Form = Form::Bits;
        const TYPES: &'static str = "without a grid, uint8 is";

        fn takes(input: &Input<'_>) -> bool {
            matches!(input, Input::U8(_))
        }

        fn shape(&self, x: &Bound<'_, PyUntypedArray>, form: Form) -> PyResult<Vec<usize>> {
            let r = self.0.bits() as usize;
            if !matches!(x.shape(), [last] | [_, last] if *last == r) {
                return Err(wrong_shape(x, &format!("(n, {r}) and ({r},) are")));
            }
            Ok(if form == Form::Packed { vec![x.len().div_ceil(8)] } else { x.shape().to_vec() })
        }
    }

    methods {
        #[new]
        #[pyo3(signature = (bits, near, far, high, mute = false))]
        fn new(py: Python<'_>, bits: Whole, near: Whole, far: Whole, high: Weight, mute: bool) -> PyResult<Cube> {
            let (bits, near, far) = (count("bits", bits)?, count("near", near)?, count("far", far)?);
            let high = probability("high", high)?;
            // Long records take a second to prepare.
            let cube = py.detach(|| bitldp_core::Cube::new(bits, near, far, high)).map_err(to_python)?;
            Ok(Cube(if mute { cube.muted() } else { cube }))
        }

        /// The integer T over 2**64: the probability of the likely set.
        #[getter]
        fn high(&self) -> u128 {
            self.0.high().numerator()
        }

        /// True where the input is checked, and zeros are randomized in its place.
        #[getter]
        fn mute(&self) -> bool {
            self.0.is_mute()
        }

        /// The same sets with another probability; they are shared, not prepared anew.
        #[pyo3(signature = (high, mute = false))]
        fn with_high(&self, high: Weight, mute: bool) -> PyResult<Cube> {
            let cube = self.0.with_high(probability("high", high)?);
            Ok(Cube(if mute { cube.muted() } else { cube }))
        }

        /// How many strings the likely set has, and the other.
        fn sizes<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
            let (near, far) = self.0.sizes();
            Ok((large(py, &near.to_bytes_le())?, large(py, &far.to_bytes_le())?))
        }

        /// C(r-1, near-1) and C(r-1, far): over the sizes, the mean of (agreements - disagreements)/r in the likely set, and
        /// of its negative in the other.
        fn edges<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
            let (near, far) = self.0.edges();
            Ok((large(py, &near.to_bytes_le())?, large(py, &far.to_bytes_le())?))
        }

        fn __getnewargs__(&self) -> (u32, u32, u32, u128, bool) {
            (self.0.bits(), self.0.near(), self.0.far(), self.0.high().numerator(), self.0.is_mute())
        }
    }

    /// Randomize records.
    ///
    /// Parameters
    /// ----------
    /// x : array of shape (n, bits) or (bits,)
    ///     Bits (uint8, 0 or 1); with a grid, float32 or float64.
    /// grid : Grid or None
    ///     Two points: numbers become the bit of the end that they are dithered to, 1 for the upper one.
    /// letters : (float, float) or None
    ///     The decoded values of a 0 and a 1, for "values".
    /// key : bytes, KeyedRandomness or None
    ///     32 bytes, keyed randomness of the records, or None for a fresh key from the operating system.
    /// output : {"codes", "values", "packed"}
    ///     Bytes of 0 and 1 of the shape of ``x``; letters of that shape; or bits, eight to a byte, nothing between records.
    /// out : array or None
    /// threads : int or None
    /// first_chunk : int
    ///     How many chunks of ``chunk`` records of the key's stream to skip.
    fn randomize(
        call,
        grid: Option<Bound<'py, Grid>>,
        letters: Option<(f64, f64)>,
        key: Option<Source<'_, 'py>>
    ) {
        let codec = grid.as_ref().map(|grid| &grid.get().0);
        let letters = letters.map(|(zero, one)| [zero, one]);
        call.run_from(codec.is_some(), codec, letters.as_ref().map(|letters| &letters[..]), key)
    }
}
