"""Search for the lists of subsets of the least variance: how many attributes, categories of each and hits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp.record.cap_law import MOST_DRAWN, compositions, few_enough, refuse_many
from bitldp.record.choice import SLACK
from bitldp.release.sampled import index_bits

__all__ = ["Lists", "best_cap", "few_numbers", "report_bits", "subset_sizes"]

_SURE = 0.98  # chance of being drawn up to which attributes are told apart by their deviation
_ROUNDS = 5
_PARTS = (1.0, 0.75, 0.5, 0.25, 0.0)  # of weights by deviation that are tried, as exponents
_FINENESS = 64  # the least weight of an attribute, where they differ
_HEAVIEST = 1 << 20
_SHARES = 24  # of categories in a subset that are compared where attributes differ
_REFINED = 32  # kinds whose subsets are varied by themselves
_RARE = 1e-13  # shares below it are not known well enough by floats
_LARGE = 600.0  # of a budget: its exponential is a double


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


def few_numbers(most: int) -> list[int]:
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
    tables: bool = False,
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
    tables : bool
        Whether the variance is that of the cells of all tables of two attributes, not of frequencies.

    Raises
    ------
    ValueError
        If there are more ways to draw m attributes than laws are made for.
    """
    count = sum(members)
    even = weights or (1,) * len(categories)
    if epsilon == 0.0:
        return Choice(m or 1, hits or 1, sizes or (1,) * len(categories), even)
    if m:
        refuse_many(members, m)
    drawn = [m] if m else [each for each in few_numbers(min(count, MOST_DRAWN)) if few_enough(members, each)]

    def evaluated(m: int, sizes: tuple[int, ...]) -> _Candidates:
        return _evaluated(Lists(categories, sizes, members, m, epsilon), weights, tables)

    tried = [
        evaluated(each, own) for each in drawn for own in ([sizes] if sizes else subset_sizes(categories))
    ]
    if not sizes and len(categories) > 1:
        tried += _refined(evaluated, categories, min(tried, key=lambda one: one.costs.min()))
    costs = np.concatenate([_held(each.costs, hits) for each in tried])
    least = costs.min()
    if not math.isfinite(least):
        return Choice(drawn[0], min(hits or 1, drawn[0]), tried[0].sizes, even)
    kept = [
        (each.bits, cost, position, index)
        for position, each in enumerate(tried)
        for index, cost in enumerate(_held(each.costs, hits).tolist())
        if cost <= least + SLACK * abs(least)  # rounding may leave it a little below 0
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


def subset_sizes(categories: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the sizes of subsets to compare: about as large a share of the categories everywhere."""
    most = max(categories)
    if len(categories) == 1:
        return [(size,) for size in few_numbers(max(1, most // 2))]
    shares = np.geomspace(0.5 / most, 0.5, _SHARES)
    rounded = np.clip(np.rint(np.outer(shares, categories)), 1, np.maximum(1, np.array(categories) // 2))
    return list(dict.fromkeys(tuple(each) for each in rounded.astype(int).tolist()))


def _refined(
    evaluated: Callable[[int, tuple[int, ...]], _Candidates], categories: Sequence[int], best: _Candidates
) -> list[_Candidates]:
    """Return better sizes of subsets than the best of those that were compared, one kind at a time."""
    result: list[_Candidates] = []
    for kind in range(min(len(categories), _REFINED)):
        for step in (-1, 1):
            size = best.sizes[kind] + step
            if 1 <= size <= max(1, categories[kind] // 2):
                other = evaluated(best.m, (*best.sizes[:kind], size, *best.sizes[kind + 1 :]))
                if other.costs.min() < best.costs.min():
                    best = other
                    result.append(other)
    return result


class Lists:
    """Lists of subsets of m drawn attributes, by hits from which they are likely and by what is drawn.

    Attributes
    ----------
    ways : ndarray of float64, shape (ways, kinds)
        How many attributes are drawn of each kind.
    sets : ndarray of float64, shape (ways,)
        ln of how many sets of attributes each is.
    likely : ndarray of float64, shape (hits, ways)
        t, the share of lists that are likely; NaN where floats do not know it well enough.
    level : ndarray of float64, shape (hits, ways)
        A/t.
    """

    def __init__(
        self,
        categories: Sequence[int],
        sizes: tuple[int, ...],
        members: Sequence[int],
        m: int,
        epsilon: float,
    ) -> None:
        self.m, self.sizes, self.members, self.kinds = m, sizes, members, len(categories)
        self.bits = report_bits(categories, sizes, members, m)
        self.k, self.n = np.array(categories, np.float64), np.array(members, np.float64)
        w = np.array(sizes, np.float64)
        self._share = w / self.k
        self.unit = self._share * (1.0 - self._share)
        self._spread = w * (self.k - w) / (self.k * (self.k - 1.0))
        if self.kinds == 1:
            self.ways = np.full((1, 1), float(m))
            tails = _binomial(m, self._share)
        else:
            self.ways = np.array(compositions(members, m), np.float64)
            # P(H = a) by its characteristic function
            roots = np.exp(2j * np.pi * np.arange(m + 1) / (m + 1))
            factors = 1.0 + np.multiply.outer(self._share, roots - 1.0)  # (kinds, roots)
            self._logs = np.log(np.where(np.abs(factors) < _RARE, _RARE, factors))
            self._whole = self.ways @ self._logs
            tails = np.fft.fft(np.exp(self._whole), axis=1).real / (m + 1)
        likely = np.cumsum(tails[:, ::-1], axis=1)[:, ::-1][:, 1:].T  # P(H >= 1), ...
        likely = np.where(likely > _RARE, likely, np.nan) if self.kinds > 1 else likely
        # A/t = (e^eps - 1)/(1 + (e^eps - 1) t)
        self.likely = likely
        self.level = np.nan_to_num(1.0 / (1.0 / math.expm1(min(epsilon, _LARGE)) + likely))
        logs = np.array([math.lgamma(each + 1.0) for each in range(max(members) + 1)])
        chosen = self.ways.astype(np.intp)
        most = np.array(members)
        self.sets = (logs[most] - logs[chosen] - logs[most - chosen]).sum(axis=1)

    def gains(self) -> NDArray[np.float64]:
        """Return g_j, shape (hits, ways, kinds)."""
        if self.kinds == 1:
            edge = _binomial(self.m - 1, self._share)[0][:, None, None]  # P(H' = kappa - 1)
        else:
            apart = np.fft.fft(np.exp(self._whole[:, None] - self._logs), axis=2).real / (self.m + 1)
            edge = np.where(self.ways[..., None] > 0.0, apart, 0.0)[..., : self.m].transpose(2, 0, 1)
        return self.level[:, :, None] * edge * self._spread

    def gains_of_two(self) -> NDArray[np.float64]:
        """Return g of two attributes, shape (hits, ways, kinds, kinds)."""
        if self.kinds == 1:
            edge = _binomial(self.m - 2, self._share)[0][:, None, None, None]  # P(H'' = a)
        else:
            both = self._logs[:, None] + self._logs
            apart = np.fft.fft(np.exp(self._whole[:, None, None] - both), axis=3).real / (self.m + 1)
            edge = apart[..., : self.m - 1].transpose(3, 0, 1, 2)
        none = np.zeros((1, *edge.shape[1:]))
        slope = np.concatenate([none, edge]) - np.concatenate([edge, none])  # at kappa - 2 less at kappa - 1
        return self.level[:, :, None, None] * slope * np.multiply.outer(self._spread, self._spread)

    def chances(self, odds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how likely each way to draw is with logarithms of weights, shape (hits, ways)."""
        logs = self.sets + odds @ self.ways.T
        chances = np.exp(logs - logs.max(axis=1, keepdims=True))
        return chances / chances.sum(axis=1, keepdims=True)


def _evaluated(lists: Lists, weights: Sequence[int] | None, tables: bool) -> _Candidates:
    """Return the mean variances of candidates of all numbers of hits.

    The indicator of a category, less 1/k, is decoded as (1[in the subset] - r)/(pi g) where the attribute is
    drawn, pi being its chance. Over uniform categories its variance is r (1 - r)/(pi g^2) - (k - 1)/k^2.
    """
    k, n, m = lists.k, lists.n, lists.m
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gains = lists.gains()

        def spent(odds: NDArray[np.float64]) -> Spent:
            """Return the chance of each attribute, the moment of its letter, and the mean variance."""
            chances = lists.chances(odds)
            drawn = chances @ lists.ways  # (hits, kinds): how many are drawn of each
            gain = np.einsum("hc,ct,hct->ht", chances, lists.ways, gains) / drawn
            moments = lists.unit / np.square(gain)
            variances = moments * n / drawn - (k - 1.0) / np.square(k)
            return drawn / n, moments, (variances * k * n).sum(axis=1) / (k * n).sum()

        if weights is not None or lists.kinds == 1 or m == n.sum():
            given = (1,) * lists.kinds if weights is None else weights
            parts = [np.tile(np.log(np.array(given, np.float64)), (m, 1))]
        else:
            goal = np.zeros((m, lists.kinds))
            for _ in range(_ROUNDS):
                pi, moments, _ = spent(goal)
                wanted = _proportional(np.sqrt(k * moments), n, m)
                move = np.log(wanted / (1.0 - wanted)) - np.log(pi / (1.0 - pi))
                goal = np.where(np.isfinite(move), goal + move, goal)
            # Where the gain depends on what is drawn together, less of it may be better.
            parts = [part * goal for part in _PARTS]
        tried = np.stack([_of_tables(lists, gains, part) if tables else spent(part)[2] for part in parts])
    tried = np.where(np.isfinite(tried), tried, np.inf)
    odds = np.stack(parts)[np.argmin(tried, axis=0), np.arange(m)]
    return _Candidates(m, lists.sizes, tried.min(axis=0), odds, lists.bits)


def _of_tables(lists: Lists, gains: NDArray[np.float64], odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean variance of the cells of all tables of two attributes, by hits.

    Over uniform records the parts of a letter (`bitldp.record.cap_table.TableLaw`) are uncorrelated: with
    u = r (1 - r), its variance is (u_i u_j/g_ij^2 + u_i/(g_i k_j)^2 + u_j/(g_j k_i)^2)/pi_ij less that of the
    indicator of the cell.
    """
    if lists.m < 2:
        return np.full(lists.m, np.inf)
    k, n, unit = lists.k, lists.n, lists.unit
    same = np.eye(lists.kinds)
    some = np.multiply.outer(n, n) - same * n  # ordered pairs of attributes, of each two kinds
    pairs = (lists.ways[:, :, None] * (lists.ways[:, None] - same)) / np.where(some > 0.0, some, np.inf)
    chances = lists.chances(odds)
    pi = np.einsum("hc,ctu->htu", chances, pairs)
    two = np.einsum("hc,ctu,hctu->htu", chances, pairs, lists.gains_of_two()) / pi
    one = np.einsum("hc,ctu,hct->htu", chances, pairs, gains) / pi  # of the first kind, beside the second
    alone = unit[:, None] / np.square(one * k)
    cells = np.multiply.outer(k, k)
    second = np.multiply.outer(unit, unit) / np.square(two) + alone + alone.transpose(0, 2, 1)
    variances = second / pi - (1.0 - 1.0 / cells) / cells
    shares = some * cells
    costs: NDArray[np.float64] = (
        np.where(shares > 0.0, variances * shares, 0.0).sum(axis=(1, 2)) / shares.sum()
    )
    return costs


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


def _binomial(count: int, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(a of `count` are hits) for each share, shape (shares, count + 1)."""
    a = np.arange(count + 1)
    ways = np.array([math.lgamma(each + 1.0) for each in range(count + 1)])
    logs = ways[count] - ways - ways[::-1]
    own = shares[:, None]
    return np.exp(logs + a * np.log(own) + (count - a) * np.log1p(-own))
