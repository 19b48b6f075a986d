"""Records of a ball, released coordinate by coordinate: clip to the ball, dither, one channel for all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, Matrix, Shift
from bitldp.accounting import divergence
from bitldp.accounting.compose import searched
from bitldp.accounting.table import Table, of_rows
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.base.keys import RandomSource, keys
from bitldp.compression.ball import _bounds, _mesh
from bitldp.compression.ball._dither import bias_factor, conditioned, enlarged
from bitldp.compression.ball._records import inside, norms
from bitldp.compression.ball._worth import Spelled
from bitldp.letters.spread import Spread
from bitldp.privacy import Guarantee

Dither = Literal["unbiased", "conditional"]
Output = Literal["codes", "values", "packed"]
Bound = Literal["best", "greedy", "coupled", "steepest", "interpolated"]

_SLACK = 2.0**-28  # steps a coordinate may be off by the rounding of clip and dither, generously


@dataclass(frozen=True, eq=False, repr=False)
class Ball(Spelled):
    """Base of the mechanisms for records in an l1 or l2 ball."""

    # Set on the instance, by _finish; ClassVar keeps them out of the dataclass' fields.
    _power: ClassVar[int]
    _coordinate: ClassVar[Table]
    _pure: ClassVar[float]

    def _check_ball(self) -> None:
        """Check the parameters that all have, and keep them in their plain form."""
        epsilon = checks.positive("epsilon", self.epsilon)
        delta = checks.budget("delta", self.delta)
        if not delta < 1.0:
            raise ValueError(f"delta: must be below 1, got {delta}")
        radius = checks.positive("radius", self.radius)
        if not 1e-100 <= radius <= 1e100:
            raise ValueError(f"radius: must be between 1e-100 and 1e100, got {radius}")
        if not isinstance(self.clip, (bool, np.bool_)):
            raise TypeError(f"clip: must be True or False, not {type(self.clip).__name__}")
        self._set(
            epsilon=epsilon,
            delta=delta,
            radius=radius,
            clip=bool(self.clip),
            features=checks.count("features", self.features, 1),
        )

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
        points = len(rows)
        grid = Grid(points, low=-self.radius, high=self.radius)
        spread = None
        if letters is not None:
            moments = rows @ np.square(letters)
            spread = Spread(readonly(grid.values()), readonly(moments))
        self._set(
            _channel=channel,
            _grid=grid,
            _power=power,
            _conditional=conditional,
            _coordinate=of_rows(rows, channel.epsilon),
            _letters=None if letters is None else readonly(letters),
            _spread=spread,
        )
        record = self.pure_epsilon()
        self._set(_pure=record)
        # With conditional dither, a coordinate also decides what is accepted of the others.
        feature = record if conditional else channel.epsilon
        if self.delta > 0.0:
            record = min(record, searched(self.renyi, self.delta))
        # Records that differ in one feature are records: with the same delta, no more can be told of them.
        feature = min(feature, record)
        self._set(
            _guarantee=Guarantee(claimed, feature, feature, record, delta=self.delta, holds=record <= claimed)
        )

    @property
    def channel(self) -> Matrix | Shift:
        """The channel of one coordinate."""
        return self._channel

    @property
    def codec(self) -> Grid:
        """The points of a coordinate, from -radius to radius."""
        return self._grid

    @property
    def bias_bound(self) -> float:
        """Bound of the bias of the decoded record in the l2 norm, in units of `x`; 0 for unbiased dither."""
        if self._letters is None:
            return self._refuse()
        step = 2.0 * self.radius / (self._grid.points - 1)
        return float(bias_factor() * step) if self._conditional else 0.0

    def _diameter(self) -> float:
        """Return the largest distance of two records, in steps of the grid, in the norm of the ball."""
        radius: float = (self._grid.points - 1) / 2.0
        if self._conditional:
            return 2.0 * enlarged(radius, self.features, self._power)
        return 2.0 * radius + _SLACK * math.pow(self.features, 1.0 / self._power)

    def pure_epsilon(self) -> float:
        """Return an upper bound of the epsilon of a record at delta 0, from the channel's integers."""
        diameter, features = self._diameter(), self.features
        if self._conditional:
            return _bounds.relaxed(
                _bounds.worst_losses(self._coordinate.rows), self._power, diameter**self._power, features
            )
        return _mesh.pure(self._coordinate, diameter, self._power, features)

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

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of one coordinate: P[i, y] = P(code y | grid point i)."""
        return self._channel.probabilities()

    def randomize(
        self,
        x: ArrayLike,
        *,
        rng: RandomSource = None,
        output: Output = "codes",
        out: NDArray[Any] | None = None,
        threads: int | None = None,
        first_chunk: int = 0,
    ) -> NDArray[Any]:
        """Randomize records of the ball.

        Parameters
        ----------
        x : array_like of float32 or float64
            Shape (n, features) or (features,), finite. Records outside the ball are scaled to it (`outside`
            counts them), or refused with ``clip=False``.
        rng : None, int, SeedSequence or Generator
            None: fresh 256-bit keys of the operating system. The others reproduce, for tests and experiments
            only: a key that is used on two inputs reveals where they differ.
        output : {"codes", "values", "packed"}
            Codes (smallest unsigned dtype), letters (float64; see `decode`), or bytes with as many bits a
            code as are needed.
        out : ndarray, optional
            C-contiguous array of the exact shape and dtype to fill; must not overlap `x`.
        threads : int, optional
            Number of threads; the result does not depend on it.
        first_chunk : int
            How many chunks (``bitldp._core.CHUNK`` coordinates) of the keys' streams to skip.

        Returns
        -------
        ndarray
            The reports, safe to release at `guarantee`: of the shape of `x`, but that "packed" is flat.

        Raises
        ------
        ValueError
            NaN or infinity, a record outside with ``clip=False`` (an index is given, never a value), wrong
            shape, unfit `out`, or "values" where there are no letters. Nothing is written then.
        TypeError
            Wrong dtype or kind of argument.
        """
        threads, first_chunk = checks.stream(threads, first_chunk)
        checks.choice("output", output, ("codes", "values", "packed"))
        letters = None if output != "values" else self.letters
        records = self._inside(x)
        key, dither = keys(rng, 2) if self._conditional else (*keys(rng, 1), None)
        if not self._conditional:
            return self._channel.randomize(
                records, self._grid, letters, key, output, out, threads, first_chunk
            )
        points = self._grid.points
        places = np.clip((records / self.radius + 1.0) * ((points - 1) / 2.0), 0.0, points - 1.0)
        bound = enlarged((points - 1) / 2.0, self.features, self._power)
        table = places.reshape(-1, self.features)
        drawn = conditioned(table, points, bound, self._power, dither, first_chunk).reshape(records.shape)
        codes = drawn.astype(np.min_scalar_type(points - 1))
        return self._channel.randomize(codes, None, letters, key, output, out, threads, first_chunk)

    def _inside(self, x: ArrayLike) -> NDArray[np.float64]:
        return inside(x, self.features, self._power, self.radius, self.clip)

    def outside(self, x: ArrayLike) -> int:
        """Return how many records of `x` (float32 or float64) lie outside the ball and are scaled to it."""
        return int(np.count_nonzero(norms(x, self.features, self._power)[1] > self.radius))
