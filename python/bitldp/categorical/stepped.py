"""Progressions whose steps are public: drawn without looking at a record, beside its cell or implied."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import CHUNK, Coins, Design
from bitldp.base import checks
from bitldp.release.base import Source
from bitldp.release.draws import public_key, whole_numbers

__all__ = ["SteppedReports", "Steps"]


class SteppedReports(NamedTuple):
    """What is released of n categories by progressions with public steps.

    Attributes
    ----------
    steps : ndarray of unsigned int, shape (n,)
        The step of each progression less 1, chosen without looking at the data.
    cells : ndarray of unsigned int, the same shape
        A number of the modulus.
    """

    steps: NDArray[Any]
    cells: NDArray[Any]


class Steps:
    """Cells of progressions whose steps are given.

    Parameters
    ----------
    design : Design
        Progressions. Whatever the step is, the ranks of cells have its window's law: so a report has its
        epsilon given the step.
    seed : int
        Of the steps that both sides imply.
    """

    def __init__(self, design: Design, seed: int) -> None:
        cells = design.cells
        high = design.high / 2.0**64
        order = np.arange(cells, dtype=np.uint32)
        self._ranks = Design.translates(cells, design.width, high, order, design.mute)
        if (self._ranks.high, self._ranks.epsilon) != (design.high, design.epsilon):
            raise ArithmeticError("the law of the ranks is not that of the progressions")
        self._cells, self._count = cells, (cells - 1) // 2
        self._key = public_key(seed, "step")

    @property
    def parts(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(columns, bits) of a step and of a cell."""
        return (1, max(1, (self._count - 1).bit_length())), (1, (self._cells - 1).bit_length())

    def drawn(self, key: Source, records: int, first_chunk: int) -> NDArray[np.intp]:
        """Return steps less 1 for records, drawn without looking at them."""
        return whole_numbers(key, records, self._count, 0 if isinstance(key, Coins) else first_chunk)

    def numbered(self, records: int, first: int) -> NDArray[np.intp]:
        """Return the steps less 1 of the numbers first, first + 1, ...: those of the public key's words."""
        chunk, skip = divmod(first, CHUNK)
        return whole_numbers(self._key, records, self._count, chunk, skip)

    def release(
        self, x: NDArray[Any], steps: NDArray[np.intp], key: Source, threads: int | None, first_chunk: int
    ) -> SteppedReports:
        """Return reports of checked categories, given their steps less 1.

        A rank is drawn whatever the category is, which then enters an addition: neither a branch nor an
        address depends on it.
        """
        drawn = self._ranks.randomize(np.zeros(len(x), np.uint32), key, "codes", None, threads, first_chunk)
        ranks, cells = drawn.astype(np.int64), self._cells
        chosen = steps.astype(np.int64) + 1
        # The multiples of a step come back to 0 where it shares a divisor; then those beside them follow.
        offsets = (ranks * chosen + ranks * np.gcd(chosen, cells) // cells) % cells
        places = offsets + (0 if self._ranks.mute else x.astype(np.int64))
        places -= cells * (places >= cells)
        return self._small(steps, places)

    def _small(self, steps: NDArray[Any], cells: NDArray[Any]) -> SteppedReports:
        dtypes = (np.min_scalar_type(most - 1) for most in (self._count, self._cells))
        return SteppedReports(
            *(part.astype(dtype) for part, dtype in zip((steps, cells), dtypes, strict=True))
        )

    def beside(self, cells: Any, first: int) -> SteppedReports:
        """Return checked cells with the steps that were implied."""
        found = checks.codes("reports", cells, self._cells)
        checks.records("reports", found, 1)
        return self._small(self.numbered(found.size, first).reshape(found.shape), found)

    def codes(self, reports: Any) -> NDArray[np.uint32]:
        """Return checked reports as codes of the design: step times modulus and cell."""
        if not isinstance(reports, (tuple, list)) or len(reports) != 2:
            raise TypeError("reports: must be a pair (steps, cells), as randomize gives it")
        steps = checks.codes("reports.steps", reports[0], self._count)
        cells = checks.codes("reports.cells", reports[1], self._cells)
        if steps.shape != cells.shape:
            raise ValueError(f"reports.steps: shape must be {cells.shape}, got {steps.shape}")
        found: NDArray[np.uint32] = steps.astype(np.uint32) * np.uint32(self._cells) + cells.astype(np.uint32)
        return found
