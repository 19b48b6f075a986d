"""Tables of many files: folders, globs and remote ones in; a folder with one report, or one file, out."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import bitldp
import pytest

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
from bitldp.cli.perturb import staging
from bitldp.ledger import Ledger
from bitldp.tables import Column, ReleaseKey, TablePlan
from bitldp.verify.report import canonical
from support.command import invoke
from support.plans import people, plan

REPORT = "_privacy.json"


def write(folder: Path, files: int = 6, rows: int = 50, survey: bool = True) -> pa.Table:
    """Write people as some Parquet files, in a folder for each survey."""
    table = people(files * rows)
    for number in range(files):
        part = table.slice(number * rows, rows)
        name = f"people-{number:03}.parquet"
        if survey:
            each = "ab"[number % 2]
            part, name = part.drop_columns(["survey"]), f"survey={each}/{name}"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pa.parquet.write_table(part, folder / name)
    plan().write(folder.parent / "plan.toml")
    return table


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in")
    (tmp_path / "key").write_text("5eed" * 16)
    (tmp_path / "key").chmod(0o600)
    return tmp_path


KEYED = ("--plan", "plan.toml", "--record", "id", "--key-file", "key", "-q")


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rows_of(source: Any) -> list[dict[str, Any]]:
    """Return released rows in an order of their own."""
    table = pa.dataset.dataset(source, partitioning="hive").to_table()
    names = sorted(table.column_names)
    return table.select(names).sort_by([(name, "ascending") for name in names]).to_pylist()


def test_a_folder_is_released_as_a_folder_with_one_report(folder: Path) -> None:
    done = invoke("perturb", "in", "-o", "out", *KEYED, "--ledger", "ledger.json", "--budget", 20)
    assert done.exit_code == 0, done.output
    names = [f"survey={'ab'[i // 3]}/part-{i:05}.parquet" for i in range(6)]
    assert sorted(bytes_of(folder / "out")) == sorted([*names, REPORT])
    report = json.loads((folder / "out" / REPORT).read_text())
    assert [each["name"] for each in report["files"]] == names
    assert [each["rows"] for each in report["files"]] == [50] * 6
    assert report["rows"] == 300
    assert report["output_sha256"] not in (each["sha256"] for each in report["files"])
    assert not list(folder.glob(".*"))
    with Ledger.open(folder / "ledger.json") as ledger:
        charge, output = ledger.entries
        assert (output.name, output.output) == ("out", report["output_sha256"])
        assert ledger.spent == charge.guarantee.record == plan().guarantee.record


def test_a_folder_and_a_file_hold_the_same_rows_and_one_charge_covers_both(folder: Path) -> None:
    run = ("--ledger", "ledger.json")
    assert invoke("perturb", "in", "-o", "out", *KEYED, *run, "--budget", 9.5).exit_code == 0
    assert invoke("perturb", "in/survey=*/*.parquet", "-o", "one.parquet", *KEYED, *run).exit_code == 0
    paths = sorted(str(path) for path in Path("in").rglob("*.parquet"))
    assert invoke("perturb", *reversed(paths), "-o", "two.parquet", *KEYED, *run).exit_code == 0
    assert rows_of("out") == rows_of("one.parquet") == rows_of("two.parquet")
    assert Path("one.parquet").read_bytes() == Path("two.parquet").read_bytes()
    assert invoke("verify", "one.parquet.privacy.json", "one.parquet").exit_code == 0
    with Ledger.open("ledger.json") as ledger:
        assert ledger.spent == plan().guarantee.record


class Killed(BaseException):
    """What a process that is killed sees of its end: nothing."""


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 1, 4, 6])
def test_a_run_that_was_killed_goes_on_to_the_same_bytes(
    folder: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ("perturb", "in", *KEYED[:-1], "--ledger", "ledger.json", "-o")
    assert invoke(*run, "whole", "--budget", 9.5).exit_code == 0
    kept: list[str] = []
    keep = staging.Staging.keep

    def killed(self: Any, part: Any) -> None:
        if len(kept) == after:
            raise Killed
        keep(self, part)
        kept.append(part.name)

    def last(self: Any, *rest: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(staging.Staging, "keep", killed)
        patch.setattr(staging.Staging, "finish", last)
        patch.setattr(staging.Staging, "discard", lambda self: None)
        assert invoke(*run, "out").exit_code == 1
    assert not Path("out").exists()
    left = {name for name in bytes_of(folder / ".out.partial") if not name.endswith(".tmp")}
    assert left == set(kept)
    before = {name: (folder / ".out.partial" / name).stat().st_mtime_ns for name in kept}
    done = invoke(*run, "out")
    assert done.exit_code == 0, done.output
    if after:
        assert f"continues: {after} of 6 files are there" in done.stderr
    whole, again = bytes_of(folder / "whole"), bytes_of(folder / "out")
    assert again.pop(REPORT) != whole.pop(REPORT)  # which says the output's name
    assert again == whole
    assert {name: (folder / "out" / name).stat().st_mtime_ns for name in kept} == before
    assert not list(folder.glob(".*"))
    with Ledger.open("ledger.json") as ledger:
        assert ledger.spent == plan().guarantee.record


def stopped(monkeypatch: pytest.MonkeyPatch, *run: object) -> None:
    """Run until two files are finished."""
    keep = staging.Staging.keep

    def killed(self: Any, part: Any) -> None:
        keep(self, part)
        if len(self.finished) == 2:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(staging.Staging, "keep", killed)
        patch.setattr(staging.Staging, "discard", lambda self: None)
        assert invoke(*run).exit_code == 1


@pytest.mark.slow
@pytest.mark.parametrize("change", ["data", "plan", "snapshot", "form", "bytes", "key"])
def test_what_another_run_left_is_not_taken_over(
    folder: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of other data, of another release, or of other bytes than were noted are made anew."""
    stopped(monkeypatch, "perturb", "in", "-o", "out", *KEYED)
    left = next((folder / ".out.partial").rglob("*.parquet"))
    more: tuple[object, ...] = ()
    if change == "data":
        write(folder / "in", rows=51)
    elif change == "plan":
        TablePlan(plan().columns[:2], plan().keep).write("plan.toml")
    elif change == "snapshot":
        more = ("--snapshot", "later")
    elif change == "form":
        more = ("--to", "arrow")
    elif change == "key":
        Path("key").write_text(ReleaseKey.new_text())
    else:
        left.write_bytes(left.read_bytes()[:-1])
    done = invoke("perturb", "in", "-o", "out", *KEYED[:-1], *more)
    assert done.exit_code == 0, done.output
    assert ("continues: 1 of 6" in done.stderr) == (change == "bytes")
    assert change == "bytes" or "goes on" not in done.stderr
    assert invoke("perturb", "in", "-o", "other", *KEYED, *more).exit_code == 0
    one, other = bytes_of(folder / "out"), bytes_of(folder / "other")
    assert one.pop(REPORT) != other.pop(REPORT)
    assert one == other


def test_ids_of_files_that_were_taken_over_are_looked_at(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An id of the first file that comes again in the last one is found, whichever run made the first."""
    path = next(Path("in").rglob("people-005.parquet"))
    table = pa.parquet.read_table(path, partitioning=None)
    ids = pa.array([3, *table.column("id").to_pylist()[1:]])
    pa.parquet.write_table(table.set_column(table.column_names.index("id"), "id", ids), path)
    stopped(monkeypatch, "perturb", "in", "-o", "out", *KEYED)
    done = invoke("perturb", "in", "-o", "out", *KEYED)
    assert done.exit_code == 1
    assert "column 'id': an id comes up twice" in done.output
    assert not Path("out").exists()


def test_without_a_key_nothing_is_taken_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(monkeypatch, "perturb", "in", "-o", "out", "--plan", "plan.toml")
    left = bytes_of(folder / ".out.partial")
    done = invoke("perturb", "in", "-o", "out", "--plan", "plan.toml")
    assert done.exit_code == 0
    assert "goes on" not in done.stderr
    assert not set(left.values()) & set(bytes_of(folder / "out").values())


def test_one_run_at_a_time_writes_a_folder(folder: Path) -> None:
    with staging.staged(Path("out"), None):
        done = invoke("perturb", "in", "-o", "out", *KEYED)
    assert done.exit_code == 1
    assert "another run is writing it" in done.output


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("value", "people-003.parquet: row 2, column 'city': not one of the categories given"),
        ("id", "column 'id': an id comes up twice"),
        ("damaged", "people-003.parquet: not a Parquet file"),
        ("column", "people-003.parquet: has no column 'weight'"),
        ("type", "people-003.parquet: column 'city' holds int64, and string in the files before it"),
    ],
)
def test_what_is_wrong_in_one_file_leaves_nothing(folder: Path, wrong: str, words: str) -> None:
    path = next(Path("in").rglob("people-003.parquet"))
    table = pa.parquet.read_table(path, partitioning=None)
    place = table.column_names.index("city")
    if wrong == "value":
        table = table.set_column(place, "city", pa.array(["Rome", "Berne", *["Oslo"] * 48]))
    elif wrong == "id":
        table = table.set_column(table.column_names.index("id"), "id", pa.array([0, *range(10_000, 10_049)]))
    elif wrong == "column":
        table = table.drop_columns(["weight"])
    elif wrong == "type":
        table = table.set_column(place, "city", pa.array([1] * 50))
    pa.parquet.write_table(table, path)
    if wrong == "damaged":
        path.write_bytes(path.read_bytes()[:-7])
    done = invoke("perturb", "in", "-o", "out", *KEYED)
    assert done.exit_code in (1, 2)
    assert words in done.output
    assert "Berne" not in done.output
    assert {each.name for each in folder.iterdir()} == {"in", "plan.toml", "key"}


def test_a_file_that_changes_meanwhile_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = staging.Staging.keep

    def changed(self: Any, part: Any) -> None:
        keep(self, part)
        if len(self.finished) == 3:  # one that was read, and one that will be
            for name in ("people-000.parquet", "people-005.parquet"):
                path = next(Path("in").rglob(name))
                pa.parquet.write_table(pa.parquet.read_table(path, partitioning=None).slice(1), path)

    monkeypatch.setattr(staging.Staging, "keep", changed)
    done = invoke("perturb", "in", "-o", "out", *KEYED)
    assert done.exit_code == 1
    assert "changed while it was being read" in done.output
    assert not Path("out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("end", ["parquet", "csv", "csv.bz2", "arrow"])
def test_a_released_folder_is_verified_and_answers(folder: Path, end: str) -> None:
    assert invoke("perturb", "in", "-o", "out", *KEYED, "--to", end).exit_code == 0
    assert invoke("perturb", "in", "-o", f"one.{end}", *KEYED).exit_code == 0
    for given in (("out",), (f"out/{REPORT}", "out")):
        done = invoke("verify", *given)
        assert done.exit_code == 0, done.output
        assert "the folder matches the digest in the report, with its 6 files" in done.output
        assert "the folder has 300 rows, and the columns of the plan" in done.output
    more = ("--format", "csv", "--group-by", "survey")
    answers = [invoke("estimate", name, *more).stdout for name in ("out", f"one.{end}")]
    assert answers[0] == answers[1]
    assert answers[0].count("\n") == 19
    question = ("--mean", "height", "--by", "survey")
    asked = [invoke("estimate", name, *question).stdout for name in ("out", f"one.{end}")]
    assert asked[0] == asked[1]


def lies(folder: Path) -> None:
    """Let a row of one file come twice, and the report's digests agree with it."""
    report = json.loads((folder / REPORT).read_text())
    path = folder / report["files"][2]["name"]
    table = pa.parquet.read_table(path, partitioning=None)
    pa.parquet.write_table(pa.concat_tables([table, table.slice(0, 1)]), path)
    report["files"][2]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    report["output_sha256"] = canonical(report["files"])
    report["report_sha256"] = canonical({k: v for k, v in report.items() if k != "report_sha256"})
    (folder / REPORT).write_text(json.dumps(report))


def lies_of_all(folder: Path) -> None:
    """Let the digest of all files be another."""
    report = json.loads((folder / REPORT).read_text())
    report["output_sha256"] = "0" * 64
    report["report_sha256"] = canonical({k: v for k, v in report.items() if k != "report_sha256"})
    (folder / REPORT).write_text(json.dumps(report))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda out: next(out.rglob("*.parquet")).unlink(), "other files than the report"),
        (lambda out: (out / "more.parquet").touch(), "other files than the report"),
        (
            lambda out: next(out.rglob("*-00002.parquet")).write_bytes(b"PAR1"),
            "is NOT the file of the report",
        ),
        (lies, "has 51 rows, by the report 50"),
        (lies_of_all, "is NOT the folder of the report"),
    ],
    ids=["one less", "one more", "other bytes", "another count", "another digest"],
)
def test_a_folder_that_was_changed_is_found_out(folder: Path, change: Any, words: str) -> None:
    assert invoke("perturb", "in", "-o", "out", *KEYED).exit_code == 0
    change(Path("out"))
    done = invoke("verify", "out")
    assert done.exit_code == 1
    assert words in done.output
    if change is not lies:
        asked = invoke("estimate", "out")
        assert asked.exit_code in (1, 2)  # one more may be of no released folder
        assert "does not match" in asked.output or "not in the same" in asked.output


def test_a_plan_is_drafted_for_many_files(folder: Path) -> None:
    public = ("--interval", "height=0,250", "--categories", "survey=a,b")
    given = ("--epsilon", 2, "--columns", "height,survey", *public)
    for source in ("in", "in/*/*-001.parquet"):
        done = invoke("plan", source, *given)
        assert done.exit_code == 0, done.output


def test_folders_of_a_column_that_is_not_kept_are_refused(folder: Path) -> None:
    """Who shares a folder would share a file, whatever the mechanism says of the column."""
    TablePlan(plan().columns).write("plan.toml")
    done = invoke("perturb", "in", "-o", "out", *KEYED)
    assert done.exit_code == 2
    assert "column 'survey': the files are partitioned by it, and the plan does not keep it" in done.output
    assert invoke("perturb", "in", "-o", "out.parquet", *KEYED).exit_code == 0  # in which it is no column
    options = ("--mechanism", "grr", "--epsilon", 1, "--columns", "survey", "--categories", "a,b")
    for target in ("out", "one.parquet"):
        done = invoke("perturb", "in", "-o", target, *options)
        assert done.exit_code == 2
        assert "and the plan releases it" in done.output


def test_names_of_files_and_folders_do_not_leave(folder: Path) -> None:
    Path("in/survey=a/alice").mkdir()
    next(Path("in/survey=a").glob("*.parquet")).rename("in/survey=a/alice/bob.parquet")
    assert invoke("perturb", "in", "-o", "out", *KEYED).exit_code == 0
    said = "".join(bytes_of(folder / "out")) + (folder / "out" / REPORT).read_text()
    assert not {"alice", "bob", "people"} & {word for word in ("alice", "bob", "people") if word in said}


def test_a_folder_is_replaced_only_where_it_is_a_release(folder: Path) -> None:
    Path("out").mkdir()  # empty: nothing is lost
    assert invoke("perturb", "in", "-o", "out", *KEYED).exit_code == 0
    done = invoke("perturb", "in", "-o", "out", *KEYED)
    assert done.exit_code == 2
    assert "exists, and is not empty" in done.output
    assert invoke("perturb", "in", "-o", "out", *KEYED, "--force", "--to", "csv").exit_code == 0
    assert len(list(Path("out").rglob("*.csv"))) == 6
    assert not list(folder.glob(".*"))
    Path("out/mine.txt").write_text("mine")
    done = invoke("perturb", "in", "-o", "out", *KEYED, "--force")
    assert done.exit_code == 2
    assert "holds files that are not of a release" in done.output
    assert Path("out/mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("in", "-o", "in/out"), "the output is in the input's folder"),
        (("in/*/*.parquet", "-o", "in/"), "the input is in the output's folder"),
        (("none", "in", "-o", "out"), "none: no such file or folder"),
        (("in/*.parquet", "-o", "out"), "in/*.parquet: no files there"),
        (("in", "-", "-o", "out"), "standard input is one table"),
        (("in", "in/survey=a/people-000.parquet", "-o", "out"), "is named twice"),
        (("plan.toml", "key", "-o", "out"), "the suffix names no known format"),
        (("in", "-o", "no/out"), "the folder no does not exist"),
        (("in", "-o", "plan.toml/"), "is a file or a link"),
        (("in", "-o", "out", "--report", "r.json"), "the report of a folder is written into it"),
        (("in", "-o", "out", "--to", "npy"), "a folder holds tables"),
        (("s4://bucket/people", "-o", "out"), "no file system is known for it"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(folder: Path, given: tuple[str, ...], words: str) -> None:
    if given[0].startswith("s4"):
        pytest.importorskip("fsspec", reason='needs pip install "bitldp[remote]"')
    done = invoke("perturb", *given, *KEYED)
    assert done.exit_code == 2, done.output
    assert words in done.output.replace("\n", " ")
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("end", [".csv", ".csv.gz", ".csv.bz2", ".csv.zst", ".tsv.zst", ".arrow"])
def test_files_of_every_form_are_one_table(folder: Path, end: str) -> None:
    done = invoke("perturb", "in", "-o", "out", *KEYED, "--to", end[1:])
    assert done.exit_code == 0, done.output
    assert len(list(Path("out").rglob(f"*{end}"))) == 6
    options = ("--mechanism", "duchi", "--epsilon", 1, "--columns", "height", "--low", 0, "--high", 400)
    again = invoke("perturb", "out", "-o", "again.parquet", *options, "--keep", "survey", "-q")
    assert again.exit_code == 0, again.output
    assert pa.parquet.read_metadata("again.parquet").num_rows == 300


@pytest.mark.slow
def test_remote_files_are_read_where_they_are(folder: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason='needs pip install "bitldp[remote]"')
    memory = fsspec.filesystem("memory")
    for path in Path("in").rglob("*.parquet"):
        memory.pipe(f"/people/{path.relative_to('in')}", path.read_bytes())
    assert invoke("perturb", "in", "-o", "near", *KEYED).exit_code == 0
    locations = {
        "memory": "memory://people",
        "glob": "memory://people/**/*.parquet",
        "file": f"file://{folder}/in",
    }
    for name, location in locations.items():
        done = invoke("perturb", location, "-o", name, *KEYED)
        assert done.exit_code == 0, done.output
        assert rows_of(name) == rows_of("near")
    one = invoke("perturb", "memory://people/survey=a/people-000.parquet", "-o", "one.csv", *KEYED)
    assert one.exit_code == 2  # its folder says nothing of the one file
    assert "column 'survey'" in one.output


def test_a_remote_file_that_changes_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec", reason='needs pip install "bitldp[remote]"')
    memory, keep = fsspec.filesystem("memory"), staging.Staging.keep
    for path in Path("in").rglob("*.parquet"):
        memory.pipe(f"/people/{path.relative_to('in')}", path.read_bytes())
    last = "/people/survey=b/people-005.parquet"

    def changed(self: Any, part: Any) -> None:
        keep(self, part)
        memory.pipe(last, memory.cat("/people/survey=b/people-003.parquet"))

    monkeypatch.setattr(staging.Staging, "keep", changed)
    done = invoke("perturb", "memory://people", "-o", "out", *KEYED)
    assert done.exit_code == 1
    assert "people-005.parquet: changed while it was being read" in done.output


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_two_hundred_files_killed_half_way_are_gone_on_with(tmp_path: Path) -> None:
    """The process ends by SIGKILL with about half of the files there, twice; the bytes are of one run."""
    write(tmp_path / "in", files=200, rows=200)
    (tmp_path / "key").write_text("5eed" * 16)
    (tmp_path / "key").chmod(0o600)
    command = [sys.executable, "-m", "bitldp", "perturb", "in", *KEYED, "--ledger", "ledger.json", "-o"]

    def begin(*more: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*command, *more], cwd=tmp_path)

    assert begin("whole", "--budget", "9.5").wait(120) == 0
    for count in (60, 120):
        process = begin("out")
        deadline = time.monotonic() + 120
        while len(list((tmp_path / ".out.partial").rglob("part-*"))) < count:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
        assert not (tmp_path / "out").exists()
        assert len(list((tmp_path / ".out.partial").rglob("part-*"))) < 200
    assert begin("out").wait(120) == 0
    whole, again = bytes_of(tmp_path / "whole"), bytes_of(tmp_path / "out")
    reports = [json.loads(each.pop(REPORT)) for each in (whole, again)]
    assert again == whole
    assert len(whole) == 200
    same = [{**each, "output": "", "report_sha256": ""} for each in reports]
    for each in same:
        each.pop("ledger_state")
    assert same[0] == same[1]
    assert not list(tmp_path.glob(".*"))
    with Ledger.open(tmp_path / "ledger.json") as ledger:
        assert ledger.spent == plan().guarantee.record


def test_lists_and_times_of_many_files_are_released_and_verified(folder: Path) -> None:
    Path("lists").mkdir()
    for number in range(2):
        table = pa.table(
            {
                "id": range(number * 10, number * 10 + 10),
                "e": pa.FixedSizeListArray.from_arrays(pa.array([0.5] * 30), 3),
                "at": pa.array([86_400 * number] * 10, pa.timestamp("s")),
            }
        )
        pa.parquet.write_table(table, f"lists/{number}.parquet")
    columns = [
        Column(bitldp.Piecewise(epsilon=3.0, features=3, interval=(0.0, 1.0)), "e"),
        Column(bitldp.Duchi(epsilon=1.0, interval=(0.0, 9.0)), "at", unit="days"),
    ]
    for typed in (False, True):
        made = TablePlan(columns)
        (made.typed(pa.parquet.read_table("lists/0.parquet"), "id") if typed else made).write("plan.toml")
        done = invoke("perturb", "lists", "-o", f"out{typed}", *KEYED)
        assert done.exit_code == 0, done.output
        done = invoke("verify", f"out{typed}")
        assert done.exit_code == 0, done.output
        assert "e[0], e[1], e[2], at" in done.output.replace("\n", " ")
        assert invoke("estimate", f"out{typed}").exit_code == 0
