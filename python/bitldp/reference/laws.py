"""Laws of small channels as integers, and their exact epsilon by enumeration.

A law is a table of Python integers (an object array), a row for each input and a column for each report, in
which every row has the same sum: dividing by it gives the probabilities. Nothing is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Law = NDArray[np.object_]

_ONE = 1 << 64
_LARGE = 1 << 1000  # a ratio below it is a double


def bits_law(thresholds: Sequence[tuple[int, int]]) -> Law:
    """Return the law of independent bits on arbitrary strings.

    Parameters
    ----------
    thresholds : sequence of (int, int)
        (p, q) of each position in units of 2**-64: P(report 1 | bit 1) and P(report 1 | bit 0), most
        significant first. The positions of a record are those of its features, one after the other.

    Returns
    -------
    ndarray of object, shape (2**l, 2**l)
        Row v, column z: P(report z | code word v) in units of 2**(-64 l).
    """
    law: Law = np.array([[1]], dtype=object)
    for p, q in thresholds:
        bit = np.array([[_ONE - q, q], [_ONE - p, p]], dtype=object)
        law = np.kron(law, bit)
    return law


def unary_law(categories: int, thresholds: tuple[int, int]) -> Law:
    """Return the law of independent bits on one-hot strings.

    Parameters
    ----------
    categories : int
        Categories k.
    thresholds : (int, int)
        (p, q) in units of 2**-64: P(report 1) at the category's position and at every other one.

    Returns
    -------
    ndarray of object, shape (k, 2**k)
        Row x: the law of the k reported bits of category x, read as a number, position 0 most significant.
    """
    everything = bits_law([thresholds] * categories)
    law: Law = everything[1 << np.arange(categories - 1, -1, -1)]
    return law


def window_law(cells: int, width: int, high: int, order: NDArray[Any] | None = None) -> Law:
    """Return the law of a window.

    Parameters
    ----------
    cells, width : int
        Cells N, and how many of them (m) share the probability `high`.
    high : int
        P(report in the window) in units of 2**-64.
    order : ndarray of int, shape (N, N), optional
        Row x lists the cells from best to worst; the window is the first m. Without it: the m cells nearest
        x, shifted inside at the edges.

    Returns
    -------
    ndarray of object, shape (N, N)
        P(report y | x) in units of 2**-64/(m (N - m)), or of 2**-64/N if m = N.
    """
    inside, outside = (high * (cells - width), (_ONE - high) * width) if width < cells else (high, 0)
    law: Law = np.full((cells, cells), outside, dtype=object)
    for x in range(cells):
        if order is None:
            first = min(max(x - width // 2, 0), cells - width)
            law[x, first : first + width] = inside
        else:
            law[x, order[x, :width]] = inside
    return law


def matrix_law(weights: Sequence[Sequence[int]]) -> Law:
    """Return the law of a table of integer weights.

    Parameters
    ----------
    weights : sequence of sequences of int
        Row by row, in units of 2**-64.

    Returns
    -------
    ndarray of object, shape (R, C)

    Raises
    ------
    ValueError
        If a row does not sum to 2**64.
    """
    for index, row in enumerate(weights):
        if sum(row) != _ONE:
            raise ValueError(f"weights: row {index} must sum to 2**64")
    return np.array([list(row) for row in weights], dtype=object)


def probabilities(law: Law) -> NDArray[np.float64]:
    """Return a law as floats, correctly rounded.

    Parameters
    ----------
    law : ndarray of object, shape (R, C)
        A law.

    Returns
    -------
    ndarray of float64, shape (R, C)
    """
    totals = [sum(row) for row in law]
    return np.array([[entry / total for entry in row] for row, total in zip(law, totals, strict=True)])


def exact_epsilon(law: Law) -> float:
    """Return the exact epsilon of a law, by enumeration over every report and every pair of inputs.

    Parameters
    ----------
    law : ndarray of object, shape (R, C)
        A law; its neighbours are all pairs of rows.

    Returns
    -------
    float
        ``max ln P(z | v)/P(z | v')``, rounded to nearest; infinite where one input excludes a report that
        another allows.

    Raises
    ------
    ValueError
        If the rows do not all have the same sum.
    """
    if len({sum(row) for row in law}) > 1:
        raise ValueError("law: every row must have the same sum")
    worst = Fraction(1)
    for column in law.T:
        largest, smallest = max(column), min(column)  # the worst pair of this report
        if largest > 0 and smallest == 0:
            return math.inf
        if largest > 0:
            worst = max(worst, Fraction(largest, smallest))
    if worst < _LARGE:
        return math.log1p(float(worst - 1))
    return math.log(worst.numerator) - math.log(worst.denominator)
