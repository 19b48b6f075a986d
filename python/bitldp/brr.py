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
from bitldp._quality import Bipartite
from bitldp._rng import RandomSource, keys
from bitldp._width import limit_ratio, printed_limit_ratio
from bitldp._window import Output
from bitldp.privacy import Guarantee, Unit, composed, share

__all__ = ["BRR", "limit_ratio", "printed_limit_ratio"]


@dataclass(frozen=True, eq=False, repr=False)
class BRR(Bipartite):
    """Bipartite randomized response over N candidates, with the loss of a wrong report in mind.

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
    candidates at the ends of a line have the same law, so that no unbiased decode exists. No probability is
    nearer to 1 than 1 - 2**-53, so the exact epsilon of a value is at most 36.74 + ln((N - m)/m), however
    large the budget. Losses of a candidate that differ by no more than 1e-12 of its largest are ties: the
    candidate itself comes first, then the lower code.

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
    _grid: ClassVar[Grid | None]
    _homes: ClassVar[tuple[NDArray[np.intp], NDArray[np.intp]]]  # region of a candidate, place in the region

    def _build(self) -> None:
        epsilon = _checks.budget("epsilon", self.epsilon)
        features = _checks.count("features", self.features, 1)
        _checks.choice("rounding", self.rounding, ("nearest", "dither"))
        _checks.choice("unit", self.unit, ("record", "feature"))
        candidates, interval, points = _parts.place(self.candidates, self.interval, self.utility)
        metric = _parts.check_metric(self.metric, self.utility, len(points))
        regions, members = None, [np.arange(len(points))]
        if self.regions is not None:
            if interval is not None:
                raise ValueError("regions: need candidates of their own, not an interval")
            regions, members = _parts.groups(self.regions, len(points))
        budget = share(epsilon, features) if self.unit == "record" else epsilon
        parts = [
            _parts.build(points, each, metric, self.utility, budget, m)
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
            metric=metric,
            interval=interval,
            regions=regions,
            features=features,
            _points=readonly(points),
            _columns=features,
            _law=parts[0].law,
            _regions=parts,
            _larger_is_better=self.utility is not None,
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
        _checks.form(output)
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
