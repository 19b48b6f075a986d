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

use num_bigint::BigUint;

use super::categorical::load_rows;
use super::subset::{SubsetDraws, insert};
use crate::codec::{Coordinate, Grid, GridRounding, Rows, squeeze_rows};
use crate::io::{Input, Output};
use crate::isa::{Isa, compiled};
use crate::random::{GROUP, Key, Purpose, Refine, fill, nonce};
use crate::vector::{Kernel, Vector};

/// Records side by side.
const LANES: usize = 16;

/// A word for each lane.
type Lane = [u32; LANES];

/// Bytes of keystream that are computed at once: a whole number of rows.
const ROOM: usize = 4 * GROUP;

/// An exact rational from 0 to 1, that random bits are compared with.
pub(crate) struct Share {
    /// Its first 32 bits, and the 64 behind them; all ones for 1.
    top: u32,
    next: u64,
    /// What is left behind those, over `whole`.
    rest: BigUint,
    whole: BigUint,
    certain: bool,
}

impl Share {
    /// `part / whole`.
    pub(crate) fn new(part: &BigUint, whole: &BigUint) -> Share {
        if part == whole {
            let (rest, whole) = (BigUint::ZERO, whole.clone());
            return Share { top: u32::MAX, next: u64::MAX, rest, whole, certain: true };
        }
        let (top, rest) = limb(part, whole, 32);
        let (next, rest) = limb(&rest, whole, 64);
        Share { top: top as u32, next, rest, whole: whole.clone(), certain: false }
    }

    /// The share of what is never asked.
    pub(crate) fn never() -> Share {
        Share::new(&BigUint::ZERO, &BigUint::from(1u32))
    }

    /// True where a draw, of which the first 32 bits were equal, is below.
    #[inline(never)]
    fn settle(&self, refine: &mut Refine<'_>) -> bool {
        let (mut draw, mut bits, mut rest) = (refine.next(), self.next, self.rest.clone());
        while draw == bits && rest != BigUint::ZERO {
            (bits, rest) = limb(&rest, &self.whole, 64);
            draw = refine.next();
        }
        draw < bits || self.certain
    }
}

/// The next `bits` bits of `part / whole`, below 1, and what is left.
fn limb(part: &BigUint, whole: &BigUint, bits: u32) -> (u64, BigUint) {
    let scaled = part << bits;
    let limb = &scaled / whole;
    let rest = scaled - &limb * whole;
    (limb.try_into().expect("the part is below the whole"), rest)
}

/// A uniform integer below a bound, from 32 bits (Lemire 2019).
#[derive(Clone, Copy)]
pub(crate) struct Below {
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

/// A column of a record.
#[derive(Clone, Copy)]
pub(crate) enum Column {
    /// Codes of `points`, whose report is one of the cells from `code` on that `near` draws, or any of those that `all` draws.
    Window { points: u32, near: Below, all: Below },
    /// One of `elements`, or another of them.
    One { elements: u32, others: Below },
    /// `size` of `elements`.
    Several { elements: u32, size: u32 },
}

impl Column {
    /// A window of cells within `reach` of one of `points` codes.
    pub(crate) fn window(points: u32, reach: u32) -> Column {
        Column::Window { points, near: Below::new(2 * reach + 1), all: Below::new(points + 2 * reach) }
    }

    /// A subset of `size` of `elements` elements.
    pub(crate) fn subset(elements: u32, size: u32) -> Column {
        match size {
            1 => Column::One { elements, others: Below::new(elements - 1) },
            _ => Column::Several { elements, size },
        }
    }

    /// Inputs.
    pub(crate) fn rows(&self) -> u32 {
        match *self {
            Column::Window { points, .. } => points,
            Column::One { elements, .. } | Column::Several { elements, .. } => elements,
        }
    }

    /// Code words of a report.
    pub(crate) fn codes(&self) -> usize {
        match *self {
            Column::Several { elements, .. } => elements as usize,
            _ => 1,
        }
    }

    /// Bits of a report.
    pub(crate) fn bits(&self) -> u32 {
        match *self {
            Column::Window { all, .. } => u32::BITS - (all.bound - 1).leading_zeros(),
            Column::One { elements, .. } => u32::BITS - (elements - 1).leading_zeros(),
            Column::Several { elements, .. } => elements,
        }
    }
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
struct Chunk<'a, 'b> {
    sampler: &'a CapSampler<'b>,
    chunk: u64,
    codes: Vec<u32>,
    output: Output<'a>,
}

impl Kernel for Chunk<'_, '_> {
    type Answer = ();

    #[inline(always)]
    fn run<V: Vector>(self, _: V) {
        self.sampler.groups(self.chunk, &self.codes, self.output);
    }
}

/// The reports of a group.
struct Group {
    /// A code for each column and lane; hits, all ones, where a subset is of several elements.
    reports: Vec<Lane>,
    /// The code words of such subsets: record by record, a byte of 0 or 1 for each element.
    strings: Vec<u8>,
}

impl CapSampler<'_> {
    /// Randomizes chunk `chunk` of the key's stream: `output` has room for just the reports of `input`.
    pub(crate) fn chunk(&self, chunk: u64, input: Input<'_>, output: Output<'_>) {
        let mut codes = vec![0; input.len()];
        match (input, self.grid) {
            (Input::F32(values), Some(grid)) => self.place(chunk, grid, values, &mut codes),
            (Input::F64(values), Some(grid)) => self.place(chunk, grid, values, &mut codes),
            _ => load_rows(self.isa, input, u32::MAX, &mut codes),
        }
        compiled(self.isa, Chunk { sampler: self, chunk, codes, output });
    }

    /// The codes of numbers.
    fn place<F: Coordinate>(&self, chunk: u64, grid: &Grid, values: &[F], codes: &mut [u32]) {
        let dithered = grid.rounding() == GridRounding::Dither;
        let mut dither = vec![0; if dithered { values.len().next_multiple_of(GROUP) } else { 0 }];
        fill(self.isa, self.key, nonce(Purpose::Dither, chunk), 0, &mut dither);
        // So far behind the refinement of the draws that they never meet.
        let mut refine = Refine::at(self.isa, self.key, nonce(Purpose::Refine, chunk), 1 << 48);
        compiled(self.isa, Place { isa: self.isa, grid, values, dither: &dither, codes, refine: &mut refine });
    }

    #[inline(always)]
    fn groups(&self, chunk: u64, codes: &[u32], mut output: Output<'_>) {
        let CapLaw { columns, shares, .. } = self.law;
        let windows = columns.len() - shares.len();
        let several = |column: &Column| matches!(column, Column::Several { .. });
        let room = columns.iter().filter(|column| several(column)).map(Column::codes).sum::<usize>();
        let most = columns.iter().map(Column::codes).max().unwrap_or(1);
        let mut group =
            Group { reports: vec![[0; LANES]; columns.len()], strings: vec![0; room * LANES] };
        let (mut inputs, mut others) = (vec![[0; LANES]; columns.len()], vec![0; most + 1]);
        let rows = 1 + columns.iter().map(|column| 2 - usize::from(several(column))).sum::<usize>();
        let records = codes.len() / columns.len();
        let mut stream = Keystream::new(self, chunk, records.div_ceil(LANES) * rows);
        let mut refine = Refine::new(self.isa, self.key, nonce(Purpose::Refine, chunk));
        let mut draws = SubsetDraws::new(self.isa, self.key, chunk, [Purpose::Own, Purpose::OwnRefine]);
        for start in (0..records).step_by(LANES) {
            let count = LANES.min(records - start);
            for (lane, record) in codes[start * columns.len()..].chunks_exact(columns.len()).take(LANES).enumerate() {
                for ((input, column), code) in inputs.iter_mut().zip(columns).zip(record) {
                    input[lane] = (*code).min(column.rows() - 1);
                }
            }
            let near = self.below(&stream.next(), &mut refine);
            let mut needed = near.map(|near| near & self.law.hits);
            for (at, column) in columns.iter().enumerate() {
                let first = stream.next();
                group.reports[at] = match *column {
                    Column::Window { near: inside, all, .. } => {
                        let inside = inside.draw(&first, &mut refine);
                        let any = all.draw(&stream.next(), &mut refine);
                        window(&near, &inputs[at], &inside, &any)
                    }
                    Column::One { others, .. } => {
                        let hit = self.hit(at - windows, &first, &mut needed, &mut refine);
                        let other = others.draw(&stream.next(), &mut refine);
                        one(&hit, &inputs[at], &other)
                    }
                    Column::Several { .. } => self.hit(at - windows, &first, &mut needed, &mut refine),
                };
            }
            if room > 0 {
                for (lane, string) in group.strings.chunks_exact_mut(room).take(count).enumerate() {
                    let mut string = string;
                    for (at, column) in columns.iter().enumerate() {
                        if let Column::Several { elements, size } = *column {
                            let (own, rest) = string.split_at_mut(elements as usize);
                            let is_in = group.reports[at][lane] != 0;
                            let others = &mut others[..elements as usize + 1];
                            draws.others(elements - 1, size, is_in, &mut others[1..elements as usize]);
                            insert(others, inputs[at][lane], is_in, own);
                            string = rest;
                        }
                    }
                }
            }
            self.emit(&group, start, count, &mut output);
        }
    }

    /// All ones in the lanes whose report is from about the input.
    #[inline(always)]
    fn below(&self, draws: &Lane, refine: &mut Refine<'_>) -> Lane {
        let own = &self.law.own;
        let (mut below, mut open) = ([0; LANES], 0);
        for (below, &draw) in below.iter_mut().zip(draws) {
            *below = ones(draw < own.top);
            open |= u32::from(draw == own.top);
        }
        if open != 0 {
            for (below, _) in below.iter_mut().zip(draws).filter(|(_, draw)| **draw == own.top) {
                *below = ones(own.settle(refine));
            }
        }
        below
    }

    /// All ones in the lanes in which subset `j` is a hit; as many fewer are `needed` from the next one on.
    #[inline(always)]
    fn hit(&self, j: usize, draws: &Lane, needed: &mut Lane, refine: &mut Refine<'_>) -> Lane {
        let (shares, behind) = (&self.law.shares[j], self.law.shares.len() - j);
        let mut tops = [shares[0].top; LANES];
        // Those that may be needed here.
        let least = (self.law.hits as usize).saturating_sub(j).max(1);
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

    /// Writes the reports of `count` records, the first of them the `start`-th of the chunk.
    #[inline(always)]
    fn emit(&self, group: &Group, start: usize, count: usize, output: &mut Output<'_>) {
        let columns = &self.law.columns;
        match output {
            Output::U8(out) => codes(columns, group, start, count, out, |code| code as u8),
            Output::U16(out) => codes(columns, group, start, count, out, |code| code as u16),
            Output::U32(out) => codes(columns, group, start, count, out, |code| code),
            Output::F32(out) => {
                let letters = self.letters.expect("the channel refuses values without letters");
                codes(columns, group, start, count, out, |code| letters[code as usize] as f32);
            }
            Output::F64(out) => {
                let letters = self.letters.expect("the channel refuses values without letters");
                codes(columns, group, start, count, out, |code| letters[code as usize]);
            }
            Output::Bits(out) => {
                let bits = columns.iter().map(Column::bits).sum::<u32>() as usize;
                spell(columns, group, &mut out[start * bits..(start + count) * bits]);
            }
            Output::Packed(out) => {
                let bits = columns.iter().map(Column::bits).sum::<u32>() as usize;
                let mut string = vec![0; count * bits];
                spell(columns, group, &mut string);
                let whole = Rows { first: 0, stride: 0, rows: 1, length: string.len() };
                squeeze_rows(self.isa, &string, whole, &mut out[start * bits / 8..(start * bits + count * bits).div_ceil(8)]);
            }
        }
    }
}

/// Numbers that are placed on a grid.
struct Place<'a, 'b, F> {
    isa: Isa,
    grid: &'a Grid,
    values: &'a [F],
    dither: &'a [u8],
    codes: &'a mut [u32],
    refine: &'a mut Refine<'b>,
}

impl<F: Coordinate> Kernel for Place<'_, '_, F> {
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

/// Writes code words.
#[inline(always)]
fn codes<T: Copy>(columns: &[Column], group: &Group, start: usize, count: usize, out: &mut [T], code: impl Fn(u32) -> T) {
    let words = columns.iter().map(Column::codes).sum::<usize>();
    let room = group.strings.len() / LANES;
    let records = out[start * words..].chunks_exact_mut(words).take(count);
    for (lane, record) in records.enumerate() {
        if room == 0 {
            for (out, reports) in record.iter_mut().zip(&group.reports) {
                *out = code(reports[lane]);
            }
            continue;
        }
        let (mut out, mut string) = (record.iter_mut(), group.strings[lane * room..].iter());
        for (column, reports) in columns.iter().zip(&group.reports) {
            if let Column::Several { elements, .. } = *column {
                let pairs = out.by_ref().zip(string.by_ref());
                pairs.take(elements as usize).for_each(|(out, bit)| *out = code((*bit).into()));
            } else if let Some(out) = out.next() {
                *out = code(reports[lane]);
            }
        }
    }
}

/// Writes a byte of 0 or 1 for each bit.
#[inline(always)]
fn spell(columns: &[Column], group: &Group, out: &mut [u8]) {
    let bits = columns.iter().map(Column::bits).sum::<u32>() as usize;
    let room = group.strings.len() / LANES;
    for (lane, record) in out.chunks_exact_mut(bits).enumerate() {
        let (mut at, mut string) = (0, lane * room);
        for (column, reports) in columns.iter().zip(&group.reports) {
            let own = &mut record[at..at + column.bits() as usize];
            at += own.len();
            if let Column::Several { .. } = column {
                own.copy_from_slice(&group.strings[string..string + own.len()]);
                string += own.len();
            } else {
                let code = reports[lane];
                own.iter_mut().rev().enumerate().for_each(|(position, bit)| *bit = (code >> position & 1) as u8);
            }
        }
    }
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

    #[inline(always)]
    fn next(&mut self) -> Lane {
        if self.used == ROOM {
            self.refill();
        }
        let words = self.buffer[self.used..].as_chunks::<4>().0;
        self.used += size_of::<Lane>();
        std::array::from_fn(|lane| u32::from_le_bytes(words[lane]))
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

/// The position of the first value of records that is no row of its column.
pub(crate) fn first_outside_of(isa: Isa, input: Input<'_>, columns: &[Column]) -> Option<usize> {
    let rows: Vec<u32> = columns.iter().map(Column::rows).collect();
    if rows.iter().all(|&row| row == rows[0]) {
        return super::categorical::first_outside(isa, input, rows[0]);
    }
    super::categorical::first_outside_by(isa, input, &rows)
}
