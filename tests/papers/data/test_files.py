"""Anybody's data: files of records with public ranges, through the commands and in Python."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("pyarrow", reason='needs pip install "bitldp[tables]"')
pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

import pyarrow as pa
from bitldp.cli import main
from bitldp_papers import get
from bitldp_papers.data import NEEDED, Dataset, DatasetError, load, names, read, using, vectors
from bitldp_papers.figures.making import make
from bitldp_papers.figures.registry import FigureEntry
from bitldp_papers.figures.result import FigureResult
from bitldp_papers.figures.running import FigureRun
from pyarrow import csv, parquet
from sklearn import datasets

HIGHEST = {
    **{"*radius": 40, "*texture": 50, "*perimeter": 260, "*area": 4300, "*smoothness": 0.25},
    **{"*compactness": 1.1, "*concavity": 1.3, "*concave points": 0.3, "*symmetry": 0.7, "*fractal*": 0.25},
    **{"area error": 600, "*error": 30},  # what no pattern above has; a whole name counts first
}
CANCER = {
    "intervals": {name: [0, high] for name, high in HIGHEST.items()},
    "categories": {"diagnosis": ["malignant", "benign"]},
}
DIABETES = {"intervals": {"target": [25, 346], "*": [-0.2, 0.2]}}


def exported(name: str, label: str, to: Path) -> Path:
    """Write a set of scikit-learn as it comes; the classes by their names."""
    bunch = getattr(datasets, f"load_{name}")()
    classes = getattr(bunch, "target_names", None)
    values = bunch.target if classes is None else np.asarray(classes)[bunch.target]
    columns = dict(zip(map(str, bunch.feature_names), bunch.data.T, strict=True))
    table = pa.table({**columns, label: values})
    (parquet.write_table if to.suffix == ".parquet" else csv.write_csv)(table, to)
    return to


def toml(known: dict[str, Any], to: Path) -> Path:
    parts = [f"[{part}]\n" + "".join(f'"{k}" = {v}\n' for k, v in known[part].items()) for part in known]
    to.write_text("".join(parts))
    return to


def bitldp(*arguments: object) -> int:
    with pytest.raises(SystemExit) as exit_of:
        main([*map(str, arguments)])
    return int(exit_of.value.code or 0)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_is_the_set_that_it_was_written_from(suffix: str, tmp_path: Path) -> None:
    found = read(
        exported("breast_cancer", "diagnosis", tmp_path / f"mine.{suffix}"), label="diagnosis", ranges=CANCER
    )
    known = load("breast_cancer")
    assert found.name == f"mine.{suffix}"
    assert found.columns == known.columns
    assert np.array_equal(found.train, known.train.astype(np.float32))
    assert np.array_equal(found.test_labels, known.test_labels)
    assert found.public_ranges
    assert found.low.tolist() == [0.0] * 30
    assert found.high[:5].tolist() == [40.0, 50.0, 260.0, 4300.0, 0.25]
    assert found.high[10:15].tolist() == [30.0, 30.0, 30.0, 600.0, 30.0]


def test_a_regression_and_a_test_file(tmp_path: Path) -> None:
    one = exported("diabetes", "target", tmp_path / "one.csv")
    found = read(one, label="target", ranges=DIABETES, test=one)
    assert found.task == "regression"
    assert found.targets == (25.0, 346.0)
    assert len(found.train) == len(found.test) == 442
    assert np.array_equal(found.train_labels, datasets.load_diabetes().target)
    narrow = read(one, label="target", ranges={"intervals": {"target": [100, 200], "*": [-0.2, 0.2]}})
    assert narrow.train_labels.min() == 100.0  # clipped: the range is public, the records are not
    assert narrow.train_labels.max() == 200.0


def test_categories_arrays_and_compressed_files(tmp_path: Path) -> None:
    known = {
        "intervals": {"age": [0, 120]},
        "categories": {"kind": ["a", "b", "c"], "ill": [0, 1]},
        "ignore": ["id"],
    }
    text = "id,age,kind,ill\n" + "7,30,b,0\n8,61,a,1\n" * 10
    (tmp_path / "mine.csv").write_text(text)
    with gzip.open(tmp_path / "mine.csv.gz", "wt") as file:
        file.write(text)
    for name in ("mine.csv", "mine.csv.gz"):
        found = read(tmp_path / name, label="ill", ranges=known, test=tmp_path / name)
        assert found.columns == ("age", "kind=a", "kind=b", "kind=c")
        assert found.train[:2].tolist() == [[30, 0, 1, 0], [61, 1, 0, 0]]
        assert found.train_labels[:2].tolist() == [0, 1]
    pool = vectors(tmp_path / "mine.csv", found.columns)
    assert np.array_equal(pool, found.train)
    # images of any shape, and vectors in a column of lists
    x = np.random.default_rng(1).random((40, 5, 3)).astype(np.float32)
    y = np.arange(40) % 2 == 1
    np.savez(tmp_path / "x.npz", x=x, y=y)
    table = {"x": pa.FixedSizeListArray.from_arrays(x.ravel(), 15), "y": y}
    parquet.write_table(pa.table(table), tmp_path / "x.parquet")
    public = {"intervals": {"x_*": [0, 1]}, "categories": {"y": [False, True]}}
    for name in ("x.npz", "x.parquet"):
        wide = read(tmp_path / name, label="y", ranges=public, test=tmp_path / name)
        assert np.array_equal(wide.train, x.reshape(40, 15))
        assert wide.train_labels.tolist() == y.tolist()
    np.savez(tmp_path / "pool.npz", anything=x[:7])
    assert np.array_equal(vectors(tmp_path / "pool.npz", wide.columns), x[:7].reshape(7, 15))


SECRET = "4711.25"


@pytest.mark.parametrize(
    ("text", "known", "fragment"),
    [
        ("a,y\n1,0\n", None, "ranges: none are given; what a column can hold is public"),
        ("a,y\n1,0\n", {"categories": {"y": [0, 1]}}, "ranges: 1 columns have none ('a'); what a column"),
        (
            ",a,y\n0,1,0\n",
            {"intervals": {"a": [0, 1]}},
            "columns have none (''); '' has no name, as the index",
        ),
        ("a,y\n1,0\n", {"intervals": {"a": [0, 1]}}, "the label 'y' has neither classes nor an interval"),
        ("a,y\n1,0\n", {"intervals": {"a": [1, 0]}}, "intervals of 'a' must be two numbers, low below"),
        ("a,y\n1,0\n", {"categories": {"y": [0]}}, "categories of 'y' must be two or more different"),
        (
            "a,y\n1,0\n",
            {"interval": {}},
            "ranges: has no 'interval'; there are intervals, categories, ignore",
        ),
        (f"{SECRET},y\n1,0\n", {"intervals": {"*": [0, 1]}}, "the first line of mine.csv must name"),
        (f"a,y\n{SECRET}x,0\n", {"intervals": {"*": [0, 1]}}, "the column 'a' must hold numbers"),
        ("a,y\n1,0\n,1\n", {"intervals": {"*": [0, 1]}}, "the column 'a' has missing values"),
        (f"a,y\n1,{SECRET}\n", {"intervals": {"a": [0, 1]}, "categories": {"y": [0, 1]}}, "'y' has values"),
        (f"a,y\n1,0\n{SECRET}\n", {"intervals": {"*": [0, 1]}}, "is no CSV file that can be read"),
        ("a,y\n", {"intervals": {"*": [0, 1]}}, "mine.csv must have columns of one length, above zero"),
        ("a,b\n1,0\n", {"intervals": {"*": [0, 1]}}, "label: 'y' is not a column of mine.csv"),
    ],
)
def test_errors_name_the_argument_and_no_value(text: str, known: Any, fragment: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(text)
    with pytest.raises((DatasetError, ValueError)) as caught:
        read(file, label="y", ranges=known)
    assert fragment in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(b"no")
    (tmp_path / "x.parquet").write_bytes(b"no")
    for name, fragment in (
        ("gone.csv", "cannot be read"),
        ("gone.npz", "cannot be read"),
        ("x.npz", "is not a file of plain arrays"),
        ("x.parquet", "is no Parquet file"),
        ("x.txt", "must be one of .csv, .csv.gz, .parquet, .npz"),
    ):
        with pytest.raises(DatasetError, match=fragment):
            read(tmp_path / name, label="y", ranges=CANCER)


@pytest.fixture
def mine() -> Dataset:
    return replace(load("wine"), name="mine")


def test_a_name_stands_for_a_set_while_it_is_used(mine: Dataset) -> None:
    with using(mine) as name:
        assert name == "mine"
        assert load("mine") is mine
        with using(mine) as again:
            assert again == "mine"
        other = replace(mine, train=mine.train + 1.0)
        with using(other) as second:
            assert second == "mine (2)"  # results that are kept by name are never of other records
            assert load(second) is other
        assert load("mine") is mine
    with pytest.raises(ValueError, match="no data set 'mine'"):
        load("mine")
    with using(replace(mine, name="wine")) as name:
        assert name == "wine (2)"


def test_a_system_runs_on_a_set_of_python(mine: Dataset, tmp_path: Path) -> None:
    system = get("honest")
    words = {"clients": 143, "rounds": 2, "features": "given", "pool": "test:20", "mechanism": "noiseless"}
    summary = system.run(system.configure(preset="quick", out=str(tmp_path), **words), data=mine)
    assert json.loads((tmp_path / "settings.json").read_text())["data"] == "mine"
    assert summary.majority is not None
    assert summary.score > summary.majority


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Write sets of scikit-learn as CSV and Parquet files, each with its ranges."""
    return {
        "cancer": exported("breast_cancer", "diagnosis", tmp_path / "cancer.csv"),
        "cancer ranges": toml(CANCER, tmp_path / "cancer.toml"),
        "diabetes": exported("diabetes", "target", tmp_path / "diabetes.parquet"),
        "diabetes ranges": toml(DIABETES, tmp_path / "ranges.toml"),  # beside the file
    }


def test_files_go_through_fl(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A CSV by a classification, a Parquet file by a regression, both by the learner of one report."""
    of_cancer = ("--data", files["cancer"], "--label", "diagnosis", "--ranges", files["cancer ranges"])
    few = ("--clients", "4", "--rounds", "2", "--mechanism", "noiseless", "--json")
    assert bitldp("fl", "mvu", "--quick", *of_cancer, *few, "--out", tmp_path / "a") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["majority"] == pytest.approx(0.61, abs=0.01)
    assert summary["rounds"] == 2
    assert (tmp_path / "a" / "plot.png").exists()
    trees = ("fl", "brr", "--quick", "--set", "task=trees", "--data", files["diabetes"], "--label", "target")
    assert bitldp(*trees, *few, "--out", tmp_path / "b") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["metric"] == "rmse"
    assert summary["score"] < 0.6  # of targets in [-1, 1] by their public range
    given = ("fl", "honest", *of_cancer, "--features", "given", "--pool", "test:50", "--epsilon", "8")
    assert bitldp(*given, "--rounds", "2", "--seeded", "--json", "--out", tmp_path / "c") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["score"] > 0.75  # .61 are benign
    assert json.loads((tmp_path / "c" / "settings.json").read_text())["clients"] == 456  # each record once
    assert "63 test records are" in summary["caveat"]
    assert bitldp("fl", "mvu", "--quick", *trees[5:], *few, "--out", tmp_path / "d") == 1
    assert "diabetes.parquet has no classes, which are needed" in capsys.readouterr().err


def test_files_go_through_attack_and_paper(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    of_cancer = ("--data", files["cancer"], "--label", "diagnosis", "--ranges", files["cancer ranges"])
    few = ("--trials", "10", "--repeats", "1", "--epsilon", "1")
    assert bitldp("attack", "membership", *of_cancer, *few, "--out", tmp_path / "a", "--json") == 0
    assert json.loads(capsys.readouterr().out)["parameters"]["data"] == "cancer.csv"
    assert bitldp("paper", "fedsel-2-a", "--data", "adult=x.txt", "--out", tmp_path / "b") == 2
    assert "--data adult=x.txt: must name a data file" in capsys.readouterr().err
    assert bitldp("paper", "fedsel-2-a", "--data", "iris=x.csv", "--out", tmp_path / "b") == 2
    assert "no data set 'iris'; there are " in capsys.readouterr().err
    assert bitldp("paper", "brr-m", "--quick", *of_cancer, "--out", tmp_path / "b", "--json") == 0
    (ended,) = json.loads(capsys.readouterr().out)
    assert ended["status"] == "skipped"
    assert "reads no set that the file" in ended["reason"]


def test_a_file_stands_for_a_set_of_a_figure(mine: Dataset, tmp_path: Path) -> None:
    def read_two(run: FigureRun) -> FigureResult:
        assert run.data("adult") is mine
        assert load("adult") is mine  # also for the runs of the figure
        run.data("wine")
        return FigureResult([{"records": len(mine.train)}], lambda canvas: None)

    entry = FigureEntry("own", "", "", "", (0.1, 0.1), read_two)
    document = make(entry, tmp_path / "any", given=("", mine))
    assert document["status"] == "skipped"
    assert "has the sets adult and wine: --data wine=FILE says which is meant" in document["reason"]
    document = make(entry, tmp_path / "one", given=("adult", mine))
    assert document["status"] == "done"
    assert document["given"] == "adult=mine"
    assert document["data"]["adult"] == {"given": "mine"}
    with pytest.raises(DatasetError):
        load("adult", folder=tmp_path)
    other = make(entry, tmp_path / "one", given=("wine", mine), resume=True)
    assert other["status"] != "done"  # a figure of other records is none to go on with


@pytest.mark.parametrize(
    ("arguments", "code", "fragment"),
    [
        (("fl", "mvu", "--label", "y"), 2, "--label: needs --data FILE"),
        (("fl", "mvu", "--data", "x.csv"), 2, "--label: required with --data x.csv"),
        (("fl", "mvu", "--data", "gone.csv", "--label", "y"), 1, "data: gone.csv: cannot be read"),
        (("fl", "mvu", "--pool", "test:5"), 2, "pool: mvu has no such setting"),
        (("fl", "honest", "--pool", "test:x"), 2, "pool: must be test:N, a file, or empty"),
    ],
)
def test_options_that_do_not_go_together(
    arguments: tuple[str, ...], code: int, fragment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bitldp(*arguments) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert fragment in line


def test_a_set_that_a_user_has_to_bring_says_which_file(
    mine: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, each in NEEDED.items():
        assert name not in names()
        with pytest.raises(DatasetError) as refused:
            load(name)
        text = str(refused.value)
        assert text.startswith(f"{name} needs FILE: {each.what}")
        for words in (each.source, each.form, f"--data {name}=FILE", "--label", "ranges.toml"):
            assert words in text
    with using(mine, instead_of="kdd99"):
        assert load("kdd99") is mine
    assert bitldp("fl", "mvu", "--data", "cifar10", "--out", tmp_path / "fl") == 1
    assert "cifar10 needs FILE" in " ".join(capsys.readouterr().err.split())
    assert bitldp("paper", "list") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in NEEDED)
