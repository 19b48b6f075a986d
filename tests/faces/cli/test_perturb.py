"""``bitldp perturb`` on every format: what comes out, and that batches do not matter."""

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
from bitldp.cli.perturb import perturb as _perturb
from support.command import invoke
from support.tables import COLOURS, ROWS, SPELLED, perturb, read, report_of, write


@pytest.mark.parametrize("source", ["a.csv", "a.parquet", "a.feather", "a.stream.arrow"])
@pytest.mark.parametrize("target", ["out.csv", "out.parquet", "out.arrow"])
def test_formats(table: pa.Table, tmp_path: Path, source: str, target: str) -> None:
    write(table, tmp_path / source)
    options = ("--mechanism", "frr", "--columns", "count,height", "--epsilon", 6, "--keep", "name", *SPELLED)
    result = perturb(tmp_path / source, tmp_path / target, *options)
    assert "released as they are" in result.stderr
    assert "exact epsilon 6 a row" in result.stdout

    out = read(tmp_path / target)
    assert out.column_names == [
        "name",
        "height",
        "count",
    ]  # the order of the file; what is not named is dropped
    assert out.column("name").to_pylist() == table.column("name").to_pylist()
    for name in ("height", "count"):
        values = out.column(name).to_numpy()
        assert len(values) == ROWS
        assert not np.array_equal(values, table.column(name).to_numpy())
        assert np.abs(values).max() <= 31.9375
        assert np.array_equal(values * 16, np.rint(values * 16))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [source, target, target + ".privacy.json"]
    )


def test_equals_the_library(table: pa.Table, parquet: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.parquet"
    options = ("--columns", "height,weight", "--label", "colour", "--categories", ",".join(COLOURS))
    budget = ("--epsilon", 6, "--label-epsilon", 1.5, "--bits", 12, "--integer-bits", 4)
    perturb(parquet, target, "--mechanism", "bitrand", *options, *budget, "--seed", 5, *SPELLED)
    x = np.stack([table.column(name).to_numpy().astype(np.float64) for name in ("height", "weight")], axis=1)
    y = np.array([COLOURS.index(colour) for colour in table.column("colour").to_pylist()])
    seeds = np.random.SeedSequence(5).spawn(2)
    frr = bitldp.FRR(2, epsilon=6.0, bits=12, integer_bits=4)
    expected = frr.randomize(x, rng=seeds[0], output="values")
    labels = bitldp.LabelRR(3, epsilon=1.5).randomize(y, rng=seeds[1])
    out = read(target)
    assert out.column_names == ["height", "weight", "colour"]
    assert np.array_equal(out.column("height").to_numpy(), expected[:, 0])
    assert np.array_equal(out.column("weight").to_numpy(), expected[:, 1])
    assert out.column("colour").to_pylist() == [COLOURS[label] for label in labels]

    report = report_of(target)
    both = bitldp.BitRand(2, categories=3, epsilon_x=6.0, epsilon_y=1.5, bits=12, integer_bits=4)
    assert report["total_per_record"]["epsilon_exact"] == pytest.approx(both.guarantee.record, abs=1e-12)
    assert report["total_per_record"]["epsilon_claimed"] == 7.5


OPTIONS = [
    ("frr", "--columns", "height,weight,count", "--output", "codes"),
    (
        "frr",
        "--columns",
        "height,weight,count",
        "--output",
        "bits",
        "--label",
        "colour",
        "--label-epsilon",
        "1",
    ),
    ("moue", "--columns", "height"),
    ("uer", "--columns", "height,weight,count", "--calibration", "paper"),
    ("grr", "--columns", "colour,level", "--categories", "level=0..4"),
    ("oue", "--columns", "colour,level", "--categories", "level=0..4"),
    ("sue", "--columns", "level", "--categories", "level=0..4"),
    ("hybrid", "--columns", "height,count", "--low", "-9", "--high", "9"),
    (
        "piecewise",
        "--columns",
        "height,weight,count",
        "--low",
        "-9",
        "--high",
        "9",
        "--spend",
        "sample",
        "--k",
        "2",
    ),
    ("privunit", "--columns", "height,weight,count", "--low", "-9", "--high", "9"),
    ("sampled-signs", "--columns", "height,weight,count", "--low", "-9", "--high", "9", "--k", "2"),
    ("label-laplace", "--columns", "colour,level", "--categories", "level=0..4"),
    ("brr", "--columns", "height,count", "--low", "-9", "--high", "9", "--points", "40"),
    ("grr", "--columns", "height", "--low", "-9", "--high", "9", "--points", "40", "--output", "codes"),
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: f"{options[0]}-{options[2]}")
def test_seeded_output_does_not_depend_on_batches(
    parquet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    categorical = any("colour" in option for option in options)
    colours = ("--categories", f"colour={','.join(COLOURS)}") if categorical else ()
    common = ("--mechanism", *options, *colours, "--epsilon", 3, "--seed", 8, "--quiet")
    perturb(parquet, tmp_path / "large.parquet", *common)
    monkeypatch.setattr(_perturb, "BATCH_BYTES", 1)
    perturb(parquet, tmp_path / "small.parquet", *common)
    assert read(tmp_path / "large.parquet").equals(read(tmp_path / "small.parquet"))


def test_fresh_keys_without_a_seed(parquet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Batches of a constant column would repeat if one of them reused a key.
    constant = write(pa.table({"x": np.zeros(4096)}), tmp_path / "constant.parquet")
    monkeypatch.setattr(_perturb, "BATCH_BYTES", 16 * 1024)
    outputs = []
    for name in ("first.parquet", "second.parquet"):
        perturb(constant, tmp_path / name, "--mechanism", "frr", "--columns", "x", "--epsilon", 1)
        outputs.append(read(tmp_path / name).column("x").to_numpy().reshape(4, 1024))
    batches = np.concatenate(outputs)
    assert len(np.unique(batches, axis=0)) == 8
    assert report_of(tmp_path / "first.parquet")["seeded"] is False


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather"])
def test_no_rows(table: pa.Table, tmp_path: Path, suffix: str) -> None:
    source = write(table.slice(0, 0), tmp_path / f"in.{suffix}")
    target = tmp_path / "out.parquet"
    perturb(source, target, "--mechanism", "frr", "--columns", "height,weight", "--epsilon", 1)
    assert read(target).column_names == ["height", "weight"]
    assert read(target).num_rows == 0
    assert report_of(target)["rows"] == 0


def test_csv_dialects(tmp_path: Path) -> None:
    text = '\ufeffname;"x;1";y\r\n"a\nb"; 1.5 ;2\r\nc;-3e0;4\r\n'
    (tmp_path / "in.csv").write_bytes(text.encode())
    perturb(
        *(tmp_path / "in.csv", tmp_path / "out.csv", "--mechanism", "frr", "--columns", "x;1,y"),
        *("--epsilon", 3000, "--keep", "name", "--delimiter", ";", *SPELLED),
    )
    out = pa.csv.read_csv(
        tmp_path / "out.csv", parse_options=pa.csv.ParseOptions(delimiter=";", newlines_in_values=True)
    )
    assert out.to_pydict() == {"name": ["a\nb", "c"], "x;1": [1.5, -3.0], "y": [2.0, 4.0]}


def test_names_with_commas_quotes_and_spaces(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('"a,b", c ,d=e,"say ""x""", f,f \n1,2,hot,3,4,5\n')
    perturb(
        *(tmp_path / "in.csv", tmp_path / "out.csv", "--mechanism", "grr", "--epsilon", 120),
        *("--columns", "d=e", "--categories", 'd=e="a, b",hot', "--keep", ' "a,b" ,c, "say ""x""", " f"'),
    )
    assert pa.csv.read_csv(tmp_path / "out.csv").to_pydict() == {
        "a,b": [1],
        " c ": [2],
        "d=e": ["hot"],
        'say "x"': [3],
        " f": [4],
    }
    # Two columns differ in their spaces alone: neither is meant by a name without them.
    result = invoke(
        *("perturb", tmp_path / "in.csv", "-o", tmp_path / "o.csv", "--mechanism", "frr", "--epsilon", 1),
        *("--columns", "f"),
    )
    assert result.exit_code == 2
    assert "--columns f: no such column" in result.stderr
