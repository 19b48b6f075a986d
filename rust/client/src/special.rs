//! Parts that are drawn in a way of their own: rotated vectors, and caps of columns of several kinds.

use bitldp_core::{Channel, Input, Key, Output, Rotated, pack_to, packed_len};

use crate::draws::PublicRotation;
use crate::law::{Coding, Law};
use crate::part::{Part, bits_of};
use crate::refused::{Kind, Refused, Result};
use crate::values::{code, with_room};

impl Part {
    /// The fields of a report about rotated vectors.
    pub(crate) fn fitting_rotation(&self, rotation: &PublicRotation) -> Option<Vec<(usize, u32)>> {
        let Law::Select(law) = &self.law else { return None };
        let plain = self.codec.is_none() && self.second.is_none() && self.order.is_none();
        let fits = law.is_signed() && law.dimensions() as usize == rotation.rotation.dimensions();
        let numbers = (rotation.reports, bits_of(rotation.count).max(1));
        (plain && fits && self.record.is_real()).then(|| vec![numbers, (rotation.reports, law.report_bits())])
    }

    /// Writes the numbers of rotations, and the codes of the rotated vectors.
    pub(crate) fn rotated(
        &self,
        draw: &PublicRotation,
        input: Input<'_>,
        records: usize,
        keys: &[Key],
        out: &mut [u8],
    ) -> Result<()> {
        let (Law::Select(law), Some((last, keys))) = (&self.law, keys.split_last()) else {
            return Err(Kind::Shape.into());
        };
        let (count, rotation) = (records * draw.reports, &draw.rotation);
        with_room(count, |numbers: &mut [u32]| {
            draw.draw(last, law.chunk(), numbers)?;
            let (of_numbers, of_codes) = out.split_at_mut(packed_len(count, self.fields[0].1)?);
            pack_to(numbers, self.fields[0].1, of_numbers, Some(1))?;
            with_room(count, |codes: &mut [u32]| {
                for (index, key) in keys.iter().enumerate() {
                    with_room(2 * records, |column: &mut [u32]| {
                        let (own, reports) = column.split_at_mut(records);
                        let of_index = numbers.iter().skip(index).step_by(draw.reports);
                        own.iter_mut().zip(of_index).for_each(|(own, &number)| *own = number);
                        let rotated = Rotated { rotation, numbers: own };
                        Law::randomize_rotated(law, rotated, input, Output::U32(reports), key)?;
                        let all = codes.iter_mut().skip(index).step_by(draw.reports);
                        all.zip(reports).for_each(|(code, report)| *code = *report);
                        Ok::<(), Refused>(())
                    })??;
                }
                Ok(pack_to(codes, self.fields[1].1, of_codes, Some(1))?)
            })?
        })?
    }

    /// The fields of a report about columns of several kinds: one for each run of columns that are alike.
    pub(crate) fn fitting_cap(&self, order: &[usize]) -> Option<Vec<(usize, u32)>> {
        let Law::Cap(law) = &self.law else { return None };
        let plain = self.codec.is_none() && self.second.is_none() && self.draw.is_none();
        let sizes: Vec<(u32, u32)> = law.windows().iter().chain(law.subsets()).copied().collect();
        let mut seen: Vec<usize> = order.to_vec();
        seen.sort_unstable();
        if !plain || sizes.len() != self.record.columns || seen.iter().zip(0..).any(|(&own, at)| own != at) {
            return None;
        }
        if order.len() != sizes.len() {
            return None;
        }
        let mut fields: Vec<(usize, u32)> = Vec::new();
        let mut before = None;
        for column in 0..order.len() {
            let at = order.iter().position(|&own| own == column)?;
            if self.record.below_of(column) != Some(sizes[at].0.into()) {
                return None;
            }
            let (columns, bits) = cap_column(law.windows().len(), at, sizes[at]);
            match fields.last_mut() {
                Some(last) if before == Some(sizes[at]) => *last = (last.0 + columns, bits),
                _ => fields.push((columns, bits)),
            }
            before = Some(sizes[at]);
        }
        Some(fields)
    }

    /// Writes the reports of the columns of a cap, in the order of the record.
    pub(crate) fn capped(
        &self,
        order: &[usize],
        input: Input<'_>,
        records: usize,
        key: &Key,
        out: &mut [u8],
    ) -> Result<()> {
        let Law::Cap(law) = &self.law else { return Err(Kind::Shape.into()) };
        let (columns, width) = (order.len(), law.codes());
        let sizes = || law.windows().iter().chain(law.subsets()).enumerate();
        with_room(records * columns, |values: &mut [u32]| {
            for (record, values) in values.chunks_exact_mut(columns).enumerate() {
                for (value, &column) in values.iter_mut().zip(order) {
                    *value = code(input, record * columns + column) as u32;
                }
            }
            with_room(2 * records * width, |codes: &mut [u32]| {
                let (drawn, sorted) = codes.split_at_mut(records * width);
                let keys = std::slice::from_ref(key);
                self.law.randomize(Coding::Codes, Input::U32(values), Output::U32(drawn), keys)?;
                // Column after column of the record, and within each record after record, so that fields are cut from it.
                let (mut rest, mut bytes) = (sorted, out);
                let mut column = 0;
                for &(field, bits) in &self.fields {
                    let (own, after) = rest.split_at_mut(records * field);
                    let mut filled = 0;
                    while filled < field {
                        let at = order.iter().position(|&own| own == column).ok_or(Kind::Shape)?;
                        let wide = |(index, &size)| cap_column(law.windows().len(), index, size).0;
                        let start: usize = sizes().take(at).map(wide).sum();
                        let count = sizes().nth(at).map_or(0, wide);
                        for (own, drawn) in own.chunks_exact_mut(field).zip(drawn.chunks_exact(width)) {
                            own[filled..filled + count].copy_from_slice(&drawn[start..start + count]);
                        }
                        filled += count;
                        column += 1;
                    }
                    let (packed, others) = bytes.split_at_mut(packed_len(records * field, bits)?);
                    pack_to(own, bits, packed, Some(1))?;
                    (rest, bytes) = (after, others);
                }
                Ok(())
            })?
        })?
    }
}

/// Code words and bits of the report about a window or a subset, which come behind so many windows.
fn cap_column(windows: usize, at: usize, (points, more): (u32, u32)) -> (usize, u32) {
    if at < windows {
        (1, bits_of(u64::from(points) + 2 * u64::from(more)))
    } else if more == 1 {
        (1, bits_of(points.into()))
    } else {
        (points as usize, 1)
    }
}
