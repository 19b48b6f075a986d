//! Channels: the only step where privacy happens. Each has a law of integers, and its exact ε.

mod bit;
mod bits;
mod call;
mod cap;
mod categorical;
mod chunks;
mod cube;
mod design;
mod keyed;
mod matrix;
mod mixture;
mod select;
mod shift;
mod subset;
mod unary;
mod window;

pub use bit::Bit;
pub use bits::{Bits, BitsEpsilon};
pub use call::{Call, Channel};
pub use cap::Cap;
pub use cube::Cube;
pub use design::{Design, DesignFamily};
pub use keyed::{Keyed, KeyedCall, KeyedRandomness};
pub use matrix::Matrix;
pub use mixture::Mixture;
pub use select::Select;
pub use shift::Shift;
pub use subset::Subset;
pub use unary::Unary;
pub use window::Window;
