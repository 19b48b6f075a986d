"""Estimates from reports, with standard errors, intervals and numbers of reports."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from bitldp.base import checks
from bitldp.base.documents import facts_table
from bitldp.base.errors import missing, require
from bitldp.estimate.intervals import Counted, Deviation, Limits

__all__ = ["Estimate", "frequencies", "indicator_variance", "project_simplex"]

_SHOWN = 20  # entries of an estimate that are shown
LIARS = 0.01  # share of the clients that an estimate says the influence of
_DIGITS = 9  # after the point; smaller numbers are shown with an exponent


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimate with its standard error and its number of reports.

    Attributes
    ----------
    value : ndarray of float64
        The estimate.
    stderr : ndarray of float64
        Standard error of each entry of `value`; NaN where it cannot be known (one report of a mean).
    n : int
        Number of reports behind it.
    labels : ndarray or None
        Labels of the last axis of `value`, if the mechanism has labels.
    projected : bool
        Whether `value` was projected to the simplex. It is then biased, and `stderr` does not apply to it.
    post : str
        Name of other post-processing of `value`, which is then biased; otherwise empty.
    influence : float or None
        How far 1 % of lying clients could have moved an entry, at most, before it was projected or
        post-processed; None where no bound is known. See `influence` of the mechanism.
    doubt : str
        Description of what in the reports honest records cannot produce, however they are distributed;
        otherwise empty.
    limits : Limits or None
        How to compute intervals from the reports. None: from `value` and `stderr` alone.

    Notes
    -----
    `value` and its interval refer to the mean or share in the population from which the records are drawn
    independently: `stderr` covers the random bits and the sampling of the records. The mean of the records
    themselves is nearer to `value`, so an interval covers it, too. The estimate of a secure sum
    (`bitldp.sums`) refers only to the records that were added.

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp import Estimate
    >>> drinks = np.array(["tea", "coffee"])
    >>> estimate = Estimate(np.array([0.7063, 0.2937]), np.array([0.0198, 0.0198]), 1000, drinks)
    >>> print(estimate)
    2 values of 1,000 reports, with standard errors
         tea  0.706 ± 0.020
      coffee  0.294 ± 0.020
    >>> low, high = estimate.confidence_interval(0.95)
    >>> bool(low[0] < 0.7 < high[0])
    True
    """

    value: NDArray[np.float64]
    stderr: NDArray[np.float64]
    n: int
    labels: NDArray[Any] | None = None
    projected: bool = False
    post: str = ""
    influence: float | None = None
    doubt: str = ""
    limits: Limits | None = field(default=None, repr=False)

    def confidence_interval(self, level: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return a confidence interval for each entry by itself; `method` names how it is computed.

        Parameters
        ----------
        level : float
            Coverage of an interval, above 0 and below 1. It applies to one entry. To cover all of k entries
            at once, use ``1 - (1 - level)/k``.

        Returns
        -------
        low, high : ndarray of float64
            Shape of `value`; NaN where neither the law of the reports nor a standard error is known.
            Frequencies may lie below 0 and above 1: the estimate is unbiased.

        Raises
        ------
        ValueError, TypeError
            For a level out of its range, or for an estimate that was projected to the simplex or
            post-processed otherwise, which the standard error is not about.

        Notes
        -----
        The interval covers the population's value (see the class). Estimates from counts of one of two
        letters (frequencies by `GRR`, `OUE`, `OLH`, `BlockDesign`, means by `Duchi`) have exact
        Clopper-Pearson intervals, which are wider than necessary because counts are whole numbers. Means of
        other letters use Bernstein's bound for the law's largest variance below 30 reports, and a score
        interval from 30 reports on, whose level is approximate. Neither uses a variance below that of the
        law. If only the standard error is known, the interval is the normal one, or Chebyshev's below 30
        reports.
        """
        level = checks.chance("level", level)
        if self.projected:
            raise ValueError(
                "project: an interval is about the unbiased estimate; estimate with project=False"
            )
        if self.post:
            raise ValueError(f"post: an interval is about an unbiased estimate; this is one by {self.post}")
        return self._limits.limits(np.asarray(self.value), np.asarray(self.stderr), (1.0 - level) / 2.0)

    @property
    def method(self) -> str:
        """Name of the method by which intervals are made."""
        return self._limits.method

    @property
    def _limits(self) -> Limits:
        return Deviation(self.n) if self.limits is None else self.limits

    def __len__(self) -> int:
        """Return the length of the first axis of `value`; TypeError for a single number, as NumPy."""
        return len(self.value)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """Return `value`, for NumPy."""
        if dtype is None and not copy:
            return self.value
        return np.array(self.value, dtype=dtype)

    def __getitem__(self, index: Any) -> Estimate:
        """Return the estimate of some entries, by number, slice or mask, or by the label of one.

        Parameters
        ----------
        index : int, slice, array, tuple of them, or label
            As of `value`; a label stands for an entry of the last axis.

        Returns
        -------
        Estimate
            With the labels of what is left of the last axis.

        Raises
        ------
        KeyError
            For a label that is none of `labels`.
        IndexError
            As NumPy.
        """
        if isinstance(index, str) or (self.labels is not None and self.labels.dtype.kind not in "biuf"):
            index = self._by_label(index)
        labels = self.labels
        if labels is not None:
            left = np.broadcast_to(np.arange(len(labels)), self.value.shape)[index]
            last = left.reshape(-1, left.shape[-1])[0] if left.size and left.ndim else None
            kept = last is not None and len(np.unique(last)) == len(last)  # one of each: the axis is there
            labels = labels[last] if kept else None
        limits = None if self.limits is None else self.limits.at(index)
        return replace(self, value=self.value[index], stderr=self.stderr[index], labels=labels, limits=limits)

    def _by_label(self, index: Any) -> Any:
        """Return an index in which a label stands as the number of its entry."""
        if isinstance(index, tuple):
            *before, last = index
            return (*before, self._by_label(last)[-1]) if isinstance(last, str) else index
        if not isinstance(index, (str, bytes)):
            return index
        places = np.flatnonzero(self.labels == index) if self.labels is not None else np.zeros(0)
        if len(places) != 1:
            raise KeyError(f"{index!r} is not a label of the estimate")
        return (..., int(places[0]))

    def to_dict(self) -> dict[Any, float]:
        """Return the values by label, or by number where there are no labels.

        Returns
        -------
        dict
            With several axes, the keys are tuples: numbers of the first axes, and the label or number of the
            last one. For a single number, the key is ``"value"``.
        """
        return dict(zip(self._names(), self.value.ravel().tolist(), strict=True))

    def to_frame(self, backend: str | None = None) -> Any:
        """Return a data frame of a row for each entry: "label", "value" and "stderr".

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            Library of the frame. None: the first of them that is installed.

        Returns
        -------
        data frame
            Of that library. Of several axes, the numbers of the first ones stand in "axis_0", "axis_1", ...

        Raises
        ------
        MissingExtraError
            Without narwhals (extra ``frames``), or any of the libraries.
        """
        require("a frame of an estimate", ["narwhals"], "frames")
        import narwhals

        if backend is None:
            found = next((each for each in ("pandas", "polars", "pyarrow") if not missing([each])), None)
            if found is None:
                require("a frame of an estimate", ["pyarrow"], "tables")
            backend = found
        names = [name if isinstance(name, tuple) else (name,) for name in self._names()]
        *axes, last = zip(*names, strict=True)
        columns: dict[str, Any] = {f"axis_{i}": list(each) for i, each in enumerate(axes)}
        columns |= {"label": list(last), "value": self.value.ravel(), "stderr": self.stderr.ravel()}
        return narwhals.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]

    def _names(self) -> list[Any]:
        """Return the key of each entry, in the order of `value`."""
        if not self.value.ndim:
            return ["value"]
        last = range(self.value.shape[-1]) if self.labels is None else self.labels.tolist()
        if self.value.ndim == 1:
            return list(last)
        return [(*before, name) for before in np.ndindex(self.value.shape[:-1]) for name in last]

    def __str__(self) -> str:
        """Return a line for each entry, the first ones of many: value and standard error, rounded to it."""
        rows = list(self._rows())
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else [0, 0]
        lines = [f"  {name.rjust(widths[0])}  {text.rjust(widths[1])}".rstrip() for name, text in rows]
        return "\n".join([self._head(), *lines, *self._rest()])

    def _repr_html_(self) -> str:
        """Return the same as a table, for notebooks."""
        table = facts_table(self._head(), ((name, html.escape(text)) for name, text in self._rows()))
        rest = "".join(f"<p>{html.escape(each.strip())}</p>" for each in self._rest())
        return table + rest

    def _head(self) -> str:
        count = self.value.size
        kind = "with standard errors"
        if self.projected:
            kind = "projected to the simplex; standard errors before it"
        if self.post:
            kind = f"by {self.post}: biased, without standard errors"
        return f"{count:,} value{'s' * (count != 1)} of {self.n:,} report{'s' * (self.n != 1)}, {kind}"

    def _rest(self) -> list[str]:
        more, lines = self.value.size - _SHOWN, []
        if more > 0:
            lines.append(f"  and {more:,} more")
        if self.influence is not None:
            each = "this" if self.value.size == 1 else "each of them"
            lines.append(f"1 % of liars could move {each} by at most {_at_most(self.influence)}")
        return [*lines, self.doubt] if self.doubt else lines

    def _rows(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the rounded number of the entries that are shown."""
        for index in itertools.islice(np.ndindex(self.value.shape), _SHOWN):
            *before, last = index or ("",)
            name = last if self.labels is None else self.labels[last]
            value, stderr = float(self.value[index]), float(self.stderr[index])
            yield (
                ", ".join(map(str, (*before, name))),
                f"{value:.6g}" if self.post else _rounded(value, stderr),
            )


def _rounded(value: float, stderr: float) -> str:
    """Return a number and its standard error, both to two digits of the latter."""
    if not 0.0 < stderr < math.inf:
        return f"{value:.6g} ± {stderr:.2g}"
    digits = 1 - math.floor(math.log10(stderr))
    if not -1 <= digits <= _DIGITS:
        return f"{value:.6g} ± {stderr:.2g}"
    return f"{value:.{max(digits, 0)}f} ± {stderr:.{max(digits, 0)}f}"


def _at_most(bound: float) -> str:
    """Return a bound in three digits, rounded up."""
    if not 0.0 < bound < math.inf:
        return f"{bound:g}"
    unit = 10.0 ** (math.floor(math.log10(bound)) - 2)
    return f"{math.ceil(bound / unit - 1e-9) * unit:.3g}"


def frequencies(counts: ArrayLike, n: int, p: float, q: float, *, project: bool = False) -> Estimate:
    """Estimate frequencies of categories from counts of reports.

    A category is reported with probability p by those who have it and q by those who have not, so the
    expected share of its reports is m = q + f (p - q), and ``(share - q)/(p - q)`` is unbiased for its
    frequency f.

    Parameters
    ----------
    counts : array_like of int
        Reports of each category.
    n : int
        Number of reporting records, at least 1.
    p, q : float
        The two probabilities, different.
    project : bool
        Whether to project `value` to the simplex over the last axis. The frequencies are then 0 or more and
        sum to 1, but are biased. `stderr` remains that of the unbiased value.

    Returns
    -------
    Estimate
        `stderr` is sqrt(m (1 - m)/n)/abs(p - q), with m estimated by the share and limited to [q, p], where
        it must lie. It is therefore never zero because of too few reports. It covers the sampling of records,
        too. Intervals are exact (Clopper and Pearson).

    Raises
    ------
    ValueError
        If n is 0 or p equals q.
    """
    if n < 1:
        raise ValueError("reports: at least one is needed for an estimate")
    if p == q:
        raise ValueError("no unbiased estimate exists: reports do not depend on the category (p == q)")
    given = np.asarray(counts)
    share = given.astype(np.float64) / n
    value = (share - q) / (p - q)
    held = np.clip(share, min(p, q), max(p, q))
    stderr = np.sqrt(held * (1.0 - held) / n) / abs(p - q)
    exact = Counted(given, n, -q / (p - q), (1.0 - q) / (p - q))
    return Estimate(project_simplex(value) if project else value, stderr, n, projected=project, limits=exact)


def project_simplex(values: ArrayLike) -> NDArray[np.float64]:
    """Project vectors to the probability simplex: the nearest point in Euclidean distance. Biased.

    Parameters
    ----------
    values : array_like of float, shape (..., k)
        Vectors on the last axis, finite.

    Returns
    -------
    ndarray of float64
        Same shape; entries zero or more, each vector summing to 1.

    Raises
    ------
    ValueError
        For a scalar, an empty last axis, or a value that is not finite.

    Notes
    -----
    This is post-processing: epsilon does not change. The result is nearer to the truth on average, but
    biased, because rare categories are pulled to 0. It is Norm-Sub of Wang et al. (NDSS 2020): `norm_sub`.

    The projection is max(v - t, 0) for the one t that makes the sum 1. With v sorted in descending order, the
    entries that stay positive are the first j, for the largest j with v_j > (v_1 + ... + v_j - 1)/j (Held,
    Wolfe and Crowder 1974). A common shift of all entries changes nothing, and t is at least the largest
    entry less 1; so the largest is made 0 and what is below -1 (hence 0 in the end) is raised to -1, which
    keeps all digits of large inputs. The sum is 1 within a few units in the last place.
    """
    points = np.asarray(values, dtype=np.float64)
    if points.ndim == 0 or points.shape[-1] == 0:
        raise ValueError(f"values: need a last axis of at least one entry, got shape {points.shape}")
    if not np.isfinite(points).all():
        raise ValueError("values: must be finite")
    with np.errstate(over="ignore"):  # -inf becomes -1, too
        points = np.maximum(points - points.max(axis=-1, keepdims=True), -1.0)
    ordered = -np.sort(-points, axis=-1)
    shifts = (np.cumsum(ordered, axis=-1) - 1.0) / np.arange(1, points.shape[-1] + 1)
    kept = np.count_nonzero(ordered > shifts, axis=-1, keepdims=True)  # true exactly on a prefix, never empty
    # the running sum of a long vector is less exact than the pairwise one of the entries that stay
    stays = points >= np.take_along_axis(ordered, kept - 1, axis=-1)
    total = np.where(stays, points, 0.0).sum(axis=-1, keepdims=True)
    threshold = (total - 1.0) / np.count_nonzero(stays, axis=-1, keepdims=True)
    projected = np.maximum(points - threshold, 0.0)
    scaled: NDArray[np.float64] = projected / projected.sum(axis=-1, keepdims=True)
    return scaled


def indicator_variance(truth: NDArray[Any], categories: int, p: float, q: float) -> NDArray[np.float64]:
    """Return the variance of one report's unbiased indicator of every category.

    Parameters
    ----------
    truth : ndarray of int
        True categories, checked, any shape.
    categories : int
        Number of categories.
    p, q : float
        Probability of reporting a category for a record that has it, and that has not; different.

    Returns
    -------
    ndarray of float64
        One more axis, of length `categories`: p(1 - p)/(p - q)^2 at the true category, q(1 - q)/(p - q)^2
        elsewhere.
    """
    own = truth[..., None] == np.arange(categories)
    return np.where(own, p * (1.0 - p), q * (1.0 - q)) / (p - q) ** 2


def indicator_spread(categories: int, p: float, q: float) -> tuple[float, float]:
    """Return the largest entry of `indicator_variance`, and its mean over uniform categories."""
    own, other = p * (1.0 - p) / (p - q) ** 2, q * (1.0 - q) / (p - q) ** 2
    return max(own, other), (own + (categories - 1) * other) / categories
