"""Points under metric privacy: the closer two points, the harder they are to distinguish."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np

from bitldp._core import Matrix
from bitldp.base import checks
from bitldp.design import metric as design
from bitldp.design.distance import canonical, shortest
from bitldp.mechanism.designed import DesignTable
from bitldp.points.candidates import (
    Losses,
    Members,
    Points,
    check_metric,
    checked_candidates,
    losses_between,
    of_members,
)
from bitldp.points.optimal import OptimalUtility
from bitldp.privacy import Guarantee, composed

__all__ = ["MetricPoints"]

_PROGRAM = 128  # candidates of the program: 16,384 variables, some ten seconds
_MOST = 1024  # candidates of the kernel
_LEAST = 1e-4  # epsilon times the least distance, which doubles resolve


@dataclass(frozen=True, eq=False, repr=False)
class MetricPoints(OptimalUtility):
    """Points under a metric: the closer two points are, the harder they are to tell apart.

    Also known as d_X-privacy, and as geo-indistinguishability for distances on a map.

    Parameters
    ----------
    candidates : int or array_like
        N points as in `Exponential`, no two of them alike: up to 1024 with ``method="kernel"``, up to 128
        with ``method="program"``.
    epsilon : float
        Budget for a distance of 1: the log-ratio of a report between candidates x and y is at most
        epsilon d(x, y), exactly and for every pair. 0, or at least 1e-4 for the least distance.
    metric : {"euclidean", "manhattan", "haversine"}, callable, or array_like of shape (N, N)
        The distance d, which is also the loss of a report: symmetric, zero from a candidate to itself and
        above zero otherwise. If the triangle inequality does not hold, the shortest path determines the
        guarantee.
    method : {"kernel", "program"}
        "kernel": weights c_y exp(-s d(x, y)), which need no solver. "program": the least expected distance,
        from a linear program (needs SciPy).
    dilation : float
        Dilation, 1 to 4, of the spanner whose edges are the constraints of the program. A larger dilation
        means fewer constraints, and a result further from the optimum.
    prior : array_like of float, shape (N,), optional
        As of `OptimalUtility`. It shapes the law of the program, not that of the kernel.
    interval, features
        As of `Exponential`. A number counts as the candidate that it is rounded to. The distance of two
        records is the sum of those of their values; nothing is split.
    utility, rounding, regions, unit
        Inherited; only their defaults are allowed.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.
    MissingExtraError
        For the program without SciPy: ``pip install "bitldp[design]"``.
    DesignError
        If the solver fails; nothing is returned in its place.

    Notes
    -----
    Neighbouring records are any two records; the bound is epsilon times their distance. `guarantee.record`
    holds for the greatest distance. `slope` is the exact epsilon for a distance of 1: the largest ratio of
    log-ratio to distance over all pairs, from the integers of the sampler, rounded up.

    The kernel has an inverse, so that frequencies and means are estimated without bias. On equidistant points
    of a line it is the truncated geometric mechanism, within 1 % of the program for 64 candidates at epsilon
    0.5. On a grid of 8 by 8, epsilon 0.5, its expected distance is 18 % above that of the program. It takes
    about 0.5 s for 256 candidates and 5 s for 1024 of a line, 6 and 15 s for those of a grid.

    The program has a row for each edge and report. On a line, a spanner of dilation 1 has N - 1 edges; in the
    plane it has nearly all pairs. At dilation 1.1, a grid of 8 by 8 has 210 edges of 2016. The program takes
    1.3 s for 64 and 7 s for 128 candidates of a line, 3 s for a grid of 8 by 8 and 14 s for one of 10 by 10;
    256 candidates take minutes. Its optimum may leave out candidates and have no inverse.

    Share one mechanism between client and server as a pickle, as with `OptimalUtility`. Sources:
    Chatzikokolakis, Andrés, Bordenabe and Palamidessi, "Broadening the scope of differential privacy using
    metrics", PETS 2013; Bordenabe, Chatzikokolakis and Palamidessi, CCS 2014 (the program and the spanner);
    ElSalamouny, Chatzikokolakis and Palamidessi, POST 2014 (weights c of equal row sums).

    The sampler reads the table row that the input selects. With more than 32 candidates this is not
    constant-time.

    Examples
    --------
    >>> import bitldp
    >>> mechanism = bitldp.MetricPoints(20, epsilon=0.5)
    >>> mechanism.slope <= 0.5, round(mechanism.guarantee.record, 4), round(mechanism.expected_error(), 2)
    (True, 9.5, 1.68)
    """

    _: KW_ONLY
    method: Literal["kernel", "program"] = "kernel"
    dilation: float = 1.1

    @classmethod
    def _for_record(cls, **parameters: Any) -> Any:
        """Construct from a command line's options; `epsilon` is for the greatest distance of a record."""
        _, _, points = checked_candidates(parameters["candidates"], parameters.get("interval"), None)
        metric = check_metric(parameters.get("metric", cls.metric), None, len(points))
        widest = float(losses_between(points, np.arange(len(points)), metric, None).max())
        budget = parameters.pop("epsilon") / (widest * parameters.get("features", cls.features))
        return cls(epsilon=budget, **parameters)

    def _check(self) -> None:
        super()._check()
        checks.choice("method", self.method, ("kernel", "program"))
        self._set(dilation=checks.positive("dilation", self.dilation))
        if not 1.0 <= self.dilation <= 4.0:
            raise ValueError(f"dilation: must be 1 to 4, got {self.dilation}")
        for name, only in (("utility", None), ("rounding", "nearest"), ("regions", None), ("unit", "record")):
            value = getattr(self, name)
            if not (value is None or isinstance(value, str)) or value != only:
                raise ValueError(f"{name}: must be {only!r} under a metric")

    def _build(self) -> None:
        super()._build()
        widest, exact = self.epsilon * float(self._regions[0].losses.max()), self.channel.epsilon
        self._set(
            _guarantee=Guarantee.judge(
                composed(widest, self.features),
                (exact, exact, composed(exact, self.features)),
                given=f"under a metric: {self.epsilon:.6g} times the distance of candidates; shown for the "
                "greatest distance",
            )
        )

    def _channel(self, points: Points, members: Members, losses: Losses, epsilon: float) -> Matrix:
        canonical(losses, [0.0] * len(members))
        budget, most = self.epsilon, _PROGRAM if self.method == "program" else _MOST
        if len(members) > most:
            raise ValueError(f"candidates: at most {most} with method={self.method!r}, got {len(members)}")
        distances = self._distances(losses)
        if budget == 0.0:
            return Matrix(np.full(losses.shape, 1.0 / len(losses)))
        least = float(distances[distances > 0.0].min())
        if not budget * least >= _LEAST:
            raise ValueError(
                f"epsilon: must be 0, or at least {_LEAST:g} for the least distance, got {budget * least:g}"
            )

        def solved() -> DesignTable:
            if self.method == "kernel":
                return DesignTable(design.kernel(distances, budget), None)
            prior = of_members(self.prior, members, len(points))
            return DesignTable(design.least_loss(distances, budget, prior, self.dilation), None)

        channel = self._table(solved).channel
        # A table that was made here has been checked; one that came with a pickle has not.
        if self._held and not design.slope(channel.probabilities(), distances) <= budget:
            raise ValueError("epsilon: the stored table exceeds it")
        return channel

    def _distances(self, losses: Losses) -> Losses:
        """Return the lengths of the shortest ways, which those of a named metric are already."""
        return losses if isinstance(self.metric, str) else shortest(losses)

    @property
    def slope(self) -> float:
        """Exact epsilon for a distance of 1: the largest log-ratio by distance over all pairs, rounded up."""
        return design.slope(self.channel.probabilities(), self._distances(self._regions[0].losses))
