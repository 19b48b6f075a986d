"""Runs of ``bitldp perturb --memoize``: days of one series, their reports, and what depends on the store."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

import bitldp
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from bitldp.cli.perturb import staging
from bitldp.ledger import Ledger
from bitldp.tables import Column, ReleaseKey, TablePlan
from support.command import invoke

WORDS = ("tea", "coffee", "milk")


def write(folder: Path, *values: int) -> None:
    """Write 300 records, of which the first tenth holds the given values in turn."""
    drinks = [WORDS[values[row % len(values)] if row < 30 else row % 3] for row in range(300)]
    pa.csv.write_csv(pa.table({"id": range(300), "drink": drinks}), folder / "people.csv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("private", "other", "out"):
        (tmp_path / name).mkdir()
    column = Column(bitldp.GRR(3, epsilon=1.0), "drink", categories=WORDS)
    TablePlan([column]).write(tmp_path / "plan.toml")
    (tmp_path / "private" / "key").write_text(ReleaseKey.new_text())
    (tmp_path / "private" / "key").chmod(0o600)
    write(tmp_path, 0)
    return tmp_path


def run(
    folder: Path,
    target: str,
    *more: object,
    store: str = "private/store",
    most: int = 2,
    source: str = "people.csv",
) -> Any:
    capped = ("--most", most, "--store", folder / store) if most else ()
    given = ("--plan", folder / "plan.toml", "--record", "id", "--key-file", folder / "private" / "key")
    return invoke(
        *("perturb", folder / source, "-o", folder / "out" / target, *given),
        *("--memoize", *capped, *more),
    )


def report(folder: Path, target: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "out" / f"{target}.privacy.json").read_text())
    return found


def rows(folder: Path, target: str) -> list[str]:
    """Return the reports of a file, or of a folder's files."""
    found: list[str] = pa.parquet.read_table(folder / "out" / target).column("drink").to_pylist()
    return found


def test_days_of_a_series_cost_what_the_cap_allows(folder: Path) -> None:
    ledger = folder / "people.ledger"
    for day in range(3):
        write(folder, day)
        begun = ("--budget", 2) if day == 0 else ()
        done = run(folder, f"{day}.parquet", "--snapshot", day, "--ledger", ledger, *begun)
        assert done.exit_code == 0, done.output
        assert "exact epsilon 1 a row, 2 over all snapshots" in done.output
    first, second, third = (rows(folder, f"{day}.parquet") for day in range(3))
    assert first[30:] == second[30:] == third[30:]
    assert first != second == third  # the third value has the report of the second
    with Ledger.open(ledger) as found:
        assert found.spent == 2.0
    checked = invoke("verify", folder / "out" / "2.parquet.privacy.json", folder / "out" / "2.parquet")
    assert checked.exit_code == 0, checked.output
    assert "all snapshots of the series: epsilon 2" in checked.output
    asked = invoke("estimate", folder / "out" / "2.parquet")
    assert "records that had more than 2 values" in asked.output
    asked = invoke("estimate", folder / "out" / "2.parquet", "--share", "drink", "--format", "csv")
    assert "records that had more than 2 values" in asked.output
    renewed = run(folder, "3.parquet", "--ledger", ledger, store="other/store")
    assert renewed.exit_code == 1  # a store that begins anew is charged anew
    assert not (folder / "out" / "3.parquet").exists()


def test_saved_counts_are_of_one_snapshot(folder: Path) -> None:
    """Also of text, which says nothing of days: the report beside it does."""
    for day, name in enumerate(("monday.csv", "tuesday.csv")):
        write(folder, day)
        assert run(folder, name, "--snapshot", name).exit_code == 0
    asked = ("--share", "drink", "--counts", folder / "counts.json")
    assert invoke("estimate", folder / "out" / "monday.csv", *asked).exit_code == 0
    refused = invoke("estimate", folder / "out" / "tuesday.csv", *asked)
    assert refused.exit_code == 1
    assert "another snapshot of a memoized release" in refused.output


def test_nothing_that_is_published_depends_on_the_store(folder: Path) -> None:
    """But the rows of those beyond the cap: the report says the same, and other rows are the same."""
    for day in range(3):
        write(folder, day)
        run(folder, f"before-{day}.parquet", "--snapshot", day)
    said = []
    for name, store in (("full", "private/store"), ("new", "other/store")):
        write(folder, 0, 1, 2)
        done = run(folder, "now.parquet", "--snapshot", "now", "--force", store=store)
        found = report(folder, "now.parquet")
        found.pop("output_sha256")
        found.pop("report_sha256")
        schema = pa.parquet.read_schema(folder / "out" / "now.parquet").metadata
        said.append((done.output, found, rows(folder, "now.parquet")[30:], schema))
        assert name
    assert said[0] == said[1]
    assert "store" not in json.dumps(report(folder, "now.parquet"))


def test_a_run_that_fails_is_made_again_with_the_same_rows(folder: Path) -> None:
    run(folder, "0.parquet")
    write(folder, 1)
    blocked = run(folder, "0.parquet")  # the output is there
    assert blocked.exit_code == 2
    table = pa.csv.read_csv(folder / "people.csv")
    pa.csv.write_csv(pa.concat_tables([table, table.slice(5, 1)]), folder / "people.csv")
    refused = run(folder, "1.parquet")
    assert refused.exit_code == 1
    assert "column 'id': an id" in refused.output
    write(folder, 2)
    assert run(folder, "2.parquet").exit_code == 0
    write(folder, 1)
    run(folder, "3.parquet")
    assert rows(folder, "2.parquet") == rows(folder, "3.parquet")  # 2 came second: nothing of 1 was kept


def test_without_a_cap_each_snapshot_is_charged(folder: Path) -> None:
    plan = TablePlan.read(folder / "plan.toml")
    refused = run(folder, "0.parquet", most=0)
    assert refused.exit_code != 0
    assert "state the types" in refused.output
    TablePlan(plan.columns, types={"drink": "text", "id": "text"}).write(folder / "plan.toml")
    for day in range(2):
        done = run(
            folder,
            f"{day}.parquet",
            *("--snapshot", day, "--ledger", folder / "ledger", *(("--budget", 5) if day == 0 else ())),
            most=0,
        )
        assert done.exit_code == 0, done.output
        assert "again for each value that a column takes" in done.output
        checked = invoke("verify", folder / "out" / f"{day}.parquet.privacy.json")
        assert checked.exit_code == 0, checked.output
        assert "there is no cap" in checked.output
    with Ledger.open(folder / "ledger") as found:
        assert found.spent == 2.0
    assert rows(folder, "0.parquet") == rows(folder, "1.parquet")
    write(folder, 1)
    refused = run(folder, "2.parquet", "--snapshot", 1, "--ledger", folder / "ledger", most=0)
    assert "data that changed is another snapshot" in refused.output


@pytest.mark.parametrize(
    ("name", "value", "verdict"),
    [
        ("epsilon_exact", 1.5, 1),
        ("most", 1, 1),
        ("given", "nothing", 1),
        ("series", "another", 1),
        ("more", 1, 1),
    ],
)
def test_a_report_that_says_less_of_the_series_is_false(
    folder: Path, name: str, value: Any, verdict: int
) -> None:
    from bitldp.tables.column import canonical_digest

    run(folder, "0.parquet", "--ledger", folder / "ledger", "--budget", 2)
    changed = report(folder, "0.parquet")
    changed["memoized"][name] = value
    changed.pop("report_sha256")
    path = folder / "out" / "0.parquet.privacy.json"
    path.write_text(json.dumps({**changed, "report_sha256": canonical_digest(changed)}))
    assert invoke("verify", path).exit_code == verdict


def test_a_moved_row_is_the_same_snapshot(folder: Path) -> None:
    """Also without memoizing; one that changed is not."""
    key = ("--record", "id", "--key-file", folder / "private" / "key", "--ledger", folder / "ledger")
    given = ("--plan", folder / "plan.toml", *key)
    first = invoke("perturb", folder / "people.csv", "-o", folder / "out" / "a.csv", *given, "--budget", 5)
    assert first.exit_code == 0, first.output
    table = pa.csv.read_csv(folder / "people.csv")
    moved = table.take(list(range(299, -1, -1))).append_column("more", pa.array(["x"] * 300))
    pa.csv.write_csv(moved, folder / "people.csv")
    again = invoke("perturb", folder / "people.csv", "-o", folder / "out" / "b.csv", *given)
    assert again.exit_code == 0, again.output
    a, b = (pa.csv.read_csv(folder / "out" / name).column("drink").to_pylist() for name in ("a.csv", "b.csv"))
    assert a == b[::-1]
    write(folder, 1)
    refused = invoke("perturb", folder / "people.csv", "-o", folder / "out" / "c.csv", *given)
    assert "data that changed is another snapshot" in refused.output


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--memoize"], "--record"),
        (["--record", "id", "--most", "2"], "go with --memoize"),
        (["--record", "id", "--memoize", "--most", "2"], "need each other"),
        (["--record", "id", "--memoize", "--most", "2", "--store", "OUT"], "in the folder of the output"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder: Path, given: list[str], said: str) -> None:
    named = [str(folder / "out" / "store") if each == "OUT" else each for each in given]
    key = ["--key-file", folder / "private" / "key"] if "--record" in given else []
    refused = invoke(
        *("perturb", folder / "people.csv", "-o", folder / "out" / "a.parquet"),
        *("--plan", folder / "plan.toml", *key, *named),
    )
    assert refused.exit_code == 2
    assert said in refused.output


# -- many files a snapshot


def parts(folder: Path, *values: int) -> None:
    """Write the records of `write` as six files in a folder; ids are texts, as they are of the one file."""
    write(folder, *values)
    table = pa.csv.read_csv(folder / "people.csv")
    table = table.set_column(0, "id", table.column("id").cast(pa.string()))
    (folder / "in").mkdir(exist_ok=True)
    for number in range(6):
        pa.parquet.write_table(table.slice(50 * number, 50), folder / "in" / f"{number}.parquet")


def run_many(folder: Path, target: str, *more: object, store: str = "private/store", most: int = 2) -> Any:
    """Release those files as a snapshot."""
    return run(folder, target, *more, store=store, most=most, source="in")


def files(folder: Path, target: str) -> dict[str, bytes]:
    """Return the files of a folder, but for its report."""
    return {path.name: path.read_bytes() for path in (folder / "out" / target).glob("part-*")}


class Killed(BaseException):
    """What a process that is killed sees of its end: nothing."""


@contextmanager
def killed(after: int) -> Iterator[None]:
    """Let a run to a folder end without a word when it has finished some files, or all but the folder."""
    keep, done = staging.Staging.keep, list[str]()

    def counted(self: Any, part: Any) -> None:
        if len(done) == after:
            raise Killed
        keep(self, part)
        done.append(part.name)

    def last(self: Any, *rest: Any) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staging.Staging, "keep", counted)
        patch.setattr(staging.Staging, "finish", last)
        patch.setattr(staging.Staging, "discard", lambda self: None)
        yield


def test_a_snapshot_of_many_files_is_that_of_one_file(folder: Path) -> None:
    """A folder, one file of many, and the one table, each with a store of its own: three days, two values."""
    for day in range(3):
        parts(folder, day, 0)
        for store in ("one", "folder", "joined"):
            (folder / store).mkdir(exist_ok=True)
        assert run(folder, f"{day}.parquet", store="one/store").exit_code == 0
        done = run_many(folder, f"{day}", store="folder/store")
        assert done.exit_code == 0, done.output
        assert "exact epsilon 1 a row, 2 over all snapshots" in done.output
        assert run_many(folder, f"many-{day}.parquet", store="joined/store").exit_code == 0
        one = rows(folder, f"{day}.parquet")
        assert rows(folder, f"{day}") == rows(folder, f"many-{day}.parquet") == one
    for given in (["2"], ["many-2.parquet.privacy.json", "many-2.parquet"]):
        checked = invoke("verify", *(folder / "out" / name for name in given))
        assert checked.exit_code == 0, checked.output
        assert "all snapshots of the series: epsilon 2" in checked.output
    asked = invoke("estimate", folder / "out" / "2", "--share", "drink")
    assert "records that had more than 2 values" in asked.output


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 1, 4, 6])
def test_a_killed_run_of_many_files_goes_on_to_the_same_bytes(folder: Path, after: int) -> None:
    """On the second day of two values at most, some of which the first day had; charged once."""
    ledger = ("--ledger", folder / "ledger")
    parts(folder, 0, 1)
    assert run_many(folder, "monday", *ledger, "--budget", 2).exit_code == 0
    shutil.copytree(folder / "private", folder / "copy")
    parts(folder, 1, 2, 0)
    assert run_many(folder, "whole", store="copy/store").exit_code == 0
    with killed(after):
        assert run_many(folder, "tuesday", *ledger).exit_code == 1
    assert not (folder / "out" / "tuesday").exists()
    done = run_many(folder, "tuesday", *ledger)
    assert done.exit_code == 0, done.output
    assert (f"continues: {after} of 6 files are there" in done.output) == bool(after)
    assert files(folder, "tuesday") == files(folder, "whole")
    with Ledger.open(folder / "ledger") as found:
        assert found.spent == 2.0
    for day, store in (("late", "private/store"), ("early", "copy/store")):  # and the stores hold the same
        parts(folder, 2, 1)
        assert run_many(folder, day, store=store).exit_code == 0
    assert files(folder, "late") == files(folder, "early")


def test_the_store_is_settled_before_the_folder_has_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, finish = list[int](), staging.Staging.finish

    def looked(self: Any, *rest: Any) -> None:
        with closing(sqlite3.connect(folder / "private" / "store")) as store:
            seen.extend(store.execute("SELECT COUNT(*) FROM sent").fetchone())
        finish(self, *rest)

    monkeypatch.setattr(staging.Staging, "finish", looked)
    parts(folder, 0)
    assert run_many(folder, "monday").exit_code == 0
    assert seen == [300]


@pytest.mark.slow
@pytest.mark.parametrize("other", ["file", "folder", "killed"])
def test_another_snapshot_meanwhile_is_as_if_the_killed_run_never_was(folder: Path, other: str) -> None:
    """Under a cap of one value the other snapshot's reports stay, also in the files that were finished."""
    (folder / "new").mkdir()
    parts(folder, 0)
    with killed(4):
        run_many(folder, "monday", most=1)
    parts(folder, 1)
    if other == "file":
        assert run(folder, "tuesday.parquet", most=1).exit_code == 0
    elif other == "folder":
        assert run_many(folder, "tuesday", most=1).exit_code == 0
    else:
        with killed(5):
            run_many(folder, "tuesday", most=1)
        assert run_many(folder, "tuesday", most=1).exit_code == 0
    assert run(folder, "alone.parquet", store="new/store", most=1).exit_code == 0
    tuesday = rows(folder, "tuesday.parquet" if other == "file" else "tuesday")
    assert tuesday == rows(folder, "alone.parquet")
    parts(folder, 0)
    done = run_many(folder, "monday", most=1)
    assert done.exit_code == 0, done.output
    assert "goes on" not in done.output
    assert rows(folder, "monday") == tuesday  # the one value that each record may have is that of tuesday


def test_many_files_with_one_id_twice_keep_nothing_in_mind(folder: Path) -> None:
    parts(folder, 0)
    wrong = pa.parquet.read_table(folder / "in" / "5.parquet")
    ids = pa.array(["3", *wrong.column("id").to_pylist()[1:]])
    pa.parquet.write_table(wrong.set_column(0, "id", ids), folder / "in" / "5.parquet")
    refused = run_many(folder, "monday", most=1)
    assert refused.exit_code == 1
    assert "an id comes up twice" in refused.output
    (folder / "new").mkdir()
    parts(folder, 1)
    for target, store in (("again", "private/store"), ("alone", "new/store")):
        assert run_many(folder, target, store=store, most=1).exit_code == 0
    assert files(folder, "again") == files(folder, "alone")


def test_many_files_without_a_cap_need_no_store(folder: Path) -> None:
    plan = TablePlan.read(folder / "plan.toml")
    TablePlan(plan.columns, types={"drink": "text", "id": "text"}).write(folder / "plan.toml")
    ledger = ("--ledger", folder / "ledger")
    for day in range(2):
        parts(folder, day)
        begun = ("--budget", 5) if day == 0 else ()
        if day:
            with killed(3):
                assert run_many(folder, "1", "--snapshot", day, *ledger, most=0).exit_code == 1
        done = run_many(folder, f"{day}", "--snapshot", day, *ledger, *begun, most=0)
        assert done.exit_code == 0, done.output
        assert ("continues: 3 of 6" in done.output) == bool(day)
    assert rows(folder, "0")[30:] == rows(folder, "1")[30:]
    with Ledger.open(folder / "ledger") as found:
        assert found.spent == 2.0


def test_a_store_in_the_folder_that_leaves_is_refused(folder: Path) -> None:
    parts(folder, 0)
    refused = run_many(folder, "day", store="out/day/store")
    assert refused.exit_code == 2
    assert "is in the output's folder" in refused.output
    assert not (folder / "out" / "day").exists()
