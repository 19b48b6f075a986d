//! Registers of AVX2 and AVX-512.

use std::arch::asm;
use std::arch::x86_64::*;
use std::hint::black_box;
use std::mem::MaybeUninit;

use super::Kernel;
use super::Vector;

/// A register of AVX2: it exists only where the processor has that.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(__m256i);

/// A register of AVX-512 F and BW: it exists only where the processor has them.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512i);

/// Bytes that begin where a register of any kind may.
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "only instructions read them")] [u8; 64]);

impl Line {
    /// Where each byte comes from when words of 32 bits are rotated to the right by some bytes.
    const fn rotation(by: usize) -> Line {
        let mut from = [0; 64];
        let mut i = 0;
        while i < 64 {
            from[i] = (i % 16 / 4 * 4 + (i + by) % 4) as u8;
            i += 1;
        }
        Line(from)
    }
}

/// Compiles a kernel with AVX2, in a frame that is aligned to a line.
///
/// A kernel keeps in its frame the registers that it has too many of. The compiler aligns them only where something else in
/// the frame has to be, and those that lie on two pages are slow: without `aligned`, the keystream took up to three times
/// its time, as chance had it.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn on_avx2<K: Kernel>(kernel: K) -> K::Answer {
    let aligned = MaybeUninit::<Line>::uninit();
    if K::ALIGNED {
        black_box(&aligned);
    }
    kernel.run(Avx2(_mm256_setzero_si256()))
}

/// Compiles a kernel with AVX-512, in such a frame, too.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn on_avx512<K: Kernel>(kernel: K) -> K::Answer {
    let aligned = MaybeUninit::<Line>::uninit();
    if K::ALIGNED {
        black_box(&aligned);
    }
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

/// The operations of all registers of x86-64 that are instructions of the same kind.
macro_rules! same_kind {
    ($register:ident, $load:ident, $store:ident, $repeat_32:ident, $repeat_64:ident, $left:ident, $right:ident,
     $right_32:ident) => {
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
        fn right_32<const BY: i32>(self) -> $register {
            // SAFETY: as above.
            $register(unsafe { $right_32(self.0, _mm_cvtsi32_si128(BY)) })
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
        _mm256_srl_epi64,
        _mm256_srl_epi32
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

    /// A rotation by whole bytes is one shuffle.
    #[inline(always)]
    fn rotate_32<const BY: i32, const REST: i32>(self) -> Avx2 {
        const { assert!(BY + REST == 32) };
        // SAFETY: there is a register, and so the processor has the instructions.
        Avx2(unsafe {
            if BY % 8 == 0 {
                shuffle(self.0, const { &Line::rotation(BY as usize / 8) })
            } else {
                _mm256_or_si256(_mm256_srli_epi32::<BY>(self.0), _mm256_slli_epi32::<REST>(self.0))
            }
        })
    }
}

/// The bytes of `words` that `from` names, half by half.
///
/// The compiler does not know that this is a shuffle. Where it does, it draws the second one of a quarter round through the
/// exclusive or between the two and makes three of them: 16 instructions more in a double round of ChaCha, a tenth of it.
#[inline]
#[target_feature(enable = "avx2")]
fn shuffle(words: __m256i, from: &Line) -> __m256i {
    let shuffled;
    // SAFETY: one instruction of AVX2, which reads the first half of a line.
    unsafe {
        asm!(
            "vpshufb {shuffled}, {words}, ymmword ptr [{from}]",
            shuffled = out(ymm_reg) shuffled,
            words = in(ymm_reg) words,
            from = in(reg) from,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    shuffled
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
        _mm512_srl_epi64,
        _mm512_srl_epi32
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
    fn rotate_32<const BY: i32, const REST: i32>(self) -> Avx512 {
        const { assert!(BY + REST == 32) };
        // SAFETY: as above.
        Avx512(unsafe { _mm512_ror_epi32::<BY>(self.0) })
    }
}
