"""The verifier, which shares no code with what it checks: honest reports are proven, every lie is found."""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pytest

pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')
pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from bitldp import verify
from bitldp.base.errors import PlanError
from bitldp.cli.perturb.privacy_report import law_of
from bitldp.tables import TablePlan
from support.command import invoke
from support.plans import columns_of_every_mechanism, people, plan, table_for
from support.random_plans import random_plan
from support.verified import put, released_report, sealed, typed_with_gaps, verdict_of, with_gaps

FOLDER = Path(verify.__file__).parent


def test_it_stands_on_nothing_of_the_package() -> None:
    for file in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            roots = {name.partition(".")[0] for name in names}
            # A signature alone needs more, where it is asked for.
            assert roots <= {*sys.stdlib_module_names, "cryptography"}, file.name
            if isinstance(node, ast.ImportFrom) and node.level:
                assert node.level == 1
                assert (FOLDER / f"{node.module or '__init__'}.py").is_file()


# -- what is honest is proven


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 7.0])
@pytest.mark.parametrize("name", columns_of_every_mechanism())
def test_it_finds_the_exact_epsilon_of_every_mechanism(name: str, epsilon: float) -> None:
    for codec in columns_of_every_mechanism(epsilon)[name].codecs:
        law = json.loads(json.dumps(law_of(codec.mechanism)))
        guarantee = codec.mechanism.guarantee
        if guarantee.delta:
            found = verify.delta_of(law, guarantee.record)
            assert float(found) <= guarantee.delta <= float(found) * (1 + 1e-6) + 1e-15
        else:
            found = verify.epsilon_of(law)
            assert found <= Decimal(guarantee.record) * (1 + Decimal("1e-40"))
            assert guarantee.record - float(found) <= 1e-9 * max(1.0, guarantee.record)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bitldp.PrivacyClaimWarning")
@pytest.mark.parametrize("epsilon", [0.5, 7.0])
@pytest.mark.parametrize("name", columns_of_every_mechanism())
def test_every_mechanism_is_proven(name: str, epsilon: float, tmp_path: Path) -> None:
    column = columns_of_every_mechanism(epsilon)[name]
    _, target = released_report(tmp_path, TablePlan([column], keep=["group"]), table_for(column, 30, 1))
    result = invoke("verify", f"{target}.privacy.json", target)
    assert result.exit_code == 0, result.output
    assert result.output.rstrip().endswith("proven")


def _random_is_proven(seed: int, folder: Path) -> None:
    made, table = random_plan(seed)
    suffix = ("csv", "parquet", "arrow", "tsv", "csv.gz", "arrows")[seed % 6]
    report, target = released_report(folder, made, table, suffix)
    wrong = [each for each in verify.verify(report, target) if each.verdict in ("false", "unproven")]
    assert not wrong, (seed, made, wrong)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bitldp.PrivacyClaimWarning")
@pytest.mark.parametrize("seed", range(24))
def test_random_plans_are_proven(seed: int, tmp_path: Path) -> None:
    _random_is_proven(seed, tmp_path)


@pytest.mark.evidence
@pytest.mark.filterwarnings("ignore::bitldp.PrivacyClaimWarning")
def test_500_random_plans_are_proven(tmp_path: Path) -> None:
    """Perturbed and verified, 500 seeds: each is proven, with its file."""
    for seed in range(500):
        _random_is_proven(seed, tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        ("laplace", "--columns", "height,weight", "--low", 40, "--high", 220, "--output", "codes"),
        ("piecewise", "--columns", "weight", "--low", 40, "--high", 220, "--keep", "city,survey"),
        ("frr", "--columns", "height,weight", "--integer-bits", 8, "--unit", "feature"),
        (
            "grr",
            "--columns",
            "survey,city",
            "--categories",
            "survey=a,b",
            "--categories",
            "city=Paris,Rome,Oslo",
        ),
    ],
)
def test_a_run_by_options_is_proven(arguments: tuple[Any, ...], tmp_path: Path) -> None:
    pa.csv.write_csv(people(40), tmp_path / "people.csv")
    target = tmp_path / "out.csv"
    result = invoke(
        "perturb", tmp_path / "people.csv", "-o", target, "--epsilon", 3, "--mechanism", *arguments
    )
    assert result.exit_code == 0, result.output
    assert invoke("verify", f"{target}.privacy.json", target).exit_code == 0


def test_an_array_is_proven_and_its_size_compared(tmp_path: Path) -> None:
    source, target = tmp_path / "x.npy", tmp_path / "out.npy"
    np.save(source, np.random.default_rng(1).uniform(0.0, 1.0, (50, 3)))
    given = ("--mechanism", "laplace", "--epsilon", 3, "--low", 0, "--high", 1)
    assert invoke("perturb", source, "-o", target, *given).exit_code == 0
    result = invoke("verify", f"{target}.privacy.json", target)
    assert result.exit_code == 0, result.output
    assert "an array has no plan" in result.output
    report = json.loads(Path(f"{target}.privacy.json").read_text())
    assert verdict_of(sealed(put(report, ("rows",), 49)), target) == "false"


def test_types_and_gaps_are_proven(tmp_path: Path) -> None:
    made, table = typed_with_gaps(40)
    report, target = released_report(tmp_path, made, table)
    assert [(each["mechanism"], each["columns"]) for each in report["mechanisms"][:2]] == [
        ("Piecewise", ["weight"]),
        ("GRR", ["weight"]),
    ]
    assert report["plan"]["types"] == {"weight": "float32", "city": "text", "id": "integer"}
    findings = verify.verify(report, target)
    assert verify.verdict(findings) == "proven", findings
    assert any("weight, weight_present, city, survey" in each.sentence for each in findings)


NOT_SHARED = {"BitRand", "HypercubePrivUnit", "JointWindow", "SampledSigns"}  # a label, or several columns


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bitldp.PrivacyClaimWarning")
@pytest.mark.parametrize("epsilon", [0.7, 3.0])
@pytest.mark.parametrize(
    "name", [name for name, each in columns_of_every_mechanism().items() if "x0" in each.inputs]
)
def test_gaps_are_proven_for_every_mechanism_of_numbers(name: str, epsilon: float, tmp_path: Path) -> None:
    column = columns_of_every_mechanism(epsilon)[name]
    if name in NOT_SHARED:
        with pytest.raises(PlanError, match=r"nulls='report'|a mechanism of its own"):
            dataclasses.replace(column, nulls="report")
        return
    reported = dataclasses.replace(column, nulls="report")
    table = with_gaps(table_for(column, 30, 1), "x0")
    report, target = released_report(tmp_path, TablePlan([reported]), table)
    assert len(report["mechanisms"]) == 2
    findings = verify.verify(report, target)
    assert verify.verdict(findings) == "proven", findings


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "tsv", "parquet", "arrow", "arrows"])
def test_columns_and_rows_of_every_form_are_read(suffix: str, tmp_path: Path) -> None:
    report, target = released_report(tmp_path, plan(), people(70_000 if suffix == "arrow" else 50), suffix)
    assert verdict_of(report, target) == "proven"
    for path, value in [(("rows",), report["rows"] - 1), (("kept_unperturbed",), [])]:
        changed = put(report, path, value)
        if path == ("kept_unperturbed",):
            changed = put(changed, ("plan", "keep"), [])
        (finding,) = (each for each in verify.verify(sealed(changed), target) if each.verdict == "false")
        assert finding.sentence.startswith("the file: has ")


@pytest.mark.slow
def test_the_folder_runs_alone(tmp_path: Path) -> None:
    _, target = released_report(tmp_path, plan(), people(20))
    command = [sys.executable, "-I", str(FOLDER), f"{target}.privacy.json", str(target)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
    assert found.returncode == 0, found.stderr
    assert found.stdout.rstrip().endswith("proven")


# -- several numbers, several attributes


def _joint_delta(weights: list[int], steps: int, epsilon: float) -> Fraction:
    """Return the exact delta of two numbers that each move by `steps`, by enumeration of both reports."""
    growth = Fraction(Decimal(epsilon).exp())
    here = [*weights, *[0] * steps]
    there = [*[0] * steps, *weights]
    pairs = (
        (a * c, b * d) for a, b in zip(here, there, strict=True) for c, d in zip(here, there, strict=True)
    )
    return sum((max(Fraction(0), p - growth * q) for p, q in pairs), Fraction(0)) / (1 << 128)


@pytest.mark.parametrize(("epsilon", "delta"), [(4.0, 1e-3), (2.0, 1e-2)])
def test_delta_of_two_numbers_is_that_of_their_joint_law(epsilon: float, delta: float) -> None:
    law = law_of(bitldp.Gaussian(epsilon=epsilon, delta=delta, features=2))
    (noise,) = law[0]["laws"]
    exact = float(_joint_delta([int(w) for w in noise["weights"]], noise["inputs"] - 1, epsilon))
    found = float(verify.delta_of(law, epsilon))
    assert exact <= found * (1 + 1e-12)
    assert found <= exact * (1 + 2e-5)
    assert found <= delta


@pytest.mark.parametrize(("features", "epsilon"), [(3, 4.0), (20, 2.0), (100, 8.0)])
def test_delta_of_many_numbers_is_the_printed_one(features: int, epsilon: float) -> None:
    mechanism = bitldp.Gaussian(epsilon=epsilon, delta=1e-6, features=features)
    found = float(verify.delta_of(law_of(mechanism), mechanism.guarantee.record))
    assert 0.9999 * 1e-6 <= found <= 1e-6


def test_of_drawn_attributes_the_worst_count() -> None:
    def window(high: int) -> dict[str, Any]:
        return {"law": "window", "cells": 2, "width": 1, "high": str(high)}

    laws = [window(3 << 62), window(1 << 63), window(7 << 61)]  # ln 3, 0 and ln 7
    alone = [verify.epsilon_of([{"times": 1, "laws": [law]}]) for law in laws]
    drawn = verify.epsilon_of([{"times": 2, "laws": laws, "each": [1, 1, 1]}])
    assert abs(drawn - alone[0] - alone[2]) < 1e-25
    several = verify.epsilon_of([{"times": 3, "laws": laws, "each": [2, 9, 1]}])
    assert abs(several - 2 * alone[0] - alone[2]) < 1e-25
    mechanism = bitldp.CategoricalRecord([3, 16, 4], epsilon=1.0, k=2, oracle=("GRR", "OUE", "BlockDesign"))
    assert abs(float(verify.epsilon_of(law_of(mechanism))) - mechanism.guarantee.record) < 1e-12


def test_independent_symbols_add_up() -> None:
    mechanism = bitldp.GRR(4, epsilon=3.0, features=3)
    (symbols,) = law_of(mechanism)
    assert symbols["times"] == 3
    one = verify.epsilon_of([{**symbols, "times": 1}])
    assert abs(verify.epsilon_of([symbols]) - 3 * one) < 1e-25  # tests compute with 28 digits
    assert np.isclose(float(one), 1.0, atol=1e-12)


def test_a_law_with_a_hole_has_no_finite_epsilon() -> None:
    law = [{"times": 1, "laws": [{"law": "window", "cells": 4, "width": 1, "high": str(1 << 64)}]}]
    assert verify.epsilon_of(law).is_infinite()
