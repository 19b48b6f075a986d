"""Shared fixtures: the reference vectors, and one of each mechanism with inputs to match."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest

VECTORS = Path(__file__).parent / "vectors" / "vectors.json"


@pytest.fixture(scope="session")
def vectors() -> dict[int, dict[str, Any]]:
    """Return the reference cases by number."""
    return {case["id"]: case for case in json.loads(VECTORS.read_text())["vectors"]}


@pytest.fixture(scope="session", autouse=True)
def _no_cache_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep designs that tests solve out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BITLDP_CACHE", str(tmp_path_factory.mktemp("designs")))
        yield


@dataclass(frozen=True)
class Case:
    """A mechanism, a maker of inputs for it, and the forms that its reports come in."""

    name: str
    build: Callable[[], Any]
    inputs: Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]
    outputs: tuple[str, ...]

    def make(self) -> Any:
        """Build the mechanism; a failing claim is not the subject here."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
            return self.build()


def _floats(
    features: int, scale: float = 3.0
) -> Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]:
    return lambda rng, n: (rng.normal(0.0, scale, (n, features)).astype(np.float32),)


def _codes(count: int, *shape: int) -> Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]:
    return lambda rng, n: (rng.integers(0, count, (n, *shape)),)


_POINTS = (np.arange(60).reshape(30, 2) * 37 % 101) / 101.0  # scattered, without a random stream
_BITS = ("codes", "bits", "values", "packed")

CASES = [
    Case("FRR", lambda: bitldp.FRR(5, epsilon=4.0), _floats(5), _BITS),
    Case("FRR-paper", lambda: bitldp.FRR(5, epsilon=1.0, calibration="paper"), _floats(5), _BITS),
    Case("FRR-24", lambda: bitldp.FRR(2, bits=24, integer_bits=3, epsilon=9.0), _floats(2), _BITS),
    Case("MOUE", lambda: bitldp.MOUE(4, epsilon=6.0), _floats(4), _BITS),
    Case(
        "UER-odd",
        lambda: bitldp.UER(4, bits=9, integer_bits=4, epsilon=0.5, calibration="paper"),
        _floats(4),
        _BITS,
    ),
    Case("UER-even", lambda: bitldp.UER(4, epsilon=0.5, calibration="paper"), _floats(4), _BITS),
    Case("SUE", lambda: bitldp.SUE(7, epsilon=2.0), _codes(7), ("bits", "packed")),
    Case("OUE", lambda: bitldp.OUE(7, epsilon=2.0), _codes(7), ("bits", "packed")),
    Case("GRR", lambda: bitldp.GRR(11, epsilon=2.0), _codes(11), ("codes", "packed")),
    Case("GRR-3", lambda: bitldp.GRR(300, epsilon=6.0, features=3), _codes(300, 3), ("codes", "packed")),
    Case("LabelRR", lambda: bitldp.LabelRR(5, epsilon=1.0), _codes(5), ("codes", "packed")),
    Case("WarnerRR", lambda: bitldp.WarnerRR(0.7), _codes(2), ("codes", "packed")),
    Case("BRR", lambda: bitldp.BRR(40, epsilon=1.5), _codes(40), ("codes", "values", "packed")),
    Case(
        "BRR-interval",
        lambda: bitldp.BRR(21, epsilon=1.0, m="best", interval=(-1.0, 1.0), rounding="dither"),
        lambda rng, n: (rng.uniform(-1.1, 1.1, n),),
        ("codes", "values", "packed"),
    ),
    Case("BRR-plane", lambda: bitldp.BRR(_POINTS, epsilon=2.0), _codes(30), ("codes", "values", "packed")),
    Case(
        "BRR-regions",
        lambda: bitldp.BRR(_POINTS, epsilon=2.0, regions=np.arange(30) % 3),
        _codes(30),
        ("codes", "values", "packed"),
    ),
    Case(
        "BRR-jaccard", lambda: bitldp.BRR(25, epsilon=1.0, utility="jaccard"), _codes(25), ("codes", "values")
    ),
    Case(
        "BitRand",
        lambda: bitldp.BitRand(5, classes=4, epsilon_x=4.0, epsilon_y=1.0),
        lambda rng, n: (rng.normal(0.0, 3.0, (n, 5)), rng.integers(0, 4, n)),
        _BITS,
    ),
]


@pytest.fixture(params=CASES, ids=[case.name for case in CASES])
def case(request: pytest.FixtureRequest) -> Case:
    """Each mechanism in turn."""
    chosen: Case = request.param
    return chosen


def reports_of(mechanism: Any, inputs: tuple[np.ndarray, ...], **options: Any) -> np.ndarray:
    """Randomize, and return the reports as one array of bytes."""
    reports = mechanism.randomize(*inputs, **options)
    parts = reports if isinstance(reports, tuple) else (reports,)
    return np.concatenate([np.ascontiguousarray(part).view(np.uint8).ravel() for part in parts])
