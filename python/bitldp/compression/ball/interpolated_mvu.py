"""Interpolated MVU: records of a ball, each coordinate by an exponential family on a few letters."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix
from bitldp.accounting.compose import concentration
from bitldp.compression.ball.base import Ball, Norm
from bitldp.design.exact import unbiased
from bitldp.design.result import DesignError
from bitldp.mechanism.parameters import whole
from bitldp.privacy import ONE

__all__ = ["InterpolatedMVU"]

_TRIES = 12  # of fitting the variance to the budget
_SPENT = 0.995  # of the budget is enough
_POWER = 1.8  # the epsilon of a record goes about as the inverse root of the variance
_REACHES = (1.25, 2.0)  # of the letters, in standard deviations of the report
_LEAST = 1.5  # and at least in radii: the letters surround the interval
_HALVINGS = 100
_SLOPE = 700.0  # the most that a letter's weight is tilted, as a logarithm


@dataclass(frozen=True, eq=False, repr=False)
class InterpolatedMVU(Ball):
    """Interpolated MVU: reports vectors of a ball in 2 to 5 bits a coordinate.

    Use it for budgets that one bit cannot use fully.

    Parameters
    ----------
    features, epsilon, norm, radius, clip
        As of `VectorMVU`.
    delta : float
        Delta of a record, in [0, 1). With 0 the guarantee is pure, which is not what this family is designed
        for.
    input_bits : int
        A coordinate is dithered, without bias, to one of 2**input_bits points; 2 to 7.
    output_bits : int
        Bits of a coordinate's report, 2 to 5. For one bit see `VectorMVU`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.
    bitldp.design.mvu.DesignError
        If no table of integers over 2**64 is found that keeps the budget.
    MissingExtraError
        Without the extra ``design``, where delta is not 0.

    Notes
    -----
    Letters a_j are equidistant. At a point x, the report has ``P(j | x) = exp(theta a_j - kappa a_j^2)/Z``,
    with theta such that the mean letter is x. Between points, the dither mixes two rows. Estimates are
    therefore unbiased. At the points the variance V(x) is the inverse of the Fisher information, the least
    possible; kappa (of either sign) and the reach of the letters are fitted such that a record costs its
    budget and the worst variance is the least of the two reaches that are tried.

    `guarantee.record` is computed from the integers, by the bounds of `renyi`; neighbouring records are any
    two of the ball. Two close inputs cost alpha (x - x')^2/(2 V), as with Gaussian noise of variance V. A V
    below 1 needs more letters than randomized response has.

    Source of the idea, rows that are interpolated in their natural parameters and accounted by their Fisher
    information: Guo, Chaudhuri, Stock and Rabbat, "Privacy-aware compression for federated learning through
    numerical mechanism design", ICML 2023. Their mechanism solves for the table, and interpolates to inputs
    that are not on the grid. Here the family has a closed form, and the dither interpolates.

    Examples
    --------
    >>> from bitldp.compression import InterpolatedMVU
    >>> mechanism = InterpolatedMVU(64, epsilon=12.0, delta=1e-4, output_bits=3)
    >>> mechanism.report_bits, mechanism.guarantee.holds
    (192, True)
    >>> mechanism.worst_variance() < 0.75  # a bit of randomized response has at least 1
    True
    """

    _: KW_ONLY
    norm: Norm = "l2"
    input_bits: Annotated[int, whole(2, 7)] = 5
    output_bits: Annotated[int, whole(2, 5)] = 3

    def _build(self) -> None:
        result = [fitted for factor in _REACHES if (fitted := self._fit(factor)) is not None]
        if not result:
            raise DesignError(f"no table was found that keeps epsilon {self.epsilon:.6g}")
        _, variance, factor = min(result)
        self._with(variance, factor)

    def _fit(self, factor: float) -> tuple[float, float, float] | None:
        """Return the worst variance, the family's variance at 0 that gave it, and the factor; or None."""
        trial, best = self._start(), None
        for _ in range(_TRIES):
            self._with(trial, factor)
            spent = self.guarantee.record / self.epsilon
            if self.guarantee.holds:
                each = (self.worst_variance(), trial, factor)
                best = each if best is None else min(best, each)
                if spent >= _SPENT:
                    break
            if math.isinf(spent):
                trial *= 2.0
                continue
            # a little above the variance that would spend all, so that the tries end on the safe side
            trial *= min(max(spent * 2.0 / (1.0 + _SPENT), 0.3), 10.0) ** _POWER
        return best

    def _start(self) -> float:
        """Return about the variance, in radii squared, that keeps the budget."""
        if self.delta > 0.0:
            return 2.0 / concentration(self.epsilon, self.delta)
        if self.norm == "l1":
            return math.tanh(self.epsilon / 2.0) ** -2
        return 4.0 * self.features / self.epsilon**2

    def _with(self, variance: float, factor: float) -> None:
        """Build the mechanism from the family of a variance at 0, in radii squared."""
        reach = max(_LEAST, factor * math.sqrt(variance))
        letters = np.linspace(-reach, reach, 1 << self.output_bits)
        positions = np.linspace(-1.0, 1.0, 1 << self.input_bits)
        table = _tilted(letters, _base(letters, variance), positions)
        values = (letters + 1.0) / 2.0
        weights = unbiased(Matrix(table).weights(), tuple(values.tolist()))
        rows = np.array([[weight / ONE for weight in row] for row in weights])
        self._finish(
            Matrix.from_weights(weights),
            rows,
            power=1 if self.norm == "l1" else 2,
            conditional=False,
            letters=self.radius * (2.0 * values - 1.0),
            claimed=self.epsilon,
        )


def _shares(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows with these logarithms, up to a factor each, that sum to 1."""
    powers = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _base(letters: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    """Return the logarithms -kappa a^2 of the law at 0, such that it has the variance, or the nearest."""
    squares = np.square(letters)
    low, high = -_SLOPE / float(squares[-1]), _SLOPE / float(squares[-1])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        above = float(_shares(-middle * squares) @ squares) > variance
        low, high = (middle, high) if above else (low, middle)
    return -high * squares


def _tilted(
    letters: NDArray[np.float64], base: NDArray[np.float64], positions: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the laws of the family whose means are the positions, one row each."""
    high = np.full(len(positions), _SLOPE / float(letters[-1]))
    low = -high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        below = _shares(base + middle[:, None] * letters) @ letters < positions
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return _shares(base + ((low + high) / 2.0)[:, None] * letters)
