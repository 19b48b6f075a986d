"""Results of a figure: its table, its drawing, the paper's numbers beside ours, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bitldp_papers.figures.compared import Compared
from bitldp_papers.figures.findings import Finding, summary_of, verdict_of

__all__ = ["FigureResult", "column"]


def column(rows: Sequence[Mapping[str, Any]], name: str, /, **where: Any) -> list[Any]:
    """Return a column of the rows that have the given values."""
    return [row[name] for row in rows if all(row[key] == value for key, value in where.items())]


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
    parameters : mapping
        What was run with, for the JSON.
    findings : sequence of Finding
        What the paper states, and whether it holds.
    """

    rows: Sequence[Mapping[str, Any]]
    draw: Callable[[Any], None] | None = None
    compared: Sequence[Compared] = ()
    honest: str = ""
    stand_in: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    findings: Sequence[Finding] = ()

    @property
    def verdict(self) -> str:
        """Return in one line what holds, what does not, and why."""
        return verdict_of(self.findings)

    def document(self) -> dict[str, Any]:
        """Return all but the drawing as JSON values; infinities are left to `jsonable`."""
        return {
            "rows": [dict(row) for row in self.rows],
            "compared": [each.document() for each in self.compared],
            "honest": self.honest,
            "stand_in": self.stand_in,
            "findings": [each.document() for each in self.findings],
            "summary": summary_of([each.word for each in self.findings]),
            "verdict": self.verdict,
            "parameters": dict(self.parameters),
        }
