"""Records of an l2 ball on an integer grid, plus integer noise in every coordinate."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Shift
from bitldp.accounting.compose import concentration
from bitldp.compression.ball.base import Ball
from bitldp.mechanism.parameters import whole
from bitldp.privacy import ONE

__all__ = ["Additive"]

_MARGIN = 6.5  # standard deviations of the noise that a report has room for, beyond the ball
_WIDEST = 7.5  # the same, at most: beyond it, weights in units of 2**-64 soon are 0
_STEPS = 40  # of fitting the noise; a few do


@dataclass(frozen=True, eq=False, repr=False)
class Additive(Ball):
    """Base of the mechanisms that add symmetric, unimodal integer noise of a variance to be fitted."""

    _: KW_ONLY
    output_bits: Annotated[int, whole(4, 14)] = 12

    _half: ClassVar[float]  # of the variance, in steps squared
    _noise: ClassVar[NDArray[np.float64]]  # chance of -K to K

    def _build(self) -> None:
        if self.delta == 0.0:
            raise ValueError(
                f"delta: must be above 0; {type(self).__name__} has no pure epsilon worth having"
            )
        bits = self.output_bits
        rho = concentration(self.epsilon, self.delta)
        room = (1 << (bits - 1)) - 1  # codes on either side of the middle one
        radius = _radius(room, self.features, rho)
        if radius == 0:
            raise ValueError(
                f"output_bits: {bits} are too few for {self.features} features at epsilon {self.epsilon:.4g}"
            )
        half = ((2 * radius) ** 2 + self.features / 4.0) / (4.0 * rho)
        for _ in range(_STEPS):
            if self._try(radius, room, half):
                return
            half *= max(1.001, (self.guarantee.record / self.epsilon) ** 2)
        raise ValueError(f"epsilon: no noise was found for {self.epsilon:.6g}")

    def _try(self, radius: int, room: int, half: float) -> bool:
        """Build the mechanism with noise of the variance 2 half; return whether it keeps the budget."""
        # A ball of few steps may leave more room than the noise ever reaches.
        room = min(room, radius + math.ceil(_WIDEST * math.sqrt(2.0 * half)))
        points, codes = 2 * radius + 1, 2 * room + 1
        weights = self._lumped(half, room + radius)
        channel = Shift(points, codes, weights, room - radius)
        if math.isinf(channel.epsilon):
            raise ValueError(
                f"epsilon: {self.epsilon:.6g} needs so little noise that its tails have no chance in units "
                "of 2**-64"
            )
        letters = np.asarray((np.arange(codes) - room) * (self.radius / radius), dtype=np.float64)
        self._set(_half=half, _noise=np.array([weight / ONE for weight in weights]))
        self._finish(
            channel,
            channel.probabilities(),
            power=2,
            conditional=False,
            letters=letters,
            claimed=self.epsilon,
        )
        return self._guarantee.holds

    @staticmethod
    @abstractmethod
    def _noise_law(half: float, reach: int) -> list[int]:
        """Return the weights of noise of the variance 2 half, from -reach to reach."""

    @classmethod
    def _lumped(cls, half: float, reach: int) -> list[int]:
        """Return the weights of noise whose tails are lumped at -reach and reach.

        So two points tell each other apart at the ends as the whole tails do. Cut off, they would tell more:
        the last weight against the sum of many.
        """
        far = min(2 * reach, 32767)
        whole = cls._noise_law(half, far)
        extra = far - reach
        inside = whole[extra : len(whole) - extra]
        inside[0] += sum(whole[:extra])
        inside[-1] += sum(whole[len(whole) - extra :])
        return inside

    def _divergences(self, alpha: float) -> NDArray[np.float64]:
        """Return an upper bound for every two points: that of the noise, lumped only where it must be.

        Noise k from -K to K on points that are m apart, at 0 and at m, is lumped below m - K and above K, so
        that both give every report. What the mechanism lumps is more, whatever the two points: its reports
        are a function of these. The bound depends on m alone; mirrored at m/2, each law becomes the other.
        """
        noise = self._noise
        reach, points = len(noise) // 2, self.codec.points
        found = np.zeros(points)
        for apart in range(1, points):
            one = noise[apart:].copy()
            one[0] += noise[:apart].sum()
            rows = np.stack([one, one[::-1]])
            logs = np.log(rows)
            exponents = alpha * logs[0] + (1.0 - alpha) * logs[1]
            top = float(exponents.max())
            slack = alpha * (1.0 + float(np.abs(logs).max())) * 2.0**-49 + reach * 2.0**-50
            total = top + math.log(float(np.exp(exponents - top).sum())) + slack
            found[apart] = max(total, 0.0) / (alpha - 1.0)
        places = np.arange(points)
        table: NDArray[np.float64] = found[np.abs(places[:, None] - places)]
        return table


def _radius(room: int, features: int, rho: float) -> int:
    """Return the most steps that the ball's radius may have, with room for the noise; 0 for none."""
    for radius in range(room, 0, -1):
        sigma = math.sqrt(((2 * radius) ** 2 + features / 4.0) / (2.0 * rho))
        if radius + _MARGIN * sigma <= room:
            return radius
    return 0
