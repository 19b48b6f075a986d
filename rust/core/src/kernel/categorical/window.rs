//! Samples a window: first whether the report falls inside, then where, uniformly.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128"))]
use crate::isa::ones;
use crate::probability::Probability;
use crate::random::Refine;

/// The chance of falling inside, ready to be compared with random bits.
#[derive(Clone, Copy)]
pub(super) struct Chance {
    /// `T`, where it is below `2^64`; otherwise 0.
    threshold: u64,
    /// True where `T` is `2^64`: then nothing is below 0, and that answer is turned around.
    pub(super) certain: bool,
}

impl Chance {
    fn new(inside: Probability) -> Chance {
        let certain = inside == Probability::ONE;
        Chance { threshold: if certain { 0 } else { inside.numerator() as u64 }, certain }
    }
}

/// Samples that a group of keystream vectors serves: 64 bytes of chances, then 64 bytes of positions.
pub(super) const LANES: usize = 32;

/// A window over at most 65,536 cells, in lanes of 16 bits.
///
/// A sample takes 16 bits for the chance and 16 for the position; 32 samples take 64 bytes of chances, then 64 bytes of
/// positions. If the 16 bits equal those of the threshold, 64 further
/// bits decide; if the position would be biased (Lemire's rejection), it is drawn anew from 64-bit words. Both come from the
/// refinement stream, in the order of the samples.
///
/// No branch and no address depends on a row. Branches do depend on randomness, and a position outside may be drawn anew more
/// often than one inside: an observer of single samples' times could learn a little of which it was.
pub(crate) struct NarrowWindow<'a> {
    pub(super) chance: Chance,
    pub(super) cells: u32,
    /// Cells inside and outside; both are at least 1, so both fit 16 bits.
    pub(super) width: u16,
    pub(super) others: u16,
    /// `2^16` modulo each: lower halves of the product below it are rejected.
    pub(super) reject_inside: u16,
    pub(super) reject_outside: u16,
    /// Row `x` lists the cells from best to worst.
    pub(super) order: Option<&'a [u16]>,
}

impl<'a> NarrowWindow<'a> {
    pub(crate) fn new(
        cells: u32,
        width: u32,
        inside: Probability,
        order: Option<&'a [u16]>,
    ) -> NarrowWindow<'a> {
        debug_assert!(cells <= 1 << 16 && 0 < width && width < cells);
        debug_assert!(order.is_none_or(|order| order.len() == (cells as usize).pow(2)));
        let others = cells - width;
        NarrowWindow {
            chance: Chance::new(inside),
            cells,
            width: width as u16,
            others: others as u16,
            reject_inside: ((1 << 16) % width) as u16,
            reject_outside: ((1 << 16) % others) as u16,
            order,
        }
    }

    /// The leading bits of the threshold.
    pub(super) fn top(&self) -> u16 {
        (self.chance.threshold >> 48) as u16
    }

    /// One report, whatever its draws: the oracle.
    pub(super) fn draw(&self, row: u16, chance: u16, position: u16, refine: &mut Refine) -> u16 {
        let below = if chance == self.top() {
            refine.less(&[self.chance.threshold << 16])
        } else {
            chance < self.top()
        };
        let inside = below ^ self.chance.certain;
        let [width, others, row, position] = [self.width, self.others, row, position].map(u32::from);
        let bound = choose(inside, width, others);
        let reject = choose(inside, self.reject_inside.into(), self.reject_outside.into());
        let product = position * bound;
        let position =
            if product & 0xffff < reject { refine.below(bound.into()) as u32 } else { product >> 16 };
        // The window is moved inside at the edges; the cells outside are counted past it.
        let start = row.saturating_sub(width / 2).min(others);
        (position + choose(inside, start, choose(position >= start, width, 0))) as u16
    }

    /// [`draw`](Self::draw) in 32 lanes, without branches; says whether some lane's draw was not settled.
    #[inline(always)]
    fn lanes(
        &self,
        chances: &[u16; LANES],
        positions: &[u16; LANES],
        rows: &[u16; LANES],
        reports: &mut [u16; LANES],
        unsettled: &mut [u16; LANES],
    ) -> bool {
        // Copies, so that the choices below are between registers and not between addresses.
        let NarrowWindow { chance, width, others, reject_inside, reject_outside, .. } = *self;
        let (top, half) = (self.top(), width / 2);
        let mut any = 0;
        for lane in 0..LANES {
            let inside = (chances[lane] < top) ^ chance.certain;
            let bound = if inside { width } else { others };
            let reject = if inside { reject_inside } else { reject_outside };
            let product = u32::from(positions[lane]) * u32::from(bound);
            let equal = u16::from(chances[lane] == top);
            let rejected = u16::from((product as u16) < reject);
            unsettled[lane] = equal | rejected;
            any |= equal | rejected;
            let position = (product >> 16) as u16;
            let start = rows[lane].saturating_sub(half).min(others);
            let past = if position >= start { width } else { 0 };
            reports[lane] = position.wrapping_add(if inside { start } else { past });
        }
        any != 0
    }

    /// Draws the lanes that are marked in `unsettled` again, in order.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128"))]
    #[inline(never)]
    pub(super) fn settle(
        &self,
        unsettled: u32,
        rows: &[u16; LANES],
        keystream: &[u8; 4 * LANES],
        reports: &mut [u16; LANES],
        refine: &mut Refine,
    ) {
        let draw = |at: usize| u16::from_le_bytes([keystream[2 * at], keystream[2 * at + 1]]);
        for lane in ones(unsettled) {
            reports[lane] = self.draw(rows[lane], draw(lane), draw(LANES + lane), refine);
        }
    }

    /// [`draw`](Self::draw) of each row.
    #[cfg(test)]
    pub(super) fn oracle(&self, keystream: &[u8], rows: &[u16], reports: &mut [u16], refine: &mut Refine) {
        for (keystream, rows, reports) in groups(keystream, rows, reports) {
            let (chances, positions) = halves(keystream);
            for (lane, report) in reports.iter_mut().enumerate() {
                *report = self.draw(rows[lane], chances[lane], positions[lane], refine);
            }
        }
    }

    /// Writes a report for each row: [`draw`](Self::draw) side by side, and again where that does not settle it.
    #[inline(always)]
    pub(super) fn fast(&self, keystream: &[u8], rows: &[u16], reports: &mut [u16], refine: &mut Refine) {
        for (keystream, rows, reports) in groups(keystream, rows, reports) {
            let (chances, positions) = halves(keystream);
            let mut unsettled = [0; LANES];
            if self.lanes(&chances, &positions, rows, reports, &mut unsettled) {
                for four in (0..LANES).step_by(4).filter(|&four| unsettled[four..four + 4] != [0; 4]) {
                    for lane in (four..four + 4).filter(|&lane| unsettled[lane] != 0) {
                        reports[lane] = self.draw(rows[lane], chances[lane], positions[lane], refine);
                    }
                }
            }
        }
    }
}

/// Groups of 32 samples: 128 bytes of keystream, rows, and room for reports.
#[inline(always)]
pub(super) fn groups<'k, 'r, 'w>(
    keystream: &'k [u8],
    rows: &'r [u16],
    reports: &'w mut [u16],
) -> impl Iterator<Item = (&'k [u8; 4 * LANES], &'r [u16; LANES], &'w mut [u16; LANES])> {
    let rows = rows.as_chunks::<LANES>().0.iter();
    let reports = reports.as_chunks_mut::<LANES>().0.iter_mut();
    keystream.as_chunks::<{ 4 * LANES }>().0.iter().zip(rows).zip(reports).map(|((k, r), w)| (k, r, w))
}

/// The chances and the positions of a group.
#[inline(always)]
fn halves(keystream: &[u8; 4 * LANES]) -> ([u16; LANES], [u16; LANES]) {
    let (mut chances, mut positions) = ([0; LANES], [0; LANES]);
    for lane in 0..LANES {
        let at = 2 * lane;
        chances[lane] = u16::from_le_bytes([keystream[at], keystream[at + 1]]);
        positions[lane] = u16::from_le_bytes([keystream[2 * LANES + at], keystream[2 * LANES + at + 1]]);
    }
    (chances, positions)
}

/// A window over up to `2^32 - 1` cells, in 64-bit words: one for the chance, compared whole, and one for the position,
/// drawn anew from the refinement stream where it would be biased.
pub(crate) struct WideWindow {
    chance: Chance,
    pub(super) cells: u32,
    width: u32,
}

impl WideWindow {
    pub(crate) fn new(cells: u32, width: u32, inside: Probability) -> WideWindow {
        debug_assert!(0 < width && width < cells);
        WideWindow { chance: Chance::new(inside), cells, width }
    }

    /// Writes a report for each row; `keystream` holds 16 bytes for each.
    #[inline(always)]
    pub(super) fn oracle(&self, keystream: &[u8], rows: &[u32], reports: &mut [u32], refine: &mut Refine) {
        let others = self.cells - self.width;
        for ((report, row), draws) in reports.iter_mut().zip(rows).zip(keystream.as_chunks::<16>().0) {
            let [chance, position] = [0, 8].map(|at| {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&draws[at..at + 8]);
                u64::from_le_bytes(bytes)
            });
            let inside = (chance < self.chance.threshold) ^ self.chance.certain;
            let bound = u64::from(choose(inside, self.width, others));
            let product = u128::from(position) * u128::from(bound);
            let low = product as u64;
            let position = if low < bound && low < bound.wrapping_neg() % bound {
                refine.below(bound) as u32
            } else {
                (product >> 64) as u32
            };
            let start = row.saturating_sub(self.width / 2).min(others);
            *report = position + choose(inside, start, choose(position >= start, self.width, 0));
        }
    }
}

/// `a` if `condition`, else `b`, without a branch that the processor would have to guess.
#[inline(always)]
fn choose(condition: bool, a: u32, b: u32) -> u32 {
    b ^ (a ^ b) & 0u32.wrapping_sub(u32::from(condition))
}
