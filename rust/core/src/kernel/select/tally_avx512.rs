//! [`Tally::nth`](super::tally::Tally::nth) with AVX-512: the compiler leaves it one number at a time.

use std::arch::x86_64::*;

use super::split::SMALL;

macro_rules! nth {
    ($name:ident, $bits:ident, $one:ident, $at_most:ident, $larger:ident, $largest:ident) => {
        /// The largest of the numbers that have at most `rank` smaller ones.
        #[target_feature(enable = "avx512f")]
        pub(super) fn $name(numbers: &[$bits; SMALL], smaller: &[$bits; SMALL], rank: $bits) -> $bits {
            const LANES: usize = 64 / size_of::<$bits>();
            let (rank, mut largest) = ($one(rank as _), _mm512_setzero_si512());
            for at in (0..SMALL).step_by(LANES) {
                // SAFETY: 64 bytes of each, as `at` is a multiple of the lanes.
                let (number, smaller) = unsafe {
                    (
                        _mm512_loadu_si512(numbers.as_ptr().add(at).cast()),
                        _mm512_loadu_si512(smaller.as_ptr().add(at).cast()),
                    )
                };
                largest = $larger(largest, $at_most(smaller, rank), largest, number);
            }
            $largest(largest)
        }
    };
}
nth!(nth_32, u32, _mm512_set1_epi32, _mm512_cmple_epu32_mask, _mm512_mask_max_epu32, _mm512_reduce_max_epu32);
nth!(nth_64, u64, _mm512_set1_epi64, _mm512_cmple_epu64_mask, _mm512_mask_max_epu64, _mm512_reduce_max_epu64);
