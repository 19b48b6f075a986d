//! ChaCha20, sixteen blocks at a time: one pass is one group.

use std::arch::x86_64::*;

use super::{BLOCKS, GROUP, Key, scalar};

/// Four quarter rounds, step by step side by side, so that the processor always has independent work.
macro_rules! quarter_rounds {
    ($s:ident, $(($a:expr, $b:expr, $c:expr, $d:expr)),*) => {
        $( $s[$a] = _mm512_add_epi32($s[$a], $s[$b]); )*
        $( $s[$d] = _mm512_rol_epi32::<16>(_mm512_xor_si512($s[$d], $s[$a])); )*
        $( $s[$c] = _mm512_add_epi32($s[$c], $s[$d]); )*
        $( $s[$b] = _mm512_rol_epi32::<12>(_mm512_xor_si512($s[$b], $s[$c])); )*
        $( $s[$a] = _mm512_add_epi32($s[$a], $s[$b]); )*
        $( $s[$d] = _mm512_rol_epi32::<8>(_mm512_xor_si512($s[$d], $s[$a])); )*
        $( $s[$c] = _mm512_add_epi32($s[$c], $s[$d]); )*
        $( $s[$b] = _mm512_rol_epi32::<7>(_mm512_xor_si512($s[$b], $s[$c])); )*
    };
}

/// Fills `out` with whole groups from `group` on.
#[target_feature(enable = "avx512f")]
pub(super) fn fill(key: &Key, nonce: u64, group: u64, out: &mut [u8]) {
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (g, out) in (group..).zip(out.chunks_exact_mut(GROUP)) {
        // The counter is a multiple of 16: adding the lane to its low word never carries.
        let counter = g.wrapping_mul(BLOCKS as u64);
        let mut initial = scalar::initial(key, counter, nonce).map(|word| _mm512_set1_epi32(word as i32));
        initial[12] = _mm512_add_epi32(initial[12], lanes);
        let mut s = initial;
        for _ in 0..10 {
            quarter_rounds!(s, (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15));
            quarter_rounds!(s, (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14));
        }
        for w in 0..16 {
            let out = &mut out[w * BLOCKS * 4..][..BLOCKS * 4];
            // SAFETY: `out` is 64 writable bytes, and the store asks for no alignment.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), _mm512_add_epi32(s[w], initial[w])) };
        }
    }
}
