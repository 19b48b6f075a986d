"""Integer counts of reports, from which the mean and the squared deviations of their letters follow.

The core counts codes, bits and packed bytes alike; letters are applied once, to the counts. Counts are exact,
so batches and merges may come in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bitldp._core import count_words, histogram, sampled_histogram, sampled_sums, sums
from bitldp.base import checks
from bitldp.estimate.grouping import Grouping

Moments = tuple[NDArray[np.float64], NDArray[np.float64]]

_ENTRIES = 1 << 22  # of a histogram that is still kept: 32 MB
_AFFINE = 1e-12  # of the largest letter: what letters may be off a straight line


class Statistic(ABC):
    """Integers that are added up over reports.

    Attributes
    ----------
    shape : tuple of int
        Of the integers.
    dtype : type
        int64 where no integer can pass the number of reports, else Python's own integers.
    """

    shape: tuple[int, ...]
    dtype: Any = np.int64
    alphabet: int  # codes are below it

    @abstractmethod
    def count(self, reports: Any, form: str, records: int | None, threads: int | None) -> NDArray[Any]:
        """Return the integers of a batch, or raise; `form` is "codes", "bits" or "packed"."""

    def by_group(self, codes: NDArray[Any], groups: Grouping) -> NDArray[Any] | None:
        """Return the integers of each group of codes, shape (n, columns), that were counted before.

        None where each group is counted by itself.
        """
        return None

    @abstractmethod
    def moments(self, counts: NDArray[Any], n: int) -> Moments:
        """Return mean and sum of squared deviations of the letters of n >= 1 records, by column."""


class CodeCounts(Statistic):
    """How often each code was reported in each column: for letters of any kind.

    Parameters
    ----------
    columns : int
        Codes of a record.
    letters : ndarray of float64, shape (alphabet,)
        Decoded value of each code.
    """

    def __init__(self, columns: int, letters: NDArray[np.float64]) -> None:
        self.shape = (columns, len(letters))
        self.alphabet = len(letters)
        self._middle = float(letters[0] + (letters[-1] - letters[0]) / 2.0)
        self._letters = letters - self._middle

    def count(self, reports: Any, form: str, records: int | None, threads: int | None) -> NDArray[Any]:
        return counts_of(reports, self.shape[0], self.alphabet, form, records, threads)

    def by_group(self, codes: NDArray[Any], groups: Grouping) -> NDArray[Any] | None:
        return groups.codes(codes, self.alphabet)

    def moments(self, counts: NDArray[Any], n: int) -> Moments:
        mean = counts @ self._letters / n
        squares = counts @ np.square(self._letters)
        return self._middle + mean, np.maximum(squares - n * np.square(mean), 0.0)


class CodeSums(Statistic):
    """Sums of codes and of their squares in each column: for letters on a straight line, of any alphabet."""

    dtype = object

    def __init__(self, columns: int, letters: NDArray[np.float64]) -> None:
        self.shape = (columns, 2)
        self._columns, self.alphabet = columns, len(letters)
        self._start = float(letters[0])
        self._step = float(letters[-1] - letters[0]) / max(1, len(letters) - 1)

    def count(self, reports: Any, form: str, records: int | None, threads: int | None) -> NDArray[Any]:
        return sums(reports, self._columns, self.alphabet, form=form, records=records, threads=threads)  # type: ignore[arg-type]

    def by_group(self, codes: NDArray[Any], groups: Grouping) -> NDArray[Any] | None:
        most = self.alphabet - 1
        if most >> 16:  # squares may pass 32 bits, and sums of them what integers of 64 hold
            return None
        first, second = groups.sums(codes, most), groups.sums(np.square(codes, dtype=np.uint32), most**2)
        return None if first is None or second is None else np.stack([first, second], axis=2)

    def moments(self, counts: NDArray[Any], n: int) -> Moments:
        first = np.array([total / n for total in counts[:, 0]])
        rest = np.array([(n * square - total * total) / n for total, square in counts])
        return self._start + self._step * first, self._step**2 * rest


def counts_of(
    reports: Any, columns: int, alphabet: int, form: str, records: int | None, threads: int | None
) -> NDArray[np.int64]:
    """Return how often each code was reported in each column, shape (columns, alphabet), or raise."""
    try:
        result = histogram(reports, columns, alphabet, form=form, records=records, threads=threads)  # type: ignore[arg-type]
    except ValueError:
        if form == "codes":
            checks.codes("reports", reports, alphabet)  # says where, by row and column
        raise
    return result.astype(np.int64)


def of_letters(columns: int, letters: NDArray[np.float64]) -> Statistic | None:
    """Return the statistic that letters of codes need; None where it would take too much memory."""
    line = np.linspace(letters[0], letters[-1], len(letters))
    if np.abs(letters - line).max() <= _AFFINE * np.abs(letters).max():
        return CodeSums(columns, letters)
    return CodeCounts(columns, letters) if columns * len(letters) <= _ENTRIES else None


class WordLetters(Protocol):
    """The letters of sign-magnitude words: see `bitldp.release.code_words.CodeLetters`."""

    bits: int
    weights: NDArray[np.float64]

    @property
    def pattern(self) -> NDArray[np.intp]:
        """Law of each column."""

    @property
    def bit_letters(self) -> NDArray[np.float64]:
        """Letters of a reported 0 and 1, shape (laws, bits, 2)."""

    @property
    def sign_letters(self) -> NDArray[np.float64]:
        """Letters of a reported sign bit, shape (laws, 2)."""


class WordCounts(Statistic):
    """Bits of sign-magnitude words in each column, alone and by twos.

    The value of a word is S M, with S the letter of its sign and M = base + sum_i a_i b_i that of its other
    bits. So sums of M and of M^2 over the words of either sign are sums of counts.
    """

    def __init__(self, columns: int, letters: WordLetters) -> None:
        others = letters.bits - 1
        self.shape = (columns, 2, 1 + others + others * (others - 1) // 2)
        self._columns, self._letters = columns, letters
        self.alphabet = 1 << letters.bits

    def count(self, reports: Any, form: str, records: int | None, threads: int | None) -> NDArray[Any]:
        bits = self._letters.bits
        result = count_words(reports, self._columns, bits, form=form, records=records, threads=threads)  # type: ignore[arg-type]
        return result.view(np.int64)

    def moments(self, counts: NDArray[Any], n: int) -> Moments:
        law, letters = self._letters.pattern, self._letters
        total, square = np.zeros(self._columns), np.zeros(self._columns)
        signs = np.stack([counts[:, 0] - counts[:, 1], counts[:, 1]]).astype(np.float64)
        for number in np.unique(law):
            of_law = law == number
            values = letters.sign_letters[number]
            # By sign and column, the sums of M and of M^2.
            result = np.einsum("sck,mk->msc", signs[:, of_law], self._weights(number))
            total[of_law] = values @ result[0]
            square[of_law] = np.square(values) @ result[1]
        mean = total / n
        return mean, np.maximum(square - n * np.square(mean), 0.0)

    def _weights(self, law: int) -> NDArray[np.float64]:
        """Return what each count adds to the sums of M and of M^2, where words follow one law."""
        letters = self._letters
        zero, one = letters.bit_letters[law, 1:].T
        base = float(zero @ letters.weights)
        steps = (one - zero) * letters.weights
        low, high = np.triu_indices(len(steps), 1)
        first = np.concatenate([[base], steps, np.zeros(len(low))])
        second = np.concatenate([[base * base], steps * (2.0 * base + steps), 2.0 * steps[low] * steps[high]])
        return np.stack([first, second])


class SampledCounts(Statistic):
    """Counts of each coordinate's reports, where some are sampled and the others count as the middle.

    Parameters
    ----------
    features : int
        Coordinates of a record.
    middle : float
        Decoded value of a coordinate that was not sampled.
    deviations : ndarray of float64, shape (alphabet,)
        Decoded value of each code, less `middle`.
    codes : bool
        Whether codes are counted where sums would do for the mean.
    """

    def __init__(
        self, features: int, middle: float, deviations: NDArray[np.float64], *, codes: bool = False
    ) -> None:
        self._middle, self._deviations, self._features = middle, deviations, features
        self.alphabet = len(deviations)
        self._sums = not codes and isinstance(of_letters(features, deviations), CodeSums)
        self.shape = (features, 3 if self._sums else len(deviations))
        self.dtype = object if self._sums else np.int64

    def count(self, reports: Any, form: str, records: int | None, threads: int | None) -> NDArray[Any]:
        work = sampled_sums if self._sums else sampled_histogram
        return work(reports[0], reports[1], self._features, len(self._deviations))

    def moments(self, counts: NDArray[Any], n: int) -> Moments:
        if self._sums:
            start, end = self._deviations[[0, -1]]
            step = (end - start) / max(1, len(self._deviations) - 1)
            times, first, second = counts.astype(np.float64).T
            total = start * times + step * first
            square = start * start * times + 2.0 * start * step * first + step * step * second
        else:
            total, square = counts @ self._deviations, counts @ np.square(self._deviations)
        mean = total / n
        return self._middle + mean, np.maximum(square - n * np.square(mean), 0.0)


def kept(statistic: Statistic) -> Statistic:
    """Return a statistic whose integers are what is asked for; refuse one of too much memory."""
    if np.prod(statistic.shape, dtype=object) > _ENTRIES:
        raise ValueError(
            f"features: {statistic.shape[0]} of {statistic.shape[1]} codes are too many to be counted one by "
            "one; estimate them in groups"
        )
    return statistic


def of_sampled(features: int, middle: float, deviations: NDArray[np.float64]) -> SampledCounts | None:
    """Return the statistic of sampled coordinates; None where it would take too much memory."""
    kept = of_letters(features, deviations) is not None
    return SampledCounts(features, middle, deviations) if kept else None
