"""The verifier finds every lie, and says what it cannot prove."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
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
from bitldp.cli.perturb.privacy_report import law_of
from bitldp.tables import Column, TablePlan
from support.command import invoke
from support.plans import people, plan
from support.verified import Report, put, released_report, sealed, typed_with_gaps, verdict_of


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    return released_report(tmp_path_factory.mktemp("verify"), plan(), people(60))


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    return released_report(tmp_path_factory.mktemp("typed"), *typed_with_gaps(40))


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
    findings = verify.verify(sealed(report), target)
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
    findings = verify.verify(sealed(put(typed[0], path, value)), typed[1])
    assert any(words in each.sentence for each in findings if each.verdict == "false"), findings


def test_a_bit_for_categories_is_false(typed: tuple[Report, Path]) -> None:
    """A plan that no constructor takes: a bit beside a category, with the entry that belongs to it."""
    report = copy.deepcopy(typed[0])
    _, bit, city = report["mechanisms"]
    report["plan"]["column"][1] |= {"nulls": "report"}
    report["plan"]["column"][1]["parameters"]["epsilon"] = 1.0 / (1.0 - 1.0 / 3.0)
    report["mechanisms"].append({**bit, "columns": city["columns"]})
    findings = verify.verify(sealed(report))
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
    findings = verify.verify(sealed(report), target)
    assert [each.sentence for each in findings if each.verdict == "false"] == [
        f"the file: column {index + 1} holds more values than its law has reports"
    ]
    pa.csv.write_csv(released.set_column(released.column_names.index("city"), "city", wide["city"]), target)
    report["output_sha256"] = verify.files.sha256_of(target)
    trusting = verify.verify(sealed(report), target)
    assert verify.verdict(trusting) == "proven"
    assert trusting[-1].verdict == "note"
    assert "the writer is trusted" in trusting[-1].sentence


def test_another_output_is_false(honest: tuple[Report, Path], tmp_path: Path) -> None:
    report, target = honest
    other = tmp_path / "other.csv"
    other.write_bytes(target.read_bytes() + b"\n")
    assert verdict_of(report, other) == "false"
    result = invoke("verify", f"{target}.privacy.json", other)
    assert result.exit_code == 1
    assert "NOT the file" in result.output


def test_a_change_breaks_the_seal(honest: tuple[Report, Path]) -> None:
    for path, value in [(("rows",), 3), (("notes",), []), (("plan", "keep"), [])]:
        assert verdict_of(put(honest[0], path, value)) == "false"


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
    made, table = typed_with_gaps(12) if name == "typed" else (plan(), people(12))
    if name in OTHER_PLANS:
        made = TablePlan(OTHER_PLANS[name])
    report, target = released_report(tmp_path, made, table)
    assert verdict_of(report, target) == "proven"
    tried = 0
    for path, value in _leaves(report):
        if not path or FREE & {*path}:
            continue
        for other in (each for each in _others(value) if each != value):
            tried += 1
            assert verdict_of(sealed(put(report, path, other)), target) == "false", (path, other)
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
    report = put(honest[0], ("mechanisms", 3, *path), value)
    if path == ("mechanism",):
        report = put(report, ("plan", "column", 3, "mechanism"), value)
    file = tmp_path / "x.privacy.json"
    file.write_text(json.dumps(sealed(report)))
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
