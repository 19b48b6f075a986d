//! The reports of a part: public draw, codec, channel and second step.

use bitldp_core::{Input, Key, Output, pack_to, packed_len};

use crate::codec::Codec;
use crate::draws::{PublicDraw, coordinates, for_words, scaled};
use crate::keys::{derived, overwrite};
use crate::law::{Coding, Law};
use crate::part::{Part, picked};
use crate::refused::{Kind, Result};
use crate::values::{code, with_room};

impl Part {
    /// Writes the reports of checked records.
    pub(crate) fn randomize(
        &self,
        input: Input<'_>,
        records: usize,
        keys: &[Key],
        out: &mut [u8],
    ) -> Result<()> {
        let Some(item) = self.item() else { return self.drawn(input, records, keys, out) };
        let (keys, own) = keys.split_at_checked(self.keys() - item.keys()).ok_or(Kind::Shape)?;
        with_room(records, |codes: &mut [u32]| {
            item.draw(input, own, codes)?;
            self.drawn(Input::U32(codes), records, keys, out)
        })?
    }

    /// Writes the reports of records, whose public draw comes before all else.
    fn drawn(&self, input: Input<'_>, records: usize, keys: &[Key], out: &mut [u8]) -> Result<()> {
        let (last, others) = keys.split_last().ok_or(Kind::Shape)?;
        if let Some(rotation) = &self.rotation {
            return self.rotated(rotation, input, records, keys, out);
        }
        if let Some(order) = &self.order {
            return self.capped(order, input, records, last, out);
        }
        match self.draw {
            None => self.released(input, records, keys, Output::Packed(out)),
            Some(PublicDraw::Coordinates { of, k }) => {
                let bits = self.fields[0].1;
                with_room(records * k, |columns: &mut [u32]| {
                    coordinates(last, of, k, columns)?;
                    let (named, reports) = out.split_at_mut(packed_len(columns.len(), bits)?);
                    pack_to(columns, bits, named, Some(1))?;
                    let at = |index: usize| index / k * of + columns[index] as usize;
                    let mut released =
                        |input: Input<'_>| self.released(input, records, others, Output::Packed(reports));
                    match input {
                        Input::F32(x) => picked(x, columns.len(), at, |x| released(Input::F32(x))),
                        Input::F64(x) => picked(x, columns.len(), at, |x| released(Input::F64(x))),
                        _ => Err(Kind::Shape.into()),
                    }
                })?
            }
            Some(PublicDraw::Affine { prime, values }) => with_room(3 * records, |triples: &mut [u32]| {
                for_words(last, 2 * records, &mut |at, word| {
                    let drawn = if at % 2 == 0 { 1 + scaled(word, prime - 1) } else { scaled(word, prime) };
                    triples[at / 2 * 3 + at % 2] = drawn as u32;
                })?;
                with_room(records, |hashed: &mut [u32]| {
                    for (at, (hashed, triple)) in hashed.iter_mut().zip(triples.chunks_exact(3)).enumerate() {
                        let mapped = (u64::from(triple[0]) * code(input, at) + u64::from(triple[1])) % prime;
                        *hashed = (mapped * values / prime) as u32;
                    }
                    with_room(records, |reports: &mut [u32]| {
                        self.released(Input::U32(hashed), records, others, Output::U32(reports))?;
                        for (triple, report) in triples.chunks_exact_mut(3).zip(reports) {
                            triple[2] = *report;
                        }
                        Ok(pack_to(triples, self.fields[0].1, out, Some(1))?)
                    })?
                })?
            })?,
            Some(PublicDraw::Step { count, cells }) => with_room(records, |steps: &mut [u32]| {
                for_words(last, records, &mut |at, word| steps[at] = scaled(word, count) as u32)?;
                let (of_steps, of_cells) = out.split_at_mut(packed_len(records, self.fields[0].1)?);
                pack_to(steps, self.fields[0].1, of_steps, Some(1))?;
                self.stepped(input, steps, cells, others, of_cells)
            })?,
        }
    }

    /// Writes the cells of progressions that begin at the categories: a rank is drawn whatever the category is, which then
    /// enters an addition.
    fn stepped(
        &self,
        input: Input<'_>,
        steps: &[u32],
        cells: u64,
        keys: &[Key],
        out: &mut [u8],
    ) -> Result<()> {
        let (Some(ranks), Law::Design(law)) = (&self.ranks, &self.law) else {
            return Err(Kind::Shape.into());
        };
        let law_is_mute = bitldp_core::Channel::is_mute(law);
        with_room(steps.len(), |zeros: &mut [u32]| {
            with_room(steps.len(), |reported: &mut [u32]| {
                let ranks = Law::randomize_design(ranks, Input::U32(zeros), Output::U32(reported), keys);
                ranks?;
                for (at, (cell, &step)) in reported.iter_mut().zip(steps).enumerate() {
                    let (rank, step) = (u64::from(*cell), u64::from(step) + 1);
                    // The multiples of a step come back to 0 where it shares a divisor; then those beside them follow.
                    let offset = (rank * step + rank * divisor(step, cells) / cells) % cells;
                    let sum = offset + if law_is_mute { 0 } else { code(input, at) };
                    *cell = (sum - if sum >= cells { cells } else { 0 }) as u32;
                }
                Ok(pack_to(reported, self.fields[1].1, out, Some(1))?)
            })?
        })?
    }

    /// Writes the reports of values by codec, channel and second step.
    pub(crate) fn released(
        &self,
        input: Input<'_>,
        records: usize,
        keys: &[Key],
        output: Output<'_>,
    ) -> Result<()> {
        match (&self.codec, &self.dither) {
            (Some(Codec::Placed(grid)), Some(dither)) => {
                let (first, keys) = keys.split_at_checked(1).ok_or(Kind::Shape)?;
                with_room(input.len(), |codes: &mut [u32]| {
                    dither.randomize(Coding::Grid(grid), input, Output::U32(codes), first)?;
                    self.channelled(Input::U32(codes), keys, output)
                })?
            }
            (Some(Codec::Signs { grid, columns }), Some(dither)) => {
                let (first, keys) = keys.split_at_checked(1).ok_or(Kind::Shape)?;
                with_room(records * columns, |signs: &mut [u8]| {
                    dither.randomize(Coding::Grid(grid), input, Output::U8(signs), first)?;
                    with_room(records, |symbols: &mut [u32]| {
                        for (symbol, signs) in symbols.iter_mut().zip(signs.chunks_exact(*columns)) {
                            *symbol = signs.iter().fold(0, |symbol, &sign| symbol << 1 | u32::from(sign));
                        }
                        self.channelled(Input::U32(symbols), keys, output)
                    })?
                })?
            }
            (Some(Codec::OneHot { categories, top }), _) => {
                with_room(records * categories, |entries: &mut [u16]| {
                    for (at, entries) in entries.chunks_exact_mut(*categories).enumerate() {
                        let own = code(input, at);
                        for (entry, category) in entries.iter_mut().zip(0..) {
                            *entry = top & 0u16.wrapping_sub(u16::from(category == own));
                        }
                    }
                    self.channelled(Input::U16(entries), keys, output)
                })?
            }
            _ => self.channelled(input, keys, output),
        }
    }

    /// Writes the reports of codes, or of numbers through a grid or a fixed-point code.
    fn channelled(&self, input: Input<'_>, keys: &[Key], output: Output<'_>) -> Result<()> {
        let coding = self.coding();
        match (&self.law, &self.second, keys.last()) {
            (law, None, _) => law.randomize(coding, input, output, keys),
            (Law::Unary(first), Some(second), Some(key)) => {
                with_room(input.len() * first.categories(), |bits: &mut [u8]| {
                    self.law.randomize(coding, input, Output::Bits(bits), keys)?;
                    let mut key = [derived(key)?];
                    let done = second.randomize(Coding::Codes, Input::U8(bits), output, &key);
                    overwrite(&mut key);
                    done
                })?
            }
            (law, Some(second), Some(_)) => with_room(input.len(), |codes: &mut [u32]| {
                law.randomize(coding, input, Output::U32(codes), keys)?;
                second.randomize(Coding::Codes, Input::U32(codes), output, &keys[keys.len() - 1..])
            })?,
            _ => Err(Kind::Shape.into()),
        }
    }
}

/// The greatest common divisor.
fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
