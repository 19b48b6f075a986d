//! The last steps of the transform within vector registers: a lane meets the one 8, 4, 2 and 1 positions away.

use std::arch::x86_64::*;

use safe_unaligned_simd::x86_64::{_mm256_loadu_ps, _mm256_storeu_ps, _mm512_loadu_ps, _mm512_storeu_ps};

/// Sixteen neighbours at a time.
#[target_feature(enable = "avx512f")]
pub(super) fn near_512(block: &mut [[f32; 16]]) {
    /// The sum where the position has a 0 at the distance's bit, the other less itself where it has a 1.
    macro_rules! meet {
        ($own:ident, $other:expr, $upper:literal) => {{
            let other = $other;
            _mm512_mask_sub_ps(_mm512_add_ps($own, other), $upper, other, $own)
        }};
    }
    for run in block {
        let own = _mm512_loadu_ps(run);
        let own = meet!(own, _mm512_shuffle_f32x4::<0b01_00_11_10>(own, own), 0xff00);
        let own = meet!(own, _mm512_shuffle_f32x4::<0b10_11_00_01>(own, own), 0xf0f0);
        let own = meet!(own, _mm512_permute_ps::<0b01_00_11_10>(own), 0xcccc);
        let own = meet!(own, _mm512_permute_ps::<0b10_11_00_01>(own), 0xaaaa);
        _mm512_storeu_ps(run, own);
    }
}

/// The same, eight lanes a register.
#[target_feature(enable = "avx2")]
pub(super) fn near_256(block: &mut [[f32; 16]]) {
    macro_rules! meet {
        ($own:ident, $other:expr, $upper:literal) => {{
            let other = $other;
            _mm256_blend_ps::<$upper>(_mm256_add_ps($own, other), _mm256_sub_ps(other, $own))
        }};
    }
    for run in block {
        let halves = run.as_chunks_mut::<8>().0;
        let (low, high) = (_mm256_loadu_ps(&halves[0]), _mm256_loadu_ps(&halves[1]));
        for (half, own) in halves.iter_mut().zip([_mm256_add_ps(low, high), _mm256_sub_ps(low, high)]) {
            let own = meet!(own, _mm256_permute2f128_ps::<1>(own, own), 0xf0);
            let own = meet!(own, _mm256_permute_ps::<0b01_00_11_10>(own), 0xcc);
            let own = meet!(own, _mm256_permute_ps::<0b10_11_00_01>(own), 0xaa);
            _mm256_storeu_ps(half, own);
        }
    }
}
