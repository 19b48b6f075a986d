//! Shares of exact rationals: what a draw is compared with.

use num_bigint::BigUint;

use crate::random::Refine;

/// An exact rational from 0 to 1, that random bits are compared with.
pub(crate) struct Share {
    /// Its first 32 bits, and the 64 behind them; all ones for 1.
    pub(super) top: u32,
    next: u64,
    /// The rest behind those bits, over `whole`.
    rest: BigUint,
    whole: BigUint,
    certain: bool,
}

impl Share {
    /// `part / whole`.
    pub(crate) fn new(part: &BigUint, whole: &BigUint) -> Share {
        if part == whole {
            let (rest, whole) = (BigUint::ZERO, whole.clone());
            return Share { top: u32::MAX, next: u64::MAX, rest, whole, certain: true };
        }
        let (top, rest) = limb(part, whole, 32);
        let (next, rest) = limb(&rest, whole, 64);
        Share { top: top as u32, next, rest, whole: whole.clone(), certain: false }
    }

    /// The share of what is never asked.
    pub(crate) fn never() -> Share {
        Share::new(&BigUint::ZERO, &BigUint::from(1u32))
    }

    /// True where a draw, of which the first 32 bits were equal, is below.
    #[inline(never)]
    pub(super) fn settle(&self, refine: &mut Refine<'_>) -> bool {
        let (mut draw, mut bits, mut rest) = (refine.next(), self.next, self.rest.clone());
        while draw == bits && rest != BigUint::ZERO {
            (bits, rest) = limb(&rest, &self.whole, 64);
            draw = refine.next();
        }
        draw < bits || self.certain
    }
}

/// The next `bits` bits of `part / whole`, below 1, and what is left.
fn limb(part: &BigUint, whole: &BigUint, bits: u32) -> (u64, BigUint) {
    let scaled = part << bits;
    let limb = &scaled / whole;
    let rest = scaled - &limb * whole;
    (limb.try_into().expect("the part is below the whole"), rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Key;

    fn share(part: u32, whole: u32) -> Share {
        Share::new(&BigUint::from(part), &BigUint::from(whole))
    }

    /// 1/3 is 0.0101… in binary: all limbs are alike, and what is equal for ever is decided by the first that is not.
    #[test]
    fn equal_bits_are_decided_by_those_behind_them() {
        let key = Key::from_bytes([5; 32]);
        let (third, limb) = (share(1, 3), 0x5555_5555_5555_5555);
        assert_eq!((third.top, third.next), (0x5555_5555, limb));
        for (words, below, untaken) in [
            (vec![limb - 1, 9], true, 1),
            (vec![limb + 1, 9], false, 1),
            (vec![limb, limb, limb - 1, 9], true, 1),
            (vec![limb, limb, limb + 1, 9], false, 1),
        ] {
            let mut refine = Refine::after(&words, &key);
            assert_eq!((third.settle(&mut refine), refine.untaken()), (below, untaken), "{words:?}");
        }
        // A half ends: what is equal to it is not below it. Nothing is below 0, everything below 1.
        for (share, top, word, below) in [
            (share(1, 2), 1 << 31, 0, false),
            (share(0, 7), 0, 0, false),
            (share(7, 7), u32::MAX, u64::MAX, true),
            (Share::never(), 0, 0, false),
        ] {
            let mut refine = Refine::after(&[word, 9], &key);
            assert_eq!(share.top, top);
            assert_eq!((share.settle(&mut refine), refine.untaken()), (below, 1));
        }
    }
}
