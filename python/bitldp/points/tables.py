"""Base of Exponential, LSRR and OptimalUtility: releases of a candidate by a table."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Matrix
from bitldp.base import checks
from bitldp.estimate.accumulators import CountAccumulator
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.tables import FrequencyAccumulator, averages
from bitldp.letters import solve
from bitldp.mechanism.frequencies import Frequencies
from bitldp.mechanism.parameters import Budget, Features, Unit
from bitldp.points import places
from bitldp.points.base import CandidateRelease, Candidates, Rounding
from bitldp.release.base import Release
from bitldp.release.table import table

MOST = 2048
"""Candidates of a table: its integers and its sampler then take 0.2 GB."""


@dataclass(frozen=True, eq=False, repr=False)
class CandidateMatrix(CandidateRelease, Frequencies):
    """Base of the mechanisms that release a candidate by a table of their own making."""

    candidates: Candidates
    epsilon: Budget
    _: KW_ONLY
    metric: Any = "euclidean"
    utility: Any = None
    interval: tuple[float, float] | None = None
    rounding: Rounding = "nearest"
    regions: Any = None
    features: Features = 1
    unit: Unit = "record"

    _regions: ClassVar[list[TableRegion]]

    @abstractmethod
    def _channel(
        self,
        points: NDArray[np.float64],
        members: NDArray[np.intp],
        losses: NDArray[np.float64],
        epsilon: float,
    ) -> Matrix:
        """Return the table of one set of candidates, `losses` being the losses between them."""

    def _build(self) -> None:
        self._check()

        def make(
            points: NDArray[np.float64], members: list[NDArray[np.intp]], metric: Any, budget: float
        ) -> list[TableRegion]:
            self._arrange(points)
            parts = []
            for each in members:
                if len(each) > MOST:
                    raise ValueError(f"candidates: at most {MOST} in a region, got {len(each)}")
                losses = places.losses_between(points, each, metric, self.utility)
                with np.errstate(over="ignore"):
                    if not np.isfinite(np.abs(losses).sum()):
                        raise ValueError(
                            "candidates: the losses between them add up past the range of doubles"
                        )
                channel = self._channel(points, each, losses, budget)
                parts.append(TableRegion(each, losses, table(channel)))
            return parts

        self._compose(make)

    def _check(self) -> None:
        """Check the parameters that the subclass adds."""

    def _arrange(self, points: NDArray[np.float64]) -> None:
        """Settle what the subclass needs to know of all candidates together."""

    @property
    def channels(self) -> list[Matrix]:
        """The channel of each region, by ascending label; just one without regions."""
        return [part.release.channel for part in self._regions]

    @property
    def channel(self) -> Matrix:
        """The channel: its `weights()` are the law.

        Raises
        ------
        ValueError
            With regions, each of which has a channel of its own; see `channels`.
        """
        return self._alone().release.channel

    def _alone(self) -> TableRegion:
        if len(self._regions) > 1:
            raise ValueError(
                f"{type(self).__name__}: estimates are not offered across regions; build one mechanism for "
                "each region"
            )
        return self._regions[0]

    def _refuse(self, reason: str) -> ValueError:
        return ValueError(f"{type(self).__name__}: no unbiased decode exists; {reason}")

    def probabilities(self) -> NDArray[np.float64]:
        """Return the law of one value: P[x, y] = P(report y | x), shape (N, N); zero between regions."""
        law = np.zeros((len(self._points),) * 2)
        for part in self._regions:
            law[np.ix_(part.members, part.members)] = part.release.channel.probabilities()
        return law

    def _errors(self) -> NDArray[np.float64]:
        return np.concatenate([part.errors() for part in self._regions])

    def _expected(self) -> float:
        return float(self._errors().mean())

    def expected_error(self) -> float:
        """Return the global expected error Q_g: the mean loss of a report over uniform inputs.

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
        return float(self._errors().max())

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

    @cached_property
    def _indicators(self) -> NDArray[np.float64]:
        release = self._alone().release
        found = None if release.epsilon == 0.0 else solve.inverse(release.channel.probabilities())
        if found is None:
            raise self._refuse("the rows of the law are not independent, or too nearly dependent")
        return found

    @cached_property
    def _letters(self) -> NDArray[np.float64]:
        if self._points.ndim > 1:
            raise ValueError(
                f"{type(self).__name__}: points in space have no mean here; see estimate_frequencies"
            )
        release = self._alone().release
        found = (
            None if release.epsilon == 0.0 else solve.letters(release.channel.probabilities(), self._points)
        )
        if found is None:
            raise self._refuse("no letters of its reports have the candidates as their means")
        found.flags.writeable = False
        return found

    @property
    def letters(self) -> NDArray[np.float64]:
        """What each report is worth, shape (N,), so that the mean is the candidate; read-only.

        Among all such letters, those of least variance over uniform inputs. Their mean is right within 1e-9
        of half the range of the candidates.

        Raises
        ------
        ValueError
            If no unbiased decode exists, with regions, or for points in space.
        """
        return self._letters

    def unbias(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return the letters of reports: numbers whose mean over the coins is the candidate.

        Parameters
        ----------
        reports : array_like of int
            Codes in [0, N), any shape.

        Raises
        ------
        ValueError, TypeError
            As for `letters`, or for a code out of range.
        """
        values: NDArray[np.float64] = self._letters[checks.codes("reports", reports, len(self._points))]
        return values

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
        law, codes = self._alone().release.channel.probabilities(), checks.codes("x", x, len(self._points))
        moments = np.sum(law * np.square(self._letters - self._points[:, None]), axis=1)
        chosen: NDArray[np.float64] = moments[codes]
        return chosen

    def variance(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of one report's unbiased indicator of every candidate, from the integers.

        Parameters
        ----------
        x : array_like of int
            Codes of the true candidates, any shape.

        Returns
        -------
        ndarray of float64
            Shape of `x` and one more axis of length N.

        Raises
        ------
        ValueError, TypeError
            If no unbiased decode exists, with regions, or for a code out of range.
        """
        indicators, codes = self._indicators, checks.codes("x", x, len(self._points))
        rows = self._alone().release.channel.probabilities()
        moments = rows @ np.square(indicators) - np.eye(len(rows))
        chosen: NDArray[np.float64] = moments[codes]
        return chosen

    def facts(self, users: int | None = None) -> dict[str, Any]:
        """Return the errors of a report and of a frequency; see `Mechanism.facts`."""
        found = super().facts(users)
        if self.utility is not None:
            return found
        return {"errors": {"expected_absolute_error": self.expected_error(), **found["errors"]}}

    def mean_variance(self) -> float:
        """Return the mean of `variance` over the indicators and over uniform inputs.

        Raises
        ------
        ValueError
            If no unbiased decode exists, or with regions.
        """
        return float(self.variance(np.arange(len(self._points))).mean())

    def worst_variance(self) -> float:
        """Return the largest `variance` of any indicator, for any input.

        Raises
        ------
        ValueError
            If no unbiased decode exists, or with regions.
        """
        return float(self.variance(np.arange(len(self._points))).max())

    @property
    def _cells(self) -> int:
        return len(self._points)

    def _check_speaks(self) -> NoReturn:
        raise NotImplementedError("a table has no two chances; its estimates are by `_indicators`")

    def accumulator(self) -> CountAccumulator:
        """Return an empty accumulator of the counts: streams, merges and serialises.

        Raises
        ------
        ValueError
            If no unbiased decode exists, or with regions.
        """
        indicators = self._indicators
        cells = len(self._points)
        shape = (cells,) if self._columns == 1 else (self._columns, cells)
        return FrequencyAccumulator(self, shape, self._count, indicators)

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
            If no unbiased decode exists, with regions, for points in space, or for no reports.
        """
        letters = self._letters
        n, counts = self._count(reports)
        value, stderr = averages(counts.reshape(-1, len(letters)), n, letters)
        return Estimate(value, stderr, n)


@dataclass(frozen=True, eq=False)
class TableRegion:
    """A table over one set of candidates, and the losses between them."""

    members: NDArray[np.intp]
    losses: NDArray[np.float64]
    release: Release

    def errors(self) -> NDArray[np.float64]:
        """Return the expected loss of a report for each member, from the integers of the channel."""
        errors: NDArray[np.float64] = np.sum(self.release.channel.probabilities() * self.losses, axis=1)
        return errors
