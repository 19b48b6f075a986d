//! The last steps of the transform within NEON's registers: a lane meets the one 8, 4, 2 and 1 positions away.

use std::arch::aarch64::*;

/// Sixteen neighbours at a time.
#[target_feature(enable = "neon")]
pub(super) fn near(block: &mut [[f32; 16]]) {
    for run in block {
        // SAFETY: a run is four times four numbers of 32 bits.
        let own = unsafe { vld1q_f32_x4(run.as_ptr()) };
        let ((a, c), (b, d)) = (meet(own.0, own.2), meet(own.1, own.3));
        let ((a, b), (c, d)) = (meet(a, b), meet(c, d));
        let ((a, b), (c, d)) = (within(a, b), within(c, d));
        // SAFETY: as above.
        unsafe { vst1q_f32_x4(run.as_mut_ptr(), float32x4x4_t(a, b, c, d)) };
    }
}

/// Sums and differences.
#[inline]
#[target_feature(enable = "neon")]
fn meet(a: float32x4_t, b: float32x4_t) -> (float32x4_t, float32x4_t) {
    (vaddq_f32(a, b), vsubq_f32(a, b))
}

/// The steps of distances 2 and 1 in each of two registers.
#[inline]
#[target_feature(enable = "neon")]
fn within(a: float32x4_t, b: float32x4_t) -> (float32x4_t, float32x4_t) {
    let (x, y) = (vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b));
    let (sums, differences) =
        meet(vreinterpretq_f32_f64(vzip1q_f64(x, y)), vreinterpretq_f32_f64(vzip2q_f64(x, y)));
    // Sums and differences of the first register, then of the second; in each pair the lanes 1 apart.
    let (x, y) = (vreinterpretq_f64_f32(sums), vreinterpretq_f64_f32(differences));
    let (a, b) = (vreinterpretq_f32_f64(vzip1q_f64(x, y)), vreinterpretq_f32_f64(vzip2q_f64(x, y)));
    let (sums, differences) = meet(vuzp1q_f32(a, b), vuzp2q_f32(a, b));
    (vzip1q_f32(sums, differences), vzip2q_f32(sums, differences))
}
