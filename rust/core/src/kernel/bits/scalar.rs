//! Samples code words in plain Rust, 32 lanes at a time: the path of processors without kernels of their own, and of laws that
//! change from feature to feature in more ways than vector kernels blend.
//!
//! A lane is [`BitsTable::draw`]; the loops have no branches, so the compiler makes vectors of them, and a lane that its first
//! bits leave open is drawn again by that function.

use super::laws::Laws;
use super::plan::{BitsTable, Plan};
use crate::codec::Code;
use crate::random::Refine;

/// Lanes of a vector of keystream.
const LANES: usize = 32;

/// Randomizes `words`, a multiple of 32, in place.
#[inline(always)]
pub(crate) fn randomize_by<W: Code>(laws: Laws<'_>, keystream: &[u8], words: &mut [W], refine: &mut Refine) {
    if laws.is_one() {
        randomize(|_| laws.shape(), keystream, words, refine);
    } else {
        randomize(|i| laws.plan(i), keystream, words, refine);
    }
}

/// Randomizes `words`, a multiple of 32, in place. `plan_of(i)` is the plan of word `i`; all have the same shape.
///
/// Group `g` of 32 words takes the vectors `g * V .. (g + 1) * V` of `keystream`, one a table, lane `j` for word `j`.
#[inline(always)]
pub(crate) fn randomize<'p, W: Code>(
    plan_of: impl Fn(usize) -> &'p Plan,
    keystream: &[u8],
    words: &mut [W],
    refine: &mut Refine,
) {
    let shape = plan_of(0);
    let vectors = keystream.as_chunks::<{ 2 * LANES }>().0.chunks_exact(shape.vectors());
    for (g, (words, vectors)) in words.as_chunks_mut::<LANES>().0.iter_mut().zip(vectors).enumerate() {
        // All lanes of one vector before the next: the order in which the refinement stream is used up.
        let plan_of = |lane| plan_of(LANES * g + lane);
        if shape.symmetric {
            for (v, table) in shape.tables.iter().enumerate() {
                for (word, flips) in words.iter_mut().zip(outcomes(vectors, v, plan_of, refine)) {
                    *word = W::narrow(word.widen() ^ u32::from(flips) << table.shift);
                }
            }
        } else {
            for (v, table) in shape.tables.iter().enumerate().step_by(2) {
                let keep = outcomes(vectors, v, plan_of, refine);
                let set = outcomes(vectors, v + 1, plan_of, refine);
                for (word, (keep, set)) in words.iter_mut().zip(keep.into_iter().zip(set)) {
                    let old = word.widen();
                    let new = (old & u32::from(keep) << table.shift) | (!old & u32::from(set) << table.shift);
                    *word = W::narrow((old & !table.field()) | (new & table.field()));
                }
            }
        }
    }
}

/// [`BitsTable::draw`] in each lane of vector `v` of keystream, from table `v` of the lane's own plan.
///
/// It is no closure of its caller's, because a compiler leaves one that is called in three places a function of its own.
#[inline(always)]
fn outcomes<'p>(
    vectors: &[[u8; 2 * LANES]],
    v: usize,
    plan_of: impl Fn(usize) -> &'p Plan,
    refine: &mut Refine,
) -> [u16; LANES] {
    let table_of = |lane| &plan_of(lane).tables[v];
    let (mut random, mut entries) = ([0; LANES], [0; LANES]);
    for (random, bytes) in random.iter_mut().zip(vectors[v].as_chunks::<2>().0) {
        *random = u16::from_le_bytes(*bytes);
    }
    for lane in 0..LANES {
        entries[lane] = table_of(lane).entry(random[lane]);
    }
    // All tables have the same size. Where the bits above the column differ, the smaller of draw and entry is the outcome.
    let mask = table_of(0).mask;
    let (mut outcomes, mut least) = ([0; LANES], u16::MAX);
    for lane in 0..LANES {
        outcomes[lane] = random[lane].min(entries[lane]) & mask;
        least = least.min(random[lane] ^ entries[lane]);
    }
    if least <= mask {
        settle(&random, &mut outcomes, table_of, refine);
    }
    outcomes
}

/// Draws again, in lane order, the lanes whose leading bits leave the outcome open.
#[cold]
#[inline(never)]
fn settle<'t>(
    random: &[u16; LANES],
    outcomes: &mut [u16; LANES],
    table_of: impl Fn(usize) -> &'t BitsTable,
    refine: &mut Refine,
) {
    for (lane, (outcome, &random)) in outcomes.iter_mut().zip(random).enumerate() {
        let table = table_of(lane);
        if table.is_open(random) {
            *outcome = table.draw(random, refine) as u16;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::isa::Isa;
    use crate::kernel::bits::CodeWord;
    use crate::probability::{Probability, Rounding};
    use crate::random::Key;

    /// The definition: a lane after the other, all lanes of one vector before the next.
    fn one_by_one<'p>(
        plan_of: impl Fn(usize) -> &'p Plan,
        keystream: &[u8],
        words: &mut [u32],
        refine: &mut Refine,
    ) {
        let vectors = plan_of(0).vectors();
        for (g, words) in words.chunks_exact_mut(LANES).enumerate() {
            let old: Vec<u32> = words.to_vec();
            let mut keep = [0; LANES];
            for v in 0..vectors {
                for lane in 0..LANES {
                    let (at, plan) = ((g * vectors + v) * LANES + lane, plan_of(LANES * g + lane));
                    let random = u16::from_le_bytes([keystream[2 * at], keystream[2 * at + 1]]);
                    let outcome = plan.tables[v].draw(random, refine) << plan.tables[v].shift;
                    if plan.symmetric {
                        words[lane] ^= outcome;
                    } else if v % 2 == 0 {
                        keep[lane] = outcome;
                    } else {
                        let drawn = (old[lane] & keep[lane]) | (!old[lane] & outcome);
                        let field = plan.tables[v].field();
                        words[lane] = (words[lane] & !field) | (drawn & field);
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn vectors_are_what_is_drawn_one_by_one(
            bits in 1usize..=32, symmetric: bool, plans in 1usize..12, seed: u64,
        ) {
            let scrambled = |i: usize| {
                let mixed = (seed ^ i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
            };
            let chance = |i: usize| Probability::from_f64(scrambled(i) as f64 / 2f64.powi(64), Rounding::Down).unwrap();
            let laws: Vec<Plan> = (0..plans).map(|law| {
                let chances = |from: usize| (0..bits).map(|bit| chance(100 * law + from + bit)).collect::<Vec<_>>();
                Plan::new(&chances(0), &chances(50), symmetric)
            }).collect();
            let plan_of = |i: usize| &laws[scrambled(i) as usize % plans];
            const WORDS: usize = 4 * LANES;
            let vectors = laws[0].vectors();
            let mut keystream = vec![0; 2 * WORDS * vectors];
            for (i, draw) in keystream.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                // One draw in four is at the threshold of its column, or just beside it.
                let (word, random) = (i / LANES / vectors * LANES + i % LANES, (scrambled(!i) >> 32) as u16);
                let table = &plan_of(word).tables[i / LANES % vectors];
                let near = (table.entry(random) & !table.mask).wrapping_add((random % 3).wrapping_sub(1).wrapping_mul(table.mask + 1));
                *draw = (if i % 4 == 0 { near & !table.mask | random & table.mask } else { random }).to_le_bytes();
            }
            let mask = u32::MAX >> (32 - bits);
            let words: Vec<u32> = (0..WORDS).map(|i| scrambled(7 * i) as u32 & mask).collect();
            let key = Key::from_bytes([3; 32]);
            let run = |work: &dyn Fn(&mut [u32], &mut Refine)| {
                let (mut words, mut stream) = (words.clone(), Refine::new(Isa::Scalar, &key, 9));
                work(&mut words, &mut stream);
                (words, stream.next())
            };
            let expected = run(&|words, refine| one_by_one(plan_of, &keystream, words, refine));
            prop_assert_eq!(&run(&|words, refine| randomize(plan_of, &keystream, words, refine)), &expected);
            if bits <= 16 {
                let short = run(&|words, refine| {
                    let mut short: Vec<u16> = words.iter().map(|&word| word as u16).collect();
                    randomize(plan_of, &keystream, &mut short, refine);
                    words.iter_mut().zip(short).for_each(|(word, short)| *word = short.into());
                });
                prop_assert_eq!(&short, &expected);
            }
            // The vector kernels, where one law is for all.
            if plans == 1 {
                for &isa in Isa::available() {
                    let one = Laws::one(&laws[0]);
                    prop_assert_eq!(&run(&|words, refine| CodeWord::randomize(isa, one, &keystream, words, refine)), &expected);
                }
            }
        }
    }
}
