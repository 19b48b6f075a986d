"""Runs by a plan's file: what is read of it, and what a ledger is charged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bitldp.base.errors import PlanError
from bitldp.cli.perturb.files import CommandError, UsageError
from bitldp.cli.perturb.plan import Plan, batch_rows
from bitldp.cli.perturb.request import Request
from bitldp.cli.perturb.sources import Source
from bitldp.ledger.budget import BudgetExceededError, Ledger, NoLedgerError
from bitldp.tables.key import ReleaseKey
from bitldp.tables.plan import TablePlan

__all__ = ["charge", "planned"]


def planned(request: Request, source: Source, names: Sequence[str]) -> Plan:
    """Return the run of a plan's file.

    Parameters
    ----------
    request : Request
    source : Source
        The table.
    names : sequence of str
        The columns of the table.

    Raises
    ------
    UsageError
        For a plan that cannot be read, that is none, or that does not fit the table.
    """
    if request.plan is None:
        raise UsageError("--plan: is needed")
    if request.seed is not None:
        raise UsageError("--seed does not go with --plan: a release is made repeatable by its key")
    try:
        plan = TablePlan.read(request.plan)
    except PlanError as error:
        raise UsageError(f"{request.plan}: {error}") from None
    except FileNotFoundError:
        raise UsageError(f"--plan: {request.plan}: no such file") from None
    except UnicodeDecodeError:
        raise UsageError(f"{request.plan}: is no text in UTF-8") from None
    asked = request.release
    if asked.record is None and (asked.snapshot or asked.variable or asked.file):
        raise UsageError("--record: a key needs the column of the records' ids")
    release = plan.release(
        _key(request), record=asked.record, snapshot=asked.snapshot, threads=request.threads
    )
    times = Counter(names)
    for name in release.reads:
        if times[name] != 1:
            problem = "has several columns of that name" if times[name] else "has no such column"
            raise UsageError(f"column {name!r} of {request.plan}: {source} {problem}")
    return Plan(plan.parts, plan.keep, batch_rows(plan.parts, False), (), release)


def _key(request: Request) -> ReleaseKey | None:
    asked = request.release
    if asked.variable is not None and asked.file is not None:
        raise UsageError("--key-env, --key-file: give one of the two")
    if asked.record is not None and asked.variable is None and asked.file is None:
        raise UsageError("--record goes with the release's key: --key-env NAME or --key-file FILE")
    try:
        if asked.variable is not None:
            return ReleaseKey.from_env(asked.variable)
        return None if asked.file is None else ReleaseKey.from_file(asked.file)
    except FileNotFoundError:
        raise UsageError(f"--key-file: {asked.file}: no such file") from None
    except ValueError as error:
        raise UsageError(f"--key-{'env' if asked.variable else 'file'}: {error}") from None


def charge(request: Request, plan: Plan, source: Source) -> None:
    """Charge a run to its ledger before anything is released; a repeatable one once.

    Raises
    ------
    UsageError
        If there is no ledger, or one is to begin that is there.
    CommandError
        If the run costs more than remains, or was charged for other data.
    """
    if request.ledger is None:
        if request.budget is not None:
            raise UsageError("--budget: begins a ledger; name it by --ledger")
        return
    if request.budget is not None and request.ledger.exists():
        raise UsageError(f"{request.ledger}: is there; --budget begins a new ledger")
    try:
        with Ledger.open(request.ledger, budget=request.budget, create=request.budget is not None) as ledger:
            if plan.release is not None:
                plan.release.charge(ledger, data=_digest(source, plan))
            else:
                for part in plan.parts:
                    ledger.charge(part.mechanism)
    except NoLedgerError:
        raise UsageError(f"{request.ledger}: no such ledger; --budget E begins one") from None
    except (BudgetExceededError, PlanError) as error:
        sentence = str(error).removeprefix("Guarantee: ")  # of a plan, which is no one mechanism
        raise CommandError(f"{request.ledger}: {sentence}") from None
    except ValueError as error:
        raise UsageError(f"{request.ledger}: {error}") from None


def _digest(source: Source, plan: Plan) -> str:
    """Return what the ledger knows the data by, without telling of them; nothing without a key."""
    if plan.release is None or not plan.release.repeatable:
        return ""
    return plan.release.digest(source.blocks())
