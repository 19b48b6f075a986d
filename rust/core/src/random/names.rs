//! Ids that are texts, as digests.

use sha2::{Digest as _, Sha256};

use super::BLOCKS;
use super::digests::{SHORT, digests};
use crate::error::{Error, Result, zeros};
use crate::isa::{Isa, Unit};
use crate::parallel::{Parts, for_chunks};

/// Texts of a chunk, and what one costs, roughly, in nanoseconds.
const TEXTS: usize = 1024;
const NANOSECONDS: usize = 50;

/// The SHA-256 of each text of a column: what [`Ids::Digests`](crate::Ids::Digests) takes for ids that are no numbers.
///
/// `offsets` are where each text begins in `bytes`, and where the last one ends, as Arrow has them.
///
/// # Errors
/// No offsets, or ones that fall or reach past the end; [`Error::Isa`] as [`Isa::current`].
pub fn text_digests(offsets: &[i64], bytes: &[u8], threads: Option<usize>) -> Result<Vec<[u8; 32]>> {
    let wrong = |reason: &str| Error::Shape { name: "offsets", reason: reason.into() };
    let Some(texts) = offsets.len().checked_sub(1) else {
        return Err(wrong("must not be empty; pass one more than there are texts"));
    };
    // A copy, since another thread may rewrite them between the check and the use.
    let mut own: Vec<i64> = zeros(offsets.len())?;
    own.copy_from_slice(offsets);
    let offsets = own;
    let position = |at: usize| usize::try_from(offsets[at]).ok();
    let inside = |at: usize| {
        position(at).zip(position(at + 1)).is_some_and(|(start, end)| start <= end && end <= bytes.len())
    };
    if !(0..texts).all(inside) {
        return Err(wrong("must not decrease, and must end within the bytes"));
    }
    let isa = Isa::current()?;
    let mut result: Vec<[u8; 32]> = zeros(texts)?;
    let parts = Parts::new(&mut result);
    for_chunks(texts, TEXTS, threads, NANOSECONDS, |_, range| {
        // SAFETY: chunks do not overlap.
        let own = unsafe { parts.part(range.clone()) };
        // Checked above.
        let text = |at: usize| &bytes[offsets[at] as usize..offsets[at + 1] as usize];
        for (start, own) in range.step_by(BLOCKS).zip(own.chunks_mut(BLOCKS)) {
            let short =
                isa.unit() == Unit::Avx512 && (start..start + own.len()).all(|at| text(at).len() <= SHORT);
            match <&mut [[u8; 32]; BLOCKS]>::try_from(&mut *own) {
                Ok(own) if short => *own = digests(isa, std::array::from_fn(|lane| text(start + lane))),
                _ => {
                    for (at, digest) in (start..).zip(own) {
                        *digest = Sha256::digest(text(at)).into();
                    }
                }
            }
        }
    });
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of FIPS 180-2, B.1, and of an empty text.
    #[test]
    fn a_digest_is_the_published_function() {
        let result = text_digests(&[1, 4, 4], b"-abc-", Some(1)).unwrap();
        let hex = |digest: &[u8; 32]| digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(&result[0]), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hex(&result[1]), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    /// Short ones together, and long ones one by one.
    #[test]
    fn texts_of_every_length_are_digested() {
        let bytes: Vec<u8> = (0..6000u32).map(|i| (i * 7 % 251) as u8).collect();
        for lengths in [3..40usize, 0..100, 50..60] {
            let mut offsets = vec![0];
            offsets.extend(lengths.scan(0, |end, length| {
                *end += length as i64;
                Some(*end)
            }));
            let result = text_digests(&offsets, &bytes, Some(1)).unwrap();
            assert_eq!(result.len(), offsets.len() - 1);
            for (digest, ends) in result.iter().zip(offsets.windows(2)) {
                let text = &bytes[ends[0] as usize..ends[1] as usize];
                assert_eq!(*digest, <[u8; 32]>::from(Sha256::digest(text)), "{} bytes", text.len());
            }
        }
    }

    #[test]
    fn threads_change_nothing() {
        let bytes: Vec<u8> = (0..10_000u32).flat_map(u32::to_le_bytes).collect();
        let offsets: Vec<i64> = (0..=10_000).map(|i| i * 4).collect();
        assert_eq!(text_digests(&offsets, &bytes, Some(1)), text_digests(&offsets, &bytes, Some(3)));
    }

    #[test]
    fn offsets_that_do_not_fit_are_refused() {
        for wrong in [&[][..], &[0, 4], &[2, 1], &[-1, 1]] {
            assert!(text_digests(wrong, b"abc", Some(1)).is_err(), "{wrong:?}");
        }
        assert_eq!(text_digests(&[0], b"", None), Ok(vec![]));
    }
}
