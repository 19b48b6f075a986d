"""Command lines that ``bitldp`` refuses: one sentence, an exit code, and no file left behind."""

from __future__ import annotations

from pathlib import Path

import bitldp
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from bitldp.cli.perturb import perturb as _perturb
from support.command import invoke
from support.refusals import FRR, GRR, PEOPLE, SECRET, refused

HYBRID = ("--mechanism", "hybrid", "--epsilon", 1, "--columns", "age")
BRR = ("--mechanism", "brr", "--epsilon", 1, "--columns", "age")
USAGE = {
    "no columns": ((*FRR,), "--columns: name the columns"),
    "unknown column": (
        (*FRR, "--columns", "agee"),
        "--columns agee: no such column among the 3 in the first line; is there a header?",
    ),
    "twice": ((*FRR, "--columns", "age", "--keep", "age"), "named twice"),
    "unknown mechanism": (("--mechanism", "rrf", "--epsilon", 1, "--columns", "age"), "no mechanism 'rrf'"),
    "negative": (
        ("--mechanism", "frr", "--epsilon", -1, "--columns", "age"),
        "epsilon: must be zero or more",
    ),
    "nan": (("--mechanism", "frr", "--epsilon", "nan", "--columns", "age"), "epsilon: must be finite"),
    "infinite": (
        ("--mechanism", "grr", "--epsilon", "inf", "--columns", "city", "--categories", "a,b"),
        "finite",
    ),
    "bits": ((*FRR, "--columns", "age", "--bits", 40), "bits: must be between 2 and 32"),
    "alpha for frr": ((*FRR, "--columns", "age", "--alpha", 3), "--alpha does not apply to frr"),
    "range for frr": ((*FRR, "--columns", "age", "--low", 0), "--low does not apply to frr"),
    "calibration": ((*FRR, "--columns", "age", "--calibration", "papers"), "must be one of exact, paper"),
    "output": ((*FRR, "--columns", "age", "--output", "text"), "must be one of values, codes, bits"),
    "bits of a label": ((*GRR, "--columns", "city", "--categories", "a,b", "--output", "bits"), "one symbol"),
    "values of bits": (
        (
            "--mechanism",
            "oue",
            "--epsilon",
            1,
            "--columns",
            "city",
            "--categories",
            "a,b",
            "--output",
            "values",
        ),
        "one bit for each category",
    ),
    "no dictionary": ((*GRR, "--columns", "city"), "'city' needs its public list of categories"),
    "one category": ((*GRR, "--columns", "city", "--categories", "Paris"), "at least 2 distinct"),
    "repeated category": ((*GRR, "--columns", "city", "--categories", "Rome,Rome"), "at least 2 distinct"),
    "a range too long": (
        (*GRR, "--columns", "city", "--categories", "0..99999999999"),
        "a range has at most 65,536 categories",
    ),
    "a range beyond any integer": (
        (*GRR, "--columns", "city", "--categories", f"0..{'9' * 5000}"),
        "a range has at most 65,536 categories",
    ),
    "an open quote": ((*FRR, "--columns", '"age'), "--columns: not a comma-separated list"),
    "too many points": ((*BRR, "--low", 0, "--high", 3, "--points", 10**10), "--points: must be at most 65"),
    "delimiter of two bytes": ((*FRR, "--columns", "age", "--delimiter", "§"), "an ASCII character"),
    "delimiter of ends": ((*FRR, "--columns", "age", "--delimiter", "\n"), "an ASCII character"),
    "two lists": ((*GRR, "--columns", "city", "--categories", "a,b", "--categories", "a,c"), "two lists"),
    "no such file of categories": (
        (*GRR, "--columns", "city", "--categories-file", "none"),
        "not a readable",
    ),
    "list of no column": ((*GRR, "--columns", "city", "--categories", "town=a,b"), "no column 'town' among"),
    "list for numbers": ((*FRR, "--columns", "age", "--categories", "a,b"), "frr takes numbers"),
    "list for a number": (
        (*FRR, "--columns", "age", "--categories", "age=a,b"),
        "frr takes numbers in 'age'",
    ),
    "warner of three": (
        ("--mechanism", "warner-rr", "--epsilon", 1, "--columns", "city", "--categories", "a,b,c"),
        "takes a column of 2 categories",
    ),
    "label without budget": (
        (*FRR, "--columns", "age", "--label", "city"),
        "--label-epsilon need each other",
    ),
    "bitrand without label": (("--mechanism", "bitrand", "--epsilon", 1, "--columns", "age"), "with --label"),
    "hybrid without range": (HYBRID, "hybrid on numbers needs the public range: --low and --high"),
    "hybrid on points": (
        (*HYBRID, "--low", 0, "--high", 3, "--points", 5),
        "--points does not apply to hybrid",
    ),
    "hybrid, no range": ((*HYBRID, "--low", 3, "--high", 0), "--low must be below --high, both finite"),
    "hybrid as bits": ((*HYBRID, "--low", 0, "--high", 3, "--output", "bits"), "reports one symbol"),
    "pairs": (
        (*HYBRID[:-1], "age,city", "--low", 0, "--high", 3, "--spend", "sample", "--output", "codes"),
        "with --spend sample a report is indices and codes",
    ),
    "brr without range": (BRR, "--low, --high and --points"),
    "empty range": ((*BRR, "--low", 3, "--high", 3, "--points", 5), "--low must be below --high"),
    "m": ((*BRR, "--low", 0, "--high", 3, "--points", 5, "--m", 9), "brr: m: "),
    "exact uer": (
        ("--mechanism", "uer", "--alpha", 10, "--epsilon", 1, "--columns", "age"),
        "only with alpha=1",
    ),
    **{
        f"delimiter {each}": (
            (*FRR, "--columns", "age", "--delimiter", each),
            "must not be a letter, digit, sign or point, since numbers contain them",
        )
        for each in (".", "-", "1", "e")
    },
    "delimiter": ((*FRR, "--columns", "age", "--delimiter", ";;"), "one character"),
}


@pytest.mark.parametrize(("options", "fragment"), USAGE.values(), ids=USAGE)
def test_wrong_command_lines(people: Path, options: tuple[object, ...], fragment: str) -> None:
    refused(invoke("perturb", people, "-o", people.with_name("out.csv"), *options), 2, fragment)
    assert [path.name for path in people.parent.iterdir()] == ["people.csv"]


def test_paths(people: Path, tmp_path: Path) -> None:
    common = (*FRR, "--columns", "age")
    refused(invoke("perturb", tmp_path / "none.csv", "-o", tmp_path / "o.csv", *common), 2, "no such file")
    refused(
        invoke("perturb", people, "-o", tmp_path / "o.xlsx", *common), 2, "the suffix names no known format"
    )
    refused(invoke("perturb", people, "-o", tmp_path / "o.npy", *common), 2, "a .npy array is written as")
    refused(invoke("perturb", people, "-o", tmp_path / "no" / "o.csv", *common), 2, "does not exist")
    link = tmp_path / "link.csv"
    link.symlink_to(people)
    for same in (people, link, tmp_path / "." / "people.csv"):
        refused(invoke("perturb", people, "-o", same, *common, "--force"), 2, "are the same file")
    assert people.read_text() == PEOPLE


def test_no_output_replaces_another_file_of_its_run(people: Path, tmp_path: Path) -> None:
    plan, key, ledger = tmp_path / "plan.toml", tmp_path / "key.json", tmp_path / "o.csv.privacy.json"
    plan.write_text('[[column]]\nmechanism = "Laplace"\nparameters = {epsilon = 1.0}\ncolumns = "age"\n')
    for target, options, option in (
        (plan, ("--plan", plan), "--plan"),
        (tmp_path / "key.json", ("--plan", plan, "--record", "age", "--key-file", key), "--key-file"),
        (tmp_path / "o.csv", ("--plan", plan, "--ledger", ledger, "--budget", 9), "--ledger"),
    ):
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        done = invoke("perturb", people, "-o", target, "--to", "csv", *options, "--force")
        refused(done, 2, f"is the run's own {option}; give the output another name")
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("text", ["age", '"age"', "\ufeffage", 'age,"a\nb"'])
def test_a_header_without_the_end_of_its_line_is_a_table_of_no_rows(tmp_path: Path, text: str) -> None:
    source, target = tmp_path / "header.csv", tmp_path / "o.csv"
    source.write_bytes(text.encode())
    done = invoke("perturb", source, "-o", target, *FRR, "--columns", "age")
    assert done.exit_code == 0, done.stderr
    assert target.read_text() == '"age"\n'


def test_existing_outputs(people: Path, tmp_path: Path) -> None:
    target, report = tmp_path / "o.csv", tmp_path / "o.csv.privacy.json"
    for existing in (target, report):
        existing.write_text("mine")
        refused(
            invoke("perturb", people, "-o", target, *FRR, "--columns", "age"),
            2,
            "exists,",
            "; give another name",
        )
        assert existing.read_text() == "mine"
        assert invoke("perturb", people, "-o", target, *FRR, "--columns", "age", "--force").exit_code == 0
        assert "mine" not in target.read_text() + report.read_text()
        target.unlink()
        report.unlink()


def test_a_name_made_for_a_bit_is_not_taken_twice(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("x,x_bit0\n1,2\n")
    options = (*FRR, "--columns", "x", "--keep", "x_bit0", "--output", "bits")
    refused(
        invoke("perturb", source, "-o", tmp_path / "o.csv", *options), 2, "has the name of another column"
    )


def test_an_unforeseen_failure_tells_no_value(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise RuntimeError(f"the value was {SECRET}")

    monkeypatch.setattr(_perturb, "privacy_report", fail)
    result = invoke("perturb", people, "-o", people.with_name("o.csv"), *FRR, "--columns", "age")
    refused(result, 1, "internal failure (RuntimeError at test_refusals.py")
    assert [path.name for path in people.parent.iterdir()] == ["people.csv"]


def test_a_first_record_in_place_of_a_header_is_not_shown(tmp_path: Path) -> None:
    source, target = tmp_path / "x.csv", tmp_path / "o.csv"
    source.write_text(f"{SECRET},70,70\n170,60,no\n")
    for column, problem in (("height", "no such column among the 3"), ("70", "several columns of that name")):
        result = invoke("perturb", source, "-o", target, *FRR, "--columns", column)
        refused(result, 2, f"--columns {column}: ", problem)
        assert result.stderr.count("70") == column.count("70")
    table = tmp_path / "x.parquet"
    pa.parquet.write_table(pa.table({"weight": [1.0]}), table)
    result = invoke("perturb", table, "-o", target, *FRR, "--columns", "height")
    refused(result, 2, "no such column; the file has weight")


@pytest.mark.parametrize("threads", [1025, 10**6, 10**30])
def test_threads_are_bounded(people: Path, threads: int) -> None:
    options = (*FRR, "--columns", "age", "--threads", threads)
    result = invoke("perturb", people, "-o", people.with_name("o.csv"), *options)
    assert result.exit_code == 2
    assert "1024" in result.stderr


@pytest.mark.parametrize("error", [OverflowError, MemoryError])
def test_what_a_constructor_cannot_hold_is_one_sentence(
    people: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error(SECRET)

    monkeypatch.setattr(bitldp.FRR, "_build", fail)
    result = invoke("perturb", people, "-o", people.with_name("o.csv"), *FRR, "--columns", "age")
    refused(result, 2, "frr: a number given is too large")


def test_columns_and_kept_ones_may_be_named_one_by_one(people: Path) -> None:
    people.write_text("a,b,c,d,e\n1,2,3,4,5\n6,7,8,9,0\n")
    target = people.with_name("o.csv")
    options = ("--columns", "a", "--columns", "b,c", "--keep", "d", "--keep", "e")
    result = invoke("perturb", people, "-o", target, *FRR, *options)
    assert result.exit_code == 0, result.stderr
    assert target.read_text().splitlines()[0].replace('"', "") == "a,b,c,d,e"
    assert "released as they are, without any privacy: d, e" in result.stderr
    twice = invoke(
        "perturb", people, "-o", people.with_name("p.csv"), *FRR, "--columns", "a", "--columns", "a"
    )
    refused(twice, 2, "--columns a: named twice")


TWICE = [
    ("perturb", "x.csv", "-o", "y.csv", "--out", "z.csv", "--mechanism", "frr", "--epsilon", 1),
    ("perturb", "x.csv", "-o", "y.csv", *FRR, "--epsilon", 2),
    ("perturb", "x.csv", "-o", "y.csv", *FRR, "--mechanism", "grr"),
    ("perturb", "x.csv", "-o", "y.csv", *FRR, "--label", "a", "--label", "b"),
    ("perturb", "x.csv", "-o", "y.csv", *FRR, "--bits", 8, "--bits=9"),
    ("perturb", "x.csv", "-o", "y.csv", *FRR, "--clip", "--no-clip"),
    ("explain", "frr", "--epsilon", 1, "--features", 2, "--epsilon", 3),
    ("audit", "grr", "--epsilon", 1, "--classes", 2, "--categories", 3),
    ("fl", "brr", "--rounds", 1, "--rounds", 2),
    ("demo", "--out", "a", "--out", "b"),
]


@pytest.mark.parametrize("arguments", TWICE, ids=lambda each: f"{each[0]} {each[-2]}")
def test_an_option_given_twice_is_refused(arguments: tuple[object, ...]) -> None:
    refused(invoke(*arguments), 2, "given 2 times, and would count once")


def test_every_option_of_every_command_is_of_once() -> None:
    from bitldp.cli.commands import Once
    from bitldp.cli.program import app
    from typer.main import get_command

    assert all(isinstance(command, Once) for command in get_command(app).commands.values())
