"""Optimal bit budgets: a number as an l-bit code, each bit answered by itself with its share of epsilon."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Bits, Grid, Matrix, pack
from bitldp.base.arrays import fill, readonly, zeros_if_refused
from bitldp.client.codec import Placed
from bitldp.client.program import ClientProgram
from bitldp.client.record import Type
from bitldp.letters.spread import Spread
from bitldp.mechanism.numeric import Numeric
from bitldp.mechanism.parameters import optional, whole
from bitldp.privacy import ONE, calibrated
from bitldp.release.base import Call, Interval, Release, equidistant

__all__ = ["BitBudgets"]

_MOST = 8  # bits: a grid of 256 points, whose step is far below the noise of independent bits

_UNIT_IN_LAST_PLACE = 2.0**-53
_HALVINGS = 64
_LARGEST = 1e6  # budgets above have the shares of this one, at which no bit is ever flipped
_LEAST = 1e-6  # below, doubles near 1/2 are too coarse for a bit's share


def weights(bits: int) -> NDArray[np.float64]:
    """Return W_i, the squares of what each bit of the code adds on [-1, 1], most significant first."""
    return np.square(2.0 * 2.0 ** np.arange(bits - 1, -1, -1) / (2**bits - 1))


def shares(bits: int, epsilon: float) -> NDArray[np.float64]:
    """Return the budgets e_i that sum to epsilon and minimise sum_i W_i e^e_i/(e^e_i - 1)^2.

    Notes
    -----
    At the optimum, ``W_i cosh(e_i/2)/(4 sinh(e_i/2)^3)`` is the same for all bits (the derivative, a falling
    function of e_i). Both the common value and each e_i are found by bisection, of logarithms, which neither
    overflow nor cancel.
    """
    target = np.log(weights(bits))

    def slope(e: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ln(cosh(e/2)/(4 sinh(e/2)^3)) = ln(1 + u) - 3 ln(1 - u) - e, u = e^-e."""
        u = np.exp(-e)
        return np.log1p(u) - 3.0 * np.log(-np.expm1(-e)) - e

    def budgets(level: float) -> NDArray[np.float64]:
        low, high = np.full(bits, 1e-300), np.full(bits, epsilon)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            above = slope(middle) + target > level
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.asarray((low + high) / 2.0, dtype=np.float64)

    least, most = float((slope(np.full(bits, epsilon)) + target).min()), 2200.0
    for _ in range(_HALVINGS):
        middle = (least + most) / 2.0
        if budgets(middle).sum() > epsilon:
            least = middle
        else:
            most = middle
    result = budgets(most)
    return result * (epsilon / result.sum())


@lru_cache(maxsize=64)
def channel_of(bits: int, epsilon: float) -> Bits:
    """Return the channel of the optimal budgets, its exact epsilon at most `epsilon`."""
    bounded = min(epsilon, _LARGEST)
    budgets = shares(bits, bounded) / bounded

    def build(target: float) -> Bits:
        kept = np.minimum(0.5 + 0.5 * np.tanh(target * budgets / 2.0), 1.0 - _UNIT_IN_LAST_PLACE)
        return Bits([kept.tolist()], [(1.0 - kept).tolist()], 1)

    return calibrated(build, epsilon, lambda channel: channel.epsilon[1])


def noise(channel: Bits) -> float:
    """Return the variance of the letters of a code on [-1, 1]: sum_i W_i p_i q_i/(p_i - q_i)^2."""
    each = [one * (ONE - one) / (one - zero) ** 2 for one, zero in channel.thresholds()[0]]
    return math.fsum(weights(channel.bits) * each)


@lru_cache(maxsize=64)
def best_bits(epsilon: float) -> int:
    """Return the length of the code with the least worst-case variance, the dither included."""
    worst = [noise(channel_of(bits, epsilon)) + 1.0 / (2**bits - 1) ** 2 for bits in range(1, _MOST + 1)]
    return 1 + int(np.argmin(worst))


@lru_cache(maxsize=_MOST)
def _undisturbed(count: int) -> Matrix:
    return Matrix(np.eye(count))


@dataclass(frozen=True, eq=False)
class BitsRelease(Release):
    """A release of a point's code by independent bits."""

    @property
    def dither(self) -> Matrix:
        """The channel that places a number and leaves it there."""
        return _undisturbed(self.alphabet)

    streams: ClassVar[int] = 2
    straight: ClassVar[bool] = False

    def randomize(self, x: ArrayLike, call: Call) -> NDArray[Any]:
        # The dither is a channel without noise; its codes never leave this function.
        keys, output, out, threads, first_chunk = call
        with zeros_if_refused(out):
            codes = self.dither.randomize(x, self.codec, None, keys[0], "codes", None, threads, first_chunk)
        flat = self.channel.randomize(codes.ravel(), None, keys[1], "codes", None, threads, first_chunk)
        reports: NDArray[Any] = flat.reshape(codes.shape)
        if output == "packed":
            reports = pack(reports, self.channel.bits)
        elif output == "values" and self.letters is not None:
            reports = self.letters.astype(np.asarray(x).dtype)[reports]
        return reports if out is None else fill(out, reports)

    def probabilities(self) -> NDArray[np.float64]:
        law: NDArray[np.float64] = np.ones((1, 1))
        for one, zero in self.channel.thresholds()[0]:
            bit = np.array([[ONE - zero, zero], [ONE - one, one]]) / ONE
            law = np.asarray(np.kron(law, bit), dtype=np.float64)
        return law


@dataclass(frozen=True, eq=False, repr=False)
class BitBudgets(Numeric):
    """Bit budgets: flips the bits of a number with the budget divided for least variance.

    Parameters
    ----------
    epsilon : float
        Exact epsilon of one `unit`; that of one released number must be 1e-6 or more.
    bits : int, optional
        Bits l of a number's code, 1 to 8. None: the l of least worst-case variance. The attribute then holds
        the chosen number.
    features, interval, spend, k, clip, unit
        As of `Numeric`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records differ in any way: every bit may differ between them, so the epsilon of a number is
    the sum over its bits. A number is dithered to one of 2**l points with offset binary codes. Bit i, which
    adds w_i, is flipped with probability 1/(1 + e^e_i). On [-1, 1] the variance of the unbiased letter is
    ``sum_i w_i^2 e^e_i/(e^e_i - 1)^2`` plus that of the dither. The e_i minimise this sum (Lagrange: ``w_i^2
    cosh(e_i/2)/sinh(e_i/2)^3`` is the same for all bits).

    No mechanism with independent bits has a lower variance, and yet with l > 1 they never beat `Piecewise`,
    GRR on the same points or `MinimaxVariance` at equal exact epsilon. With l = 1 this is `Duchi`. Use it if
    you must send independent bits, or as the benchmark for `FRR` and `MOUE`.

    Inputs are placed on the grid with a resolution of 2**-32 of a step, in the precision of their dtype.

    Examples
    --------
    >>> import bitldp
    >>> mechanism = bitldp.BitBudgets(epsilon=4.0, bits=4)
    >>> mechanism.budgets.round(4).tolist()
    [1.7476, 1.1103, 0.7006, 0.4415]
    >>> bitldp.BitBudgets(epsilon=2.0).bits, bitldp.BitBudgets(epsilon=4.0).bits
    (1, 2)
    """

    _lasting: ClassVar[str] = "bitldp.numeric.bit_budgets.BitBudgets"

    _: KW_ONLY
    bits: Annotated[int | None, optional(whole(1, _MOST))] = None

    def _build(self) -> None:
        super()._build()
        self._set(_guarantee=replace(self._guarantee, bit=self.channel.epsilon[0]))

    def _program(self, numbers: Type) -> ClientProgram:
        program, grid = super()._program(numbers), self._release.codec
        assert grid is not None  # of numbers
        return replace(program, codec=Placed(grid))

    @property
    def channel(self) -> Bits:
        """The channel of one number's code."""
        channel = self._release.channels[0]
        if not isinstance(channel, Bits):
            raise TypeError(f"channel: must be Bits, not {type(channel).__name__}")
        return channel

    @property
    def budgets(self) -> NDArray[np.float64]:
        """The epsilon of each bit, the most significant first, shape (bits,): ln(p/(1 - p))."""
        return np.array([math.log(one / zero) for one, zero in self.channel.thresholds()[0]])

    def _released(self, epsilon: float, interval: Interval) -> Release:
        if epsilon < _LEAST:
            raise ValueError(f"epsilon: at least {_LEAST:g} for one released number, got {epsilon:g}")
        if self.bits is None:
            self._set(bits=best_bits(epsilon))
        bits = int(self.bits or 1)
        channel = channel_of(bits, epsilon)
        low, high = interval
        points = equidistant(interval, 2**bits)
        half = (high - low) / 2.0
        letters = np.zeros(1)
        for weight, (one, zero) in zip(np.sqrt(weights(bits)), channel.thresholds()[0], strict=True):
            step = weight * (ONE / (one - zero)) / 2.0
            letters = (letters[:, None] + np.array([-step, step])).ravel()
        moments = noise(channel) + np.square(np.linspace(-1.0, 1.0, 2**bits))
        return BitsRelease(
            channel,
            channel.epsilon[1],
            2**bits,
            Grid(2**bits, low=low, high=high),
            points,
            readonly(low + half + half * letters),
            Spread(points, readonly(half * half * moments)),
        )
