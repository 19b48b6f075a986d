//! Samples a window of one cell in two: each report is its row, or flipped. Four flips are one draw.

use crate::alias::Alias;
use crate::isa::ones;
use crate::probability::Probability;
use crate::random::Refine;

/// Flips that one draw gives, and the bits of its column.
pub(super) const FLIPS: usize = 4;
/// Columns of the table.
const COLUMNS: usize = 1 << FLIPS;
/// Draws that are read together, and the samples that they serve.
pub(super) const DRAWS: usize = 16;
pub(super) const LANES: usize = FLIPS * DRAWS;
/// The bits of a draw that are a column, and of an entry that are an alias.
pub(super) const COLUMN: u16 = COLUMNS as u16 - 1;

/// The window of width 1 over two cells, in lanes of 16 bits.
///
/// Four flips are a product law over 16 outcomes, an alias table of integers over `2^256`. The low 4 bits of a draw are a
/// column, the others are compared with the leading bits of its threshold; if they are equal, words of the refinement
/// stream are compared with the rest of it, in the order of the draws. Draw `i` of 16 flips the samples `i`, `16 + i`,
/// `32 + i` and `48 + i` of 64, by its outcome's bits from the lowest.
///
/// No branch and no address depends on a row, nor on a flip, but for the one draw in `2^12` that needs more bits: the whole
/// table is read for each. An observer of single draws' times could learn a little of such a draw's flips.
pub(crate) struct Flip {
    /// For each column the leading 12 bits of its threshold, and below them its alias.
    pub(super) entries: [u16; COLUMNS],
    /// The other bits of the thresholds, as big-endian limbs, left-aligned.
    rest: [[u64; FLIPS]; COLUMNS],
}

impl Flip {
    /// `kept` is the chance of a report that is its row.
    pub(crate) fn new(kept: Probability) -> Flip {
        let table = Alias::of_independent_bits(&[kept.complement(); FLIPS]);
        let (mut entries, mut rest) = ([0; COLUMNS], [[0; FLIPS]; COLUMNS]);
        for column in 0..COLUMNS {
            let (head, alias, limbs) = table.column(column, 16 - FLIPS);
            entries[column] = (head as u16) << FLIPS | alias;
            rest[column].copy_from_slice(&limbs);
        }
        Flip { entries, rest }
    }

    /// Four flips, whatever the draw: the oracle.
    fn draw(&self, draw: u16, refine: &mut Refine) -> u16 {
        let whole = |column: usize| column == usize::from(draw & COLUMN);
        let entry = (0..COLUMNS).fold(0, |result, i| result | if whole(i) { self.entries[i] } else { 0 });
        let open = (draw ^ entry) & !COLUMN == 0;
        // Where the bits above the column differ, the columns below them do not matter.
        let keep = if open { refine.less(&self.rest[usize::from(draw & COLUMN)]) } else { draw < entry };
        (if keep { draw } else { entry }) & COLUMN
    }

    /// Four [flips](Self::draw) by each draw.
    #[cfg(test)]
    pub(super) fn oracle(&self, keystream: &[u8], rows: &[u16], reports: &mut [u16], refine: &mut Refine) {
        for (keystream, rows, reports) in groups(keystream, rows, reports) {
            for i in 0..DRAWS {
                let flips = self.draw(read(keystream, i), refine);
                for flip in 0..FLIPS {
                    let at = DRAWS * flip + i;
                    reports[at] = (rows[at] ^ flips >> flip) & 1;
                }
            }
        }
    }

    /// Writes a report for each row: [`draw`](Self::draw) side by side, and again where that is open.
    #[inline(always)]
    pub(super) fn fast(&self, keystream: &[u8], rows: &[u16], reports: &mut [u16], refine: &mut Refine) {
        for (keystream, rows, reports) in groups(keystream, rows, reports) {
            let (mut flips, mut above) = ([0; DRAWS], [0; DRAWS]);
            for i in 0..DRAWS {
                let draw = read(keystream, i);
                let mut entry = 0;
                for (column, &here) in (0..).zip(&self.entries) {
                    entry |= here & u16::from(draw & COLUMN == column).wrapping_neg();
                }
                // Where the bits above the column differ, the smaller of the two is the outcome.
                flips[i] = draw.min(entry);
                above[i] = (draw ^ entry) & !COLUMN;
            }
            let open = (0..).zip(&above).fold(0, |open, (i, above)| open | u32::from(*above == 0) << i);
            if open != 0 {
                self.settle(open, keystream, &mut flips, refine);
            }
            for (by, (rows, reports)) in
                rows.as_chunks::<DRAWS>().0.iter().zip(reports.as_chunks_mut::<DRAWS>().0).enumerate()
            {
                for ((report, row), flips) in reports.iter_mut().zip(rows).zip(&flips) {
                    *report = (row ^ flips >> by) & 1;
                }
            }
        }
    }

    /// Draws the flips that are marked in `open` again, in order.
    #[inline(never)]
    pub(super) fn settle(
        &self,
        open: u32,
        keystream: &[u8; 2 * DRAWS],
        flips: &mut [u16; DRAWS],
        refine: &mut Refine,
    ) {
        for i in ones(open) {
            flips[i] = self.draw(read(keystream, i), refine);
        }
    }
}

/// Draw `i`.
#[inline(always)]
fn read(keystream: &[u8; 2 * DRAWS], i: usize) -> u16 {
    u16::from_le_bytes([keystream[2 * i], keystream[2 * i + 1]])
}

/// Groups of 64 samples: 32 bytes of keystream, rows, and room for reports.
#[inline(always)]
pub(super) fn groups<'k, 'r, 'w>(
    keystream: &'k [u8],
    rows: &'r [u16],
    reports: &'w mut [u16],
) -> impl Iterator<Item = (&'k [u8; 2 * DRAWS], &'r [u16; LANES], &'w mut [u16; LANES])> {
    let rows = rows.as_chunks::<LANES>().0.iter();
    let reports = reports.as_chunks_mut::<LANES>().0.iter_mut();
    keystream.as_chunks::<{ 2 * DRAWS }>().0.iter().zip(rows).zip(reports).map(|((k, r), w)| (k, r, w))
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;

    use super::*;
    use crate::probability::Rounding;
    use crate::random::Key;

    /// Every head of a draw against the table: the first 16 bits decide as the thresholds say, or leave it to the rest.
    #[test]
    fn the_leading_bits_are_those_of_the_product_law() {
        for kept in [0.5, 0.731, 0.25, 0.999] {
            let kept = Probability::from_f64(kept, Rounding::Down).unwrap();
            let law = Flip::new(kept);
            let mut weight = [0.0; COLUMNS];
            let draws = f64::from(1 << 16);
            for draw in 0..=u16::MAX {
                let entry = law.entries[usize::from(draw & COLUMN)];
                let (own, alias) = (usize::from(draw & COLUMN), usize::from(entry & COLUMN));
                if (draw ^ entry) & !COLUMN == 0 {
                    let rest = law.rest[own][0] as f64 / 2f64.powi(64);
                    weight[own] += rest / draws;
                    weight[alias] += (1.0 - rest) / draws;
                } else {
                    weight[if draw < entry { own } else { alias }] += 1.0 / draws;
                }
            }
            for (outcome, weight) in weight.iter().enumerate() {
                let flips = outcome.count_ones() as i32;
                let expected = kept.complement().to_f64().powi(flips) * kept.to_f64().powi(4 - flips);
                assert!((weight - expected).abs() < 1e-15, "{outcome}: {weight}, {expected}");
            }
        }
    }

    /// All draws, with whatever may follow them: integers over 2^272, which are the product law's without any rounding.
    #[test]
    fn the_draws_are_the_product_law_exactly() {
        for kept in [1u128, (1 << 63) - 5, 0xBB23_4567_89AB_CDEF, (1 << 64) - 1, 1 << 64] {
            let kept = Probability::from_numerator(kept).unwrap();
            let law = Flip::new(kept);
            let one = BigUint::from(1u32) << 256u32;
            let mut weight = vec![BigUint::ZERO; COLUMNS];
            for draw in 0..=u16::MAX {
                let entry = law.entries[usize::from(draw & COLUMN)];
                let (own, alias) = (usize::from(draw & COLUMN), usize::from(entry & COLUMN));
                if (draw ^ entry) & !COLUMN == 0 {
                    let rest = law.rest[own].iter().fold(BigUint::ZERO, |rest, &limb| (rest << 64u32) + limb);
                    weight[alias] += &one - &rest;
                    weight[own] += rest;
                } else {
                    weight[if draw < entry { own } else { alias }] += &one;
                }
            }
            for (outcome, weight) in weight.iter().enumerate() {
                let product = (0..FLIPS).fold(BigUint::from(1u32), |product, flip| {
                    let flipped = outcome >> flip & 1 == 1;
                    product * if flipped { kept.complement() } else { kept }.numerator()
                });
                assert_eq!(*weight, product << 16u32, "{outcome}");
            }
        }
    }

    /// Each column just below its threshold, at it, and just above, in the first bits and in every limb behind them.
    #[test]
    fn a_draw_is_its_column_below_the_threshold_and_the_alias_from_it_on() {
        let key = Key::from_bytes([3; 32]);
        let law = Flip::new(Probability::from_numerator(0xBB23_4567_89AB_CDEF).unwrap());
        let one_more = 1 << FLIPS;
        for column in 0..COLUMNS as u16 {
            let (entry, rest) = (law.entries[usize::from(column)], law.rest[usize::from(column)]);
            let (head, alias) = (entry & !COLUMN | column, entry & COLUMN);
            for (draw, expected) in
                [(head.checked_sub(one_more), column), (head.checked_add(one_more), alias)]
            {
                let Some(draw) = draw else { continue };
                let mut stream = Refine::after(&rest, &key);
                assert_eq!((law.draw(draw, &mut stream), stream.untaken()), (expected, FLIPS));
            }
            let mut stream = Refine::after(&rest, &key);
            assert_eq!((law.draw(head, &mut stream), stream.untaken()), (alias, 0));
            for limb in 0..FLIPS {
                for (other, expected) in
                    [(rest[limb].checked_sub(1), column), (rest[limb].checked_add(1), alias)]
                {
                    let Some(other) = other else { continue };
                    let mut words = rest;
                    words[limb] = other;
                    let mut stream = Refine::after(&words, &key);
                    let result = law.draw(head, &mut stream);
                    assert_eq!((result, stream.untaken()), (expected, FLIPS - 1 - limb), "{column}, {limb}");
                }
            }
        }
    }
}
