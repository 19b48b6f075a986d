//! The trait of categorical laws: for each row, a distribution over reports.

use super::look_up::PLACES;
use crate::io::Input;
use crate::isa::Isa;
use crate::kernel::bits::CodeWord;
use crate::random::Refine;

/// Samples that a law draws side by side, or a multiple of it: what a block is padded to, with row 0.
pub(super) const LANES: usize = PLACES;

/// Samples in a block.
pub(super) const BLOCK: usize = 512;

/// A categorical law: for each row, a distribution over reports.
pub(crate) trait Law: Sync {
    /// Holds a row and a report.
    type Word: CodeWord;
    /// Bits of keystream that a sample takes at first.
    const BITS: usize;
    /// Room for the keystream of a whole number of blocks, and of pairs of groups.
    type Keystream: AsMut<[u8]>;
    /// An empty one.
    const KEYSTREAM: Self::Keystream;
    /// How many rows there are.
    fn rows(&self) -> u32;
    /// The input itself, where it can be taken for rows without a look at it: no address is made from a row, so even one
    /// that somebody else changed after the check does no harm.
    fn rows_of<'i>(&self, _input: Input<'i>) -> Option<&'i [Self::Word]> {
        None
    }
    /// Writes a report for each of `rows`, a multiple of [`LANES`]. `keystream` holds [`Law::BITS`] bits for each.
    fn block(
        &self,
        isa: Isa,
        keystream: &[u8],
        rows: &[Self::Word],
        reports: &mut [Self::Word],
        refine: &mut Refine,
    );
}
