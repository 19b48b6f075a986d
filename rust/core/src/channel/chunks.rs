//! The walk over a batch: each chunk is checked, and then drawn while the cache still has it.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result, argument, reason, words};
use crate::io::{Input, Output, OutputParts};
use crate::isa::BATCHES;
use crate::parallel::for_chunks;

/// The chunks that a key's stream has.
const CHUNKS: u64 = 1 << 56;

/// A draw of one chunk: its number, its reports and their room; it answers with the position of the first that is refused.
type DrawChunk<'f> = dyn Fn(u64, Range<usize>, Output<'_>) -> Option<usize> + Sync + 'f;

/// A batch, and how it is split.
pub(super) struct Chunks {
    /// Reports of the batch.
    pub(super) reports: usize,
    /// Bits of a report.
    pub(super) bits: u32,
    /// Code words of a report.
    pub(super) codes: usize,
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
        if !BATCHES && output.is_real() {
            return Err(Error::Output { reason: words("numbers are not given in this build") });
        }
        let word = self.bits.div_ceil(self.codes as u32);
        if matches!(output, Output::U8(_) | Output::U16(_) | Output::U32(_)) && width < word {
            let reason = reason!("elements of {width} bits do not hold reports of {word}");
            return Err(Error::Output { reason });
        }
        let whole = Chunks::filled(0..self.reports, self.elements(output));
        let needed = output.needed(whole.len(), self.bits as usize);
        if output.len() != needed {
            return Err(Error::Output {
                reason: reason!("{} elements, where {needed} are needed", output.len()),
            });
        }
        if self.threads == Some(0) {
            return Err(argument("threads", words("0 is not allowed; at least 1 is")));
        }
        let chunks = self.reports.div_ceil(self.chunk) as u64;
        if self.first_chunk.checked_add(chunks).is_none_or(|end| end > CHUNKS) {
            let reason = reason!("{} is past the end of the stream, 2^56 chunks", self.first_chunk);
            return Err(argument("first_chunk", reason));
        }
        Ok(())
    }

    /// Calls `draw(chunk, reports, output)` for each chunk of the key's stream: `output` has room for just those reports.
    ///
    /// Before that, `refused(reports)` says which of the values of those reports has no law, as a position among them.
    ///
    /// # Errors
    /// The first index of the batch with such a value, whatever the number of threads; the output is zeros then.
    pub(super) fn walk(
        &self,
        output: Output<'_>,
        nanoseconds: usize,
        refused: impl Fn(Range<usize>) -> Option<usize> + Sync,
        draw: impl Fn(u64, Range<usize>, Output<'_>) + Sync,
    ) -> std::result::Result<(), usize> {
        self.walk_checked(output, nanoseconds, &refused, &draw)
    }

    /// The same, compiled once.
    fn walk_checked(
        &self,
        output: Output<'_>,
        nanoseconds: usize,
        refused: &(dyn Fn(Range<usize>) -> Option<usize> + Sync),
        draw: &(dyn Fn(u64, Range<usize>, Output<'_>) + Sync),
    ) -> std::result::Result<(), usize> {
        self.walk_any(output, nanoseconds, &|chunk, range, output| {
            let position = refused(range.clone());
            if position.is_none() {
                draw(chunk, range, output);
            }
            position
        })
    }

    /// The same, where drawing is sound for any value: `draw` answers with the position of the first that is refused. Who
    /// looks for it after drawing lets the drawing hide what reading the memory takes.
    pub(super) fn walk_anyway(
        &self,
        output: Output<'_>,
        nanoseconds: usize,
        draw: impl Fn(u64, Range<usize>, Output<'_>) -> Option<usize> + Sync,
    ) -> std::result::Result<(), usize> {
        self.walk_any(output, nanoseconds, &draw)
    }

    /// The same, compiled once.
    fn walk_any(
        &self,
        mut output: Output<'_>,
        nanoseconds: usize,
        draw: &DrawChunk<'_>,
    ) -> std::result::Result<(), usize> {
        let (elements, bits) = (self.elements(&output), self.bits as usize);
        let first = AtomicUsize::new(usize::MAX);
        let parts = OutputParts::new(output.reports(Chunks::filled(0..self.reports, elements), bits));
        for_chunks(self.reports, self.chunk, self.threads, nanoseconds, |chunk, range| {
            let start = range.start * self.values;
            // Behind a refused position nothing can come first, and nothing will leave.
            if first.load(Ordering::Relaxed) < start {
                return;
            }
            // SAFETY: chunks do not overlap.
            let output = unsafe { parts.part(Chunks::filled(range.clone(), elements), bits) };
            if let Some(position) = draw(self.first_chunk + chunk as u64, range, output) {
                first.fetch_min(start + position, Ordering::Relaxed);
            }
        });
        match first.into_inner() {
            usize::MAX => Ok(()),
            position => {
                output.clear();
                Err(position)
            }
        }
    }

    /// Elements of the output that a report fills; 1 where those are its bits.
    fn elements(&self, output: &Output<'_>) -> usize {
        match output {
            Output::Bits(_) | Output::Packed(_) => 1,
            Output::U8(_) | Output::U16(_) | Output::U32(_) => self.codes,
            Output::F32(_) | Output::F64(_) => self.values,
        }
    }

    /// Where in the output reports of so many elements go.
    fn filled(reports: Range<usize>, elements: usize) -> Range<usize> {
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
