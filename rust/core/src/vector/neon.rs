//! Registers of NEON.

use std::arch::aarch64::*;

use super::Kernel;
use super::Vector;

/// A register of NEON: it exists only where the processor has that.
#[derive(Clone, Copy)]
pub(crate) struct Neon(uint32x4_t);

/// Compiles a kernel with NEON.
#[target_feature(enable = "neon")]
pub(crate) fn on_neon<K: Kernel>(kernel: K) -> K::Answer {
    kernel.run(Neon(vdupq_n_u32(0)))
}

/// The operations that are one instruction, or a few, of the operands' registers and numbers.
macro_rules! operations {
    ($($operation:ident($own:ident $(, $other:ident)* $(; $number:ident: $type:ty)?) => $result:expr;)*) => {$(
        #[inline(always)]
        fn $operation(self, $($other: Neon),* $($number: $type)?) -> Neon {
            let ($own, $($other),*) = (self.0, $($other.0),*);
            // SAFETY: there are registers, and so the processor has the instructions.
            Neon(unsafe { $result })
        }
    )*};
}

impl Vector for Neon {
    const BYTES: usize = 16;

    operations! {
        repeat_32(_own; word: u32) => vdupq_n_u32(word);
        repeat_64(_own; word: u64) => vreinterpretq_u32_u64(vdupq_n_u64(word));
        and(a, b) => vandq_u32(a, b);
        or(a, b) => vorrq_u32(a, b);
        xor(a, b) => veorq_u32(a, b);
        plus_32(a, b) => vaddq_u32(a, b);
        plus_64(a, b) => vreinterpretq_u32_u64(vaddq_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
        left_64(a; by: u32) => {
            vreinterpretq_u32_u64(vshlq_u64(vreinterpretq_u64_u32(a), vdupq_n_s64(by.into())))
        };
        right_64(a; by: u32) => {
            vreinterpretq_u32_u64(vshlq_u64(vreinterpretq_u64_u32(a), vdupq_n_s64(-i64::from(by))))
        };
        select(mask, yes, no) => vbslq_u32(mask, yes, no);
        ones_of_bytes(bytes) => vreinterpretq_u32_u8(vcntq_u8(vreinterpretq_u8_u32(bytes)));
    }

    #[inline(always)]
    unsafe fn read(self, from: *const u8) -> Neon {
        // SAFETY: the caller's bytes; there is a register, and so the processor has the instruction.
        Neon(unsafe { vreinterpretq_u32_u8(vld1q_u8(from)) })
    }

    #[inline(always)]
    unsafe fn write(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe { vst1q_u8(to, vreinterpretq_u8_u32(self.0)) }
    }

    #[inline(always)]
    fn sum(self, b: Neon, c: Neon) -> (Neon, Neon) {
        // Where the first two differ the third decides, and elsewhere either of them.
        let differ = self.xor(b);
        (differ.xor(c), differ.select(c, b))
    }

    #[inline(always)]
    fn right_32<const BY: i32>(self) -> Neon {
        // SAFETY: there is a register, and so the processor has the instruction.
        Neon(unsafe { vshrq_n_u32::<BY>(self.0) })
    }

    /// A rotation by half a word exchanges its halves, one by a byte is a look-up, any other shifts to the right and inserts
    /// what is shifted to the left.
    #[inline(always)]
    fn rotate_32<const BY: i32, const REST: i32>(self) -> Neon {
        const { assert!(BY + REST == 32) };
        // The byte of a word that comes to each position.
        let bytes: [u8; 16] = std::array::from_fn(|i| (i / 4 * 4 + (i + BY as usize / 8) % 4) as u8);
        // SAFETY: there is a register, and so the processor has the instructions; 16 bytes.
        Neon(unsafe {
            match BY {
                16 => vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(self.0))),
                8 | 24 => {
                    vreinterpretq_u32_u8(vqtbl1q_u8(vreinterpretq_u8_u32(self.0), vld1q_u8(bytes.as_ptr())))
                }
                _ => vsliq_n_u32::<REST>(vshrq_n_u32::<BY>(self.0), self.0),
            }
        })
    }
}
