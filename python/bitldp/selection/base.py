"""Base of EXP, PS and PE: scores in, the place of one coordinate out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Select
from bitldp.base import checks
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.means import countable
from bitldp.estimate.statistics import counts_of
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

    dimensions: int
    epsilon: float

    # Set on the instance, by _finish; ClassVar keeps it out of the dataclass' fields.
    _channel: ClassVar[Select]
    _no_mean: ClassVar[str] = "a report says which coordinate is large, and not how large"
    _no_frequencies: ClassVar[str] = "its law is about ranks, and not about a set of largest coordinates"
    _no_letters: ClassVar[str] = _no_frequencies

    takes: ClassVar[Takes | None] = "scores"
    sized_by: ClassVar[str | None] = "dimensions"
    usual_size: ClassVar[int] = 100

    def _finish(self, channel: Select) -> None:
        exact = channel.epsilon
        self._set(_channel=channel, _guarantee=Guarantee.judge(self.epsilon, (exact, exact, exact)))

    @property
    def channel(self) -> Select:
        """The channel: its `weights()`, over `total`, are the law of the ranks."""
        return self._channel

    @property
    def report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: one index."""
        return ((1, max(1, (self._channel.outputs - 1).bit_length())),)

    def join(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return reports, as `decode` takes them: one index a vector."""
        return parts[0].ravel()

    @property
    def columns(self) -> int:
        """Coordinates of a vector."""
        return self.dimensions

    def symbols(self) -> tuple[Symbols, ...]:
        """Return the channel behind a report."""
        return (Symbols((self._channel,), 1),)

    def extremes(self, pair: Pair | None = None) -> Experiment:
        """Return vectors of opposite order and the law of the index; see `Mechanism.extremes`."""
        vectors, names = opposite_vectors(self.dimensions)
        if pair is not None:
            vectors, names = [np.asarray(each, dtype=np.float64) for each in pair], ["pair[0]", "pair[1]"]
            if any(each.shape != (self.dimensions,) for each in vectors):
                raise ValueError(f"pair: two vectors of shape ({self.dimensions},) are needed")
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

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        """Select one coordinate of each vector of finite numbers, shape (n, dimensions).

        What counts is the order of the magnitudes; equal ones (zeros of either sign among them) are ranked at
        random. A report is an index, 0 to dimensions - 1; `PE` also reports `dimensions`, for none.
        """
        (key, *_), output, out, threads, first_chunk = call
        return self._channel.randomize(x, key, output, out, threads, first_chunk)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law by rank, smallest magnitude first; for `PE`, that of no report is the last entry.

        Returns
        -------
        ndarray of float64, shape (dimensions,) or (dimensions + 1,)
        """
        weights, nothing = self._channel.weights(), self._channel.nothing
        law = weights / float(self._channel.total)
        return law if nothing is None else np.append(law, nothing / self._channel.total)

    def law(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of every report for given vectors: private, like the vectors.

        Parameters
        ----------
        scores : array_like of float, shape (n, dimensions)
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
        found = np.empty((len(table), len(by_rank)))
        found[:, width:] = by_rank[width:]
        for row, sizes in zip(found, np.abs(table), strict=True):
            ordered = np.sort(sizes)
            first, end = np.searchsorted(ordered, sizes), np.searchsorted(ordered, sizes, side="right")
            row[:width] = np.where(
                end - first == 1, by_rank[first], (sums[end] - sums[first]) / (end - first)
            )
        return found

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
        """Return unbiased letters of the top-k indicators, where there is a top k; see its own method.

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


class TopAccumulator(CountAccumulator):
    """Counts of selected coordinates, for the share of vectors that have each among their top k."""

    def estimate(self, *, project: bool = False) -> Estimate:
        """Estimate the shares; they sum to k, so that there is no simplex to project to.

        Raises
        ------
        ValueError
            If nothing has been accumulated, or for ``project=True``.
        """
        if project:
            raise ValueError("project: must be False; the shares of a top k sum to k, not to 1")
        return super().estimate()


class TopSelection(Selection):
    """Base of PS and PE: each of the k largest is reported with one probability, each other with another."""

    @classmethod
    def usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example: the 10 largest coordinates, or all but one."""
        parameters = super().usual(epsilon, size)
        return parameters | {"k": max(1, min(10, parameters["dimensions"] - 1))}

    def _chances(self) -> tuple[float, float]:
        """Return P(a given top coordinate) and P(a given other one), which must differ."""
        weights, total = self._channel.weights(), self._channel.total
        high, low = int(weights[-1]), int(weights[0])
        if high == low:
            self._refuse_mute()
        return high / total, low / total

    def _refuse_mute(self) -> NoReturn:
        raise ValueError(
            f"{type(self).__name__}: no unbiased decode exists at epsilon 0, all coordinates are alike"
        )

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return unbiased letters of "coordinate j is among the k largest", for every j.

        Parameters
        ----------
        reports : array_like of int, shape (n,)
            Selected coordinates.

        Returns
        -------
        ndarray of float64, shape (n, dimensions)
            ``(indicator - b)/(a - b)``, a and b being the chances of a top coordinate and of another one.
            Ties at the k-th place count with the chance to be in the top k.

        Raises
        ------
        ValueError
            At epsilon 0, or for anything but such reports.
        """
        high, low = self._chances()
        codes = self._check_reports(reports)
        own = codes[:, None] == np.arange(self._channel.dimensions)
        letters: NDArray[np.float64] = np.where(own, 1.0 - low, -low) / (high - low)
        return letters

    def estimate_frequencies(self, reports: ArrayLike, *, project: bool = False) -> Estimate:
        """Estimate, without bias, the share of vectors that have each coordinate among their k largest.

        Parameters
        ----------
        reports : array_like of int, shape (n,)
            Selected coordinates of n >= 1 vectors.
        project : bool
            Must be False: the shares sum to k.

        Returns
        -------
        Estimate
            Shape (dimensions,).

        Raises
        ------
        ValueError
            At epsilon 0, for no reports, or for ``project=True``.
        """
        accumulator = self.accumulator()
        accumulator.update(reports)
        return accumulator.estimate(project=project)

    def accumulator(self) -> TopAccumulator:
        """Return an empty accumulator of the counts: streams, merges and serialises.

        Raises
        ------
        ValueError
            At epsilon 0.
        """
        shape = (self._channel.dimensions,)
        return TopAccumulator(self, shape, self._count, self._chances(), exclusive=False)

    def _count(
        self, reports: Any, records: int | None = None, threads: int | None = None
    ) -> tuple[int, NDArray[np.int64]]:
        form, array = "packed", reports
        if records is None:
            form, array = "codes", countable("reports", reports)
            if array.ndim != 1:
                raise ValueError(f"reports: shape must be (n,), got {array.shape}")
            records = len(array)
        cells = self._channel.outputs
        found = counts_of(array, 1, cells, form, records, threads)
        return records, found[0, : self._channel.dimensions]

    def variance(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of the letters that `decode` gives, in closed form.

        Parameters
        ----------
        scores : array_like of float, shape (n, dimensions)
            Vectors.

        Returns
        -------
        ndarray of float64, shape (n, dimensions)
            P (1 - P)/(a - b)^2, P the probability to report the coordinate.

        Raises
        ------
        ValueError
            At epsilon 0, or for scores of another shape or not finite.
        """
        high, low = self._chances()
        chance = self.law(scores)[:, : self._channel.dimensions]
        spread: NDArray[np.float64] = chance * (1.0 - chance) / (high - low) ** 2
        return spread

    def mean_variance(self) -> float:
        """Return the mean of `variance` over the coordinates of a vector without equal magnitudes.

        Raises
        ------
        ValueError
            At epsilon 0.
        """
        return float(self._by_rank().mean())

    def worst_variance(self) -> float:
        """Return the largest `variance` of a coordinate of a vector without equal magnitudes.

        Raises
        ------
        ValueError
            At epsilon 0.
        """
        return float(self._by_rank().max())

    def _by_rank(self) -> NDArray[np.float64]:
        ranks = np.arange(1.0, self._channel.dimensions + 1.0)
        spread: NDArray[np.float64] = self.variance(ranks[None, :])[0]
        return spread
