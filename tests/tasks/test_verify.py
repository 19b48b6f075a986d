"""The verifier, which shares no code with what it checks: it agrees on every law, and finds every change."""

from __future__ import annotations

import ast
import copy
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')
pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

import pyarrow as pa
import pyarrow.parquet
from bitldp import verify
from bitldp.cli.perturb.privacy_report import law_of
from bitldp.tables.column import canonical_digest
from support.command import invoke
from support.plans import columns_of_every_mechanism, people, plan

# What the report names without proof: sums of noises that are rounded together.
UNPROVEN = {"LabelLaplace"}


def test_it_stands_on_nothing_of_the_package() -> None:
    tree = ast.parse(Path(verify.__file__).read_text(encoding="utf-8"))
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= set(sys.stdlib_module_names)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 7.0])
@pytest.mark.parametrize("name", columns_of_every_mechanism())
def test_it_finds_the_exact_epsilon_of_every_mechanism(name: str, epsilon: float) -> None:
    for codec in columns_of_every_mechanism(epsilon)[name].codecs:
        law = json.loads(json.dumps(law_of(codec.mechanism)))
        guarantee = codec.mechanism.guarantee
        if name in UNPROVEN:
            with pytest.raises(verify.Unproven):
                verify.epsilon_of(law)
        elif guarantee.delta:
            found = verify.delta_of(law, guarantee.record)
            assert float(found) <= guarantee.delta <= float(found) * (1 + 1e-6) + 1e-15
        else:
            found = verify.epsilon_of(law)
            assert found <= Decimal(guarantee.record) * (1 + Decimal("1e-40"))
            assert guarantee.record - float(found) <= 1e-9 * max(1.0, guarantee.record)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("verify")
    source, target = folder / "people.parquet", folder / "released.parquet"
    pa.parquet.write_table(people(200), source)
    plan().write(folder / "plan.toml")
    result = invoke("perturb", source, "-o", target, "--plan", folder / "plan.toml")
    assert result.exit_code == 0, result.output
    return json.loads(Path(f"{target}.privacy.json").read_text()), target


def test_an_honest_report_is_proven(report: tuple[dict[str, Any], Path]) -> None:
    document, target = report
    found = verify.verify(document, target)
    assert all(good for good, _ in found), found
    assert len(found) == 7
    result = invoke("verify", f"{target}.privacy.json", target)
    assert result.exit_code == 0
    assert result.output.rstrip().endswith("proven")


def changed(document: dict[str, Any], path: list[Any], value: Any, *, sealed: bool) -> dict[str, Any]:
    """Return a report with one value changed, and its own digest made anew where it is `sealed`."""
    found = copy.deepcopy(document)
    place: Any = found
    for key in path[:-1]:
        place = place[key]
    assert place[path[-1]] != value
    place[path[-1]] = value
    if sealed:
        found["report_sha256"] = canonical_digest({k: v for k, v in found.items() if k != "report_sha256"})
    return found


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["total_per_record", "epsilon_exact"], 8.9),
        (["total_per_record", "epsilon_exact"], 9.1),
        (["mechanisms", 1, "epsilon_exact", "record"], 0.9),
        (["mechanisms", 1, "epsilon_exact", "record"], "infinity"),
        (["mechanisms", 1, "law", 0, "laws", 0, "cells"], 4),
        (["mechanisms", 1, "law", 0, "laws", 0, "high"], str(1 << 63)),
        (["mechanisms", 0, "law", 0, "times"], 1),
        (["mechanisms", 3, "law", 0, "laws", 0, "p"], str(1 << 62)),
        (["mechanisms", 3, "law", 0, "laws"], [{"law": "another"}]),
        (["mechanisms", 3, "law"], []),
        (["plan", "keep"], []),
        (["plan_sha256"], "0" * 64),
        (["output_sha256"], "0" * 64),
    ],
)
def test_every_change_is_found(
    report: tuple[dict[str, Any], Path], path: list[Any], value: Any, sealed: bool
) -> None:
    document, target = report
    found = verify.verify(changed(document, path, value, sealed=sealed), target)
    assert not all(good for good, _ in found)


@pytest.mark.parametrize(("path", "value"), [(["rows"], 3), (["mechanisms", 0, "columns"], ["x", "y"])])
def test_a_change_of_what_is_said_breaks_the_seal(
    report: tuple[dict[str, Any], Path], path: list[Any], value: Any
) -> None:
    assert not verify.verify(changed(report[0], path, value, sealed=False))[0][0]


def test_another_output_is_found(report: tuple[dict[str, Any], Path], tmp_path: Path) -> None:
    document, target = report
    other = tmp_path / "other.parquet"
    other.write_bytes(target.read_bytes() + b"\0")
    assert not all(good for good, _ in verify.verify(document, other))
    result = invoke("verify", f"{target}.privacy.json", other)
    assert result.exit_code == 1
    assert "NOT the file" in result.output


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"mechanisms": 3}', "[" * 100_000])
def test_what_is_no_report_is_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.privacy.json"
    path.write_text(text)
    result = invoke("verify", path)
    assert result.exit_code == 1
    assert "Traceback" not in result.output


def test_a_law_with_a_hole_has_no_finite_epsilon() -> None:
    law = [{"times": 1, "laws": [{"law": "window", "cells": 4, "width": 1, "high": str(1 << 64)}]}]
    assert verify.epsilon_of(law).is_infinite()


def test_independent_symbols_add_up() -> None:
    mechanism = bitldp.GRR(4, epsilon=3.0, features=3)
    (symbols,) = law_of(mechanism)
    assert symbols["times"] == 3
    one = verify.epsilon_of([{**symbols, "times": 1}])
    assert verify.epsilon_of([symbols]) == 3 * one
    assert np.isclose(float(one), 1.0, atol=1e-12)
