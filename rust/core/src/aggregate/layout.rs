//! How records are laid one over the other.

use super::vertical::BYTES;

/// How a flat row of bytes is cut to rows that are counted one over the other.
pub(super) struct Layout {
    /// Bytes of a row: one record, or as many as make whole registers.
    pub(super) stride: usize,
    pub(super) rows: usize,
}

impl Layout {
    /// Records of `record` bytes, `total` in all; the last row may end early.
    pub(super) fn new(record: usize, total: usize) -> Layout {
        // A longer record wastes less than a third of its last register.
        let stride = if record < 3 * BYTES {
            record << (BYTES.trailing_zeros() - record.trailing_zeros().min(BYTES.trailing_zeros()))
        } else {
            record
        };
        Layout { stride, rows: total.div_ceil(stride) }
    }
}
