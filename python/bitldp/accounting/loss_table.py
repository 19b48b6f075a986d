"""The law of one independent symbol of a report: a row of probabilities for each input, or normal laws."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bitldp._core import log_ratio
from bitldp.channels.normal import delta_of
from bitldp.privacy import ONE

__all__ = ["Curve", "LossTable", "Normal", "of_rows", "of_weights", "promised", "two_rows"]

_BLOCK = 1 << 21  # entries of the pairs of rows that are looked at together
_WIDTH = 9.0  # standard deviations of a normal loss that are looked at: 1e-19 are beyond
_PARTS = 1 << 11  # points that are looked at within them
_FEWER = 33  # the same, of a curve each of whose points takes a while


@dataclass(frozen=True, eq=False)
class LossTable:
    """The law of one symbol.

    Attributes
    ----------
    rows : ndarray of float64, shape (inputs, values)
        P(value | input), each the nearest double to a quotient of integers. Values that have the same ratio
        of chances for every pair of inputs may be taken together.
    epsilon : float
        Exact epsilon between any two rows, rounded up.
    """

    rows: NDArray[np.float64]
    epsilon: float

    @property
    def crosses(self) -> bool:
        """Tell whether there are several pairs, one of which may be worst at some epsilons alone."""
        return len(self.rows) > 2

    def pairs(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Yield the ordered pairs of different rows, in blocks: two arrays of shape (block, values)."""
        count, values = self.rows.shape
        step = max(1, _BLOCK // (count * values))
        for start in range(0, count, step):
            first = np.arange(start, min(start + step, count))
            one, other = np.meshgrid(first, np.arange(count), indexing="ij")
            different = one != other
            yield self.rows[one[different]], self.rows[other[different]]

    def profile(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest hockey-stick divergence ``sum_y max(P(y) - e^eps P'(y), 0)`` of any pair."""
        result = np.zeros(len(epsilons))
        for one, other in self.pairs():
            for index, epsilon in enumerate(epsilons):
                gaps = np.maximum(one - math.exp(epsilon) * other, 0.0).sum(axis=1)
                result[index] = max(result[index], float(gaps.max()))
        return result

    def losses(self) -> NDArray[np.float64]:
        """Return the largest finite loss of any pair in each value; all there are, of a table of two rows."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.rows)
        if len(logs) == 2:
            both = np.isfinite(logs).all(axis=0)
            gaps: NDArray[np.float64] = np.abs(logs[0, both] - logs[1, both])
            return gaps
        spread = np.where(np.isfinite(logs), logs, np.nan)
        return np.asarray(np.nanmax(spread, axis=0) - np.nanmin(spread, axis=0), dtype=np.float64)


@dataclass(frozen=True)
class Normal:
    """Two normal laws of variance 1: no two inputs are told apart better.

    Attributes
    ----------
    mu : float
        How far their means are apart, above zero.
    """

    mu: float
    crosses: ClassVar[bool] = False

    @property
    def epsilon(self) -> float:
        """Epsilon at delta 0: there is none."""
        return math.inf

    def profile(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the hockey-stick divergence, rounded up."""
        return np.array([delta_of(self.mu, epsilon) for epsilon in epsilons.tolist()])

    def losses(self) -> NDArray[np.float64]:
        """Return losses from the least to the largest that are looked at: normal, of deviation mu."""
        middle, reach = self.mu * self.mu / 2.0, _WIDTH * self.mu
        return np.abs(np.linspace(middle - reach, middle + reach, _PARTS))


@dataclass(frozen=True, eq=False)
class Curve:
    """Law that is known by its delta at every epsilon, for any two inputs in either order.

    Attributes
    ----------
    delta : callable
        From an epsilon of zero or more to delta, rounded up.
    farthest : float
        Epsilon beyond which delta hardly falls.
    """

    delta: Callable[[float], float]
    farthest: float
    crosses: ClassVar[bool] = True

    @property
    def epsilon(self) -> float:
        """Epsilon at delta 0: there is none."""
        return math.inf

    def profile(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the hockey-stick divergence; at -epsilon it is 1 - e^-epsilon (1 - delta(epsilon))."""
        sizes = np.abs(epsilons)
        deltas = np.array([self.delta(size) for size in sizes.tolist()])
        return np.where(epsilons < 0.0, 1.0 - np.exp(-sizes) * (1.0 - deltas), deltas)

    def losses(self) -> NDArray[np.float64]:
        """Return losses that are looked at."""
        return np.linspace(0.0, self.farthest, _FEWER)[1:]


def of_weights(weights: Sequence[Sequence[int]], epsilon: float) -> LossTable:
    """Return the table of integer weights over 2**64; equal rows once, without values that never occur."""
    distinct = list(dict.fromkeys(tuple(row) for row in weights))
    return of_rows(np.array([[weight / ONE for weight in row] for row in distinct]), epsilon)


def two_rows(one: Sequence[Fraction], other: Sequence[Fraction]) -> LossTable:
    """Return the table of two inputs, with its exact epsilon."""
    worst = 0.0
    for a, b in zip(one, other, strict=True):
        if (a == 0) != (b == 0):
            worst = math.inf
        elif a != b:
            ratio = max(a, b) / min(a, b)
            worst = max(worst, log_ratio(*scaled(ratio)))
    return of_rows(np.array([[float(each) for each in row] for row in (one, other)]), worst)


def of_rows(rows: NDArray[np.float64], epsilon: float) -> LossTable:
    """Return the table of rows, without the values that never occur."""
    return LossTable(rows[:, rows.any(axis=0)], epsilon)


def scaled(ratio: Fraction) -> tuple[int, int]:
    """Return numerator and denominator below 2**128 whose ratio is no less; as it is where it fits."""
    numerator, denominator = ratio.numerator, ratio.denominator
    excess = max(numerator.bit_length(), denominator.bit_length()) - 127
    if excess <= 0:
        return numerator, denominator
    return (numerator >> excess) + 1, max(denominator >> excess, 1)


def promised(epsilon: float, delta: float) -> LossTable:
    """Return the two laws that are the worst that an (epsilon, delta) promise allows.

    Any two laws that keep the promise are a post-processing of these (Kairouz, Oh and Viswanath, "The
    composition theorem for differential privacy", ICML 2015, Theorem 2.1): with delta the input is told, else
    it is told truly with odds e^epsilon.
    """
    if math.isinf(epsilon):
        return LossTable(np.array([[1.0, 0.0], [0.0, 1.0]]), epsilon)
    truth = (1.0 - delta) / (1.0 + math.exp(-epsilon))
    lie = (1.0 - delta) / (1.0 + math.exp(min(epsilon, 709.0)))
    if delta == 0.0:
        return of_rows(np.array([[truth, lie], [lie, truth]]), epsilon)
    rows = np.array([[delta, truth, lie, 0.0], [0.0, lie, truth, delta]])
    return LossTable(rows, math.inf)
