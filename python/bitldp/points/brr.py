"""Bipartite randomized response: the m candidates nearest to the truth at weight e^epsilon, the rest at 1.

"Bipartite randomized response mechanism for local differential privacy" (Zhang, Zhu, Chen and Hu,
arXiv:2504.20926), with its closed form of m and its limit corrected; see `limit_ratio`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Window
from bitldp.mechanism.described import letter_facts, spreads
from bitldp.mechanism.parameters import Budget, Features, Option, Unit
from bitldp.points.base import Candidates, Rounding
from bitldp.points.bipartite import Bipartite, Region, build, widths
from bitldp.points.places import check_prior
from bitldp.points.width import equidistant_width, limit_ratio, printed_limit_ratio
from bitldp.privacy import ONE, share

__all__ = ["BRR", "limit_ratio", "printed_limit_ratio"]


def _width(text: str) -> int | str:
    """Return a number of favoured candidates that a command line gives, or the word for one."""
    return int(text) if text.isdecimal() else text


@dataclass(frozen=True, eq=False, repr=False)
class BRR(Bipartite):
    """Bipartite randomized response: the m candidates nearest to the truth are reported more often.

    Parameters
    ----------
    candidates : int or array_like
        N, 2 to 2**24: the equidistant points 0 to N - 1 (or of `interval`; or 1 to N with
        ``utility="jaccard"``). Or the public points themselves: shape (N,) on a line, (N, d) in space, at
        most 8192 of them in a region.
    epsilon : float
        Privacy budget of one `unit`, finite, zero or more; the exact epsilon is at most that (see Notes).
    m : {"paper", "best"}, int, or sequence of int
        How many candidates are favoured. "paper": Algorithm 2, by its corrected closed form on equidistant
        points. "best": the m of least global expected error. A number from 1 (that is GRR) to N - 1; one for
        each region where there are regions. `m` holds the number(s) afterwards.
    prior : array_like of float, shape (N,), optional
        How often each candidate is expected; public. Zero or more, in each region not all zero. None: all
        alike. It chooses the "best" m, and `expected_error` is the mean over it; the guarantee does not
        depend on it. A law that is shaped by it in every cell: `OptimalUtility`.
    metric : {"euclidean", "manhattan", "haversine"}, callable, or array of shape (N, N)
        Loss of reporting b for a: by name ("haversine" takes (latitude, longitude) in degrees and gives km),
        by a function of two arrays of shape (n, d) that gives the table of losses, as
        ``scipy.spatial.distance.cdist`` does, or as that table between the candidates.
    utility : {"jaccard"} or callable, optional
        In place of `metric`, where larger is better. "jaccard" is x y/(x^2 + y^2 - x y), Eq. 13 (Tanimoto).
    interval : (float, float), optional
        With a number of candidates: they are equidistant points of this interval and inputs are real values,
        clipped to it.
    rounding : {"nearest", "dither"}
        How a real value becomes a candidate: the nearest one (the paper), or one of its two neighbours so
        that the mean is the value.
    regions : array_like, shape (N,), optional
        Public label of each candidate. A report stays in the region of its input, each region having its own
        m and N; the guarantee is that of the worst region, and the region itself is public.
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
    Neighbouring records are any two candidates (of the same region, if there are regions). Where m >= 2,
    candidates at the ends of a line have the same law, so that no unbiased decode exists; of other candidates
    the rows of the law may be independent, and then its inverse (of up to 2048) makes estimates. No
    probability is nearer to 1 than 1 - 2**-53, so the exact epsilon of a value is at most
    36.74 + ln((N - m)/m), however large the budget. Losses of a candidate that differ by no more than 1e-12
    of its largest are ties: the candidate itself comes first, then the lower code.

    For equidistant points no branch and no address depends on the input. Other candidates, and regions, look
    windows up in tables by the input: that is not constant-time.

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
    epsilon: Budget
    _: KW_ONLY
    m: Annotated[Any, Option(form="paper|best|N", read=_width)] = "paper"
    prior: Any = None
    metric: Any = "euclidean"
    utility: Any = None
    interval: tuple[float, float] | None = None
    rounding: Rounding = "nearest"
    regions: Any = None
    features: Features = 1
    unit: Unit = "record"

    def _build(self) -> None:
        prior = check_prior(self.prior)
        self._set(prior=prior)

        def make(
            points: NDArray[np.float64], members: list[NDArray[np.intp]], metric: Any, budget: float
        ) -> list[Region]:
            scaled = None if prior is None else prior * (len(prior) / (prior.sum() or 1.0))
            return [
                build(points, each, metric, self.utility, budget, m, scaled)
                for each, m in zip(members, widths(self.m, members), strict=True)
            ]

        parts = self._compose(make)
        found = tuple(part.m for part in parts)
        self._set(m=found[0] if self.regions is None else found)

    @property
    def channels(self) -> list[Window]:
        """The channel of each region, by ascending label; just one without regions."""
        return [part.release.channel for part in self._regions]

    def facts(self, users: int | None = None) -> dict[str, Any]:
        """Return the near points, the expected error, GRR's beside it, and the errors of a mean.

        See `Mechanism.facts`.
        """
        if len(self._regions) > 1 or self.utility is not None or self._points.ndim > 1:
            return letter_facts(self, users)
        (region,) = self._regions
        near, cells, width = self.channel.high / ONE, len(self._points), region.m
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
            "each_near_point": near / width,
            "each_far_point": (1.0 - near) / (cells - width),
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
