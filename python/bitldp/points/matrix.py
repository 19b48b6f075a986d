"""Base of Exponential, LSRR and OptimalUtility: releases of a candidate by a table."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix
from bitldp.mechanism.parameters import Budget, Features, Unit
from bitldp.points.base import CandidateRelease, Candidates, Rounding
from bitldp.points.candidates import Loss, Losses, Members, Points, losses_between
from bitldp.release.base import Release
from bitldp.release.table import table

MOST = 2048
"""Candidates of a table: its integers and its sampler then take 0.2 GB."""


@dataclass(frozen=True, eq=False, repr=False)
class CandidateMatrix(CandidateRelease):
    """Base of the mechanisms that release a candidate by a table of their own making."""

    candidates: Candidates
    _: KW_ONLY
    epsilon: Budget
    metric: Any = "euclidean"
    utility: Any = None
    interval: tuple[float, float] | None = None
    rounding: Rounding = "nearest"
    regions: Any = None
    features: Features = 1
    unit: Unit = "record"

    _regions: list[RegionTable] = field(init=False, repr=False, compare=False)

    @abstractmethod
    def _channel(self, points: Points, members: Members, losses: Losses, epsilon: float) -> Matrix:
        """Return the table of one set of candidates, `losses` being the losses between them."""

    def _build(self) -> None:
        self._check()

        def make(points: Points, members: list[Members], metric: Loss, budget: float) -> list[RegionTable]:
            self._arrange(points)
            parts = []
            for each in members:
                if len(each) > MOST:
                    raise ValueError(f"candidates: at most {MOST} in a region, got {len(each)}")
                losses = losses_between(points, each, metric, self.utility)
                with np.errstate(over="ignore"):
                    if not np.isfinite(np.abs(losses).sum()):
                        raise ValueError(
                            "candidates: the sum of the losses between them exceeds the range of doubles"
                        )
                channel = self._channel(points, each, losses, budget)
                parts.append(RegionTable(each, losses, table(channel)))
            return parts

        self._compose(make)

    def _check(self) -> None:
        """Check the parameters that the subclass adds."""

    def _arrange(self, points: Points) -> None:
        """Keep the properties that the subclass derives of all candidates together."""

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

    def _errors(self) -> NDArray[np.float64]:
        return np.concatenate([part.errors() for part in self._regions])

    def _expected(self) -> float:
        return float(self._errors().mean())

    def _worst(self) -> float:
        return float(self._errors().max())

    @property
    def letters(self) -> NDArray[np.float64]:
        """Decoded value of each report, shape (N,), whose mean is the candidate; read-only.

        Among all such letters, those of least variance over uniform inputs. Their mean is right within 1e-9
        of half the range of the candidates.

        Raises
        ------
        ValueError
            If no unbiased decode exists, with regions, or for points in space.
        """
        return self._letters

    def _facts(self, users: int | None = None) -> dict[str, Any]:
        """Return the errors of a report and of a frequency; see `Mechanism._facts`."""
        result = super()._facts(users)
        if self.utility is not None:
            return result
        return {"errors": {"expected_absolute_error": self.expected_error(), **result["errors"]}}


@dataclass(frozen=True, eq=False)
class RegionTable:
    """A table over one set of candidates, and the losses between them."""

    members: NDArray[np.intp]
    losses: NDArray[np.float64]
    release: Release

    def errors(self) -> NDArray[np.float64]:
        """Return the expected loss of a report for each member, from the integers of the channel."""
        return np.sum(self.release.channel.probabilities() * self.losses, axis=1)
