"""``bitldp explain``: the guarantee and the errors of a setting, against the library."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp.cli.catalogue import FAMILIES, entries
from bitldp.cli.explain import overview, print_claims, print_overview
from bitldp.privacy import number
from bitldp.report.claims import claims
from bitldp.report.verdicts import verdicts
from bitldp.sums import Count, Histogram, Number, SecureSum, SumKind, Vector
from rich.console import Console
from support.command import invoke


def explain(*arguments: object) -> dict[str, Any]:
    """Return the JSON of ``bitldp explain``."""
    result = invoke("explain", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    facts: dict[str, Any] = json.loads(result.stdout)
    return facts


def test_list_of_mechanisms() -> None:
    text = invoke("explain").stdout
    for name, entry in entries().items():
        assert f" {name} " in text
        assert entry.summary in text
    assert list(json.loads(invoke("explain", "--json").stdout)) == list(entries())


SETTINGS: dict[str, tuple[object, ...]] = {
    "frr": ("--features", 12),
    "bitrand": ("--features", 12, "--categories", 4, "--label-epsilon", 1),
    "moue": ("--features", 12),
    "uer": ("--features", 12, "--calibration", "paper"),
    "sue": ("--categories", 9),
    "oue": ("--categories", 9),
    "grr": ("--categories", 9),
    "label-rr": ("--categories", 9),
    "warner-rr": (),
    "subset-selection": ("--categories", 9),
    "block-design": ("--categories", 9),
    "olh": ("--categories", 9),
    "rappor": ("--categories", 9),
    "hadamard-response": ("--categories", 9),
    "categorical-record": ("--attributes", "3,9,2"),
    "record-cap": ("--attributes", "3,9,2"),
    "loloha": ("--categories", 9),
    "workload-design": ("--workload", "ranges", "--categories", 9),
    "metric-points": ("--points", 9, "--low", 0, "--high", 1),
    "mixed-cap": ("--features", 2, "--attributes", "3,9"),
    "mixed-record": ("--features", 2, "--attributes", "3,9"),
    "brr": ("--points", 30, "--low", 0, "--high", 1, "--m", 1),
    "exponential": ("--points", 9, "--low", 0, "--high", 1),
    "lsrr": ("--points", 9, "--low", 0, "--high", 1),
    "optimal-utility": ("--points", 9),
    "label-laplace": ("--categories", 9),
    "gaussian": ("--delta", 1e-6),
    "vector-mvu": ("--features", 3, "--delta", 1e-6),
    "interpolated-mvu": ("--features", 3, "--delta", 1e-6),
    "ball-gaussian": ("--features", 3, "--delta", 1e-6),
    "skellam": ("--features", 3, "--delta", 1e-6),
    "sign-sgd": ("--features", 3, "--delta", 1e-6),
    "exp": ("--features", 9),
    "pe": ("--features", 9, "--k", 2),
    "ps": ("--features", 9, "--k", 2),
    "hierarchy": ("--categories", 30),
    "heavy-hitters": ("--alphabet", "abc", "--length", 9),
}

#: Secure sums, by the options of each kind, and the same in Python.
SUMS: dict[str, tuple[tuple[object, ...], SumKind]] = {
    "count": ((), Count()),
    "histogram": (("--categories", 9), Histogram(9)),
    "number": (("--low", 0, "--high", 5, "--steps", 15), Number((0.0, 5.0), 15)),
    "vector": (("--features", 100, "--radius", 2), Vector(100, 2.0)),
}


#: Mechanisms without an unbiased decode, so that no number of users makes an estimate.
SILENT = ("optimal-utility", "sign-sgd", "exp")


@pytest.mark.slow
@pytest.mark.parametrize("name", entries())
def test_every_mechanism(name: str) -> None:
    users = () if name in SILENT else ("--users", 400)
    arguments = (name, "--epsilon", 3, *SETTINGS.get(name, ("--features", 3)), *users)
    facts = explain(*arguments)
    table = invoke("explain", *arguments).stdout
    for part in facts["mechanisms"]:
        assert part["mechanism"] in table
        guarantee = part["guarantee"]
        assert guarantee["bit"] <= guarantee["feature"] <= guarantee["record"]
        assert guarantee["holds"] is (guarantee["record"] <= guarantee["claimed"])
        assert part["bits_on_the_wire"] >= 1
    assert ("features and label together" in table) is (name == "bitrand")


@pytest.mark.parametrize("name", [entry.name for entry in entries().values() if "reals" in entry.takes])
@pytest.mark.slow
def test_errors_of_numbers(name: str) -> None:
    delta = ("--delta", 1e-6) if name == "gaussian" else ()
    arguments = (name, "--epsilon", 2, "--low", 0, "--high", 4, "--users", 900, *delta)
    (part,) = explain(*arguments)["mechanisms"]
    one, many = (
        part["errors"][key] for key in ("standard_deviation_of_one_report", "standard_error_of_an_estimate")
    )
    options = {"low": 0.0, "high": 4.0} | ({"delta": 1e-6} if delta else {})
    mechanism = entries()[name].construct(2.0, 1, options)
    spread = mechanism.variance(np.linspace(0.0, 4.0, 4097)[:, None])
    assert one["for_the_worst_input"] == pytest.approx(math.sqrt(spread.max()), rel=1e-3)
    assert one["on_average"] == pytest.approx(math.sqrt(spread.mean()), rel=1e-3)
    for key, deviation in one.items():
        assert many[key] == pytest.approx(deviation / 30.0)


@pytest.mark.slow
def test_all_mechanisms_in_one_table() -> None:
    rows = {
        row["name"]: row for row in json.loads(invoke("explain", "--all", "--epsilon", 1, "--json").stdout)
    }
    assert list(rows) == [
        entry.name for family in FAMILIES for entry in entries().values() if entry.family == family
    ]
    table = invoke("explain", "--all", "--epsilon", 1).stdout
    for name, row in rows.items():
        assert f" {name} " in table.replace("\n", " \n ")
        assert "refused" not in row, row
        guarantee = row["guarantee"]
        # One budget for all: whoever claims it keeps it, and uses all of it but for a rounding.
        if name == "uer":
            assert guarantee["record"] > guarantee["claimed"] == 1.0
            continue
        assert guarantee["holds"]
        assert guarantee["claimed"] == 1.0
        assert 0.0 < guarantee["bit"] <= guarantee["feature"] <= guarantee["record"] <= 1.0
        assert row["bits_on_the_wire"] >= 1
        if "no_variance" in row:
            assert row["no_variance"] in table.replace("\n", " ")
        else:
            assert 0.0 < row["mean_variance"] <= row["worst_variance"]
            assert row["influence"] > 0.0
    duchi = bitldp.Duchi(epsilon=1.0)
    assert rows["duchi"]["worst_variance"] == duchi.worst_variance()
    assert rows["duchi"]["mean_variance"] == duchi.mean_variance()
    assert rows["duchi"]["influence"] == duchi.influence(0.01)
    assert "influence" not in rows["exp"]
    assert rows["grr"]["worst_variance"] == bitldp.GRR(10, epsilon=1.0).variance([0]).max()
    given = json.loads(invoke("explain", "--all", "--epsilon", 1, "--categories", 50, "--json").stdout)
    assert {row["name"]: row for row in given}["oue"]["bits_on_the_wire"] == 50


@pytest.mark.slow
def test_an_option_of_the_constructor_is_one_of_the_command_line() -> None:
    arguments = ("interpolated-mvu", "--features", 3, "--epsilon", 3, "--delta", 1e-6)
    (part,) = explain(*arguments, "--input-bits", 4, "--norm", "l2", "--no-clip")["mechanisms"]
    assert part["parameters"]["input_bits"] == 4
    assert part["parameters"]["clip"] is False
    (part,) = explain("generalized-rr", "--epsilon", 3, "--output-bits", 2)["mechanisms"]
    assert part["parameters"]["bits"] == 2


@pytest.mark.parametrize("command", ["explain", "audit", "perturb"])
def test_the_help_of_a_mechanism_shows_its_options(command: str) -> None:
    named = ("--mechanism", "mvu") if command == "perturb" else ("mvu",)
    text = " ".join(invoke(command, *named, "--help").stdout.split())
    assert f"mvu: {entries()['mvu'].summary}; takes reals." in text
    assert "--input-bits N Bits of the grid, b_in, 1 to 8: a number is dithered to one of" in text
    assert "[1 to 8; default: 3]" in text
    assert "--objective mean|worst" in text
    assert "--spend split|sample How a record's budget is spent" in text  # as of another class
    assert "--epsilon E" in text
    for other in ("--alpha", "--points", "--m ", "--label-epsilon" if command == "explain" else "--beta"):
        assert other not in text
    every = invoke(command, "--help").stdout
    assert "--alpha X" in every
    assert "moue, uer: How rare" in every


def test_frr_against_the_reference_case(vectors: dict[int, dict[str, Any]]) -> None:
    arguments = ("frr", "--features", 1000, "--epsilon", 1, "--calibration", "paper", "--users", 10_000)
    (part,) = explain(*arguments)["mechanisms"]
    flips = [bit["zero_becomes_one"] for bit in part["laws_of_the_bits"][0]]
    assert flips == pytest.approx(vectors[2]["expected"], abs=1e-12)
    assert part["guarantee"]["record"] == pytest.approx(vectors[3]["expected"]["record"], rel=1e-9)
    assert part["errors"]["theorem_4_bound"] == pytest.approx(vectors[6]["expected"]["bound"], abs=1e-6)
    exact = vectors[6]["expected"]["exact_uniform_codes"]
    assert part["errors"]["expected_absolute_error"] == pytest.approx(exact, abs=1e-6)
    with pytest.warns(bitldp.PrivacyClaimWarning):
        mechanism = bitldp.FRR(1000, epsilon=1.0, calibration="paper")
    variance = mechanism.variance(np.zeros((1, 1000)))[0, 0]
    errors = part["errors"]["standard_error_of_a_mean"]
    assert errors["at_zero"] == pytest.approx(math.sqrt(variance / 10_000))
    assert errors["at_the_limit"] > errors["at_zero"]


@pytest.mark.parametrize("name", ["grr", "oue", "sue"])
def test_standard_error_of_a_frequency(name: str) -> None:
    (part,) = explain(name, "--epsilon", 1, "--categories", 5, "--users", 2000)["mechanisms"]
    mechanism = getattr(bitldp, name.upper())(5, epsilon=1.0)
    rng = np.random.default_rng(2)
    nobody, everybody = [], []
    for _ in range(400):
        value = mechanism.estimate_frequencies(mechanism.randomize(np.zeros(2000, int), rng=rng)).value
        everybody.append(value[0])
        nobody.append(value[1])
    errors = part["errors"]["standard_error_of_a_frequency"]
    # 400 estimates: a standard deviation is known to 1/sqrt(800) = 3.5 %; five of that, alpha below 1e-6.
    assert np.std(nobody) == pytest.approx(errors["of_a_category_nobody_has"], rel=0.18)
    assert np.std(everybody) == pytest.approx(errors["of_a_category_everybody_has"], rel=0.18)


def test_where_nothing_unbiased_exists() -> None:
    (frr,) = explain("frr", "--epsilon", 0, "--features", 1)["mechanisms"]
    assert "no unbiased decode exists" in frr["errors"]["unbiased"]
    (grr,) = explain("grr", "--epsilon", 0, "--categories", 3)["mechanisms"]
    assert "no unbiased decode exists" in grr["errors"]["unbiased"]
    (brr,) = explain("brr", "--epsilon", 1, "--points", 50)["mechanisms"]
    assert "no unbiased decode exists" in brr["errors"]["unbiased"]


def test_brr_error_by_enumeration() -> None:
    (part,) = explain("brr", "--epsilon", 2, "--points", 20, "--low", -1, "--high", 1)["mechanisms"]
    law = bitldp.BRR(20, epsilon=2.0, interval=(-1.0, 1.0)).probabilities()
    points = np.linspace(-1, 1, 20)
    expected = (law * np.abs(points[:, None] - points)).sum() / 20
    assert part["errors"]["expected_absolute_error"] == pytest.approx(expected, rel=1e-9)
    assert part["probabilities"]["near_points"] == (law[0] == law[0].max()).sum()


@pytest.mark.slow
def test_claims() -> None:
    table = invoke("explain", "--claims").stdout
    assert "Claimed epsilon against the exact one" in table
    assert "What else the papers state" in table
    found = json.loads(invoke("explain", "--claims", "--json").stdout)
    assert {row["guarantee"]["holds"] for row in found["claims"]} == {True, False}
    assert {row["holds"] for row in found["verdicts"]} == {True, False}


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (("frr",), "--epsilon is needed"),
        (("frr", "--epsilon", 1), "--features is needed"),
        (("grr", "--epsilon", 1), "--categories is needed"),
        (("brr", "--epsilon", 1), "--points is needed"),
        (("bitrand", "--epsilon", 1, "--features", 3), "give --categories and --label-epsilon"),
        (("grr", "--epsilon", 1, "--categories", 1), "categories: must be at least 2"),
        (("grr", "--epsilon", 1, "--categories", 3, "--bits", 4), "--bits does not apply to grr"),
        (("rrf", "--epsilon", 1), "no mechanism 'rrf'"),
        (("frr", "--epsilon", 1, "--features", 3, "--points", 9), "--points does not apply to frr"),
        (
            ("grr", "--epsilon", 1, "--categories", 3, "--label-epsilon", 1),
            "--label-epsilon does not apply to grr",
        ),
        (("frr", "--epsilon", 1, "--features", 3, "--unit", "row"), "--unit row: must be one of"),
        (("grr", "--epsilon", 1, "--categories", 3, "--unit", "row"), "--unit row: must be one of"),
        (("brr", "--epsilon", 1, "--points", 3, "--low", 0), "--low and --high: both ends"),
        (("brr", "--epsilon", 1, "--points", 30, "--users", 9), "--users does not apply to brr here: no unb"),
        (("grr", "--epsilon", 0, "--categories", 3, "--users", 9), "--users does not apply to grr here: "),
        (("--epsilon", 1), "--epsilon has no effect without a mechanism"),
        (("--users", 1), "--users has no effect without a mechanism"),
        (("brr", "--epsilon", 1, "--points", 9, "--m", "²"), "brr: m: "),
        (("--all",), "--epsilon is needed"),
        (("--all", "--epsilon", 1, "--users", 5), "--users has no effect with --all"),
        (("--all", "--epsilon", 1, "--features", 10**12), "--features: must be at most 1,048,576"),
        (("--all", "--claims"), "--all and --claims are tables of their own"),
        (("hybrid", "--epsilon", 1, "--alpha", 2), "--alpha does not apply to hybrid (it does to moue, uer)"),
        (("hybrid", "--epsilon", 1, "--low", 2), "--low and --high: both ends"),
        (("duchi", "--epsilon", 1, "--k", 2), "duchi: k: is for spend='sample'"),
        (("--claims", "--users", 1), "--users has no effect with --claims"),
        (("frr", "--claims"), "a mechanism has no effect with --claims"),
        (("frr", "--epsilon", 1, "--features", 10**12), "--features: must be at most 1,048,576"),
        (("grr", "--epsilon", 1, "--categories", 10**30), "--categories: must be at most 65,536"),
        (("brr", "--epsilon", 1, "--points", 10**9), "--points: must be at most 65,536"),
        (("frr", "--epsilon", 1, "--features", 3, "--bits", 10**30), "bits: must be between 2 and 32"),
        (("sum", "--epsilon", 1), "--clients is needed"),
        (("sum", "--epsilon", 1, "--clients", 9, "--bits", 3), "--bits does not apply to sum"),
        (("sum", "--epsilon", 1, "--clients", 9, "--users", 3), "--users does not apply to a sum"),
        (("sum", "--epsilon", 1, "--clients", 9, "--floor", 10), "floor: must be between 1 and 9"),
        (("sum", "--epsilon", 1, "--clients", 9, "--categories", 3, "--steps", 7), "--categories: is for"),
        (
            ("sum", "--epsilon", 1, "--clients", 9, "--features", 3, "--low", 0),
            "--features: is for vectors, --low",
        ),
        (("sum", "--epsilon", 1, "--clients", 9, "--radius", 3), "--radius: is the length that vectors are"),
        (
            ("sum", "--epsilon", 1, "--clients", 9, "--features", 10**12),
            "--features: must be at most 1,048,576",
        ),
        (("warner-rr", "--epsilon", 1, "--clients", 9), "--clients does not apply to warner-rr"),
    ],
)
def test_refusals(arguments: tuple[object, ...], fragment: str) -> None:
    result = invoke("explain", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert fragment in result.stderr


@pytest.mark.parametrize("width", ["paper", 1, 3])
def test_brr_against_grr(width: str | int) -> None:
    (part,) = explain("brr", "--epsilon", 2, "--points", 25, "--m", width)["mechanisms"]
    errors = part["errors"]
    points = np.arange(25)
    losses = [
        (mechanism.probabilities() * np.abs(points[:, None] - points)).sum()
        for mechanism in (bitldp.BRR(25, epsilon=2.0, m=width), bitldp.GRR(25, epsilon=2.0))
    ]
    assert errors["ratio_of_that_error_to_grr"] == pytest.approx(losses[0] / losses[1], rel=1e-9)
    if width == "paper":
        h = math.e  # e^(epsilon/2)
        limit = (7 * h + 9) / (4 * (h + 1) ** 2)
        assert errors["limit_of_that_ratio_for_n_to_infinity"] == pytest.approx(limit, rel=1e-9)
    else:
        assert not any(name.startswith("limit") for name in errors)


def test_standard_error_of_a_mean_by_brr() -> None:
    arguments = ("brr", "--epsilon", 2, "--points", 8, "--low", -1, "--high", 2, "--m", 1, "--users", 1000)
    errors = explain(*arguments)["mechanisms"][0]["errors"]["standard_error_of_a_mean"]
    mechanism = bitldp.BRR(8, epsilon=2.0, m=1, interval=(-1.0, 2.0))
    rng = np.random.default_rng(4)
    for name, code in (("at_an_end", 0), ("in_the_middle", 4)):
        value = np.full(1000, mechanism.points[code])
        found = [mechanism.estimate_mean(mechanism.randomize(value, rng=rng)) for _ in range(400)]
        # 400 estimates: a standard deviation is known to 3.5 %; five of that, alpha below 1e-6.
        assert np.std([estimate.value[0] for estimate in found]) == pytest.approx(errors[name], rel=0.18)
        assert np.mean([estimate.stderr[0] for estimate in found]) == pytest.approx(errors[name], rel=0.03)


@pytest.mark.parametrize("name", ["grr", "oue", "brr", "frr"])
def test_the_unit_is_the_one_asked_for(name: str) -> None:
    sizes = {"brr": "--points", "frr": "--features"}
    arguments = (name, "--epsilon", 1, sizes.get(name, "--categories"), 5, "--unit", "feature")
    (part,) = explain(*arguments)["mechanisms"]
    assert part["guarantee"]["unit"] == "feature"
    assert part["parameters"].get("unit", "feature") == "feature"
    assert "claimed epsilon, per feature" in invoke("explain", *arguments).stdout
    audited = invoke("audit", *arguments, "--n", 100, "--seed", 1)
    assert audited.exit_code == 0, audited.output
    assert "per feature" in audited.stdout


@pytest.mark.parametrize(
    ("arguments", "fragment"),
    [
        (("grr", "--epsilon", 1), "--categories is needed"),
        (("grr", "--epsilon", 1, "--categories", 3, "--points", 9), "--points does not apply to grr"),
        (("brr", "--epsilon", 1, "--points", 9, "--high", 9), "--low and --high: both ends"),
        (("frr", "--epsilon", 1, "--features", 10**12), "--features: must be at most 1,048,576"),
        (("bitrand", "--epsilon", 1, "--features", 3), "give --categories and --label-epsilon"),
        (
            ("grr", "--epsilon", 1, "--categories", 3, "--confidence", 0.2),
            "--confidence: must be 0.5 or more",
        ),
    ],
)
def test_refusals_of_an_audit(arguments: tuple[object, ...], fragment: str) -> None:
    pytest.importorskip("scipy")
    result = invoke("audit", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert fragment in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 140, 150, 200])
def test_a_narrow_terminal_cuts_no_figure_and_no_mark(width: int) -> None:
    rows = overview(1.0, {})
    console = Console(file=io.StringIO(), width=width)
    print_overview(rows, console)
    text = console.file.getvalue()
    words = " ".join(text.split())
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    for row in rows:
        guarantee = row["guarantee"]
        record = f"{guarantee['record']:.4g}"
        mark = "" if guarantee["holds"] else " !"
        assert f"{record}{mark}" in words
        assert row["name"] in words
        if "worst_variance" in row:
            assert number(row["worst_variance"], 4) in words
            assert number(row["influence"], 4) in words
    assert words.count("27.25 !") == 1
    if width < 100:  # a card for each
        assert words.count("bits on the wire:") == len(rows)


@pytest.mark.parametrize("width", [30, 80, 150])
@pytest.mark.slow
def test_claims_that_fail_say_so_on_any_terminal(width: int) -> None:
    console = Console(file=io.StringIO(), width=width)
    print_claims(console)
    words = " ".join(console.file.getvalue().split())
    assert "\N{HORIZONTAL ELLIPSIS}" not in words
    failing = sum(not claim.guarantee.holds for claim in claims())
    failing += sum(not verdict.holds for verdict in verdicts())
    assert words.count("NO") == failing > 2


def test_one_mechanism_says_what_liars_move() -> None:
    (part,) = explain("grr", "--epsilon", 1, "--categories", 5)["mechanisms"]
    assert part["liars"] == {"share": 0.01, "influence": bitldp.GRR(5, epsilon=1.0).influence(0.01)}
    (part,) = explain("exp", "--epsilon", 1, "--features", 5)["mechanisms"]
    assert "ranks" in part["liars"]["unbounded"]
    assert "1 % of liars move an estimate by at most" in invoke("explain", "duchi", "--epsilon", 1).stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", SUMS)
def test_a_secure_sum_of_every_kind(name: str) -> None:
    """Every number is that of `SecureSum`, in JSON and in the table."""
    options, kind = SUMS[name]
    given = ("sum", "--epsilon", 2, "--clients", 60, "--floor", 50, "--colluding", 4, *options)
    facts, table = explain(*given), invoke("explain", *given).stdout
    secure = SecureSum(kind, epsilon=2.0, clients=60, floor=50, colluding=4)
    assert facts["terms"] == secure.terms()
    assert facts["digest"] == secure.digest
    for each in facts["central"]:
        found = secure.guarantee.central(each["survivors"])
        assert (each["epsilon"], each["exact"]) == (found.epsilon, found.exact)
        assert f"central epsilon of {each['survivors']} survivors" in table
        assert number(found.epsilon, 6) in table
    noise = facts["noise"]
    assert noise["standard_deviation_if_all_answer"] == secure.stderr(60)
    assert noise["over_central_gaussian_noise"] == secure.overhead
    assert facts["bits_on_the_wire"] == secure.bits * secure.kind.coordinates
    assert facts["wrap_bound"] == secure.wrap_bound
    assert f"{facts['bits_on_the_wire']:,} bits on the wire" in table
    assert number(secure.overhead, 6) in table
    assert ("100 features of a length up to 2.0, in 128 integers" in table) is (name == "vector")


def test_a_secure_sum() -> None:
    facts = explain("sum", "--epsilon", 1, "--clients", 1000, "--floor", 800, "--colluding", 100)
    shown = {each["survivors"]: each for each in facts["central"]}
    assert shown[900]["epsilon"] <= 1.0 < shown[810]["epsilon"]
    assert (shown[900]["shown"], shown[810]["shown"]) == (True, False)
    assert facts["terms"]["kind"] == "count"
    text = invoke(
        "explain", "sum", "--epsilon", 1, "--clients", 10, "--low", 0, "--high", 5, "--steps", 15
    ).stdout
    assert "none worth the name" in text
    assert text.count("  - ") == 4
    assert explain("sum", "--epsilon", 1, "--clients", 9, "--categories", 3)["terms"]["categories"] == 3
