"""Reach of a report: the decoded values that anybody may send, against the mean of honest records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks

__all__ = ["Reach", "checked_part"]


@dataclass(frozen=True, eq=False)
class Reach:
    """Decoded values of all reports that a server takes, and where the honest mean of an entry may lie.

    Attributes
    ----------
    values : ndarray of float64, shape (reports, groups)
        Decoded values: a row for each kind of report that may be the worst, a column for each group of
        entries that share a value.
    counts : ndarray of int, shape (reports, groups), or None
        How many entries of the estimate have each, whichever they are; None where column i is entry i.
    ends : (float, float)
        Where the honest mean of an entry lies.
    total : int or None
        Sum of the honest means of all entries; None where they are independent.
    chance : float
        Share of the honest reports that count for an entry, where a liar chooses for which one it counts.
    norm : float or None
        The l2 norm of a decoded vector, where that says more than the entries by themselves.

    Notes
    -----
    An estimate is the mean of decoded values. A share s of liars among its reports moves it by s times the
    decoded value less the honest mean. Where honest reports count for an entry with chance c and liars' with
    1, the liars' share of its reports is s/(s + (1 - s) c). Sources: Cheu, Smith and Ullman, "Manipulation
    attacks in local differential privacy", IEEE S&P 2021; Cao, Jia and Gong, "Data poisoning attacks to local
    differential privacy protocols", USENIX Security 2021.
    """

    values: NDArray[np.float64]
    counts: NDArray[np.int64] | None = None
    ends: tuple[float, float] = (0.0, 1.0)
    total: int | None = None
    chance: float = 1.0
    norm: float | None = None

    @classmethod
    def of_numbers(
        cls, low: ArrayLike, high: ArrayLike, ends: tuple[float, float], entries: int | None = None
    ) -> Reach:
        """Return the reach of numbers that are decoded one by one, between a least and a largest value.

        `entries` is how many there are; None where the values are those of each.
        """
        values = np.array([low, high], dtype=np.float64).reshape(2, -1)
        counts = None if entries is None else np.full((2, 1), entries, np.int64)
        return cls(values, counts, ends)

    @classmethod
    def of_counts(cls, p: float, q: float, entries: int, sizes: tuple[int, int]) -> Reach:
        """Return the reach of a report that counts for some categories, for least and most of `sizes`.

        It counts for the true one with p, for another with q: decoded, (1 - q)/(p - q), else -q/(p - q).
        """
        counts = np.array([[size, entries - size] for size in sizes], np.int64)
        values = np.tile([(1.0 - q) / (p - q), -q / (p - q)], (2, 1))
        return cls(values, counts, total=1)

    def moved(self, share: float, mean: NDArray[np.float64] | None = None) -> float:
        """Return how far a share of liars may move an entry, against given honest means or the worst ones."""
        if mean is not None and self.counts is None:
            furthest = float(np.abs(self.values - mean).max())
        else:
            least, most = self.ends if mean is None else (float(mean.min()), float(mean.max()))
            possible = self.values if self.counts is None else self.values[self.counts > 0]
            furthest = float(max(possible.max() - least, most - possible.min()))
        return self._weight(share) * furthest

    def moved_together(self, share: float, mean: NDArray[np.float64] | None = None) -> float:
        """Return how far a share of liars may move the sum of a set of entries that they choose."""
        if self.norm is not None:  # of a vector with entries m and a norm, sqrt(m) times that at most
            count = self.values.shape[1] if self.counts is None else int(self.counts[0].sum())
            away = max(map(abs, self.ends)) if mean is None else float(np.abs(mean).max())
            return self._weight(share) * (count**0.5 * self.norm + count * away)
        if mean is not None:
            return self._weight(share) * max(self._against(row, mean) for row in range(len(self.values)))
        return self._weight(share) * max(
            self._largest(values, counts, up) for values, counts in self._rows() for up in (True, False)
        )

    def _weight(self, share: float) -> float:
        """Return the share of liars among the reports that count for an entry."""
        return share / (share + (1.0 - share) * self.chance) if share else 0.0

    def _rows(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        """Yield the distinct values of each report, the largest first, and how many entries have them."""
        for row, values in enumerate(self.values):
            counts = np.ones(len(values), np.int64) if self.counts is None else self.counts[row]
            kept = counts > 0
            order = np.argsort(-values[kept], kind="stable")
            yield values[kept][order], counts[kept][order]

    def _largest(self, values: NDArray[np.float64], counts: NDArray[np.int64], up: bool) -> float:
        """Return the largest sum of decoded values less honest means, or the reverse, over sets of entries.

        With a total, honest means lie outside the set as far as they can, or in it. Either sum is concave in
        the size of the set, whose best entries come first: its largest value is at an end of a group of equal
        values or where the means no longer fit.
        """
        low, high = self.ends
        if self.total is None:
            apart = values - low if up else high - values
            return float(max((counts * np.maximum(apart, 0.0)).sum(), apart.max()))
        signed, sizes = (values, counts) if up else (-values[::-1], counts[::-1])
        ends = np.concatenate([[0], np.cumsum(sizes)])
        sums = np.concatenate([[0.0], np.cumsum(signed * sizes)])
        entries = int(ends[-1])
        at = np.unique(np.clip([1, *ends[1:], entries - self.total, self.total], 1, entries))
        means = -np.maximum(0, self.total - (entries - at)) if up else np.minimum(at, self.total)
        return float((np.interp(at, ends, sums) + means).max())

    def _against(self, row: int, mean: NDArray[np.float64]) -> float:
        """Return the largest sum for one report and given honest means.

        Where a report's values may be those of any entries, the largest go to those of the least mean.
        """
        values = self.values[row]
        if self.counts is not None and mean.size > 1:
            values = np.repeat(np.sort(values), self.counts[row][np.argsort(values)])[::-1]
            apart, counts = values - np.sort(mean), np.ones(len(values))
        else:
            apart = values - mean
            counts = np.ones(len(values)) if self.counts is None else self.counts[row].astype(np.float64)
        return float(max(counts @ np.maximum(apart, 0.0), counts @ np.maximum(-apart, 0.0)))

    def checked_mean(self, mean: ArrayLike | None) -> NDArray[np.float64] | None:
        """Return honest means as an array, one or one for each entry; refuse what they cannot be."""
        if mean is None:
            return None
        if self.ends[0] == self.ends[1]:
            raise ValueError("mean: is not supported, since an entry is a range; leave mean out")
        means = np.asarray(checks.numbers("mean", mean), dtype=np.float64).reshape(-1)
        entries = self.values.shape[1] if self.counts is None else int(self.counts[0].sum())
        if len(means) not in (1, entries):
            raise ValueError(f"mean: must be one number, or {entries} of them, got {len(means)}")
        low, high = self.ends
        if not ((means >= low) & (means <= high)).all():  # written so that NaN fails
            raise ValueError(f"mean: must be from {low:g} to {high:g}")
        return means


def checked_part(name: str, value: float) -> float:
    """Return a share of the clients: a number from 0 to 1."""
    share = checks.real(name, value)
    if not 0.0 <= share <= 1.0:  # written so that NaN fails
        raise ValueError(f"{name}: must be from 0 to 1, got {share}")
    return share
