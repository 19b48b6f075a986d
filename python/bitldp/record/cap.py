"""Record of several categories: spends the budget once on the whole record, through subsets."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import CHUNK, Cap, KeyedRandomness, keystream, pack
from bitldp.base import checks
from bitldp.client.mechanisms import no_document
from bitldp.client.program import ClientProgram
from bitldp.client.record import ClientRecord, Type
from bitldp.estimate.estimates import Estimate
from bitldp.mechanism.attributes.release import payload, shape
from bitldp.mechanism.law import Block, Experiment, Pair, Symbols
from bitldp.mechanism.parameters import Budget, Option, one_of, optional, whole
from bitldp.privacy import Guarantee
from bitldp.record.cap_answer import CapAnswer
from bitldp.record.cap_law import MOST_DRAWN, CapLaw, Drawn, Kind, cap_law
from bitldp.record.cap_search import best_cap
from bitldp.record.cap_table import MOST_TOGETHER, TableAccumulator, TableLaw, table_law
from bitldp.record.categorical import CategoryAttributes, OnlyCategories, read_sizes
from bitldp.record.choice import indicators, indicators_worst
from bitldp.release.base import Call, Source
from bitldp.release.draws import distinct, words_by_record
from bitldp.release.sampled import SampledReports

__all__ = ["RecordCap", "each_of", "spread_out"]

_MOST = 1 << 12  # attributes, and categories of one that are reported as a subset
_LARGEST = 1 << 16  # categories of an attribute
_KEY = 32  # bytes
_WHICH = ("of neither", "of the second", "of the first", "of both")


def each_of(least: int, most: int, name: str, value: Any) -> int | tuple[int, ...]:
    """Return a whole number, or one for each attribute."""
    if isinstance(value, (str, bytes)) or not np.iterable(value):
        return checks.integer(name, value, least, most)
    return tuple(checks.integer(f"{name}[{index}]", each, least, most) for index, each in enumerate(value))


def spread_out(name: str, value: int | Sequence[int] | None, count: int) -> tuple[int | None, ...]:
    """Return one number for each attribute."""
    if value is None or isinstance(value, int):
        return (value,) * count
    if len(value) != count:
        raise ValueError(f"{name}: one number, or one for each of {count} attributes, got {len(value)}")
    return tuple(value)


@dataclass(frozen=True, eq=False)
class _Near(Experiment):
    """Two records, and whether a report is likely for the first, the second, both or neither."""

    record: RecordCap = field(kw_only=True)

    def split(self, reports: Any) -> list[NDArray[Any]]:
        record, law = self.record, self.record._law
        counts = np.zeros((len(law.kinds), len(reports[0])), np.int64)
        hits = np.zeros((2, len(reports[0])), np.int64)
        values = np.array([record._values(each) for each in self.inputs])
        for index, (rows, own) in enumerate(record.answers(reports)):
            part: Any = record.mechanisms[index]
            counts[record._kind_of[index], rows] += 1
            hits[:, rows] += part._support(own, values[:, index]).reshape(-1, 2).T
        which = np.zeros(counts.shape[1], np.int64)
        for position, drawn in enumerate(law.drawn):
            which[(counts == np.array(drawn.counts)[:, None]).all(axis=0)] = position
        near = hits >= law.hits
        return [(4 * which + 2 * near[0] + near[1])[:, None]]


@dataclass(frozen=True, eq=False, repr=False)
class RecordCap(OnlyCategories):
    """Record of several categories: spends the budget once on the whole record, through subsets.

    Parameters
    ----------
    attributes : sequence
        Categories of each attribute, 2 to 65,536: how many, or their labels, as in `CategoricalRecord`; 1
        to 4,096 attributes.
    epsilon : float
        Exact epsilon of a record, finite, zero or more.
    m : int, optional
        Attributes that are drawn publicly for each record, without looking at it, 1 to 256. If `m`, `subset`,
        `hits` or `weights` is None, bitldp chooses it: among the settings within 2 % of the least mean
        variance, the one with the fewest bits. The attribute then holds the chosen number.
    subset : int or sequence of int, optional
        Size w of the subset that is reported for each attribute. The attribute then holds the chosen numbers.
    hits : int, optional
        Threshold kappa, 1 to m: a report is likely if at least this many subsets contain the true category.
        The attribute then holds the chosen number.
    aim : {"frequencies", "tables"}
        Which mean variance to minimise: that of the frequencies of each attribute, or that of the cells of
        the joint tables of two attributes.
    weights : int or sequence of int, optional
        Relative weights of the attributes in the draw: the probability of a set of attributes is proportional
        to the product of their weights. None: probabilities in proportion to the deviations, if that lowers
        the variance. The attribute then holds the chosen weights.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range (the message names it), and if the drawn attributes have more than
        256 different laws.

    Notes
    -----
    For each drawn attribute j, a subset of w_j of its k_j categories is reported. Let t be the share of all
    lists of subsets in which at least kappa subsets contain the true category. With a public probability A, a
    report is uniform among these, otherwise among all. So epsilon = ln(1 + A/((1 - A) t)). The probability
    that a subset contains a category follows by exact counting, for each set of attributes that may be drawn.
    A depends on that set, so that each set has the exact epsilon of the budget or less. Special cases: one
    drawn attribute is subset selection; all drawn with kappa = m and w = 1 is randomized response on the
    product; yes-or-no attributes with w = 1 are PrivUnit on the hypercube.

    Neighbouring records differ in any way. The draw of the attributes is public. If not all are drawn, it is
    part of the report: a pair (indices, codes) of shape (n, m) each. If a subset is more than a single
    category, the codes have the shape (n, m, bits), and shorter ones are padded with zeros. If all are drawn,
    a report is a tuple of arrays, one for each run of attributes with the same categories and size.

    Each attribute is estimated from its own reports. Joint tables (`estimate_table`) are estimated from the
    reports that contain all of their attributes, so they need more than one drawn attribute.

    Sources: Duchi, Jordan and Wainwright, "Minimax optimal procedures for locally private estimation", JASA
    113 (2018), and Bhowmick et al., arXiv:1812.00984 (2018), for two categories; Ye and Barg, "Optimal
    schemes for discrete distribution estimation under locally differential privacy", IEEE Trans. Inf. Theory
    64 (2018), for one attribute.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.RecordCap([2, 3, 4], epsilon=6.0)
    >>> mechanism.m, mechanism.subset, mechanism.hits
    (3, (1, 1, 1), 3)
    >>> x = np.tile([0, 2, 1], (20_000, 1))
    >>> reports = mechanism.randomize(x, rng=1)
    >>> estimates = mechanism.estimate_frequencies(reports)
    >>> [round(float(each.value[truth]), 1) for each, truth in zip(estimates, x[0])]
    [1.0, 1.0, 1.0]
    >>> (mechanism.estimate_table(reports, (0, 2)).value[0].round(1) + 0.0).tolist()
    [0.0, 1.0, 0.0, 0.0]
    """

    attributes: CategoryAttributes
    _: KW_ONLY
    epsilon: Budget
    m: Annotated[int | None, optional(whole(1, MOST_DRAWN))] = None
    subset: Annotated[
        int | Sequence[int] | None,
        optional(partial(each_of, 1, 1 << 20)),
        Option(form="N|N,N,...", read=read_sizes, short="Categories of each subset."),
    ] = None
    hits: Annotated[int | None, optional(whole(1, MOST_DRAWN))] = None
    weights: Annotated[
        int | Sequence[int] | None,
        optional(partial(each_of, 1, 1 << 20)),
        Option(form="N|N,N,...", read=read_sizes, short="Chance of each attribute, by comparison."),
    ] = None

    aim: Annotated[Literal["frequencies", "tables"], one_of("frequencies", "tables")] = "frequencies"

    spend: ClassVar[str] = "joint"  # type: ignore[misc]

    _law: CapLaw = field(init=False, repr=False, compare=False)
    _kind_of: tuple[int, ...] = field(init=False, repr=False, compare=False)  # by attribute

    def _build(self) -> None:
        self._name()
        categories, count = self._sizes, len(self._sizes)
        if count > _MOST:
            raise ValueError(f"attributes: must be at most {_MOST}, got {count}")
        if max(categories) > _LARGEST:
            raise ValueError(f"attributes: must be of at most {_LARGEST:,} categories, got {max(categories)}")
        if self.m is not None and self.m > count:
            raise ValueError(
                f"m: must be between 1 and {count}, as many as there are attributes, got {self.m}"
            )
        subset, weights = (spread_out(name, getattr(self, name), count) for name in ("subset", "weights"))
        for index, (own, k) in enumerate(zip(subset, categories, strict=True)):
            if own is not None and own >= k:
                raise ValueError(
                    f"subset: that of attribute {index} is of 1 to {k - 1} categories, got {own}"
                )
        if self.hits is not None and self.hits > (self.m or min(count, MOST_DRAWN)):
            raise ValueError(f"hits: must be between 1 and m, got {self.hits}")
        alike = [
            (k, own or 0, weight or 0) for k, own, weight in zip(categories, subset, weights, strict=True)
        ]
        counted = Counter(alike)
        groups = sorted(counted)
        best = best_cap(
            tuple(each[0] for each in groups),
            tuple(counted[each] for each in groups),
            self.epsilon,
            self.m,
            self.hits,
            None if self.subset is None else tuple(each[1] for each in groups),
            None if self.weights is None else tuple(each[2] for each in groups),
            self.aim == "tables",
        )
        for each, own in zip(groups, best.sizes, strict=True):
            if own > 1 and each[0] > _MOST:
                raise ValueError(f"subset: of more than {_MOST} categories only one is reported, got {own}")
        chosen = dict(zip(groups, zip(best.sizes, best.weights, strict=True), strict=True))
        given = [(each[0], *chosen[each]) for each in alike]
        kinds = sorted(set(given))
        number = {each: index for index, each in enumerate(kinds)}
        kind_of = tuple(number[each] for each in given)
        of_kind = np.bincount(kind_of).tolist()
        law = cap_law(
            tuple(Kind(*each, n) for each, n in zip(kinds, of_kind, strict=True)),
            best.m,
            best.hits,
            self.epsilon,
        )
        self._set(
            m=best.m,
            hits=best.hits,
            subset=tuple(each[1] for each in given),
            weights=tuple(each[2] for each in given),
            _law=law,
            _kind_of=kind_of,
            _guarantee=Guarantee.judge(self.epsilon, (law.epsilon,) * 3),
        )
        answers = []
        for index, kind in enumerate(law.kinds):
            gain = float(law.gain((index,)))
            q = (kind.size - gain) / kind.categories
            answers.append(
                CapAnswer._quiet(
                    categories=kind.categories, size=kind.size, epsilon=law.epsilon, chances=(q + gain, q)
                )
            )
        self._keep([answers[kind] for kind in kind_of])

    @property
    def k(self) -> int | None:  # type: ignore[override]
        """Number of attributes that a report names; None if all are drawn."""
        return None if self.m == len(self._sizes) else self.m

    @property
    def channels(self) -> tuple[Cap, ...]:
        """The channels: one for each number of drawn attributes of each kind; see `chances`."""
        return tuple(each.channel for each in self._law.drawn)

    @property
    def chunk(self) -> int:
        """Records of a chunk of the keys' streams, which `first_chunk` of `randomize` counts."""
        return self.channels[0].chunk if len(self._law.drawn) == 1 else CHUNK

    @property
    def chances(self) -> tuple[float, ...]:
        """Chance of each attribute to be drawn."""
        return tuple(self._by_kind[kind] for kind in self._kind_of)

    @cached_property
    def _by_kind(self) -> tuple[float, ...]:
        return tuple(float(self._law.chance((index,))) for index in range(len(self._law.kinds)))

    @property
    def _chances(self) -> Sequence[float]:
        return self.chances

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channels of a report; none at epsilon 0."""
        laws = tuple(dict.fromkeys(each for each in self.channels if each.epsilon))
        return (Symbols(laws, 1),) if laws else ()

    # -- inputs and reports

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return two records, and the law of which of them a report counts for; see `Mechanism.extremes`.

        The law is known of records that differ in every attribute.
        """
        ends = self._ends() if pair is None else pair
        first, last = (self._values(each) for each in ends)
        names = ("the first of every attribute", "the last of every attribute")
        if any(a == b for a, b in zip(first, last, strict=True)):
            return Experiment(ends, names)
        cells = [cell for each in self._law.drawn if (cell := self._law.cells(each)) is not None]
        if len(cells) < len(self._law.drawn):
            return Experiment(ends, names)
        rows = np.stack([np.concatenate([each[side] for each in cells]) for side in (0, 1)])
        block = Block(rows[:, None], lambda _, value: f"the report is {_WHICH[value % 4]} of the records")
        return _Near(ends, names, [block], [(0, 1)], record=self)

    @property
    def _streams(self) -> int:
        return 2

    def _program(self, numbers: Type) -> ClientProgram:
        if self.k is not None:
            raise no_document(
                self,
                "some of its attributes are drawn by kind, which version 1 of the schema has no draw for",
            )
        (drawn,) = self._law.drawn
        order = tuple(int(each) for each in np.concatenate(self._of_kind))
        record = ClientRecord.of_codes(tuple(self._sizes), len(self._sizes))
        return ClientProgram(record, self._report_parts, drawn.channel, order=order)

    def _perturb(self, x: NDArray[Any], call: Call) -> Any:
        if call.out is not None:
            raise ValueError("out: not supported, since a report is several arrays")
        table = self._admitted("x", x)
        arrays = self._all(table, call) if self.k is None else self._drawn(table, call)
        if call.output == "packed":
            arrays = [
                pack(np.ascontiguousarray(each).ravel(), bits)
                for each, (_, bits) in zip(arrays, self._report_parts, strict=True)
            ]
        return tuple(arrays) if self.k is None else SampledReports(*arrays)

    @cached_property
    def _of_kind(self) -> tuple[NDArray[np.intp], ...]:
        """The attributes of each kind."""
        return tuple(np.flatnonzero(np.array(self._kind_of) == kind) for kind in range(len(self._law.kinds)))

    def _all(self, table: NDArray[Any], call: Call) -> list[NDArray[Any]]:
        """Release all attributes; those of a kind follow each other in the channel."""
        (drawn,) = self._law.drawn
        order = np.concatenate(self._of_kind)
        moved = (order[1:] < order[:-1]).any()
        values = table[:, order] if moved else table
        reports = self._channelled(drawn, values, call.keys[1], call, call.first_chunk)
        position = np.argsort(order)
        if max(self._widths) == 1:
            reports = reports[:, position] if moved else reports
            parts = [reports[:, run.start : run.stop] for run in self._runs]
        else:
            answers = self._split(drawn, reports)
            parts = [
                np.concatenate([answers[position[index]] for index in range(run.start, run.stop)], axis=1)
                for run in self._runs
            ]
        bits = [bits for _, bits in self._report_parts]
        return [
            np.ascontiguousarray(part, dtype=np.min_scalar_type((1 << each) - 1))
            for part, each in zip(parts, bits, strict=True)
        ]

    def _drawn(self, table: NDArray[Any], call: Call) -> list[NDArray[Any]]:
        """Release the attributes that are drawn for each record; those of a kind follow each other."""
        law, records, m = self._law, len(table), self.m or 1
        first = int(len(law.drawn) > 1)  # a word says how many of each kind, and one is for each attribute
        words = words_by_record(call.keys[0], records, first + m, self.chunk, call.first_chunk)
        which = np.searchsorted(law.edges, words[:, 0], side="right") if first else np.zeros(records, np.intp)
        indices = np.zeros((records, m), np.min_scalar_type(len(self._sizes) - 1))
        codes = np.zeros((records, m, self._form[0]), np.min_scalar_type((1 << self._form[1]) - 1))
        for rows, position, source, chunk in self._groups(which, call):
            drawn, column = law.drawn[position], 0
            own = np.zeros((len(indices[rows]), m), np.intp)
            present = [(kind, count) for kind, count in enumerate(drawn.counts) if count]
            for kind, count in present:
                members = self._of_kind[kind]
                picked = distinct(words[rows, first + column : first + column + count], len(members))
                own[:, column : column + count] = members[picked]
                column += count
            indices[rows] = own
            values = np.take_along_axis(table[rows], own, axis=1)
            reports = self._channelled(drawn, values, source, call, chunk)
            if self._form[0] == 1:
                codes[rows] = reports[:, :, None]
                continue
            kinds = [kind for kind, count in present for _ in range(count)]
            for index, (kind, each) in enumerate(zip(kinds, self._split(drawn, reports), strict=True)):
                codes[rows, index] = payload(self._part_of(kind), each, len(own), self._form)
        return [indices, codes.reshape(shape(records, m, self._form))]

    def _part_of(self, kind: int) -> CapAnswer:
        """Return the answer about an attribute of a kind."""
        part: Any = self._parts[self._of_kind[kind][0]]
        return part

    def _groups(self, which: NDArray[np.intp], call: Call) -> Iterator[tuple[Any, int, Source, int]]:
        """Yield records that are released by the same channel, its number, key, and first chunk.

        Where there are several channels, each has a key of its own in every chunk of `CHUNK` records.
        """
        key, laws = call.keys[1], len(self._law.drawn)
        if laws == 1:
            yield slice(None), 0, key, call.first_chunk
            return
        if isinstance(key, KeyedRandomness):
            for rows, position in _alike(which, 0):
                yield rows, position, key.taken(rows, 0), 0
            return
        secret = os.urandom(_KEY) if key is None else key
        for index, start in enumerate(range(0, len(which), CHUNK)):
            keys = keystream(secret, call.first_chunk + index, _KEY * laws)
            for rows, position in _alike(which[start : start + CHUNK], start):
                yield rows, position, keys[_KEY * position : _KEY * (position + 1)], 0

    def _channelled(
        self, drawn: Drawn, values: NDArray[Any], key: Source, call: Call, first_chunk: int
    ) -> NDArray[Any]:
        """Return the code words of reports of drawn attributes."""
        reports: NDArray[Any] = drawn.channel.randomize(
            np.ascontiguousarray(values), None, None, key, "codes", None, call.threads, first_chunk
        )
        return reports

    def _split(self, drawn: Drawn, reports: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the code words about each drawn attribute: one, or a bit for each category."""
        widths = np.repeat(self._widths, drawn.counts)
        return np.split(reports, np.cumsum(widths)[:-1], axis=1)

    @cached_property
    def _widths(self) -> tuple[int, ...]:
        """Code words about an attribute, by kind."""
        return tuple(1 if kind.size == 1 else kind.categories for kind in self._law.kinds)

    # -- estimates

    def estimate_table(self, reports: Any, attributes: Sequence[int], *, project: bool = False) -> Estimate:
        """Estimate the joint frequencies of the categories of two or three attributes, without bias.

        Parameters
        ----------
        reports : SampledReports, or tuple of ndarray
            As `randomize` gives them; those that have all of the attributes are used.
        attributes : sequence of int
            Different attributes by number, in the order of the table's axes.
        project : bool
            Whether to project the table to the simplex (which makes it biased).

        Returns
        -------
        Estimate
            Shape (categories of the first, of the second, ...), with the labels of the last one where it has
            any. Its `n` is the number of reports that have all of them.

        Raises
        ------
        ValueError, TypeError
            As `table_accumulator`; if there is no such report; and for reports of another form or out of
            range.
        """
        return self.table_accumulator(attributes)._filled(reports).estimate(project=project)

    def table_accumulator(self, attributes: Sequence[int]) -> TableAccumulator:
        """Return an empty accumulator of a joint table: it streams, merges and serialises.

        Parameters
        ----------
        attributes : sequence of int
            Two or three different attributes by number.

        Raises
        ------
        ValueError, TypeError
            If no unbiased decode exists: at epsilon 0, if the attributes are never drawn together, or if
            reports do not show how they depend on each other.
        """
        chosen = self._chosen(attributes)
        return TableAccumulator(self, chosen, self._table_law(chosen))

    def _together(self, slots: Sequence[int]) -> tuple[float, float]:
        """Return the factor and the chance of `Attributes._together`.

        Values are those of the attributes' own laws, 0 where the report is about others; see `CapLaw`.
        """
        kinds = tuple(self._kind_of[each] for each in slots)
        chance, gain = self._law.chance(kinds), self._law.gain(kinds)
        if not chance:
            raise ValueError(f"a report covers {self.m} of them, never {len(kinds)} together")
        if not gain:
            raise ValueError(f"with hits={self.hits} reports carry no joint information about them")
        alone = [self._law.chance((each,)) * self._law.gain((each,)) for each in kinds]
        return float(math.prod(alone) / (chance * gain)), float(chance)

    def _chosen(self, attributes: Sequence[int]) -> tuple[int, ...]:
        count = len(self._sizes)
        if isinstance(attributes, (str, bytes)) or not np.iterable(attributes):
            raise TypeError("attributes: must be a sequence of numbers of attributes")
        chosen = tuple(
            checks.integer(f"attributes[{index}]", each, 0, count - 1)
            for index, each in enumerate(attributes)
        )
        if not 2 <= len(chosen) <= MOST_TOGETHER or len(set(chosen)) < len(chosen):
            raise ValueError(f"attributes: must be 2 to {MOST_TOGETHER} different ones")
        return chosen

    def _table_law(self, attributes: tuple[int, ...]) -> TableLaw:
        if self.guarantee.record == 0.0:
            raise self._uninformative("categories")
        return table_law(self._law, tuple(self._kind_of[each] for each in attributes))

    # -- variances

    def variance(self, x: ArrayLike) -> tuple[NDArray[np.float64], ...]:
        """Return the variance of a record's unbiased indicators of every category, for each attribute.

        Parameters
        ----------
        x : array_like, shape (n, attributes) or (attributes,)
            True records, as `randomize` takes them.

        Returns
        -------
        tuple of ndarray of float64
            Shape (n, categories) for each attribute. The draw of the attributes is included; an attribute
            that is not drawn counts as 1/categories. See `CategoricalRecord.variance`.

        Raises
        ------
        ValueError
            If no unbiased decode exists (epsilon 0), or for a category out of range.
        """
        table = self._admitted("x", self._codes_of("x", x))
        return tuple(
            indicators(part, table[:, position], size, 1.0 / chance)
            for position, (part, size, chance) in enumerate(
                zip(self.mechanisms, self._sizes, self.chances, strict=True)
            )
        )

    def table_variance(self, x: ArrayLike, attributes: Sequence[int]) -> NDArray[np.float64]:
        """Return the variance of a record's unbiased indicators of the cells of a joint table.

        Parameters
        ----------
        x : array_like, shape (n, attributes) or (attributes,)
            True records, as `randomize` takes them.
        attributes : sequence of int
            Different attributes by number, in the order of the table's axes.

        Returns
        -------
        ndarray of float64
            Shape (n, categories of the first, ...). Attributes that are not drawn together count as one over
            the number of cells.

        Raises
        ------
        ValueError, TypeError
            As `table_accumulator`, or for a category out of range.
        """
        chosen = self._chosen(attributes)
        law = self._table_law(chosen)
        table = self._admitted("x", self._codes_of("x", x))[:, chosen]
        cells = np.stack(np.meshgrid(*map(np.arange, law.categories), indexing="ij"), axis=-1)
        return law.variance(table.reshape(-1, *(1,) * len(chosen), len(chosen)) == cells)

    def mean_variance(self) -> float:
        """Return the mean `variance` over entries and uniform inputs; see `Mechanism.mean_variance`."""
        kinds = [(self._part_of(kind), self._by_kind[kind]) for kind in range(len(self._law.kinds))]
        means = [
            part.mean_variance() / chance + (1.0 / chance - 1.0) * (1.0 - 1.0 / part._cells) / part._cells
            for part, chance in kinds
        ]
        return float(np.average(means, weights=[each.categories * each.members for each in self._law.kinds]))

    def worst_variance(self) -> float:
        """Return the largest `variance` of any category, attribute and record.

        See `Mechanism.worst_variance`.
        """
        kinds = [(self._part_of(kind), self._by_kind[kind]) for kind in range(len(self._law.kinds))]
        return max(indicators_worst(part, part._cells, 1.0 / chance) for part, chance in kinds)


def _alike(which: NDArray[np.intp], start: int) -> Iterator[tuple[NDArray[np.intp], int]]:
    """Yield the places of each number that comes up, from `start` on, and the number."""
    order = np.argsort(which, kind="stable")
    numbers, firsts = np.unique(which[order], return_index=True)
    for number, rows in zip(numbers.tolist(), np.split(order, firsts[1:]), strict=True):
        yield start + rows, number
