//! Selects a coordinate: a rank is drawn, then the coordinate of that rank is looked for.
//!
//! Ranks are of magnitudes, or *signed*: of the 2 d numbers +-y_j by value. These are the magnitudes with the signs of their
//! coordinates, and the same mirrored, so the rank of a magnitude is looked for all the same.

mod lanes;
mod law;
mod order;
mod split;
#[cfg(target_arch = "x86_64")]
mod split_avx2;
#[cfg(target_arch = "x86_64")]
mod split_avx512;
#[cfg(target_arch = "aarch64")]
mod split_neon;
mod tally;

pub(crate) use law::RankLaw;
pub(crate) use split::Magnitude;

use crate::isa::{Isa, vectorised};
use crate::random::{GROUP, Key, Purpose, Refine, fill, nonce};
use order::SelectBuffers;

/// Bytes of the keystream that a vector has: 64 bits for its rank, 64 for the choice among equals.
const SLOT: usize = 16;

/// Vectors that one group of the keystream serves.
pub(crate) const SLOTS: usize = GROUP / SLOT;

/// Where a vector's own further draws begin, in groups: after those of the vector before it in its chunk.
const REFINE_SHIFT: u32 = 48;

/// Everything that selecting takes, but where in the stream, the vectors and the room for the reports.
pub(crate) struct SelectSampler<'a> {
    pub(crate) isa: Isa,
    pub(crate) key: &'a Key,
    pub(crate) law: &'a RankLaw,
    pub(crate) dimensions: usize,
    /// True where the law is one of 2 d signed ranks.
    pub(crate) signed: bool,
}

/// Vectors that are selected from, one after the other.
pub(crate) trait Vectors<M> {
    /// Numbers of a vector as the caller has them.
    fn width(&self) -> usize;

    /// The vector at a position.
    ///
    /// # Errors
    /// The position of a number that is not finite, where that is known already.
    fn vector(&mut self, at: usize) -> Result<&[M], usize>;
}

impl<M, V: Vectors<M> + ?Sized> Vectors<M> for Box<V> {
    fn width(&self) -> usize {
        (**self).width()
    }

    fn vector(&mut self, at: usize) -> Result<&[M], usize> {
        (**self).vector(at)
    }
}

/// Vectors of as many numbers that lie one after the other.
pub(crate) struct Plain<'a, M>(pub(crate) &'a [M], pub(crate) usize);

impl<M> Vectors<M> for Plain<'_, M> {
    fn width(&self) -> usize {
        self.1
    }

    #[inline]
    fn vector(&mut self, at: usize) -> Result<&[M], usize> {
        Ok(&self.0[at * self.1..(at + 1) * self.1])
    }
}

impl SelectSampler<'_> {
    /// Selects from vectors, which are `slot, slot + 1, …` of chunk `chunk` of the key's stream, all of them in that chunk.
    ///
    /// Returns the position of the first number that is not finite; the reports are of no use then.
    pub(crate) fn vectors<M: Magnitude>(
        &self,
        chunk: u64,
        slot: usize,
        mut vectors: impl Vectors<M>,
        codes: &mut [u32],
    ) -> Option<usize> {
        let mut group = [0; GROUP];
        fill(self.isa, self.key, nonce(Purpose::Main, chunk), 0, &mut group);
        let slots = group.as_chunks::<SLOT>().0[slot..].iter().zip(slot..);
        let (mut buffers, width) = (SelectBuffers::default(), vectors.width());
        for (at, (code, (draws, slot))) in codes.iter_mut().zip(slots).enumerate() {
            let vector = match vectors.vector(at) {
                Ok(vector) => vector,
                Err(position) => return Some(at * width + position),
            };
            let mut more =
                Refine::at(self.isa, self.key, nonce(Purpose::Refine, chunk), (slot as u64) << REFINE_SHIFT);
            let draws = u128::from_le_bytes(*draws);
            let drawn = more.below_from(draws as u64, self.law.total());
            let (dimensions, ranked) = (self.dimensions, self.law.rank(drawn));
            let (rank, upper) = match ranked.map(|rank| rank as usize) {
                // The upper half of the signed ranks is that of the magnitudes, the lower half the same from its end.
                Some(rank) if self.signed && rank >= dimensions => (Some(rank - dimensions), true),
                Some(rank) if self.signed => (Some(dimensions - 1 - rank), false),
                rank => (rank, true),
            };
            let position = match rank {
                None => self.first_infinite(vector).is_none().then_some(dimensions),
                Some(rank) => buffers.place_of_rank(self.isa, vector, rank, |equals| {
                    more.below_from((draws >> 64) as u64, equals)
                }),
            };
            let Some(position) = position else {
                return Some(at * width + self.first_infinite(vector).unwrap_or(0));
            };
            *code = position as u32;
            if self.signed {
                let chosen = vector[position];
                // Both signs of a zero are equal, so a fair coin says which of them is the larger.
                let negative =
                    if chosen.size() == M::ZERO { more.next() & 1 == 1 } else { chosen != chosen.size() };
                *code = 2 * *code + u32::from(negative != upper);
            }
        }
        None
    }

    /// The position of the first number that is NaN or infinite.
    fn first_infinite<M: Magnitude>(&self, vector: &[M]) -> Option<usize> {
        let most = vectorised(self.isa, || {
            vector.iter().fold(M::ZERO, |most, x| {
                let size = x.size();
                if size > most { size } else { most }
            })
        });
        if most < M::INFINITE {
            return None;
        }
        vector.iter().position(|x| x.size() >= M::INFINITE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A law that rejects half of all draws: which words of which stream a vector takes, written out anew.
    #[test]
    fn every_vector_has_draws_of_its_own() {
        let key = Key::from_bytes([7; 32]);
        let law = RankLaw::new(&[1, 1], &[1 << 62, (1 << 62) + 1], 0).unwrap();
        let total = u128::from(law.total());
        let excess = (1u128 << 64) % total;
        let values: Vec<u32> = [1f32, -2.0].repeat(SLOTS).into_iter().map(f32::to_bits).collect();
        for chunk in [0, 5, (1 << 56) - 1] {
            let mut main = [0; GROUP];
            fill(Isa::Scalar, &key, chunk, 0, &mut main);
            let expected = main.as_chunks::<SLOT>().0.iter().enumerate().map(|(slot, own)| {
                let mut rest = [0; GROUP];
                fill(Isa::Scalar, &key, 1 << 56 | chunk, (slot as u64) << 48, &mut rest);
                let words = [*own.first_chunk::<8>().unwrap()]
                    .into_iter()
                    .chain(rest.as_chunks::<8>().0.iter().copied());
                let mut products = words.map(|word| u128::from(u64::from_le_bytes(word)) * total);
                let taken = products.find(|product| product % (1 << 64) >= excess).unwrap();
                u32::from(taken >> 64 >= 1 << 62)
            });
            let expected: Vec<u32> = expected.collect();
            for &isa in Isa::available() {
                let sampler = SelectSampler { isa, key: &key, law: &law, dimensions: 2, signed: false };
                let mut codes = [9; SLOTS];
                assert_eq!(sampler.vectors(chunk, 0, Plain(&values, 2), &mut codes), None);
                assert_eq!(codes[..], expected, "{isa}");
                // From the middle of a chunk on.
                let mut codes = [9; 7];
                assert_eq!(sampler.vectors(chunk, 13, Plain(&values[..14], 2), &mut codes), None);
                assert_eq!(codes[..], expected[13..20], "{isa}");
            }
        }
    }

    #[test]
    fn equals_are_told_apart_by_the_second_half_of_a_slot() {
        let key = Key::from_bytes([7; 32]);
        let law = RankLaw::new(&[2, 1], &[1, 5], 0).unwrap();
        let values: Vec<u64> = [-3f64, 3.0, 3.0].repeat(SLOTS).into_iter().map(f64::to_bits).collect();
        let mut main = [0; GROUP];
        fill(Isa::Scalar, &key, 4, 0, &mut main);
        for &isa in Isa::available() {
            let sampler = SelectSampler { isa, key: &key, law: &law, dimensions: 3, signed: false };
            let mut codes = [9; SLOTS];
            assert_eq!(sampler.vectors(4, 0, Plain(&values, 3), &mut codes), None);
            for (code, own) in codes.iter().zip(main.as_chunks::<SLOT>().0) {
                let second = u128::from(u64::from_le_bytes(*own.last_chunk::<8>().unwrap()));
                assert_eq!(*code, ((second * 3) >> 64) as u32, "{isa}");
            }
        }
    }
}
