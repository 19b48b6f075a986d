//! What every channel refuses before it writes anything.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result, argument};
use crate::io::Output;
use crate::parallel::{CHUNK, for_chunks};

/// The chunks that a key's stream has.
const CHUNKS: u64 = 1 << 56;

/// Values that one thread looks at at a time: reading is cheap, so more of them are worth a thread than of a chunk.
const LOOKED_AT: usize = 8 * CHUNK;

/// How a batch is split.
pub(super) struct Split {
    /// Reports of the batch.
    pub(super) reports: usize,
    /// Bits of a report.
    pub(super) bits: u32,
    /// Reports in a chunk.
    pub(super) chunk: usize,
    pub(super) first_chunk: u64,
    pub(super) threads: Option<usize>,
}

impl Split {
    /// Refuses an output of the wrong length or too narrow, no threads, and a stream that ends too early.
    pub(super) fn check(&self, output: &Output<'_>) -> Result<()> {
        let width = match output {
            Output::U8(_) => 8,
            Output::U16(_) => 16,
            _ => 32,
        };
        if matches!(output, Output::U8(_) | Output::U16(_) | Output::U32(_)) && width < self.bits {
            let reason = format!("elements of {width} bits do not hold reports of {}", self.bits);
            return Err(Error::Output { reason });
        }
        let needed = output.needed(self.reports, self.bits as usize);
        if output.len() != needed {
            return Err(Error::Output {
                reason: format!("{} elements, where {needed} are needed", output.len()),
            });
        }
        if self.threads == Some(0) {
            return Err(argument("threads", "0 is not allowed; at least 1 is".into()));
        }
        let chunks = self.reports.div_ceil(self.chunk) as u64;
        if self.first_chunk.checked_add(chunks).is_none_or(|end| end > CHUNKS) {
            let reason = format!("{} is past the end of the stream, 2^56 chunks", self.first_chunk);
            return Err(argument("first_chunk", reason));
        }
        Ok(())
    }
}

/// The place of the first of `total` values that `first_in` finds something wrong with; it is given ranges of places, from
/// several threads, and answers with a place relative to its range.
pub(super) fn first_place(
    total: usize,
    threads: Option<usize>,
    first_in: impl Fn(Range<usize>) -> Option<usize> + Sync,
) -> Option<usize> {
    let first = AtomicUsize::new(usize::MAX);
    for_chunks(total, LOOKED_AT, threads, 1, |_, range| {
        let start = range.start;
        if let Some(place) = first_in(range) {
            first.fetch_min(start + place, Ordering::Relaxed);
        }
    });
    Some(first.into_inner()).filter(|&place| place != usize::MAX)
}
