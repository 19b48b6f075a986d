//! Random signs of a rotation: bits of the keystream, sixteen to two bytes, a 1 for a minus.

use crate::isa::{Isa, compiled};
use crate::vector::{Kernel, Vector};

/// Numbers whose signs are set together.
const RUN: usize = 16;

/// The sign bit of a run's number `at`, where the number's bit in `signs` is 1.
#[inline(always)]
fn minus(signs: u16, at: usize) -> u32 {
    (u32::from(signs) >> at) << 31
}

/// The kernel that flips the signs of numbers.
struct FlipSigns<'a> {
    x: &'a mut [f32],
    signs: &'a [u8],
}

impl Kernel for FlipSigns<'_> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(self, _: V) {
        let (runs, rest) = self.x.as_chunks_mut::<RUN>();
        let signs = self.signs.as_chunks::<2>().0;
        for (run, &signs) in runs.iter_mut().zip(signs) {
            let signs = u16::from_le_bytes(signs);
            for (at, x) in run.iter_mut().enumerate() {
                *x = f32::from_bits(x.to_bits() ^ minus(signs, at));
            }
        }
        if let Some(&signs) = signs.get(runs.len()) {
            for (at, x) in rest.iter_mut().enumerate() {
                *x = f32::from_bits(x.to_bits() ^ minus(u16::from_le_bytes(signs), at));
            }
        }
    }
}

/// Changes the sign of every number whose bit is 1; there are two bytes for every sixteen numbers that are begun.
pub(super) fn flip(isa: Isa, x: &mut [f32], signs: &[u8]) {
    compiled(isa, FlipSigns { x, signs });
}

/// The kernel that writes a row of signs.
struct Row<'a> {
    x: &'a mut [f32],
    signs: &'a [u8],
    row: usize,
    negative: bool,
}

impl Kernel for Row<'_> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(self, _: V) {
        let Row { x, signs, row, negative } = self;
        // The signs of the row's first sixteen entries; those of others are the same or the opposite.
        let first = (0..RUN).fold(0u16, |bits, at| bits | (((row & at).count_ones() as u16 & 1) << at));
        for ((number, run), &signs) in x.chunks_mut(RUN).enumerate().zip(signs.as_chunks::<2>().0) {
            let opposite = (((row / RUN) & number).count_ones() & 1 == 1) ^ negative;
            let signs = u16::from_le_bytes(signs) ^ first ^ if opposite { u16::MAX } else { 0 };
            for (at, x) in run.iter_mut().enumerate() {
                *x = f32::from_bits(1f32.to_bits() | minus(signs, at));
            }
        }
    }
}

/// Writes a row of the Hadamard matrix, or its negative, with the signs of those numbers changed whose bit is 1.
pub(super) fn row(isa: Isa, x: &mut [f32], signs: &[u8], row: usize, negative: bool) {
    compiled(isa, Row { x, signs, row, negative });
}

#[cfg(test)]
mod tests {
    use super::super::hadamard::transform;
    use super::*;

    #[test]
    fn a_row_is_a_transformed_unit_vector_with_its_signs_flipped() {
        for log in 0..10 {
            let count = 1usize << log;
            let signs: Vec<u8> = (0..count.div_ceil(RUN) * 2).map(|i| (i * 89 + 41) as u8).collect();
            for at in [0, count / 2, count / 3, count - 1] {
                for &isa in Isa::available() {
                    for negative in [false, true] {
                        let mut expected = vec![0f32; count];
                        expected[at] = if negative { -1.0 } else { 1.0 };
                        transform(isa, &mut expected);
                        for (i, x) in expected.iter_mut().enumerate() {
                            *x *= if signs[i / 8] >> (i % 8) & 1 == 1 { -1.0 } else { 1.0 };
                        }
                        let mut result = vec![7f32; count];
                        row(isa, &mut result, &signs, at, negative);
                        assert_eq!(result, expected, "{count}, {at}, {isa}");
                        flip(isa, &mut result, &signs);
                        flip(isa, &mut result, &signs);
                        assert_eq!(result, expected);
                    }
                }
            }
        }
    }
}
