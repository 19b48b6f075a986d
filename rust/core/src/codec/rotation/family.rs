//! Families of rotations: of how many coordinates, of which kind, from which public key.

use std::ops::Range;

use crate::error::{Result, argument, reason};
use crate::isa::Isa;
use crate::random::{Key, Purpose, Refine, nonce};

/// The fewest dimensions of Hadamard rotations: signs and transforms of 2 or 4 make finitely many, and of 8 or 16 mix slowly.
const LEAST: usize = 32;

/// Passes of signs and transform: the fewer dimensions, the less random each of them is. With three in 64 dimensions, a
/// vector with two entries would come out short by half a percent.
pub(super) fn passes(dimensions: usize) -> usize {
    match dimensions {
        ..=32 => 8,
        64 => 6,
        128 | 256 => 4,
        _ => 3,
    }
}

/// The most numbers that are rotated together. Above 2^20 dimensions, large integers of an undone rotation are rounded to the
/// 24 bits of a float, which changes a decoded number by 2^-24 of its size, alike on every instruction set.
const MOST_WHOLE: usize = 1 << 24;

/// The most numbers of a vector of either kind.
const MOST: usize = 1 << 31;
const MOST_HAAR: usize = (1 << 7) - 1;

/// How a rotation is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationKind {
    /// Passes of random signs and a Hadamard transform, three from 512 dimensions on and more below: `D log D` additions.
    Hadamard,
    /// Householder reflections: uniform among all rotations, `D^2` operations, for at most 128 dimensions.
    Haar,
}

/// Public rotations of the vectors of an l2 ball, each with a number.
///
/// Vectors of more than 2^24 numbers are cut into *blocks* of neighbours, as few as there can be and of one width, but for the
/// last. The number of a rotation also names one block, each with the same chance over the numbers, and the rotation is of
/// that block's numbers alone.
#[derive(Clone, Debug)]
pub struct Rotation {
    pub(super) features: usize,
    pub(super) width: usize,
    pub(super) dimensions: usize,
    pub(super) radius: f64,
    pub(super) kind: RotationKind,
    pub(super) key: Key,
}

impl Rotation {
    /// Rotations of vectors of `features` numbers in the ball of a radius, from a public key.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) for no features, more than 2^31 (127 of
    /// [`RotationKind::Haar`]), or a radius outside 1e-100 to 1e100.
    pub fn new(features: usize, radius: f64, kind: RotationKind, key: Key) -> Result<Rotation> {
        let most = if kind == RotationKind::Haar { MOST_HAAR } else { MOST };
        if !(1..=most).contains(&features) {
            return Err(argument("features", reason!("{features} is not allowed; 1 to {most} are")));
        }
        if !(1e-100..=1e100).contains(&radius) {
            return Err(argument("radius", reason!("{radius} is not allowed; 1e-100 to 1e100 are")));
        }
        let least = if kind == RotationKind::Haar { 2 } else { LEAST };
        let width = features.div_ceil(features.div_ceil(MOST_WHOLE));
        let dimensions = (width + 1).next_power_of_two().max(least);
        Ok(Rotation { features, width, dimensions, radius, kind, key })
    }

    /// Blocks of a vector, 1 up to 2^24 numbers.
    pub fn blocks(&self) -> usize {
        self.features.div_ceil(self.width)
    }

    /// The numbers of a vector that the rotation of a number is about: its block.
    pub(crate) fn block(&self, isa: Isa, number: u32) -> Range<usize> {
        let blocks = self.blocks();
        if blocks == 1 {
            return 0..self.features;
        }
        // Behind the signs, which are of the nonces of the main purpose.
        let mut draws = Refine::new(isa, &self.key, nonce(Purpose::Refine, number.into()));
        let start = draws.below(blocks as u64) as usize * self.width;
        start..(start + self.width).min(self.features)
    }

    /// Numbers of a vector, d.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Coordinates of a rotated vector, D: a power of two above d, or above the width of a block; with Hadamard rotations 32 at least.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The radius of the ball.
    pub fn radius(&self) -> f64 {
        self.radius
    }

    /// How rotations are made.
    pub fn kind(&self) -> RotationKind {
        self.kind
    }

    /// The factor of lengths in a rotation.
    pub(crate) fn stretch(&self) -> f64 {
        match self.kind {
            RotationKind::Hadamard => {
                // Twice as many passes are a whole power of the dimensions, which floats hold.
                let twice = (self.dimensions as f64).powi(passes(self.dimensions) as i32);
                twice.sqrt()
            }
            RotationKind::Haar => 1.0,
        }
    }
}
