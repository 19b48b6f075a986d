"""Pipes, compressed text and tabs: what goes in comes out, and what is damaged leaves nothing."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
from bitldp.cli.commands import FORMATS
from bitldp.cli.program import app
from bitldp.tables import ReleaseKey
from support.command import invoke
from support.plans import people, plan
from typer.testing import CliRunner

ROWS = 3_000
POSIX = pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
TABLES = [name for name in FORMATS if name != "npy"]


def unzstd(content: bytes) -> bytes:
    """Return what zstd compressed."""
    with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as stream:
        found: bytes = stream.read()
    return found


#: How each suffix of a text is compressed, and back.
PACKED: dict[str, tuple[Any, Any]] = {
    "": (bytes, bytes),
    "gz": (gzip.compress, gzip.decompress),
    "bz2": (bz2.compress, bz2.decompress),
    "zst": (lambda content: pa.Codec("zstd").compress(content, asbytes=True), unzstd),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People in every format, a plan, and a key: a release by it is the same whatever the format."""
    found = tmp_path_factory.mktemp("pipes")
    for name in TABLES:
        (found / f"people.{name}").write_bytes(written(people(ROWS), name))
    plan().write(found / "plan.toml")
    (found / "key").write_text(ReleaseKey.new_text())
    (found / "key").chmod(0o600)
    return found


def written(table: pa.Table, name: str) -> bytes:
    """Return a table in a format."""
    sink = io.BytesIO()
    if name.startswith(("csv", "tsv")):
        options = pa.csv.WriteOptions(delimiter="\t" if name.startswith("tsv") else ",")
        pa.csv.write_csv(table, sink, options)
        return PACKED[name[4:]][0](sink.getvalue())
    if name in ("parquet", "pq"):
        pa.parquet.write_table(table, sink)
    elif name == "arrows":
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        pa.feather.write_feather(table, sink)
    return sink.getvalue()


def taken(content: bytes, name: str) -> pa.Table:
    """Return the table that is in a format."""
    if name.startswith(("csv", "tsv")):
        text = PACKED[name[4:]][1](content)
        options = pa.csv.ParseOptions(delimiter="\t" if name.startswith("tsv") else ",")
        return pa.csv.read_csv(io.BytesIO(text), parse_options=options)
    if name in ("parquet", "pq"):
        return pa.parquet.read_table(io.BytesIO(content))
    if name == "arrows":
        return pa.ipc.open_stream(content).read_all()
    return pa.feather.read_table(io.BytesIO(content))


def keyed(folder: Path) -> list[object]:
    """Return the options of the one release that every test asks for; names are text in every format."""
    return ["--plan", folder / "plan.toml", "--record", "name", "--key-file", folder / "key"]


def run(given: bytes, *arguments: object) -> Any:
    """Run the command line with something on standard input."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=given)


@pytest.fixture(scope="module")
def expected(folder: Path) -> list[dict[str, Any]]:
    target = folder / "expected.parquet"
    assert invoke("perturb", folder / "people.parquet", "-o", target, *keyed(folder)).exit_code == 0
    rows: list[dict[str, Any]] = pa.parquet.read_table(target).to_pylist()
    return rows


@pytest.mark.parametrize("name", TABLES)
def test_a_table_goes_through_pipes_in_every_format(
    folder: Path, tmp_path: Path, expected: list[dict[str, Any]], name: str
) -> None:
    report = tmp_path / "report.json"
    content = (folder / f"people.{name}").read_bytes()
    result = run(content, "perturb", "-", "--from", name, "-o", "-", "--report", report, *keyed(folder))
    assert result.exit_code == 0, result.stderr
    assert taken(result.stdout_bytes, name).to_pylist() == expected
    assert f"standard output: {ROWS} rows" in result.stderr
    assert json.loads(report.read_text())["output"] == "-"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    (tmp_path / "out").write_bytes(result.stdout_bytes)
    unread = name.endswith("zst") and sys.version_info < (3, 14)
    assert invoke("verify", report, tmp_path / "out").exit_code == 3 * unread
    answers = run(
        result.stdout_bytes, "estimate", "-", "--from", name, "--report", report, "--format", "json"
    )
    assert answers.exit_code == 0, answers.stderr
    assert [row["records"] for row in json.loads(answers.stdout)] == [ROWS] * 9


@pytest.mark.parametrize("name", TABLES)
def test_a_file_of_every_format_is_read_and_written(
    folder: Path, tmp_path: Path, expected: list[dict[str, Any]], name: str
) -> None:
    target = tmp_path / f"out.{name}"
    assert invoke("perturb", folder / f"people.{name}", "-o", target, *keyed(folder)).exit_code == 0
    assert taken(target.read_bytes(), name).to_pylist() == expected
    assert invoke("estimate", target, "--format", "csv").exit_code == 0


def test_a_pipe_may_change_the_format(folder: Path, tmp_path: Path, expected: list[dict[str, Any]]) -> None:
    content = (folder / "people.csv").read_bytes()
    report = tmp_path / "r.json"
    options = ["--to", "parquet", "--report", report, *keyed(folder)]
    result = run(content, "perturb", "-", "--from", "csv", "-o", "-", *options)
    assert result.exit_code == 0, result.stderr
    assert taken(result.stdout_bytes, "parquet").to_pylist() == expected
    odd = tmp_path / "people.txt"
    odd.write_bytes(content)
    named = tmp_path / "out.dat"
    result = invoke("perturb", odd, "--from", "csv", "-o", named, "--to", "tsv", *keyed(folder))
    assert result.exit_code == 0, result.stderr
    assert taken(named.read_bytes(), "tsv").to_pylist() == expected


@pytest.mark.slow
def test_a_delimiter_is_of_text_with_commas(folder: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_bytes((folder / "people.csv").read_bytes().replace(b",", b";"))
    assert invoke("perturb", source, "-o", target, "--delimiter", ";", *keyed(folder)).exit_code == 0
    assert b'"height";' in target.read_bytes()
    assert invoke("estimate", target, "--delimiter", ";").exit_code == 0
    refused = invoke("perturb", folder / "people.tsv", "-o", target, "--delimiter", ";", *keyed(folder))
    assert refused.exit_code == 2
    assert "--delimiter: a .tsv file has tabs" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-", "-o", "out.csv"), "--from: standard input has no suffix; name its format, one of csv"),
        (("-", "-o", "-", "--from", "csv"), "--report: is required"),
        (("-", "-o", "-", "--from", "xls", "--report", "r"), "--from xls: must be one of csv, tsv"),
        (("-", "-o", "-", "--from", "csv", "--to", "xls", "--report", "r"), "--to xls: must be one of"),
        (("people.csv", "-o", "out.csv", "--report", "r"), "--report: is for -o -"),
        (("people.csv", "-o", "out.gz"), "out.gz: the suffix names no known format"),
        (("people.csv", "-o", "-", "--report", "none/r"), "the folder none does not exist"),
        (("people.csv", "-o", "-", "--report", "plan.toml"), "is the run's own --plan"),
        (("-", "-o", "out.csv", "--from", "csv", "--from", "tsv"), "--from: given 2 times"),
    ],
)
def test_what_does_not_go_together_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(folder)
    result = run(b"", "perturb", *arguments, *keyed(folder))
    assert result.exit_code == 2
    assert words in result.stderr
    assert not (folder / "out.csv").exists()


def test_an_estimate_of_a_pipe_needs_its_report(folder: Path) -> None:
    result = run(b"", "estimate", "-", "--from", "csv")
    assert result.exit_code == 2
    assert "--report: is required" in result.stderr


@pytest.mark.parametrize("cut", [5, 40, 5_000, -9, -1])
@pytest.mark.parametrize("piped", [False, True])
def test_compressed_text_that_ends_too_early_is_refused(
    folder: Path, tmp_path: Path, cut: int, piped: bool
) -> None:
    """At the header, in the middle, and before the last byte of the check sum: nothing is left."""
    content = (folder / "people.csv.gz").read_bytes()[:cut]
    source, target = tmp_path / "in.csv.gz", tmp_path / "out.csv"
    source.write_bytes(content)
    if piped:
        result = run(content, "perturb", "-", "--from", "csv.gz", "-o", target, *keyed(folder))
    else:
        result = invoke("perturb", source, "-o", target, *keyed(folder))
    assert result.exit_code == 1
    assert "compressed data that are damaged, or end too early" in result.stderr
    assert "secret" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv.gz"]


def test_compressed_text_that_was_changed_is_refused(folder: Path, tmp_path: Path) -> None:
    content = bytearray((folder / "people.csv.gz").read_bytes())
    content[len(content) // 2] ^= 0x10
    source = tmp_path / "in.csv.gz"
    source.write_bytes(content)
    result = invoke("perturb", source, "-o", tmp_path / "out.csv", *keyed(folder))
    assert result.exit_code == 1
    assert "compressed data that are damaged" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv.gz"]


def test_a_bad_row_of_a_pipe_is_named_and_nothing_leaves(folder: Path, tmp_path: Path) -> None:
    text = (folder / "people.csv").read_text().splitlines(keepends=True)
    text[2_000] = text[2_000].replace("secret", "extra, secret", 1).replace('"', "")
    report = tmp_path / "r.json"
    result = run(
        "".join(text).encode(), "perturb", "-", "--from", "csv", "-o", "-", "--report", report, *keyed(folder)
    )
    assert result.exit_code == 1
    assert "standard input: row 2000 has 9 fields, where the header has 8" in result.stderr
    assert result.stdout == ""
    assert not list(tmp_path.iterdir())


def test_kept_columns_keep_their_types(tmp_path: Path) -> None:
    """Parquet and Arrow have them; a text has none, and its kept columns are text."""
    kept = pa.table(
        {
            "small": pa.array([1, None], pa.int8()),
            "unsigned": pa.array([1, 2**64 - 1], pa.uint64()),
            "half": pa.array([1.5, 2.0], pa.float32()),
            "money": pa.array([1, 2], pa.int32()).cast(pa.decimal128(12, 2)),
            "day": pa.array([0, 1], pa.date32()),
            "time": pa.array([0, 1], pa.timestamp("us", "Europe/Paris")),
            "kind": pa.array(["a", "b"]).dictionary_encode(),
            "blob": pa.array([b"\x00", None], pa.binary()),
            "list": pa.array([[1, 2], []], pa.list_(pa.int32())),
            "struct": pa.array([{"a": 1}, {"a": 2}]),
            "flag": pa.array([True, None]),
        }
    )
    source = kept.append_column("x", pa.array([0.5, -0.5]))
    for suffix in ("parquet", "arrow", "arrows"):
        (tmp_path / f"in.{suffix}").write_bytes(written(source, suffix))
        target = tmp_path / f"out.{suffix}"
        options = ("--mechanism", "duchi", "--epsilon", 1, "--low", -1, "--high", 1, "--columns", "x")
        keep = ("--keep", ",".join(kept.column_names))
        result = invoke("perturb", tmp_path / f"in.{suffix}", "-o", target, *options, *keep)
        assert result.exit_code == 0, result.stderr
        found = taken(target.read_bytes(), suffix).select(kept.column_names)
        assert found.schema.equals(kept.schema)
        assert found.to_pylist() == kept.to_pylist()


# -- as processes


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "bitldp", *map(str, arguments)]


@pytest.mark.slow
@POSIX
def test_two_commands_in_a_pipe(folder: Path, tmp_path: Path) -> None:
    """The report has its name before anything is in the pipe, so the second command finds it."""
    report = tmp_path / "r.json"
    options = ["--report", report, "-q", *keyed(folder)]
    with (folder / "people.csv").open("rb") as source:
        first = subprocess.Popen(
            command("perturb", "-", "--from", "csv", "-o", "-", *options),
            stdin=source,
            stdout=subprocess.PIPE,
        )
    estimate = command("estimate", "-", "--from", "csv", "--report", report, "--format", "json")
    second = subprocess.run(estimate, stdin=first.stdout, capture_output=True, check=False, timeout=120)
    assert first.stdout is not None
    first.stdout.close()
    assert first.wait(60) == 0
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout)[0]["records"] == ROWS


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize("name", ["perturb", "estimate"])
def test_a_reader_that_stops_is_a_clean_end(folder: Path, tmp_path: Path, name: str) -> None:
    if name == "perturb":
        line = command(
            "perturb", folder / "people.csv", "-o", "-", "--report", tmp_path / "r", *keyed(folder)
        )
    else:
        target = tmp_path / "out.csv"
        assert invoke("perturb", folder / "people.csv", "-o", target, *keyed(folder)).exit_code == 0
        line = command("estimate", target)
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(line, stdout=write, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    os.close(write)
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr
    assert "error" not in done.stderr
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
@POSIX
def test_a_named_pipe_is_read_once(folder: Path, tmp_path: Path, expected: list[dict[str, Any]]) -> None:
    pipe, target = tmp_path / "people.csv", tmp_path / "out.parquet"
    os.mkfifo(pipe)
    process = subprocess.Popen(command("perturb", pipe, "-o", target, *keyed(folder)))
    pipe.write_bytes((folder / "people.csv").read_bytes())
    assert process.wait(60) == 0
    assert pa.parquet.read_table(target).to_pylist() == expected


# -- completion


def offered(line: str) -> set[str]:
    """Return what a shell is offered at the end of a line."""
    words = line.split(" ")
    shell = {"_BITLDP_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    result = subprocess.run(
        command(), env={**os.environ, **shell}, capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 0, result.stderr
    return {each.rsplit(",")[-1] for each in result.stdout.split()}


@pytest.mark.slow
@POSIX
@pytest.mark.parametrize(
    ("line", "those"),
    [
        ("bitldp e", {"estimate", "explain"}),
        ("bitldp perturb --mechanism pie", {"piecewise", "piecewise-sub"}),
        ("bitldp perturb x.csv --mechanism grr --output ", {"values", "codes", "bits"}),
        ("bitldp perturb - --from csv", {"csv", "csv.gz", "csv.bz2", "csv.zst"}),
        ("bitldp estimate x.csv --format t", {"table"}),
    ],
)
def test_a_shell_completes(line: str, those: set[str]) -> None:
    assert offered(line) == those
