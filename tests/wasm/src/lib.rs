//! The module that Node runs: streams of every channel, and repeated calls to be timed.

use std::cell::RefCell;

use bitldp_core::{
    Bit, Bits, Call, Channel, Error, FixedPoint, Grid, GridRounding, Infinities, Input, Isa, Key, Output,
    Probability, SignBit, Window,
};

#[path = "../../../rust/core/tests/common/streams.rs"]
mod streams;

/// Values of a call that is timed.
const TIMED: usize = 1 << 18;

thread_local! {
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
    static TIMES: RefCell<Option<Timed>> = const { RefCell::new(None) };
}

/// The length of the text of all streams on the best instruction set, or on the scalar one, which lies where
/// [`text`] says.
#[unsafe(no_mangle)]
pub extern "C" fn streams(scalar: u32) -> usize {
    let isa = if scalar != 0 { Isa::Scalar } else { Isa::available()[0] };
    let lines = streams::streams(isa).into_iter().map(|(name, stream)| format!("{stream:016x} {name}\n"));
    TEXT.replace(lines.collect());
    TEXT.with_borrow(String::len)
}

/// The name of the best instruction set, as [`streams`].
#[unsafe(no_mangle)]
pub extern "C" fn isa() -> usize {
    TEXT.replace(Isa::available()[0].name().into());
    TEXT.with_borrow(String::len)
}

/// Where the text lies.
#[unsafe(no_mangle)]
pub extern "C" fn text() -> *const u8 {
    TEXT.with_borrow(|text| text.as_ptr())
}

/// True where several threads are asked for and one does the work, and where no key comes of the system.
#[unsafe(no_mangle)]
pub extern "C" fn refuses_what_a_host_lacks() -> bool {
    let (key, mut out) = (Key::from_bytes([1; 32]), [0u16; 100_000]);
    let window = Window::new(16, 1, 0.5, None).expect("a window");
    let x = vec![3u16; out.len()];
    let call = Call { threads: Some(2), ..Call::new(None, Input::U16(&x), Output::U16(&mut out), &key) };
    window.randomize(call).is_ok() && Key::from_os() == Err(Error::Entropy)
}

/// Channels with inputs and room for reports.
struct Timed {
    bits: Bits,
    codec: FixedPoint,
    response: Window,
    numbers: Window,
    grid: Grid,
    real: Vec<f32>,
    categories: Vec<u16>,
    codes: Vec<u16>,
    packed: Vec<u8>,
}

impl Timed {
    fn new() -> Timed {
        let high = Probability::from_numerator(0xB000_0000_0000_0001).expect("a probability");
        let law = vec![Bit { p: high, q: high.complement() }; 10];
        Timed {
            bits: Bits::new(vec![law], 64, None).expect("bits"),
            codec: FixedPoint::new(10, 4, SignBit::OneIfNonNegative, Infinities::Refuse).expect("a codec"),
            response: Window::from_probability(16, 1, high, None).expect("a window"),
            numbers: Window::from_probability(254, 96, high, None).expect("a window"),
            grid: Grid::new(254, -1.6, 1.6, GridRounding::Dither, true).expect("a grid"),
            real: (0..TIMED).map(|i| (i * 7919 % 2003) as f32 / 1001.0 - 1.0).collect(),
            categories: (0..TIMED).map(|i| (i * 7919 % 16) as u16).collect(),
            codes: vec![0; TIMED],
            packed: vec![0; 2 * TIMED],
        }
    }

    /// Randomizes all values once.
    fn run(&mut self, channel: u32, packed: bool, seed: u8) {
        let key = &Key::from_bytes([seed; 32]);
        let bits = [10, 4, 8][channel as usize];
        let output = match packed {
            true => Output::Packed(&mut self.packed[..TIMED * bits / 8]),
            false => Output::U16(&mut self.codes),
        };
        let (real, categories) = (Input::F32(&self.real), Input::U16(&self.categories));
        match channel {
            0 => self.bits.randomize(Call::new(Some(&self.codec), real, output, key)),
            1 => self.response.randomize(Call::new(None, categories, output, key)),
            _ => self.numbers.randomize(Call::new(Some(&self.grid), real, output, key)),
        }
        .expect("a call that fits");
    }
}

/// Randomizes so many values: of f-RR (0), randomized response (1) or numbers on a grid (2).
#[unsafe(no_mangle)]
pub extern "C" fn timed(channel: u32, packed: u32, seed: u32) -> usize {
    TIMES.with_borrow_mut(|timed| timed.get_or_insert_with(Timed::new).run(channel, packed != 0, seed as u8));
    TIMED
}
