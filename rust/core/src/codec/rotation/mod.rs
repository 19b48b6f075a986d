//! Rotations: vectors of a ball as directions of a larger space, turned by public randomness.
//!
//! ```text
//! x ──lift──▶ u = (x/R, sqrt(1 - |x/R|²), 0, …) ──rotate──▶ y = H S₃ H S₂ H S₁ u
//! ```
//!
//! H is the Hadamard matrix, the S are diagonals of random signs. They come from the keystream of a public key, rotation
//! `i` from the nonce `i`, so that client and server agree on them. Privacy never rests on them: a channel behind a rotation
//! has its ε for every one. H is not normalised: only the order of the coordinates of `y` matters.

mod buffers;
mod family;
mod haar;
mod hadamard;
#[cfg(target_arch = "aarch64")]
mod hadamard_neon;
#[cfg(target_arch = "x86_64")]
mod hadamard_x86;
mod lift;
mod signs;

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result, argument, element, reason, words};
use crate::isa::Isa;
use crate::parallel::{Parts, for_chunks};
pub(crate) use buffers::{RotationBuffers, Undone};
pub use family::{Rotation, RotationKind};
pub use lift::Part;

/// Vectors of a task.
const TASK: usize = 64;

/// The numbers of a vector.
pub(crate) const FINITE: &str = "a finite number is needed, not NaN and not infinite";

/// A rotation for each vector of a batch, by its number.
#[derive(Clone, Copy, Debug)]
pub struct Rotated<'a> {
    /// The rotations.
    pub rotation: &'a Rotation,
    /// The number of each vector's.
    pub numbers: &'a [u32],
}

impl Rotated<'_> {
    /// Lifts and rotates vectors; each row of the output is right up to a factor.
    ///
    /// # Errors
    /// Other than one vector for each number, an output of another length, no threads, a number that is not finite.
    pub fn rotate<F: Part>(&self, x: &[F], out: &mut [f32], threads: Option<usize>) -> Result<()> {
        let &Rotated { rotation, numbers } = self;
        let (features, dimensions) = (rotation.features(), rotation.dimensions());
        if numbers.len().checked_mul(features) != Some(x.len()) {
            let reason = reason!("{} numbers for vectors of {} in all", numbers.len(), x.len());
            return Err(Error::Shape { name: "rotations", reason });
        }
        if numbers.len().checked_mul(dimensions) != Some(out.len()) {
            return Err(Error::Output { reason: reason!("{} elements are no rotated vectors", out.len()) });
        }
        if threads == Some(0) {
            return Err(argument("threads", words("0 is not allowed; at least 1 is")));
        }
        let isa = Isa::current()?;
        let (parts, bad) = (Parts::new(out), AtomicUsize::new(usize::MAX));
        for_chunks(numbers.len(), TASK, threads, 500 + 2 * dimensions, |_, range| {
            // SAFETY: chunks do not overlap.
            let out = unsafe { parts.part(range.start * dimensions..range.end * dimensions) };
            let mut buffers = rotation.buffers(isa);
            for (out, at) in out.chunks_exact_mut(dimensions).zip(range) {
                match buffers.rotate(numbers[at], &x[at * features..(at + 1) * features]) {
                    Ok(vector) => out.copy_from_slice(vector),
                    Err(position) => _ = bad.fetch_min(at * features + position, Ordering::Relaxed),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    const KINDS: [RotationKind; 2] = [RotationKind::Hadamard, RotationKind::Haar];

    fn rotation(features: usize, kind: RotationKind) -> Rotation {
        Rotation::new(features, 2.0, kind, Key::from_bytes([5; 32])).unwrap()
    }

    /// A decoded report of a coordinate is the row of the rotation: its product with the input is that coordinate.
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
                    let (mut buffers, mut other) = (rotation.buffers(isa), rotation.buffers(isa));
                    for number in [0u32, 1, 77, u32::MAX] {
                        let y = buffers.rotate(number, &x).unwrap().to_vec();
                        for position in 0..rotation.dimensions() as u32 {
                            for (report, sign) in [(2 * position, -1.0), (2 * position + 1, 1.0)] {
                                let (block, row) = other.undo(number, report);
                                assert_eq!(block, 0..features);
                                let row: Vec<f64> = match row {
                                    Undone::Whole(row) => row.iter().map(|&x| x.into()).collect(),
                                    Undone::Real(row) => row.to_vec(),
                                };
                                let product: f64 = row.iter().zip(&x).map(|(a, b)| a * b / 2.0).sum();
                                let y = f64::from(y[position as usize]) * sign;
                                let near = rotation.stretch() * 1e-5;
                                assert!((product - y).abs() < near, "{kind:?} {features}: {product}, {y}");
                                let mut all = vec![0.0; rotation.dimensions()];
                                all[position as usize] = sign;
                                buffers.undo_all(number, &mut all);
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
                    .map(|number| rotation.buffers(Isa::Scalar).rotate(number, &x).unwrap().to_vec())
                    .collect();
                for &isa in Isa::available() {
                    let mut buffers = rotation.buffers(isa);
                    for (number, expected) in all.iter().enumerate() {
                        assert_eq!(buffers.rotate(number as u32, &x).unwrap(), expected, "{isa}");
                    }
                }
                assert!(features < 5 || all.windows(2).all(|pair| pair[0] != pair[1]));
            }
        }
    }

    /// Every block comes up about as often as each other one, and the last is shorter.
    #[test]
    fn the_number_of_a_rotation_names_a_block() {
        let rotation = rotation(3 * (1 << 24) - 1, RotationKind::Hadamard);
        assert_eq!((rotation.blocks(), rotation.dimensions()), (3, 1 << 25));
        let mut counts = [0; 3];
        for number in 0..3000 {
            let block = rotation.block(Isa::Scalar, number);
            let at = block.start >> 24;
            assert_eq!(block, at << 24..((at + 1) << 24).min(rotation.features()));
            assert!(Isa::available().iter().all(|&isa| rotation.block(isa, number) == block));
            counts[at] += 1;
        }
        // Six standard deviations of 26.
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
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
            (1 << 20, RotationKind::Hadamard, Some(1 << 21)),
            (1 << 24, RotationKind::Hadamard, Some(1 << 25)),
            ((1 << 24) + 1, RotationKind::Hadamard, Some(1 << 24)),
            (1 << 31, RotationKind::Hadamard, Some(1 << 25)),
            ((1 << 31) + 1, RotationKind::Hadamard, None),
            (0, RotationKind::Hadamard, None),
        ] {
            assert_eq!(new(features, 1.0, kind).ok().map(|made| made.dimensions()), dimensions);
        }
        for radius in [0.0, -1.0, f64::NAN, 1e101, f64::INFINITY] {
            assert!(new(3, radius, RotationKind::Hadamard).is_err());
        }
    }
}
