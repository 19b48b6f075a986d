"""Mean of decoded reports, with its standard error."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bitldp.federated.wire.codec import Named

_BLOCK = 1 << 15  # numbers at once, so that temporary arrays stay in the cache


def _blocks(rows: int, width: int) -> Iterator[slice]:
    """Yield the columns of a table by blocks of not too many numbers."""
    step = max(1, _BLOCK // max(1, rows))
    for start in range(0, width if rows else 0, step):
        yield slice(start, start + step)


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
        for at in _blocks(*rows.shape):
            self._add(np.array(rows[:, at], dtype=np.float64), at)

    def _add(self, rest: NDArray[np.float64], at: slice) -> None:
        # n + 2 parts below the unit's 2**52 multiples, as the paper's Algorithm 3.3 has it
        spare = math.ceil(math.log2(len(rest) + 2))
        part = np.empty_like(rest)
        while True:
            top = max(float(rest.max()), -float(rest.min()))
            if top == 0.0:
                return
            unit = math.ldexp(1.0, math.frexp(top)[1] + spare)
            np.add(rest, unit, out=part)
            part -= unit
            rest -= part
            self._take(part.sum(axis=0), at)

    def add_at(self, indices: NDArray[np.intp], values: NDArray[np.float64]) -> None:
        """Add to some coordinates, shape (m,) both; to one that stands several times, all of them."""
        while indices.size:
            at, chosen = np.unique(indices, return_index=True)
            self._take(values[chosen], at)
            if len(at) == len(indices):
                return
            indices, values = np.delete(indices, chosen), np.delete(values, chosen)

    def _take(self, vector: NDArray[np.float64], at: slice | NDArray[np.intp]) -> None:
        """Add to some coordinates, all different, exactly: what a part cannot hold goes to the next."""
        left = vector
        for whole in self._parts:
            part = whole[at]
            both = part + left
            moved = both - part
            left = (part - (both - moved)) + (left - moved)
            whole[at] = both
        if left.any():
            rest = np.zeros(len(self._parts[0]))
            rest[at] = left
            self._parts.append(rest)

    @property
    def value(self) -> NDArray[np.float64]:
        """The sum, rounded once, shape (size,)."""
        first, *rest = self._parts
        if not rest:
            return first.copy()
        total: NDArray[np.float64] = first + rest[0]  # of two doubles, rounded once
        for more in rest[1:]:
            for index in np.flatnonzero(more):
                total[index] = math.fsum(part[index] for part in self._parts)
        return total


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
    cancel digits. Vectors that are given by the coordinates that they name cost what these do; their
    deviations are from 0.
    """

    def __init__(self, size: int) -> None:
        self.reports = 0
        self._first: NDArray[np.float64] | None = None  # what deviations are from; None: 0
        self._total, self._weights = ExactSum(size), ExactSum(1)
        self._squares = self._largest = 0.0
        self._sum, self._square_sum, self._spread = np.zeros(size), np.zeros(size), np.zeros(size)

    def add(self, vector: NDArray[np.float64], weight: float) -> None:
        """Add one decoded report."""
        self.add_all(vector[None], weight)

    def add_all(self, vectors: NDArray[np.float64] | Named, weight: float = 1.0) -> None:
        """Add decoded reports of one weight, shape (n, size), or by the coordinates that they name."""
        if isinstance(vectors, Named) and self._first is not None:  # deviations from it are everywhere
            vectors = vectors.whole(len(self._sum))
        count = len(vectors.values) if isinstance(vectors, Named) else len(vectors)
        self._weights.add(np.array([[count * weight]]))
        self._largest = max(self._largest, weight)
        if isinstance(vectors, Named):
            self._added_named(vectors, weight)
        else:
            self._added(vectors, weight)
        self.reports += count
        self._squares += weight * weight * count

    def _added_named(self, named: Named, weight: float) -> None:
        indices, offsets = named.indices.ravel(), weight * named.values.ravel()
        self._total.add_at(indices, offsets)
        np.add.at(self._sum, indices, offsets)
        np.add.at(self._square_sum, indices, weight * offsets)
        np.add.at(self._spread, indices, np.square(offsets))

    def _added(self, vectors: NDArray[np.float64], weight: float) -> None:
        if self.reports == 0:
            self._first = np.array(vectors[0])
        self._total.add(weight * vectors if weight != 1.0 else vectors)
        for at in _blocks(*vectors.shape):
            offsets = vectors[:, at] if self._first is None else vectors[:, at] - self._first[at]
            offsets = weight * offsets if weight != 1.0 else offsets
            total = offsets.sum(axis=0)
            self._sum[at] += total
            self._square_sum[at] += weight * total
            self._spread[at] += np.einsum("ij,ij->j", offsets, offsets)

    @property
    def value(self) -> NDArray[np.float64]:
        """The mean, shape (size,)."""
        mean = self._total.value
        mean /= self._weights.value
        return mean

    @property
    def largest_share(self) -> float:
        """Largest share of the mean that is one report's."""
        return self._largest / float(self._weights.value[0])

    def errors(self) -> NDArray[np.float64]:
        """Return the standard error of each coordinate; for two reports or more."""
        weights = float(self._weights.value[0])
        scale = self.reports / (self.reports - 1)
        errors = np.empty_like(self._sum)
        for block in _blocks(1, len(errors)):
            offset = self._sum[block] / weights
            spread = self._spread[block] - 2.0 * offset * self._square_sum[block]
            spread += np.square(offset) * self._squares
            errors[block] = np.sqrt(scale * np.maximum(spread, 0.0)) / weights
        return errors

    def stderr(self) -> float:
        """Return the root mean square of `errors` over the coordinates."""
        errors = self.errors()
        return math.sqrt(float(np.mean(np.square(errors, out=errors))))
