//! Designs and subsets.

use bitldp_core::{Call, Channel, Design, Key, Subset};

use super::data::{Data, Room};
use super::{fuzz, same_on_all};

/// Calls a channel of codes with what mostly fits it.
fn call<C>(
    data: &mut Data,
    channel: &C,
    inputs: u64,
    room: fn(&mut Data, usize, u32) -> Room,
    outputs: Option<u64>,
) -> bool
where
    C: for<'a> Channel<Codec<'a> = (), Keys<'a> = &'a Key>,
{
    let length = data.length();
    let x = data.values(length, inputs);
    let room = room(data, length, channel.report_bits());
    let (key, first_chunk) = (data.key(), data.first_chunk());
    same_on_all(&room, outputs, |way, room| {
        let call = Call::new((), x.input(), room.output(), &key);
        channel.randomize_on(way.isa, Call { first_chunk, threads: way.threads, ..call })
    })
    .is_ok()
}

#[test]
fn designs() {
    fuzz("designs", |data| {
        let (inputs, high) = (2 + data.size(4, 4000, 30) as u32, data.chance());
        let width = 1 + data.below(9) as u32;
        let channel = match data.below(3) {
            0 => {
                let cells = inputs + data.below(5) as u32;
                Design::translates(inputs, width, high, (0..cells).rev().collect())
            }
            1 => Design::progressions(
                inputs,
                data.one_of(&[3, 7, 31, 127, 4001, 4003, 8191, 65_521]),
                width,
                high,
            ),
            _ => Design::halves(inputs, data.below(13) as u32, data.below(6) as u32, high),
        };
        let Ok(channel) = channel else { return false };
        let channel = if data.once_in(9) { channel.muted() } else { channel };
        let (inputs, outputs) = (channel.inputs().into(), channel.outputs().into());
        call(data, &channel, inputs, |data, n, bits| data.room(n, bits, n), Some(outputs))
    });
}

#[test]
fn subsets() {
    fuzz("subsets", |data| {
        let elements = data.size(9, 2000, 40) as u32;
        let Ok(channel) = Subset::new(elements, data.below(u64::from(elements) + 1) as u32, data.chance())
        else {
            return false;
        };
        let channel = if data.once_in(9) { channel.muted() } else { channel };
        call(data, &channel, elements.into(), |data, n, bits| data.strings(n, bits, n), None)
    });
}
