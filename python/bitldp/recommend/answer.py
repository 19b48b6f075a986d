"""Comparison of mechanisms: one row each, the recommended one first, with reasons."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bitldp.mechanism.base import Mechanism
from bitldp.mechanism.memoized import Memoized, Secret
from bitldp.record.choice import SLACK, thriftiest

__all__ = ["Recommendation", "Row", "ranked"]

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

    def cost(self, criterion: str) -> float:
        """Return what counts, to 12 digits."""
        cost = self.worst if criterion == "worst" else self.mean
        return round(cost, 12 - math.floor(math.log10(cost))) if cost > 0.0 else 0.0


@dataclass(frozen=True)
class Recommendation:
    """Mechanisms for a task, the recommended one first.

    Attributes
    ----------
    task : str
        The task.
    measure : str
        What `mean` and `worst` of a row are.
    criterion : {"mean", "worst", "variance"}
        What counts: of the mechanisms within 2 % of the least mean or worst, the one of the fewest bits is
        first; or, with "variance", the one of the least mean. The others are sorted by it.
    rows : tuple of Row
        The comparison, the recommended one first; at the end what does not fit, with the reason.
    """

    task: str
    measure: str
    criterion: str
    rows: tuple[Row, ...]

    @property
    def mechanism(self) -> Mechanism:
        """The recommended mechanism, ready to use; where reports are to be kept, `memoized` is."""
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
        key, question
            As of `Memoized`.

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

    def _title(self) -> str:
        rule = (
            "the least mean first"
            if self.criterion == "variance"
            else f"first the fewest bits within {SLACK:.0%} of the best {self.criterion}, then best first"
        )
        return f"{self.task}: {self.measure}; {rule}"

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
        text = [self._title()]
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
        return f"<table><caption>{html.escape(self._title())}</caption><tr>{head}</tr>{rows}</table>"


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
    return f"{above}; more bits" if cost <= (1.0 + SLACK) * best and criterion != "variance" else above
