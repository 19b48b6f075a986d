//! Kernels of independent bits.

mod emit;
mod lanes;
mod laws;
mod plan;
mod sampler;
mod scalar;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod draw_avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;

pub(crate) use emit::BitSpreader;
pub(crate) use lanes::CodeWord;
pub(crate) use laws::{Laws, unrolled};
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::marked;
pub(crate) use plan::{BitsTable, Plan};
pub(crate) use sampler::BitsSampler;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) use wasm::marked;
