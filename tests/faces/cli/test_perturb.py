"""``bitldp perturb`` on every format: what comes out, what the report says, that batches do not matter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest
from bitldp.cli.app import app
from bitldp.cli.perturb import plan as _plan
from typer.testing import CliRunner, Result

ROWS = 3 * 8192 + 77
COLOURS = ("red", "green", "blue")


def invoke(*arguments: object) -> Result:
    """Run the command line in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def perturb(source: Path, target: Path, *options: object) -> Result:
    """Run ``bitldp perturb`` and expect success."""
    result = invoke("perturb", source, "-o", target, *options)
    assert result.exit_code == 0, result.stderr
    return result


def make_table(rows: int = ROWS) -> pa.Table:
    """Return a table with a column of every kind."""
    rng = np.random.default_rng(11)
    return pa.table(
        {
            "name": [f"person {i}" for i in range(rows)],
            "height": rng.normal(0.0, 3.0, rows),
            "weight": rng.normal(0.0, 3.0, rows).astype(np.float32),
            "count": rng.integers(-9, 9, rows),
            "colour": pa.array(np.array(COLOURS)[rng.integers(0, 3, rows)]),
            "level": rng.integers(0, 5, rows).astype(np.int16),
            "member": rng.integers(0, 2, rows).astype(bool),
        }
    )


def write(table: pa.Table, path: Path) -> Path:
    """Write a table in the format of the suffix; ``.stream.arrow`` is the stream format."""
    if path.name.endswith(".stream.arrow"):
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=999)
    elif path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=5000)
    else:
        pa.feather.write_feather(table, path, chunksize=7000)
    return path


def read(path: Path) -> pa.Table:
    """Read a table back."""
    if path.suffix == ".csv":
        return pa.csv.read_csv(path)
    if path.suffix == ".parquet":
        return pa.parquet.read_table(path)
    return pa.feather.read_table(path)


def report_of(path: Path) -> dict[str, Any]:
    """Return the privacy report of an output."""
    report: dict[str, Any] = json.loads(path.with_name(path.name + ".privacy.json").read_text())
    return report


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return make_table()


@pytest.fixture(scope="module")
def parquet(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(table, tmp_path_factory.mktemp("data") / "people.parquet")


@pytest.mark.parametrize("source", ["a.csv", "a.parquet", "a.feather", "a.stream.arrow"])
@pytest.mark.parametrize("target", ["out.csv", "out.parquet", "out.arrow"])
def test_formats(table: pa.Table, tmp_path: Path, source: str, target: str) -> None:
    write(table, tmp_path / source)
    options = ("--mechanism", "frr", "--columns", "count,height", "--epsilon", 6, "--keep", "name")
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
    perturb(parquet, target, "--mechanism", "bitrand", *options, *budget, "--seed", 5)
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
    both = bitldp.BitRand(2, classes=3, epsilon_x=6.0, epsilon_y=1.5, bits=12, integer_bits=4)
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
    monkeypatch.setattr(_plan, "BATCH_BYTES", 1)
    perturb(parquet, tmp_path / "small.parquet", *common)
    assert read(tmp_path / "large.parquet").equals(read(tmp_path / "small.parquet"))


def test_fresh_keys_without_a_seed(parquet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Batches of a constant column would repeat if one of them reused a key.
    constant = write(pa.table({"x": np.zeros(4096)}), tmp_path / "constant.parquet")
    monkeypatch.setattr(_plan, "BATCH_BYTES", 16 * 1024)
    outputs = []
    for name in ("first.parquet", "second.parquet"):
        perturb(constant, tmp_path / name, "--mechanism", "frr", "--columns", "x", "--epsilon", 1)
        outputs.append(read(tmp_path / name).column("x").to_numpy().reshape(4, 1024))
    batches = np.concatenate(outputs)
    assert len(np.unique(batches, axis=0)) == 8
    assert report_of(tmp_path / "first.parquet")["seeded"] is False


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
    perturb(parquet, target, "--mechanism", mechanism, *options, *(("--m", 1) if mechanism == "brr" else ()))
    nearest = np.rint(np.clip(table.column("height").to_numpy(), -2, 2) * 2) / 2
    assert np.array_equal(read(target).column("height").to_numpy(), nearest)
    part = report_of(target)["mechanisms"][0]
    assert part["interval"] == [-2.0, 2.0]
    assert part["points"] == 9


def test_numbers_of_an_interval(table: pa.Table, parquet: Path, tmp_path: Path) -> None:
    common = ("--columns", "height,weight", "--low", -2, "--high", 2, "--epsilon", 6, "--seed", 5)
    mechanism = bitldp.ThreeOutputs(6.0, features=2, interval=(-2.0, 2.0))
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


def test_report(parquet: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    common = ("--columns", "height,weight", "--epsilon", 2, "--calibration", "paper")
    result = perturb(parquet, target, "--mechanism", "frr", *common, "--seed", 918273, "--keep", "level")
    assert "claimed epsilon 2 per record, but the exact one is" in result.stderr
    assert "--seed is for tests" in result.stderr
    text = target.with_name("out.csv.privacy.json").read_text()
    assert "918273" not in text
    report = json.loads(text)
    with pytest.warns(bitldp.PrivacyClaimWarning):
        mechanism = bitldp.FRR(2, epsilon=2.0, calibration="paper")
    part = report["mechanisms"][0]
    assert (report["rows"], report["seeded"], report["kept_unperturbed"]) == (ROWS, True, ["level"])
    assert (report["version"], report["isa"]) == (bitldp.__version__, bitldp._core.isa())
    assert part["epsilon_exact"] == {
        "bit": mechanism.guarantee.bit,
        "feature": mechanism.guarantee.feature,
        "record": mechanism.guarantee.record,
    }
    assert (part["epsilon_claimed"], part["holds"], part["columns"]) == (2.0, False, ["height", "weight"])
    assert report["total_per_record"]["holds"] is False
    assert part["step"] == 0.0625


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
        *("--epsilon", 3000, "--keep", "name", "--delimiter", ";"),
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


def test_the_report_has_the_condition_of_the_guarantee(parquet: Path, tmp_path: Path) -> None:
    options = ("--columns", "colour", "--categories", ",".join(COLOURS), "--epsilon", 2)
    for mechanism, given in (("oue", bitldp.OUE(3, epsilon=2.0).guarantee.given), ("grr", "")):
        target = tmp_path / f"{mechanism}.csv"
        result = perturb(parquet, target, "--mechanism", mechanism, *options)
        report = report_of(target)
        assert report["mechanisms"][0]["given"] == given
        assert report["total_per_record"]["given"] == given
        assert given in result.stdout
    assert report_of(tmp_path / "oue.csv")["total_per_record"]["given"]


def test_a_claim_of_each_column_adds_up(parquet: Path, tmp_path: Path) -> None:
    options = ("--epsilon", 8, "--unit", "feature")
    perturb(parquet, tmp_path / "frr.csv", "--mechanism", "frr", "--columns", "height,weight", *options)
    assert report_of(tmp_path / "frr.csv")["total_per_record"]["epsilon_claimed"] == 16.0
    columns = ("--columns", "colour", "--categories", ",".join(COLOURS))
    perturb(parquet, tmp_path / "grr.csv", "--mechanism", "grr", *columns, *options)
    assert report_of(tmp_path / "grr.csv")["mechanisms"][0]["claim_covers"] == "feature"
