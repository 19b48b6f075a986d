//! Reports of `b` bits each, side by side: most significant bit first, eight bits to a byte, nothing in between.
//!
//! The layout is that of `numpy.packbits` over the reports' bits; the last byte ends with zero bits.

use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_arch = "x86_64")]
#[path = "pack_avx2.rs"]
mod avx2;
#[cfg(target_arch = "aarch64")]
#[path = "pack_neon.rs"]
mod neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[path = "pack_wasm.rs"]
mod wasm;

use super::code::Code;
use super::unpack::Unpack;
use crate::error::{Error, Result, argument, element, reason, zeros};
use crate::isa::{Isa, dispatch, vectorised};
use crate::parallel::{CHUNK, Parts, for_chunks};

fn check_bits(bits: u32) -> Result<()> {
    if (1..=32).contains(&bits) {
        return Ok(());
    }
    Err(argument("bits", reason!("{bits} is not allowed; 1 to 32 are")))
}

/// Bytes that `count` reports of `bits` bits fill.
///
/// # Errors
/// [`Error::Argument`] if `bits` is not 1 to 32, or there is no memory of that size.
pub fn packed_len(count: usize, bits: u32) -> Result<usize> {
    check_bits(bits)?;
    match count.checked_mul(bits as usize) {
        Some(total) => Ok(total.div_ceil(8)),
        None => Err(argument("count", reason!("{count} reports are more than memory holds"))),
    }
}

/// Nanoseconds that a single thread takes for a report, roughly.
const NANOSECONDS: usize = 1;

/// Packs the low `bits` bits of each report.
///
/// # Errors
/// [`Error::Argument`] if `bits` is not 1 to 32, [`Error::Value`] if a report has more bits, [`Error::Memory`].
pub fn pack<C: Code>(reports: &[C], bits: u32) -> Result<Vec<u8>> {
    let mut out = zeros(packed_len(reports.len(), bits)?)?;
    pack_to(reports, bits, &mut out, None)?;
    Ok(out)
}

/// [`pack`] into bytes of just that length, on `threads` threads (`None`: as many as pay off).
///
/// # Errors
/// As [`pack`], and [`Error::Output`] for another length. Of a report with more bits the first index is named, and `out` is
/// zeros.
pub fn pack_to<C: Code>(reports: &[C], bits: u32, out: &mut [u8], threads: Option<usize>) -> Result<()> {
    let isa = Isa::current()?;
    let needed = packed_len(reports.len(), bits)?;
    if out.len() != needed {
        return Err(Error::Output { reason: reason!("{} bytes, where {needed} are needed", out.len()) });
    }
    let (most, width) = (u32::MAX >> (32 - bits), bits as usize);
    let parts = Parts::new(out);
    let refused = AtomicBool::new(false);
    for_chunks(reports.len(), CHUNK, threads, NANOSECONDS, |_, range| {
        let reports = &reports[range.clone()];
        // SAFETY: a chunk is a multiple of eight reports, so it begins with a whole byte; chunks do not overlap.
        let out = unsafe { parts.part(range.start * width / 8..(range.end * width).div_ceil(8)) };
        let seen = vectorised(isa, || reports.iter().fold(0, |seen, report| seen | report.widen()));
        if seen > most {
            refused.store(true, Ordering::Relaxed);
        } else {
            pack_into(isa, reports, bits, out);
        }
    });
    if refused.into_inner() {
        out.fill(0);
        let first = reports.iter().position(|&report| report.into() > most).unwrap_or(0);
        return Err(element("reports", first, "a report has no more than `bits` bits"));
    }
    Ok(())
}

/// The reports that [`pack`] packed.
///
/// # Errors
/// [`Error::Argument`] if `bits` is not 1 to 32 or does not fit the code words, [`Error::Shape`] if `packed` is not as
/// long as `count` reports are, [`Error::Value`] if the bits after the last report are not 0, [`Error::Memory`].
pub fn unpack<C: Code>(packed: &[u8], bits: u32, count: usize) -> Result<Vec<C>> {
    check_packed::<C>(packed, bits, count)?;
    let mut out = zeros(count)?;
    unpack_to(packed, bits, &mut out, None)?;
    Ok(out)
}

/// [`unpack`] as many reports as `out` has room for, on `threads` threads (`None`: as many as pay off).
///
/// # Errors
/// As [`unpack`]; nothing is written then.
pub fn unpack_to<C: Code>(packed: &[u8], bits: u32, out: &mut [C], threads: Option<usize>) -> Result<()> {
    let isa = Isa::current()?;
    check_packed::<C>(packed, bits, out.len())?;
    let total = out.len();
    let (parts, work) = (Parts::new(out), Unpack::new(isa, bits));
    for_chunks(total, CHUNK, threads, NANOSECONDS, |_, range| {
        let first = range.start;
        // SAFETY: chunks do not overlap.
        work.words(packed, first, unsafe { parts.part(range) });
    });
    Ok(())
}

fn check_packed<C: Code>(packed: &[u8], bits: u32, count: usize) -> Result<()> {
    let needed = packed_len(count, bits)?;
    if bits as usize > 8 * size_of::<C>() {
        let width = 8 * size_of::<C>();
        return Err(argument("bits", reason!("{bits} do not fit code words of {width} bits")));
    }
    if packed.len() != needed {
        let reason = reason!("{count} reports of {bits} bits are {needed} bytes, not {}", packed.len());
        return Err(Error::Shape { name: "packed", reason });
    }
    let unused = needed * 8 - count * bits as usize;
    if packed.last().is_some_and(|last| last & ((1u8 << unused) - 1) != 0) {
        return Err(element("packed", needed - 1, "the bits after the last report are 0"));
    }
    Ok(())
}

/// Packs reports that have no more than `bits` bits into exactly as many bytes as they need: what the kernels call for
/// each block. A block that is not the last one holds a multiple of eight reports, so the next one starts at a whole byte.
#[inline(always)]
pub(crate) fn pack_into<W: Code>(isa: Isa, reports: &[W], bits: u32, out: &mut [u8]) {
    debug_assert_eq!(out.len(), (reports.len() * bits as usize).div_ceil(8));
    if bits > 16 {
        return write(reports.iter().map(|report| report.widen()), bits, out);
    }
    let done = dispatch!(isa, (reports, bits, out),
        avx512 => avx2::pack, avx2 => avx2::pack, neon => neon::pack,
        simd128 => wasm::pack, _ => 0);
    let (reports, out) = (&reports[done..], &mut out[done / 8 * bits as usize..]);
    // Eight reports are `bits` whole bytes.
    let eights = reports.chunks_exact(8);
    let rest = eights.remainder();
    let width = bits as usize;
    let mut at = 0;
    for eight in eights {
        let pair = |i: usize| u64::from(eight[i].widen()) << bits | u64::from(eight[i + 1].widen());
        let four = |i: usize| pair(i) << (2 * bits) | pair(i + 2);
        let (first, second) = (four(0), four(4));
        // All 8 * bits of them, moved to the upper end of 128.
        let all = match bits {
            16 => [first, second],
            9.. => [first << (64 - 4 * bits) | second >> (8 * bits - 64), second << (128 - 8 * bits)],
            _ => [(first << (4 * bits) | second) << (64 - 8 * bits), 0],
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&all[0].to_be_bytes());
        bytes[8..].copy_from_slice(&all[1].to_be_bytes());
        // Sixteen bytes are one store. Those behind the first `bits` are zeros, which the next reports replace.
        match out[at..].first_chunk_mut::<16>() {
            Some(room) => *room = bytes,
            None => out[at..at + width].copy_from_slice(&bytes[..width]),
        }
        at += width;
    }
    write(rest.iter().map(|report| report.widen()), bits, &mut out[at..]);
}

/// The plain loop: bits enter at the low end and leave by whole bytes.
fn write(reports: impl Iterator<Item = u32>, bits: u32, out: &mut [u8]) {
    let (mut held, mut have, mut at) = (0u64, 0, 0);
    for report in reports {
        held = held << bits | u64::from(report);
        have += bits;
        while have >= 8 {
            have -= 8;
            out[at] = (held >> have) as u8;
            at += 1;
        }
    }
    if have > 0 {
        out[at] = (held << (8 - have)) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `numpy.packbits` over the bits, one by one.
    fn naive(reports: &[u32], bits: u32) -> Vec<u8> {
        let row = |&report: &u32| (0..bits).rev().map(move |i| (report >> i & 1) as u8);
        let bits: Vec<u8> = reports.iter().flat_map(row).collect();
        bits.chunks(8).map(|byte| byte.iter().enumerate().map(|(i, bit)| bit << (7 - i)).sum()).collect()
    }

    proptest! {
        #[test]
        fn packing_is_packbits_and_comes_back(bits in 1u32..=32, reports in prop::collection::vec(any::<u32>(), 0..70)) {
            let reports: Vec<u32> = reports.iter().map(|report| report >> (32 - bits)).collect();
            let expected = naive(&reports, bits);
            prop_assert_eq!(&pack(&reports, bits).unwrap(), &expected);
            prop_assert_eq!(&unpack::<u32>(&expected, bits, reports.len()).unwrap(), &reports);
            let mut out = vec![0xff; expected.len()];
            for &isa in Isa::available() {
                out.fill(0xff);
                pack_into(isa, &reports, bits, &mut out);
                prop_assert_eq!(&out, &expected);
            }
            if bits <= 16 {
                let short: Vec<u16> = reports.iter().map(|&report| report as u16).collect();
                for &isa in Isa::available() {
                    out.fill(0xff);
                    pack_into(isa, &short, bits, &mut out);
                    prop_assert_eq!(&out, &expected);
                }
                prop_assert_eq!(&unpack::<u16>(&expected, bits, reports.len()).unwrap(), &short);
            }
            if bits <= 8 {
                let short: Vec<u8> = reports.iter().map(|&report| report as u8).collect();
                for &isa in Isa::available() {
                    out.fill(0xff);
                    pack_into(isa, &short, bits, &mut out);
                    prop_assert_eq!(&out, &expected);
                }
                prop_assert_eq!(&pack(&short, bits).unwrap(), &expected);
                prop_assert_eq!(&unpack::<u8>(&expected, bits, reports.len()).unwrap(), &short);
            }
        }
    }

    #[test]
    fn threads_change_nothing_and_the_first_place_is_named() {
        let mut reports: Vec<u16> =
            (0..40_001u32).map(|i| (i.wrapping_mul(40_503) >> 3) as u16 & 0x7ff).collect();
        let packed = pack(&reports, 11).unwrap();
        let (mut out, mut back) = (vec![9; packed.len()], vec![9u16; reports.len()]);
        for threads in [None, Some(1), Some(3)] {
            pack_to(&reports, 11, &mut out, threads).unwrap();
            unpack_to(&packed, 11, &mut back, threads).unwrap();
            assert!(out == packed && back == reports);
        }
        for bad in [39_999, 20_000, 17] {
            reports[bad] = 0x800;
            let refused = pack_to(&reports, 11, &mut out, Some(3));
            assert!(matches!(refused, Err(Error::Value { name: "reports", index, .. }) if index == bad));
            assert!(out.iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(matches!(pack(&[1u8], 0), Err(Error::Argument { name: "bits", .. })));
        assert!(matches!(pack(&[1u8], 33), Err(Error::Argument { name: "bits", .. })));
        assert!(matches!(pack(&[7u16, 8], 3), Err(Error::Value { name: "reports", index: 1, .. })));
        assert!(matches!(unpack::<u8>(&[0; 2], 9, 1), Err(Error::Argument { name: "bits", .. })));
        for wrong in [0, 1, 3] {
            assert!(matches!(unpack::<u16>(&vec![0; wrong], 9, 1), Err(Error::Shape { name: "packed", .. })));
        }
        assert!(matches!(unpack::<u8>(&[0b1010_0001], 3, 2), Err(Error::Value { index: 0, .. })));
        assert!(matches!(unpack::<u8>(&[], 8, usize::MAX / 2), Err(Error::Argument { name: "count", .. })));
    }
}
