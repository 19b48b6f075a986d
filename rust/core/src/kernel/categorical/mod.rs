//! Kernels of categorical laws: windows, matrices and shifts.

mod design;
mod emit;
mod flip;
#[cfg(target_arch = "aarch64")]
mod flip_neon;
#[cfg(target_arch = "x86_64")]
mod flip_x86;
mod keyed;
mod law;
mod laws;
mod look_up;
#[cfg(target_arch = "x86_64")]
mod look_up_avx512;
#[cfg(target_arch = "aarch64")]
mod look_up_neon;
mod matrix;
#[cfg(target_arch = "x86_64")]
mod matrix_avx512;
mod rows;
mod sampler;
mod shift;
mod window;
#[cfg(target_arch = "x86_64")]
mod window_avx512;
#[cfg(target_arch = "aarch64")]
mod window_neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod window_wasm;

pub(crate) use design::{Blocks, DesignLaw, Halves, ProgressionLaw, Translates};
pub(crate) use emit::Letters;
pub(crate) use flip::Flip;
pub(crate) use keyed::{DrawFirst, FirstReports, KeyedSampler, MixtureLaw};
pub(crate) use law::Law;
pub(crate) use matrix::AnyMatrix;
pub(crate) use rows::{first_outside, first_outside_by, load_on as load_rows};
pub(crate) use sampler::CategoricalSampler;
pub(crate) use shift::ShiftLaw;
pub(crate) use window::{NarrowWindow, WideWindow};
