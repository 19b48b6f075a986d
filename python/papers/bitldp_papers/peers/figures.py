"""Speed and error of other libraries on the same tasks, in one process: ``bitldp paper peers``."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base.palette import STYLES
from bitldp_papers.figures import Compared, FigureRun, FigureResult, figure
from bitldp_papers.peers import frequencies, means
from bitldp_papers.peers.frequencies import Peer

EPSILON, CATEGORIES, SIZE = 1.0, 64, 128
_CLAIM = "No paper compares libraries; this is for those who choose one."
_MANY = 1 << 16  # records of who takes arrays; of the others as many as take about a second


def _peers(loaders: Mapping[str, Callable[[], list[Peer]]]) -> tuple[list[Peer], list[str]]:
    """Return the peers that can be had, and the libraries that cannot be imported, with the reason."""
    found: list[Peer] = []
    absent: list[str] = []
    for library, load in loaders.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # deprecations of what they import are not ours to show
                found += load()
        except ImportError as error:  # not installed, or what it imports is not or is another
            absent.append(f"{library} ({error})")
    return found, absent


def _installed(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""


def _row(
    peer: Peer,
    draw: Callable[[int, int], NDArray[Any]],
    truth: Callable[[NDArray[Any]], NDArray[Any]],
    run: FigureRun,
) -> dict[str, Any]:
    """Return a peer's time a record, and the error of its estimate, times the square root of the records."""
    few = draw(0, 64)
    peer.randomize(few)
    begun = time.perf_counter()
    peer.randomize(few)
    each = (time.perf_counter() - begun) / len(few)
    count = int(min(_MANY, max(200, (0.1 if run.quick else 1.0) / each)))
    x = draw(0, count)
    taken = []
    for _ in range(3):
        begun = time.perf_counter()
        peer.randomize(x)
        taken.append(time.perf_counter() - begun)
    squares = []
    for seed in run.seeds:
        x = draw(seed, count)
        error = np.asarray(peer.estimate(x)) - truth(x)
        # Of single values it is the error of one record; else that of the estimate, times sqrt(n).
        squares.append(float(np.mean(error**2)) * (1 if error.shape == (count,) else len(x)))
    return {
        "library": peer.library,
        "version": _installed(peer.library),
        "mechanism": peer.mechanism,
        "records": count,
        "nanoseconds": 1e9 * min(taken) / count,
        "error": math.sqrt(float(np.mean(squares))),
        "bits": peer.bits,
        "exact": peer.exact,
        "note": peer.note,
    }


def _outcome(
    run: FigureRun,
    loaders: Mapping[str, Callable[[], list[Peer]]],
    draw: Callable[[int, int], NDArray[Any]],
    truth: Callable[[NDArray[Any]], NDArray[Any]],
    task: str,
) -> FigureResult:
    found, absent = _peers(loaders)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [_row(peer, draw, truth, run) for peer in run.each(found)]

    def drawn(canvas: Any) -> None:
        axes = canvas.subplots()
        libraries = list(dict.fromkeys(row["library"] for row in rows))
        for row in rows:
            color, marker = STYLES[libraries.index(row["library"]) % len(STYLES)]
            axes.plot(row["nanoseconds"], row["error"], marker, color=color, markersize=8)
            axes.annotate(
                f" {row['library']} {row['mechanism']}", (row["nanoseconds"], row["error"]), fontsize=7
            )
        axes.set(
            xscale="log",
            yscale="log",
            xlabel="nanoseconds a record, one thread",
            ylabel="error times sqrt(n)",
        )
        axes.margins(x=0.35, y=0.2)

    compared = [
        Compared(
            f"{row['library']} {row['mechanism']}: error times sqrt(n), at {_time(row['nanoseconds'])} and "
            f"{_bits(row['bits'])} a record",
            None,
            row["error"],
            None,
            row["exact"],
            EPSILON,
        )
        for row in rows
    ]
    return FigureResult(
        rows,
        drawn,
        compared,
        verdict=_verdict(rows, absent),
        parameters={"task": task, "epsilon": EPSILON, "absent": absent},
    )


def _time(nanoseconds: float) -> str:
    return f"{nanoseconds:,.0f} ns" if nanoseconds < 1e4 else f"{nanoseconds / 1e3:,.0f} µs"


def _bits(bits: int) -> str:
    return f"{bits:,} bits" if bits != 1 else "1 bit"


def _verdict(rows: Sequence[Mapping[str, Any]], absent: Sequence[str]) -> str:
    ours = [row for row in rows if row["library"] == "bitldp"]
    others = [row for row in rows if row["library"] != "bitldp"]
    said = (
        "no other library is installed"
        if not others
        else (
            f"fastest: bitldp {_time(min(row['nanoseconds'] for row in ours))}, others "
            f"{_time(min(row['nanoseconds'] for row in others))}; least error: bitldp "
            f"{min(row['error'] for row in ours):.3g}, others {min(row['error'] for row in others):.3g}"
        )
    )
    return f"{said}; left out: {', '.join(absent)}" if absent else said


@figure(
    "peers-frequencies",
    source="This package",
    title=f"Shares of {CATEGORIES} categories at epsilon {EPSILON:g}",
    claim=_CLAIM,
    minutes=(0.2, 0.5),
)
def shares(run: FigureRun) -> FigureResult:
    loaders = {name: partial(load, EPSILON, CATEGORIES) for name, load in frequencies.LOADERS.items()}
    law = 0.5 ** np.arange(1, CATEGORIES + 1)

    def draw(seed: int, count: int) -> NDArray[Any]:
        return np.random.default_rng(seed).choice(CATEGORIES, count, p=law / law.sum())

    def truth(x: NDArray[Any]) -> NDArray[Any]:
        return np.bincount(x, minlength=CATEGORIES) / len(x)

    return _outcome(run, loaders, draw, truth, "shares of categories")


@figure(
    "peers-numbers",
    source="This package",
    title=f"Mean of numbers of [-1, 1] at epsilon {EPSILON:g}",
    claim=_CLAIM,
    minutes=(0.2, 0.5),
)
def numbers(run: FigureRun) -> FigureResult:
    loaders = {name: partial(load, EPSILON) for name, load in means.NUMBERS.items()}

    def draw(seed: int, count: int) -> NDArray[Any]:
        return np.random.default_rng(seed).uniform(-0.5, 1.0, count)

    return _outcome(run, loaders, draw, lambda x: x, "mean of numbers")


@figure(
    "peers-updates",
    source="This package",
    title=f"Mean of updates of {SIZE} coordinates, l2 norm 1, at epsilon {EPSILON:g}",
    claim=_CLAIM,
    minutes=(0.2, 0.5),
)
def updates(run: FigureRun) -> FigureResult:
    loaders = {name: partial(load, EPSILON, SIZE) for name, load in means.UPDATES.items()}

    def draw(seed: int, count: int) -> NDArray[Any]:
        x = np.random.default_rng(seed).normal(size=(min(count, 4096), SIZE)) + 0.2
        return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))

    return _outcome(run, loaders, draw, lambda x: x.mean(axis=0), "mean of updates")
