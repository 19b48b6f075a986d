"""Designs for workloads, solved once: shipped with the package, or kept in the cache of designs.

A record holds the sets and chances of the columns, from which the integers follow (`bitldp.design.workload`),
so that it is the same law everywhere. Like those of `bitldp.design._cache` it has a checksum, and is checked.
"""

from __future__ import annotations

import hashlib
import json
import logging
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix
from bitldp.base.files import replacing
from bitldp.design._cache import folder
from bitldp.design.result import DesignError
from bitldp.design.workload import Columns, integers, least_total_variance

__all__ = ["FILE", "SOLVER", "at_hand", "encoded_columns", "load_or_solve"]

SOLVER = 1
"""Version of the solver: raised whenever it gives better designs, so that older ones are not loaded."""

FILE = "workload.json"

_FORMAT = "bitldp.workload"
_KEPT = 64  # designs in memory

_log = logging.getLogger(__name__)

Floats = NDArray[np.float64]


def load_or_solve(gram: Floats, epsilon: float) -> Matrix:
    """Return the channel of a workload's design: the shipped or cached one; else solve and cache it.

    Parameters
    ----------
    gram : ndarray of float64, shape (k, k)
        W^T W of the questions.
    epsilon : float
        Privacy budget, above zero.

    Raises
    ------
    DesignError
        If the solver fails.
    """
    return _load_or_solve(np.ascontiguousarray(gram).tobytes(), len(gram), float(epsilon))


def at_hand(gram: Floats, epsilon: float) -> bool:
    """Tell whether the design is shipped or cached; nothing is solved."""
    return _known(np.ascontiguousarray(gram).tobytes(), len(gram), float(epsilon)) is not None


@lru_cache(maxsize=_KEPT)
def _load_or_solve(gram: bytes, size: int, epsilon: float) -> Matrix:
    columns = _known(gram, size, epsilon)
    if columns is None:
        columns = least_total_variance(np.frombuffer(gram).reshape(size, size), epsilon)
        channel = _channel(columns, epsilon)
        _store(_key(gram, size, epsilon), columns)
        return channel
    return _channel(columns, epsilon)


def _channel(columns: Columns, epsilon: float) -> Matrix:
    """Return the channel of columns, whose exact epsilon is at most the budget."""
    channel = Matrix.from_weights(integers(columns, epsilon))
    if not channel.epsilon <= epsilon:
        raise DesignError(f"the integers have epsilon {channel.epsilon:.6g}, more than was asked for")
    return channel


def _key(gram: bytes, size: int, epsilon: float) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "solver": SOLVER,
        "inputs": size,
        "gram": hashlib.sha256(gram).hexdigest(),
        "epsilon": epsilon.hex(),
    }


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()


def _name(key: dict[str, Any]) -> str:
    return f"workload-{key['inputs']}-{_digest(key)[:32]}.json"


def encoded_columns(gram: Floats, epsilon: float) -> dict[str, Any]:
    """Solve for a design, and return it as a JSON value."""
    columns = least_total_variance(gram, epsilon)
    _channel(columns, epsilon)
    return _encoded(_key(np.ascontiguousarray(gram).tobytes(), len(gram), float(epsilon)), columns)


def _encoded(key: dict[str, Any], columns: Columns) -> dict[str, Any]:
    """Return columns as a JSON value in hexadecimal: sets, input 0 the lowest bit; chances times 2^64."""
    sets = [f"{sum(1 << int(each) for each in np.flatnonzero(row)):x}" for row in columns.sets]
    chances = [f"{int(chance * 2.0**64):x}" for chance in columns.chances]
    content = {**key, "sets": sets, "chances": chances}
    return {**content, "sha256": _digest(content)}


def _decoded(key: dict[str, Any], record: Any) -> Columns:
    """Return the columns of a JSON value, after checking it.

    Raises
    ------
    DesignError, ValueError
        If it is damaged, or of something else.
    """
    if not isinstance(record, dict) or {name: record.get(name) for name in key} != key:
        raise DesignError("it is the design of something else")
    content = {name: value for name, value in record.items() if name != "sha256"}
    if record.get("sha256") != _digest(content):
        raise DesignError("its checksum is wrong")
    try:
        numbers = [int(each, 16) for each in content["sets"]]
        chances = [int(each, 16) for each in content["chances"]]
    except (KeyError, TypeError) as error:
        raise DesignError(f"its numbers cannot be read: {error}") from None
    size = key["inputs"]
    if len(numbers) != len(chances) or not all(0 < each < (1 << size) - 1 for each in numbers):
        raise DesignError("its sets are not sets of its inputs")
    sets = np.array([[each >> place & 1 == 1 for place in range(size)] for each in numbers])
    return Columns(sets, np.array([chance / 2.0**64 for chance in chances]))


def _known(gram: bytes, size: int, epsilon: float) -> Columns | None:
    """Return a shipped or cached design, or None. One that fails its checks is logged."""
    key = _key(gram, size, epsilon)
    record, source = _shipped().get(_digest(key)), "the shipped design"
    try:
        if record is None:
            cache = folder()
            if cache is None:
                return None
            source = str(cache / _name(key))
            record = json.loads((cache / _name(key)).read_text(encoding="ascii"))
        columns = _decoded(key, record)
        _channel(columns, epsilon)
    except FileNotFoundError:
        return None
    except (DesignError, OSError, ValueError, RecursionError) as error:
        _log.warning("%s is refused, and solved again: %s", source, error)
        return None
    return columns


@lru_cache(maxsize=1)
def _shipped() -> dict[str, Any]:
    """Return the shipped records by the digest of their key; empty, and logged, where the file is damaged."""
    try:
        text = (resources.files("bitldp.design") / "shipped" / FILE).read_text(encoding="ascii")
        names = tuple(_key(b"", 2, 1.0))
        return {
            _digest({name: record[name] for name in names}): record for record in json.loads(text)["designs"]
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("the shipped designs cannot be read: %s", error)
        return {}


def _store(key: dict[str, Any], columns: Columns) -> None:
    """Write a design to the cache, whole or not at all; a failure is logged and has no other effect."""
    cache = folder()
    if cache is None:
        return
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with replacing(cache / _name(key)) as file:
            file.write(json.dumps(_encoded(key, columns)).encode("ascii"))
    except OSError as error:
        _log.warning("the design is not cached: %s", error)
