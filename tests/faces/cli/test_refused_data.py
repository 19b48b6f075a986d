"""Data that ``bitldp perturb`` refuses: the row and the column, no value, and no file left behind."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from support.command import invoke
from support.refusals import FRR, GRR, PEOPLE, SECRET, refused
from typer.testing import Result

DATA = {
    "not a number": (lambda text: text.replace("41", f"x{SECRET}"), 1, "row 2, column 'age': not a number"),
    "empty": (lambda text: text.replace("29", ""), 1, "row 3, column 'age': missing value"),
    "NA": (lambda text: text.replace("29", "NA"), 1, "row 3, column 'age': missing value"),
    "nan": (lambda text: text.replace("29", "nan"), 1, "row 3, column 'age': missing value (NaN)"),
    "infinite": (lambda text: text.replace("29", "-inf"), 1, "row 3, column 'age': infinite value"),
    "few fields": (lambda text: text + f"{SECRET}\n", 1, "row 4 has 1 fields, where the header has 3"),
    "many fields": (lambda text: text + f"{SECRET},1,2,3\n", 1, "row 4 has 4 fields, where the header has 3"),
    "a blank line": (
        lambda text: text.replace("\nCyd", "\n\nCyd"),
        1,
        "row 3, column 'age': missing value",
    ),
    "no header": (lambda text: "", 1, "empty; a CSV file starts with a row of column names"),
    "twice in the header": (lambda text: text.replace("city", "age"), 2, "several columns of that name"),
    "a row too long": (lambda text: text + f'"{SECRET * 300_000}",1,2\n', 1, "a row longer than 1 MiB"),
}


@pytest.mark.parametrize(("spoil", "code", "fragment"), DATA.values(), ids=DATA)
def test_bad_rows_of_csv(people: Path, spoil: Callable[[str], str], code: int, fragment: str) -> None:
    people.write_text(spoil(PEOPLE))
    result = invoke("perturb", people, "-o", people.with_name("out.csv"), *FRR, "--columns", "age")
    refused(result, code, fragment)
    assert [path.name for path in people.parent.iterdir()] == ["people.csv"]


def test_text_that_is_dropped_may_be_anything(people: Path) -> None:
    people.write_bytes(PEOPLE.encode() + b"\xff\xfe,3,4\n")
    assert invoke("perturb", people, "-o", people.with_name("o.csv"), *FRR, "--columns", "age").exit_code == 0


def test_text_that_is_not_utf8_is_not_kept(people: Path) -> None:
    people.write_bytes(PEOPLE.encode() + b"\xff\xfe,3,4\n")
    result = invoke(
        "perturb", people, "-o", people.with_name("o.csv"), *FRR, "--columns", "age", "--keep", "name"
    )
    refused(result, 1, "not well-formed CSV in UTF-8")


@pytest.mark.slow
def test_values_outside_the_dictionary(people: Path, tmp_path: Path) -> None:
    people.write_text(PEOPLE.replace("Rome", SECRET))
    common = (*GRR, "--columns", "city", "--categories", "Paris,Rome")
    refused(
        invoke("perturb", people, "-o", tmp_path / "o.csv", *common), 1, "row 2, column 'city': not one of"
    )
    people.write_text(PEOPLE.replace("Rome", ""))
    refused(
        invoke("perturb", people, "-o", tmp_path / "o.csv", *common), 1, "row 2, column 'city': missing value"
    )


LATE = 30_000


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["parquet", "feather", "csv"])
@pytest.mark.parametrize("bad", [None, np.nan, np.inf])
def test_a_bad_row_late_in_the_file(tmp_path: Path, suffix: str, bad: float | None) -> None:
    values: list[float | None] = [0.0] * (LATE + 5)
    values[LATE - 1] = bad
    table = pa.table({"x": pa.array(values, pa.float32(), from_pandas=False)})
    source, target = tmp_path / f"in.{suffix}", tmp_path / f"out.{suffix}"
    if suffix == "parquet":
        pa.parquet.write_table(table, source)
    elif suffix == "feather":
        pa.feather.write_feather(table, source, chunksize=5000)
    else:
        source.write_text("x\n" + "".join(f"{'NA' if value is None else value}\n" for value in values))
    target.write_text("an older output")
    result = invoke("perturb", source, "-o", target, *FRR, "--columns", "x", "--force")
    refused(result, 1, f"row {LATE}, column 'x': ", "infinite" if bad == np.inf else "missing value")
    assert target.read_text() == "an older output"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([source.name, target.name])


@pytest.mark.slow
def test_bad_arrays(tmp_path: Path) -> None:
    source, target = tmp_path / "x.npy", tmp_path / "out.npy"

    def attempt(array: np.ndarray, *options: object) -> Result:
        np.save(source, array)
        return invoke("perturb", source, "-o", target, *options)

    x = np.zeros((50, 3))
    x[17, 2] = np.nan
    refused(attempt(x, *FRR), 1, "row 18, column '2': missing value (NaN)")
    refused(attempt(np.zeros((2, 3), np.int64), *FRR), 1, "a 2-D array of floats")
    refused(attempt(np.zeros((2, 3, 4)), *FRR), 1, "in 3 dimensions")
    refused(attempt(np.zeros((2, 3), complex), *FRR), 1, "complex128")
    refused(attempt(np.arange(5), *FRR), 2, "takes floats")
    refused(attempt(np.zeros((2, 3)), *FRR, "--columns", "3"), 2, "no such column")
    refused(attempt(np.zeros((2, 3)), *FRR, "--keep", "1"), 2, "are for tables")
    refused(attempt(np.zeros((2, 3)), *GRR, "--categories", "0..3"), 2, "one by one")
    refused(attempt(np.arange(5), *GRR, "--categories", "0..3"), 1, "row 5, column '0': not one of")
    refused(attempt(np.arange(5), *GRR, "--categories", "a,b"), 2, "--categories: column '0' holds int64")
    np.save(source, np.array([SECRET, None]), allow_pickle=True)
    refused(invoke("perturb", source, "-o", target, *FRR), 1, "not a complete .npy file")
    np.save(source, np.zeros((5000, 3)))
    source.write_bytes(source.read_bytes()[:-8])
    refused(invoke("perturb", source, "-o", target, *FRR), 1, "not a complete .npy file")
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "npy"])
def test_files_of_another_format(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / f"in.{suffix}"
    source.write_text(PEOPLE * 100)
    target = tmp_path / ("out.npy" if suffix == "npy" else "out.csv")
    refused(invoke("perturb", source, "-o", target, *FRR, "--columns", "age"), 1, ": not a")


@pytest.mark.slow
def test_damaged_parquet(tmp_path: Path) -> None:
    source = tmp_path / "in.parquet"
    pa.parquet.write_table(pa.table({"x": np.random.default_rng(1).normal(size=50_000)}), source)
    data = bytearray(source.read_bytes())
    data[1000:300_000] = b"\0" * 299_000
    source.write_bytes(data)
    refused(invoke("perturb", source, "-o", tmp_path / "o.csv", *FRR, "--columns", "x"), 1, "damaged Parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_columns_of_other_types(tmp_path: Path) -> None:
    source = tmp_path / "in.parquet"
    pa.parquet.write_table(pa.table({"when": pa.array([1, 2], pa.timestamp("s")), "x": [0.5, 1.5]}), source)
    target = tmp_path / "o.csv"
    refused(invoke("perturb", source, "-o", target, *FRR, "--columns", "when"), 2, "holds timestamp")
    refused(
        invoke("perturb", source, "-o", target, *GRR, "--columns", "x", "--categories", "0.5,1.5"),
        *(2, "holds double: categories are text, integers, booleans, dates or decimals"),
    )


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_blank_line_of_one_column_is_a_missing_value(tmp_path: Path, ends: str) -> None:
    source, target = tmp_path / "x.csv", tmp_path / "o.csv"
    for lines, row, problem in (
        (["x", "1", "", "3"], 2, "missing value"),
        (["x", "1", "3", ""], 3, "missing value"),
        (["x", "1", "2", "", "x"], 3, "missing value"),
        (["x", '"1"', '""'], 2, "missing value"),
    ):
        source.write_bytes("".join(line + ends for line in lines).encode())
        result = invoke("perturb", source, "-o", target, *FRR, "--columns", "x")
        refused(result, 1, f"row {row}, column 'x': {problem}")
    # Where a blank line is a category, it is one record, and the rows after it keep their numbers.
    source.write_bytes(ends.join(["x", "a", "", SECRET, ""]).encode())
    result = invoke("perturb", source, "-o", target, *GRR, "--columns", "x", "--categories", 'a,""')
    refused(result, 1, "row 3, column 'x': not one of the categories given")


@pytest.mark.slow
def test_a_bad_row_late_in_a_csv_file_has_its_number(tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_text("x,y\n" + '"a\nb",1\n' * 200_000 + f"{SECRET}\n")  # several blocks
    result = invoke("perturb", source, "-o", tmp_path / "o.csv", *FRR, "--columns", "y")
    refused(result, 1, "row 200001 has 1 fields, where the header has 2")


def test_a_file_of_text_is_not_an_arrow_file(tmp_path: Path) -> None:
    source = tmp_path / "in.arrow"
    source.write_text(PEOPLE)
    result = invoke("perturb", source, "-o", tmp_path / "o.csv", *FRR, "--columns", "age")
    refused(result, 1, "not an Arrow file")


def test_threads_of_arrow_hold_nothing_of_python(people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A thread that asks for the interpreter while it shuts down aborts the process, now and then. One whose
    # file was closed reads on, now and then, from the file that was opened next under the same number.
    opened, open_csv = [], pa.csv.open_csv

    def spy(source: object, **options: object) -> object:
        opened.append((source, options["parse_options"]))
        return open_csv(source, **options)

    monkeypatch.setattr(pa.csv, "open_csv", spy)
    people.write_text(PEOPLE.replace("41", SECRET + "x"))
    result = invoke("perturb", people, "-o", people.with_name("o.csv"), *FRR, "--columns", "age")
    refused(result, 1, "row 2, column 'age': not a number")
    ((source, options),) = opened
    assert isinstance(source, pa.OSFile)
    assert not source.closed
    assert options.invalid_row_handler is None


QUOTES = {
    "the last row": ('a,b\n1,"x\n2,y\n', "row 1 has a quote that is not closed"),
    "a later row": ('a,b\n1,"x"\n2,"y\n3,z\n', "row 2 has a quote that is not closed"),
    "at the very end": ('a,b\n1,x\n2,"', "row 2 has a quote that is not closed"),
    "the header": ('a,"b\n1,2\n', "the header has a quote that is not closed"),
}


@pytest.mark.parametrize(("text", "fragment"), QUOTES.values(), ids=QUOTES)
def test_a_quote_that_is_not_closed_swallows_nothing(tmp_path: Path, text: str, fragment: str) -> None:
    source = tmp_path / "x.csv"
    source.write_text(text)
    result = invoke("perturb", source, "-o", tmp_path / "o.csv", *FRR, "--columns", "a")
    refused(result, 1, fragment)
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]


def test_quotes_within_a_text_are_text(tmp_path: Path) -> None:
    source = tmp_path / "x.csv"
    source.write_text('a,b\n1,5\'11"\n2,"say ""x"""\n3,"two\nlines"\n')
    assert invoke("perturb", source, "-o", tmp_path / "o.csv", *FRR, "--columns", "a").exit_code == 0
    assert len((tmp_path / "o.csv").read_text().splitlines()) == 4


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet", "arrow", "stream.arrow", "npy"])
@pytest.mark.parametrize("change", ["shorter", "longer", "another", "later"])
def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, change: str
) -> None:
    from bitldp.cli.perturb import perturb as _perturb
    from bitldp.tables.codec import ColumnCodec
    from support.tables import write

    source, target = tmp_path / f"x.{form}", tmp_path / ("o.npy" if form == "npy" else "o.csv")
    x = np.linspace(0.0, 1.0, 40_000)
    if form == "npy":
        np.save(source, x)
    else:
        write(pa.table({"x": x}), source)
    monkeypatch.setattr(_perturb, "BATCH_BYTES", 1 << 14)
    randomize, done = ColumnCodec.randomize, []

    def spoil(codec: ColumnCodec, x: Any, *, first: int, **options: Any) -> object:
        if first and not done:
            done.append(first)
            stat = source.stat()
            if change == "shorter":
                os.truncate(source, stat.st_size - 1000)
            elif change == "longer":
                with source.open("ab") as file:
                    file.write(b"0.5\n" * 100)
            elif change == "another":
                source.rename(tmp_path / "y")
                source.write_bytes((tmp_path / "y").read_bytes())
                os.utime(source, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            else:
                os.utime(source, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000))
        return randomize(codec, x, first=first, **options)

    monkeypatch.setattr(ColumnCodec, "randomize", spoil)
    columns = () if form == "npy" else ("--columns", "x")
    result = invoke("perturb", source, "-o", target, *FRR, *columns)
    assert done
    assert result.exit_code == 1, result.output
    assert result.stderr.splitlines()[-1] == f"error: {source}: changed while it was being read"
    assert not target.exists()


@pytest.mark.parametrize("shape", [(-1,), (3, -2), (-(2**40), 2), (2**62, 4), (0, -1)])
def test_an_array_of_a_shape_that_cannot_be(tmp_path: Path, shape: tuple[int, ...]) -> None:
    source = tmp_path / "x.npy"
    with source.open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(64))
    result = invoke("perturb", source, "-o", tmp_path / "o.npy", *FRR)
    said = "its header states a negative length" if min(shape) < 0 else "not a complete .npy file"
    refused(result, 1, said)
