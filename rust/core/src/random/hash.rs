//! The keyed BLAKE3 hash of a message of any length, in plain code. The crate's has every instruction set, and is ten times as
//! large; a build without the feature `batches`, which is for clients, takes this one, and a test compares the two.
//!
//! A message is chunks of 1024 bytes, each a chain of blocks of 64; the chunks are the leaves of a binary tree, whose left
//! subtrees are as large as they can be (the BLAKE3 paper, sections 2.1 to 2.5).

use super::hashes::{CHUNK_END, CHUNK_START, IV, KEYED_HASH, ROOT, SCHEDULE, round};

const PARENT: u32 = 4;
/// Bytes of a block.
const BLOCK: usize = 64;
/// Bytes of a chunk.
const CHUNK: usize = 1024;

/// The hash of a message.
pub(crate) struct Hash([u8; 32]);

impl Hash {
    /// Its bytes.
    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A message that is hashed part by part.
pub(crate) struct Hasher {
    key: [u32; 8],
    /// The chaining value of the last chunk, its number, and the bytes of its blocks that have gone in.
    chaining: [u32; 8],
    chunk: u64,
    done: usize,
    /// Its block that comes next: nobody knows whether another one follows.
    block: [u8; BLOCK],
    filled: usize,
    /// The chaining values of whole subtrees, the largest first.
    subtrees: Vec<[u32; 8]>,
}

impl Hasher {
    /// An empty message under a key.
    pub(crate) fn new_keyed(key: &[u8; 32]) -> Hasher {
        let key = std::array::from_fn(|word| u32::from_le_bytes(key.as_chunks().0[word]));
        Hasher { key, chaining: key, chunk: 0, done: 0, block: [0; BLOCK], filled: 0, subtrees: Vec::new() }
    }

    /// Absorbs bytes.
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.filled == BLOCK {
                self.take_block();
            }
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - self.filled));
            self.block[self.filled..][..now.len()].copy_from_slice(now);
            self.filled += now.len();
            bytes = later;
        }
    }

    /// Takes a whole block that another one follows into its chunk, and that into the tree where it is whole.
    fn take_block(&mut self) {
        let last = self.done + BLOCK == CHUNK;
        let end = if last { CHUNK_END } else { 0 };
        let mut taken =
            compress(&self.chaining, &words(&self.block), self.chunk, BLOCK, self.chunk_flags() | end);
        (self.block, self.filled) = ([0; BLOCK], 0);
        if !last {
            (self.chaining, self.done) = (taken, self.done + BLOCK);
            return;
        }
        (self.chaining, self.done, self.chunk) = (self.key, 0, self.chunk + 1);
        // As many subtrees are whole now as the number of chunks has zeros at its end.
        for _ in 0..self.chunk.trailing_zeros() {
            let left = self.subtrees.pop().expect("a subtree for each bit of the number of chunks");
            taken = compress(&self.key, &pair(&left, &taken), 0, BLOCK, KEYED_HASH | PARENT);
        }
        self.subtrees.push(taken);
    }

    fn chunk_flags(&self) -> u32 {
        KEYED_HASH | if self.done == 0 { CHUNK_START } else { 0 }
    }

    /// The hash.
    pub(crate) fn finalize(&self) -> Hash {
        let mut node =
            (self.chaining, words(&self.block), self.chunk, self.filled, self.chunk_flags() | CHUNK_END);
        for left in self.subtrees.iter().rev() {
            let (chaining, block, counter, length, flags) = node;
            let right = compress(&chaining, &block, counter, length, flags);
            node = (self.key, pair(left, &right), 0, BLOCK, KEYED_HASH | PARENT);
        }
        let (chaining, block, counter, length, flags) = node;
        let root = compress(&chaining, &block, counter, length, flags | ROOT);
        Hash(std::array::from_fn(|byte| root[byte / 4].to_le_bytes()[byte % 4]))
    }
}

/// The words of a block.
fn words(block: &[u8; BLOCK]) -> [u32; 16] {
    std::array::from_fn(|word| u32::from_le_bytes(block.as_chunks().0[word]))
}

/// The block of a parent.
fn pair(left: &[u32; 8], right: &[u32; 8]) -> [u32; 16] {
    std::array::from_fn(|word| if word < 8 { left[word] } else { right[word - 8] })
}

/// The chaining value behind a block.
#[inline(never)]
fn compress(chaining: &[u32; 8], block: &[u32; 16], counter: u64, length: usize, flags: u32) -> [u32; 8] {
    let last = [counter as u32, (counter >> 32) as u32, length as u32, flags];
    let mut v = [0; 16];
    v.iter_mut().zip(chaining.iter().chain(&IV).chain(&last)).for_each(|(word, &start)| *word = start);
    for order in &SCHEDULE {
        round(&mut v, |at| block[order[at] % 16]);
    }
    std::array::from_fn(|word| v[word] ^ v[word + 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No byte, whole blocks, chunks and trees, and one more or less; absorbed at once and in pieces.
    #[test]
    fn it_is_the_published_function() {
        let key: [u8; 32] = std::array::from_fn(|i| (i * 9) as u8);
        let message: Vec<u8> = (0..20_000u32).map(|i| (i * 7 + i / 251) as u8).collect();
        let near = |length: usize| [length - 1, length, length + 1];
        let lengths = [64, 128, 1024, 2048, 3072, 4096, 7168, 16_384].into_iter().flat_map(near);
        for length in [0, 1].into_iter().chain(lengths) {
            let message = &message[..length];
            let expected = *blake3::keyed_hash(&key, message).as_bytes();
            for piece in [1, 13, 64, 1000, 20_000] {
                let mut hasher = Hasher::new_keyed(&key);
                message.chunks(piece).for_each(|part| hasher.update(part));
                assert_eq!(*hasher.finalize().as_bytes(), expected, "{length} bytes in pieces of {piece}");
            }
        }
    }
}
