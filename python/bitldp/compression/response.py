"""Unbiased generalized randomized response, and randomized response of each bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix, log_ratio
from bitldp.base import checks
from bitldp.design.exact import unbiased
from bitldp.design.mvu import BITS
from bitldp.design.result import spread
from bitldp.mechanism.numeric import Numeric
from bitldp.mechanism.parameters import Interval, Option, whole
from bitldp.privacy import calibrated
from bitldp.release.base import Release
from bitldp.release.table import placed, uninformative
from bitldp.release.window import windowed

__all__ = ["BitwiseRR", "GeneralizedRR", "best_bits"]


_MOST_OF_BITS = 30.0
"""The most that is spent of one bit's budget: beyond it, 2**-64 is too coarse for products of e^-epsilon."""

_LEAST_OF_BITS = 1e-15
"""Below it, doubles and 2**-64 cannot distinguish a bit's answers; reports are uninformative as with 0."""


@lru_cache(maxsize=64)
def bitwise(bits: int, epsilon: float, interval: Interval) -> Release:
    """Return the release of the bits of a grid point, each by randomized response of epsilon/b.

    With p = e^(epsilon/b)/(1 + e^(epsilon/b)), a report y has P(y|x) = p^s (1 - p)^(b - s), where s bits
    of y are those of x. A reported bit's letter is (bit - (1 - p))/(2p - 1), whose mean is the bit; the
    code's letter is the sum of those with the weights of the bits.
    """
    count = 1 << bits
    if epsilon < _LEAST_OF_BITS * bits:
        return uninformative(count, count, interval)
    codes = np.arange(count)
    differ = np.array([bin(code).count("1") for code in range(count)])[codes[:, None] ^ codes]

    def build(target: float) -> tuple[Matrix, NDArray[np.float64]]:
        each = min(target / bits, _MOST_OF_BITS)
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


@dataclass(frozen=True, eq=False, repr=False)
class Response(Numeric):
    """Base of those that dither a number to 2**bits points and report one of as many codes."""

    _: KW_ONLY
    bits: Annotated[int, whole(1, BITS), Option("output_bits")] = 3
    interval: Interval = (-1.0, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class GeneralizedRR(Response):
    """k-ary randomized response (gRR) on the points of a grid; unbiased.

    Parameters
    ----------
    epsilon, interval, features, spend, k, clip, unit
        As of `Numeric`.
    bits : int
        Bits of a report, b, 1 to 8. `best_bits` finds those of least variance.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way. The number is dithered to one of B = 2**b points, which is
    reported with e^eps/(e^eps + B - 1), every other one with 1/(e^eps + B - 1). On [0, 1] the letter of
    point x is (x (B + e^eps - 1) - B/2)/(e^eps - 1). With one bit it is Duchi's mechanism. Source:
    Chaudhuri, Guo and Rabbat (UAI 2022), Section 3.

    Examples
    --------
    >>> from bitldp.compression import GeneralizedRR
    >>> mechanism = GeneralizedRR(epsilon=1.0, bits=3)
    >>> mechanism.report_bits, round(mechanism.worst_variance(), 3)
    (3, 15.941)
    """

    _lasting: ClassVar[str] = "bitldp.compression.response.GeneralizedRR"

    def _released(self, epsilon: float, interval: Interval) -> Release:
        return windowed(1 << self.bits, 1, epsilon, interval)


@dataclass(frozen=True, eq=False, repr=False)
class BitwiseRR(Response):
    """Bitwise randomized response (bRR): flips each bit of a grid point; unbiased.

    Each of b bits has epsilon/b.

    Parameters
    ----------
    epsilon : float
        Exact epsilon of one `unit`, finite, zero or more; at most 30 is spent on a bit.
    bits : int
        Bits of a report, b, 1 to 8.
    interval, features, spend, k, clip, unit
        As of `Numeric`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way; ``guarantee.bit`` is for points that differ in one bit. The 2**b
    reports are sampled by one table, whose integers are the products of the bits' probabilities, rounded and
    then made unbiased. Source: Chaudhuri, Guo and Rabbat (UAI 2022), Section 3.

    Examples
    --------
    >>> from bitldp.compression import BitwiseRR
    >>> mechanism = BitwiseRR(epsilon=1.0, bits=2, interval=(-1.0, 1.0))
    >>> print(round(mechanism.guarantee.bit, 6), mechanism.letters.round(2))
    0.5 [-4.08 -1.36  1.36  4.08]
    """

    _lasting: ClassVar[str] = "bitldp.compression.response.BitwiseRR"

    def _build(self) -> None:
        super()._build()
        if self.epsilon > 0.0:
            self._set(_guarantee=replace(self._guarantee, bit=self._worst_bit()))

    def _released(self, epsilon: float, interval: Interval) -> Release:
        return bitwise(self.bits, epsilon, interval)

    def _worst_bit(self) -> float:
        """Return the exact epsilon between points whose codes differ in one bit."""
        (channel,) = self.channels
        assert isinstance(channel, Matrix)  # as bitwise makes it
        weights = channel.weights()
        return max(
            log_ratio(one, other)
            for x, row in enumerate(weights)
            for bit in range(self.bits)
            for one, other in zip(row, weights[x ^ 1 << bit], strict=True)
        )


def best_bits(
    mechanism: Callable[..., GeneralizedRR | BitwiseRR],
    *,
    epsilon: float,
    criterion: Literal["mean", "worst"] = "mean",
) -> int:
    """Return the number of bits, 1 to 8, at which a mechanism has the least variance.

    Parameters
    ----------
    mechanism : callable
        `GeneralizedRR` or `BitwiseRR`.
    epsilon : float
        Budget of one number, above zero.
    criterion : {"mean", "worst"}
        Mean of the variance over uniform numbers, or the largest. The best number is the same for every
        interval.

    Returns
    -------
    int
        The least such number of bits.

    Examples
    --------
    >>> from bitldp.compression import GeneralizedRR, best_bits
    >>> [best_bits(GeneralizedRR, epsilon=epsilon) for epsilon in (1.0, 2.0, 4.0, 8.0)]
    [1, 2, 3, 4]
    """
    checks.positive("epsilon", epsilon)
    checks.choice("criterion", criterion, ("mean", "worst"))

    def variance(bits: int) -> float:
        made = mechanism(epsilon=epsilon, bits=bits)
        return made.worst_variance() if criterion == "worst" else made.mean_variance()

    return min(range(1, BITS + 1), key=variance)
