//! Checks of a batch before anything is written, and the walk over its chunks.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result, argument};
use crate::io::{Input, Output, OutputParts};
use crate::parallel::{CHUNK, for_chunks};

/// The chunks that a key's stream has.
const CHUNKS: u64 = 1 << 56;

/// Values that one thread looks at at a time: reading is cheap, so more of them are worth a thread than of a chunk.
const LOOKED_AT: usize = 8 * CHUNK;

/// A batch, and how it is split.
pub(super) struct Chunks {
    /// Reports of the batch.
    pub(super) reports: usize,
    /// Bits of a report.
    pub(super) bits: u32,
    /// Values that a report is about, and numbers that it stands for.
    pub(super) values: usize,
    /// Reports in a chunk.
    pub(super) chunk: usize,
    pub(super) first_chunk: u64,
    pub(super) threads: Option<usize>,
}

impl Chunks {
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
        let whole = self.filled(0..self.reports, output.is_real());
        let needed = output.needed(whole.len(), self.bits as usize);
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

    /// Calls `draw(chunk, reports, output)` for each chunk of the key's stream: `output` has room for just those reports.
    pub(super) fn walk(
        &self,
        output: Output<'_>,
        nanoseconds: usize,
        draw: impl Fn(u64, Range<usize>, Output<'_>) + Sync,
    ) {
        let (real, parts) = (output.is_real(), OutputParts::new(output));
        for_chunks(self.reports, self.chunk, self.threads, nanoseconds, |chunk, range| {
            // SAFETY: chunks do not overlap.
            let output = unsafe { parts.part(self.filled(range.clone(), real), self.bits as usize) };
            draw(self.first_chunk + chunk as u64, range, output);
        });
    }

    /// Where in the output reports go, in reports, or in numbers where those leave.
    fn filled(&self, reports: Range<usize>, real: bool) -> Range<usize> {
        let elements = if real { self.values } else { 1 };
        reports.start * elements..reports.end * elements
    }
}

/// The codec and the input that the kernels see: of a mute channel, no codec and as many zeros.
pub(super) fn heard<'a, G>(
    mute: bool,
    codec: Option<G>,
    input: Input<'a>,
    zeros: &'a mut Vec<u8>,
) -> (Option<G>, Input<'a>) {
    if !mute {
        return (codec, input);
    }
    zeros.resize(input.len(), 0);
    (None, Input::U8(zeros))
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
