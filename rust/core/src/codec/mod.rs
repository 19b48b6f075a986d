//! Values as codes, without any randomness that privacy rests on.

mod categories;
mod fixed_point;
mod fixed_point_batch;
mod grid;
mod pack;
mod unpack;

pub use categories::Categories;
pub(crate) use fixed_point::Encode;
pub use fixed_point::{FixedPoint, Infinities, Real, SignBit};
pub use grid::{Coordinate, Grid, GridRounding};
pub(crate) use pack::pack_into;
pub use pack::{Code, pack, pack_to, packed_len, unpack, unpack_to};
pub(crate) use unpack::{squeeze, unpack_into};
