//! Stage three: reports in the form in which they leave.

use crate::channel::Output;
use crate::codec::pack_into;
use crate::kernel::bits::Word;

/// What reports stand for, where they stand for something, in both precisions.
#[derive(Clone, Copy)]
pub(crate) struct Letters<'a> {
    pub(crate) double: Option<&'a [f64]>,
    /// The same, each the nearest; empty where nobody asks for them.
    pub(crate) single: &'a [f32],
}

/// Writes reports as code words, letters or packed bits. An address may depend on a report: it is public.
#[inline(always)]
pub(super) fn emit<W: Word>(reports: &[W], letters: Letters<'_>, bits: u32, output: Output<'_>) {
    match (output, letters.double) {
        (Output::U8(out), _) => codes(reports, out),
        (Output::U16(out), _) => codes(reports, out),
        (Output::U32(out), _) => codes(reports, out),
        (Output::Packed(out), _) => pack_into(reports, bits, out),
        (Output::F32(out), Some(_)) => look_up(reports, letters.single, out),
        (Output::F64(out), Some(letters)) => look_up(reports, letters, out),
        (Output::Bits(_) | Output::F32(_) | Output::F64(_), _) => {
            unreachable!("the channel gives code words, packed bits, and numbers where it has letters")
        }
    }
}

#[inline(always)]
fn codes<W: Word, C: Word>(reports: &[W], out: &mut [C]) {
    for (out, report) in out.iter_mut().zip(reports) {
        *out = C::narrow(report.widen());
    }
}

#[inline(always)]
fn look_up<W: Word, F: Copy>(reports: &[W], letters: &[F], out: &mut [F]) {
    let pairs = out.iter_mut().zip(reports.iter().map(|report| report.widen()));
    // Choices between a few letters are vectorised, reads of a table are not.
    match *letters {
        [a, b] => pairs.for_each(|(out, report)| *out = if report == 0 { a } else { b }),
        [a, b, c] => pairs.for_each(|(out, report)| {
            let upper = if report < 2 { b } else { c };
            *out = if report < 1 { a } else { upper };
        }),
        _ => pairs.for_each(|(out, report)| *out = letters[report as usize]),
    }
}
