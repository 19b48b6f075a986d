"""Mean of vectors whose reports are each about a rotation of theirs."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Rotation
from bitldp.estimate import saved
from bitldp.estimate.accumulators import Accumulated, BatchAccumulator, unpacked
from bitldp.estimate.estimates import Estimate
from bitldp.estimate.intervals import Deviation
from bitldp.estimate.means import MeanAccumulator

__all__ = ["CohortMeanAccumulator", "RotatedMeanAccumulator"]

_BLOCK = 1 << 22  # counts that are spread out at once


class Rotating(Protocol):
    """Mechanism that rotates vectors, and checks reports about them."""

    @property
    def rotation(self) -> Rotation:
        """The public rotations."""

    @property
    def count(self) -> int:
        """Reports of a vector."""

    def flat(self, reports: Any) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return checked reports: numbers of rotations and codes, shape (n, count) each."""


class RotatedMeanAccumulator(MeanAccumulator):
    """Mean and variance of the decoded vectors of reports: each one's rotation is undone by the core.

    Parameters
    ----------
    mechanism : Mechanism
        Whose reports are accumulated.
    release : RotatedRelease
        Whose rotations they are about.
    scale : float
        Length of the decoded vector of one report, the lift among its coordinates.

    Notes
    -----
    The core adds integers, so that sums do not depend on the order of reports until they pass 2**53 steps.
    """

    kind = "rotated mean"

    def __init__(self, mechanism: Accumulated, release: Rotating, scale: float) -> None:
        super().__init__(mechanism, release.rotation.features, np.asarray)
        self._release = release
        self._scale = scale
        self._seen: tuple[int, int] | None = None  # least and largest number of a rotation

    def _update(self, reports: Any, output: str, records: int | None, threads: int | None) -> None:
        rotations, codes = self._release.flat(unpacked(self.mechanism, reports, records))
        n, count, rotation = len(codes), self._release.count, self._release.rotation
        if not n:
            return
        if count == 1:
            total, squares = rotation.sums(rotations[:, 0], codes[:, 0], self._scale, threads)
        else:  # a record's value is the mean of its reports
            step = max(1, _BLOCK // (count * rotation.features))
            total, squares = np.zeros(rotation.features), np.zeros(rotation.features)
            for start in range(0, n, step):
                part = slice(start, start + step)
                letters = rotation.letters(
                    rotations[part].ravel(), codes[part].ravel(), self._scale / count, threads
                )
                values = letters.reshape(-1, count, rotation.features).sum(axis=1)
                total, squares = total + values.sum(axis=0), squares + np.square(values).sum(axis=0)
        mean = total / n
        apart = np.maximum(squares - n * np.square(mean), 0.0) if n > 1 else np.zeros_like(mean)
        self._combine(n, mean, apart)
        self._look(int(rotations.min()), int(rotations.max()))

    def _look(self, least: int, most: int) -> None:
        low, high = self._seen or (least, most)
        self._seen = (min(low, least), max(high, most))

    def kept(self) -> Any:
        """Return the contents, for `restore`."""
        return super().kept(), self._seen

    def restore(self, kept: Any) -> None:
        """Take back contents that `kept` returned: what was added since is forgotten."""
        before, self._seen = kept
        super().restore(before)

    def merge(self, other: MeanAccumulator) -> None:
        """Add the contents of another accumulator of the same mechanism; see `MeanAccumulator.merge`."""
        super().merge(other)
        seen = getattr(other, "_seen", None)
        if seen is not None:
            self._look(*seen)

    def estimate(self) -> Estimate:
        """Estimate the mean of the vectors, with the standard error of the sample.

        Raises
        ------
        ValueError
            If nothing has been accumulated, or if all of several reports are about one rotation: the mean of
            one rotation is biased, however many reports there are.
        """
        if self.n * self._release.count > 1 and self._seen is not None and self._seen[0] == self._seen[1]:
            raise ValueError(
                "reports.rotations: all are equal, and one rotation for everybody is biased; leave "
                "first= out, give every record its own rotation, or ask for one rotation by cohorts=1"
            )
        return super().estimate()

    def _state(self) -> dict[str, Any]:
        return super()._state() | {"rotations": list(self._seen or ())}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        seen = state.get("rotations")
        if not isinstance(seen, list) or len(seen) != (2 if self.n else 0):
            raise ValueError("text: the rotations are damaged")
        self._seen = (saved.whole(seen[0]), saved.whole(seen[1])) if seen else None


class CohortMeanAccumulator(BatchAccumulator):
    """Mean of vectors of which cohorts share a rotation: reports are counted, and the counts rotated back.

    Parameters
    ----------
    mechanism, release, scale
        As of `RotatedMeanAccumulator`.
    cohorts : int
        How many rotations there are.

    Notes
    -----
    What a shared rotation leaves is the same for all of a cohort, and does not fall with their number. So the
    standard error is that of the cohorts' sums about the common mean, and NaN for a single one.
    """

    kind = "cohort mean"

    def __init__(self, mechanism: Accumulated, release: Rotating, scale: float, cohorts: int) -> None:
        super().__init__(mechanism)
        self._release = release
        self._scale = scale
        self._cohorts = cohorts
        self._keys = np.zeros(0, np.uint64)  # cohort * 2 D + code, ascending, of those that were seen
        self._counts = np.zeros(0, np.uint64)

    @property
    def _codes(self) -> int:
        return 2 * self._release.rotation.dimensions

    def _update(self, reports: Any, output: str, records: int | None, threads: int | None) -> None:
        rotations, codes = self._release.flat(unpacked(self.mechanism, reports, records))
        n = saved.together("reports", self.n, len(codes))
        keys = rotations.ravel().astype(np.uint64) * np.uint64(self._codes) + codes.ravel()
        self._add(*np.unique(keys, return_counts=True))
        self.n = n

    def _add(self, keys: NDArray[Any], counts: NDArray[Any]) -> None:
        both, places = np.unique(np.concatenate([self._keys, keys]), return_inverse=True)
        total = np.zeros(len(both), np.uint64)
        np.add.at(total, places, np.concatenate([self._counts, counts.astype(np.uint64)]))
        self._keys, self._counts = both.astype(np.uint64), total

    def merge(self, other: CohortMeanAccumulator) -> None:
        """Add the contents of another accumulator of the same mechanism; see `MeanAccumulator.merge`."""
        self._same(other)
        self.n = saved.together("other", self.n, other.n)
        self._add(other._keys, other._counts)

    def estimate(self) -> Estimate:
        """Estimate the mean of the vectors, with a standard error from what cohorts differ by.

        Raises
        ------
        ValueError
            If nothing has been accumulated.
        """
        if not self.n:
            raise ValueError("reports: at least one is needed for an estimate")
        reports = self.n * self._release.count
        features = self._release.rotation.features
        total, squares, mixed = np.zeros(features), np.zeros(features), np.zeros(features)
        of_all, groups = 0.0, 0
        for sizes, sums in self._sums():
            total += sums.sum(axis=0)
            squares += np.square(sums).sum(axis=0)
            mixed += sizes @ sums
            of_all += float(sizes @ sizes)
            groups += int(np.count_nonzero(sizes))
        mean = total / reports
        if groups < 2:
            return self._judged(Estimate(mean, np.full_like(mean, np.nan), self.n))
        # the sum over cohorts of (sum - size * mean)^2, which are about as independent as cohorts are many
        apart = squares - 2.0 * mean * mixed + np.square(mean) * of_all
        spread = np.sqrt(np.maximum(apart, 0.0) * groups / (groups - 1)) / reports
        # A sum over a cohort is nearly normal, and there are as many as there are cohorts.
        return self._judged(Estimate(mean, spread, self.n, limits=Deviation(groups, normal=True)))

    def _sums(self) -> Any:
        """Yield how many reports cohorts have, and their sums, some cohorts at a time."""
        step = max(1, _BLOCK // self._codes)
        places = (self._keys // np.uint64(self._codes)).astype(np.int64)
        present = np.unique(places)
        for start in range(0, len(present), step):
            some = present[start : start + step]
            table = np.zeros((len(some), self._codes), np.uint64)
            inside = slice(*np.searchsorted(places, [some[0], some[-1] + 1]))
            rows = np.searchsorted(some, places[inside])
            table[rows, (self._keys[inside] % np.uint64(self._codes)).astype(np.int64)] = self._counts[inside]
            sums = self._release.rotation.undo_counts(some.astype(np.uint32), table, self._scale)
            yield table.sum(axis=1).astype(np.float64), sums

    def _state(self) -> dict[str, Any]:
        return {"n": self.n, "keys": self._keys.tolist(), "counts": self._counts.tolist()}

    def _restore(self, state: dict[str, Any]) -> None:
        n, given = saved.whole(state.get("n")), state.get("keys")
        shape = (len(given),) if isinstance(given, list) else (-1,)
        keys, counts = saved.integers(given, shape), saved.integers(state.get("counts"), shape)
        most = self._cohorts * self._codes
        if any(key >= most for key in keys) or sum(counts.tolist()) != n * self._release.count:
            raise ValueError("text: the counts are damaged")
        self._keys, self._counts = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        self._add(keys.astype(np.uint64), counts.astype(np.uint64))
        self.n = n
