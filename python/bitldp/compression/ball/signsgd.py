"""Stochastic sign: the sign of every coordinate after Gaussian noise, as one bit."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Matrix
from bitldp.accounting.compose import concentration
from bitldp.base import checks
from bitldp.channels.normal import epsilon_of, largest_mu, slope_of_rows
from bitldp.compression.ball import bounds
from bitldp.compression.ball.base import Ball, check_shape
from bitldp.mechanism.parameters import Calibration
from bitldp.privacy import ONE

__all__ = ["SignSGD"]

_POINTS = 129  # of a coordinate; odd, so that zero is one of them
_HALVINGS = 80
_RAREST = 1e-15  # of a wrong sign, twice: below, units of 2**-64 are too coarse
_LEAST = 1e-12  # of the log-ratio of a sign between the ends of the ball
_STEPS = 4  # of fitting the noise


@dataclass(frozen=True, eq=False, repr=False)
class SignSGD(Ball):
    """Stochastic signSGD: reports the signs of a noisy gradient in an l2 ball; has no unbiased mean.

    Parameters
    ----------
    features, epsilon, radius, clip
        As of `Skellam`.
    delta : float
        Delta of a record, in [0, 1). With 0 the privacy is pure, which costs a factor sqrt(d).
    calibration : {"exact", "paper"}
        "exact": the least noise with which the signs satisfy epsilon. "paper": noise that satisfies epsilon
        by itself, with the sign as post-processing; needs a delta.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.
    MissingExtraError
        Without the extra ``design``, if delta is not 0.

    Notes
    -----
    Neighbouring records are any two of the ball. A coordinate x is reported as 1 with probability
    Phi(x/sigma), by a table over a grid of 129 points and dither between them: no Gaussian number is drawn.
    The paper accounts for the noise, and treats the sign as post-processing. Here the released bits are
    accounted for, which costs less: near zero the log-ratio of a sign changes by 0.8/sigma, so that sigma
    need only be about 0.8 of what the Gaussian mechanism needs. `guarantee.record` is an upper bound computed
    from the integers, as for `VectorMVU`. With ``calibration="paper"`` sigma is that of the analytic Gaussian
    mechanism (Balle and Wang, ICML 2018) for the diameter of the ball, `guarantee.claimed` is epsilon, and
    `guarantee.record` what the signs cost, which is less.

    The signs have no unbiased decoded values, since 2 Phi(x/sigma) - 1 is not linear in x. Servers add them
    up and follow the sign of the sum (`majority`). Source: Jin et al., "Stochastic-sign SGD for federated
    learning with theoretical guarantees", arXiv:2002.10940 (2020).

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp.compression import SignSGD
    >>> mechanism = SignSGD(4, epsilon=8.0, delta=1e-5)
    >>> reports = mechanism.randomize(np.tile([0.5, -0.5, 0.1, -0.1], (10_000, 1)), rng=1)
    >>> mechanism.majority(reports).tolist()
    [1.0, -1.0, 1.0, -1.0]
    """

    _: KW_ONLY
    calibration: Calibration = "exact"

    _sigma: float = field(init=False, repr=False, compare=False)
    _no_mean: ClassVar[str] = "the mean of a sign is not linear in the number; use majority"

    @property
    def _fingerprint_version(self) -> int:
        """2 of a calibrated one: before, another law kept the bound of the ball's diameter."""
        return 2 if self.calibration == "exact" else 1

    def _build(self) -> None:
        if self.calibration == "paper":
            if self.delta == 0.0:
                raise ValueError("delta: must be above 0 with calibration='paper', whose noise is Gaussian")
            ratio = 2.0 / largest_mu(self.epsilon, self.delta)
            if _rarest(ratio) < _RAREST:
                raise ValueError(f"epsilon: {self.epsilon:g} needs too little noise for units of 2**-64")
            self._with(ratio)
            return
        if self.delta > 0.0:
            length = math.sqrt(2.0 * concentration(self.epsilon, self.delta))
        else:
            length = self.epsilon / math.sqrt(self.features)
        if length < _LEAST:
            raise ValueError(f"epsilon: {self.epsilon:g} is too small for probabilities in units of 2**-64")
        ratio = _noise(length * (1.0 - 1e-6))
        self._with(ratio)
        # other bounds than the one that this noise was fitted to may be smaller: less noise will do then
        for _ in range(_STEPS):
            less = ratio * max(0.5, (self.guarantee.record / self.epsilon) ** 0.8)  # record may be 0
            if less >= ratio or _rarest(less) < _RAREST:
                break
            self._with(less)
            if not self.guarantee.holds:
                self._with(ratio)
                break
            ratio = less

    def _with(self, ratio: float) -> None:
        """Build the mechanism with noise of `ratio` radii."""
        channel = _channel(ratio)
        rows = np.array([[weight / ONE for weight in row] for row in channel.weights()])
        self._set(_sigma=ratio * self.radius)
        self._finish(channel, rows, power=2, conditional=False, letters=None, claimed=self.epsilon)

    def _at_delta(self) -> float:
        result = super()._at_delta()
        if self.calibration == "exact":
            return result
        # signs of Gaussian noise cost no more than the noise, but for the dither
        return min(result, epsilon_of(slope_of_rows(self._coordinate.rows) * self._diameter(), self.delta))

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise whose sign is modelled, in units of `x`."""
        return self._sigma

    @property
    def letters(self) -> NDArray[np.float64]:
        """Signs that the codes 0 and 1 stand for: -1 and 1."""
        return np.array([-1.0, 1.0])

    def majority(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return the sign of the sum of the reported signs in each coordinate, 0 for a tie.

        Parameters
        ----------
        reports : array_like of int, shape (n, features)
            Codes as `randomize` gives them.

        Returns
        -------
        ndarray of float64, shape (features,)

        Raises
        ------
        ValueError, TypeError
            For no reports, a code out of range, or another shape.
        """
        codes = checks.codes("reports", reports, 2)
        check_shape("reports", codes.shape, self.features)
        table = codes.reshape(-1, self.features)
        if not len(table):
            raise ValueError("reports: at least one is needed")
        votes = 2 * table.sum(axis=0, dtype=np.int64) - len(table)
        return np.asarray(np.sign(votes), dtype=np.float64)


def _channel(ratio: float) -> Matrix:
    """Return the table of a coordinate for sigma = ratio * radius."""
    points = np.linspace(-1.0, 1.0, _POINTS) / (ratio * math.sqrt(2.0))
    low = np.array([math.erfc(point) / 2.0 for point in points])  # P(negative)
    return Matrix(np.stack([low, low[::-1]], axis=1))


def _rarest(ratio: float) -> float:
    """Return twice the chance of the wrong sign at an end of the ball."""
    return math.erfc(1.0 / (ratio * math.sqrt(2.0)))


def _noise(length: float) -> float:
    """Return the least sigma, in radii, at which the log-ratio of a sign changes by `length` a diameter."""

    def fits(ratio: float) -> bool:
        if _rarest(ratio) < _RAREST:
            return False
        rows = np.array([[weight / ONE for weight in row] for row in _channel(ratio).weights()])
        return bounds.steepest(rows) * (_POINTS - 1) <= length

    low, high = math.log(1e-3), math.log(max(10.0, 10.0 / length))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if fits(math.exp(middle)) else (middle, high)
    return math.exp(high)
