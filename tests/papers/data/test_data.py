"""Data sets: shapes, ranges and splits; a missing folder, a missing file, a wrong checksum."""

from __future__ import annotations

import gzip
import hashlib
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from bitldp_papers import data
from bitldp_papers.data import sources
from bitldp_papers.data.dataset import Folder

pytest.importorskip("sklearn")

BUNDLED = {"digits": (1438, 359, 64, 10), "breast_cancer": (456, 113, 30, 2), "wine": (143, 35, 13, 3)}
FOLDER = {
    "mnist": (60_000, 10_000, 784, 10),
    "fashion_mnist": (60_000, 10_000, 784, 10),
    "adult": (32_561, 16_281, 108, 2),
    "bank_marketing": (36_169, 9_042, 51, 2),
    "abalone": (3_342, 835, 8, 0),
    "gowalla": (800, 200, 2, 0),
    "superconduct": (9_952, 2_488, 132, 0),
    "ag_news": (8_000, 7_600, 384, 4),
}


def check(name: str, train: int, test: int, features: int, classes: int) -> data.Dataset:
    """Check what every data set promises."""
    found = data.load(name)
    assert found.train.shape == (train, features)
    assert found.test.shape == (test, features)
    assert found.low.shape == found.high.shape == (features,)
    assert len(found.columns) == features
    assert found.classes == classes
    if classes:
        assert set(np.unique(found.train_labels)) == set(range(classes))
    elif found.task == "regression":
        assert found.train_labels.shape == (train,)
        assert found.test_labels.shape == (test,)
    for part in found.scaled():
        assert part.dtype == np.float32
        assert np.abs(part).max() <= 1.0
    sizes = f"{train} + {test} records, {features} features, {classes} classes"
    assert repr(found) == f"Dataset({name!r}: {found.task}, {sizes})"
    return found


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled(name: str) -> None:
    found = check(name, *BUNDLED[name])
    assert found.public_ranges
    # The published ranges are rounded to three digits or so.
    assert np.all(found.train >= found.low * 0.995 - 6e-4)
    assert np.all(found.train <= found.high * 1.005 + 6e-4)
    assert np.array_equal(found.train, data.load(name).train)


@pytest.mark.skipif("BITLDP_DATA" not in os.environ, reason="BITLDP_DATA does not name a folder of data sets")
@pytest.mark.parametrize("name", FOLDER)
def test_folder(name: str) -> None:
    if not (Path(os.environ["BITLDP_DATA"]) / name).is_dir():
        pytest.skip(f"{name} is not in BITLDP_DATA")
    check(name, *FOLDER[name])


def test_names() -> None:
    made = {name for name in data.names() if name.startswith("syn-")}
    assert len(made) == 8
    assert set(data.names()) == set(BUNDLED) | set(FOLDER) | made
    with pytest.raises(ValueError, match="no data set 'iris'"):
        data.load("iris")


def test_scaling_of_a_constant_feature() -> None:
    empty = np.empty(0)
    x = np.array([[0.0, 5.0], [10.0, 5.0], [20.0, 5.0]])
    found = data.Dataset(
        *("made", "regression", x, x, empty, empty, np.array([0.0, 5.0]), np.array([10.0, 5.0]), True, 0),
        ("a", "b"),
    )
    assert found.scaled()[0].tolist() == [[-1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]


def test_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BITLDP_DATA", raising=False)
    with pytest.raises(data.DatasetError, match="set the environment variable BITLDP_DATA to the folder"):
        data.load("mnist")
    monkeypatch.setenv("BITLDP_DATA", str(tmp_path))
    with pytest.raises(data.DatasetError, match=r"abalone_X.csv: cannot be read \(No such file"):
        data.load("abalone")
    (tmp_path / "gowalla").mkdir()
    (tmp_path / "gowalla" / "data_gowalla.txt").write_text("1,2\n")
    with pytest.raises(data.DatasetError, match="another version or damaged"):
        data.load("gowalla", folder=tmp_path)


def test_idx_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    arrays = {
        "train-images-idx3-ubyte.gz": rng.integers(0, 256, (20, 28, 28)),
        "train-labels-idx1-ubyte.gz": np.arange(20) % 10,
        "t10k-images-idx3-ubyte.gz": rng.integers(0, 256, (10, 28, 28)),
        "t10k-labels-idx1-ubyte.gz": np.arange(10),
    }
    (tmp_path / "mnist").mkdir()
    checksums = {}
    for name, array in arrays.items():
        header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
        content = gzip.compress(header + array.astype(np.uint8).tobytes())
        (tmp_path / "mnist" / name).write_bytes(content)
        checksums[name] = hashlib.sha256(content).hexdigest()
    monkeypatch.setitem(sources.CHECKSUMS, "mnist", checksums)
    found = data.load("mnist", folder=tmp_path)
    assert np.array_equal(found.train, arrays["train-images-idx3-ubyte.gz"].reshape(20, 784))
    assert np.array_equal(found.test_labels, np.arange(10))
    assert found.scaled()[1].min() >= -1.0

    short = gzip.compress(struct.pack(">HBBI", 0, 8, 1, 99) + b"abc")
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").write_bytes(short)
    checksums["t10k-labels-idx1-ubyte.gz"] = hashlib.sha256(short).hexdigest()
    with pytest.raises(data.DatasetError, match="not an IDX file of bytes"):
        data.load("mnist", folder=tmp_path)


def test_mixed_columns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    header = "poutcome,job,marital,education,default,housing,loan,contact,"
    header += "day,month,campaign,duration,pdays,previous,age"
    row = "unknown,{job},married,tertiary,no,yes,no,unknown,5,may,1,261,-1,0,{age}"
    text = header + ",balance,y\n"
    for i in range(10):
        text += row.format(job=("clerk", "cook")[i % 2], age=20 + i) + f",{i},{('no', 'yes')[i % 2]}\n"
    content = gzip.compress(text.encode())
    (tmp_path / "bank_marketing").mkdir()
    (tmp_path / "bank_marketing" / "bank-full.csv.gz").write_bytes(content)
    checksum = {"bank-full.csv.gz": hashlib.sha256(content).hexdigest()}
    monkeypatch.setitem(sources.CHECKSUMS, "bank_marketing", checksum)
    found = data.load("bank_marketing", folder=tmp_path)
    assert not found.public_ranges
    place = found.columns.index("job=cook")
    everything = np.concatenate([found.train, found.test])
    labels = np.concatenate([found.train_labels, found.test_labels])
    assert np.array_equal(everything[:, place], labels)  # the cooks are those who said yes
    assert sorted(everything[:, found.columns.index("age")]) == list(range(20, 30))
    assert (len(found.train), len(found.test)) == (8, 2)


def test_verified_reads_only_the_named_file(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "x").write_bytes(b"content")
    checksum = hashlib.sha256(b"content").hexdigest()
    assert Folder("made", tmp_path).verified("x", {"x": checksum}) == tmp_path / "made" / "x"
