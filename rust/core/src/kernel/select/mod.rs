//! How a coordinate is selected: a rank is drawn, then the coordinate of that rank is looked for.

mod law;
mod order;
mod split;
#[cfg(target_arch = "x86_64")]
mod split_avx2;
#[cfg(target_arch = "x86_64")]
mod split_avx512;
mod tally;

pub(crate) use law::Law;
pub(crate) use split::Magnitude;

use super::{Isa, vectorised};
use crate::random::{GROUP, Key, Purpose, Refine, fill, nonce};
use order::Room;

/// Bytes of the keystream that a vector has: 64 bits for its rank, 64 for the choice among equals.
const SLOT: usize = 16;

/// Vectors that one group of the keystream serves.
pub(crate) const SLOTS: usize = GROUP / SLOT;

/// Where a vector's own further draws begin, in groups: after those of the vector before it in its chunk.
const REFINE_SHIFT: u32 = 48;

/// Everything that selecting takes, but where in the stream, the vectors and the room for the reports.
pub(crate) struct Sampler<'a> {
    pub(crate) isa: Isa,
    pub(crate) key: &'a Key,
    pub(crate) law: &'a Law,
    pub(crate) dimensions: usize,
}

impl Sampler<'_> {
    /// Selects from vectors `slot, slot + 1, …` of chunk `chunk` of the key's stream, all of them in that chunk.
    ///
    /// Returns the place of the first number that is not finite; the reports are of no use then.
    pub(crate) fn vectors<M: Magnitude>(
        &self,
        chunk: u64,
        slot: usize,
        values: &[M],
        codes: &mut [u32],
    ) -> Option<usize> {
        let mut group = [0; GROUP];
        fill(self.isa, self.key, nonce(Purpose::Main, chunk), 0, &mut group);
        let slots = group.as_chunks::<SLOT>().0[slot..].iter().zip(slot..);
        let mut room = Room::default();
        for (at, ((vector, code), (draws, slot))) in
            values.chunks_exact(self.dimensions).zip(codes).zip(slots).enumerate()
        {
            let mut more =
                Refine::at(self.isa, self.key, nonce(Purpose::Refine, chunk), (slot as u64) << REFINE_SHIFT);
            let draws = u128::from_le_bytes(*draws);
            let drawn = more.below_from(draws as u64, self.law.total());
            let place = match self.law.rank(drawn) {
                None => self.first_infinite(vector).is_none().then_some(self.dimensions),
                Some(rank) => room.place_of_rank(self.isa, vector, rank as usize, |equals| {
                    more.below_from((draws >> 64) as u64, equals)
                }),
            };
            match place {
                Some(place) => *code = place as u32,
                None => return Some(at * self.dimensions + self.first_infinite(vector).unwrap_or(0)),
            }
        }
        None
    }

    /// The place of the first number that is NaN or infinite.
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
