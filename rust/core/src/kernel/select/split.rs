//! Splits a vector in one pass: how many magnitudes lie below a bracket, which lie within, and whether all are finite.

use crate::isa::{Isa, mask_of, ones};

/// Numbers between two marks: how many were kept up to there leads back from a kept one to its position.
pub(super) const MARKED: usize = 64;

/// The most numbers that are ranked by comparing all with all.
pub(super) const SMALL: usize = 64;

/// How many numbers ahead memory is asked for them, to be in the first-level cache.
#[cfg(target_arch = "x86_64")]
const NEAR: usize = 512;

/// Asks for the run of [`MARKED`] numbers that is `ahead` of this one to be brought into the second-level cache, and for one
/// that comes soon to be brought into the first; neither need exist.
#[inline(always)]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables, reason = "only there is memory asked ahead"))]
fn prefetch<M>(run: *const M, ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..MARKED * size_of::<M>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        let at = |numbers: usize| run.wrapping_add(numbers).cast::<i8>().wrapping_add(line);
        // SAFETY: hints, that read nothing and cannot fault.
        unsafe {
            _mm_prefetch::<_MM_HINT_T1>(at(ahead));
            _mm_prefetch::<_MM_HINT_T0>(at(NEAR));
        }
    }
}

/// The result of a pass over numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Split<M> {
    /// How many sizes are below the bracket.
    pub(super) below: usize,
    /// How many are within it.
    pub(super) kept: usize,
    /// The largest of all sizes, or zero.
    pub(super) most: M,
}

/// Elements past the end of the room for those within a bracket that a vector unit may overwrite.
pub(super) const SLACK: usize = 16;

/// A float's bits. Without the sign they are ordered as the magnitudes are, and zeros of either sign are equal.
pub(crate) trait Magnitude: Copy + Ord + Default + Send + Sync + 'static {
    /// The float.
    type Float;
    const ZERO: Self;
    /// Above every finite number's bits without the sign.
    const INFINITE: Self;
    /// Above every number's bits without the sign.
    const MOST: Self;

    /// The bits of floats.
    fn of(values: &[Self::Float]) -> &[Self];

    /// The bits without the sign.
    fn size(self) -> Self;

    /// Counts in a lane as wide as the number, so that the loop can be vectorised; the caller counts few at a time.
    fn plus_one_if(self, yes: bool) -> Self;

    /// The number as a count.
    fn count(self) -> u64;

    /// A count of less than `2^31` as a number.
    fn of_count(count: usize) -> Self;

    /// The number before and the one after, for brackets' ends that leave room for them.
    fn before(self) -> Self;
    fn after(self) -> Self;

    /// The size as a number, and the size of a positive number.
    fn real(self) -> f64;
    fn of_real(number: f64) -> Self;

    /// The largest of the numbers that have at most `rank` smaller ones, or zero.
    fn nth(isa: Isa, numbers: &[Self; SMALL], smaller: &[Self; SMALL], rank: Self) -> Self;

    /// Writes the sizes of `[low, high]` among `values` to the start of `within`, in their order, and how many of them
    /// come before each run of [`MARKED`] values to `marks`. There is room for all values and [`SLACK`] more, and for
    /// all marks. The numbers `ahead` of these, if that is not 0, are brought into the cache meanwhile.
    fn split(
        isa: Isa,
        values: &[Self],
        low: Self,
        high: Self,
        within: &mut [Self],
        marks: &mut [u32],
        ahead: usize,
    ) -> Split<Self>;
}

/// [`Magnitude::split`], a run of numbers side by side.
#[inline]
pub(super) fn in_runs<M: Magnitude>(
    values: &[M],
    low: M,
    high: M,
    within: &mut [M],
    marks: &mut [u32],
) -> Split<M> {
    let mut result = Split::default();
    for (run, mark) in values.as_chunks::<MARKED>().0.iter().zip(&mut *marks) {
        *mark = result.kept as u32;
        let (mut below, mut most, mut inside) = (M::ZERO, result.most, [0; MARKED]);
        for (x, inside) in run.iter().zip(&mut inside) {
            let size = x.size();
            *inside = u8::from((size >= low) & (size <= high));
            below = below.plus_one_if(size < low);
            most = if size > most { size } else { most };
        }
        for position in ones(mask_of(&inside)) {
            within[result.kept] = run[position].size();
            result.kept += 1;
        }
        (result.below, result.most) = (result.below + below.count() as usize, most);
    }
    behind_runs(values, low, high, within, marks, result)
}

/// The whole runs of [`Magnitude::split`], a register of numbers at a time: `keep` writes the sizes of those within the bracket
/// to the start of an array, and whatever behind them, and says how many they are. The answer is how many were kept.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
pub(super) fn in_registers<M: Magnitude, const LANES: usize>(
    values: &[M],
    within: &mut [M],
    marks: &mut [u32],
    ahead: usize,
    mut keep: impl FnMut(&[M; LANES], &mut [M; LANES]) -> usize,
) -> usize {
    const { assert!(LANES <= SLACK) };
    // At most as many as were read have been kept, so a register more is within the values and their slack.
    assert!(within.len() >= values.len() + SLACK, "room for all values and some more");
    let (mut kept, last) = (0, within.len() - LANES);
    for (run, mark) in values.as_chunks::<MARKED>().0.iter().zip(marks) {
        *mark = kept as u32;
        if ahead > 0 {
            prefetch(run.as_ptr(), ahead);
        }
        for lane in run.as_chunks::<LANES>().0 {
            assert!(kept <= last, "no more are kept than read");
            // SAFETY: a register from `kept` on ends within the slice. Slices would look twice at every register.
            kept += keep(lane, unsafe { &mut *within.as_mut_ptr().add(kept).cast() });
        }
    }
    kept
}

/// Ends [`Magnitude::split`], one number after the other, behind the whole runs.
#[inline]
pub(super) fn behind_runs<M: Magnitude>(
    values: &[M],
    low: M,
    high: M,
    within: &mut [M],
    marks: &mut [u32],
    result: Split<M>,
) -> Split<M> {
    let Split { mut below, mut kept, mut most } = result;
    let (runs, rest) = values.as_chunks::<MARKED>();
    if !rest.is_empty() {
        marks[runs.len()] = kept as u32;
    }
    for x in rest {
        let size = x.size();
        // Written always, kept where the position moves on: no branch to mispredict.
        within[kept] = size;
        kept += usize::from(size >= low && size <= high);
        below += usize::from(size < low);
        most = if size > most { size } else { most };
    }
    Split { below, kept, most }
}
