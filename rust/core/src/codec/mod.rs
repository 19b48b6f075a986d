//! Codecs: values as codes, without randomness that privacy rests on.

mod categories;
mod code;
mod fixed_point;
mod fixed_point_batch;
mod grid;
mod pack;
mod unpack;

pub use categories::Categories;
pub use code::Code;
pub(crate) use fixed_point::Encode;
pub use fixed_point::{FixedPoint, Infinities, Real, SignBit};
pub use grid::{Coordinate, Grid, GridRounding};
pub(crate) use pack::pack_into;
pub use pack::{pack, pack_to, packed_len, unpack, unpack_to};
pub(crate) use unpack::{squeeze, unpack_into};
