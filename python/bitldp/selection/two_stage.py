"""Selection and value together: a large coordinate of a vector and its value, both released privately."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import CHUNK, pack
from bitldp.base import checks
from bitldp.base.arrays import position
from bitldp.base.keys import RandomSource
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.intervals import LetterLaw
from bitldp.estimate.means import MeanAccumulator
from bitldp.letters.reach import Reach
from bitldp.letters.spread import Mixed
from bitldp.mechanism.base import Mechanism, Output, Part
from bitldp.mechanism.law import Block, Experiment, Pair
from bitldp.mechanism.numeric import Means
from bitldp.mechanism.parameters import FieldId, refuse_unknown
from bitldp.numeric.duchi import Duchi
from bitldp.privacy import Guarantee, added
from bitldp.release.base import Call, called
from bitldp.release.keyed import Ids, fitting, keyed_randomness
from bitldp.selection.base import Selection, opposite_vectors
from bitldp.selection.mechanisms import PS

__all__ = ["SelectedMeanAccumulator", "SelectedReports", "TwoStage", "floats"]


class SelectedReports(NamedTuple):
    """Reports of n vectors: one coordinate of each, and the report of its value.

    Attributes
    ----------
    indices : ndarray of unsigned int, shape (n,)
        The coordinates; the number of features stands for none.
    codes : ndarray, shape (n,)
        The reports of their values; that of a fixed value where there is no coordinate.
    """

    indices: NDArray[Any]
    codes: NDArray[Any]


class SelectedMeanAccumulator(MeanAccumulator):
    """Mean and variance of sparse updates: the letter at the selected coordinate, 0 at all others.

    Parameters
    ----------
    mechanism : Mechanism
        Whose reports are accumulated.
    letters : ndarray of float64, shape (alphabet,)
        Decoded value of each code.
    check : callable
        Checks reports and returns them as a pair.
    """

    def __init__(
        self,
        mechanism: TwoStage,
        letters: NDArray[np.float64],
        check: Callable[[Any], SelectedReports],
    ) -> None:
        super().__init__(mechanism, mechanism.selection.channel.dimensions, mechanism.decode)
        self._worth = letters
        self._check = check

    def _add_letters(self, reports: Any) -> None:
        """Add a batch of reports: a pair (indices, codes), each of shape (n,)."""
        indices, codes = self._check(reports)
        n, features = len(codes), len(self._summed[1])
        if n == 0:
            return
        positions, letters = indices.astype(np.intp), self._worth[codes]
        mean = np.bincount(positions, letters, features + 1)[:features] / n
        squares = np.bincount(positions, np.square(letters), features + 1)[:features]
        self._combine(n, mean, np.maximum(squares - n * np.square(mean), 0.0))


def floats(name: str, values: ArrayLike, dimensions: int) -> NDArray[Any]:
    """Return vectors that are finite everywhere: an error must not depend on the draw."""
    table = checks.numbers(name, values)
    if table.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name}: dtype {table.dtype} is not allowed; float32 and float64 are")
    if table.ndim != 2 or table.shape[1] != dimensions:
        raise ValueError(f"{name}: shape must be (n, {dimensions}), got {table.shape}")
    bad = ~np.isfinite(table)
    if bad.any():
        raise ValueError(f"{name}: {position(bad)} is not finite")
    return table


_PRINTED = 1 << 13  # codes of a law that is still written out


@dataclass(frozen=True, eq=False, repr=False)
class TwoStage(Mechanism):
    """FedSel's two stages: select a coordinate privately, then release its value privately.

    Parameters
    ----------
    selection : EXP, PS or PE
        The first stage.
    release : Duchi, Piecewise, PiecewiseSub, Hybrid or ThreeOutputs
        The second stage: a mechanism of one number that clips to its interval.

    Raises
    ------
    ValueError, TypeError
        For anything else.

    Notes
    -----
    Neighbours are any two vectors. The exact epsilon of the pair is the sum of both: some vector has its
    largest coordinate, selected, at one end of the interval, another its smallest at the other end (Theorem 1
    of the paper; it needs values clipped and ties broken at random). If `PE` selects no coordinate, the index
    says so, which is equally likely for all vectors. The code is then that of the middle of the interval, a
    fixed value that reveals nothing.

    The mean of the decoded updates is unbiased for the mean of ``P(select j) value_j``, not for the mean of
    the vectors. Coordinates that are rarely selected count less; `FedSel` accumulates them.

    Source: Liu, Cao, Yoshikawa and Chen, "FedSel", DASFAA 2020, Section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp.numeric import Piecewise
    >>> from bitldp.selection import PS, TwoStage
    >>> both = TwoStage(PS(4, k=1, epsilon=20.0), Piecewise(epsilon=8.0))
    >>> reports = both.randomize(np.array([[0.1, -0.9, 0.2, 0.0]]), rng=1)
    >>> both.guarantee.record, both.decode(reports).round(1)
    (28.0, array([[ 0. , -0.9,  0. ,  0. ]]))
    """

    selection: Selection
    release: Annotated[Means, FieldId("values")]

    _no_document: ClassVar[str] = (
        "a coordinate that was selected is released once more, which version 1 of the schema has no step for"
    )
    _no_mean: ClassVar[str] = (
        "a coordinate that was not selected counts as 0, so that no unbiased estimate of the mean of the "
        "vectors exists; "
        "aggregate(reports) is the mean of the sparse updates"
    )
    _no_letters: ClassVar[str] = "a coordinate that was not selected counts as 0"
    _no_frequencies: ClassVar[str] = "estimate them from the indices, by the selection"

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example: half of the budget for the selection, half for the value."""
        half = epsilon / 2.0
        return {"selection": PS._for_record(**PS._usual(half, size)), "release": Duchi(epsilon=half)}

    def _build(self) -> None:
        selection, values = self.selection, self.release
        if not isinstance(selection, Selection):
            raise TypeError(f"selection: must be EXP, PS or PE, not {type(selection).__name__}")
        if not isinstance(values, Means):
            raise TypeError(f"release: must be a mechanism of numbers, not {type(values).__name__}")
        if values.features != 1 or not values.clip or values.guarantee.delta:
            raise ValueError("release: must be a pure mechanism of one feature, with clip=True")
        first, second = selection.guarantee, values.guarantee
        exact = added(first.record, second.record)
        none = selection.channel.nothing is not None
        guarantee = Guarantee.judge(
            added(first.claimed, second.claimed),
            (exact, exact, exact),
            given="no selection comes with the report of a fixed value" if none else "",
        )
        self._set(_guarantee=guarantee)

    @property
    def features(self) -> int:
        """Coordinates of a vector."""
        return self.selection.channel.dimensions

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a record's index and of its code; "none" is an index, too."""
        return (1, self.selection.report_bits), (1, self._code_bits)

    def _join(self, parts: Sequence[NDArray[Any]]) -> SelectedReports:
        """Return reports, as `decode` takes them, of the arrays of indices and of codes."""
        return SelectedReports(parts[0].ravel(), parts[1].ravel())

    @property
    def columns(self) -> int:
        """Coordinates of a vector."""
        return self.features

    @property
    def _span(self) -> tuple[float, float]:
        """Where values lie: (low, high)."""
        return self.release._span

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return vectors of opposite order and the law of their reports; see `Mechanism.extremes`."""
        # Values beyond the interval, all of one sign, are reported alike wherever they are: then the code
        # does not depend on the index, and the law is a product. With a report of none it is not.
        if pair is not None:
            return None
        vectors, names = opposite_vectors(self.features)
        values, nothing = self.release, self.selection.channel.nothing
        if nothing is not None or values._span != (-1.0, 1.0) or values.alphabet > _PRINTED:
            return Experiment(vectors[:2], names[:2])
        law = values.probabilities()
        rows = np.stack([law[-1], law[0], law[-1]])
        codes = Block(rows[:, None, :], lambda _, value: f"the value is reported as {value}")
        blocks = [self.selection.index_block(vectors), codes]
        return Experiment(vectors, names, blocks, [(0, 1)], {"output": "codes"})

    @property
    def _code_bits(self) -> int:
        return max(1, (self.release.alphabet - 1).bit_length())

    @property
    def chunk(self) -> int:
        """Vectors in one chunk of the keys' streams."""
        return CHUNK

    def fingerprint(self) -> dict[str, Any]:
        """Return name and parameters as JSON values: the fingerprints of both stages."""
        stages = {"selection": self.selection.fingerprint(), "values": self.release.fingerprint()}
        return {"name": type(self).__name__, "parameters": stages}

    def randomize(  # type: ignore[override]
        self,
        scores: ArrayLike,
        values: ArrayLike | None = None,
        *,
        rng: RandomSource = None,
        output: Output = "codes",
        threads: int | None = None,
        first_chunk: int = 0,
        **unknown: Any,
    ) -> SelectedReports:
        """Select a coordinate of each vector and release its value.

        Parameters
        ----------
        scores : array_like of float32 or float64, shape (n, features)
            One vector a client, finite: the larger a magnitude, the likelier it is selected.
        values : array_like of float32 or float64, shape (n, features), optional
            What is released of the selected coordinate, clipped to the interval of `release`; finite. None:
            the scores.
        rng : None, int, SeedSequence or Generator
            None draws fresh 256-bit keys from the operating system. The others give reproducible reports, for
            tests and experiments only: a key that is used on two inputs reveals where they differ.
        threads : int, optional
            Number of threads; the result does not depend on it.
        output : {"codes", "packed"}
            Arrays of numbers, or packed bytes; they take `report_bits` bits a vector together.
        first_chunk : int
            How many chunks (of `chunk` vectors) of the keys' streams to skip.

        Returns
        -------
        SelectedReports
            Safe to release at `guarantee`.

        Raises
        ------
        ValueError, TypeError
            A number that is not finite (an index is given, never the value), wrong shape or dtype.
        """
        if unknown:
            refuse_unknown("randomize", unknown, ("rng", "output", "threads", "first_chunk"))
        call = called(rng, output, None, threads, first_chunk, self.outputs, self._streams)
        return self._perturb_pair(*self._admit_pair(scores, values), call)

    def randomize_keyed(
        self,
        scores: ArrayLike,
        values: ArrayLike | None = None,
        *,
        key: bytes,
        ids: Ids,
        context: bytes = b"",
        column: int = 0,
        output: str | None = None,
        threads: int | None = None,
        duplicates: bool = False,
    ) -> SelectedReports:
        """Select and release with keyed randomness; see `Mechanism.randomize_keyed`.

        Scores and values of a client together are the value.
        """
        randomness = keyed_randomness(key, ids, context, column, duplicates)
        sizes, table = self._admit_pair(scores, values)
        fitting(randomness, sizes)
        return self._perturb_pair(sizes, table, self._keyed(randomness, [sizes, table], output, threads))

    @property
    def _streams(self) -> int:
        return 1 + int(self.release._release.streams)

    def _admit_pair(self, scores: ArrayLike, values: ArrayLike | None) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return scores and values as checked arrays of one shape."""
        sizes = floats("scores", scores, self.features)
        table = sizes if values is None else floats("values", values, self.features)
        if table.shape != sizes.shape:
            raise ValueError(f"values: shape must be that of scores, {sizes.shape}, got {table.shape}")
        return sizes, table

    def _perturb_pair(self, sizes: NDArray[Any], table: NDArray[Any], call: Call) -> SelectedReports:
        """Select a coordinate of each vector of `sizes` and release its value in `table`."""
        key, *rest = call.keys
        channel = self.selection.channel
        skipped = call.first_chunk * (CHUNK // channel.chunk)
        indices = channel.randomize(sizes, key, "codes", None, call.threads, skipped)
        positions = indices.astype(np.intp)
        none = positions == channel.dimensions
        positions[none] = 0
        chosen = np.take_along_axis(table, positions[:, None], axis=1)[:, 0]
        chosen[none] = self._middle
        codes = self.release._release.randomize(chosen, call.codes(rest))
        reports = SelectedReports(indices, codes)
        return self.pack(reports) if call.output == "packed" else reports

    @property
    def _middle(self) -> float:
        low, high = self.release._ends
        return low + (high - low) / 2.0

    def pack(self, reports: Any) -> SelectedReports:
        """Return reports as packed bytes: `bitldp.pack` of the indices and of the codes."""
        indices, codes = self._check(reports)
        return SelectedReports(pack(indices, self.selection.report_bits), pack(codes, self._code_bits))

    def _check(self, reports: Any) -> SelectedReports:
        if not isinstance(reports, (tuple, list)) or len(reports) != 2:
            raise TypeError("reports: must be a pair (indices, codes), as randomize gives it")
        indices = checks.codes("reports.indices", reports[0], self.selection.channel.outputs)
        codes = checks.codes("reports.codes", reports[1], self.release.alphabet)
        if indices.ndim != 1 or indices.shape != codes.shape:
            raise ValueError(
                f"reports: shapes must be (n,), the same for both, got {indices.shape} and {codes.shape}"
            )
        return SelectedReports(indices, codes)

    def decode(self, reports: Any) -> NDArray[np.float64]:
        """Return the sparse updates as a dense array.

        Parameters
        ----------
        reports : SelectedReports
            As `randomize` gives them, not packed.

        Returns
        -------
        ndarray of float64, shape (n, features)
            The letter of the code at the selected coordinate (unbiased, given that it was selected), 0
            elsewhere. Zeros if no coordinate was selected.

        Raises
        ------
        ValueError, TypeError
            If the codes are uninformative (epsilon 0 of `release`), or for reports of another form.
        """
        letters = self.release.letters
        indices, codes = self._check(reports)
        dense = np.zeros((len(codes), self.selection.channel.dimensions + 1))
        dense[np.arange(len(codes)), indices.astype(np.intp)] = letters[codes]
        return dense[:, :-1]

    def aggregate(self, reports: Any) -> Estimate:
        """Return the mean of the sparse updates: line 10 of the paper's Algorithm 1.

        Parameters
        ----------
        reports : SelectedReports
            Reports of n >= 1 vectors, not packed.

        Returns
        -------
        Estimate
            Shape (features,). Not an unbiased estimate of the mean of the vectors (see Notes of the class).

        Raises
        ------
        ValueError, TypeError
            For no reports, or as `decode`.
        """
        return self.accumulator()._filled(reports).estimate()

    @cached_property
    def _letter_law(self) -> LetterLaw | None:
        """Law of a coordinate of a sparse update, for intervals: its letters, of which one is 0."""
        if self.release._release.letters is None:
            return None
        low, high = min(0.0, float(self.release.letters.min())), max(0.0, float(self.release.letters.max()))
        rate = 1.0 / self.selection.channel.dimensions
        return LetterLaw(Mixed.of_range(low, high), high - low, rate=rate)

    def accumulator(self) -> SelectedMeanAccumulator:
        """Return an empty accumulator of `aggregate`; see `Mechanism.accumulator`."""
        return SelectedMeanAccumulator(self, self.release.letters, self._check)

    def _reach(self, total: bool = False) -> tuple[Reach]:
        """Return the letters of the coordinate that a report is of, 0 for the others."""
        letters, count = self.release.letters, self.selection.channel.dimensions
        values = np.array([[letters.min(), 0.0], [letters.max(), 0.0]])
        return (Reach(values, np.tile([1, count - 1], (2, 1)), self.release._ends),)

    def variance(self, scores: ArrayLike, values: ArrayLike | None = None) -> NDArray[np.float64]:
        """Return the variance of a sparse update in each coordinate, in closed form.

        Parameters
        ----------
        scores : array_like of float, shape (n, features)
            One vector a client, finite: the larger a magnitude, the likelier it is selected.
        values : array_like of float, shape (n, features)
            What is released of the selected coordinate, clipped to the interval of `release`; finite. None:
            the scores.

        Returns
        -------
        ndarray of float64, shape (n, features)
            ``P (V + s^2) - (P s)^2``: P the probability to select the coordinate, s its clipped value, V the
            variance of the letter of s.

        Raises
        ------
        ValueError
            If the codes are uninformative (epsilon 0 of `release`), or for numbers that are not finite.
        """
        chance = self.selection.law(scores)[:, : self.selection.channel.dimensions]
        s = np.clip(np.asarray(scores if values is None else values, dtype=np.float64), *self.release._ends)
        return chance * (self.release.variance(s) + s * s) - np.square(chance * s)
