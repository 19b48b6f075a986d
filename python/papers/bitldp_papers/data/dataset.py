"""Type of a data set, and verified access to its files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dataset", "DatasetError", "Folder", "Task"]

Task = Literal["classification", "regression", "locations"]


class DatasetError(Exception):
    """Error for a data set that cannot be had: no folder, file or library, or another checksum."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Records in a training part and a test part.

    Attributes
    ----------
    name : str
    task : {"classification", "regression", "locations"}
    train, test : ndarray of float32 or float64, shape (n, features)
        Features in the units of the source; categorical ones are one-hot columns of 0 and 1.
    train_labels, test_labels : ndarray, shape (n,)
        Class numbers from 0 on, or targets of a regression; of shape (0,) for locations.
    low, high : ndarray of float64, shape (features,)
        Range of each feature.
    public_ranges : bool
        Whether the ranges come from a published description rather than from the records.
    classes : int
        Number of classes; 0 unless the task is classification.
    columns : tuple of str
        Name of each feature.
    targets : (float, float), optional
        Public range of the targets of a regression. None: it is learned from the training part.

    Raises
    ------
    ValueError
        If the sizes of the parts do not fit together.
    """

    name: str
    task: Task
    train: NDArray[Any]
    test: NDArray[Any]
    train_labels: NDArray[Any]
    test_labels: NDArray[Any]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    public_ranges: bool
    classes: int
    columns: tuple[str, ...]
    targets: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """Check the sizes."""
        if self.train.ndim != 2 or self.test.ndim != 2 or self.train.shape[1] != self.test.shape[1]:
            raise ValueError("test: must have as many features as train, both of shape (n, features)")
        width = self.train.shape[1]
        if self.low.shape != (width,) or self.high.shape != (width,) or len(self.columns) != width:
            raise ValueError(f"low, high, columns: {width} of each are needed, one for each feature")
        for name, labels, rows in (
            ("train_labels", self.train_labels, self.train),
            ("test_labels", self.test_labels, self.test),
        ):
            if labels.shape not in ((len(rows),), (0,)):
                raise ValueError(f"{name}: one is needed for each of {len(rows)} records, or none at all")

    def __repr__(self) -> str:
        """Return name and sizes; the records stay out of logs."""
        return (
            f"Dataset({self.name!r}: {self.task}, {len(self.train)} + {len(self.test)} records, "
            f"{self.train.shape[1]} features, {self.classes} classes)"
        )

    @property
    def majority(self) -> float:
        """Share of the test records that are of the training part's most frequent class; NaN without classes.

        What a classifier reaches that looks at no feature.
        """
        return self.majority_of(self.test_labels)

    def majority_of(self, labels: NDArray[Any]) -> float:
        """Return the same of other labels than those of all test records."""
        if not self.classes:
            return float("nan")
        most = np.bincount(self.train_labels, minlength=self.classes).argmax()
        return float(np.mean(labels == most))

    def scaled(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return training and test features mapped from [low, high] to [-1, 1], clipped, as float32.

        A feature whose range is one point becomes 0.
        """
        return self.scale(self.train), self.scale(self.test)

    def scale(self, x: NDArray[Any]) -> NDArray[np.float32]:
        """Return other records of the same features likewise, shape (n, features)."""
        width = np.where(self.high > self.low, self.high - self.low, 1.0)
        middle = np.where(self.high > self.low, self.low, self.low - 0.5)
        return np.clip((x - middle) / width * 2.0 - 1.0, -1.0, 1.0).astype(np.float32)


class Folder:
    """Files of one data set, verified when they are asked for."""

    def __init__(self, name: str, root: str | os.PathLike[str] | None) -> None:
        self.name = name
        self._root = root

    def verified(self, file: str, checksums: Mapping[str, str]) -> Path:
        """Return the path of `file` after comparing its SHA-256 with ``checksums[file]``."""
        root = os.environ.get("BITLDP_DATA") if self._root is None else self._root
        if not root:
            raise DatasetError(
                f"{self.name} is not bundled: set the environment variable BITLDP_DATA to the folder that "
                f"holds {self.name}/{file}"
            )
        path = Path(root) / self.name / file
        try:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise DatasetError(f"{path}: cannot be read ({error.strerror})") from None
        if digest != checksums[file]:
            raise DatasetError(
                f"{path}: has SHA-256 {digest}, not {checksums[file]}: another version or damaged"
            )
        return path
