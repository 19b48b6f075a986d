"""Base of EXP, PS and PE: scores in, the index of one coordinate out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Select
from bitldp.base import checks
from bitldp.client.program import ClientProgram
from bitldp.client.record import ClientRecord, Type
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.mechanism.base import Part, Takes
from bitldp.mechanism.law import Block, Experiment, Pair, Symbols, worst_pair
from bitldp.mechanism.reports import OneArray
from bitldp.privacy import Guarantee
from bitldp.release.base import Call

MOST = 1 << 24  # coordinates: EXP's law has an entry for each


class Selection(OneArray):
    """Base of the mechanisms that report one coordinate of a vector, by the rank of its magnitude.

    Not a dataclass: a subclass says in which order its parameters come.
    """

    features: int
    epsilon: float

    # Derived of the parameters while the mechanism is built.
    _channel: Select
    _no_mean: ClassVar[str] = "a report names a large coordinate, and not its size"
    _no_frequencies: ClassVar[str] = "its law is about ranks, and not about a set of largest coordinates"
    _no_letters: ClassVar[str] = _no_frequencies

    _takes: ClassVar[Takes | None] = "scores"
    _sized_by: ClassVar[str | None] = "features"
    _usual_size: ClassVar[int] = 100

    def _finish(self, channel: Select) -> None:
        exact = channel.epsilon
        self._set(_channel=channel, _guarantee=Guarantee.judge(self.epsilon, (exact, exact, exact)))

    @property
    def channel(self) -> Select:
        """The channel: its `weights()`, over `total`, are the law of the ranks."""
        return self._channel

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: one index."""
        return ((1, max(1, (self._channel.outputs - 1).bit_length())),)

    def _join(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return reports, as `decode` takes them: one index a vector."""
        return parts[0].ravel()

    @property
    def columns(self) -> int:
        """Coordinates of a vector."""
        return self.features

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channel behind a report."""
        return (Symbols((self._channel,), 1),)

    def extremes(self, pair: Pair | None = None) -> Experiment:
        """Return vectors of opposite order and the law of the index; see `Mechanism.extremes`."""
        vectors, names = opposite_vectors(self.features)
        if pair is not None:
            vectors, names = [np.asarray(each, dtype=np.float64) for each in pair], ["pair[0]", "pair[1]"]
            if any(each.shape != (self.features,) for each in vectors):
                raise ValueError(f"pair: two vectors of shape ({self.features},) are needed")
        block = self.index_block(vectors)
        return Experiment(vectors, names, [block], [worst_pair(block.table[:, 0])], {"output": "codes"})

    def index_block(self, vectors: Sequence[NDArray[np.float64]]) -> Block:
        """Return the law of the index for vectors."""
        none = self._channel.dimensions

        def describe(_: int, value: int) -> str:
            return "none is selected" if value == none else f"coordinate {value} is selected"

        return Block(self.law(np.stack(vectors))[:, None, :], describe)

    @property
    def _bound(self) -> bool:
        return False  # one draw of a vector, in which it is

    def _admit(self, x: Any) -> NDArray[Any]:
        return checks.numbers("x", x)

    def _program(self, numbers: Type) -> ClientProgram:
        return ClientProgram(ClientRecord(numbers, self.columns), self._report_parts, self._channel)

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        """Select one coordinate of each vector of finite numbers, shape (n, features).

        What counts is the order of the magnitudes; equal ones (zeros of either sign among them) are ranked at
        random. A report is an index, 0 to features - 1; `PE` also reports `features`, for none.
        """
        (key, *_), output, out, threads, first_chunk = call
        return self._channel.randomize(x, key, output, out, threads, first_chunk)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law by rank, smallest magnitude first; for `PE`, that of no report is the last entry.

        Returns
        -------
        ndarray of float64, shape (features,) or (features + 1,)
        """
        weights, nothing = self._channel.weights(), self._channel.nothing
        law = weights / float(self._channel.total)
        return law if nothing is None else np.append(law, nothing / self._channel.total)

    def law(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of every report for given vectors: private, like the vectors.

        Parameters
        ----------
        scores : array_like of float, shape (n, features)
            Finite numbers.

        Returns
        -------
        ndarray of float64, shape (n, channel.outputs)
            Equal magnitudes share the chances of their ranks evenly.
        """
        table = self._check_scores(scores)
        by_rank = self.probabilities()
        width = table.shape[1]
        sums = np.concatenate([[0.0], np.cumsum(by_rank[:width])])
        result = np.empty((len(table), len(by_rank)))
        result[:, width:] = by_rank[width:]
        for row, sizes in zip(result, np.abs(table), strict=True):
            ordered = np.sort(sizes)
            first, end = np.searchsorted(ordered, sizes), np.searchsorted(ordered, sizes, side="right")
            row[:width] = np.where(
                end - first == 1, by_rank[first], (sums[end] - sums[first]) / (end - first)
            )
        return result

    def _check_scores(self, scores: ArrayLike) -> NDArray[np.float64]:
        table = checks.plain("scores", scores)
        if table.dtype.kind not in "fiu":
            raise TypeError(f"scores: must be an array of real numbers, not {table.dtype}")
        dimensions = self._channel.dimensions
        if table.ndim != 2 or table.shape[1] != dimensions:
            raise ValueError(f"scores: shape must be (n, {dimensions}), got {table.shape}")
        if not np.isfinite(table).all():
            raise ValueError("scores: must be finite")
        return table.astype(np.float64)

    def _check_reports(self, reports: ArrayLike) -> NDArray[Any]:
        codes = checks.codes("reports", reports, self._channel.outputs)
        if codes.ndim != 1:
            raise ValueError(f"reports: shape must be (n,), got {codes.shape}")
        return codes

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return unbiased letters of the top-k indicators, if the mechanism has a top k.

        Raises
        ------
        ValueError
            Where it has none.
        """
        raise ValueError(f"{type(self).__name__} has no unbiased decode: {self._no_frequencies}")

    def variance(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of the letters, where there are any.

        Raises
        ------
        ValueError
            Where there are none.
        """
        raise ValueError(f"{type(self).__name__} has no letters, and so no variance: {self._no_frequencies}")

    def accumulator(self) -> CountAccumulator:
        """Return an empty accumulator, where there is something to estimate.

        Raises
        ------
        ValueError
            Where there is not.
        """
        raise ValueError(f"{type(self).__name__} has nothing to accumulate: {self._no_frequencies}")


def opposite_vectors(dimensions: int) -> tuple[list[NDArray[np.float64]], list[str]]:
    """Return vectors of opposite order, all magnitudes above 1, and one of equal magnitudes."""
    rising = 1.0 + np.arange(1, dimensions + 1) / dimensions
    vectors = [rising, -rising[::-1], np.full(dimensions, 1.5)]
    return vectors, ["rising magnitudes", "falling magnitudes, negative", "equal magnitudes"]
