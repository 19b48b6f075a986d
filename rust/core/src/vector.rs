//! Registers: what a kernel that is written once needs of an instruction set.
//!
//! A register exists only where the processor has its instructions: the first one comes from [`compiled`](crate::isa::compiled),
//! which asks for an [`Isa`](crate::isa::Isa), and all others are made from one that exists. So a kernel is safe code, but
//! for its own addresses. Each file of an instruction set says which instruction does what.

#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) mod wasm;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

/// Bits side by side, as words of 32 or of 64 bits. No operation looks across those words.
///
/// Kernels, and all that they call with registers, are marked `#[inline(always)]`, so that they are compiled for the
/// instruction set.
pub(crate) trait Vector: Copy {
    /// Bytes of a register.
    const BYTES: usize;
    /// Words of 32 bits.
    const LANES: usize = Self::BYTES / 4;
    /// True where twice sixteen registers can be worked on without leaving the register file.
    const TWICE: bool = false;

    /// The bytes at `from`, the lowest of a word first; no alignment is needed.
    ///
    /// # Safety
    /// [`BYTES`](Self::BYTES) bytes are readable.
    unsafe fn read(self, from: *const u8) -> Self;
    /// Writes the bytes to `to`, the lowest of a word first; no alignment is needed.
    ///
    /// # Safety
    /// [`BYTES`](Self::BYTES) bytes are writable.
    unsafe fn write(self, to: *mut u8);

    /// `word` everywhere.
    fn repeat_32(self, word: u32) -> Self;
    /// `word` everywhere.
    fn repeat_64(self, word: u64) -> Self;

    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// Sums of the words of 32 bits, modulo 2^32.
    fn plus_32(self, other: Self) -> Self;
    /// Sums of the words of 64 bits, modulo 2^64.
    fn plus_64(self, other: Self) -> Self;
    /// The words of 32 bits shifted to the right.
    fn right_32<const BY: i32>(self) -> Self;
    /// The words of 32 bits rotated to the right by `BY`; `REST` is what is left of 32.
    fn rotate_32<const BY: i32, const REST: i32>(self) -> Self;
    /// The words of 64 bits shifted to the left.
    fn left_64(self, by: u32) -> Self;
    /// The words of 64 bits shifted to the right.
    fn right_64(self, by: u32) -> Self;
    /// How many bits of each byte are 1.
    fn ones_of_bytes(self) -> Self;

    /// The bits of `yes` where this mask has ones, and of `no` elsewhere.
    #[inline(always)]
    fn select(self, yes: Self, no: Self) -> Self {
        no.xor(self.and(yes.xor(no)))
    }

    /// The sum of three bits at each position: its low and its high bit.
    #[inline(always)]
    fn sum(self, b: Self, c: Self) -> (Self, Self) {
        let differ = self.xor(b);
        (differ.xor(c), self.and(b).or(differ.and(c)))
    }

    /// True where a bit is 1.
    #[inline(always)]
    fn any(self) -> bool {
        let mut words = [0; 16];
        self.store(&mut words);
        words != [0; 16]
    }

    /// The first words of `from`, which has as many as a register.
    #[inline(always)]
    fn load(self, from: &[u32]) -> Self {
        assert!(from.len() >= Self::LANES);
        // SAFETY: as many words as a register holds, in the order of bytes of every vector unit here.
        unsafe { self.read(from.as_ptr().cast()) }
    }

    /// Writes to the first words of `to`, which has room for a register.
    #[inline(always)]
    fn store(self, to: &mut [u32]) {
        assert!(to.len() >= Self::LANES);
        // SAFETY: as above.
        unsafe { self.write(to.as_mut_ptr().cast()) }
    }
}

/// Four words, in plain Rust: the path of a processor without kernels of its own.
#[derive(Clone, Copy, Default)]
pub(crate) struct Portable([u32; 4]);

impl Portable {
    /// Word by word of 64 bits.
    #[inline(always)]
    fn longs(self, mut work: impl FnMut(u64) -> u64) -> Portable {
        let [a, b, c, d] = self.0;
        let [x, y] = [[a, b], [c, d]].map(|[low, high]| work(u64::from(high) << 32 | u64::from(low)));
        Portable([x as u32, (x >> 32) as u32, y as u32, (y >> 32) as u32])
    }
}

/// Work that is written once and compiled for each instruction set.
pub(crate) trait Kernel {
    /// The result.
    type Answer;
    /// True where registers that are kept in memory for a while are to be aligned, which takes a nanosecond a call.
    #[cfg_attr(target_family = "wasm", allow(dead_code, reason = "there is no such thing"))]
    const ALIGNED: bool = true;
    /// The work. `any` is a register of the instruction set, of which the others are made. An implementation is marked
    /// `#[inline(always)]`.
    fn run<V: Vector>(self, any: V) -> Self::Answer;
}

#[cfg(test)]
impl Portable {
    /// The first word of 64 bits.
    pub(crate) fn first(self) -> u64 {
        u64::from(self.0[1]) << 32 | u64::from(self.0[0])
    }
}

/// The operations that go word by word of 32 bits.
macro_rules! word_by_word {
    ($($operation:ident($own:ident, $other:ident) => $result:expr;)*) => {$(
        #[inline(always)]
        fn $operation(self, other: Portable) -> Portable {
            Portable(std::array::from_fn(|lane| {
                let ($own, $other) = (self.0[lane], other.0[lane]);
                $result
            }))
        }
    )*};
}

impl Vector for Portable {
    const BYTES: usize = 16;

    word_by_word! {
        and(a, b) => a & b;
        or(a, b) => a | b;
        xor(a, b) => a ^ b;
        plus_32(a, b) => a.wrapping_add(b);
    }

    #[inline(always)]
    unsafe fn read(self, from: *const u8) -> Portable {
        // SAFETY: the caller's sixteen bytes.
        Portable(unsafe { from.cast::<[[u8; 4]; 4]>().read() }.map(u32::from_le_bytes))
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut u8) {
        // SAFETY: the caller's sixteen bytes.
        unsafe { to.cast::<[[u8; 4]; 4]>().write(self.0.map(u32::to_le_bytes)) }
    }

    #[inline(always)]
    fn load(self, from: &[u32]) -> Portable {
        Portable(*from.first_chunk().expect("as many words as a register"))
    }

    #[inline(always)]
    fn store(self, to: &mut [u32]) {
        *to.first_chunk_mut().expect("room for a register") = self.0;
    }

    #[inline(always)]
    fn repeat_32(self, word: u32) -> Portable {
        Portable([word; 4])
    }

    #[inline(always)]
    fn repeat_64(self, word: u64) -> Portable {
        self.longs(|_| word)
    }

    #[inline(always)]
    fn plus_64(self, other: Portable) -> Portable {
        let mut others =
            other.0.as_chunks::<2>().0.iter().map(|[low, high]| u64::from(*high) << 32 | u64::from(*low));
        self.longs(|word| word.wrapping_add(others.next().unwrap_or(0)))
    }

    #[inline(always)]
    fn right_32<const BY: i32>(self) -> Portable {
        Portable(self.0.map(|word| word >> BY))
    }

    #[inline(always)]
    fn rotate_32<const BY: i32, const REST: i32>(self) -> Portable {
        Portable(self.0.map(|word| word.rotate_right(BY as u32)))
    }

    #[inline(always)]
    fn left_64(self, by: u32) -> Portable {
        self.longs(|word| word << by)
    }

    #[inline(always)]
    fn right_64(self, by: u32) -> Portable {
        self.longs(|word| word >> by)
    }

    #[inline(always)]
    fn ones_of_bytes(self) -> Portable {
        const BYTES: u32 = u32::MAX / 0xff;
        Portable(self.0.map(|word| {
            let twos = word - (word >> 1 & (0x55 * BYTES));
            let fours = (twos & (0x33 * BYTES)) + (twos >> 2 & (0x33 * BYTES));
            (fours + (fours >> 4)) & (0x0f * BYTES)
        }))
    }
}
