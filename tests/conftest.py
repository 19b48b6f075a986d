"""Shared fixtures: the reference vectors, and each mechanism in turn."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import bitldp
import pytest
from support import evidence
from support.cases import CASES, FAMILIES, Case

VECTORS = Path(__file__).parent / "vectors" / "vectors.json"


with suppress(ImportError):  # tests of engines and of wheels do without it
    from hypothesis import HealthCheck, settings

    # The same examples in each run, and no time limit: what a test says depends on the code alone.
    settings.register_profile(
        "tests", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("tests")


@pytest.fixture(scope="session")
def vectors() -> dict[int, dict[str, Any]]:
    """Return the reference cases by number."""
    return {case["id"]: case for case in json.loads(VECTORS.read_text())["vectors"]}


@pytest.fixture(scope="session", autouse=True)
def _designs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the designs that tests solve: for all of them, all processes and the next run, as users do.

    Any change of the solver, of the extension module or of SciPy begins an empty folder; the solver's own
    tests begin one each time (tests/law/design/conftest.py).
    """
    cache = getattr(request.config, "cache", None)  # none where pytest was told to keep nothing
    folder = cache.mkdir(f"designs-{_solver()[:16]}") if cache else tmp_path_factory.mktemp("designs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BITLDP_CACHE", str(folder))
        yield


@pytest.fixture(autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test have nodes of its own, whose ledgers are begun where no other test looks."""
    monkeypatch.setenv("BITLDP_STATE", str(tmp_path_factory.getbasetemp() / f"state-{next(_COUNT)}"))


_COUNT = itertools.count()


def _solver() -> str:
    """Return a digest of what a design depends on."""
    package = Path(bitldp.__file__).parent
    sources = [*sorted((package / "design").rglob("*.py")), Path(bitldp._core.__file__)]
    versions = [f"{name} {_version(name)}" for name in ("numpy", "scipy")]
    return hashlib.sha256(
        b"".join([*(path.read_bytes() for path in sources), *map(str.encode, versions)])
    ).hexdigest()


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "is not there"


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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make evidence`."""
    parser.addoption("--keep-evidence", action="store_true", help="record which evidence has passed")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Record which evidence has passed: in the process that hears of all tests."""
    if not session.config.getoption("keep_evidence") or hasattr(session.config, "workerinput"):
        return
    reporter: Any = session.config.pluginmanager.get_plugin("terminalreporter")
    evidence.keep(
        (each.nodeid, each.duration) for each in reporter.stats.get("passed", []) if each.when == "call"
    )
