"""What a release of one of N candidates is, whatever its law: points in, points out, regions kept apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, pack
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.base.keys import RandomSource, keys
from bitldp.categorical.window import Output, check_axis
from bitldp.mechanism.base import Mechanism
from bitldp.points import places
from bitldp.privacy import Guarantee, composed, share


class CandidateLaw(Protocol):
    """A channel over candidates, as the release calls it."""

    @property
    def epsilon(self) -> float:
        """Exact epsilon of one use."""

    def randomize(
        self,
        x: ArrayLike,
        grid: Grid | None,
        letters: NDArray[np.float64] | None,
        key: bytes | None,
        output: str,
        out: NDArray[Any] | None,
        threads: int | None,
        first_chunk: int,
    ) -> NDArray[Any]:
        """Release candidates, or numbers that the grid makes candidates of."""


class CandidatePart(Protocol):
    """Candidates that a release stays within, and its law over their positions."""

    @property
    def members(self) -> NDArray[np.intp]:
        """Indices of the candidates, ascending."""

    @property
    def law(self) -> CandidateLaw:
        """The law over positions in `members`."""


_Part = TypeVar("_Part", bound=CandidatePart)


@dataclass(frozen=True, eq=False, repr=False)
class CandidateRelease(Mechanism):
    """Base of the mechanisms that release one of N public candidates for each value."""

    # Set on the instance, by _build; ClassVar keeps them out of the dataclass' fields.
    _points: ClassVar[NDArray[np.float64]]
    _columns: ClassVar[int]
    _law: ClassVar[Any]  # that of the first part
    _regions: ClassVar[Sequence[Any]]  # the parts
    _grid: ClassVar[Grid | None]
    _homes: ClassVar[tuple[NDArray[np.intp], NDArray[np.intp]]]  # region of a candidate, place in the region

    if TYPE_CHECKING:  # fields of every subclass, each in its own order
        metric: Any
        utility: Any
        regions: Any

    def _settle(
        self, make: Callable[[NDArray[np.float64], list[NDArray[np.intp]], Any, float], list[_Part]]
    ) -> list[_Part]:
        """Check the parameters, let `make` build the parts, and compose the guarantee.

        `make` is given the points, the indices of each region's candidates, the checked metric, and the
        budget of one value.
        """
        given: Any = self
        epsilon = checks.budget("epsilon", given.epsilon)
        features = checks.count("features", given.features, 1)
        checks.choice("rounding", given.rounding, ("nearest", "dither"))
        checks.choice("unit", given.unit, ("record", "feature"))
        candidates, interval, points = places.place(given.candidates, given.interval, given.utility)
        metric = places.check_metric(given.metric, given.utility, len(points))
        regions, members = None, [np.arange(len(points))]
        if given.regions is not None:
            if interval is not None:
                raise ValueError("regions: need candidates of their own, not an interval")
            regions, members = places.groups(given.regions, len(points))
        parts = make(points, members, metric, share(epsilon, features) if given.unit == "record" else epsilon)
        exact = max(part.law.epsilon for part in parts)
        grid = None
        if interval is not None:
            grid = Grid(len(points), low=interval[0], high=interval[1], rounding=given.rounding)
        self._set(
            candidates=candidates,
            epsilon=epsilon,
            metric=metric,
            interval=interval,
            regions=regions,
            features=features,
            _points=readonly(points),
            _columns=features,
            _law=parts[0].law,
            _regions=parts,
            _grid=grid,
            _homes=places.homes(members, len(points)),
            _guarantee=Guarantee.judge(
                epsilon,
                (exact, exact, composed(exact, features)),
                unit=given.unit,
                given="" if regions is None else "given the public region",
            ),
        )
        return parts

    @property
    def report_bits(self) -> int:
        """Bits of one record's report in its packed form: as few a feature as tell the candidates apart."""
        return self._columns * max(1, (len(self._points) - 1).bit_length())

    def _check_axis(self, name: str, x: ArrayLike) -> None:
        check_axis(name, checks.shape(name, x), self._columns)

    @property
    def points(self) -> NDArray[np.float64]:
        """The candidates as points, by code, shape (N,) or (N, d); read-only."""
        return self._points

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
        return places.nearest(points, table, self.metric, self.utility)

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
        checks.form(output)
        if self.regions is not None:
            return self._by_region(x, rng, output, out, threads, first_chunk)
        key = None if rng is None else keys(rng, 1)[0]
        if output != "values" or self._points.ndim == 1:
            letters = self._points if output == "values" else None
            released: NDArray[Any] = self._law.randomize(
                x, self._grid, letters, key, output, out, threads, first_chunk
            )
            return released
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
        checks.choice("output", output, ("codes", "values", "packed"))
        if first_chunk != 0:
            raise ValueError("first_chunk: not offered with regions, each of which has a stream of its own")
        if out is not None:
            raise ValueError("out: not offered with regions")
        codes = checks.codes("x", x, len(self._points))
        reports = places.release(self._regions, self._homes, codes, keys(rng, len(self._regions)), threads)
        if output == "packed":
            return pack(reports, max(1, (len(self._points) - 1).bit_length()))
        return self._points[reports] if output == "values" else reports

    def decode(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return the point of each reported code; on average it lies nearer to the middle than the truth.

        Parameters
        ----------
        reports : array_like of int
            Codes in [0, N), any shape.

        Returns
        -------
        ndarray of float64
            Same shape; one axis more for points in space.
        """
        points: NDArray[np.float64] = self._points[checks.codes("reports", reports, len(self._points))]
        return points
