//! Registers of WebAssembly's SIMD.

use std::arch::wasm32::*;

use super::Kernel;
use super::Vector;

/// A register: what was compiled with its instructions runs only where they are.
#[derive(Clone, Copy)]
pub(crate) struct Simd128(v128);

/// Compiles a kernel with SIMD.
#[target_feature(enable = "simd128")]
pub(crate) fn on_simd128<K: Kernel>(kernel: K) -> K::Answer {
    kernel.run(Simd128(u32x4_splat(0)))
}

/// The operations that are one instruction, or a few, of the operands' registers and numbers.
macro_rules! operations {
    ($($operation:ident($own:ident $(, $other:ident)* $(; $number:ident: $type:ty)?) => $result:expr;)*) => {$(
        #[inline(always)]
        fn $operation(self, $($other: Simd128),* $($number: $type)?) -> Simd128 {
            let ($own, $($other),*) = (self.0, $($other.0),*);
            Simd128($result)
        }
    )*};
}

impl Vector for Simd128 {
    const BYTES: usize = 16;

    operations! {
        repeat_32(_own; word: u32) => u32x4_splat(word);
        repeat_64(_own; word: u64) => u64x2_splat(word);
        and(a, b) => v128_and(a, b);
        or(a, b) => v128_or(a, b);
        xor(a, b) => v128_xor(a, b);
        plus_32(a, b) => u32x4_add(a, b);
        plus_64(a, b) => u64x2_add(a, b);
        left_64(a; by: u32) => u64x2_shl(a, by);
        right_64(a; by: u32) => u64x2_shr(a, by);
        select(mask, yes, no) => v128_bitselect(yes, no, mask);
        ones_of_bytes(bytes) => u8x16_popcnt(bytes);
    }

    #[inline(always)]
    unsafe fn read(self, from: *const u8) -> Simd128 {
        // SAFETY: the caller's bytes; no alignment is needed.
        Simd128(unsafe { v128_load(from.cast()) })
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe { v128_store(to.cast(), self.0) }
    }

    #[inline(always)]
    fn sum(self, b: Simd128, c: Simd128) -> (Simd128, Simd128) {
        // Where the first two differ the third decides, and elsewhere either of them.
        let differ = self.xor(b);
        (differ.xor(c), differ.select(c, b))
    }

    #[inline(always)]
    fn any(self) -> bool {
        v128_any_true(self.0)
    }

    #[inline(always)]
    fn right_32<const BY: i32>(self) -> Simd128 {
        Simd128(u32x4_shr(self.0, BY as u32))
    }

    /// A rotation by whole bytes is one shuffle.
    #[inline(always)]
    fn rotate_32<const BY: i32, const REST: i32>(self) -> Simd128 {
        const { assert!(BY + REST == 32) };
        let a = self.0;
        Simd128(match BY {
            8 => u8x16_shuffle::<1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12>(a, a),
            16 => u8x16_shuffle::<2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13>(a, a),
            24 => u8x16_shuffle::<3, 0, 1, 2, 7, 4, 5, 6, 11, 8, 9, 10, 15, 12, 13, 14>(a, a),
            _ => v128_or(u32x4_shr(a, BY as u32), u32x4_shl(a, REST as u32)),
        })
    }
}
