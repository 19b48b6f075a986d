//! Laws of the features of a block: one plan for all, or a few of them, blended lane by lane.

use super::plan::{BitsTable, MOST_FEATURES, Plan};

/// The most plans that the vector kernels blend: each takes a lookup of its own for every lane.
pub(crate) const MOST_BLENDED: usize = 8;

/// The plans that the features of a block follow. All have the same shape: tables of the same sizes, at the same shifts.
#[derive(Clone, Copy)]
pub(crate) struct Laws<'a> {
    pub(crate) plans: &'a [Plan],
    /// The plan of each feature, where there are several.
    classes: &'a [u8],
}

impl<'a> Laws<'a> {
    /// One plan for all features.
    #[inline]
    pub(crate) fn one(plan: &'a Plan) -> Laws<'a> {
        Laws { plans: std::slice::from_ref(plan), classes: &[] }
    }

    /// Several plans, and which of them each feature of the block follows.
    #[inline]
    pub(super) fn several(plans: &'a [Plan], classes: &'a [u8]) -> Laws<'a> {
        debug_assert!(classes.iter().all(|&class| usize::from(class) < plans.len()));
        Laws { plans, classes }
    }

    /// The plan that the others are like.
    #[inline(always)]
    pub(super) fn shape(&self) -> &'a Plan {
        &self.plans[0]
    }

    /// True where there is one plan for all.
    #[inline(always)]
    pub(super) fn is_one(&self) -> bool {
        self.classes.is_empty()
    }

    /// The plans of `N` features from `first` on.
    #[inline(always)]
    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64")),
        allow(dead_code, reason = "the vector versions call it")
    )]
    pub(super) fn classes<const N: usize>(&self, first: usize) -> &'a [u8; N] {
        self.classes[first..].first_chunk().expect("a class for each feature of the block")
    }

    /// The plan of a feature.
    #[inline(always)]
    pub(super) fn plan(&self, feature: usize) -> &'a Plan {
        self.classes.get(feature).map_or(self.shape(), |&class| &self.plans[usize::from(class)])
    }

    /// Table `v` of a feature's plan.
    #[inline(always)]
    #[cfg_attr(
        not(any(target_arch = "x86_64", target_arch = "aarch64")),
        allow(dead_code, reason = "the vector versions call it")
    )]
    pub(super) fn table(&self, v: usize, feature: usize) -> &'a BitsTable {
        &self.plan(feature).tables[v]
    }
}

/// A pattern, repeated as far as a block may reach that begins at any feature; nothing where there are too many laws.
pub(crate) fn unrolled(pattern: Option<&[u32]>, laws: usize) -> Vec<u8> {
    match pattern {
        Some(pattern) if (2..=MOST_BLENDED).contains(&laws) => {
            pattern.iter().cycle().take(pattern.len() + MOST_FEATURES).map(|&law| law as u8).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_goes_on_past_its_end() {
        let pattern = [0, 1, 1];
        let all = unrolled(Some(&pattern), 2);
        assert_eq!(all.len(), 3 + MOST_FEATURES);
        assert!(all.iter().enumerate().all(|(i, &law)| u32::from(law) == pattern[i % 3]));
        assert!(unrolled(Some(&pattern), MOST_BLENDED + 1).is_empty() && unrolled(None, 1).is_empty());
    }
}
