//! Registers of AVX2 and AVX-512.

use std::arch::x86_64::*;

use super::Kernel;
use super::Vector;

/// A register of AVX2: it exists only where the processor has that.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(__m256i);

/// A register of AVX-512 F and BW: it exists only where the processor has them.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512i);

/// Compiles a kernel with AVX2.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn on_avx2<K: Kernel>(kernel: K) -> K::Answer {
    kernel.run(Avx2(_mm256_setzero_si256()))
}

/// Compiles a kernel with AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn on_avx512<K: Kernel>(kernel: K) -> K::Answer {
    kernel.run(Avx512(_mm512_setzero_si512()))
}

/// The operations that are one instruction, or a few, of the operands' registers.
macro_rules! operations {
    ($register:ident: $($operation:ident($own:ident $(, $other:ident)*) => $result:expr;)*) => {$(
        #[inline(always)]
        fn $operation(self, $($other: $register),*) -> $register {
            let ($own, $($other),*) = (self.0, $($other.0),*);
            // SAFETY: there are registers, and so the processor has the instructions.
            $register(unsafe { $result })
        }
    )*};
}

/// What all registers of x86-64 do by instructions of the same kind.
macro_rules! same_kind {
    ($register:ident, $load:ident, $store:ident, $repeat_32:ident, $repeat_64:ident, $left:ident, $right:ident) => {
        #[inline(always)]
        unsafe fn read(self, from: *const u8) -> $register {
            // SAFETY: the caller's bytes; there is a register, and so the processor has the instruction.
            $register(unsafe { $load(from.cast()) })
        }

        #[inline(always)]
        unsafe fn write(self, to: *mut u8) {
            // SAFETY: as above.
            unsafe { $store(to.cast(), self.0) }
        }

        #[inline(always)]
        fn repeat_32(self, word: u32) -> $register {
            // SAFETY: there is a register, and so the processor has the instruction.
            $register(unsafe { $repeat_32(word as i32) })
        }

        #[inline(always)]
        fn repeat_64(self, word: u64) -> $register {
            // SAFETY: as above.
            $register(unsafe { $repeat_64(word as i64) })
        }

        #[inline(always)]
        fn left_64(self, by: u32) -> $register {
            // SAFETY: as above.
            $register(unsafe { $left(self.0, _mm_cvtsi32_si128(by as i32)) })
        }

        #[inline(always)]
        fn right_64(self, by: u32) -> $register {
            // SAFETY: as above.
            $register(unsafe { $right(self.0, _mm_cvtsi32_si128(by as i32)) })
        }
    };
}

/// How many bits of 0, 1, …, 15 are 1, a byte each.
const ONES: [i64; 2] = [0x0302_0201_0201_0100, 0x0403_0302_0302_0201];

impl Vector for Avx2 {
    const BYTES: usize = 32;

    same_kind!(
        Avx2,
        _mm256_loadu_si256,
        _mm256_storeu_si256,
        _mm256_set1_epi32,
        _mm256_set1_epi64x,
        _mm256_sll_epi64,
        _mm256_srl_epi64
    );
    operations! { Avx2:
        and(a, b) => _mm256_and_si256(a, b);
        or(a, b) => _mm256_or_si256(a, b);
        xor(a, b) => _mm256_xor_si256(a, b);
        plus_32(a, b) => _mm256_add_epi32(a, b);
        plus_64(a, b) => _mm256_add_epi64(a, b);
        select(mask, yes, no) => _mm256_or_si256(_mm256_and_si256(mask, yes), _mm256_andnot_si256(mask, no));
        ones_of_bytes(bytes) => {
            let ones = _mm256_set1_epi64x(ONES[0]);
            let ones = _mm256_blend_epi32::<0b1100_1100>(ones, _mm256_set1_epi64x(ONES[1]));
            let half = _mm256_set1_epi8(0x0f);
            let low = _mm256_shuffle_epi8(ones, _mm256_and_si256(bytes, half));
            let high = _mm256_shuffle_epi8(ones, _mm256_and_si256(_mm256_srli_epi64::<4>(bytes), half));
            _mm256_add_epi8(low, high)
        };
    }

    #[inline(always)]
    fn right_32<const BY: i32>(self) -> Avx2 {
        // SAFETY: there is a register, and so the processor has the instruction.
        Avx2(unsafe { _mm256_srli_epi32::<BY>(self.0) })
    }

    /// A rotation by whole bytes is one shuffle.
    #[inline(always)]
    fn rotate_32<const BY: i32, const REST: i32>(self) -> Avx2 {
        const { assert!(BY + REST == 32) };
        let bytes: [i64; 2] = match BY {
            8 => [0x0407_0605_0003_0201, 0x0c0f_0e0d_080b_0a09],
            16 => [0x0504_0706_0100_0302, 0x0d0c_0f0e_0908_0b0a],
            24 => [0x0605_0407_0201_0003, 0x0e0d_0c0f_0a09_080b],
            _ => [0; 2],
        };
        // SAFETY: there is a register, and so the processor has the instructions.
        Avx2(unsafe {
            if BY % 8 == 0 {
                _mm256_shuffle_epi8(self.0, _mm256_set_epi64x(bytes[1], bytes[0], bytes[1], bytes[0]))
            } else {
                _mm256_or_si256(_mm256_srli_epi32::<BY>(self.0), _mm256_slli_epi32::<REST>(self.0))
            }
        })
    }
}

impl Vector for Avx512 {
    const BYTES: usize = 64;
    const TWICE: bool = true;

    same_kind!(
        Avx512,
        _mm512_loadu_si512,
        _mm512_storeu_si512,
        _mm512_set1_epi32,
        _mm512_set1_epi64,
        _mm512_sll_epi64,
        _mm512_srl_epi64
    );
    operations! { Avx512:
        and(a, b) => _mm512_and_si512(a, b);
        or(a, b) => _mm512_or_si512(a, b);
        xor(a, b) => _mm512_xor_si512(a, b);
        plus_32(a, b) => _mm512_add_epi32(a, b);
        plus_64(a, b) => _mm512_add_epi64(a, b);
        select(mask, yes, no) => _mm512_ternarylogic_epi64::<0xCA>(mask, yes, no);
        ones_of_bytes(bytes) => {
            let ones = _mm512_set4_epi64(ONES[1], ONES[0], ONES[1], ONES[0]);
            let half = _mm512_set1_epi8(0x0f);
            let low = _mm512_shuffle_epi8(ones, _mm512_and_si512(bytes, half));
            let high = _mm512_shuffle_epi8(ones, _mm512_and_si512(_mm512_srli_epi64::<4>(bytes), half));
            _mm512_add_epi8(low, high)
        };
    }

    #[inline(always)]
    fn sum(self, b: Avx512, c: Avx512) -> (Avx512, Avx512) {
        // SAFETY: there are registers, and so the processor has the instructions. Truth tables of a ^ b ^ c and of the
        // majority.
        unsafe {
            let low = _mm512_ternarylogic_epi64::<0x96>(self.0, b.0, c.0);
            (Avx512(low), Avx512(_mm512_ternarylogic_epi64::<0xE8>(self.0, b.0, c.0)))
        }
    }

    #[inline(always)]
    fn right_32<const BY: i32>(self) -> Avx512 {
        // SAFETY: as above.
        Avx512(unsafe { _mm512_srlv_epi32(self.0, _mm512_set1_epi32(BY)) })
    }

    #[inline(always)]
    fn rotate_32<const BY: i32, const REST: i32>(self) -> Avx512 {
        const { assert!(BY + REST == 32) };
        // SAFETY: as above.
        Avx512(unsafe { _mm512_ror_epi32::<BY>(self.0) })
    }
}
