"""Designs of integers over 2**64 and letters, whose properties are recomputed before use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix, log_ratio
from bitldp.design.distance import Metric, distances
from bitldp.letters.spread import Spread
from bitldp.privacy import ONE

BIAS = 1e-9
"""How far the mean of the letters may be from a point of [0, 1]."""

Weights = tuple[tuple[int, ...], ...]


class DesignError(RuntimeError):
    """Error for a design that was asked for and not found; its message says why."""


@dataclass(frozen=True)
class Design:
    """Mechanism from the points of a grid on [0, 1] to letters, found by optimisation.

    Attributes
    ----------
    input_bits, output_bits : int
        The grid has ``2**input_bits`` equidistant points from 0 to 1, a report is one of ``2**output_bits``.
    budget : float
        Requested epsilon: between any two points, or for a distance of 1 under `metric`.
    metric : None, float or tuple of tuple of float
        None for plain privacy; p for abs(x - y)**p; else the table of distances.
    criterion : {"mean", "worst"}
        What was minimised.
    weights : tuple of tuple of int
        P(report | point) in units of 2**-64, one row for each point; every row sums to 2**64.
    letters : tuple of float
        Decoded value of each report, ascending. Their mean is the point, to 1e-9.
    epsilon : float
        Exact epsilon of the integers between any two points, rounded up.
    objective : float
        What was minimised, of the integers: the sum over the points of the letter's variance, or the largest
        variance of any number in [0, 1], dither included.
    bias : float
        Largest deviation of the letters' mean from the point, computed from the integers and rounded.
    """

    input_bits: int
    output_bits: int
    budget: float
    metric: Metric | None
    criterion: str
    weights: Weights
    letters: tuple[float, ...]
    epsilon: float
    objective: float
    bias: float

    def points(self) -> NDArray[np.float64]:
        """Return the points, shape (2**input_bits,)."""
        return np.arange(1 << self.input_bits) / ((1 << self.input_bits) - 1)

    def channel(self) -> Matrix:
        """Return the channel that samples the integers."""
        return Matrix.from_weights(self.weights)

    def spread(self) -> Spread:
        """Return the variance of the letters as a function of the number in [0, 1]."""
        return spread(self.weights, self.letters)


def judged(
    shape: tuple[int, int],
    budget: float,
    metric: Metric | None,
    criterion: str,
    weights: Weights,
    letters: tuple[float, ...],
) -> Design:
    """Return the design of given integers, with everything that they imply.

    Raises
    ------
    DesignError
        If it is of another shape, is no law, exceeds the budget between any two points, or is biased.
    """
    inputs, outputs = 1 << shape[0], 1 << shape[1]
    if len(weights) != inputs or any(len(row) != outputs for row in weights) or len(letters) != outputs:
        raise DesignError(f"the table is not of {inputs} rows and {outputs} letters")
    if any(weight < 0 for row in weights for weight in row) or any(sum(row) != ONE for row in weights):
        raise DesignError("a row of the integers does not sum to 2^64")
    if not all(map(math.isfinite, letters)):
        raise DesignError("a letter is not finite")
    epsilon = Matrix.from_weights(weights).epsilon
    if not (epsilon <= budget if metric is None else keeps(weights, budget, metric)):
        raise DesignError(f"the integers have epsilon {epsilon:.6g}, more than was asked for")
    worst = max(map(abs, residuals(weights, letters)))
    if worst > BIAS:
        raise DesignError(f"the mean of the letters is off by {float(worst):.3g}")
    variances = spread(weights, letters)
    objective = variances.worst() if criterion == "worst" else math.fsum(variances.at(variances.points))
    return Design(
        *shape, budget, metric, criterion, weights, letters, epsilon, float(objective), float(worst)
    )


def keeps(weights: Weights, budget: float, metric: Metric) -> bool:
    """Tell whether the exact epsilon of every two points is at most the budget times their distance."""
    rows = np.array([[weight / ONE for weight in row] for row in weights])
    table = distances(metric, len(weights))
    with np.errstate(divide="ignore"):
        logs = np.log(rows)
    for i, row in enumerate(logs):
        for k in range(len(rows)):
            allowed = Fraction(budget) * Fraction(float(table[i, k]))
            # Doubles tell all but the entries that are close; those are compared as integers.
            never = (rows[i] == 0.0) & (rows[k] == 0.0)
            with np.errstate(invalid="ignore"):
                losses = np.where(never, 0.0, row - logs[k])
            for j in np.flatnonzero(losses > float(allowed) - 1e-9):
                if weights[i][j] > weights[k][j] and log_ratio(weights[i][j], weights[k][j]) > allowed:
                    return False
    return True


def residuals(weights: Sequence[Sequence[int]], letters: tuple[float, ...]) -> list[Fraction]:
    """Return each point minus the exact mean of its letters, by rows of integers over 2**64."""
    scale, whole = common(letters)
    count = len(weights)
    return [
        Fraction(i, count - 1) - Fraction(sum(w * n for w, n in zip(row, whole, strict=True)), scale * ONE)
        for i, row in enumerate(weights)
    ]


def common(letters: tuple[float, ...]) -> tuple[int, list[int]]:
    """Return a power of two that makes all letters integers, and those integers."""
    ratios = [letter.as_integer_ratio() for letter in letters]
    scale = max(denominator for _, denominator in ratios)
    return scale, [numerator * (scale // denominator) for numerator, denominator in ratios]


def spread(weights: Weights, letters: tuple[float, ...]) -> Spread:
    """Return the variance of the letters as a function of the number in [0, 1]."""
    table = np.array([[weight / ONE for weight in row] for row in weights])
    points = np.arange(len(weights)) / (len(weights) - 1)
    return Spread(points, table @ np.square(np.array(letters) - 0.5))
