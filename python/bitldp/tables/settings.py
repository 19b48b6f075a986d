"""Settings of a column beside its mechanism: its values, its missing values, and what is written."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from bitldp.base.errors import PlanError

__all__ = ["MISSING_TEXTS", "ColumnSettings", "Missing"]

#: Texts of a CSV field that mean "no value".
MISSING_TEXTS = ("", "na", "n/a", "nan", "null", "none", "?")


@dataclass(frozen=True)
class Missing:
    """Policy for a missing value (a null, or NaN); never does it pass through.

    Attributes
    ----------
    policy : {"refuse", "category", "fill", "report"}
        Refused by its row; a category of its own, the last one; a public value in its place; or that, beside
        a report of whether there is a value.
    fill : float, str or None
        That public value.
    """

    policy: Literal["refuse", "category", "fill", "report"] = "refuse"
    fill: Any = None

    @property
    def filled(self) -> bool:
        """True if a public value takes the place of a missing one."""
        return self.policy in ("fill", "report")


def _as_in_a_plan(setting: str, value: str = "") -> str:
    """Return a setting of a column as a plan has it."""
    return f'{setting} = "{value}" in the plan' if value else setting


@dataclass(frozen=True)
class ColumnSettings:
    """Settings of a column beside its mechanism, and the names that errors give them.

    Attributes
    ----------
    columns : tuple of str
    categories : tuple or None
        As `Column` keeps them.
    interval : (float, float) or None
    intervals : tuple of (float, float)
        Of columns of numbers that differ in theirs.
    missing : Missing
    output, decode : str or None
        As they were asked for; None: the codec chooses.
    mechanism : str
        Name of the mechanism in errors.
    spelled : callable
        Name of a setting, alone or with a value, for who may change it.
    unit : str or None
        Unit of the numbers that dates and times become.
    listed : str or None
        Column of lists that the columns are the features of.
    """

    columns: tuple[str, ...]
    categories: tuple[Any, ...] | None = None
    interval: tuple[float, float] | None = None
    intervals: tuple[tuple[float, float], ...] = ()
    missing: Missing = field(default_factory=Missing)
    output: str | None = None
    decode: str | None = None
    mechanism: str = ""
    spelled: Callable[..., str] = _as_in_a_plan
    unit: str | None = None
    listed: str | None = None

    @property
    def title(self) -> str:
        """The columns, as errors name them."""
        return f"column {', '.join(map(repr, self.columns[:3]))}{' ...' if len(self.columns) > 3 else ''}"

    def refuse_count(self, mechanism: Any) -> None:
        """Refuse another number of columns than the mechanism takes."""
        if len(self.columns) != mechanism.columns:
            raise PlanError(
                f"{self.title}: {self.mechanism} takes {mechanism.columns} columns, got {len(self.columns)}"
            )

    def refuse_several(self) -> None:
        """Refuse several columns for a mechanism that takes one."""
        if len(self.columns) > 1:
            raise PlanError(f"{self.title}: give each of them a mechanism of its own, whose epsilons add up")

    def refuse_unless_numeric(self) -> None:
        """Refuse a policy for missing values that columns of numbers cannot follow."""
        missing = self.missing
        if missing.policy == "category":
            raise PlanError(
                f"{self.title}: nulls='category' is for categories; numbers are refused, filled or reported"
            )
        number = isinstance(missing.fill, (int, float)) and not isinstance(missing.fill, bool)
        if missing.policy == "fill" and not (number and math.isfinite(float(missing.fill or 0))):
            raise PlanError(f"{self.title}: fill: must be a finite number")
