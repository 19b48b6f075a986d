//! Stage three: reports in the form in which they leave.

use crate::channel::Output;
use crate::codec::pack_into;
use crate::kernel::bits::Word;

/// Writes reports as code words, letters or packed bits. An address may depend on a report: it is public.
#[inline(always)]
pub(super) fn emit<W: Word>(reports: &[W], letters: Option<&[f64]>, bits: u32, output: Output<'_>) {
    match (output, letters) {
        (Output::U8(out), _) => codes(reports, out),
        (Output::U16(out), _) => codes(reports, out),
        (Output::U32(out), _) => codes(reports, out),
        (Output::Packed(out), _) => pack_into(reports, bits, out),
        (Output::F32(out), Some(letters)) => look_up(reports, |i| letters[i] as f32, out),
        (Output::F64(out), Some(letters)) => look_up(reports, |i| letters[i], out),
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
fn look_up<W: Word, F>(reports: &[W], letter: impl Fn(usize) -> F, out: &mut [F]) {
    for (out, report) in out.iter_mut().zip(reports) {
        *out = letter(report.widen() as usize);
    }
}
