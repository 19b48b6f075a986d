//! Public draws: of columns, hash functions and steps, without looking at the record.
//!
//! Draw i of a call takes the i-th words of 64 bits of its key's stream, which comes in chunks of [`CHUNK`] words.

use bitldp_core::{CHUNK, Isa, Key, ROUNDS, keystream_on};

use crate::fields::Fields;
use crate::json::Json;
use crate::refused::Result;
use crate::values::with_room;

/// Bytes that the keystream is addressed by.
const GROUP: usize = 1024;

/// Draws up to which those before are looked through one by one.
const FEW: usize = 64;

/// A public draw of a document.
#[derive(Clone, Copy)]
pub(crate) enum PublicDraw {
    /// `k` different columns of `of`.
    Coordinates { of: usize, k: usize },
    /// A function `x -> values ((a x + b) mod prime) / prime`.
    Affine { prime: u64, values: u64 },
    /// A step of a progression modulo `cells`.
    Step { count: u64, cells: u64 },
}

impl PublicDraw {
    /// The draw that an object of a document describes.
    pub(crate) fn read(json: &Json<'_>) -> Result<PublicDraw> {
        let fields = Fields::of(json)?;
        let draw = match fields.text("draw")? {
            "coordinates" => {
                let of = fields.integer("of", 1, 1 << 22)?;
                PublicDraw::Coordinates { of: of as usize, k: fields.integer("k", 1, of)? as usize }
            }
            "affine" => {
                let prime = fields.integer("prime", 3, 1 << 25)?;
                PublicDraw::Affine { prime: prime as u64, values: fields.integer("values", 2, prime)? as u64 }
            }
            "step" => PublicDraw::Step {
                count: fields.integer("count", 1, 1 << 16)? as u64,
                cells: fields.integer("cells", 3, 1 << 16)? as u64,
            },
            _ => return Err(fields.unknown()),
        };
        fields.finish()?;
        Ok(draw)
    }
}

/// Calls `work` with the first words of a key's stream, one after the other.
pub(crate) fn for_words(key: &Key, count: usize, mut work: impl FnMut(usize, u64)) -> Result<()> {
    let isa = Isa::current()?;
    let mut bytes = [0; GROUP];
    for first in (0..count).step_by(GROUP / 8) {
        let (chunk, group) = (first / CHUNK, first % CHUNK / (GROUP / 8));
        keystream_on::<ROUNDS>(isa, key, chunk as u64, group as u64, &mut bytes);
        for (at, word) in (first..count).zip(bytes.as_chunks::<8>().0) {
            work(at, u64::from_le_bytes(*word));
        }
    }
    Ok(())
}

/// A number from 0 to below `count`, of a word: chances differ from uniform by less than `count / 2^64` of their value.
pub(crate) fn scaled(word: u64, count: u64) -> u64 {
    (u128::from(word) * u128::from(count) >> 64) as u64
}

/// Draws `k` different columns of `of` for each record, by the algorithm of Floyd (Bentley and Floyd, "A sample of
/// brilliance", CACM 30, 1987): the draw for j is uniform over 0 to j, and one that is taken already stands for j itself.
pub(crate) fn coordinates(key: &Key, of: usize, k: usize, columns: &mut [u32]) -> Result<()> {
    let marks = if k > FEW { of.div_ceil(64) } else { 0 };
    with_room(marks, |marks: &mut [u64]| {
        for_words(key, columns.len(), |at, word| {
            let (start, last) = (at / k * k, (of - k + at % k) as u64);
            if start == at {
                marks.fill(0);
            }
            let drawn = scaled(word, last + 1);
            let taken = if k > FEW {
                marks[drawn as usize / 64] >> (drawn % 64) & 1 == 1
            } else {
                columns[start..at].iter().any(|&column| u64::from(column) == drawn)
            };
            let chosen = if taken { last } else { drawn };
            if k > FEW {
                marks[chosen as usize / 64] |= 1 << (chosen % 64);
            }
            columns[at] = chosen as u32;
        })
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_record_differ_and_the_two_searches_agree() {
        let key = Key::from_bytes([7; 32]);
        for (of, k) in [(5, 5), (1, 1), (1000, 64), (100, 65), (65, 65), (4096, 1000)] {
            let mut columns = vec![0; 3 * k];
            coordinates(&key, of, k, &mut columns).unwrap();
            let mut words = vec![0; 3 * k];
            for_words(&key, 3 * k, |at, word| words[at] = word).unwrap();
            for (columns, words) in columns.chunks(k).zip(words.chunks(k)) {
                let mut chosen: Vec<u32> = Vec::new();
                for (&word, last) in words.iter().zip((of - k) as u32..) {
                    let drawn = scaled(word, u64::from(last) + 1) as u32;
                    chosen.push(if chosen.contains(&drawn) { last } else { drawn });
                }
                assert_eq!(columns, chosen);
                chosen.sort_unstable();
                chosen.dedup();
                assert!(chosen.len() == k && chosen.iter().all(|&column| (column as usize) < of));
            }
        }
    }

    /// The stream comes in chunks, each of a nonce of its own.
    #[test]
    fn words_are_those_of_the_chunks() {
        let key = Key::from_bytes([9; 32]);
        let mut words = Vec::new();
        for_words(&key, CHUNK + 300, |_, word| words.push(word)).unwrap();
        for (chunk, words) in words.chunks(CHUNK).enumerate() {
            let mut bytes = vec![0; 8 * words.len()];
            bitldp_core::keystream(&key, chunk as u64, &mut bytes).unwrap();
            assert!(
                bytes
                    .as_chunks::<8>()
                    .0
                    .iter()
                    .zip(words)
                    .all(|(own, &word)| u64::from_le_bytes(*own) == word)
            );
        }
    }
}
