//! What is counted of a word, and how records are laid one over the other.

use super::vector::Vector;
use super::vertical::{BYTES, Counters, ROWS};

/// How a flat row of bytes is cut to rows that are counted one over the other.
pub(super) struct Layout {
    /// Bytes of a row: one record, or as many as make whole registers.
    pub(super) stride: usize,
    pub(super) rows: usize,
}

impl Layout {
    /// Records of `record` bytes, `total` in all; the last row may end early.
    pub(super) fn new(record: usize, total: usize) -> Layout {
        // A longer record wastes less than a third of its last register.
        let stride = if record < 3 * BYTES {
            record << (BYTES.trailing_zeros() - record.trailing_zeros().min(BYTES.trailing_zeros()))
        } else {
            record
        };
        Layout { stride, rows: total.div_ceil(stride) }
    }
}

/// What is counted: the words themselves and, of words that have a sign, which of their bits are 1 together.
pub(super) struct Shape {
    /// Bits below the sign.
    magnitude: u32,
    /// The bits of a 64-bit lane that are below the signs, and the signs.
    magnitudes: u64,
    signs: u64,
    /// For a rotation by 1, 2, … of the bits below the sign: those that do not come around.
    rotations: Vec<u64>,
    /// Bits that no word may have.
    pub(super) forbidden: u64,
}

/// `pattern` in every lane of `lane` bits.
fn repeated(pattern: u64, lane: u32) -> u64 {
    (0..64 / lane).fold(0, |all, i| all | pattern << (i * lane))
}

impl Shape {
    /// The bits of bytes, of which some are `forbidden`.
    pub(super) fn plain(forbidden: u8) -> Shape {
        let forbidden = repeated(u64::from(forbidden), 8);
        Shape { magnitude: 0, magnitudes: 0, signs: 0, rotations: Vec::new(), forbidden }
    }

    /// Words of `bits` bits in lanes of `lane`, the highest of them the sign.
    pub(super) fn of_words(bits: u32, lane: u32) -> Shape {
        let magnitude = bits - 1;
        let below = |bits: u32| (1u64 << bits) - 1;
        // Of m bits in a ring, any two are at most m / 2 apart.
        let rotation = |k: u32| repeated(below(magnitude) & !below(k), lane);
        Shape {
            magnitude,
            magnitudes: repeated(below(magnitude), lane),
            signs: repeated(1 << magnitude, lane),
            rotations: (1..=magnitude / 2).map(rotation).collect(),
            forbidden: !repeated(below(bits), lane),
        }
    }

    /// Sets of counters: the words, the magnitudes of those whose sign is 1, and for each rotation the same of the bits that
    /// are 1 together.
    pub(super) fn sets(&self) -> usize {
        if self.signs == 0 { 1 } else { 2 + 2 * self.rotations.len() }
    }
}

impl Shape {
    /// Adds eight registers of rows to the sets of their group.
    ///
    /// # Safety
    /// As [`Counters::add`].
    #[inline(always)]
    pub(super) unsafe fn add<V: Vector>(
        &self,
        sets: &mut [Counters],
        at: usize,
        rows: [V; ROWS],
        before: usize,
    ) {
        // SAFETY: passed on from the caller.
        unsafe {
            sets[0].add(at, rows, before);
            let [_, negative, pairs @ ..] = sets else { return };
            let (mut magnitude, mut sign) = (rows, rows);
            for i in 0..ROWS {
                magnitude[i] = rows[i].and(V::repeat(self.magnitudes));
                // A one of the sign less a one at the bottom is ones in between.
                let top = rows[i].and(V::repeat(self.signs));
                sign[i] = top.minus(top.right(self.magnitude));
            }
            let mut signed = magnitude;
            for i in 0..ROWS {
                signed[i] = magnitude[i].and(sign[i]);
            }
            negative.add(at, signed, before);
            for ((k, &stays), pair) in (1..).zip(&self.rotations).zip(pairs.as_chunks_mut::<2>().0) {
                let mut both = magnitude;
                for i in 0..ROWS {
                    let around = magnitude[i].right(self.magnitude - k);
                    let turned = V::repeat(stays).select(magnitude[i].left(k), around);
                    both[i] = magnitude[i].and(turned);
                    signed[i] = both[i].and(sign[i]);
                }
                pair[0].add(at, both, before);
                pair[1].add(at, signed, before);
            }
        }
    }
}
