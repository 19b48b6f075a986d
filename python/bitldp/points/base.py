"""Base of the mechanisms that release one of N candidates: points in, points out, regions kept apart."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, pack
from bitldp.base import checks
from bitldp.base.arrays import readonly
from bitldp.client.mechanisms import no_document
from bitldp.client.program import ClientProgram
from bitldp.client.record import ClientRecord, Type
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.estimates import LIARS, Estimate
from bitldp.estimate.intervals import LetterLaw
from bitldp.estimate.inverse import FrequencyAccumulator, Inverse, averaged
from bitldp.letters.reach import Reach
from bitldp.mechanism.base import Part, Takes
from bitldp.mechanism.frequencies import Frequencies
from bitldp.mechanism.law import INPUTS, Experiment, Pair, Symbols, codes_of, of_rows, spread
from bitldp.mechanism.parameters import Option, one_of
from bitldp.points.candidates import (
    Loss,
    Members,
    Points,
    Region,
    check_metric,
    checked_candidates,
    nearest,
    region_index,
    region_members,
    release_by_region,
)
from bitldp.privacy import Guarantee, Unit, composed, share
from bitldp.release.base import Call, Direct, Release

Candidates = Annotated[Any, Option(short="Points that the public range of a number is cut to.")]
Rounding = Annotated[Literal["nearest", "dither"], one_of("nearest", "dither")]


_Region = TypeVar("_Region", bound=Region)

_ALL = 2048  # candidates whose rows are all looked at


class CandidateRelease(Frequencies):
    """Base of the mechanisms that release one of N public candidates for each value.

    Not a dataclass: a subclass has the parameters, each in its own order.
    """

    _takes: ClassVar[Takes | None] = "points"
    _sized_by: ClassVar[str | None] = "candidates"
    _usual_size: ClassVar[int] = 16
    outputs: ClassVar[tuple[str, ...]] = ("codes", "values", "packed")

    # Parameters of every subclass.
    candidates: Any
    epsilon: float
    metric: Any
    utility: Any
    interval: tuple[float, float] | None
    rounding: Literal["nearest", "dither"]
    regions: Any
    features: int
    unit: Unit

    # Derived of the parameters while the mechanism is built.
    _points: NDArray[np.float64]
    _release: Release  # that of the first region
    _regions: Sequence[Region]
    _grid: Grid | None
    _region_index: tuple[NDArray[np.intp], NDArray[np.intp]]  # region of a candidate, position in the region

    def _compose(self, make: Callable[[Points, list[Members], Loss, float], list[_Region]]) -> list[_Region]:
        """Let `make` build the regions, and compose the guarantee.

        `make` is given the points, the indices of each region's candidates, the checked metric, and the
        budget of one value.
        """
        epsilon, features = self.epsilon, self.features
        candidates, interval, points = checked_candidates(self.candidates, self.interval, self.utility)
        metric = check_metric(self.metric, self.utility, len(points))
        regions, members = None, [np.arange(len(points))]
        if self.regions is not None:
            if interval is not None:
                raise ValueError("regions: need candidates of their own, not an interval")
            regions, members = region_members(self.regions, len(points))
        parts = make(points, members, metric, share(epsilon, features) if self.unit == "record" else epsilon)
        exact = max(part.release.epsilon for part in parts)
        grid = None
        if interval is not None:
            grid = Grid(len(points), low=interval[0], high=interval[1], rounding=self.rounding)
        self._set(
            candidates=candidates,
            metric=metric,
            interval=interval,
            regions=regions,
            _points=readonly(points),
            _release=parts[0].release,
            _regions=parts,
            _grid=grid,
            _region_index=region_index(members, len(points)),
            _guarantee=Guarantee.judge(
                epsilon,
                (exact, exact, composed(exact, features)),
                unit=self.unit,
                given="" if regions is None else "given the public region",
            ),
        )
        return parts

    @property
    def _report_parts(self) -> tuple[Part, ...]:
        """(columns, bits) of a report: as few bits a feature as tell the candidates apart."""
        return ((self.features, max(1, (len(self._points) - 1).bit_length())),)

    @property
    def columns(self) -> int:
        """Values of a record."""
        return self.features

    @property
    def _span(self) -> tuple[float, float] | None:
        """The ends of the interval; None where inputs are codes."""
        return self.interval

    def _symbols(self) -> tuple[Symbols, ...]:
        """Return the channel of a value; of all regions, one of which applies."""
        laws = tuple(law for region in self._regions for law in region.release.laws)
        return (Symbols(laws, self.features),) if laws else ()

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return candidates to compare and the law of their reports; see `Mechanism.extremes`."""
        count = len(self._points)
        points = self._points if self._grid is not None else None
        features = self.features if len(self._regions) == 1 else 1  # a record is of one region
        chosen = codes_of(pair, count, points, features)
        if chosen is None:  # a value between the candidates: its row is a matter of the rounding
            return None
        if len(self._regions) == 1:
            return of_rows(self._release.row, count, count, chosen, self.features, points)
        region_of, position_of = self._region_index

        def row(x: int) -> NDArray[np.float64]:
            region = self._regions[region_of[x]]
            whole = np.zeros(count)
            whole[region.members] = region.release.row(int(position_of[x]))
            return whole

        if not chosen:  # the two ends of each region, and points between in the region of greatest loss
            worst = max(self._regions, key=lambda each: each.release.epsilon).members
            ends = [int(each.members[end]) for each in self._regions[: INPUTS // 2] for end in (0, -1)]
            between = [int(worst[each]) for each in spread(len(worst), INPUTS)]
            chosen = list(dict.fromkeys(between + ends))
        result = of_rows(row, count, count, chosen, self.features, points)
        return replace(result, groups=[int(region_of[x]) for x in chosen])

    @property
    def points(self) -> NDArray[np.float64]:
        """The candidates as points, by code, shape (N,) or (N, d); read-only."""
        return self._points

    def encode(self, x: ArrayLike) -> NDArray[Any]:
        """Return the code of the candidate nearest to each point, for inputs that are not candidates.

        Parameters
        ----------
        x : array_like of float, shape (n,) or (n, d)
            Finite points, as many coordinates as the candidates have.

        Returns
        -------
        ndarray of unsigned int, shape (n,)
            Codes of least loss; among equals, the first.

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
        return nearest(points, table, self.metric, self.utility)

    def decode_bias(self) -> float:
        """Return the largest distance of the mean of `decode` from the candidate, for points on a line.

        Up to 2048 candidates, all of them are tried. For more, 64 of them and the ends, which are the worst.

        Raises
        ------
        ValueError
            With regions, or for points in space.
        """
        if len(self._regions) > 1 or self._points.ndim > 1:
            raise ValueError(f"{type(self).__name__}: of points on a line and without regions only")
        points, codes = self._points, spread(len(self._points), _ALL if len(self._points) <= _ALL else 64)
        return max(abs(float(self._release.row(code) @ points - points[code])) for code in codes)

    @property
    def _streams(self) -> int:
        return len(self._regions)

    @property
    def _bound(self) -> bool:
        return self.regions is not None or type(self)._perturb is not CandidateRelease._perturb

    def _shortcut(self) -> Direct | None:
        plain = type(self)._perturb is CandidateRelease._perturb and self.regions is None
        return self._placed.direct(self.features) if plain else None

    def _admit(self, x: Any) -> NDArray[Any]:
        return checks.plain("x", x) if self._grid is None else checks.numbers("x", x)

    def _program(self, numbers: Type) -> ClientProgram:
        if self.regions is not None:
            raise no_document(self, "each region has a channel of its own")
        grid = self._grid
        record = ClientRecord.of_codes(len(self._points), self.features)
        if grid is not None:
            outside: Any = "clip" if grid.clip else "refuse"
            record = ClientRecord(numbers, self.features, interval=(grid.low, grid.high), outside=outside)
        return ClientProgram(record, self._report_parts, self._release.channel, grid)

    def _perturb(self, x: NDArray[Any], call: Call) -> NDArray[Any]:
        checks.records("x", x, self.features)
        if self.regions is not None:
            return self._by_region(x, call)
        if call.output != "values":
            return self._placed.randomize(x, call)
        if self._points.ndim == 1:
            return replace(self._placed, letters=self._points).randomize(x, call)
        if call.out is not None:
            raise ValueError("out: not supported for points in space; take output='codes' and decode")
        return self.decode(self._placed.randomize(x, call.codes(call.keys)))

    @cached_property
    def _placed(self) -> Release:
        """The release of values: of real ones where there is an interval."""
        return replace(self._release, codec=self._grid)

    def _by_region(self, x: ArrayLike, call: Call) -> NDArray[Any]:
        """Release every value within its region: the region decides the channel, and is public."""
        if call.first_chunk != 0:
            raise ValueError("first_chunk: not supported with regions, each of which has a stream of its own")
        if call.out is not None:
            raise ValueError("out: not supported with regions")
        codes = checks.codes("x", x, len(self._points))
        reports = release_by_region(self._regions, self._region_index, codes, call)
        if call.output == "packed":
            return pack(reports, self._report_parts[0][1])
        return self._points[reports] if call.output == "values" else reports

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
        return self._points[checks.codes("reports", reports, len(self._points))]

    @abstractmethod
    def _expected(self) -> float:
        """Return the mean loss of a report over the inputs."""

    @abstractmethod
    def _worst(self) -> float:
        """Return the largest mean loss of a report of an input."""

    @property
    def _cells(self) -> int:
        return len(self._points)

    def _check_alone(self) -> None:
        if len(self._regions) > 1:
            raise ValueError(
                f"{type(self).__name__}: estimates are not supported across regions; build one mechanism for "
                "each region"
            )

    def _check_line(self) -> None:
        if self._points.ndim > 1:
            raise ValueError(
                f"{type(self).__name__}: points in space have no mean here; see estimate_frequencies"
            )

    def _alone(self) -> Region:
        """Return the only region, or refuse several."""
        self._check_alone()
        return self._regions[0]

    def _refuse(self, reason: str) -> ValueError:
        return ValueError(f"{type(self).__name__}: no unbiased decode exists; {reason}")

    def _check_invertible(self) -> None:
        """Refuse a law that has no inverse, or whose inverse is not looked for."""

    @cached_property
    def _inverse(self) -> Inverse:
        """The inverse of the law of one set of candidates, or a refusal."""
        self._check_invertible()
        release = self._alone().release
        none = release.epsilon == 0.0
        return Inverse(lambda: None if none else release.channel.probabilities(), self._points, self._refuse)

    @property
    def _letters(self) -> NDArray[np.float64]:
        """Decoded value of each code, shape (N,), whose mean is the candidate; raises where there is none."""
        self._check_line()
        return self._inverse.letters

    def estimate_mean(self, reports: ArrayLike) -> Estimate:
        """Estimate the mean of the points that the records hold, for candidates on a line.

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
            If no unbiased decode exists (at epsilon 0; of `BRR`, for m >= 2), with regions, for points in
            space, or for no reports.
        """
        letters = self._letters
        n, counts = self._count(reports)
        made = averaged(counts.reshape(-1, len(letters)), n, letters, self._letter_law)
        reach = Reach(letters[:, None], ends=(float(self._points.min()), float(self._points.max())))
        return replace(made, influence=reach.moved(LIARS))

    @cached_property
    def _letter_law(self) -> LetterLaw:
        """Law of the letter of a report, for intervals; raises where there are no letters."""
        letters = self._letters
        return LetterLaw.of_points(self._points, letters, self.letter_variance(np.arange(len(letters))))

    def unbias(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return the decoded values of reports, whose mean over the random bits is the candidate.

        Parameters
        ----------
        reports : array_like of int
            Codes in [0, N), any shape.

        Raises
        ------
        ValueError, TypeError
            As for `estimate_mean`, or for a code out of range.
        """
        letters = self._letters
        return letters[checks.codes("reports", reports, len(letters))]

    def letter_variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of a report's letter for candidates on a line, from the integers.

        Parameters
        ----------
        x : array_like of int
            Codes of the true candidates, any shape.

        Returns
        -------
        ndarray of float64
            Same shape, in squared units of the candidates.
        """
        self._check_line()
        return self._inverse.letter_variance()[checks.codes("x", x, len(self._points))]

    def _indicators(self, reports: Any) -> NDArray[np.float64]:
        indicators = self._inverse.indicators
        return indicators[checks.codes("reports", reports, len(indicators))]

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of one report's indicator of every candidate; see `GRR.variance`.

        From the integers; refused with regions.
        """
        return self._inverse.variance()[checks.codes("x", x, len(self._points))]

    def _reach(self, total: bool = False) -> tuple[Reach]:
        """Return the indicators of every report."""
        return (Reach(self._inverse.indicators, total=1),)

    def mean_variance(self) -> float:
        """Return the mean `variance` over indicators and uniform inputs; see `Mechanism.mean_variance`."""
        return float(self.variance(np.arange(len(self._points))).mean())

    def worst_variance(self) -> float:
        """Return the largest `variance` of any indicator, for any input; see `Mechanism.worst_variance`."""
        return float(self.variance(np.arange(len(self._points))).max())

    def accumulator(self) -> CountAccumulator:
        """Return an empty accumulator of the counts; see `Mechanism.accumulator`."""
        cells = len(self._points)
        shape = (cells,) if self.features == 1 else (self.features, cells)
        return FrequencyAccumulator(self, shape, self._count, self._inverse.indicators, self._inverse.law)

    def expected_error(self) -> float:
        """Return the global expected error Q_g (BRR, Eq. 11): the mean loss of a report over its inputs.

        Returns
        -------
        float
            In units of the metric, computed from the integers of the channel; over uniform inputs, or over
            those of a `prior`.

        Raises
        ------
        ValueError
            If the mechanism has a `utility`; see `expected_utility`.
        """
        if self.utility is not None:
            raise ValueError("utility: was given in place of a loss; see expected_utility")
        return self._expected()

    def worst_error(self) -> float:
        """Return the largest expected loss of a report, over the inputs, in units of the metric.

        Raises
        ------
        ValueError
            If the mechanism has a `utility`.
        """
        if self.utility is not None:
            raise ValueError("utility: was given in place of a loss; see expected_utility")
        return self._worst()

    def expected_utility(self) -> float:
        """Return the global utility Q_g of a mechanism that has a `utility`: the larger, the better.

        Raises
        ------
        ValueError
            If the mechanism has a loss; see `expected_error`.
        """
        if self.utility is None:
            raise ValueError("utility: was not given; see expected_error")
        return -self._expected()

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of one value: P[x, y] = P(report y | x), shape (N, N); zero between regions."""
        law = np.zeros((len(self._points),) * 2)
        for part in self._regions:
            law[np.ix_(part.members, part.members)] = part.release.channel.probabilities()
        return law
