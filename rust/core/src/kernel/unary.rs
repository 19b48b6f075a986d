//! Samples one-hot strings: bytes of eight positions as if none were the category's, and the category's own
//! position put in their place.
//!
//! The byte that holds the category's position is located by comparing, never by addressing, so no address depends on it.

use super::bits::{BitsTable, CodeWord, Laws, Plan};
use super::categorical::load_rows;
use crate::io::{Input, Output};
use crate::isa::{BATCHES, Isa, compiled, ones};
use crate::random::{GROUP, Key, Keys, Lanes, Purpose, Refine, Words, blocks_at, fill, first_words, nonce};
use crate::vector::{Kernel, Vector};

/// Positions' bytes, or records, that one group of keystream serves: two bytes each.
const BLOCK: usize = GROUP / 2;

/// Everything that sampling one chunk takes, but its number, its input and its output.
pub(crate) struct UnarySampler<'a> {
    pub(crate) isa: Isa,
    pub(crate) key: &'a Key,
    pub(crate) categories: usize,
    pub(crate) others: &'a Plan,
    pub(crate) own: &'a Plan,
}

/// Draws that are made at once at the start of a stream: a single record seldom takes more.
const FIRST: usize = 32;

/// Draws from one plan of a single table, a block at a time.
struct UnaryDraws<'a> {
    sampler: &'a UnarySampler<'a>,
    plan: &'a Plan,
    nonce: u64,
    group: u64,
    refine: Refine<'a>,
    keystream: [u8; GROUP],
    drawn: Drawn,
    /// Draws of the block that are made, and how many of these are used.
    ready: usize,
    used: usize,
}

#[repr(C, align(64))]
struct Drawn([u16; BLOCK]);

impl<'a> UnaryDraws<'a> {
    fn new(
        sampler: &'a UnarySampler<'a>,
        plan: &'a Plan,
        main: Purpose,
        refine: Purpose,
        chunk: u64,
    ) -> UnaryDraws<'a> {
        let refine = Refine::new(sampler.isa, sampler.key, nonce(refine, chunk));
        UnaryDraws {
            sampler,
            plan,
            nonce: nonce(main, chunk),
            group: 0,
            refine,
            keystream: [0; GROUP],
            drawn: Drawn([0; BLOCK]),
            ready: BLOCK,
            used: BLOCK,
        }
    }

    #[inline(always)]
    fn next(&mut self) -> u8 {
        let mut one = [0];
        self.take(&mut one);
        one[0]
    }

    /// The next draws, as bytes.
    #[inline(always)]
    fn take(&mut self, mut out: &mut [u8]) {
        while !out.is_empty() {
            if self.used == self.ready {
                self.refill();
            }
            let drawn = &self.drawn.0[self.used..self.ready];
            let count = out.len().min(drawn.len());
            let (now, later) = out.split_at_mut(count);
            // Of a fixed length, a loop is one instruction; adapters might be left out of what is compiled for it.
            let (sixteens, last) = now.as_chunks_mut::<STEP>();
            let (of_sixteens, of_last) = drawn[..count].as_chunks::<STEP>();
            for number in 0..sixteens.len().min(of_sixteens.len()) {
                for i in 0..STEP {
                    sixteens[number][i] = of_sixteens[number][i] as u8;
                }
            }
            for i in 0..last.len().min(of_last.len()) {
                last[i] = of_last[i] as u8;
            }
            self.used += count;
            out = later;
        }
    }

    #[inline(never)]
    fn refill(&mut self) {
        let sampler = self.sampler;
        if self.ready == BLOCK {
            fill(sampler.isa, sampler.key, self.nonce, self.group, &mut self.keystream);
            self.group += 1;
            (self.ready, self.used) = (0, 0);
        }
        let end = if self.group == 1 && self.ready == 0 { FIRST } else { BLOCK };
        let drawn = &mut self.drawn.0[self.ready..end];
        // Flips of words that are 0 are the draws themselves.
        drawn.fill(0);
        let keystream = &self.keystream[2 * self.ready..2 * end];
        u16::randomize(sampler.isa, Laws::one(self.plan), keystream, drawn, &mut self.refine);
        self.ready = end;
    }
}

/// Where the positions of records go, eight of them a byte, most significant first.
trait Sink {
    /// Whole bytes of a record.
    fn whole(&mut self, bytes: &[u8]);
    /// The last positions of a record, fewer than eight.
    fn last(&mut self, byte: u8, positions: usize);
}

impl<S: Sink + ?Sized> Sink for &mut S {
    #[inline(always)]
    fn whole(&mut self, bytes: &[u8]) {
        (**self).whole(bytes);
    }

    #[inline(always)]
    fn last(&mut self, byte: u8, positions: usize) {
        (**self).last(byte, positions);
    }
}

/// A byte of 0 or 1 for each position.
struct SpreadSink<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Sink for SpreadSink<'_> {
    #[inline(always)]
    fn whole(&mut self, bytes: &[u8]) {
        let out = self.out[self.at..][..8 * bytes.len()].as_chunks_mut::<8>().0;
        for i in 0..bytes.len().min(out.len()) {
            out[i] = spread(bytes[i]).to_le_bytes();
        }
        self.at += 8 * bytes.len();
    }

    #[inline(always)]
    fn last(&mut self, byte: u8, positions: usize) {
        let out = &mut self.out[self.at..][..positions];
        out.iter_mut().zip(spread(byte).to_le_bytes()).for_each(|(out, one)| *out = one);
        self.at += positions;
    }
}

/// Bits side by side, nothing between records.
struct Packed<'a> {
    out: &'a mut [u8],
    at: usize,
    held: u32,
    have: usize,
}

impl Packed<'_> {
    /// Writes the last byte, where it is not whole.
    fn end(self) {
        if self.have > 0 {
            self.out[self.at] = (self.held << (8 - self.have)) as u8;
        }
    }
}

impl Sink for Packed<'_> {
    #[inline(always)]
    fn whole(&mut self, bytes: &[u8]) {
        if self.have == 0 {
            self.out[self.at..][..bytes.len()].copy_from_slice(bytes);
            self.at += bytes.len();
        } else {
            bytes.iter().for_each(|&byte| self.last(byte, 8));
        }
    }

    #[inline(always)]
    fn last(&mut self, byte: u8, positions: usize) {
        self.held = self.held << positions | u32::from(byte) >> (8 - positions);
        self.have += positions;
        if self.have >= 8 {
            self.have -= 8;
            self.out[self.at] = (self.held >> self.have) as u8;
            self.at += 1;
        }
    }
}

/// Bytes of a record that are made at a time.
const PIECE: usize = 64;

/// Bytes that are worked on side by side.
const STEP: usize = 16;

/// One chunk, as a loop to be compiled for each instruction set.
struct UnaryRecords<'a, 'b, S> {
    sampler: &'a UnarySampler<'a>,
    chunk: u64,
    input: Input<'b>,
    sink: S,
}

impl<S: Sink> Kernel for UnaryRecords<'_, '_, S> {
    type Answer = ();

    #[allow(
        clippy::needless_range_loop,
        reason = "a plain loop is compiled for the instruction set around it"
    )]
    #[inline(always)]
    fn run<V: Vector>(mut self, _: V) {
        let (sampler, chunk) = (self.sampler, self.chunk);
        let mut others = UnaryDraws::new(sampler, sampler.others, Purpose::Main, Purpose::Refine, chunk);
        let mut own = UnaryDraws::new(sampler, sampler.own, Purpose::Own, Purpose::OwnRefine, chunk);
        let mut categories = [0u32; BLOCK];
        let (whole, rest) = (sampler.categories / 8, sampler.categories % 8);
        let mut piece = [0u8; PIECE];
        for start in (0..self.input.len()).step_by(BLOCK) {
            let count = BLOCK.min(self.input.len() - start);
            load_rows(
                sampler.isa,
                self.input.part(start..start + count),
                sampler.categories as u32,
                &mut categories[..count],
            );
            for &category in &categories[..count] {
                let kept = own.next().wrapping_neg(); // all bits or none
                let (own_byte, bit) = (category / 8, 0x80u8 >> (category % 8));
                for first in (0..whole).step_by(PIECE) {
                    let count = PIECE.min(whole - first);
                    others.take(&mut piece[..count]);
                    let steps = piece.as_chunks_mut::<STEP>().0;
                    for step in 0..count.div_ceil(STEP) {
                        // Where the own position's byte is, counted from here; far away, a number that no position has.
                        let own_step = own_byte.wrapping_sub((first + STEP * step) as u32).min(0xff) as u8;
                        let bytes = &mut steps[step];
                        for i in 0..STEP {
                            let mask = bit & u8::from(i as u8 == own_step).wrapping_neg();
                            bytes[i] = bytes[i] & !mask | mask & kept;
                        }
                    }
                    self.sink.whole(&piece[..count]);
                }
                if rest > 0 {
                    let mask = bit & u8::from(whole as u32 == own_byte).wrapping_neg();
                    self.sink.last(others.next() & !mask | mask & kept, rest);
                }
            }
        }
    }
}

impl UnarySampler<'_> {
    /// Randomizes chunk `chunk` of the key's stream: `output` has room for just the reports of `input`.
    pub(crate) fn chunk(&self, chunk: u64, input: Input<'_>, output: Output<'_>) {
        match output {
            Output::Bits(out) => self.give(chunk, input, &mut SpreadSink { out, at: 0 }),
            Output::Packed(out) => {
                let mut sink = Packed { out, at: 0, held: 0, have: 0 };
                self.give(chunk, input, &mut sink);
                sink.end();
            }
            _ => unreachable!("the channel gives bits and packed bits"),
        }
    }

    /// Gives the reports to a sink.
    fn give<S: Sink>(&self, chunk: u64, input: Input<'_>, sink: &mut S) {
        if BATCHES {
            compiled(self.isa, UnaryRecords { sampler: self, chunk, input, sink });
        } else {
            compiled(self.isa, UnaryRecords { sampler: self, chunk, input, sink: sink as &mut dyn Sink });
        }
    }
}

/// Everything that sampling records takes that have a key each, but the keys, the input and the output: sixteen records side
/// by side, each the first of its key's stream.
#[derive(Clone, Copy)]
pub(crate) struct UnaryRows<'a> {
    pub(crate) isa: Isa,
    /// At most [`UnaryRows::MOST`].
    pub(crate) categories: usize,
    pub(crate) others: &'a Plan,
    pub(crate) own: &'a Plan,
}

/// The draws of a record at most.
type RowBytes = [u8; BLOCK];

/// Which words, of two draws each, leave one open: a bit each.
type Open = [u64; BLOCK / 2 / 64];

/// The draws of sixteen records from one table, a byte each.
struct RowDraws<'a> {
    isa: Isa,
    table: &'a BitsTable,
    keys: &'a Keys,
    refine: Purpose,
}

impl RowDraws<'_> {
    /// Writes `count` draws of each record: the words of its stream hold two each.
    #[cfg_attr(feature = "batches", inline(always))]
    #[cfg_attr(not(feature = "batches"), inline(never))]
    fn write(&self, count: usize, words: &[[u32; Lanes::COUNT]], out: &mut [RowBytes; Lanes::COUNT]) {
        let mut open: Open = [0; BLOCK / 2 / 64];
        for (number, words) in words.iter().enumerate() {
            let mut outcomes = [[0; 2]; Lanes::COUNT];
            open[number / 64] |= u64::from(self.table.draw_halves(words, &mut outcomes)) << (number % 64);
            for (out, two) in out.iter_mut().zip(outcomes) {
                out[2 * number..][..2].copy_from_slice(&two);
            }
        }
        if open != [0; BLOCK / 2 / 64] {
            self.settle(count, words, &open, out);
        }
    }

    /// Draws again, in the order of each record, what the first bits of `open` words leave open.
    #[inline(never)]
    fn settle(
        &self,
        count: usize,
        words: &[[u32; Lanes::COUNT]],
        open: &Open,
        out: &mut [RowBytes; Lanes::COUNT],
    ) {
        for (lane, out) in out.iter_mut().enumerate() {
            let mut refine = Refine::of_lane(self.isa, self.keys, lane, nonce(self.refine, 0), 0);
            let numbers =
                (0..).step_by(64).zip(open).flat_map(|(from, &open)| ones(open).map(move |at| from + at));
            for at in numbers.flat_map(|number| [2 * number, 2 * number + 1]).filter(|&at| at < count) {
                let random = (words[at / 2][lane] >> (16 * (at % 2))) as u16;
                if self.table.is_open(random) {
                    out[at] = self.table.draw(random, &mut refine) as u8;
                }
            }
        }
    }
}

/// A chunk of such records, as a loop to be compiled for each instruction set.
struct RowsKernel<'a, 'b, S> {
    rows: UnaryRows<'a>,
    keys: &'b [Keys],
    categories: &'b [u32],
    sink: S,
}

impl<S: Sink> Kernel for RowsKernel<'_, '_, S> {
    type Answer = ();

    #[allow(
        clippy::needless_range_loop,
        reason = "a plain loop is compiled for the instruction set around it"
    )]
    #[inline(always)]
    fn run<V: Vector>(mut self, _: V) {
        let UnaryRows { isa, categories, others, own } = self.rows;
        let (whole, rest) = (categories / 8, categories % 8);
        let count = categories.div_ceil(8);
        let mut words = vec![[0; Lanes::COUNT]; count.div_ceil(2)];
        let mut of_own: Words = [[0; Lanes::COUNT]; 16];
        let mut bytes = [[0; BLOCK]; Lanes::COUNT];
        for (keys, categories) in self.keys.iter().zip(self.categories.chunks(Lanes::COUNT)) {
            blocks_at(isa, keys, 0, nonce(Purpose::Own, 0), &mut of_own);
            let draws = RowDraws { isa, table: &own.tables[0], keys, refine: Purpose::OwnRefine };
            draws.write(1, &of_own[..1], &mut bytes);
            // All bits or none.
            let kept: [u8; Lanes::COUNT] = std::array::from_fn(|lane| bytes[lane][0].wrapping_neg());
            first_words(isa, keys, nonce(Purpose::Main, 0), &mut words);
            let draws = RowDraws { isa, table: &others.tables[0], keys, refine: Purpose::Refine };
            draws.write(count, &words, &mut bytes);
            for (lane, &category) in categories.iter().enumerate() {
                let (own_byte, bit) = (category / 8, 0x80u8 >> (category % 8));
                let bytes = &mut bytes[lane];
                let steps = bytes.as_chunks_mut::<STEP>().0;
                for step in 0..count.div_ceil(STEP) {
                    let own_step = own_byte.wrapping_sub((STEP * step) as u32).min(0xff) as u8;
                    for i in 0..STEP {
                        let mask = bit & u8::from(i as u8 == own_step).wrapping_neg();
                        steps[step][i] = steps[step][i] & !mask | mask & kept[lane];
                    }
                }
                self.sink.whole(&bytes[..whole]);
                if rest > 0 {
                    self.sink.last(bytes[whole], rest);
                }
            }
        }
    }
}

impl UnaryRows<'_> {
    /// The most categories: one group of keystream holds the draws of a record.
    pub(crate) const MOST: usize = 8 * BLOCK;

    /// Randomizes records, sixteen to each of `keys`: `output` has room for just the reports of `input`.
    pub(crate) fn chunk(&self, keys: &[Keys], input: Input<'_>, output: Output<'_>) {
        let mut categories = vec![0u32; input.len()];
        load_rows(self.isa, input, self.categories as u32, &mut categories);
        let (rows, categories) = (*self, &categories[..]);
        match output {
            Output::Bits(out) => rows.give(keys, categories, &mut SpreadSink { out, at: 0 }),
            Output::Packed(out) => {
                let mut sink = Packed { out, at: 0, held: 0, have: 0 };
                rows.give(keys, categories, &mut sink);
                sink.end();
            }
            _ => unreachable!("the channel gives bits and packed bits"),
        }
    }

    /// Gives the reports to a sink.
    fn give<S: Sink>(self, keys: &[Keys], categories: &[u32], sink: &mut S) {
        if BATCHES {
            compiled(self.isa, RowsKernel { rows: self, keys, categories, sink });
        } else {
            compiled(self.isa, RowsKernel { rows: self, keys, categories, sink: sink as &mut dyn Sink });
        }
    }
}

/// The bits of a byte, most significant first, as eight bytes of 0 or 1, the first of them lowest.
#[inline(always)]
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
