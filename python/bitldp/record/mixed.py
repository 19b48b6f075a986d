"""Records of numbers and categories under one budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.base.keys import RandomSource
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.intervals import joined
from bitldp.letters.spread import Spread
from bitldp.mechanism.attributes.base import AttributesAccumulator
from bitldp.mechanism.attributes.shared import SharedBudget
from bitldp.mechanism.base import Output
from bitldp.mechanism.numeric import refuse_outside
from bitldp.mechanism.parameters import (
    RANDOMIZE,
    Budget,
    Features,
    FieldId,
    Flag,
    Interval,
    Option,
    one_of,
    refuse_unknown,
)
from bitldp.record.categorical import CategoryAttributes, LabelledAttributes, Oracles, Spend, chosen
from bitldp.record.choice import NUMBERS, indicators, indicators_worst, mean_indicators, number_mechanism
from bitldp.release.base import called
from bitldp.release.keyed import Ids, keyed_randomness
from bitldp.release.sampled import checked_floats

__all__ = ["MixedRecord", "NumbersAndCategories"]


class NumbersAndCategories(LabelledAttributes):
    """Base of the records of numbers and categories: inputs, estimates of both, their variances.

    Not a dataclass: a subclass has the parameters `features`, `interval` and `clip`.
    """

    features: int
    interval: tuple[float, float]
    clip: bool

    _sized_by: ClassVar[str | None] = "features"
    _usual_size: ClassVar[int] = 2
    _no_mean: ClassVar[str] = "only its numbers have one"

    def _mean_of(self, parts: Sequence[Any], scale: float) -> float:
        number = parts[0]._check_spread().scaled(scale).mean()
        categories = mean_indicators(parts[self.features :], self._sizes, scale)
        return float(np.average([number, categories], weights=[self.features, sum(self._sizes)]))

    def mean_variance(self) -> float:
        """Return the mean `variance` over numbers, indicators and uniform inputs.

        See `Mechanism.mean_variance`.
        """
        return self._mean_of(self._parts, self._scale)

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example: numbers, and two categories."""
        return {**super()._usual(epsilon, size), "attributes": (2, 16)}

    def _ends(self) -> tuple[Any, Any]:
        low, high = (np.full(self.features, end) for end in self.interval)
        first, last = [0] * len(self._sizes), [each - 1 for each in self._sizes]
        return (low, self._as_given(first)), (high, self._as_given(last))

    def _values(self, record: Any) -> list[Any]:
        numbers, categories = record
        return [
            *np.asarray(numbers, float).reshape(-1),
            *self._admitted("pair", self._codes_of("pair", categories))[0].tolist(),
        ]

    def outside(self, x: ArrayLike) -> int:
        """Return how many numbers are clipped when they are released; see `Mechanism.outside`."""
        return self.mechanisms[0].outside(x)

    def randomize(  # type: ignore[override]
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        rng: RandomSource = None,
        output: Output = "codes",
        out: NDArray[Any] | None = None,
        threads: int | None = None,
        first_chunk: int = 0,
        **unknown: Any,
    ) -> Any:
        """Randomize numbers and categories.

        Parameters
        ----------
        x : array_like of float, shape (n, features) or (features,)
            Numbers of the records.
        y : array_like, shape (n, attributes) or (attributes,)
            Their categories: integers from 0, or labels where the attribute has any.
        rng : None, int, SeedSequence or Generator
            None draws fresh 256-bit keys from the operating system. The others give reproducible reports, for
            tests and experiments only: a key that is used on two inputs reveals where they differ.
        threads : int, optional
            Number of threads; the result does not depend on it.
        output : {"codes", "packed"}
            Form of the reports.
        out : None
            Not available, since a report is several arrays.
        first_chunk : int
            How many chunks of ``bitldp._core.CHUNK`` records of the stream to skip.

        Returns
        -------
        SampledReports, or tuple of ndarray
            The reports in the form that `CategoricalRecord` returns.

        Raises
        ------
        ValueError, TypeError
            For a value that is refused, whether it is sampled or not, and where `x` and `y` differ in length.
        """
        if unknown:
            refuse_unknown("randomize", unknown, RANDOMIZE)
        tables, records = self._admit_pair(x, y)
        call = called(rng, output, out, threads, first_chunk, self.outputs, self._streams)
        return self._released(tables, records, call)

    def randomize_keyed(  # type: ignore[override]
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        key: bytes,
        ids: Ids,
        context: bytes = b"",
        column: int = 0,
        output: str | None = None,
        threads: int | None = None,
        duplicates: bool = False,
    ) -> Any:
        """Randomize numbers and categories with keyed randomness; see `Mechanism.randomize_keyed`.

        Numbers and categories of a record together are the value.
        """
        randomness = keyed_randomness(key, ids, context, column, duplicates)
        tables, records = self._admit_pair(x, y)
        call = self._keyed(randomness, [table for _, table in tables], output, threads)
        return self._released(tables, records, call)

    def _admit_pair(self, x: ArrayLike, y: ArrayLike) -> tuple[list[tuple[int, NDArray[Any]]], int]:
        """Return checked tables, each with the number of its first attribute, and the number of records."""
        numbers = checks.numbers("x", x)
        checks.records("x", numbers, self.features)
        numbers = checked_floats(numbers).reshape(-1, self.features)
        if not self.clip:
            refuse_outside(numbers, self.interval)
        categories = self._admitted("y", self._codes_of("y", y))
        if len(categories) != len(numbers):
            raise ValueError(f"y: must be of {len(numbers)} records, as x is, got {len(categories)}")
        return [(0, numbers), (self.features, categories)], len(numbers)

    def estimate_mean(self, reports: Any) -> Estimate:
        """Estimate the mean of every number over the records, without bias.

        Parameters
        ----------
        reports : SampledReports, or tuple of ndarray
            As `randomize` gives them.

        Returns
        -------
        Estimate
            Shape (features,); `n` is the number of records. Each mean is estimated from the reports of its
            own number.

        Raises
        ------
        ValueError, TypeError
            If no unbiased decode exists (epsilon 0), if there is no report of some attribute, or for reports
            of another form or out of range.
        """
        return self._estimates(reports)[0]

    def estimate_frequencies(self, reports: Any, *, project: bool = False) -> tuple[Estimate, ...]:  # type: ignore[override]
        """Estimate the frequencies of every attribute of categories: `CategoricalRecord`.

        Raises
        ------
        ValueError, TypeError
            If no unbiased decode exists (epsilon 0), if there is no report of some attribute, or for reports
            of another form or out of range.
        """
        return self._estimates(reports, project=project)[1]

    def _estimates(self, reports: Any, *, project: bool = False) -> tuple[Estimate, tuple[Estimate, ...]]:
        estimates: Any = self.accumulator()._filled(reports).estimate(project=project)
        return estimates

    def _joined(self, estimates: list[Estimate]) -> tuple[Estimate, tuple[Estimate, ...]]:
        numbers = estimates[: self.features]
        value, stderr = (np.concatenate([getattr(each, name) for each in numbers])
                         for name in ("value", "stderr"))  # fmt: skip
        records = sum(each.n for each in estimates) // (self.k or len(estimates))
        moved = max((each.influence for each in numbers if each.influence is not None), default=None)
        means = Estimate(value, stderr, records, influence=moved, limits=joined(numbers))
        return means, self._named(estimates[self.features :])

    def accumulator(self) -> AttributesAccumulator:
        """Return an empty accumulator of all attributes; it estimates (means, frequencies).

        See `Mechanism.accumulator`.
        """
        return AttributesAccumulator(self)

    def variance(self, x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], ...]:
        """Return the variance of a record's unbiased numbers, and of its indicators.

        Parameters
        ----------
        x : array_like of float, shape (n, features) or (features,)
            True numbers; clipped to the interval first.
        y : array_like, shape (n, attributes) or (attributes,)
            True categories, as `randomize` takes them.

        Returns
        -------
        tuple of ndarray of float64
            That of the numbers, shape (n, features); then of the indicators of each attribute, shape
            (n, size). The choice of the attributes is included; see `CategoricalRecord.variance`.

        Raises
        ------
        ValueError
            If no unbiased decode exists (epsilon 0), for NaN, or for a category out of range.
        """
        numbers = np.asarray(x, dtype=np.float64).reshape(-1, self.features)
        checked_floats(numbers)
        table = self._admitted("y", self._codes_of("y", y))
        return (
            self._spread.at(numbers),
            *(
                indicators(part, table[:, position], size, self._scale)
                for position, (part, size) in enumerate(self._categorical())
            ),
        )

    @property
    def _spread(self) -> Spread:
        """Variance of a number, sampling included: where it is not sampled it counts as the middle."""
        one: Any = self.mechanisms[0]
        return one._check_spread().scaled(self._scale)

    def _categorical(self) -> list[tuple[Any, int]]:
        return list(zip(self.mechanisms[self.features :], self._sizes, strict=True))

    def worst_variance(self) -> float:
        """Return the largest `variance` of any number, indicator and record.

        See `Mechanism.worst_variance`.
        """
        result = [indicators_worst(part, size, self._scale) for part, size in self._categorical()]
        return max(self._spread.worst(), *result)


@dataclass(frozen=True, eq=False, repr=False)
class MixedRecord(NumbersAndCategories, SharedBudget):
    """Record of numbers and categories: sampled attributes get the whole budget, or all of them share it.

    Parameters
    ----------
    features : int
        Numbers of a record, 1 or more; its first attributes.
    attributes : sequence
        Categories of each further attribute, 2 or more; at least one attribute. How many, or their labels, as
        in `CategoricalRecord`.
    epsilon : float
        Exact epsilon of a record, finite, zero or more.
    spend : {"sample", "split"}
        "sample": `k` of all attributes are drawn publicly, without looking at the record, and each is
        released with epsilon/k. "split": every attribute is released with an equal share of the budget.
    k : int, optional
        Attributes of a record that are sampled, with "sample". None: the number with the least mean variance
        of numbers and indicators. The attribute then holds the chosen number.
    number : str
        Mechanism that releases a number: "best", or a class name such as "Duchi" and "Piecewise". "best"
        compares all of `bitldp.record.choice.NUMBERS` by their mean variance, and takes the one with the
        fewest bits within 2 % of the least. The attribute then holds the chosen name.
    oracle : str or sequence of str
        Mechanism that releases a category, as in `CategoricalRecord`.
    interval, clip
        As of `Duchi`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way. Epsilon, reports and sampling are those of `CategoricalRecord`,
    with the numbers as the first attributes: an index below `features` refers to a number.

    Source: Wang et al., "Collecting and analyzing multidimensional data with local differential privacy",
    ICDE 2019, Section IV-C.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.MixedRecord([3, 4], features=2, epsilon=2.0)
    >>> x, y = np.tile([0.5, -0.25], (100_000, 1)), np.tile([2, 0], (100_000, 1))
    >>> reports = mechanism.randomize(x, y, rng=1)
    >>> means = mechanism.estimate_mean(reports)
    >>> bool(abs(means.value - [0.5, -0.25]).max() < 5 * means.stderr.max())
    True
    >>> first, second = mechanism.estimate_frequencies(reports)
    >>> first.value.shape, second.value.shape
    ((3,), (4,))
    """

    features: Features = field(kw_only=True)
    attributes: Annotated[CategoryAttributes, FieldId("sizes")]
    _: KW_ONLY
    epsilon: Budget
    spend: Spend = "sample"
    k: int | None = None
    number: Annotated[
        str,
        one_of("best", *NUMBERS),
        Option(read=str, form="best|" + "|".join(NUMBERS), short="What answers for a number."),
    ] = "best"
    oracle: Oracles = "best"
    interval: Interval = (-1.0, 1.0)
    clip: Flag = True

    def _build(self) -> None:
        self._name()
        one, *parts = self._spend(self.features + len(self._sizes))
        names = tuple(type(part).__name__ for part in parts[self.features - 1 :])
        self._set(number=type(one).__name__, oracle=names)

    def _of(self, epsilon: float) -> list[Any]:
        one = number_mechanism(self.number, epsilon, self.interval, self.clip)
        return [one] * self.features + chosen(self.oracle, self._sizes, epsilon)
