"""Other libraries on means: of numbers of [-1, 1], and of updates clipped to an l2 ball."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import bitldp
import numpy as np
from bitldp.compression import BallGaussian
from numpy.typing import NDArray

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
    advised = bitldp.recommend("mean", epsilon).mechanism
    return [_of_mean(each) for each in (bitldp.Laplace(epsilon), bitldp.Piecewise(epsilon), advised)]


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


#: What loads the peers of each library, for an epsilon.
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
