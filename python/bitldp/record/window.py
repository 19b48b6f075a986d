"""Joint windows: several numbers of a record in one report that is near all of them, or anywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Cap, Grid
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.estimate.estimates import Estimate
from bitldp.letters.spread import Spread
from bitldp.mechanism.base import Mechanism, Takes
from bitldp.mechanism.law import TABLE, Experiment, Pair, codes_of, of_neighbourhoods
from bitldp.mechanism.numeric import Means
from bitldp.mechanism.parameters import Budget, Criterion, Features, Flag, Interval
from bitldp.privacy import ONE, Guarantee, calibrated
from bitldp.record.choice import SLACK
from bitldp.release.base import Call, Direct, Release, equidistant
from bitldp.release.base import Interval as Ends
from bitldp.release.sampled import SampledReports, drawn_together, index_bits

__all__ = ["MOST_CELLS", "JointWindow", "grids", "mean_moment", "near_least", "window_release"]

MOST_CELLS = 1 << 16
"""The most cells of a number: a code is two bytes."""

_MOST = 256  # numbers of a report
_SMALL = 64  # cells; of grids up to these the search looks at every one

_HOPEFUL = 1.3  # of the least variance on small grids: other numbers of coordinates are not looked at again
_RESOLUTION = 1 << 16  # a grid's ends may be off by this part of a step, as for single precision in the core


@dataclass(frozen=True, eq=False, repr=False)
class JointWindow(Means):
    """Joint window: reports several numbers by one point that is near all of them, or any other.

    Use it above epsilon 2: all numbers share one random choice, so each of them has the whole budget.

    Parameters
    ----------
    features : int
        Numbers of a record, d.
    epsilon : float
        Exact epsilon of a record, finite, zero or more.
    criterion : {"mean", "worst"}
        Which variance to minimise: the mean over uniform inputs, or that of the worst input.
    k : int, optional
        Coordinates that are drawn for each record without looking at it, 1 to min(d, 256). With k = d nothing
        is drawn, and a report is a code for each number.
    levels : int, optional
        Number P of points of the interval that a number is dithered to, 2 or more.
    reach : int, optional
        Number b of cells on each side of a number's own cell that count as near, zero or more. A number's
        report is one of P + 2 b cells, at most 65,536. If `k`, `levels` or `reach` is None, a search sets it:
        among the settings within 2 % of the least variance, the one with the fewest bits. All three
        attributes then hold the chosen numbers.
    interval, clip
        As of `Duchi`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, or an interval too narrow for its distance from 0; the message names
        it.

    Notes
    -----
    A number is dithered to one of P points, and a report has one of L = P + 2 b cells for it. With
    probability A the report is uniform on the cube of (2 b + 1)^k cells about the k numbers, otherwise on all
    L^k. So epsilon = ln(1 + A/((1 - A) t)) with t = ((2 b + 1)/L)^k. Counted in steps from the middle, a cell
    has the mean A x and the second moment A (x^2 + b (b + 1)/3) + (1 - A)(L^2 - 1)/12, where x is the
    number's point. The letters divide the cell by A, an integer over 2**64, and by the share k/d of the
    coordinates that are drawn. A coordinate that is not drawn counts as the middle. `variance` includes the
    dither and the draw.

    Neighbouring records differ in any way. Records that differ in one feature reach epsilon if it is drawn,
    so bit, feature and record are equal in `guarantee`. The draw of the coordinates is public. The decoded
    numbers of a record are near their true values either all together or not at all, so their products are
    biased. `estimate_products` corrects this bias.

    With two levels and no reach this is `SampledSigns`; with k = 1 it is a window of one number, as that of
    `Piecewise`. Source: the piecewise mechanism of Wang et al., "Collecting and analyzing multidimensional
    data with local differential privacy", ICDE 2019, on a cube in place of an interval; the law, uniform
    about the record or uniform everywhere, is that of PrivUnit in Bhowmick et al., arXiv:1812.00984 (2018).

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.JointWindow(3, epsilon=8.0)
    >>> mechanism.k, mechanism.levels, mechanism.reach, mechanism.report_bits
    (3, 25, 3, 15)
    >>> round(mechanism.mean_variance(), 4)
    0.0562
    >>> round(bitldp.PiecewiseSub(epsilon=8.0, features=3).mean_variance(), 4)
    0.3699
    >>> mechanism.randomize(np.zeros((5, 3))).shape
    (5, 3)
    """

    features: Features
    _: KW_ONLY
    epsilon: Budget
    criterion: Criterion = "mean"
    k: int | None = None
    levels: int | None = None
    reach: int | None = None
    interval: Interval = (-1.0, 1.0)
    clip: Flag = True

    _takes: ClassVar[Takes | None] = "reals"
    _usual_size: ClassVar[int] = 3

    def _build(self) -> None:
        features = self.features
        held = self._held("k", 1, min(features, _MOST)), *self._held_grid()
        k, levels, reach = _best(features, self.epsilon, self.criterion == "worst", *held)
        release = joint_release(k, levels, reach, self.epsilon, self.interval)
        exact = release.epsilon
        self._set(
            k=k,
            levels=levels,
            reach=reach,
            _release=release,
            _ends=self.interval,
            _spread=None if release.spread is None else release.spread.scaled(features / k),
            _guarantee=Guarantee.judge(self.epsilon, (exact, exact, exact)),
        )

    def _held(self, name: str, least: int, most: int) -> int | None:
        given = getattr(self, name)
        return None if given is None else checks.integer(name, given, least, most)

    def _held_grid(self) -> tuple[int | None, int | None]:
        levels = self._held("levels", 2, MOST_CELLS)
        return levels, self._held("reach", 0, (MOST_CELLS - (levels or 2)) // 2)

    @property
    def channel(self) -> Cap:
        """The channel: its `high`, `windows` and `share` are the law; uninformative at epsilon 0."""
        return self._release.channel

    @property
    def _drawn(self) -> int | None:
        return None if self.k == self.features else self.k

    def _together(self, slots: Sequence[int]) -> tuple[float, float]:
        """Return the factor and the chance of `Attributes._together`.

        Numbers of a report are near theirs together, or none of them is; see `estimate_products`.
        """
        factor, chance = drawn_together(len(slots), self._drawn, self.features)
        return factor * (self.channel.high / ONE) ** (len(slots) - 1), chance

    def _shortcut(self) -> Direct | None:
        return None if self._drawn is not None or not self.clip else self._release.direct(self.features)

    def estimate_products(self, reports: ArrayLike | SampledReports) -> Estimate:
        """Estimate the mean product of every two numbers' deviations from the middle of the interval.

        Parameters
        ----------
        reports : array_like of int, or SampledReports
            Codes of n >= 2 records as `randomize` gives them.

        Returns
        -------
        Estimate
            Shape (features, features), in squared units of `x`, symmetric and without bias. The diagonal is
            NaN: dither adds an unknown amount to the square of a number.

        Raises
        ------
        ValueError, TypeError
            If no two numbers are in one report (k = 1) or reports are uninformative (epsilon 0), for fewer
            than two reports, or for a report out of range.

        Notes
        -----
        Two numbers of a report are near theirs together, with probability A, or not at all, and two of d are
        drawn with probability k (k - 1)/(d (d - 1)). So the product of their decoded deviations is d (k - 1)/
        (A k (d - 1)) times as large on average as that of the numbers.
        """
        self._check_informative()
        d, k = self.features, self.k or 1
        if k == 1:
            raise ValueError("k: products need two numbers in one report, so a k of 2 or more")
        deviations = self.decode(reports).reshape(-1, d) - self._check_spread().middle
        n = len(deviations)
        if n < 2:
            raise ValueError("reports: at least two are needed for products")
        factor = self.channel.high / ONE * (k * (d - 1)) / (d * (k - 1))
        mean = factor / n * (deviations.T @ deviations)
        squares = np.square(factor * deviations) / factor
        spread = np.maximum(squares.T @ squares / n - np.square(mean), 0.0) * (n / (n - 1))
        for each in (mean, spread):
            np.fill_diagonal(each, np.nan)
        return Estimate(mean, np.sqrt(spread / n), n)

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return two records, and the law of a report being near the first, the second, both or neither.

        See `Mechanism.extremes`; without a pair, they are the corners of the interval's cube.
        """
        count = len(self.points)
        chosen = [0, count - 1] if pair is None else codes_of(pair, count, self.points, self.features)
        drawn = self._drawn
        if not self._release.laws or not chosen or (drawn and not all(isinstance(x, int) for x in chosen)):
            return Mechanism.extremes(self, pair)
        places = [np.broadcast_to(each, self.k or 1) for each in chosen]
        apart = np.abs(places[0] - places[1]).tolist()
        width = 2 * (self.reach or 0) + 1
        both = math.prod(max(0, width - each) for each in apart)

        def read(reports: Any) -> tuple[Any, ...]:
            codes = np.asarray(reports[1] if drawn else reports).reshape(-1, len(apart)).astype(np.int64)
            return tuple(((codes >= at) & (codes < at + width)).all(axis=1) for at in places)

        inputs: list[Any] = [np.broadcast_to(self.points[each], self.features).copy() for each in chosen]
        if self.features == 1:
            inputs = [float(each[0]) for each in inputs]
        names = ["the first record", "the second record"]
        if pair is None:
            names = [f"every feature {end:g}" for end in self._ends]
        sizes = width ** len(apart), both, self.alphabet ** len(apart)
        return of_neighbourhoods(inputs, names, sizes, self.channel.high, read)


# -- the search


@lru_cache(maxsize=256)
def _best(
    features: int,
    epsilon: float,
    worst: bool,
    k: int | None,
    levels: int | None,
    reach: int | None,
    slack: float = SLACK,
) -> tuple[int, int, int]:
    """Return numbers, levels and reach of the fewest bits within `slack` of the least variance.

    Those that are given are held. Small grids are looked at one by one; larger ones fill their bits.
    """
    if epsilon == 0.0:
        return k or 1, levels or 2, reach or 0
    counts = np.arange(1, min(features, _MOST) + 1) if k is None else np.array([k])
    points, near = grids(levels, reach)
    if k is None:
        small = points + 2 * near <= max(_SMALL, int((points + 2 * near).min()))
        hopeful = _variances(features, epsilon, worst, counts, points[small], near[small]).min(axis=1)
        counts = counts[hopeful <= _HOPEFUL * hopeful.min()]
    variances = _variances(features, epsilon, worst, counts, points, near)
    each = np.ceil(np.log2(points + 2 * near)) + np.where(counts < features, index_bits(features), 0)[:, None]
    bits = np.where(variances <= (1.0 + slack) * variances.min(), counts[:, None] * each, np.inf)
    best = np.where(bits == bits.min(), variances, np.inf)
    row, column = np.unravel_index(np.argmin(best), best.shape)
    return int(counts[row]), int(points[column]), int(near[column])


def near_least(features: int, epsilon: float, worst: bool, slack: float) -> tuple[int, int, int]:
    """Return k, levels and reach of the fewest bits within so much of the least variance of all of them."""
    return _best(features, epsilon, worst, None, None, None, slack)


@lru_cache(maxsize=64)
def grids(levels: int | None, reach: int | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return levels and reach of the grids that are compared, as float64 of one shape."""
    ratios = np.unique(np.geomspace(1, MOST_CELLS, 700).astype(np.int64))
    if levels is not None and reach is not None:
        points, near = np.array([levels]), np.array([reach])
    elif levels is not None:
        near = np.append(0, ratios)
        points = np.full_like(near, levels)
    elif reach is not None:
        points = ratios[1:]
        near = np.full_like(points, reach)
    else:
        small = np.mgrid[2 : _SMALL + 1, : _SMALL // 2].reshape(2, -1)
        small = small[:, small[0] + 2 * small[1] <= _SMALL]
        cells = (1 << np.arange(_SMALL.bit_length(), MOST_CELLS.bit_length()))[:, None] - np.arange(2)[
            :, None, None
        ]
        large = np.broadcast_arrays(cells - 2 * ratios, ratios)
        points, near = np.concatenate([small, np.reshape(large, (2, -1))], axis=1)
    fit = (points >= 2) & (points + 2 * near <= MOST_CELLS)
    return readonly(points[fit].astype(np.float64)), readonly(near[fit].astype(np.float64))


def _variances(
    features: int,
    epsilon: float,
    worst: bool,
    counts: NDArray[np.int64],
    points: NDArray[np.float64],
    near: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the variance of every number of coordinates (rows) on every grid (columns), on [-1, 1]."""
    k = counts[:, None].astype(np.float64)
    cells, half = points + 2.0 * near, (points - 1.0) / 2.0
    odds = epsilon + k * np.log((2.0 * near + 1.0) / cells) + math.log(-math.expm1(-epsilon))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        inside, outside = 1.0 / (1.0 + np.exp(-odds)), 1.0 / (1.0 + np.exp(odds))
        slope = features / (k * inside)  # of the second moment over x^2, where x is a point
        beside = outside / inside
        if not worst:
            return mean_moment(slope, beside, points, near)
        rest = slope * _beyond(beside, points, near)
        # The second moment is linear between the last two points, and the variance a parabola there.
        x = np.clip(slope * (half - 0.5), np.maximum(half - 1.0, 0.0), half)
        moment = slope * (np.square(half) + (x - half) * (2.0 * half - 1.0)) + rest - np.square(x)
        found: NDArray[np.float64] = moment / np.square(half)
    return np.where(np.isfinite(found), found, np.inf)


def _beyond(
    beside: NDArray[np.float64], points: NDArray[np.float64], near: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return E[y^2 | x]/A - x^2, where `beside` is (1 - A)/A; see `window_release`."""
    cells = points + 2.0 * near
    return np.asarray(near * (near + 1.0) / 3.0 + beside * (np.square(cells) - 1.0) / 12.0)


def mean_moment(
    slope: NDArray[np.float64],
    beside: NDArray[np.float64],
    points: NDArray[np.float64],
    near: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the mean variance of a number that is uniform on [-1, 1]; infinite where there is none.

    Parameters
    ----------
    slope : ndarray of float64
        1/A, over the chance that the number is drawn.
    beside : ndarray of float64
        (1 - A)/A.
    points, near : ndarray of float64
        Levels and reach.
    """
    square = np.square((points - 1.0) / 2.0)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        moment = slope * (square / 3.0 + 1.0 / 6.0 + _beyond(beside, points, near)) - square / 3.0
        found = moment / square
    return np.where(np.isfinite(found), found, np.inf)


# -- the release


@dataclass(frozen=True, eq=False)
class JointRelease(Release):
    """A release of k numbers at once by a window around all of them."""

    whole: ClassVar[bool] = True

    @property
    def _flat(self) -> bool:
        """True where a record is one number."""
        return len(self.channel.windows) == 1

    def randomize(self, x: ArrayLike, call: Call) -> NDArray[Any]:
        keys, output, out, threads, first_chunk = call
        values = checks.plain("x", x)
        flat = self._flat and values.ndim == 1
        if flat:
            values = values[:, None]
            out = out[:, None] if isinstance(out, np.ndarray) and out.ndim == 1 else out
        reports: NDArray[Any] = self.channel.randomize(
            values, self.codec, self.letters, keys[0], output, out, threads, first_chunk
        )
        return reports[:, 0] if flat and output != "packed" else reports

    def direct(self, columns: int) -> Direct | None:
        if self.epsilon == 0.0 or self._flat:
            return None
        return Direct.of(
            self.channel.randomize, (self.codec, None, None, "codes", None, None, 0), "codes", columns
        )

    def probabilities(self) -> NDArray[np.float64]:
        points, reach = self.channel.windows[0]
        if points * self.alphabet > TABLE:
            raise ValueError(f"probabilities: a table of {points} x {self.alphabet} chances is too large")
        high = 0.0 if self.epsilon == 0.0 else self.channel.high / ONE
        distance = np.arange(self.alphabet) - np.arange(points)[:, None]
        near = (distance >= 0) & (distance <= 2 * reach)
        return (1.0 - high) / self.alphabet + near * (high / (2 * reach + 1))


def _high(odds: float) -> int:
    """Return A for A/(1 - A) = e^odds as an integer over 2^64; never 2^64."""
    if odds <= 0.0:
        return math.floor(ONE * (math.exp(odds) / (1.0 + math.exp(odds))))
    return ONE - max(1, math.ceil(ONE * (math.exp(-odds) / (1.0 + math.exp(-odds)))))


@lru_cache(maxsize=64)
def joint_cap(k: int, levels: int, reach: int, epsilon: float) -> Cap:
    """Return the law of exact epsilon `epsilon`: A/(1 - A) = (e^eps - 1) t, t the share that is near."""
    share = k * math.log((2 * reach + 1) / (levels + 2 * reach))

    def build(target: float) -> Cap:
        odds = target + share + math.log(-math.expm1(-target)) if target > 0.0 else -math.inf
        return Cap([(levels, reach)] * k, [], 0, _high(odds), mute=target == 0.0)

    return calibrated(build, epsilon, attrgetter("epsilon"))


@lru_cache(maxsize=64)
def joint_release(k: int, levels: int, reach: int, epsilon: float, interval: Ends) -> JointRelease:
    """Return the release of k numbers of an interval; see `window_release`."""
    return window_release(joint_cap(k, levels, reach, epsilon), interval)


def window_release(channel: Cap, interval: Ends) -> JointRelease:
    """Return the release of numbers of an interval by a channel of like windows.

    Counted in steps from the middle, a cell is uniform on the 2 b + 1 about the point x with probability A,
    and otherwise on all L, whose mean is 0 and whose second moment is (L^2 - 1)/12. So its mean is A x, and
    E[y^2 | x] = A (x^2 + b (b + 1)/3) + (1 - A) (L^2 - 1)/12. A letter is the middle and y h/A, h the step.

    Raises
    ------
    ValueError
        If the interval is so narrow for its distance from 0 that doubles blur the steps of the grid.
    """
    levels, reach = channel.windows[0]
    cells = levels + 2 * reach
    low, high = interval
    step = (high - low) / (levels - 1)
    if math.ulp(max(abs(low), abs(high))) * _RESOLUTION > step:
        raise ValueError(
            f"interval: ({low}, {high}) is too narrow for its distance from 0; {levels - 1} steps in it "
            "cannot be distinguished in double precision"
        )
    points, grid = equidistant(interval, levels), Grid(levels, low=low, high=high)
    exact, inside = channel.epsilon, channel.high / ONE
    if exact == 0.0 or inside == 0.0:
        return JointRelease(channel, 0.0, cells, grid, points)
    scale = step / inside
    letters = low + (high - low) / 2.0 + (np.arange(cells) - (cells - 1) / 2.0) * scale
    moments = inside * (np.square(np.arange(levels) - (levels - 1) / 2.0) + reach * (reach + 1) / 3.0)
    rest = (ONE - channel.high) / ONE * ((cells * cells - 1) / 12.0)
    spread = Spread(points, readonly(scale * scale * (moments + rest)))
    return JointRelease(channel, exact, cells, grid, points, readonly(letters), spread)
