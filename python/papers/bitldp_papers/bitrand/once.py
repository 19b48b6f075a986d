"""Records released once at an epsilon that is true, and a linear classifier of the decoded reports.

A record is a feature vector x in a ball and a class c. Let s_1, ..., s_C be the corners of a regular simplex
of C - 1 dimensions, and a_c = (sqrt(1 - k) s_c, sqrt(k)) a unit vector of C. All that the classifier needs is
the matrix A = E[x a_c'] of r rows and C columns: the last column is sqrt(k) times the mean m of all records,
and with W the others, W s_j is, for classes that are equally frequent, in proportion to (mean of class j) -
m. A vector t is of the class j with the largest (t - m)'W s_j. A is a mean over records, so an unbiased
report of each record is all that is asked of a client, and the server's arithmetic is a sum: no debiasing is
left.

Two ways to report x a_c' at epsilon for the whole record; `record_release` takes the one with less noise:

- "joint": the r C numbers of x a_c', a vector of the same norm as x, through `CrossPolytope` at epsilon;
- "split": x through `CrossPolytope` at one share, c through `LabelRR` at the other; the product of the
  unbiased decodes is unbiased, since their noises are independent.

Everything that is chosen follows from r, C, epsilon and the radius, which are public. How far m is trusted
follows from the reports: their spread over the clients says how noisy it is, and it is shrunk (James and
Stein).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import bitldp
import numpy as np
from bitldp.mechanism.base import Mechanism
from numpy.typing import NDArray

__all__ = ["RecordRelease", "corners", "cross", "packed", "record_release", "replied", "scores_of"]

_SHARES = 24  # splits of epsilon that are compared
_MEAN = (
    0.04  # k: little, for the mean of all classes is seen by every record, and their differences by 1 of C
)


@lru_cache(maxsize=64)
def corners(classes: int) -> NDArray[np.float64]:
    """Return the corners of a regular simplex around 0, unit rows, shape (classes, classes - 1)."""
    centred = np.eye(classes) - 1.0 / classes
    basis = np.linalg.svd(centred)[2][: classes - 1]
    rows: NDArray[np.float64] = centred @ basis.T
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows.flags.writeable = False
    return rows


@lru_cache(maxsize=64)
def marks(classes: int) -> NDArray[np.float64]:
    """Return the unit vectors a_c that stand for the classes, shape (classes, classes)."""
    vectors = np.hstack([np.sqrt(1.0 - _MEAN) * corners(classes), np.full((classes, 1), np.sqrt(_MEAN))])
    vectors.flags.writeable = False
    return vectors


@dataclass(frozen=True)
class RecordRelease:
    """Release of a record, and how noisy it makes the classifier.

    Attributes
    ----------
    joint : bool
        Whether features and label are one vector.
    features : Mechanism
        `CrossPolytope` of x a_c', or of x.
    labels : Mechanism or None
        `LabelRR`, for what is released apart.
    noise : float
        Mean squared error of a record's report of x a_c' at the radius, summed over the columns that tell the
        classes apart.
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


def _gain(labels: Mechanism) -> float:
    """Return p - q of a randomized label: the mean of s at the reported class is gain s_c."""
    law = labels.probabilities()  # type: ignore[attr-defined]
    return float(law[0, 0] - law[0, 1])


def _split(features: int, classes: int, one: float, other: float, radius: float) -> RecordRelease:
    vectors = bitldp.CrossPolytope(features, epsilon=one, radius=radius)
    labels = bitldp.LabelRR(classes, epsilon=other)
    length = radius**2
    noise = (1.0 - _MEAN) * ((vectors.total_variance() + length) / _gain(labels) ** 2 - length)
    return RecordRelease(False, vectors, labels, noise, vectors.guarantee.record + labels.guarantee.record)


@lru_cache(maxsize=64)
def record_release(
    features: int, classes: int, epsilon: float, radius: float, way: str = "best"
) -> RecordRelease:
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
        Ways that are compared.

    Raises
    ------
    ValueError
        For an epsilon of zero, at which reports say nothing.
    """
    if not epsilon > 0.0:
        raise ValueError("epsilon: must be above zero, for reports to say anything")
    ways: list[RecordRelease] = []
    if way != "split":
        vectors = bitldp.CrossPolytope(features * classes, epsilon=epsilon, radius=radius)
        noise = vectors.total_variance() * (classes - 1) / classes
        ways.append(RecordRelease(True, vectors, None, noise, vectors.guarantee.record))
    if way != "joint":
        for part in range(1, _SHARES):
            one = epsilon * part / _SHARES
            ways.append(_split(features, classes, one, epsilon - one, radius))
    return min(ways, key=lambda each: each.noise)


def packed(x: NDArray[np.floating], labels: NDArray[Any], classes: int) -> NDArray[np.float64]:
    """Return x a_c' of each record as one row, shape (n, features classes)."""
    product = x[:, :, None] * marks(classes)[labels][:, None, :]
    return np.asarray(product.reshape(len(x), -1), np.float64)


def cross(
    chosen: RecordRelease, reports: NDArray[np.integer], labels: NDArray[np.integer] | None, classes: int
) -> NDArray[np.float32]:
    """Return an unbiased estimate of A, the mean of the decoded records.

    Parameters
    ----------
    chosen : RecordRelease
    reports : ndarray of int, shape (n, 2 reports)
        Rotations and codes of `CrossPolytope` side by side, as `PrivateData` keeps them.
    labels : ndarray of int, shape (n,), optional
        Randomized labels, where they are released apart.
    classes : int

    Returns
    -------
    ndarray of float32, shape (features, classes)
    """
    half = reports.shape[1] // 2
    parts: Iterable[NDArray[np.integer]] = (reports[:, :half], reports[:, half:])
    mechanism = chosen.features
    decoded = mechanism.decode(mechanism._join(list(parts)))
    if chosen.labels is None:
        mean = decoded.mean(axis=0).reshape(-1, classes)
    else:
        assert labels is not None
        vectors = marks(classes)[labels] / _gain(chosen.labels)
        vectors[:, -1] = np.sqrt(_MEAN)  # the same for every class, so that nothing of it was randomized
        mean = decoded.T @ vectors / len(decoded)
    return np.asarray(mean, np.float32)


def replied(matrix: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Return a client's answer: its estimate of A, and the sum of its squares."""
    return [matrix, np.array([np.square(matrix, dtype=np.float64).sum()], np.float32)]


def scores_of(
    model: Sequence[NDArray[np.floating]], x: NDArray[np.floating], clients: int
) -> NDArray[np.float64]:
    """Return the score of each class for each row of x, shape (n, classes).

    Parameters
    ----------
    model : sequence of two ndarray
        Averages over the clients of their answers, as in `replied`.
    x : ndarray, shape (n, features)
    clients : int
        Number of clients.
    """
    matrix, squares = np.asarray(model[0], np.float64), float(model[1][0])
    classes = matrix.shape[1]
    mean = matrix[:, -1] / np.sqrt(_MEAN)
    if clients > 1:
        # E|A_k|^2 = |A|^2 + v and E|mean of A_k|^2 = |A|^2 + v/clients: v/clients, and the share of m in it.
        noise = max(0.0, squares - float(np.square(matrix).sum())) / (clients - 1)
        length = float(np.square(mean).sum())
        mean = mean * max(0.0, 1.0 - noise / (classes * _MEAN) / max(length, 1e-30))
    return np.asarray((x - mean) @ matrix[:, :-1] @ corners(classes).T)
