"""Records of a ball, released coordinate by coordinate: clip to the ball, dither, one channel for all."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, Matrix, Shift
from bitldp.accounting import divergence
from bitldp.accounting.compose import searched
from bitldp.accounting.loss_table import LossTable, of_rows
from bitldp.base import checks
from bitldp.base.arrays import position, readonly, zeros_if_refused
from bitldp.compression.ball import bounds
from bitldp.letters.spread import Spread
from bitldp.mechanism.base import Mechanism, Takes
from bitldp.mechanism.law import Block, Experiment, Pair, Symbols
from bitldp.mechanism.numeric import Means
from bitldp.mechanism.parameters import Features, Flag, Option, one_of
from bitldp.privacy import Guarantee
from bitldp.release.base import Call, Interval, Release, Source
from bitldp.release.draws import _words

__all__ = [
    "bias_factor",
    "check_finite",
    "check_shape",
    "conditioned",
    "enlarged",
    "inside",
    "limited",
    "norms",
]

Dither = Annotated[
    Literal["unbiased", "conditional"],
    one_of("unbiased", "conditional"),
    Option(short="Whether each coordinate is dithered by itself, or all until the vector is in the ball."),
]
Norm = Annotated[Literal["l1", "l2"], one_of("l1", "l2")]
Bound = Literal["best", "greedy", "coupled", "steepest", "interpolated"]

_SLACK = 2.0**-28  # steps a coordinate may be off by the rounding of clip and dither, generously


def _delta(name: str, value: Any) -> float:
    number = checks.budget(name, value)
    if not number < 1.0:
        raise ValueError(f"{name}: must be below 1, got {number}")
    return number


def ball_radius(name: str, value: Any) -> float:
    """Return the radius of a ball, such that no square of a coordinate leaves the range of doubles."""
    number = checks.positive(name, value)
    if not 1e-100 <= number <= 1e100:
        raise ValueError(f"{name}: must be between 1e-100 and 1e100, got {number}")
    return number


@dataclass(frozen=True, eq=False, repr=False)
class Ball(Means):
    """Base of the mechanisms for records in an l1 or l2 ball."""

    features: Features
    _: KW_ONLY
    epsilon: Annotated[float, checks.positive]
    delta: Annotated[float, _delta] = 0.0
    radius: Annotated[float, ball_radius] = 1.0
    clip: Flag = True

    _no_document: ClassVar[str] = (
        "its epsilon is a bound over all vectors of the ball, which no other client computes again"
    )
    _takes: ClassVar[Takes | None] = "ball"
    _usual_size: ClassVar[int] = 100

    # Derived of the parameters while the mechanism is built.
    _conditional: bool = field(init=False, repr=False, compare=False)
    _power: int = field(init=False, repr=False, compare=False)
    _coordinate: LossTable = field(init=False, repr=False, compare=False)
    _pure: float = field(init=False, repr=False, compare=False)

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example, at a delta of 1e-6."""
        return super()._usual(epsilon, size) | {"delta": 1e-6}

    def _finish(
        self,
        channel: Matrix | Shift,
        rows: NDArray[np.float64],
        *,
        power: int,
        conditional: bool,
        letters: NDArray[np.float64] | None,
        claimed: float,
    ) -> None:
        """Set the release that the subclass has built, and its guarantee."""
        points, (low, high) = len(rows), self._interval()
        grid = Grid(points, low=low, high=high)
        spread = None
        if letters is not None:
            moments = rows @ np.square(letters - (low + high) / 2.0)
            spread = Spread(readonly(grid.values()), readonly(moments))
        decoded = None if letters is None else readonly(letters)
        self._set(
            _release=Release(
                channel, channel.epsilon, channel.outputs, grid, readonly(grid.values()), decoded, spread
            ),
            _ends=(low, high),
            _power=power,
            _conditional=conditional,
            _coordinate=of_rows(rows, channel.epsilon),
            _spread=spread,
        )
        self._judge(claimed)

    def _judge(self, claimed: float) -> None:
        """Set the guarantee of the release."""
        channel, record = self.channel, self.pure_epsilon()
        self._set(_pure=record)
        # With conditional dither, a coordinate also decides which others are accepted.
        feature = record if self._conditional else channel.epsilon
        if self.delta > 0.0:
            record = min(record, self._at_delta())
        # Records that differ in one feature are records: with the same delta, nothing more shows.
        feature = min(feature, record)
        self._set(
            _guarantee=Guarantee(claimed, feature, feature, record, delta=self.delta, holds=record <= claimed)
        )

    def _at_delta(self) -> float:
        """Return a bound of the epsilon of a record at its delta."""
        return searched(self.renyi, self.delta)

    @property
    def channel(self) -> Matrix | Shift:
        """The channel of one coordinate."""
        return self._release.channel

    @property
    def codec(self) -> Grid:
        """The points of a coordinate, from -radius to radius by default."""
        grid = self._release.codec
        assert isinstance(grid, Grid)  # of coordinates
        return grid

    @property
    def bias_bound(self) -> float:
        """Bound of the bias of the decoded record in the l2 norm, in units of `x`; 0 for unbiased dither."""
        self._check_informative()
        return bias_factor() * self._step() if self._conditional else 0.0

    def _interval(self) -> Interval:
        """Return where a coordinate lies."""
        return -self.radius, self.radius

    def _distance(self, power: int) -> float:
        """Return the largest distance of two records, in the norm of the ball."""
        return 2.0 * self.radius

    def _step(self) -> float:
        low, high = self._ends
        return (high - low) / (self.codec.points - 1)

    def _diameter(self) -> float:
        """Return the largest distance of two records, in steps of the grid, in the norm of the ball."""
        distance = self._distance(self._power) / self._step()
        if self._conditional:
            return 2.0 * enlarged(distance / 2.0, self.features, self._power)
        return distance + _SLACK * math.pow(self.features, 1.0 / self._power)

    def pure_epsilon(self) -> float:
        """Return an upper bound of the epsilon of a record at delta 0, from the channel's integers."""
        diameter, features = self._diameter(), self.features
        if self._conditional:
            return bounds.relaxed(
                bounds.worst_losses(self._coordinate.rows), self._power, diameter**self._power, features
            )
        return bounds.pure(self._coordinate, diameter, self._power, features, self._ends[0] == 0.0)

    def renyi(self, orders: ArrayLike, *, bound: Bound = "best") -> NDArray[np.float64]:
        """Return an upper bound of the Rényi divergence between two records of the ball.

        Parameters
        ----------
        orders : array_like of float
            Orders above 1, shape (n,) or ().
        bound : {"best", "greedy", "coupled", "steepest", "interpolated"}
            With conditional dither: "greedy" is Lemma 7 of the paper, and "best" the linear program of its
            Eq. 4, which is never larger. With unbiased dither: the others (see Notes); "best" is the least of
            them.

        Returns
        -------
        ndarray of float64
            Same shape, rounded up.

        Raises
        ------
        ValueError
            For an order out of range, or a bound that does not apply to the dither.

        Notes
        -----
        This is an upper bound: the largest sum over coordinates within the ball is a knapsack problem, of
        which only the relaxation is solved. `bitldp.accounting.renyi` is exact for records without a common
        bound.

        With unbiased dither a record may leave the ball by up to half a step per coordinate, which the
        paper's bounds do not cover. The law of a coordinate is then a mixture of two rows, and three bounds
        hold:

        - "steepest": the log-ratio of two inputs is at most c times their distance, c being found from the
          rows, so the divergence of a coordinate is at most alpha (c t)^2/2 for inputs t apart (Bun and
          Steinke, "Concentrated differential privacy", TCC 2016, Proposition 3.3), and that of a record at
          most alpha (c D)^2/2 with D the diameter of the ball.
        - "coupled": the dither of two records may use the same random bits, which makes the relaxed knapsack
          one of distances between points.
        - "interpolated": the divergence of two mixtures is quadratic in a small distance, as the Fisher
          information is. The knapsack is relaxed over all inputs, not only points, on a mesh whose cells
          are bounded by convexity. The least of the three as a rule. It is infinite, and not looked for,
          where the channel has more than 256 points or 64 reports.
        """
        alphas = divergence.check_orders(orders)
        diameter, features = self._diameter(), self.features
        if not self._conditional:
            result = bounds.curve(
                bound,
                self._coordinate,
                self._divergences,
                np.atleast_1d(alphas),
                diameter,
                self._power,
                features,
                self._ends[0] == 0.0,
            )
            return np.minimum(result, self._pure).reshape(alphas.shape)
        checks.choice("bound", bound, ("best", "greedy"))
        capacity = diameter**self._power
        sums = []
        for alpha in np.atleast_1d(alphas).tolist():
            divergences = self._divergences(alpha)
            if bound == "greedy":
                sums.append(bounds.greedy(divergences, self._power, capacity))
            else:
                sums.append(bounds.relaxed(divergences, self._power, capacity, features))
        return np.array(sums).reshape(alphas.shape)

    def _divergences(self, alpha: float) -> NDArray[np.float64]:
        """Return the Rényi divergence of every two points of a coordinate, rounded up."""
        return np.minimum(divergence.divergences(self._coordinate, alpha), self._coordinate.epsilon)

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the guarantee: the ball bounds all coordinates together, which the law of one does not."""
        return Mechanism._symbols(self)

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return opposite vectors of the ball and the law of their coordinates; see `Mechanism.extremes`."""
        given = ends_of_ball(self.features, self.radius) if pair is None else pair
        names = OPPOSITE if pair is None else GIVEN
        inputs = np.stack(
            [inside(each, self.features, self._power, self.radius, True).reshape(-1) for each in given]
        )
        inputs = np.clip(inputs, *self._ends)
        if self._conditional or self.delta > 0.0:
            # With conditional dither the coordinates of a report are not independent.
            return Experiment(list(inputs), names) if pair is None else None
        rows = self.probabilities()
        positions = (inputs - self._ends[0]) / self._step()
        low = np.clip(np.floor(positions).astype(int), 0, len(rows) - 2)
        upper = np.clip(positions - low, 0.0, 1.0)[..., None]
        table = (1.0 - upper) * rows[low] + upper * rows[low + 1]

        def describe(symbol: int, value: int) -> str:
            return f"coordinate {symbol} is reported as {value}"

        return Experiment(list(inputs), names, [Block(table, describe)], [(0, 1)], {"output": "codes"})

    def _refuse_uninformative(self) -> NoReturn:
        raise ValueError(f"{type(self).__name__} has no mean to estimate: {self._no_mean}")

    def _check_spread(self) -> Spread:
        spread = super()._check_spread()
        if self._conditional:
            raise ValueError("dither: the variance has no closed form where it is conditional")
        return spread

    @property
    def _streams(self) -> int:
        return 2 if self._conditional else 1

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        release: Release = self._release
        if call.output == "values":
            release = replace(release, letters=self.letters)
        elif release.letters is not None:
            release = replace(release, letters=None)
        check_shape("x", np.shape(x), self.features)
        with zeros_if_refused(call.out):
            records = self._inside(x)
        if not self._conditional:
            return release.randomize(records, call)
        points = self.codec.points
        positions = np.clip((records - self._ends[0]) / self._step(), 0.0, points - 1.0)
        bound = enlarged(self.radius / self._step(), self.features, self._power)
        table = positions.reshape(-1, self.features)
        drawn = conditioned(table, points, bound, self._power, call.keys[1], call.first_chunk)
        codes = drawn.reshape(records.shape).astype(np.min_scalar_type(points - 1))
        return replace(release, codec=None).randomize(codes, call)

    def _inside(self, x: ArrayLike) -> NDArray[np.float64]:
        return inside(x, self.features, self._power, self.radius, self.clip)

    def outside(self, x: ArrayLike) -> int:
        """Return how many records lie outside the ball and are scaled to it; see `Mechanism.outside`."""
        return int(np.count_nonzero(norms(x, self.features, self._power)[1] > self.radius))


OPPOSITE = ["one end of the ball", "the opposite end"]
GIVEN = ["pair[0]", "pair[1]"]


def ends_of_ball(features: int, radius: float) -> NDArray[np.float64]:
    """Return two opposite vectors of a ball, shape (2, features)."""
    inputs = np.zeros((2, features))
    inputs[:, 0] = radius, -radius
    return inputs


_TINY = float(np.finfo(np.float64).tiny)
_NEAR = 1.0 + 2.0**-20  # a record this close to the ball is not refused: float32 has its rounding


def norms(x: ArrayLike, features: int, power: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return checked records as float64 and their l1 or l2 norms, shape (..., 1)."""
    records = check_finite(x, features).astype(np.float64)
    # scaled first, so that no square leaves the range of doubles
    top = np.maximum(np.abs(records).max(axis=-1, keepdims=True), _TINY)
    shares = np.abs(records / top)
    if power == 1:
        lengths = shares.sum(axis=-1, keepdims=True)
    else:
        lengths = np.sqrt(np.square(shares).sum(axis=-1, keepdims=True))
    with np.errstate(over="ignore"):  # an infinite norm is one beyond the ball
        return records, lengths * top


def inside(x: ArrayLike, features: int, power: int, radius: float, clip: bool) -> NDArray[np.float64]:
    """Return checked records in the ball: those outside are scaled to it, or refused."""
    records, lengths = norms(x, features, power)
    beyond = lengths > radius
    if not beyond.any():
        return records
    if not clip and (lengths > radius * _NEAR).any():
        index = int(np.argmax(lengths > radius * _NEAR))
        raise ValueError(
            f"x: the record at index {index} is outside the ball of radius {radius}, which clip=False refuses"
        )
    top = np.maximum(np.abs(records).max(axis=-1, keepdims=True), _TINY)
    shares = records / top
    if power == 1:
        within = np.abs(shares).sum(axis=-1, keepdims=True)
    else:
        within = np.sqrt(np.square(shares).sum(axis=-1, keepdims=True))
    scaled = shares * (radius / np.maximum(within, 1.0))
    return np.where(beyond, scaled, records)


def limited(x: ArrayLike, features: int, low: float, high: float, clip: bool) -> NDArray[np.float64]:
    """Return checked records whose coordinates are clipped to an interval, or refused."""
    records = check_finite(x, features).astype(np.float64)
    slack = (_NEAR - 1.0) * max(abs(each) for each in (low, high) if math.isfinite(each))
    allowed = (records >= low - slack) & (records <= high + slack)
    if not clip and not allowed.all():
        where = position(~allowed)
        raise ValueError(f"x: {where} is outside [{low}, {high}], which clip=False refuses")
    return np.clip(records, low, high)


def check_shape(name: str, shape: tuple[int, ...], features: int) -> None:
    """Refuse another shape than that of records of so many features."""
    if len(shape) not in (1, 2) or shape[-1] != features:
        raise ValueError(f"{name}: shape must be (n, {features}) or ({features},), got {shape}")


def check_finite(x: ArrayLike, features: int) -> NDArray[Any]:
    """Return records as a float array, all finite; an error gives an index, never a value."""
    values = checks.numbers("x", x)
    if values.dtype not in (np.float32, np.float64):
        raise TypeError(f"x: dtype {values.dtype} is not allowed; float32 and float64 are")
    check_shape("x", values.shape, features)
    if not np.isfinite(values).all():
        raise ValueError(f"x: {position(~np.isfinite(values))} is not finite")
    return values


_ATTEMPTS = 200  # each is accepted with probability above 0.39; after that, rounding toward the middle
_APART = 1 << 40  # chunks between the streams of two attempts


def enlarged(radius: float, features: int, power: int) -> float:
    """Return the norm, in steps, that dither of a record with norm `radius` keeps with chance 1 - e^-1/2.

    For l2, ``K^2 = R^2 + d/4 + R + sqrt(d)/2``: Kairouz, Liu and Steinke, "The distributed discrete Gaussian
    mechanism for federated learning with secure aggregation", ICML 2021, Proposition 22, with
    beta = e^(-1/2). For l1, a coordinate's distance from the middle stays the same on average unless it is
    less than half a step, so by Hoeffding ``K = R + d/2 + sqrt(d)/2``.
    """
    if power == 1:
        return radius + features / 2.0 + math.sqrt(features) / 2.0
    return math.sqrt(radius * radius + features / 4.0 + radius + math.sqrt(features) / 2.0)


def bias_factor() -> float:
    """Return a bound of the bias, in steps and in the l2 norm: the mean of a record given its acceptance.

    In any direction v, ``|E[v Y | A] - E[v Y]| <= sd(v Y) sqrt((1 - P(A))/P(A))``; dither has a standard
    deviation of at most half a step in every direction, and P(A) >= 1 - e^-1/2.
    """
    miss = math.exp(-0.5)
    return 0.5 * math.sqrt(miss / (1.0 - miss))


def conditioned(
    positions: NDArray[np.float64],
    points: int,
    bound: float,
    power: int,
    key: Source,
    first_chunk: int,
) -> NDArray[np.int64]:
    """Return grid points for positions on the grid, whose norm about the grid's middle is at most `bound`.

    Parameters
    ----------
    positions : ndarray of float64, shape (n, d)
        In steps, [0, points - 1].
    points : int
        Points of the grid.
    bound : float
        As of `enlarged`, in steps.
    power : {1, 2}
        Which norm.
    key : bytes, KeyedRandomness or None
        Where the dither comes from.
    first_chunk : int
        Chunks of the key's stream to skip.

    Returns
    -------
    ndarray of int64, shape (n, d)
        The norm is checked as integers, so what is released comes from the ball, whatever the floats were.
    """
    low = np.minimum(np.floor(positions), points - 2).astype(np.int64)
    # the chance of the upper point in units of 2^-64; 1 itself has no such integer and is within 2^-53 of it
    upper = ((positions - low) * 2.0**53).astype(np.uint64) << np.uint64(11)
    upper[positions - low >= 1.0] = np.uint64(0xFFFFFFFFFFFFFFFF)
    toward = np.where(2 * low + 1 <= points - 1, 1, 0)  # rounding toward the middle never leaves the ball
    drawn = low + toward
    most = math.floor((2.0 * bound) ** power)
    waiting = np.arange(len(positions))
    for attempt in range(_ATTEMPTS):
        words = _words(key, positions.size, first_chunk + attempt * _APART).reshape(positions.shape)[waiting]
        tried = low[waiting] + (words < upper[waiting])
        doubled = np.abs(2 * tried - (points - 1)) ** power  # odd or even integers: twice the distance
        kept = doubled.sum(axis=1) <= most
        drawn[waiting[kept]] = tried[kept]
        waiting = waiting[~kept]
        if not len(waiting):
            break
    return drawn
