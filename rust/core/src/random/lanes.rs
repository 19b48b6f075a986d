//! Lanes: sixteen blocks of the keystream side by side, each with a key, a counter and a nonce of its own.

#[cfg(target_arch = "aarch64")]
use super::neon;
use super::{BLOCKS, Key, Purpose, ROUNDS, scalar};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};
use crate::kernel::Isa;

/// The words of sixteen blocks: word by word, lane by lane.
pub(crate) type Words = [[u32; Lanes::COUNT]; 16];

/// The counter at which a column's lane begins for a purpose; 2^24 blocks later the next column's begins.
#[inline(always)]
pub(crate) fn counter(purpose: Purpose, column: u32) -> u64 {
    (purpose as u64) << 56 | u64::from(column) << 24
}

/// The states of sixteen blocks.
#[repr(C, align(64))]
pub(crate) struct Lanes(Words);

impl Lanes {
    /// How many there are.
    pub(crate) const COUNT: usize = BLOCKS;

    /// Lanes of no key yet.
    pub(crate) fn new() -> Lanes {
        let mut state = [[0; Lanes::COUNT]; 16];
        for (word, constant) in state.iter_mut().zip(scalar::CONSTANTS) {
            *word = [constant; Lanes::COUNT];
        }
        Lanes(state)
    }

    /// Sets what the block of one lane is of.
    #[inline(always)]
    pub(crate) fn set(&mut self, lane: usize, key: &Key, counter: u64, nonce: u64) {
        for (word, part) in self.0[4..12].iter_mut().zip(key.0) {
            word[lane] = part;
        }
        let rest = [counter as u32, (counter >> 32) as u32, nonce as u32, (nonce >> 32) as u32];
        for (word, part) in self.0[12..].iter_mut().zip(rest) {
            word[lane] = part;
        }
    }

    /// Writes the blocks.
    #[inline]
    pub(crate) fn blocks(&self, isa: Isa, out: &mut Words) {
        match isa {
            // SAFETY: an `Isa` is made only of what this processor has.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { avx512::lanes::<ROUNDS>(&self.0, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::lanes::<ROUNDS>(&self.0, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe { neon::lanes::<ROUNDS>(&self.0, out) },
            _ => scalar::lanes::<ROUNDS>(&self.0, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::block;

    #[test]
    fn every_lane_is_the_block_of_its_own_key_counter_and_nonce() {
        let key = |lane: usize| Key::from_bytes(std::array::from_fn(|i| (i * 7 + lane * 31) as u8));
        let (counter, nonce) = (|lane: usize| (lane as u64) << 54 | 5, |lane: usize| !(lane as u64 * 977));
        let mut lanes = Lanes::new();
        for lane in 0..Lanes::COUNT {
            lanes.set(lane, &key(lane), counter(lane), nonce(lane));
        }
        for &isa in Isa::available() {
            let mut out = [[0; Lanes::COUNT]; 16];
            lanes.blocks(isa, &mut out);
            for lane in 0..Lanes::COUNT {
                let expected = block::<ROUNDS>(&key(lane), counter(lane), nonce(lane));
                for (word, expected) in out.iter().zip(expected.as_chunks::<4>().0) {
                    assert_eq!(word[lane], u32::from_le_bytes(*expected), "{isa}, lane {lane}");
                }
            }
        }
    }

    #[test]
    fn counters_of_purposes_and_columns_never_meet() {
        assert_eq!(counter(Purpose::Main, 0), 0);
        assert_eq!(counter(Purpose::Main, u32::MAX), (1 << 56) - (1 << 24));
        assert_eq!(counter(Purpose::Refine, 3), 1 << 56 | 3 << 24);
    }
}
