//! The keystream: ChaCha (RFC 8439) with 12 rounds, addressed by a 256-bit key, a 64-bit nonce and a group.
//!
//! Twelve rounds are the choice of `rand`'s `StdRng`: the best known attack reaches 7 of them, at a cost that nobody can
//! pay (Aumasson, "Too Much Crypto", 2019, has the list), and 20 would take two thirds more time. The number is a parameter
//! of every path, so that the RFC's own vectors, which are of 20, are tested on the same code.
//!
//! A group is sixteen consecutive blocks stored word by word: the first words of the blocks 0 to 15, then the second
//! words, and so on, each little-endian: 1024 bytes. That is the order in which the vector units produce them, so no
//! path transposes, and all of them give the same bytes.
//!
//! Every chunk of a batch has nonces of its own, one a [`Purpose`], so any chunk can be computed by any thread in any
//! order.
//!
//! # Keyed randomness
//!
//! A release that may be evaluated more than once (an engine that retries a task, a frame that is read twice) must give the
//! same reports every time, or every evaluation costs ε. Its random bits are a function of the key, the context (the caller's
//! bytes, and the law itself), the record's id, the column and the value: nothing of the batch is in them.
//!
//! - A keyed BLAKE3 hash of (key, context, law, grids) is the key of the call, and one of (that, id) the key of the record.
//! - A column is a lane of the keystream under the record's key: the nonce is the canonical value, the counter holds the
//!   purpose in its top 8 bits, the column in the next 32 and the block in the last 24.
//! - Canonical is the `f64` with -0.0 and subnormals as 0.0, so that `f32` 1.0, `f64` 1.0 and the integer 1 of a column of
//!   numbers are one value; of a category, its code.
//! - Block 0 holds all that nearly every sample takes: words 0 to 3 the draw of the law, 4 to 7 that of a mixture's other
//!   law, 8 and 9 their dithers. What is rarely needed more comes from [`Purpose::Refine`].
//! - Where a report is of a whole record (`Bits`, `Cap`, `Cube`, `Select`), or of a category in many bits (`Unary`), the record's key is a
//!   keyed hash of (id, column, all of its canonical values), and the report is drawn from the start of the stream of that key, as
//!   if the record were a batch of its own. Two records that differ in one value share nothing.
//!
//! The value is in the nonce because random bits of the id alone would be the same for two values of one id, and the difference of
//! their reports would tell that of the values. The law is in the key because two laws that share random bits tell more together
//! than the sum of their ε. Under one key, an equal report says that a record likely did not change, so a key serves one
//! frozen snapshot of the data; whoever holds it can test values, so it stays with the data's owner.

use std::fmt;

use rand::CryptoRng;

use crate::error::{Error, Result};
use crate::kernel::Isa;

mod chacha;
mod digests;
#[cfg(any(test, not(feature = "batches")))]
mod hash;
mod hashes;
mod lanes;
mod names;
mod record;
mod refine;

pub(crate) use lanes::{Keys, Lanes, Words, blocks_at, counter, first_words};
pub use names::text_digests;
pub use record::Ids;
pub(crate) use record::{Digest, RecordKeys, WholeRecords};
pub(crate) use refine::Refine;

/// Rounds of the keystream that reports are drawn from.
pub const ROUNDS: usize = 12;

/// Blocks in a group.
const BLOCKS: usize = 16;

/// Bytes in a group, the unit in which the keystream is addressed.
pub const GROUP: usize = BLOCKS * 64;

/// A 256-bit key. It is never shown: [`fmt::Debug`] hides it, and there is no other way to read it.
///
/// Two calls with the same key and different inputs reveal how the inputs differ: use a fresh key for every release.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u32; 8]);

impl Key {
    /// The bytes that the key is.
    pub(crate) fn to_bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (bytes, word) in bytes.chunks_exact_mut(4).zip(self.0) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The key that these bytes are.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Key {
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        }
        Key(words)
    }

    /// A fresh key from the operating system.
    ///
    /// # Errors
    /// [`Error::Entropy`] if it gives none, or if the crate was built without its feature `os-random`.
    pub fn from_os() -> Result<Key> {
        let mut bytes = [0; 32];
        fill_from_os(&mut bytes)?;
        Ok(Key::from_bytes(bytes))
    }

    /// A key from a generator of the caller's: 32 bytes of it.
    ///
    /// ```
    /// use bitldp_core::Key;
    /// use rand::rand_core::UnwrapErr;
    /// use rand::rngs::SysRng;
    ///
    /// let key = Key::from_rng(&mut UnwrapErr(SysRng));
    /// ```
    #[must_use]
    pub fn from_rng(rng: &mut impl CryptoRng) -> Key {
        let mut bytes = [0; 32];
        rng.fill_bytes(&mut bytes);
        Key::from_bytes(bytes)
    }
}

#[cfg(feature = "os-random")]
fn fill_from_os(bytes: &mut [u8]) -> Result<()> {
    use rand::TryRng;

    rand::rngs::SysRng.try_fill_bytes(bytes).map_err(|_| Error::Entropy)
}

#[cfg(not(feature = "os-random"))]
fn fill_from_os(_: &mut [u8]) -> Result<()> {
    Err(Error::Entropy)
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The purpose of a part of the keystream. Each has nonces of its own, so no two draws ever share bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Purpose {
    /// The draws that every value takes.
    Main = 0,
    /// The rare draws that decide a comparison whose first bits were equal.
    Refine = 1,
    /// The dither that mixes the two grid points around a real value.
    Dither = 2,
    /// The category's own position in a one-hot string.
    Own = 3,
    /// The refinement of [`Purpose::Own`].
    OwnRefine = 4,
}

/// The nonce of a chunk: the purpose in the top 8 bits, the chunk below them.
#[inline]
pub(crate) fn nonce(purpose: Purpose, chunk: u64) -> u64 {
    debug_assert!(chunk < 1 << 56);
    (purpose as u64) << 56 | chunk
}

/// Fills `out`, a whole number of groups, with the keystream from `group` on.
#[inline]
pub(crate) fn fill(isa: Isa, key: &Key, nonce: u64, group: u64, out: &mut [u8]) {
    fill_rounds::<ROUNDS>(isa, key, nonce, group, out);
}

#[inline]
fn fill_rounds<const ROUNDS: usize>(isa: Isa, key: &Key, nonce: u64, group: u64, out: &mut [u8]) {
    const { assert!(ROUNDS.is_multiple_of(2)) };
    debug_assert!(out.len().is_multiple_of(GROUP));
    chacha::fill::<ROUNDS>(isa, key, nonce, group, out);
}

/// One block of RFC 8439's function with `R` rounds (an even number; the RFC has 20), a 64-bit counter (words 12, 13) and a
/// 64-bit nonce (words 14, 15).
#[must_use]
pub fn block<const R: usize>(key: &Key, counter: u64, nonce: u64) -> [u8; 64] {
    let mut bytes = [0; 64];
    for (bytes, word) in bytes.chunks_exact_mut(4).zip(chacha::block::<R>(key, counter, nonce)) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Fills `out` with the keystream of `(key, nonce)` from its start, in canonical order.
///
/// # Errors
/// [`Error::Isa`](crate::Error::Isa) as [`Isa::current`].
pub fn keystream(key: &Key, nonce: u64, out: &mut [u8]) -> Result<()> {
    keystream_on::<ROUNDS>(Isa::current()?, key, nonce, 0, out);
    Ok(())
}

/// [`keystream`] from `group` on with `R` rounds, on a given instruction set: the bytes are the same on all of them.
pub fn keystream_on<const R: usize>(isa: Isa, key: &Key, nonce: u64, group: u64, out: &mut [u8]) {
    let whole = out.len() / GROUP * GROUP;
    let (groups, rest) = out.split_at_mut(whole);
    fill_rounds::<R>(isa, key, nonce, group, groups);
    if !rest.is_empty() {
        let mut last = [0; GROUP];
        fill_rounds::<R>(isa, key, nonce, group.wrapping_add((whole / GROUP) as u64), &mut last);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown() {
        assert_eq!(format!("{:?}", Key::from_bytes([0xab; 32])), "Key(..)");
    }

    #[test]
    #[cfg(not(feature = "os-random"))]
    fn without_random_bytes_there_is_no_fresh_key() {
        assert_eq!(Key::from_os(), Err(Error::Entropy));
    }

    #[test]
    #[cfg(feature = "os-random")]
    fn no_two_fresh_keys_are_alike_on_any_thread() {
        let draw = || (0..1000).map(|_| Key::from_os().unwrap().0).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(draw)).collect();
        let mut all: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 4000);
    }

    /// A generator whose bytes count up.
    struct Counting(u8);

    impl rand::TryRng for Counting {
        type Error = std::convert::Infallible;

        fn try_next_u32(&mut self) -> std::result::Result<u32, Self::Error> {
            rand::rand_core::utils::next_word_via_fill(self)
        }

        fn try_next_u64(&mut self) -> std::result::Result<u64, Self::Error> {
            rand::rand_core::utils::next_word_via_fill(self)
        }

        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> std::result::Result<(), Self::Error> {
            for byte in bytes {
                *byte = self.0;
                self.0 += 1;
            }
            Ok(())
        }
    }

    impl rand::TryCryptoRng for Counting {}

    #[test]
    fn a_generator_gives_32_bytes_of_its_own() {
        let mut rng = Counting(3);
        assert!(Key::from_rng(&mut rng) == Key::from_bytes(std::array::from_fn(|i| 3 + i as u8)));
        assert_eq!(rng.0, 35);
    }

    #[test]
    fn nonces_of_different_purposes_never_meet() {
        assert_eq!(nonce(Purpose::Main, 7), 7);
        assert_eq!(nonce(Purpose::Refine, 7), 1 << 56 | 7);
        assert_eq!(nonce(Purpose::Dither, (1 << 56) - 1), 3 * (1 << 56) - 1);
        assert_eq!(nonce(Purpose::Own, 7), 3 << 56 | 7);
        assert_eq!(nonce(Purpose::OwnRefine, 7), 4 << 56 | 7);
    }

    #[test]
    fn a_group_is_sixteen_blocks_word_by_word() {
        let key = Key::from_bytes(std::array::from_fn(|i| i as u8));
        let mut group = [0; GROUP];
        fill(Isa::Scalar, &key, 77, 3, &mut group);
        for b in 0..BLOCKS {
            let expected = block::<ROUNDS>(&key, 3 * 16 + b as u64, 77);
            for w in 0..16 {
                assert_eq!(group[(w * BLOCKS + b) * 4..][..4], expected[w * 4..][..4]);
            }
        }
    }
}
