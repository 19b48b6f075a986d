"""Likelihood of inputs after reports: the law that a mechanism samples from, evaluated for each candidate."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from bitldp.mechanism.base import Mechanism
from numpy.typing import NDArray

__all__ = ["evidence", "form_of"]

Numbers = NDArray[np.floating[Any]]

_TINY = 1e-300
_TOGETHER = 1 << 23  # numbers of inputs that are looked at together
_SURE = 1e-4  # chance of error below which a rank is not computed


def form_of(mechanism: Mechanism) -> Literal["bits", "codes"]:
    """Return the form of reports that `evidence` takes."""
    return "bits" if "bits" in mechanism.outputs else "codes"


def evidence(mechanism: Mechanism, reports: Any, inputs: Numbers) -> NDArray[np.float64]:
    """Return the log-likelihood of each input after each report, up to a constant of the report.

    Parameters
    ----------
    mechanism : Mechanism
        Of bits (`FRR`, `UER`), of numbers with a table of probabilities (`Duchi`, `BRR`), or `CrossPolytope`.
    reports : array_like or RotatedReports
        In the form that `form_of` names, one a record.
    inputs : ndarray of float, shape (n, features)
        Candidates; they are clipped as the mechanism clips.

    Returns
    -------
    ndarray of float64, shape (reports, n)
        Of independent rounds they are added.

    Notes
    -----
    Every probability is one of ``mechanism.probabilities()``. Bits and numbers are independent given the
    input, so their logarithms are added; a dithered number has the mixture of the laws of the two points
    beside it. A report of `CrossPolytope` is likely if its coordinate is among the k largest of the rotated
    input, which is ranked where the value of that coordinate alone leaves more than one chance in 10,000 of
    an error.
    """
    if form_of(mechanism) == "bits":
        return _of_bits(mechanism, np.asarray(reports), inputs)
    if hasattr(reports, "rotations"):
        return _of_ranks(mechanism, reports, inputs)
    return _of_numbers(mechanism, np.asarray(reports), inputs)


def _of_bits(mechanism: Any, reports: NDArray[Any], inputs: Numbers) -> NDArray[np.float64]:
    """Return it of code words, every bit of which is answered by itself.

    With chances p and q that a bit of 1 and of 0 is reported as 1, an input's bit of 1 adds ln(p/q) where 1
    came, and ln((1 - p)/(1 - q)) where 0 did.
    """
    law = np.maximum(mechanism.probabilities(), _TINY)
    p, q = (np.broadcast_to(law[..., side], (mechanism.features, mechanism.bits)).ravel() for side in (0, 1))
    one, none = np.log(p / q), np.log(np.maximum(1.0 - p, _TINY) / np.maximum(1.0 - q, _TINY))
    shifts = np.arange(mechanism.bits - 1, -1, -1, dtype=np.uint16)  # the sign is the highest bit
    said = np.where(reports.reshape(-1, len(one)) == 1, one, none).astype(np.float32)
    result = np.empty((len(said), len(inputs)))
    for part in _parts(len(inputs), len(one)):
        codes = mechanism.codec.encode(np.ascontiguousarray(inputs[part]))
        bits = ((codes[:, :, None] >> shifts) & 1).reshape(len(codes), -1)
        result[:, part] = said @ bits.astype(np.float32).T
    return result


def _of_numbers(mechanism: Any, reports: NDArray[Any], inputs: Numbers) -> NDArray[np.float64]:
    """Return it of numbers of an interval, each of which is released by itself."""
    table, points, features = mechanism.probabilities(), mechanism.points, inputs.shape[1]
    last, low = len(points) - 1, float(points[0])
    step = (float(points[-1]) - low) / last
    codes = reports.reshape(-1, features)
    is_near = getattr(mechanism, "rounding", "dither") == "nearest"
    said = _by_point(table, codes) if is_near else _by_report(table, codes)
    result = np.empty((len(codes), len(inputs)))
    for part in _parts(len(inputs), features):
        place = np.clip((np.asarray(inputs[part], np.float64) - low) / step, 0.0, last)
        result[:, part] = said(place)
    return result


_Said = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def _by_point(table: NDArray[np.float64], codes: NDArray[Any]) -> _Said:
    """Return the likelihoods of places on the grid that are rounded to the nearest point.

    Each number has one law of those of all points: a sparse table of ones picks it.
    """
    from scipy.sparse import csr_array

    points, features = len(table), codes.shape[1]
    laws = np.log(np.maximum(table, _TINY)).astype(np.float32)[:, codes]  # (points, reports, features)
    laws = np.ascontiguousarray(laws.transpose(2, 0, 1)).reshape(features * points, len(codes))

    def likelihoods(place: NDArray[np.float64]) -> NDArray[np.float64]:
        chosen = (place + 0.5).astype(np.int32) + points * np.arange(features, dtype=np.int32)  # half: up
        ends = np.arange(0, chosen.size + 1, features, dtype=np.int32)
        picked = csr_array(
            (np.ones(chosen.size, np.float32), chosen.ravel(), ends), shape=(len(place), len(laws))
        )
        return np.asarray(picked @ laws, np.float64).T

    return likelihoods


def _by_report(table: NDArray[np.float64], codes: NDArray[Any]) -> _Said:
    """Return the likelihoods of places on the grid that are dithered between two points."""
    came = [(codes == code).astype(np.float32) for code in range(table.shape[1])]

    def likelihoods(place: NDArray[np.float64]) -> NDArray[np.float64]:
        below = np.minimum(place.astype(np.intp), len(table) - 2)
        share = place - below
        total = np.zeros((len(codes), len(place)))
        for column, is_it in zip(table.T, came, strict=True):
            law = (1.0 - share) * column[below] + share * column[below + 1]
            total += is_it @ np.log(np.maximum(law, _TINY)).astype(np.float32).T
        return total

    return likelihoods


def _of_ranks(mechanism: Any, reports: Any, inputs: Numbers) -> NDArray[np.float64]:
    """Return it of rotated coordinates: likely are the k largest of the 2 D signed ones."""
    law, rotation = mechanism.probabilities(), mechanism.codec
    gain = float(np.log(law[-1] / law[0]))
    records = np.asarray(inputs, np.float32) / np.float32(mechanism.radius)
    records /= np.maximum(np.linalg.norm(records, axis=1, keepdims=True), 1.0)
    lift = np.sqrt(np.maximum(1.0 - np.square(records).sum(axis=1), 0.0))
    inside = records * np.float32(mechanism.radius)
    count = np.asarray(reports.codes).reshape(len(reports.codes), -1).shape[1]
    result = np.zeros((len(reports.codes), len(records)))
    for column in range(count):
        numbers, codes = (
            np.asarray(each, np.uint32).reshape(len(result), count)[:, column]
            for each in (reports.rotations, reports.codes)
        )
        # the row of the rotation that a report names: of its coordinates, and of the lift
        rows = rotation.letters(numbers, codes, 1.0)
        lifted = _signed(rotation.rotate(np.zeros_like(rows, np.float32), numbers), codes)
        value = rows @ records.T.astype(np.float64) + lifted[:, None] * lift
        chance = _chance(value, mechanism.k, rotation.dimensions)
        likely = chance > 0.5
        for index in range(len(result)):
            unsure = np.flatnonzero((chance[index] > _SURE) & (chance[index] < 1.0 - _SURE))
            for part in _parts(len(unsure), rotation.dimensions):
                some = unsure[part]
                turned = rotation.rotate(inside[some], np.full(len(some), numbers[index], np.uint32))
                own = _signed(turned, np.full(len(some), codes[index]), whole=False)
                larger = (np.abs(turned) > np.abs(own)[:, None]).sum(axis=1)
                likely[index, some] = (own > 0.0) & (larger < mechanism.k)
        result += gain * likely
    return result


def _signed(turned: Numbers, codes: NDArray[Any], *, whole: bool = True) -> Numbers:
    """Return the signed coordinate that each code names, of rotated vectors; `whole`: of length 1."""
    own = turned[np.arange(len(codes)), codes >> 1] * np.where(codes & 1, 1.0, -1.0)
    return own / np.linalg.norm(turned, axis=1) if whole else own


def _chance(value: Numbers, k: int, dimensions: int) -> NDArray[np.float64]:
    """Return the chance that a coordinate of a value is among the k largest, of a uniform direction.

    The k-th largest of D coordinates, each about normal, is about normal itself: its mean is the quantile at
    which a share k/D of the sizes is larger.
    """
    middle, spread = _edge(k, dimensions)
    from scipy.special import ndtr

    result: NDArray[np.float64] = ndtr((value * math.sqrt(dimensions) - middle) / spread)
    return result


@lru_cache(maxsize=64)
def _edge(k: int, dimensions: int) -> tuple[float, float]:
    """Return mean and deviation of the k-th largest size of `dimensions` normal numbers, about."""
    normal, share = NormalDist(), (k - 0.5) / dimensions
    middle = normal.inv_cdf(1.0 - share / 2.0)
    spread = math.sqrt(share * (1.0 - share) / dimensions) / (2.0 * normal.pdf(middle))
    return middle, spread


def _parts(count: int, width: int) -> list[slice]:
    """Return slices of so many rows that they are looked at together."""
    step = max(1, _TOGETHER // width)
    return [slice(start, start + step) for start in range(0, count, step)]
