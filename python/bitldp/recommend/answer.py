"""Comparison of mechanisms: one row each, the recommended one first, with reasons."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from bitldp.base.documents import jsonable
from bitldp.mechanism.base import Mechanism
from bitldp.mechanism.memoized import Memoized, Secret
from bitldp.mechanism.parameters import plain_parameters
from bitldp.recommend.bounds import Bound
from bitldp.record.choice import SLACK, thriftiest

__all__ = ["InSum", "Recommendation", "Row", "ranked"]

_HEAD = ("mechanism", "epsilon", "bits", "mean", "worst", "why")


@dataclass(frozen=True)
class Row:
    """One mechanism in the comparison.

    Attributes
    ----------
    mechanism : Mechanism or None
        The mechanism; None where it could not be built.
    name : str
        Its class, with what sets it apart from others of the class.
    epsilon : float
        Exact epsilon of a record.
    bits : int
        Bits of a record's report.
    mean, worst : float
        What `Recommendation.measure` says, on average and at worst; NaN where there is no mechanism.
    why : str
        Why it was chosen, or why not.
    kept : bool
        Whether its reports are to be the same at every collection (`Recommendation.memoized`): fresh
        randomness at each would add up.
    influence : float
        How far the liars that were asked for move an entry, at most; 0 where none were.
    fits : bool
        Whether it is for such a task and setting at all. What fits and has no mechanism was left out: by a
        limit, or since it takes long or a library is missing.
    would : Row or None
        What was left out, as it would be compared, where that is known.
    """

    mechanism: Mechanism | None
    name: str
    epsilon: float
    bits: int
    mean: float
    worst: float
    why: str
    kept: bool = False
    influence: float = 0.0
    fits: bool = True
    would: Row | None = None

    def cost(self, criterion: str) -> float:
        """Return what counts, to 12 digits."""
        cost = self.worst if criterion == "worst" else self.mean
        return round(cost, 12 - math.floor(math.log10(cost))) if cost > 0.0 else 0.0


class InSum(NamedTuple):
    """Error of a secure sum, of which nobody sees anything but the total (`bitldp.sums`).

    Attributes
    ----------
    clients : int
        Whose shares are in the total.
    epsilon, delta : float
        Of the total, in the central model: no local guarantee.
    stderr : float
        Standard error of an estimate by the total; of vectors that of all coordinates, in the l2 norm.
    local : float
        That of the recommended mechanism's reports, whose epsilon is local.
    """

    clients: int
    epsilon: float
    delta: float
    stderr: float
    local: float

    def __str__(self) -> str:
        """Return one line."""
        return (
            f"where only the total of {self.clients:,} clients is seen (bitldp.sums, central epsilon "
            f"{self.epsilon:.4g}, delta {self.delta:.3g}): standard error {self.stderr:.3g} in place of "
            f"{self.local:.3g}"
        )


@dataclass(frozen=True)
class Recommendation:
    """Mechanisms for a task, with the recommended one first.

    Attributes
    ----------
    task : str
        The task.
    measure : str
        What `mean` and `worst` of a row are.
    criterion : {"mean", "worst", "variance"}
        Criterion of the order. With "mean" and "worst": among the mechanisms within 2 % of the least mean or
        worst variance, the one with the fewest bits is first. With "variance": the one with the least mean.
        The others are sorted by that variance.
    rows : tuple of Row
        The comparison, with the recommended mechanism first, and at the end those that do not fit, with the
        reason.
    bound : Bound or None
        Lower bound on the variance of every mechanism of some kind, if it is known: its `value`, and the
        kind.
    in_sum : InSum or None
        Result of a secure sum for comparison, if the number of clients is known.
    """

    task: str
    measure: str
    criterion: str
    rows: tuple[Row, ...]
    bound: Bound | None = None
    in_sum: InSum | None = None

    @property
    def mechanism(self) -> Mechanism:
        """The recommended mechanism, ready to use; for reports that are kept, use `memoized`."""
        if self.rows[0].kept:
            raise ValueError(
                "collections: with fresh randomness at each the epsilons would add up; use memoized(key), or "
                "rows[0].mechanism by itself"
            )
        return self._best()

    def _best(self) -> Mechanism:
        best = self.rows[0].mechanism
        if best is None:
            raise ValueError(f"task: no mechanism fits; {self.rows[0].name}: {self.rows[0].why}")
        return best

    def memoized(self, key: bytes | Secret, *, question: str = "") -> Memoized:
        """Return the recommended mechanism with reports that stay, for repeated collection.

        Parameters
        ----------
        key : bytes or Secret
            32 bytes, or an object that holds them (`bitldp.tables.ReleaseKey`). Keep the key with the owner
            of the data for as long as you ask the question. Whoever holds it can test values; without it, the
            next answers are new.
        question : str
            Name of the question. Two questions about one value share no random bits under the key.

        Returns
        -------
        Memoized
            Its epsilon covers all collections in which a record's value stays.

        Raises
        ------
        ValueError, TypeError
            Where the recommended reports are not to be kept, or for anything but a key.
        """
        best = self._best()
        if not self.rows[0].kept:
            raise ValueError(
                "collections: of one collection, or of fresh reports, nothing is kept; use mechanism"
            )
        return Memoized(best, key, question=question)

    @property
    def left_out(self) -> tuple[Row, ...]:
        """Candidates that fit the task and were not compared, but might be recommended.

        At most one row that is known to be better, the best of them. Then those whose numbers are unknown
        until a design is solved or a library is installed.
        """
        first, out = self.rows[0], [row for row in self.rows if row.mechanism is None and row.fits]
        known = [row for row in out if row.would is not None and self._is_beaten(first, row.would)]
        known.sort(key=lambda row: row.would.cost(self.criterion) if row.would else 0.0)
        unknown = [row for row in out if row.would is None and row is not first]
        return (*known[:1], *unknown)

    def _is_beaten(self, first: Row, other: Row) -> bool:
        """Return whether a row would be recommended in place of the first one."""
        if first.mechanism is None:
            return True
        slack = 1.0 if self.criterion == "variance" else 1.0 + SLACK
        return slack * other.cost(self.criterion) < first.cost(self.criterion)

    @property
    def answer(self) -> str:
        """The answer in one line: what is best, by how much, and what was left out that may be better."""
        first, *others = self.rows
        if first.mechanism is None:
            parts = [f"no mechanism fits; {first.name}: {first.why}"]
        else:
            parts = [self._said(first, others)]
        for row in self.left_out:
            if row.would is None:
                continue
            parts.append(f"{row.name} would have {row.would.cost(self.criterion):.4g}, but {row.why}")
        unknown = [row for row in self.left_out if row.would is None]
        if unknown and first.mechanism is not None:
            names = ", ".join(row.name for row in unknown[:2])
            names += f" and {len(unknown) - 2} more" if len(unknown) > 2 else ""
            parts.append(f"not compared: {names} ({unknown[0].why})")
        return "; ".join(parts)

    def _said(self, first: Row, others: Sequence[Row]) -> str:
        counts = "mean" if self.criterion == "variance" else self.criterion
        cost, size = first.cost(self.criterion), "1 bit" if first.bits == 1 else f"{first.bits:,} bits"
        text = f"{first.name}: {counts} {cost:.4g} in {size}"
        rest = [row for row in others if row.mechanism is not None]
        if not rest:
            return text
        second = min(rest, key=lambda row: row.cost(self.criterion))
        other = second.cost(self.criterion)
        if cost in (other, 0.0):
            return f"{text}, as {second.name}"
        if other < cost:
            above = f"{100.0 * (cost / other - 1.0):.2g} % above {second.name}"
            return f"{text}, {above} in {second.bits:,} bits"
        if other >= 2.0 * cost:
            return f"{text}; the next, {second.name}, has {other / cost:,.3g} times as much"
        return f"{text}, {100.0 * (1.0 - cost / other):.2g} % less than {second.name}"

    @property
    def proof(self) -> str:
        """How far the answer is above the lower bound, at most, in one line."""
        if self.bound is None or self.rows[0].mechanism is None:
            return "no lower bound is known for every mechanism here"
        what = self.bound.within(self.rows[0].cost(self.criterion))
        return f"{what}, {self.bound.scope} ({self.bound.source})"

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON values.

        Returns
        -------
        dict
            ``task``, ``measure``, ``criterion``, ``answer`` and ``proof`` (a line each), ``bound`` (or None),
            and ``rows``, the recommended one first: name, class and parameters of the mechanism (None where
            it was not compared), epsilon, bits, mean, worst, influence and why; of what was left out the row
            that it ``would`` have. With `in_sum`, that, too.
        """
        result: dict[str, Any] = {
            "task": self.task,
            "measure": self.measure,
            "criterion": self.criterion,
            "answer": self.answer,
            "proof": self.proof,
            "bound": None if self.bound is None else asdict(self.bound),
            "rows": [_plain(row) for row in self.rows],
        }
        if self.in_sum is not None:
            result["in_sum"] = self.in_sum._asdict()
        plain: dict[str, Any] = jsonable(result)
        return plain

    def _title(self) -> str:
        rule = (
            "the least mean first"
            if self.criterion == "variance"
            else f"first the fewest bits within {SLACK:.0%} of the best {self.criterion}, then best first"
        )
        return f"{self.task}: {self.measure}; {rule}"

    def _lines(self) -> Iterator[str]:
        """Yield the lines above the table."""
        yield from (self.answer, self.proof)
        if self.in_sum is not None:
            yield str(self.in_sum)
        yield self._title()

    def _cells(self) -> Iterator[tuple[str, ...]]:
        for row in self.rows:
            shown = ("-",) * 4 if row.mechanism is None else _shown(row)
            moved = (f"{row.influence:.3g}",) if row.influence else ("-",)
            yield (row.name, *shown, *(moved if self._lied_to else ()), row.why)

    @property
    def _lied_to(self) -> bool:
        return any(row.influence for row in self.rows)

    @property
    def _head(self) -> tuple[str, ...]:
        return (*_HEAD[:-1], "liars", _HEAD[-1]) if self._lied_to else _HEAD

    def __str__(self) -> str:
        """Return the comparison as a table of plain text."""
        lines = [self._head, *self._cells()]
        widths = [max(len(line[column]) for line in lines) for column in range(len(self._head) - 1)]
        text = [*self._lines()]
        for name, *numbers, why in lines:
            cells = [name.ljust(widths[0])]
            cells += [each.rjust(width) for each, width in zip(numbers, widths[1:], strict=True)]
            text.append("  ".join([*cells, why]).rstrip())
        return "\n".join(text)

    def _repr_html_(self) -> str:
        """Return the same as a table, for notebooks."""
        head = "".join(f"<th>{name}</th>" for name in self._head)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
            for cells in self._cells()
        )
        lines = "<br>".join(html.escape(line) for line in self._lines())
        return f"<table><caption>{lines}</caption><tr>{head}</tr>{rows}</table>"


def _plain(row: Row) -> dict[str, Any]:
    """Return a row as JSON values."""
    best = row.mechanism
    described: dict[str, Any] = {"name": row.name, "mechanism": None, "why": row.why}
    if best is not None:
        described["mechanism"] = type(best).__name__
        described["parameters"] = plain_parameters(getattr(best, "parameters", {}))
        for name in ("epsilon", "bits", "mean", "worst", "influence", "kept"):
            described[name] = getattr(row, name)
    elif row.would is not None:
        described["would"] = _plain(row.would)
    return described


def _shown(row: Row) -> tuple[str, str, str, str]:
    return f"{row.epsilon:.4g}", str(row.bits), f"{row.mean:.4g}", f"{row.worst:.4g}"


def ranked(compared: Sequence[Row], criterion: str, known: float = math.inf) -> list[Row]:
    """Return rows with the recommended one first and the others by what counts, each with its reason.

    `known` is the least mean that a closed form has, of what need not be among them.
    """
    rows = sorted(compared, key=lambda row: (row.cost(criterion), row.bits))
    if not rows:
        return rows
    least = rows[0]
    if criterion != "variance":
        costs, bits = [row.cost(criterion) for row in rows], [row.bits for row in rows]
        first = rows.pop(thriftiest(costs, bits, known if criterion == "mean" else math.inf))
        rows.insert(0, first)
    return [replace(row, why=_why(row, rows[0], least, criterion)) for row in rows]


def _why(row: Row, first: Row, least: Row, criterion: str) -> str:
    """Return the reason for the place of a row."""
    counts = "mean" if criterion == "variance" else criterion
    cost, best = row.cost(criterion), least.cost(criterion)
    if row is first is least:
        return f"the least {counts} at this exact epsilon"
    if best > 0.0 and cost / best >= 2.0:
        above = f"{cost / best:.4g} times the least {counts}"
    elif best > 0.0 and cost / best > 1.0 + 1e-6:
        above = f"{100.0 * (cost / best - 1.0):.3g} % above the least {counts}"
    else:
        above = f"the least {counts}"
    if row is first:
        return f"{above}, in {row.bits:,} bits for {least.bits:,} of {least.name}"
    if cost > (1.0 + SLACK) * best or criterion == "variance":
        return above
    return f"{above}; more bits" if row.bits > first.bits else f"{above}; as many bits"
