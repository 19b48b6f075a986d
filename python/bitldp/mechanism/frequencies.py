"""Mechanisms whose reports are categories: the frequencies of the categories, from counts of reports."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.codecs import Categories
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.estimates import Estimate, indicator_spread, indicator_variance
from bitldp.estimate.means import MeanAccumulator, countable
from bitldp.estimate.statistics import counts_of
from bitldp.letters.reach import Reach
from bitldp.mechanism.described import spreads
from bitldp.mechanism.reports import OneArray


class Labelled(OneArray):
    """Base of the mechanisms that take categories: integers from 0, or labels of a public dictionary.

    Not a dataclass: a subclass has the parameter, and gives it to `_name` while it is built. Reports are
    codes in either case; `decode` returns labels where there are any, and estimates carry them.
    """

    # Set on the instance by `_name`: no fields of a dataclass, which this class is not.
    _dictionary: Categories | None = None
    _size: int  # how many categories

    def _name(self, categories: Any) -> int:
        """Keep the labels, if that is what was given; return how many categories there are."""
        labelled = isinstance(categories, Categories)
        size: int = len(categories) if labelled else categories
        self._set(_dictionary=categories if labelled else None, _size=size)
        return size

    @property
    def labels(self) -> NDArray[Any] | None:
        """The labels of the categories by code, read-only; None where they are integers from 0."""
        return None if self._dictionary is None else self._dictionary.labels

    def _admit(self, x: Any) -> NDArray[Any]:
        return self._codes_of("x", x)

    def _codes_of(self, name: str, x: Any) -> NDArray[Any]:
        """Return categories as integers, whatever they came as; errors call the argument `name`."""
        if self._dictionary is not None:
            return self._dictionary._encode(name, x)
        values = checks.plain(name, x)
        if values.dtype == np.bool_:  # answers to a yes-or-no question
            return values.view(np.uint8)
        if values.dtype.kind in "USO":
            raise TypeError(
                f"{name}: must be an array of integers from 0, not {values.dtype}; {self._hint()}"
            )
        return values

    def _hint(self) -> str:
        """Return how labels are released."""
        return (
            "for labels, give them in place of their number: "
            f'{type(self).__name__}(["red", "green"], epsilon=...), '
            "or encode them by bitldp.Categories"
        )

    def _by_label(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return checked codes as labels, where there are any."""
        return codes if self._dictionary is None else self._dictionary.decode(codes)


def labelled(mechanism: Any, estimate: Estimate) -> Estimate:
    """Return an estimate with the labels of its mechanism, where it has any."""
    labels = getattr(mechanism, "labels", None)
    return estimate if labels is None else replace(estimate, labels=labels)


class LabelledCounts(CountAccumulator):
    """Counts of categories whose estimate carries their labels."""

    def estimate(self, *, project: bool = False) -> Estimate:
        """Estimate the frequencies; `labels` are those of the mechanism."""
        return labelled(self.mechanism, super().estimate(project=project))


class LabelledMeans(MeanAccumulator):
    """Means of noisy one-hot vectors whose estimate carries the labels of their entries."""

    def estimate(self) -> Estimate:
        """Estimate the frequencies; `labels` are those of the mechanism."""
        return labelled(self.mechanism, super().estimate())


class Frequencies(OneArray):
    """Base of the mechanisms whose reports are categories.

    Not a dataclass: a subclass says how many categories there are, and how counts are decoded.
    """

    _no_mean: ClassVar[str] = "its reports are categories; use estimate_frequencies"
    _exclusive: ClassVar[bool] = True  # whether a report is one category of each feature
    _reported: ClassVar[Literal["codes", "bits"] | None] = "codes"  # see `CountAccumulator`

    @property
    @abstractmethod
    def _cells(self) -> int:
        """How many categories there are."""

    def _count(
        self, reports: Any, records: int | None = None, threads: int | None = None
    ) -> tuple[int, NDArray[np.int64]]:
        """Return how many records reported, and the counts of their categories; `records` if packed."""
        form, array = "packed", reports
        if records is None:
            form, array = "codes", countable("reports", reports)
            checks.records("reports", array, self.columns)
            records = array.size // self.columns
        shape = self.columns, self._cells
        counts = counts_of(array, *shape, form, records, threads)
        return records, counts[0] if self.columns == 1 else counts

    def estimate_frequencies(self, reports: ArrayLike, *, project: bool = False) -> Estimate:
        """Estimate the frequency of every category among the records, without bias.

        Parameters
        ----------
        reports : array_like of int
            Reports of n >= 1 records, of the shapes that `randomize` returns.
        project : bool
            Whether to project the frequencies to the simplex (which makes them biased).

        Returns
        -------
        Estimate
            Shape (categories,), or (features, categories) for several features; with the labels, where the
            mechanism has any.

        Raises
        ------
        ValueError
            If no unbiased decode exists (epsilon 0), for no reports, or for a report out of range.
        """
        return self.accumulator()._filled(reports).estimate(project=project)

    def _indicators(self, reports: Any) -> NDArray[np.float64]:
        """Return what each report says of every category, shape (n, cells): the mean is the indicator."""
        letters: NDArray[np.float64] = self.decode(reports)
        return letters

    @abstractmethod
    def accumulator(self) -> CountAccumulator:
        """Return an empty accumulator of the counts: streams, merges and serialises."""

    @abstractmethod
    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of one report's unbiased indicator of every category, on one more axis."""

    def _facts(self, users: int | None = None) -> dict[str, Any]:
        """Return the errors of a frequency, of a category that nobody has and that all have.

        See `Mechanism._facts`.
        """
        try:
            everybody, nobody = np.sqrt(self.variance([0])[0, :2]).tolist()
        except ValueError as error:
            return {"errors": {"unbiased": str(error)}}
        deviations = {"of_a_category_one_has_not": nobody, "of_the_category_one_has": everybody}
        names = dict(
            zip(deviations, ("of_a_category_nobody_has", "of_a_category_everybody_has"), strict=True)
        )
        return {"errors": spreads("a_frequency", deviations, users, names)}


def checked_share(frequency: Any) -> float:
    """Return the share of the records that have a category."""
    share = checks.real("frequency", frequency)
    if not 0.0 <= share <= 1.0:
        raise ValueError("frequency: must be from 0 to 1")
    return share


class TwoChances(Frequencies):
    """Base of the mechanisms that report a category with p where a record has it, with q where it has not.

    A subclass says what p and q are.
    """

    @abstractmethod
    def _check_informative(self) -> tuple[float, float]:
        """Return p and q, or raise where no unbiased decode exists."""

    def accumulator(self) -> CountAccumulator:
        """Return an empty accumulator of the counts; see `Mechanism.accumulator`."""
        law = self._check_informative()
        shape = (self._cells,) if self.columns == 1 else (self.columns, self._cells)
        kind = CountAccumulator if getattr(self, "labels", None) is None else LabelledCounts
        return kind(
            self,
            shape,
            self._count,
            law,
            exclusive=self._exclusive,
            doubt=self._doubt,
            reported=self._reported,
        )

    def _doubt(self, n: int, counts: NDArray[np.int64]) -> str:
        """Return what of the counts no honest records give, however they are distributed; else nothing."""
        return ""

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of one report's unbiased indicator of every category, in closed form.

        Parameters
        ----------
        x : array_like of int
            True categories, any shape.

        Returns
        -------
        ndarray of float64
            Shape of `x` and one more axis of length `categories`: p(1 - p)/(p - q)^2 at the true category,
            q(1 - q)/(p - q)^2 at the others.

        Raises
        ------
        ValueError
            If no unbiased decode exists (epsilon 0), or for a category out of range.
        """
        p, q = self._check_informative()
        return indicator_variance(checks.codes("x", x, self._cells), self._cells, p, q)

    def _reach(self, total: bool = False) -> tuple[Reach]:
        """Return what a report decodes to for the categories that it counts for, and for the others."""
        p, q = self._check_informative()
        sizes = self._support_sizes() if total else (1, self._cells - 1)  # of one entry, either will do
        return (Reach.of_counts(p, q, self._cells, sizes),)

    def _support_sizes(self) -> tuple[int, int]:
        """Return for how few and for how many categories a report may count, whoever sends it."""
        return 1, 1

    def frequency_variance(self, frequency: float = 0.0) -> float:
        """Return the variance of an estimated frequency by the randomness of n reports, times n.

        Parameters
        ----------
        frequency : float
            Share of the records that have the category, 0 to 1.

        Returns
        -------
        float
            (f p(1 - p) + (1 - f) q(1 - q))/(p - q)^2, without the sampling of the records.

        Raises
        ------
        ValueError
            If no unbiased decode exists, or for a share out of range.
        """
        share = checked_share(frequency)
        p, q = self._check_informative()
        return (share * p * (1.0 - p) + (1.0 - share) * q * (1.0 - q)) / (p - q) ** 2

    def worst_variance(self) -> float:
        """Return the largest variance of a category's unbiased indicator; see `Mechanism.worst_variance`."""
        return indicator_spread(self._cells, *self._check_informative())[0]

    def mean_variance(self) -> float:
        """Return the mean of `variance` over categories and uniform inputs; see `Mechanism.mean_variance`."""
        return indicator_spread(self._cells, *self._check_informative())[1]
