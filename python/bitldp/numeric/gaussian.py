"""Gaussian mechanism: discrete Gaussian noise on a grid, with its exact (epsilon, delta)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np

from bitldp._core import Shift
from bitldp.base import checks
from bitldp.channels.noise import gaussian_weights
from bitldp.channels.normal import continuous_sigma
from bitldp.channels.tails import delta_of_sum
from bitldp.mechanism.numeric import Numeric
from bitldp.privacy import ONE, Guarantee
from bitldp.release.base import Interval, Release
from bitldp.release.shift import shifted

__all__ = ["Gaussian"]

_FINENESS = 8  # steps of the grid for one standard deviation of the noise
_MOST_STEPS = 4095
_MOST_REACH = 32_000  # in steps; a report has 16 bits
_CUT = 1e-4  # share of delta for the noise that is cut off
_SPARE = 1e-5  # share of delta for the unlikeliest losses of several numbers
_PRECISION = 1e-8  # relative, of sigma and of a reported epsilon
_STEPS = 60


def bound(channel: Shift, scale: float, parts: int, epsilon: float, spare: float) -> float:
    """Return delta of `parts` releases at epsilon: exact for one, an upper bound for several."""
    if parts == 1:
        return channel.delta(epsilon)
    return delta_of_sum(channel.weights(), channel.inputs - 1, parts, epsilon, scale, spare)


def least(reached: Callable[[float], float], delta: float, low: float, high: float) -> float | None:
    """Return the least number of (low, high] that reaches delta, to 1e-8 of itself; None if `high` does not.

    `reached` falls; the search is by the rule of Illinois on its logarithm, and what is returned was tried.
    """

    def gap(at: float) -> float:
        result = reached(at)
        # Logarithms may hide which of two neighbours is larger.
        kept = result <= delta
        gap = math.log(max(result, 5e-324)) - math.log(delta)
        return min(gap, 0.0) if kept else max(gap, 5e-324)

    above, below = gap(low), gap(high)
    if below > 0.0:
        return None
    if above <= 0.0:
        return low
    side = 0
    for step in range(_STEPS):
        if high - low <= _PRECISION * high:
            break
        share = above / (above - below) if step % 4 != 3 and math.isfinite(below) else 0.5
        # Beyond the crossing by a little, so that the other end follows soon.
        at = low + (high - low) * min(max(share, 1e-3), 1.0 - 1e-3)
        result = gap(at)
        if result <= 0.0:
            high, below = at, result
            above = above / 2.0 if side == 1 else above
            side = 1
        else:
            low, above = at, result
            below = below / 2.0 if side == -1 else below
            side = -1
    return high


@lru_cache(maxsize=64)
def designed(epsilon: float, delta: float, parts: int) -> tuple[Shift, float]:
    """Return the channel of the least noise for `parts` numbers, and the spacing of its losses.

    All numbers may move by the whole interval, S steps. The noise is cut off where the chance of what is
    beyond, times the number of parts, is below a ten-thousandth of delta; the integers of the cut law are
    those that delta is computed from.
    """
    width = continuous_sigma(epsilon, delta) * math.sqrt(parts)
    steps = min(max(1, math.ceil(_FINENESS / width)), _MOST_STEPS)
    sigma = width * steps
    reach = steps + math.ceil(sigma * math.sqrt(2.0 * math.log(parts / (delta * _CUT))))
    if reach > _MOST_REACH:
        raise ValueError(
            f"epsilon: {epsilon} with delta {delta} for {parts} numbers needs noise of more than "
            f"{_MOST_REACH} steps, which 16 bits a report do not hold; allow more of either, or fewer numbers"
        )

    def channel(trial: float) -> Shift:
        return Shift(steps + 1, steps + 1 + 2 * reach, gaussian_weights(trial, reach), reach)

    def reached(trial: float) -> float:
        return bound(channel(trial), steps / trial**2, parts, epsilon, _SPARE * delta)

    result = least(reached, delta, 0.9 * sigma, 1.1 * sigma)
    if result is None:
        raise ValueError(
            f"delta: {delta} is too small for probabilities in units of 2**-64 of {parts} numbers"
        )
    return channel(result), steps / result**2


@lru_cache(maxsize=64)
def least_epsilon(epsilon: float, delta: float, parts: int, count: int, known: float) -> float:
    """Return the least epsilon, rounded up, at which `count` numbers of the design for `parts` keep delta.

    `known` is an epsilon that may not do yet.
    """
    channel, scale = designed(epsilon, delta, parts)
    high = max(known, 1e-3)
    while bound(channel, scale, count, high, _SPARE * delta) > delta:
        high *= 2.0
        if high > 1e6:
            return math.inf
    result = least(lambda at: bound(channel, scale, count, at, _SPARE * delta), delta, 0.0, high)
    return math.inf if result is None else result


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(Numeric):
    """Gaussian mechanism: adds discrete Gaussian noise to a number; a baseline with a delta.

    The least noise for (epsilon, delta) of a whole record.

    Parameters
    ----------
    epsilon : float
        Exact epsilon of one `unit` at `delta`, finite, zero or more.
    delta : float
        Above 0 and below 1.
    features, interval, spend, k, clip, unit
        As of `Numeric`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; for a budget so small, or so many features, that the noise would
        take more than 32,000 steps to either side (a sigma of some 5000 intervals); for a delta that units of
        2^-64 cannot keep (about 1e-14).

    Notes
    -----
    Neighbouring records differ in any way: all d numbers may move by the whole interval. The L2 sensitivity
    is therefore sqrt(d) intervals, and sigma grows with sqrt(d), where pure mechanisms pay d. The guarantee
    is (epsilon, delta), with the same delta for all three epsilons. There is no pure guarantee: the noise is
    cut off (beyond about 7 sigma), so a report near the end of its range excludes some inputs, and the exact
    epsilon at delta 0 is infinite. `delta_at` returns the delta of a record at any other epsilon.

    For one number, delta is the hockey-stick divergence of the worst two inputs, exact from the integers and
    rounded up. For several, the privacy loss is a sum of independent losses, and delta is an upper bound on
    the tail of their d-fold convolution. No composition theorem is applied, and the excess over the true
    delta is about 1e-5 of it for d up to 1000. Sigma is the smallest one that keeps delta, to 1e-8. The
    search takes milliseconds, or seconds if the noise of many numbers needs 14 bits or more. Only the input
    is clamped, so the letters are exactly unbiased. Sources: Canonne, Kamath and Steinke, "The discrete
    Gaussian for differential privacy", NeurIPS 2020, Theorem 7; Dwork et al., "Our data, ourselves",
    EUROCRYPT 2006.

    No branch and no memory address depends on the input.

    Examples
    --------
    >>> from bitldp.numeric import Gaussian
    >>> mechanism = Gaussian(epsilon=1.0, delta=1e-6, features=768)
    >>> mechanism.report_bits // 768, round(mechanism.worst_variance() / 768)
    (11, 71)
    >>> mechanism.guarantee.delta <= 1e-6 and mechanism.guarantee.record <= 1.0
    True
    """

    _lasting: ClassVar[str] = "bitldp.numeric.gaussian.Gaussian"

    _: KW_ONLY
    delta: Annotated[float, checks.chance]

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example, at a delta of 1e-6."""
        return super()._usual(epsilon, size) | {"delta": 1e-6}

    def _released(self, epsilon: float, interval: Interval) -> Release:
        return self._of(designed(epsilon, self.delta, 1)[0], interval)

    def _of(self, channel: Shift, interval: Interval) -> Release:
        steps = channel.inputs - 1
        positions = np.arange(channel.outputs, dtype=np.float64) - (channel.offset + steps / 2.0)
        return shifted(channel, channel.epsilon, interval, steps, positions)

    def _promise(self, epsilon: float, parts: int, interval: Interval) -> tuple[Release, Guarantee]:
        covered = parts if self.unit == "record" else 1
        channel, _ = designed(epsilon, self.delta, covered)
        if parts == 1:
            feature = record = epsilon
        elif self.unit == "record":
            record, feature = epsilon, least_epsilon(epsilon, self.delta, covered, 1, epsilon)
        else:
            feature, record = epsilon, least_epsilon(epsilon, self.delta, covered, parts, epsilon)
        guarantee = Guarantee(epsilon, feature, feature, record, delta=self.delta, unit=self.unit)
        return self._of(channel, interval), guarantee

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise, in units of the input, the dither not counted."""
        law = np.array(self._channel.weights(), dtype=np.float64) / ONE
        steps = np.arange(len(law)) - self._channel.reach
        low, high = self._ends
        return math.sqrt(float(law @ np.square(steps))) * (high - low) / (self._channel.inputs - 1)

    @property
    def _channel(self) -> Shift:
        channel = self.channels[0]
        assert isinstance(channel, Shift)  # as _of makes it
        return channel

    def delta_at(self, epsilon: float) -> float:
        """Return the delta of a record at another epsilon: exact for one number, else an upper bound.

        Parameters
        ----------
        epsilon : float
            Finite, zero or more.
        """
        parts = self.features if self.k is None else self.k
        covered = parts if self.unit == "record" else 1
        channel, scale = designed(self.epsilon, self.delta, covered)
        return bound(channel, scale, parts, checks.budget("epsilon", epsilon), _SPARE * self.delta)
