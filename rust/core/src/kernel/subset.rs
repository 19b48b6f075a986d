//! Samples subsets of a given size: as many of the other elements as are needed, uniformly, and the input's own by a coin.
//!
//! The others are drawn from k - 1 places without a look at the input; then the own element is put between them by masks and
//! shifts, so no branch and no address depends on it. As much is drawn whether the own element is in the subset or not.

use super::categorical::load_rows;
use super::strings::{Strings, Writer, write};
use crate::io::{Input, Output};
use crate::isa::Isa;
use crate::probability::Probability;
use crate::random::{GROUP, Key, Purpose, Refine, fill, nonce};

/// Inputs that are read at once.
const BLOCK: usize = 256;

/// Bytes of keystream that are computed at once.
const AT_ONCE: usize = 2 * GROUP;

/// Everything that sampling one chunk takes, but its number, its input and its output.
pub(crate) struct Sampler<'a> {
    pub(crate) isa: Isa,
    pub(crate) key: &'a Key,
    /// Elements, 2 or more.
    pub(crate) elements: u32,
    /// Elements of a subset, at least 1 and fewer than all.
    pub(crate) size: u32,
    /// The chance that the input's own element is in the subset.
    pub(crate) own: Probability,
}

impl Sampler<'_> {
    /// Randomizes chunk `chunk` of the key's stream: `output` has room for just the reports of `input`.
    pub(crate) fn chunk(&self, chunk: u64, input: Input<'_>, output: Output<'_>) {
        write(&Chunk { sampler: self, chunk, input }, output);
    }
}

/// A chunk of the key's stream, and the elements that it is for.
struct Chunk<'a> {
    sampler: &'a Sampler<'a>,
    chunk: u64,
    input: Input<'a>,
}

impl Writer for Chunk<'_> {
    fn write(&self, to: &mut impl Strings) {
        let Chunk { sampler, chunk, input } = *self;
        let elements = sampler.elements as usize;
        let mut draws = Draws::new(sampler, chunk);
        let mut words = vec![0u64; elements.div_ceil(64)];
        let mut inputs = [0u32; BLOCK];
        for start in (0..input.len()).step_by(BLOCK) {
            let count = BLOCK.min(input.len() - start);
            load_rows(sampler.isa, input.part(start..start + count), sampler.elements, &mut inputs[..count]);
            for &own in &inputs[..count] {
                let is_in = draws.coin(sampler.own);
                draws.others(sampler.elements - 1, sampler.size, is_in, &mut words);
                insert(&mut words, own, is_in);
                for (word, first) in words.iter().zip((0..elements).step_by(64)) {
                    let bytes = word.reverse_bits().to_be_bytes();
                    for (byte, first) in bytes.into_iter().zip((first..elements).step_by(8)) {
                        to.give(byte, 8.min(elements - first));
                    }
                }
            }
        }
    }
}

/// Puts one more place, the `own`-th, between the places of a set of bits, lowest first.
fn insert(words: &mut [u64], own: u32, is_in: bool) {
    let mut carry = 0;
    for (word, base) in words.iter_mut().zip((0..).step_by(64)) {
        // So many places of this word are before the new one.
        let before = own.saturating_sub(base).min(64);
        let low = ((1u128 << before) - 1) as u64;
        let home = u64::from(own ^ base < 64).wrapping_neg();
        let (bit, moved) = (home & 1 << (own % 64), *word << 1 | carry);
        carry = *word >> 63;
        *word = (*word & low | moved & !low) & !bit | bit & u64::from(is_in).wrapping_neg();
    }
}

/// The draws of a chunk, one behind the other.
struct Draws<'a> {
    sampler: &'a Sampler<'a>,
    nonce: u64,
    group: u64,
    refine: Refine<'a>,
    keystream: [u8; AT_ONCE],
    used: usize,
}

impl<'a> Draws<'a> {
    fn new(sampler: &'a Sampler<'a>, chunk: u64) -> Draws<'a> {
        let refine = Refine::new(sampler.isa, sampler.key, nonce(Purpose::Refine, chunk));
        let nonce = nonce(Purpose::Main, chunk);
        Draws { sampler, nonce, group: 0, refine, keystream: [0; AT_ONCE], used: AT_ONCE }
    }

    #[inline(always)]
    fn next(&mut self) -> u32 {
        if self.used == AT_ONCE {
            self.refill();
        }
        let word = self.keystream.as_chunks::<4>().0[self.used / 4];
        self.used += 4;
        u32::from_le_bytes(word)
    }

    #[inline(never)]
    fn refill(&mut self) {
        fill(self.sampler.isa, self.sampler.key, self.nonce, self.group, &mut self.keystream);
        self.group += (AT_ONCE / GROUP) as u64;
        self.used = 0;
    }

    /// Whether 64 random bits are below a probability.
    fn coin(&mut self, chance: Probability) -> bool {
        let (low, high) = (self.next(), self.next());
        u128::from(u64::from(high) << 32 | u64::from(low)) < chance.numerator()
    }

    /// A uniform number below `bound`, exactly (Lemire 2019).
    #[inline(always)]
    fn below(&mut self, bound: u32) -> u32 {
        let product = u64::from(self.next()) * u64::from(bound);
        // 2^32 mod bound values of the lower half would come up once too often; that is below the bound.
        if (product as u32) < bound && (product as u32) < bound.wrapping_neg() % bound {
            return self.refine.below(bound.into()) as u32;
        }
        (product >> 32) as u32
    }

    /// Sets the bits of a uniform subset of `places` places: `size` of them, or one fewer with `fewer`.
    ///
    /// Floyd's algorithm: of the places up to `last`, one is drawn; if it is in the set already, `last` is not, and stands
    /// for it (Bentley and Floyd, "A sample of brilliance", CACM 30, 1987). One fewer are its draws without the first.
    fn others(&mut self, places: u32, size: u32, fewer: bool, words: &mut [u64]) {
        words.fill(0);
        let first = places - size;
        for last in first..places {
            let drawn = self.below(last + 1);
            let taken = words[drawn as usize / 64] >> (drawn % 64) & 1 == 1;
            let place = if taken { last } else { drawn };
            let kept = u64::from(!(fewer && last == first));
            words[place as usize / 64] |= kept << (place % 64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_put_between_the_others() {
        for elements in [2usize, 3, 63, 64, 65, 130, 192] {
            for own in 0..elements {
                for is_in in [false, true] {
                    let others: Vec<bool> =
                        (0..elements - 1).map(|i| (i * 7 + own) % 3 == 0 || i == 63).collect();
                    let mut words = vec![0u64; elements.div_ceil(64)];
                    others
                        .iter()
                        .enumerate()
                        .for_each(|(i, &bit)| words[i / 64] |= u64::from(bit) << (i % 64));
                    insert(&mut words, own as u32, is_in);
                    let mut expected = others;
                    expected.insert(own, is_in);
                    let found: Vec<bool> =
                        (0..elements).map(|i| words[i / 64] >> (i % 64) & 1 == 1).collect();
                    assert_eq!(found, expected, "{own} of {elements}");
                    assert!(elements % 64 == 0 || words[elements / 64] >> (elements % 64) == 0);
                }
            }
        }
    }
}
