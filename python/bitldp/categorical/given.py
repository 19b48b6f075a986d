"""A mechanism from a table of probabilities that somebody brings: `from_matrix`."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Matrix
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.client.program import ClientProgram
from bitldp.client.record import ClientRecord, Type
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.estimates import LIARS, Estimate
from bitldp.estimate.intervals import LetterLaw
from bitldp.estimate.inverse import FrequencyAccumulator, Inverse, averaged
from bitldp.estimate.means import countable
from bitldp.estimate.statistics import counts_of
from bitldp.letters.reach import Reach
from bitldp.mechanism.base import Part
from bitldp.mechanism.frequencies import Frequencies, Labelled, labelled
from bitldp.mechanism.law import Experiment, Pair, Symbols, codes_of, of_rows
from bitldp.mechanism.parameters import Option, optional
from bitldp.mechanism.parameters import categories as category_check
from bitldp.privacy import Guarantee
from bitldp.release.base import Call, Direct, Release
from bitldp.release.table import table

__all__ = ["MatrixResponse", "from_matrix"]

_categories = category_check()
_TOLERANCE = 1e-9  # of the sum of a row


@dataclass(frozen=True, eq=False, repr=False)
class MatrixResponse(Labelled, Frequencies):
    """Mechanism with your own table of probabilities; see `from_matrix`.

    Parameters
    ----------
    matrix : array_like of float, shape (k, m)
        P(report | category), a row for each category: 2 to 65,536 rows and columns, none negative, each row
        with the sum 1 within 1e-9.
    categories : int, sequence or Categories, optional
        Labels of the k categories, public and in the order of the rows. None: integers from 0.
    numbers : array_like of float, shape (k,), optional
        Number that each category stands for, so that means can be estimated. None: it stands for none.
    claimed : float, optional
        Epsilon that the table's source claims. None: the exact one.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records hold any two categories. The exact epsilon is that of the integers that are sampled
    (multiples of 2**-64; the largest entry of a row absorbs the rounding), rounded up. It is infinite if some
    report is possible for one category and impossible for another. Estimates are unbiased, with the decoded
    values of least variance over uniform categories. For a large table, the time to sample depends on the
    category, because the sampler reads only its row; ``channel.constant_time`` tells whether this is the
    case.
    """

    matrix: Annotated[Any, Option(hidden=True)]
    _: KW_ONLY
    categories: Any = None
    numbers: Any = None
    claimed: Annotated[float | None, optional(checks.budget)] = None

    _sized_by: ClassVar[str | None] = None
    _usual_size: ClassVar[int] = 4
    _release: Release = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        matrix = _floats("matrix", self.matrix)
        if matrix.ndim != 2 or min(matrix.shape) < 2:
            raise ValueError(f"matrix: two axes of 2 or more are needed, got shape {matrix.shape}")
        _check_rows(matrix)
        try:
            channel = Matrix(matrix)
        except ValueError as error:
            raise ValueError(f"matrix: {error}") from None
        rows = len(matrix)
        given = _categories("categories", rows if self.categories is None else self.categories)
        if self._name(given) != rows:
            raise ValueError(f"categories: {self._size} do not fit the {rows} rows of the matrix")
        values = None if self.numbers is None else _finite(self.numbers, rows)
        exact = channel.epsilon
        claim = exact if self.claimed is None else self.claimed
        self._set(
            matrix=readonly(matrix),
            categories=given,
            numbers=values,
            _release=table(channel),
            _guarantee=Guarantee.judge(claim, (exact, exact, exact)),
        )

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the table of randomized response as an example; see `Mechanism._usual`."""
        count = cls._usual_size if size is None else size
        other = 1.0 / (math.exp(epsilon) + count - 1.0) * (1.0 - 1e-12)
        return {"matrix": np.full((count, count), other) + np.eye(count) * (1.0 - count * other)}

    @property
    def channel(self) -> Matrix:
        """The channel: its `weights()` are the law."""
        return self._release.channel

    @property
    def columns(self) -> int:
        """Categories of a record: one."""
        return 1

    @property
    def _cells(self) -> int:
        return self._size

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report."""
        return ((1, self._release.bits),)

    def _symbols(self) -> tuple[Symbols, ...]:
        return (Symbols(self._release.laws, 1),) if self._release.laws else ()

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return categories to compare and the law of their reports; see `Mechanism.extremes`."""
        chosen = codes_of(pair, self._size, None)
        return (
            None if chosen is None else of_rows(self._release.row, self._size, self.channel.outputs, chosen)
        )

    def _shortcut(self) -> Direct | None:
        return self._release.direct(1) if self.labels is None else None

    def _program(self, numbers: Type) -> ClientProgram:
        record = ClientRecord.of_codes(self._size, 1, self.labels)
        return ClientProgram(record, self._report_parts, self.channel)

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        checks.records("x", x, 1)
        return self._release.randomize(x, call)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law that is sampled: P[x, y] = P(report y | category x), shape (k, m)."""
        return self._release.probabilities()

    def decode(self, reports: ArrayLike) -> NDArray[Any]:
        """Return reports as they are, checked; as labels, where the table has a column for each category."""
        codes = checks.codes("reports", reports, self.channel.outputs)
        return self._by_label(codes) if self.channel.outputs == self._size else codes

    @cached_property
    def _inverse(self) -> Inverse:
        points = np.arange(self._size, dtype=np.float64) if self.numbers is None else self.numbers
        law = None if self._release.epsilon == 0.0 else self.probabilities()
        return Inverse(lambda: law, points, self._refuse)

    def _refuse(self, reason: str) -> ValueError:
        return ValueError(f"matrix: no unbiased decode exists; {reason}")

    def _count(
        self, reports: Any, records: int | None = None, threads: int | None = None
    ) -> tuple[int, NDArray[np.int64]]:
        """Return how many records reported, and how often each report came; `records` if packed."""
        form = "codes" if records is None else "packed"
        array = countable("reports", reports) if records is None else reports
        records = array.size if records is None else records
        return records, counts_of(array, 1, self.channel.outputs, form, records, threads)[0]

    def accumulator(self) -> CountAccumulator:
        """Return an empty accumulator of the counts; see `Mechanism.accumulator`."""
        shape, inverse = (self.channel.outputs,), self._inverse
        return _TableCounts(self, shape, self._count, inverse.indicators, inverse.law)

    def _indicators(self, reports: Any) -> NDArray[np.float64]:
        return self._inverse.indicators[checks.codes("reports", reports, self.channel.outputs)]

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of one report's unbiased indicator of every category; see `GRR.variance`."""
        return self._inverse.variance()[checks.codes("x", x, self._size)]

    def mean_variance(self) -> float:
        """Return the mean `variance` over indicators and uniform inputs; see `Mechanism.mean_variance`."""
        return float(self._inverse.variance().mean())

    def worst_variance(self) -> float:
        """Return the largest `variance` of any indicator, for any input; see `Mechanism.worst_variance`."""
        return float(self._inverse.variance().max())

    def _reach(self, total: bool = False) -> tuple[Reach]:
        return (Reach(self._inverse.indicators, total=1),)

    @property
    def letters(self) -> NDArray[np.float64]:
        """Decoded value of each report, shape (m,), whose mean is the value of the category; read-only.

        Raises
        ------
        ValueError
            Without `values`, or where no unbiased decode exists.
        """
        if self.numbers is None:
            raise ValueError("values: are required: the number that each category stands for")
        return self._inverse.letters

    def letter_variance(self) -> NDArray[np.float64]:
        """Return the variance of a report's letter for each category, shape (k,), in squared units."""
        _ = self.letters
        return self._inverse.letter_variance()

    def estimate_mean(self, reports: ArrayLike) -> Estimate:
        """Estimate the mean of the numbers that the records' categories stand for, without bias.

        Parameters
        ----------
        reports : array_like of int
            Codes of n >= 1 reports.

        Returns
        -------
        Estimate
            Shape (1,).

        Raises
        ------
        ValueError
            Without `values`, where no unbiased decode exists, or for no reports.
        """
        letters, values = self.letters, self.numbers
        n, counts = self._count(reports)
        law = LetterLaw.of_points(values, letters, self.letter_variance())
        reach = Reach(letters[:, None], ends=(float(values.min()), float(values.max())))
        return replace(averaged(counts[None], n, letters, law), influence=reach.moved(LIARS))


def _floats(name: str, given: Any) -> NDArray[np.float64]:
    values = checks.plain(name, given)
    if values.dtype.kind not in "fiu":
        raise TypeError(f"{name}: must be an array of numbers, not {values.dtype}")
    return np.array(values, np.float64)


def _finite(given: Any, rows: int) -> NDArray[np.float64]:
    """Return a finite number for each row, read-only."""
    values = _floats("values", given)
    if values.shape != (rows,) or not np.isfinite(values).all():
        raise ValueError(f"values: {rows} finite numbers are needed, one for each row of the matrix")
    return readonly(values)


class _TableCounts(FrequencyAccumulator):
    """Counts of a table's reports whose estimate carries the labels of the categories."""

    def estimate(self, *, project: bool = False) -> Estimate:
        """Estimate the frequencies; `labels` are those of the mechanism."""
        return labelled(self.mechanism, super().estimate(project=project))


def _check_rows(matrix: NDArray[np.float64]) -> None:
    """Refuse what is no table of probabilities by its place, and say how it is read."""
    wrong = ~((matrix >= 0.0) & (matrix <= 1.0 + _TOLERANCE))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(f"matrix: row {row}, column {column}: must be a number from 0 to 1")
    sums = matrix.sum(axis=1)
    if (apart := np.abs(sums - 1.0) > _TOLERANCE).any():
        row = int(np.argmax(apart))
        raise ValueError(
            f"matrix: row {row} sums to {sums[row]:.10g}; each row holds the probabilities of the "
            "reports of one category, and sums to 1 within 1e-9"
        )


def from_matrix(
    matrix: ArrayLike, labels: Any = None, values: ArrayLike | None = None, *, claimed: float | None = None
) -> MatrixResponse:
    """Make a mechanism from your own table of probabilities.

    Parameters
    ----------
    matrix : array_like of float, shape (k, m)
        P(report | category), a row for each category, each row with the sum 1.
    labels : sequence or Categories, optional
        Public labels of the k categories. None: integers from 0.
    values : array_like of float, shape (k,), optional
        Number that each category stands for; `estimate_mean` then estimates their mean.
    claimed : float, optional
        Epsilon that the table's source claims, to be compared with the exact one.

    Returns
    -------
    MatrixResponse
        It randomizes and estimates, and can be audited, composed over releases and compared with others.

    Raises
    ------
    ValueError, TypeError
        For a table with a row that does not sum to 1, or labels and values that do not fit it.

    Notes
    -----
    The exact epsilon holds for any two categories, from the integers that are sampled.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.from_matrix([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], labels=["no", "yes"])
    >>> print(f"{mechanism.guarantee.record:.4f}")
    1.9459
    >>> reports = mechanism.randomize(["yes"] * 8_000 + ["no"] * 2_000, rng=1)
    >>> shares = mechanism.estimate_frequencies(reports)
    >>> bool(abs(shares.value[1] - 0.8) < 5 * shares.stderr[1])
    True
    """
    return MatrixResponse(matrix, categories=labels, numbers=values, claimed=claimed)
