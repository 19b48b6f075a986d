"""Other libraries on the same two laws, where they are installed: GRR and unary encoding.

Each library is called as its documentation does it, a sample at a time: none of them has a call for
many. Its own estimate, or where it has none the unbiased one, is checked before anything is timed.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import bitldp
import numpy as np
from _measure import Timed, interleaved, require
from _table import table

Array = np.ndarray[Any, np.dtype[Any]]

EPSILON = 4.0
CATEGORIES = 128
SAMPLES = {"GRR": 4000, "OUE": 1000, "SUE": 1000}
SHARE = 0.5  # of the samples are category 0, the others are spread evenly
SEED = 11
_SIGMAS = 6.0
_ROUNDS = 3

Peer = tuple[str, str, Callable[[Array], object], Callable[[Array], float]]
"""Distribution, mechanism, what randomizes an array of categories, what estimates the share of category 0."""


def measure() -> list[dict[str, object]]:
    """Check and time every peer that is installed, and ours on as many samples and on many.

    Returns
    -------
    list of dict
        `library`, `version`, `mechanism`, `samples`, `nanoseconds` a sample, `estimate` of a share
        of one half.
    """
    found = []
    for load in (_pure_ldp, _multi_freq_ldpy, _opendp, _ours):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # deprecations of what they import are not ours to show
                peers = load()
        except ImportError as error:  # not installed, or one of its own dependencies is not
            print(f"left out: {error}", file=sys.stderr)
            continue
        found += [_measured(*peer) for peer in peers]
    return sorted(found, key=lambda row: (str(row["mechanism"]), -float(str(row["nanoseconds"]))))


def show(rows: list[dict[str, object]]) -> str:
    """Return the table of peers."""
    head = ["library", "version", "mechanism", "samples", "ns a sample", "estimate of 0.5"]
    lines = [
        [
            str(row["library"]),
            str(row["version"]),
            str(row["mechanism"]),
            f"{row['samples']:,}",
            f"{row['nanoseconds']:,.1f}",
            f"{row['estimate']:.4f}",
        ]
        for row in rows
    ]
    title = f"peers, k = {CATEGORIES}, exact epsilon {EPSILON}, one thread"
    return f"{title}\n{table([head, *lines])}"


def _inputs(count: int) -> Array:
    x = np.random.default_rng(SEED).integers(1, CATEGORIES, count, dtype=np.int64)
    x[: int(SHARE * count)] = 0
    return x


def _measured(
    library: str,
    mechanism: str,
    randomize: Callable[[Array], object],
    estimate: Callable[[Array], float],
) -> dict[str, object]:
    count = (1 << 20 if mechanism == "GRR" else 1 << 16) if library == "bitldp" else SAMPLES[mechanism]
    x = _inputs(count)
    got = estimate(x)
    error = _standard_error(mechanism, count)
    require(abs(got - SHARE) < _SIGMAS * error, f"{library}, {mechanism}: {got:.4f} for a share of {SHARE}")
    times = interleaved([Timed(lambda: randomize(x), time.thread_time)], _ROUNDS)[0]
    return {
        "library": library,
        "version": version(library),
        "mechanism": mechanism,
        "samples": count,
        "nanoseconds": times.best / count * 1e9,
        "estimate": got,
    }


def _chances(mechanism: str) -> tuple[float, float]:
    """Return the probability that the share's position is reported by its own category, and by others."""
    growth = math.exp(EPSILON)
    if mechanism == "GRR":
        return growth / (growth + CATEGORIES - 1), 1.0 / (growth + CATEGORIES - 1)
    if mechanism == "OUE":
        return 0.5, 1.0 / (growth + 1.0)
    half = math.exp(EPSILON / 2.0)
    return half / (half + 1.0), 1.0 / (half + 1.0)


def _standard_error(mechanism: str, count: int) -> float:
    p, q = _chances(mechanism)
    return math.sqrt((SHARE * p * (1.0 - p) + (1.0 - SHARE) * q * (1.0 - q)) / count) / (p - q)


def _unbiased(mechanism: str, reported: int, count: int) -> float:
    p, q = _chances(mechanism)
    return (reported / count - q) / (p - q)


def _pure_ldp() -> list[Peer]:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    def identity(value: int) -> int:
        return value

    def peer(mechanism: str, client: Any, make_server: Callable[[], Any]) -> Peer:
        def randomize(x: Array) -> list[Any]:
            return [client.privatise(value) for value in x.tolist()]

        def estimate(x: Array) -> float:
            server = make_server()
            for report in randomize(x):
                server.aggregate(report)
            return float(server.estimate(0, suppress_warnings=True)) / len(x)

        return "pure-ldp", mechanism, randomize, estimate

    unary = {"use_oue": True, "index_mapper": identity}
    return [
        peer(
            "GRR",
            DEClient(EPSILON, CATEGORIES, index_mapper=identity),
            lambda: DEServer(EPSILON, CATEGORIES, index_mapper=identity),
        ),
        peer("OUE", UEClient(EPSILON, CATEGORIES, **unary), lambda: UEServer(EPSILON, CATEGORIES, **unary)),
    ]


def _multi_freq_ldpy() -> list[Peer]:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    def grr(x: Array) -> list[Any]:
        return [GRR_Client(value, CATEGORIES, EPSILON) for value in x.tolist()]

    def oue(x: Array) -> list[Any]:
        return [UE_Client(value, CATEGORIES, EPSILON, True) for value in x.tolist()]

    # Its aggregators set negative estimates to 0 and normalise, which moves the share; counts are unbiased.
    return [
        ("multi-freq-ldpy", "GRR", grr, lambda x: _unbiased("GRR", grr(x).count(0), len(x))),
        (
            "multi-freq-ldpy",
            "OUE",
            oue,
            lambda x: _unbiased("OUE", sum(int(report[0]) for report in oue(x)), len(x)),
        ),
    ]


def _opendp() -> list[Peer]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    truthful, _ = _chances("GRR")
    response = dp.m.make_randomized_response(list(range(CATEGORIES)), truthful, T="u32")
    # It has no OUE; on one-hot strings its RAPPOR is SUE. `f` is twice the chance of a flip.
    bits = dp.m.make_randomized_response_bitvec(
        dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=2.0 * _chances("SUE")[1]
    )
    strings = np.packbits(np.eye(CATEGORIES, dtype=np.uint8), axis=1)
    one_hot = [string.tobytes() for string in strings]

    def grr(x: Array) -> list[Any]:
        return [response(value) for value in x.tolist()]

    def sue(x: Array) -> list[Any]:
        return [bits(one_hot[value]) for value in x.tolist()]

    return [
        ("opendp", "GRR", grr, lambda x: _unbiased("GRR", grr(x).count(0), len(x))),
        ("opendp", "SUE", sue, lambda x: _unbiased("SUE", sum(report[0] >> 7 for report in sue(x)), len(x))),
    ]


def _ours() -> list[Peer]:
    def peer(name: str, mechanism: bitldp.GRR | bitldp.OUE | bitldp.SUE) -> Peer:
        def randomize(x: Array) -> Array:
            return mechanism.randomize(x, threads=1)

        return (
            "bitldp",
            name,
            randomize,
            lambda x: float(mechanism.estimate_frequencies(randomize(x)).value[0]),
        )

    grr = bitldp.GRR(CATEGORIES, epsilon=EPSILON)
    oue, sue = bitldp.OUE(CATEGORIES, epsilon=EPSILON), bitldp.SUE(CATEGORIES, epsilon=EPSILON)
    return [peer("GRR", grr), peer("OUE", oue), peer("SUE", sue)]
