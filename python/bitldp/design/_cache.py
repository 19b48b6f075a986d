"""Cache of designs: shipped with the package or kept for the user, and checked before use.

A file is JSON: integers and doubles in hexadecimal, so that nothing is lost, and a SHA-256 of the content.
The checksum finds accidents only, since anyone can compute it; so the law itself is judged, too.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from bitldp.base.files import replacing
from bitldp.design.distance import Metric
from bitldp.design.result import Design, DesignError, judged

SOLVER = 2
"""Version of the solver: raised whenever it may give other designs, so that older ones are not loaded."""

_FORMAT = "bitldp.design"
_FILE = "mvu.json"

_log = logging.getLogger(__name__)


class Key(NamedTuple):
    """Parameters by which a design is found."""

    shape: tuple[int, int]
    budget: float
    metric: Metric | None
    criterion: str

    def fields(self) -> dict[str, Any]:
        """Return the key as JSON values."""
        metric = self.metric
        return {
            "format": _FORMAT,
            "solver": SOLVER,
            "input_bits": self.shape[0],
            "output_bits": self.shape[1],
            "budget": self.budget.hex(),
            "metric": [[d.hex() for d in row] for row in metric]
            if isinstance(metric, tuple)
            else None
            if metric is None
            else metric.hex(),
            "criterion": self.criterion,
        }

    def name(self) -> str:
        """Return the name of the design's file."""
        return f"mvu-{self.shape[0]}-{self.shape[1]}-{_digest(self.fields())[:32]}.json"


def folder() -> Path | None:
    """Return the folder of cached designs; None where there is no cache.

    ``BITLDP_CACHE`` names the folder; empty, it turns the cache off. Else it is ``bitldp`` in
    ``XDG_CACHE_HOME``, or in the place where the platform keeps caches.
    """
    chosen = os.environ.get("BITLDP_CACHE")
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME")
    if base and Path(base).is_absolute():
        return Path(base) / "bitldp"
    local = os.environ.get("LOCALAPPDATA")
    if sys.platform == "win32" and local:
        return Path(local) / "bitldp" / "Cache"
    try:
        home = Path.home()
    except RuntimeError:  # no home: a service's account
        return None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "bitldp"


def load(key: Key) -> Design | None:
    """Return a cached design; None if there is none that passes its checks. A failing one is logged."""
    cache = folder()
    if cache is None:
        return None
    path = cache / key.name()
    try:
        text = path.read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        _log.warning("%s cannot be read, and is solved again: %s", path, error)
        return None
    try:
        return decoded(key, json.loads(text))
    except (DesignError, ValueError, RecursionError) as error:
        _log.warning("%s is refused, and solved again: %s", path, error)
        return None


def store(key: Key, design: Design) -> None:
    """Write a design to the cache, whole or not at all; a failure is logged and has no other effect."""
    cache = folder()
    if cache is None:
        return
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with replacing(cache / key.name()) as file:
            file.write(json.dumps(encoded(key, design)).encode("ascii"))
    except OSError as error:
        _log.warning("the design is not cached: %s", error)


def shipped(key: Key) -> Design | None:
    """Return a design that comes with the package, or None. A failing one is logged."""
    record = _shipped().get(_digest(key.fields()))
    if record is None:
        return None
    try:
        return decoded(key, record)
    except (DesignError, ValueError) as error:
        _log.warning("the shipped design %s is refused, and solved again: %s", key.name(), error)
        return None


@lru_cache(maxsize=1)
def _shipped() -> dict[str, Any]:
    """Return the shipped records by the digest of their key; empty, and logged, where the file is damaged."""
    try:
        text = (resources.files("bitldp.design") / "shipped" / _FILE).read_text(encoding="ascii")
        records = json.loads(text)["designs"]
        names = tuple(Key((1, 1), 1.0, None, "mean").fields())
        return {_digest({name: record[name] for name in names}): record for record in records}
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("the shipped designs cannot be read: %s", error)
        return {}


def encoded(key: Key, design: Design) -> dict[str, Any]:
    """Return a design as a JSON value, with its checksum."""
    content = {
        **key.fields(),
        "letters": [letter.hex() for letter in design.letters],
        "weights": [[f"{weight:x}" for weight in row] for row in design.weights],
    }
    return {**content, "sha256": _digest(content)}


def decoded(key: Key, record: Any) -> Design:
    """Return the design in a JSON value, after checking everything about it.

    Raises
    ------
    DesignError, ValueError
        If it is damaged, is of something else, or is not private or not unbiased.
    """
    if not isinstance(record, dict):
        raise DesignError("it is not the record of a design")
    content = {name: value for name, value in record.items() if name != "sha256"}
    if record.get("sha256") != _digest(content):
        raise DesignError("its checksum is wrong")
    fields = key.fields()
    if {name: content.get(name) for name in fields} != fields:
        raise DesignError("it is the design of something else")
    try:
        letters = tuple(float.fromhex(letter) for letter in content["letters"])
        weights = tuple(tuple(int(weight, 16) for weight in row) for row in content["weights"])
    except (KeyError, TypeError, OverflowError) as error:
        raise DesignError(f"its numbers cannot be read: {error}") from None
    return judged(key.shape, key.budget, key.metric, key.criterion, weights, letters)


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()
