"""MVU: a number becomes b bits with the least variance that was found, plain or under a metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix, log_ratio
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.design.distance import Metric, canonical, distances
from bitldp.design.mvu import BITS, METRIC_BITS, load_or_solve
from bitldp.design.result import Design, keeps, spread
from bitldp.mechanism.designed import Designed, DesignTable
from bitldp.mechanism.numeric import Numeric
from bitldp.mechanism.parameters import Criterion, Interval, whole
from bitldp.privacy import Guarantee, composed
from bitldp.release.base import Release, equidistant
from bitldp.release.table import placed, uninformative

__all__ = ["MVU", "MetricMVU"]


def tabled(design: Design) -> DesignTable:
    """Return the table of a design: its channel, and its letters for [0, 1]."""
    return DesignTable(design.channel(), readonly(np.array(design.letters)))


def designed(table: DesignTable, bits: tuple[int, int], interval: Interval) -> Release:
    """Return the release of a number of `interval` by the table of a design."""
    channel, letters = table
    if letters is None or (channel.inputs, channel.outputs) != (1 << bits[0], 1 << bits[1]):
        raise ValueError("input_bits: the stored table belongs to other parameters")
    return placed(
        channel, letters, spread(tuple(map(tuple, channel.weights())), tuple(letters.tolist())), interval
    )


@lru_cache(maxsize=64)
def _solved(
    bits: tuple[int, int], epsilon: float, objective: str = "mean", metric: Metric | None = None
) -> DesignTable:
    return tabled(load_or_solve(*bits, epsilon, objective=objective, metric=metric))


@dataclass(frozen=True, eq=False, repr=False)
class MVU(Designed, Numeric):
    """MVU: reports numbers in a few bits with least variance, from a table that is solved in advance.

    Parameters
    ----------
    epsilon : float
        Privacy budget of one `unit`, finite, zero or more. A number's share must be 0 or at least 1e-4 (1e-9
        with one output bit), and at most 16 of it is used. The exact epsilon never exceeds the budget. It is
        lower by at most a relative 1e-6, or 1e-9 with one output bit.
    input_bits : int
        Bits of the grid, b_in, 1 to 8: a number is dithered to one of 2**b_in points.
    output_bits : int
        Bits of a report, b_out, 1 to 8.
    objective : {"mean", "worst"}
        What is minimised: the sum of the variances at the points, or the largest variance of any number.
    interval, features, spend, k, clip, unit
        As of `Numeric`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.
    DesignError
        If the solver finds no mechanism.
    MissingExtraError
        If a design must be solved, and the extra ``design`` (SciPy) is not installed.

    Notes
    -----
    Neighbouring records differ in any way. Designs for up to 3 bits and common budgets of a number ship with
    the package. Others are solved at first use (seconds up to 7 input and 5 output bits, minutes beyond),
    then cached on disk; see `bitldp.design.mvu.load_or_solve`. With one output bit the mechanism is
    randomized response of the dithered number.

    A different solver version may find a different table with about the same variance. If the design is not
    shipped, share one mechanism between client and server as a pickle, which holds the table; `fingerprint`
    identifies it. Source: Chaudhuri, Guo and Rabbat, "Privacy-aware compression for federated data analysis"
    (UAI 2022), Section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp.compression import MVU
    >>> mechanism = MVU(epsilon=1.0, input_bits=3, output_bits=3)
    >>> reports = mechanism.randomize(np.full(80_000, 0.25), rng=1, output="packed")
    >>> len(reports)
    30000
    """

    _lasting: ClassVar[str] = "bitldp.compression.mvu.MVU"

    _: KW_ONLY
    input_bits: Annotated[int, whole(1, BITS)] = 3
    output_bits: Annotated[int, whole(1, BITS)] = 3
    objective: Criterion = "mean"
    interval: Interval = (-1.0, 1.0)

    def _released(self, epsilon: float, interval: Interval) -> Release:
        bits = (self.input_bits, self.output_bits)
        if epsilon == 0.0:
            return uninformative(1 << bits[0], 1 << bits[1], interval)
        table = self._table(lambda: _solved(bits, epsilon, self.objective))
        if table.channel.epsilon > epsilon:
            raise ValueError("epsilon: the stored table exceeds it")
        return designed(table, bits, interval)


@dataclass(frozen=True, eq=False, repr=False)
class MetricMVU(Designed, Numeric):
    """MVU under a metric: the closer two numbers are, the harder they are to tell apart (needs SciPy).

    Parameters
    ----------
    epsilon : float
        Budget for a distance of 1 in one feature: a report's log-ratio between two points x, y of the grid is
        at most epsilon d(x, y), exactly. At least 1e-4 for the length of the interval; at most 16 is spent on
        it with |x - y|^p.
    metric : float, array_like of shape (2**input_bits, 2**input_bits), or callable
        The distance d. A number p > 0 stands for |x - y|^p in the units of the interval. Otherwise, a table
        of the distances between points, or a function ``d(x, y)``. The attribute then holds the power or the
        table (read-only).
    input_bits : int
        Bits of the grid, b_in, 1 to 6: a number is dithered to one of 2**b_in points.
    output_bits : int
        Bits of a report, b_out, 1 to 6.
    interval, clip
        As of `Numeric`.
    features : int
        Numbers of a record, each released by itself. The distance of two records is the sum of theirs: with
        |x - y|^p the p-th power of the L_p norm. Nothing is split.
    spend, k, unit
        Inherited; only their defaults are allowed.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.
    DesignError
        If the solver finds no mechanism.
    MissingExtraError
        If a design must be solved, and the extra ``design`` (SciPy) is not installed.

    Notes
    -----
    `guarantee` holds for the greatest distance: records in which every number moves from one end of the
    interval to the other. It is not plain epsilon-privacy at `epsilon`: its text states which numbers
    `epsilon` covers, and what holds for all.

    Between two points of the grid, dither mixes neighbouring rows, and the bound epsilon d(x, y) is slightly
    exceeded; see `slope`. Source: Chaudhuri, Guo and Rabbat, "Privacy-aware compression for federated data
    analysis" (UAI 2022), Section 5.

    Examples
    --------
    >>> from bitldp.compression import MetricMVU
    >>> mechanism = MetricMVU(epsilon=1.0, metric=1.0, input_bits=2, output_bits=2)
    >>> mechanism.distance_epsilon(0, 1) <= 2.0 / 3.0
    True
    """

    _lasting: ClassVar[str] = "bitldp.compression.metric.MetricMVU"

    _: KW_ONLY
    metric: Any = 1.0
    input_bits: Annotated[int, whole(1, METRIC_BITS)] = 3
    output_bits: Annotated[int, whole(1, METRIC_BITS)] = 3
    interval: Interval = (-1.0, 1.0)

    @classmethod
    def _for_record(cls, **parameters: Any) -> Any:
        """Construct from a command line's options; `epsilon` is for the greatest distance of a record."""
        low, high = parameters.get("interval", cls.interval)
        budget = parameters.pop("epsilon") / ((high - low) * parameters.get("features", cls.features))
        return cls(epsilon=budget, **parameters)

    def _build(self) -> None:
        epsilon, features, interval = checks.positive("epsilon", self.epsilon), self.features, self.interval
        for name, only in (("spend", "split"), ("k", None), ("unit", "record")):
            if getattr(self, name) != only:
                raise ValueError(f"{name}: must be {only!r} under a metric, where every feature is released")
        metric, table = self._distances(interval)
        # A table, or a function of the caller's, is a table from here on.
        self._set(metric=readonly(table) if isinstance(metric, tuple) else metric)
        release = self._released(epsilon, interval)
        widest, exact = epsilon * float(table.max()), release.epsilon
        slope = steepest(_weights_of(release), interval)
        self._set(
            _release=release,
            _ends=interval,
            _spread=release.spread,
            _guarantee=Guarantee.judge(
                composed(widest, features),
                (exact, exact, composed(exact, features)),
                given=f"under a metric: {epsilon:.6g} times the distance of points of the grid, and "
                f"{slope:.6g} times the length between any other numbers, where the dither mixes; shown for "
                "the greatest distance",
            ),
        )

    def _distances(self, interval: Interval) -> tuple[Metric, NDArray[np.float64]]:
        """Return the metric as designs are asked for, and the distances of the points of the grid."""
        count = 1 << self.input_bits
        metric = canonical(self.metric, equidistant(interval, count).tolist())
        if metric is None:
            raise TypeError("metric: must be a power, a table or a function; without one, use MVU")
        table = distances(metric, count)
        if not isinstance(metric, tuple):  # which is for [0, 1], and so is the design
            table *= (interval[1] - interval[0]) ** metric
        return metric, table

    def _released(self, epsilon: float, interval: Interval) -> Release:
        """Return the release of one number; `epsilon` is for a distance of 1."""
        metric, table = self._distances(interval)
        budget = epsilon if isinstance(metric, tuple) else epsilon * float(table.max())
        bits = (self.input_bits, self.output_bits)
        drawn = self._table(lambda: _solved(bits, budget, metric=metric))
        if not keeps(tuple(map(tuple, drawn.channel.weights())), budget, metric):
            raise ValueError("epsilon: the stored table exceeds it")
        return designed(drawn, bits, interval)

    def _weights(self) -> list[list[int]]:
        return _weights_of(self._release)

    def distance_epsilon(self, first: int, second: int) -> float:
        """Return the exact epsilon between two points of the grid, from the integers, rounded up.

        Parameters
        ----------
        first, second : int
            Numbers of two of `points`, in one feature.

        Raises
        ------
        ValueError, TypeError
            If a number is not that of a point.
        """
        last = len(self.points) - 1
        one = self._weights()[checks.integer("first", first, 0, last)]
        two = self._weights()[checks.integer("second", second, 0, last)]
        return epsilon_between(one, two)

    @property
    def slope(self) -> float:
        """Largest change of ln P(report | x) with x, in epsilon per unit of length, dither included.

        Within a cell of the grid the law is a mixture of two rows, whose log changes fastest where the less
        likely row is: by (e^eps' - 1)/h for neighbours at epsilon eps' and distance h. Two numbers of the
        interval at any distance r, on the grid or not, have an epsilon of at most ``slope * r``.
        """
        return steepest(self._weights(), self._ends)


def _weights_of(release: Release) -> list[list[int]]:
    """Return the integers of a designed release."""
    assert isinstance(release.channel, Matrix)
    return release.channel.weights()


def epsilon_between(one: Sequence[int], two: Sequence[int]) -> float:
    """Return the exact epsilon between two rows of a table, rounded up."""
    pairs = [*zip(one, two, strict=True), *zip(two, one, strict=True)]
    return max(log_ratio(more, less) for more, less in pairs if more >= less)


def steepest(rows: Sequence[Sequence[int]], interval: tuple[float, float]) -> float:
    """Return the slope of a table of rows for equidistant points of an interval; see `MetricMVU.slope`."""
    last = len(rows) - 1
    worst = max(epsilon_between(rows[each], rows[each + 1]) for each in range(last))
    return math.expm1(worst) * last / (interval[1] - interval[0])
