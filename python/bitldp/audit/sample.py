"""Reports for an audit: many copies of an input, in blocks of bounded memory, with fresh keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.audit.events import clopper_pearson
from bitldp.base.keys import RandomSource, keys
from bitldp.mechanism.law import arguments

__all__ = ["Source", "parts"]

_BLOCK = 1 << 18  # symbols that are held at once
_CHANCE = 1e-9  # of calling a mechanism stale that is not


def parts(reports: Any) -> tuple[NDArray[Any], ...]:
    """Return reports as a tuple of arrays, even if there is just one."""
    return tuple(np.asarray(each) for each in (reports if isinstance(reports, tuple) else (reports,)))


class Source:
    """Source of an audit's reports.

    Parameters
    ----------
    mechanism
        What has `randomize`.
    options : dict
        Options of its `randomize`.
    rng : None, int, SeedSequence or Generator
        None: the mechanism takes its own fresh keys. Otherwise each call gets another key of one generator.
    """

    def __init__(self, mechanism: Any, options: dict[str, Any], rng: RandomSource) -> None:
        self._mechanism = mechanism
        self._options = options
        if rng is not None and not isinstance(rng, np.random.Generator):
            keys(rng, 1)  # refuses what is no source of randomness
            rng = np.random.default_rng(rng)
        self._rng = rng

    def _call(self, record: Any, rows: int, rng: RandomSource) -> Any:
        return self._mechanism.randomize(*arguments(record, rows), rng=rng, **self._options)

    def blocks(self, record: Any, count: int) -> Iterator[Any]:
        """Yield `count` reports of a record, a block at a time.

        Raises
        ------
        ValueError
            If the mechanism does not return one report for each record.
        """
        rows = 16
        while count:
            rows = min(rows, count)
            reports = self._call(record, rows, self._rng)
            if any(each.ndim == 0 or len(each) != rows for each in parts(reports)):
                raise ValueError("mechanism: randomize must return one report for each record")
            yield reports
            count -= rows
            # an input may be wider than its report: a vector, of which one coordinate is selected
            wide = sum(np.size(each) for each in (record if isinstance(record, tuple) else (record,)))
            width = max(1, wide, sum(each.size for each in parts(reports)) // rows)
            rows = max(1, _BLOCK // width)

    def repeats(self, record: Any, most: int) -> int:
        """Return how many reports a second call repeated beyond chance; 0 where chance explains them.

        Both calls are made as an application makes them, without `rng`. How often two independent reports
        agree is bounded from the pairs within one call; if the chance that all of them agree is still above
        1e-9 at `most` reports (a mechanism of large epsilon hardly ever changes its input), nothing is
        concluded.
        """
        rows = min(64, most)
        while True:
            first, second = (parts(self._call(record, rows, None)) for _ in range(2))
            if not all(np.array_equal(one, other) for one, other in zip(first, second, strict=True)):
                return 0
            pairs = rows // 2
            same = np.ones(pairs, dtype=bool)
            for each in first:
                flat = each.reshape(rows, -1)
                same &= (flat[:pairs] == flat[pairs : 2 * pairs]).all(axis=1)
            _, high = clopper_pearson(np.array([np.count_nonzero(same)]), max(1, pairs), _CHANCE / 2.0)
            if pairs and rows * np.log(high[0]) < np.log(_CHANCE / 2.0):
                return rows
            width = sum(each.size for each in first) // rows
            if rows == most or 4 * rows * width > 4 * _BLOCK:
                return 0
            rows = min(4 * rows, most)
