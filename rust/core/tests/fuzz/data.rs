//! The parts of a call, drawn from a seed: numbers, inputs, outputs.

use bitldp_core::{CHUNK, Grid, GridRounding, Input, Key, Output};

/// A stream of choices.
pub struct Data(u64);

impl Data {
    pub fn new(seed: u64) -> Data {
        Data(seed)
    }

    /// 64 bits (SplitMix64).
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound.max(1))) >> 64) as u64
    }

    /// A number below `seldom`, once in `times`, or else below `bound`.
    pub fn size(&mut self, times: u64, seldom: u64, bound: u64) -> u64 {
        let bound = if self.once_in(times) { seldom } else { bound };
        self.below(bound)
    }

    /// Yes, once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of them.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// A number of [0, 1), or an end; once in a thousand what is no probability.
    pub fn chance(&mut self) -> f64 {
        match self.below(1000) {
            0 => self.one_of(&[f64::NAN, -0.1, 1.5, f64::INFINITY]),
            1..50 => self.one_of(&[0.0, 1.0, 0.5, 1e-300]),
            _ => self.word() as f64 / 2f64.powi(64),
        }
    }

    /// A batch's length: short ones mostly, around the sizes of vectors and chunks too.
    pub fn length(&mut self) -> usize {
        let near = self.one_of(&[16, 32, 64, 128, 512, 1024]) + self.below(5) - 2;
        let longer = CHUNK as u64 * self.below(3) + self.below(130);
        let short = self.below(200);
        self.one_of(&[short, short, short, near, near, longer]) as usize
    }

    pub fn key(&mut self) -> Key {
        Key::from_bytes(std::array::from_fn(|_| self.word() as u8))
    }

    /// Chunks at the start of the stream, and at its end.
    pub fn first_chunk(&mut self) -> u64 {
        let some = self.below(9);
        self.one_of(&[0, 0, 0, some, (1 << 56) - some, u64::MAX])
    }

    /// A grid, of as many points as asked for but for now and then.
    pub fn grid(&mut self, points: u32) -> Option<Grid> {
        let points = if self.once_in(9) { points.wrapping_add(1) } else { points };
        let rounding = self.one_of(&[GridRounding::Dither, GridRounding::Nearest]);
        let (low, high) = self.one_of(&[(-1.0, 1.0), (0.0, 1.0), (0.0, 1e6), (-3.0, -1e-3), (1e-308, 1e300)]);
        Grid::new(points, low, high, rounding, !self.once_in(4)).ok()
    }

    /// Letters, of as many as asked for but for now and then.
    pub fn letters(&mut self, count: u64) -> Vec<f64> {
        let count = if self.once_in(9) { count + 1 } else { count };
        (0..count).map(|_| self.word() as f64).collect()
    }

    /// Values of any type: codes below `codes` or numbers, and once in a while something else among them.
    pub fn values(&mut self, length: usize, codes: u64) -> Values {
        let wrong = if self.once_in(4) { 1 + length as u64 } else { u64::MAX };
        macro_rules! codes {
            ($kind:ident) => {
                Values::$kind((0..length).map(|_| self.code(codes, wrong) as _).collect())
            };
        }
        match self.below(8) {
            0 | 1 => codes!(U8),
            2 => codes!(U16),
            3 => codes!(U32),
            4 => match self.below(5) {
                0 => codes!(U64),
                1 => codes!(I8),
                2 => codes!(I16),
                3 => codes!(I32),
                _ => codes!(I64),
            },
            _ => self.numbers(length),
        }
    }

    /// Numbers of either precision, and once in a while something else among them.
    pub fn numbers(&mut self, length: usize) -> Values {
        let wrong = if self.once_in(4) { 1 + length as u64 } else { u64::MAX };
        if self.once_in(2) {
            Values::F32((0..length).map(|_| self.number(wrong) as f32).collect())
        } else {
            Values::F64((0..length).map(|_| self.number(wrong)).collect())
        }
    }

    /// A number below `codes`, and once in `wrong` any.
    fn code(&mut self, codes: u64, wrong: u64) -> u64 {
        if self.below(wrong) == 0 { self.word() } else { self.below(codes) }
    }

    /// A number: most of [-1, 1], some of any size, and once in `wrong` any pattern of bits.
    fn number(&mut self, wrong: u64) -> f64 {
        if self.below(wrong) == 0 {
            return match self.below(4) {
                0 => f64::from_bits(self.word()),
                1 => f32::from_bits(self.word() as u32).into(),
                _ => self.one_of(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-310, -0.0, 1e308]),
            };
        }
        let share = self.word() as i64 as f64 / 2f64.powi(63);
        if self.once_in(8) { share * 2f64.powi(self.below(60) as i32 - 40) } else { share }
    }

    /// Room for reports that are strings: of bits or packed, mostly.
    pub fn strings(&mut self, reports: usize, bits: u32, values: usize) -> Room {
        let total = reports * bits as usize;
        match self.below(4) {
            0 => Room::Bits(vec![7; total]),
            1 => Room::Packed(vec![7; total.div_ceil(8)]),
            _ => self.room(reports, bits, values),
        }
    }

    /// Room for `reports` reports of `bits` bits or `values` numbers, in any form; now and then of another length.
    pub fn room(&mut self, reports: usize, bits: u32, values: usize) -> Room {
        let off = |n: usize, by: u64| if by == 0 { n + 1 } else { n.saturating_sub(usize::from(by == 1)) };
        let by = if self.once_in(4) { self.below(4) } else { 9 };
        let total = reports * bits as usize;
        match self.below(8) {
            0 if bits <= 8 || self.once_in(20) => Room::U8(vec![7; off(reports, by)]),
            1 if bits <= 16 || self.once_in(20) => Room::U16(vec![7; off(reports, by)]),
            0..3 => Room::U32(vec![7; off(reports, by)]),
            3 => Room::Bits(vec![7; off(total, by)]),
            4 | 5 => Room::Packed(vec![7; off(total.div_ceil(8), by)]),
            6 => Room::F32(vec![7.0; off(values, by)]),
            _ => Room::F64(vec![7.0; off(values, by)]),
        }
    }
}

/// Values, owned: each in an allocation of just their length.
pub enum Values {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

macro_rules! lent {
    ($owned:expr, $owner:ident, $lender:ident, $($kind:ident)*) => {
        match $owned { $($owner::$kind(elements) => $lender::$kind(elements),)* }
    };
}

impl Values {
    pub fn input(&self) -> Input<'_> {
        lent!(self, Values, Input, U8 U16 U32 U64 I8 I16 I32 I64 F32 F64)
    }
}

/// Room for an output, owned.
#[derive(Clone)]
pub enum Room {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    Bits(Vec<u8>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Packed(Vec<u8>),
}

impl Room {
    pub fn output(&mut self) -> Output<'_> {
        lent!(self, Room, Output, U8 U16 U32 Bits F32 F64 Packed)
    }

    /// Its elements, bit by bit.
    fn words(&self) -> Vec<u64> {
        match self {
            Room::U8(out) | Room::Bits(out) | Room::Packed(out) => out.iter().map(|&x| x.into()).collect(),
            Room::U16(out) => out.iter().map(|&x| x.into()).collect(),
            Room::U32(out) => out.iter().map(|&x| x.into()).collect(),
            Room::F32(out) => out.iter().map(|x| x.to_bits().into()).collect(),
            Room::F64(out) => out.iter().map(|x| x.to_bits()).collect(),
        }
    }

    pub fn is(&self, other: &Room) -> bool {
        self.words() == other.words()
    }

    pub fn is_zeros(&self) -> bool {
        self.words().iter().all(|&word| word == 0)
    }

    /// True where all code words are below `alphabet`, and all bits below 2; numbers and packed bits always.
    pub fn codes_are_below(&self, alphabet: Option<u64>) -> bool {
        let bound = match self {
            Room::Bits(_) => 2,
            Room::U8(_) | Room::U16(_) | Room::U32(_) => alphabet.unwrap_or(u64::MAX),
            _ => return true,
        };
        self.words().iter().all(|&word| word < bound)
    }
}
