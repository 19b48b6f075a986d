"""Records of an l2 ball on an integer grid, plus integer noise in every coordinate."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Shift
from bitldp.accounting.divergence import check_orders
from bitldp.base import checks
from bitldp.channels.noise import gaussian_weights, skellam_weights
from bitldp.channels.normal import delta_of, epsilon_of, largest_mu, slope_of_noise
from bitldp.compression.ball.base import Ball, Bound
from bitldp.compression.ball.steps import distances
from bitldp.mechanism.law import Coordinates
from bitldp.mechanism.parameters import optional, whole
from bitldp.privacy import ONE
from bitldp.release.shift import law_of, shifted

__all__ = ["Additive", "BallGaussian", "Skellam"]

_LEAST_MARGIN, _MOST_MARGIN = 4.5, 5.5  # of a report beyond the ball, in standard deviations of the noise
_REACH = 7.75  # the same, from the other end of the ball: beyond, units of 2**-64 are too coarse
_LOSS = 0.01  # of the variance: the bits are the least that do not cost more than this
_LEAST, _MOST = 4, 16
_FARTHEST = 32_767  # steps of the noise
_UNITS = 40.0  # of the difference of two weights at the end of the noise
_COARSE = 4096.0  # steps of a standard deviation: finer ones cost time and bring nothing
_CLOSE = 1e-4  # relative: how near to the least noise it is fitted on a coarse grid
_STEPS = 40  # of fitting the noise; a few do
_COARSEST = 256  # steps of a radius up to which distances are bounded one by one
_UP = 1.0 + 2.0**-40


@dataclass(frozen=True, eq=False, repr=False)
class Additive(Ball):
    """Base of the mechanisms that add symmetric, unimodal integer noise of a variance to be fitted."""

    _: KW_ONLY
    delta: Annotated[float, checks.chance] = field()
    output_bits: Annotated[int | None, optional(whole(_LEAST, _MOST))] = None

    # Derived of the parameters while the mechanism is built.
    _half: float = field(init=False, repr=False, compare=False)  # of the variance, in steps squared
    _allowed: float = field(init=False, repr=False, compare=False)  # of `_mu`, by the budget
    # Standard deviations that two records are apart at most, in normal noise.
    _mu: float = field(init=False, repr=False, compare=False)
    _bias: float = field(init=False, repr=False, compare=False)

    @property
    def _fingerprint_version(self) -> int:
        """2: before, grid and noise were of a bound by the slope alone."""
        return 2

    def _build(self) -> None:
        if self.delta == 0.0:
            raise ValueError(f"delta: must be above 0; {type(self).__name__} has no useful pure epsilon")
        allowed = largest_mu(self.epsilon, self.delta)
        self._set(_allowed=allowed)
        bits = self._bits(allowed) if self.output_bits is None else self.output_bits
        half_width = (1 << (bits - 1)) - 1  # codes on either side of the middle one
        radius, sigma = _layout(half_width, allowed)
        while radius > 0:
            if self._fitted(radius, sigma, half_width):
                self._judge(self.epsilon)
                return
            radius, sigma = _layout(half_width, allowed, radius - 1 - radius // 50)
        raise ValueError(
            f"output_bits: {bits} are too few for epsilon {self.epsilon:.4g} at delta {self.delta:.3g}"
        )

    def _fitted(self, radius: int, sigma: float, codes: int) -> bool:
        """Build all but the guarantee with about the least noise, near `sigma`; tell whether there is any."""
        allowed, less = self._allowed, 0.0
        for _ in range(_STEPS):
            if not self._try(radius, sigma, codes):
                return False
            if self._mu <= allowed:
                break
            less, sigma = sigma, sigma * (1.0 + min(max(self._mu / allowed - 1.0, 1e-6), 0.5))
        else:
            return False
        if radius > _COARSEST:
            return True
        less = less or sigma / 2.0
        while sigma - less > _CLOSE * sigma:
            middle = (less + sigma) / 2.0
            good = self._try(radius, middle, codes) and self._mu <= allowed
            less, sigma = (less, middle) if good else (middle, sigma)
        return self._try(radius, sigma, codes)

    @staticmethod
    def _bits(allowed: float) -> int:
        """Return the least bits at which the grid costs no more than a hundredth of the variance.

        Or as fine a grid as there may be.
        """
        for bits in range(_LEAST, _MOST):
            radius, sigma = _layout((1 << (bits - 1)) - 1, allowed, counted=False)
            if radius == 0:
                continue
            if sigma >= min((_margin(allowed) + 2.0 * radius / sigma) / _LOSS, 0.9 * _finest(allowed)):
                return bits
        return _MOST

    def _try(self, radius: int, sigma: float, codes: int) -> bool:
        """Build all but the guarantee, with noise of `sigma` steps; tell whether it fits into the codes."""
        beyond = math.ceil(_margin(self._allowed) * sigma)
        if not _fits(radius, beyond, codes):
            return False
        half_width = radius + beyond
        half = sigma * sigma / 2.0
        weights = self._noise_law(half, half_width + radius)
        channel = Shift(2 * radius + 1, 2 * half_width + 1, weights, half_width - radius)
        noise = law_of(channel)
        positions = np.arange(-half_width, half_width + 1, dtype=np.float64)
        # An end stands for the mean of the noise beyond it, from the end of the ball.
        over = noise[2 * half_width :]
        positions[-1] += float(over @ np.arange(len(over))) / float(over.sum())
        positions[0] = -positions[-1]
        ends = (-self.radius, self.radius)
        release = shifted(channel, channel.epsilon, ends, 2 * radius, positions)
        means = np.correlate(positions[_clamped(channel)], noise, "valid") - np.arange(-radius, radius + 1)
        slope = slope_of_noise(weights)
        self._set(
            _release=release,
            _ends=ends,
            _power=2,
            _conditional=False,
            _spread=release.spread,
            _half=half,
            _bias=float(np.abs(means).max()) * self.radius / radius,
        )
        diameter = self._diameter()
        # On finer grids the slope loses less than 0.5 %, and rounded weights are not log-concave far out.
        known = distances(weights, slope, 2 * radius) if radius <= _COARSEST else None
        mu = slope * diameter
        self._set(_mu=mu if known is None else min(mu, known.record(diameter, self.features)))
        return True

    @staticmethod
    @abstractmethod
    def _noise_law(half: float, reach: int) -> list[int]:
        """Return the weights of noise of the variance 2 half, from -reach to reach, tails lumped."""

    @property
    def gdp_mu(self) -> float:
        """Gaussian DP parameter: records are distinguished no better than two N(0, 1) laws this far apart."""
        return self._mu

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise in units of `x`, the dither not counted."""
        return math.sqrt(2.0 * self._half) * 2.0 * self.radius / (self.codec.points - 1)

    @property
    def bias_bound(self) -> float:
        """Bound of the bias of the decoded record in the l2 norm, in units of `x`, which the clamp leaves."""
        return math.sqrt(self.features) * self._bias

    def pure_epsilon(self) -> float:
        """Return an upper bound of the epsilon of a record at delta 0, from the channel's integers."""
        channel = self.channel
        assert isinstance(channel, Shift)  # as _try makes it
        weights = law_of(channel)
        tails = np.cumsum(weights[::-1])[::-1][len(weights) // 2 :]
        half = weights[len(weights) // 2 :]
        if not half.all():
            return math.inf
        ratio = max(float((half[:-2] / half[1:-1]).max(initial=1.0)), float((tails[:-1] / tails[1:]).max()))
        length = self._diameter() * math.sqrt(self.features)  # by Cauchy and Schwarz, in the l1 norm
        return min((ratio - 1.0) * length, self.features * self.channel.epsilon) * _UP

    def _coordinates(self) -> Coordinates:
        """Return the law of all coordinates, whose inputs lie in the ball."""
        channel = self.channel
        assert isinstance(channel, Shift)  # as _try makes it
        return Coordinates(channel, self.features, self._diameter())

    def _at_delta(self) -> float:
        return epsilon_of(self._mu, self.delta)

    def delta_at(self, epsilon: float) -> float:
        """Return an upper bound of the delta of a record at another epsilon, finite, zero or more."""
        return delta_of(self._mu, checks.budget("epsilon", epsilon))

    def renyi(self, orders: ArrayLike, *, bound: Bound = "best") -> NDArray[np.float64]:
        """Return an upper bound of the Rényi divergence of two records; see `VectorMVU.renyi`.

        The only bound is "best": alpha mu^2/2, that of the normal laws, and at most `pure_epsilon`.
        """
        alphas = check_orders(orders)
        checks.choice("bound", bound, ("best",))
        return np.minimum(alphas * (self._mu * self._mu / 2.0) * _UP, self._pure)


def _clamped(channel: Shift) -> NDArray[np.int64]:
    """Return the reports of all sums of an input and noise, from the least."""
    start = channel.offset - channel.reach
    sums = np.arange(start, start + channel.inputs + 2 * channel.reach)
    return np.clip(sums, 0, channel.outputs - 1)


def _layout(
    half_width: int, allowed: float, most: int | None = None, *, counted: bool = True
) -> tuple[int, float]:
    """Return the most steps that the ball's radius may have, up to `most`, and the noise it needs, in steps.

    (0, 0) if none fits. With `counted`, the noise is the least that any dimension needs, on a coarse grid.
    """
    finest = _finest(allowed)
    low, high = 0, half_width if most is None else most
    while low < high:  # the margin that is needed grows with the radius
        middle = (low + high + 1) // 2
        sigma = _sigma(middle, allowed, half_width, counted)
        good = _fits(middle, math.ceil(_margin(allowed) * sigma), half_width) and (
            sigma <= finest or middle == 1
        )
        low, high = (middle, high) if good else (low, middle - 1)
    return (low, _sigma(low, allowed, half_width, counted)) if low > 0 else (0, 0.0)


def _margin(allowed: float) -> float:
    """Return how far reports go beyond the ball, in deviations: the bias that is left falls with it."""
    return max(_LEAST_MARGIN, min(_MOST_MARGIN, _REACH - allowed))


def _fits(radius: int, beyond: int, half_width: int) -> bool:
    """Return whether a ball and its noise fit into the codes of a report, and the noise into its channel."""
    return radius + beyond <= half_width and 2 * radius + beyond <= _FARTHEST


def _finest(allowed: float) -> float:
    """Return the most noise, in steps, that there is use for.

    Its weights are still many units where it reaches across the ball.

    With K the reach in deviations, a weight there has w = 2^64 phi(K)/sigma units and should differ from the
    next, by K/sigma of itself, by more than its rounding does.
    """
    reach = min(_margin(allowed) + allowed, _REACH)
    density = math.exp(-reach * reach / 2.0) / math.sqrt(2.0 * math.pi)
    return min(math.sqrt(density * reach * ONE / _UNITS), _COARSE)


def _sigma(radius: int, allowed: float, half_width: int, counted: bool) -> float:
    """Return about the noise that a ball of so many steps needs; above `half_width` where there is none."""
    # With less, a report at one end of the ball would exclude the other end, in units of 2**-64.
    plain = 2.0 * radius / min(allowed, _REACH - _LEAST_MARGIN)
    if counted and radius <= _COARSEST:
        return plain  # what this dimension needs more is fitted
    sigma = plain
    while sigma <= half_width:
        # the slope of Gaussian noise up to K is e^(K/(2 sigma^2))/sigma
        needed = plain * math.exp(min((_margin(allowed) * sigma + 2.0 * radius) / (2.0 * sigma * sigma), 9.0))
        if needed <= sigma * (1.0 + 1e-9):
            break
        sigma = needed
    return sigma


@dataclass(frozen=True, eq=False, repr=False)
class BallGaussian(Additive):
    """Gaussian mechanism for an l2 ball: adds discrete Gaussian noise to a vector on a grid; has a delta.

    This is the mechanism of DP-SGD, applied by each client. Use `bitldp.numeric.Gaussian` for records whose
    numbers may all move by the whole interval; here a record moves within a ball.

    Parameters
    ----------
    features, epsilon, delta, radius, clip, output_bits
        As of `Skellam`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, or a budget that needs a finer grid; the message names it.

    Notes
    -----
    This is the analytic Gaussian mechanism. Neighbouring records are any two of the ball, whose diameter is
    the sensitivity, and the noise is the least of Balle and Wang, "Improving the Gaussian mechanism for
    differential privacy", ICML 2018. Grid, clamp, dither and the proof behind `guarantee.record` are those of
    `bitldp.compression.Skellam`; the noise is the discrete Gaussian of Canonne, Kamath and Steinke, "The
    discrete Gaussian for differential privacy", NeurIPS 2020. Source of its use: Abadi et al., "Deep learning
    with differential privacy", CCS 2016.

    Examples
    --------
    >>> from bitldp.compression import BallGaussian
    >>> mechanism = BallGaussian(64, epsilon=4.0, delta=1e-5, output_bits=9)
    >>> mechanism.report_bits
    576
    >>> mechanism.guarantee.record <= 4.0
    True
    """

    @staticmethod
    def _noise_law(half: float, reach: int) -> list[int]:
        return gaussian_weights(math.sqrt(2.0 * half), reach, lumped=True)


@dataclass(frozen=True, eq=False, repr=False)
class Skellam(Additive):
    """Skellam mechanism: adds Skellam noise to a vector of an l2 ball on an integer grid; has a delta.

    Parameters
    ----------
    features : int
        Coordinates of a record, d.
    epsilon : float
        Privacy of a record, above zero.
    delta : float
        Delta of a record, above 0 and below 1.
    radius : float
        Radius of the l2 ball, above zero, in units of `x`.
    clip : bool
        Whether records outside the ball are scaled to it, or refused.
    output_bits : int, optional
        Bits of a coordinate's report, 4 to 16: codes 0 to 2**output_bits - 2. More bits make a finer grid.
        None: the fewest bits for which the grid costs at most 1 % of the variance, usually 13 or 14.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, or a budget that needs a finer grid; the message names it.

    Notes
    -----
    Neighbouring records are any two of the ball, whose diameter is the sensitivity. The noise is the
    difference of two Poisson(mu) numbers, so its variance is 2 mu steps squared. The sum is clamped 5.5
    standard deviations beyond the ball (4.5 if epsilon is above 20). A report at the end stands for the mean
    of what lies beyond it, so the bias is below 1e-7 of a deviation (`bias_bound`).

    The privacy proof works with the integers. For two inputs of a coordinate, dithered on the way, it finds
    two normal laws that are at least as easy to distinguish; how far apart these are depends on the distance
    of the inputs. Two bounds hold: a slope per step (`bitldp.channels.normal`), and on a grid of up to 512
    steps the largest difference of normal quantiles over all thresholds, for each number of whole steps. A
    dithered input is a mixture of two points; quantiles of a mixture exceed the line between the points by a
    bound that is added. Coordinates compose, and the largest sum of squares within the diameter of the ball
    is a knapsack problem, in any dimension (`ball.steps` has the proof). `guarantee.record` is therefore the
    analytic epsilon of Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML
    2018, at `gdp_mu`. The variance is within 1 % of that of continuous Gaussian noise up to an epsilon of 14,
    and within 3 % at 20. Above, the noise is not lowered further, since its tails would vanish in units of
    2**-64, and the exact epsilon is below the budget.

    Source: Agarwal, Kairouz and Liu, "The Skellam mechanism for differentially private federated learning",
    NeurIPS 2021. The source releases sums of many clients. Here each report is private by itself.

    Examples
    --------
    >>> from bitldp.compression import Skellam
    >>> mechanism = Skellam(64, epsilon=4.0, delta=1e-5, output_bits=9)
    >>> mechanism.report_bits
    576
    """

    @staticmethod
    def _noise_law(half: float, reach: int) -> list[int]:
        return skellam_weights(half, reach, lumped=True)

    @property
    def mu(self) -> float:
        """Mean of either Poisson number, in steps: the variance of the noise is 2 mu steps squared."""
        return self._half
