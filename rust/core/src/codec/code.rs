//! Integers that hold code words.

use super::sealed::Sealed;

/// An unsigned integer that holds a code word: `u8`, `u16` or `u32`.
pub trait Code: Copy + Default + Into<u32> + Send + Sync + Sealed + 'static {
    /// From the low bits of `code`.
    fn narrow(code: u32) -> Self;

    /// As 32 bits.
    fn widen(self) -> u32;
}

macro_rules! code {
    ($($type:ty),*) => {$(
        impl Code for $type {
            #[inline(always)]
            fn narrow(code: u32) -> $type {
                code as $type
            }

            #[inline(always)]
            fn widen(self) -> u32 {
                u32::from(self)
            }
        }
    )*};
}
code!(u8, u16, u32);
