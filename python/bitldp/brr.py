"""Bipartite randomized response: the m candidates nearest to the truth at weight e^epsilon, the rest at 1.

"Bipartite randomized response mechanism for local differential privacy" (Zhang, Zhu, Chen and Hu,
arXiv:2504.20926), with its closed form of m and its limit corrected; see `limit_ratio`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp import _checks, _parts
from bitldp._core import Grid, Window, pack
from bitldp._mechanism import readonly
from bitldp._parts import Part
from bitldp._rng import RandomSource, keys
from bitldp._width import limit_ratio, printed_limit_ratio
from bitldp._window import CategoricalWindow, Output
from bitldp.estimate import Estimate
from bitldp.privacy import Guarantee, Unit, composed, share

__all__ = ["BRR", "limit_ratio", "printed_limit_ratio"]


@dataclass(frozen=True, eq=False, repr=False)
class BRR(CategoricalWindow):
    """Bipartite randomized response over N candidates, with the loss of a wrong report in mind.

    Parameters
    ----------
    candidates : int or array_like
        N, 2 or more: the equidistant points 0 to N - 1 (or of `interval`; or 1 to N with
        ``utility="jaccard"``). Or the public points themselves: shape (N,) on a line, (N, d) in space, at
        most 8192 of them in a region.
    epsilon : float
        Exact epsilon of a record, finite, zero or more.
    m : {"paper", "best"}, int, or sequence of int
        How many candidates are favoured. "paper": Algorithm 2, by its corrected closed form on equidistant
        points. "best": the m of least global expected error. A number from 1 (that is GRR) to N - 1; one for
        each region where there are regions. `m` holds the number(s) afterwards.
    metric : {"euclidean", "manhattan", "haversine"} or callable
        Loss of reporting b for a. A callable takes two arrays of shape (n, d) and gives the table of losses,
        as ``scipy.spatial.distance.cdist`` does. "haversine" takes (latitude, longitude) in degrees and gives
        km.
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

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records are any two candidates (of the same region, if there are regions). Where m >= 2,
    candidates at the ends of a line have the same law, so that no unbiased decode exists.

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

    candidates: Any
    _: KW_ONLY
    epsilon: float
    m: Any = "paper"
    metric: Any = "euclidean"
    utility: Any = None
    interval: tuple[float, float] | None = None
    rounding: Literal["nearest", "dither"] = "nearest"
    regions: Any = None

    features: int = 1
    unit: Unit = "record"

    # Set on the instance, by _build; ClassVar keeps them out of the dataclass' fields.
    _points: ClassVar[NDArray[np.float64]]
    _regions: ClassVar[list[Part]]
    _grid: ClassVar[Grid | None]
    _homes: ClassVar[
        tuple[NDArray[np.intp], NDArray[np.intp]]
    ]  # region of each candidate, place in the region

    def _build(self) -> None:
        epsilon = _checks.budget("epsilon", self.epsilon)
        features = _checks.integer("features", self.features, 1)
        _checks.choice("rounding", self.rounding, ("nearest", "dither"))
        _checks.choice("unit", self.unit, ("record", "feature"))
        if self.utility is not None and self.metric != "euclidean":
            raise ValueError("utility: takes the place of metric; give one of the two")
        candidates, interval, points = _parts.place(self.candidates, self.interval, self.utility)
        regions, members = None, [np.arange(len(points))]
        if self.regions is not None:
            if interval is not None:
                raise ValueError("regions: need candidates of their own, not an interval")
            regions, members = _parts.groups(self.regions, len(points))
        budget = share(epsilon, features) if self.unit == "record" else epsilon
        parts = [
            _parts.build(points, each, self.metric, self.utility, budget, m)
            for each, m in zip(members, _parts.widths(self.m, members), strict=True)
        ]
        exact = max(part.law.epsilon for part in parts)
        found = tuple(part.m for part in parts)
        grid = None
        if interval is not None:
            grid = Grid(len(points), low=interval[0], high=interval[1], rounding=self.rounding)
        self._set(
            candidates=candidates,
            epsilon=epsilon,
            m=found[0] if regions is None else found,
            interval=interval,
            regions=regions,
            features=features,
            _points=readonly(points),
            _columns=features,
            _law=parts[0].law,
            _regions=parts,
            _grid=grid,
            _homes=_parts.homes(members, len(points)),
            _guarantee=Guarantee.judge(
                epsilon,
                (exact, exact, composed(exact, features)),
                unit=self.unit,
                given="" if regions is None else "given the public region",
            ),
        )

    @property
    def points(self) -> NDArray[np.float64]:
        """The candidates as points, by code, shape (N,) or (N, d); read-only."""
        return self._points

    @property
    def channels(self) -> list[Window]:
        """The channel of each region, by ascending label; just one without regions."""
        return [part.law.channel for part in self._regions]

    def encode(self, x: ArrayLike) -> NDArray[Any]:
        """Return the code of the candidate nearest to each point, for inputs that are no candidates.

        Parameters
        ----------
        x : array_like of float, shape (n,) or (n, d)
            Finite points, as many coordinates as the candidates have.

        Returns
        -------
        ndarray of unsigned int, shape (n,)
            Codes of least loss; of the first one of equals.

        Raises
        ------
        ValueError
            For another shape, or for values that are not finite (the index is given).
        """
        table = self._points.reshape(len(self._points), -1)
        points = np.asarray(x, dtype=np.float64)
        points = points[:, None] if points.ndim == 1 and self._points.ndim == 1 else points
        if points.ndim != 2 or points.shape[1] != table.shape[1]:
            raise ValueError(
                f"x: needs {table.shape[1]} coordinates on the last of two axes, got {np.shape(x)}"
            )
        finite = np.isfinite(points).all(axis=1)
        if not finite.all():
            raise ValueError(f"x: the point at index {int(np.argmin(finite))} is not finite")
        return _parts.nearest(points, table, self.metric, self.utility)

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
        """Randomize candidates.

        Parameters
        ----------
        x : array_like
            Codes of candidates (integers of [0, N)), or real values where there is an `interval`. Shape (n,)
            or (n, 1) for one feature, else (n, features) or (features,).
        rng : None, int, SeedSequence or Generator
            None: a fresh 256-bit key of the operating system. The others reproduce, for tests and experiments
            only: a key that is used on two inputs reveals where they differ.
        output : {"codes", "values", "packed"}
            Codes (same shape, smallest unsigned dtype), points (float64; one axis more for points in space),
            or bytes with as many bits a report as are needed.
        out : ndarray, optional
            C-contiguous array of the exact shape and dtype to fill; must not overlap `x`. Not for points in
            space.
        threads : int, optional
            Number of threads; the result does not depend on it.
        first_chunk : int
            How many chunks (``bitldp._core.CHUNK`` values) of the key's stream to skip. Not with regions,
            each of which has a stream of its own.

        Returns
        -------
        ndarray
            The reports, safe to release at `guarantee`.

        Raises
        ------
        ValueError, TypeError
            A code out of range (its index is given, never the value), NaN, wrong shape or dtype, unfit `out`.
            Nothing is written then.
        """
        self._check_axis("x", x)
        if self.regions is not None:
            return self._by_region(x, rng, output, out, threads, first_chunk)
        key = None if rng is None else keys(rng, 1)[0]
        if output != "values" or self._points.ndim == 1:
            letters = self._points if output == "values" else None
            return self._law.randomize(x, self._grid, letters, key, output, out, threads, first_chunk)
        if out is not None:
            raise ValueError("out: not offered for points in space; take output='codes' and decode")
        return self.decode(self._law.randomize(x, None, None, key, "codes", None, threads, first_chunk))

    def _by_region(
        self,
        x: ArrayLike,
        rng: RandomSource,
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
    ) -> NDArray[Any]:
        """Release every value within its region: the region decides the channel, and is public."""
        _checks.choice("output", output, ("codes", "values", "packed"))
        if first_chunk != 0:
            raise ValueError("first_chunk: not offered with regions, each of which has a stream of its own")
        if out is not None:
            raise ValueError("out: not offered with regions")
        codes = _checks.codes("x", x, len(self._points))
        reports = _parts.release(self._regions, self._homes, codes, keys(rng, len(self._regions)), threads)
        if output == "packed":
            return pack(reports, max(1, (len(self._points) - 1).bit_length()))
        return self._points[reports] if output == "values" else reports

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return the point of each reported code; biased toward the middle where m >= 2.

        Parameters
        ----------
        reports : array_like of int
            Codes in [0, N), any shape.

        Returns
        -------
        ndarray of float64
            Same shape; one axis more for points in space.
        """
        points: NDArray[np.float64] = self._points[_checks.codes("reports", reports, len(self._points))]
        return points

    def _check_speaks(self) -> tuple[float, float]:
        if self.regions is not None:
            raise ValueError(
                "BRR: estimates are not offered across regions; build one mechanism for each region"
            )
        if self.m > 1:
            reason = (
                "candidates at the ends have identical rows of the law, so no unbiased decode exists"
                if self._regions[0].alike
                else "an unbiased decode is offered for m = 1 only"
            )
            raise ValueError(f"BRR with m = {self.m}: {reason}")
        return super()._check_speaks()

    def estimate_mean(self, reports: ArrayLike) -> Estimate:
        """Estimate the mean of the points that the records hold, where m = 1 and the points are on a line.

        Parameters
        ----------
        reports : array_like of int
            Codes of n >= 1 records, of the shapes that `randomize` takes.

        Returns
        -------
        Estimate
            Shape (features,). Unbiased for the candidates that the inputs were rounded to; with
            ``rounding="dither"`` for the (clipped) inputs themselves.

        Raises
        ------
        ValueError
            If no unbiased decode exists (m >= 2, or epsilon 0), with regions, for points in space, for no
            reports.
        """
        if self._points.ndim > 1:
            raise ValueError("BRR: points in space have no mean here; see estimate_frequencies")
        p, q = self._check_speaks()
        n, counts = self._count(reports)
        if n < 1:
            raise ValueError("reports: at least one is needed for an estimate")
        letters = (self._points - q * self._points.sum()) / (p - q)  # sum over v of v (1[y = v] - q)/(p - q)
        shares = counts.reshape(-1, len(letters)) / n
        value = shares @ letters
        deviations = np.square(letters - value[:, None])
        spread = np.sum(shares * deviations, axis=1) / (n - 1) if n > 1 else np.full_like(value, np.nan)
        return Estimate(value, np.sqrt(spread), n)

    def expected_error(self) -> float:
        """Return the global expected error Q_g (Eq. 11): the mean loss of a report over uniform inputs.

        Returns
        -------
        float
            In units of the metric, computed from the integers of the channel.

        Raises
        ------
        ValueError
            If the mechanism has a `utility`; see `expected_utility`.
        """
        if self.utility is not None:
            raise ValueError("utility: was given in place of a loss; see expected_utility")
        return sum(part.total_error() for part in self._regions) / len(self._points)

    def expected_utility(self) -> float:
        """Return the global utility Q_g of a mechanism that has a `utility`: the larger, the better.

        Raises
        ------
        ValueError
            If the mechanism has a loss; see `expected_error`.
        """
        if self.utility is None:
            raise ValueError("utility: was not given; see expected_error")
        return -sum(part.total_error() for part in self._regions) / len(self._points)

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of one value: P[x, y] = P(report y | x), shape (N, N); zero between regions."""
        law = np.zeros((len(self._points),) * 2)
        for part in self._regions:
            law[np.ix_(part.members, part.members)] = part.law.channel.probabilities()
        return law
