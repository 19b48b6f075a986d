"""The mean share of a place among PE's ones, with the same last digit on every machine.

A law's integers decide how the sampler lays out its ranks, so a last digit that differed would give other
reports for the same seed. Sums, products and quotients of doubles are the same everywhere; exponentials and
logarithms of libraries are not, nor are the nodes of a quadrature by eigenvalues. Here are none of these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["chances_of_bit", "log", "mean_shares", "product_of_powers"]

_PANELS = 30  # of [0, 1], halved again and again toward 0
_NODES = 48  # of each panel
_DECIMALS = Context(prec=40)  # whose exponentials and logarithms are rounded correctly
_NEWTON = 8  # steps from a first guess to all of the digits
_ODD = 19  # terms of the logarithm's series, at arguments up to 1/3
_TAYLOR = 14  # terms of the exponential's, at arguments up to ln(2)/2
_LN2 = math.ldexp(0x162E42FEFA39EF, -53)
_LN2_HIGH = math.ldexp(
    0x162E42FEF, -33
)  # its first 33 bits: products with whole numbers up to 2^20 are exact
_LN2_LOW = math.ldexp(0x1473DE6AF278ED, -86)  # and what is left
_LEAST = -800.0  # e to this is 0


def chances_of_bit(odds: float) -> tuple[float, float]:
    """Return p = e^u/(1 + e^u), with which a status bit is kept, and 1 - p, for the log-odds u."""
    with localcontext(_DECIMALS):
        flipped = Decimal(-odds).exp()  # 0 at the largest odds, where the other sign would overflow
        return float(1 / (1 + flipped)), float(flipped / (1 + flipped))


def log(x: float) -> float:
    """Return ln x, for x above zero."""
    with localcontext(_DECIMALS):
        return float(Decimal(x).ln())


def product_of_powers(x: float, n: int, m: int) -> float:
    """Return x^n (1 - x)^m, for x in (0, 1)."""
    with localcontext(_DECIMALS):
        return float((n * Decimal(x).ln() + m * (1 - Decimal(x)).ln()).exp())


def mean_shares(keep: float, flip: float, bits: Sequence[tuple[int, int]]) -> list[float]:
    """Return E 1/(1 + Bin(kept_bits, keep) + Bin(flipped_bits, flip)), to about 13 digits, for pairs of bits.

    It is the integral of the generating function E s^X over s in [0, 1]; with s = 1 - t,

        integral of (1 - keep t)^kept_bits (1 - flip t)^flipped_bits dt,

    a positive, decreasing polynomial. It may fall off within 1/(number of bits), so [0, 1] is cut into panels
    that halve toward t = 0, each with a Gauss-Legendre rule.
    """
    nodes, weights = _rule()
    of_kept, of_flipped = _log_of_rest(keep * nodes), _log_of_rest(flip * nodes)
    return [
        math.fsum((weights * _exp(kept_bits * of_kept + flipped_bits * of_flipped)).tolist())
        for kept_bits, flipped_bits in bits
    ]


def _log_of_rest(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ln(1 - x) for x in [0, 1): twice the inverse hyperbolic tangent of z, at |z| <= 1/3."""
    far = x >= 0.5  # where 1 - x is exact
    part, power = np.frexp(np.where(far, 1.0 - x, 0.5))
    z = np.where(far, (part - 1.0) / (part + 1.0), -x / (2.0 - x))
    square, series = z * z, np.zeros_like(z)
    for odd in range(2 * _ODD - 1, 0, -2):
        series = series * square + 1.0 / odd
    return 2.0 * z * series + power * _LN2


def _exp(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return e^x for x up to 0."""
    x = np.maximum(x, _LEAST)
    power = np.rint(x / _LN2)
    rest = (x - power * _LN2_HIGH) - power * _LN2_LOW
    series = np.ones_like(x)
    for term in range(_TAYLOR, 0, -1):
        series = series * rest / term + 1.0
    return np.ldexp(series, power.astype(np.int32))


@lru_cache(maxsize=1)
def _rule() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights on [0, 1]."""
    points, weights = (np.array(each) for each in zip(*map(_node, range(_NODES)), strict=True))
    ends = np.concatenate([[0.0], np.ldexp(1.0, np.arange(-_PANELS, 1))])
    half = np.diff(ends)[:, None] / 2.0
    return (ends[:-1, None] + half * (1.0 + points)).ravel(), (half * weights).ravel()


def _node(place: int) -> tuple[float, float]:
    """Return a root of the Legendre polynomial on [-1, 1], and its weight, by Newton's steps in decimals."""
    with localcontext(_DECIMALS):
        x = Decimal(-math.cos(math.pi * (place + 0.75) / (_NODES + 0.5)))
        for _ in range(_NEWTON):
            before, value = Decimal(1), x
            for n in range(2, _NODES + 1):
                before, value = value, ((2 * n - 1) * x * value - (n - 1) * before) / n
            slope = _NODES * (x * value - before) / (x * x - 1)
            x -= value / slope
        return float(x), float(2 / ((1 - x * x) * slope * slope))
