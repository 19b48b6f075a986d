"""Results of a figure: its table, its drawing, and the paper's numbers beside ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean, stdev
from typing import Any

__all__ = ["Compared", "FigureResult", "column", "spread"]


def column(rows: Sequence[Mapping[str, Any]], name: str, /, **where: Any) -> list[Any]:
    """Return a column of the rows that have the given values."""
    return [row[name] for row in rows if all(row[key] == value for key, value in where.items())]


def spread(scores: Sequence[float]) -> float | None:
    """Return the standard deviation over the seeds; None of one."""
    return stdev(scores) if len(scores) > 1 else None


@dataclass(frozen=True)
class Compared:
    """One number of the paper beside ours.

    Attributes
    ----------
    what : str
        What the number is, short: "f-RR, epsilon 1".
    paper : float, str or None
        As printed; None where the paper draws it without a number.
    ours : float or str
    spread : float, optional
        Standard deviation of `ours` over the seeds.
    exact : float, optional
        Exact epsilon of a record (or client) in that setting; infinite where there is none.
    claimed : float, optional
        Epsilon that the paper states for it.
    """

    what: str
    paper: float | str | None
    ours: float | str
    spread: float | None = None
    exact: float | None = None
    claimed: float | None = None

    @classmethod
    def scored(
        cls,
        what: str,
        paper: float | str | None,
        scores: Sequence[float],
        exact: float | None = None,
        claimed: float | None = None,
    ) -> Compared:
        """Return the mean of scores of several seeds, and their spread, beside the paper's number."""
        return cls(what, paper, fmean(scores), spread(scores), exact, claimed)


@dataclass(frozen=True)
class FigureResult:
    """Results of one figure.

    Attributes
    ----------
    rows : sequence of mapping
        Tidy table, one observation a row: the CSV. Values are numbers, strings, booleans or None.
    draw : callable, optional
        ``draw(figure)`` draws on an empty `matplotlib.figure.Figure`, whose size it may set; None draws the
        table itself, for the papers' tables.
    compared : sequence of Compared
        The paper's numbers beside ours; at least one a figure.
    honest : str
        What is attainable at the claimed epsilon by the recommended mechanism; empty where that says nothing.
    stand_in : str
        Which data stand in for the paper's, and how they differ; empty where the paper's own are used.
    verdict : str
        One line: what holds, what does not, why.
    parameters : mapping
        What was run with, for the JSON.
    """

    rows: Sequence[Mapping[str, Any]]
    draw: Callable[[Any], None] | None = None
    compared: Sequence[Compared] = ()
    honest: str = ""
    stand_in: str = ""
    verdict: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return all but the drawing as JSON values; infinities are left to `jsonable`."""
        return {
            "rows": [dict(row) for row in self.rows],
            "compared": [asdict(each) for each in self.compared],
            "honest": self.honest,
            "stand_in": self.stand_in,
            "verdict": self.verdict,
            "parameters": dict(self.parameters),
        }
