//! Messages: a header that the document carries, its checksum, and the packed codes, as the server reads them.

use crate::fields::{Fields, base64, wrong};
use crate::program::Program;
use crate::refused::{Kind, Result};
use crate::update::Update;

/// Bytes of a header at most.
const MOST_HEADER: usize = 1024;

/// Arrays of codes that a header names at most.
const MOST_ARRAYS: u8 = 8;

/// The header and checksum before the packed codes.
pub(crate) struct Message {
    header: Vec<u8>,
    /// How a vector becomes records; where there is none, a record is given as it is.
    pub(crate) update: Option<Update>,
}

impl Message {
    /// The message that a document describes, if it does; its header is refused where it is not that of the other fields.
    pub(crate) fn read(
        fields: &Fields<'_>,
        program: &Program,
        fingerprint: &[u8; 16],
    ) -> Result<Option<Message>> {
        let (header, update) = match (fields.maybe("header"), fields.maybe("update")) {
            (None, None) => return Ok(None),
            (Some(header), None) => (header, None),
            (None, Some(json)) => {
                let inner = Fields::of(json)?;
                let header = inner.get("header")?;
                let update = Update::read(&inner, program)?;
                inner.finish()?;
                (header, Some(update))
            }
            _ => return Err(fields.wrong()),
        };
        let message = Message { header: base64(header, MOST_HEADER)?, update };
        message.fits(program, fingerprint).ok_or_else(|| wrong(header))?;
        Ok(Some(message))
    }

    /// Nothing, where the header is the one of a message with these codes.
    fn fits(&self, program: &Program, fingerprint: &[u8; 16]) -> Option<()> {
        let records = self.records();
        let (norm, ends, columns) = match &self.update {
            Some(update) => (update.norm as u8, [update.clip, update.low, update.high], update.columns()),
            None => (0, [0.0; 3], program.inputs().map(|record| record.columns).sum()),
        };
        let mut rest = self.header.as_slice();
        let mut take = |count| {
            let (taken, after) = rest.split_at_checked(count)?;
            rest = after;
            Some(taken)
        };
        let same = |taken: &[u8], own: &[u8]| (taken == own).then_some(());
        same(take(4)?, b"bLDP")?;
        let &[version, kind, stated, parts] = take(4)? else { return None };
        let fields = program.fields();
        let words = (1..=2).contains(&version) && kind < 3 && stated == norm;
        (words && parts <= MOST_ARRAYS && usize::from(parts) == fields.clone().count()).then_some(())?;
        same(take(16)?, fingerprint)?;
        take(16)?; // of the arrays, which the server alone knows
        for end in ends {
            same(take(8)?, &end.to_le_bytes())?;
        }
        for count in [columns, records] {
            same(take(8)?, &(count as u64).to_le_bytes())?;
        }
        for &(columns, bits) in fields {
            same(take(4)?, &u32::try_from(columns).ok()?.to_le_bytes())?;
            same(take(1)?, &[bits as u8])?;
        }
        let letters = take(1)?.first().copied().filter(|&letters| (1..=64).contains(&letters))?;
        let name = take(letters.into())?;
        let plain = name.iter().all(|&letter| letter == b'_' || letter.is_ascii_alphanumeric());
        (plain && !name[0].is_ascii_digit()).then_some(())?;
        same(take(8)?, &(program.report_bytes(records)? as u64).to_le_bytes())?;
        if version == 2 {
            take(4)?; // the round
            (take(1)?[0] <= 1).then_some(())?;
        }
        rest.is_empty().then_some(())
    }

    /// Records of a message.
    pub(crate) fn records(&self) -> usize {
        self.update.as_ref().map_or(1, |update| update.records)
    }

    /// Bytes of a message.
    pub(crate) fn bytes(&self, program: &Program) -> Option<usize> {
        program.report_bytes(self.records())?.checked_add(self.before())
    }

    /// Bytes before the codes.
    fn before(&self) -> usize {
        self.header.len() + 4
    }

    /// Writes a message around the codes that `write` makes in their place.
    pub(crate) fn around(&self, out: &mut [u8], write: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<()> {
        let (head, codes) = out.split_at_mut_checked(self.before()).ok_or(Kind::Output)?;
        write(codes)?;
        let sum = checksum(checksum(u32::MAX, &self.header), codes) ^ u32::MAX;
        let (header, own) = head.split_at_mut(self.header.len());
        header.copy_from_slice(&self.header);
        own.copy_from_slice(&sum.to_le_bytes());
        Ok(())
    }
}

/// CRC-32, whose first state and last are inverted by the caller.
fn checksum(state: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(state, |state, &byte| {
        (0..8).fold(state ^ u32::from(byte), |state, _| state >> 1 ^ 0xEDB8_8320 & (state & 1).wrapping_neg())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_zip_files() {
        assert_eq!(checksum(u32::MAX, b"123456789") ^ u32::MAX, 0xCBF4_3926);
        assert_eq!(checksum(checksum(u32::MAX, b"1234"), b"56789") ^ u32::MAX, 0xCBF4_3926);
    }
}
