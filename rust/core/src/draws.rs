//! Public randomness beside a channel: coordinates and other numbers of records, drawn without looking at the data.
//!
//! A draw is a word of 64 bits. Value `i` of a call takes the `i`-th word of its key's stream, which comes in chunks as the
//! channels' does, so that batches of whole chunks concatenate; with keyed randomness every record has a stream of its own.

use crate::channel::KeyedRandomness;
use crate::codec::Code;
use crate::error::{Error, Result, argument, reason, zeros};
use crate::isa::{Isa, compiled, vectorised};
use crate::random::{GROUP, Key, fill};
use crate::vector::{Kernel, Vector};

/// Bytes of keystream that are filled at once.
const FILLED: usize = 8 * GROUP;

/// Records whose coordinates are drawn side by side, and the most coordinates of such records.
const LANES: usize = 32;
const FEW: usize = 64;

/// Records whose words are kept at once: a whole number of groups, however many words each has.
const BLOCK: usize = 512;

/// The words that public numbers are drawn from.
#[derive(Clone, Copy)]
pub enum Draws<'a> {
    /// The stream of a key: its chunk `c` is the keystream of the nonce `first_chunk + c`.
    Stream {
        /// The key: that of the draw, and of nothing else.
        key: &'a Key,
        /// The nonce of the first chunk.
        first_chunk: u64,
        /// Words of a chunk, at least 1; [`CHUNK`](crate::CHUNK) but where a caller's records have several together.
        chunk: usize,
    },
    /// A stream of each record.
    Records {
        /// The randomness of the records.
        randomness: KeyedRandomness<'a>,
        /// The number of the stream.
        stream: u64,
    },
}

impl Draws<'_> {
    /// The words of `records` records, `each` for every one.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of records than of ids, [`Error::Memory`], or [`Error::Isa`] as [`Isa::current`].
    pub fn words(&self, records: usize, each: usize) -> Result<Vec<u64>> {
        match *self {
            Draws::Stream { .. } => {
                let total = records.checked_mul(each).ok_or(Error::Memory { bytes: usize::MAX })?;
                let mut words = zeros(total)?;
                self.read(Isa::current()?, 0, &mut words);
                Ok(words)
            }
            Draws::Records { randomness, stream } => {
                let ids = randomness.ids.len();
                if ids != records {
                    let reason = reason!("{ids} of them do not fit {records} records");
                    return Err(Error::Shape { name: "ids", reason });
                }
                randomness.words(each, stream, None)
            }
        }
    }

    /// `k` different coordinates of `features` for every one of `records` records, any subset as likely as another.
    ///
    /// They come in the order in which they were drawn. A draw is 64 bits wide, so that chances differ from uniform by less
    /// than `features / 2^64` of their value.
    ///
    /// # Errors
    /// [`Error::Argument`] for a `k` outside 1 to `features`, and as [`words`](Self::words).
    pub fn coordinates<C: Code>(&self, records: usize, features: u32, k: usize) -> Result<Vec<C>> {
        check(features, k)?;
        let total = records.checked_mul(k).ok_or(Error::Memory { bytes: usize::MAX })?;
        let mut chosen = zeros(total)?;
        let isa = Isa::current()?;
        if let Draws::Records { .. } = self {
            distinct_on(isa, &self.words(records, k)?, features, k, &mut chosen)?;
            return Ok(chosen);
        }
        let mut words = zeros(BLOCK.min(records) * k)?;
        for (block, chosen) in chosen.chunks_mut(BLOCK * k).enumerate() {
            let words = &mut words[..chosen.len()];
            self.read(isa, block * BLOCK * k, words);
            distinct_on(isa, words, features, k, chosen)?;
        }
        Ok(chosen)
    }

    /// The words of the stream from `first` on.
    fn read(&self, isa: Isa, first: usize, out: &mut [u64]) {
        let Draws::Stream { key, first_chunk, chunk } = *self else { return };
        let (chunk, group) = (chunk.max(1), GROUP / 8);
        let mut bytes = [0; FILLED];
        let mut done = 0;
        while done < out.len() {
            let (number, within) = ((first + done) / chunk, (first + done) % chunk);
            let skipped = within % group;
            let taken = (FILLED / 8 - skipped).min(chunk - within).min(out.len() - done);
            let filled = &mut bytes[..(8 * (skipped + taken)).next_multiple_of(GROUP)];
            let nonce = first_chunk.wrapping_add(number as u64);
            fill(isa, key, nonce, (within / group) as u64, filled);
            for (word, bytes) in out[done..done + taken].iter_mut().zip(&filled.as_chunks::<8>().0[skipped..])
            {
                *word = u64::from_le_bytes(*bytes);
            }
            done += taken;
        }
    }
}

/// `floor(draw * count / 2^64)`: a number from 0 to below `count`.
#[inline(always)]
#[must_use]
pub const fn scaled(draw: u64, count: u32) -> u32 {
    // In halves that cannot overflow, which vector units multiply.
    let (high, low, count) = (draw >> 32, draw & 0xffff_ffff, count as u64);
    ((high * count + ((low * count) >> 32)) >> 32) as u32
}

/// The different coordinates that `draws` stand for, `k` of each record, as [`Draws::coordinates`] gives them.
///
/// # Errors
/// [`Error::Argument`] for a `k` outside 1 to `features`, [`Error::Shape`] for no whole number of records or other room than
/// for one coordinate a draw, [`Error::Memory`], or [`Error::Isa`] as [`Isa::current`].
pub fn distinct<C: Code>(draws: &[u64], features: u32, k: usize, chosen: &mut [C]) -> Result<()> {
    check(features, k)?;
    if draws.len() != chosen.len() || !draws.len().is_multiple_of(k) {
        let reason =
            reason!("{} of them are not {k} for each record, and one for each coordinate", draws.len());
        return Err(Error::Shape { name: "draws", reason });
    }
    distinct_on(Isa::current()?, draws, features, k, chosen)
}

fn check(features: u32, k: usize) -> Result<()> {
    if features == 0 || !(1..=features as usize).contains(&k) {
        return Err(argument(
            "k",
            reason!("{k} is not allowed; with {features} features, 1 to {features} are"),
        ));
    }
    Ok(())
}

/// Floyd's algorithm: the draw for `j` is uniform over `0..=j`, and one that is taken already stands for `j` itself (Bentley
/// and Floyd, "A sample of brilliance", CACM 30, 1987).
fn distinct_on<C: Code>(isa: Isa, draws: &[u64], features: u32, k: usize, chosen: &mut [C]) -> Result<()> {
    if k == 1 {
        let all = chosen.iter_mut().zip(draws);
        vectorised(isa, || all.for_each(|(chosen, &draw)| *chosen = C::narrow(scaled(draw, features))));
        return Ok(());
    }
    if k <= FEW {
        compiled(isa, Distinct { draws, features, k, chosen });
        return Ok(());
    }
    let mut taken = zeros::<u64>((features as usize).div_ceil(64))?;
    for (draws, chosen) in draws.chunks_exact(k).zip(chosen.chunks_exact_mut(k)) {
        for ((last, &draw), chosen) in (features - k as u32..features).zip(draws).zip(&mut *chosen) {
            let drawn = scaled(draw, last + 1);
            let is_taken = taken[drawn as usize / 64] >> (drawn % 64) & 1 != 0;
            let drawn = if is_taken { last } else { drawn };
            taken[drawn as usize / 64] |= 1 << (drawn % 64);
            *chosen = C::narrow(drawn);
        }
        chosen.iter().for_each(|&chosen| taken[chosen.widen() as usize / 64] = 0);
    }
    Ok(())
}

/// Few coordinates of many records, which go side by side.
struct Distinct<'a, C> {
    draws: &'a [u64],
    features: u32,
    k: usize,
    chosen: &'a mut [C],
}

impl<C: Code> Kernel for Distinct<'_, C> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(self, _: V) {
        let Distinct { draws, features, k, chosen } = self;
        let mut drawn = [[0; LANES]; FEW];
        for (draws, chosen) in draws.chunks(LANES * k).zip(chosen.chunks_mut(LANES * k)) {
            for (index, last) in (features - k as u32..features).enumerate() {
                let mut own = [0; LANES];
                for (own, &draw) in own.iter_mut().zip(draws[index..].iter().step_by(k)) {
                    *own = scaled(draw, last + 1);
                }
                let mut taken = [0u32; LANES];
                for before in &drawn[..index] {
                    for lane in 0..LANES {
                        taken[lane] |= u32::from(before[lane] == own[lane]);
                    }
                }
                for lane in 0..LANES {
                    own[lane] = if taken[lane] != 0 { last } else { own[lane] };
                }
                drawn[index] = own;
            }
            for (lane, chosen) in chosen.chunks_exact_mut(k).enumerate() {
                for (chosen, drawn) in chosen.iter_mut().zip(&drawn) {
                    *chosen = C::narrow(drawn[lane]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::CHUNK;
    use crate::random::{Ids, keystream};

    const KEY: [u8; 32] = [5; 32];

    /// The words of a stream, byte by byte.
    fn plain(first_chunk: u64, chunk: usize, count: usize) -> Vec<u64> {
        let words = |nonce, count: usize| {
            let mut bytes = vec![0; 8 * count];
            keystream(&Key::from_bytes(KEY), nonce, &mut bytes).unwrap();
            bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect::<Vec<_>>()
        };
        (0..count)
            .step_by(chunk)
            .zip(first_chunk..)
            .flat_map(|(at, nonce)| words(nonce, chunk.min(count - at)))
            .collect()
    }

    /// Floyd's algorithm as it is written.
    fn floyd(draws: &[u64], features: u32) -> Vec<u32> {
        let mut chosen = Vec::new();
        for (last, &draw) in (features - draws.len() as u32..features).zip(draws) {
            let drawn = ((u128::from(draw) * u128::from(last + 1)) >> 64) as u32;
            chosen.push(if chosen.contains(&drawn) { last } else { drawn });
        }
        chosen
    }

    #[test]
    fn words_are_those_of_the_stream() {
        let key = Key::from_bytes(KEY);
        for (chunk, records, each) in
            [(CHUNK, 3000, 10), (CHUNK, 1, 7), (700, 350, 10), (1, 5, 1), (129, 3, 129)]
        {
            let draws = Draws::Stream { key: &key, first_chunk: 9, chunk };
            assert_eq!(draws.words(records, each).unwrap(), plain(9, chunk, records * each));
        }
        assert_eq!(
            Draws::Stream { key: &key, first_chunk: 9, chunk: 0 }.words(2, 2).unwrap(),
            plain(9, 1, 4)
        );
    }

    #[test]
    fn coordinates_are_floyds_of_every_record() {
        let (key, ids) = (Key::from_bytes(KEY), (0..700).collect::<Vec<u64>>());
        let randomness = KeyedRandomness::new(&key, b"draws", Ids::Numbers(&ids));
        for (features, k) in
            [(1, 1), (2, 2), (7, 3), (64, 64), (65, 65), (300, 10), (70_000, 100), (u32::MAX, 5)]
        {
            for draws in [
                Draws::Stream { key: &key, first_chunk: 3, chunk: CHUNK },
                Draws::Records { randomness, stream: 1 },
            ] {
                let words = draws.words(700, k).unwrap();
                let expected: Vec<u32> =
                    words.chunks_exact(k).flat_map(|draws| floyd(draws, features)).collect();
                assert_eq!(draws.coordinates::<u32>(700, features, k).unwrap(), expected, "{features}, {k}");
                for &isa in Isa::available() {
                    let mut chosen = vec![0u32; 700 * k];
                    distinct_on(isa, &words, features, k, &mut chosen).unwrap();
                    assert_eq!(chosen, expected, "{isa}");
                }
            }
        }
    }

    #[test]
    fn scaled_draws_are_products() {
        for draw in [0, 1, u64::MAX, 0x8000_0000_0000_0000, 0x1234_5678_9abc_def0] {
            for count in [1, 2, 3, 1009, u32::MAX] {
                assert_eq!(u128::from(scaled(draw, count)), (u128::from(draw) * u128::from(count)) >> 64);
            }
        }
    }

    #[test]
    fn a_call_that_does_not_fit_is_refused() {
        let key = Key::from_bytes(KEY);
        let draws = Draws::Stream { key: &key, first_chunk: 0, chunk: CHUNK };
        for (features, k) in [(0, 0), (0, 1), (3, 0), (3, 4)] {
            let refused = draws.coordinates::<u8>(2, features, k);
            assert!(matches!(refused, Err(Error::Argument { name: "k", .. })), "{refused:?}");
        }
        assert!(matches!(distinct(&[1, 2, 3], 5, 2, &mut [0u8; 3]), Err(Error::Shape { name: "draws", .. })));
        assert!(matches!(distinct(&[1, 2], 5, 2, &mut [0u8; 3]), Err(Error::Shape { name: "draws", .. })));
        let records =
            Draws::Records { randomness: KeyedRandomness::new(&key, b"", Ids::Numbers(&[1])), stream: 0 };
        assert!(matches!(records.words(2, 1), Err(Error::Shape { name: "ids", .. })));
        assert!(matches!(draws.words(usize::MAX, 9), Err(Error::Memory { .. })));
    }
}
