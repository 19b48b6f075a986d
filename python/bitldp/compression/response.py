"""Unbiased generalized randomized response, and randomized response of each bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Literal

from bitldp._core import Matrix, log_ratio
from bitldp.base import checks
from bitldp.compression.designs import bitwise
from bitldp.design.mvu import BITS
from bitldp.mechanism.numeric import Numeric
from bitldp.mechanism.parameters import Interval, Option, whole
from bitldp.release.base import Release
from bitldp.release.window import windowed

__all__ = ["BitwiseRR", "GeneralizedRR", "best_bits"]


@dataclass(frozen=True, eq=False, repr=False)
class Response(Numeric):
    """Base of those that dither a number to 2**bits points and report one of as many codes."""

    _: KW_ONLY
    bits: Annotated[int, whole(1, BITS), Option("output_bits")] = 3
    interval: Interval = (-1.0, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class GeneralizedRR(Response):
    """Unbiased k-ary randomized response (gRR) on the points of a grid.

    Parameters
    ----------
    epsilon : float
        Exact epsilon of one `unit`, finite, zero or more.
    bits : int
        Bits of a report, b, 1 to 8. `best_bits` finds those of least variance.
    interval : (float, float)
        Where every number lies.
    features, spend, k, clip, unit
        As for `bitldp.Duchi`.

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
    >>> mechanism = GeneralizedRR(1.0, bits=3)
    >>> mechanism.report_bits, round(mechanism.worst_variance(), 3)
    (3, 15.941)
    """

    def _released(self, epsilon: float, interval: Interval) -> Release:
        return windowed(1 << self.bits, 1, epsilon, interval)


@dataclass(frozen=True, eq=False, repr=False)
class BitwiseRR(Response):
    """Unbiased bitwise randomized response (bRR): each bit of a grid point by itself.

    Each of b bits has epsilon/b.

    Parameters
    ----------
    epsilon : float
        Exact epsilon of one `unit`, finite, zero or more; at most 30 is spent on a bit.
    bits : int
        Bits of a report, b, 1 to 8.
    interval : (float, float)
        Where every number lies.
    features, spend, k, clip, unit
        As for `bitldp.Duchi`.

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
    >>> mechanism = BitwiseRR(1.0, bits=2, interval=(-1.0, 1.0))
    >>> print(round(mechanism.guarantee.bit, 6), mechanism.letters.round(2))
    0.5 [-4.08 -1.36  1.36  4.08]
    """

    def _build(self) -> None:
        super()._build()
        if self.epsilon > 0.0:
            self._set(_guarantee=replace(self._guarantee, bit=self._worst_bit()))

    def _released(self, epsilon: float, interval: Interval) -> Release:
        return bitwise(self.bits, epsilon, interval)

    def _worst_bit(self) -> float:
        """Return the exact epsilon between points whose codes differ in one bit."""
        (channel,) = self.channels
        assert isinstance(channel, Matrix)  # that is what bitwise makes
        weights = channel.weights()
        return max(
            log_ratio(one, other)
            for x, row in enumerate(weights)
            for bit in range(self.bits)
            for one, other in zip(row, weights[x ^ 1 << bit], strict=True)
        )


def best_bits(
    mechanism: Callable[..., GeneralizedRR | BitwiseRR],
    epsilon: float,
    *,
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
    >>> [best_bits(GeneralizedRR, epsilon) for epsilon in (1.0, 2.0, 4.0, 8.0)]
    [1, 2, 3, 4]
    """
    checks.positive("epsilon", epsilon)
    checks.choice("criterion", criterion, ("mean", "worst"))

    def variance(bits: int) -> float:
        made = mechanism(epsilon, bits=bits)
        return made.worst_variance() if criterion == "worst" else made.mean_variance()

    return min(range(1, BITS + 1), key=variance)
