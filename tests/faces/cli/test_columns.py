"""``bitldp perturb`` on every kind of column: categories, bits, points, intervals, a shared budget."""

from __future__ import annotations

from pathlib import Path

import bitldp
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest
from support.command import invoke
from support.tables import COLOURS, ROWS, perturb, read, report_of, write


# At epsilon 60 a wrong category has probability below 1e-24: what comes out is what went in.
@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
@pytest.mark.parametrize("mechanism", ["grr", "label-rr"])
def test_categories_come_back_as_labels(table: pa.Table, tmp_path: Path, suffix: str, mechanism: str) -> None:
    source = write(table, tmp_path / f"in.{suffix}")
    target = tmp_path / f"out.{suffix}"
    lists = ("colour=blue,red,green", "level=0..4", "member=true,false")
    options = [item for text in lists for item in ("--categories", text)]
    columns = ("--columns", "colour,level,member")
    perturb(source, target, "--mechanism", mechanism, *columns, *options, "--epsilon", 180)
    out = read(target)
    for name in ("colour", "level", "member"):
        values = out.column(name).cast(table.schema.field(name).type)
        assert values.to_pylist() == table.column(name).to_pylist()
    if suffix != "csv":
        assert out.schema == table.select(["colour", "level", "member"]).schema


def test_categories_as_codes_and_from_a_file(table: pa.Table, parquet: Path, tmp_path: Path) -> None:
    (tmp_path / "colours.txt").write_text("green\nblue\nred\n")
    target = tmp_path / "out.parquet"
    options = ("--categories-file", f"colour={tmp_path / 'colours.txt'}", "--output", "codes")
    perturb(parquet, target, "--mechanism", "grr", "--columns", "colour", *options, "--epsilon", 60)
    expected = [["green", "blue", "red"].index(colour) for colour in table.column("colour").to_pylist()]
    assert read(target).column("colour").to_pylist() == expected
    assert report_of(target)["mechanisms"][0]["categories"] == ["green", "blue", "red"]


@pytest.mark.parametrize("encoding", ["dictionary", "view", "large"])
def test_other_encodings_of_text(table: pa.Table, tmp_path: Path, encoding: str) -> None:
    column = table.column("colour")
    if encoding == "view" and not hasattr(pa, "string_view"):
        pytest.skip("this pyarrow has no string views")
    encoded = (
        column.dictionary_encode()
        if encoding == "dictionary"
        else column.cast(pa.string_view() if encoding == "view" else pa.large_string())
    )
    source = write(pa.table({"colour": encoded}), tmp_path / "in.feather")
    options = ("--mechanism", "grr", "--columns", "colour", "--categories", ",".join(COLOURS))
    perturb(source, tmp_path / "out.parquet", *options, "--epsilon", 60)
    assert read(tmp_path / "out.parquet").column("colour").to_pylist() == table.column("colour").to_pylist()


@pytest.mark.parametrize("mechanism", ["sue", "oue"])
def test_unary_reports_are_columns_of_bits(
    table: pa.Table, parquet: Path, tmp_path: Path, mechanism: str
) -> None:
    target = tmp_path / "out.csv"
    options = ("--columns", "colour,member", "--categories", ",".join(COLOURS), "--keep", "level")
    perturb(
        *(parquet, target, "--mechanism", mechanism, *options, "--epsilon", 8),
        *("--categories", "member=false,true"),
    )
    out = read(target)
    names = ["colour=red", "colour=green", "colour=blue", "level", "member=false", "member=true"]
    assert out.column_names == names
    bits = np.stack([out.column(name).to_numpy() for name in names[:3]], axis=1)
    estimate = getattr(bitldp, mechanism.upper())(3, epsilon=4.0).estimate_frequencies(bits)
    truth = np.bincount([COLOURS.index(c) for c in table.column("colour").to_pylist()]) / ROWS
    # n = 24,653; six standard errors: alpha below 1e-8 for the three together.
    assert np.all(np.abs(estimate.value - truth) < 6 * estimate.stderr)
    assert report_of(target)["total_per_record"]["epsilon_exact"] == pytest.approx(8.0)


@pytest.mark.parametrize("mechanism", ["brr", "grr"])
def test_numbers_on_points(table: pa.Table, parquet: Path, tmp_path: Path, mechanism: str) -> None:
    target = tmp_path / "out.parquet"
    options = ("--columns", "height", "--low", -2, "--high", 2, "--points", 9, "--epsilon", 60)
    one = ("--m", 1) if mechanism == "brr" else ()
    perturb(parquet, target, "--mechanism", mechanism, *options, *one, "--decode", "reported")
    nearest = np.rint(np.clip(table.column("height").to_numpy(), -2, 2) * 2) / 2
    assert np.array_equal(read(target).column("height").to_numpy(), nearest)
    part = report_of(target)["mechanisms"][0]
    assert part["interval"] == [-2.0, 2.0]
    assert part["points"] == 9


def test_numbers_of_an_interval(table: pa.Table, parquet: Path, tmp_path: Path) -> None:
    common = ("--columns", "height,weight", "--low", -2, "--high", 2, "--epsilon", 6, "--seed", 5)
    mechanism = bitldp.ThreeOutputs(epsilon=6.0, features=2, interval=(-2.0, 2.0))
    x = np.stack([table.column(name).to_numpy() for name in ("height", "weight")], axis=1)
    seed = np.random.SeedSequence(5).spawn(1)[0]
    for output in ("values", "codes"):
        target = tmp_path / f"{output}.parquet"
        result = perturb(parquet, target, "--mechanism", "three-outputs", *common, "--output", output)
        assert "numbers outside -2 .. 2 move to the ends" in result.stderr
        found = np.stack([read(target).column(name).to_numpy() for name in ("height", "weight")], axis=1)
        assert np.array_equal(found, mechanism.randomize(x, rng=seed, output=output))
        part = report_of(target)["mechanisms"][0]
        assert part["interval"] == [-2.0, 2.0]
        assert part["epsilon_exact"]["record"] == mechanism.guarantee.record
        assert part.get("letters", []) == ([] if output == "values" else mechanism.letters.tolist())


def test_warner(table: pa.Table, parquet: Path, tmp_path: Path) -> None:
    options = ("--mechanism", "warner-rr", "--columns", "member", "--categories", "no,yes", "--epsilon", 60)
    refused = invoke("perturb", parquet, "-o", tmp_path / "out.csv", *options)
    assert refused.exit_code == 2
    assert "holds bool" in refused.stderr
    options = (*options[:5], "false,true", *options[6:])
    perturb(parquet, tmp_path / "out.csv", *options)
    assert read(tmp_path / "out.csv").column("member").to_pylist() == table.column("member").to_pylist()


def test_a_budget_is_split_over_columns(parquet: Path, tmp_path: Path) -> None:
    lists = (
        "--categories",
        ",".join(COLOURS),
        "--categories",
        "level=0..4",
        "--categories",
        "member=true,false",
    )
    common = ("--mechanism", "grr", "--columns", "colour,level,member", *lists, "--epsilon", 0.7)
    perturb(parquet, tmp_path / "record.csv", *common)
    total = report_of(tmp_path / "record.csv")["total_per_record"]
    assert 0.69999 < total["epsilon_exact"] <= 0.7
    assert total["holds"] is True
    perturb(parquet, tmp_path / "feature.csv", *common, "--unit", "feature")
    assert report_of(tmp_path / "feature.csv")["total_per_record"]["epsilon_exact"] == pytest.approx(2.1)
