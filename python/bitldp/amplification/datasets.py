"""All pairs of neighbouring data sets of a few users, and the laws of what is seen of them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bitldp.accounting.search import least_epsilon
from bitldp.amplification.sums import ROUND

__all__ = ["Datasets"]


class Datasets:
    """All pairs of neighbouring data sets of n users, and the laws of what is seen of them.

    Parameters
    ----------
    rows : ndarray of float64, shape (inputs, values)
        P(report | input) of every user.
    n : int
        Users.
    summed : bool
        Whether the sum of the codes is seen, or how often there is each.

    Notes
    -----
    What is seen has the characteristic function that is the product of the users'. It is taken on a grid that
    holds all outcomes, so nothing wraps around. A value of a law is off by at most ``n (6 log2 N + 4)`` unit
    roundoffs, for N outcomes; delta is rounded up by what all of them may be off.
    """

    def __init__(self, rows: NDArray[np.float64], n: int, summed: bool) -> None:
        inputs, values = rows.shape
        self.n, self.inputs = n, inputs
        shape = (n * (values - 1) + 1,) if summed else (n + 1,) * (values - 1)
        self.shape = shape
        points = np.zeros((inputs, *shape))
        for value in range(values):
            # of a histogram, the last count is what the others leave
            index = (value,) if summed else tuple(int(axis == value) for axis in range(values - 1))
            points.reshape(inputs, -1)[:, np.ravel_multi_index(index, shape)] += rows[:, value]
        axes = tuple(range(1, len(shape) + 1))
        self.factors = np.fft.rfftn(points, axes=axes)
        size = math.prod(shape)
        self.slack = size * ROUND * (n + 1) * (6.0 * math.log2(max(size, 2)) + 4.0)

    def _laws(self) -> Iterator[NDArray[np.float64]]:
        """Yield, for all records of the others, the laws for every input of the one user."""
        axes = tuple(range(len(self.shape)))
        for counts in _compositions(self.n - 1, self.inputs):
            powers = [factor**count for factor, count in zip(self.factors, counts, strict=True)]
            others = np.prod(powers, axis=0)
            laws = [np.fft.irfftn(others * factor, self.shape, axes).ravel() for factor in self.factors]
            yield np.maximum(np.stack(laws), 0.0)

    def delta(self, epsilon: float) -> float:
        """Return the delta of the worst pair at an epsilon, rounded up."""
        worst = max(_delta_of_laws(laws, epsilon) for laws in self._laws())
        return min(1.0, worst + self._slack(epsilon))

    def _slack(self, epsilon: float) -> float:
        return self.slack * (1.0 + math.exp(min(epsilon, 700.0)))

    def epsilon(self, delta: float, local: float) -> float:
        """Return the epsilon of the worst pair at a delta, rounded up and never above the local one."""
        worst = 0.0
        for laws in self._laws():

            def reached(epsilon: float, laws: NDArray[np.float64] = laws) -> float:
                return _delta_of_laws(laws, epsilon) + self._slack(epsilon)

            if worst >= local:
                break
            if reached(worst) > delta:
                worst = least_epsilon(reached, delta, worst, local, close=0.0, halvings=60)
        return worst


def _delta_of_laws(laws: NDArray[np.float64], epsilon: float) -> float:
    """Return the largest hockey-stick divergence of any ordered pair of laws."""
    factor = math.exp(min(epsilon, 700.0))
    return max(float(np.maximum(one - factor * laws, 0.0).sum(axis=1).max()) for one in laws)


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to share `total` among so many parts, in order."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)
