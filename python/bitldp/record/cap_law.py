"""Laws of lists of subsets, of which enough hold the record's categories: exact by counting, and the search.

Some attributes of a record are drawn in public, and a subset of the categories of each is reported. A subset
that holds the record's category is a hit, and lists of enough hits are likely: see `bitldp._core.Cap`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Cap
from bitldp.privacy import ONE, calibrated
from bitldp.record.choice import SLACK
from bitldp.release.sampled import index_bits

__all__ = ["MOST_DRAWN", "CapLaw", "Drawn", "Kind", "best_cap", "cap_law"]

MOST_DRAWN = 256
"""The most attributes of one report."""

_LAWS = 256  # of one mechanism: one for each number of drawn attributes of each kind
_SURE = 0.98  # chance of being drawn up to which attributes are told apart by their deviation
_ROUNDS = 5
_PARTS = (
    1.0,
    0.75,
    0.5,
    0.25,
    0.0,
)  # of the difference between weights in proportion to deviations and even ones
_FINENESS = 64  # the least weight of an attribute, where they differ
_HEAVIEST = 1 << 20
_SHARES = 24  # of categories in a subset that are compared where attributes differ
_RARE = 1e-13  # shares below it are not known well enough by floats

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
    """What may be drawn: so many attributes of each kind.

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


def compositions(members: Sequence[int], m: int) -> list[tuple[int, ...]]:
    """Return all ways to draw m attributes, as how many of each kind."""
    partial: list[tuple[int, ...]] = [()]
    left = sum(members)
    for most in members:
        left -= most
        partial = [
            (*each, count)
            for each in partial
            for count in range(max(0, m - sum(each) - left), min(most, m - sum(each)) + 1)
        ]
    return partial


def _ways(members: Sequence[int], m: int) -> int:
    """Return how many `compositions` there are, at most one above the limit."""
    counts = [1] + [0] * m
    for most in members:
        counts = [
            min(_LAWS + 1, sum(counts[total - own] for own in range(min(most, total) + 1)))
            for total in range(m + 1)
        ]
    return counts[m]


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
def _likely(members: tuple[tuple[int, int, int], ...], hits: int) -> tuple[Fraction, ...]:
    """Return P(hits - u or more of the members hit) for u = 0, 1, ..., for uniform subsets."""
    counts = hit_counts(members)
    whole = sum(counts)
    return tuple(Fraction(sum(counts[max(0, hits - u) :]), whole) for u in range(4))


@lru_cache(maxsize=1024)
def _channel(members: tuple[tuple[int, int, int], ...], hits: int, epsilon: float) -> Cap:
    subsets = [(k, w) for k, w, count in members for _ in range(count)]
    (share, *_) = _likely(members, hits)
    part = float(share)

    def build(target: float) -> Cap:
        # A = (e^eps - 1) t/((e^eps - 1) t + 1), by 1 - A, which keeps its digits
        rare = 1.0 / (1.0 + math.expm1(min(target, 600.0)) * part)
        return Cap([], subsets, hits, 0 if target == 0.0 else ONE - min(ONE, max(1, math.ceil(rare * ONE))))

    return calibrated(build, epsilon, _exact)


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
        order = len(chosen)
        spread = math.prod(
            Fraction(each.size * (each.categories - each.size), each.categories * (each.categories - 1))
            for each in (self.kinds[index] for index in chosen)
        )
        total = chances = Fraction(0)
        for each, weight in self._with(whole):
            chances += weight
            share = self._share(each)
            likely = _likely(self._others(each.counts, chosen), self.hits)
            signed = sum((-1) ** u * math.comb(order, u) * likely[order - u] for u in range(order + 1))
            total += weight * Fraction(each.channel.high, ONE) * signed / share
        return spread * total / chances if chances else Fraction(0)

    def _share(self, each: Drawn) -> Fraction:
        """Return t."""
        return _likely(self._others(each.counts, ()), self.hits)[0]

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
                likely = _likely(self._others(each.counts, chosen), self.hits)[sum(pattern)]
                total += weight * (high * likely / self._share(each) + 1 - high)
            result[pattern] = float(alone * total / whole)
        return result

    def cells(self, drawn: Drawn) -> NDArray[np.float64]:
        """Return the law of two records that differ in every attribute, shape (2, 4).

        The columns are the chances of a list that is likely for neither of them, for the second one, for the
        first one, and for both.
        """
        m = sum(drawn.counts)
        both = np.zeros((m + 2, m + 2))  # by hits of the first and of the second
        both[0, 0] = 1.0
        for kind, count in zip(self.kinds, drawn.counts, strict=True):
            k, w = kind.categories, kind.size
            pairs = k * (k - 1)
            two, one, none = (each / pairs for each in (w * (w - 1), w * (k - w), (k - w) * (k - w - 1)))
            for _ in range(count):
                first = np.roll(both, 1, axis=0)
                both = (
                    none * both + one * (first + np.roll(both, 1, axis=1)) + two * np.roll(first, 1, axis=1)
                )
        near = np.arange(m + 2) >= self.hits
        shares = [both[np.ix_(a, b)].sum() for a in (~near, near) for b in (~near, near)]
        high = drawn.channel.high / ONE
        likely = 1.0 - high + high / (shares[2] + shares[3])
        rest = (ONE - drawn.channel.high) / ONE
        chance = drawn.chance / ONE
        weights = np.array([[rest, rest, likely, likely], [rest, likely, rest, likely]])
        return chance * weights * np.array(shares)


@lru_cache(maxsize=64)
def cap_law(kinds: tuple[Kind, ...], m: int, hits: int, epsilon: float) -> CapLaw:
    """Return the law of m attributes of these kinds, of exact epsilon `epsilon` at most.

    Raises
    ------
    ValueError
        If there are more ways to draw them than laws are made for.
    """
    members = [each.members for each in kinds]
    if _ways(members, m) > _LAWS:
        raise ValueError(
            f"m: {m} of these attributes are drawn in more than {_LAWS} ways that differ in law; draw fewer, "
            "or all"
        )
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
            each = tuple(
                (kind.categories, kind.size, count) for kind, count in zip(kinds, way, strict=True) if count
            )
            drawn.append(Drawn(way, end - start, _channel(each, hits, epsilon)))
    return CapLaw(kinds, hits, tuple(drawn))


# -- the search


class Choice(NamedTuple):
    """Parameters that were chosen.

    Attributes
    ----------
    m, hits : int
        Attributes of a report, and hits from which it is likely.
    sizes : tuple of int
        Categories of a subset, by kind.
    weights : tuple of int
        Weights, by kind.
    """

    m: int
    hits: int
    sizes: tuple[int, ...]
    weights: tuple[int, ...]


Spent = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


class _Candidates(NamedTuple):
    """Candidates that differ in `hits` alone, from 1 on."""

    m: int
    sizes: tuple[int, ...]
    costs: NDArray[np.float64]
    odds: NDArray[np.float64]  # ln(weight), by hits and kind
    bits: int


def report_bits(categories: Sequence[int], sizes: Sequence[int], members: Sequence[int], m: int) -> int:
    """Return the bits of a report: its subsets, and which attributes they are of where not all are drawn."""
    forms = [(k - 1).bit_length() if w == 1 else k for k, w in zip(categories, sizes, strict=True)]
    count = sum(members)
    if m == count:
        return sum(form * times for form, times in zip(forms, members, strict=True))
    return m * (index_bits(count) + max(forms))


def _numbers(most: int) -> list[int]:
    """Return numbers from 1 to `most`: all of the first ones, then every tenth part more."""
    result = list(range(1, min(most, 24) + 1))
    while result[-1] < most:
        result.append(min(most, result[-1] + max(1, result[-1] // 10)))
    return result


@lru_cache(maxsize=256)
def best_cap(
    categories: tuple[int, ...],
    members: tuple[int, ...],
    epsilon: float,
    m: int | None = None,
    hits: int | None = None,
    sizes: tuple[int, ...] | None = None,
    weights: tuple[int, ...] | None = None,
) -> Choice:
    """Return the parameters of the least mean variance; of the fewest bits among those within `SLACK` of it.

    Parameters
    ----------
    categories, members : tuple of int
        Categories of the attributes of each kind, and how many there are.
    epsilon : float
        The budget.
    m, hits, sizes, weights
        What is given; None is looked for.

    Raises
    ------
    ValueError
        If nothing that is given allows a law.
    """
    count = sum(members)
    even = weights or (1,) * len(categories)
    if epsilon == 0.0:
        return Choice(m or 1, hits or 1, sizes or (1,) * len(categories), even)
    drawn = (
        [m]
        if m
        else [
            each
            for each in sorted({*_numbers(min(count, MOST_DRAWN)), *([count] if count <= MOST_DRAWN else [])})
            if _ways(members, each) <= _LAWS
        ]
    )
    tried: list[_Candidates] = []
    for each in drawn:
        for own in [sizes] if sizes else _sizes(categories):
            tried.append(_evaluated(categories, own, members, each, epsilon, weights))
    if not sizes and len(categories) > 1:
        tried += _refined(categories, members, epsilon, weights, min(tried, key=lambda one: one.costs.min()))
    costs = np.concatenate([_held(each.costs, hits) for each in tried])
    least = costs.min()
    if not math.isfinite(least):
        return Choice(drawn[0], min(hits or 1, drawn[0]), tried[0].sizes, even)
    kept = [
        (each.bits, cost, position, index)
        for position, each in enumerate(tried)
        for index, cost in enumerate(_held(each.costs, hits).tolist())
        if cost <= (1.0 + SLACK) * least
    ]
    _, _, position, index = min(kept)
    chosen = tried[position]
    return Choice(chosen.m, index + 1, chosen.sizes, weights or _whole(chosen.odds[index]))


def _held(costs: NDArray[np.float64], hits: int | None) -> NDArray[np.float64]:
    """Return costs, infinite but for the number of hits that is given."""
    if hits is None:
        return costs
    return np.where(np.arange(1, len(costs) + 1) == hits, costs, np.inf)


def _whole(odds: NDArray[np.float64]) -> tuple[int, ...]:
    """Return logarithms of weights as whole numbers, which differ where they should by a part of 64."""
    apart = np.exp(np.minimum(odds - odds.min(), 60.0))
    whole = np.rint(np.minimum(_FINENESS * apart, _HEAVIEST)).astype(np.int64)
    return tuple((whole // np.gcd.reduce(whole)).tolist())


def _sizes(categories: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the sizes of subsets to compare: about as large a share of the categories everywhere."""
    most = max(categories)
    if len(categories) == 1:
        return [(size,) for size in _numbers(max(1, most // 2))]
    shares = np.geomspace(0.5 / most, 0.5, _SHARES)
    rounded = np.clip(np.rint(np.outer(shares, categories)), 1, np.maximum(1, np.array(categories) // 2))
    return list(dict.fromkeys(tuple(each) for each in rounded.astype(int).tolist()))


def _refined(
    categories: Sequence[int], members: Sequence[int], epsilon: float, weights: Any, best: _Candidates
) -> list[_Candidates]:
    """Return better sizes of subsets than the best of those that were compared, one kind at a time."""
    result: list[_Candidates] = []
    for kind in range(min(len(categories), 32)):
        for step in (-1, 1):
            size = best.sizes[kind] + step
            if not 1 <= size <= max(1, categories[kind] // 2):
                continue
            sizes = (*best.sizes[:kind], size, *best.sizes[kind + 1 :])
            other = _evaluated(categories, sizes, members, best.m, epsilon, weights)
            if other.costs.min() < best.costs.min():
                best = other
                result.append(other)
    return result


def _evaluated(
    categories: Sequence[int],
    sizes: tuple[int, ...],
    members: Sequence[int],
    m: int,
    epsilon: float,
    weights: Sequence[int] | None,
) -> _Candidates:
    """Return the mean variances of candidates of all numbers of hits.

    The indicator of a category, less 1/k, is decoded as (1[in the subset] - r)/(pi g) where the attribute is
    drawn, pi being its chance. Over uniform categories its variance is r (1 - r)/(pi g^2) - (k - 1)/k^2.
    """
    k, n, w = (np.array(each, np.float64) for each in (categories, members, sizes))
    unit = w / k * (1.0 - w / k)
    gains, ways, sets = _gains(categories, sizes, members, m, epsilon)

    def spent(odds: NDArray[np.float64]) -> Spent:
        """Return the chance of each attribute, the moment of its letter, and the mean variance."""
        logs = sets + odds @ ways.T  # (hits, ways)
        chances = np.exp(logs - logs.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        drawn = chances @ ways  # (hits, kinds): how many are drawn of each
        gain = np.einsum("hc,ct,hct->ht", chances, ways, gains) / drawn
        moments = unit / np.square(gain)
        variances = moments * n / drawn - (k - 1.0) / np.square(k)
        costs = (variances * k * n).sum(axis=1) / (k * n).sum()
        return drawn / n, moments, np.where(np.isfinite(costs), costs, np.inf)

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if weights is not None or len(k) == 1 or m == n.sum():
            given = (1,) * len(k) if weights is None else weights
            odds = np.tile(np.log(np.array(given, np.float64)), (m, 1))
            costs = spent(odds)[2]
        else:
            goal = np.zeros((m, len(k)))
            for _ in range(_ROUNDS):
                pi, moments, _ = spent(goal)
                wanted = _proportional(np.sqrt(k * moments), n, m)
                move = np.log(wanted / (1.0 - wanted)) - np.log(pi / (1.0 - pi))
                goal = np.where(np.isfinite(move), goal + move, goal)
            # Where the gain depends on what is drawn together, less of it may be better.
            parts = [part * goal for part in _PARTS]
            tried = np.stack([spent(part)[2] for part in parts])
            best = np.argmin(tried, axis=0)
            costs, odds = tried.min(axis=0), np.stack(parts)[best, np.arange(m)]
    return _Candidates(m, tuple(sizes), costs, odds, report_bits(categories, sizes, members, m))


def _proportional(deviations: NDArray[np.float64], n: NDArray[np.float64], m: int) -> NDArray[np.float64]:
    """Return chances in proportion to deviations that add up to m, none of them too near to 1."""
    goal = np.where(np.isfinite(deviations), deviations, 0.0)
    goal = goal * (m / np.maximum((goal * n).sum(axis=1, keepdims=True), 1e-300))
    most = max(_SURE, m / n.sum())
    for _ in range(4):
        held = goal >= most
        goal = np.where(held, most, goal)
        free = np.where(held, 0.0, goal)
        left = m - (np.where(held, most, 0.0) * n).sum(axis=1, keepdims=True)
        goal = np.where(held, most, free * left / np.maximum((free * n).sum(axis=1, keepdims=True), 1e-300))
    return np.clip(goal, 1e-9, most)


def _gains(
    categories: Sequence[int], sizes: Sequence[int], members: Sequence[int], m: int, epsilon: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return g_j by hits, way to draw and kind; the ways; and the logarithm of how many sets each is."""
    k, w = np.array(categories, np.float64), np.array(sizes, np.float64)
    share, spread = w / k, w * (k - w) / (k * (k - 1.0))
    if len(k) == 1 or m == 1:
        ways = np.full((1, 1), float(m)) if len(k) == 1 else np.eye(len(k))
        rest = _binomial(m - 1, share)  # (kinds, m): P(H' = a)
        own = share[:, None]
        whole = np.pad(rest, ((0, 0), (0, 1))) * (1.0 - own) + np.pad(rest, ((0, 0), (1, 0))) * own
        tails = np.cumsum(whole[:, ::-1], axis=1)[:, ::-1][:, 1:]  # P(H >= 1), ...
        edge = np.zeros((m, len(ways), len(k)))
        likely = np.zeros((m, len(ways)))
        if len(k) == 1:
            edge[:, 0, 0], likely[:, 0] = rest[0], tails[0]
        else:
            edge[0] = np.eye(len(k))
            likely[0] = tails[:, 0]
    else:
        ways = np.array(compositions(members, m), np.float64)
        roots = np.exp(2j * np.pi * np.arange(m + 1) / (m + 1))
        factors = 1.0 + np.multiply.outer(share, roots - 1.0)  # (kinds, roots)
        factors = np.where(np.abs(factors) < 1e-12, 1e-12, factors)
        logs = np.log(factors)
        whole = np.exp(ways @ logs)  # (ways, roots)
        tails = np.fft.fft(whole, axis=1).real / (m + 1)
        likely = np.cumsum(tails[:, ::-1], axis=1)[:, ::-1][:, 1:].T  # (hits, ways)
        apart = np.fft.fft(np.exp(np.log(whole)[:, None] - logs), axis=2).real / (m + 1)
        edge = np.where(ways[..., None] > 0.0, apart, 0.0)[..., :m].transpose(2, 0, 1)
    likely = np.where(likely > _RARE, likely, np.nan) if len(k) > 1 else likely
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # A/t = (e^eps - 1)/(1 + (e^eps - 1) t)
        level = 1.0 / (1.0 / np.expm1(min(epsilon, 600.0)) + likely)
    counts = np.array([math.lgamma(each + 1.0) for each in range(max(members) + 1)])
    sets = np.zeros(len(ways))
    for index, most in enumerate(members):
        chosen = ways[:, index].astype(np.intp)
        sets += counts[most] - counts[chosen] - counts[most - chosen]
    return np.nan_to_num(level)[:, :, None] * edge * spread, ways, sets


def _binomial(count: int, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(a of `count` are hits) for each share, shape (shares, count + 1)."""
    a = np.arange(count + 1)
    ways = np.array([math.lgamma(each + 1.0) for each in range(count + 1)])
    logs = ways[count] - ways - ways[::-1]
    own = shares[:, None]
    return np.exp(logs + a * np.log(own) + (count - a) * np.log1p(-own))
