//! Registers of AVX2 and AVX-512.

use std::arch::x86_64::*;

use super::vector::Vector;

/// How many bits of 0, 1, …, 15 are 1, a byte each.
const ONES: [i64; 2] = [0x0302_0201_0201_0100, 0x0403_0302_0302_0201];

/// The instructions of one register type; `$sum` are the operations that differ by more than their names.
macro_rules! vector {
    ($register:ty, $bytes:literal, $load:ident, $store:ident, $repeat:ident, $and:ident, $or:ident, $plus:ident, $left:ident,
     $right:ident, { $($own:item)* }) => {
        impl Vector for $register {
            const BYTES: usize = $bytes;

            #[inline(always)]
            unsafe fn load(from: *const u8) -> $register {
                // SAFETY: the caller's bytes and processor.
                unsafe { $load(from.cast()) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u8) {
                // SAFETY: the caller's bytes and processor.
                unsafe { $store(to.cast(), self) }
            }

            #[inline(always)]
            unsafe fn repeat(word: u64) -> $register {
                // SAFETY: the caller's processor.
                unsafe { $repeat(word as i64) }
            }

            #[inline(always)]
            unsafe fn and(self, other: $register) -> $register {
                // SAFETY: the caller's processor.
                unsafe { $and(self, other) }
            }

            #[inline(always)]
            unsafe fn or(self, other: $register) -> $register {
                // SAFETY: the caller's processor.
                unsafe { $or(self, other) }
            }

            #[inline(always)]
            unsafe fn plus(self, other: $register) -> $register {
                // SAFETY: the caller's processor.
                unsafe { $plus(self, other) }
            }

            #[inline(always)]
            unsafe fn left(self, by: u32) -> $register {
                // SAFETY: the caller's processor.
                unsafe { $left(self, _mm_cvtsi32_si128(by as i32)) }
            }

            #[inline(always)]
            unsafe fn right(self, by: u32) -> $register {
                // SAFETY: the caller's processor.
                unsafe { $right(self, _mm_cvtsi32_si128(by as i32)) }
            }

            $($own)*
        }
    };
}

vector!(
    __m256i,
    32,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_set1_epi64x,
    _mm256_and_si256,
    _mm256_or_si256,
    _mm256_add_epi64,
    _mm256_sll_epi64,
    _mm256_srl_epi64,
    {
        #[inline(always)]
        unsafe fn select(self, yes: __m256i, no: __m256i) -> __m256i {
            // SAFETY: the caller's processor.
            unsafe { _mm256_or_si256(_mm256_and_si256(self, yes), _mm256_andnot_si256(self, no)) }
        }

        #[inline(always)]
        unsafe fn sum(self, b: __m256i, c: __m256i) -> (__m256i, __m256i) {
            // SAFETY: the caller's processor.
            unsafe {
                let differ = _mm256_xor_si256(self, b);
                let carry = _mm256_or_si256(_mm256_and_si256(self, b), _mm256_and_si256(differ, c));
                (_mm256_xor_si256(differ, c), carry)
            }
        }

        #[inline(always)]
        unsafe fn ones_of_bytes(self) -> __m256i {
            // SAFETY: the caller's processor.
            unsafe {
                let ones = _mm256_set1_epi64x(ONES[0]);
                let ones = _mm256_blend_epi32::<0b1100_1100>(ones, _mm256_set1_epi64x(ONES[1]));
                let half = _mm256_set1_epi8(0x0f);
                let low = _mm256_shuffle_epi8(ones, _mm256_and_si256(self, half));
                let high = _mm256_shuffle_epi8(ones, _mm256_and_si256(_mm256_srli_epi64::<4>(self), half));
                _mm256_add_epi8(low, high)
            }
        }
    }
);

vector!(
    __m512i,
    64,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_set1_epi64,
    _mm512_and_si512,
    _mm512_or_si512,
    _mm512_add_epi64,
    _mm512_sll_epi64,
    _mm512_srl_epi64,
    {
        #[inline(always)]
        unsafe fn select(self, yes: __m512i, no: __m512i) -> __m512i {
            // SAFETY: the caller's processor. Truth table of (self & yes) | (!self & no).
            unsafe { _mm512_ternarylogic_epi64::<0xCA>(self, yes, no) }
        }

        #[inline(always)]
        unsafe fn sum(self, b: __m512i, c: __m512i) -> (__m512i, __m512i) {
            // SAFETY: the caller's processor. Truth tables of a ^ b ^ c and of the majority.
            unsafe {
                let low = _mm512_ternarylogic_epi64::<0x96>(self, b, c);
                (low, _mm512_ternarylogic_epi64::<0xE8>(self, b, c))
            }
        }

        #[inline(always)]
        unsafe fn ones_of_bytes(self) -> __m512i {
            // SAFETY: the caller's processor.
            unsafe {
                let ones = _mm512_set4_epi64(ONES[1], ONES[0], ONES[1], ONES[0]);
                let half = _mm512_set1_epi8(0x0f);
                let low = _mm512_shuffle_epi8(ones, _mm512_and_si512(self, half));
                let high = _mm512_shuffle_epi8(ones, _mm512_and_si512(_mm512_srli_epi64::<4>(self), half));
                _mm512_add_epi8(low, high)
            }
        }
    }
);
