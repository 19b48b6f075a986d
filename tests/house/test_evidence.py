"""What `make evidence` kept is of the tests as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.evidence import RECORD, keep, marked, outdated

LINE = "Five seeds, 3 % allowed."


@pytest.mark.slow
def test_the_record_is_of_the_tests_as_they_are() -> None:
    assert outdated(json.loads(RECORD.read_text(encoding="utf-8")), marked()) == [], "run make evidence"
    assert all(marked().values()), "the first line says how many draws or seeds, and the bound"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ({"a::b": "Five seeds, 4 % allowed."}, "it says 'Five seeds, 4 % allowed.' now"),
        ({"a::b": LINE, "a::c": LINE}, "a::c: never run"),
        ({}, "a::b: there is no such test"),
    ],
)
def test_another_test_is_seen(lines: dict[str, str], says: str) -> None:
    record = {"a::b": {"says": LINE, "passed": 2}}
    assert outdated(record, {"a::b": LINE}) == []
    (wrong,) = outdated(record, lines)
    assert says in wrong


@pytest.mark.slow
def test_a_test_is_found_by_its_marker_and_its_cases_are_counted(tmp_path: Path) -> None:
    text = f'@pytest.mark.evidence\ndef test_it() -> None:\n    """{LINE}\n\n    More.\n    """\n'
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(text + "def test_other() -> None: ...\n")
    assert marked(tmp_path / "tests") == {"tests/test_a.py::test_it": LINE}
    name, record = next(iter(marked())), tmp_path / "evidence.json"
    keep([(f"{name}[1]", 0.25), (f"{name}[2]", 0.25)], record)
    kept = json.loads(record.read_text())[name]
    assert (kept["passed"], kept["seconds"], kept["says"]) == (2, 0.5, marked()[name])
