//! Rotations that are uniform among all: products of Householder reflections of Gaussian vectors.
//!
//! A reflection of the last `k` coordinates takes the first of them to a uniform direction, and the rotation of the others
//! is uniform by induction (Stewart, "The efficient generation of random orthogonal matrices", 1980). Every one of them is
//! its own inverse. It takes about `D^2` draws and operations a vector.

use crate::random::Refine;

/// The reflections of one rotation of `dimensions` coordinates, the smallest first, and the sign of the last coordinate.
pub(super) struct Reflections {
    dimensions: usize,
    negative: bool,
    /// The vectors of 2, 3, … coordinates, one after the other, each of a length such that its reflection takes from `x`
    /// itself times its product with `x`.
    vectors: Vec<f64>,
    /// True where a reflection is followed by a change of all signs.
    turned: Vec<bool>,
}

impl Reflections {
    /// The reflections that a stream of draws gives.
    pub(super) fn new(dimensions: usize, draws: &mut Refine<'_>) -> Reflections {
        let negative = draws.next() >> 63 == 1;
        let (mut vectors, mut turned) = (Vec::new(), Vec::new());
        for size in 2..=dimensions {
            let start = vectors.len();
            vectors.extend((0..size).map(|_| normal(draws)));
            let vector = &mut vectors[start..];
            let length = norm(vector);
            // To the direction or to its opposite, whichever is farther from the first axis: no digits are lost.
            let opposite = vector[0] > 0.0;
            vector[0] += if opposite { length } else { -length };
            let scale = std::f64::consts::SQRT_2 / norm(vector);
            vector.iter_mut().for_each(|x| *x *= scale);
            turned.push(opposite);
        }
        Reflections { dimensions, negative, vectors, turned }
    }

    /// Rotates a vector.
    pub(super) fn rotate(&self, x: &mut [f64]) {
        self.sign(x);
        (2..=self.dimensions).for_each(|size| self.reflect(x, size));
    }

    /// Undoes [`rotate`](Self::rotate).
    pub(super) fn undo(&self, x: &mut [f64]) {
        (2..=self.dimensions).rev().for_each(|size| self.reflect(x, size));
        self.sign(x);
    }

    fn sign(&self, x: &mut [f64]) {
        let last = &mut x[self.dimensions - 1];
        *last = if self.negative { -*last } else { *last };
    }

    fn reflect(&self, x: &mut [f64], size: usize) {
        let start = size * (size - 1) / 2 - 1;
        let (vector, x) = (&self.vectors[start..start + size], &mut x[self.dimensions - size..]);
        let product: f64 = vector.iter().zip(x.iter()).map(|(v, x)| v * x).sum();
        let turned = self.turned[size - 2];
        for (x, v) in x.iter_mut().zip(vector) {
            *x -= product * v;
            *x = if turned { -*x } else { *x };
        }
    }
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// A standard normal number of two draws, as Box and Muller have it; by functions that are the same on every platform.
fn normal(draws: &mut Refine<'_>) -> f64 {
    let mut uniform = || ((draws.next() >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64);
    let radius = (-2.0 * libm::log(uniform())).sqrt();
    radius * libm::cos(std::f64::consts::TAU * uniform())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;
    use crate::random::Key;

    fn reflections(dimensions: usize, nonce: u64) -> Reflections {
        let key = Key::from_bytes([3; 32]);
        Reflections::new(dimensions, &mut Refine::new(Isa::Scalar, &key, nonce))
    }

    #[test]
    fn a_rotation_keeps_lengths_and_angles_and_is_undone() {
        for dimensions in [2, 3, 8, 128] {
            let rotation = reflections(dimensions, 5);
            let columns: Vec<Vec<f64>> = (0..dimensions)
                .map(|at| {
                    let mut x = vec![0.0; dimensions];
                    x[at] = 1.0;
                    rotation.rotate(&mut x);
                    x
                })
                .collect();
            for (i, a) in columns.iter().enumerate() {
                for (j, b) in columns.iter().enumerate() {
                    let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                    assert!((product - f64::from(i == j)).abs() < 1e-12, "{i}, {j}: {product}");
                }
                let mut back = a.clone();
                rotation.undo(&mut back);
                assert!(back.iter().enumerate().all(|(at, x)| (x - f64::from(at == i)).abs() < 1e-12));
            }
        }
    }

    /// Every entry of a uniform rotation of 3 coordinates is uniform on [-1, 1], with the variance 1/3, and its determinant
    /// is 1 or -1 by a fair coin. n = 4,000; fixed key; 5 standard errors (alpha = 6e-7 for each of 19 numbers).
    #[test]
    fn entries_and_determinants_are_those_of_uniform_rotations() {
        let n = 4000;
        let (mut sums, mut squares, mut positive) = ([0.0; 9], [0.0; 9], 0);
        for nonce in 0..n {
            let rotation = reflections(3, nonce);
            let mut m = [0.0; 9];
            for at in 0..3 {
                let mut x = [0.0; 3];
                x[at] = 1.0;
                rotation.rotate(&mut x);
                m[3 * at..3 * at + 3].copy_from_slice(&x);
            }
            for ((sum, square), x) in sums.iter_mut().zip(&mut squares).zip(m) {
                *sum += x;
                *square += x * x;
            }
            let determinant = m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6])
                + m[2] * (m[3] * m[7] - m[4] * m[6]);
            assert!((determinant.abs() - 1.0).abs() < 1e-12);
            positive += usize::from(determinant > 0.0);
        }
        let n = n as f64;
        for (sum, square) in sums.into_iter().zip(squares) {
            assert!(sum.abs() < 5.0 * (n / 3.0).sqrt(), "{sum}");
            assert!((square - n / 3.0).abs() < 5.0 * (n * (1.0 / 5.0 - 1.0 / 9.0)).sqrt(), "{square}");
        }
        assert!((positive as f64 - n / 2.0).abs() < 5.0 * (n / 4.0).sqrt(), "{positive}");
    }
}
