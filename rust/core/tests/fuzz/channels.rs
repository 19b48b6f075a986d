//! Every channel, from a stream.

use bitldp_core::{
    Bit, Bits, Call, Channel, Cube, FixedPoint, Grid, Infinities, Key, Matrix, Mixture, Probability,
    Rounding, Select, Shift, SignBit, Unary, Window,
};

use super::data::Data;
use super::{fuzz, same_on_all};

/// A window, with an order or mute now and then.
pub fn window(data: &mut Data) -> Option<Window> {
    let cells = match data.below(12) {
        0 => 0,
        1 | 2 => 2,
        3 => 1 << 16,
        4 => (1 << 16) + data.below(1 << 20) as u32,
        5 => u32::MAX,
        _ => 1 + data.below(300) as u32,
    };
    let width = if data.once_in(3) { 1 } else { data.below(u64::from(cells) + 1) as u32 };
    let order = (cells < 40 && data.once_in(3)).then(|| {
        let turn = data.below(u64::from(cells) + 1) as u32;
        (0..cells * cells).map(|i| ((i / cells + i * (1 + turn % 2)) % cells) as u16).collect()
    });
    let window = Window::new(cells, width, data.chance(), order).ok()?;
    Some(if data.once_in(9) { window.muted() } else { window })
}

pub fn matrix(data: &mut Data) -> Option<Matrix> {
    let inputs = 1 + data.size(2, 9, 300) as usize;
    let outputs = 1 + data.size(2, 33, 400) as usize;
    let sparse = data.once_in(3);
    let mut law = Vec::new();
    for _ in 0..inputs {
        let row: Vec<f64> = (0..outputs)
            .map(|_| if sparse && data.once_in(2) { 0.0 } else { 1e-9 + data.word() as f64 })
            .collect();
        let sum: f64 = row.iter().sum();
        law.extend(row.into_iter().map(|weight| weight / sum));
    }
    Matrix::new(inputs, outputs, &law).ok()
}

pub fn shift(data: &mut Data) -> Option<Shift> {
    let reach = data.size(2, 5, 600) as usize;
    let count = 2 * reach + 1 + usize::from(data.once_in(20));
    let each = (1u128 << 64) / count as u128;
    let mut weights = vec![each; count];
    weights[data.below(count as u64) as usize] += (1u128 << 64) - each * count as u128;
    let inputs = data.below(400) as usize;
    let outputs = if data.once_in(3) { inputs } else { inputs + 2 * reach };
    let offset = if data.once_in(3) { data.below(1 << 19) as i32 - (1 << 18) } else { reach as i32 };
    let shift = Shift::new(inputs, outputs, weights, offset).ok()?;
    Some(if data.once_in(9) { shift.muted() } else { shift })
}

pub fn mixture(data: &mut Data) -> Option<Mixture> {
    let coin = data.chance();
    let (left, right) = (0.25 * (1.0 - coin), 0.75 * (1.0 - coin));
    let matrix = Matrix::new(2, 3, &[coin, left, right, coin, right, left]).ok()?;
    Mixture::new(window(data)?, matrix).ok()
}

/// Calls a channel of numbers on a grid, or of codes without one, with what mostly fits it.
fn categorical<C>(data: &mut Data, channel: &C, inputs: u64, outputs: u64) -> bool
where
    C: for<'a> Channel<Codec<'a> = Option<&'a Grid>, Keys<'a> = &'a Key>,
{
    let length = data.length();
    let x = data.values(length, inputs);
    let room = data.room(length, channel.report_bits(), length);
    let grid = if x.input().is_real() ^ data.once_in(12) { data.grid(inputs as u32) } else { None };
    let real = room.clone().output().is_real();
    let letters = (real ^ data.once_in(12) && outputs < 1 << 20).then(|| data.letters(outputs));
    let (key, first_chunk) = (data.key(), data.first_chunk());
    same_on_all(&room, Some(outputs), |way, room| {
        let call = Call::new(grid.as_ref(), x.input(), room.output(), &key);
        let call = Call { letters: letters.as_deref(), first_chunk, threads: way.threads, ..call };
        channel.randomize_on(way.isa, call)
    })
    .is_ok()
}

#[test]
fn categories_and_numbers() {
    fuzz("windows", |data| {
        let Some(channel) = window(data) else { return false };
        let cells = channel.cells().into();
        categorical(data, &channel, cells, cells)
    });
}

#[test]
fn tables() {
    fuzz("matrices", |data| {
        let Some(channel) = matrix(data) else { return false };
        categorical(data, &channel, channel.inputs() as u64, channel.outputs() as u64)
    });
}

#[test]
fn noise() {
    fuzz("shifts", |data| {
        let Some(channel) = shift(data) else { return false };
        categorical(data, &channel, channel.inputs() as u64, channel.outputs() as u64)
    });
}

#[test]
fn mixtures() {
    fuzz("mixtures", |data| {
        let Some(channel) = mixture(data) else { return false };
        let length = data.length();
        let x = data.numbers(length);
        let room = data.room(length, channel.report_bits(), length);
        let (Some(cells), Some(two)) = (data.grid(channel.window().cells()), data.grid(2)) else {
            return false;
        };
        let outputs = channel.outputs().into();
        let real = room.clone().output().is_real();
        let letters = (real ^ data.once_in(12)).then(|| data.letters(outputs));
        let (keys, first_chunk) = ([data.key(), data.key()], data.first_chunk());
        same_on_all(&room, Some(outputs), |way, room| {
            let call = Call::new([&cells, &two], x.input(), room.output(), [&keys[0], &keys[1]]);
            let call = Call { letters: letters.as_deref(), first_chunk, threads: way.threads, ..call };
            channel.randomize_on(way.isa, call)
        })
        .is_ok()
    });
}

#[test]
fn bits() {
    fuzz("bits", |data| {
        let (l, features) = (data.below(34) as u32, data.below(40) as usize);
        let laws = 1 + data.below(11) as usize;
        let symmetric = data.once_in(2);
        let mut bit = || {
            let p = data.chance();
            Bit::new(p, if symmetric { 1.0 - p } else { data.chance() })
        };
        let mut law = || (0..l).map(|_| bit()).collect::<Result<Vec<_>, _>>();
        let Ok(laws) = (0..laws).map(|_| law()).collect::<Result<Vec<_>, _>>() else { return false };
        let several = laws.len() as u64;
        let pattern = (several > 1).then(|| (0..features).map(|_| data.below(several) as u32).collect());
        let Ok(channel) = Bits::new(laws, features, pattern) else { return false };
        let sign = data.one_of(&[SignBit::OneIfNonNegative, SignBit::ZeroIfNonNegative]);
        let infinities = data.one_of(&[Infinities::Refuse, Infinities::Saturate]);
        let records = data.length() / if data.once_in(20) { 1 } else { features.max(1) };
        let length = records * features + usize::from(data.once_in(20));
        let x = data.values(length, 1 << l);
        let codec_bits = if data.once_in(12) { 8 } else { l };
        let codec = FixedPoint::new(codec_bits, data.below(u64::from(l) + 1) as u32, sign, infinities).ok();
        let codec = codec.filter(|_| x.input().is_real() ^ data.once_in(20));
        let room = data.room(length, l, length);
        let (key, first_chunk) = (data.key(), data.first_chunk());
        same_on_all(&room, Some(1 << l), |way, room| {
            let call = Call::new(codec.as_ref(), x.input(), room.output(), &key);
            channel.randomize_on(way.isa, Call { first_chunk, threads: way.threads, ..call })
        })
        .is_ok()
    });
}

#[test]
fn one_hot_strings() {
    fuzz("unary", |data| {
        let categories = data.size(2, 12, 300);
        let Ok(bit) = Bit::new(data.chance(), data.chance()) else { return false };
        let Ok(channel) = Unary::new(categories as usize, bit) else { return false };
        let length = data.length() / if data.once_in(9) { 1 } else { 8 };
        let x = data.values(length, categories);
        let room = data.strings(length, categories as u32, length);
        let (key, first_chunk) = (data.key(), data.first_chunk());
        same_on_all(&room, None, |way, room| {
            let call = Call::new((), x.input(), room.output(), &key);
            channel.randomize_on(way.isa, Call { first_chunk, threads: way.threads, ..call })
        })
        .is_ok()
    });
}

#[test]
fn signs() {
    fuzz("cubes", |data| {
        let bits = data.size(3, 300, 40) as u32;
        let near = data.below(u64::from(bits) + 2) as u32;
        let far = near.saturating_sub(data.size(9, 4, 2) as u32);
        let Ok(high) = Probability::from_f64(data.chance(), Rounding::Down) else { return false };
        let Ok(channel) = Cube::new(bits, near, far, high) else { return false };
        let channel = if data.once_in(9) { channel.muted() } else { channel };
        let records = data.length() / if data.once_in(9) { 1 } else { 16 };
        let length = records * bits as usize + usize::from(data.once_in(20));
        let x = data.values(length, 2);
        let room = data.strings(records, bits, length);
        let grid = if x.input().is_real() ^ data.once_in(12) { data.grid(2) } else { None };
        let letters = room.clone().output().is_real().then(|| data.letters(2));
        let (key, first_chunk) = (data.key(), data.first_chunk());
        same_on_all(&room, None, |way, room| {
            let call = Call::new(grid.as_ref(), x.input(), room.output(), &key);
            let call = Call { letters: letters.as_deref(), first_chunk, threads: way.threads, ..call };
            channel.randomize_on(way.isa, call)
        })
        .is_ok()
    });
}

#[test]
fn selections() {
    fuzz("selections", |data| {
        let most = if data.once_in(3) { 3000 } else { 9 };
        let counts: Vec<u32> = (0..1 + data.below(5)).map(|_| data.below(most) as u32).collect();
        let weights: Vec<u64> = counts.iter().map(|_| data.below(1 << 40)).collect();
        let nothing = data.once_in(3).then(|| data.below(1 << 40));
        let Ok(channel) = Select::new(&counts, &weights, nothing) else { return false };
        let dimensions = channel.dimensions() as usize;
        let records = (data.length() / dimensions).max(1);
        let length = records * dimensions + usize::from(data.once_in(20));
        let x = data.numbers(length);
        let room = data.room(records, channel.report_bits(), records);
        let (key, first_chunk) = (data.key(), data.first_chunk());
        same_on_all(&room, Some(channel.outputs().into()), |way, room| {
            let call = Call::new(None, x.input(), room.output(), &key);
            channel.randomize_on(way.isa, Call { first_chunk, threads: way.threads, ..call })
        })
        .is_ok()
    });
}
