"""Records of several categories: a public random choice of some gets the whole budget, or all share it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.base.arrays import first
from bitldp.estimate.estimates import Estimate
from bitldp.mechanism.attributes.base import Attributes, AttributesAccumulator
from bitldp.mechanism.parameters import Budget, FieldId, Option, one_of
from bitldp.record.choice import ORACLES, indicators, indicators_worst, mean_indicators, oracle
from bitldp.release.base import Call

__all__ = ["CategoricalRecord", "Oracles", "Sizes", "Spend", "admitted", "chosen"]

_MOST = 1 << 20  # attributes

Spend = Annotated[Literal["sample", "split"], one_of("sample", "split")]


def read_sizes(text: str) -> tuple[int, ...]:
    """Return the numbers in a text."""
    return tuple(int(word) for word in re.findall(r"\d+", text))


def checked_sizes(name: str, value: Any) -> tuple[int, ...]:
    """Return numbers of categories, each 2 or more."""
    if isinstance(value, (str, bytes)) or not np.iterable(value):
        raise TypeError(f"{name}: must be a sequence of integers, one for each attribute")
    result = tuple(checks.count(f"{name}[{position}]", each, 2) for position, each in enumerate(value))
    if not 1 <= len(result) <= _MOST:
        raise ValueError(f"{name}: must be of 1 to {_MOST} attributes, got {len(result)}")
    return result


def checked_oracles(name: str, value: Any) -> str | tuple[str, ...]:
    """Return the name of an oracle, or one for each attribute."""
    if isinstance(value, str):
        return checks.choice(name, value, ("best", *ORACLES))
    if not np.iterable(value):
        raise TypeError(f"{name}: must be a str, or a sequence of them, not {type(value).__name__}")
    return tuple(
        checks.choice(f"{name}[{position}]", each, tuple(ORACLES)) for position, each in enumerate(value)
    )


Sizes = Annotated[
    Sequence[int] | NDArray[Any],
    checked_sizes,
    Option(form="N,N,...", read=read_sizes, short="Categories of each attribute."),
]

Oracles = Annotated[
    str | tuple[str, ...],
    checked_oracles,
    Option(read=str, form="best|" + "|".join(ORACLES), short="What answers for a category."),
]


def chosen(name: str | tuple[str, ...], sizes: Any, epsilon: float) -> list[Any]:
    """Return the oracle of each attribute."""
    names = (name,) * len(sizes) if isinstance(name, str) else name
    if len(names) != len(sizes):
        raise ValueError(f"oracle: one name, or one for each of {len(sizes)} attributes, got {len(names)}")
    return [oracle(each, size, epsilon) for each, size in zip(names, sizes, strict=True)]


def admitted(name: str, x: Any, sizes: Any) -> NDArray[Any]:
    """Return categories of records, shape (n, attributes), each checked to be one of its attribute."""
    table = checks.codes(name, x, 1 << 62)
    checks.records(name, table, len(sizes))
    table = table.reshape(-1, len(sizes))
    wrong = table >= np.array(sizes)
    if wrong.any():  # of all attributes: an error must not depend on which ones are drawn
        record, attribute = first(wrong)
        raise ValueError(
            f"{name}: the integer at index {(record, attribute)} is outside [0, {sizes[attribute]})"
        )
    return table


@dataclass(frozen=True, eq=False, repr=False)
class CategoricalRecord(Attributes):
    """Records of several categories: sampled attributes get the whole budget, or all share it.

    Parameters
    ----------
    attributes : sequence of int
        Categories of each attribute, 2 or more; they may differ.
    epsilon : float
        Exact epsilon of a record, finite, zero or more.
    spend : {"sample", "split"}
        "sample": a public coin, drawn without looking at the record, picks `k` attributes, each of which is
        released with epsilon/k. "split": every attribute is released with its even share.
    k : int, optional
        Attributes of a record that are sampled, with "sample". None: the number with the least mean variance,
        which is one but at large budgets. Holds the number afterwards.
    oracle : str or sequence of str
        What answers for a category: "best", or the name of a class such as "GRR" and "OUE", one for all
        attributes or one for each. "best" compares all of `bitldp.record.choice.ORACLES` by their exact mean
        variance; among those within 2 % of the least, the one of the fewest bits. Holds the names afterwards.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way. The epsilon of a record is the sum over its released attributes:
    with "sample" that of the k worst oracles, for which attributes were drawn is public and independent of
    the record; with "split" that of all.

    A report with "sample" is a pair (indices, codes) of shape (n, k) each; where an oracle's report is no
    single code, the codes are bits of shape (n, k, bits), with zeros behind the shorter ones. With "split" it
    is a tuple of arrays, one for each run of attributes with the same oracle.

    Each attribute is estimated from its own reports. With d attributes, one sampled and an oracle of variance
    V, the variance of a frequency f from n records is about ``(d V + (d - 1) f (1 - f))/n``.

    Sources: Wang et al., "Collecting and analyzing multidimensional data with local differential privacy",
    ICDE 2019; Arcolezi et al., "Random sampling plus fake data", CIKM 2021, whose SMP this is.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.CategoricalRecord([2, 3, 40], epsilon=1.0)
    >>> x = np.tile([0, 2, 7], (90_000, 1))
    >>> reports = mechanism.randomize(x, rng=1)
    >>> reports.indices.shape
    (90000, 1)
    >>> estimates = mechanism.estimate_frequencies(reports)
    >>> [round(float(each.value[truth]), 1) for each, truth in zip(estimates, x[0])]
    [1.0, 1.0, 1.0]
    """

    attributes: Annotated[Sizes, FieldId("sizes")]
    _: KW_ONLY
    epsilon: Budget
    spend: Spend = "sample"
    k: int | None = None
    oracle: Oracles = "best"

    _no_mean: ClassVar[str] = "its reports are categories; use estimate_frequencies"

    def _build(self) -> None:
        parts = self._spend(len(self.attributes))
        self._set(oracle=tuple(type(each).__name__ for each in parts))

    def _of(self, epsilon: float) -> list[Any]:
        return chosen(self.oracle, self.attributes, epsilon)

    def _mean_of(self, parts: Sequence[Any], scale: float) -> float:
        return mean_indicators(parts, self.attributes, scale)

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example: three attributes."""
        return {"epsilon": epsilon, "attributes": (2, 5, 16)}

    def _ends(self) -> tuple[Any, Any]:
        return np.zeros(len(self.attributes), np.int64), np.array(self.attributes) - 1

    def _values(self, record: Any) -> list[Any]:
        return [int(each) for each in admitted("pair", record, self.attributes)[0]]

    def _perturb(self, x: NDArray[Any], call: Call) -> Any:
        table = admitted("x", x, self.attributes)
        return self._released([(0, table)], len(table), call)

    def _admit(self, x: Any) -> NDArray[Any]:
        return checks.plain("x", x)

    def estimate_frequencies(self, reports: Any, *, project: bool = False) -> tuple[Estimate, ...]:  # type: ignore[override]
        """Estimate the frequency of every category of every attribute, without bias.

        Parameters
        ----------
        reports : SampledReports, or tuple of ndarray
            As `randomize` gives them.
        project : bool
            Whether to project the frequencies of each attribute to the simplex (which makes them biased).

        Returns
        -------
        tuple of Estimate
            One for each attribute, of shape (size,): its `n` is the number of reports of that attribute.

        Raises
        ------
        ValueError, TypeError
            If no unbiased decode exists (epsilon 0), if there is no report of some attribute, or for reports
            of another form or out of range.
        """
        return self.accumulator()._filled(reports).estimate(project=project)

    def accumulator(self) -> AttributesAccumulator:
        """Return an empty accumulator of all attributes; see `Mechanism.accumulator`."""
        return AttributesAccumulator(self)

    def variance(self, x: ArrayLike) -> tuple[NDArray[np.float64], ...]:
        """Return the variance of a record's unbiased indicators of every category, for each attribute.

        Parameters
        ----------
        x : array_like of int, shape (n, attributes) or (attributes,)
            True records.

        Returns
        -------
        tuple of ndarray of float64
            Shape (n, size) for each attribute. The choice of the attributes is included (what is not sampled
            counts as 1/size): over n records, of n times the variance of a frequency, where all categories
            are as frequent; where they are not, the estimates do better.

        Raises
        ------
        ValueError
            If no unbiased decode exists (epsilon 0), or for a category out of range.
        """
        table = admitted("x", x, self.attributes)
        return tuple(
            indicators(part, table[:, position], size, self._scale)
            for position, (part, size) in enumerate(zip(self.mechanisms, self.attributes, strict=True))
        )

    def worst_variance(self) -> float:
        """Return the largest `variance` of any category, attribute and record.

        See `Mechanism.worst_variance`.
        """
        both = zip(self.mechanisms, self.attributes, strict=True)
        return max(indicators_worst(part, size, self._scale) for part, size in dict.fromkeys(both))
