"""Mean of unbiased letters by feature: counted by the core where it can be, summed as numbers elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.estimate import saved
from bitldp.estimate.accumulators import Accumulated, BatchAccumulator, unpacked
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.grouping import Grouping
from bitldp.estimate.intervals import ByLetters, Counted, LetterLaw, Limits
from bitldp.estimate.statistics import SampledCounts, Statistic, kept, of_sampled
from bitldp.release.sampled import SampledReports

__all__ = ["MeanAccumulator", "SampledMeanAccumulator", "checked_pairs"]


Pairs = tuple[NDArray[Any], NDArray[Any]]
"""Coordinates and codes of sampled reports, of the same shape."""

Summed = tuple[int, NDArray[np.float64], NDArray[np.float64]]
"""Number of records, their mean, and the sum of their squared deviations."""

_BATCH = 1 << 20  # letters decoded at once: bounds the working memory of an update to a few tens of MB


def together(one: Summed, other: Summed, name: str = "reports") -> Summed:
    """Return the moments of two sets of records, as by Chan, Golub and LeVeque (1979)."""
    (n, mean, m2), (more, their_mean, their_m2) = one, other
    total = n + more
    if not total:
        return one
    with np.errstate(over="ignore", invalid="ignore"):  # looked at next
        shift = their_mean - mean
        mean = mean + shift * (more / total)
        m2 = m2 + their_m2 + shift * shift * (n / total * more)
    if not (np.isfinite(mean).all() and np.isfinite(m2).all()):
        raise ValueError(f"{name}: the sum of squares would pass the range of doubles")
    return total, mean, m2


def countable(name: str, reports: Any) -> NDArray[Any]:
    """Return reports as an array of a dtype that the core counts; refuse other than integers."""
    array = np.atleast_1d(checks.plain(name, reports))  # the report of a single value is one record
    if array.dtype in (np.uint8, np.uint16, np.uint32, np.bool_):
        return array
    whole = checks.codes(name, array, 1 << 32)
    return whole.astype(np.uint32)


class MeanAccumulator(BatchAccumulator):
    """Mean and variance of unbiased letters by feature, merged as by Chan, Golub and LeVeque (1979).

    Parameters
    ----------
    mechanism : Mechanism
        Whose reports are accumulated.
    features : int
        Letters of a record.
    letters : callable
        Letters of a batch of reports, shape (n, features).
    statistic : Statistic, optional
        What the core counts of reports; without it, letters are summed as numbers.

    Notes
    -----
    Intervals follow from what the mechanism knows of a letter, its `_letter_law`, where it has one.
    """

    kind = "mean"

    def __init__(
        self,
        mechanism: Accumulated,
        features: int,
        letters: Callable[[ArrayLike], NDArray[np.float64]],
        statistic: Statistic | None = None,
    ) -> None:
        super().__init__(mechanism)
        self._letters = letters
        self._summed: Summed = (0, np.zeros(features), np.zeros(features))  # reports added as letters
        self._statistic = statistic
        self._counted = 0
        self._counts: NDArray[Any] = np.zeros(
            (), np.int64
        )  # of the statistic's shape as soon as there are any

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean of the letters by feature."""
        return self._moments()[1]

    @property
    def m2(self) -> NDArray[np.float64]:
        """Sum of squared deviations of the letters by feature."""
        return self._moments()[2]

    def _moments(self) -> Summed:
        if self._statistic is None or not self._counted:
            return self._summed
        return together(self._summed, (self._counted, *self._statistic.moments(self._counts, self._counted)))

    def _update(self, reports: Any, output: str, records: int | None, threads: int | None) -> None:
        if self._statistic is None or not self._count(reports, output, records, threads):
            self._add_letters(unpacked(self.mechanism, reports, records))

    def _count(self, reports: Any, output: str, records: int | None, threads: int | None) -> bool:
        """Add what the core can count; False where the form of the reports is another."""
        result = self._shaped(reports, output, records)
        if result is None:
            return False
        n, codes = result
        assert self._statistic is not None  # what was asked before
        try:
            counts = self._statistic.count(codes, output, n, threads)
        except ValueError:
            if output == "codes" and not isinstance(codes, tuple):
                checks.codes("reports", codes, self._statistic.alphabet)  # says where, by row and column
            raise
        self.take(n, counts)
        return True

    def by_group(self, reports: Any, output: str, groups: Grouping) -> NDArray[Any] | None:
        """Return what is counted of each group; see `Accumulator.by_group`."""
        if self._statistic is None or output != "codes":
            return None
        result = self._shaped(reports, output, None)
        if result is None or isinstance(result[1], tuple):
            return None
        n, codes = result
        self._count(codes, output, None, None)  # which refuses what is no report
        return self._statistic.by_group(codes.reshape(n, -1), groups)

    def take(self, n: int, integers: NDArray[Any]) -> None:
        """Add what was counted of n reports."""
        assert self._statistic is not None  # what gives integers has one
        total = saved.together("reports", self.n, n)
        counts = integers.astype(self._statistic.dtype, copy=False)
        self._counts = self._counts + counts if self._counted else counts
        self._counted += n
        self.n = total

    def _shaped(self, reports: Any, output: str, records: int | None) -> tuple[int, Any] | None:
        """Return how many records there are, and the reports as the core counts them."""
        columns = self.mechanism._report_parts[0][0]
        if records is not None:
            return records, checks.plain("reports", reports)
        array = countable("reports", reports)
        if output == "codes":
            checks.records("reports", array, columns)
            return array.size // columns, array
        width = columns * self.mechanism._report_parts[0][1]
        if array.ndim != 2 or array.shape[1] != width:
            raise ValueError(f"reports: shape must be (n, {width}), got {array.shape}")
        return len(array), array

    def _add_letters(self, reports: Any) -> None:
        """Add letters in batches that bound the working memory; all of the reports or nothing."""
        batch = np.asarray(reports)
        if batch.ndim < 2:
            self._add(self._letters(batch))
            return
        before = self.n, self._summed
        step = max(1, _BATCH // max(1, len(self._summed[1])))
        try:
            for start in range(0, max(1, len(batch)), step):
                self._add(self._letters(batch[start : start + step]))
        except (TypeError, ValueError):
            self.n, self._summed = before
            raise

    def _add(self, letters: NDArray[np.float64]) -> None:
        if len(letters):
            mean = letters.mean(axis=0)
            self._combine(len(letters), mean, np.square(letters - mean).sum(axis=0))

    def _combine(
        self, n: int, mean: NDArray[np.float64], m2: NDArray[np.float64], name: str = "reports"
    ) -> None:
        total = saved.together(name, self.n, n)
        self._summed = together(self._summed, (n, mean, m2), name)
        self.n = total

    def kept(self) -> Any:
        """Return the contents, for `restore`."""
        return self.n, self._summed, self._counted, self._counts

    def restore(self, kept: Any) -> None:
        """Take back contents that `kept` returned: what was added since is forgotten."""
        self.n, self._summed, self._counted, self._counts = kept

    def merge(self, other: MeanAccumulator) -> None:
        """Add the contents of another accumulator of the same mechanism.

        Raises
        ------
        ValueError, TypeError
            For an accumulator of another mechanism or kind, or if there would be 2**63 reports or more.
            Nothing is added then.
        """
        self._same(other)
        n = saved.together("other", self.n, other.n)
        self._summed = together(self._summed, other._summed, "other")
        self._counted += other._counted
        self._counts = self._counts + other._counts
        self.n = n

    def estimate(self) -> Estimate:
        """Estimate the mean of every feature, with the standard error of the sample.

        Raises
        ------
        ValueError
            If nothing has been accumulated.
        """
        if not self.n:
            raise ValueError("reports: at least one is needed for an estimate")
        n, mean, m2 = self._moments()
        variance = m2 / (n - 1) if n > 1 else np.full_like(mean, np.nan)
        law = getattr(self.mechanism, "_letter_law", None)
        return self._judged(mean_of(mean.copy(), variance, n, law))

    def _state(self) -> dict[str, Any]:
        _, mean, m2 = self._summed
        state = {"n": self.n, "mean": mean.tolist(), "m2": m2.tolist()}
        return (
            {**state, "counted": self._counted, "counts": self._counts.tolist()} if self._counted else state
        )

    def _restore(self, state: dict[str, Any]) -> None:
        n, counted = saved.whole(state.get("n")), saved.whole(state.get("counted", 0))
        if counted > n or (counted and self._statistic is None):
            raise ValueError("text: the number of counted reports is damaged")
        self._summed = (n - counted, *saved.moments(state, len(self._summed[1]), n - counted))
        if counted and self._statistic is not None:
            shape = self._statistic.shape
            self._counts = saved.integers(state.get("counts"), shape).astype(self._statistic.dtype)
        self.n, self._counted = n, counted


def checked_pairs(reports: Any, features: int, k: int, alphabet: int) -> SampledReports:
    """Return reports as arrays of shape (n, k), after checking them against the mechanism's form."""
    if not isinstance(reports, (tuple, list)) or len(reports) != 2:
        raise TypeError("reports: must be a pair (indices, codes), as randomize gives it")
    indices = checks.codes("reports.indices", reports[0], features)
    codes = checks.codes("reports.codes", reports[1], alphabet)
    for name, array in (("indices", indices), ("codes", codes)):
        if array.ndim not in (1, 2) or array.shape[-1] != k or array.shape != indices.shape:
            raise ValueError(
                f"reports.{name}: shape must be (n, {k}) or ({k},), the same for both, got {array.shape}"
            )
    indices, codes = indices.reshape(-1, k), codes.reshape(-1, k)
    ordered = np.sort(indices, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if repeated.any():
        raise ValueError(f"reports.indices: record {int(np.argmax(repeated))} has a coordinate twice")
    return SampledReports(indices, codes)


def mean_of(
    mean: NDArray[np.float64], variance: NDArray[np.float64], n: int, law: LetterLaw | None
) -> Estimate:
    """Return the estimate of a mean from n reports.

    Parameters
    ----------
    mean, variance : ndarray of float64
        Of the letters, by entry; the variance of the sample is NaN for one report.
    n : int
        Reports, 1 or more.
    law : LetterLaw or None
        What is known of a letter; None: its standard error alone.

    Returns
    -------
    Estimate
        Its standard error is that of the sample, and not below that of the law: equal letters by chance are
        no certainty.
    """
    limits: Limits | None = None
    if law is not None:
        variance = np.maximum(variance, law.mixed.bounds(mean)[0])
        limits = ByLetters(variance, n, law)
        if law.both is not None:
            low, high = law.both
            share = np.clip((mean - low) / (high - low), 0.0, 1.0)
            limits = Counted(np.rint(share * n).astype(np.int64), n, low, high)
    return Estimate(mean, np.sqrt(variance / n), n, limits=limits)


class _Apart:
    """Coordinates and codes of reports one after the other, in arrays that double as they fill up."""

    def __init__(self) -> None:
        self.size = 0
        self._both = np.zeros((2, 0), np.uint32)

    @property
    def pairs(self) -> Pairs:
        """The coordinates, and the codes, shape (size,) each."""
        return self._both[0, : self.size], self._both[1, : self.size]

    def add(self, pairs: Pairs) -> None:
        """Add reports."""
        size = self.size + pairs[0].size
        if size > self._both.shape[1]:
            both = np.empty((2, max(64, 2 * size)), np.uint32)
            both[:, : self.size] = self._both[:, : self.size]
            self._both = both
        for own, part in zip(self._both, pairs, strict=True):
            own[self.size : size] = part.ravel()
        self.size = size

    def kept(self) -> _Apart:
        """Return an independent copy: reports that are added to the one do not change the other."""
        result = _Apart()
        result.size, result._both = self.size, self._both.copy()
        return result


class SampledMeanAccumulator(MeanAccumulator):
    """Mean and variance of sampled coordinates; the others count as the middle.

    Parameters
    ----------
    mechanism : Mechanism
        Whose reports are accumulated.
    features : int
        Coordinates of a record.
    middle : float
        Decoded value of a coordinate that was not sampled.
    deviations : ndarray of float64, shape (alphabet,)
        Decoded value of each code, less `middle`.
    check : callable
        Checks reports and returns them with shape (n, k).
    codes : bool
        Whether codes are counted where sums would do for the mean.

    Notes
    -----
    Reports are kept as they are while they name fewer coordinates than a record has, and counted together
    then: a report costs what its own coordinates do, and no more memory is taken than for the counts.
    """

    def __init__(
        self,
        mechanism: Accumulated,
        features: int,
        middle: float,
        deviations: NDArray[np.float64],
        check: Callable[[Any], SampledReports],
        *,
        codes: bool = False,
    ) -> None:
        counted = (
            kept(SampledCounts(features, middle, deviations, codes=True))
            if codes
            else of_sampled(features, middle, deviations)
        )
        super().__init__(mechanism, features, self.dense, counted)
        self._middle = middle
        self._deviations = deviations
        self._check = check
        self._by_code = codes
        self._apart = _Apart()  # reports that are not yet in the counts

    def _shaped(self, reports: Any, output: str, records: int | None) -> tuple[int, Any]:
        if records is not None:
            reports = unpacked(self.mechanism, reports, records)
        indices, codes = self._check(reports)
        return len(codes), (countable("reports.indices", indices), countable("reports.codes", codes))

    def _count(self, reports: Any, output: str, records: int | None, threads: int | None) -> bool:
        n, pairs = self._shaped(reports, output, records)
        saved.together("reports", self.n, n)
        self._keep(pairs)
        self._counted += n
        self.n += n
        return True

    def _keep(self, pairs: Pairs) -> None:
        """Keep counted reports apart, or add all of them up where they name many coordinates."""
        features = len(self._summed[1])
        if self._apart.size + pairs[0].size < features:
            self._apart.add(pairs)
            return
        self._settle()
        if pairs[0].size < features:
            self._apart.add(pairs)
        else:
            self._add_counts(pairs)

    def _settle(self) -> None:
        """Add the reports that are kept apart to the counts."""
        if self._apart.size:
            self._add_counts(self._apart.pairs)
            self._apart = _Apart()

    def _add_counts(self, pairs: Pairs) -> None:
        assert self._statistic is not None  # where reports are counted
        counts = self._statistic.count(pairs, "codes", None, None)
        self._counts = self._counts + counts.astype(self._statistic.dtype, copy=False)

    def _moments(self) -> Summed:
        if not self._apart.size or self._counts.ndim:
            self._settle()
            return super()._moments()
        # Of the coordinates that were named, by the same arithmetic; all others are in the middle.
        indices, codes = self._apart.pairs
        named, places = np.unique(indices, return_inverse=True)
        few = SampledCounts(len(named), self._middle, self._deviations, codes=self._by_code)
        counts = few.count((places.astype(np.uint32), codes), "codes", None, None)
        _, mean, m2 = self._summed
        mean, m2 = np.full_like(mean, self._middle), np.zeros_like(m2)
        mean[named], m2[named] = few.moments(counts.astype(few.dtype, copy=False), self._counted)
        return together(self._summed, (self._counted, mean, m2))

    def kept(self) -> Any:
        """Return the contents, for `restore`."""
        return super().kept(), self._apart.kept()

    def restore(self, kept: Any) -> None:
        """Take back contents that `kept` returned: what was added since is forgotten."""
        before, self._apart = kept
        super().restore(before)

    def merge(self, other: MeanAccumulator) -> None:
        """Add the contents of another accumulator of the same mechanism; see `MeanAccumulator.merge`."""
        super().merge(other)
        if isinstance(other, SampledMeanAccumulator) and other._apart.size:
            self._keep(other._apart.pairs)

    def _state(self) -> dict[str, Any]:
        self._settle()
        return super()._state()

    @property
    def middle(self) -> float:
        """Letter of a coordinate that was not sampled."""
        return self._middle

    def named(self, reports: Any) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the coordinates that reports name, and their letters, shape (n, k) both."""
        indices, codes = self._check(reports)
        return indices.astype(np.intp), self._middle + self._deviations[codes]

    def dense(self, reports: ArrayLike) -> NDArray[np.float64]:
        """Return the letters of all coordinates, shape (n, features)."""
        indices, named = self.named(reports)
        letters = np.full((len(named), len(self._summed[1])), self._middle)
        np.put_along_axis(letters, indices, named, axis=1)
        return letters
