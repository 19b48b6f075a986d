//! The fields of a part's report, where its record, draw, codec and channel take what the one before gives.

use bitldp_core::DesignFamily;

use crate::codec::Codec;
use crate::draws::PublicDraw;
use crate::law::Law;
use crate::part::{MOST_PLACED, Part, bits_of};

impl Part {
    /// The fields of the report; none where record, draw, codec and channel do not fit each other.
    pub(crate) fn fitting(&self) -> Option<Vec<(usize, u32)>> {
        if self.record.has_gaps() && self.item().is_none() {
            return None;
        }
        if let Some(rotation) = &self.rotation {
            return self.fitting_rotation(rotation);
        }
        if let Some(order) = &self.order {
            return self.fitting_cap(order);
        }
        let (mut fields, mut columns) = (Vec::new(), self.record.columns);
        match self.draw {
            None => {}
            Some(PublicDraw::Coordinates { of, k }) => {
                if of != columns || !self.record.is_real() || self.item().is_some() {
                    return None;
                }
                fields.push((k, bits_of(of as u64).max(1)));
                columns = k;
            }
            Some(draw) => return self.fitting_function(draw),
        }
        if !self.second_fits() {
            return None;
        }
        let codes = self.coded(columns)?;
        let (values, width, bits) = self.law.form();
        let placed = matches!(self.codec, Some(Codec::Placed(_)));
        let uses = match self.law {
            Law::Bits(_) if placed => (values == 1).then_some(codes)?,
            Law::Bits(_) | Law::Cube(_) | Law::Cap(_) | Law::Select(_) => (values == codes).then_some(1)?,
            _ => codes,
        };
        fields.push((width.checked_mul(uses)?, bits));
        Some(fields)
    }

    /// Codes that the codec makes of so many columns; none where these are not the inputs of the channel.
    fn coded(&self, columns: usize) -> Option<usize> {
        let takes = self.law.inputs();
        let (below, real) = (self.record.below(), self.record.is_real());
        let one_of_each =
            matches!(self.law, Law::Unary(_) | Law::Subset(_) | Law::Design(_) | Law::Select(_));
        match &self.codec {
            None if real => {
                let unsigned = matches!(&self.law, Law::Select(law) if !law.is_signed());
                unsigned.then_some(columns)
            }
            None => {
                let plain = !matches!(self.law, Law::Bits(_) | Law::Cube(_) | Law::Cap(_) | Law::Mixture(..));
                (plain && takes.is_some() && takes == below).then_some(columns)
            }
            Some(Codec::OneHot { categories, top }) => {
                let fits =
                    columns == 1 && below == Some(*categories as u64) && takes == Some(u64::from(*top) + 1);
                (fits && matches!(self.law, Law::Shift(_) | Law::Matrix(_) | Law::Window(_)))
                    .then_some(*categories)
            }
            Some(Codec::Item(item)) => {
                let one = matches!(self.law, Law::Window(_) | Law::Design(_));
                (one && item.takes(&self.record) && takes == Some(item.codes())).then_some(1)
            }
            Some(_) if !real => None,
            Some(Codec::Fixed(codec)) => {
                matches!(&self.law, Law::Bits(law) if law.bits() == codec.bits()).then_some(columns)
            }
            Some(Codec::Signs { grid, columns: together }) => {
                let fits = grid.points() == 2 && *together == columns && takes == Some(1 << columns);
                (fits && !matches!(self.law, Law::Cube(_) | Law::Cap(_) | Law::Mixture(..))).then_some(1)
            }
            Some(Codec::Grid(grid)) => {
                (takes == Some(grid.points().into()) && !one_of_each).then_some(columns)
            }
            Some(Codec::Placed(grid)) => {
                let fits = matches!(&self.law, Law::Bits(law) if u64::from(grid.points()) == 1 << law.bits());
                (fits && grid.points() <= MOST_PLACED).then_some(columns)
            }
        }
    }

    /// The fields of a report that begins with a hash function or a step.
    fn fitting_function(&self, draw: PublicDraw) -> Option<Vec<(usize, u32)>> {
        let below = match self.item() {
            Some(item) => Some(item.codes()).filter(|_| item.takes(&self.record)),
            None => self.record.below().filter(|_| self.record.columns == 1 && self.codec.is_none()),
        }?;
        if !self.second_fits() {
            return None;
        }
        match (draw, &self.law) {
            (PublicDraw::Affine { prime, values }, Law::Window(law)) => {
                (u64::from(law.cells()) == values && below <= prime).then(|| vec![(3, bits_of(prime))])
            }
            (PublicDraw::Step { count, cells }, Law::Design(law)) => {
                let steps = matches!(law.family(), DesignFamily::Progressions) && self.second.is_none();
                let sizes = (u64::from(law.cells()), u64::from(law.cells() - 1) / 2) == (cells, count);
                let fits = steps && sizes && u64::from(law.inputs()) == below;
                fits.then(|| vec![(1, bits_of(count).max(1)), (1, bits_of(cells))])
            }
            _ => None,
        }
    }

    /// True where there is no second step, or one that takes the reports of the channel.
    fn second_fits(&self) -> bool {
        match (&self.law, &self.second) {
            (_, None) => true,
            (Law::Unary(first), Some(Law::Bits(second))) => {
                (second.features(), second.bits()) == (first.categories(), 1) && self.uses() == 1
            }
            (Law::Window(first), Some(Law::Window(second))) => {
                first.cells() == second.cells() && second.order().is_none()
            }
            _ => false,
        }
    }
}
