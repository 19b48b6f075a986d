"""Base of the records whose attributes are released by mechanisms of their own, under one budget."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import pack
from bitldp.base import checks
from bitldp.client.mechanisms import NO_DOCUMENT, no_document
from bitldp.client.program import ClientProgram, PublicDraw
from bitldp.client.record import Type
from bitldp.estimate import saved
from bitldp.estimate.accumulators import BatchAccumulator, unpacked
from bitldp.estimate.estimates import Estimate
from bitldp.letters.reach import Reach
from bitldp.mechanism.attributes.release import (
    ColumnTable,
    EqualAttributes,
    common,
    form_of,
    released,
    reports_of,
    shape,
)
from bitldp.mechanism.base import Mechanism, Part, Takes
from bitldp.mechanism.law import TABLE, Block, Experiment, Pair, Symbols
from bitldp.release.base import Call
from bitldp.release.sampled import SampledReports, drawn_together, index_bits

__all__ = ["Answers", "Attributes", "AttributesAccumulator", "experiment"]


@dataclass(frozen=True, eq=False)
class AllAttributes(Experiment):
    """The symbols of every attribute of a record, one after the other."""

    record: Attributes = field(kw_only=True)
    parts: Sequence[Experiment] = ()

    def split(self, reports: Any) -> list[NDArray[Any]]:
        result = zip(self.parts, self.record.answers(reports), strict=True)
        return [symbols for part, own in result for symbols in part.split(own.reports)]


@dataclass(frozen=True, eq=False)
class OneAttribute(AllAttributes):
    """One symbol a record: which attribute was drawn, and the symbol of its report."""

    starts: NDArray[np.int64] | None = None

    def split(self, reports: Any) -> list[NDArray[Any]]:
        assert self.starts is not None  # given with the blocks
        result = np.zeros((len(reports[0]), 1), np.int64)
        for start, part, own in zip(self.starts, self.parts, self.record.answers(reports), strict=False):
            if len(own.records):
                (symbols,) = part.split(own.reports)
                result[own.records] = start + symbols.astype(np.int64)
        return [result]


def experiment(record: Attributes, ends: tuple[Any, Any], pairs: Sequence[tuple[Any, Any]]) -> Experiment:
    """Return the experiment of two records, given the pair of values of each attribute.

    Parameters
    ----------
    record : Attributes
        Whose reports they are.
    ends : tuple
        The two records.
    pairs : sequence of (value, value)
        Of each attribute.

    Returns
    -------
    Experiment
        Without a law where that of some attribute is unknown, where several are sampled, or where the report
        of the one that is sampled is several symbols.
    """
    names = ("the first of every attribute", "the last of every attribute")
    plain = Experiment(ends, names)
    parts = [part.extremes(pair) for part, pair in zip(record.mechanisms, pairs, strict=True)]
    known = [part for part in parts if part is not None and part.blocks]
    if len(known) < len(parts):
        return plain
    if record.k is None:
        blocks = [_named(index, block) for index, part in enumerate(known) for block in part.blocks]
        # worst between the two records in either order, whatever the parts would compare
        return AllAttributes(ends, names, blocks, [(0, 1)], record=record, parts=known)
    tables = [block.table for part in known for block in part.blocks]
    single = all(len(part.blocks) == 1 for part in known) and all(each.shape[1] == 1 for each in tables)
    if record.k != 1 or not single or sum(each.size for each in tables) > TABLE:
        return plain
    joint = np.concatenate(tables, axis=2) / len(tables)
    starts = np.cumsum([0, *(each.shape[2] for each in tables)])

    def describe(_: int, value: int) -> str:
        attribute = int(np.searchsorted(starts, value, side="right")) - 1
        event = known[attribute].blocks[0].describe(0, int(value - starts[attribute]))
        return f"attribute {attribute} is drawn, and {event}"

    blocks = [Block(joint, describe)]
    return OneAttribute(ends, names, blocks, [(0, 1)], record=record, parts=known, starts=starts)


def _named(index: int, block: Block) -> Block:
    return Block(block.table, lambda symbol, value: f"attribute {index}: {block.describe(symbol, value)}")


class Answers(NamedTuple):
    """The reports of one attribute.

    Attributes
    ----------
    records : ndarray of int
        Which records they are of, ascending.
    reports : ndarray, or tuple of them
        The reports, as the attribute's mechanism gives them.
    """

    records: NDArray[np.intp]
    reports: Any


class Attributes(Mechanism):
    """Base of the records of several attributes: some of them are released, or all.

    Not a dataclass: a subclass has `epsilon`, `spend` and `k`, gives the mechanisms of its attributes to
    `_keep` while it is built, and the columns of its records to `_released`.
    """

    _takes: ClassVar[Takes | None] = "record"
    _sized_by: ClassVar[str | None] = None
    outputs: ClassVar[tuple[str, ...]] = ("codes", "packed")

    epsilon: float
    spend: str
    k: int | None

    # Set on the instance by `_keep`: no fields of a dataclass, which this class is not.
    _parts: tuple[Mechanism, ...]
    _runs: tuple[EqualAttributes, ...]
    _form: Part  # of a sampled attribute's report

    def _keep(self, parts: Sequence[Mechanism]) -> None:
        """Keep the mechanism of each attribute, and the form of their reports."""
        starts = [i for i, each in enumerate(parts) if i == 0 or each != parts[i - 1]]
        runs = [
            EqualAttributes(parts[i], i, j) for i, j in zip(starts, [*starts[1:], len(parts)], strict=True)
        ]
        self._set(_parts=tuple(parts), _runs=tuple(runs), _form=common([each.mechanism for each in runs]))

    def _program(self, numbers: Type) -> ClientProgram:
        if self._no_document != NO_DOCUMENT:
            raise no_document(self, self._no_document)
        parts = []
        for run in self._runs:
            count, one = run.stop - run.start, run.mechanism._program(numbers)
            if one.record is None or len(one.fields) > 1 or one.draw is not None:
                raise no_document(self, f"{type(run.mechanism).__name__} answers for an attribute of it")
            ((width, bits),) = one.fields
            record = replace(one.record, columns=count, labels=None)
            parts.append(replace(one, record=record, fields=((count * width, bits),)))
        draw = None if self.k is None else PublicDraw("coordinates", self.columns, self.k)
        return ClientProgram(None, self._report_parts, parts=tuple(parts), draw=draw, chunked=True)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The mechanism of each attribute, in order."""
        return self._parts

    @property
    def columns(self) -> int:
        """Attributes of a record."""
        return len(self._parts)

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits): the attributes that were sampled and their reports; or all reports, in runs."""
        if self.k is not None:
            width, bits = self._form
            return ((self.k, index_bits(self.columns)), (self.k * width, bits))
        forms = [(form_of(each.mechanism), each.stop - each.start) for each in self._runs]
        return tuple((count * width, bits) for (width, bits), count in forms)

    def _join(self, parts: Sequence[NDArray[Any]]) -> Any:
        """Return reports, as `decode` takes them, of the arrays of their parts."""
        if self.k is None:
            return tuple(parts)
        return SampledReports(parts[0], parts[1].reshape(self._shape(len(parts[0]))))

    def _shape(self, records: int) -> tuple[int, ...]:
        """Return the shape of the sampled attributes' reports."""
        return shape(records, self.k or 0, self._form)

    @property
    def _scale(self) -> float:
        """Attributes of a record, for each that is released."""
        return self.columns / (self.k or self.columns)

    @property
    def _chances(self) -> Sequence[float]:
        """Chance of each attribute to be released."""
        return (1.0 / self._scale,) * self.columns

    def _together(self, slots: Sequence[int]) -> tuple[float, float]:
        """Return the factor that makes a product of unbiased centred values unbiased, and a chance.

        A value is 0 where the report is about others, and attributes that are drawn are independent.

        Parameters
        ----------
        slots : sequence of int
            Two or more different ones, by number.

        Returns
        -------
        (float, float)
            The factor, and the chance that a report is about all of them.

        Raises
        ------
        ValueError
            If reports do not tell them together.
        """
        return drawn_together(len(slots), self.k, self.columns)

    def _reach(self, total: bool = False) -> tuple[Reach, ...]:
        """Return that of every attribute: of those that are sampled, a liar chooses which."""
        return tuple(
            replace(each, chance=chance)
            for part, chance in zip(self._parts, self._chances, strict=True)
            for each in part._reach(total)
        )

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the laws of the attributes; where they are sampled, which one is a public choice."""
        if self.k is None:
            return tuple(
                Symbols(laws, times * (run.stop - run.start))
                for run in self._runs
                for laws, times in run.mechanism._symbols()
            )
        laws: list[Any] = []
        for mechanism in dict.fromkeys(run.mechanism for run in self._runs):
            own = mechanism._symbols()
            if own:
                laws += own[0].laws if len(own) == 1 and own[0].times == 1 else [mechanism.guarantee]
        return (Symbols(tuple(laws), self.k),) if laws else ()

    @abstractmethod
    def _ends(self) -> tuple[Any, Any]:
        """Return two records that differ in every attribute."""

    @abstractmethod
    def _values(self, record: Any) -> list[Any]:
        """Return the attributes of one record, as their mechanisms take them."""

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return two records that differ in every attribute, and the law of their reports where it is known.

        See `Mechanism.extremes`.
        """
        ends = self._ends() if pair is None else pair
        values = [self._values(each) for each in ends]
        return experiment(self, ends, list(zip(*values, strict=True)))

    def _joined(self, estimates: list[Estimate]) -> Any:
        """Return the estimates of all attributes as the mechanism's estimators do."""
        return tuple(estimates)

    @property
    def _streams(self) -> int:
        return 1 + sum(run.mechanism._streams for run in self._runs)

    @staticmethod
    def _single(reports: Any, call: Call) -> Any:
        """Return the report of a single value as that of any record: the axis of the records stays."""
        return reports

    def _released(self, tables: Sequence[ColumnTable], records: int, call: Call) -> Any:
        """Release records: of each table the number of its first attribute, and its columns (all checked)."""
        if call.out is not None:
            raise ValueError("out: not supported, since a report is several arrays")
        arrays = released(self._runs, self.k, self._form, tables, records, call)
        if call.output == "packed":
            arrays = [
                pack(np.ascontiguousarray(each).ravel(), bits)
                for each, (_, bits) in zip(arrays, self._report_parts, strict=True)
            ]
        return tuple(arrays) if self.k is None else SampledReports(*arrays)

    def answers(self, reports: Any) -> Iterator[Answers]:
        """Yield the reports of each attribute by themselves.

        Parameters
        ----------
        reports : SampledReports, or tuple of ndarray
            As `randomize` gives them.

        Yields
        ------
        Answers
            One for each attribute, in order.

        Raises
        ------
        ValueError, TypeError
            For reports of another form.
        """
        if not isinstance(reports, (tuple, list)) or len(reports) != len(self._report_parts):
            raise TypeError(f"reports: must be {len(self._report_parts)} arrays, as randomize gives them")
        if self.k is None:
            yield from self._of_runs(reports)
            return
        indices = checks.codes("reports.indices", reports[0], self.columns)
        codes = checks.codes("reports.codes", reports[1], 1 << self._form[1])
        records = len(indices) if indices.ndim == 2 else 1
        if indices.shape[-1:] != (self.k,) or codes.shape not in (self._shape(records), self._shape(1)[1:]):
            raise ValueError(
                f"reports: shapes must be (n, {self.k}) and {('n', *self._shape(1)[1:])}, got "
                f"{indices.shape} and {codes.shape}"
            )
        flat = indices.ravel().astype(np.intp)
        ordered = np.sort(indices.reshape(records, self.k), axis=1)
        repeated = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if repeated.any():
            raise ValueError(f"reports.indices: record {int(np.argmax(repeated))} has an attribute twice")
        order = np.argsort(flat, kind="stable")
        edges = np.searchsorted(flat[order], np.arange(self.columns + 1))
        table = codes.reshape(flat.size, self._form[0])
        for index, mechanism in enumerate(self._parts):
            rows = order[edges[index] : edges[index + 1]]
            yield Answers(rows // self.k, reports_of(mechanism, table[rows], self._form))

    def _of_runs(self, reports: Sequence[Any]) -> Iterator[Answers]:
        tables, records = [], -1
        for array, (columns, bits) in zip(reports, self._report_parts, strict=True):
            table = checks.codes("reports", array, 1 << bits)
            checks.records("reports", table, columns)
            tables.append(table.reshape(-1, columns))
            if records not in (-1, len(tables[-1])):
                raise ValueError("reports: the arrays must be of as many records")
            records = len(tables[-1])
        for run, table in zip(self._runs, tables, strict=True):
            form = form_of(run.mechanism)
            for index in range(run.stop - run.start):
                own = table[:, index * form[0] : (index + 1) * form[0]]
                yield Answers(np.arange(records), reports_of(run.mechanism, own, form))

    def decode(self, reports: Any) -> tuple[Answers, ...]:
        """Return the decoded values of each attribute's reports.

        Parameters
        ----------
        reports : SampledReports, or tuple of ndarray
            As `randomize` gives them.

        Returns
        -------
        tuple of Answers
            One for each attribute: the records, and their values from `decode` of its mechanism.

        Raises
        ------
        ValueError, TypeError
            For reports of another form, or out of range.
        """
        result = zip(self._parts, self.answers(reports), strict=True)
        return tuple(Answers(each.records, part.decode(each.reports)) for part, each in result)


class AttributesAccumulator(BatchAccumulator):
    """Accumulators of all attributes of a record: each counts the reports of its own.

    Parameters
    ----------
    mechanism : Attributes
        Whose reports are accumulated.
    """

    kind = "attributes"

    mechanism: Attributes

    def __init__(self, mechanism: Attributes) -> None:
        super().__init__(mechanism)
        self.attributes: tuple[Any, ...] = tuple(each.accumulator() for each in mechanism.mechanisms)
        for each, chance in zip(self.attributes, mechanism._chances, strict=True):
            each._chance = chance  # a liar chooses which attributes a report is about

    def _update(self, reports: Any, output: str, records: int | None, threads: int | None) -> None:
        checks.choice("output", output, ("codes", "packed"))
        mechanism = self.mechanism
        reports = unpacked(mechanism, reports, records)
        fresh: list[Any] = [each.accumulator() for each in mechanism.mechanisms]
        n = 0
        for accumulator, own in zip(fresh, mechanism.answers(reports), strict=True):
            if len(own.records):
                accumulator.update(own.reports, threads=threads)
            n += accumulator.n
        n //= mechanism.k or len(fresh)
        total = saved.together("reports", self.n, n)
        for mine, more in zip(self.attributes, fresh, strict=True):
            mine.merge(more)
        self.n = total

    def merge(self, other: AttributesAccumulator) -> None:
        """Add the contents of another accumulator of the same mechanism.

        Raises
        ------
        ValueError, TypeError
            For an accumulator of another mechanism or kind, or if there would be 2**63 reports or more.
        """
        self._same(other)
        total = saved.together("other", self.n, other.n)
        for mine, theirs in zip(self.attributes, other.attributes, strict=True):
            mine.merge(theirs)
        self.n = total

    def estimate(self, *, project: bool = False) -> Any:
        """Estimate every attribute from its own reports, as the mechanism's estimators return it.

        Parameters
        ----------
        project : bool
            Whether frequencies are projected to the simplex, which makes them biased.

        Raises
        ------
        ValueError
            If there is an attribute of which nothing has been reported yet.
        """
        return self.mechanism._joined([self._one(index, project) for index in range(len(self.attributes))])

    def _one(self, index: int, project: bool) -> Estimate:
        accumulator = self.attributes[index]
        if not accumulator.n:
            raise ValueError(f"reports: at least one of attribute {index} is needed for an estimate")
        estimate: Estimate = accumulator.estimate(**({"project": project} if project else {}))
        return estimate

    def _state(self) -> dict[str, Any]:
        return {"n": self.n, "attributes": [each._state() for each in self.attributes]}

    def _restore(self, state: dict[str, Any]) -> None:
        n, states = saved.whole(state.get("n")), state.get("attributes")
        if not isinstance(states, list) or len(states) != len(self.attributes):
            raise ValueError("text: the contents are damaged")
        for each, own in zip(self.attributes, states, strict=True):
            if not isinstance(own, dict):
                raise ValueError("text: the contents are damaged")
            each._restore(own)
        if sum(each.n for each in self.attributes) != n * (self.mechanism.k or len(states)):
            raise ValueError("text: the number of reports is damaged")
        self.n = n
