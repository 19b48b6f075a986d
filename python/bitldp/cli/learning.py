"""``bitldp demo --learning``: release real records under several mechanisms, learn from them, compare.

Each record is one client's. Its features and its label are randomized once, by the client; a classifier is
trained on the randomized records and tested on clean ones. A mechanism takes part by an entry in `METHODS`;
an experiment of another kind by a function in `EPILOGUES`.
"""

from __future__ import annotations

import re
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

import bitldp
from bitldp.base.errors import missing, require
from bitldp.privacy import number, total
from bitldp.report.plots import accuracy_plot
from bitldp.tables import Column, ReleaseKey, TablePlan, TableRelease

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["EPILOGUES", "METHODS", "DemoResult", "Method", "Records", "records", "run"]

SEED = 2022
DATA_SETS = ("digits", "breast_cancer")
#: Budgets of a whole record (features and label) under the mechanisms whose claim is exact.
BUDGETS = (10.0, 30.0, 100.0, 300.0, 1000.0)
#: The label gets this share of the budget, but no more than the second number.
LABEL_SHARE, LABEL_MOST = 0.2, 4.0
REPEATS = 3
#: Budget of the smaller experiments, for a record.
EPSILON = 4.0
_SPEED_VALUES = 2_000_000
_KEY = bytes(range(32))  # of a demonstration: whoever has it can undo the noise


# -- records


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """Records of a data set of scikit-learn, with features scaled to [-1, 1] by published ranges.

    Attributes
    ----------
    train, test : ndarray of float32, shape (n, features)
    train_labels, test_labels : ndarray of int64, shape (n,)
    classes : int
    """

    train: NDArray[np.float32]
    test: NDArray[np.float32]
    train_labels: NDArray[np.int64]
    test_labels: NDArray[np.int64]
    classes: int


@cache
def records(name: str) -> Records:
    """Load digits, breast_cancer or wine, four records in five to train on, in a fixed random order."""
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    ranges = re.findall(r"^ *[A-Za-z][^\n:]*:\s+(\d[\d.]*)\s+(\d[\d.]*)", bunch.DESCR, re.MULTILINE)
    low, high = (0.0, 16.0) if name == "digits" else np.array(ranges, float).T  # of the description's table
    scaled = np.clip((bunch.data - low) / (high - low) * 2.0 - 1.0, -1.0, 1.0).astype(np.float32)
    order = np.random.default_rng(20220425).permutation(len(scaled))
    test, train = np.sort(order[: len(order) // 5]), np.sort(order[len(order) // 5 :])
    labels = bunch.target.astype(np.int64)
    return Records(scaled[train], scaled[test], labels[train], labels[test], int(labels.max()) + 1)


# -- learning from randomized records


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
class DemoResult:
    """Accuracy, error and speed of one mechanism at one budget on one data set."""

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


def _try(name: str, method: Method, budget: float, seeds: Sequence[np.random.SeedSequence]) -> DemoResult:
    """Release the training part at one budget, learn from it, and measure."""
    data = records(name)
    train = data.train
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
        accuracies.append(_accuracy(values, y, data.test, data.test_labels))
    whole = total([mechanism.guarantee, labels.guarantee])
    return DemoResult(
        data=name,
        method=method.name,
        claimed=budget,
        exact=whole.record,
        holds=whole.holds,
        accuracy=float(np.mean(accuracies)),
        error=float(np.mean(errors)),
        speed=_speed(method, mechanism, train),
    )


def _table(outcomes: Sequence[DemoResult], clean: dict[str, float]) -> Table:
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


# -- smaller experiments


def _telemetry(console: Console) -> None:
    """Estimate how often each digit occurs from labels released at epsilon 1."""
    digits = records("digits")
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


def _tables(console: Console) -> None:
    """Release a table of digits by a plan, to a file; estimate from the file, with intervals."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    start = time.perf_counter()
    table, plan = _digits(), _plan()
    release = plan.release(ReleaseKey(_KEY), record="id", snapshot="demo")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "released.parquet"
        pyarrow.parquet.write_table(release(table), path)
        answers = plan.aggregate().update(pyarrow.parquet.read_table(path)).estimate()
    shown = Table(
        title=f"{table.num_rows} images as a table, at exact ε = {plan.guarantee.record:.3g} a record",
        box=SIMPLE_HEAD,
        padding=(0, 1),
        show_edge=False,
    )
    for name in ("column", "of", "estimate", "95 % interval", "truth"):
        shown.add_column(name, justify="left" if name in ("column", "of") else "right", no_wrap=True)
    for row in answers.to_pylist():
        values = np.asarray(table.column(row["column"]).to_pylist())
        share = row["what"] == "share"
        truth = float(np.mean(values == row["category"]) if share else np.mean(values))
        shown.add_row(
            row["column"],
            f"share of {row['category']}" if share else "mean",
            f"{row['estimate']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}",
            f"{truth:.3f}",
        )
    console.print(shown)
    console.print(f"{_on_engines(release, table)} {time.perf_counter() - start:.1f} s.", markup=False)


def _digits() -> pa.Table:
    """Return the images as a table of mixed columns."""
    data = records("digits")
    ink = np.asarray((data.train + 1.0) * 8.0, np.float64)
    labels = [f"{label}" for label in data.train_labels]
    dark = (ink > 8.0).sum(axis=1)
    top = np.where(ink[:, :32].sum(axis=1) > ink[:, 32:].sum(axis=1), "top", "bottom")
    ids = np.arange(len(ink))
    return pa.table({"id": ids, "ink": ink.mean(axis=1), "dark": dark, "heavier": top, "digit": labels})


def _plan() -> TablePlan:
    return TablePlan(
        [
            Column(bitldp.Piecewise(epsilon=2.0, interval=(0.0, 16.0)), "ink"),
            Column(bitldp.MVU(epsilon=2.0, input_bits=3, output_bits=3, interval=(0.0, 64.0)), "dark"),
            Column(bitldp.GRR(2, epsilon=1.0), "heavier", categories=["top", "bottom"]),
            Column(bitldp.OUE(10, epsilon=3.0), "digit", categories=[str(digit) for digit in range(10)]),
        ]
    )


def _on_engines(release: TableRelease, table: pa.Table) -> str:
    """Release once more on an engine that is installed, and say whether the rows are the same."""
    if missing(["polars"]):
        return 'With an engine (pip install "bitldp[polars]") the rows would be the same.'
    import polars

    frame = polars.DataFrame(table).lazy()
    schema = release.polars_schema(frame.collect_schema())
    lazy = frame.map_batches(release.polars, schema=schema)
    same = lazy.collect().to_arrow().to_pydict() == release(table).to_pydict()
    return f"Released again by polars, lazily: {'the same rows' if same else 'OTHER ROWS'}."


#: Numeric, compressed and whole-record mechanisms for a record of r numbers of [-1, 1], at one budget.
_VECTORS: dict[str, Callable[[int], Any]] = {
    "Laplace, budget split": lambda r: bitldp.Laplace(epsilon=EPSILON, features=r),
    "Piecewise, budget split": lambda r: bitldp.Piecewise(epsilon=EPSILON, features=r),
    "Piecewise, sampled": lambda r: bitldp.Piecewise(epsilon=EPSILON, features=r, spend="sample"),
    "MVU 3 bits, sampled": lambda r: bitldp.MVU(
        epsilon=EPSILON, features=r, interval=(-1.0, 1.0), spend="sample", k=1
    ),
    "SampledSigns": lambda r: bitldp.SampledSigns(r, epsilon=EPSILON),
    "HypercubePrivUnit": lambda r: bitldp.HypercubePrivUnit(r, epsilon=EPSILON),
}


def _means(console: Console) -> None:
    """Estimate the mean image of the digits; print the expected error beside the measured one."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    x = records("digits").train
    truth = np.asarray(x, np.float64).mean(axis=0)
    table = Table(
        title=f"The mean of {x.shape[1]} pixels from {len(x)} images, each released once at ε = {EPSILON:g}",
        box=SIMPLE_HEAD,
        padding=(0, 1),
        show_edge=False,
    )
    for name in ("Mechanism", "bits a record", "expected error", "measured error"):
        table.add_column(name, justify="left" if name == "Mechanism" else "right", no_wrap=True)
    seeds = np.random.SeedSequence(SEED).spawn(len(_VECTORS))
    for (name, build), seed in zip(_VECTORS.items(), seeds, strict=True):
        mechanism = build(x.shape[1])
        estimate = mechanism.estimate_mean(mechanism.randomize(x, rng=seed))
        measured = float(np.sqrt(np.mean(np.square(estimate.value - truth))))
        expected = float(np.sqrt(mechanism.variance(x).mean() / len(x)))
        table.add_row(name, f"{mechanism.report_bits:,}", f"{expected:.3f}", f"{measured:.3f}")
    console.print(table)


def _selection(console: Console) -> None:
    """Select an important pixel of each image, and see how often it is one of the ten largest."""
    x = records("digits").train
    scores = x - x.mean(axis=0)
    k, dimensions = 10, x.shape[1]
    largest = np.argsort(-np.abs(scores), axis=1)[:, :k]
    shares = []
    mechanisms = (
        bitldp.EXP(dimensions, epsilon=EPSILON),
        bitldp.PE(dimensions, k=k, epsilon=EPSILON),
        bitldp.PS(dimensions, k=k, epsilon=EPSILON),
    )
    for mechanism, seed in zip(mechanisms, np.random.SeedSequence(SEED + 1).spawn(3), strict=True):
        chosen = mechanism.randomize(scores, rng=seed)
        shares.append(f"{type(mechanism).__name__} {np.mean((largest == chosen[:, None]).any(axis=1)):.2f}")
    console.print(
        f"Selection at ε = {EPSILON:g}: share of images whose selected pixel is one of their {k} of "
        f"{dimensions} farthest from the mean: {', '.join(shares)} (by chance {k / dimensions:.2f})"
    )


def _federated(console: Console) -> None:
    """Train with ten clients, whose records are randomized once, by averaging of their weights."""
    clients, rounds = 10, 5
    data = records("digits")
    features = data.train.shape[1]
    labels = bitldp.LabelRR(data.classes, epsilon=LABEL_MOST)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)  # the exact epsilon is printed
        paper = bitldp.FRR(features, epsilon=1.0, calibration="paper", **_WORD)
    signs = bitldp.SampledSigns(features, epsilon=2.0 * EPSILON)
    feature_seed, label_seed = np.random.SeedSequence(SEED).spawn(2)
    y = labels.randomize(data.train_labels, rng=label_seed)
    scores = [f"without noise {_averaged(data, data.train, data.train_labels, clients, rounds):.2f}"]
    for name, mechanism in (("SampledSigns", signs), ("FRR, paper", paper)):
        x = mechanism.randomize(data.train, rng=feature_seed, output="values")
        exact = total([mechanism.guarantee, labels.guarantee]).record
        scores.append(
            f"{name} {_averaged(data, x, y, clients, rounds):.2f} (exact ε {number(exact)} a record)"
        )
    console.print(
        f"Federated, {clients} clients, {rounds} rounds of averaging, accuracy: {', '.join(scores)}. "
        "bitldp.federated has the parts for Flower."
    )


def _averaged(data: Records, x: NDArray[Any], y: NDArray[Any], clients: int, rounds: int) -> float:
    """Return the test accuracy of weights that clients train on their shares, and a server averages."""
    x, truth = _with_one(x / float(x.std())), np.eye(data.classes)[y]
    shares = np.array_split(np.random.default_rng(SEED).permutation(len(x)), clients)
    weights = np.zeros((x.shape[1], data.classes))
    for _ in range(rounds):
        weights = np.mean([_descended(weights, x[share], truth[share]) for share in shares], axis=0)
    test = _with_one(data.test / float(data.test.std()))
    return float(np.mean((test @ weights).argmax(axis=1) == data.test_labels))


def _descended(weights: NDArray[Any], x: NDArray[Any], truth: NDArray[Any]) -> NDArray[Any]:
    """Return the weights after forty gradient steps of a softmax regression."""
    for _ in range(40):
        odds = np.exp(x @ weights - (x @ weights).max(axis=1, keepdims=True))
        slope = x.T @ (odds / odds.sum(axis=1, keepdims=True) - truth) / len(x)
        weights = weights - 0.5 * (slope + 1e-3 * weights)
    return weights


def _with_one(x: NDArray[Any]) -> NDArray[Any]:
    return np.hstack([x, np.ones((len(x), 1))])


# -- all of it


#: Experiments that follow the table: functions of the console.
EPILOGUES: tuple[Callable[[Console], None], ...] = (_telemetry, _tables, _means, _selection, _federated)


def run(
    out: Path, console: Console, *, methods: Sequence[Method] = METHODS, repeats: int = REPEATS
) -> list[DemoResult]:
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
    list of DemoResult
        The rows of the table.
    """
    require("the demo", ["sklearn", "matplotlib", "rich"], "demo")
    start = time.perf_counter()
    outcomes: list[DemoResult] = []
    clean: dict[str, float] = {}
    references: dict[str, dict[str, float]] = {}
    for name in DATA_SETS:
        data = records(name)
        clean[name] = _accuracy(data.train, data.train_labels, data.test, data.test_labels)
        chance = float(np.bincount(data.test_labels).max() / len(data.test_labels))
        references[name] = {"unperturbed": clean[name], "always the largest class": chance}
        seeds = np.random.SeedSequence(SEED).spawn(repeats)
        for method in methods:
            outcomes += [_try(name, method, budget, seeds) for budget in method.budgets]
    console.print(_table(outcomes, clean))
    console.print(
        "Claimed ε: the ε that was asked for, or that a paper claims, for a record (features and label). "
        "Exact ε: computed from the probabilities; ! if the claim fails.\n"
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
