"""Records of a ball, released coordinate by coordinate: clip to the ball, dither, one channel for all."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, Matrix, Shift
from bitldp.accounting import divergence
from bitldp.accounting.compose import searched
from bitldp.accounting.loss_table import LossTable, of_rows
from bitldp.base import checks
from bitldp.base.arrays import readonly, zeros_if_refused
from bitldp.compression.ball import _bounds, _mesh
from bitldp.compression.ball._dither import bias_factor, conditioned, enlarged
from bitldp.compression.ball._records import check_shape, inside, norms
from bitldp.letters.spread import Spread
from bitldp.mechanism.base import Mechanism, Takes
from bitldp.mechanism.law import Block, Experiment, Pair, Symbols
from bitldp.mechanism.means import Means
from bitldp.mechanism.parameters import Features, Flag, Option, one_of
from bitldp.privacy import Guarantee
from bitldp.release.base import Call, Interval, Release

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
    epsilon: Annotated[float, checks.positive]
    _: KW_ONLY
    delta: Annotated[float, _delta] = 0.0
    radius: Annotated[float, ball_radius] = 1.0
    clip: Flag = True

    takes: ClassVar[Takes | None] = "ball"
    usual_size: ClassVar[int] = 100
    k: ClassVar[None] = None  # type: ignore[misc]  # no coordinate is left out

    # Set on the instance, by _finish; ClassVar keeps them out of the dataclass' fields.
    _conditional: ClassVar[bool]
    _power: ClassVar[int]
    _coordinate: ClassVar[LossTable]
    _pure: ClassVar[float]

    @classmethod
    def usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example, at a delta of 1e-6."""
        return super().usual(epsilon, size) | {"delta": 1e-6}

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
        """Set what the subclass has built, and judge it."""
        points, (low, high) = len(rows), self._interval()
        grid = Grid(points, low=low, high=high)
        spread = None
        if letters is not None:
            moments = rows @ np.square(letters - (low + high) / 2.0)
            spread = Spread(readonly(grid.values()), readonly(moments))
        worth = None if letters is None else readonly(letters)
        self._set(
            _release=Release(
                channel, channel.epsilon, channel.outputs, grid, readonly(grid.values()), worth, spread
            ),
            _ends=(low, high),
            _power=power,
            _conditional=conditional,
            _coordinate=of_rows(rows, channel.epsilon),
            _spread=spread,
        )
        self._judge(claimed)

    def _judge(self, claimed: float) -> None:
        """Set the guarantee of what was built."""
        channel, record = self.channel, self.pure_epsilon()
        self._set(_pure=record)
        # With conditional dither, a coordinate also decides what is accepted of the others.
        feature = record if self._conditional else channel.epsilon
        if self.delta > 0.0:
            record = min(record, self._at_delta())
        # Records that differ in one feature are records: with the same delta, no more can be told of them.
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
        channel: Matrix | Shift = self._release.channel
        return channel

    @property
    def codec(self) -> Grid:
        """The points of a coordinate, from -radius to radius where nothing else is said."""
        grid: Grid = self._release.codec
        return grid

    @property
    def bias_bound(self) -> float:
        """Bound of the bias of the decoded record in the l2 norm, in units of `x`; 0 for unbiased dither."""
        self._check_speaks()
        return bias_factor() * self._step() if self._conditional else 0.0

    def _interval(self) -> Interval:
        """Return where a coordinate lies."""
        return -self.radius, self.radius

    def _distance(self, power: int) -> float:
        """Return the largest distance of two records, in the norm of the ball."""
        return 2.0 * self.radius

    def _step(self) -> float:
        low, high = self._ends
        step: float = (high - low) / (self.codec.points - 1)
        return step

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
            return _bounds.relaxed(
                _bounds.worst_losses(self._coordinate.rows), self._power, diameter**self._power, features
            )
        return _mesh.pure(self._coordinate, diameter, self._power, features, self._ends[0] == 0.0)

    def renyi(self, orders: ArrayLike, *, bound: Bound = "best") -> NDArray[np.float64]:
        """Return an upper bound of the Rényi divergence between two records of the ball.

        Parameters
        ----------
        orders : array_like of float
            Orders above 1, shape (n,) or ().
        bound : {"best", "greedy", "coupled", "steepest", "interpolated"}
            "greedy": Lemma 7 of the paper, and "best" the linear program of its Eq. 4, never more: both with
            conditional dither. The others are for unbiased dither (Notes), where "best" is the least of them.

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
        An upper bound, where `bitldp.accounting.renyi` is exact for records without a common bound: the
        largest sum over coordinates within the ball is a knapsack problem, and only its relaxation is solved.

        With unbiased dither a record may leave the ball by up to half a step a coordinate, so that the
        paper's bounds do not cover it. But the law of a coordinate is a mixture of two rows. Three bounds:

        - "steepest": the log-ratio of two inputs is at most c times their distance, c being found from the
          rows, so the divergence of a coordinate is at most alpha (c t)^2/2 for inputs t apart (Bun and
          Steinke, "Concentrated differential privacy", TCC 2016, Proposition 3.3), and that of a record at
          most alpha (c D)^2/2 with D the diameter of the ball.
        - "coupled": the dither of two records may use the same coins, which makes the relaxed knapsack one
          of distances between points.
        - "interpolated": the divergence of two mixtures is quadratic in a small distance, as the Fisher
          information is. The knapsack is relaxed over all inputs, not only points, on a mesh whose cells
          are bounded by convexity. The least of the three as a rule. It is infinite, and not looked for,
          where the channel has more than 256 points or 64 reports.
        """
        alphas = divergence.check_orders(orders)
        diameter, features = self._diameter(), self.features
        if not self._conditional:
            found = _mesh.curve(
                bound,
                self._coordinate,
                self._divergences,
                np.atleast_1d(alphas),
                diameter,
                self._power,
                features,
                self._ends[0] == 0.0,
            )
            return np.minimum(found, self._pure).reshape(alphas.shape)
        checks.choice("bound", bound, ("best", "greedy"))
        capacity = diameter**self._power
        sums = []
        for alpha in np.atleast_1d(alphas).tolist():
            divergences = self._divergences(alpha)
            if bound == "greedy":
                sums.append(_bounds.greedy(divergences, self._power, capacity))
            else:
                sums.append(_bounds.relaxed(divergences, self._power, capacity, features))
        return np.array(sums).reshape(alphas.shape)

    def _divergences(self, alpha: float) -> NDArray[np.float64]:
        """Return the Rényi divergence of every two points of a coordinate, rounded up."""
        return np.minimum(divergence.divergences(self._coordinate, alpha), self._coordinate.epsilon)

    def symbols(self) -> tuple[Symbols, ...]:
        """Return the guarantee: what the ball allows of all coordinates together is no law of one."""
        return Mechanism.symbols(self)

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
        places = (inputs - self._ends[0]) / self._step()
        low = np.clip(np.floor(places).astype(int), 0, len(rows) - 2)
        upper = np.clip(places - low, 0.0, 1.0)[..., None]
        table = (1.0 - upper) * rows[low] + upper * rows[low + 1]

        def describe(symbol: int, value: int) -> str:
            return f"coordinate {symbol} is reported as {value}"

        return Experiment(list(inputs), names, [Block(table, describe)], [(0, 1)], {"output": "codes"})

    def _refuse_silence(self) -> NoReturn:
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
        places = np.clip((records - self._ends[0]) / self._step(), 0.0, points - 1.0)
        bound = enlarged(self.radius / self._step(), self.features, self._power)
        table = places.reshape(-1, self.features)
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
