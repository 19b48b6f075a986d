//! Samples caps: sixteen records side by side, a lane each.
//!
//! A group of sixteen records takes rows of sixteen words of 32 bits: one that says which reports are near; for each window one
//! of near cells and one of any cells; for each subset one of hits and, where it is of one element, one of the other elements.
//! The elements of larger subsets have a stream of their own.
//!
//! Whatever is drawn for a near report is drawn for any other, too, and both take as long: the choice is a mask, or which of
//! a few thresholds a draw is compared with. What a draw leaves open (its 32 bits are those of the threshold; a cell would
//! come up once too often) comes from the refinement stream, as often for any input, whether the report is near or not. No
//! branch and no address depends on the input, and none on the choice but for a table that is read once in 2^32 draws.

use super::categorical::load_rows;
use super::subset::{DrawnWords, SubsetDraws, insert};
use crate::codec::{Coordinate, Grid, GridRounding, Rows, squeeze_rows};
use crate::io::{Input, Output};
use crate::isa::{BATCHES, Isa, compiled, vectorised};
use crate::random::{GROUP, Key, Purpose, Refine, fill, nonce};
use crate::vector::{Kernel, Vector};

mod keyed;
mod share;

pub(crate) use keyed::CapRows;
pub(crate) use share::Share;

/// Records side by side.
const LANES: usize = 16;

/// A word for each lane.
type Lane = [u32; LANES];

/// Bytes of keystream that are computed at once: a whole number of rows.
const ROOM: usize = 4 * GROUP;

/// A uniform integer below a bound, from 32 bits (Lemire 2019).
#[derive(Clone, Copy)]
struct Below {
    bound: u32,
    /// 2^32 modulo the bound: so many lower halves of the product would come up once too often.
    spare: u32,
}

impl Below {
    fn new(bound: u32) -> Below {
        Below { bound, spare: bound.wrapping_neg() % bound }
    }

    #[inline(always)]
    fn draw(self, draws: &Lane, refine: &mut Refine<'_>) -> Lane {
        let (mut uniform, mut open) = ([0; LANES], 0);
        for (uniform, draw) in uniform.iter_mut().zip(draws) {
            let product = u64::from(*draw) * u64::from(self.bound);
            *uniform = (product >> 32) as u32;
            open |= u32::from((product as u32) < self.spare);
        }
        if open != 0 {
            self.anew(draws, &mut uniform, refine);
        }
        uniform
    }

    #[cold]
    #[inline(never)]
    fn anew(self, draws: &Lane, uniform: &mut Lane, refine: &mut Refine<'_>) {
        for (uniform, draw) in uniform.iter_mut().zip(draws) {
            if draw.wrapping_mul(self.bound) < self.spare {
                *uniform = refine.below(self.bound.into()) as u32;
            }
        }
    }
}

/// How a column of a record is drawn.
#[derive(Clone, Copy)]
enum Kind {
    /// One of the cells from the code on, or any cell.
    Window { near: Below, all: Below },
    /// The element, or another one.
    One { others: Below },
    /// So many elements.
    Several { size: u32 },
}

/// A column of a record.
pub(crate) struct Column {
    kind: Kind,
    /// Inputs.
    pub(crate) rows: u32,
    /// Code words of a report.
    pub(crate) codes: usize,
    /// Bits of a report.
    pub(crate) bits: u32,
}

impl Column {
    /// A window of cells within `reach` of one of `points` codes.
    pub(crate) fn window(points: u32, reach: u32) -> Column {
        let cells = points + 2 * reach;
        let kind = Kind::Window { near: Below::new(2 * reach + 1), all: Below::new(cells) };
        Column { kind, rows: points, codes: 1, bits: bits_below(cells) }
    }

    /// A subset of `size` of `elements` elements.
    pub(crate) fn subset(elements: u32, size: u32) -> Column {
        if size == 1 {
            let kind = Kind::One { others: Below::new(elements - 1) };
            return Column { kind, rows: elements, codes: 1, bits: bits_below(elements) };
        }
        let kind = Kind::Several { size };
        Column { kind, rows: elements, codes: elements as usize, bits: elements }
    }

    /// Bytes of the group's strings that a record fills.
    fn string(&self) -> usize {
        if matches!(self.kind, Kind::Several { .. }) { self.codes } else { 0 }
    }
}

/// Bits of a code below a bound of 2 or more.
fn bits_below(bound: u32) -> u32 {
    u32::BITS - (bound - 1).leading_zeros()
}

/// The law of a cap, as it is sampled.
pub(crate) struct CapLaw {
    /// The chance of a report from about the input.
    pub(crate) own: Share,
    /// Windows, then subsets.
    pub(crate) columns: Vec<Column>,
    /// The least hits of a near report.
    pub(crate) hits: u32,
    /// The chance of a hit of subset `j` where at least `h` are needed from it on, at `[j][h]`.
    pub(crate) shares: Vec<Vec<Share>>,
}

/// Everything that sampling one chunk takes, but its number, its input and its output.
pub(crate) struct CapSampler<'a> {
    pub(crate) isa: Isa,
    pub(crate) key: &'a Key,
    pub(crate) law: &'a CapLaw,
    /// How numbers become codes.
    pub(crate) grid: Option<&'a Grid>,
    /// The decoded cells.
    pub(crate) letters: Option<&'a [f64]>,
}

/// A chunk that is sampled: what that calls is inlined, and with it compiled for each instruction set.
struct CapChunk<'a, 'b> {
    sampler: &'a CapSampler<'b>,
    chunk: u64,
    records: usize,
    codes: Vec<u32>,
    output: Output<'a>,
}

impl Kernel for CapChunk<'_, '_> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(self, _: V) {
        self.sampler.groups(self.chunk, self.records, &self.codes, self.output);
    }
}

/// The reports of a group.
struct Group {
    /// A code for each column and lane; hits, all ones, where a subset is of several elements.
    reports: Vec<Lane>,
    /// The bytes of such subsets, a 0 or 1 for each element, record by record.
    strings: Vec<u8>,
    /// How many of them a record has.
    room: usize,
    /// Draws of one subset, a byte in front and one behind.
    others: Vec<u8>,
    /// Bits that are packed.
    bits: Vec<u8>,
}

impl Group {
    /// Room for the reports of a law.
    fn new(law: &CapLaw) -> Group {
        let strings = || law.columns.iter().map(Column::string);
        let (room, most) = (strings().sum(), strings().max().unwrap_or(0));
        let reports = vec![[0; LANES]; law.columns.len()];
        Group { reports, strings: vec![0; room * LANES], room, others: vec![0; most + 1], bits: Vec::new() }
    }
}

/// Rows of a keystream, a word for each lane.
trait Rows16 {
    fn next(&mut self) -> Lane;
}

impl CapSampler<'_> {
    /// Randomizes chunk `chunk` of the key's stream: `output` has room for just the reports of `input`.
    pub(crate) fn chunk(&self, chunk: u64, input: Input<'_>, output: Output<'_>) {
        let values = self.law.columns.len();
        let records = input.len() / values;
        // Whole groups; the records behind the last one are zeros, and are not reported.
        let mut codes = vec![0; records.next_multiple_of(LANES) * values];
        let own = &mut codes[..input.len()];
        match (input, self.grid) {
            (Input::F32(values), Some(grid)) => self.place(chunk, grid, values, own),
            (Input::F64(values), Some(grid)) => self.place(chunk, grid, values, own),
            _ => load_rows(self.isa, input, u32::MAX, own),
        }
        compiled(self.isa, CapChunk { sampler: self, chunk, records, codes, output });
    }

    /// The codes of numbers.
    fn place<F: Coordinate>(&self, chunk: u64, grid: &Grid, values: &[F], codes: &mut [u32]) {
        let dithered = grid.rounding() == GridRounding::Dither;
        let mut dither = vec![0; if dithered { values.len().next_multiple_of(GROUP) } else { 0 }];
        fill(self.isa, self.key, nonce(Purpose::Dither, chunk), 0, &mut dither);
        // So far behind the refinement of the draws that they never meet.
        let mut refine = Refine::at(self.isa, self.key, nonce(Purpose::Refine, chunk), 1 << 48);
        compiled(
            self.isa,
            PlaceOnGrid { isa: self.isa, grid, values, dither: &dither, codes, refine: &mut refine },
        );
    }

    #[inline(always)]
    fn groups(&self, chunk: u64, records: usize, codes: &[u32], mut output: Output<'_>) {
        let values = self.law.columns.len();
        let mut group = Group::new(self.law);
        let mut stream = Keystream::new(self, chunk, records.div_ceil(LANES) * self.law.rows());
        let mut refine = Refine::new(self.isa, self.key, nonce(Purpose::Refine, chunk));
        let mut draws = SubsetDraws::new(self.isa, self.key, chunk, [Purpose::Own, Purpose::OwnRefine]);
        for (start, codes) in (0..records).step_by(LANES).zip(codes.chunks_exact(LANES * values)) {
            let count = LANES.min(records - start);
            self.law.draw(&mut group, codes, &mut stream, &mut refine);
            if group.room > 0 {
                for (lane, record) in codes.chunks_exact(values).take(count).enumerate() {
                    self.law.string(self.isa, &mut group, lane, record, &mut draws);
                }
            }
            self.law.emit((self.isa, self.letters), &mut group, start, count, &mut output);
        }
    }
}

impl CapLaw {
    /// Rows of keystream that a group takes.
    fn rows(&self) -> usize {
        1 + self.columns.iter().map(|column| 2 - usize::from(column.string() > 0)).sum::<usize>()
    }

    /// Draws a group, but for its strings.
    #[inline(always)]
    fn draw(&self, group: &mut Group, codes: &[u32], stream: &mut impl Rows16, refine: &mut Refine<'_>) {
        let (values, windows) = (self.columns.len(), self.columns.len() - self.shares.len());
        let near = self.near(&stream.next(), refine);
        let mut needed = near.map(|near| near & self.hits);
        for (at, (column, report)) in self.columns.iter().zip(&mut group.reports).enumerate() {
            let first = stream.next();
            let input = || across(codes, values, at, column.rows);
            *report = match column.kind {
                Kind::Window { near: about, all } => {
                    let about = about.draw(&first, refine);
                    let any = all.draw(&stream.next(), refine);
                    window(&near, &input(), &about, &any)
                }
                Kind::One { others } => {
                    let hit = self.hit(at - windows, &first, &mut needed, refine);
                    let other = others.draw(&stream.next(), refine);
                    one(&hit, &input(), &other)
                }
                Kind::Several { .. } => self.hit(at - windows, &first, &mut needed, refine),
            };
        }
    }

    /// Draws the subsets of several elements of one record of a group.
    #[inline(never)]
    fn string<W: DrawnWords>(
        &self,
        isa: Isa,
        group: &mut Group,
        lane: usize,
        record: &[u32],
        draws: &mut SubsetDraws<'_, W>,
    ) {
        let Group { reports, strings, room, others, .. } = group;
        let mut string = &mut strings[lane * *room..(lane + 1) * *room];
        for ((column, &own), reports) in self.columns.iter().zip(record).zip(reports) {
            let Kind::Several { size } = column.kind else { continue };
            let (elements, own, is_in) = (column.codes, own.min(column.rows - 1), reports[lane] != 0);
            let (bytes, rest) = string.split_at_mut(elements);
            draws.others(column.rows - 1, size, is_in, &mut others[1..elements]);
            // A byte in front and one behind.
            let others = &others[..=elements];
            vectorised(isa, || insert(others, own, is_in, bytes));
            string = rest;
        }
    }

    /// All ones in the lanes whose report is from about the input.
    #[inline(always)]
    fn near(&self, draws: &Lane, refine: &mut Refine<'_>) -> Lane {
        let own = &self.own;
        let (mut near, mut open) = ([0; LANES], 0);
        for (near, &draw) in near.iter_mut().zip(draws) {
            *near = ones(draw < own.top);
            open |= u32::from(draw == own.top);
        }
        if open != 0 {
            for (near, _) in near.iter_mut().zip(draws).filter(|(_, draw)| **draw == own.top) {
                *near = ones(own.settle(refine));
            }
        }
        near
    }

    /// All ones in the lanes in which subset `j` is a hit; as many fewer are `needed` from the next one on.
    #[inline(always)]
    fn hit(&self, j: usize, draws: &Lane, needed: &mut Lane, refine: &mut Refine<'_>) -> Lane {
        let (shares, behind) = (&self.shares[j], self.shares.len() - j);
        let mut tops = [shares[0].top; LANES];
        // Those that may be needed here.
        let least = (self.hits as usize).saturating_sub(j).max(1);
        for (h, share) in shares.iter().enumerate().take(behind + 1).skip(least) {
            for (top, needed) in tops.iter_mut().zip(needed.iter()) {
                *top ^= (*top ^ share.top) & ones(*needed == h as u32);
            }
        }
        let (mut hit, mut open) = ([0; LANES], 0);
        for ((hit, top), draw) in hit.iter_mut().zip(&tops).zip(draws) {
            *hit = ones(draw < top);
            open |= u32::from(draw == top);
        }
        if open != 0 {
            for lane in (0..LANES).filter(|&lane| draws[lane] == tops[lane]) {
                hit[lane] = ones(shares[needed[lane] as usize].settle(refine));
            }
        }
        for (needed, hit) in needed.iter_mut().zip(&hit) {
            *needed = needed.saturating_sub(hit & 1);
        }
        hit
    }

    /// Writes the reports of `count` records, the first of them the `start`-th of the chunk; letters are the decoded cells.
    #[inline(always)]
    fn emit(
        &self,
        (isa, letters): (Isa, Option<&[f64]>),
        group: &mut Group,
        start: usize,
        count: usize,
        output: &mut Output<'_>,
    ) {
        let columns = &self.columns;
        let of_letters = || letters.expect("the channel refuses values without letters");
        let length = columns.iter().map(|column| column.bits as usize).sum::<usize>();
        match output {
            Output::U8(out) => codes(columns, group, start, count, out, |code| code as u8),
            Output::U16(out) => codes(columns, group, start, count, out, |code| code as u16),
            Output::U32(out) => codes(columns, group, start, count, out, |code| code),
            Output::F32(out) if BATCHES => {
                let letters = of_letters();
                codes(columns, group, start, count, out, |code| letters[code as usize] as f32);
            }
            Output::F64(out) if BATCHES => {
                let letters = of_letters();
                codes(columns, group, start, count, out, |code| letters[code as usize]);
            }
            Output::Bits(out) => spell(columns, group, &mut out[start * length..(start + count) * length]),
            Output::Packed(out) => {
                // Sixteen reports are whole bytes.
                let out = &mut out[start * length / 8..][..(count * length).div_ceil(8)];
                if group.room == 0 {
                    return pack(columns, group, count, out);
                }
                let mut bits = std::mem::take(&mut group.bits);
                bits.resize(count * length, 0);
                spell(columns, group, &mut bits);
                let whole = Rows { first: 0, stride: 0, rows: 1, length: bits.len() };
                squeeze_rows(isa, &bits, whole, out);
                group.bits = bits;
            }
            Output::F32(_) | Output::F64(_) => unreachable!("letters were refused"),
        }
    }
}

/// Numbers that are placed on a grid.
struct PlaceOnGrid<'a, 'b, F> {
    isa: Isa,
    grid: &'a Grid,
    values: &'a [F],
    dither: &'a [u8],
    codes: &'a mut [u32],
    refine: &'a mut Refine<'b>,
}

impl<F: Coordinate> Kernel for PlaceOnGrid<'_, '_, F> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(self, _: V) {
        self.grid.place(self.isa, self.values, self.dither, self.codes, self.refine);
    }
}

/// All ones for yes.
#[inline(always)]
fn ones(yes: bool) -> u32 {
    0u32.wrapping_sub(u32::from(yes))
}

/// A cell about the input where the mask is ones, and any cell elsewhere.
#[inline(always)]
fn window(near: &Lane, inputs: &Lane, inside: &Lane, any: &Lane) -> Lane {
    std::array::from_fn(|lane| any[lane] ^ (any[lane] ^ (inputs[lane] + inside[lane])) & near[lane])
}

/// The input where it is a hit, and elsewhere the other element of that rank.
#[inline(always)]
fn one(hit: &Lane, inputs: &Lane, others: &Lane) -> Lane {
    std::array::from_fn(|lane| {
        let other = others[lane] + u32::from(others[lane] >= inputs[lane]);
        other ^ (other ^ inputs[lane]) & hit[lane]
    })
}

/// Column `at` of sixteen records of `values` codes each, below `rows`: whatever the input holds, if only to be refused.
#[inline(always)]
fn across(codes: &[u32], values: usize, at: usize, rows: u32) -> Lane {
    let mut column = [0; LANES];
    for (lane, record) in column.iter_mut().zip(codes.chunks_exact(values)) {
        *lane = record[at];
    }
    column.map(|code| code.min(rows - 1))
}

/// Writes code words.
#[inline(always)]
fn codes<T: Copy>(
    columns: &[Column],
    group: &Group,
    start: usize,
    count: usize,
    out: &mut [T],
    code: impl Fn(u32) -> T,
) {
    let words = columns.iter().map(|column| column.codes).sum::<usize>();
    let out = &mut out[start * words..][..count * words];
    let (mut word, mut string) = (0, 0);
    for (column, reports) in columns.iter().zip(&group.reports) {
        let records = out.chunks_exact_mut(words);
        if column.string() == 0 {
            records.zip(reports).for_each(|(record, &report)| record[word] = code(report));
        } else {
            for (record, bytes) in records.zip(group.strings.chunks_exact(group.room)) {
                let own = record[word..][..column.codes].iter_mut().zip(&bytes[string..]);
                own.for_each(|(out, &bit)| *out = code(bit.into()));
            }
        }
        (word, string) = (word + column.codes, string + column.string());
    }
}

/// Writes a byte of 0 or 1 for each bit.
#[inline(never)]
fn spell(columns: &[Column], group: &Group, out: &mut [u8]) {
    let bits = columns.iter().map(|column| column.bits as usize).sum();
    for (lane, mut record) in out.chunks_exact_mut(bits).enumerate() {
        let mut string = &group.strings[lane * group.room..];
        for (column, reports) in columns.iter().zip(&group.reports) {
            let (own, rest) = record.split_at_mut(column.bits as usize);
            record = rest;
            if column.string() > 0 {
                own.copy_from_slice(&string[..own.len()]);
                string = &string[own.len()..];
            } else {
                let bits = own.iter_mut().rev().enumerate();
                bits.for_each(|(position, bit)| *bit = (reports[lane] >> position & 1) as u8);
            }
        }
    }
}

/// Writes the bits of codes, eight to a byte, from a whole byte on.
#[inline(always)]
fn pack(columns: &[Column], group: &Group, count: usize, out: &mut [u8]) {
    // Fewer than 32 bits are held before a code.
    let (mut held, mut have, mut out) = (0u64, 0, out);
    for lane in 0..count {
        for (column, reports) in columns.iter().zip(&group.reports) {
            held = held << column.bits | u64::from(reports[lane]);
            have += column.bits;
            if have >= 32 {
                have -= 32;
                let (now, rest) = out.split_at_mut(4);
                now.copy_from_slice(&((held >> have) as u32).to_be_bytes());
                out = rest;
            }
        }
    }
    let last = held.checked_shl(64 - have).unwrap_or(0).to_be_bytes();
    out.copy_from_slice(&last[..out.len()]);
}

/// The rows of a chunk, one behind the other.
struct Keystream<'a> {
    isa: Isa,
    key: &'a Key,
    nonce: u64,
    group: u64,
    /// Bytes that are still to be computed.
    left: usize,
    buffer: [u8; ROOM],
    used: usize,
}

impl<'a> Keystream<'a> {
    /// The stream of so many rows.
    fn new(sampler: &CapSampler<'a>, chunk: u64, rows: usize) -> Keystream<'a> {
        let CapSampler { isa, key, .. } = *sampler;
        let (left, nonce) = ((rows * size_of::<Lane>()).next_multiple_of(GROUP), nonce(Purpose::Main, chunk));
        Keystream { isa, key, nonce, group: 0, left, buffer: [0; ROOM], used: ROOM }
    }

    #[inline(never)]
    fn refill(&mut self) {
        let now = self.left.min(ROOM);
        fill(self.isa, self.key, self.nonce, self.group, &mut self.buffer[..now]);
        self.group += (now / GROUP) as u64;
        self.left -= now;
        self.used = 0;
    }
}

impl Rows16 for Keystream<'_> {
    #[inline(always)]
    fn next(&mut self) -> Lane {
        if self.used == ROOM {
            self.refill();
        }
        let words = self.buffer[self.used..].as_chunks::<4>().0;
        self.used += size_of::<Lane>();
        std::array::from_fn(|lane| u32::from_le_bytes(words[lane]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least draws of each value, and those that come up once too often: those are drawn anew, and no others.
    #[test]
    fn below_is_exact() {
        let key = Key::from_bytes([5; 32]);
        for bound in [1u32, 2, 3, 9, 25, 1 << 16, 1_000_003, (1 << 31) + 1, u32::MAX] {
            let below = Below::new(bound);
            assert_eq!(u64::from(below.spare), (1u64 << 32) % u64::from(bound));
            let first = |value: u32| ((u64::from(value) << 32).div_ceil(bound.into())) as u32;
            for value in [0, 1, bound / 2, bound - 1].into_iter().filter(|&value| value < bound) {
                for draw in [first(value), first(value).wrapping_add(1)] {
                    let product = u64::from(draw) * u64::from(bound);
                    let mut draws = [u32::MAX / 2; LANES];
                    draws[3] = draw;
                    let mut refine = Refine::after(&[u64::MAX; LANES + 1], &key);
                    let uniform = below.draw(&draws, &mut refine);
                    let rejected = (product as u32) < below.spare;
                    // The highest of all draws is taken, whatever the bound.
                    let expected = if rejected { bound - 1 } else { (product >> 32) as u32 };
                    assert_eq!(uniform[3], expected, "{bound}, {draw}");
                }
            }
        }
    }
}
