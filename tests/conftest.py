"""Shared fixtures: the reference vectors, and each mechanism in turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cases import CASES, FAMILIES, Case

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


@pytest.fixture(params=FAMILIES, ids=[case.name for case in FAMILIES])
def family(request: pytest.FixtureRequest) -> Case:
    """Each mechanism of numbers, of compression and of selection in turn."""
    chosen: Case = request.param
    return chosen


@pytest.fixture(params=CASES, ids=[case.name for case in CASES])
def case(request: pytest.FixtureRequest) -> Case:
    """Each mechanism in turn."""
    chosen: Case = request.param
    return chosen
