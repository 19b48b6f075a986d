//! A register of bits: what counting needs of an instruction set.
//!
//! Each file of an instruction set only says which instruction does it; the kernel is written once.

/// Bits side by side. No operation looks across the 64-bit lanes of a register.
///
/// # Safety
/// Every operation needs a processor with the type's instruction set, and must be inlined into a function that is compiled
/// for it.
pub(super) trait Vector: Copy {
    /// Bytes of a register.
    const BYTES: usize;

    /// The bytes at `from`, which are readable; no alignment is needed.
    unsafe fn load(from: *const u8) -> Self;
    /// Writes the bytes to `to`, which are writable; no alignment is needed.
    unsafe fn store(self, to: *mut u8);
    /// `word` in every 64-bit lane.
    unsafe fn repeat(word: u64) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    unsafe fn or(self, other: Self) -> Self;
    /// Sums of the 64-bit lanes.
    unsafe fn plus(self, other: Self) -> Self;
    /// The 64-bit lanes shifted to the left.
    unsafe fn left(self, by: u32) -> Self;
    /// The 64-bit lanes shifted to the right.
    unsafe fn right(self, by: u32) -> Self;
    /// The bits of `yes` where this mask has ones, and of `no` elsewhere.
    unsafe fn select(self, yes: Self, no: Self) -> Self;
    /// The sum of three bits at each place: its low and its high bit.
    unsafe fn sum(self, b: Self, c: Self) -> (Self, Self);
    /// How many bits of each byte are 1.
    unsafe fn ones_of_bytes(self) -> Self;
}

/// Portable: the path of a processor without kernels of its own.
impl Vector for u64 {
    const BYTES: usize = 8;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> u64 {
        // SAFETY: the caller's eight bytes.
        u64::from_le_bytes(unsafe { from.cast::<[u8; 8]>().read() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's eight bytes.
        unsafe { to.cast::<[u8; 8]>().write(self.to_le_bytes()) }
    }

    #[inline(always)]
    unsafe fn repeat(word: u64) -> u64 {
        word
    }

    #[inline(always)]
    unsafe fn and(self, other: u64) -> u64 {
        self & other
    }

    #[inline(always)]
    unsafe fn or(self, other: u64) -> u64 {
        self | other
    }

    #[inline(always)]
    unsafe fn plus(self, other: u64) -> u64 {
        self.wrapping_add(other)
    }

    #[inline(always)]
    unsafe fn left(self, by: u32) -> u64 {
        self << by
    }

    #[inline(always)]
    unsafe fn right(self, by: u32) -> u64 {
        self >> by
    }

    #[inline(always)]
    unsafe fn select(self, yes: u64, no: u64) -> u64 {
        (self & yes) | (!self & no)
    }

    #[inline(always)]
    unsafe fn sum(self, b: u64, c: u64) -> (u64, u64) {
        let differ = self ^ b;
        (differ ^ c, (self & b) | (differ & c))
    }

    #[inline(always)]
    unsafe fn ones_of_bytes(self) -> u64 {
        const BYTES: u64 = u64::MAX / 0xff;
        let twos = self - (self >> 1 & (0x55 * BYTES));
        let fours = (twos & (0x33 * BYTES)) + (twos >> 2 & (0x33 * BYTES));
        (fours + (fours >> 4)) & (0x0f * BYTES)
    }
}
