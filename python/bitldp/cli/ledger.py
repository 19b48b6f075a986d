"""``bitldp ledger``: what a set of people has spent, by whom and when; reservations; a check of reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from bitldp.cli.commands import AsJson, one_of
from bitldp.cli.errors import CommandError, UsageError
from bitldp.cli.screen import print_whole, sentences, wide_console
from bitldp.privacy import number

if TYPE_CHECKING:
    from bitldp.ledger import Entry, Ledger

__all__ = ["ledger"]


def ledger(
    action: Annotated[
        str,
        typer.Argument(
            metavar="ACTION",
            help="show, history, remaining, check or reserve.",
            autocompletion=one_of("show", "history", "remaining", "check", "reserve"),
        ),
    ],
    file: Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger's file.")],
    more: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MORE]...",
            help="check: privacy reports that the ledger must have charged. reserve: a name and its epsilon, "
            "which replaces its earlier reservation; 0 releases it.",
        ),
    ] = None,
    delta: Annotated[float, typer.Option(metavar="D", help="With reserve: the delta to reserve.")] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Show what releases about a set of people have spent, and how much budget is left.

    show: budget, what is spent, and its share by plan. history: every charge, oldest first. remaining: the
    epsilon that is left. check: whether the file is whole, and whether it has charged the privacy reports
    that are given; exits with 1 where not. reserve: keep a part of the budget for perturb --reserve.

    Example: bitldp ledger history people.ledger
    """
    with sentences():
        from bitldp.ledger import Ledger

        actions: dict[str, Callable[[Ledger, list[str]], tuple[Any, Any]]] = {
            "show": _show,
            "history": _history,
            "remaining": _remaining,
            "check": _check,
        }
        rest = more or []
        if action not in (*actions, "reserve"):
            raise UsageError(f"{action}: must be one of {', '.join((*actions, 'reserve'))}")
        if rest and action not in ("check", "reserve"):
            raise UsageError(f"{action}: takes one file, and nothing after it")
        if delta and action != "reserve":
            raise UsageError("--delta: only for reserve")
        try:
            if action == "reserve":
                document, shown = _reserve(file, rest, delta)
            else:
                document, shown = actions[action](Ledger.load(file), rest)
        except FileNotFoundError:
            raise UsageError(
                f"{file}: no such ledger; perturb --ledger {file} --budget E creates one"
            ) from None
        except ValueError as error:
            raise CommandError(str(error)) from None
        if as_json:
            print(json.dumps(document, indent=2, allow_nan=False))
        elif isinstance(shown, Table):
            print_whole(wide_console(), shown)
        else:
            print(shown)


def _summary(one: Ledger) -> dict[str, Any]:
    return {
        "budget": one.budget,
        "spent": one.spent,
        "remaining": one.remaining,
        "delta": one.delta,
        "spent_delta": one.spent_delta,
        "remaining_delta": one.remaining_delta,
        "reservations": one.reservations,
        **({"sums": one.sums._asdict()} if any(entry.model for entry in one.entries) else {}),
        "charges": len(one.entries),
        "state": one.state()._asdict(),
    }


def _cost(entry: Entry) -> Fraction:
    return entry.count * Fraction(entry.guarantee.record)


def _subject(entry: Entry) -> str:
    """Return what an entry is about: the plan by its name or digest, else the mechanism."""
    if entry.output:
        return "output"
    return entry.name or (f"plan {entry.plan[:12]}" if entry.plan else entry.mechanism)


def _show(one: Ledger, _: list[str]) -> tuple[Any, Any]:
    document, by = _summary(one), dict[str, tuple[Fraction, int]]()
    for entry in one.entries:
        if not entry.output and not entry.model:
            cost, count = by.get(_subject(entry), (Fraction(0), 0))
            by[_subject(entry)] = cost + _cost(entry), count + entry.count
    document["by_plan"] = {name: {"epsilon": float(cost), "releases": n} for name, (cost, n) in by.items()}
    table = Table(
        title=f"epsilon {number(one.spent, 6)} of {number(one.budget, 6)} spent, "
        f"{number(one.remaining, 6)} remains",
        caption=f"delta {number(one.spent_delta, 3)} of {number(one.delta, 3)} spent" if one.delta else None,
    )
    table.add_column("released")
    table.add_column("releases", justify="right")
    table.add_column("epsilon of a record", justify="right")
    for name, (cost, count) in by.items():
        table.add_row(name, f"{count:,}", number(float(cost), 6))
    for name, left in one.reservations.items():
        table.add_row(f"reservation {name}", "", f"{number(left, 6)} left")
    if "sums" in document:
        kept = one.sums
        rest = f"{number(kept.remaining, 6)} left of {number(kept.budget, 6)}, against who sees totals"
        table.add_row("secure sums, central epsilon, apart", "", rest)
    return document, table


def _history(one: Ledger, _: list[str]) -> tuple[Any, Any]:
    from bitldp.ledger.entry import to_json

    document = [{"number": position, **to_json(entry)} for position, entry in enumerate(one.entries, 1)]
    table = Table(title=f"{len(document)} entries, oldest first")
    for name in ("", "time (UTC)", "user", "released", "columns", "releases", "epsilon each", "delta each"):
        table.add_column(name, justify="right" if name in ("", "releases") or "each" in name else "left")
    table.add_column("of")
    for position, entry in enumerate(one.entries, 1):
        said = entry.output[:12] or entry.release[:12] or entry.note
        kept = f"reservation {entry.reservation}" if entry.reservation else entry.model
        table.add_row(
            str(position),
            entry.time.removesuffix("+00:00").replace("T", " "),
            entry.user,
            _subject(entry),
            ", ".join(entry.columns),
            f"{entry.count:,}",
            number(entry.guarantee.record, 6),
            number(entry.guarantee.delta, 3) if entry.guarantee.delta else "",
            ", ".join(filter(None, (said, kept))),
        )
    return document, table


def _remaining(one: Ledger, _: list[str]) -> tuple[Any, Any]:
    return _summary(one), repr(one.remaining)


def _check(one: Ledger, reports: list[str]) -> tuple[Any, Any]:
    """Compare a ledger, which was read and so is whole, with privacy reports."""
    lines = [f"whole: {len(one.entries)} entries, each follows the one before"]
    for name in reports:
        lines.append(_charged(one, name))
    return {**_summary(one), "reports": reports}, "\n".join(lines)


def _charged(one: Ledger, name: str) -> str:
    """Return a sentence if the ledger charged a report, and still has what it had then; refuse otherwise."""
    try:
        report = json.loads(Path(name).read_text(encoding="utf-8"))
        state, charges = report["ledger_state"], report["ledger"]
        count, sha256, output = state["entries"], state["sha256"], report["output_sha256"]
        numbers = [each["number"] for each in charges]
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(f"{name}: is not a privacy report of a run that charged a ledger") from None
    if type(count) is not int or not 0 <= count <= len(one.entries) or one._state(count).sha256 != sha256:
        raise CommandError(f"{name}: the ledger does not start with the charges that it had then")
    there = {entry.output for entry in one.entries}
    known = "" if output in there else "; the digest of its output is not in the ledger"
    return f"{name}: charged by entry {', '.join(map(str, numbers))}{known}"


def _reserve(file: Path, rest: list[str], delta: float) -> tuple[Any, str]:
    from bitldp.ledger import Ledger

    if len(rest) != 2:
        raise UsageError("reserve: needs a name and an epsilon: bitldp ledger reserve LEDGER NAME EPSILON")
    name, text = rest
    try:
        epsilon = float(text)
    except ValueError:
        raise UsageError(f"reserve: the epsilon must be a number, got {text}") from None
    with Ledger.open(file) as one:
        one.reserve(name, epsilon, delta=delta)
        document = _summary(one)
    left = number(document["reservations"][name], 6)
    return document, f"{name}: epsilon {left} is reserved, {number(document['remaining'], 6)} remains beside"
