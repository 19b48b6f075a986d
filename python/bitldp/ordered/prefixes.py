"""Reports about beginnings of words, and the search that lengthens the frequent ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.estimate import saved
from bitldp.estimate.accumulators import Accumulated, BatchAccumulator
from bitldp.estimate.estimates import Estimate, frequencies
from bitldp.ordered.words import Words
from bitldp.release.hashed import Hashed

__all__ = ["PrefixAccumulator"]

_MOST_WORDS = 4096
_KEPT = 64  # beginnings that are lengthened, at least
_MOST_CANDIDATES = 1 << 22  # of one search step: a few hundred megabytes

Parts = tuple[NDArray[Any], NDArray[np.uint32], NDArray[Any]]


class PrefixAccumulator(BatchAccumulator):
    """Reports of hashed beginnings, kept as they are: a word that nobody thought of yet cannot be counted.

    Parameters
    ----------
    mechanism : Mechanism
        Whose reports are kept.
    words : Words
        What the words are.
    hashed : Hashed
        How their beginnings were released.
    lengths : tuple of int
        Units of the beginnings of each group.
    read : callable
        Checks reports, given the number of records of packed ones (else None); returns three arrays.
    """

    kind = "prefixes"

    def __init__(
        self,
        mechanism: Accumulated,
        words: Words,
        hashed: Hashed,
        lengths: tuple[int, ...],
        read: Callable[[Any, int | None], Parts],
    ) -> None:
        super().__init__(mechanism)
        self._words, self._hashed, self._lengths, self._read = words, hashed, lengths, read
        self._batches: list[Parts] = []

    def _update(self, reports: Any, output: str, records: int | None, threads: int | None) -> None:
        found = self._read(reports, records)
        self.n = saved.together("reports", self.n, len(found[0]))
        self._batches.append(found)

    def merge(self, other: PrefixAccumulator) -> None:
        """Add the contents of another accumulator of the same mechanism.

        Raises
        ------
        ValueError, TypeError
            For an accumulator of another mechanism or kind, or if there would be 2**63 reports or more.
        """
        self._same(other)
        self.n = saved.together("other", self.n, other.n)
        self._batches += other._batches

    def _reports(self) -> Parts:
        """Return all reports as three arrays."""
        if not self._batches:
            raise ValueError("reports: at least one is needed for an estimate")
        groups, functions, codes = (np.concatenate(part) for part in zip(*self._batches, strict=True))
        self._batches = [(groups, functions, codes)]
        return self._batches[0]

    def estimate(self, t: int = 10, *, threads: int | None = None) -> Estimate:
        """Find the t most frequent words; see `HeavyHitters.estimate_top`.

        Raises
        ------
        ValueError
            If a group has no reports yet.
        """
        t = checks.integer("t", t, 1, _MOST_WORDS)
        threads = checks.stream(threads, 0)[0]
        groups, functions, codes = self._reports()
        candidates: NDArray[Any] = self._words.all(self._lengths[0])
        for group, length in enumerate(self._lengths):
            those = groups == group
            n = int(np.count_nonzero(those))
            if n == 0:
                raise ValueError(f"reports: none of the {self.n} is of group {group} of {len(self._lengths)}")
            supports = self._hashed.supports(
                functions[those], codes[those].astype(np.uint32), self._words.keys(candidates), threads
            )
            if length == self._lengths[-1]:
                break
            # Those whose support is the largest are lengthened; among equals, the first.
            best = np.argsort(-supports, kind="stable")[: max(_KEPT, 2 * t)]
            step = self._lengths[group + 1] - length
            most = max(1, _MOST_CANDIDATES // self._words.symbols**step)
            candidates = self._words.longer(candidates[best[:most]], step)
        best = np.argsort(-supports, kind="stable")[:t]
        found = frequencies(supports[best], n, *self._hashed.chances())
        return replace(found, n=self.n, labels=self._words.labels(candidates[best]))

    def _state(self) -> dict[str, Any]:
        parts: Any = self._reports() if self.n else ()
        return {"n": self.n, "reports": [part.tolist() for part in parts]}

    def _restore(self, state: dict[str, Any]) -> None:
        n, reports = saved.whole(state.get("n")), state.get("reports")
        if not isinstance(reports, list) or len(reports) != (3 if n else 0):
            raise ValueError("text: the reports are damaged")
        if not n:
            return
        parts = [saved.integers(part, (n,)) for part in reports]
        try:
            found = self._read([part.astype(np.int64) for part in parts], None)
        except (ValueError, TypeError, OverflowError):
            raise ValueError("text: the reports are damaged") from None
        self._batches, self.n = [found], n
