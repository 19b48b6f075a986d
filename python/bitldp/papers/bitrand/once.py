"""Records released once at an epsilon that is true, and a linear classifier of what the reports are worth.

A record is a feature vector x in a ball and a class c. Let s_1, ..., s_C be the corners of a regular simplex of
C - 1 dimensions. The classifier needs one matrix alone, A = E[x s_c'], of r rows and C - 1 columns: A s_j is,
for classes that are equally frequent, (mean of class j - mean of all)/(C - 1), and the class predicted for t is
the j with the largest t'A s_j. A is a mean over records, so an unbiased report of each record is all that is
asked of a client, and the server's arithmetic is a sum: nothing is left to debias afterwards.

Two ways to report x s_c' at epsilon for the whole record, of which `plan` takes the one with less noise:

- "joint": the r (C - 1) numbers of x s_c', a vector of the same norm as x, through `CrossPolytope` at epsilon;
- "split": x through `CrossPolytope` at one share, c through `LabelRR` at the other; the product of the unbiased
  decodes is unbiased, since their noises are independent.

Everything that is chosen follows from r, C, epsilon and the radius, which are public.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

import bitldp
from bitldp.mechanism.base import Mechanism

__all__ = ["Plan", "corners", "cross", "in_ball", "packed", "plan", "predicted", "scores_of"]

_SHARES = 24  # splits of epsilon that are compared


@lru_cache(maxsize=64)
def corners(classes: int) -> NDArray[np.float64]:
    """Return the corners of a regular simplex around 0, unit rows, shape (classes, classes - 1)."""
    centred = np.eye(classes) - 1.0 / classes
    basis = np.linalg.svd(centred)[2][: classes - 1]
    found: NDArray[np.float64] = centred @ basis.T
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    found.flags.writeable = False
    return found


@dataclass(frozen=True)
class Plan:
    """What releases a record, and how noisy that makes the classifier.

    Attributes
    ----------
    joint : bool
        Whether features and label are one vector.
    features : Mechanism
        `CrossPolytope` of x s_c', or of x.
    labels : Mechanism or None
        `LabelRR`, for what is released apart.
    noise : float
        Mean squared error of a record's report of x s_c', summed over its entries, at the radius.
    epsilon : float
        Exact epsilon of a record.
    """

    joint: bool
    features: Mechanism
    labels: Mechanism | None
    noise: float
    epsilon: float

    def __str__(self) -> str:
        """Return the choice in a sentence."""
        if self.labels is None:
            return "features and label as one vector of CrossPolytope"
        one, other = self.features.guarantee.record, self.labels.guarantee.record
        return f"CrossPolytope features at {one:.3g} and label-RR at {other:.3g}"


def _gain(labels: Mechanism, classes: int) -> float:
    """Return p - q of a randomized label: the mean report of class c is gain s_c."""
    law = labels.probabilities()  # type: ignore[attr-defined]
    return float(law[0, 0] - law[0, 1]) if classes > 1 else 1.0


def _split(features: int, classes: int, one: float, other: float, radius: float) -> Plan:
    vectors = bitldp.CrossPolytope(features, epsilon=one, radius=radius)
    labels = bitldp.LabelRR(classes, epsilon=other)
    length = radius**2
    noise = (vectors.total_variance() + length) / _gain(labels, classes) ** 2 - length
    return Plan(False, vectors, labels, noise, vectors.guarantee.record + labels.guarantee.record)


@lru_cache(maxsize=64)
def plan(features: int, classes: int, epsilon: float, radius: float, way: str = "best") -> Plan:
    """Return the way to release a record with the least noise, found without any data.

    Parameters
    ----------
    features, classes : int
        r and C, 1 and 2 or more.
    epsilon : float
        Of a whole record (features and label), above zero.
    radius : float
        Of the ball that feature vectors are in, or are scaled to.
    way : {"best", "joint", "split"}
        Which ways are compared.

    Raises
    ------
    ValueError
        For an epsilon of zero, at which reports say nothing.
    """
    if not epsilon > 0.0:
        raise ValueError("epsilon: must be above zero, for reports to say anything")
    found: list[Plan] = []
    if way != "split":
        vectors = bitldp.CrossPolytope(features * (classes - 1), epsilon=epsilon, radius=radius)
        found.append(Plan(True, vectors, None, vectors.total_variance(), vectors.guarantee.record))
    if way != "joint":
        for part in range(1, _SHARES):
            one = epsilon * part / _SHARES
            found.append(_split(features, classes, one, epsilon - one, radius))
    return min(found, key=lambda each: each.noise)


def in_ball(x: NDArray[np.floating], radius: float) -> NDArray[np.float64]:
    """Return rows, those outside the ball scaled to it."""
    lengths = np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x * np.minimum(1.0, radius / np.maximum(lengths, 1e-30)), np.float64)


def packed(x: NDArray[np.floating], labels: NDArray[np.integer], classes: int) -> NDArray[np.float64]:
    """Return x s_c' of each record as one row, shape (n, features (classes - 1))."""
    product = x[:, :, None] * corners(classes)[labels][:, None, :]
    return np.asarray(product.reshape(len(x), -1), np.float64)


def cross(
    chosen: Plan, reports: NDArray[np.integer], labels: NDArray[np.integer] | None, classes: int
) -> NDArray[np.float32]:
    """Return what released records are worth on average: an unbiased estimate of A.

    Parameters
    ----------
    chosen : Plan
    reports : ndarray of int, shape (n, 2 reports)
        Rotations and codes of `CrossPolytope` side by side, as `PrivateData` keeps them.
    labels : ndarray of int, shape (n,), optional
        Randomized labels, where they are released apart.
    classes : int

    Returns
    -------
    ndarray of float32, shape (features, classes - 1)
    """
    half = reports.shape[1] // 2
    parts: Iterable[NDArray[np.integer]] = (reports[:, :half], reports[:, half:])
    mechanism = chosen.features
    decoded = mechanism.decode(mechanism.join(list(parts)))  # type: ignore[attr-defined]
    if chosen.labels is None:
        mean = decoded.mean(axis=0).reshape(-1, classes - 1)
    else:
        assert labels is not None
        worth = corners(classes)[labels] / _gain(chosen.labels, classes)
        mean = decoded.T @ worth / len(decoded)
    return np.asarray(mean, np.float32)


def scores_of(matrix: NDArray[np.floating], x: NDArray[np.floating], classes: int) -> NDArray[np.float64]:
    """Return t'A s_j for each row t of x and each class j, shape (n, classes)."""
    return np.asarray(x @ np.asarray(matrix, np.float64) @ corners(classes).T)


def predicted(matrix: NDArray[np.floating], x: NDArray[np.floating], classes: int) -> NDArray[np.intp]:
    """Return the class with the largest score of each row of x."""
    return scores_of(matrix, x, classes).argmax(axis=1)
