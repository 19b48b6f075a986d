"""Results of a figure: its table, its drawing, the paper's numbers beside ours, and what follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any

from bitldp_papers.figures.findings import Finding, summary_of, verdict_of
from bitldp_papers.figures.stated import Drawn, Formula, Printed, Stated, stated

__all__ = ["Compared", "FigureResult", "column", "spread"]


def column(rows: Sequence[Mapping[str, Any]], name: str, /, **where: Any) -> list[Any]:
    """Return a column of the rows that have the given values."""
    return [row[name] for row in rows if all(row[key] == value for key, value in where.items())]


def spread(scores: Sequence[float]) -> float | None:
    """Return the standard deviation over the seeds; None of one."""
    return stdev(scores) if len(scores) > 1 else None


#: Relative deviation up to which a printed number and ours are the same, where no tolerance is given.
SAME = 0.01


@dataclass(frozen=True)
class Compared:
    """One number of the paper beside ours.

    Attributes
    ----------
    what : str
        What the number is, short: "f-RR, epsilon 1".
    paper : Printed, Drawn, Formula or None
        Where it is from; None where the paper has neither number nor formula.
    ours : float or str
    spread : float, optional
        Standard deviation of `ours` over the seeds.
    exact : float, optional
        Exact epsilon of a record (or client) in that setting; infinite where there is none.
    claimed : float, optional
        Epsilon that the paper states for it.
    tolerance : float, optional
        How far off ours may be, absolute; by default 1 % of the paper's number, or half a unit of its last
        digit where that is more. The uncertainty of a number that is read off comes on top.
    """

    what: str
    paper: Stated
    ours: float | str
    spread: float | None = None
    exact: float | None = None
    claimed: float | None = None
    tolerance: float | None = None

    @classmethod
    def scored(
        cls,
        what: str,
        paper: Stated,
        scores: Sequence[float],
        exact: float | None = None,
        claimed: float | None = None,
        tolerance: float | None = None,
    ) -> Compared:
        """Return the mean of scores of several seeds, and their spread, beside the paper's number."""
        return cls(what, paper, fmean(scores), spread(scores), exact, claimed, tolerance)

    @property
    def kind(self) -> str | None:
        """Return "printed", "drawn", "formula", "unchecked" (a plain number or a word), or None."""
        kind: str | None = stated(self.paper)["kind"]
        return kind

    @property
    def stands(self) -> float:
        """Return the number that the paper prints or draws, or its formula gives; NaN where there is none."""
        return self.paper.value if isinstance(self.paper, (Printed, Drawn, Formula)) else math.nan

    @property
    def agrees(self) -> bool | None:
        """Return whether ours is the number that the paper prints or draws.

        None where it has none, and where ours is further off than the tolerance, but not by more than two
        standard deviations between our seeds.
        """
        if not isinstance(self.paper, (Printed, Drawn)) or isinstance(self.ours, str):
            return None
        slack = self.tolerance
        if slack is None:
            rounding = self.paper.half_unit if isinstance(self.paper, Printed) else 0.0
            slack = max(SAME * abs(self.paper.value), rounding)
        if isinstance(self.paper, Drawn):
            slack += self.paper.within
        off = abs(self.ours - self.paper.value)
        if off <= slack * (1.0 + 1e-9):
            return True
        return None if self.spread is not None and off <= slack + 2.0 * self.spread else False

    def document(self) -> dict[str, Any]:
        """Return it as JSON values: what `stated` has, and the fields."""
        rest = ("ours", "spread", "exact", "claimed", "tolerance", "agrees")
        return {"what": self.what, **stated(self.paper), **{name: getattr(self, name) for name in rest}}


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
        One line: what holds, what does not, why; made of the findings.
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
    verdict: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    findings: Sequence[Finding] = ()

    def __post_init__(self) -> None:
        if self.findings:
            if self.verdict:
                raise ValueError("verdict: is made of the findings; give one of both")
            object.__setattr__(self, "verdict", verdict_of(self.findings))

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
