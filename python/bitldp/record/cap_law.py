"""Laws of lists of subsets, of which enough hold the record's categories: exact, by counting.

Some attributes of a record are drawn in public, and a subset of the categories of each is reported. A subset
that holds the record's category is a hit, and lists of enough hits are likely: see `bitldp._core.Cap`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Cap
from bitldp.channels.caps import least_common
from bitldp.privacy import ONE, calibrated

__all__ = [
    "MOST_DRAWN",
    "CapLaw",
    "Drawn",
    "Kind",
    "cap_channel",
    "cap_law",
    "compositions",
    "counted",
    "few_enough",
    "likely_hits",
    "refuse_many",
]

MOST_DRAWN = 256
"""The most attributes of one report."""

_LAWS = 256  # of one mechanism: one for each number of drawn attributes of each kind

_SPARE = 1.0 + 2.0**-48  # of a chance, so that the first law that is made keeps the budget
_LARGE = 600.0  # of a budget: its exponential is a double
_exact = attrgetter("epsilon")


class Kind(NamedTuple):
    """Attributes that are alike.

    Attributes
    ----------
    categories : int
        Categories of each, k.
    size : int
        Categories of a reported subset, w.
    weight : int
        Its chance of being drawn, by comparison.
    members : int
        How many attributes.
    """

    categories: int
    size: int
    weight: int
    members: int


class Drawn(NamedTuple):
    """A way to draw attributes: so many of each kind.

    Attributes
    ----------
    counts : tuple of int
        How many, by kind.
    chance : int
        How likely that is, over 2**64.
    channel : Cap
        The channel of their report.
    """

    counts: tuple[int, ...]
    chance: int
    channel: Cap


@lru_cache(maxsize=64)
def compositions(members: tuple[int, ...], m: int) -> tuple[tuple[int, ...], ...]:
    """Return all ways to draw m attributes, as how many of each kind."""
    partial: list[tuple[tuple[int, ...], int]] = [((), m)]  # and how many are still to be drawn
    rest = sum(members)
    for most in members:
        rest -= most
        partial = [
            ((*each, count), left - count)
            for each, left in partial
            for count in range(max(0, left - rest), min(most, left) + 1)
        ]
    return tuple(each for each, _ in partial)


@lru_cache(maxsize=1024)
def few_enough(members: tuple[int, ...], m: int) -> bool:
    """Tell whether there are so few `compositions` that each may have its law."""
    draws = min(m, sum(members) - m)  # as many ways as to leave out what is not drawn
    counts = [1] + [0] * draws
    for most in members:
        counts = [min(_LAWS + 1, sum(counts[max(0, total - most) : total + 1])) for total in range(draws + 1)]
    return counts[draws] <= _LAWS


def refuse_many(members: tuple[int, ...], m: int) -> None:
    """Refuse a number of attributes that are drawn in too many ways."""
    if not few_enough(members, m):
        raise ValueError(
            f"m: {m} of these attributes are drawn in more than {_LAWS} ways that differ in law; draw fewer, "
            "or all"
        )


def hit_counts(members: Sequence[tuple[int, int, int]]) -> list[int]:
    """Return by number of hits the integer share of lists, of subsets (k, w) that are there so many times.

    The sum is the product of all k: the coefficients of the product of (k - w + w z).
    """
    total = [1]
    for k, w, count in members:
        own = [math.comb(count, a) * w**a * (k - w) ** (count - a) for a in range(count + 1)]
        if total == [1]:
            total = own
            continue
        both = [0] * (len(total) + count)
        for a, left in enumerate(total):
            for b, right in enumerate(own):
                both[a + b] += left * right
        total = both
    return total


@lru_cache(maxsize=4096)
def likely_hits(members: tuple[tuple[int, int, int], ...], hits: int) -> tuple[Fraction, ...]:
    """Return P(hits - u or more of the members hit) for u = 0, 1, ..., for uniform subsets."""
    counts = hit_counts(members)
    whole = sum(counts)
    return tuple(Fraction(sum(counts[max(0, hits - u) :]), whole) for u in range(4))


@lru_cache(maxsize=1024)
def cap_channel(
    windows: tuple[tuple[int, int], ...], subsets: tuple[tuple[int, int], ...], hits: int, epsilon: float
) -> Cap:
    """Return the channel of exact epsilon `epsilon` at most."""
    (share, *_) = likely_hits(counted(subsets), hits)
    part = float(share) * math.prod((2 * reach + 1) / (points + 2 * reach) for points, reach in windows)

    def build(target: float) -> Cap:
        # A = (e^eps - 1) t/((e^eps - 1) t + 1), by 1 - A, which keeps its digits, and a little less of it
        rare = _SPARE / (1.0 + math.expm1(min(target, _LARGE)) * part)
        high = 0 if target == 0.0 else ONE - min(ONE, max(1, math.ceil(rare * ONE)))
        return Cap(windows, subsets, hits, high, target == 0.0)

    return calibrated(build, epsilon, _exact)


def joint_gain(
    chosen: Sequence[tuple[int, int]], others: tuple[tuple[int, int, int], ...], hits: int
) -> Fraction:
    """Return g_U t/A of `CapLaw` for `chosen` subsets (k, w), where the `others` are drawn with them."""
    order, likely = len(chosen), likely_hits(others, hits)
    spread = math.prod(Fraction(w * (k - w), k * (k - 1)) for k, w in chosen)
    return spread * sum((-1) ** u * math.comb(order, u) * likely[order - u] for u in range(order + 1))


def counted(subsets: Iterable[tuple[int, int]]) -> tuple[tuple[int, int, int], ...]:
    """Return the different subsets (k, w), and how often each is there."""
    return tuple((k, w, count) for (k, w), count in Counter(subsets).items())


@dataclass(frozen=True, eq=False)
class CapLaw:
    """The law of reports of m drawn attributes, of which subsets hold the true category `hits` times or more.

    Attributes
    ----------
    kinds : tuple of Kind
        All attributes.
    hits : int
        Hits from which a list is likely, kappa.
    drawn : tuple of Drawn
        What may be drawn, and the channel of each.

    Notes
    -----
    Let r = w/k be the chance that a uniform subset is a hit, s = w (k - w)/(k (k - 1)), H the number of hits
    and t = P(H >= kappa). With probability A the report is uniform among the likely lists, else among all. So
    a category of attribute j is in its subset with r + g_j (1[it is the true one] - 1/k),

        g_j = A s_j P(H' = kappa - 1)/t,

    H' being the hits of the other attributes drawn. For a set U of attributes, the product of 1[in] - r over
    categories of each has the mean g_U times the product of 1[true] - 1/k, where

        g_U = A prod(s_j) sum_u (-1)^u C(|U|, u) P(H' >= kappa - |U| + u)/t.

    Which attributes are drawn is public. Weights lambda make a set J as likely as the product of its weights.
    """

    kinds: tuple[Kind, ...]
    hits: int
    drawn: tuple[Drawn, ...]

    @cached_property
    def epsilon(self) -> float:
        """Exact epsilon of a report: of the worst set that may be drawn."""
        return max(each.channel.epsilon for each in self.drawn)

    @cached_property
    def edges(self) -> NDArray[np.uint64]:
        """Ends of the intervals of 64-bit words that stand for each of `drawn`, but for the last one."""
        ends = np.cumsum(np.array([each.chance for each in self.drawn[:-1]], dtype=object))
        return ends.astype(np.uint64)

    def _others(self, counts: Sequence[int], chosen: Sequence[int]) -> tuple[tuple[int, int, int], ...]:
        """Return the attributes that are drawn beside one of each kind of `chosen`."""
        less = Counter(chosen)
        return tuple(
            (kind.categories, kind.size, count - less[index])
            for index, (kind, count) in enumerate(zip(self.kinds, counts, strict=True))
            if count > less[index]
        )

    def chance(self, chosen: tuple[int, ...]) -> Fraction:
        """Return how likely given attributes, of the kinds `chosen`, are all drawn."""
        return sum((weight for _, weight in self._with(chosen)), Fraction(0))

    def _with(self, chosen: tuple[int, ...]) -> Iterator[tuple[Drawn, Fraction]]:
        """Yield what may be drawn with given attributes of the kinds `chosen`, and how likely that is."""
        for each in self.drawn:
            weight = Fraction(each.chance, ONE)
            for kind, times in Counter(chosen).items():
                members, count = self.kinds[kind].members, each.counts[kind]
                weight *= Fraction(math.perm(count, times), math.perm(members, times))
            if weight:
                yield each, weight

    def gain(self, chosen: tuple[int, ...], drawn: tuple[int, ...] = ()) -> Fraction:
        """Return g_U for attributes of the kinds `chosen`, averaged over what is drawn with them.

        `drawn` are the kinds of further attributes that are known to be drawn.
        """
        whole = tuple(sorted((*chosen, *drawn)))
        subsets = [(self.kinds[index].categories, self.kinds[index].size) for index in chosen]
        total = chances = Fraction(0)
        for each, weight in self._with(whole):
            chances += weight
            share = self._share(each)
            gain = joint_gain(subsets, self._others(each.counts, chosen), self.hits)
            total += weight * Fraction(each.channel.high, ONE) * gain / share
        return total / chances if chances else Fraction(0)

    def _share(self, each: Drawn) -> Fraction:
        """Return t."""
        return likely_hits(self._others(each.counts, ()), self.hits)[0]

    def patterns(self, chosen: tuple[int, ...]) -> NDArray[np.float64]:
        """Return P(which of given attributes are hits), shape (2, 2, ...), where all of them are drawn."""
        order = len(chosen)
        shares = [Fraction(self.kinds[index].size, self.kinds[index].categories) for index in chosen]
        result = np.zeros((2,) * order)
        whole = self.chance(chosen)
        for pattern in product((0, 1), repeat=order):
            alone = math.prod(own if hit else 1 - own for own, hit in zip(shares, pattern, strict=True))
            total = Fraction(0)
            for each, weight in self._with(chosen):
                high = Fraction(each.channel.high, ONE)
                likely = likely_hits(self._others(each.counts, chosen), self.hits)[sum(pattern)]
                total += weight * (high * likely / self._share(each) + 1 - high)
            result[pattern] = float(alone * total / whole)
        return result

    def cells(self, drawn: Drawn) -> NDArray[np.float64] | None:
        """Return the law of two records that differ in every attribute, shape (2, 4); None of long lists.

        The columns are the chances of a list that is likely for neither of them, for the second one, for the
        first one, and for both.
        """
        both, near = least_common(drawn.channel), self._share(drawn)
        if both is None:
            return None
        high = Fraction(drawn.channel.high, ONE)
        rest, likely = 1 - high, 1 - high + high / near
        one = near - both
        rows = [[rest, rest, likely, likely], [rest, likely, rest, likely]]
        shares = [1 - both - 2 * one, one, one, both]
        chance = Fraction(drawn.chance, ONE)
        return np.array([[float(chance * a * b) for a, b in zip(row, shares, strict=True)] for row in rows])


@lru_cache(maxsize=64)
def cap_law(kinds: tuple[Kind, ...], m: int, hits: int, epsilon: float) -> CapLaw:
    """Return the law of m attributes of these kinds, of exact epsilon `epsilon` at most.

    Raises
    ------
    ValueError
        If there are more ways to draw them than laws are made for.
    """
    members = tuple(each.members for each in kinds)
    refuse_many(members, m)
    ways = compositions(members, m)
    weights = [
        math.prod(
            math.comb(each.members, count) * each.weight**count
            for each, count in zip(kinds, way, strict=True)
        )
        for way in ways
    ]
    ends, before, total = [], 0, sum(weights)
    for weight in weights:
        before += weight
        ends.append((before << 64) // total)
    drawn = []
    for way, end, start in zip(ways, ends, [0, *ends], strict=False):
        if end > start:  # what is rarer than 2**-64 is never drawn
            subsets = Counter(
                (kind.categories, kind.size)
                for kind, count in zip(kinds, way, strict=True)
                for _ in range(count)
            )
            channel = cap_channel((), tuple(subsets.elements()), hits, epsilon)
            drawn.append(Drawn(way, end - start, channel))
    return CapLaw(kinds, hits, tuple(drawn))
