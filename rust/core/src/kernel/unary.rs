//! Samples one-hot strings: bytes of eight positions as if none were the category's, and the category's own
//! position put in their place.
//!
//! The byte that holds the category's position is found by comparing, never by addressing, so no address depends on it.

use super::bits::{Lanes, Laws, Plan};
use super::categorical::load_rows;
use super::strings::{Strings, Writer, write};
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
        write(&Chunk { sampler: self, chunk, input }, output);
    }
}

/// A chunk of the key's stream, and the categories that it is for.
struct Chunk<'a> {
    sampler: &'a Sampler<'a>,
    chunk: u64,
    input: Input<'a>,
}

impl Writer for Chunk<'_> {
    fn write(&self, to: &mut impl Strings) {
        let Chunk { sampler, chunk, input } = *self;
        let mut others = Draws::new(sampler, sampler.others, Purpose::Main, Purpose::Refine, chunk);
        let mut own = Draws::new(sampler, sampler.own, Purpose::Own, Purpose::OwnRefine, chunk);
        let mut categories = [0u32; BLOCK];
        for start in (0..input.len()).step_by(BLOCK) {
            let count = BLOCK.min(input.len() - start);
            let part = input.part(start..start + count);
            load_rows(sampler.isa, part, sampler.categories as u32, &mut categories[..count]);
            for &category in &categories[..count] {
                let kept = own.next() as u8; // 0 or 1
                let (home, place) = ((category / 8) as usize, 0x80u8 >> (category % 8));
                for (byte, first) in (0..sampler.categories).step_by(8).enumerate() {
                    let mask = place & ((byte == home) as u8).wrapping_neg();
                    let zeros = others.next() as u8;
                    to.give(zeros & !mask | mask & kept.wrapping_neg(), 8.min(sampler.categories - first));
                }
            }
        }
    }
}
