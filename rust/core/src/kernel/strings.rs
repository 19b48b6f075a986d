//! Writes strings of bits, eight positions at a time.

use crate::io::Output;

/// Room for strings.
pub(super) trait Strings {
    /// Takes the next `positions` positions of a string, 1 to 8, which are the highest bits of `byte`.
    fn give(&mut self, byte: u8, positions: usize);
}

/// What writes strings.
pub(super) trait Writer {
    /// Gives all positions of all strings.
    fn write(&self, to: &mut impl Strings);
}

/// Lets strings be written to an output of bits, or of packed bits.
pub(super) fn write(writer: &impl Writer, output: Output<'_>) {
    match output {
        Output::Bits(out) => writer.write(&mut Spread { out, at: 0 }),
        Output::Packed(out) => {
            let mut packed = Packed { out, at: 0, held: 0, have: 0 };
            writer.write(&mut packed);
            packed.finish();
        }
        _ => unreachable!("the channel gives bits and packed bits"),
    }
}

/// A byte of 0 or 1 for each position.
struct Spread<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Strings for Spread<'_> {
    #[inline(always)]
    fn give(&mut self, byte: u8, positions: usize) {
        let spread = spread(byte).to_le_bytes();
        match self.out[self.at..].first_chunk_mut::<8>() {
            // Eight bytes are one store; those behind a string's last position are overwritten by the next.
            Some(room) => *room = spread,
            None => self.out[self.at..].iter_mut().zip(spread).for_each(|(out, one)| *out = one),
        }
        self.at += positions;
    }
}

/// Eight positions to a byte, nothing between strings.
struct Packed<'a> {
    out: &'a mut [u8],
    at: usize,
    held: u32,
    have: usize,
}

impl Packed<'_> {
    fn finish(self) {
        if self.have > 0 {
            self.out[self.at] = (self.held << (8 - self.have)) as u8;
        }
    }
}

impl Strings for Packed<'_> {
    #[inline(always)]
    fn give(&mut self, byte: u8, positions: usize) {
        self.held = self.held << positions | u32::from(byte) >> (8 - positions);
        self.have += positions;
        if self.have >= 8 {
            self.have -= 8;
            self.out[self.at] = (self.held >> self.have) as u8;
            self.at += 1;
        }
    }
}

/// The bits of a byte, most significant first, as eight bytes of 0 or 1, the first of them lowest.
pub(super) fn spread(byte: u8) -> u64 {
    // Copies of the byte at distances of nine bits do not overlap, and bit 8i + 7 is bit 7 - i of the byte.
    u64::from(byte).wrapping_mul(0x8040_2010_0804_0201) >> 7 & 0x0101_0101_0101_0101
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn spread_takes_the_bits_from_the_top() {
        for byte in 0..=255u8 {
            for (i, bit) in spread(byte).to_le_bytes().into_iter().enumerate() {
                assert_eq!(bit, byte >> (7 - i) & 1);
            }
        }
    }
}
