"""Speed and error of other libraries on the same tasks, in one process: ``bitldp paper peers``."""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import bitldp
import numpy as np
from bitldp.base.palette import STYLES
from bitldp.compression import BallGaussian
from numpy.typing import NDArray

from bitldp_papers.figures import Compared, FigureResult, FigureRun, Finding, figure, ordered
from bitldp_papers.peers import frequencies
from bitldp_papers.peers.frequencies import Peer

__all__ = ["DELTA", "NUMBERS", "UPDATES"]

Array = NDArray[Any]
DELTA = 1e-5


def _one_by_one(
    library: str, name: str, draw: Callable[[float], float], epsilon: float, bits: int, note: str = ""
) -> Peer:
    """Return a peer that has a call for one number."""

    def randomize(x: Array) -> Array:
        return np.array([draw(value) for value in x.tolist()])

    return Peer(library, name, randomize, randomize, bits, epsilon, note)


def _diffprivlib_number(epsilon: float) -> list[Peer]:
    from diffprivlib.mechanisms import Laplace

    noise = Laplace(epsilon=epsilon, delta=0.0, sensitivity=2.0)
    return [_one_by_one("diffprivlib", "Laplace", noise.randomise, epsilon, 64)]


def _opendp_number(epsilon: float) -> list[Peer]:
    import opendp.prelude as dp

    dp.enable_features("contrib", "floating-point")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    noise = dp.m.make_laplace(*space, scale=2.0 / epsilon)
    return [_one_by_one("opendp", "Laplace", noise, epsilon, 64, "on a fine grid: exact")]


def _numpy_number(epsilon: float) -> list[Peer]:
    rng = np.random.default_rng(1)

    def randomize(x: Array) -> Array:
        return np.asarray(x + rng.laplace(scale=2.0 / epsilon, size=len(x)))

    note = "sums of floats: their last bits tell of the input"
    return [Peer("numpy", "Laplace", randomize, randomize, 64, epsilon, note)]


def _our_numbers(epsilon: float) -> list[Peer]:
    advised = bitldp.recommend("mean", epsilon=epsilon).mechanism
    return [
        _of_mean(each)
        for each in (bitldp.Laplace(epsilon=epsilon), bitldp.Piecewise(epsilon=epsilon), advised)
    ]


def _of_mean(mechanism: Any) -> Peer:
    def randomize(x: Array) -> Any:
        return mechanism.randomize(x, threads=1)

    def estimate(x: Array) -> Array:
        reports = randomize(x)
        return np.asarray(mechanism.estimate_mean(reports).value if x.ndim > 1 else mechanism.unbias(reports))

    guarantee = mechanism.guarantee
    bits = mechanism.report_bits
    return Peer("bitldp", type(mechanism).__name__, randomize, estimate, bits, guarantee.record)


def _flower_updates(epsilon: float, size: int) -> list[Peer]:
    from bitldp.federated import flower
    from flwr.app import Array as FlowerArray
    from flwr.app import ArrayRecord, Context, Message, RecordDict
    from flwr.clientapp.mod import LocalDpMod

    logging.getLogger("flwr").setLevel(logging.ERROR)
    mod = LocalDpMod(clipping_norm=1.0, sensitivity=2.0, epsilon=epsilon, delta=DELTA)
    zero = RecordDict({"model": ArrayRecord({"w": FlowerArray(np.zeros(size))})})
    context = Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})

    def one(row: Array) -> Array:
        message = Message(zero, 1, "train")
        flower.number(message, "1")

        def app(asked: Message, _: Context) -> Message:
            content = RecordDict({"model": ArrayRecord({"w": FlowerArray(row.copy())})})
            return Message(content, reply_to=asked)

        reply = mod(message, context, app)
        return np.asarray(next(iter(reply.content.array_records.values())).to_numpy_ndarrays()[0])

    def randomize(x: Array) -> Array:
        with flower.identity(1):
            return np.array([one(row) for row in x])

    note = f"delta {DELTA:g}; sigma of the classical formula, proved for epsilon below 1"
    return [
        Peer("flwr", "LocalDpMod", randomize, lambda x: randomize(x).mean(axis=0), 64 * size, epsilon, note)
    ]


def _diffprivlib_updates(epsilon: float, size: int) -> list[Peer]:
    from diffprivlib.mechanisms import GaussianAnalytic

    noise = GaussianAnalytic(epsilon=epsilon, delta=DELTA, sensitivity=2.0)

    def randomize(x: Array) -> Array:
        return np.array([[noise.randomise(value) for value in row] for row in x.tolist()])

    note = f"delta {DELTA:g}; a coordinate at a time"
    return [
        Peer(
            "diffprivlib",
            "GaussianAnalytic",
            randomize,
            lambda x: randomize(x).mean(axis=0),
            64 * size,
            epsilon,
            note,
        )
    ]


def _numpy_updates(epsilon: float, size: int) -> list[Peer]:
    rng = np.random.default_rng(1)
    sigma = 2.0 * np.sqrt(2.0 * np.log(1.25 / DELTA)) / epsilon

    def randomize(x: Array) -> Array:
        return np.asarray(x + rng.normal(scale=sigma, size=x.shape))

    note = f"delta {DELTA:g}; sigma of the classical formula; sums of floats"
    return [
        Peer("numpy", "Gaussian", randomize, lambda x: randomize(x).mean(axis=0), 64 * size, epsilon, note)
    ]


def _our_updates(epsilon: float, size: int) -> list[Peer]:
    made = (BallGaussian(size, epsilon=epsilon, delta=DELTA), bitldp.CrossPolytope(size, epsilon=epsilon))
    return [_of_mean(each) for each in made]


#: Loaders of the peers of each library, for an epsilon.
NUMBERS: dict[str, Callable[[float], list[Peer]]] = {
    "diffprivlib": _diffprivlib_number,
    "opendp": _opendp_number,
    "numpy": _numpy_number,
    "bitldp": _our_numbers,
}
#: The same for an epsilon and a number of coordinates.
UPDATES: dict[str, Callable[[float, int], list[Peer]]] = {
    "flwr": _flower_updates,
    "diffprivlib": _diffprivlib_updates,
    "numpy": _numpy_updates,
    "bitldp": _our_updates,
}


EPSILON, CATEGORIES, SIZE = 1.0, 64, 128
_CLAIM = "No paper compares libraries; this is for those who choose one."
#: Two times are told apart where one is more than so many times the other: runs side by side differ.
_APART = 1.2
_MANY = 1 << 16  # records of who takes arrays; of the others as many as take about a second


def _peers(loaders: Mapping[str, Callable[[], list[Peer]]]) -> tuple[list[Peer], list[str]]:
    """Return the peers that can be had, and the libraries that cannot be imported, with the reason."""
    peers: list[Peer] = []
    absent: list[str] = []
    for library, load in loaders.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # deprecations of what they import are not ours to show
                peers += load()
        except ImportError as error:  # not installed, or what it imports is not or is another
            reason = str(error).replace(f" ({error.path})", "")  # no folder of this machine
            absent.append(f"{library} ({reason})")
    return peers, absent


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
    count = int(min(_MANY, max(200, run.choose(quick=0.1, medium=1.0, full=1.0) / each)))
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
        "errors": [math.sqrt(each) for each in squares],
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
    peers, absent = _peers(loaders)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [_row(peer, draw, truth, run) for peer in run.each(peers)]

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
        [{name: value for name, value in row.items() if name != "errors"} for row in rows],
        drawn,
        compared,
        findings=_findings(rows, absent),
        parameters={"task": task, "epsilon": EPSILON, "absent": absent},
    )


def _time(nanoseconds: float) -> str:
    return f"{nanoseconds:,.0f} ns" if nanoseconds < 1e4 else f"{nanoseconds / 1e3:,.0f} µs"


def _bits(bits: int) -> str:
    return f"{bits:,} bits" if bits != 1 else "1 bit"


def _findings(rows: Sequence[Mapping[str, Any]], absent: Sequence[str]) -> list[Finding]:
    """Return whether this package's fastest and most exact mechanisms are ahead of the others'."""
    ours = [row for row in rows if row["library"] == "bitldp"]
    others = [row for row in rows if row["library"] != "bitldp"]
    left_out = f"; left out: {', '.join(absent)}" if absent else ""
    fast, exact = "bitldp is the fastest", "bitldp has the least error"
    if not others:
        return [Finding(says, None, f"no other library is installed{left_out}") for says in (fast, exact)]
    mine, theirs = (min(row["nanoseconds"] for row in some) for some in (ours, others))
    apart = max(mine, theirs) > _APART * min(mine, theirs)
    times = f"{_time(mine)} a record, others {_time(theirs)}{left_out}"
    errors = {
        name: min(some, key=lambda row: row["error"])["errors"]
        for name, some in (("bitldp", ours), ("the best of the others", others))
    }
    return [
        Finding(fast, mine < theirs if apart else None, times),
        ordered(exact, errors, "bitldp", higher=False),
    ]


@figure(
    "peers-frequencies",
    source="This package",
    title=f"Shares of {CATEGORIES} categories at epsilon {EPSILON:g}",
    claim=_CLAIM,
    minutes=(0.1, 0.2, 0.2),
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
    minutes=(0.1, 0.2, 0.2),
)
def numbers(run: FigureRun) -> FigureResult:
    loaders = {name: partial(load, EPSILON) for name, load in NUMBERS.items()}

    def draw(seed: int, count: int) -> NDArray[Any]:
        return np.random.default_rng(seed).uniform(-0.5, 1.0, count)

    return _outcome(run, loaders, draw, lambda x: x, "mean of numbers")


@figure(
    "peers-updates",
    source="This package",
    title=f"Mean of updates of {SIZE} coordinates, l2 norm 1, at epsilon {EPSILON:g}",
    claim=_CLAIM,
    minutes=(0.1, 0.2, 0.2),
)
def updates(run: FigureRun) -> FigureResult:
    loaders = {name: partial(load, EPSILON, SIZE) for name, load in UPDATES.items()}

    def draw(seed: int, count: int) -> NDArray[Any]:
        x = np.random.default_rng(seed).normal(size=(min(count, 4096), SIZE)) + 0.2
        return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))

    return _outcome(run, loaders, draw, lambda x: x.mean(axis=0), "mean of updates")
