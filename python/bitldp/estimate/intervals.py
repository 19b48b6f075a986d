"""Limits of estimates: exact for counts, from the law of the letters for means.

All speak of the same truth: the mean over the population from which the records are drawn independently. They
hold for the mean of the very records, too, which varies less.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp.estimate.binomial import share_limits, student
from bitldp.letters.spread import Mixed, concave_hull

__all__ = ["FEW", "ByLetters", "Counted", "Deviation", "LetterLaw", "Limits", "Table", "joined"]

FEW = 30
"""Below so many reports nothing is taken to be normal."""

_RARE = 0.25  # records that the sample may lack: see `ByLetters`
_MISSED = 5.0  # over n: part of a quantile by which score intervals are wider
_HALVINGS = 60
_RATES = np.logspace(-2.0, 3.0, 61)  # at which tails are looked at, over the standard deviation

Both = tuple[NDArray[np.float64], NDArray[np.float64]]


class Limits(ABC):
    """How the limits of the entries of an estimate follow from its reports."""

    @abstractmethod
    def limits(self, value: NDArray[np.float64], stderr: NDArray[np.float64], tail: float) -> Both:
        """Return lower and upper limits, each wrong with probability `tail`."""

    @abstractmethod
    def at(self, index: Any) -> Limits:
        """Return those of some entries."""

    @property
    @abstractmethod
    def method(self) -> str:
        """Name of the method."""


@dataclass(frozen=True, eq=False)
class Deviation(Limits):
    """Limits from the standard error alone, where no more is known of the law.

    Attributes
    ----------
    n : int
        Reports, or what else is independent.
    normal : bool
        True if what is averaged is nearly normal, however few there are (sums of many reports).
    """

    n: int
    normal: bool = False

    @property
    def method(self) -> str:
        """Name of the method."""
        if self.normal:
            return "Student's law, from the standard error"
        return "normal law, from the standard error" if self.n >= FEW else "Chebyshev's inequality"

    def limits(self, value: NDArray[np.float64], stderr: NDArray[np.float64], tail: float) -> Both:
        """Return lower and upper limits, each wrong with probability `tail`."""
        if self.normal:
            factor = student(max(1, self.n - 1), tail)
        elif self.n >= FEW:
            factor = -NormalDist().inv_cdf(tail)
        else:  # P(|estimate - truth| >= k standard errors) <= 1/k^2
            factor = (2.0 * tail) ** -0.5
        return value - factor * stderr, value + factor * stderr

    def at(self, index: Any) -> Deviation:
        """Return those of some entries."""
        return self


@dataclass(frozen=True, eq=False)
class Counted(Limits):
    """Exact limits of what two letters average to, from the count of one of them.

    Attributes
    ----------
    counts : ndarray of int
        Reports with the other letter than `none`, of the estimate's shape.
    n : int or ndarray of int
        Reports.
    none, every : float or ndarray of float64
        What the estimate is if no report has it, and if every one has.
    """

    counts: NDArray[Any]
    n: Any
    none: Any
    every: Any

    @property
    def method(self) -> str:
        """Name of the method."""
        return "Clopper-Pearson"

    def limits(self, value: NDArray[np.float64], stderr: NDArray[np.float64], tail: float) -> Both:
        """Return lower and upper limits, each wrong with probability `tail`."""
        low, high = (
            self.none + share * (self.every - self.none) for share in share_limits(self.counts, self.n, tail)
        )
        return np.minimum(low, high), np.maximum(low, high)

    def at(self, index: Any) -> Counted:
        """Return those of some entries."""
        shape = self.counts.shape
        rest = [
            each if np.ndim(each) == 0 else np.broadcast_to(each, shape)[index]
            for each in (self.n, self.none, self.every)
        ]
        return Counted(np.asarray(self.counts[index]), *rest)


class Table(NamedTuple):
    """Law of the letters of a few kinds of records.

    Attributes
    ----------
    points : ndarray of float64, shape (S,)
        The records.
    rows : ndarray of float64, shape (S, alphabet)
        P(letter | record).
    letters : ndarray of float64, shape (alphabet,)
        The letters.
    """

    points: NDArray[np.float64]
    rows: NDArray[np.float64]
    letters: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LetterLaw:
    """Law of the letter of one report, whose mean is the record, as far as it is known.

    Attributes
    ----------
    mixed : Mixed
        Its variance, over records of a known mean.
    reach : float
        Distance of the farthest two letters.
    both : (float, float) or None
        The letters, where there are two, the smaller one first.
    rate : float
        Share of the reports that are about one entry, where entries are sampled.
    jump : float
        How far from the mean letters are that may be rare, as those of categories are; 0 of numbers.
    table : callable or None
        Returns the `Table` of the letters, where it is small.
    """

    mixed: Mixed
    reach: float
    both: tuple[float, float] | None = None
    rate: float = 1.0
    jump: float = 0.0
    table: Callable[[], Table] | None = None

    @classmethod
    def of_points(
        cls, points: NDArray[np.float64], letters: NDArray[np.float64], variance: NDArray[np.float64]
    ) -> LetterLaw:
        """Return the law of letters whose means are points, by the variance of a letter for each point."""
        middle = (points.min() + points.max()) / 2.0
        return cls(Mixed.of_points(points, variance + np.square(points - middle)), float(np.ptp(letters)))

    @cached_property
    def scale(self) -> float:
        """The c of Bernstein's condition: ln E e^(s (letter - mean)) <= s^2 variance/(2 (1 - c abs(s))).

        Letters at most b from their mean have c = b/3 (Boucheron, Lugosi and Massart, "Concentration
        inequalities", 2013, Section 2.8). Of a table it is the least that holds for all records with any
        mean: of these, E e^(s letter) is at most the concave hull of what it is at the points.
        """
        if self.table is None:
            return self.reach / 3.0
        points, rows, letters = self.table()
        places, which = np.unique(points, return_inverse=True)
        _, most = self.mixed.bounds(places)
        unit = float(np.sqrt(most.max()))
        least = 0.0
        for rate in np.concatenate([-_RATES, _RATES]) / unit:
            exponents = rate * letters
            top = exponents.max()
            chances = np.full(len(places), -np.inf)
            np.maximum.at(chances, which, rows @ np.exp(exponents - top))
            with np.errstate(divide="ignore"):  # of chances too small for doubles; then 1/rate, which is safe
                logs = np.log(concave_hull(places, chances)) + (top - rate * places)
                least = max(least, float((1.0 - rate**2 * most / (2.0 * logs)).max()) / abs(rate))
        return min(least, self.reach / 3.0)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a pickle: the scale is in it, and no table."""
        return self.__dict__ | {"scale": self.scale, "table": None}


@dataclass(frozen=True, eq=False)
class ByLetters(Limits):
    """Limits of a mean of letters of a known law.

    Attributes
    ----------
    variance : ndarray of float64
        Of the letters in the sample, of the estimate's shape; NaN of one report.
    n : int or ndarray of int
        Reports.
    law : LetterLaw
        Of a letter.

    Notes
    -----
    Limits are the ends of the means m that the estimate v does not refute. With V(m) the variance of a letter
    where the records have the mean m:

    - Of few reports m is kept if n (v - m)^2 <= 2 ln(1/tail) (V(m) + c abs(v - m)) for the largest V(m) that
      any records have: the bound of Bernstein. It holds for every number of reports, and for unlike records.
    - Of 30 or more it is kept if n (v - m)^2 <= t^2 V(m), a score interval. t is Student's quantile and 5/n
      of it, since what the normal law misses is of that order; n in both counts the reports about an entry.
      V(m) lies between the least and the largest variance as far up as the sample's does at v. For records at
      the two ends that is the interval of Wilson; for others it is as skewed as their range makes it. As a
      sample may lack what is rare, R^2/(4 n) is added to the sample's variance and to the largest one: where
      all seems to be at one end, V(m) is the largest. Where letters may be rare, the sample's deviation is
      raised by jump/sqrt(n).
    """

    variance: NDArray[np.float64]
    n: Any
    law: LetterLaw

    @property
    def _few(self) -> NDArray[np.bool_]:
        """Where there are few reports."""
        return np.asarray(self.n) * self.law.rate < FEW

    @property
    def method(self) -> str:
        """Name of the method."""
        few = self._few
        if few.all():
            return "Bernstein's bound"
        return "Bernstein's bound where reports are few, else score" if few.any() else "score"

    def limits(self, value: NDArray[np.float64], stderr: NDArray[np.float64], tail: float) -> Both:
        """Return lower and upper limits, each wrong with probability `tail`."""
        mixed, few, n = self.law.mixed, self._few, np.asarray(self.n, np.float64)
        reports = np.maximum(np.floor(n * self.law.rate), 2.0)  # about an entry, as a rule
        quantiles = {each: student(int(each) - 1, tail) for each in np.unique(reports).tolist()}
        many = np.array([quantiles[each] for each in reports.ravel().tolist()]).reshape(n.shape)
        many = many * (1.0 + _MISSED / reports)
        factor = np.where(few, -2.0 * np.log(tail), np.square(many))
        scale = np.where(few, self.law.scale if few.any() else 0.0, 0.0)
        least, most = mixed.bounds(value)
        lacking = _RARE * mixed.span**2 / reports
        seen = np.square(np.sqrt(self.variance) + self.law.jump / np.sqrt(n))
        up = (np.maximum(seen - least, 0.0) + lacking) / (most - least + lacking)
        up = np.where(few, 1.0, np.minimum(up, 1.0))
        # No variance is above this one, so that all that is farther is refuted: n d^2 > f (V + c d).
        slope = factor * scale / n
        farthest = slope + np.sqrt(factor / n * np.max(mixed.most, axis=0)) + np.zeros_like(value)
        ends = []
        for sign in (-1.0, 1.0):
            low, high = np.zeros_like(farthest), farthest
            for _ in range(_HALVINGS):
                middle = (low + high) / 2.0
                least, most = mixed.bounds(value + sign * middle)
                spread = least + up * (most - least)
                kept = np.square(middle) <= factor / n * spread + slope * middle
                low, high = np.where(kept, middle, low), np.where(kept, high, middle)
            ends.append(value + sign * high)
        return ends[0], ends[1]

    def at(self, index: Any) -> ByLetters:
        """Return those of some entries."""
        n = self.n if np.ndim(self.n) == 0 else np.broadcast_to(self.n, self.variance.shape)[index]
        law = replace(self.law, mixed=self.law.mixed.at(index))
        return ByLetters(np.asarray(self.variance[index]), n, law)


def joined(parts: Sequence[Any]) -> Limits | None:
    """Return the limits of estimates put one after the other; None where they are not of one kind."""
    given = [each.limits for each in parts]
    sizes = [len(each.value) for each in parts]

    def together(name: str) -> NDArray[Any]:
        return np.concatenate(
            [np.broadcast_to(getattr(each, name), size) for each, size in zip(given, sizes, strict=True)]
        )

    if all(isinstance(each, Counted) for each in given):
        return Counted(*(together(name) for name in ("counts", "n", "none", "every")))
    if all(isinstance(each, ByLetters) and each.law.mixed.least.ndim == 1 for each in given):
        return ByLetters(together("variance"), together("n"), given[0].law)
    return None
