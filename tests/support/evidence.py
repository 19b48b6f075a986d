"""Tests that are evidence: many seeds or draws, run by `make evidence`, which keeps when they passed.

`make test` leaves them out and reads the record: each is there, has passed, and says in its
first line (draws, seeds, bounds) what it said then. What has other words has to be run again.
"""

from __future__ import annotations

import ast
import datetime
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "benches" / "records" / "evidence.json"


def marked(tests: Path = ROOT / "tests") -> dict[str, str]:
    """Return the first line of each test with the marker `evidence`, by its file and name."""
    lines = {}
    for path in sorted(tests.rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and "pytest.mark.evidence" in map(
                ast.unparse, node.decorator_list
            ):
                name = f"{path.relative_to(tests.parent).as_posix()}::{node.name}"
                lines[name] = (ast.get_docstring(node) or "").partition("\n")[0]
    return lines


def outdated(record: dict[str, Any], lines: dict[str, str]) -> list[str]:
    """Return what of the record does not hold for these tests; an empty list where all does."""
    wrong = [f"{name}: never run" for name in lines if name not in record]
    for name, kept in record.items():
        if name not in lines:
            wrong.append(f"{name}: there is no such test")
        elif kept["says"] != lines[name]:
            wrong.append(f"{name}: it says {lines[name]!r} now")
        elif kept["passed"] < 1:
            wrong.append(f"{name}: no case passed")
    return wrong


def keep(passed: Iterable[tuple[str, float]], path: Path = RECORD) -> None:
    """Write that cases passed, by test id and seconds, beside what was kept of other tests."""
    lines = marked()
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    fresh: dict[str, dict[str, Any]] = {}
    for case, seconds in passed:
        name = case.partition("[")[0]
        entry = fresh.setdefault(name, {"says": lines[name], "date": today, "passed": 0, "seconds": 0.0})
        entry["passed"] += 1
        entry["seconds"] = round(entry["seconds"] + seconds, 1)
    kept = {name: entry for name, entry in {**kept, **fresh}.items() if name in lines}
    path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
