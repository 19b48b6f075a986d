"""Limits of a ratio of two means from the same reports, however near to 0 the lower one is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.estimate.binomial import student
from bitldp.estimate.intervals import FEW, Both, Limits

__all__ = ["Ratio", "fieller"]

_MISSED = 5.0  # over n: part of a quantile by which the limits are wider
_HALVINGS = 60
_FAR = 1e9  # what stands for infinity


@dataclass(frozen=True, eq=False)
class Ratio(Limits):
    """Limits of top/bottom, two means of products of letters over the same records.

    A record has the letters (t - r b) w, t of the upper mean, b of the lower one and w of a weight, drawn
    independently of each other. Where r is the ratio, their mean is 0.

    Attributes
    ----------
    top, bottom : ndarray of float64
        The two means.
    variances : ndarray of float64, shape (3, ...)
        Over the records: of the upper letter with its weight, of both together, and of the lower one.
    n : ndarray of int
        Records.
    span : (float, float)
        Where the ratio lies, whatever the records are.
    ends : ndarray of float64, shape (6, ...)
        Least and largest t, b and w.
    floor : ndarray of float64, shape (3, ...)
        Least variance of t and of b given a record, and least second moment of w.
    rate : float
        Share of the records whose reports are about all of them.

    Notes
    -----
    A ratio r is kept if the mean d of the letters (t - r b) w does not refute that it is 0:

    - of 30 records or more if n d^2 <= q^2 V, V their variance in the sample and q Student's quantile: the
      limits of Fieller, which hold however near to 0 the lower mean is. As for a mean of letters, q is 5/n of
      it larger, and since a sample may lack what is rare, the deviation is raised by half the range of the
      letters over sqrt(n), and is not below what the law alone makes it.
    - of fewer by the bound of Bernstein, n d^2 <= 2 ln(1/tail) (V + c abs(d)), for the largest variance of
      letters of that range and mean 0.

    What lies beyond `span` is none of the limits. Source: Fieller, "Some problems in interval estimation",
    Journal of the Royal Statistical Society B 16 (1954).
    """

    top: NDArray[np.float64]
    bottom: NDArray[np.float64]
    variances: NDArray[np.float64]
    n: NDArray[Any]
    span: tuple[float, float]
    ends: NDArray[np.float64]
    floor: NDArray[np.float64]
    rate: float = 1.0

    @property
    def method(self) -> str:
        """Name of the method."""
        few = self.n * self.rate < FEW
        return "Bernstein's bound" if few.all() else "Fieller"

    def refuted(self, ratio: Any, tail: float) -> NDArray[np.int8]:
        """Return 1 where a ratio is refuted for being too small, -1 where it is too large, else 0."""
        top, both, bottom = self.variances
        n = np.maximum(self.n, 1).astype(np.float64)
        apart = self.top - ratio * self.bottom
        variance = np.maximum(top - 2.0 * ratio * both + np.square(ratio) * bottom, 0.0)
        least = (self.floor[0] + np.square(ratio) * self.floor[1]) * self.floor[2]
        low, high = self._range(ratio)
        few = n * self.rate < FEW
        reports = np.maximum(np.floor(n * self.rate), 2.0)
        quantiles = {each: student(int(each) - 1, tail) for each in np.unique(reports).tolist()}
        factor = np.array([quantiles[each] for each in reports.ravel().tolist()]).reshape(reports.shape)
        factor = factor * (1.0 + _MISSED / reports)
        raised = np.sqrt(np.maximum(variance, least)) + (high - low) / (2.0 * np.sqrt(n))
        usual = n * np.square(apart) > np.square(factor * raised)
        bound = -2.0 * np.log(tail) * (-low * high + (high - low) / 3.0 * np.abs(apart))
        beyond = np.where(few, n * np.square(apart) > bound, usual)
        return np.where(beyond, np.sign(apart), 0.0).astype(np.int8)

    def _range(self, ratio: Any) -> Both:
        """Return the least and the largest letter, on either side of 0."""
        a, b, c, d, least, most = self.ends
        low, high = a - np.maximum(ratio * c, ratio * d), b - np.minimum(ratio * c, ratio * d)
        products = np.stack([low * least, low * most, high * least, high * most])
        return np.minimum(products.min(axis=0), 0.0), np.maximum(products.max(axis=0), 0.0)

    @property
    def stderr(self) -> NDArray[np.float64]:
        """Standard error of the ratio, of the first order; NaN where the lower mean is not above 0."""
        top, both, bottom = self.variances
        above = np.where(self.bottom > 0.0, self.bottom, np.nan)
        ratio = self.top / above
        spread = np.maximum(top - 2.0 * ratio * both + np.square(ratio) * bottom, 0.0)
        stderr: NDArray[np.float64] = np.sqrt(spread / self.n) / above
        return stderr

    def limits(self, value: NDArray[np.float64], stderr: NDArray[np.float64], tail: float) -> Both:
        """Return lower and upper limits, each wrong with probability `tail`; the estimate lies between."""
        known = np.isfinite(value) & (self.bottom > 0.0)
        start = np.where(known, value, 0.0)
        ends = []
        for sign, end in ((-1.0, self.span[0]), (1.0, self.span[1])):
            outer = np.where(known, (np.minimum if sign < 0.0 else np.maximum)(end, start), end)
            edge = np.where(np.isfinite(outer), outer, sign * _FAR * (1.0 + np.abs(start)))
            all_kept = ~known | (self.refuted(edge, tail) == 0)
            inner = start.copy()
            for _ in range(_HALVINGS):
                middle = inner + (edge - inner) / 2.0
                kept = self.refuted(middle, tail) == 0
                inner, edge = np.where(kept, middle, inner), np.where(kept, edge, middle)
            ends.append(np.where(all_kept, outer, edge))
        return ends[0], ends[1]

    def at(self, index: Any) -> Ratio:
        """Return those of some entries."""
        last = (slice(None), index)
        return Ratio(
            *(self.top[index], self.bottom[index], self.variances[last], self.n[index], self.span),
            *(self.ends[last], self.floor[last], self.rate),
        )


def fieller(
    top: float, bottom: float, variances: tuple[float, float, float], tail: float
) -> tuple[float, float, float, float] | None:
    """Return a ratio, its standard error and its limits; None where the limits are no interval.

    Parameters
    ----------
    top, bottom : float
        Two estimates.
    variances : (float, float, float)
        The variance of the upper one, the covariance of both, and the variance of the lower one.
    tail : float
        Error probability of one limit.

    Notes
    -----
    Fieller: all R for which top - R bottom is within z standard errors of 0.
    """
    upper, joint, lower = variances
    z = NormalDist().inv_cdf(1.0 - tail)
    a = bottom**2 - z**2 * lower
    b = top * bottom - z**2 * joint
    c = top**2 - z**2 * upper
    inner = b**2 - a * c
    if not (a > 0.0 and bottom > 0.0 and inner >= 0.0):
        return None
    ratio, root = top / bottom, math.sqrt(inner)
    variance = upper - 2.0 * ratio * joint + ratio**2 * lower
    return ratio, math.sqrt(max(variance, 0.0)) / bottom, (b - root) / a, (b + root) / a
