//! The draws that are rarely needed: those that decide a comparison whose first bits were equal.

use std::mem::MaybeUninit;

use super::{GROUP, Key, fill};
use crate::kernel::Isa;

/// A stream of 64-bit words with a nonce of its own. Nothing is computed before the first word is taken.
pub(crate) struct Refine<'a> {
    isa: Isa,
    key: &'a Key,
    nonce: u64,
    group: u64,
    /// Words of `buffer` that are still to be given.
    left: usize,
    /// Written before `left` first leaves 0.
    buffer: MaybeUninit<[u8; GROUP]>,
}

const WORDS: usize = GROUP / 8;

impl<'a> Refine<'a> {
    /// The stream of `(key, nonce)`, from its start.
    #[inline]
    pub(crate) fn new(isa: Isa, key: &'a Key, nonce: u64) -> Refine<'a> {
        Refine { isa, key, nonce, group: 0, left: 0, buffer: MaybeUninit::uninit() }
    }

    /// The stream from `group` on.
    #[inline]
    pub(crate) fn at(isa: Isa, key: &'a Key, nonce: u64, group: u64) -> Refine<'a> {
        Refine { group, ..Refine::new(isa, key, nonce) }
    }

    /// The next 64 bits.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        if self.left == 0 {
            self.refill();
        }
        // SAFETY: `left` is only above 0 after `refill`, which wrote every byte of the buffer.
        let bytes = unsafe { self.buffer.assume_init_ref() };
        let start = (WORDS - self.left) * 8;
        self.left -= 1;
        u64::from_le_bytes(bytes[start..start + 8].try_into().expect("eight bytes"))
    }

    #[cold]
    fn refill(&mut self) {
        fill(self.isa, self.key, self.nonce, self.group, self.buffer.write([0; GROUP]));
        self.group += 1;
        self.left = WORDS;
    }

    /// Whether a uniform draw is below the integer that `rest` holds (big-endian limbs): it takes 64 bits, and more
    /// only as long as they are equal.
    #[inline]
    pub(crate) fn less(&mut self, rest: &[u64]) -> bool {
        for &limb in rest {
            let draw = self.next();
            if draw != limb {
                return draw < limb;
            }
        }
        false
    }

    /// A uniform integer below `bound`, exactly (Lemire 2019, "Fast random integer generation in an interval").
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let first = self.next();
        self.below_from(first, bound)
    }

    /// [`below`](Self::below) of a first draw from elsewhere: the stream is only asked where that one is rejected.
    #[inline]
    pub(crate) fn below_from(&mut self, first: u64, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        let mut draw = first;
        loop {
            let product = u128::from(draw) * u128::from(bound);
            let low = product as u64;
            // The first 2^64 mod bound values of `low` would come up once too often. That remainder is below `bound`,
            // so the division is rarely needed.
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
            draw = self.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(key: &Key) -> Refine<'_> {
        Refine::new(Isa::Scalar, key, 5)
    }

    #[test]
    fn words_are_the_canonical_keystream() {
        let key = Key::from_bytes([9; 32]);
        let mut expected = [0; 3 * GROUP];
        fill(Isa::Scalar, &key, 5, 0, &mut expected);
        for &isa in Isa::available() {
            let mut refine = Refine::new(isa, &key, 5);
            for word in expected.chunks_exact(8) {
                assert_eq!(refine.next(), u64::from_le_bytes(word.try_into().unwrap()));
            }
        }
    }

    #[test]
    fn nothing_is_computed_before_the_first_word() {
        let key = Key::from_bytes([9; 32]);
        let mut refine = stream(&key);
        assert_eq!((refine.group, refine.left), (0, 0));
        refine.next();
        assert_eq!((refine.group, refine.left), (1, WORDS - 1));
    }

    #[test]
    fn less_compares_limb_by_limb() {
        let key = Key::from_bytes([9; 32]);
        let (first, second) = {
            let mut refine = stream(&key);
            (refine.next(), refine.next())
        };
        assert!(!stream(&key).less(&[]));
        assert!(!stream(&key).less(&[first]));
        assert!(stream(&key).less(&[first + 1]));
        assert!(!stream(&key).less(&[first - 1, u64::MAX]));
        assert!(!stream(&key).less(&[first, second]));
        assert!(stream(&key).less(&[first, second + 1]));
    }

    #[test]
    fn below_is_uniform_and_in_range() {
        // n = 120,000 draws of 6 values, chi-square with 5 degrees of freedom; alpha = 1e-6 is 36.9; fixed key.
        let key = Key::from_bytes([9; 32]);
        let mut refine = stream(&key);
        let mut counts = [0f64; 6];
        for _ in 0..120_000 {
            counts[refine.below(6) as usize] += 1.0;
        }
        let chi: f64 = counts.iter().map(|n| (n - 20_000.0).powi(2) / 20_000.0).sum();
        assert!(chi < 36.9, "{chi}");
        assert_eq!(refine.below(1), 0);
        for bound in [u64::MAX, (1 << 63) + 1] {
            assert!((0..100).all(|_| refine.below(bound) < bound));
        }
    }
}
