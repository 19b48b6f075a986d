"""Reports that count for several categories: those of a block, of a subset, or of one value of a hash."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Design
from bitldp.base import checks
from bitldp.client.program import ClientProgram
from bitldp.client.record import ClientRecord, Type
from bitldp.estimate.means import countable
from bitldp.estimate.statistics import counts_of
from bitldp.mechanism.base import Part, Takes
from bitldp.mechanism.frequencies import Frequencies, Labelled, TwoChances
from bitldp.mechanism.law import Block, Experiment, Pair, Symbols
from bitldp.release.base import Call, Direct

__all__ = ["DesignCodes", "Supported"]

_PATTERNS = ("of neither", "of the second", "of the first", "of both")


@dataclass(frozen=True, eq=False)
class _Pair(Experiment):
    """Two categories, and for which of them a report counts: nothing else of it distinguishes them.

    Attributes
    ----------
    supports : callable
        Whether reports count for the two categories, shape (n, 2).
    """

    supports: Callable[[Any], NDArray[np.bool_]] | None = None

    def split(self, reports: Any) -> list[NDArray[Any]]:
        """Return a symbol of each report: 2 if it counts for the first category, and 1 for the second."""
        if self.supports is None:
            raise TypeError("supports: is needed")
        return [self.supports(reports) @ np.array([[2], [1]])]


class Supported(Labelled, TwoChances):
    """Base of the mechanisms whose reports each count for several categories.

    A report counts for the record's category with probability p, for another one with probability q, and for
    both with probability `_both`.
    """

    _takes: ClassVar[Takes | None] = "categories"
    _sized_by: ClassVar[str | None] = "categories"
    _usual_size: ClassVar[int] = 10
    _alike: ClassVar[bool] = False
    _exclusive: ClassVar[bool] = False
    _reported: ClassVar[Literal["codes", "bits"] | None] = None

    # Derived of the parameters while the mechanism is built.
    _law: tuple[float, float, float]

    @property
    def _cells(self) -> int:
        return self._size

    def _check_informative(self) -> tuple[float, float]:
        p, q, _ = self._law
        if self.guarantee.record == 0.0:
            raise self._uninformative("categories")
        return p, q

    @abstractmethod
    def _support(self, reports: Any, categories: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether reports count for categories, shape (n, len(categories)); checks the reports."""

    def extremes(self, pair: Pair | None = None) -> Experiment:
        """Return two categories, and the law of those a report counts for; see `Mechanism.extremes`."""
        count = self._size
        given = [0, count - 1] if pair is None else [int(np.asarray(each)) for each in pair]
        chosen = checks.codes("pair", given, count).astype(np.int64)
        p, q, both = self._law
        rows = [[1.0 - p - q + both, rest - both, own - both, both] for own, rest in ((p, q), (q, p))]
        if chosen[0] == chosen[1]:  # of one attribute of records that differ in others
            rows = [[1.0 - p, 0.0, 0.0, p]] * 2
        block = Block(
            np.array(rows)[:, None], lambda _, value: f"the report is {_PATTERNS[value]} of the categories"
        )
        one, other = chosen.tolist()
        return _Pair(
            [one, other],
            [f"category {one}", f"category {other}"],
            [block],
            options={"output": self.outputs[0]},
            supports=lambda reports: self._support(reports, chosen),
        )

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return unbiased letters of reports: their mean over the random bits is the one-hot vector.

        Parameters
        ----------
        reports : array_like
            As `randomize` gives them.

        Returns
        -------
        ndarray of float64
            (1 - q)/(p - q) for the categories that a report counts for and -q/(p - q) for the others, in one
            more axis of length `categories` (of reports that are bits, in their shape).

        Raises
        ------
        ValueError
            If the reports are uninformative (epsilon 0), or for anything but reports.
        """
        p, q = self._check_informative()
        supported = self._support(reports, np.arange(self._size))
        return np.where(supported, (1.0 - q) / (p - q), -q / (p - q))

    def _facts(self, users: int | None = None) -> dict[str, Any]:
        """Return the two probabilities and the errors of a frequency; see `Mechanism._facts`."""
        p, q, _ = self._law
        law = {"a_report_counts_for_the_true_category": p, "and_for_each_other_one": q}
        return {"probabilities": law, **super()._facts(users)}

    def probabilities(self) -> tuple[float, float]:
        """Return (p, q): the chances that a report counts for the true category, and for another."""
        return self._law[:2]


class DesignCodes(Labelled, Frequencies):
    """Base of the mechanisms whose report is a code of a `bitldp._core.Design`."""

    _takes: ClassVar[Takes | None] = "categories"
    _sized_by: ClassVar[str | None] = "categories"
    _usual_size: ClassVar[int] = 10
    _alike: ClassVar[bool] = False
    _channel: Design

    @property
    def channel(self) -> Design:
        """The channel: its `high` is the law; uninformative at epsilon 0."""
        return self._channel

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: one code."""
        return ((1, (self._channel.outputs - 1).bit_length()),)

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channel of a report; none at epsilon 0."""
        return (Symbols((self._channel,), 1),) if self._channel.epsilon else ()

    @property
    def _bound(self) -> bool:
        return False  # one draw of a category, in which it is

    def _shortcut(self) -> Direct | None:
        if self.labels is not None:
            return None
        return Direct.of(self._channel.randomize, (None, "codes", None, None, 0), "codes", 1)

    def _program(self, numbers: Type) -> ClientProgram:
        record = ClientRecord.of_codes(self._size, labels=self.labels)
        return ClientProgram(record, self._report_parts, self._channel)

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        checks.records("x", x, 1)
        (key, *_), output, out, threads, first_chunk = call
        return self._channel.randomize(x, key, output, out, threads, first_chunk)

    def _read(self, reports: Any, records: int | None) -> tuple[str, Any, int]:
        """Return the form of reports, the reports, and how many there are; `records` if packed."""
        if records is not None:
            return "packed", reports, records
        array = countable("reports", reports)
        checks.records("reports", array, 1)
        return "codes", array, array.size

    def _count(
        self, reports: Any, records: int | None = None, threads: int | None = None
    ) -> tuple[int, NDArray[np.int64]]:
        form, array, records = self._read(reports, records)
        return records, counts_of(array, 1, self._channel.outputs, form, records, threads)[0]
