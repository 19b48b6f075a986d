//! Samples subsets of a given size: as many of the other elements as are needed, uniformly, and the input's own by a coin.
//!
//! The others are drawn from k - 1 positions without a look at the input; then the own element is put between them by comparing,
//! never by addressing, so no branch and no address depends on it. As much is drawn whether the own element is in the subset or not.

use super::categorical::load_rows;
use crate::codec::{Rows, squeeze_rows};
use crate::io::{Input, Output};
use crate::isa::{Isa, vectorised};
use crate::probability::Probability;
use crate::random::{GROUP, Key, Keys, Lanes, Purpose, Refine, fill, first_words, nonce};

/// Inputs that are read at once.
const BLOCK: usize = 256;

/// Bytes of keystream that are computed at once.
const AT_ONCE: usize = 2 * GROUP;

/// Everything that sampling one chunk takes, but its number, its input and its output.
pub(crate) struct SubsetSampler<'a> {
    pub(crate) isa: Isa,
    pub(crate) key: &'a Key,
    /// Elements, 2 or more.
    pub(crate) elements: u32,
    /// Elements of a subset, at least 1 and fewer than all.
    pub(crate) size: u32,
    /// The chance that the input's own element is in the subset.
    pub(crate) own: Probability,
}

impl SubsetSampler<'_> {
    /// Randomizes chunk `chunk` of the key's stream: `output` has room for just the reports of `input`.
    pub(crate) fn chunk(&self, chunk: u64, input: Input<'_>, output: Output<'_>) {
        let elements = self.elements as usize;
        let mut draws = SubsetDraws::new(self.isa, self.key, chunk, [Purpose::Main, Purpose::Refine]);
        match output {
            Output::Bits(out) => self.strings(&mut draws, input, out),
            Output::Packed(out) => {
                // Eight strings are whole bytes.
                let mut strings = vec![0; 8 * elements];
                for (start, out) in (0..input.len()).step_by(8).zip(out.chunks_mut(elements)) {
                    let count = 8.min(input.len() - start);
                    let strings = &mut strings[..count * elements];
                    self.strings(&mut draws, input.part(start..start + count), strings);
                    let whole = Rows { first: 0, stride: 0, rows: 1, length: strings.len() };
                    squeeze_rows(self.isa, strings, whole, out);
                }
            }
            _ => unreachable!("the channel gives bits and packed bits"),
        }
    }

    /// Writes a subset for each input: a byte of 0 or 1 for each element.
    fn strings(&self, draws: &mut SubsetDraws<'_>, input: Input<'_>, out: &mut [u8]) {
        let elements = self.elements as usize;
        // A byte in front and one behind: the positions before and behind each element are there.
        let mut others = vec![0; elements + 1];
        let mut inputs = [0u32; BLOCK];
        for start in (0..input.len()).step_by(BLOCK) {
            let count = BLOCK.min(input.len() - start);
            let part = input.part(start..start + count);
            load_rows(self.isa, part, self.elements, &mut inputs[..count]);
            let strings = out[start * elements..].chunks_exact_mut(elements);
            for (&own, string) in inputs[..count].iter().zip(strings) {
                let is_in = draws.coin(self.own);
                draws.others(self.elements - 1, self.size, is_in, &mut others[1..elements]);
                vectorised(self.isa, || insert(&others, own, is_in, string));
            }
        }
    }
}

/// Everything that sampling records takes that have a key each, but the keys, the input and the output: sixteen records side
/// by side, each the first of its key's stream.
pub(crate) struct SubsetRows {
    pub(crate) isa: Isa,
    pub(crate) elements: u32,
    /// At most [`SubsetRows::MOST`].
    pub(crate) size: u32,
    pub(crate) own: Probability,
}

impl SubsetRows {
    /// The most elements of a subset: one group of keystream holds the draws of a record, two words of them for the coin.
    pub(crate) const MOST: u32 = (GROUP / 4) as u32 - 2;

    /// Randomizes records, sixteen to each of `keys`: `output` has room for just the reports of `input`.
    pub(crate) fn chunk(&self, keys: &[Keys], input: Input<'_>, output: Output<'_>) {
        let elements = self.elements as usize;
        let mut inputs = vec![0u32; input.len()];
        load_rows(self.isa, input, self.elements, &mut inputs);
        let mut words = vec![[0; Lanes::COUNT]; self.size as usize + 2];
        let mut others = vec![0; elements + 1];
        match output {
            Output::Bits(out) => {
                let strings = out.chunks_mut(Lanes::COUNT * elements);
                for ((keys, inputs), out) in keys.iter().zip(inputs.chunks(Lanes::COUNT)).zip(strings) {
                    self.strings(keys, inputs, &mut words, &mut others, out);
                }
            }
            Output::Packed(out) => {
                // Sixteen strings are whole bytes.
                let mut strings = vec![0; Lanes::COUNT * elements];
                let out = out.chunks_mut(Lanes::COUNT / 8 * elements);
                for ((keys, inputs), out) in keys.iter().zip(inputs.chunks(Lanes::COUNT)).zip(out) {
                    let strings = &mut strings[..inputs.len() * elements];
                    self.strings(keys, inputs, &mut words, &mut others, strings);
                    let whole = Rows { first: 0, stride: 0, rows: 1, length: strings.len() };
                    squeeze_rows(self.isa, strings, whole, out);
                }
            }
            _ => unreachable!("the channel gives bits and packed bits"),
        }
    }

    /// Writes the subsets of at most sixteen records.
    fn strings(
        &self,
        keys: &Keys,
        inputs: &[u32],
        words: &mut [[u32; Lanes::COUNT]],
        others: &mut [u8],
        out: &mut [u8],
    ) {
        let elements = self.elements as usize;
        first_words(self.isa, keys, nonce(Purpose::Main, 0), words);
        for ((lane, &own), string) in inputs.iter().enumerate().zip(out.chunks_exact_mut(elements)) {
            let mut draws = SubsetDraws::of_lane(self.isa, keys, lane, words, Purpose::Refine);
            let is_in = draws.coin(self.own);
            draws.others(self.elements - 1, self.size, is_in, &mut others[1..elements]);
            vectorised(self.isa, || insert(others, own, is_in, string));
        }
    }
}

/// Puts one more position, the `own`-th, between the others; before and behind those is a byte.
#[inline(always)]
pub(super) fn insert(others: &[u8], own: u32, is_in: bool, string: &mut [u8]) {
    let positions = (0..).zip(others.iter().zip(&others[1..]));
    for (bit, (position, (&before, &here))) in string.iter_mut().zip(positions) {
        let rest = if position < own { here } else { before };
        *bit = if position == own { u8::from(is_in) } else { rest };
    }
}

/// Words of a keystream, one behind the other.
pub(super) trait DrawnWords {
    /// The next one.
    fn next(&mut self) -> u32;
}

/// The words of a chunk's stream, which are computed where they are needed.
pub(super) struct StreamWords<'a> {
    isa: Isa,
    key: &'a Key,
    nonce: u64,
    group: u64,
    keystream: [u8; AT_ONCE],
    used: usize,
}

impl DrawnWords for StreamWords<'_> {
    #[inline(always)]
    fn next(&mut self) -> u32 {
        if self.used == AT_ONCE {
            self.refill();
        }
        let word = self.keystream.as_chunks::<4>().0[self.used / 4];
        self.used += 4;
        u32::from_le_bytes(word)
    }
}

impl StreamWords<'_> {
    #[inline(never)]
    fn refill(&mut self) {
        fill(self.isa, self.key, self.nonce, self.group, &mut self.keystream);
        self.group += (AT_ONCE / GROUP) as u64;
        self.used = 0;
    }
}

/// The words of one record of sixteen, as many as it needs.
pub(super) struct LaneWords<'w> {
    words: std::slice::Iter<'w, [u32; Lanes::COUNT]>,
    lane: usize,
}

impl DrawnWords for LaneWords<'_> {
    #[inline(always)]
    fn next(&mut self) -> u32 {
        self.words.next().expect("a word for each draw")[self.lane]
    }
}

/// The draws of a chunk, or of a record that has a key of its own, one behind the other.
pub(super) struct SubsetDraws<'a, W = StreamWords<'a>> {
    words: W,
    refine: Refine<'a>,
}

impl<'a> SubsetDraws<'a> {
    /// The draws of two streams: one of all that is drawn at first, and one of what is drawn anew.
    pub(super) fn new(isa: Isa, key: &'a Key, chunk: u64, [main, refine]: [Purpose; 2]) -> SubsetDraws<'a> {
        let (nonce, refine) = (nonce(main, chunk), Refine::new(isa, key, nonce(refine, chunk)));
        let words = StreamWords { isa, key, nonce, group: 0, keystream: [0; AT_ONCE], used: AT_ONCE };
        SubsetDraws { words, refine }
    }
}

impl<'a, 'w> SubsetDraws<'a, LaneWords<'w>> {
    /// The draws of one record of sixteen that have a key each, of the first words of their streams.
    pub(super) fn of_lane(
        isa: Isa,
        keys: &'a Keys,
        lane: usize,
        words: &'w [[u32; Lanes::COUNT]],
        refine: Purpose,
    ) -> Self {
        let refine = Refine::of_lane(isa, keys, lane, nonce(refine, 0), 0);
        SubsetDraws { words: LaneWords { words: words.iter(), lane }, refine }
    }
}

impl<W: DrawnWords> SubsetDraws<'_, W> {
    #[inline(always)]
    fn next(&mut self) -> u32 {
        self.words.next()
    }

    /// True where 64 random bits are below a probability.
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

    /// Sets the bytes of a uniform subset of `positions` positions: `size` of them, or one fewer with `fewer`.
    ///
    /// Floyd's algorithm: of the positions up to `last`, one is drawn; if it is in the set already, `last` is not, and stands
    /// for it (Bentley and Floyd, "A sample of brilliance", CACM 30, 1987). One fewer are its draws without the first.
    pub(super) fn others(&mut self, positions: u32, size: u32, fewer: bool, set: &mut [u8]) {
        set.fill(0);
        let first = positions - size;
        for last in first..positions {
            let drawn = self.below(last + 1);
            let taken = 0u32.wrapping_sub(set[drawn as usize].into());
            let position = drawn ^ (drawn ^ last) & taken;
            set[position as usize] = u8::from(!(fewer && last == first));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_put_between_the_others() {
        for elements in [2usize, 3, 63, 64, 65, 130] {
            for own in 0..elements {
                for is_in in [false, true] {
                    let others: Vec<u8> =
                        (0..elements - 1).map(|i| u8::from((i * 7 + own) % 3 == 0)).collect();
                    let mut expected = others.clone();
                    expected.insert(own, u8::from(is_in));
                    let around = [&[9], &others[..], &[9]].concat();
                    for &isa in Isa::available() {
                        let mut string = vec![9; elements];
                        vectorised(isa, || insert(&around, own as u32, is_in, &mut string));
                        assert_eq!(string, expected, "{own} of {elements}");
                    }
                }
            }
        }
    }
}
