//! Public draws: of columns, hash functions and steps, without looking at the record.
//!
//! Draw i of a call takes the i-th words of 64 bits of its key's stream, which comes in chunks of [`CHUNK`] words.

use bitldp_core::{CHUNK, Isa, Key, ROUNDS, Rotation, RotationKind, keystream_on};

use crate::fields::Fields;
use crate::json::Json;
use crate::refused::{Kind, Refused, Result};
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

/// A draw of rotations of a vector, one for each report of it.
pub(crate) struct PublicRotation {
    pub(crate) rotation: Rotation,
    /// How many rotations there are.
    pub(crate) count: u64,
    /// Reports of a record.
    pub(crate) reports: usize,
}

impl PublicRotation {
    /// The draw that an object of a document describes, for vectors of so many numbers; none where it is another one.
    pub(crate) fn read(json: &Json<'_>, columns: usize) -> Result<Option<PublicRotation>> {
        let fields = Fields::of(json)?;
        if fields.text("draw")? != "rotation" {
            return Ok(None);
        }
        let kind = match fields.text("kind")? {
            "hadamard" => RotationKind::Hadamard,
            "haar" => RotationKind::Haar,
            _ => return Err(fields.unknown()),
        };
        let (key, radius) = (Key::from_bytes(fields.hex("key")?), fields.double("radius")?);
        let count = fields.integer("rotations", 1, 1 << 32)? as u64;
        let reports = fields.integer("reports", 1, 64)? as usize;
        fields.finish()?;
        let rotation =
            Rotation::new(columns, radius, kind, key).map_err(|_| Refused::at(Kind::Law, json.at))?;
        Ok(Some(PublicRotation { rotation, count, reports }))
    }

    /// Draws the numbers of rotations of records, `reports` for each; `chunk` records have a nonce of their own.
    pub(crate) fn draw(&self, key: &Key, chunk: usize, numbers: &mut [u32]) -> Result<()> {
        for_draws(key, numbers.len(), chunk * self.reports, |at, bytes| {
            numbers[at] = ((u64::from(u32::from_le_bytes(bytes)) * self.count) >> 32) as u32;
        })
    }
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

/// Calls `work` with the first draws of a key's stream, of `N` bytes each, one after the other; it comes in chunks of so many.
pub(crate) fn for_draws<const N: usize>(
    key: &Key,
    count: usize,
    chunk: usize,
    mut work: impl FnMut(usize, [u8; N]),
) -> Result<()> {
    let isa = Isa::current()?;
    let mut bytes = [0; GROUP];
    for start in (0..count).step_by(chunk) {
        let end = count.min(start + chunk);
        for (group, first) in (start..end).step_by(GROUP / N).enumerate() {
            keystream_on::<ROUNDS>(isa, key, (start / chunk) as u64, group as u64, &mut bytes);
            (first..end).zip(bytes.as_chunks::<N>().0).for_each(|(at, &drawn)| work(at, drawn));
        }
    }
    Ok(())
}

/// Calls `work` with the first words of a key's stream, one after the other. It is compiled once, whatever is done.
pub(crate) fn for_words(key: &Key, count: usize, work: &mut dyn FnMut(usize, u64)) -> Result<()> {
    for_draws(key, count, CHUNK, |at, bytes| work(at, u64::from_le_bytes(bytes)))
}

/// A number from 0 to below `count`, of a word: chances differ from uniform by less than `count / 2^64` of their value.
pub(crate) fn scaled(word: u64, count: u64) -> u64 {
    ((u128::from(word) * u128::from(count)) >> 64) as u64
}

/// Draws `k` different columns of `of` for each record, by the algorithm of Floyd (Bentley and Floyd, "A sample of
/// brilliance", CACM 30, 1987): the draw for j is uniform over 0 to j, and one that is taken already stands for j itself.
pub(crate) fn coordinates(key: &Key, of: usize, k: usize, columns: &mut [u32]) -> Result<()> {
    let marks = if k > FEW { of.div_ceil(64) } else { 0 };
    with_room(marks, |marks: &mut [u64]| {
        for_words(key, columns.len(), &mut |at, word| {
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
            for_words(&key, 3 * k, &mut |at, word| words[at] = word).unwrap();
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
        for_words(&key, CHUNK + 300, &mut |_, word| words.push(word)).unwrap();
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
