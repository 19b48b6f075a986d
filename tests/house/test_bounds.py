"""Bounds of statistical tests hold on any machine: samples that are all alike differ by rounding only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]


def without_floor(text: str) -> Iterator[int]:
    """Yield the lines where something is compared with a sampled deviation that may be 0, or a rounding."""
    for each in ast.walk(ast.parse(text)):
        if not isinstance(each, ast.Compare) or not isinstance(each.ops[0], ast.Lt | ast.LtE):
            continue
        bound = ast.unparse(each.comparators[-1])
        if re.search(r"\bstd\(.*/|/.*\bstd\(", bound) and not re.search(r"\+ .*\d*e-\d+", bound):
            yield each.lineno


def test_a_bound_of_sampled_errors_has_an_absolute_floor() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{line}"
        for path in sorted(TESTS.rglob("test_*.py"))
        if "std(" in (text := path.read_text(encoding="utf-8"))
        for line in without_floor(text)
    ]
    assert not found, "add what rounding may be, such as 1e-12"


def test_the_rule_finds_what_it_is_about() -> None:
    for bad in ("abs(x.mean()) < 5 * x.std() / math.sqrt(n)", "a <= 5.0 * np.std(x, ddof=1) / 200.0"):
        assert list(without_floor(bad)) == [1]
        assert list(without_floor(f"{bad} + 1e-12 * said")) == []
    assert list(without_floor("0.8 < np.std(errors) < 1.2")) == []
