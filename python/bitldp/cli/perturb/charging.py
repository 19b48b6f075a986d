"""Ledger of a run of ``bitldp perturb``: its charge, before anything is released, and its output."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Protocol

from bitldp.base.errors import PlanError
from bitldp.cli.errors import CommandError, UsageError
from bitldp.cli.perturb.privacy_report import Charged
from bitldp.cli.perturb.request import Request
from bitldp.cli.perturb.table_files import InputSource, open_reader
from bitldp.ledger.budget import BudgetExceededError, Ledger, LedgerChangedError, LedgerState, NoLedgerError
from bitldp.ledger.entry import Entry, named
from bitldp.privacy import Guarantee
from bitldp.tables.plan import TablePlan, TableRelease

__all__ = ["Warner", "charged", "enter_output"]

_FREE = Guarantee(0.0, 0.0, 0.0, 0.0)


class Warner(Protocol):
    """Where warnings of a run are shown."""

    def warn(self, sentence: str) -> None:
        """Show a warning."""
        ...


def charged(
    request: Request,
    plan: TablePlan,
    release: TableRelease | None,
    source: InputSource | None,
    data: str = "",
    *,
    rows: int = 1,
) -> Charged | None:
    """Charge a run to its ledger before anything is released; a repeatable one once, by its data's digest.

    For one file, `source`, the digest is that of its records, which are read `rows` at a time. For several
    files it is given as `data`.
    """
    if request.ledger is None:
        if request.budget is not None:
            raise UsageError("--budget: creates a ledger; give its file with --ledger")
        if request.after is not None:
            raise UsageError("--after: needs --ledger FILE")
        if request.reservation:
            raise UsageError("--reserve: needs --ledger FILE")
        return None
    _check_budget(request, request.ledger)
    state = None if request.after is None else _state_of(request.after)
    if release is not None and source is not None:
        data = _records_digest(release, source, rows)
    try:
        with Ledger.open(
            request.ledger, budget=request.budget, create=request.budget is not None, at_least=state
        ) as ledger:
            if release is None:
                first = len(ledger.entries)
                for codec in plan.codecs:
                    entry = Entry(
                        *named(codec.mechanism),
                        1,
                        plan=plan.digest,
                        columns=tuple(codec.columns),
                        reservation=request.reservation,
                    )
                    ledger._charge(entry)
                return Charged(dict(enumerate(ledger.entries[first:], first + 1)), ledger.state())
            return _charged_release(request, release, ledger, source, data)
    except NoLedgerError:
        begins = "; --budget E creates one" if state is None else ""
        raise UsageError(f"{request.ledger}: no such ledger{begins}") from None
    except LedgerChangedError as error:
        raise CommandError(str(error).replace("at_least=", f"--after {request.after}")) from None
    except (BudgetExceededError, PlanError) as error:
        sentence = str(error).removeprefix("Guarantee: ")  # of a plan, which is no one mechanism
        raise CommandError(f"{request.ledger}: {sentence}") from None
    except ValueError as error:
        raise UsageError(f"{request.ledger}: {error}") from None


def _check_budget(request: Request, ledger: Path) -> None:
    """Refuse to begin a ledger that is there, or that would have an earlier report."""
    if request.budget is not None and ledger.exists():
        raise UsageError(f"{ledger}: exists already; --budget creates a new ledger")
    if request.budget is not None and request.after is not None:
        raise UsageError("--after, --budget: a new ledger has no earlier report; give only one of them")


def _records_digest(release: TableRelease, source: InputSource, rows: int) -> str:
    """Return the digest of a file's records, for which it is read once more, before the ledger is held.

    Empty where a charge does not depend on the records: without a key, and under a cap.
    """
    if not release.repeatable or release.counting:
        return ""
    with closing(open_reader(source).batches(release.reads, rows)) as batches:
        return release.records_digest(batches)


def _charged_release(
    request: Request, release: TableRelease, ledger: Ledger, source: InputSource | None, data: str
) -> Charged:
    """Charge a release to an open ledger, and return what it was ever charged there."""
    if data and source is not None:
        data = release.data_digest(ledger, source.blocks(), data)
    plan_name = "" if request.plan is None else request.plan.name
    release.charge(ledger, data=data, name=plan_name, reservation=request.reservation)
    name = f"{release.charged_as} "
    own = {
        key: each
        for key, each in enumerate(ledger.entries, 1)
        if f"{each.note} ".startswith(name) and not each.output
    }
    return Charged(own, ledger.state())


def enter_output(request: Request, release: TableRelease | None, sha256: str, watcher: Warner) -> None:
    """Enter the digest of an output that was written into the ledger; it costs nothing."""
    if request.ledger is None:
        return
    entry = Entry(
        "output",
        _FREE,
        1,
        "" if release is None else release.counted_as,
        release="" if release is None else release.id,
        name=request.target.name,
        output=sha256,
    )
    try:
        with Ledger.open(request.ledger) as ledger:
            if not release or not release.repeatable or entry not in ledger.entries:
                ledger._charge(entry)
    except (OSError, ValueError, RuntimeError):  # the output is there, and is charged
        watcher.warn(
            f"{request.ledger}: the ledger could not store the digest of the output; it is in the report"
        )


def _state_of(report: Path) -> LedgerState:
    """Return how far a ledger had come by the privacy report of an earlier run."""
    try:
        state = json.loads(report.read_text(encoding="utf-8"))["ledger_state"]
        entries, sha256 = state["entries"], state["sha256"]
    except OSError as error:
        raise UsageError(f"--after: {report}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        entries, sha256 = None, None
    if type(entries) is not int or entries < 0 or not isinstance(sha256, str):
        raise UsageError(f"--after: {report}: is not a privacy report of a run that charged a ledger")
    return LedgerState(entries, sha256)
