"""What a release and an aggregate ask of their plan."""

from __future__ import annotations

from typing import Any, Protocol

from bitldp.privacy import Guarantee
from bitldp.tables.part import Part

__all__ = ["Planned"]


class Planned(Protocol):
    """A plan: `bitldp.tables.TablePlan`."""

    @property
    def keep(self) -> tuple[str, ...]:
        """Columns that leave as they are."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The independent mechanisms, each with its columns."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that a table must have."""

    @property
    def guarantee(self) -> Guarantee:
        """The privacy of a record."""

    def fingerprint(self) -> dict[str, Any]:
        """Return the plan as JSON values."""

    @property
    def digest(self) -> str:
        """SHA-256 of the plan, in hexadecimal."""
