//! Reading a table at 256 places: by address, or whole for every place, so that no address tells which it was.

use super::BLOCK;
use crate::kernel::Isa;

/// `table[index]`; reads all of it where `whole` says so.
pub(super) fn at(table: &[u32], whole: bool, index: u32) -> u32 {
    if !whole {
        return table[index as usize];
    }
    (0..).zip(table).fold(0, |found, (i, &entry)| found | if i == index { entry } else { 0 })
}

/// `out[i] = table[index[i]]`. A table that is read whole has a multiple of 32 entries.
///
/// # Safety
/// Every index is below `table.len()`.
#[inline(always)]
pub(super) unsafe fn look_up(
    isa: Isa,
    table: &[u32],
    whole: bool,
    index: &[u32; BLOCK],
    out: &mut [u32; BLOCK],
) {
    match (whole, isa) {
        // SAFETY: an `Isa` that reaches the kernels was checked against this processor.
        #[cfg(target_arch = "x86_64")]
        (true, Isa::Avx512) => unsafe { whole_avx512(table, index, out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        (true, Isa::Avx2) => unsafe { whole_avx2(table, index, out) },
        (true, _) => {
            for (out, &index) in out.iter_mut().zip(index) {
                *out = at(table, true, index);
            }
        }
        (false, _) => {
            for (out, &index) in out.iter_mut().zip(index) {
                // SAFETY: passed on from the caller.
                *out = unsafe { *table.get_unchecked(index as usize) };
            }
        }
    }
}

/// Two registers of the table at a time, which `vpermt2d` reads at 16 places by the low five bits of the index; kept
/// where the other bits are those of the pair.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn whole_avx512(table: &[u32], index: &[u32; BLOCK], out: &mut [u32; BLOCK]) {
    use std::arch::x86_64::*;
    let pairs = table.as_chunks::<32>().0;
    for (index, out) in index.as_chunks::<16>().0.iter().zip(out.as_chunks_mut::<16>().0) {
        // SAFETY: 16 entries are 64 bytes.
        let index = unsafe { _mm512_loadu_si512(index.as_ptr().cast()) };
        let wanted = _mm512_srli_epi32::<5>(index);
        let mut found = _mm512_setzero_si512();
        for (number, pair) in (0..).zip(pairs) {
            // SAFETY: a pair is twice 64 bytes.
            let (low, high) = unsafe {
                (_mm512_loadu_si512(pair.as_ptr().cast()), _mm512_loadu_si512(pair[16..].as_ptr().cast()))
            };
            let here = _mm512_cmpeq_epi32_mask(wanted, _mm512_set1_epi32(number));
            found = _mm512_mask_mov_epi32(found, here, _mm512_permutex2var_epi32(low, index, high));
        }
        // SAFETY: 16 entries are 64 bytes.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), found) };
    }
}

/// A register of the table at a time, which `vpermd` reads at 8 places by the low three bits of the index; kept where the
/// other bits are those of the register.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn whole_avx2(table: &[u32], index: &[u32; BLOCK], out: &mut [u32; BLOCK]) {
    use std::arch::x86_64::*;
    let eights = table.as_chunks::<8>().0;
    for (index, out) in index.as_chunks::<8>().0.iter().zip(out.as_chunks_mut::<8>().0) {
        // SAFETY: 8 entries are 32 bytes.
        let index = unsafe { _mm256_loadu_si256(index.as_ptr().cast()) };
        let wanted = _mm256_srli_epi32::<3>(index);
        let mut found = _mm256_setzero_si256();
        for (number, eight) in (0..).zip(eights) {
            // SAFETY: 8 entries are 32 bytes.
            let eight = unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) };
            let here = _mm256_cmpeq_epi32(wanted, _mm256_set1_epi32(number));
            found = _mm256_blendv_epi8(found, _mm256_permutevar8x32_epi32(eight, index), here);
        }
        // SAFETY: 8 entries are 32 bytes.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), found) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_reads_the_same() {
        for entries in [32u32, 64, 96, 512, 1024] {
            let table: Vec<u32> = (0..entries).map(|i| i.wrapping_mul(0x9E37_79B9) ^ 7).collect();
            let index: [u32; BLOCK] = std::array::from_fn(|i| (i as u32).wrapping_mul(40_503) % entries);
            let expected = index.map(|i| table[i as usize]);
            for &isa in Isa::available() {
                for whole in [false, true] {
                    let mut out = [0; BLOCK];
                    // SAFETY: the indices are taken modulo the number of entries.
                    unsafe { look_up(isa, &table, whole, &index, &mut out) };
                    assert_eq!(out, expected, "{entries} entries, {isa}, whole: {whole}");
                }
            }
        }
    }
}
