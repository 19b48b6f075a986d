//! Rotations: vectors of a ball as directions of a larger space, turned by public randomness.
//!
//! ```text
//! x ──lift──▶ u = (x/R, sqrt(1 - |x/R|²), 0, …) ──rotate──▶ y = H S₃ H S₂ H S₁ u
//! ```
//!
//! H is the Hadamard matrix, the S are diagonals of random signs. They come from the keystream of a public key, rotation
//! `i` from the nonce `i`, so that client and server agree on them. Privacy never rests on them: a channel behind a rotation
//! has its ε for every one. H is not normalised: only the order of the coordinates of `y` matters.

mod haar;
mod hadamard;
#[cfg(target_arch = "x86_64")]
mod hadamard_x86;
mod lift;
mod signs;

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result, argument, element};
use crate::isa::Isa;
use crate::parallel::{Parts, for_chunks};
use crate::random::{GROUP, Key, Purpose, Refine, fill, nonce};
use haar::Reflections;
use hadamard::transform;
pub use lift::Part;

/// The fewest dimensions of Hadamard rotations: signs and transforms of 2 or 4 make finitely many, and of 8 or 16 mix slowly.
const LEAST: usize = 32;

/// Passes of signs and transform: the fewer dimensions, the less random each of them is. With three in 64 dimensions, a
/// vector with two entries would come out short by half a percent.
fn passes(dimensions: usize) -> usize {
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

/// Vectors of a task.
const TASK: usize = 64;

/// What a vector is made of.
pub(crate) const FINITE: &str = "a finite number is needed, not NaN and not infinite";

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
    features: usize,
    dimensions: usize,
    radius: f64,
    kind: RotationKind,
    key: Key,
}

/// A rotation for each vector of a batch, by its number.
#[derive(Clone, Copy, Debug)]
pub struct Rotated<'a> {
    /// The rotations.
    pub rotation: &'a Rotation,
    /// The number of each vector's.
    pub numbers: &'a [u32],
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

    /// What a rotation multiplies lengths by.
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

    /// Room to rotate in.
    pub(crate) fn room(&self, isa: Isa) -> Room<'_> {
        let bytes = (passes(self.dimensions) * sign_bytes(self.dimensions)).next_multiple_of(GROUP);
        let signs = if self.kind == RotationKind::Haar { 0 } else { bytes };
        Room {
            isa,
            rotation: self,
            number: None,
            vector: vec![0.0; self.dimensions],
            signs: vec![0; signs],
            reflections: None,
            wide: vec![0.0; self.dimensions],
        }
    }
}

impl Rotated<'_> {
    /// Lifts and rotates vectors; each row of the output is right up to a factor.
    ///
    /// # Errors
    /// Other than one vector for each number, an output of another length, no threads, a number that is not finite.
    pub fn rotate<F: Part>(&self, x: &[F], out: &mut [f32], threads: Option<usize>) -> Result<()> {
        let &Rotated { rotation, numbers } = self;
        let (features, dimensions) = (rotation.features, rotation.dimensions);
        if numbers.len().checked_mul(features) != Some(x.len()) {
            let reason = format!("{} numbers for vectors of {} in all", numbers.len(), x.len());
            return Err(Error::Shape { name: "rotations", reason });
        }
        if numbers.len().checked_mul(dimensions) != Some(out.len()) {
            return Err(Error::Output { reason: format!("{} elements are no rotated vectors", out.len()) });
        }
        if threads == Some(0) {
            return Err(argument("threads", "0 is not allowed; at least 1 is".into()));
        }
        let isa = Isa::current()?;
        let (parts, bad) = (Parts::new(out), AtomicUsize::new(usize::MAX));
        for_chunks(numbers.len(), TASK, threads, 500 + 2 * dimensions, |_, range| {
            // SAFETY: chunks do not overlap.
            let out = unsafe { parts.part(range.start * dimensions..range.end * dimensions) };
            let mut room = rotation.room(isa);
            for (out, at) in out.chunks_exact_mut(dimensions).zip(range) {
                match room.rotate(numbers[at], &x[at * features..(at + 1) * features]) {
                    Ok(vector) => out.copy_from_slice(vector),
                    Err(place) => _ = bad.fetch_min(at * features + place, Ordering::Relaxed),
                }
            }
        });
        match bad.into_inner() {
            usize::MAX => Ok(()),
            index => {
                out.fill(0.0);
                Err(element("x", index, FINITE))
            }
        }
    }
}

/// Bytes of a pass's signs: a bit each, and at least two bytes.
fn sign_bytes(dimensions: usize) -> usize {
    dimensions.div_ceil(16) * 2
}

/// Working memory, kept from vector to vector.
pub(crate) struct Room<'a> {
    isa: Isa,
    rotation: &'a Rotation,
    /// The rotation whose draws are at hand.
    number: Option<u32>,
    vector: Vec<f32>,
    signs: Vec<u8>,
    reflections: Option<Reflections>,
    wide: Vec<f64>,
}

impl Room<'_> {
    /// Draws what the rotation of a number is made of, unless it is at hand.
    fn turn_to(&mut self, number: u32) {
        if self.number == Some(number) {
            return;
        }
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

    /// Lifts and rotates a vector; its length is of no account.
    ///
    /// # Errors
    /// The place of the first number that is not finite.
    pub(crate) fn rotate<F: Part>(&mut self, number: u32, x: &[F]) -> std::result::Result<&[f32], usize> {
        lift::lift(self.isa, x, self.rotation.radius, &mut self.vector)?;
        self.turn_to(number);
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
        Ok(&self.vector)
    }

    /// Undoes a rotation of the coordinate that a report names, with its sign; the lift is dropped. The vector is longer
    /// than 1 by [`Rotation::stretch`].
    pub(crate) fn undo(&mut self, number: u32, report: u32) -> Undone<'_> {
        self.turn_to(number);
        let (place, negative) = ((report >> 1) as usize, report & 1 == 0);
        match &self.reflections {
            None => {
                let dimensions = self.vector.len();
                let signs = |pass| Self::pass(&self.signs, dimensions, pass);
                let last = passes(dimensions) - 1;
                signs::row(self.isa, &mut self.vector, signs(last), place, negative);
                for pass in (0..last).rev() {
                    transform(self.isa, &mut self.vector);
                    signs::flip(self.isa, &mut self.vector, Self::pass(&self.signs, dimensions, pass));
                }
                Undone::Whole(&self.vector[..self.rotation.features])
            }
            Some(reflections) => {
                self.wide.fill(0.0);
                self.wide[place] = if negative { -1.0 } else { 1.0 };
                reflections.undo(&mut self.wide);
                Undone::Real(&self.wide[..self.rotation.features])
            }
        }
    }

    /// Undoes a rotation of a whole vector of the larger space, in place, longer by [`Rotation::stretch`].
    pub(crate) fn undo_all(&mut self, number: u32, x: &mut [f64]) {
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
    }
}

/// A vector whose rotation was undone.
pub(crate) enum Undone<'a> {
    /// Integers: sums of signs.
    Whole(&'a [f32]),
    /// Any numbers.
    Real(&'a [f64]),
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [RotationKind; 2] = [RotationKind::Hadamard, RotationKind::Haar];

    fn rotation(features: usize, kind: RotationKind) -> Rotation {
        Rotation::new(features, 2.0, kind, Key::from_bytes([5; 32])).unwrap()
    }

    /// A report of a coordinate is worth the row of the rotation: its product with the input is that coordinate.
    #[test]
    fn what_is_undone_is_a_row_of_the_rotation() {
        for kind in KINDS {
            for features in [1usize, 2, 3, 6, 7, 30, 100] {
                let rotation = rotation(features, kind);
                let x: Vec<f64> = (0..features).map(|i| 0.1 * ((i * 31 % 7) as f64 - 3.0)).collect();
                let norm = x.iter().map(|x| x * x).sum::<f64>().sqrt();
                // On the sphere there is no lift, so the dropped coordinate tells nothing.
                let x: Vec<f64> = x.iter().map(|x| x / norm * 2.0).collect();
                for &isa in Isa::available() {
                    let (mut room, mut other) = (rotation.room(isa), rotation.room(isa));
                    for number in [0u32, 1, 77, u32::MAX] {
                        let y = room.rotate(number, &x).unwrap().to_vec();
                        for place in 0..rotation.dimensions() as u32 {
                            for (report, sign) in [(2 * place, -1.0), (2 * place + 1, 1.0)] {
                                let row: Vec<f64> = match other.undo(number, report) {
                                    Undone::Whole(row) => row.iter().map(|&x| x.into()).collect(),
                                    Undone::Real(row) => row.to_vec(),
                                };
                                let product: f64 = row.iter().zip(&x).map(|(a, b)| a * b / 2.0).sum();
                                let y = f64::from(y[place as usize]) * sign;
                                let near = rotation.stretch() * 1e-5;
                                assert!((product - y).abs() < near, "{kind:?} {features}: {product}, {y}");
                                let mut all = vec![0.0; rotation.dimensions()];
                                all[place as usize] = sign;
                                room.undo_all(number, &mut all);
                                assert_eq!(all[..features], row);
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn rotations_are_the_same_on_every_instruction_set_and_differ_by_number() {
        for kind in KINDS {
            for features in [1usize, 5, 100, 127] {
                let rotation = rotation(features, kind);
                let x: Vec<f32> = (0..features).map(|i| 0.3 / (i as f32 + 1.7)).collect();
                let all: Vec<Vec<f32>> = (0..9)
                    .map(|number| rotation.room(Isa::Scalar).rotate(number, &x).unwrap().to_vec())
                    .collect();
                for &isa in Isa::available() {
                    let mut room = rotation.room(isa);
                    for (number, expected) in all.iter().enumerate() {
                        assert_eq!(room.rotate(number as u32, &x).unwrap(), expected, "{isa}");
                    }
                }
                assert!(features < 5 || all.windows(2).all(|pair| pair[0] != pair[1]));
            }
        }
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let new = |features, radius, kind| Rotation::new(features, radius, kind, Key::from_bytes([5; 32]));
        for (features, kind, dimensions) in [
            (1, RotationKind::Haar, Some(2)),
            (1, RotationKind::Hadamard, Some(32)),
            (127, RotationKind::Haar, Some(128)),
            (128, RotationKind::Haar, None),
            (128, RotationKind::Hadamard, Some(256)),
            ((1 << 20) - 1, RotationKind::Hadamard, Some(1 << 20)),
            (1 << 20, RotationKind::Hadamard, None),
            (0, RotationKind::Hadamard, None),
        ] {
            assert_eq!(new(features, 1.0, kind).ok().map(|made| made.dimensions()), dimensions);
        }
        for radius in [0.0, -1.0, f64::NAN, 1e101, f64::INFINITY] {
            assert!(new(3, radius, RotationKind::Hadamard).is_err());
        }
    }
}
