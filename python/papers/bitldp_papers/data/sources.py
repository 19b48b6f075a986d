"""Loaders of the data sets, one function each."""

from __future__ import annotations

import csv
import gzip
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bitldp.base.errors import missing
from numpy.typing import NDArray

from bitldp_papers.data.dataset import Dataset, DatasetError, Folder, Task

__all__ = ["LOADERS", "parts"]

CHECKSUMS = {
    "abalone": {
        "abalone_X.csv": "9ceb9ebd39e5be1262f6b547afa41ae5e92e3b5fae9fe4c04d533adbdc897198",
        "abalone_y.csv": "dfab615e21289d827ce1e776f2ce34a0a104ad73a1186cb1ea262d9a50d21701",
    },
    "adult": {
        "adult.data.gz": "52606dfba20eef26a660f1a0b5f33c122806f1d3aeba084dea04573aeaf6d09c",
        "adult.test.gz": "71d1fb1548a8a695a504ac37898e7d978fd0abaab1457843db4e42e321ba74ad",
    },
    "ag_news": {"minilm384_desc_f16.npz": "cc779bb4acb102d1aea3368b425787b9aafc29b7308c78b2e217a617feeca5d8"},
    "bank_marketing": {
        "bank-full.csv.gz": "1e68a5378485a3075569395db5b0c15e94fdcdf27b250b6a63f58009469a5bc0"
    },
    "fashion_mnist": {
        "train-images-idx3-ubyte.gz": "b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7",
        "train-labels-idx1-ubyte.gz": "0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056",
        "t10k-images-idx3-ubyte.gz": "cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa",
        "t10k-labels-idx1-ubyte.gz": "8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05",
    },
    "gowalla": {
        "data_gowalla.txt": "0e26e4f90eaa72d7b068c1d0483db8275c1f6db3333c9c9d4154daf4efe1945b",
        "data_gowalla_encode.txt": "43959620e2f384a9dfd0efc720bd17eb3260d721d9c78def740dcad4508bb865",
    },
    "mnist": {
        "train-images-idx3-ubyte.gz": "71524e2cd1ad2968737f7f2f2ff69cbfc32df8ccddff51593f7cb2d4e0eb5b64",
        "train-labels-idx1-ubyte.gz": "fe03b8bd7915f70bf5aa08be480aa413fbd85afcaa58b35d230d335f284fd88e",
        "t10k-images-idx3-ubyte.gz": "5634745efa576a17e7d4cf5cd9d09123c75e6538e5114267c2d156edaf519341",
        "t10k-labels-idx1-ubyte.gz": "ae18e77e031ccde52407f794d123116439864147d33ac992975f85dd4dc42af6",
    },
    "superconduct": {
        "datasetB_featurized.npz": "a737d99ee67ac76e283c639521b84cc3dcfd2b5092414742c4c3e4ddf0e8f6cb"
    },
}

# Minima and maxima of the published description of the set (scikit-learn, "Breast cancer Wisconsin
# (diagnostic)").
_BREAST_CANCER_LOW = (
    *(6.981, 9.71, 43.79, 143.5, 0.053, 0.019, 0.0, 0.0, 0.106, 0.05),
    *(0.112, 0.36, 0.757, 6.802, 0.002, 0.002, 0.0, 0.0, 0.008, 0.001),
    *(7.93, 12.02, 50.41, 185.2, 0.071, 0.027, 0.0, 0.0, 0.156, 0.055),
)
_BREAST_CANCER_HIGH = (
    *(28.11, 39.28, 188.5, 2501.0, 0.163, 0.345, 0.427, 0.201, 0.304, 0.097),
    *(2.873, 4.885, 21.98, 542.2, 0.031, 0.135, 0.396, 0.053, 0.079, 0.03),
    *(36.04, 49.54, 251.2, 4254.0, 0.223, 1.058, 1.252, 0.291, 0.664, 0.208),
)
# The same of "Wine recognition".
_WINE_LOW = (11.0, 0.74, 1.36, 10.6, 70.0, 0.98, 0.34, 0.13, 0.41, 1.3, 0.48, 1.27, 278.0)
_WINE_HIGH = (14.8, 5.80, 3.23, 30.0, 162.0, 3.88, 5.08, 0.66, 3.58, 13.0, 1.71, 4.0, 1680.0)

_ADULT = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
]
_ADULT_NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_BANK_NUMERIC = ("day", "campaign", "duration", "pdays", "previous", "age", "balance")


def parts(records: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the indices of the training and test records: four to one, in an order that never changes."""
    order = np.random.default_rng(20220425).permutation(records)
    return np.sort(order[records // 5 :]), np.sort(order[: records // 5])


def _split(
    name: str,
    task: Task,
    features: NDArray[Any],
    labels: NDArray[Any],
    columns: Sequence[str],
    ranges: tuple[Sequence[float], Sequence[float]] | None = None,
) -> Dataset:
    """Split records that come in one piece; ranges that are not given are learned from the training part."""
    train, test = parts(len(features))
    low, high = (features[train].min(axis=0), features[train].max(axis=0)) if ranges is None else ranges
    no_labels = labels[:0]
    return Dataset(
        name=name,
        task=task,
        train=features[train],
        test=features[test],
        train_labels=labels[train] if len(labels) else no_labels,
        test_labels=labels[test] if len(labels) else no_labels,
        low=np.asarray(low, np.float64),
        high=np.asarray(high, np.float64),
        public_ranges=ranges is not None,
        classes=int(labels.max()) + 1 if task == "classification" else 0,
        columns=tuple(columns),
    )


def _bundled(name: str, ranges: tuple[Sequence[float], Sequence[float]]) -> Dataset:
    if missing(["sklearn"]):
        raise DatasetError(f'{name} comes with scikit-learn: pip install "bitldp[papers]"')
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    columns = [str(column) for column in bunch.feature_names]
    return _split(name, "classification", bunch.data, bunch.target, columns, ranges)


def _digits(folder: Folder) -> Dataset:
    return _bundled(folder.name, ([0.0] * 64, [16.0] * 64))


def _breast_cancer(folder: Folder) -> Dataset:
    return _bundled(folder.name, (_BREAST_CANCER_LOW, _BREAST_CANCER_HIGH))


def _wine(folder: Folder) -> Dataset:
    return _bundled(folder.name, (_WINE_LOW, _WINE_HIGH))


def _file(folder: Folder, file: str) -> Path:
    return folder.verified(file, CHECKSUMS[folder.name])


def _rows(path: Path) -> list[list[str]]:
    """Return the rows of a (gzipped) CSV file, fields stripped, empty lines left out."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return [[field.strip() for field in row] for row in csv.reader(file) if row]


def _idx(path: Path) -> NDArray[np.uint8]:
    """Read the IDX format: two zero bytes, type 8 (unsigned byte), number of axes, each axis, the data."""
    with gzip.open(path, "rb") as file:
        zero, kind, axes = struct.unpack(">HBB", file.read(4))
        shape = struct.unpack(f">{axes}I", file.read(4 * axes))
        data = np.frombuffer(file.read(), np.uint8)
    if zero != 0 or kind != 8 or data.size != np.prod(shape):
        raise DatasetError(f"{path}: not an IDX file of bytes")
    return data.reshape(shape)


def _images(folder: Folder) -> Dataset:
    """Read MNIST, or Fashion-MNIST, which has its form."""
    train, train_labels, test, test_labels = (_idx(_file(folder, file)) for file in CHECKSUMS[folder.name])
    return Dataset(
        name=folder.name,
        task="classification",
        train=train.reshape(len(train), -1).astype(np.float32),
        test=test.reshape(len(test), -1).astype(np.float32),
        train_labels=train_labels.astype(np.int64),
        test_labels=test_labels.astype(np.int64),
        low=np.zeros(784),
        high=np.full(784, 255.0),
        public_ranges=True,
        classes=10,
        columns=tuple(f"pixel_{i // 28}_{i % 28}" for i in range(784)),
    )


def _mixed(
    header: Sequence[str], rows: list[list[str]], numeric: Sequence[str]
) -> tuple[NDArray[np.float32], list[str]]:
    """Return numbers as they are and other columns as one-hot columns, one for each value that occurs."""
    blocks: list[NDArray[np.float32]] = []
    columns: list[str] = []
    for index, name in enumerate(header):
        texts = np.array([row[index] for row in rows])
        if name in numeric:
            blocks.append(texts.astype(np.float32)[:, None])
            columns.append(name)
            continue
        values, codes = np.unique(texts, return_inverse=True)
        blocks.append(np.eye(len(values), dtype=np.float32)[codes])
        columns += [f"{name}={value}" for value in values]
    return np.hstack(blocks), columns


def _adult(folder: Folder) -> Dataset:
    train_rows = _rows(_file(folder, "adult.data.gz"))
    # The test file of the source starts with a comment line and ends each label with a full stop.
    test_rows = [row for row in _rows(_file(folder, "adult.test.gz")) if len(row) == len(_ADULT) + 1]
    features, columns = _mixed(_ADULT, train_rows + test_rows, _ADULT_NUMERIC)
    labels = np.array([row[-1].rstrip(".") == ">50K" for row in train_rows + test_rows], np.int64)
    train = features[: len(train_rows)]
    return Dataset(
        name="adult",
        task="classification",
        train=train,
        test=features[len(train_rows) :],
        train_labels=labels[: len(train_rows)],
        test_labels=labels[len(train_rows) :],
        low=train.min(axis=0).astype(np.float64),
        high=train.max(axis=0).astype(np.float64),
        public_ranges=False,
        classes=2,
        columns=tuple(columns),
    )


def _bank_marketing(folder: Folder) -> Dataset:
    header, *rows = _rows(_file(folder, "bank-full.csv.gz"))
    features, columns = _mixed(header[:-1], rows, _BANK_NUMERIC)
    return _split(
        "bank_marketing",
        "classification",
        features,
        np.array([row[-1] == "yes" for row in rows], np.int64),
        columns,
    )


def _abalone(folder: Folder) -> Dataset:
    _, *rows = _rows(_file(folder, "abalone_X.csv"))
    _, *targets = _rows(_file(folder, "abalone_y.csv"))
    columns = [
        "sex",
        "length",
        "diameter",
        "height",
        "whole_weight",
        "shucked_weight",
        "viscera_weight",
        "shell_weight",
    ]
    return _split(
        "abalone", "regression", np.array(rows, np.float64), np.array(targets, np.float64)[:, 0], columns
    )


def _gowalla(folder: Folder) -> Dataset:
    points = np.array(_rows(_file(folder, "data_gowalla.txt")), np.float64)
    return _split("gowalla", "locations", points, np.empty(0), ["first", "second"])


def _superconduct(folder: Folder) -> Dataset:
    # A stand-in for the UCI table: 132 Magpie features of 12,440 compositions and their critical
    # temperatures.
    with np.load(_file(folder, "datasetB_featurized.npz"), allow_pickle=False) as arrays:
        features, targets = arrays["X"], arrays["y"]
    return _split(
        "superconduct", "regression", features, targets, [f"magpie_{i}" for i in range(features.shape[1])]
    )


def _ag_news(folder: Folder) -> Dataset:
    with np.load(_file(folder, "minilm384_desc_f16.npz"), allow_pickle=False) as arrays:
        train, test = arrays["Xtr"].astype(np.float32), arrays["Xte"].astype(np.float32)
        labels, test_labels = arrays["ytr"].astype(np.int64), arrays["yte"].astype(np.int64)
    # The embeddings are normalised, so every coordinate lies in [-1, 1] by construction.
    width = train.shape[1]
    return Dataset(
        name="ag_news",
        task="classification",
        train=train,
        test=test,
        train_labels=labels - labels.min(),
        test_labels=test_labels - labels.min(),
        low=np.full(width, -1.0),
        high=np.full(width, 1.0),
        public_ranges=True,
        classes=int(labels.max() - labels.min()) + 1,
        columns=tuple(f"embedding_{i}" for i in range(width)),
    )


#: Loader of each data set.
LOADERS: dict[str, Callable[[Folder], Dataset]] = {
    "digits": _digits,
    "breast_cancer": _breast_cancer,
    "wine": _wine,
    "mnist": _images,
    "fashion_mnist": _images,
    "adult": _adult,
    "bank_marketing": _bank_marketing,
    "abalone": _abalone,
    "gowalla": _gowalla,
    "superconduct": _superconduct,
    "ag_news": _ag_news,
}
