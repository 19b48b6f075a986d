//! The draws that are rarely needed: those that decide a comparison whose first bits were equal.

use std::mem::MaybeUninit;

use super::lanes::Keys;
use super::{GROUP, Key, fill};
use crate::kernel::Isa;

/// Where the key of a stream is.
#[derive(Clone, Copy)]
enum Place<'a> {
    One(&'a Key),
    Lane(&'a Keys, usize),
}

/// A stream of 64-bit words with a nonce of its own. Nothing is computed before the first word is taken.
pub(crate) struct Refine<'a> {
    isa: Isa,
    key: Place<'a>,
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
        Refine { isa, key: Place::One(key), nonce, group: 0, left: 0, buffer: MaybeUninit::uninit() }
    }

    /// The stream from `group` on.
    #[inline]
    pub(crate) fn at(isa: Isa, key: &'a Key, nonce: u64, group: u64) -> Refine<'a> {
        Refine { group, ..Refine::new(isa, key, nonce) }
    }

    /// The stream of the key of a lane, from `group` on.
    #[inline]
    pub(crate) fn of_lane(isa: Isa, keys: &'a Keys, lane: usize, nonce: u64, group: u64) -> Refine<'a> {
        Refine { isa, key: Place::Lane(keys, lane), nonce, group, left: 0, buffer: MaybeUninit::uninit() }
    }

    /// The stream of `(key, nonce)`, with `words` before its start: draws that a test chooses.
    #[cfg(test)]
    pub(crate) fn after(words: &[u64], key: &'a Key) -> Refine<'a> {
        let mut stream = Refine { left: words.len(), ..Refine::new(Isa::Scalar, key, 0) };
        let buffer = stream.buffer.write([0; GROUP]);
        for (bytes, word) in buffer.as_chunks_mut::<8>().0[WORDS - words.len()..].iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        stream
    }

    /// How many of the words of [`after`](Self::after) were not taken; they must not have been used up.
    #[cfg(test)]
    pub(crate) fn untaken(&self) -> usize {
        assert_eq!(self.group, 0, "more words were taken than there are");
        self.left
    }

    /// True where a word of a stream from its start was taken.
    pub(crate) fn was_asked(&self) -> bool {
        self.group > 0
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
        let of_lane;
        let key = match self.key {
            Place::One(key) => key,
            Place::Lane(keys, lane) => {
                of_lane = keys.key(lane);
                &of_lane
            }
        };
        fill(self.isa, key, self.nonce, self.group, self.buffer.write([0; GROUP]));
        self.group += 1;
        self.left = WORDS;
    }

    /// True where a uniform draw is below the integer that `rest` holds (big-endian limbs): it takes 64 bits, and more
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
        assert!(!refine.was_asked());
        refine.next();
        assert!(refine.was_asked());
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

    /// For an odd bound every value of the low half comes from a single draw, its product with the bound's inverse: those
    /// below 2^64 mod bound are rejected, that remainder itself is not.
    #[test]
    fn below_rejects_just_what_comes_up_once_too_often() {
        let key = Key::from_bytes([9; 32]);
        for bound in [3u64, 7, 11, 641, 1_000_003, (1 << 63) + 1, u64::MAX] {
            let excess = ((1u128 << 64) % u128::from(bound)) as u64;
            // Newton's iteration: every step doubles the bits that are right.
            let inverse = (0..6).fold(bound, |x, _| x.wrapping_mul(2u64.wrapping_sub(bound.wrapping_mul(x))));
            assert_eq!(inverse.wrapping_mul(bound), 1);
            for low in [0, 1, excess - 1, excess, excess + 1, bound - 1, bound, u64::MAX] {
                let draw = low.wrapping_mul(inverse);
                let value = |draw: u64| ((u128::from(draw) * u128::from(bound)) >> 64) as u64;
                // One that is taken, whatever the bound.
                let second = u64::MAX.wrapping_mul(inverse);
                let mut stream = Refine::after(&[second], &key);
                let result = stream.below_from(draw, bound);
                if low < excess {
                    assert_eq!((result, stream.untaken()), (value(second), 0), "{bound}, {low}");
                } else {
                    assert_eq!((result, stream.untaken()), (value(draw), 1), "{bound}, {low}");
                }
            }
        }
        // A power of two divides 2^64: nothing is rejected.
        for (bound, draw, value) in
            [(1u64, 0, 0), (1, u64::MAX, 0), (8, 0, 0), (8, 1 << 61, 1), (8, u64::MAX, 7)]
        {
            let mut stream = Refine::after(&[5], &key);
            assert_eq!((stream.below_from(draw, bound), stream.untaken()), (value, 1));
        }
    }

    #[test]
    fn a_stream_begins_at_any_group() {
        let key = Key::from_bytes([9; 32]);
        let mut expected = [0; 2 * GROUP];
        for group in [0, 1, 1 << 48, 63 << 48] {
            fill(Isa::Scalar, &key, 5, group, &mut expected);
            for &isa in Isa::available() {
                let mut refine = Refine::at(isa, &key, 5, group);
                for word in expected.as_chunks::<8>().0 {
                    assert_eq!(refine.next(), u64::from_le_bytes(*word));
                }
            }
        }
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
