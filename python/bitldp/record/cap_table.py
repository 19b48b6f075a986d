"""Joint tables of attributes that one channel released together: unbiased cells and their law."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base import checks
from bitldp.estimate import saved
from bitldp.estimate.accumulators import BatchAccumulator, unpacked
from bitldp.estimate.estimates import LIARS, Estimate, project_simplex
from bitldp.estimate.intervals import ByLetters, LetterLaw, Table
from bitldp.letters.reach import Reach
from bitldp.letters.spread import Mixed
from bitldp.record.cap_law import CapLaw

__all__ = ["MOST_TOGETHER", "TableAccumulator", "TableLaw", "table_law"]

MOST_TOGETHER = 3
"""The most attributes of one table."""

MOST_CELLS = 1 << 22
"""The most cells of one table."""

_BLOCK = 1 << 22  # entries of the products that are summed at once


@dataclass(frozen=True, eq=False)
class TableLaw:
    """The law of a cell of a joint table, of attributes that are all drawn.

    Attributes
    ----------
    categories, sizes : tuple of int
        Categories of each attribute, k, and of its subset, w.
    gains : dict
        g_U of `CapLaw` for each set U of the attributes, by their positions; 1 for none.
    patterns : ndarray of float64, shape (2, 2, ...)
        P(which of the subsets hold the true category).
    chance : float
        That all of the attributes are drawn.

    Notes
    -----
    In a report, let b_j be 1 where the category of a cell is in the subset of attribute j. The indicator that
    all categories of the cell are the true ones is the product of (1[true] - 1/k_j) + 1/k_j, and the mean of
    prod over U of (b_j - w_j/k_j) is g_U times the product of 1[true] - 1/k_j over U. So

        L = sum over U of prod over U of (b_j - w_j/k_j)/g_U, times prod over the others of 1/k_j

    is unbiased. The product of the attributes' own unbiased indicators is not: they are not independent.
    """

    categories: tuple[int, ...]
    sizes: tuple[int, ...]
    gains: dict[tuple[int, ...], float]
    patterns: NDArray[np.float64]
    chance: float

    @cached_property
    def letters(self) -> NDArray[np.float64]:
        """L by pattern of b, shape (2, 2, ...)."""
        order = len(self.categories)
        result = np.zeros((2,) * order)
        for pattern in product((0, 1), repeat=order):
            result[pattern] = sum(
                np.prod(
                    [
                        pattern[j] - self.sizes[j] / self.categories[j]
                        if j in chosen
                        else 1.0 / self.categories[j]
                        for j in range(order)
                    ]
                )
                / gain
                for chosen, gain in self.gains.items()
            )
        return result

    @cached_property
    def rows(self) -> NDArray[np.float64]:
        """P(pattern of b | which categories of the cell are true), shape (2,) * order twice."""
        order = len(self.categories)
        result = np.zeros((2,) * (2 * order))
        for true in product((0, 1), repeat=order):
            row = self.patterns
            for axis, (own, k, w) in enumerate(zip(true, self.categories, self.sizes, strict=True)):
                # of a category that is not the true one, w - 1 or w of k - 1 others are in the subset
                inside = np.array([0.0, 1.0]) if own else np.array([w, w - 1.0]) / (k - 1.0)
                row = np.moveaxis(np.tensordot(row, np.stack([1.0 - inside, inside]), (axis, 1)), -1, axis)
            result[true] = row
        return result

    @cached_property
    def second(self) -> NDArray[np.float64]:
        """E[L^2] by which categories of the cell are true, shape (2, 2, ...)."""
        order = len(self.categories)
        return np.tensordot(self.rows, np.square(self.letters), order)

    @cached_property
    def letter_law(self) -> LetterLaw:
        """Law of a letter, for intervals."""
        points = np.zeros(self.letters.size)
        points[-1] = 1.0
        moments = self.second.ravel() - points + 0.25  # about 1/2
        letters = self.letters.ravel()
        reach = float(letters.max() - letters.min())
        rows = self.rows.reshape(len(points), len(points))
        mixed = Mixed.of_points(points, moments)
        return LetterLaw(mixed, reach, jump=reach / 2.0, table=lambda: Table(points, rows, letters))

    def variance(self, true: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the variance of a record's decoded indicator of cells, the draw of attributes included.

        Parameters
        ----------
        true : ndarray of bool, shape (..., order)
            Which categories of a cell are the record's.
        """
        second = self.second[tuple(np.moveaxis(true.astype(np.intp), -1, 0))]
        whole = true.all(axis=-1)
        middle = 1.0 / float(np.prod([float(each) for each in self.categories]))
        # Where they are not all drawn the cell counts as the middle.
        about = second - 2.0 * middle * whole + middle**2
        return about / self.chance - np.square(whole - middle)

    @property
    def reach(self) -> Reach:
        """Decoded values of what anybody may send."""
        cells = int(np.prod(self.categories))
        one = Reach.of_numbers(self.letters.min(), self.letters.max(), (0.0, 1.0), cells)
        return replace(one, chance=self.chance)


@lru_cache(maxsize=256)
def table_law(law: CapLaw, kinds: tuple[int, ...]) -> TableLaw:
    """Return the law of a table of attributes of given kinds.

    Raises
    ------
    ValueError
        If they are never drawn together, if reports leave out how they depend on each other, or if there are
        too many cells.
    """
    chance = law.chance(kinds)
    if not chance:
        m = sum(law.drawn[0].counts)
        raise ValueError(f"attributes: a report covers {m} of them, never these together")
    gains: dict[tuple[int, ...], float] = {(): 1.0}
    order = range(len(kinds))
    for some in (each for size in order for each in combinations(order, size + 1)):
        rest = tuple(kinds[j] for j in order if j not in some)
        gain = law.gain(tuple(kinds[j] for j in some), rest)
        if not gain:
            raise ValueError(
                f"attributes: with hits={law.hits}, reports carry no joint information about them; "
                "choose other hits"
            )
        gains[some] = float(gain)
    categories = tuple(law.kinds[kind].categories for kind in kinds)
    if math.prod(categories) > MOST_CELLS:
        raise ValueError(f"attributes: a table must have at most {MOST_CELLS} cells")
    sizes = tuple(law.kinds[kind].size for kind in kinds)
    return TableLaw(categories, sizes, gains, law.patterns(kinds), float(chance))


class TableAccumulator(BatchAccumulator):
    """Exact counts of the categories that a report has of several attributes together.

    Parameters
    ----------
    mechanism : RecordCap
        Whose reports are counted.
    attributes : tuple of int
        The attributes of the table, in the order of its axes.
    law : TableLaw
        The law of a cell.
    """

    kind = "table"

    mechanism: Any

    def __init__(self, mechanism: Any, attributes: tuple[int, ...], law: TableLaw) -> None:
        super().__init__(mechanism)
        self.attributes = attributes
        self._law = law
        order = range(len(attributes))
        self._sets = [chosen for size in order for chosen in combinations(order, size + 1)]
        # Reports whose subsets hold a category of each attribute of a set, for all sets.
        self.counts = {chosen: np.zeros(self._shape(chosen), np.int64) for chosen in self._sets}

    def _shape(self, chosen: Sequence[int]) -> tuple[int, ...]:
        return tuple(self._law.categories[j] for j in chosen)

    def _same(self, other: object) -> None:
        super()._same(other)
        assert isinstance(other, TableAccumulator)
        if other.attributes != self.attributes:
            raise ValueError("other: is a table of other attributes")

    def _update(self, reports: Any, output: str, records: int | None, threads: int | None) -> None:
        checks.choice("output", output, ("codes", "packed"))
        mechanism = self.mechanism
        answers = list(mechanism.answers(unpacked(mechanism, reports, records)))
        common = answers[self.attributes[0]].records
        for attribute in self.attributes[1:]:
            common = np.intersect1d(common, answers[attribute].records, assume_unique=True)
        total = saved.together("reports", self.n, len(common))
        chosen = []
        for attribute in self.attributes:
            part: Any = mechanism.mechanisms[attribute]
            own = answers[attribute]
            kept = own.reports[np.searchsorted(own.records, common)]
            chosen.append(
                (part.size == 1, checks.codes("reports", kept, part._cells if part.size == 1 else 2))
            )
        fresh = {each: _counted([chosen[j] for j in each], self._shape(each)) for each in self._sets}
        for each, more in fresh.items():
            self.counts[each] += more
        self.n = total

    def merge(self, other: TableAccumulator) -> None:
        """Add the contents of another accumulator of the same table.

        Raises
        ------
        ValueError, TypeError
            For an accumulator of another mechanism, kind or table, or if there would be 2**63 reports or
            more.
        """
        self._same(other)
        self.n = saved.together("other", self.n, other.n)
        for each, more in other.counts.items():
            self.counts[each] += more

    def estimate(self, *, project: bool = False) -> Estimate:
        """Estimate the share of every cell, without bias.

        Parameters
        ----------
        project : bool
            Whether to project the table to the simplex (which makes it biased).

        Raises
        ------
        ValueError
            If there is no report of all the attributes.
        """
        if not self.n:
            raise ValueError("reports: at least one of all these attributes is needed for an estimate")
        n, order, letters = self.n, len(self.attributes), self._law.letters
        value, squares = np.zeros(self._shape(range(order))), np.zeros(self._shape(range(order)))
        for pattern in product((0, 1), repeat=order):
            times = self._with(pattern)
            value += letters[pattern] * times
            squares += np.square(letters[pattern]) * times
        value /= n
        law = self._law.letter_law
        seen = np.maximum(squares - n * np.square(value), 0.0) / max(1, n - 1)
        variance = np.maximum(seen if n > 1 else np.full(value.shape, np.nan), law.mixed.bounds(value)[0])
        labels = self.mechanism._dictionaries[self.attributes[-1]]
        shown = project_simplex(value.ravel()).reshape(value.shape) if project else value
        return Estimate(
            shown,
            np.sqrt(variance / n),
            n,
            None if labels is None else labels.labels,
            project,
            influence=self._law.reach.moved(LIARS),
            limits=ByLetters(variance, n, law),
        )

    def _with(self, pattern: tuple[int, ...]) -> NDArray[np.float64]:
        """Return how many reports have exactly some of the categories of each cell."""
        inside = tuple(j for j, own in enumerate(pattern) if own)
        outside = [j for j, own in enumerate(pattern) if not own]
        total = np.zeros(self._shape(range(len(pattern))))
        for size in range(len(outside) + 1):
            for more in combinations(outside, size):
                chosen = tuple(sorted((*inside, *more)))
                counts = self.counts[chosen] if chosen else np.array(self.n)
                spread = counts.reshape(
                    [self._law.categories[j] if j in chosen else 1 for j in range(len(pattern))]
                )
                total += (-1.0) ** size * spread
        return total

    def _state(self) -> dict[str, Any]:
        counts = [self.counts[each].ravel().tolist() for each in self._sets]
        return {"n": self.n, "attributes": list(self.attributes), "counts": counts}

    def _restore(self, state: dict[str, Any]) -> None:
        n, lists = saved.whole(state.get("n")), state.get("counts")
        if state.get("attributes") != list(self.attributes):
            raise ValueError("text: is of a table of other attributes")
        if not isinstance(lists, list) or len(lists) != len(self._sets):
            raise ValueError("text: the contents are damaged")
        counts: dict[tuple[int, ...], NDArray[np.int64]] = {}
        for each, values in zip(self._sets, lists, strict=True):
            shape = self._shape(each)
            counts[each] = saved.counts(values, (int(np.prod(shape)),), n, exclusive=False).reshape(shape)
        self.counts, self.n = counts, n

    @classmethod
    def from_json(cls, text: str, mechanism: Any) -> TableAccumulator:
        """Return a table with the contents of a JSON text; see `Accumulator.from_json`."""
        document = saved.document(text)
        state = document.get("state") if isinstance(document, dict) else None
        attributes = state.get("attributes") if isinstance(state, dict) else None
        if not isinstance(attributes, list) or not hasattr(mechanism, "table_accumulator"):
            raise ValueError("text: is not a table of this mechanism")
        accumulator: TableAccumulator = mechanism.table_accumulator(tuple(attributes))
        accumulator._restore(accumulator._open(text))
        return accumulator


def _counted(parts: Sequence[tuple[bool, NDArray[Any]]], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Return how many reports have each combination of categories: of codes, or of bits for each category."""
    if all(single for single, _ in parts):
        codes = np.ravel_multi_index(tuple(each.astype(np.intp) for _, each in parts), shape)
        return np.bincount(codes, minlength=int(np.prod(shape))).reshape(shape)
    result = np.zeros((int(np.prod(shape[:-1])), shape[-1]))
    records = len(parts[0][1])
    step = max(1, _BLOCK // max(1, result.shape[0]))
    for start in range(0, records, step):
        tables = [
            (each[start : start + step, None] == np.arange(k)) if single else each[start : start + step]
            for (single, each), k in zip(parts, shape, strict=True)
        ]
        left = np.ones((len(tables[0]), 1))
        for each in tables[:-1]:
            left = (left[:, :, None] * each[:, None, :]).reshape(len(each), -1)
        result += left.T @ tables[-1].astype(np.float64)  # sums of so few ones are exact
    return np.rint(result).astype(np.int64).reshape(shape)
