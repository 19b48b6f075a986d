//! Channels with keyed randomness.

use bitldp_core::{Grid, Ids, Keyed, KeyedCall, KeyedRandomness};

use super::channels::{matrix, mixture, shift, window};
use super::data::Data;
use super::{fuzz, same_on_all};

/// Calls a channel with random bits of ids, records of a few columns; `codec` makes its grids of the input's kind.
fn call<C: Keyed>(
    data: &mut Data,
    channel: &C,
    (inputs, outputs): (u64, u64),
    codec: impl for<'a> Fn(&'a [Grid]) -> C::Codec<'a>,
    grids: &[Grid],
) -> bool {
    let (records, columns) = (data.length(), 1 + data.below(4));
    let length = records * columns as usize;
    let x = data.values(length, inputs);
    let room = data.room(length, channel.report_bits(), length);
    let some = records + usize::from(data.once_in(12));
    let numbers: Vec<u64> = (0..some).map(|_| data.word()).collect();
    let digests: Vec<[u8; 32]> = (0..some).map(|i| [i as u8; 32]).collect();
    let named = data.once_in(2);
    let real = room.clone().output().is_real();
    let letters = (real ^ data.once_in(12) && outputs < 1 << 20).then(|| data.letters(outputs));
    let column = data.one_of(&[0, 5, u32::MAX, u32::MAX - 2]);
    let (key, context) = (data.key(), data.word().to_le_bytes());
    same_on_all(&room, Some(outputs), |way, room| {
        let ids = if named { Ids::Digests(&digests) } else { Ids::Numbers(&numbers) };
        let (codec, letters, context) = (codec(grids), letters.as_deref(), &context[..]);
        let (input, output, threads) = (x.input(), room.output(), way.threads);
        let randomness = KeyedRandomness { column, ..KeyedRandomness::new(&key, context, ids) };
        let call = KeyedCall { codec, input, letters, output, randomness, threads };
        channel.randomize_keyed_on(way.isa, call)
    })
    .is_ok()
}

/// A grid, or none.
fn some_grid(data: &mut Data, points: u64) -> Vec<Grid> {
    if data.once_in(2) { data.grid(points as u32).into_iter().collect() } else { Vec::new() }
}

#[test]
fn keyed_randomness() {
    fuzz("keyed randomness", |data| match data.below(4) {
        0 => {
            let Some(channel) = window(data) else { return false };
            let cells = channel.cells().into();
            let grids = some_grid(data, cells);
            call(data, &channel, (cells, cells), |grids| grids.first(), &grids)
        }
        1 => {
            let Some(channel) = matrix(data) else { return false };
            let size = (channel.inputs() as u64, channel.outputs() as u64);
            let grids = some_grid(data, size.0);
            call(data, &channel, size, |grids| grids.first(), &grids)
        }
        2 => {
            let Some(channel) = shift(data) else { return false };
            let size = (channel.inputs() as u64, channel.outputs() as u64);
            let grids = some_grid(data, size.0);
            call(data, &channel, size, |grids| grids.first(), &grids)
        }
        _ => {
            let Some(channel) = mixture(data) else { return false };
            let (Some(cells), Some(two)) = (data.grid(channel.window().cells()), data.grid(2)) else {
                return false;
            };
            let outputs = channel.outputs().into();
            call(data, &channel, (2, outputs), |grids| [&grids[0], &grids[1]], &[cells, two])
        }
    });
}
