"""Bipartite randomized response: the m candidates nearest to the truth at weight e^epsilon, the rest at 1.

"Bipartite randomized response mechanism for local differential privacy" (Zhang, Zhu, Chen and Hu,
arXiv:2504.20926), with its closed form of m and its limit corrected; see `limit_ratio`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Window
from bitldp.base import checks
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.letters.reach import Reach
from bitldp.mechanism.described import letter_facts, spreads
from bitldp.mechanism.frequencies import TwoChances
from bitldp.mechanism.parameters import Budget, Features, Option, Unit
from bitldp.points.base import CandidateRelease, Candidates, Rounding
from bitldp.points.candidates import (
    Loss,
    Losses,
    Members,
    Metric,
    Points,
    check_prior,
    losses_between,
    of_members,
)
from bitldp.points.width import (
    best_width,
    equidistant_column_sums,
    equidistant_width,
    limit_ratio,
    nearest_first,
    paper_width,
    printed_limit_ratio,
)
from bitldp.privacy import ONE, share
from bitldp.release.window import WindowRelease, ordered_window, window

__all__ = ["BRR", "limit_ratio", "printed_limit_ratio"]


_INVERTED = 2048  # candidates of a table that is inverted
_TABLE_LIMIT = 8192  # candidates of a part that needs a table of all losses: 0.5 GB of float64


def _width(text: str) -> int | str:
    """Return a number of favoured candidates that a command line gives, or the word for one."""
    return int(text) if text.isdecimal() else text


@dataclass(frozen=True, eq=False, repr=False)
class BRR(CandidateRelease, TwoChances):
    """Bipartite randomized response (BRR): reports one of the m candidates nearest to the truth more often.

    Parameters
    ----------
    candidates : int or array_like
        N, 2 to 2**24: the equidistant points 0 to N - 1 (or of `interval`; or 1 to N with
        ``utility="jaccard"``). Or the public points themselves: shape (N,) on a line, (N, d) in space, at
        most 8192 of them in a region.
    epsilon : float
        Privacy budget of one `unit`, finite, zero or more; the exact epsilon is at most that (see Notes).
    m : {"paper", "best"}, int, or sequence of int
        How many candidates are favoured. "paper": Algorithm 2, in its corrected closed form for equidistant
        points. "best": the m of least global expected error. An int: from 1 (equal to GRR) to N - 1; with
        regions, a sequence of one number per region. The attribute then holds the chosen number(s).
    prior : array_like of float, shape (N,), optional
        Expected frequency of each candidate; public. Zero or more, in each region not all zero. None:
        uniform. It determines the "best" m, and `expected_error` is the mean over it. The guarantee does not
        depend on it. For a law that adapts to the prior in every cell, use `OptimalUtility`.
    metric : {"euclidean", "manhattan", "haversine"}, callable, or array of shape (N, N)
        Loss of reporting b for a. Either a name ("haversine" takes (latitude, longitude) in degrees and gives
        km), a function of two arrays of shape (n, d) that returns the table of losses, like
        ``scipy.spatial.distance.cdist``, or the table itself.
    utility : {"jaccard"} or callable, optional
        In place of `metric`, where larger is better. "jaccard" is x y/(x^2 + y^2 - x y), Eq. 13 (Tanimoto).
    interval : (float, float), optional
        If `candidates` is a number: the candidates are equidistant points of this interval, and inputs are
        real values, which are clipped to it.
    rounding : {"nearest", "dither"}
        How a real value becomes a candidate: the nearest one (the paper), or one of its two neighbours so
        that the mean is the value.
    regions : array_like, shape (N,), optional
        Public label of each candidate. A report stays in the region of its input, so the region is public.
        Each region has its own m and N. The guarantee is that of the worst region.
    features : int
        Values of a record, each released by itself.
    unit : {"record", "feature"}
        What `epsilon` covers; a record's is split evenly over its features.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records are any two candidates (of the same region, if there are regions). If m >= 2,
    candidates at the ends of a line have the same law, so no unbiased decode exists. For other candidates,
    the rows of the law may be independent; estimates then use its inverse (up to 2048 candidates). No
    probability is nearer to 1 than 1 - 2**-53, so the exact epsilon of a value is at most 36.74 + ln((N -
    m)/m), however large the budget. Losses of a candidate that differ by at most 1e-12 of its largest loss
    are ties: the candidate itself comes first, then the lower code.

    For equidistant points, no branch and no memory address depends on the input. Other candidates, and
    regions, use the input to look up windows in tables, which is not constant-time.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> bitldp.BRR(100, epsilon=2.0).m, bitldp.BRR(100, epsilon=2.0, m="best").m
    (27, 29)
    >>> salaries = bitldp.BRR(11, epsilon=1.0, interval=(0.0, 100.0))
    >>> reports = salaries.randomize(np.array([12.0, 80.5]), rng=1)
    >>> salaries.decode(reports).shape
    (2,)
    """

    candidates: Candidates
    _: KW_ONLY
    epsilon: Budget
    m: Annotated[Any, Option(form="paper|best|N", read=_width)] = "paper"
    prior: Any = None
    metric: Any = "euclidean"
    utility: Any = None
    interval: tuple[float, float] | None = None
    rounding: Rounding = "nearest"
    regions: Any = None
    features: Features = 1
    unit: Unit = "record"

    _regions: list[RegionWindow] = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        prior = check_prior(self.prior)
        self._set(prior=prior)

        def make(points: Points, members: list[Members], metric: Loss, budget: float) -> list[RegionWindow]:
            scaled = None if prior is None else prior * (len(prior) / (prior.sum() or 1.0))
            return [
                build(points, each, metric, self.utility, budget, m, scaled)
                for each, m in zip(members, widths(self.m, members), strict=True)
            ]

        parts = self._compose(make)
        result = tuple(part.m for part in parts)
        self._set(m=result[0] if self.regions is None else result)

    @property
    def channel(self) -> Window:
        """The channel: its `high` is the law; uninformative at epsilon 0."""
        return self._release.channel

    @property
    def channels(self) -> list[Window]:
        """The channel of each region, by ascending label; just one without regions."""
        return [part.release.channel for part in self._regions]

    def _check_informative(self) -> tuple[float, float]:
        self._check_alone()
        if self._release.epsilon == 0.0:
            raise self._uninformative("categories")
        if self._regions[0].m > 1:
            raise ValueError("BRR with m > 1: reports have more than two chances; see variance")
        return self._regions[0].release.chances()

    def _refuse(self, reason: str) -> ValueError:
        return ValueError(f"BRR with m = {self._regions[0].m}: no unbiased decode exists; {reason}")

    @property
    def _closed_form(self) -> bool:
        """True where m is 1 in the only region: the law is that of `GRR`, which needs no inverse."""
        self._check_alone()
        return self._regions[0].m == 1

    def _check_invertible(self) -> None:
        (region,) = self._regions
        if region.alike:
            raise ValueError(
                f"BRR with m = {region.m}: candidates at the ends have identical rows of the law, so no "
                "unbiased decode exists"
            )
        if len(region.members) > _INVERTED:
            raise ValueError(f"BRR with m > 1: estimates are offered up to {_INVERTED} candidates")

    @property
    def _letters(self) -> NDArray[np.float64]:
        self._check_line()
        if not self._closed_form:
            return super()._letters
        self._check_informative()
        return self._regions[0].release.letters_on(self._points)

    def letter_variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of a report's letter; see `Exponential.letter_variance`."""
        letters = self._letters
        if not self._closed_form:
            return super().letter_variance(x)
        codes = checks.codes("x", x, len(letters))
        p, q = self._check_informative()
        squares = np.square(letters - self._points[codes][..., None])
        own = np.take_along_axis(squares, codes[..., None].astype(np.intp), axis=-1)[..., 0]
        return q * squares.sum(axis=-1) + (p - q) * own

    @property
    def _estimates(self) -> type[TwoChances | CandidateRelease]:
        """The base whose estimates serve: closed forms where m is 1, else the inverse of the law."""
        return TwoChances if self._closed_form else CandidateRelease

    def accumulator(self) -> CountAccumulator:
        """Return an empty accumulator of the counts; see `Exponential.accumulator`."""
        return self._estimates.accumulator(self)

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of one report's indicator of every candidate; see `Exponential.variance`."""
        return self._estimates.variance(self, x)

    def worst_variance(self) -> float:
        """Return the largest `variance` of any indicator, for any input; see `Exponential.worst_variance`."""
        return self._estimates.worst_variance(self)

    def _reach(self, total: bool = False) -> tuple[Reach]:
        """Return the indicators of every report; see `Exponential.influence`."""
        return self._estimates._reach(self, total)

    def _support_sizes(self) -> tuple[int, int]:
        """Return that a report counts for one candidate, where two chances make the law."""
        return 1, 1

    def mean_variance(self) -> float:
        """Return the mean of `variance` over indicators and inputs; see `Exponential.mean_variance`."""
        return self._estimates.mean_variance(self)

    def _expected(self) -> float:
        return sum(part.total_error() for part in self._regions) / len(self._points)

    def _worst(self) -> float:
        return max(part.worst_error() for part in self._regions)

    def _facts(self, users: int | None = None) -> dict[str, Any]:
        """Return the near points, the expected error, GRR's beside it, and the errors of a mean.

        See `Mechanism._facts`.
        """
        if len(self._regions) > 1 or self.utility is not None or self._points.ndim > 1:
            return letter_facts(self, users)
        (region,) = self._regions
        favoured, cells, width = self.channel.high / ONE, len(self._points), region.m
        grr = self._quiet(**{**self.parameters, "m": 1})
        errors: dict[str, Any] = {
            "values": f"{cells} points from {self._points[0]:g} to {self._points[-1]:g}",
            "expected_absolute_error": self.expected_error(),
            "ratio_of_that_error_to_grr": self.expected_error() / grr.expected_error(),
        }
        epsilon = share(self.epsilon, self.features) if self.unit == "record" else self.epsilon
        even = isinstance(self.candidates, int) and self.prior is None
        if even and width == equidistant_width(cells, epsilon):
            # Of the paper's choice of m alone.
            errors["limit_of_that_ratio_for_n_to_infinity"] = limit_ratio(self.guarantee.feature)
        law = {
            "near_points": width,
            "each_near_point": favoured / width,
            "each_far_point": (1.0 - favoured) / (cells - width),
        }
        return {"probabilities": law, "errors": errors | self._mean_facts(users)}

    def _mean_facts(self, users: int | None) -> dict[str, Any]:
        """Return the errors of `estimate_mean`, where everybody is at the same point."""
        if self._regions[0].alike:
            return {"unbiased": "no unbiased decode exists: points at the ends share their near points"}
        if self._release.epsilon == 0.0:
            return {"unbiased": "no unbiased decode exists: every point is reported alike"}
        try:
            end, middle = np.sqrt(self.letter_variance([0, len(self._points) // 2])).tolist()
        except ValueError as error:
            return {"unbiased": str(error)}
        return spreads("a_mean", {"at_an_end": end, "in_the_middle": middle}, users)


@dataclass(frozen=True, eq=False)
class RegionWindow:
    """A BRR over one set of candidates.

    Attributes
    ----------
    members : ndarray of int
        Indices of the candidates, ascending.
    m : int
        How many of them a release favours.
    release : WindowRelease
        The release of positions in `members`, of width m.
    column_sums : ndarray of float64
        Sum over the members of their i-th smallest loss, each as often as it is expected.
    sums_by_member : callable
        Returns, for every member, the sum of its m smallest losses, and that of all of them.
    alike : bool
        Whether two members have the same window, hence the same row of the law.
    """

    members: NDArray[np.intp]
    m: int
    release: WindowRelease
    column_sums: NDArray[np.float64]
    sums_by_member: Callable[[], tuple[NDArray[np.float64], NDArray[np.float64]]]
    alike: bool

    def total_error(self) -> float:
        """Return the members' expected losses, summed by weight, from the integers of the channel."""
        inside, outside = self._chances()
        favoured, others = self.column_sums[: self.m].sum(), self.column_sums[self.m :].sum()
        return float(inside * favoured + outside * others)

    def worst_error(self) -> float:
        """Return the largest of the members' expected losses, likewise."""
        inside, outside = self._chances()
        favoured, total = self.sums_by_member()
        return float((inside * favoured + outside * (total - favoured)).max())

    def _chances(self) -> tuple[float, float]:
        """Return the probability of a cell inside the window, and of one outside."""
        high, others = self.release.channel.high, len(self.members) - self.m
        return high / (self.m * ONE), (ONE - high) / (others * ONE)


def _line_region(
    members: Members, step: float, epsilon: float, m: int | str, weights: NDArray[np.float64] | None
) -> RegionWindow:
    """Build the part of equidistant points: closed forms only, no table of all losses."""
    count = len(members)
    sums = equidistant_column_sums(count, step, weights)
    _check_sums(sums)
    if isinstance(m, str):
        m = equidistant_width(count, epsilon) if m == "paper" else best_width(sums, epsilon)
    width = m

    def sums_by_member() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        positions = np.arange(count, dtype=np.float64)
        first = np.clip(positions - width // 2, 0.0, count - width)  # as the channel places its window
        favoured = _triangle(positions - first) + _triangle(first + (width - 1) - positions)
        return step * favoured, step * (_triangle(positions) + _triangle(count - 1 - positions))

    return RegionWindow(members, m, window(count, m, epsilon), sums, sums_by_member, alike=m > 1)


def _triangle(last: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 0 + 1 + ... + last."""
    return last * (last + 1.0) / 2.0


def _check_sums(sums: NDArray[np.float64]) -> None:
    with np.errstate(over="ignore"):
        total = np.abs(sums).sum()
    if not math.isfinite(total):
        raise ValueError("candidates: the sum of the losses between them exceeds the range of doubles")


def _table_region(
    members: Members, losses: Losses, epsilon: float, m: int | str, weights: NDArray[np.float64] | None
) -> RegionWindow:
    """Build the part of candidates with any losses, by Algorithm 2 where m is "paper"."""
    count = len(members)
    order = nearest_first(losses)
    ordered = np.take_along_axis(losses, order, axis=1)
    with np.errstate(over="ignore"):
        sums = ordered.sum(axis=0) if weights is None else weights @ ordered
    _check_sums(sums)
    if m == "paper":  # Algorithm 2 could only reach m = N at epsilon 0
        width = min(paper_width(ordered, epsilon), count - 1)
    else:
        width = best_width(sums, epsilon) if isinstance(m, str) else m
    cells = order.astype(np.uint16)
    law = ordered_window(count, width, epsilon, cells)
    windows = np.sort(cells[:, :width], axis=1)
    by_member = ordered[:, :width].sum(axis=1), ordered.sum(axis=1)
    return RegionWindow(
        members, width, law, sums, lambda: by_member, alike=len(np.unique(windows, axis=0)) < count
    )


def widths(m: Any, members: list[NDArray[np.intp]]) -> list[int | str]:
    """Return the checked m of each part."""
    given = [m] * len(members) if isinstance(m, str) or np.ndim(m) == 0 else list(m)
    if len(given) != len(members):
        raise ValueError(f"m: must be one, or one for each of {len(members)} regions, got {len(given)}")
    checked: list[int | str] = []
    for each, part in zip(given, members, strict=True):
        if isinstance(each, str):
            checked.append(checks.choice("m", each, ("paper", "best")))
        else:
            checked.append(checks.integer("m", each, 1, len(part) - 1))
    return checked


def build(
    points: Points,
    members: Members,
    metric: Loss,
    utility: str | Metric | None,
    epsilon: float,
    m: int | str,
    prior: NDArray[np.float64] | None,
) -> RegionWindow:
    """Build the part of some of the candidates; a `prior` is of all, and sums to how many there are."""
    weights = of_members(prior, members, len(points))
    own = points[members].reshape(len(members), -1)
    plain = utility is None and isinstance(metric, str) and metric in ("euclidean", "manhattan")
    if plain and own.shape[1] == 1:
        gaps = np.diff(own[:, 0])
        if gaps[0] > 0.0 and np.allclose(gaps, gaps[0], rtol=1e-9, atol=0.0):
            return _line_region(members, float(gaps[0]), epsilon, m, weights)
    if len(members) > _TABLE_LIMIT:
        raise ValueError(
            f"candidates: at most {_TABLE_LIMIT} where they are not equidistant on a line, got {len(members)}"
        )
    losses = losses_between(points, members, metric, utility)
    return _table_region(members, losses, epsilon, m, weights)
