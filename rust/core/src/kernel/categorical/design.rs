//! Samples a design: a rank is drawn by a window at the front, and the block of the row says which report has that rank.
//!
//! The rank does not depend on the row, so neither do the addresses that are made from it; the row enters additions, masks
//! and shifts.

use super::law::{BLOCK, Law};
use super::window::{LANES, NarrowWindow, WideWindow};
use crate::io::Input;
use crate::isa::Isa;
use crate::random::Refine;

/// A family of blocks: for each row an order of all reports, the block of the row in front.
pub(crate) trait Blocks: Copy + Sync {
    /// The report of a rank in the order of a row.
    fn place(self, rank: u32, row: u32) -> u32;
}

/// The translates of a difference set modulo the number of cells.
#[derive(Clone, Copy)]
pub(crate) struct Translates<'a> {
    /// All cells, the difference set in front.
    pub(crate) order: &'a [u32],
}

impl Blocks for Translates<'_> {
    #[inline(always)]
    fn place(self, rank: u32, row: u32) -> u32 {
        let cells = self.order.len() as u32;
        let sum = self.order[rank as usize].wrapping_add(row);
        // Below twice the cells: less them, it wraps around where it was below them, and the least of both is the rest.
        sum.min(sum.wrapping_sub(cells))
    }
}

/// Halves of blocks of `2^bits` reports, `2^apart` such blocks: half of a row's own block, by a row of a Hadamard matrix.
#[derive(Clone, Copy)]
pub(crate) struct Halves {
    pub(crate) bits: u32,
    pub(crate) apart: u32,
}

impl Blocks for Halves {
    #[inline(always)]
    fn place(self, rank: u32, row: u32) -> u32 {
        let Halves { bits, apart } = self;
        let own = row & ((1 << apart) - 1);
        let line = (row >> apart) + 1;
        let pivot = 31 - line.leading_zeros();
        // Ranks of a block are numbers of `bits - 1` bits, and whether the parity along the line is odd.
        let (free, odd) = (rank & ((1 << (bits - 1)) - 1), rank >> (bits - 1) & 1);
        let low = (1u32 << pivot) - 1;
        let spread = (free & !low) << 1 | free & low;
        let parity = ((spread & line).count_ones() ^ odd) & 1;
        (own ^ rank >> bits) << bits | spread | parity << pivot
    }
}

/// A window at the front of each row's order.
pub(crate) struct DesignLaw<W, B> {
    /// Draws ranks.
    pub(crate) window: W,
    pub(crate) blocks: B,
    pub(crate) inputs: u32,
}

impl<B: Blocks> Law for DesignLaw<NarrowWindow<'_>, B> {
    type Word = u16;
    const BITS: usize = <NarrowWindow<'_> as Law>::BITS;
    type Keystream = <NarrowWindow<'static> as Law>::Keystream;
    const KEYSTREAM: Self::Keystream = <NarrowWindow<'_> as Law>::KEYSTREAM;

    fn rows(&self) -> u32 {
        self.inputs
    }

    #[inline(always)]
    fn block(&self, isa: Isa, keystream: &[u8], rows: &[u16], reports: &mut [u16], refine: &mut Refine) {
        // The window of row 0 begins at cell 0, so its reports are ranks.
        self.window.block(isa, keystream, &[0; BLOCK][..rows.len()], reports, refine);
        for (report, &row) in reports.iter_mut().zip(rows) {
            *report = self.blocks.place((*report).into(), row.into()) as u16;
        }
    }
}

impl<B: Blocks> Law for DesignLaw<WideWindow, B> {
    type Word = u32;
    const BITS: usize = WideWindow::BITS;
    type Keystream = <WideWindow as Law>::Keystream;
    const KEYSTREAM: Self::Keystream = WideWindow::KEYSTREAM;

    fn rows(&self) -> u32 {
        self.inputs
    }

    #[inline(always)]
    fn block(&self, isa: Isa, keystream: &[u8], rows: &[u32], reports: &mut [u32], refine: &mut Refine) {
        self.window.block(isa, keystream, &[0; BLOCK][..rows.len()], reports, refine);
        for (report, &row) in reports.iter_mut().zip(rows) {
            *report = self.blocks.place(*report, row);
        }
    }
}

/// Arithmetic progressions of a modulus: the block of row x is x, x + a, x + 2a, …, with a step a that is drawn without
/// looking at the row, and reported.
pub(crate) struct ProgressionLaw<'a> {
    /// Draws ranks of as many cells as the modulus.
    pub(super) window: NarrowWindow<'a>,
    modulus: Modulus,
    inputs: u32,
    /// Steps are 1 to this: the progressions of -a are those of a, shifted.
    steps: u32,
    /// The common divisor of each step and the modulus.
    divisors: &'a [u16],
    /// `2^32` modulo the steps: lower halves of the product below it are rejected.
    reject: u32,
}

/// A modulus that numbers are divided by.
#[derive(Clone, Copy)]
struct Modulus {
    modulus: u32,
    /// A little over `2^48` over the modulus.
    inverse: u64,
}

impl Modulus {
    fn new(modulus: u32) -> Modulus {
        Modulus { modulus, inverse: (1 << 48) / u64::from(modulus) + 1 }
    }

    /// `z` over the modulus, for `z` below its square.
    #[inline(always)]
    fn quotient(self, z: u32) -> u32 {
        // The quotient is z/modulus + z(inverse/2^48 - 1/modulus), and what is too much is below 2^32/2^48 < 1/modulus; and
        // z inverse < modulus 2^48 + modulus^2 fits.
        ((u64::from(z) * self.inverse) >> 48) as u32
    }

    /// The cell of a rank: the ranks are the multiples of the step, and where these come back to the row, those beside it.
    /// `divisor` is the common one of step and modulus.
    #[inline(always)]
    fn cell(self, rank: u32, row: u32, step: u32, divisor: u32) -> u32 {
        let circle = self.quotient(rank * divisor);
        let z = row + step * rank + circle;
        z - self.quotient(z) * self.modulus
    }
}

impl<'a> ProgressionLaw<'a> {
    /// Progressions of an odd modulus below `2^16`.
    pub(crate) fn new(
        window: NarrowWindow<'a>,
        modulus: u32,
        inputs: u32,
        divisors: &'a [u16],
    ) -> ProgressionLaw<'a> {
        debug_assert!(modulus % 2 == 1 && modulus < 1 << 16);
        let steps = (modulus - 1) / 2;
        let reject = ((1u64 << 32) % u64::from(steps)) as u32;
        debug_assert_eq!(divisors.len(), steps as usize);
        ProgressionLaw { window, modulus: Modulus::new(modulus), inputs, steps, divisors, reject }
    }

    /// The greatest common divisors of the steps 1, 2, … and a modulus.
    pub(crate) fn divisors(modulus: u32) -> Vec<u16> {
        let divisor = |step: u32| {
            let (mut a, mut b) = (modulus, step);
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a as u16
        };
        (1..=(modulus - 1) / 2).map(divisor).collect()
    }
}

/// Bytes of keystream of a group of samples: the window's, then 32 bits a sample for its step.
const GROUP: usize = 8 * LANES;

impl Law for ProgressionLaw<'_> {
    type Word = u32;
    const BITS: usize = 64;
    type Keystream = [u8; 8 * BLOCK];
    const KEYSTREAM: [u8; 8 * BLOCK] = [0; 8 * BLOCK];

    fn rows(&self) -> u32 {
        self.inputs
    }

    #[inline(always)]
    fn rows_of<'i>(&self, _input: Input<'i>) -> Option<&'i [u32]> {
        None // a row that somebody changed after the check could pass the range of `reduced`
    }

    #[inline(always)]
    fn block(&self, isa: Isa, keystream: &[u8], rows: &[u32], reports: &mut [u32], refine: &mut Refine) {
        let groups = rows.as_chunks::<LANES>().0.iter().zip(reports.as_chunks_mut::<LANES>().0);
        for ((rows, reports), keystream) in groups.zip(keystream.as_chunks::<GROUP>().0) {
            let (of_ranks, of_steps) = keystream.split_at(GROUP / 2);
            let mut ranks = [0; LANES];
            self.window.block(isa, of_ranks, &[0; LANES], &mut ranks, refine);
            let mut steps = [0; LANES];
            let mut rejected = 0;
            for (step, draw) in steps.iter_mut().zip(of_steps.as_chunks::<4>().0) {
                let product = u64::from(u32::from_le_bytes(*draw)) * u64::from(self.steps);
                rejected |= u32::from((product as u32) < self.reject);
                *step = (product >> 32) as u32;
            }
            if rejected != 0 {
                self.draw_anew(of_steps, &mut steps, refine);
            }
            // What goes by address first, and a modulus that no report could overwrite: then lanes go side by side.
            let divisors = steps.map(|step| u32::from(self.divisors[step as usize]));
            let modulus = self.modulus;
            for lane in 0..LANES {
                let cell = modulus.cell(ranks[lane].into(), rows[lane], steps[lane] + 1, divisors[lane]);
                reports[lane] = steps[lane] * modulus.modulus + cell;
            }
        }
    }
}

impl ProgressionLaw<'_> {
    /// The step less 1 of a draw; nothing where that would be biased.
    pub(super) fn step(&self, draw: u32) -> Option<u32> {
        let product = u64::from(draw) * u64::from(self.steps);
        (product as u32 >= self.reject).then_some((product >> 32) as u32)
    }

    /// The report of a rank of a row, at a step less 1.
    pub(super) fn place(&self, rank: u32, row: u32, step: u32) -> u32 {
        let (modulus, divisor) = (self.modulus, self.divisors[step as usize].into());
        step * modulus.modulus + modulus.cell(rank, row, step + 1, divisor)
    }

    /// Draws anew, from the refinement stream and in order, the steps whose first draws would be biased.
    #[inline(never)]
    fn draw_anew(&self, draws: &[u8], steps: &mut [u32; LANES], refine: &mut Refine) {
        for (step, draw) in steps.iter_mut().zip(draws.as_chunks::<4>().0) {
            if u32::from_le_bytes(*draw).wrapping_mul(self.steps) < self.reject {
                *step = refine.below(self.steps.into()) as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probability::Probability;

    #[test]
    fn every_row_of_halves_is_an_order_with_its_half_in_front() {
        for (bits, apart) in [(1, 0), (2, 0), (3, 2), (4, 1)] {
            let (halves, cells) = (Halves { bits, apart }, 1u32 << (bits + apart));
            for row in 0..((1 << bits) - 1) << apart {
                let order: Vec<u32> = (0..cells).map(|rank| halves.place(rank, row)).collect();
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..cells).collect::<Vec<_>>(), "bits {bits}, apart {apart}, row {row}");
                let line = (row >> apart) + 1;
                for &cell in &order[..1 << (bits - 1)] {
                    assert_eq!(cell >> bits, row & ((1 << apart) - 1));
                    assert_eq!((cell & ((1 << bits) - 1) & line).count_ones() % 2, 0);
                }
            }
        }
    }

    fn law(modulus: u32, divisors: &[u16]) -> ProgressionLaw<'_> {
        let window = NarrowWindow::new(modulus, 1, Probability::HALF, None);
        ProgressionLaw::new(window, modulus, modulus, divisors)
    }

    #[test]
    fn quotients_are_right_up_to_the_square() {
        for modulus in [3u32, 5, 15, 127, 1361, 4099, 8191, 65_521, 65_535] {
            let divisors = ProgressionLaw::divisors(modulus);
            let law = law(modulus, &divisors);
            let all =
                (0..modulus).map(|i| i * modulus).chain((0..modulus).map(|i| i * modulus + modulus - 1));
            for z in all.chain((0..modulus * modulus).step_by(997)) {
                assert_eq!(law.modulus.quotient(z), z / modulus, "{z} by {modulus}");
            }
        }
    }

    #[test]
    fn ranks_of_every_step_are_an_order_with_the_progression_in_front() {
        for modulus in [3u32, 7, 9, 15, 21, 35, 45, 105] {
            let divisors = ProgressionLaw::divisors(modulus);
            let law = law(modulus, &divisors);
            let least = (2..=modulus).find(|&d| modulus.is_multiple_of(d)).unwrap();
            for step in 1..=(modulus - 1) / 2 {
                let divisor = divisors[step as usize - 1].into();
                for row in [0, 1, modulus - 1] {
                    let order: Vec<u32> =
                        (0..modulus).map(|rank| law.modulus.cell(rank, row, step, divisor)).collect();
                    let mut sorted = order.clone();
                    sorted.sort_unstable();
                    assert_eq!(sorted, (0..modulus).collect::<Vec<_>>(), "{step} of {modulus}");
                    for rank in 0..least {
                        assert_eq!(order[rank as usize], (row + step * rank) % modulus);
                    }
                }
            }
        }
    }
}
