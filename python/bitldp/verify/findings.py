"""Findings of a check, and the verdict of all of them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import NamedTuple

__all__ = [
    "EXITS",
    "FALSE",
    "NOTE",
    "PROVEN",
    "UNPROVEN",
    "Lie",
    "Statement",
    "Unproven",
    "looked",
    "must",
    "verdict",
]

PROVEN, FALSE, UNPROVEN, NOTE = "proven", "false", "unproven", "note"

EXITS = {PROVEN: 0, FALSE: 1, UNPROVEN: 3}
"""Exit code of each verdict; 2 is for a command that does not fit."""


class Statement(NamedTuple):
    """A checked statement.

    Attributes
    ----------
    verdict : {"proven", "false", "unproven", "note"}
        A note has no bearing on the verdict of the report.
    sentence : str
        What was checked, or what is missing.
    """

    verdict: str
    sentence: str


class Unproven(Exception):  # noqa: N818
    """Error for a part that the report does not state in integers, or that is not rebuilt here."""


class Lie(Exception):  # noqa: N818
    """Error for a statement that cannot be true."""


def verdict(findings: Iterable[Statement]) -> str:
    """Return the verdict of all findings: false if any is false, proven if none is unproven."""
    reached = {each.verdict for each in findings}
    return FALSE if FALSE in reached else UNPROVEN if UNPROVEN in reached else PROVEN


def must(good: bool, problem: str) -> None:
    """Refuse a statement."""
    if not good:
        raise Lie(problem)


def looked(name: str, check: Callable[[], Iterable[Statement]]) -> list[Statement]:
    """Return the findings of a check; what is not written as a report is, is false."""
    result: list[Statement] = []
    try:
        for each in check():
            result.append(each)
    except Unproven as reason:
        result.append(Statement(UNPROVEN, f"{name}: cannot be proven, {reason}"))
    except Lie as reason:
        result.append(Statement(FALSE, f"{name}: {reason}"))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error) as error:
        result.append(Statement(FALSE, f"{name}: is not written as it must be ({type(error).__name__})"))
    return result
