"""The demonstration: release real records under several mechanisms, learn from the releases, compare.

Each record is one client's. Its features and its label are randomized once, by the client; a classifier is
trained on the randomized records and tested on clean ones. A mechanism takes part by an entry in `METHODS`;
an experiment of another kind by a function in `EPILOGUES`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import bitldp
from bitldp.base.errors import require
from bitldp.cli.demo.parts import federated, means, selection
from bitldp.cli.demo.tables import tables
from bitldp_papers.data import Dataset, load
from bitldp.report.plots import accuracy_plot
from bitldp.report.totals import number, total

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["EPILOGUES", "METHODS", "Method", "Outcome", "run"]

SEED = 2022
DATA_SETS = ("digits", "breast_cancer")
#: Budgets of a whole record (features and label) under the mechanisms whose claim is exact.
BUDGETS = (10.0, 30.0, 100.0, 300.0, 1000.0)
#: The label gets this share of the budget, but no more than the second number.
LABEL_SHARE, LABEL_MOST = 0.2, 4.0
REPEATS = 3
_SPEED_VALUES = 2_000_000


@dataclass(frozen=True)
class Method:
    """A mechanism for features in [-1, 1].

    Attributes
    ----------
    name : str
    budgets : tuple of float
        Claimed epsilons of a record, features and label together.
    build : callable
        ``build(features, epsilon)`` with the budget of the features.
    encode : callable
        Features to the mechanism's input.
    decode : callable
        ``decode(mechanism, reports)``: the values that the reports spell, which the classifier is trained on.
    """

    name: str
    budgets: tuple[float, ...]
    build: Callable[[int, float], Any]
    encode: Callable[[NDArray[np.float32]], NDArray[Any]] = lambda x: x
    decode: Callable[[Any, NDArray[Any]], NDArray[Any]] = lambda mechanism, reports: mechanism.decode(reports)


@dataclass(frozen=True)
class Outcome:
    """What one mechanism at one budget gave on one data set."""

    data: str
    method: str
    claimed: float
    exact: float
    holds: bool
    accuracy: float
    error: float
    speed: float


_GRID = np.linspace(-1.0, 1.0, 5)


def _on_grid(x: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return the number of the nearest of five points of [-1, 1]."""
    indices: NDArray[np.uint8] = np.rint((x + 1.0) * 2.0).astype(np.uint8)
    return indices


#: A sign and seven bits after the point: [-1, 1] in steps of 1/128.
_WORD: dict[str, Any] = {"bits": 8, "integer_bits": 0}

METHODS: tuple[Method, ...] = (
    Method("FRR", BUDGETS, lambda r, e: bitldp.FRR(r, epsilon=e, **_WORD)),
    Method(
        "FRR, paper", (4.1, 5.0, 14.0), lambda r, e: bitldp.FRR(r, epsilon=e, calibration="paper", **_WORD)
    ),
    Method("MOUE, alpha 1", BUDGETS, lambda r, e: bitldp.MOUE(r, epsilon=e, alpha=1.0, **_WORD)),
    Method("UER, paper", (4.5,), lambda r, e: bitldp.UER(r, epsilon=e, calibration="paper", **_WORD)),
    Method(
        "GRR, 5 points",
        BUDGETS,
        lambda r, e: bitldp.GRR(len(_GRID), epsilon=e, features=r),
        encode=_on_grid,
        decode=lambda mechanism, reports: _GRID[reports],
    ),
    Method(
        "BRR, 16 points",
        BUDGETS,
        lambda r, e: bitldp.BRR(16, epsilon=e, interval=(-1.0, 1.0), features=r),
    ),
)


def _accuracy(x: NDArray[Any], y: NDArray[Any], test: NDArray[Any], test_labels: NDArray[Any]) -> float:
    """Train on one set of records, test on another."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    scale = float(x.std()) or 1.0  # one for all features, so that none with hardly any variance is blown up
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=0.1, max_iter=300).fit(x / scale, y)
    return float(model.score(test / scale, test_labels))


def _speed(method: Method, mechanism: Any, train: NDArray[np.float32]) -> float:
    """Return million features a second over a large batch: the best of three calls."""
    rows = max(1, _SPEED_VALUES // train.shape[1])
    batch = method.encode(np.resize(train, (rows, train.shape[1])))
    times = []
    for _ in range(3):
        start = time.perf_counter()
        mechanism.randomize(batch)
        times.append(time.perf_counter() - start)
    return batch.size / min(times) / 1e6


def _try(data: Dataset, method: Method, budget: float, seeds: Sequence[np.random.SeedSequence]) -> Outcome:
    """Release the training part at one budget, learn from it, and measure."""
    train, test = data.scaled()
    label_epsilon = LABEL_MOST if method.budgets is not BUDGETS else min(LABEL_MOST, LABEL_SHARE * budget)
    with warnings.catch_warnings():
        # The table has both epsilons.
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        mechanism = method.build(train.shape[1], budget - label_epsilon)
    labels = bitldp.LabelRR(data.classes, epsilon=label_epsilon)
    accuracies, errors = [], []
    for seed in seeds:
        feature_seed, label_seed = seed.spawn(2)
        reports = mechanism.randomize(method.encode(train), rng=feature_seed)
        y = labels.randomize(data.train_labels, rng=label_seed)
        values = method.decode(mechanism, reports)
        errors.append(float(np.abs(values - train).mean()))
        accuracies.append(_accuracy(values, y, test, data.test_labels))
    whole = total([mechanism.guarantee, labels.guarantee])
    return Outcome(
        data=data.name,
        method=method.name,
        claimed=budget,
        exact=whole.record,
        holds=whole.holds,
        accuracy=float(np.mean(accuracies)),
        error=float(np.mean(errors)),
        speed=_speed(method, mechanism, train),
    )


def _table(outcomes: Sequence[Outcome], clean: dict[str, float]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = "Learning from randomized records, testing on clean ones"
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 0), show_edge=False)
    for name in ("Data set", "Mechanism"):
        table.add_column(name)
    # Figures are never cut, however narrow the terminal.
    headings = (
        "Claimed\nε",
        "Exact\nε",
        "Accuracy",
        "Clean\naccuracy",
        "Mean\nabs.\nerror",
        "Million\nfeatures\n/s",
    )
    for name in headings:
        table.add_column(name, justify="right", no_wrap=True)
    before = None
    for o in outcomes:
        if before not in (None, o.data):
            table.add_section()
        table.add_row(
            o.data if o.data != before else "",
            o.method,
            number(o.claimed),
            number(o.exact) + ("" if o.holds else " !"),
            f"{o.accuracy:.3f}",
            f"{clean[o.data]:.3f}",
            f"{o.error:.3f}",
            f"{o.speed:,.0f}",
        )
        before = o.data
    return table


def _telemetry(console: Console) -> None:
    """Estimate how often each digit occurs from labels released at epsilon 1."""
    digits = load("digits")
    labels = np.concatenate([digits.train_labels, digits.test_labels])
    truth = np.bincount(labels, minlength=digits.classes) / len(labels)
    mechanisms: tuple[Any, ...] = (
        bitldp.GRR(digits.classes, epsilon=1.0),
        bitldp.OUE(digits.classes, epsilon=1.0),
    )
    for mechanism, seed in zip(mechanisms, np.random.SeedSequence(SEED).spawn(2), strict=True):
        estimate = mechanism.estimate_frequencies(mechanism.randomize(labels, rng=seed))
        worst = int(np.abs(estimate.value - truth).argmax())
        three, farthest = (
            f"{estimate.value[digit]:.3f} ± {estimate.stderr[digit]:.3f} (truth {truth[digit]:.3f})"
            for digit in (3, worst)
        )
        console.print(
            f"Telemetry, {type(mechanism).__name__} at ε = 1, {len(labels)} labels: share of digit 3 is "
            f"{three}; farthest of the ten, {worst}: {farthest}"
        )


#: What follows the table: functions of the console.
EPILOGUES: tuple[Callable[[Console], None], ...] = (_telemetry, tables, means, selection, federated)


def run(
    out: Path, console: Console, *, methods: Sequence[Method] = METHODS, repeats: int = REPEATS
) -> list[Outcome]:
    """Run the demonstration.

    Parameters
    ----------
    out : pathlib.Path
        The plot to write (PNG); its folder is made.
    console : rich.console.Console
        Where the table goes.
    methods : sequence of Method
    repeats : int
        Releases that an accuracy is the mean of; their seeds are fixed.

    Returns
    -------
    list of Outcome
        The rows of the table.
    """
    require("the demo", ["sklearn", "matplotlib", "rich", "flwr", "jax"], "demo")
    start = time.perf_counter()
    outcomes: list[Outcome] = []
    clean: dict[str, float] = {}
    references: dict[str, dict[str, float]] = {}
    for name in DATA_SETS:
        data = load(name)
        train, test = data.scaled()
        clean[name] = _accuracy(train, data.train_labels, test, data.test_labels)
        chance = float(np.bincount(data.test_labels).max() / len(data.test_labels))
        references[name] = {"unperturbed": clean[name], "always the largest class": chance}
        seeds = np.random.SeedSequence(SEED).spawn(repeats)
        for method in methods:
            outcomes += [_try(data, method, budget, seeds) for budget in method.budgets]
    console.print(_table(outcomes, clean))
    console.print(
        "Claimed ε: what was asked for, or a paper promises, for a record (features and label). Exact ε: "
        "what the probabilities give; ! where the claim fails.\n"
        "The accuracy is paid for with the exact ε: at 10 or less, one release of all features teaches next "
        "to nothing, whatever was claimed."
    )
    for epilogue in EPILOGUES:
        epilogue(console)
    out.parent.mkdir(parents=True, exist_ok=True)
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {name: {} for name in DATA_SETS}
    for o in outcomes:
        panels[o.data].setdefault(o.method, []).append((o.exact, o.accuracy))
    accuracy_plot(panels, references, out, title="What accuracy costs: learning from randomized records")
    seconds = time.perf_counter() - start
    console.print(f"Features were scaled to [-1, 1] by published ranges. Plot: {out}. {seconds:.0f} s.")
    return outcomes
