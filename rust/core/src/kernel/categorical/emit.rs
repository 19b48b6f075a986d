//! Writes reports in the form that was asked for: codes, letters, or packed bits.

use crate::codec::Code;
use crate::codec::pack_into;
use crate::io::Output;
use crate::isa::{BATCHES, Isa, dispatch};

/// The decoded reports, where they are decoded, in both precisions.
#[derive(Clone, Copy)]
pub(crate) struct Letters<'a> {
    pub(crate) double: Option<&'a [f64]>,
    /// [`Letters::single`] of them; empty where nobody asks for them.
    pub(crate) single: &'a [f32],
}

impl Letters<'_> {
    /// The nearest letters of single precision, and zeros up to a multiple of 32: vector units read so many at once. It is
    /// empty where the output does not ask for them.
    pub(crate) fn single(letters: Option<&[f64]>, output: &Output<'_>) -> Vec<f32> {
        let (Some(letters), Output::F32(_)) = (letters, output) else { return Vec::new() };
        let mut single: Vec<f32> = letters.iter().map(|&letter| letter as f32).collect();
        single.resize(letters.len().next_multiple_of(32), 0.0);
        single
    }

    /// The most letters that are read whole for every report: with more it takes longer than reading one by its address.
    const WHOLE: usize = 256;
}

/// Writes reports as code words, letters or packed bits. An address may depend on a report: it is public.
#[cfg_attr(feature = "batches", inline(always))]
#[cfg_attr(not(feature = "batches"), inline(never))]
pub(super) fn emit<W: Code>(isa: Isa, reports: &[W], letters: Letters<'_>, bits: u32, output: Output<'_>) {
    match (output, letters.double) {
        (Output::U8(out), _) => codes(reports, out),
        (Output::U16(out), _) => codes(reports, out),
        (Output::U32(out), _) => codes(reports, out),
        (Output::Packed(out), _) => pack_into(isa, reports, bits, out),
        (Output::F32(out), Some(double)) if BATCHES => {
            let single = letters.single;
            if double.len() <= Letters::WHOLE {
                dispatch!(isa, (reports, single, out), avx512 => super::look_up_avx512::spell,
                    _ => look_up(reports, &single[..double.len()], out));
            } else {
                look_up(reports, &single[..double.len()], out);
            }
        }
        (Output::F64(out), Some(letters)) if BATCHES => look_up(reports, letters, out),
        (Output::Bits(_) | Output::F32(_) | Output::F64(_), _) => {
            unreachable!("the channel gives code words, packed bits, and numbers where it has letters")
        }
    }
}

#[inline(always)]
fn codes<W: Code, C: Code>(reports: &[W], out: &mut [C]) {
    for (out, report) in out.iter_mut().zip(reports) {
        *out = C::narrow(report.widen());
    }
}

#[inline(always)]
fn look_up<W: Code, F: Copy>(reports: &[W], letters: &[F], out: &mut [F]) {
    let pairs = out.iter_mut().zip(reports.iter().map(|report| report.widen()));
    match *letters {
        // A choice between two letters is vectorised, reads of a table are not.
        [a, b] => pairs.for_each(|(out, report)| *out = if report == 0 { a } else { b }),
        _ => pairs.for_each(|(out, report)| *out = letters[report as usize]),
    }
}
