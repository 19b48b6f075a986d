"""``bitldp fl``: run a federated system of a paper in this process."""

from __future__ import annotations

import json
import logging
import math
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from bitldp.base.documents import jsonable
from bitldp.base.errors import MissingExtraError, require
from bitldp.cli.plugin import (
    MOST_THREADS,
    CommandError,
    Once,
    UsageError,
    documented,
    print_whole,
    sentences,
    wide_console,
)
from bitldp.report import number, rounds_plot
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bitldp_papers.cli.given import Held, Label, Public, opened

if TYPE_CHECKING:
    from bitldp_papers import Runnable, Settings, Summary

__all__ = ["fl"]

_MODULES = ("flwr", "jax", "sklearn", "matplotlib")


def fl(
    system: Annotated[
        str | None,
        typer.Argument(
            metavar="[SYSTEM]", help="bitrand, ldpfl, mvu, fedsel, brr, honest, or sum. Without one: a list."
        ),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Settings to start from: paper, quick, ...")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Same as --preset quick: under a minute on two cores.")
    ] = False,
    data: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Data set of bitldp_papers.data, or .csv, .parquet, .npz."),
    ] = None,
    label: Label = None,
    ranges: Public = None,
    test: Held = None,
    features: Annotated[
        str | None, typer.Option(metavar="KIND", help="honest, sum: edges, pixels, or given vectors.")
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option(metavar="FILE|test:N", help="honest: public records without labels to learn from."),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(metavar="E", help="Budget of a client over all rounds.")
    ] = None,
    mechanism: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Mechanism or baseline; several are compared."),
    ] = None,
    repeats: Annotated[
        int, typer.Option(min=1, max=1000, help="Runs of each mechanism, with the seeds from --seed on.")
    ] = 1,
    clients: Annotated[int | None, typer.Option(help="Number of clients.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Number of rounds.")] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the data split, the model and the training.")
    ] = None,
    seeded: Annotated[
        bool,
        typer.Option("--seeded", help="Draw releases from --seed, too: for experiments ONLY."),
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other setting of the system. Repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="Default: fl-output/SYSTEM.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue after the folder's last round.")] = False,
    threads: Annotated[
        int,
        typer.Option(
            min=1, max=MOST_THREADS, help="Clients at the same time; the model does not depend on it."
        ),
    ] = 1,
    durable: Annotated[
        bool,
        typer.Option("--durable", help="Wait until ledgers are on disk: for clients that outlive the run."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Run a federated system of a paper with its clients, server and baselines, in this process.

    The folder holds settings.json, metrics.jsonl (one line a round), checkpoint.npz, summary.json, plot.png
    and what the clients keep; of several runs, a folder MECHANISM/seed-N each.
    bitldp fl SYSTEM --help lists the settings of a system.

    A file of --data needs public ranges of its columns, which are never read off the records.

    Example: bitldp fl bitrand --quick --mechanism bitrand,pm,noiseless --repeats 3
    """
    with sentences(), ExitStack() as stack:
        require("bitldp fl", _MODULES, "papers")
        from bitldp.federated import RoundFailedError

        from bitldp_papers import DEPLOYMENTS, NAMES, get
        from bitldp_papers.data import DatasetError, using
        from bitldp_papers.run.many import run_many

        logging.getLogger("flwr").setLevel(logging.ERROR)  # Flower sets it when it is imported
        if system is None:
            _print_systems(as_json=as_json)
            return
        if system not in (*NAMES, *DEPLOYMENTS):
            raise UsageError(f"no system {system!r}; there are {', '.join((*NAMES, *DEPLOYMENTS))}")
        if quick and preset not in (None, "quick"):
            raise UsageError("--quick is --preset quick; give one preset")
        chosen, start = get(system), "quick" if quick else preset or ""
        mechanisms = tuple(filter(None, (mechanism or "").split(",")))
        try:
            mine = opened(data, label, ranges, test)
        except (ValueError, DatasetError) as error:
            raise CommandError(str(error)) from None
        if mine is not None:
            # no record is held by two clients, which would spend its budget twice
            data, most = stack.enter_context(using(mine)), len(mine.train)
            clients = min(chosen.configure(preset=start).clients, most) if clients is None else clients
        named = {
            "data": data,
            "features": features,
            "pool": pool,
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
            raise CommandError(f"{error}; --resume continues after the last complete round") from None
        except (ValueError, TypeError, DatasetError) as error:
            raise CommandError(str(error)) from None
        except KeyboardInterrupt:
            raise CommandError(
                f"interrupted; --resume continues after the last complete round in {run.out}",
                128 + signal.SIGINT,
            ) from None
        folder = Path(run.out)
        _plot(chosen, run, runs, folder)
        if len(runs) == 1:
            _print_summary(runs[0], folder, differences, as_json=as_json)
        else:
            _print_runs(runs, folder, differences, as_json=as_json)


def _configured(
    system: Runnable, preset: str, given: dict[str, Any], more: list[str], mechanisms: Sequence[str]
) -> Settings:
    """Return the settings of all runs; every mechanism is looked at before the first."""
    for index, name in enumerate(mechanisms):
        if name in mechanisms[:index]:
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
        own = folder if len(runs) == 1 else folder / each.mechanism / f"seed-{each.seed}"
        lines = (own / "metrics.jsonl").read_text().splitlines()
        rows.setdefault(each.mechanism, []).append([json.loads(line) for line in lines])
    rounds_plot(rows, runs[0].metric, folder / "plot.png", title=f"{system.name}: {_title(run, tuple(rows))}")


def _extra(system: Runnable, pairs: list[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Read ``NAME=VALUE`` by the type that the setting has."""
    result: dict[str, Any] = {}
    defaults = {field.name: field.default for field in fields(system.settings)}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.replace("-", "_")
        if not equals:
            raise UsageError(f"--set {pair}: must be NAME=VALUE; names are {', '.join(defaults)}")
        if name not in defaults:
            raise UsageError(f"--set {pair}: {system.name} has no {name}; there are {', '.join(defaults)}")
        if name in given or name in result:
            raise UsageError(f"--set {pair}: {name} is given twice")
        kind: Any = type(defaults[name])
        try:
            result[name] = _word(text) if kind is bool else kind(text)
        except ValueError:
            raise UsageError(f"--set {pair}: {name} must be {kind.__name__}") from None
    return result


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
        print(
            "interrupted: the run ends after this client; press Ctrl-C again to end at once", file=sys.stderr
        )

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


# -- the help of a system

_ASKED = "bitldp.asked"
#: The command has options for these.
_OPTIONS = ("out", "resume")


class _SystemCommand(Once):
    """A command whose help is that of a system where one is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remember the words beside ``--help``, and read the arguments."""
        ctx.meta[_ASKED] = tuple(args) if "--help" in args else ()
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the settings of the system that is named, and its presets."""
        super().format_epilog(ctx, formatter)
        asked = ctx.meta.get(_ASKED, ())
        if not asked:
            return
        try:
            from bitldp_papers import DEPLOYMENTS, NAMES, get

            system = next((get(word) for word in asked if word in (*NAMES, *DEPLOYMENTS)), None)
        except MissingExtraError as error:
            formatter.write_paragraph()
            formatter.write_text(str(error))
            return
        if system is not None:
            _write(system, formatter)


def _write(system: Runnable, formatter: Any) -> None:
    formatter.write_paragraph()
    formatter.write_text(f"{system.name}: {system.summary}.")
    about: dict[str, str] = {}
    for kind in reversed(system.settings.__mro__[:-1]):
        about.update({name: words for name, words in documented(kind, "Attributes").items() if words})
    rows = []
    for field in fields(system.settings):
        if field.name in _OPTIONS:
            continue
        words = system.choices.get(field.name, ())
        head = f"{field.name}={'|'.join(words) if words else type(field.default).__name__}"
        default = str(field.default)
        default = default.lower() if isinstance(field.default, bool) else default
        said = about.get(field.name, "").replace("`", "")
        rows.append((head if len(head) <= 30 else field.name, _sentence(said, words, head, default)))
    with formatter.section(f"Settings of {system.name} (--set NAME=VALUE)"):
        formatter.write_dl(rows)
    presets = [
        (name, ", ".join(f"{key} {value}" for key, value in preset.items()))
        for name, preset in system.settings.presets.items()
    ]
    if presets:
        with formatter.section(f"Presets of {system.name} (--preset NAME); what is not named is the default"):
            formatter.write_dl(presets)


def _sentence(said: str, words: tuple[str, ...], head: str, default: str) -> str:
    """Return what is said of a setting, what it can be where that did not fit beside it, and its default."""
    choices = f"One of {', '.join(words)}." if words and len(head) > 30 else ""
    return " ".join(filter(None, (said, choices, default and f"[default: {default}]")))


fl.command_class = _SystemCommand  # type: ignore[attr-defined]


# -- what is printed


def _print_systems(*, as_json: bool) -> None:
    """Print what each system does, and what its settings that are words can be."""
    from bitldp_papers import DEPLOYMENTS, NAMES, get

    systems = [get(name) for name in (*NAMES, *DEPLOYMENTS)]
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
    console.print("bitldp fl SYSTEM --quick runs one; bitldp fl SYSTEM --help lists its settings and presets")


def _print_summary(summary: Summary, folder: Path, differences: str, *, as_json: bool) -> None:
    """Print the results of one run, and what differs from the paper."""
    if as_json:
        print(json.dumps({**jsonable(asdict(summary)), "differences": differences}, indent=2))
        return
    rows = [
        (summary.metric, number(summary.score)),
        *_beside(summary),
        ("rounds", str(summary.rounds)),
        ("bytes up", f"{summary.bytes_up:,}"),
        *_privacy(summary),
        ("seconds", f"{summary.seconds:.1f}"),
        ("folder", str(folder)),
    ]
    table = Table(title=summary.system, show_header=False)
    for name, value in rows:
        table.add_row(name, value)
    console = wide_console()
    console.print(table)
    _print_differences(differences)


def _print_runs(runs: Sequence[Summary], folder: Path, differences: str, *, as_json: bool) -> None:
    """Print the scores of several mechanisms or seeds, with their spread, and what each costs."""
    from bitldp_papers.run.many import compare

    scored = compare(runs)
    if as_json:
        result = {
            "mechanisms": [jsonable(asdict(each)) for each in scored],
            "runs": [jsonable(asdict(each)) for each in runs],
            "differences": differences,
        }
        print(json.dumps(result, indent=2))
        return
    seeds = sorted({each.seed for each in runs})
    several = len(seeds) > 1
    title = f"{runs[0].system}: {runs[0].metric}" + (
        f", mean ± standard deviation over {len(seeds)} seeds" if several else f", seed {seeds[0]}"
    )
    table = Table(title=title)
    names = (
        "mechanism",
        runs[0].metric,
        "against the first",
        "p",
        "claimed epsilon",
        "exact epsilon, record",
    )
    for name in names:
        table.add_column(name, justify="left" if name == "mechanism" else "right")
    for each in scored:
        summary = next(run for run in runs if run.mechanism == each.mechanism)
        costs = dict(_privacy(summary))
        table.add_row(
            each.mechanism,
            f"{each.mean:.4f} ± {each.deviation:.4f}" if several else number(each.mean),
            "" if each is scored[0] else f"{each.difference:+.4f}",
            "" if math.isnan(each.p) else f"{each.p:.2g}",
            costs["claimed epsilon"],
            costs["exact epsilon, record"],
        )
    console = wide_console()
    print_whole(console, table)
    if several and len(scored) > 1:
        console.print("p: paired two-sided t-test over the seeds against the first mechanism")
    for name in ("what it covers", "what it does NOT cover", "caveat"):
        said = {each.mechanism: dict(_privacy(each)).get(name, "") for each in runs}
        for words in dict.fromkeys(filter(None, said.values())):
            those = [mechanism for mechanism, its in said.items() if its == words]
            of = "" if len(those) == len(said) else f" ({', '.join(those)})"
            console.print(f"{name}{of}: {words}", markup=False)
    for name, value in _beside(runs[0])[:1]:
        console.print(f"{name}: {value}")
    console.print(f"folder: {folder}", markup=False)
    _print_differences(differences)


def _beside(summary: Summary) -> list[tuple[str, str]]:
    """Return what a score is read beside: a model that looks at nothing, and the AUC where it is known."""
    if summary.constant is not None:
        return [("a constant, the mean", number(summary.constant))]
    if summary.majority is None:
        return []
    area = summary.scores.get("auc")
    return [
        ("majority class", number(summary.majority)),
        *([] if area is None else [("AUC", number(area))]),
    ]


def _privacy(summary: Summary) -> list[tuple[str, str]]:
    """Return what a run promises, in words."""
    privacy = summary.privacy
    fails = privacy.record > privacy.claimed and not privacy.claimed_for
    holds = "  (the claim does NOT hold)" if fails else ""
    claimed_for = f", for {privacy.claimed_for}" if privacy.claimed_for else ""
    delta = f", delta {number(privacy.delta)}" if privacy.delta else ""
    return [
        ("claimed epsilon", number(privacy.claimed) + claimed_for),
        ("exact epsilon, record", number(privacy.record, 6) + delta + holds),
        *([] if privacy.shuffled is None else [("central epsilon, shuffled", _shuffled(privacy.shuffled))]),
        ("what it covers", privacy.covers),
        *([("what it does NOT cover", privacy.not_covered)] if privacy.not_covered else []),
        *([("caveat", summary.caveat)] if summary.caveat else []),
    ]


def _shuffled(epsilon: float) -> str:
    from bitldp_papers.run.rounds import SHUFFLED_DELTA

    return (
        f"{number(epsilon, 3)}, delta {SHUFFLED_DELTA:g}: if one honest party mixes all reports "
        "once, and nobody sees them before"
    )


def _print_differences(differences: str) -> None:
    if differences:
        wide_console().print(f"differs from the paper: {differences}", markup=False, highlight=False)
