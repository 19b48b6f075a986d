"""Other libraries on the same two laws, where they are installed: GRR and unary encoding.

Each library is called as its documentation does it, a sample at a time: none of them has a call for
many. Its own estimate, or where it has none the unbiased one, is checked before anything is timed.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
from _measure import Timed, interleaved, require
from _table import table
from bitldp_papers.peers.frequencies import LOADERS, Peer, chances

Array = np.ndarray[Any, np.dtype[Any]]

EPSILON = 4.0
CATEGORIES = 128
SAMPLES = {"GRR": 4000, "OUE": 1000, "SUE": 1000}
SHARE = 0.5  # of the samples are category 0, the others are spread evenly
SEED = 11
_SIGMAS = 6.0
_ROUNDS = 3


def measure() -> list[dict[str, object]]:
    """Check and time every peer that is installed, and ours on as many samples and on many.

    Returns
    -------
    list of dict
        `library`, `version`, `mechanism`, `samples`, `nanoseconds` a sample, `estimate` of a share
        of one half.
    """
    found = []
    for library, load in LOADERS.items():
        if library == "numpy":  # has its own table
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # deprecations of what they import are not ours to show
                peers = load(EPSILON, CATEGORIES)
        except ImportError as error:  # not installed, or one of its own dependencies is not
            print(f"left out: {error}", file=sys.stderr)
            continue
        found += [_measured(peer) for peer in peers]
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


def _measured(peer: Peer) -> dict[str, object]:
    library, mechanism = peer.library, peer.mechanism
    count = (1 << 20 if mechanism == "GRR" else 1 << 16) if library == "bitldp" else SAMPLES[mechanism]
    x = _inputs(count)
    got = float(peer.estimate(x)[0])
    error = _standard_error(mechanism, count)
    require(abs(got - SHARE) < _SIGMAS * error, f"{library}, {mechanism}: {got:.4f} for a share of {SHARE}")
    times = interleaved([Timed(lambda: peer.randomize(x), time.thread_time)], _ROUNDS)[0]
    return {
        "library": library,
        "version": version(library),
        "mechanism": mechanism,
        "samples": count,
        "nanoseconds": times.best / count * 1e9,
        "estimate": got,
    }


def _standard_error(mechanism: str, count: int) -> float:
    p, q = chances(mechanism, EPSILON, CATEGORIES)
    return math.sqrt((SHARE * p * (1.0 - p) + (1.0 - SHARE) * q * (1.0 - q)) / count) / (p - q)
