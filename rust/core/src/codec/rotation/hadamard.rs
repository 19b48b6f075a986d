//! The Walsh–Hadamard transform, in place and not normalised: additions and subtractions in one fixed order.
//!
//! Every instruction set adds the same two numbers at every step, so all of them give the same bits. Where the numbers are
//! integers that a float holds, as of a report that is undone, the result is exact.

use std::ops::{Add, Sub};

#[cfg(target_arch = "aarch64")]
use super::hadamard_neon;
#[cfg(target_arch = "x86_64")]
use super::hadamard_x86;
use crate::isa::{Isa, compiled, dispatch};
use crate::vector::{Kernel, Vector};

/// Numbers of a block that the first-level cache holds.
const BLOCK: usize = 1 << 12;

/// Neighbours whose last steps are taken in a register.
const NEAR: usize = 16;

/// Numbers that can be transformed.
pub(super) trait Number: Copy + Add<Output = Self> + Sub<Output = Self> {
    /// The steps of distances 8, 4, 2 and 1.
    fn near(isa: Isa, block: &mut [[Self; NEAR]]) {
        let _ = isa;
        near(block);
    }
}

impl Number for f64 {}

impl Number for f32 {
    #[inline]
    fn near(isa: Isa, block: &mut [[f32; NEAR]]) {
        dispatch!(isa, (block),
            avx512 => hadamard_x86::near_512, avx2 => hadamard_x86::near_256, neon => hadamard_neon::near,
            _ => near(block));
    }
}

/// [`Number::near`], one step after the other.
#[inline(always)]
fn near<T: Number>(block: &mut [[T; NEAR]]) {
    for run in block {
        for half in [8, 4, 2, 1] {
            step(run, half);
        }
    }
}

/// Transforms as many numbers as a power of two: `x` becomes `H x`, where `H[i][j] = (-1)^(ones in i & j)`.
pub(super) fn transform<T: Number>(isa: Isa, x: &mut [T]) {
    debug_assert!(x.len().is_power_of_two());
    if x.len() < NEAR {
        let mut half = x.len() / 2;
        while half > 0 {
            step(x, half);
            half /= 2;
        }
        return;
    }
    let block = x.len().min(BLOCK);
    compiled(isa, Far { x, last: block });
    for block in x.chunks_exact_mut(block) {
        compiled(isa, Far { x: block, last: NEAR });
        T::near(isa, block.as_chunks_mut().0);
    }
}

/// One step: the numbers `half` apart become their sum and their difference.
#[inline(always)]
fn step<T: Number>(x: &mut [T], half: usize) {
    for pair in x.chunks_exact_mut(2 * half) {
        let (low, high) = pair.split_at_mut(half);
        for (a, b) in low.iter_mut().zip(high) {
            (*a, *b) = (*a + *b, *a - *b);
        }
    }
}

/// The steps of all distances from half of the numbers down to `last`.
struct Far<'a, T> {
    x: &'a mut [T],
    last: usize,
}

impl<T: Number> Kernel for Far<'_, T> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(self, _: V) {
        let Far { x, last } = self;
        let mut run = x.len();
        // Two steps at once, so that numbers are read and written half as often.
        while run >= 4 * last {
            for quarters in x.chunks_exact_mut(run) {
                let (low, high) = quarters.split_at_mut(run / 2);
                let ((a, b), (c, d)) = (low.split_at_mut(run / 4), high.split_at_mut(run / 4));
                for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                    let (e, f, g, h) = (*a + *c, *b + *d, *a - *c, *b - *d);
                    (*a, *b, *c, *d) = (e + f, e - f, g + h, g - h);
                }
            }
            run /= 4;
        }
        if run == 2 * last {
            step(x, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(i: usize, j: usize) -> f64 {
        if (i & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 }
    }

    /// By the definition, for every size up to beyond a block; integers, so that the sums are exact in any order.
    #[test]
    fn it_is_the_matrix_of_signs() {
        for log in 0..14 {
            let count = 1usize << log;
            let given: Vec<i32> = (0..count).map(|i| (i * 7919 % 23) as i32 - 11).collect();
            let rows = (0..count).step_by((count / 50).max(1)).chain([count - 1]);
            let expected: Vec<(usize, f64)> = rows
                .map(|i| (i, given.iter().enumerate().map(|(j, &x)| entry(i, j) * f64::from(x)).sum()))
                .collect();
            for &isa in Isa::available() {
                let mut single: Vec<f32> = given.iter().map(|&x| x as f32).collect();
                let mut double: Vec<f64> = given.iter().map(|&x| x.into()).collect();
                transform(isa, &mut single);
                transform(isa, &mut double);
                for &(i, sum) in &expected {
                    assert_eq!((f64::from(single[i]), double[i]), (sum, sum), "{count}, row {i} on {isa}");
                }
            }
        }
    }

    /// Numbers whose sums depend on the order in which they are added.
    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        for log in 0..15 {
            let given: Vec<f32> = (0..1u32 << log)
                .map(|i| (i.wrapping_mul(2_654_435_761) as i32) as f32 * 1e-7 + 0.3)
                .collect();
            let mut expected = given.clone();
            transform(Isa::Scalar, &mut expected);
            for &isa in Isa::available() {
                let mut result = given.clone();
                transform(isa, &mut result);
                assert!(
                    result.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits()),
                    "{log}, {isa}"
                );
            }
        }
    }
}
