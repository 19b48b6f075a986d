//! Samples one-hot strings: bytes of eight positions as if none were the category's, and the category's own
//! position put in their place.
//!
//! The byte that holds the category's position is found by comparing, never by addressing, so no address depends on it.

use super::bits::{Lanes, Laws, Plan};
use super::categorical::load_rows;
use crate::io::{Input, Output};
use crate::isa::Isa;
use crate::random::{GROUP, Key, Purpose, Refine, fill, nonce};

/// Positions' bytes, or records, that one group of keystream serves: two bytes each.
const BLOCK: usize = GROUP / 2;

/// Everything that sampling one chunk takes, but its number, its input and its output.
pub(crate) struct Sampler<'a> {
    pub(crate) isa: Isa,
    pub(crate) key: &'a Key,
    pub(crate) categories: usize,
    pub(crate) others: &'a Plan,
    pub(crate) own: &'a Plan,
}

/// Draws from one plan of a single table, a block at a time.
struct Draws<'a> {
    sampler: &'a Sampler<'a>,
    plan: &'a Plan,
    nonce: u64,
    group: u64,
    refine: Refine<'a>,
    drawn: Drawn,
    used: usize,
}

#[repr(C, align(64))]
struct Drawn([u16; BLOCK]);

impl<'a> Draws<'a> {
    fn new(
        sampler: &'a Sampler<'a>,
        plan: &'a Plan,
        main: Purpose,
        refine: Purpose,
        chunk: u64,
    ) -> Draws<'a> {
        let refine = Refine::new(sampler.isa, sampler.key, nonce(refine, chunk));
        Draws {
            sampler,
            plan,
            nonce: nonce(main, chunk),
            group: 0,
            refine,
            drawn: Drawn([0; BLOCK]),
            used: BLOCK,
        }
    }

    #[inline]
    fn next(&mut self) -> u16 {
        if self.used == BLOCK {
            self.refill();
        }
        self.used += 1;
        self.drawn.0[self.used - 1]
    }

    #[inline(never)]
    fn refill(&mut self) {
        let mut keystream = [0; GROUP];
        fill(self.sampler.isa, self.sampler.key, self.nonce, self.group, &mut keystream);
        // Flips of words that are 0 are the draws themselves.
        self.drawn.0.fill(0);
        u16::randomize(
            self.sampler.isa,
            Laws::one(self.plan),
            &keystream,
            &mut self.drawn.0,
            &mut self.refine,
        );
        self.group += 1;
        self.used = 0;
    }
}

impl Sampler<'_> {
    /// Randomizes chunk `chunk` of the key's stream: `output` has room for just the reports of `input`.
    pub(crate) fn chunk(&self, chunk: u64, input: Input<'_>, output: Output<'_>) {
        match output {
            Output::Bits(out) => {
                let mut at = 0;
                self.bytes(chunk, input, |byte, positions| {
                    let spread = spread(byte).to_le_bytes();
                    match out[at..].first_chunk_mut::<8>() {
                        // Eight bytes are one store; those behind a record's last position are overwritten by the next.
                        Some(room) => *room = spread,
                        None => out[at..].iter_mut().zip(spread).for_each(|(out, one)| *out = one),
                    }
                    at += positions;
                });
            }
            Output::Packed(out) => {
                let (mut held, mut have, mut at) = (0u32, 0, 0);
                self.bytes(chunk, input, |byte, positions| {
                    held = held << positions | u32::from(byte) >> (8 - positions);
                    have += positions;
                    if have >= 8 {
                        have -= 8;
                        out[at] = (held >> have) as u8;
                        at += 1;
                    }
                });
                if have > 0 {
                    out[at] = (held << (8 - have)) as u8;
                }
            }
            _ => unreachable!("the channel gives bits and packed bits"),
        }
    }

    /// Calls `give(byte, positions)` for each eight positions of each record, most significant first; the last ones of a
    /// record may be fewer.
    fn bytes(&self, chunk: u64, input: Input<'_>, mut give: impl FnMut(u8, usize)) {
        let mut others = Draws::new(self, self.others, Purpose::Main, Purpose::Refine, chunk);
        let mut own = Draws::new(self, self.own, Purpose::Own, Purpose::OwnRefine, chunk);
        let mut categories = [0u32; BLOCK];
        for start in (0..input.len()).step_by(BLOCK) {
            let count = BLOCK.min(input.len() - start);
            load_rows(
                self.isa,
                input.part(start..start + count),
                self.categories as u32,
                &mut categories[..count],
            );
            for &category in &categories[..count] {
                let kept = own.next() as u8; // 0 or 1
                let (home, place) = ((category / 8) as usize, 0x80u8 >> (category % 8));
                for (byte, first) in (0..self.categories).step_by(8).enumerate() {
                    let mask = place & ((byte == home) as u8).wrapping_neg();
                    let zeros = others.next() as u8;
                    give(zeros & !mask | mask & kept.wrapping_neg(), 8.min(self.categories - first));
                }
            }
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
