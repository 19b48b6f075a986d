"""Vectors of an l2 ball in a secure sum: a public rotation, dither to whole steps, and normal accounting."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, Rotation, Shift
from bitldp.accounting.loss_table import Normal
from bitldp.base import checks
from bitldp.channels.normal import NormalBound, continuous_sigma, largest_mu
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.intervals import Deviation
from bitldp.privacy import ONE
from bitldp.release.base import Source
from bitldp.release.draws import public_key
from bitldp.sums.kinds import Central, Room, SumKind
from bitldp.sums.laws import ShareLaw, SignShare, SkellamShare
from bitldp.sums.normal import slope_of_sum

__all__ = ["Vector"]

_WRAPPED = 1e-9  # chance that any coordinate of a sum wraps, at most
_OVERHEAD = 1.05  # of the mean squared error, over that of the central Gaussian mechanism
_SET_ASIDE = 2.0**-8  # of delta, for the tails
_LEAST_BITS, _MOST_BITS = 4, 32
_MOST_FEATURES = 1 << 24
_MOST_SEED = (1 << 63) - 1
_MOST_STEPS = 32_000.0
_FARTHEST = 32_000  # steps of a share's noise
_DEVIATIONS = 9.4  # beyond which a normal weight is less than half a unit of 2^-64
_SPARE = 48  # steps: the same for small variances
_STEEPEST = 200.0
_HALVINGS = 60
_FITS = 12  # of the noise: each is nearer by a factor of ten and more
_FITTED = 1e-4  # relative, of an epsilon
_NEARLY = 1e-2  # the same where that is not reached
_TRIES, _COARSE = 80, 1.01  # where that ends nowhere: the least of so many, and their factor
_THINNEST = 0.5  # largest variance of a thinned sign: with more, even and odd sums would differ
_NEAR = 1.0 + 2.0**-24  # relative: what the norm of a vector of 2^24 doubles that was scaled may be off
_SLACK = 2.0**-28  # steps that a coordinate may be off by the rounding of scale and dither, generously
_UP = 1.0 + 2.0**-40
_FIVE, _EIGHT = Context(prec=5, rounding=ROUND_FLOOR), Context(prec=8)  # digits of what both sides pin


@dataclass(frozen=True)
class Vector(SumKind):
    """Mean of vectors, each scaled down to an l2 norm, with the protection of central Gaussian noise.

    Parameters
    ----------
    features : int
        Coordinates of a vector, d, 1 to 2**24. A share has D integers, D being the power of two above d, 32
        at least.
    clip : float
        Norm that longer vectors are scaled down to.
    steps : float, optional
        R, steps of the grid in the length `clip`, up to 32,000. None: as many as fit into the fewest bits for
        which the mean squared error is within 5 % of that of the central Gaussian mechanism.
    public_seed : int
        Seed of the rotation, 0 or more. It is public, and privacy does not depend on it. Someone who knows it
        can choose vectors that make the sum wrap.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    A vector is lifted to the length `clip` by one more coordinate, turned by random signs and Hadamard
    transforms that all clients share, and dithered to whole steps; each coordinate has its own share of
    Skellam noise (or thinned signs, ``noise="signs"``, where the variance of a share is at most 1/2). Two
    records are told apart no better than normal laws of variance 1 that are c 2 R apart, in any dimension: c
    is computed from the integers of the shares' table (`bitldp.sums.normal.slope_of_sum`). The dither is part
    of the argument, so that it inflates no norm, and no vector is drawn anew. With W how far the sum's law is
    from the one that c holds of,

        delta(epsilon) <= delta of those normal laws + (1 + e^epsilon) D W,

    and 1/256 of delta is set aside for the last term.

    *Bits.* Whatever vectors are added, if they do not depend on the rotation's signs, a coordinate of their
    rotated sum is sub-Gaussian with the variance proxy (n R)^2/D, that of the dither n/4. Chernoff's bound
    with the noise, times 2 D, is at most 1e-9: even if all clients send the same vector.

    Sources: Agarwal, Kairouz and Liu, "The Skellam mechanism for differentially private federated learning",
    NeurIPS 2021 (rotation and Skellam shares); Dong, Roth and Su, "Gaussian differential privacy", JRSS B
    2022.

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp.sums import SecureSum, Vector
    >>> updates = SecureSum(Vector(1000), epsilon=4.0, clients=100)
    >>> updates.bits, round(updates.overhead, 2)
    (12, 1.02)
    >>> x = np.zeros((100, 1000)); x[:, 0] = 1.0
    >>> estimate = updates.decode(updates.add(updates.share(x, rng=1)), survivors=100)
    >>> bool(abs(estimate.value[0] - 1.0) < 5.0 * estimate.stderr[0])
    True
    """

    name: ClassVar[str] = "vector"
    streams: ClassVar[int] = 1

    features: int
    clip: float = 1.0
    _: KW_ONLY
    steps: float | None = None
    public_seed: int = 0

    def __post_init__(self) -> None:
        """Check the parameters."""
        checked: dict[str, Any] = {
            "features": checks.integer("features", self.features, 1, _MOST_FEATURES),
            "clip": checks.positive("clip", self.clip),
            "public_seed": checks.integer("public_seed", self.public_seed, 0, _MOST_SEED),
        }
        if not 1e-100 <= checked["clip"] <= 1e100:
            raise ValueError(f"clip: must be between 1e-100 and 1e100, got {self.clip}")
        if self.steps is not None:
            checked["steps"] = checks.positive("steps", self.steps)
            if not checked["steps"] <= _MOST_STEPS:
                raise ValueError(f"steps: must be at most {_MOST_STEPS:g}, got {self.steps}")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    # what a record is

    @property
    def coordinates(self) -> int:
        """Integers of a record, D: the power of two above the features, 32 at least."""
        return max(32, 1 << self.features.bit_length())

    @property
    def bounds(self) -> tuple[int, int]:
        """Least and largest integer that a record can have."""
        most = math.ceil(self._steps)
        return -most, most

    @property
    def _steps(self) -> float:
        if self.steps is None:
            raise ValueError("steps: not chosen yet; a SecureSum chooses them by its budget and clients")
        return self.steps

    @property
    def step(self) -> float:
        """Length of a step, in units of the vectors."""
        return self.clip / self._steps

    @property
    def usual(self) -> int:
        """Integer that hardly any record has beyond, B: any coordinate of a vector with a chance of 1e-9.

        Whatever the vector is, if it does not depend on the rotation's signs: a coordinate of a rotated one
        is sub-Gaussian with the variance proxy R^2/D (Hoeffding), and the dither is within one step.
        """
        near = self._steps * math.sqrt(2.0 * math.log(2.0 * self.coordinates / _WRAPPED) / self.coordinates)
        return min(self.bounds[1], math.ceil(near * _NEAR) + 1)

    @property
    def dither(self) -> float:
        """Most variance that dither adds to a record's coordinate, on average over all of them, in steps."""
        return _dither(self._steps, self.coordinates)

    def encode(self, x: ArrayLike, sources: list[Source], threads: int | None) -> tuple[NDArray[Any], bool]:
        """Return vectors in whole steps, scaled, rotated and dithered."""
        return self._released(x, (ONE,), sources[0], threads)

    def noised(
        self, x: ArrayLike, law: ShareLaw, sources: list[Source], threads: int | None
    ) -> tuple[NDArray[Any], bool]:
        """Return the same with their shares of noise: one channel dithers and adds."""
        return self._released(x, law.table.weights, sources[-1], threads)

    def _released(
        self, x: ArrayLike, weights: tuple[int, ...], source: Source, threads: int | None
    ) -> tuple[NDArray[Any], bool]:
        """Return vectors in whole steps, with noise of symmetric weights."""
        values = checks.numbers("x", x)
        if values.ndim not in (1, 2) or values.shape[-1] != self.features:
            shapes = f"(records, {self.features}) or ({self.features},)"
            raise ValueError(f"x: shape must be {shapes}, got {values.shape}")
        if values.dtype not in (np.float32, np.float64):
            raise TypeError(f"x: dtype {values.dtype} is not allowed; float32 and float64 are")
        table = np.ascontiguousarray(values.reshape(-1, self.features))
        rotation, most = _rotation(self.features, self.clip, self.public_seed), self.bounds[1]
        turned = rotation.rotate(table, np.zeros(len(table), np.uint32), threads).astype(np.float64)
        # With its lift every vector is as long as the ball's radius: so single precision inflates no norm.
        turned *= (self._steps / np.sqrt(np.einsum("ij,ij->i", turned, turned)))[:, None]
        channel, grid = _channel(most, weights)
        codes = channel.randomize(turned, grid, None, source, "codes", None, threads, 0)
        return codes.astype(np.int32) - np.int32(channel.outputs // 2), values.ndim == 1

    # noise and what it keeps

    def settled(self, epsilon: float, delta: float, clients: int, honest: int) -> Vector:
        """Return the kind with the steps that a budget and so many clients allow in the fewest bits."""
        if self.steps is not None:
            return self
        plan = _Plan(self.coordinates, epsilon, delta, clients, honest)
        losses = {}
        for bits in range(_LEAST_BITS, _MOST_BITS + 1):
            losses[bits] = plan.loss(plan.deviation(bits))
            if losses[bits] <= _OVERHEAD:
                break
        steps = plan.steps(plan.deviation(min(losses, key=losses.__getitem__)))
        if not steps > 0.0:
            raise ValueError(
                f"epsilon: {epsilon:.4g} needs more than {_MOST_BITS} bits for {clients} clients"
            )
        return replace(self, steps=float(_FIVE.create_decimal_from_float(steps)))

    def fit(self, epsilon: float, delta: float, honest: int, noise: str) -> ShareLaw:
        """Return Skellam shares, or thinned signs, of about the least variance that keeps a budget."""
        if noise == "polya":
            raise ValueError(
                "noise: Pólya shares are for counts; 'skellam' and 'signs' are allowed for vectors"
            )
        plan = _Plan(self.coordinates, epsilon, delta, honest, honest)
        deviation = least = plan.guess(self._steps)
        for _ in range(_FITS):
            law = _law(deviation, honest, noise)
            bound = self.gdp(law, honest, delta)
            reached = bound.epsilon(delta)
            if epsilon * (1.0 - _FITTED) <= reached <= epsilon:
                return law
            needed = plan.allowed(bound.lost)
            if not (math.isfinite(bound.mu) and needed > 0.0):
                break
            deviation *= bound.mu / needed * (1.0 + _FITTED / 4.0)
        if epsilon * (1.0 - _NEARLY) <= reached <= epsilon:
            return law
        # Weights of few units in the tails: the slope jumps from one deviation to the next.
        for turn in range(_TRIES):
            law = _law(least * _COARSE**turn, honest, noise)
            if self.gdp(law, honest, delta).epsilon(delta) <= epsilon:
                return law
        raise ValueError(
            f"steps: {self._steps:.4g} leave no noise for epsilon {epsilon:.4g} at delta {delta:.3g}"
        )

    def central(self, law: ShareLaw, shares: int, delta: float, method: str = "auto") -> Central:
        """Return the guarantee of the sum and so many shares: a bound, by `gdp`, for any method."""
        near = self.gdp(law, shares, delta)
        return Central(near.epsilon(delta), delta, False, "normal laws, by the slope of the integers")

    def accounted(self, law: ShareLaw, shares: int, delta: float, cost: float) -> tuple[Normal, float]:
        """Return what rounds compose of: normal laws, and what they lose of a round's law."""
        bound = self._bound(law, shares, _tail(delta, cost, self.coordinates))
        return Normal(bound.mu), bound.lost

    def gdp(self, law: ShareLaw, shares: int, delta: float) -> NormalBound:
        """Return the normal laws that tell two records no worse, but for a delta of their own.

        Parameters
        ----------
        law : ShareLaw
            Of a share.
        shares : int
            Honest shares, 1 or more.
        delta : float
            What the tails are compared with.
        """
        first = _tail(delta, 3.0, self.coordinates)  # what is lost costs 1 + e^epsilon times, at least 2
        best = self._bound(law, shares, first)
        reached = best.epsilon(delta)
        tail = _tail(delta, 1.0 + math.exp(min(reached, 100.0)), self.coordinates)
        if tail != first:
            other = self._bound(law, shares, tail)
            best = other if other.epsilon(delta) < reached else best
        return best

    def _bound(self, law: ShareLaw, shares: int, tail: float) -> NormalBound:
        slope = slope_of_sum(law, shares, tail)
        mu = slope.per_step * _diameter(self._steps, self.coordinates) * _UP
        return NormalBound(mu, min(1.0, slope.lost * self.coordinates * _UP))

    def gaussian(self, epsilon: float, delta: float) -> float:
        """Return the standard deviation of the central Gaussian mechanism's noise, in steps."""
        return continuous_sigma(epsilon, delta) * 2.0 * self._steps

    # the sum

    def room(self, law: ShareLaw, clients: int) -> Room | None:
        """Return the fewest bits in which the sum of so many clients wraps with a chance of at most 1e-9."""
        noise, steepest = _cumulants(law), _STEEPEST / max(1, len(law.table.weights) // 2)
        for bits in range(_LEAST_BITS, _MOST_BITS + 1):
            wraps = _wrapped(noise, steepest, self._steps, self.coordinates, clients, bits)
            if wraps <= _WRAPPED:
                return Room(bits, 0, 1 << (bits - 1), wraps)
        return None

    def estimate(
        self, sums: NDArray[np.int64], law: ShareLaw, survivors: int, shares: int | None = None
    ) -> Estimate:
        """Return the mean of the survivors' clipped vectors, shape (features,)."""
        # `undo_counts` takes how often each report +-j was given
        counts = np.stack([np.maximum(-sums, 0), np.maximum(sums, 0)], axis=1).astype(np.uint64)
        rotation = _rotation(self.features, self.clip, self.public_seed)
        value = rotation.undo_counts(
            np.zeros(1, np.uint32), counts.reshape(1, -1), self.step / survivors, None
        )[0]
        variance = (survivors if shares is None else shares) * law.variance + survivors * self.dither
        spread = math.sqrt(variance) / survivors * self.step
        # an entry is a weighted sum of so many independent draws: nearly normal, whatever their number
        limits = Deviation(survivors * self.coordinates)
        return Estimate(value, np.full(self.features, spread), survivors, limits=limits)

    def terms(self) -> dict[str, int | str]:
        """Return the kind, the norm, the steps and the rotation."""
        return {
            "kind": self.name,
            "features": self.features,
            "clip": repr(self.clip),
            "steps": repr(self._steps),
            "public_seed": self.public_seed,
        }

    @classmethod
    def from_terms(cls, terms: Mapping[str, int | str]) -> Vector:
        """Return the kind that such terms describe."""
        return cls(
            int(terms["features"]),
            float(terms["clip"]),
            steps=float(terms["steps"]),
            public_seed=int(terms["public_seed"]),
        )


@lru_cache(maxsize=16)
def _rotation(features: int, clip: float, seed: int) -> Rotation:
    """Return the public rotation, of which number 0 is used."""
    return Rotation(features, clip, "hadamard", public_key(seed, "sum"))


@lru_cache(maxsize=16)
def _channel(most: int, weights: tuple[int, ...]) -> tuple[Shift, Grid]:
    """Return what dithers to whole steps from -most to most, and adds noise that is never clamped."""
    inputs, reach = 2 * most + 1, len(weights) // 2
    grid = Grid(inputs, low=-float(most), high=float(most))
    return Shift(inputs, inputs + 2 * reach, weights, reach), grid


def _diameter(steps: float, coordinates: int) -> float:
    """Return how far two rotated and scaled vectors are apart at most, in steps."""
    return 2.0 * steps * _NEAR + _SLACK * math.sqrt(coordinates)


def _tail(delta: float, cost: float, coordinates: int) -> float:
    """Return the chance of noise beyond which no slope is taken, a power of 1/4.

    About twice that is lost in every coordinate, and costs so many times as much of delta.
    """
    return 0.25 ** math.ceil(math.log(2.5 * cost * coordinates / (delta * _SET_ASIDE), 4.0))


def _dither(steps: float, coordinates: int) -> float:
    """Return the most that the mean variance of dither can be, over the coordinates of a vector of the ball.

    At f between two integers it is f (1 - f): at most t (1 - t) at t = abs(z) up to 1/2, and 1/4. That is
    concave in t, whose mean is at most R/sqrt(D), by Cauchy and Schwarz.
    """
    mean = min(steps / math.sqrt(coordinates), 0.5)
    return mean * (1.0 - mean)


def _law(deviation: float, honest: int, noise: str) -> ShareLaw:
    """Return the law of a share, of a standard deviation of the sum of all, in steps."""
    variance = deviation * deviation / honest
    if noise == "signs":
        if variance > _THINNEST:
            raise ValueError(
                f"noise: the variance of a thinned sign is at most {_THINNEST:g}, where {variance:.3g} is "
                "needed; 'skellam' is allowed"
            )
        return _signs(math.ceil(variance / 2.0 * ONE), honest)
    if _DEVIATIONS * math.sqrt(variance) > _FARTHEST:
        raise ValueError(f"steps: shares of noise of {math.sqrt(variance):.4g} steps do not fit their table")
    return _skellam(_EIGHT.create_decimal_from_float(variance / 2.0), honest)


@lru_cache(maxsize=64)
def _skellam(mean: Decimal, honest: int) -> SkellamShare:
    return SkellamShare(mean, honest)


@lru_cache(maxsize=64)
def _signs(weight: int, honest: int) -> SignShare:
    return SignShare(weight, honest)


def _cumulants(law: ShareLaw) -> Callable[[float], float]:
    """Return the logarithm of the moment-generating function of a share, from its integers."""
    table = law.table
    places = np.arange(table.first, table.first + len(table.weights))
    chances = np.array([float(weight) for weight in table.weights]) / (1 << table.bits)

    def noise(rate: float) -> float:
        # symmetric, so the mean of cosh - 1 = 2 sinh^2
        return math.log1p(2.0 * float(chances @ np.square(np.sinh(rate * places / 2.0))))

    return noise


def _wrapped(
    noise: Callable[[float], float], steepest: float, steps: float, coordinates: int, clients: int, bits: int
) -> float:
    """Return a bound of the chance that any coordinate of a sum wraps, by Chernoff's method.

    The last pass of the rotation multiplies by random signs and a Hadamard matrix: a coordinate of the sum of
    vectors that do not depend on them is sub-Gaussian with the variance proxy (n R)^2/D (Hoeffding), and at
    most n R. The dither of a client is within one step, so its proxy is 1/4.
    """
    room = float(1 << (bits - 1))
    turned = (clients * steps * _NEAR) ** 2 / coordinates

    def exponent(rate: float) -> float:
        inside = min(rate * rate * turned / 2.0, rate * clients * steps * _NEAR)
        return clients * noise(rate) + inside + rate * rate * clients / 8.0 - rate * room

    low, high = 0.0, steepest
    for _ in range(_HALVINGS):  # about one valley; any rate gives a bound
        one, other = low + (high - low) * 0.382, low + (high - low) * 0.618
        low, high = (low, other) if exponent(one) <= exponent(other) else (one, high)
    return min(1.0, math.exp(min(0.0, exponent((low + high) / 2.0) + math.log(2.0 * coordinates))) * _UP)


class _Plan:
    """Noise and grid that a budget asks for, about; and the slope that it allows."""

    def __init__(self, coordinates: int, epsilon: float, delta: float, clients: int, honest: int) -> None:
        self.epsilon, self.delta, self.clients, self.honest = epsilon, delta, clients, honest
        self.coordinates = coordinates
        tail = _tail(delta, 1.0 + math.exp(min(epsilon, 100.0)), coordinates)
        self.cut = -NormalDist().inv_cdf(tail)
        self.mu = largest_mu(epsilon, delta * (1.0 - _SET_ASIDE))

    def allowed(self, lost: float) -> float:
        """Return about how far normal laws may be apart, with so much lost; 0 for none."""
        rest = self.delta - (1.0 + math.exp(min(self.epsilon, 700.0))) * lost * _UP**3
        return largest_mu(self.epsilon, rest) if rest > 0.0 else 0.0

    def steps(self, deviation: float) -> float:
        """Return about the steps for noise of a standard deviation in the sum."""
        return self.mu / 2.0 * deviation / (1.0 + self.cut / (2.0 * deviation)) if deviation > 0.0 else 0.0

    def guess(self, steps: float) -> float:
        """Return about the standard deviation of the noise for steps: what `steps` undoes."""
        plain = 2.0 * steps / self.mu
        return (plain + math.sqrt(plain * plain + 2.0 * plain * self.cut)) / 2.0

    def deviation(self, bits: int) -> float:
        """Return about the largest standard deviation of the sum's noise that fits into so many bits."""
        most = (_FARTHEST - _SPARE) / _DEVIATIONS * math.sqrt(self.honest)
        low, high = 0.0, min(most, 2.0 * _MOST_STEPS / self.mu)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self._fits(middle, bits) else (low, middle)
        return low

    def _fits(self, deviation: float, bits: int) -> bool:
        variance = deviation * deviation / self.honest

        def noise(rate: float) -> float:
            return 2.0 * variance * math.sinh(rate / 2.0) ** 2

        steepest, steps = min(20.0, 60.0 / max(deviation, 1.0)), self.steps(deviation)
        wraps = _wrapped(noise, steepest, steps, self.coordinates, self.clients, bits)
        return wraps <= 0.9 * _WRAPPED

    def loss(self, deviation: float) -> float:
        """Return about the mean squared error over that of central noise with as many honest clients."""
        if not deviation > 0.0:
            return math.inf
        least = 2.0 * self.steps(deviation) / self.mu
        dither = self.honest * _dither(self.steps(deviation), self.coordinates)
        return (deviation * deviation + dither) / (least * least)
