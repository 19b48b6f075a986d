"""Texts as other programs write them: blanks after commas, decimal commas, tabs, UTF-16, and compression."""

from __future__ import annotations

import bz2
import gzip
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer", reason='needs pip install "bitldp[cli]"')

import pyarrow as pa
import pyarrow.csv
from support.command import invoke

CITIES = ("--mechanism", "grr", "--epsilon", 40, "--columns", "city", "--categories", "Rome,Oslo", "-q")
HEIGHTS = ("--mechanism", "piecewise", "--epsilon", 1, "--columns", "height", "--low", 0, "--high", 300, "-q")


def test_blanks_after_commas_are_skipped_where_asked(tmp_path: Path) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("id, city, note\n1, Rome, a b\n2,\tOslo,\n3,Rome , c\n")
    done = invoke("perturb", source, "-o", target, *CITIES, "--keep", "note")
    assert done.exit_code == 1
    assert "row 1, column ' city': not one of the categories given" in done.output
    done = invoke("perturb", source, "-o", target, *CITIES, "--keep", "note", "--skip-blanks")
    assert "row 3, column 'city': not one of the categories" in done.output  # before the next comma
    source.write_text("id, city, note\n1, Rome, a b\n2,\tOslo,\n")
    assert invoke("perturb", source, "-o", target, *CITIES, "--keep", "note", "--skip-blanks").exit_code == 0
    table = pa.csv.read_csv(target)
    assert table.column_names == ["city", "note"]
    assert table.column("city").to_pylist() == ["Rome", "Oslo"]  # at epsilon 40
    assert table.column("note").to_pylist() == ["a b", ""]


def test_numbers_may_have_a_decimal_comma(tmp_path: Path) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("height;note\n170,5;1,5\n182;2\n")
    given = ("perturb", source, "-o", target, "--delimiter", ";", *HEIGHTS, "--keep", "note", "--seed", 1)
    done = invoke(*given)
    assert done.exit_code == 1
    assert "row 1, column 'height': not a number" in done.output
    assert invoke(*given, "--decimal", ",").exit_code == 0
    with_commas = target.read_text()
    assert "1,5" in with_commas  # what is kept is as it was
    source.write_text("height;note\n170.5;1,5\n182;2\n")
    assert invoke(*given, "--force").exit_code == 0
    assert target.read_text() == with_commas
    source.write_text("height;note\n170,5;1\n1.182;2\n")  # a thousand, or one and some?
    done = invoke(*given, "--force", "--decimal", ",")
    assert "row 2, column 'height': not a number" in done.output
    assert "1.182" not in done.output
    assert "must be a point or a comma" in invoke(*given, "--decimal", ";").output


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf_16_is_said_by_name(tmp_path: Path, encoding: str) -> None:
    source = tmp_path / "in.csv"
    source.write_bytes("city\nRome\n".encode(encoding))
    done = invoke("perturb", source, "-o", tmp_path / "out.csv", *CITIES)
    assert done.exit_code == 1
    assert (
        f"is text in {'UTF-32' if encoding == 'utf-32' else 'UTF-16'}; a CSV file is read in UTF-8"
        in done.output
    )


@pytest.mark.parametrize(
    ("delimiter", "words"), [("\t", "has tabs, which --from tsv takes"), (";", "--delimiter ';'")]
)
def test_another_delimiter_is_guessed_in_the_error(tmp_path: Path, delimiter: str, words: str) -> None:
    source = tmp_path / "in.csv"
    source.write_text(f"id{delimiter}city\n1{delimiter}Rome\n")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[[column]]\nmechanism = "GRR"\nparameters = { categories = 2, epsilon = 1.0 }\n'
        'columns = "city"\ncategories = ["Rome", "Oslo"]\n'
    )
    for given in (CITIES, ("--plan", plan)):
        done = invoke("perturb", source, "-o", tmp_path / "out.csv", *given)
        assert done.exit_code == 2
        assert words in done.output.replace("\n", " ")
        assert "Rome" not in done.output


@pytest.mark.parametrize("end", ["csv.gz", "csv.bz2", "csv.zst", "tsv.bz2", "tsv.zst"])
def test_compressed_texts_are_read_and_written(tmp_path: Path, end: str) -> None:
    text = "city\n" + "Rome\nOslo\n" * 500
    source = tmp_path / "in.csv"
    source.write_text(text)
    packed, back = tmp_path / f"packed.{end}", tmp_path / "back.csv"
    given = ("--seed", 1, *CITIES)
    assert invoke("perturb", source, "-o", packed, *given).exit_code == 0
    assert invoke("perturb", packed, "-o", back, *given).exit_code == 0
    assert pa.csv.read_csv(back).column("city").to_pylist() == ["Rome", "Oslo"] * 500
    unpack = {"gz": gzip.decompress, "bz2": bz2.decompress}.get(end[4:])
    if unpack is not None:
        assert unpack(packed.read_bytes()).splitlines()[1] == b'"Rome"'
    verified = invoke("verify", f"{packed}.privacy.json", packed)
    unread = end.endswith("zst") and sys.version_info < (3, 14)
    assert ("files compressed with zstd need Python 3.14" in verified.output) == unread
    assert invoke("estimate", packed).exit_code == 0
    packed.write_bytes(packed.read_bytes()[:-9])
    done = invoke("perturb", packed, "-o", tmp_path / "no.csv", *given)
    assert done.exit_code == 1
    assert "compressed data that are damaged, or end too early" in done.output
