//! [`split`](super::split) with NEON: the lanes within the bracket are moved to the front by a table of permutations.

use std::arch::aarch64::*;

use safe_unaligned_simd::aarch64::{vld1q_u8, vld1q_u32, vld1q_u64, vst1q_u32, vst1q_u64};

use super::split::{Magnitude, Split, behind_runs, in_registers};

/// For each set of lanes of `SIZE` bytes, `SETS` of them, the bytes of those in it, in order (others are no bytes and
/// become zeros), and how many there are.
struct Front<const SETS: usize, const SIZE: usize> {
    bytes: [[u8; 16]; SETS],
    counts: [u8; SETS],
}

impl<const SETS: usize, const SIZE: usize> Front<SETS, SIZE> {
    const fn new() -> Front<SETS, SIZE> {
        let mut front = Front { bytes: [[0xff; 16]; SETS], counts: [0; SETS] };
        let mut set = 0;
        while set < SETS {
            let (mut lane, mut position) = (0, 0);
            while lane < 16 / SIZE {
                if set >> lane & 1 == 1 {
                    let mut byte = 0;
                    while byte < SIZE {
                        front.bytes[set][position] = (lane * SIZE + byte) as u8;
                        (position, byte) = (position + 1, byte + 1);
                    }
                    front.counts[set] += 1;
                }
                lane += 1;
            }
            set += 1;
        }
        front
    }

    /// The lanes of `set` in front, and how many there are.
    #[inline]
    #[target_feature(enable = "neon")]
    fn of(&self, lanes: uint8x16_t, set: usize) -> (uint8x16_t, usize) {
        let bytes = vld1q_u8(&self.bytes[set % SETS]);
        (vqtbl1q_u8(lanes, bytes), usize::from(self.counts[set % SETS]))
    }
}

static FRONT_32: Front<16, 4> = Front::new();
static FRONT_64: Front<4, 8> = Front::new();

/// Four 32-bit magnitudes at a time.
#[target_feature(enable = "neon")]
pub(super) fn split_32(
    values: &[u32],
    low: u32,
    high: u32,
    within: &mut [u32],
    marks: &mut [u32],
    ahead: usize,
) -> Split<u32> {
    let (sign, lows, highs) = (vdupq_n_u32(u32::MOST), vdupq_n_u32(low), vdupq_n_u32(high));
    let bits = vld1q_u32(&[1, 2, 4, 8]);
    let (mut below, mut most) = (vdupq_n_u32(0), vdupq_n_u32(0));
    let kept = in_registers(values, within, marks, ahead, |lane: &[u32; 4], room| {
        let sizes = vandq_u32(vld1q_u32(lane), sign);
        most = vmaxq_u32(most, sizes);
        // All ones are -1.
        below = vsubq_u32(below, vcltq_u32(sizes, lows));
        let inside = vandq_u32(vcgeq_u32(sizes, lows), vcleq_u32(sizes, highs));
        let set = vaddvq_u32(vandq_u32(inside, bits)) as usize;
        let (front, count) = FRONT_32.of(vreinterpretq_u8_u32(sizes), set);
        vst1q_u32(room, vreinterpretq_u32_u8(front));
        count
    });
    let result = Split { below: vaddlvq_u32(below) as usize, kept, most: vmaxvq_u32(most) };
    behind_runs(values, low, high, within, marks, result)
}

/// Two 64-bit magnitudes at a time.
#[target_feature(enable = "neon")]
pub(super) fn split_64(
    values: &[u64],
    low: u64,
    high: u64,
    within: &mut [u64],
    marks: &mut [u32],
    ahead: usize,
) -> Split<u64> {
    let (sign, lows, highs) = (vdupq_n_u64(u64::MOST), vdupq_n_u64(low), vdupq_n_u64(high));
    let bits = vld1q_u64(&[1, 2]);
    let (mut below, mut most) = (vdupq_n_u64(0), vdupq_n_u64(0));
    let kept = in_registers(values, within, marks, ahead, |lane: &[u64; 2], room| {
        let sizes = vandq_u64(vld1q_u64(lane), sign);
        most = vbslq_u64(vcgtq_u64(sizes, most), sizes, most);
        // All ones are -1.
        below = vsubq_u64(below, vcltq_u64(sizes, lows));
        let inside = vandq_u64(vcgeq_u64(sizes, lows), vcleq_u64(sizes, highs));
        let set = vaddvq_u64(vandq_u64(inside, bits)) as usize;
        let (front, count) = FRONT_64.of(vreinterpretq_u8_u64(sizes), set);
        vst1q_u64(room, vreinterpretq_u64_u8(front));
        count
    });
    let most = most;
    let result = Split {
        below: vaddvq_u64(below) as usize,
        kept,
        most: vgetq_lane_u64::<0>(most).max(vgetq_lane_u64::<1>(most)),
    };
    behind_runs(values, low, high, within, marks, result)
}
