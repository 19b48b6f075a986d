//! Tables that independent bits are sampled from.
//!
//! Random bits are the scarce thing, so one 16-bit draw serves up to eight bits of a code word: their flips are a product
//! law over at most 256 masks, and an alias table turns `k` bits of index and `16 - k` bits of threshold into one of them.
//! When the threshold bits of draw and table agree, the comparison goes on with bits from the refinement stream, 64 at a
//! time, so the law is exact.

use crate::alias::Alias;
use crate::probability::Probability;
use crate::random::Refine;

/// The most keystream that a block takes: 1024 features under a law of three tables, or 512 under one of six.
pub(super) const MOST_KEYSTREAM: usize = 6144;
/// The most features in a block.
pub(super) const MOST_FEATURES: usize = 1024;

/// One draw: an alias table over `2^k` masks, in the form the kernels read.
#[repr(C, align(64))]
pub(crate) struct BitsTable {
    /// Threshold bits above, `k` bits of alias below; repeated to 256 entries, so that any lookup by at least the low `k`
    /// bits of a lane finds its column.
    pub(crate) entries: [u16; 256],
    /// The low and the high bytes of `entries`, for lookups by byte.
    pub(crate) bytes: [[u8; 256]; 2],
    /// The low `k` bits.
    pub(crate) mask: u16,
    /// Where the `k` bits lie in a code word.
    pub(crate) shift: u32,
    /// The thresholds' bits below those in `entries`, `limbs` words a column, big-endian.
    rest: Vec<u64>,
    limbs: usize,
}

impl BitsTable {
    fn new(chances: &[Probability], shift: u32) -> BitsTable {
        let k = chances.len();
        let alias = Alias::of_independent_bits(chances);
        let mut columns = [0u16; 256];
        let mut rest = Vec::with_capacity(k << k);
        for (j, column) in columns.iter_mut().enumerate().take(1 << k) {
            let (head, other, tail) = alias.column(j, 16 - k);
            *column = (head as u16) << k | other;
            rest.extend(tail);
        }
        let mask = ((1u32 << k) - 1) as u16;
        let entries: [u16; 256] = std::array::from_fn(|j| columns[j & usize::from(mask)]);
        let bytes = [entries.map(|entry| entry as u8), entries.map(|entry| (entry >> 8) as u8)];
        BitsTable { entries, bytes, mask, shift, rest, limbs: k }
    }

    /// The bits of a code word that this draw decides.
    pub(crate) fn field(&self) -> u32 {
        u32::from(self.mask) << self.shift
    }

    /// True where the column that `random` chose keeps its own outcome, where the entry's bits could not tell.
    pub(crate) fn settle(&self, random: u16, refine: &mut Refine) -> bool {
        let column = usize::from(random & self.mask);
        refine.less(&self.rest[column * self.limbs..][..self.limbs])
    }

    /// The entry of the column that `random` chose.
    #[inline(always)]
    pub(super) fn entry(&self, random: u16) -> u16 {
        self.entries[usize::from(random & 255)]
    }

    /// True where the leading bits leave the choice between a column and its alias open.
    #[inline(always)]
    pub(crate) fn is_open(&self, random: u16) -> bool {
        (random ^ self.entry(random)) & !self.mask == 0
    }

    /// [`draw`](Self::draw) of words of sixteen records, two draws each, where no record's are to be open. Says whether one is.
    #[inline(always)]
    pub(crate) fn draw_halves(&self, words: &[u32; 16], outcomes: &mut [[u8; 2]; 16]) -> bool {
        let (mut random, mut entries) = ([0; 32], [0; 32]);
        for lane in 0..16 {
            (random[2 * lane], random[2 * lane + 1]) = (words[lane] as u16, (words[lane] >> 16) as u16);
        }
        for (entry, &random) in entries.iter_mut().zip(&random) {
            *entry = self.entry(random);
        }
        let mut least = u16::MAX;
        for lane in 0..32 {
            // Where the bits above the column differ, the smaller of draw and entry is the outcome.
            outcomes.as_flattened_mut()[lane] = (random[lane].min(entries[lane]) & self.mask) as u8;
            least = least.min(random[lane] ^ entries[lane]);
        }
        least <= self.mask
    }

    /// One draw: the oracle of every vectorised version.
    #[inline(always)]
    pub(crate) fn draw(&self, random: u16, refine: &mut Refine) -> u32 {
        let entry = self.entry(random);
        let keep = if self.is_open(random) { self.settle(random, refine) } else { random < entry };
        u32::from(if keep { random } else { entry } & self.mask)
    }
}

/// How one feature's `l` bits are drawn. Bits are counted from the least significant here.
pub(crate) struct Plan {
    /// Symmetric laws: flip masks, one table a part of the word. Others: for each part a mask of the ones to keep, then a
    /// mask of the zeros to set.
    pub(crate) tables: Vec<BitsTable>,
    pub(crate) symmetric: bool,
    /// 64-byte registers that the largest of the tables fills: 1, 2, 4 or 8.
    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128")),
        allow(dead_code, reason = "the vector versions read it")
    )]
    pub(crate) registers: usize,
}

impl Plan {
    /// `ones[i]` and `zeros[i]`: the probability that bit `i` is reported as 1 when it is 1, and when it is 0.
    pub(crate) fn new(ones: &[Probability], zeros: &[Probability], symmetric: bool) -> Plan {
        let mut tables = Vec::new();
        let mut largest = 0;
        for (start, end) in parts(ones.len()) {
            let shift = start as u32;
            largest = largest.max(end - start);
            if symmetric {
                // P(flip) = P(1 | 0) = P(0 | 1).
                tables.push(BitsTable::new(&zeros[start..end], shift));
            } else {
                tables.push(BitsTable::new(&ones[start..end], shift));
                tables.push(BitsTable::new(&zeros[start..end], shift));
            }
        }
        Plan { tables, symmetric, registers: 1 << largest.saturating_sub(5) }
    }

    /// 64-byte vectors of keystream that 32 features take.
    pub(crate) fn vectors(&self) -> usize {
        self.tables.len()
    }

    /// Features a block of keystream serves: a block is a whole number of times two groups, which take hardly longer than
    /// one. There are 1 to 4, 6 or 8 tables, so it is at most three times.
    pub(crate) fn block(&self) -> usize {
        1024 >> self.vectors().trailing_zeros().min(2)
    }
}

/// The `l` bits in equal parts of at most eight, the larger ones first.
fn parts(bits: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = bits.div_ceil(8);
    let (least, larger) = (bits / count, bits % count);
    (0..count).scan(0, move |start, part| {
        let from = *start;
        *start += least + usize::from(part < larger);
        Some((from, *start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole_pairs_of_groups_and_fit_their_room() {
        for bits in 1..=32 {
            for symmetric in [true, false] {
                let chances = vec![Probability::HALF; bits];
                let plan = Plan::new(&chances, &chances, symmetric);
                let bytes = plan.block() / 32 * plan.vectors() * 64;
                assert!(
                    bytes.is_multiple_of(2 * crate::random::GROUP) && bytes <= MOST_KEYSTREAM,
                    "{bits}: {bytes}"
                );
                assert!(plan.block().is_multiple_of(32) && plan.block() <= MOST_FEATURES);
            }
        }
    }

    #[test]
    fn parts_cover_the_word_and_differ_by_one_bit_at_most() {
        for bits in 1..=32 {
            let parts: Vec<_> = parts(bits).collect();
            assert_eq!(parts[0].0, 0);
            assert_eq!(parts[parts.len() - 1].1, bits);
            assert!(parts.windows(2).all(|two| two[0].1 == two[1].0));
            let sizes: Vec<_> = parts.iter().map(|(start, end)| end - start).collect();
            assert!(sizes.iter().all(|&size| size <= 8 && size + 1 >= sizes[0]), "{bits}: {sizes:?}");
        }
        assert_eq!(parts(10).collect::<Vec<_>>(), [(0, 5), (5, 10)]);
        assert_eq!(parts(13).collect::<Vec<_>>(), [(0, 7), (7, 13)]);
        assert_eq!(parts(20).collect::<Vec<_>>(), [(0, 7), (7, 14), (14, 20)]);
    }
}
