//! Sampling code words one lane at a time: the oracle of the vectorised versions, and the path of laws that change from
//! feature to feature.

use super::plan::Plan;
use crate::codec::Code;
use crate::random::Refine;

/// Randomizes `words`, a multiple of 32, in place. `plan_of(i)` is the plan of word `i`; all have the same shape.
///
/// Group `g` of 32 words takes the vectors `g * V .. (g + 1) * V` of `keystream`, one a table, lane `j` for word `j`.
pub(crate) fn randomize<'p, W: Code>(
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
