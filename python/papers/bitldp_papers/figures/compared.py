"""One number of a paper beside ours, and whether they agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from bitldp_papers.figures.stated import Formula, Printed, ReadOff, Stated, stated

__all__ = ["Compared", "spread"]


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
    paper : Printed, ReadOff, Formula or None
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
    reached : bool
        Whether the model without noise learned enough for ours to be compared.
    """

    what: str
    paper: Stated
    ours: float | str
    spread: float | None = None
    exact: float | None = None
    claimed: float | None = None
    tolerance: float | None = None
    reached: bool = True

    def __post_init__(self) -> None:
        if self.paper is not None and not isinstance(self.paper, (Printed, ReadOff, Formula)):
            raise TypeError(f"paper: must be Printed, ReadOff, Formula or None; got {self.paper!r}")

    @classmethod
    def scored(
        cls,
        what: str,
        paper: Stated,
        scores: Sequence[float],
        exact: float | None = None,
        claimed: float | None = None,
        tolerance: float | None = None,
        *,
        reached: bool = True,
    ) -> Compared:
        """Return the mean of scores of several seeds, and their spread, beside the paper's number."""
        return cls(what, paper, fmean(scores), spread(scores), exact, claimed, tolerance, reached)

    @property
    def kind(self) -> str | None:
        """Return "printed", "drawn", "formula", or None."""
        kind: str | None = stated(self.paper)["kind"]
        return kind

    @property
    def stands(self) -> float:
        """Return the number that the paper prints or draws, or its formula gives; NaN where there is none."""
        return self.paper.value if isinstance(self.paper, (Printed, ReadOff, Formula)) else math.nan

    @property
    def agrees(self) -> bool | None:
        """Return whether ours is the number that the paper prints or draws.

        None where it has none, where ours was not `reached`, and where ours is further off than the
        tolerance, but not by more than two standard deviations between our seeds.
        """
        if not isinstance(self.paper, (Printed, ReadOff)) or isinstance(self.ours, str):
            return None
        if not self.reached:
            return None
        slack = self.tolerance
        if slack is None:
            rounding = self.paper.half_unit if isinstance(self.paper, Printed) else 0.0
            slack = max(SAME * abs(self.paper.value), rounding)
        if isinstance(self.paper, ReadOff):
            slack += self.paper.within
        off = abs(self.ours - self.paper.value)
        if off <= slack * (1.0 + 1e-9):
            return True
        return None if self.spread is not None and off <= slack + 2.0 * self.spread else False

    def document(self) -> dict[str, Any]:
        """Return it as JSON values: what `stated` has, and the fields."""
        rest = ("ours", "spread", "exact", "claimed", "tolerance", "agrees")
        own = {"what": self.what, **stated(self.paper), **{name: getattr(self, name) for name in rest}}
        return own if self.reached else {**own, "reached": False}
