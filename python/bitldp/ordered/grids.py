"""Two-dimensional ranges: a grid of each axis and one of both, of which a record answers about one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.categorical.blocks import BlockDesign
from bitldp.client.program import ClientProgram
from bitldp.client.record import ClientRecord, Type
from bitldp.estimate.estimates import Estimate, project_simplex
from bitldp.letters.reach import Reach
from bitldp.mechanism.attributes.base import AttributesAccumulator
from bitldp.mechanism.attributes.shared import SharedBudget
from bitldp.mechanism.base import Takes
from bitldp.mechanism.described import spreads
from bitldp.mechanism.law import Experiment, Pair
from bitldp.mechanism.parameters import Budget, at_least
from bitldp.ordered.ranges import NodeLaw, sets_law
from bitldp.release.base import Call

__all__ = ["HDG"]

_MOST = 1 << 20  # values of an axis
_FINEST = 1024, 128  # cells of an axis
_UNEVEN = 0.7, 0.03  # alpha of both kinds of grids, of the paper's Section 5.4
_BLENDED = 4.0  # records of any cell that are counted with those of a standard error
_TYPICAL = 9  # ends of an axis whose ranges' variances are averaged

Ends = tuple[ArrayLike, ArrayLike]
"""Start and stop of ranges of one axis."""


def _sides(name: str, value: Any) -> tuple[int, int]:
    if isinstance(value, (str, bytes)) or not np.iterable(value) or len(tuple(value)) != 2:
        raise TypeError(f"{name}: must be a pair of numbers of values")
    first, second = (checks.integer(f"{name}[{i}]", each, 2, _MOST) for i, each in enumerate(value))
    return first, second


def _cells(name: str, value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    line, square = _sides(name, value)
    if line > _FINEST[0] or square > _FINEST[1] or line % square:
        raise ValueError(
            f"{name}: must be (g1, g2) up to {_FINEST}, the first a multiple of the second, got {value}"
        )
    return line, square


def finest(epsilon: float, users: int, least: int) -> tuple[int, int]:
    """Return the cells of an axis of both kinds of grids, with the least error by the guideline.

    With A = 3 e^eps/(n (e^eps - 1)^2), a fourth of the variance of a cell, a range of half an axis sums g/2
    cells of a line: 2 A g + (a/g)^2 is least at g^3 = a^2/A. Half of both axes are g^2/4 cells of a square:
    A g^2 + (2 b/g)^2 is least at g^4 = 4 b^2/A. The second terms are what ranges miss that end within cells.
    """
    if epsilon == 0.0:
        return 2, 2
    spent = min(epsilon, 60.0)
    noise = 3.0 / users * math.exp(spent) / math.expm1(spent) ** 2
    line, square = (_UNEVEN[0] ** 2 / noise) ** (1 / 3), (4.0 * _UNEVEN[1] ** 2 / noise) ** 0.25
    cells = max(2, min(round(square), least, _FINEST[1]))
    times = max(1, min(round(line / cells), least // cells, _FINEST[0] // cells))
    return times * cells, cells


@dataclass(frozen=True, eq=False, repr=False)
class HDG(SharedBudget):
    """Hybrid-dimensional grids (HDG): for shares of ranges on two ordered axes, alone and together.

    A public random number picks which grid a record answers about, by a block design over its cells: the
    finer one of the first axis or of the second, or the coarser one of both.

    Parameters
    ----------
    categories : (int, int)
        Values of both axes: integers from 0, in order; 2 to 2**20 each.
    epsilon : float
        Exact epsilon of a record, finite, zero or more: a record answers once, with all of it.
    users : int
        Expected number of records. It determines `cells` if they are None.
    cells : (int, int), optional
        g1, the cells of each single axis, 2 to 1024, and g2, the cells of each axis in the grid of both, 2 to
        128. g1 is a multiple of g2, and neither exceeds the smaller number of values. The attribute then
        holds the chosen numbers.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records hold any two pairs of values; which grid was drawn is public and independent of them.
    A report is a pair (indices, codes) of shape (n, 1) each, as in `Hierarchy`.

    A range that covers all of one axis is answered by the grid of the other axis; other ranges by the grid of
    both. Ranges that end at `edges` of cells are estimated without bias. Within a cell, records are assumed
    to be spread evenly; other ranges are biased as far as they are not. Standard errors are in closed form.
    They cover random bits and the sampling of records, but not that bias. With ``consistent=True``, the rows
    and columns of the grid of both are averaged with the grids of the axes, weighted by their variances, and
    all are projected to shares of 0 or more. These estimates are often closer, but biased, and have no
    interval.

    The guideline for `cells` balances both errors with the constants .7 and .03 of the paper. Source: Yang,
    Wang, Li, Cheng and Su, "Answering multi-dimensional range queries under local differential privacy",
    VLDB 2020 (PVLDB 14(3)), Sections 4 and 5.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> pairs = np.random.default_rng(1).integers(0, [64, 100], (90_000, 2))
    >>> mechanism = bitldp.HDG((64, 100), epsilon=2.0, users=90_000)
    >>> reports = mechanism.randomize(pairs, rng=2)
    >>> quarter = mechanism.estimate_range(reports, (0, 32), (0, 50))
    >>> bool(abs(quarter.value - 0.25) < 5.0 * quarter.stderr)
    True
    """

    categories: Annotated[Any, _sides]
    _: KW_ONLY
    epsilon: Budget
    users: Annotated[int, at_least(1, 1 << 50)] = 100_000
    cells: Annotated[Any, _cells] = None

    _no_mean: ClassVar[str] = "its reports are about ranges; use estimate_range"
    _takes: ClassVar[Takes | None] = None
    _laws: tuple[NodeLaw, ...] = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        cells = self.cells or finest(self.epsilon, self.users, min(self.categories))
        if cells[0] > min(self.categories):
            raise ValueError(f"cells: at most {min(self.categories)}, the fewest values, got {cells[0]}")
        self._set(cells=cells, spend="sample", k=1)  # as the parameters of `Attributes`
        parts = [each for each in self._spend(3) if isinstance(each, BlockDesign)]
        laws = tuple(sets_law(*each.probabilities(), each.blocks.cells, each.blocks.width) for each in parts)
        self._set(_laws=laws)

    def _of(self, epsilon: float) -> list[Any]:
        line, square = self.cells
        return [BlockDesign(size, epsilon=epsilon) for size in (line, line, square * square)]

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example: two axes of a hundred values."""
        return {"epsilon": epsilon, "categories": (100, 100)}

    @property
    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First values of the cells of the grid of both, by axis, and how many there are behind the last."""
        first, second = (self._bounds(axis, self.cells[1]) for axis in (0, 1))
        return first, second

    def _bounds(self, axis: int, cells: int) -> NDArray[np.int64]:
        return -(-np.arange(cells + 1) * self.categories[axis] // cells)

    def _codes(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the cells of pairs of values, shape (n, 3)."""
        line, square = (pairs * cells // np.array(self.categories) for cells in self.cells)
        return np.column_stack([line, square @ np.array([self.cells[1], 1])])

    def _pairs(self, name: str, x: Any) -> NDArray[np.int64]:
        checks.records(name, x, 2)
        table = checks.codes(name, x, _MOST).reshape(-1, 2)
        if (table >= np.array(self.categories)).any():
            raise ValueError(f"{name}: integers must be below {self.categories}")
        return table.astype(np.int64)

    @property
    def columns(self) -> int:
        """Grids, of which a record answers about one."""
        return 3

    def _ends(self) -> tuple[Any, Any]:
        return np.zeros(2, np.int64), np.array(self.categories) - 1

    def _values(self, record: Any) -> list[Any]:
        found: list[Any] = self._codes(self._pairs("pair", record))[0].tolist()
        return found

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return two pairs, and the law of their reports unless they share a cell."""
        ends = self._ends() if pair is None else pair
        one, other = map(self._values, ends)
        if any(mine == theirs for mine, theirs in zip(one, other, strict=True)):
            return Experiment(ends, ("one pair", "another"))  # a grid's law is of two of its cells
        return super().extremes(pair)

    def _program(self, numbers: Type) -> ClientProgram:
        (first, second), (line, square) = self.categories, self.cells
        cells = (
            ((0, line, first, 1),),
            ((1, line, second, 1),),
            ((0, square, first, square), (1, square, second, 1)),
        )
        record = ClientRecord.of_codes((first, second), 2)
        return replace(super()._program(numbers), record=record, cells=cells)

    def _perturb(self, x: NDArray[Any], call: Call) -> Any:
        pairs = self._pairs("x", x)
        return self._released([(0, self._codes(pairs))], len(pairs), call)

    def _check_informative(self) -> None:
        if self.guarantee.record == 0.0:
            raise self._uninformative("pairs")

    def accumulator(self) -> GridAccumulator:
        """Return an empty accumulator of all grids; see `Mechanism.accumulator`."""
        self._check_informative()
        return GridAccumulator(self)

    def estimate_range(
        self, reports: Any, first: Ends, second: Ends, *, consistent: bool = False
    ) -> Estimate:
        """Estimate the share of the records that lie in ranges of both axes.

        Parameters
        ----------
        reports : SampledReports
            Reports of n >= 1 records, as `randomize` gives them.
        first, second : (array_like of int, array_like of int)
            Start and stop of ranges of each axis, the stop outside; all four broadcast.
        consistent : bool
            Whether grids are averaged and projected first, which makes the shares biased.

        Returns
        -------
        Estimate
            Of the broadcast shape.

        Raises
        ------
        ValueError, TypeError
            If no unbiased decode exists (epsilon 0), for a grid without reports, for a report or an end out
            of range, or a stop below its start.
        """
        return self.accumulator()._filled(reports).estimate_range(first, second, consistent=consistent)

    def estimate_frequencies(self, reports: Any, *, project: bool = False) -> tuple[Estimate, ...]:  # type: ignore[override]
        """Estimate the shares of the cells of the three grids, without bias.

        Parameters
        ----------
        reports : SampledReports
            As for `estimate_range`.
        project : bool
            Whether to project those of each grid to the simplex (which makes them biased).

        Returns
        -------
        tuple of Estimate
            Shapes (g1,), (g1,) and (g2 * g2,), the second axis last.
        """
        result: tuple[Estimate, ...] = self.accumulator()._filled(reports).estimate(project=project)
        return result

    def _weights(self, first: Ends, second: Ends) -> tuple[tuple[int, ...], NDArray[Any], NDArray[Any]]:
        """Return shape of ranges, which grid answers each, and what it weighs in every cell of both axes."""
        named = zip(("first", "second"), (first, second), self.categories, strict=True)
        ends = [checks.codes(name, each, size + 1) for name, pair, size in named for each in pair]
        starts0, stops0, starts1, stops1 = np.broadcast_arrays(*ends)
        if (starts0 > stops0).any() or (starts1 > stops1).any():
            raise ValueError("first, second: a stop must not be below its start")
        full0, full1 = (
            (start == 0) & (stop == size)
            for start, stop, size in zip((starts0, starts1), (stops0, stops1), self.categories, strict=True)
        )
        grid = np.where(full1, 0, np.where(full0, 1, 2)).ravel()
        sides = [(starts0.ravel(), stops0.ravel()), (starts1.ravel(), stops1.ravel())]
        return starts0.shape, grid, np.array(sides)

    def _asked(self, grid: int, ends: NDArray[Any]) -> NDArray[np.float64]:
        """Return what ranges weigh in the cells of a grid, shape (m, cells); ends of shape (2, 2, m)."""
        if grid < 2:
            return self._overlap(grid, self.cells[0], ends[grid])
        rows, columns = (self._overlap(axis, self.cells[1], ends[axis]) for axis in (0, 1))
        return (rows[:, :, None] * columns[:, None, :]).reshape(len(rows), self.cells[1] ** 2)

    def _overlap(self, axis: int, cells: int, ends: NDArray[Any]) -> NDArray[np.float64]:
        bounds = self._bounds(axis, cells).astype(np.float64)
        low, high = (np.clip(each[:, None], bounds[:-1], bounds[1:]) for each in ends)
        return np.asarray((high - low) / np.diff(bounds))

    def range_variance(self, first: Ends, second: Ends) -> NDArray[np.float64]:
        """Return n times the variance of the estimated share of ranges, in closed form.

        Parameters
        ----------
        first, second : (array_like of int, array_like of int)
            Start and stop of ranges of each axis, the stop outside; all four broadcast.

        Returns
        -------
        ndarray of float64
            Of the broadcast shape. All cells are taken to be as frequent, and every grid to have as many of
            the n reports; the sampling of records is included.

        Raises
        ------
        ValueError
            If no unbiased decode exists (epsilon 0), or for an end out of range.
        """
        self._check_informative()
        shape, grids, ends = self._weights(first, second)
        result = np.zeros(len(grids))
        for grid, law in enumerate(self._laws):
            mine = grids == grid
            weights = self._asked(grid, ends[:, :, mine])
            result[mine] = 3.0 * law.variance(weights, np.full(weights.shape[1], 1.0 / weights.shape[1]))
        return result.reshape(shape)

    def _typical(self) -> NDArray[np.float64]:
        """Return the variances of ranges between ends that are spread evenly over both axes."""
        sides = [
            np.unique(np.linspace(0, size, _TYPICAL).round().astype(np.int64)) for size in self.categories
        ]
        pairs = [np.triu_indices(len(side), 1) for side in sides]
        (a, b), (c, d) = ((side[i], side[j]) for side, (i, j) in zip(sides, pairs, strict=True))
        return self.range_variance((a[:, None], b[:, None]), (c, d))

    def _mean_of(self, parts: Sequence[Any], scale: float) -> float:
        return float(self._typical().mean())

    def worst_variance(self) -> float:
        """Return the largest `range_variance` of evenly spread ranges; see `Mechanism.worst_variance`."""
        return float(self._typical().max())

    def _reach(self, total: bool = False) -> tuple[Reach, ...]:
        raise ValueError(f"{type(self).__name__}: no bound is known for ranges of two axes")

    def _facts(self, users: int | None = None) -> dict[str, Any]:
        """Return the errors of the share of a range; see `Mechanism._facts`."""
        try:
            errors = {"of_the_worst_range": self.worst_variance() ** 0.5}
            errors["on_average"] = self.mean_variance() ** 0.5
        except ValueError as error:
            return {"errors": {"unbiased": str(error)}}
        return {"errors": spreads("a_range", errors, users)}


class GridAccumulator(AttributesAccumulator):
    """Counts of reports about each grid, of which shares of ranges are estimated."""

    kind = "grids"
    mechanism: HDG

    def estimate_range(self, first: Ends, second: Ends, *, consistent: bool = False) -> Estimate:
        """Estimate the share of the records of ranges; see `HDG.estimate_range`."""
        shape, grids, ends = self.mechanism._weights(first, second)
        value, spread = np.zeros(len(grids)), np.zeros(len(grids))
        tables = [self._one(grid, False).value for grid in range(3)]
        used = self._consistent(tables) if checks.flag("consistent", consistent) else tables
        for grid, law in enumerate(self.mechanism._laws):
            mine, known = grids == grid, float(self.attributes[grid].n)
            weights = self.mechanism._asked(grid, ends[:, :, mine])
            shares = project_simplex(tables[grid])
            # A few more records of any cell, as `Hierarchy` counts them: else a share of 0 had no error.
            shares = (known * shares + _BLENDED / len(shares)) / (known + _BLENDED)
            value[mine] = weights @ used[grid]
            spread[mine] = np.sqrt(law.variance(weights, shares) / known)
        post = "averaged grids, projected" if consistent else ""
        return Estimate(value.reshape(shape), spread.reshape(shape), self.n, post=post)

    def _consistent(self, tables: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """Return the grids averaged by their variances, and projected to the simplex."""
        line, square = self.mechanism.cells
        both, result = tables[2].reshape(square, square), []
        variances = [
            law.node() / each.n for law, each in zip(self.mechanism._laws, self.attributes, strict=True)
        ]
        for axis in (0, 1):
            alone = tables[axis].reshape(square, -1).sum(axis=1)
            share = square * variances[2] / (square * variances[2] + line // square * variances[axis])
            moved = share * (alone - both.sum(axis=1 - axis))
            both = both + np.expand_dims(moved, 1 - axis) / square
            result.append(project_simplex(tables[axis]))
        return [*result, project_simplex(both.ravel())]
