//! Working memory in which vectors are rotated and rotated back, one after the other.

use std::ops::Range;

use super::family::{Rotation, RotationKind, passes};
use super::haar::Reflections;
use super::hadamard::transform;
use super::lift::{Part, lift, lift_block};
use super::signs;
use crate::isa::Isa;
use crate::random::{GROUP, Purpose, Refine, fill, nonce};

/// Bytes of a pass's signs: a bit each, and at least two bytes.
fn sign_bytes(dimensions: usize) -> usize {
    dimensions.div_ceil(16) * 2
}

impl Rotation {
    /// Buffers to rotate in.
    pub(crate) fn buffers(&self, isa: Isa) -> RotationBuffers<'_> {
        let bytes = (passes(self.dimensions) * sign_bytes(self.dimensions)).next_multiple_of(GROUP);
        let signs = if self.kind == RotationKind::Haar { 0 } else { bytes };
        RotationBuffers {
            isa,
            rotation: self,
            number: None,
            block: 0..0,
            vector: vec![0.0; self.dimensions],
            signs: vec![0; signs],
            reflections: None,
            wide: vec![0.0; if self.kind == RotationKind::Haar { self.dimensions } else { 0 }],
        }
    }
}

/// Working memory, kept from vector to vector.
pub(crate) struct RotationBuffers<'a> {
    isa: Isa,
    rotation: &'a Rotation,
    /// The rotation whose draws are at hand.
    number: Option<u32>,
    /// The numbers of a vector that it is about.
    block: Range<usize>,
    vector: Vec<f32>,
    signs: Vec<u8>,
    reflections: Option<Reflections>,
    wide: Vec<f64>,
}

impl RotationBuffers<'_> {
    /// Draws what the rotation of a number is made of, unless it is at hand.
    fn turn_to(&mut self, number: u32) {
        if self.number == Some(number) {
            return;
        }
        self.block = self.rotation.block(self.isa, number);
        let nonce = nonce(Purpose::Main, number.into());
        match self.rotation.kind {
            RotationKind::Hadamard => fill(self.isa, &self.rotation.key, nonce, 0, &mut self.signs),
            RotationKind::Haar => {
                let mut draws = Refine::new(self.isa, &self.rotation.key, nonce);
                self.reflections = Some(Reflections::new(self.rotation.dimensions, &mut draws));
            }
        }
        self.number = Some(number);
    }

    /// The signs of a pass.
    fn pass(signs: &[u8], dimensions: usize, pass: usize) -> &[u8] {
        let bytes = sign_bytes(dimensions);
        &signs[pass * bytes..(pass + 1) * bytes]
    }

    /// Lifts and rotates a vector, or its block; its length is of no account.
    ///
    /// # Errors
    /// The position of the first number that is not finite.
    pub(crate) fn rotate<F: Part>(&mut self, number: u32, x: &[F]) -> std::result::Result<&[f32], usize> {
        self.turn_to(number);
        if self.block.len() == x.len() {
            lift(self.isa, x, self.rotation.radius, &mut self.vector)?;
        } else {
            lift_block(self.isa, x, self.block.clone(), self.rotation.radius, &mut self.vector)?;
        }
        self.turn();
        Ok(&self.vector)
    }

    /// Rotates the vector at hand.
    fn turn(&mut self) {
        match &self.reflections {
            None => {
                for pass in 0..passes(self.vector.len()) {
                    let signs = Self::pass(&self.signs, self.vector.len(), pass);
                    signs::flip(self.isa, &mut self.vector, signs);
                    transform(self.isa, &mut self.vector);
                }
            }
            Some(reflections) => {
                self.wide.iter_mut().zip(&self.vector).for_each(|(wide, &x)| *wide = x.into());
                reflections.rotate(&mut self.wide);
                self.vector.iter_mut().zip(&self.wide).for_each(|(x, &wide)| *x = wide as f32);
            }
        }
    }

    /// Undoes a rotation of the coordinate that a report names, with its sign; the lift is dropped. The vector is longer
    /// than 1 by [`Rotation::stretch`]. Its numbers are those of a block, whose range comes with it.
    pub(crate) fn undo(&mut self, number: u32, report: u32) -> (Range<usize>, Undone<'_>) {
        self.turn_to(number);
        let block = self.block.clone();
        let (position, negative) = ((report >> 1) as usize, report & 1 == 0);
        match &self.reflections {
            None => {
                let dimensions = self.vector.len();
                let signs = |pass| Self::pass(&self.signs, dimensions, pass);
                let last = passes(dimensions) - 1;
                signs::row(self.isa, &mut self.vector, signs(last), position, negative);
                for pass in (0..last).rev() {
                    transform(self.isa, &mut self.vector);
                    signs::flip(self.isa, &mut self.vector, Self::pass(&self.signs, dimensions, pass));
                }
                (block.clone(), Undone::Whole(&self.vector[..block.len()]))
            }
            Some(reflections) => {
                self.wide.fill(0.0);
                self.wide[position] = if negative { -1.0 } else { 1.0 };
                reflections.undo(&mut self.wide);
                (block.clone(), Undone::Real(&self.wide[..block.len()]))
            }
        }
    }

    /// Undoes a rotation of a whole vector of the larger space, in place, longer by [`Rotation::stretch`]; gives its block.
    pub(crate) fn undo_all(&mut self, number: u32, x: &mut [f64]) -> Range<usize> {
        self.turn_to(number);
        match &self.reflections {
            None => {
                for pass in (0..passes(x.len())).rev() {
                    transform(self.isa, x);
                    let signs = Self::pass(&self.signs, x.len(), pass);
                    for (at, x) in x.iter_mut().enumerate() {
                        *x = if signs[at / 8] >> (at % 8) & 1 == 1 { -*x } else { *x };
                    }
                }
            }
            Some(reflections) => reflections.undo(x),
        }
        self.block.clone()
    }
}

/// A vector whose rotation was undone.
pub(crate) enum Undone<'a> {
    /// Integers: sums of signs.
    Whole(&'a [f32]),
    /// Any numbers.
    Real(&'a [f64]),
}
