"""Mean of decoded reports, with its standard error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


class ExactSum:
    """Exact sum of vectors of doubles, streamed: the same in any order and in blocks of any size.

    Parameters
    ----------
    size : int
        Coordinates of a vector.

    Notes
    -----
    Of each block the leading bits are taken off, as multiples of one unit that is so large that their sums
    have no rounding (Rump, Ogita and Oishi, "Accurate floating-point summation", SIAM J. Sci. Comput. 31,
    2008), until nothing is left; the sums of the parts are kept as a few doubles a coordinate, whose sum is
    exact (Knuth's two-sum).
    """

    def __init__(self, size: int) -> None:
        self._parts: list[NDArray[np.float64]] = [np.zeros(size)]

    def add(self, rows: NDArray[np.float64]) -> None:
        """Add the vectors of a table, shape (n, size), all finite and below 2**960."""
        rest = np.array(rows, dtype=np.float64)
        # n + 2 parts below the unit's 2**52 multiples, as the paper's Algorithm 3.3 has it
        spare = math.ceil(math.log2(len(rest) + 2)) if len(rest) else 0
        part = np.empty_like(rest)
        while rest.size:
            top = max(float(rest.max()), -float(rest.min()))
            if top == 0.0:
                return
            unit = math.ldexp(1.0, math.frexp(top)[1] + spare)
            np.add(rest, unit, out=part)
            part -= unit
            rest -= part
            self._take(part.sum(axis=0))

    def _take(self, vector: NDArray[np.float64]) -> None:
        """Add one vector exactly: what each kept part cannot hold goes on to the next."""
        left = vector
        for index, part in enumerate(self._parts):
            both = part + left
            moved = both - part
            left = (part - (both - moved)) + (left - moved)
            self._parts[index] = both
        if left.any():
            self._parts.append(left)

    @property
    def value(self) -> NDArray[np.float64]:
        """The sum, rounded once, shape (size,)."""
        if len(self._parts) == 1:
            return self._parts[0].copy()
        return np.array([math.fsum(column) for column in zip(*self._parts, strict=True)])


class ReportMean:
    """Weighted mean of vectors, streamed.

    Parameters
    ----------
    size : int
        Coordinates of a vector.

    Notes
    -----
    With weights w_i that do not depend on the coins, m = sum w_i v_i / sum w_i is unbiased for the mean of
    the clients' updates so weighted, and its standard error is estimated, for each coordinate, by
    sqrt(n/(n - 1) * sum w_i^2 (v_i - m)^2) / sum w_i: the usual one where the weights are equal. The sums of
    m are exact, so that it does not depend on the order of the vectors, nor on how many are added at once;
    those of the standard error are of deviations from the first vector, so that a common offset does not
    cancel digits.
    """

    def __init__(self, size: int) -> None:
        self.reports = 0
        self._first = np.zeros(size)
        self._total, self._weights = ExactSum(size), ExactSum(1)
        self._squares = self._largest = 0.0
        self._sum, self._square_sum, self._spread = np.zeros(size), np.zeros(size), np.zeros(size)

    def add(self, vector: NDArray[np.float64], weight: float) -> None:
        """Add one decoded report."""
        self._weights.add(np.array([[weight]]))
        self._largest = max(self._largest, weight)
        self._added(vector[None], weight)

    def add_all(self, vectors: NDArray[np.float64]) -> None:
        """Add decoded reports of the weight 1, shape (n, size)."""
        self._weights.add(np.array([[float(len(vectors))]]))
        self._largest = max(self._largest, 1.0)
        self._added(vectors, 1.0)

    def _added(self, vectors: NDArray[np.float64], weight: float) -> None:
        if self.reports == 0:
            self._first = np.array(vectors[0])
        self._total.add(weight * vectors if weight != 1.0 else vectors)
        self.reports += len(vectors)
        self._squares += weight * weight * len(vectors)
        offsets = weight * (vectors - self._first)
        total = offsets.sum(axis=0)
        self._sum += total
        self._square_sum += weight * total
        self._spread += np.einsum("ij,ij->j", offsets, offsets)

    @property
    def value(self) -> NDArray[np.float64]:
        """The mean, shape (size,)."""
        mean: NDArray[np.float64] = self._total.value / self._weights.value
        return mean

    @property
    def largest_share(self) -> float:
        """Largest share of the mean that is one report's."""
        return self._largest / float(self._weights.value[0])

    def errors(self) -> NDArray[np.float64]:
        """Return the standard error of each coordinate; for two reports or more."""
        weights = float(self._weights.value[0])
        offset = self._sum / weights
        spread = self._spread - 2.0 * offset * self._square_sum + np.square(offset) * self._squares
        scale = self.reports / (self.reports - 1)
        errors: NDArray[np.float64] = np.sqrt(scale * np.maximum(spread, 0.0)) / weights
        return errors

    def stderr(self) -> float:
        """Return the root mean square of `errors` over the coordinates."""
        return math.sqrt(float(np.mean(np.square(self.errors()))))
