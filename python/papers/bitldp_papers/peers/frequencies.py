"""Other libraries on shares of categories: GRR and unary encoding.

Each library is called as its documentation does it, a sample at a time where it has no call for many. Its own
estimate is taken, or where it has none, or one that is biased, the unbiased one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import bitldp
import numpy as np
from numpy.typing import NDArray

__all__ = ["LOADERS", "Peer", "chances"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Peer:
    """One mechanism of one library.

    Attributes
    ----------
    library, mechanism : str
    randomize : callable
        From an array of categories, numbers or updates to reports, in whatever form the library has.
    estimate : callable
        From such an array to what a server makes of its reports: shares, the mean of updates, or, of
        numbers, an unbiased value for each.
    bits : int
        Of a report; 0 where it is a Python object of no stated size.
    exact : float
        Epsilon by the formula of its mechanism; of bitldp, of its integers.
    note : str
        Remarks.
    """

    library: str
    mechanism: str
    randomize: Callable[[Array], Any]
    estimate: Callable[[Array], Array]
    bits: int
    exact: float
    note: str = ""


def chances(mechanism: str, epsilon: float, categories: int) -> tuple[float, float]:
    """Return the probability that a category is reported where it is the true one, and where not."""
    growth = math.exp(epsilon)
    if mechanism == "GRR":
        return growth / (growth + categories - 1), 1.0 / (growth + categories - 1)
    if mechanism == "OUE":
        return 0.5, 1.0 / (growth + 1.0)
    half = math.exp(epsilon / 2.0)
    return half / (half + 1.0), 1.0 / (half + 1.0)


def _unbiased(mechanism: str, epsilon: float, counts: Array, total: int) -> Array:
    p, q = chances(mechanism, epsilon, len(counts))
    return np.asarray((counts / total - q) / (p - q))


def _pure_ldp(epsilon: float, categories: int) -> list[Peer]:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    def identity(value: int) -> int:
        return value

    def peer(mechanism: str, client: Any, make_server: Callable[[], Any], bits: int) -> Peer:
        def randomize(x: Array) -> list[Any]:
            return [client.privatise(value) for value in x.tolist()]

        def estimate(x: Array) -> Array:
            server = make_server()
            for report in randomize(x):
                server.aggregate(report)
            return np.array(
                [server.estimate(category, suppress_warnings=True) for category in range(categories)]
            ) / len(x)

        return Peer("pure-ldp", mechanism, randomize, estimate, bits, epsilon)

    unary = {"use_oue": True, "index_mapper": identity}
    direct = {"index_mapper": identity}
    return [
        peer(
            "GRR",
            DEClient(epsilon, categories, **direct),
            lambda: DEServer(epsilon, categories, **direct),
            64,
        ),
        peer(
            "OUE",
            UEClient(epsilon, categories, **unary),
            lambda: UEServer(epsilon, categories, **unary),
            8 * categories,
        ),
    ]


def _multi_freq_ldpy(epsilon: float, categories: int) -> list[Peer]:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    def grr(x: Array) -> list[Any]:
        return [GRR_Client(value, categories, epsilon) for value in x.tolist()]

    def oue(x: Array) -> list[Any]:
        return [UE_Client(value, categories, epsilon, True) for value in x.tolist()]

    # Its aggregators set negative estimates to 0 and normalise, which moves a share; counts are unbiased.
    def from_values(x: Array) -> Array:
        return _unbiased("GRR", epsilon, np.bincount(grr(x), minlength=categories), len(x))

    def from_bits(x: Array) -> Array:
        return _unbiased("OUE", epsilon, np.sum(oue(x), axis=0), len(x))

    return [
        Peer("multi-freq-ldpy", "GRR", grr, from_values, 64, epsilon),
        Peer("multi-freq-ldpy", "OUE", oue, from_bits, 64 * categories, epsilon),
    ]


def _opendp(epsilon: float, categories: int) -> list[Peer]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    truthful, _ = chances("GRR", epsilon, categories)
    response = dp.m.make_randomized_response(list(range(categories)), truthful, T="u32")
    # It has no OUE; on one-hot strings its RAPPOR is SUE. `f` is twice the chance of a flip.
    bits = dp.m.make_randomized_response_bitvec(
        dp.bitvector_domain(max_weight=1),
        dp.discrete_distance(),
        f=2.0 * chances("SUE", epsilon, categories)[1],
    )
    strings = np.packbits(np.eye(categories, dtype=np.uint8), axis=1)
    one_hot = [string.tobytes() for string in strings]

    def grr(x: Array) -> list[Any]:
        return [response(value) for value in x.tolist()]

    def sue(x: Array) -> list[Any]:
        return [bits(one_hot[value]) for value in x.tolist()]

    def from_values(x: Array) -> Array:
        return _unbiased("GRR", epsilon, np.bincount(grr(x), minlength=categories), len(x))

    def from_bits(x: Array) -> Array:
        reports = np.frombuffer(b"".join(sue(x)), np.uint8).reshape(len(x), -1)
        counts = np.unpackbits(reports, axis=1)[:, :categories].sum(axis=0)
        return _unbiased("SUE", epsilon, counts, len(x))

    return [
        Peer("opendp", "GRR", grr, from_values, 32, epsilon),
        Peer("opendp", "SUE", sue, from_bits, categories, epsilon),
    ]


def _numpy(epsilon: float, categories: int) -> list[Peer]:
    truthful, _ = chances("GRR", epsilon, categories)
    rng = np.random.default_rng(1)

    def grr(x: Array) -> Array:
        others = rng.integers(1, categories, len(x))
        return np.where(rng.random(len(x)) < truthful, x, (x + others) % categories)

    def estimate(x: Array) -> Array:
        return _unbiased("GRR", epsilon, np.bincount(grr(x), minlength=categories), len(x))

    return [Peer("numpy", "GRR", grr, estimate, 64, epsilon, "floats compared: exact up to their rounding")]


def _ours(epsilon: float, categories: int) -> list[Peer]:
    def peer(name: str, mechanism: Any) -> Peer:
        def randomize(x: Array) -> Array:
            return np.asarray(mechanism.randomize(x, threads=1))

        def estimate(x: Array) -> Array:
            return np.asarray(mechanism.estimate_frequencies(randomize(x)).value)

        return Peer("bitldp", name, randomize, estimate, mechanism.report_bits, mechanism.guarantee.record)

    kinds = {"GRR": bitldp.GRR, "OUE": bitldp.OUE, "SUE": bitldp.SUE}
    return [peer(name, kind(categories, epsilon=epsilon)) for name, kind in kinds.items()]


#: Loaders of the peers of each library, for (epsilon, categories); ImportError where it is not installed.
LOADERS: dict[str, Callable[[float, int], list[Peer]]] = {
    "pure-ldp": _pure_ldp,
    "multi-freq-ldpy": _multi_freq_ldpy,
    "opendp": _opendp,
    "numpy": _numpy,
    "bitldp": _ours,
}
