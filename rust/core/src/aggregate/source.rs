//! Reports as a flat row of code words, read piece by piece whatever their form.

use super::{Batch, Reports};
use crate::codec::Code;
use crate::codec::{Rows, Unpack, squeeze_rows};
use crate::error::{Result, zeros};
use crate::isa::Isa;

/// The most words that are asked for at once.
pub(super) const PIECE: usize = 1024;

/// Where words are put that have to be made first, and what was seen on the way.
pub(super) struct SourceBuffers<W> {
    words: Vec<W>,
    packed: Vec<u8>,
    /// All bytes ORed that should be 0 or 1.
    seen: u8,
}

impl<W: Code> SourceBuffers<W> {
    /// Room for pieces of `words`.
    pub(super) fn new(words: usize) -> Result<SourceBuffers<W>> {
        Ok(SourceBuffers { words: zeros(words)?, packed: zeros(4 * words)?, seen: 0 })
    }

    /// True where a byte was neither 0 nor 1.
    pub(super) fn met_other_bytes(&self) -> bool {
        self.seen > 1
    }
}

/// A flat row of words.
pub(super) trait Source<W: Code>: Sync {
    /// How many there are.
    fn len(&self) -> usize;
    /// Those of `start .. start + count`, at most as many as `scratch` has room for.
    fn piece<'s>(&'s self, start: usize, count: usize, scratch: &'s mut SourceBuffers<W>) -> &'s [W];
    /// Those of `rows` rows of `words`, which begin `stride` words after each other, from `start` on: where they are, and
    /// how many words after each other there. `scratch` has room for all of them.
    fn rows(
        &self,
        start: usize,
        stride: usize,
        rows: usize,
        words: usize,
        scratch: &mut SourceBuffers<W>,
    ) -> (*const W, usize);
    /// Asks memory for the words of a piece that will be read soon; there may be fewer, or none.
    fn ask(&self, start: usize, count: usize);
}

/// Bytes that memory gives at once.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Asks memory for the bytes `start .. start + count` of `bytes`, as far as there are.
#[inline(always)]
fn ask<T>(bytes: &[T], start: usize, count: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (start..bytes.len().min(start + count)).step_by(LINE / size_of::<T>()) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a hint about an address inside the slice; every x86-64 processor takes it.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(bytes.as_ptr().add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, start, count);
}

impl<W: Code> Source<W> for &[W] {
    #[inline(always)]
    fn len(&self) -> usize {
        <[W]>::len(self)
    }

    #[inline(always)]
    fn piece<'s>(&'s self, start: usize, count: usize, _: &'s mut SourceBuffers<W>) -> &'s [W] {
        &self[start..start + count]
    }

    #[inline(always)]
    fn rows(
        &self,
        start: usize,
        stride: usize,
        rows: usize,
        words: usize,
        _: &mut SourceBuffers<W>,
    ) -> (*const W, usize) {
        (self[start..start + (rows - 1) * stride + words].as_ptr(), stride)
    }

    #[inline(always)]
    fn ask(&self, start: usize, count: usize) {
        ask(self, start, count);
    }
}

/// Words that leave as bits.
pub(super) struct Flat<'a> {
    isa: Isa,
    stream: &'a [u8],
    /// True where the stream is bytes of 0 and 1.
    spread: bool,
    bits: u32,
    words: usize,
    unpack: Unpack,
}

impl<W: Code> Source<W> for Flat<'_> {
    fn len(&self) -> usize {
        self.words
    }

    fn piece<'s>(&'s self, start: usize, count: usize, scratch: &'s mut SourceBuffers<W>) -> &'s [W] {
        let words = &mut scratch.words[..count];
        if self.spread {
            let width = self.bits as usize;
            let bits = Rows { first: start * width, stride: 0, rows: 1, length: count * width };
            scratch.seen |= squeeze_rows(self.isa, self.stream, bits, &mut scratch.packed);
            self.unpack.words(&scratch.packed, 0, words);
        } else {
            self.unpack.words(self.stream, start, words);
        }
        words
    }

    fn rows(
        &self,
        start: usize,
        stride: usize,
        rows: usize,
        words: usize,
        scratch: &mut SourceBuffers<W>,
    ) -> (*const W, usize) {
        let out = &mut scratch.words[..rows * words];
        if self.spread {
            let width = self.bits as usize;
            debug_assert!((words * width).is_multiple_of(8));
            let bits = Rows { first: start * width, stride: stride * width, rows, length: words * width };
            scratch.seen |= squeeze_rows(self.isa, self.stream, bits, &mut scratch.packed);
            self.unpack.words(&scratch.packed, 0, out);
        } else {
            self.unpack.rows(self.stream, start, stride, words, out);
        }
        (out.as_ptr(), words)
    }

    fn ask(&self, start: usize, count: usize) {
        let width = self.bits as usize;
        let (start, end) = (start * width, (start + count) * width);
        if self.spread {
            ask(self.stream, start, end - start);
        } else {
            ask(self.stream, start / 8, end.div_ceil(8) - start / 8);
        }
    }
}

impl Flat<'_> {
    /// The same stream as one of `words` words.
    pub(super) fn of(self, words: usize) -> Self {
        Flat { words, ..self }
    }
}

impl Batch<'_> {
    pub(super) fn flat<'s>(&self, stream: &'s [u8], spread: bool) -> Flat<'s> {
        let unpack = Unpack::new(self.isa, self.bits);
        Flat { isa: self.isa, stream, spread, bits: self.bits, words: self.words(), unpack }
    }

    /// The position of the first packed or spread word above `most`.
    pub(super) fn packed_above(&self, most: u32) -> Option<usize> {
        let (Reports::Bits(stream) | Reports::Packed(stream)) = self.reports else { return None };
        let flat = self.flat(stream, matches!(self.reports, Reports::Bits(_)));
        let mut scratch = SourceBuffers::<u32>::new(1).ok()?;
        (0..self.words()).find(|&i| flat.piece(i, 1, &mut scratch)[0] > most)
    }
}

/// Runs `$body` with `$words` bound to the words of `$batch`, a [`Source`] of the smallest type that holds them.
macro_rules! with_words {
    ($batch:expr, $words:ident: $word:ident => $body:expr) => {
        match $batch.reports {
            $crate::aggregate::Reports::U8($words) => {
                type $word = u8;
                $body
            }
            $crate::aggregate::Reports::U16($words) => {
                type $word = u16;
                $body
            }
            $crate::aggregate::Reports::U32($words) => {
                type $word = u32;
                $body
            }
            $crate::aggregate::Reports::Bits(stream) | $crate::aggregate::Reports::Packed(stream) => {
                let spread = matches!($batch.reports, $crate::aggregate::Reports::Bits(_));
                let $words = $batch.flat(stream, spread);
                if $batch.bits <= 16 {
                    type $word = u16;
                    $body
                } else {
                    type $word = u32;
                    $body
                }
            }
        }
    };
}
pub(super) use with_words;
