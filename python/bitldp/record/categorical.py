"""Records of several categories: a public random choice of some gets the whole budget, or all share it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.base.arrays import first
from bitldp.client.program import ClientProgram
from bitldp.client.record import Type
from bitldp.codecs import Categories
from bitldp.estimate.estimates import Estimate
from bitldp.mechanism.attributes.base import Answers, Attributes, AttributesAccumulator
from bitldp.mechanism.attributes.release import EqualAttributes
from bitldp.mechanism.attributes.shared import SharedBudget
from bitldp.mechanism.parameters import Budget, CategoryNames, FieldId, Option, categories, one_of
from bitldp.record.choice import ORACLES, indicators, indicators_worst, mean_indicators, oracle
from bitldp.release.base import Call

__all__ = [
    "CategoricalRecord",
    "CategoryAttributes",
    "LabelledAttributes",
    "OnlyCategories",
    "Oracles",
    "Spend",
    "chosen",
]

_MOST = 1 << 20  # attributes

Spend = Annotated[Literal["sample", "split"], one_of("sample", "split")]


def read_sizes(text: str) -> tuple[int, ...]:
    """Return the numbers in a text."""
    return tuple(int(word) for word in re.findall(r"\d+", text))


def checked_attributes(name: str, value: Any) -> tuple[int | Categories, ...]:
    """Return the categories of each attribute: how many, 2 or more, or their labels."""
    if isinstance(value, (str, bytes)) or not np.iterable(value):
        raise TypeError(f"{name}: must be a sequence of numbers of categories, or of lists of labels")
    check = categories()
    result = tuple(check(f"{name}[{position}]", each) for position, each in enumerate(value))
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


CategoryAttributes = Annotated[
    Sequence[CategoryNames] | NDArray[Any],
    checked_attributes,
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


class LabelledAttributes(Attributes):
    """Base of the records with attributes of categories: integers from 0, or labels of public dictionaries.

    Not a dataclass: a subclass has the parameter `attributes`, and calls `_name` first while it is built. The
    mechanisms of the attributes know nothing of labels: their laws, reports and streams are those of codes.
    """

    attributes: Any

    # Set on the instance by `_name`: no fields of a dataclass, which this class is not.
    _sizes: tuple[int, ...]
    _dictionaries: tuple[Categories | None, ...]  # None where categories are integers

    def _name(self) -> None:
        """Keep the number of categories of each attribute, and its labels where there are any."""
        dictionaries = tuple(each if isinstance(each, Categories) else None for each in self.attributes)
        sizes = tuple(len(each) if isinstance(each, Categories) else each for each in self.attributes)
        self._set(_sizes=sizes, _dictionaries=dictionaries)

    @property
    def _labelled(self) -> bool:
        return any(each is not None for each in self._dictionaries)

    def _admit(self, x: Any) -> NDArray[Any]:
        return self._codes_of("x", x)

    def _codes_of(self, name: str, x: Any) -> NDArray[Any]:
        """Return categories as integers, whatever they came as; errors call the argument `name`."""
        if not self._labelled:
            return checks.plain(name, x)
        # Rows of a list may hold labels beside numbers, which NumPy would turn into text.
        table = checks.plain(name, x if hasattr(x, "dtype") else np.asarray(x, dtype=object))
        checks.records(name, table, len(self._sizes))
        columns = table.reshape(-1, len(self._sizes)).T
        codes = np.zeros(columns.shape, np.int64)
        for index, (dictionary, size) in enumerate(zip(self._dictionaries, self._sizes, strict=True)):
            own, values = f"{name}[:, {index}]", columns[index]
            if values.dtype == object:
                values = values.tolist()
            if len(values):
                one = (
                    checks.codes(own, values, size) if dictionary is None else dictionary._encode(own, values)
                )
                if one.ndim != 1:
                    raise ValueError(f"{own}: must be one label of a record")
                codes[index] = one
        return codes.T.reshape(table.shape)

    def _admitted(self, name: str, codes: Any) -> NDArray[Any]:
        """Return codes of records, shape (n, attributes), each checked to be one of its attribute."""
        sizes = self._sizes
        table = checks.codes(name, codes, 1 << 62)
        checks.records(name, table, len(sizes))
        table = table.reshape(-1, len(sizes))
        wrong = table >= np.array(sizes)
        if wrong.any():  # of all attributes: an error must not depend on which ones are drawn
            record, attribute = first(wrong)
            raise ValueError(
                f"{name}: the integer at index {(record, attribute)} is outside [0, {sizes[attribute]})"
            )
        return table

    def _as_given(self, codes: Sequence[int]) -> NDArray[Any]:
        """Return the codes of one record as `randomize` takes them: labels, where there are any."""
        if not self._labelled:
            return np.array(codes, np.int64)
        named = zip(self._dictionaries, codes, strict=True)
        return np.array([code if each is None else each.labels[code] for each, code in named], object)

    def _without_labels(self) -> Any:
        """Return the record of numbered categories with the same law."""
        return type(self)._quiet(**{**self.parameters, "attributes": self._sizes}) if self._labelled else self

    def _program(self, numbers: Type) -> ClientProgram:
        program = super()._program(numbers)
        first = self.columns - len(self._sizes)
        labelled = {
            run: self._dictionaries[run.start - first]
            for run in self._runs
            if run.stop - run.start == 1 and run.start >= first
        }

        def named(run: EqualAttributes, part: ClientProgram) -> ClientProgram:
            own = labelled.get(run)
            if own is None or part.record is None:
                return part
            return replace(part, record=replace(part.record, labels=tuple(map(str, own.labels))))

        parts = tuple(named(*both) for both in zip(self._runs, program.parts, strict=True))
        return replace(program, parts=parts)

    def decode(self, reports: Any) -> tuple[Answers, ...]:
        """Return the decoded values of each attribute's reports; see `Attributes.decode`.

        Categories are labels, where the attribute has any.
        """
        answers = super().decode(reports)
        start = len(answers) - len(self._dictionaries)
        return (*answers[:start], *map(_by_label, self._dictionaries, answers[start:]))

    def _named(self, estimates: Sequence[Estimate]) -> tuple[Estimate, ...]:
        """Return estimates of the attributes of categories with their labels, where they have any."""
        return tuple(
            estimate if each is None else replace(estimate, labels=each.labels)
            for each, estimate in zip(self._dictionaries, estimates, strict=True)
        )


def _by_label(dictionary: Categories | None, answers: Answers) -> Answers:
    """Return decoded categories as labels; unbiased letters, which are floats, stay as they are."""
    decoded = answers.reports
    if dictionary is None or decoded.dtype.kind not in "iu":
        return answers
    return answers._replace(reports=dictionary.decode(decoded))


class OnlyCategories(LabelledAttributes):
    """Base of the records of categories alone: their inputs, and estimates of their frequencies."""

    _no_mean: ClassVar[str] = "its reports are categories; use estimate_frequencies"

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example: three attributes."""
        return {"epsilon": epsilon, "attributes": (2, 5, 16)}

    def _ends(self) -> tuple[Any, Any]:
        return self._as_given([0] * len(self._sizes)), self._as_given([each - 1 for each in self._sizes])

    def _values(self, record: Any) -> list[Any]:
        return [int(each) for each in self._admitted("pair", self._codes_of("pair", record))[0]]

    def _joined(self, estimates: list[Estimate]) -> tuple[Estimate, ...]:
        return self._named(estimates)

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
            One for each attribute, of shape (size,), with its labels where it has any: its `n` is the number
            of reports of that attribute.

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


@dataclass(frozen=True, eq=False, repr=False)
class CategoricalRecord(OnlyCategories, SharedBudget):
    """Record of several categories: sampled attributes get the whole budget, or all of them share it.

    Parameters
    ----------
    attributes : sequence
        Categories of each attribute, 2 or more: how many, or their labels, public and in order, so that
        ``[3, ["red", "green"]]`` is an attribute of three categories and one of two labels. With labels,
        `randomize` takes them (a row holds a value of each attribute), `decode` returns them, and estimates
        carry them.
    epsilon : float
        Exact epsilon of a record, finite, zero or more.
    spend : {"sample", "split"}
        "sample": `k` attributes are drawn publicly, without looking at the record, and each is released with
        epsilon/k. "split": every attribute is released with an equal share of the budget.
    k : int, optional
        Attributes of a record that are sampled, with "sample". None: the number with the least mean variance,
        which is 1 except for large budgets. The attribute then holds the chosen number.
    oracle : str or sequence of str
        Mechanism that releases a category: "best", or a class name such as "GRR" and "OUE", one for all
        attributes or one for each. "best" compares all of `bitldp.record.choice.ORACLES` by their exact mean
        variance, and takes the one with the fewest bits within 2 % of the least. The attribute then holds the
        chosen names.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way. The epsilon of a record is the sum over its released attributes.
    With "sample" it is that of the k worst oracles, because the draw of the attributes is public and
    independent of the record. With "split" it is that of all attributes.

    With "sample", a report is a pair (indices, codes) of shape (n, k) each. If an oracle's report is more
    than a single code, the codes are bits of shape (n, k, bits), and shorter ones are padded with zeros. With
    "split", a report is a tuple of arrays, one for each run of attributes with the same oracle.

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

    attributes: Annotated[CategoryAttributes, FieldId("sizes")]
    _: KW_ONLY
    epsilon: Budget
    spend: Spend = "sample"
    k: int | None = None
    oracle: Oracles = "best"

    def _build(self) -> None:
        self._name()
        parts = self._spend(len(self._sizes))
        self._set(oracle=tuple(type(each).__name__ for each in parts))

    def _of(self, epsilon: float) -> list[Any]:
        return chosen(self.oracle, self._sizes, epsilon)

    def _mean_of(self, parts: Sequence[Any], scale: float) -> float:
        return mean_indicators(parts, self._sizes, scale)

    def _perturb(self, x: NDArray[Any], call: Call) -> Any:
        table = self._admitted("x", x)
        return self._released([(0, table)], len(table), call)

    def variance(self, x: ArrayLike) -> tuple[NDArray[np.float64], ...]:
        """Return the variance of a record's unbiased indicators of every category, for each attribute.

        Parameters
        ----------
        x : array_like, shape (n, attributes) or (attributes,)
            True records, as `randomize` takes them.

        Returns
        -------
        tuple of ndarray of float64
            Shape (n, size) for each attribute. The draw of the attributes is included; an attribute that is
            not sampled counts as 1/size. Over n records this is n times the variance of a frequency if all
            categories are equally frequent. If they are not, the estimates do better.

        Raises
        ------
        ValueError
            If no unbiased decode exists (epsilon 0), or for a category out of range.
        """
        table = self._admitted("x", self._codes_of("x", x))
        return tuple(
            indicators(part, table[:, position], size, self._scale)
            for position, (part, size) in enumerate(zip(self.mechanisms, self._sizes, strict=True))
        )

    def worst_variance(self) -> float:
        """Return the largest `variance` of any category, attribute and record.

        See `Mechanism.worst_variance`.
        """
        both = {(id(part), size): part for part, size in zip(self.mechanisms, self._sizes, strict=True)}
        return max(indicators_worst(part, size, self._scale) for (_, size), part in both.items())
