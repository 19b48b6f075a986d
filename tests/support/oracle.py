"""What the tests compare with: exact laws by enumeration, a goodness-of-fit test, an algorithm as printed."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from scipy import stats

ONE = 1 << 64


def log_ratio(ratio: Fraction) -> float:
    """Return the natural logarithm of a ratio, right to the last place of a double."""
    with localcontext() as context:
        context.prec = 60
        return float((Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln())


def epsilon_of(rows: list[list[Fraction]]) -> float:
    """Return the exact epsilon of a finite channel: the worst column's log-ratio."""
    worst = Fraction(1)
    for column in zip(*rows, strict=True):
        if min(column) == 0 < max(column):
            return np.inf
        if max(column) > 0:
            worst = max(worst, max(column) / min(column))
    return log_ratio(worst)


def bits_law(
    thresholds: list[tuple[int, int]], inputs: list[tuple[int, ...]] | None = None
) -> list[list[Fraction]]:
    """Return P(report | input) over bit strings (all of them, unless `inputs` says which), from integers."""
    strings = list(itertools.product((0, 1), repeat=len(thresholds)))
    rows = []
    for given in strings if inputs is None else inputs:
        row = []
        for report in strings:
            chance = Fraction(1)
            for (p, q), bit, answer in zip(thresholds, given, report, strict=True):
                one = Fraction(p if bit else q, ONE)
                chance *= one if answer else 1 - one
            row.append(chance)
        rows.append(row)
    return rows


def window_law(channel, order=None) -> list[list[Fraction]]:
    """Return P(report | input) of a window channel, from its integer and its windows."""
    cells, width = channel.cells, channel.width
    inside = Fraction(channel.high, ONE) / width
    outside = (1 - Fraction(channel.high, ONE)) / (cells - width)
    rows = []
    for x in range(cells):
        start = channel.start(x) if order is None else 0
        window = set(range(start, start + width) if order is None else order[x][:width])
        rows.append([inside if y in window else outside for y in range(cells)])
    return rows


def p_value(observed, probabilities) -> float:
    """Return the p-value of Pearson's chi-squared test of counts against a law; rare cells are pooled."""
    observed = np.asarray(observed, dtype=np.float64).ravel()
    expected = np.asarray(probabilities, dtype=np.float64).ravel() * observed.sum()
    rare = expected < 10.0
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    statistic = float(np.sum(np.square(observed - expected) / expected))
    return float(stats.chi2.sf(statistic, len(observed) - 1))


def algorithm_2(losses: np.ndarray, epsilon: float) -> int:
    """Return m of BRR by Algorithms 1 and 2 of its paper, statement by statement."""
    widths = []
    for row in np.sort(losses, axis=1).tolist():
        weights = [math.exp(epsilon)] + [1.0] * (len(row) - 1)
        width = 1
        for i in range(1, len(row)):
            if sum((row[i] - row[j]) * weights[j] for j in range(len(row))) < 0.0:
                weights[i], width = math.exp(epsilon), i + 1
            else:
                break
        widths.append(width)
    return min(widths)
