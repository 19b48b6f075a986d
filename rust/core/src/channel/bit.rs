//! The law of one bit.

use crate::error::Result;
use crate::probability::{Probability, Rounding, abs_log_ratio};

/// The law of one bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bit {
    /// The probability that a 1 is reported as 1.
    pub p: Probability,
    /// The probability that a 0 is reported as 1.
    pub q: Probability,
}

impl Bit {
    /// A bit that is reported as 1 with probability `p` where it is 1, and `q` where it is 0.
    ///
    /// Both are rounded toward each other,
    /// which can only lower what the report tells.
    ///
    /// Where one float is 1 minus the other, the bit is taken as exactly symmetric, which samples at twice the speed: the
    /// one that is farther out moves inward, by less than a float can tell.
    ///
    /// # Errors
    /// NaN, or outside `[0, 1]`.
    pub fn new(p: f64, q: f64) -> Result<Bit> {
        let (towards_q, towards_p) =
            if p >= q { (Rounding::Down, Rounding::Up) } else { (Rounding::Up, Rounding::Down) };
        let bit = Bit { p: Probability::from_f64(p, towards_q)?, q: Probability::from_f64(q, towards_p)? };
        if p != 1.0 - q && q != 1.0 - p {
            return Ok(bit);
        }
        // Of the two chances to lie, the smaller is raised to the larger.
        let (lie_of_one, lie_of_zero) =
            if p >= q { (bit.p.complement(), bit.q) } else { (bit.p, bit.q.complement()) };
        let lie = if lie_of_one.numerator() > lie_of_zero.numerator() { lie_of_one } else { lie_of_zero };
        Ok(if p >= q { Bit { p: lie.complement(), q: lie } } else { Bit { p: lie, q: lie.complement() } })
    }

    /// True where a 1 is flipped as often as a 0.
    pub fn is_symmetric(&self) -> bool {
        self.p.complement() == self.q
    }

    /// The exact ε of the bit, max(|ln p/q|, |ln (1-p)/(1-q)|), rounded up.
    pub fn epsilon(&self) -> f64 {
        let ones = abs_log_ratio(self.p.numerator(), self.q.numerator());
        let zeros = abs_log_ratio(self.p.complement().numerator(), self.q.complement().numerator());
        ones.max(zeros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_never_raises_the_epsilon() {
        let floats = [
            0.0,
            1e-18,
            1e-3,
            0.1,
            0.25,
            0.3,
            0.5 - 2f64.powi(-54),
            0.5,
            0.6,
            0.9,
            1.0 - 2f64.powi(-53),
            1.0,
        ];
        for p in floats {
            for q in floats.into_iter().chain([1.0 - p, (1.0 - p).next_up()]).filter(|q| *q <= 1.0) {
                let bit = Bit::new(p, q).unwrap();
                // Both floats as they are, rounded away from each other: an upper bound of what was asked for.
                let (out_p, out_q) =
                    if p >= q { (Rounding::Up, Rounding::Down) } else { (Rounding::Down, Rounding::Up) };
                let asked = Bit {
                    p: Probability::from_f64(p, out_p).unwrap(),
                    q: Probability::from_f64(q, out_q).unwrap(),
                };
                assert!(bit.epsilon() <= asked.epsilon(), "{p} {q}: {} > {}", bit.epsilon(), asked.epsilon());
                assert!(!(p == 1.0 - q) || bit.is_symmetric(), "{p} {q}");
            }
        }
    }
}
