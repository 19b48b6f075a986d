//! Streams of every channel under fixed keys, each as one number: the same on every platform, instruction set and version.

use bitldp_core::{
    Bit, Bits, CHUNK, Call, Cap, Channel, Cube, Design, DesignFamily, Draws, FixedPoint, Grid, GridRounding,
    Infinities, Input, Isa, Key, Matrix, Mixture, Output, Probability, ROUNDS, Select, Shift, SignBit,
    Subset, Unary, Window, keystream_on,
};

/// Values of a stream: past the end of a chunk.
const VALUES: usize = CHUNK + 808;

/// A probability that is no float's.
const HIGH: u128 = 0xB000_0000_0000_0001;

const UNIT: u128 = 1 << 64;

fn key(seed: u8) -> Key {
    Key::from_bytes([seed; 32])
}

/// FNV-1a over 64 bits: a fingerprint, and no more.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn values(inputs: u32) -> Vec<u32> {
    (0..VALUES as u64).map(|i| (i * 7919 % u64::from(inputs)) as u32).collect()
}

fn numbers() -> Vec<f32> {
    (0..VALUES).map(|i| (i * 7919 % 2003) as f32 / 1001.0 - 1.0).collect()
}

/// The fingerprint of the packed reports of an input, which are as many as `reports` says.
fn packed<'k, C: Channel>(
    isa: Isa,
    channel: &C,
    codec: C::Codec<'k>,
    keys: C::Keys<'k>,
    input: Input<'_>,
    reports: usize,
) -> u64 {
    let mut packed = vec![0; (reports * channel.report_bits() as usize).div_ceil(8)];
    let call = Call::new(codec, input, Output::Packed(&mut packed), keys);
    channel.randomize_on(isa, call).expect("a call that fits");
    fingerprint(&packed)
}

/// The name and the fingerprint of each stream.
pub fn streams(isa: Isa) -> Vec<(&'static str, u64)> {
    let (high, key) = (Probability::from_numerator(HIGH).expect("a probability"), &key(42));
    let grid = |points| Grid::new(points, -1.0, 1.0, GridRounding::Dither, true).expect("a grid");
    let window = |cells, width, order| Window::from_probability(cells, width, high, order).expect("a window");
    let (real, bytes) = (numbers(), values(2).into_iter().map(|bit| bit as u8).collect::<Vec<_>>());
    let real = Input::F32(&real);
    let mut all = Vec::new();
    let mut stream = vec![0; 9 * 1024 + 17];
    keystream_on::<ROUNDS>(isa, key, 3, 5, &mut stream);
    all.push(("keystream", fingerprint(&stream)));
    let order = (0..5).flat_map(|x| (0..5).map(move |i| (x + i) % 5)).collect();
    for (name, channel) in [
        ("flip", window(2, 1, None)),
        ("response", window(16, 1, None)),
        ("ordered window", window(5, 2, Some(order))),
        ("wide window", window(70_000, 9, None)),
    ] {
        all.push((name, packed(isa, &channel, None, key, Input::U32(&values(channel.cells())), VALUES)));
    }
    all.push(("grid", packed(isa, &window(254, 96, None), Some(&grid(254)), key, real, VALUES)));
    let row = |a: u128| [a, (UNIT - a) / 3, UNIT - a - (UNIT - a) / 3];
    let table = || Matrix::from_weights(2, 3, [row(HIGH), row(HIGH)].concat()).expect("a matrix");
    all.push(("matrix", packed(isa, &table(), Some(&grid(2)), key, real, VALUES)));
    let rows: Vec<u128> =
        (0..40).flat_map(|x| (0..40).map(move |z| if x == z { UNIT - 39 * 7777 } else { 7777 })).collect();
    let large = Matrix::from_weights(40, 40, rows).expect("a matrix");
    all.push(("large matrix", packed(isa, &large, None, key, Input::U32(&values(40)), VALUES)));
    let noise = vec![HIGH / 4, UNIT - HIGH / 4 - HIGH / 5, HIGH / 5];
    let shift = Shift::new(9, 11, noise, 1).expect("noise");
    all.push(("shift", packed(isa, &shift, Some(&grid(9)), key, real, VALUES)));
    let mixture = Mixture::new(window(8, 3, None), table()).expect("a mixture");
    let keys = [key, &self::key(43)];
    all.push(("mixture", packed(isa, &mixture, [&grid(8), &grid(2)], keys, real, VALUES)));
    let bit = |p: u128| Bit {
        p: Probability::from_numerator(p).expect("a probability"),
        q: Probability::from_numerator(UNIT - p).expect("a probability"),
    };
    let law = |bits: u32| (0..u128::from(bits)).map(|i| bit(HIGH - (i << 57))).collect::<Vec<_>>();
    let uneven: Vec<Bit> = law(13).into_iter().map(|bit| Bit { q: Probability::HALF, ..bit }).collect();
    let other = vec![bit(HIGH - 5); 10];
    for (name, laws, pattern) in [
        ("bits", vec![law(10)], None),
        ("bits of bytes", vec![law(16)], None),
        ("long bits", vec![law(24)], None),
        ("uneven bits", vec![uneven], None),
        ("bits of two laws", vec![law(10), other], Some(vec![0, 1, 1])),
    ] {
        let features = pattern.as_ref().map_or(100, Vec::len);
        let channel = Bits::new(laws, features, pattern).expect("bits");
        let codec = FixedPoint::new(channel.bits(), 2, SignBit::OneIfNonNegative, Infinities::Refuse)
            .expect("a codec");
        all.push((name, packed(isa, &channel, Some(&codec), key, real, VALUES)));
    }
    let unary = Unary::new(23, Bit { p: Probability::HALF, q: high.complement() }).expect("strings");
    all.push(("unary", packed(isa, &unary, (), key, Input::U32(&values(23)), VALUES)));
    let subset = Subset::from_probability(40, 11, high).expect("subsets");
    all.push(("subset", packed(isa, &subset, (), key, Input::U32(&values(40)), VALUES)));
    let order: Vec<u32> = vec![0, 1, 3, 2, 4, 5, 6];
    for (name, family, inputs, cells, width) in [
        ("translates", DesignFamily::Translates(&order), 7, 7, 3),
        ("progressions", DesignFamily::Progressions, 4_000, 4_001, 500),
        ("halves", DesignFamily::Halves, 20, 32, 4),
        ("wide halves", DesignFamily::Halves, 100_000, 1 << 17, 1 << 16),
    ] {
        let design = Design::from_probability(family, inputs, cells, width, high).expect("a design");
        all.push((name, packed(isa, &design, (), key, Input::U32(&values(inputs)), VALUES)));
    }
    let weights = [1 << 30, 3 << 30, 5 << 30];
    let select = Select::new(&[3, 2, 5], &weights, Some(7 << 30)).expect("ranks");
    all.push(("select", packed(isa, &select, None, key, real, VALUES / 10)));
    let signed = Select::signed(&[6, 4, 10], &weights).expect("ranks");
    all.push(("signed select", packed(isa, &signed, None, key, real, VALUES / 10)));
    let cube = Cube::new(100, 51, 50, high).expect("a cube");
    all.push(("cube", packed(isa, &cube, None, key, Input::U8(&bytes), VALUES / 100)));
    let cap = Cap::new(vec![(7, 2)], vec![(9, 3), (5, 1)], 1, high).expect("a cap");
    all.push(("cap", packed(isa, &cap, None, key, Input::U32(&values(5)), VALUES / 3)));
    let draws = Draws::Stream { key, first_chunk: 1, chunk: CHUNK };
    let drawn = draws.coordinates::<u8>(VALUES / 10, 200, 10).expect("coordinates");
    all.push(("coordinates", fingerprint(&drawn)));
    all
}
