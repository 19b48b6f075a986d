//! Sampling code words one lane at a time: the oracle of the vectorised versions, and the path of laws that change from
//! feature to feature.

use super::plan::Plan;
use crate::random::Refine;

/// A code word in a block's scratch: `u16` for codes of up to 16 bits, `u32` for longer ones.
pub(crate) trait Word: Copy + Default + Send + Sync + 'static {
    /// From the low bits of `word`.
    fn narrow(word: u32) -> Self;
    fn widen(self) -> u32;
}

macro_rules! word {
    ($($type:ty),*) => {$(
        impl Word for $type {
            #[inline(always)]
            fn narrow(word: u32) -> Self {
                word as $type
            }
            #[inline(always)]
            fn widen(self) -> u32 {
                u32::from(self)
            }
        }
    )*};
}
word!(u8, u16, u32);

/// Randomizes `words`, a multiple of 32, in place. `plan_of(i)` is the plan of word `i`; all have the same shape.
///
/// Group `g` of 32 words takes the vectors `g * V .. (g + 1) * V` of `keystream`, one a table, lane `j` for word `j`.
pub(crate) fn randomize<'p, W: Word>(
    plan_of: impl Fn(usize) -> &'p Plan,
    keystream: &[u8],
    words: &mut [W],
    refine: &mut Refine,
) {
    let shape = plan_of(0);
    let vectors = shape.vectors();
    for (g, group) in words.chunks_exact_mut(32).enumerate() {
        let random = |v: usize, lane: usize| {
            let at = (g * vectors + v) * 64 + 2 * lane;
            u16::from_le_bytes([keystream[at], keystream[at + 1]])
        };
        if shape.symmetric {
            for v in 0..vectors {
                for (lane, word) in group.iter_mut().enumerate() {
                    let table = &plan_of(32 * g + lane).tables[v];
                    *word = W::narrow(word.widen() ^ table.draw(random(v, lane), refine) << table.shift);
                }
            }
        } else {
            for v in (0..vectors).step_by(2) {
                // All lanes of one vector before the next: the order in which the refinement stream is used up.
                let mut keep = [0u32; 32];
                for (lane, keep) in keep.iter_mut().enumerate() {
                    let table = &plan_of(32 * g + lane).tables[v];
                    *keep = table.draw(random(v, lane), refine) << table.shift;
                }
                for (lane, word) in group.iter_mut().enumerate() {
                    let table = &plan_of(32 * g + lane).tables[v + 1];
                    let set = table.draw(random(v + 1, lane), refine) << table.shift;
                    let old = word.widen();
                    let new = (old & keep[lane]) | (!old & set);
                    *word = W::narrow((old & !table.field()) | (new & table.field()));
                }
            }
        }
    }
}
