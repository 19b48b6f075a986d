//! Keyed calls of channels whose reports are of whole records: each record is drawn as if it were a batch of its own, with a
//! key that depends on its id and on all of its values.

use super::KeyedCall;
use crate::channel::chunks::Chunks;
use crate::codec::{canonical, pack_into, settled};
use crate::error::{Error, Result, reason};
use crate::io::{Input, Output};
use crate::isa::Isa;
use crate::parallel::CHUNK;
use crate::random::{Digest, Key, Keys, Lanes, RecordKeys, WholeRecords};

/// Records of a chunk at most, a multiple of the lanes.
const RECORDS: usize = 256;

/// Nanoseconds that a record takes beside its values, roughly: its key, and its part of a keystream.
const NANOSECONDS: usize = 100;

/// Nanoseconds that it takes besides where it is drawn by itself: the groups of its keystream.
const BY_ITSELF: usize = 300;

/// A draw of many records: their keys, values and room; it answers with the position of the first that is refused.
type DrawRecords<'f> = dyn Fn(&[Keys], Input<'_>, Output<'_>) -> Option<usize> + Sync + 'f;

/// The properties of a channel that a keyed call needs.
pub(in crate::channel) struct WholeRecordCall<'a> {
    pub(in crate::channel) isa: Isa,
    /// Values of a record.
    pub(in crate::channel) values: usize,
    /// Code words of its report.
    pub(in crate::channel) words: usize,
    /// Elements that a code word leaves as.
    pub(in crate::channel) codes: usize,
    /// Bits of a code word.
    pub(in crate::channel) bits: u32,
    /// True where the values count as numbers.
    pub(in crate::channel) numbers: bool,
    pub(in crate::channel) mute: bool,
    /// Absorbs the law and the codec: random bits of another are others.
    pub(in crate::channel) law: &'a (dyn Fn(&mut Digest) + Sync),
    /// The bits of the values that the random bits depend on: all of them. The tests take some away.
    pub(in crate::channel) heard: u64,
}

impl WholeRecordCall<'_> {
    /// The call as a batch.
    ///
    /// # Errors
    /// Values that are no whole records.
    pub(in crate::channel) fn chunks<C>(&self, call: &KeyedCall<'_, C>) -> Result<Chunks> {
        let WholeRecordCall { values, words, codes, bits, .. } = *self;
        if !call.input.len().is_multiple_of(values) {
            let reason = reason!("{} values are not a whole number of records of {values}", call.input.len());
            return Err(Error::Shape { name: "x", reason });
        }
        let records = call.input.len() / values;
        // Whole bytes of packed reports, whatever their bits are, and whole lanes where records are short.
        let chunk = (CHUNK / values).clamp(8, RECORDS) / 8 * 8 * words;
        let (reports, threads) = (records * words, call.threads);
        Ok(Chunks { reports, bits, codes, values: values / words, chunk, first_chunk: 0, threads })
    }

    /// Draws a checked call, record by record. `refused` says which of the values of whole records has no law; `draw` writes
    /// the report of one record with its key, or says so, too.
    ///
    /// # Errors
    /// The first index of the batch with such a value; the output is zeros then.
    pub(in crate::channel) fn randomize<C>(
        &self,
        call: KeyedCall<'_, C>,
        refused: impl Fn(Input<'_>) -> Option<usize> + Sync,
        draw: impl Fn(&Key, Input<'_>, Output<'_>) -> Option<usize> + Sync,
    ) -> Result<std::result::Result<(), usize>> {
        self.randomize_each(call.with(()), &refused, &draw)
    }

    /// The same, compiled once.
    fn randomize_each(
        &self,
        call: KeyedCall<'_, ()>,
        refused: &(dyn Fn(Input<'_>) -> Option<usize> + Sync),
        draw: &(dyn Fn(&Key, Input<'_>, Output<'_>) -> Option<usize> + Sync),
    ) -> Result<std::result::Result<(), usize>> {
        self.randomize_any(call, BY_ITSELF, refused, &|keys, input, mut output| {
            let records = input.len() / self.values;
            let packed = matches!(output, Output::Packed(_));
            // A packed report may begin inside a byte: they are packed together.
            let mut bits = vec![0; if packed { records * self.words * self.bits as usize } else { 0 }];
            for at in 0..records {
                let own = input.part(at * self.values..(at + 1) * self.values);
                let key = keys[at / Lanes::COUNT].key(at % Lanes::COUNT);
                if let Some(position) = draw(&key, own, self.report(at, &mut bits, &mut output)) {
                    return Some(at * self.values + position);
                }
            }
            if let Output::Packed(out) = output {
                pack_into(self.isa, &bits, 1, out);
            }
            None
        })
    }

    /// Draws a checked call, many records at a time: `draw` is given their keys, their values and room for just their
    /// reports, which begin with a whole byte. Nanoseconds are what it takes for a record.
    ///
    /// # Errors
    /// As [`randomize`](Self::randomize).
    pub(in crate::channel) fn randomize_together<C>(
        &self,
        call: KeyedCall<'_, C>,
        nanoseconds: usize,
        refused: impl Fn(Input<'_>) -> Option<usize> + Sync,
        draw: impl Fn(&[Keys], Input<'_>, Output<'_>) -> Option<usize> + Sync,
    ) -> Result<std::result::Result<(), usize>> {
        self.randomize_any(call.with(()), nanoseconds, &refused, &draw)
    }

    /// The same, compiled once.
    fn randomize_any(
        &self,
        call: KeyedCall<'_, ()>,
        nanoseconds: usize,
        refused: &(dyn Fn(Input<'_>) -> Option<usize> + Sync),
        draw: &DrawRecords<'_>,
    ) -> Result<std::result::Result<(), usize>> {
        let chunks = self.chunks(&call)?;
        let KeyedCall { input, output, randomness, .. } = call;
        let WholeRecordCall { values, words, .. } = *self;
        let columns = randomness.columns(input.len() / values)?;
        let mut digest = randomness.digest();
        (self.law)(&mut digest);
        let (records, heard) =
            (RecordKeys::new(&digest, randomness.ids), self.heard & randomness.ids.heard());
        let width = if heard == 0 { 0 } else { values };
        Ok(chunks.walk_anyway(output, NANOSECONDS + nanoseconds + values, |_, range, output| {
            let range = range.start / words..range.end / words;
            let input = input.part(range.start * values..range.end * values);
            let mut numbers = vec![0.0; if self.numbers { input.len() } else { 0 }];
            settled(input, &mut numbers);
            // What is hashed is what is drawn from, whoever writes to the input meanwhile.
            let input = if self.numbers { Input::F64(&numbers) } else { input };
            if let Some(position) = refused(input) {
                return Some(position);
            }
            let zeros = vec![0; if self.mute { input.len() } else { 0 }];
            let input = if self.mute { Input::U8(&zeros) } else { input };
            let mut values = vec![0; range.len() * width];
            canonical(input, &mut values);
            values.iter_mut().for_each(|value| *value &= heard);
            // Columns were checked to stay inside 32 bits.
            let (first, count, column) = (range.start, range.len(), randomness.column);
            let whole = WholeRecords { first, count, column, columns, width, values: &values };
            draw(&records.keys_with(self.isa, &whole), input, output)
        }))
    }

    /// Where the report of a record of the chunk goes: one that will be packed, as bits.
    fn report<'b>(&self, at: usize, spare: &'b mut [u8], output: &'b mut Output<'_>) -> Output<'b> {
        let part = |size: usize| at * size..(at + 1) * size;
        let (codes, numbers) = (part(self.words * self.codes), part(self.values));
        let bits = part(self.words * self.bits as usize);
        match output {
            Output::U8(slice) => Output::U8(&mut slice[codes]),
            Output::U16(slice) => Output::U16(&mut slice[codes]),
            Output::U32(slice) => Output::U32(&mut slice[codes]),
            Output::F32(slice) => Output::F32(&mut slice[numbers]),
            Output::F64(slice) => Output::F64(&mut slice[numbers]),
            Output::Bits(slice) => Output::Bits(&mut slice[bits]),
            Output::Packed(_) => Output::Bits(&mut spare[bits]),
        }
    }
}

/// Writes one code, to an output of just that; as bits, most significant first.
pub(in crate::channel) fn write(code: u32, output: Output<'_>) {
    match output {
        Output::U8(out) => out[0] = code as u8,
        Output::U16(out) => out[0] = code as u16,
        Output::U32(out) => out[0] = code,
        Output::Bits(out) => {
            out.iter_mut().rev().enumerate().for_each(|(position, bit)| *bit = (code >> position & 1) as u8);
        }
        _ => unreachable!("other forms were refused"),
    }
}
