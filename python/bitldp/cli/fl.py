"""``bitldp fl``: run a federated system of a paper in this process."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bitldp.base.extras import require
from bitldp.base.plain import jsonable
from bitldp.cli.options import MOST_THREADS
from bitldp.cli.perturb.files import CommandError, UsageError
from bitldp.cli.screen import sentences, wide_console
from bitldp.report.plots import rounds_plot
from bitldp.report.totals import number

if TYPE_CHECKING:
    from bitldp.papers import Settings, Summary, System

__all__ = ["fl"]

_MODULES = ("flwr", "jax", "sklearn", "matplotlib")


def fl(
    system: Annotated[
        str | None,
        typer.Argument(metavar="[SYSTEM]", help="bitrand, ldpfl, mvu, fedsel or brr; none: a list."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A short run, under a minute on two cores, for a first look.")
    ] = False,
    data: Annotated[str | None, typer.Option(metavar="NAME", help="Data set; see bitldp.data.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(metavar="E", help="Budget of a client over all rounds.")
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which mechanism, or which baseline.")
    ] = None,
    clients: Annotated[int | None, typer.Option(help="How many clients.")] = None,
    rounds: Annotated[int | None, typer.Option(help="How many rounds.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of the deal, the model and the training.")] = None,
    seeded: Annotated[
        bool,
        typer.Option("--seeded", help="Releases from --seed, too: reproducible, for experiments ONLY."),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other setting of the system. Repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="Default: fl-output/SYSTEM.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the folder's last round.")] = False,
    threads: Annotated[
        int, typer.Option(min=1, max=MOST_THREADS, help="Clients at a time; the model does not depend on it.")
    ] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="The summary as JSON.")] = False,
) -> None:
    """Run a federated system of a paper: its clients, its server and its baselines, in this process.

    The folder holds settings.json, metrics.jsonl (one line a round), checkpoint.npz, summary.json, plot.png
    and what the clients keep.

    Example: bitldp fl bitrand --quick
    """
    with sentences():
        require("bitldp fl", _MODULES, "fl")
        from bitldp.data import DatasetError
        from bitldp.federated import RoundFailedError
        from bitldp.papers import NAMES, get

        logging.getLogger("flwr").setLevel(logging.ERROR)  # Flower sets it when it is imported
        if system is None:
            _print_systems(as_json=as_json)
            return
        if system not in NAMES:
            raise UsageError(f"no system {system!r}; there are {', '.join(NAMES)}")
        chosen = get(system)
        named = {
            "data": data,
            "epsilon": epsilon,
            "mechanism": mechanism,
            "clients": clients,
            "rounds": rounds,
            "seed": seed,
            "out": str(out or Path("fl-output") / system),
            "resume": resume or None,
        }
        given = {name: value for name, value in named.items() if value is not None}
        try:
            run = chosen.configure(quick=quick, **given, **_extra(chosen, settings or [], given))
        except (ValueError, TypeError) as error:
            raise UsageError(str(error)) from None
        try:
            summary = _watched(chosen, run, threads=threads, seeded=seeded, quiet=as_json)
        except RoundFailedError as error:
            raise CommandError(f"{error}; --resume goes on after the last whole round") from None
        except (ValueError, TypeError, DatasetError) as error:
            raise CommandError(str(error)) from None
        except KeyboardInterrupt:
            raise CommandError(
                f"interrupted; --resume goes on after the last whole round in {run.out}",
                128 + signal.SIGINT,
            ) from None
        folder = Path(run.out)
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        rounds_plot(rows, summary.metric, folder / "plot.png", title=f"{chosen.name}: {_title(run)}")
        if as_json:
            print(json.dumps(jsonable(asdict(summary)), indent=2))
        else:
            _print_summary(summary, folder)


def _extra(system: System, pairs: list[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Read ``NAME=VALUE`` by the type that the setting has."""
    found: dict[str, Any] = {}
    defaults = {field.name: field.default for field in fields(system.settings)}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.replace("-", "_")
        if not equals:
            raise UsageError(f"--set {pair}: NAME=VALUE is needed; names are {', '.join(defaults)}")
        if name not in defaults:
            raise UsageError(f"--set {pair}: {system.name} has no {name}; there are {', '.join(defaults)}")
        if name in given or name in found:
            raise UsageError(f"--set {pair}: {name} is given twice")
        kind: Any = type(defaults[name])
        try:
            found[name] = _word(text) if kind is bool else kind(text)
        except ValueError:
            raise UsageError(f"--set {pair}: {name} must be {kind.__name__}") from None
    return found


def _word(text: str) -> bool:
    try:
        return {"true": True, "yes": True, "false": False, "no": False}[text.lower()]
    except KeyError:
        raise ValueError from None


def _title(run: Settings) -> str:
    mechanism = getattr(run, "mechanism", "")
    named = f"{mechanism}, " if mechanism else ""
    return f"{named}{run.data}, {run.clients} clients, epsilon {number(run.epsilon)}"


@contextmanager
def _interrupts() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C end the run where that is safe: at what is given, a function that raises if it was pressed.

    Raised in the middle of a call of jax, KeyboardInterrupt may be lost, or end the process by a fault. The
    second one is raised at once.
    """
    pressed = threading.Event()

    def stop() -> None:
        if pressed.is_set():
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # where no handler can be set
        yield stop
        return

    def handle(number: int, frame: object) -> None:
        stop()
        pressed.set()
        print("interrupted: ends after this client; press again to end at once", file=sys.stderr)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def _watched(system: System, run: Settings, *, threads: int, seeded: bool, quiet: bool) -> Summary:
    """Run with a progress bar, which is drawn on a terminal only."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[score]}"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(f"{system.name}, rounds", total=run.rounds, score="")

        def watch(row: Mapping[str, Any]) -> None:
            score = next((f"{k} {number(v)}" for k, v in list(row.items())[1:2] if v is not None), "")
            bar.update(task, completed=row["round"], score=score)

        with _interrupts() as stop:
            return system.run(run, threads=threads, seeded=seeded, watcher=watch, stop=stop)


def _print_systems(*, as_json: bool) -> None:
    from bitldp.papers import NAMES, get

    systems = [get(name) for name in NAMES]
    if as_json:
        known = {each.name: {"summary": each.summary, **each.choices} for each in systems}
        print(json.dumps(known, indent=2))
        return
    table = Table(box=None)
    for name in ("System", "What it does", "Choices"):
        table.add_column(name, no_wrap=name == "System")
    for each in systems:
        choices = "; ".join(f"{name}: {', '.join(words)}" for name, words in each.choices.items())
        table.add_row(each.name, each.summary, choices)
    console = wide_console()
    console.print(table)
    console.print("bitldp fl SYSTEM --quick runs one; --set NAME=VALUE changes any of its settings")


def _print_summary(summary: Summary, folder: Path) -> None:
    privacy = summary.privacy
    fails = privacy.record > privacy.claimed and not privacy.claimed_for
    holds = "  (the claim does NOT hold)" if fails else ""
    claimed_for = f", for {privacy.claimed_for}" if privacy.claimed_for else ""
    delta = f", delta {number(privacy.delta)}" if privacy.delta else ""
    rows = [
        (summary.metric, number(summary.score)),
        ("rounds", str(summary.rounds)),
        ("bytes up", f"{summary.bytes_up:,}"),
        ("claimed epsilon", number(privacy.claimed) + claimed_for),
        ("exact epsilon, record", number(privacy.record, 6) + delta + holds),
        ("what it covers", privacy.covers),
        *([("what it does NOT cover", privacy.not_covered)] if privacy.not_covered else []),
        *([("caveat", summary.caveat)] if summary.caveat else []),
        ("seconds", f"{summary.seconds:.1f}"),
        ("folder", str(folder)),
    ]
    table = Table(title=summary.system, show_header=False)
    for name, value in rows:
        table.add_row(name, value)
    wide_console().print(table)
