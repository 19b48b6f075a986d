"""What the cross-polytope does with its budget, and how its reports tell two records apart."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.letters.polytope import best_top, tops
from bitldp.mechanism.law import Block, Experiment
from bitldp.release.rotated import RotatedRelease

__all__ = ["best_reports", "opposite_directions"]

_BLOCK = 1 << 22  # rotated coordinates that are compared at once


@lru_cache(maxsize=256)
def best_reports(dimensions: int, epsilon: float, most: int) -> int:
    """Return into how many reports a budget is split: 1 up to ln(2 D) + 1, then as the variance asks."""
    if epsilon <= math.log(2.0 * dimensions) + 1.0:
        return 1

    def spread(count: int) -> float:
        each = epsilon / count
        k, odds = best_top(dimensions, each), math.expm1(min(each, 700.0))
        mean = odds * tops(dimensions, k).sum / (k * odds + 2.0 * dimensions)
        return (1.0 / mean**2 - 1.0) / count

    best, least = 1, spread(1)
    for count in range(2, most + 1):
        found = spread(count)
        if found > least:
            break
        best, least = count, found
    return best


@dataclass(frozen=True, eq=False)
class _Ranked(Experiment):
    """Opposite records; a report is told by whether it is among the first k of one, of the other, or neither.

    Attributes
    ----------
    release : RotatedRelease
        Whose reports they are.
    k : int
        The likely ranks.
    """

    _: KW_ONLY
    release: RotatedRelease
    k: int

    def split(self, reports: Any) -> list[NDArray[Any]]:
        """Return 2 for the first k of the first record, 0 for the last k, else 1, shape (n, reports)."""
        rotations, codes = self.release.flat(reports)
        flat, numbers = codes.ravel(), rotations.ravel()
        found = np.empty(len(flat), np.uint8)
        step = max(1, _BLOCK // self.release.rotation.dimensions)
        for start in range(0, len(flat), step):
            part = slice(start, start + step)
            x = np.repeat(self.inputs[0][None], len(flat[part]), axis=0)
            found[part] = self._placed(self.release.rotation.rotate(x, numbers[part]), flat[part])
        return [found.reshape(codes.shape)]

    def _placed(self, rotated: NDArray[np.float32], codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
        chosen = rotated[np.arange(len(codes)), codes >> 1] * np.where(codes & 1, 1.0, -1.0)
        larger = (np.abs(rotated) > np.abs(chosen)[:, None]).sum(axis=1) < self.k
        return np.where(larger, np.where(chosen > 0.0, 2, 0), 1).astype(np.uint8)


def opposite_directions(release: RotatedRelease, radius: float) -> Experiment:
    """Return the experiment of two opposite records of the sphere of a radius.

    k w1, (2 D - 2 k) w0 and k w0 over their sum are the chances that a report is among the first k of its
    record, in the middle, and among the first k of the other.
    """
    k, high, low = release.runs
    total = release.channel.total
    shares = (k * low / total, (release.alphabet - 2 * k) * low / total, k * high / total)
    features = release.rotation.features
    record = np.cos(1.0 + np.arange(features) ** 2.0)  # irregular: no two rotated coordinates are equal
    record *= radius / math.sqrt(float(record @ record))
    table = np.array([shares, shares[::-1]])[:, None, :].repeat(release.count, axis=1)

    def describe(symbol: int, value: int) -> str:
        where = ("the opposite vector", "neither", "the vector")[value]
        return f"report {symbol} is among the likely coordinates of {where}"

    names = ["a vector of the sphere", "the opposite vector"]
    law = [Block(table, describe)]
    return _Ranked([record, -record], names, law, [(0, 1)], {"output": "codes"}, release=release, k=k)
