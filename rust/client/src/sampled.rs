//! Parts of a record of which some columns are drawn and reported, in a common form.

use bitldp_core::{Input, Key, Output, add_up, mul_up, pack_to, packed_len};

use crate::draws::{PublicDraw, coordinates};
use crate::keys::{GiveKeys, overwrite};
use crate::law::Law;
use crate::part::{Part, bits_of, for_parts, picked};
use crate::refused::Result;
use crate::values::{Values, code, with_room};

/// The draw of columns, and the form of their reports.
pub(crate) struct SampledParts {
    of: usize,
    k: usize,
    /// Code words that each column's report has.
    width: usize,
    /// The key of the draw, and how often it is replaced by the start of its keystream.
    key: (usize, usize),
    /// The columns that were drawn, and their reports.
    pub(crate) fields: [(usize, u32); 2],
}

impl SampledParts {
    /// The draw from the columns of parts, with its key; none where it does not fit them.
    pub(crate) fn of(
        draw: PublicDraw,
        parts: &[Part],
        first_key: usize,
        derived: usize,
    ) -> Option<SampledParts> {
        let PublicDraw::Coordinates { of, k } = draw else { return None };
        let mut forms = Vec::new();
        for part in parts {
            let (values, _, _) = part.law.form();
            let drawn = part.draw.is_some() || part.rotation.is_some() || part.order.is_some();
            let ([(width, bits)], false, 1) = (part.fields.as_slice(), drawn, values) else { return None };
            if !width.is_multiple_of(part.record.columns) {
                return None;
            }
            forms.push((width / part.record.columns, *bits));
        }
        let columns: usize = parts.iter().map(|part| part.record.columns).sum();
        let narrow = forms.iter().all(|&(width, _)| width == 1);
        let (width, bits) = if narrow {
            (1, forms.iter().map(|&(_, bits)| bits).max()?)
        } else {
            (forms.iter().map(|&(width, bits)| width * bits as usize).max()?, 1)
        };
        let fields = [(k, bits_of(of as u64).max(1)), (k.checked_mul(width)?, bits)];
        (columns == of).then_some(SampledParts { of, k, width, key: (first_key, derived), fields })
    }

    /// Epsilon of a record: of the columns that cost most.
    pub(crate) fn epsilon(&self, parts: &[Part]) -> f64 {
        // A column may use its channel more than once.
        let one = |part: &Part| mul_up(part.law.epsilon(), (part.uses() / part.record.columns) as f64);
        let mut kinds: Vec<(f64, usize)> =
            parts.iter().map(|part| (one(part), part.record.columns)).collect();
        kinds.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
        let mut left = self.k;
        kinds.into_iter().fold(0.0, |sum, (epsilon, columns)| {
            let count = columns.min(left);
            left -= count;
            add_up(sum, mul_up(epsilon, count as f64))
        })
    }

    /// Writes which columns of parts were drawn, and their reports in the common form.
    pub(crate) fn randomize(
        &self,
        parts: &[Part],
        x: Values<'_>,
        records: usize,
        out: &mut [u8],
        keys: &mut GiveKeys<'_>,
    ) -> Result<()> {
        let &SampledParts { of, k, width, key, fields: [(_, of_columns), (_, of_codes)] } = self;
        with_room(records * k, |columns: &mut [u32]| {
            let mut head = [Key::from_bytes([0; 32])];
            let drawn = keys(key.0, key.1, &mut head).and_then(|()| coordinates(&head[0], of, k, columns));
            overwrite(&mut head);
            drawn?;
            let (named, reports) = out.split_at_mut(packed_len(columns.len(), of_columns)?);
            pack_to(columns, of_columns, named, Some(1))?;
            with_room(columns.len() * width, |codes: &mut [u32]| {
                let mut start = 0;
                for_parts(parts, x, records, &mut |part, values| {
                    let own = start..start + part.record.columns;
                    start = own.end;
                    let mine = |column: u32| own.contains(&(column as usize));
                    let count = columns.iter().filter(|&&column| mine(column)).count();
                    with_room(count, |rows: &mut [u32]| {
                        let all = columns.iter().zip(0..).filter(|&(&column, _)| mine(column));
                        rows.iter_mut().zip(all).for_each(|(row, (_, at))| *row = at);
                        let at = |index: usize| {
                            let row = rows[index] as usize;
                            row / k * own.len() + columns[row] as usize - own.start
                        };
                        let mut room = codes.chunks_exact_mut(width);
                        let mut skipped = 0;
                        part.with_keys(keys, &mut |keys| {
                            part.record.with(values, &mut |input| {
                                part.answers(input, count, &at, keys, &mut |index, answer, bits| {
                                    let row = rows[index] as usize;
                                    if let Some(room) = room.nth(row - skipped) {
                                        spell(answer, bits, room);
                                    }
                                    skipped = row + 1;
                                })
                            })
                        })
                    })?
                })?;
                Ok(pack_to(codes, of_codes, reports, Some(1))?)
            })?
        })?
    }
}

impl Part {
    /// Calls `give` with the codes that are reported of some of the values, and their bits.
    fn answers(
        &self,
        input: Input<'_>,
        count: usize,
        at: &dyn Fn(usize) -> usize,
        keys: &[Key],
        give: &mut dyn FnMut(usize, &[u32], u32),
    ) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let (columns, bits) = self.fields[0];
        let each = columns / self.record.columns;
        let as_bits = matches!(self.law, Law::Unary(_) | Law::Subset(_));
        with_room(count * each, |codes: &mut [u32]| {
            with_room(if as_bits { codes.len() } else { 0 }, |strings: &mut [u8]| {
                let output = if as_bits { Output::Bits(strings) } else { Output::U32(codes) };
                match input {
                    Input::F32(x) => {
                        picked(x, count, at, |x| self.released(Input::F32(x), count, keys, output))
                    }
                    Input::F64(x) => {
                        picked(x, count, at, |x| self.released(Input::F64(x), count, keys, output))
                    }
                    _ => with_room(count, |own: &mut [u32]| {
                        own.iter_mut()
                            .enumerate()
                            .for_each(|(index, own)| *own = code(input, at(index)) as u32);
                        self.released(Input::U32(own), count, keys, output)
                    })?,
                }?;
                if as_bits {
                    codes.iter_mut().zip(strings).for_each(|(code, bit)| *code = u32::from(*bit));
                }
                codes.chunks_exact(each).enumerate().for_each(|(index, answer)| give(index, answer, bits));
                Ok(())
            })?
        })?
    }
}

/// Writes codes as they are where there is room for one, and else as their bits, the highest first.
fn spell(codes: &[u32], bits: u32, room: &mut [u32]) {
    if let ([room], [code]) = (&mut *room, codes) {
        *room = *code;
        return;
    }
    let spelled = codes.iter().flat_map(|code| (0..bits).rev().map(move |bit| code >> bit & 1));
    room.iter_mut().zip(spelled).for_each(|(own, bit)| *own = bit);
}
