//! Local differential privacy at the level of bits.
//!
//! A client perturbs its own data, so that no server has to be trusted. Every mechanism here is three steps:
//!
//! ```text
//! value ──codec──▶ code ──channel──▶ report ──letters──▶ value again
//! ```
//!
//! - A **codec** ([`FixedPoint`], [`Grid`], [`Categories`]) turns a value into a code. No randomness that privacy rests on
//!   is in it: the dither of a grid only mixes rows of the channel behind it.
//! - A **channel** is the only place where privacy happens. Its law is integers over 2^64: [`Bits`] and [`Unary`]
//!   (independent bits, on arbitrary and on one-hot strings), [`Window`] (some cells likely, the others not), [`Design`] and [`Subset`]
//!   (the same of blocks of a design, and of all subsets of a size), [`Shift`]
//!   (integer noise that is added), [`Matrix`] (any row-stochastic table), [`Mixture`] (a window or a matrix, by a public
//!   coin), [`Cube`] (whole strings) and [`Cap`] (whole records of numbers and categories, uniform about the record or on
//!   everything); or, for [`Select`] (one coordinate of a vector, by its rank), integers over their
//!   sum. `epsilon()` is exact for the very integers that the sampler compares
//!   with, and rounded up.
//! - **Letters** say what a report is worth. A server counts reports first ([`Batch`]) and applies letters to the counts.
//!
//! Randomness is the keystream of ChaCha with 12 rounds under a 256-bit [`Key`], addressed by chunks of [`CHUNK`] values. The same key
//! gives the same reports on any number of threads and any instruction set ([`Isa`]), for a batch or for its chunks one by
//! one. A key used for two different batches reveals how they differ: take [`Key::from_os`] for every release.
//!
//! ```
//! use bitldp_core::{Bit, Bits, Call, Channel, FixedPoint, Infinities, Input, Key, Output, SignBit};
//!
//! // Two features of 8 bits, each bit flipped with probability 0.3.
//! let channel = Bits::new(vec![vec![Bit::new(0.7, 0.3)?; 8]], 2, None)?;
//! let codec = FixedPoint::new(8, 3, SignBit::OneIfNonNegative, Infinities::Refuse)?;
//! let record = [0.5f32, -1.25];
//! let mut report = [0u8; 2];
//! let key = Key::from_os()?;
//! channel.randomize(Call::new(Some(&codec), Input::F32(&record), Output::U8(&mut report), &key))?;
//! assert!((channel.epsilon() - 16.0 * (0.7f64 / 0.3).ln()).abs() < 1e-9);
//! # Ok::<(), bitldp_core::Error>(())
//! ```

/// The README's example, which is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod aggregate;
mod alias;
mod binomial;
mod channel;
mod codec;
mod draws;
mod error;
mod io;
mod isa;
mod kernel;
mod parallel;
mod probability;
mod random;
mod text;
mod vector;

pub use aggregate::{Batch, Hashes, Maximization, Reports, Sampled, Sliding, Undo, undo_counts};
pub use channel::{
    Bit, Bits, BitsEpsilon, Call, Cap, Channel, Cube, Design, DesignFamily, Keyed, KeyedCall,
    KeyedRandomness, Matrix, Mixture, Select, Shift, Subset, Unary, Window,
};
pub use codec::{
    Categories, Code, Coordinate, FixedPoint, Grid, GridRounding, Hashing, Infinities, Part, Real, Rotated,
    Rotation, RotationKind, SignBit, pack, pack_to, packed_len, unpack, unpack_to,
};
pub use draws::{Draws, distinct, scaled};
pub use error::{Error, Result};
pub use io::{Input, Output};
pub use isa::{ISA_VARIABLE, Isa};
pub use parallel::{CHUNK, THREADS_VARIABLE, most_threads};
pub use probability::{Probability, Rounding, abs_log_ratio, add_up, log_ratio, mul_up};
pub use random::{Ids, Key, ROUNDS, block, keystream, keystream_on, text_digests};
pub use text::{Fields, Words, rows};
