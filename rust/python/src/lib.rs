//! The extension module `bitldp._core`: unpack the arguments, call the core, map the error; nothing else.

mod aggregate;
mod arrays;
mod bits;
mod cap;
mod channel;
mod cube;
mod design;
mod draws;
mod error;
mod fixed_point;
mod grid;
mod hashing;
mod keyed;
mod matrix;
mod mixture;
mod numbers;
mod pack;
mod rotation;
mod sampled;
mod select;
mod shift;
mod sliding;
mod subset;
mod text;
mod unary;
mod window;

use bitldp_core::{CHUNK, Isa};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::to_python;
use crate::numbers::{Weight, Whole, count};

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::aggregate::{count_hashes, count_ones, count_progressions, count_words, histogram, sums};
    #[pymodule_export]
    use super::bits::Bits;
    #[pymodule_export]
    use super::cap::Cap;
    #[pymodule_export]
    use super::cube::Cube;
    #[pymodule_export]
    use super::design::Design;
    #[pymodule_export]
    use super::draws::{coordinates, distinct, function_values, functions, scaled, words};
    #[pymodule_export]
    use super::fixed_point::FixedPoint;
    #[pymodule_export]
    use super::grid::Grid;
    #[pymodule_export]
    use super::hashing::{hash_cells, hash_supports, text_digests};
    #[pymodule_export]
    use super::keyed::KeyedRandomness;
    #[pymodule_export]
    use super::matrix::Matrix;
    #[pymodule_export]
    use super::mixture::Mixture;
    #[pymodule_export]
    use super::pack::{pack, unpack};
    #[pymodule_export]
    use super::rotation::Rotation;
    #[pymodule_export]
    use super::sampled::{sampled_histogram, sampled_sums};
    #[pymodule_export]
    use super::select::Select;
    #[pymodule_export]
    use super::shift::Shift;
    #[pymodule_export]
    use super::sliding::sliding_masses;
    #[pymodule_export]
    use super::subset::Subset;
    #[pymodule_export]
    use super::text::csv_rows;
    #[pymodule_export]
    use super::unary::Unary;
    #[pymodule_export]
    use super::window::Window;
    #[pymodule_export]
    use super::{available_isas, isa, keystream, log_ratio};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // A forced instruction set that is not there is better refused here than at the first call; a cap of the threads
        // that is no number, too.
        Isa::current().map_err(to_python)?;
        bitldp_core::most_threads().map_err(to_python)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("CHUNK", CHUNK)
    }
}

/// The instruction set that the kernels run on.
#[pyfunction]
fn isa() -> PyResult<&'static str> {
    Ok(Isa::current().map_err(to_python)?.name())
}

/// The instruction sets that this processor can run, best first.
#[pyfunction]
fn available_isas() -> Vec<&'static str> {
    Isa::available().iter().map(|isa| isa.name()).collect()
}

/// ln(numerator / denominator), rounded up.
#[pyfunction]
fn log_ratio(numerator: Weight, denominator: Weight) -> PyResult<f64> {
    let numerator = numerator.get("numerator", "2**128 - 1", Some)?;
    Ok(bitldp_core::log_ratio(numerator, denominator.get("denominator", "2**128 - 1", Some)?))
}

/// The keystream of a key and a nonce from its start, in canonical order. MemoryError where there is no room for it.
#[pyfunction]
fn keystream<'py>(
    py: Python<'py>,
    key: &[u8],
    nonce: Weight,
    length: Whole,
) -> PyResult<Bound<'py, PyBytes>> {
    let (key, length) = (arrays::key(Some(key))?, count("length", length)?);
    let nonce = nonce.get("nonce", "2**64 - 1", |nonce| nonce.try_into().ok())?;
    PyBytes::new_with(py, length, |bytes| bitldp_core::keystream(&key, nonce, bytes).map_err(to_python))
}
