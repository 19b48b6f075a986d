//! Families of rotations: of how many coordinates, of which kind, from which public key.

use crate::error::{Result, argument};
use crate::random::Key;

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

/// The most dimensions of a rotation of either kind.
const MOST: usize = 1 << 20;
const MOST_HAAR: usize = 1 << 7;

/// How a rotation is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationKind {
    /// Passes of random signs and a Hadamard transform, three from 512 dimensions on and more below: `D log D` additions.
    Hadamard,
    /// Householder reflections: uniform among all rotations, `D^2` operations, for at most 128 dimensions.
    Haar,
}

/// Public rotations of the vectors of an l2 ball, each with a number.
#[derive(Clone, Debug)]
pub struct Rotation {
    pub(super) features: usize,
    pub(super) dimensions: usize,
    pub(super) radius: f64,
    pub(super) kind: RotationKind,
    pub(super) key: Key,
}

impl Rotation {
    /// Rotations of vectors of `features` numbers in the ball of a radius, from a public key.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument) for no features, more than 2^20 - 1 (127 of
    /// [`RotationKind::Haar`]), or a radius outside 1e-100 to 1e100.
    pub fn new(features: usize, radius: f64, kind: RotationKind, key: Key) -> Result<Rotation> {
        let most = if kind == RotationKind::Haar { MOST_HAAR } else { MOST } - 1;
        if !(1..=most).contains(&features) {
            return Err(argument("features", format!("{features} is not allowed; 1 to {most} are")));
        }
        if !(1e-100..=1e100).contains(&radius) {
            return Err(argument("radius", format!("{radius} is not allowed; 1e-100 to 1e100 are")));
        }
        let least = if kind == RotationKind::Haar { 2 } else { LEAST };
        let dimensions = (features + 1).next_power_of_two().max(least);
        Ok(Rotation { features, dimensions, radius, kind, key })
    }

    /// Numbers of a vector, d.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Coordinates of a rotated vector, D: a power of two above d; with Hadamard rotations 32 at least.
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
