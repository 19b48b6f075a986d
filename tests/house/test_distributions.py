"""The three distributions: one version, one set of facts, and each brings what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import bitldp
import pytest

tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")

ROOT = Path(__file__).parents[2]
SHARED = ("authors", "license", "license-files", "requires-python")


def project(folder: Path) -> dict[str, Any]:
    """Return what a pyproject.toml says of its distribution."""
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


LIBRARY, PAPERS, PRIO = (project(ROOT / folder) for folder in ("", "python/papers", "python/prio"))


def test_all_are_of_one_version_and_ask_for_each_other_at_it() -> None:
    version = bitldp.__version__
    assert PRIO["version"] == version
    assert LIBRARY["optional-dependencies"]["prio"] == [f"bitldp-prio=={version}"]
    assert f"bitldp=={version}" in PRIO["dependencies"]
    assert PAPERS["version"] == version
    assert LIBRARY["optional-dependencies"]["papers"] == [f"bitldp-papers=={version}"]
    (own,) = (each for each in PAPERS["dependencies"] if re.match(r"bitldp\b", each))
    assert re.fullmatch(rf"bitldp\[[\w,]+\]=={re.escape(version)}", own)


def test_both_say_the_same_of_whose_they_are() -> None:
    linked = "THIRD-PARTY-NOTICES.txt"  # of crates, which the papers' wheel has none of
    assert linked in LIBRARY["license-files"]
    both = {**LIBRARY, "license-files": [each for each in LIBRARY["license-files"] if each != linked]}
    assert {key: both[key] for key in SHARED} == {key: PAPERS[key] for key in SHARED}
    for name in PAPERS["license-files"]:
        assert (ROOT / "python" / "papers" / name).read_bytes() == (ROOT / name).read_bytes()


def test_the_second_extension_module_says_whose_licence_it_carries() -> None:
    assert PRIO["license"] == f"({LIBRARY['license']}) AND MPL-2.0"
    assert {key: PRIO[key] for key in SHARED if key != "license"} == {
        key: LIBRARY[key] for key in SHARED if key != "license"
    }
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert (ROOT / "python" / "prio" / name).read_bytes() == (ROOT / name).read_bytes()


def test_flower_is_asked_for_in_one_range() -> None:
    (of_papers,) = (each for each in PAPERS["dependencies"] if each.startswith("flwr"))
    assert LIBRARY["optional-dependencies"]["fl"] == [of_papers]


def test_the_demo_needs_neither_flower_nor_the_papers() -> None:
    """The extras that the demo takes, one within the other, name no library of the experiments."""
    taken, ahead = set[str](), ["demo"]
    while ahead:
        for each in LIBRARY["optional-dependencies"][ahead.pop()]:
            inner = re.fullmatch(r"bitldp\[([\w,]+)\]", each)
            taken |= set() if inner else {re.split(r"[\[<>=;]", each)[0]}
            ahead += inner[1].split(",") if inner else []
    assert {"typer", "matplotlib", "scikit-learn", "statsmodels", "pyarrow"} <= taken
    assert not taken & {"flwr", "jax", "bitldp-papers"}


def test_the_command_line_takes_260_megabytes_and_flower_is_alone() -> None:
    """As `python benches/extras.py --record` measured them, for extras that there are."""
    kept = json.loads((ROOT / "benches" / "records" / "extras.json").read_text(encoding="utf-8"))["extras"]
    assert set(kept) - {""} <= set(LIBRARY["optional-dependencies"])
    assert kept["cli"]["megabytes"] <= 260
    (alone,) = LIBRARY["optional-dependencies"]["fl"]
    assert alone.startswith("flwr")
