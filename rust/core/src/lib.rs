//! Local differential privacy at the level of bits.
#![deny(missing_docs)]

mod alias;
mod channel;
mod codec;
mod error;
mod kernel;
mod parallel;
mod probability;
mod random;

pub use channel::{Bit, Bits, BitsEpsilon, Input, Matrix, Output, Unary, Window};
pub use codec::{
    Categories, Code, Coordinate, FixedPoint, Grid, GridRounding, Infinities, Real, SignBit, pack,
    packed_len, unpack,
};
pub use error::{Error, Result};
pub use kernel::{ISA_VARIABLE, Isa};
pub use parallel::CHUNK;
pub use probability::{Probability, Rounding, abs_log_ratio, add_up, log_ratio, mul_up};
pub use random::{Key, block, keystream, keystream_on};
