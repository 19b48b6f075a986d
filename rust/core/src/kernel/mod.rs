//! Kernels: each law is sampled by blocks of plain loops, which tests compare with single draws, and by versions for vector
//! units that give the same answers.

pub(crate) mod bits;
pub(crate) mod cap;
pub(crate) mod categorical;
pub(crate) mod cube;
pub(crate) mod select;
pub(crate) mod subset;
pub(crate) mod unary;

// The keystream takes it from here.
pub(crate) use crate::isa::Isa;
