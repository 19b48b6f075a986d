"""The privacy blanket: what every record reports with the same chance hides a user among shuffled reports."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Cap, Design, Matrix, Shift, Subset, Unary, Window
from bitldp.accounting.laws import Overlap, overlap
from bitldp.amplification.sums import UP, WIDTH, Sum
from bitldp.privacy import ONE

__all__ = ["Pair", "blanketed", "of_rows", "pairs"]

_FINE = 32.0  # steps of the lattice for one deviation of a number
_MOST = 1 << 22  # steps of the window
_ENTRIES = 1 << 25  # of all pairs of rows, that are looked at one by one
_NEAR = 1e-13  # of delta, that a pair may be above another that stands for it, with all rounding
_STEEPEST = 300.0  # epsilon: its exponential is squared, and a larger epsilon has no larger delta
_GAIN = 2.0**-50  # of the two chances: more than the rounding of their difference
_FACTOR = 2.0**-50  # for each user: more than the rounding of a chance, in a product


class Pair(NamedTuple):
    """Two inputs by what their reports tell: reports of the same three chances are one kind.

    Attributes
    ----------
    least : ndarray of float64, shape (kinds,)
        Chances that no input has less of: the blanket, or a part of it.
    one, other : ndarray of float64, shape (kinds,)
        Chances under the two inputs.
    """

    least: NDArray[np.float64]
    one: NDArray[np.float64]
    other: NDArray[np.float64]


@singledispatch
def pairs(channel: Any) -> list[Pair]:
    """Return pairs of inputs of which one is the worst, whatever epsilon and the number of users.

    Raises
    ------
    TypeError
        If the blanket of such a channel is not known.
    ValueError
        If there are too many of them.

    Notes
    -----
    Where reports are in a block of cells, or one bit of many is set, every two inputs have the same kinds of
    reports, more or less of them. Let Z be (P(y) - e^eps P'(y))/g(y) with chance g(y) (`blanketed`). A cell
    that two blocks share, and one that neither has, replace two cells that tell the inputs apart: of the
    ratio h = (H/m)/L, with E = e^eps, they put (1 - E) h and 1 - E in place of h - E and 1 - E h. The sums
    are the same and the former two lie between the latter, so that Z is less in the convex order, and so are
    sums of it. Hence blocks that have least in common are the worst.
    """
    raise TypeError(f"channel: the blanket of a {type(channel).__name__} is not known")


@pairs.register(Matrix)
@pairs.register(Shift)
def _(channel: Matrix | Shift) -> list[Pair]:
    if channel.inputs * channel.inputs * channel.outputs > _ENTRIES:
        raise ValueError(
            f"mechanism: {channel.inputs} inputs and {channel.outputs} reports are too many for a bound of "
            "shuffled reports from their law; shuffled_central_epsilon knows its epsilon alone"
        )
    return of_rows(channel.probabilities())


@pairs.register(Cap)
@pairs.register(Design)
@pairs.register(Subset)
@pairs.register(Window)
def _(channel: Cap | Design | Subset | Window) -> list[Pair]:
    return [of_blocks(overlap(channel))]


@pairs.register
def _(channel: Unary) -> list[Pair]:
    # An input is at least as likely as none at all, but for its one bit.
    p, q = (Fraction(each, ONE) for each in channel.thresholds())
    held = min((1 - p) / (1 - q), p / q)
    none, one, other = [], [], []
    for first in (0, 1):
        for second in (0, 1):
            a, b = (q if first else 1 - q), (q if second else 1 - q)
            none.append(held * a * b)
            one.append((p if first else 1 - p) * b)
            other.append(a * (p if second else 1 - p))
    return [_pair(none, one, other)]


def of_blocks(law: Overlap) -> Pair:
    """Return the inputs whose blocks have least in common: cells of one, the other, both and neither."""
    high = Fraction(law.high, ONE) / law.width
    low = (1 - Fraction(law.high, ONE)) / (law.cells - law.width)
    own = law.width - law.shared
    counts = [own, own, law.shared, law.cells - 2 * law.width + law.shared]
    one, other = (high, low, high, low), (low, high, high, low)
    return _pair(
        [count * low for count in counts],
        [count * each for count, each in zip(counts, one, strict=True)],
        [count * each for count, each in zip(counts, other, strict=True)],
    )


def _pair(least: Sequence[Fraction], one: Sequence[Fraction], other: Sequence[Fraction]) -> Pair:
    table = np.array([[float(each) for each in row] for row in (least, one, other)])
    return Pair(*table[:, table.any(axis=0)])


def of_rows(rows: NDArray[np.float64]) -> list[Pair]:
    """Return all pairs of rows P(report | input), each kind of pair once."""
    least = rows.min(axis=0)
    found: dict[bytes, Pair] = {}
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            if i != j:
                table = np.stack([least, one, other])
                table = table[:, np.lexsort(table)]
                found.setdefault(table.tobytes(), Pair(*table))
    return list(found.values())


def blanketed(inputs: Iterable[Pair], n: int, epsilon: float) -> float:
    """Return an upper bound of the central delta of shuffled reports, whatever the others' records.

    Parameters
    ----------
    inputs : iterable of Pair
        Pairs of inputs of which one is the worst.
    n : int
        Users.
    epsilon : float
        Zero or more.

    Notes
    -----
    Let g(y) be the least chance of a report y under any input, or less, and G their sum. Every report of the
    others is one of g/G with probability G whatever their record, which hides the user among them. If the
    rest are told, delta is E[(Z_1 + ... + Z_n)_+]/n, each Z being (P(y) - e^eps P'(y))/g(y) with probability
    g(y), else 0 (Balle, Bell, Gascon and Nissim, "The privacy blanket of the shuffle model", CRYPTO 2019,
    Lemmas 5.1 to 5.3). Values between two points of the lattice are split among them with the same mean: by
    Jensen's inequality that only raises the expectation.
    """
    kept, missed = _worst(inputs, epsilon)
    worst = max((lost + _expected(gains, least, n) for gains, least, lost in kept), default=0.0)
    return min(1.0, (worst + missed) * (UP + n * _FACTOR))


class _Gains(NamedTuple):
    """Gains of a pair at an epsilon, with the blanket's chances of them, and what no blanket hides."""

    gains: NDArray[np.float64]
    least: NDArray[np.float64]
    lost: float

    def beyond(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return E[(Z - level)_+] for each level."""
        values = np.append(self.gains / self.least, 0.0)
        chances = np.append(self.least, max(0.0, 1.0 - float(self.least.sum())))
        result: NDArray[np.float64] = np.maximum(values - levels[:, None], 0.0) @ chances
        return result


def _worst(inputs: Iterable[Pair], epsilon: float) -> tuple[list[_Gains], float]:
    """Return the pairs that may be the worst, and a bound of what is missed by leaving out the others.

    Of two laws of Z, the one whose E[(Z - t)_+] is less at every t is less in the convex order, and so are
    its sums. It is enough to compare where the larger one, which is linear between its values, has a value.
    Where the difference is d at most, E[(Z_1 + ... + Z_n)_+]/n differs by d at most.
    """
    factor, left = math.exp(min(epsilon, _STEEPEST)), []
    for least, one, other in inputs:
        said = least > 0.0
        gains = one[said] * (1.0 + _GAIN) - factor * (1.0 - _GAIN) * other[said]
        left.append(_Gains(gains, least[said], float(one[~said].sum())))
    left.sort(key=lambda each: float(np.square(each.gains) @ (1.0 / each.least)))
    kept, missed = [], 0.0
    while left:
        widest = left.pop()
        kept.append(widest)
        levels = np.append(widest.gains / widest.least, 0.0)
        ceiling, rest = widest.beyond(levels), []
        rounding = 2.0**-48 * float(ceiling.max())
        for each in left:
            above = max(0.0, float((each.beyond(levels) - ceiling).max())) + rounding
            if each.lost <= widest.lost and above <= _NEAR:
                missed = max(missed, above)
            else:
                rest.append(each)
        left = rest
    return kept, missed


def _expected(gains: NDArray[np.float64], least: NDArray[np.float64], n: int) -> float:
    """Return an upper bound of E[(sum of Z)_+]/n, with Z = gains/least at the chances `least`, else 0."""
    values = np.append(gains / least, 0.0)
    chances = np.append(least, max(0.0, 1.0 - float(least.sum())))
    mean = float(chances @ values)
    if values.max() <= 0.0:
        return 0.0
    deviation = math.sqrt(float(chances @ np.square(values - mean)))
    step = max(deviation / _FINE, 4.0 * WIDTH * deviation * math.sqrt(n) / _MOST)
    step = max(step, (float(values.max()) - float(values.min())) / (_MOST / 8.0))
    low = np.floor(values / step).astype(np.int64)
    share = values / step - low
    first = int(low.min())
    law: NDArray[Any] = np.bincount(
        low - first, weights=chances * (1.0 - share), minlength=int(low.max()) - first + 2
    )
    law = law + np.bincount(low + 1 - first, weights=chances * share, minlength=len(law))
    total = Sum(law, first, n, 0.0)
    above = total.sums > 0
    sums = total.sums[above]
    weight = np.exp(np.minimum(total.logs()[above], 700.0)) * sums
    expected = float(np.maximum(total.chances[above], 0.0) @ weight) + total.error * float(weight.sum())
    # a sum beyond the window is at most n times the largest number
    expected += total.beyond() * n * (float(low.max()) + 1.0)
    return expected * step / n
