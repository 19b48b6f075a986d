//! Codecs: values as codes, without randomness that privacy rests on.

mod canonical;
mod categories;
mod code;
mod fixed_point;
mod fixed_point_batch;
mod grid;
mod hashing;
mod pack;
mod real;
mod rotation;
mod unpack;

pub(crate) use canonical::{canonical, settled};
pub use categories::Categories;
pub use code::Code;
pub use fixed_point::{FixedPoint, Infinities, SignBit};
pub(crate) use fixed_point_batch::Encode;
pub use grid::{Coordinate, Grid, GridRounding};
pub use hashing::Hashing;
pub(crate) use pack::pack_into;
pub use pack::{pack, pack_to, packed_len, unpack, unpack_to};
pub use real::Real;
pub(crate) use rotation::{FINITE, RotationBuffers, Undone};
pub use rotation::{Part, Rotated, Rotation, RotationKind};
pub(crate) use unpack::{Rows, Unpack, gathered, squeeze_rows};

mod sealed {
    /// The trait that closes the public traits of numbers: only the types of this crate's choice have them.
    pub trait Sealed {}
    impl Sealed for u8 {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}
