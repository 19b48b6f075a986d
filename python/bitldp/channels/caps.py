"""Overlap of the likely reports of two records under a `Cap`."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from functools import lru_cache

from bitldp._core import Cap

__all__ = ["least_common"]

_MOST = 128  # subsets whose hits are counted: the time goes with the third power


def least_common(channel: Cap) -> Fraction | None:
    """Return the share of all reports that is in N(x) and in N(x'), for records that differ most.

    Parameters
    ----------
    channel : Cap
        The channel.

    Returns
    -------
    Fraction or None
        None where there are more than 128 subsets.

    Notes
    -----
    Records at both ends of every window share the fewest cells. For subsets they are records that differ in
    all: a product of increasing functions of the two numbers of hits is supermodular, so its mean is least
    where the hits of each subset are least concordant, as those of two different elements are.
    """
    subsets = tuple(map(tuple, channel.subsets))
    if len(subsets) > _MOST:
        return None
    share = _both_hit(subsets, channel.hits)
    for points, reach in channel.windows:
        width = 2 * reach + 1
        share *= Fraction(max(0, width - (points - 1)), points + 2 * reach)
    return share


@lru_cache(maxsize=256)
def _both_hit(subsets: tuple[tuple[int, int], ...], hits: int) -> Fraction:
    """Return how likely two records that differ in all subsets both have enough hits, by counting."""
    counts, total = {(0, 0): 1}, 1  # by hits of each record; more than enough are as good as enough
    for k, w in subsets:
        ways = ((1, 1, w * (w - 1)), (1, 0, w * (k - w)), (0, 1, w * (k - w)), (0, 0, (k - w) * (k - w - 1)))
        more: Counter[tuple[int, int]] = Counter()
        for (one, other), count in counts.items():
            for own, its, times in ways:
                if times:
                    more[min(hits, one + own), min(hits, other + its)] += count * times
        counts, total = dict(more), total * k * (k - 1)
    return Fraction(counts.get((hits, hits), 0), total)
