"""Releases of one number by a table: that of a design, or of independent bits."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix
from bitldp.base.arrays import readonly
from bitldp.design.exact import unbiased
from bitldp.design.result import Design, spread
from bitldp.mechanism.designed import DesignTable
from bitldp.privacy import calibrated
from bitldp.release.base import Interval, Release
from bitldp.release.table import placed, silent

MOST_OF_BITS = 30.0
"""The most that is spent of one bit's budget: beyond it, 2**-64 is too coarse for products of e^-epsilon."""

LEAST_OF_BITS = 1e-15
"""Below it, doubles and 2**-64 cannot tell a bit's two answers apart; as with 0, the reports say nothing."""


def tabled(design: Design) -> DesignTable:
    """Return what a mechanism keeps of a design: its channel, and its letters for [0, 1]."""
    return DesignTable(design.channel(), readonly(np.array(design.letters)))


def designed(table: DesignTable, bits: tuple[int, int], interval: Interval) -> Release:
    """Return the release of a number of `interval` by the table of a design."""
    channel, letters = table
    if letters is None or (channel.inputs, channel.outputs) != (1 << bits[0], 1 << bits[1]):
        raise ValueError("input_bits: the table that came with the parameters is of others")
    return placed(
        channel, letters, spread(tuple(map(tuple, channel.weights())), tuple(letters.tolist())), interval
    )


@lru_cache(maxsize=64)
def bitwise(bits: int, epsilon: float, interval: Interval) -> Release:
    """Return the release of the bits of a grid point, each by randomized response of epsilon/b.

    With p = e^(epsilon/b)/(1 + e^(epsilon/b)), a report y has P(y|x) = p^s (1 - p)^(b - s), where s bits
    of y are those of x. A reported bit's letter is (bit - (1 - p))/(2p - 1), whose mean is the bit; the
    code's letter is the sum of those with the weights of the bits.
    """
    count = 1 << bits
    if epsilon < LEAST_OF_BITS * bits:
        return silent(count, count, interval)
    codes = np.arange(count)
    differ = np.array([bin(code).count("1") for code in range(count)])[codes[:, None] ^ codes]

    def build(target: float) -> tuple[Matrix, NDArray[np.float64]]:
        each = min(target / bits, MOST_OF_BITS)
        keep, flip = 1.0 / (1.0 + math.exp(-each)), math.exp(-each) / (1.0 + math.exp(-each))
        table = keep ** (bits - differ) * flip**differ
        stretch = 1.0 / math.tanh(each / 2.0)  # 1/(2p - 1)
        letters = 0.5 + (codes / (count - 1) - 0.5) * stretch
        weights = Matrix(table / table.sum(axis=1, keepdims=True)).weights()
        return Matrix.from_weights(unbiased(weights, tuple(letters.tolist()))), letters

    channel, letters = calibrated(build, epsilon, lambda built: built[0].epsilon)
    return placed(
        channel, letters, spread(tuple(map(tuple, channel.weights())), tuple(letters.tolist())), interval
    )
