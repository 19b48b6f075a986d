//! Samples a categorical law with keyed randomness: every sample has a lane of the keystream of its own.
//!
//! The laws are those of the other path, by their plain functions and the same integers; only where the bits come from is
//! different. So a report does not depend on which samples are drawn beside it.

use super::design::{Blocks, DesignLaw, ProgressionLaw};
use super::emit::{Letters, emit};
use super::law::BLOCK;
use super::matrix::{Entry, MatrixLaw};
use super::rows::load_on;
use super::shift::ShiftLaw;
use super::window::{NarrowWindow, WideWindow};
use crate::codec::{Grid, canonical};
use crate::io::{Input, Output};
use crate::isa::{BATCHES, Isa};
use crate::random::{
    Keys, Lanes, Purpose, RecordKeys, Refine, Words, blocks_at, counter, first_words, nonce,
};

/// A report from the words of a sample.
pub(crate) trait Draw: Sync {
    /// The report of a row; a mixture has two laws, and a row of each. `words` are four for each law.
    fn report(&self, rows: [u32; 2], words: &[u32; 8], refine: &mut Refine) -> u32;
}

impl Draw for NarrowWindow<'_> {
    #[inline(always)]
    fn report(&self, rows: [u32; 2], words: &[u32; 8], refine: &mut Refine) -> u32 {
        let (row, chance, position) = (rows[0], words[0] as u16, (words[0] >> 16) as u16);
        match self.order {
            None => self.draw(row as u16, chance, position, refine).into(),
            Some(order) => {
                let rank = self.draw(0, chance, position, refine);
                order[row as usize * self.cells as usize + usize::from(rank)].into()
            }
        }
    }
}

impl Draw for WideWindow {
    #[inline(always)]
    fn report(&self, rows: [u32; 2], words: &[u32; 8], refine: &mut Refine) -> u32 {
        let (mut keystream, mut report) = ([0; 16], [0]);
        for (bytes, word) in keystream.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        self.oracle(&keystream, &rows[..1], &mut report, refine);
        report[0]
    }
}

impl<E: Entry> Draw for MatrixLaw<E> {
    #[inline(always)]
    fn report(&self, rows: [u32; 2], words: &[u32; 8], refine: &mut Refine) -> u32 {
        self.draw(rows[0] as u16, E::narrow(words[0]), refine).into()
    }
}

impl<E: Entry> Draw for ShiftLaw<'_, E> {
    #[inline(always)]
    fn report(&self, rows: [u32; 2], words: &[u32; 8], refine: &mut Refine) -> u32 {
        let noise = self.noise.report([0; 2], words, refine);
        self.shifted(rows[0] as u16, noise as u16).into()
    }
}

/// The report of a window where a matrix answers 0, and otherwise the matrix's answer behind the window's cells.
pub(crate) struct MixtureLaw<'a, E> {
    pub(crate) window: NarrowWindow<'a>,
    pub(crate) matrix: &'a MatrixLaw<E>,
}

impl<E: Entry> Draw for MixtureLaw<'_, E> {
    #[inline(always)]
    fn report(&self, rows: [u32; 2], words: &[u32; 8], refine: &mut Refine) -> u32 {
        let cell = self.window.report(rows, words, refine);
        let [.., a, b, c, d] = *words;
        let answer = self.matrix.report([rows[1], 0], &[a, b, c, d, 0, 0, 0, 0], refine);
        // Both are drawn and one is selected by a mask, as without a key.
        let taken = 0u32.wrapping_sub(u32::from(answer != 0));
        cell ^ (cell ^ (self.window.cells - 1).wrapping_add(answer)) & taken
    }
}

/// Everything that sampling with keyed randomness takes, but the law, the input and the output.
pub(crate) struct KeyedSampler<'a> {
    pub(crate) isa: Isa,
    pub(crate) records: RecordKeys<'a>,
    /// The number of the first column, and how many columns a record has.
    pub(crate) column: u32,
    pub(crate) columns: usize,
    /// How numbers become rows, for each law; without the first the input is rows.
    pub(crate) grids: [Option<&'a Grid>; 2],
    /// How many rows there are.
    pub(crate) rows: u32,
    /// The bits of the value that the random bits depend on: all of them. The tests take some away.
    pub(crate) heard: u64,
    pub(crate) letters: Letters<'a>,
    /// Bits of a packed report.
    pub(crate) bits: u32,
}

impl KeyedSampler<'_> {
    /// Randomizes the samples from `first` on, counted record by record: `input` is theirs, `output` has room for just them.
    pub(crate) fn samples<D: Draw>(&self, law: &D, first: usize, input: Input<'_>, output: Output<'_>) {
        if BATCHES {
            self.samples_of(law, first, input, output);
        } else {
            self.samples_of::<dyn Draw + '_>(law, first, input, output);
        }
    }

    /// The same, compiled for each law or once.
    fn samples_of<D: Draw + ?Sized>(&self, law: &D, first: usize, input: Input<'_>, mut output: Output<'_>) {
        let placers = self.grids.map(|grid| grid.map(Grid::placer));
        let mut lanes = Lanes::new();
        let mut words: Words = [[0; Lanes::COUNT]; 16];
        let (mut record, mut column) = (first / self.columns, first % self.columns);
        let most = BLOCK.min(input.len()).div_ceil(self.columns) + 1;
        let mut keys = vec![Keys::none(); most.div_ceil(Lanes::COUNT)];
        let mut own: [usize; Lanes::COUNT] = [0; Lanes::COUNT];
        let mut columns = [self.column; Lanes::COUNT];
        let (mut counters, mut nonces) = ([0; Lanes::COUNT], [0; Lanes::COUNT]);
        let (mut values, mut reports) = ([0; BLOCK], [0u32; BLOCK]);
        for start in (0..input.len()).step_by(BLOCK) {
            let count = BLOCK.min(input.len() - start);
            let (values, reports) = (&mut values[..count], &mut reports[..count]);
            canonical(input.part(start..start + count), values);
            let earliest = record;
            let records = (column + count).div_ceil(self.columns);
            self.records.keys(self.isa, earliest, records, &mut keys);
            let passes = values.chunks(Lanes::COUNT).zip(reports.chunks_mut(Lanes::COUNT));
            for (values, reports) in passes {
                if self.columns == 1 {
                    // Sixteen samples are sixteen records: a block is so many of them.
                    let at = record - earliest;
                    own = std::array::from_fn(|lane| at + lane);
                    lanes.set_keys(&keys[at / Lanes::COUNT]);
                    record += values.len();
                } else {
                    for lane in 0..values.len() {
                        let at = record - earliest;
                        (own[lane], columns[lane]) = (at, self.column + column as u32);
                        lanes.set_key(lane, &keys[at / Lanes::COUNT], at % Lanes::COUNT);
                        column += 1;
                        if column == self.columns {
                            (record, column) = (record + 1, 0);
                        }
                    }
                }
                for (nonce, &value) in nonces.iter_mut().zip(values) {
                    *nonce = value & self.heard;
                }
                for (position, &column) in counters.iter_mut().zip(&columns) {
                    // Checked to stay inside 32 bits.
                    *position = counter(Purpose::Main, column);
                }
                lanes.set_places(&counters, &nonces);
                lanes.blocks(self.isa, &mut words);
                for (lane, (&value, report)) in values.iter().zip(reports).enumerate() {
                    // A group of the keystream is sixteen blocks.
                    let group = counter(Purpose::Refine, columns[lane]) / Lanes::COUNT as u64;
                    let (keys, theirs) = (&keys[own[lane] / Lanes::COUNT], own[lane] % Lanes::COUNT);
                    let mut refine = Refine::of_lane(self.isa, keys, theirs, nonces[lane], group);
                    let row = |i: usize| match &placers[i] {
                        Some(placer) => placer.place(f64::from_bits(value), words[8 + i][lane]),
                        // It was checked, but somebody else may have changed it since.
                        None => value.min(u64::from(self.rows - 1)) as u32,
                    };
                    let words: [u32; 8] = std::array::from_fn(|w| words[w][lane]);
                    *report = law.report([row(0), row(1)], &words, &mut refine);
                }
            }
            let output = output.reports(start..start + count, self.bits as usize);
            emit(self.isa, &*reports, self.letters, self.bits, output);
        }
    }
}

/// A report from the words of a record that has a key of its own: the first that its key's stream gives.
pub(crate) trait DrawFirst: Sync {
    /// Writes the words of sixteen records.
    fn words(&self, isa: Isa, keys: &Keys, words: &mut Words);

    /// The report of a row; nothing where it is to be drawn by way of a chunk of its own.
    fn report(&self, row: u32, words: [u32; 4], refine: &mut Refine) -> Option<u32>;
}

/// A chunk's chances come first, and then its positions: the words of a group are block by block, so the first sample's are
/// the first two words of one block.
fn narrow_words(words: [u32; 4]) -> [u32; 8] {
    [words[0] & 0xffff | words[1] << 16, 0, 0, 0, 0, 0, 0, 0]
}

impl<B: Blocks> DrawFirst for DesignLaw<NarrowWindow<'_>, B> {
    fn words(&self, isa: Isa, keys: &Keys, words: &mut Words) {
        blocks_at(isa, keys, 0, nonce(Purpose::Main, 0), words);
    }

    #[inline(always)]
    fn report(&self, row: u32, words: [u32; 4], refine: &mut Refine) -> Option<u32> {
        // The window of row 0 begins at cell 0, so its reports are ranks.
        Some(self.blocks.place(self.window.report([0; 2], &narrow_words(words), refine), row))
    }
}

impl<B: Blocks> DrawFirst for DesignLaw<WideWindow, B> {
    /// Sixteen bytes side by side are the first words of four blocks.
    fn words(&self, isa: Isa, keys: &Keys, words: &mut Words) {
        first_words(isa, keys, nonce(Purpose::Main, 0), &mut words[..4]);
    }

    #[inline(always)]
    fn report(&self, row: u32, [a, b, c, d]: [u32; 4], refine: &mut Refine) -> Option<u32> {
        Some(self.blocks.place(self.window.report([0; 2], &[a, b, c, d, 0, 0, 0, 0], refine), row))
    }
}

impl DrawFirst for ProgressionLaw<'_> {
    fn words(&self, isa: Isa, keys: &Keys, words: &mut Words) {
        blocks_at(isa, keys, 0, nonce(Purpose::Main, 0), words);
    }

    #[inline(always)]
    fn report(&self, row: u32, words: [u32; 4], refine: &mut Refine) -> Option<u32> {
        // In a chunk, a step that is drawn anew comes behind the ranks of a whole group.
        let step = self.step(words[2])?;
        Some(self.place(self.window.report([0; 2], &narrow_words(words), refine), row, step))
    }
}

/// Samples records that have a key each, sixteen side by side.
pub(crate) struct FirstReports<'a> {
    pub(crate) isa: Isa,
    /// Keys of sixteen records each.
    pub(crate) keys: &'a [Keys],
    /// How many rows there are.
    pub(crate) rows: u32,
    /// Bits of a packed report.
    pub(crate) bits: u32,
}

impl FirstReports<'_> {
    /// Writes a report for each input to an output of just these. `anew` draws that of a position by way of a chunk.
    pub(crate) fn write<D: DrawFirst>(
        &self,
        law: &D,
        input: Input<'_>,
        anew: impl Fn(usize) -> u32,
        output: Output<'_>,
    ) {
        if BATCHES {
            self.write_of(law, input, anew, output);
        } else {
            self.write_of::<dyn DrawFirst + '_>(law, input, &anew as &dyn Fn(usize) -> u32, output);
        }
    }

    /// The same, compiled for each law or once.
    fn write_of<D: DrawFirst + ?Sized>(
        &self,
        law: &D,
        input: Input<'_>,
        anew: impl Fn(usize) -> u32,
        output: Output<'_>,
    ) {
        let FirstReports { isa, keys, rows, bits } = *self;
        let (mut inputs, mut reports) = (vec![0; input.len()], vec![0; input.len()]);
        load_on(isa, input, rows, &mut inputs);
        let mut words: Words = [[0; Lanes::COUNT]; 16];
        let passes = inputs.chunks(Lanes::COUNT).zip(reports.chunks_mut(Lanes::COUNT));
        for (number, (keys, (inputs, reports))) in keys.iter().zip(passes).enumerate() {
            law.words(isa, keys, &mut words);
            for (lane, (&row, report)) in inputs.iter().zip(reports).enumerate() {
                let mut refine = Refine::of_lane(isa, keys, lane, nonce(Purpose::Refine, 0), 0);
                let of_lane = std::array::from_fn(|w| words[w][lane]);
                *report = law
                    .report(row, of_lane, &mut refine)
                    .unwrap_or_else(|| anew(Lanes::COUNT * number + lane));
            }
        }
        emit(isa, &reports, Letters { double: None, single: &[] }, bits, output);
    }
}
