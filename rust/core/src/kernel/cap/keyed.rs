//! Samples records that have a key each, sixteen side by side: every record is the first of its key's stream.
//!
//! A group's row has a word of sixteen blocks of the keystream, so the first record's words are all of one block: sixteen such
//! blocks, one of each key, are rows of a group again.

use super::{CapLaw, CapSampler, Group, Keystream, Kind, LANES, Lane, PlaceOnGrid, Rows16};
use crate::codec::{Grid, GridRounding};
use crate::io::{Input, Output};
use crate::isa::{Isa, compiled};
use crate::kernel::categorical::load_rows;
use crate::kernel::subset::SubsetDraws;
use crate::random::{Keys, Purpose, Refine, Words, blocks_at, first_words, nonce};
use crate::vector::{Kernel, Vector};

/// Blocks of a group of keystream: the next row that a record has behind those of a block begins so much later.
const BLOCKS: u64 = 16;

/// Everything that sampling records takes that have a key each, but the keys, the input and the output.
pub(crate) struct CapRows<'a> {
    pub(crate) isa: Isa,
    pub(crate) law: &'a CapLaw,
    /// How numbers become codes.
    pub(crate) grid: Option<&'a Grid>,
    /// The decoded cells.
    pub(crate) letters: Option<&'a [f64]>,
}

/// Rows of sixteen keys.
struct KeyRows<'a> {
    isa: Isa,
    keys: &'a Keys,
    counter: u64,
    words: Words,
    used: usize,
}

impl KeyRows<'_> {
    #[inline(never)]
    fn refill(&mut self) {
        blocks_at(self.isa, self.keys, self.counter, nonce(Purpose::Main, 0), &mut self.words);
        self.counter += BLOCKS;
        self.used = 0;
    }
}

impl Rows16 for KeyRows<'_> {
    #[inline(always)]
    fn next(&mut self) -> Lane {
        if self.used == self.words.len() {
            self.refill();
        }
        self.used += 1;
        self.words[self.used - 1]
    }
}

/// A chunk of such records, as a loop to be compiled for each instruction set.
struct RowsChunk<'a, 'b> {
    rows: &'a CapRows<'b>,
    keys: &'a [Keys],
    records: usize,
    codes: &'a [u32],
    output: Output<'a>,
}

impl Kernel for RowsChunk<'_, '_> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(mut self, _: V) {
        let CapRows { isa, law, letters, .. } = *self.rows;
        let values = law.columns.len();
        let mut group = Group::new(law);
        let elements = |kind| if let Kind::Several { size } = kind { size as usize } else { 0 };
        let several = law.columns.iter().map(|column| elements(column.kind)).sum();
        let mut words = vec![[0; LANES]; several];
        for ((start, keys), codes) in
            (0..self.records).step_by(LANES).zip(self.keys).zip(self.codes.chunks_exact(LANES * values))
        {
            let count = LANES.min(self.records - start);
            let mut stream = KeyRows { isa, keys, counter: 0, words: [[0; LANES]; 16], used: 16 };
            // Of no record: where one asks, each of them is drawn by itself, in the order of its own stream.
            let mut refine = Refine::of_lane(isa, keys, 0, nonce(Purpose::Refine, 0), 0);
            law.draw(&mut group, codes, &mut stream, &mut refine);
            if refine.was_asked() {
                self.rows.anew(keys, count, codes, &mut group);
            }
            if group.room > 0 {
                first_words(isa, keys, nonce(Purpose::Own, 0), &mut words);
                for (lane, record) in codes.chunks_exact(values).take(count).enumerate() {
                    let mut draws = SubsetDraws::of_lane(isa, keys, lane, &words, Purpose::OwnRefine);
                    law.string(isa, &mut group, lane, record, &mut draws);
                }
            }
            law.emit((isa, letters), &mut group, start, count, &mut self.output);
        }
    }
}

impl CapRows<'_> {
    /// Randomizes records, sixteen to each of `keys`: `output` has room for just the reports of `input`.
    pub(crate) fn chunk(&self, keys: &[Keys], input: Input<'_>, output: Output<'_>) {
        let values = self.law.columns.len();
        let records = input.len() / values;
        // Whole groups; the records behind the last one are zeros, and are not reported.
        let mut codes = vec![0; records.next_multiple_of(LANES) * values];
        match (input, self.grid) {
            (Input::F64(numbers), Some(grid)) => self.place(keys, grid, numbers, &mut codes),
            _ => load_rows(self.isa, input, u32::MAX, &mut codes[..input.len()]),
        }
        let codes = &codes[..];
        compiled(self.isa, RowsChunk { rows: self, keys, records, codes, output });
    }

    /// The codes of numbers, record by record.
    fn place(&self, keys: &[Keys], grid: &Grid, numbers: &[f64], codes: &mut [u32]) {
        let (isa, values) = (self.isa, self.law.columns.len());
        let dithered = grid.rounding() == GridRounding::Dither;
        let mut words = vec![[0; LANES]; if dithered { values.div_ceil(4) } else { 0 }];
        let mut dither = vec![0; 4 * words.len()];
        let groups = numbers.chunks(LANES * values).zip(codes.chunks_mut(LANES * values));
        for (keys, (numbers, codes)) in keys.iter().zip(groups) {
            first_words(isa, keys, nonce(Purpose::Dither, 0), &mut words);
            let records = numbers.chunks_exact(values).zip(codes.chunks_exact_mut(values));
            for (lane, (values, codes)) in records.enumerate() {
                for (bytes, word) in dither.as_chunks_mut::<4>().0.iter_mut().zip(&words) {
                    *bytes = word[lane].to_le_bytes();
                }
                // So far behind the refinement of the draws that they never meet.
                let mut refine = Refine::of_lane(isa, keys, lane, nonce(Purpose::Refine, 0), 1 << 48);
                let (dither, refine) = (&dither[..], &mut refine);
                compiled(isa, PlaceOnGrid { isa, grid, values, dither, codes, refine });
            }
        }
    }

    /// Draws the first records of a group one by one, but for their strings.
    #[cold]
    #[inline(never)]
    fn anew(&self, keys: &Keys, count: usize, codes: &[u32], group: &mut Group) {
        let CapRows { isa, law, grid, letters } = *self;
        let values = law.columns.len();
        let mut alone = Group::new(law);
        for lane in 0..count {
            let key = &keys.key(lane);
            let sampler = CapSampler { isa, key, law, grid, letters };
            let mut own = vec![0; LANES * values];
            own[..values].copy_from_slice(&codes[lane * values..(lane + 1) * values]);
            let mut stream = Keystream::new(&sampler, 0, law.rows());
            law.draw(&mut alone, &own, &mut stream, &mut Refine::new(isa, key, nonce(Purpose::Refine, 0)));
            group.reports.iter_mut().zip(&alone.reports).for_each(|(to, from)| to[lane] = from[0]);
        }
    }
}
