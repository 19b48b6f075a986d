"""Epsilon of a series of memoized snapshots, as a report says it of all of them together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from .findings import NOTE, PROVEN, Statement, must
from .laws import agrees, decimal

__all__ = ["charges_of", "memoized"]

_LAST = 1e-15  # relative, of what a product of doubles may miss


def memoized(report: Mapping[str, Any], total: Decimal) -> Iterator[Statement]:
    """Check what all snapshots cost: as many reports of each mechanism as values have one.

    Parameters
    ----------
    report : mapping
    total : Decimal
        Epsilon of one report of each mechanism, together.
    """
    if "memoized" not in report:
        return
    said = report["memoized"]
    must(set(said) == {"series", "most", "epsilon_exact", "delta", "given"}, "memoized has other keys")
    must(report["repeatable"] is True, "memoized reports are made with a key")
    must(isinstance(said["series"], str) and said["series"] != "", "the series has no name")
    most, given = said["most"], said["given"]
    must(most is None or (type(most) is int and most >= 1), "memoized: most is not a number of values")
    must(isinstance(given, str) and "the reports show when" in given, "memoized hides that changes show")
    times = 1 if most is None else most
    printed = decimal(said["epsilon_exact"])
    delta = min(Decimal(1), decimal(report["total_per_record"]["delta"]) * times)
    good = abs(decimal(said["delta"]) - delta) <= delta * Decimal(_LAST)
    must(good, "the delta of all snapshots is another")
    must(
        agrees(printed, total * times), f"all snapshots: epsilon {total * times:.12g}, printed {printed:.15g}"
    )
    if most is None:
        yield Statement(
            NOTE,
            f"memoized: each further value of a record costs epsilon {total:.12g} again; there is no cap",
        )
    else:
        yield Statement(
            PROVEN,
            f"all snapshots of the series: epsilon {total * times:.12g} together, for {most} values of each "
            f"column, printed {printed:.15g}",
        )
        yield Statement(NOTE, f"the writer is trusted to have sent no more than {most} values of a record")
    yield Statement(NOTE, f"memoized: {given}")


def charges_of(report: Mapping[str, Any], total: Decimal) -> tuple[Decimal, str]:
    """Return the epsilon that a ledger is charged for a report, and what the notes of it begin with."""
    said = report.get("memoized")
    if said is None or said["most"] is None:
        return total, f"release {report['release']}"
    return total * said["most"], f"series {said['series']} store"
