//! Exact alias tables (Walker): a draw from integer weights is one look-up and one comparison.
//!
//! A table over `2^k` outcomes whose weights are integers summing to `2^(64·limbs)` has columns of capacity
//! `2^(64·limbs - k)`, again an integer, so Vose's construction only adds and subtracts integers: the table represents
//! the weights without any rounding. A draw takes `k` bits of index and compares the bits that follow with the column's
//! threshold, as many of them as are needed to decide.

use crate::probability::Probability;

/// Limbs of a [`Wide`]: eight 64-bit factors and room for the carry of `2^512`.
const LIMBS: usize = 9;

/// An unsigned integer of 576 bits, least significant limb first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wide([u64; LIMBS]);

impl Wide {
    const ZERO: Wide = Wide([0; LIMBS]);

    fn power_of_two(exponent: usize) -> Wide {
        let mut limbs = [0; LIMBS];
        limbs[exponent / 64] = 1 << (exponent % 64);
        Wide(limbs)
    }

    fn less(&self, other: &Wide) -> bool {
        self.0.iter().rev().lt(other.0.iter().rev())
    }

    fn minus(&self, other: &Wide) -> Wide {
        let mut limbs = [0; LIMBS];
        let mut borrow = false;
        for (i, limb) in limbs.iter_mut().enumerate() {
            let (difference, under) = self.0[i].overflowing_sub(other.0[i]);
            let (difference, under_again) = difference.overflowing_sub(u64::from(borrow));
            *limb = difference;
            borrow = under | under_again;
        }
        debug_assert!(!borrow, "columns are only lowered by what they hold");
        Wide(limbs)
    }

    /// Product with a factor of at most `2^64`.
    fn times(&self, factor: u128) -> Wide {
        let mut limbs = [0; LIMBS];
        if factor == 1 << 64 {
            limbs[1..].copy_from_slice(&self.0[..LIMBS - 1]);
            return Wide(limbs);
        }
        let mut carry = 0u128;
        for (limb, &own) in limbs.iter_mut().zip(&self.0) {
            let sum = u128::from(own) * factor + carry;
            *limb = sum as u64;
            carry = sum >> 64;
        }
        Wide(limbs)
    }

    fn shifted_left(&self, by: usize) -> Wide {
        let (whole, part) = (by / 64, by % 64);
        Wide(std::array::from_fn(|i| {
            let limb = |below: usize| i.checked_sub(below).map_or(0, |i| self.0[i]);
            // A shift of a limb by all its 64 bits is not defined.
            if part == 0 { limb(whole) } else { limb(whole) << part | limb(whole + 1) >> (64 - part) }
        }))
    }
}

/// The alias table of `2^k` weights: column `j` gives `j` below its threshold and `alias[j]` above it.
pub(crate) struct Alias {
    bits: usize,
    limbs: usize,
    threshold: Vec<Wide>,
    alias: Vec<u16>,
}

impl Alias {
    /// The law of `chances.len()` independent bits, bit `t` of the outcome being 1 with probability `chances[t]`.
    pub(crate) fn of_independent_bits(chances: &[Probability]) -> Alias {
        let bits = chances.len();
        debug_assert!((1..=8).contains(&bits));
        let weights: Vec<Wide> = (0..1usize << bits)
            .map(|outcome| {
                chances.iter().enumerate().fold(Wide::power_of_two(0), |product, (t, chance)| {
                    let factor = if outcome >> t & 1 == 1 { *chance } else { chance.complement() };
                    product.times(factor.numerator())
                })
            })
            .collect();
        Alias::new(bits, bits, weights)
    }

    /// The law of `2^bits` outcomes with integer weights that sum to `2^64`.
    pub(crate) fn of_weights(bits: usize, weights: &[u128]) -> Alias {
        debug_assert_eq!(weights.len(), 1 << bits);
        debug_assert_eq!(weights.iter().sum::<u128>(), 1 << 64);
        let weights = weights
            .iter()
            .map(|&weight| {
                let mut limbs = [0; LIMBS];
                limbs[0] = weight as u64;
                limbs[1] = (weight >> 64) as u64;
                Wide(limbs)
            })
            .collect();
        Alias::new(bits, 1, weights)
    }

    fn new(bits: usize, limbs: usize, mut weight: Vec<Wide>) -> Alias {
        let capacity = Wide::power_of_two(64 * limbs - bits);
        let mut alias: Vec<u16> = (0..weight.len()).map(|j| j as u16).collect();
        let mut threshold = vec![Wide::ZERO; weight.len()];
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..weight.len()).partition(|&j| weight[j].less(&capacity));
        // Integers leave no rounding error behind: a column below its capacity always finds one above it.
        while let (Some(low), Some(&high)) = (small.pop(), large.last()) {
            threshold[low] = weight[low];
            alias[low] = high as u16;
            weight[high] = weight[high].minus(&capacity.minus(&weight[low]));
            if weight[high].less(&capacity) {
                large.pop();
                small.push(high);
            }
        }
        // What is left is full: its alias is itself, so its threshold does not matter.
        Alias { bits, limbs, threshold, alias }
    }

    /// Column `j` for a draw whose integer holds `top` bits of threshold: those bits, then the rest of the threshold as
    /// big-endian limbs, left-aligned, to be compared lazily.
    pub(crate) fn column(&self, j: usize, top: usize) -> (u64, u16, Vec<u64>) {
        let aligned = self.threshold[j].shifted_left(self.bits);
        let head = aligned.0[self.limbs - 1] >> (64 - top);
        let rest = aligned.shifted_left(top);
        (head, self.alias[j], (0..self.limbs).rev().map(|limb| rest.0[limb]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probability::Rounding;

    /// The sum of the columns for each outcome.
    fn represented(table: &Alias) -> Vec<Wide> {
        let plus = |a: &Wide, b: &Wide| {
            let mut limbs = [0; LIMBS];
            let mut carry = 0u128;
            for (i, limb) in limbs.iter_mut().enumerate() {
                let sum = u128::from(a.0[i]) + u128::from(b.0[i]) + carry;
                *limb = sum as u64;
                carry = sum >> 64;
            }
            Wide(limbs)
        };
        let capacity = Wide::power_of_two(64 * table.limbs - table.bits);
        let mut sums = vec![Wide::ZERO; table.alias.len()];
        for j in 0..table.alias.len() {
            let other = usize::from(table.alias[j]);
            sums[j] = plus(&sums[j], &table.threshold[j]);
            sums[other] = plus(&sums[other], &capacity.minus(&table.threshold[j]));
        }
        sums
    }

    #[test]
    fn the_table_is_the_product_law_without_rounding() {
        for bits in 1..=8 {
            let chances: Vec<Probability> = (0..bits)
                .map(|t| Probability::from_f64(0.29 + 0.03 * t as f64, Rounding::Down).unwrap())
                .collect();
            let table = Alias::of_independent_bits(&chances);
            for (outcome, sum) in represented(&table).iter().enumerate() {
                let weight = (0..bits).fold(Wide::power_of_two(0), |product, t| {
                    let chance = if outcome >> t & 1 == 1 { chances[t] } else { chances[t].complement() };
                    product.times(chance.numerator())
                });
                assert_eq!(*sum, weight, "{bits} bits, outcome {outcome}");
            }
        }
    }

    #[test]
    fn a_column_is_its_threshold_in_pieces() {
        for bits in 1..=8 {
            let chances: Vec<Probability> = (0..bits)
                .map(|t| Probability::from_f64(0.31 + 0.07 * t as f64, Rounding::Down).unwrap())
                .collect();
            let table = Alias::of_independent_bits(&chances);
            let top = 16 - bits;
            for j in 0..1 << bits {
                let (head, alias, rest) = table.column(j, top);
                assert_eq!((alias, rest.len()), (table.alias[j], bits));
                // head, then the limbs from the most significant on, are the bits of the threshold below the capacity.
                let aligned = table.threshold[j].shifted_left(bits);
                let bit = |i: usize| aligned.0[bits - 1 - i / 64] >> (63 - i % 64) & 1;
                for i in 0..64 * bits {
                    let piece = match i.checked_sub(top) {
                        None => head >> (top - 1 - i) & 1,
                        Some(i) => rest[i / 64] >> (63 - i % 64) & 1,
                    };
                    assert_eq!(piece, bit(i), "{bits} bits, column {j}, bit {i}");
                }
            }
        }
    }

    #[test]
    fn certain_bits_leave_one_outcome() {
        let table = Alias::of_independent_bits(&[Probability::ONE, Probability::ZERO, Probability::ONE]);
        for (outcome, sum) in represented(&table).iter().enumerate() {
            let expected = if outcome == 0b101 { Wide::power_of_two(192) } else { Wide::ZERO };
            assert_eq!(*sum, expected);
        }
    }

    #[test]
    fn plain_weights_are_kept() {
        let weights = [1u128, (1 << 63) - 3, 0, (1 << 63) + 2];
        let table = Alias::of_weights(2, &weights);
        for (sum, weight) in represented(&table).iter().zip(weights) {
            assert_eq!(u128::from(sum.0[0]) | u128::from(sum.0[1]) << 64, weight);
        }
    }
}
