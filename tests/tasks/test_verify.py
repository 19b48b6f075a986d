"""The verifier, which shares no code with what it checks: honest reports are proven, every lie is found."""

from __future__ import annotations

import ast
import copy
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
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
from bitldp.tables import Column, TablePlan
from bitldp.tables.column import canonical_digest
from support.command import invoke
from support.plans import columns_of_every_mechanism, people, plan, table_for
from support.random_plans import random_plan

FOLDER = Path(verify.__file__).parent
Report = dict[str, Any]


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


def _report(folder: Path, plan: TablePlan, table: pa.Table, suffix: str = "csv") -> tuple[Report, Path]:
    """Release a table by a plan, and return its report and its file."""
    source, target = folder / "people.parquet", folder / f"released.{suffix}"
    pa.parquet.write_table(table, source)
    plan.write(folder / "plan.toml")
    result = invoke("perturb", source, "-o", target, "--plan", folder / "plan.toml", "--force")
    assert result.exit_code == 0, result.output
    return json.loads(Path(f"{target}.privacy.json").read_text()), target


def _verdict(report: Report, target: Path | None = None) -> str:
    return verify.verdict(verify.verify(report, target))


def _sealed(report: Report) -> Report:
    """Return a report with digests of its plan and of itself made anew, as everybody can."""
    made = copy.deepcopy(report)
    if made["plan"] is not None:
        made["plan_sha256"] = canonical_digest(made["plan"])
    made["report_sha256"] = canonical_digest({k: v for k, v in made.items() if k != "report_sha256"})
    return made


def _put(report: Report, path: tuple[Any, ...], value: Any) -> Report:
    made = copy.deepcopy(report)
    inner: Any = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return made


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
    _, target = _report(tmp_path, TablePlan([column], keep=["group"]), table_for(column, 30, 1))
    result = invoke("verify", f"{target}.privacy.json", target)
    assert result.exit_code == 0, result.output
    assert result.output.rstrip().endswith("proven")


def _random_is_proven(seed: int, folder: Path) -> None:
    made, table = random_plan(seed)
    suffix = ("csv", "parquet", "arrow", "tsv", "csv.gz", "arrows")[seed % 6]
    report, target = _report(folder, made, table, suffix)
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
    assert _verdict(_sealed(_put(report, ("rows",), 49)), target) == "false"


def _with_gaps(table: pa.Table, name: str, every: int = 5) -> pa.Table:
    """Return a table with a column of numbers in which some are missing."""
    numbers = pa.array(table.column(name).to_numpy(), mask=np.arange(table.num_rows) % every == 1)
    return table.set_column(table.column_names.index(name), name, numbers)


def _typed_with_gaps(rows: int) -> tuple[TablePlan, pa.Table]:
    """Return a plan that states types and reports gaps, and people for it."""
    table = _with_gaps(people(rows), "weight")
    made = TablePlan(
        [
            Column(
                bitldp.Piecewise(epsilon=1.0, interval=(0.0, 250.0)), "weight", nulls="report", output="codes"
            ),
            Column(bitldp.GRR(3, epsilon=1.0), "city", categories=["Paris", "Rome", "Oslo"]),
        ],
        keep=["survey"],
    )
    return made.typed(table, record="id"), table


def test_types_and_gaps_are_proven(tmp_path: Path) -> None:
    made, table = _typed_with_gaps(40)
    report, target = _report(tmp_path, made, table)
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
    with_gaps = dataclasses.replace(column, nulls="report")
    table = _with_gaps(table_for(column, 30, 1), "x0")
    report, target = _report(tmp_path, TablePlan([with_gaps]), table)
    assert len(report["mechanisms"]) == 2
    findings = verify.verify(report, target)
    assert verify.verdict(findings) == "proven", findings


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "tsv", "parquet", "arrow", "arrows"])
def test_columns_and_rows_of_every_form_are_read(suffix: str, tmp_path: Path) -> None:
    report, target = _report(tmp_path, plan(), people(70_000 if suffix == "arrow" else 50), suffix)
    assert _verdict(report, target) == "proven"
    for path, value in [(("rows",), report["rows"] - 1), (("kept_unperturbed",), [])]:
        changed = _put(report, path, value)
        if path == ("kept_unperturbed",):
            changed = _put(changed, ("plan", "keep"), [])
        (finding,) = (each for each in verify.verify(_sealed(changed), target) if each.verdict == "false")
        assert finding.sentence.startswith("the file: has ")


@pytest.mark.slow
def test_the_folder_runs_alone(tmp_path: Path) -> None:
    _, target = _report(tmp_path, plan(), people(20))
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


# -- what is a lie is false


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    return _report(tmp_path_factory.mktemp("verify"), plan(), people(60))


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    return _report(tmp_path_factory.mktemp("typed"), *_typed_with_gaps(40))


def test_an_honest_report_is_proven_and_says_what_is_not_seen(honest: tuple[Report, Path]) -> None:
    target = honest[1]
    result = invoke("verify", f"{target}.privacy.json", target)
    assert result.exit_code == 0
    assert result.output.rstrip().endswith("proven")
    assert "released as they are, without any privacy: survey" in result.output
    assert "the writer is trusted" in result.output
    assert "given one-hot input" in result.output
    alone = invoke("verify", f"{target}.privacy.json")
    assert alone.exit_code == 0
    assert "file not checked" in alone.output


def _weaker(report: Report) -> None:
    """Print the law, and epsilon, of .1 under a plan and parameters of 10."""
    own = json.loads(json.dumps(law_of(bitldp.GRR(3, epsilon=0.1))))
    exact = bitldp.GRR(3, epsilon=0.1).guarantee.record
    entry = report["mechanisms"][1]
    entry["law"], entry["epsilon_claimed"] = own, 10.0
    entry["epsilon_exact"] = dict.fromkeys(("bit", "feature", "record"), exact)
    entry["parameters"]["epsilon"] = report["plan"]["column"][1]["parameters"]["epsilon"] = 10.0
    _summed(report)


def _summed(report: Report) -> None:
    entries, total = report["mechanisms"], report["total_per_record"]
    total["epsilon_exact"] = float(sum(each["epsilon_exact"]["record"] for each in entries))
    total["epsilon_claimed"] = float(sum(each["epsilon_claimed"] for each in entries))


def _none(report: Report) -> None:
    report["mechanisms"] = []
    report["total_per_record"] |= {"epsilon_exact": 0.0, "epsilon_claimed": 0.0, "given": ""}


def _none_planned(report: Report) -> None:
    _none(report)
    report["plan"]["column"] = []


def _free(report: Report) -> None:
    entry = report["mechanisms"][1]
    entry["epsilon_exact"] = dict.fromkeys(("bit", "feature", "record"), 0.0)
    _summed(report)


def _no_law(report: Report) -> None:
    report["mechanisms"][1]["law"] = []
    _free(report)


def _no_alternative(report: Report) -> None:
    report["mechanisms"][1]["law"][0]["laws"] = []
    _free(report)


def _mute(report: Report) -> None:
    report["mechanisms"][1]["law"][0]["laws"][0]["mute"] = True
    _free(report)


def _mute_law(report: Report) -> None:
    report["mechanisms"][1]["law"][0]["laws"] = [{"law": "mute"}]
    _free(report)


def _never(report: Report) -> None:
    report["mechanisms"][1]["law"][0]["times"] = 0
    _free(report)


def _not_kept(report: Report) -> None:
    report["kept_unperturbed"] = report["plan"]["keep"] = []


def _claimed(report: Report) -> None:
    report["mechanisms"][1]["epsilon_claimed"] = 1e-9


def _nothing(report: Report) -> None:
    report["mechanisms"][1]["epsilon_exact"]["record"] = float("nan")


def _seeded(report: Report) -> None:
    report["seeded"] = True


def _fewer_cells(report: Report) -> None:
    """State a law of two categories, with its own epsilon, of a mechanism of three."""
    own = bitldp.GRR(2, epsilon=1.0)
    report["mechanisms"][1]["law"] = json.loads(json.dumps(law_of(own)))


def _half_the_noise(report: Report) -> None:
    """Say that numbers were sampled: half of the symbols."""
    report["mechanisms"][0]["law"][0]["times"] = 1


def _another_budget(report: Report) -> None:
    report["plan"]["column"][0]["parameters"]["epsilon"] = 400.0


def _one_hot(report: Report) -> None:
    report["mechanisms"][3]["given"] = report["total_per_record"]["given"] = ""


def _hidden(report: Report) -> None:
    report["kept_unperturbed"] = []


def _one_less(report: Report) -> None:
    del report["mechanisms"][2]
    _summed(report)


LIES: dict[Callable[[Report], None], str] = {
    _weaker: "its law is not that of the epsilon of its parameters",
    _none: "names no mechanism",
    _none_planned: "names no mechanism",
    _no_law: "its law is empty",
    _no_alternative: "a symbol has no law",
    _mute: "its law is mute",
    _mute_law: "its law is mute",
    _never: "times is not a number of symbols",
    _not_kept: "has other columns than the plan releases and keeps",
    _hidden: "keeps other columns than its plan",
    _one_less: "has other mechanisms than its plan",
    _claimed: "the epsilon claimed is not that asked for",
    _nothing: "(ValueError)",
    _seeded: "SEEDED",
    _fewer_cells: "cells of its law is 2, by its parameters 3",
    _half_the_noise: "its law has fewer symbols than its parameters",
    _another_budget: "epsilon is another in the plan",
    _one_hot: "given is not what its epsilon takes as known",
    _free: "epsilon 1.00000000000 from its integers, printed 0",
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_that_is_sealed_is_false(honest: tuple[Report, Path], lie: Callable[[Report], None]) -> None:
    report, target = copy.deepcopy(honest[0]), honest[1]
    lie(report)
    findings = verify.verify(_sealed(report), target)
    assert verify.verdict(findings) == "false"
    assert any(LIES[lie] in each.sentence for each in findings if each.verdict == "false"), findings


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("plan", "types", "name"), "text", "types of columns that it does not read"),
        (("plan", "types"), {"weight": "float32", "id": "integer"}, "not of all of its columns"),
        (("plan", "types", "city"), "uuid", "a type that no column has"),
        (("plan", "types"), {}, "the plan's types are none"),
        (("plan", "column", 0, "nulls"), "fill", "the plan has no such nulls and fill"),
        (("plan", "column", 0, "suffix"), "x", "keys that none has"),
        (("plan", "column", 0, "parameters", "epsilon"), 1.5, "epsilon is another in the plan"),
        (("plan", "column", 1, "nulls"), "report", "has other mechanisms than its plan"),
        (("mechanisms", 0, "parameters", "epsilon"), 1.0, "epsilon is another in the plan"),
        (("mechanisms", 1, "parameters", "epsilon"), 0.3, "epsilon is another in the plan"),
        (("mechanisms", 1, "columns"), ["height"], "other columns"),
        (("mechanisms", 1, "categories"), ["present", "missing"], "other categories than the plan's"),
    ],
)
def test_other_types_and_other_shares_are_false(
    typed: tuple[Report, Path], path: tuple[Any, ...], value: Any, words: str
) -> None:
    findings = verify.verify(_sealed(_put(typed[0], path, value)), typed[1])
    assert any(words in each.sentence for each in findings if each.verdict == "false"), findings


def test_a_bit_for_categories_is_false(typed: tuple[Report, Path]) -> None:
    """A plan that no constructor takes: a bit beside a category, with the entry that belongs to it."""
    report = copy.deepcopy(typed[0])
    _, bit, city = report["mechanisms"]
    report["plan"]["column"][1] |= {"nulls": "report"}
    report["plan"]["column"][1]["parameters"]["epsilon"] = 1.0 / (1.0 - 1.0 / 3.0)
    report["mechanisms"].append({**bit, "columns": city["columns"]})
    findings = verify.verify(_sealed(report))
    assert any("is for numbers" in each.sentence for each in findings if each.verdict == "false"), findings


def test_the_raw_column_under_a_new_digest_is_false(honest: tuple[Report, Path], tmp_path: Path) -> None:
    """Raw numbers are more values than a law has reports; raw labels are told from reports by nobody."""
    report, target = copy.deepcopy(honest[0]), tmp_path / "raw.csv"
    released = pa.csv.read_csv(honest[1])
    wide = people(60)
    index = released.column_names.index("age")
    ages = pa.array(np.linspace(18.0, 90.0, 60))
    pa.csv.write_csv(released.set_column(index, "age", ages), target)
    report["output_sha256"] = verify.files.sha256_of(target)
    findings = verify.verify(_sealed(report), target)
    assert [each.sentence for each in findings if each.verdict == "false"] == [
        f"the file: column {index + 1} holds more values than its law has reports"
    ]
    pa.csv.write_csv(released.set_column(released.column_names.index("city"), "city", wide["city"]), target)
    report["output_sha256"] = verify.files.sha256_of(target)
    trusting = verify.verify(_sealed(report), target)
    assert verify.verdict(trusting) == "proven"
    assert trusting[-1].verdict == "note"
    assert "the writer is trusted" in trusting[-1].sentence


def test_another_output_is_false(honest: tuple[Report, Path], tmp_path: Path) -> None:
    report, target = honest
    other = tmp_path / "other.csv"
    other.write_bytes(target.read_bytes() + b"\n")
    assert _verdict(report, other) == "false"
    result = invoke("verify", f"{target}.privacy.json", other)
    assert result.exit_code == 1
    assert "NOT the file" in result.output


def test_a_change_breaks_the_seal(honest: tuple[Report, Path]) -> None:
    for path, value in [(("rows",), 3), (("notes",), []), (("plan", "keep"), [])]:
        assert _verdict(_put(honest[0], path, value)) == "false"


def test_a_fixed_seed_fails(tmp_path: Path) -> None:
    pa.csv.write_csv(people(20), tmp_path / "people.csv")
    target = tmp_path / "out.csv"
    given = ("--mechanism", "grr", "--epsilon", 1, "--columns", "city", "--categories", "Paris,Rome,Oslo")
    assert invoke("perturb", tmp_path / "people.csv", "-o", target, *given, "--seed", 1).exit_code == 0
    result = invoke("verify", f"{target}.privacy.json", target)
    assert result.exit_code == 1
    assert "SEEDED" in result.output


# What the writer says in words of his own, and digests, which are made anew with each change.
FREE = {
    *("version", "isa", "release", "repeatable", "output", "notes", "to_estimate"),
    *("plan_sha256", "report_sha256"),
}


def _leaves(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every field, and of a list the first and the last one."""
    yield path, values
    inner = (
        values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    )
    shown = {0, len(values) - 1} if isinstance(values, list) else None
    for key, value in inner:
        if shown is None or key in shown:
            yield from _leaves(value, (*path, key))


def _others(value: Any) -> list[Any]:
    """Return other values for a field, of its own type and of others."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, (int, float)):
        return [value + 1, value * 1.001 if value else 7, "x"]
    if isinstance(value, str):
        return [str(int(value) + (1 << 50)), "0", "x"] if value.isdigit() else [f"{value}x", "", None]
    if isinstance(value, list):
        return [[], value + value[:1], None]
    return [{}, None] if value else [1, "x", True]


OTHER_PLANS = {
    "noise": [
        Column(
            bitldp.Gaussian(epsilon=2.0, delta=1e-6, features=2, interval=(0.0, 250.0)),
            ["height", "weight"],
            output="codes",
        ),
        Column(bitldp.OLH(3, epsilon=1.0), "city", categories=["Paris", "Rome", "Oslo"]),
    ],
    "tables": [
        Column(bitldp.FRR(2, bits=6, integer_bits=3, epsilon=3.0), ["height", "weight"], output="values"),
        Column(bitldp.MVU(epsilon=2.0, interval=(0.0, 100.0)), "age", output="codes"),
    ],
    "caps": [
        Column(
            bitldp.RecordCap([3, 2], epsilon=2.0, m=1, subset=1),
            ["city", "survey"],
            categories=[["Paris", "Rome", "Oslo"], ["a", "b"]],
        ),
    ],
    "caps of both": [
        Column(
            bitldp.MixedCap([3, 2], features=1, epsilon=4.0, interval=(0.0, 250.0)),
            ["height", "city", "survey"],
            categories=[["Paris", "Rome", "Oslo"], ["a", "b"]],
        ),
    ],
    "records": [
        Column(
            bitldp.CategoricalRecord([3, 2], epsilon=2.0, oracle=("GRR", "OUE"), k=1),
            ["city", "survey"],
            categories=[["Paris", "Rome", "Oslo"], ["a", "b"]],
        ),
        Column(
            bitldp.Duchi(epsilon=2.0, features=3, spend="cube", interval=(0.0, 250.0)),
            ["height", "weight", "age"],
        ),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["several", "typed", *OTHER_PLANS])
def test_every_field_that_is_changed_is_false_but_for_words(name: str, tmp_path: Path) -> None:
    made, table = _typed_with_gaps(12) if name == "typed" else (plan(), people(12))
    if name in OTHER_PLANS:
        made = TablePlan(OTHER_PLANS[name])
    report, target = _report(tmp_path, made, table)
    assert _verdict(report, target) == "proven"
    tried = 0
    for path, value in _leaves(report):
        if not path or FREE & {*path}:
            continue
        for other in (each for each in _others(value) if each != value):
            tried += 1
            assert _verdict(_sealed(_put(report, path, other)), target) == "false", (path, other)
    assert tried > 150


# -- what cannot be proven


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("law", 0, "laws", 0), {"law": "promised", "epsilon": 1.0}, "promised"),
        (("mechanism",), "Magic", "'Magic' is not known here"),
    ],
)
def test_what_is_not_rebuilt_is_not_proven(
    honest: tuple[Report, Path], tmp_path: Path, path: tuple[Any, ...], value: Any, words: str
) -> None:
    report = _put(honest[0], ("mechanisms", 3, *path), value)
    if path == ("mechanism",):
        report = _put(report, ("plan", "column", 3, "mechanism"), value)
    file = tmp_path / "x.privacy.json"
    file.write_text(json.dumps(_sealed(report)))
    result = invoke("verify", file)
    assert words in result.output
    assert "CANNOT BE PROVEN" in result.output
    assert result.exit_code == 3


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"mechanisms": 3}', "[" * 100_000, '{"mechanisms": NaN}'])
def test_what_is_no_report_is_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.privacy.json"
    path.write_text(text)
    result = invoke("verify", path)
    assert result.exit_code == 1
    assert "Traceback" not in result.output
