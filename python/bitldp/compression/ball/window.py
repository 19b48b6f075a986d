"""A window around a vector: few numbers of an l2 ball in one report that is near the vector, or anywhere."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Cap, Grid, Window, log_ratio, pack
from bitldp.base import checks
from bitldp.base.arrays import fill, readonly, zeros_if_refused
from bitldp.compression.ball.base import (
    GIVEN,
    OPPOSITE,
    ball_radius,
    check_shape,
    ends_of_ball,
    inside,
    norms,
)
from bitldp.letters.spread import Spread
from bitldp.mechanism.base import Mechanism, Takes
from bitldp.mechanism.law import Experiment, Pair, Symbols, of_neighbourhoods
from bitldp.mechanism.numeric import Means
from bitldp.mechanism.parameters import Flag, at_least
from bitldp.privacy import ONE, Guarantee, calibrated
from bitldp.release.base import Call, Release, equidistant

__all__ = ["BallWindow"]

_MOST_FEATURES = 4
_MOST_STEPS = 64
_MOST_POINTS = 1 << 20  # that a report may be: their table takes 2 bytes a coordinate
_SLACK = 1.02  # of the least variance: within it, the fewest bits count
_BELOW_ONE = 1.0 - 2.0**-53
_FARTHEST = 3 * _MOST_STEPS  # steps of a coordinate that lattices are counted to


@dataclass(frozen=True, eq=False, repr=False)
class BallWindow(Means):
    """Window in an l2 ball: reports a point near a vector of 1 to 4 numbers, or any other point.

    Use it for vectors of any length, at epsilon 4 and more. If all vectors lie on the sphere,
    `RandomCodebook` has about half the variance; well inside the ball it has many times as much.

    Parameters
    ----------
    features : int
        Coordinates of a record, d, 1 to 4.
    epsilon : float
        Exact epsilon of a record, above zero, finite.
    radius : float
        Radius of the l2 ball, above zero, in units of `x`.
    steps : int, optional
        Steps g of the grid in a radius, 1 to 64.
    reach : int, optional
        Steps b up to which a report is near, zero or more. If `steps` or `reach` is None, a search sets it:
        among the settings within 2 % of the least total variance of a unit vector, the one with the fewest
        bits. Both attributes then hold the chosen numbers.
    clip : bool
        Whether records outside the ball are scaled to it, or refused.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it. A report may be one of 2**20 points at most.

    Notes
    -----
    Each coordinate is dithered to a multiple of 1/g of the radius, which gives the vector y, possibly outside
    the ball. The W points of the grid within b steps of y are near it. The V points within b steps of the
    farthest y are all possible reports. With probability A, an integer over 2**64, a report is uniform on the
    former, otherwise on the latter: epsilon = ln(1 + A V/((1 - A) W)), from these integers. Both sets are
    symmetric, so a reported coordinate has the mean A y and the second moment A (y^2 + w) + (1 - A) v, where
    w and v are the mean squares of a coordinate of the two sets. The letters divide by A.

    Neighbouring records are any two of the ball; bit, feature and record are the same in `guarantee`. No
    branch and no memory address depends on the input: a point of each set is drawn, and one is chosen by a
    mask.

    Source: the law, uniform near the vector or anywhere, is that of PrivUnit in Bhowmick et al.,
    arXiv:1812.00984 (2018), and of the piecewise mechanism of Wang et al., ICDE 2019, for one number.

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp.compression import BallWindow, RandomCodebook
    >>> mechanism = BallWindow(2, epsilon=8.0)
    >>> codebook = RandomCodebook(2, epsilon=8.0, public_seed=1)
    >>> for vector in ([0.6, 0.8], [0.3, 0.4]):
    ...     print([round(float(each.variance(vector).sum()), 3) for each in (mechanism, codebook)])
    [0.042, 0.022]
    [0.032, 0.772]
    """

    features: Annotated[int, at_least(1, _MOST_FEATURES)]
    _: KW_ONLY
    epsilon: Annotated[float, checks.positive]
    radius: Annotated[float, ball_radius] = 1.0
    steps: int | None = None
    reach: int | None = None
    clip: Flag = True

    _no_document: ClassVar[str] = (
        "it clips to the ball by sums of NumPy, which no other client makes in the same order"
    )
    _takes: ClassVar[Takes | None] = "ball"
    _usual_size: ClassVar[int] = 3
    _power: ClassVar[int] = 2  # of the norm

    def _build(self) -> None:
        steps, reach = (
            None if given is None else checks.integer(name, given, least, _MOST_STEPS)
            for name, given, least in (("steps", self.steps, 1), ("reach", self.reach, 0))
        )
        steps, reach = _best(self.features, self.epsilon, steps, reach)
        law = ball_cap(self.features, steps, reach, self.epsilon)
        release = _release(law, self.radius)
        self._set(
            steps=steps,
            reach=reach,
            _release=release,
            _ends=(-self.radius, self.radius),
            _spread=release.spread,
            _guarantee=Guarantee.judge(self.epsilon, (law.epsilon,) * 3),
        )

    @property
    def channel(self) -> BallCap:
        """The law: its `high` is A, `near` and `everything` count the points of both sets."""
        law: BallCap = self._release.channel
        return law

    def _symbols(self) -> tuple[Symbols, ...]:
        return Mechanism._symbols(self)

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return two vectors, and the law of a report being near the first, the second, both or neither.

        See `Mechanism.extremes`; without a pair, they are opposite ends of the ball.
        """
        law = self.channel
        given = ends_of_ball(self.features, self.radius) if pair is None else pair
        inputs = [self._inside(np.asarray(each, np.float64)).reshape(-1) for each in given]
        places = [np.rint(each / self.radius * law.steps).astype(np.int64) for each in inputs]
        if any(
            (place * self.radius / law.steps != each).any()
            for place, each in zip(places, inputs, strict=True)
        ):
            return None  # between the points: a matter of the dither
        shifted = law.offsets + (places[0] - places[1])
        both = int((np.square(shifted).sum(axis=1) <= law.reach**2).sum())

        def read(reports: Any) -> tuple[NDArray[np.bool_], ...]:
            codes = np.asarray(reports).reshape(-1, self.features).astype(np.int64) - law.farthest
            return tuple(np.square(codes - at).sum(axis=1) <= law.reach**2 for at in places)

        names = OPPOSITE if pair is None else GIVEN
        return of_neighbourhoods(inputs, names, (law.near, both, law.everything), law.high, read)

    def outside(self, x: ArrayLike) -> int:
        """Return how many records lie outside the ball and are scaled to it; see `Mechanism.outside`."""
        return int(np.count_nonzero(norms(x, self.features, self._power)[1] > self.radius))

    def _inside(self, x: ArrayLike) -> NDArray[np.float64]:
        return inside(x, self.features, self._power, self.radius, self.clip)

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        if self.features == 1 and x.ndim < 2:
            checks.records("x", x, 1)
        else:
            check_shape("x", x.shape, self.features)
        with zeros_if_refused(call.out):
            records = self._inside(x.reshape(-1, self.features))
        codes = self._release.randomize(records, call)
        if call.output == "packed":
            codes = pack(codes, self._release.bits)
        else:
            codes = codes.reshape(x.shape)
            codes = self.letters[codes].astype(x.dtype) if call.output == "values" else codes
        return codes if call.out is None else fill(call.out, codes)


# -- the law


@dataclass(frozen=True)
class BallCap:
    """A report is a grid point near the vector with probability A, otherwise any point.

    Attributes
    ----------
    features, steps, reach : int
        Coordinates d; steps g of a radius; steps b up to which a report is near.
    high : int
        A over 2**64.
    """

    features: int
    steps: int
    reach: int
    high: int

    @property
    def square(self) -> int:
        """Largest squared length of a report, in steps."""
        far = int(_far_squares(self.features)[self.steps])
        # (sqrt(far) + b)^2, rounded down: lengths are integers
        return far + self.reach**2 + math.isqrt(4 * self.reach**2 * far)

    @property
    def farthest(self) -> int:
        """Largest coordinate of a report, in steps."""
        return math.isqrt(self.square)

    @property
    def near(self) -> int:
        """Number of reports near a vector, W."""
        return int(_counts(self.features)[self.reach**2])

    @property
    def everything(self) -> int:
        """Number of all reports, V."""
        return int(_counts(self.features)[self.square])

    @property
    def epsilon(self) -> float:
        """Exact epsilon, from the integers, rounded up."""
        outside = (ONE - self.high) * self.near
        return log_ratio(self.high * self.everything + outside, outside)

    @property
    def offsets(self) -> NDArray[np.int16]:
        """The points near the middle, shape (W, d)."""
        return _points(self.features, self.reach**2)

    @property
    def codes(self) -> NDArray[np.int16]:
        """All reports, as codes: coordinates from 0, shape (V, d)."""
        return _points(self.features, self.square) + np.int16(self.farthest)


@lru_cache(maxsize=4)
def _counts(features: int) -> NDArray[np.int64]:
    """Return how many integer vectors have a squared length of at most n, for every n that is looked at."""
    squares = np.arange(-_FARTHEST, _FARTHEST + 1) ** 2
    ways = np.zeros(_FARTHEST**2 + 1, np.int64)
    ways[0] = 1
    for _ in range(features):
        before, ways = ways, np.zeros_like(ways)
        for square in squares.tolist():
            ways[square:] += before[: len(before) - square]
    return readonly(np.cumsum(ways))


@lru_cache(maxsize=4)
def _square_sums(features: int) -> NDArray[np.float64]:
    """Return the sum of squared lengths of the vectors that `_counts` counts."""
    return np.cumsum(np.diff(_counts(features), prepend=0) * np.arange(_FARTHEST**2 + 1.0))


@lru_cache(maxsize=4)
def _far_squares(features: int) -> NDArray[np.int64]:
    """Return the largest squared length of a dithered vector, for every number of steps in a radius.

    Dither takes a vector to y only where the cube of all within one step of y meets the ball: u with
    u_i = abs(y_i) - 1 has a length of at most g. For each squared length n of u the largest sum s of its
    coordinates makes y the longest, of squared length n + 2 s + d.
    """
    most = np.full(_MOST_STEPS**2 + 1, -1, np.int64)
    most[0] = 0
    for _ in range(features):
        before, most = most, np.full_like(most, -1)
        for u in range(_MOST_STEPS + 1):
            rest = before[: len(before) - u * u]
            np.maximum(most[u * u :], np.where(rest >= 0, rest + u, -1), out=most[u * u :])
    longest = np.maximum.accumulate(np.where(most >= 0, np.arange(len(most)) + 2 * most + features, 0))
    return readonly(longest[np.arange(_MOST_STEPS + 1) ** 2])


@lru_cache(maxsize=8)
def _points(features: int, square: int) -> NDArray[np.int16]:
    """Return all integer vectors of a squared length of at most `square`, in their order."""
    most = math.isqrt(square)
    line = np.arange(-most, most + 1, dtype=np.int16)
    found, lengths = np.zeros((1, 0), np.int16), np.zeros(1, np.int64)
    for _ in range(features):
        longer = lengths[:, None] + line.astype(np.int64) ** 2
        rows, columns = np.nonzero(longer <= square)
        found = np.concatenate([found[rows], line[columns, None]], axis=1)
        lengths = longer[rows, columns]
    return readonly(found)


@lru_cache(maxsize=64)
def ball_cap(features: int, steps: int, reach: int, epsilon: float) -> BallCap:
    """Return the law of exact epsilon `epsilon`: A/(1 - A) = (e^eps - 1) W/V."""
    sets = BallCap(features, steps, reach, 0)
    if sets.everything > _MOST_POINTS:
        raise ValueError(
            f"reach: {reach} makes {sets.everything:,} points with {steps} steps; "
            f"{_MOST_POINTS:,} are allowed"
        )
    share = math.log(sets.near) - math.log(sets.everything)

    def build(target: float) -> BallCap:
        if target == 0.0:
            return sets
        odds = target + share + math.log(-math.expm1(-target))
        return BallCap(features, steps, reach, _coin(1.0 / (1.0 + math.exp(min(-odds, 700.0)))).high)

    law = calibrated(build, epsilon, attrgetter("epsilon"))
    if law.high == 0:
        raise ValueError(f"epsilon: {epsilon:g} is too small for probabilities in units of 2**-64")
    return law


def _coin(chance: float) -> Window:
    """Return the channel of the choice: its report of 0 is 0 with that probability, an integer over 2^64."""
    return Window(2, 1, min(chance, _BELOW_ONE))


@lru_cache(maxsize=64)
def _best(features: int, epsilon: float, steps: int | None, reach: int | None) -> tuple[int, int]:
    """Return steps and reach of the fewest bits within 2 % of the least total variance of a unit vector."""
    count, sums = _counts(features), _square_sums(features)
    g, b = np.meshgrid(
        np.arange(1, _MOST_STEPS + 1) if steps is None else [steps],
        np.arange(_MOST_STEPS + 1) if reach is None else [reach],
    )
    far = _far_squares(features)[g]
    square = far + b * b + np.floor(2.0 * b * np.sqrt(far)).astype(np.int64)
    fit = (square <= _FARTHEST**2) & (count[np.minimum(square, _FARTHEST**2)] <= _MOST_POINTS)
    if not fit.any():
        if steps is None or reach is None:
            raise ValueError(f"reach: makes more than {_MOST_POINTS:,} points of a report with any steps")
        return steps, reach  # which is refused with its number of points
    g, b, square = g[fit], b[fit], square[fit]
    near, everything = count[b * b], count[square]
    odds = epsilon + np.log(near / everything) + math.log(-math.expm1(-epsilon))
    with np.errstate(over="ignore"):
        chance, rest = 1.0 / (1.0 + np.exp(-odds)), 1.0 / (1.0 + np.exp(odds))
    # The dither adds a quarter of a square step a coordinate at most.
    moment = chance * (g * g + features / 4.0 + sums[b * b] / near) + rest * sums[square] / everything
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = moment / np.square(chance * g) - 1.0
    bits = np.ceil(np.log2(2.0 * np.floor(np.sqrt(square)) + 1.0))
    bits = np.where(variance <= _SLACK * variance.min(), bits, np.inf)
    place = int(np.argmin(np.where(bits == bits.min(), variance, np.inf)))
    return int(g[place]), int(b[place])


# -- the release


@dataclass(frozen=True, eq=False)
class BallRelease(Release):
    """A release of vectors of a ball: dither, a point of each set, and the choice between them."""

    streams: ClassVar[int] = 3
    whole: ClassVar[bool] = True
    straight: ClassVar[bool] = False

    def randomize(self, x: ArrayLike, call: Call) -> NDArray[Any]:
        """Return codes of vectors of the ball, shape (n, d), whatever the call's form is."""
        law: BallCap = self.channel
        threads, first_chunk = call.threads, call.first_chunk
        values = np.asarray(x)

        def drawn(channel: Any, given: Any, grid: Grid | None, key: Any) -> NDArray[np.intp]:
            codes = channel.randomize(given, grid, None, key, "codes", None, threads, first_chunk)
            return np.asarray(codes).astype(np.intp)

        dither = Window(2 * law.steps + 1, 1, 1.0)  # never leaves its cell
        vectors = drawn(dither, values, self.codec, call.keys[0]) - law.steps
        # Caps of probability 0: the numbers of a point of each set, uniform.
        sets = Cap([(max(2, law.near), 0), (law.everything, 0)], [], 0, 0)
        chosen = drawn(sets, np.zeros((len(values), 2), np.uint32), None, call.keys[1])
        near = drawn(_coin(law.high / ONE), np.zeros(len(values), np.uint8), None, call.keys[2]) == 0
        about = vectors + law.offsets[chosen[:, 0] % law.near] + law.farthest
        codes = np.where(near[:, None], about, law.codes[chosen[:, 1]])
        return codes.astype(np.min_scalar_type(self.alphabet - 1))

    def probabilities(self) -> NDArray[np.float64]:
        law: BallCap = self.channel
        share = law.high / ONE
        everything = np.bincount(law.codes[:, 0], minlength=self.alphabet) / law.everything
        near = np.bincount(law.offsets[:, 0] + law.reach) / law.near
        rows = np.tile((1.0 - share) * everything, (2 * law.steps + 1, 1))
        for row, place in zip(
            rows, range(law.farthest - law.steps, law.farthest + law.steps + 1), strict=True
        ):
            row[place - law.reach : place + law.reach + 1] += share * near
        return rows


@lru_cache(maxsize=64)
def _release(law: BallCap, radius: float) -> BallRelease:
    """Return the release of vectors of a ball: letters and moments of a coordinate, see `BallWindow`."""
    points = equidistant((-radius, radius), 2 * law.steps + 1)
    grid = Grid(len(points), low=-radius, high=radius)
    alphabet, share, scale = 2 * law.farthest + 1, law.high / ONE, radius / law.steps
    sums = _square_sums(law.features)
    inner, outer = sums[law.reach**2] / law.near, sums[law.square] / law.everything
    letters = (np.arange(alphabet) - law.farthest) * (scale / share)
    squares = np.square(np.arange(-law.steps, law.steps + 1.0))
    moments = share * (squares + inner / law.features) + (1.0 - share) * outer / law.features
    spread = Spread(points, readonly((scale / share) ** 2 * moments))
    return BallRelease(law, law.epsilon, alphabet, grid, points, readonly(letters), spread)
