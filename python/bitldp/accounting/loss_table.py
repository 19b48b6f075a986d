"""The law of one independent symbol of a report: a row of probabilities for each input it may have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bitldp._core import log_ratio
from bitldp.privacy import ONE

__all__ = ["LossTable", "of_rows", "of_weights", "promised", "two_rows"]

_BLOCK = 1 << 21  # entries of the pairs of rows that are looked at together


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

    def pairs(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Yield the ordered pairs of different rows, in blocks: two arrays of shape (block, values)."""
        count, values = self.rows.shape
        step = max(1, _BLOCK // (count * values))
        for start in range(0, count, step):
            first = np.arange(start, min(start + step, count))
            one, other = np.meshgrid(first, np.arange(count), indexing="ij")
            different = one != other
            yield self.rows[one[different]], self.rows[other[different]]


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
