"""``bitldp fl``: run a federated system of a paper in this process."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from bitldp.base.errors import require
from bitldp.cli.catalogue import MOST_THREADS
from bitldp.cli.files import CommandError, UsageError
from bitldp.cli.screen import sentences
from bitldp.report.plots import rounds_plot
from bitldp.report.totals import number
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bitldp_papers.cli.fl.show import print_runs, print_summary, print_systems

if TYPE_CHECKING:
    from bitldp_papers import Runnable, Settings, Summary

__all__ = ["fl"]

_MODULES = ("flwr", "jax", "sklearn", "matplotlib")


def fl(
    system: Annotated[
        str | None,
        typer.Argument(metavar="[SYSTEM]", help="bitrand, ldpfl, mvu, fedsel, brr, or honest; none: a list."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Settings to start from: paper, quick, ...")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="--preset quick: under a minute on two cores, for a first look.")
    ] = False,
    data: Annotated[
        str | None, typer.Option(metavar="NAME", help="Data set; see bitldp_papers.data.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(metavar="E", help="Budget of a client over all rounds.")
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Which mechanism, or which baseline; several are compared."),
    ] = None,
    repeats: Annotated[
        int, typer.Option(min=1, max=1000, help="Runs of each mechanism, with the seeds from --seed on.")
    ] = 1,
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
    durable: Annotated[
        bool, typer.Option("--durable", help="Wait until ledgers are on disk: for clients that live on.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The summary as JSON.")] = False,
) -> None:
    """Run a federated system of a paper: its clients, its server and its baselines, in this process.

    The folder holds settings.json, metrics.jsonl (one line a round), checkpoint.npz, summary.json, plot.png
    and what the clients keep; of several runs, a folder MECHANISM/seed-N each.
    bitldp fl SYSTEM --help lists the settings of a system.

    Example: bitldp fl bitrand --quick --mechanism bitrand,pm,noiseless --repeats 3
    """
    with sentences():
        require("bitldp fl", _MODULES, "fl")
        from bitldp.federated import RoundFailedError

        from bitldp_papers import DEPLOYMENTS, NAMES, get
        from bitldp_papers.data import DatasetError
        from bitldp_papers.run.many import run_many

        logging.getLogger("flwr").setLevel(logging.ERROR)  # Flower sets it when it is imported
        if system is None:
            print_systems(as_json=as_json)
            return
        if system not in (*NAMES, *DEPLOYMENTS):
            raise UsageError(f"no system {system!r}; there are {', '.join((*NAMES, *DEPLOYMENTS))}")
        if quick and preset not in (None, "quick"):
            raise UsageError("--quick is --preset quick; give one preset")
        chosen, start = get(system), "quick" if quick else preset or ""
        mechanisms = tuple(filter(None, (mechanism or "").split(",")))
        named = {
            "data": data,
            "epsilon": epsilon,
            "mechanism": next(iter(mechanisms), None),
            "clients": clients,
            "rounds": rounds,
            "seed": seed,
            "out": str(out or Path("fl-output") / system),
            "resume": resume or None,
        }
        given = {name: value for name, value in named.items() if value is not None}
        run = _configured(chosen, start, given, settings or [], mechanisms)
        differences = chosen.settings.differences if start == "paper" else ""
        options: dict[str, Any] = {"threads": threads, "seeded": seeded, "durable": durable}
        try:
            with _interrupts() as stop:
                options["stop"] = stop

                def watched(one: Settings) -> Summary:
                    return _watched(chosen, one, quiet=as_json, **options)

                if len(mechanisms) < 2 and repeats == 1:
                    runs = [watched(run)]
                else:
                    seeds = range(run.seed, run.seed + repeats)
                    runs = run_many(chosen, run, seeds, mechanisms, each=watched)
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
        _plot(chosen, run, runs, folder)
        if len(runs) == 1:
            print_summary(runs[0], folder, differences, as_json=as_json)
        else:
            print_runs(runs, folder, differences, as_json=as_json)


def _configured(
    system: Runnable, preset: str, given: dict[str, Any], more: list[str], mechanisms: Sequence[str]
) -> Settings:
    """Return the settings of all runs; every mechanism is looked at before the first."""
    for place, name in enumerate(mechanisms):
        if name in mechanisms[:place]:
            raise UsageError(f"--mechanism: names {name} twice")
    try:
        run = system.configure(preset=preset, **given, **_extra(system, more, given))
        for name in mechanisms[1:]:
            replace(run, mechanism=name)  # type: ignore[call-arg]
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from None
    return run


def _plot(system: Runnable, run: Settings, runs: Sequence[Summary], folder: Path) -> None:
    """Draw the score of every round, of several seeds their mean and spread."""
    rows: dict[str, list[Any]] = {}
    for each in runs:
        place = folder if len(runs) == 1 else folder / each.mechanism / f"seed-{each.seed}"
        lines = (place / "metrics.jsonl").read_text().splitlines()
        rows.setdefault(each.mechanism, []).append([json.loads(line) for line in lines])
    rounds_plot(rows, runs[0].metric, folder / "plot.png", title=f"{system.name}: {_title(run, tuple(rows))}")


def _extra(system: Runnable, pairs: list[str], given: Mapping[str, Any]) -> dict[str, Any]:
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


def _title(run: Settings, mechanisms: Sequence[str]) -> str:
    named = f"{mechanisms[0]}, " if len(mechanisms) == 1 and mechanisms[0] else ""
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


def _watched(system: Runnable, run: Settings, *, quiet: bool, **options: Any) -> Summary:
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
        named = " ".join(
            filter(None, (system.name, getattr(run, "mechanism", ""), f"seed {run.seed}, rounds"))
        )
        task = bar.add_task(named, total=run.rounds, score="")

        def watch(row: Mapping[str, Any]) -> None:
            score = next((f"{k} {number(v)}" for k, v in list(row.items())[1:2] if v is not None), "")
            bar.update(task, completed=row["round"], score=score)

        return system.run(run, watcher=watch, **options)
