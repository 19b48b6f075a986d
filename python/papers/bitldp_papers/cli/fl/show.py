"""What ``bitldp fl`` prints: the systems there are, one run's summary, and several runs' scores."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bitldp.base.documents import jsonable
from bitldp.cli.screen import print_whole, wide_console
from bitldp.report.totals import number
from rich.table import Table

if TYPE_CHECKING:
    from bitldp_papers import Summary

__all__ = ["print_runs", "print_summary", "print_systems"]


def print_systems(*, as_json: bool) -> None:
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


def print_summary(summary: Summary, folder: Path, differences: str, *, as_json: bool) -> None:
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


def print_runs(runs: Sequence[Summary], folder: Path, differences: str, *, as_json: bool) -> None:
    """Print the scores of several mechanisms or seeds, with their spread, and what each costs."""
    from bitldp_papers.run.many import compare

    scored = compare(runs)
    if as_json:
        found = {
            "mechanisms": [jsonable(asdict(each)) for each in scored],
            "runs": [jsonable(asdict(each)) for each in runs],
            "differences": differences,
        }
        print(json.dumps(found, indent=2))
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
    """Return what an accuracy is read beside: who looks at nothing, and the AUC where it is known."""
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
        ("what it covers", privacy.covers),
        *([("what it does NOT cover", privacy.not_covered)] if privacy.not_covered else []),
        *([("caveat", summary.caveat)] if summary.caveat else []),
    ]


def _print_differences(differences: str) -> None:
    if differences:
        wide_console().print(f"differs from the paper: {differences}", markup=False, highlight=False)
