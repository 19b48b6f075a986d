"""Law of whole records of signs: how likely each number of agreements is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Cube
from bitldp.mechanism.law import Block, Experiment
from bitldp.privacy import ONE
from bitldp.release.base import Interval

__all__ = ["opposite_corners"]


@dataclass(frozen=True, eq=False)
class Agreements(Experiment):
    """Two opposite records; a report is one symbol: many ones, few ones, or neither.

    Attributes
    ----------
    edge : int
        A report has many ones from `edge` on, and few ones if so many places are 0.
    """

    edge: int = 0

    def split(self, reports: Any) -> list[NDArray[Any]]:
        bits = np.asarray(reports)
        ones = bits.reshape(len(bits), -1).sum(axis=1, dtype=np.int64)
        places = bits.size // max(1, len(bits))
        return [(np.where(ones >= self.edge, 2, 1) - (ones <= places - self.edge))[:, None]]


def _share(channel: Cube, edge: int) -> float:
    """Return the chance of `edge` agreements or more; they are in the likely set, and not in the other."""
    size, bits = channel.sizes()[0], channel.bits
    # C(r, a) over the set's size, downward from the edge of the set: float sums, as for any law of an audit.
    term, beyond = channel.edges()[0] * bits / (max(1, channel.near) * size), 0.0
    for a in range(channel.near, edge):
        beyond += term
        term *= (bits - a) / (a + 1)
    return channel.high / ONE * (1.0 - beyond)


def opposite_corners(channel: Cube, ends: Interval) -> Experiment | None:
    """Return the law of a release of whole records; None where its sets are not apart.

    The records are the two corners of the interval's cube. A report with kappa ones or more is in the
    likely set of one and in the unlikely set of the other, if kappa is above the middle: e^epsilon times as
    likely.
    """
    if channel.near <= channel.far:
        return None
    bits = channel.bits
    edge = max(channel.near, bits - channel.far)
    likely = _share(channel, edge)
    # The opposite record's agreements are the zeros: `edge` ones are at most `far` of them.
    strings = likely * ONE / channel.high * channel.sizes()[0] / channel.sizes()[1]
    unlikely = (ONE - channel.high) / ONE * strings
    middle = max(0.0, 1.0 - likely - unlikely)
    table = np.array([[[unlikely, middle, likely]], [[likely, middle, unlikely]]])
    low, high = ends
    corners: list[Any] = [np.full(bits, end) for end in (high, low)]
    inputs = [corner if bits > 1 else corner[0] for corner in corners]

    def describe(_: int, value: int) -> str:
        counts = (f"at most {bits - edge}", f"between {bits - edge} and {edge}", f"at least {edge}")
        return f"{counts[value]} of {bits} bits are 1"

    names = [f"every feature {end:g}" for end in (high, low)]
    options = {"output": "codes"}
    return Agreements(inputs, names, [Block(table, describe)], [(0, 1)], options, edge=edge)
