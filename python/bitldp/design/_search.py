"""Search for a design: a sequence of linear programs over table and letters, from several starts.

A table P and letters a that minimise the variance without bias solve a program that is bilinear in (P, a).
With a held it is linear; so is its linearisation around some (P, a). Both are built here.

The B (B - 1) B' inequalities of privacy become 2 B B' ones by a variable q_j, the largest entry of column j:
P_ij = q_j e^-eps + (1 - e^-eps) s_ij with 0 <= s_ij <= q_j. Points and letters are counted from the middle;
letters in units of (e^eps + 1)/(2 (e^eps - 1)), which keeps the numbers of a size for all budgets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp.base.errors import require
from bitldp.design.distance import Metric, binding, distances, shortest
from bitldp.design.result import DesignError

Floats = NDArray[np.float64]

_PENALTY = 200.0  # of bias, for each point: far above what bias could save
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Answer:
    """Solution of a linear program.

    Attributes
    ----------
    value : float
        Its optimum, in squared units of the letters.
    table : ndarray of float64
        P, the rows that are no mirror images of others.
    step : ndarray of float64
        How the letters' coordinates move; empty where they are held.
    slack : float
        Sum of the biases, in units of the interval.
    """

    value: float
    table: Floats
    step: Floats
    slack: float


class Program:
    """The linear programs of one design.

    Parameters
    ----------
    shape : (int, int)
        Points and letters.
    budget : float
        Epsilon between any two points, or for a distance of 1.
    metric : None, float or table
        What the budget is multiplied with.
    criterion : {"mean", "worst"}
        What is minimised.
    mirrored : bool
        Whether a design is looked for that is its own mirror image, where the problem is.

    Notes
    -----
    Unless a table of distances says otherwise, the problem is the same from both ends. For a mirrored design
    only half of the rows and of the letters are variables. With as many letters as one likes a solution may
    be averaged with its mirror image; with few, one that is not mirrored may be better.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        budget: float,
        metric: Metric | None,
        criterion: str,
        *,
        mirrored: bool = True,
    ) -> None:
        require("solving a design", ["scipy"], "design")
        from scipy import sparse

        points, letters = shape
        apart = None if metric is None else distances(metric, points)
        alike = apart is None or bool(np.allclose(apart, apart[::-1, ::-1], rtol=1e-12, atol=0.0))
        self.mirrored = mirrored and alike
        self.rows = points // 2 if self.mirrored else points
        self.letters = letters
        self.free = letters // 2 if self.mirrored else letters
        # What the farthest points may differ by: over others the way may be shorter, as with |x - y|^2.
        self.widest = budget * (1.0 if apart is None else float(shortest(apart).max()))
        self.unit = 0.5 / math.tanh(self.widest / 2.0)
        half = np.eye(self.free)
        # Letters are `basis @ coordinates`; mirrored, the coordinates are those above the middle, ascending.
        self.basis = np.vstack([-half[::-1], half]) if self.mirrored else half
        centred = np.arange(points) / (points - 1) - 0.5
        self.points = centred[: self.rows]
        self._criterion = criterion
        self._sparse: Any = sparse
        self._entries(budget, apart)
        self.inequalities = int(self._private.shape[0])
        self._goal(centred)

    def _entries(self, budget: float, apart: Floats | None) -> None:
        """Set how entries of P follow from the variables, and the inequalities of privacy."""
        sparse, size = self._sparse, self.rows * self.letters
        if apart is None:
            least = math.exp(-budget)
            largest = sparse.kron(np.ones((self.rows, 1)), sparse.csr_matrix(np.abs(self.basis)))
            self._table = sparse.hstack(
                [-math.expm1(-budget) * sparse.identity(size), least * largest], "csr"
            )
            self._private = sparse.hstack([sparse.identity(size), -largest], "csr")
            return
        pairs = [(i, k) for i, k in np.argwhere(binding(apart)) if i < self.rows]
        index = np.arange(size).reshape(self.rows, self.letters)
        whole = np.vstack([index, index[::-1, ::-1]]) if self.mirrored else index
        columns = np.concatenate([np.stack([whole[i], whole[k]], axis=1) for i, k in pairs])
        shares = np.repeat([math.exp(-budget * float(apart[i, k])) for i, k in pairs], self.letters)
        data = np.stack([shares, -np.ones(len(shares))], axis=1)
        lines = np.arange(len(columns)).repeat(2)
        self._table = sparse.identity(size, format="csr")
        self._private = sparse.csr_matrix((data.ravel(), (lines, columns.ravel())), (len(columns), size))

    def _goal(self, centred: Floats) -> None:
        """Set which averages of the rows' second moments count, and what is subtracted from each."""
        sparse, rows = self._sparse, self.rows
        self._sums = sparse.kron(sparse.identity(rows), np.ones((1, self.letters)), "csr")
        if self._criterion == "mean":
            self._averages = sparse.csr_matrix(np.full((1, rows), 2.0 if self.mirrored else 1.0))
            self._less = np.array([np.square(centred).sum()])
            return
        # The largest variance, at the points and halfway between them, where dither makes it larger.
        between = (np.eye(rows) + np.eye(rows, k=1)) / 2.0
        where = (centred[:rows] + centred[1 : rows + 1]) / 2.0 if self.mirrored else centred[1:] / 2.0
        if self.mirrored:
            between[-1, -1] = 1.0  # the other half's first row is this one's mirror image
        else:
            between, where = between[:-1], (centred[:-1] + centred[1:]) / 2.0
        self._averages = sparse.csr_matrix(np.vstack([np.eye(rows), between]))
        self._less = np.square(np.concatenate([self.points, where]))

    def held(self, coordinates: Floats) -> Answer | None:
        """Return the best table for fixed letters; None where the solver finds none."""
        return self._solve(coordinates, None, 0.0)

    def moved(self, coordinates: Floats, table: Floats, radius: float) -> Answer | None:
        """Return the optimum of the linearisation around (table, letters), no coordinate moving further."""
        return self._solve(coordinates, table, radius)

    def _solve(self, coordinates: Floats, around: Floats | None, radius: float) -> Answer | None:
        from scipy.optimize import linprog

        sparse, rows = self._sparse, self.rows
        letters = self.basis @ coordinates
        each = sparse.identity(rows)
        means = self.unit * (sparse.kron(each, letters[None, :], "csr") @ self._table)
        moments = sparse.kron(each, np.square(letters)[None, :], "csr") @ self._table
        sums, private = self._sums @ self._table, self._private
        size, steps = self._table.shape[1], 0
        if around is not None:
            steps = self.free
            means = sparse.hstack([means, self.unit * (around @ self.basis)])
            moments = sparse.hstack([moments, 2.0 * around @ (letters[:, None] * self.basis)])
        goal = self._averages @ moments
        rest = 2 * rows
        slack = sparse.hstack([sparse.identity(rows), -sparse.identity(rows)])
        equal = sparse.vstack(
            [
                sparse.hstack([sums, sparse.csr_matrix((rows, steps + 1 + rest))]),
                sparse.hstack([means, sparse.csr_matrix((rows, 1)), slack]),
            ],
            "csr",
        )
        below = sparse.hstack([private, sparse.csr_matrix((private.shape[0], steps + 1 + rest))], "csr")
        limits = np.zeros(private.shape[0])
        # Variables: the table's, the letters' steps, the largest variance, and the bias each way.
        cost = np.concatenate([np.zeros(size + steps + 1), np.full(rest, _PENALTY * 2 * rows)])
        if self._criterion == "mean":
            cost[: size + steps] = goal.toarray()[0]
        else:
            cost[size + steps] = 1.0
            count = goal.shape[0]
            highest = sparse.hstack([goal, -np.ones((count, 1)), sparse.csr_matrix((count, rest))], "csr")
            below = sparse.vstack([below, highest], "csr")
            limits = np.concatenate([limits, self._less / self.unit**2])
        bounds = np.zeros((len(cost), 2))
        bounds[:, 1] = np.inf
        if steps:
            bounds[size : size + steps, 0] = np.maximum(-radius, -coordinates) if self.mirrored else -radius
            bounds[size : size + steps, 1] = radius
        if self._criterion == "mean":
            bounds[size + steps, 1] = 0.0
        result = linprog(
            cost,
            A_ub=below,
            b_ub=limits,
            A_eq=equal,
            b_eq=np.concatenate([np.ones(rows), self.points]),
            bounds=bounds,
            method="highs",
            options={
                "primal_feasibility_tolerance": _TOLERANCE,
                "dual_feasibility_tolerance": _TOLERANCE,
            },
        )
        if result.status != 0:
            return None
        value = result.fun - (self._less[0] / self.unit**2 if self._criterion == "mean" else 0.0)
        x = np.asarray(result.x)
        table = np.asarray(self._table @ np.maximum(x[:size], 0.0)).reshape(rows, self.letters)
        return Answer(float(value), table, x[size : size + steps], float(np.abs(x[size + steps + 1 :]).sum()))


_GAIN = 1e-10  # relative; a step that promises less is the last
_SAME = 1e-4  # letters that are nearer to the middle are one
_SMALL = 1 << 10  # inequalities of a program that is also solved without its symmetry
_LITTLE = 0.25  # budget up to which the optimum is near one that is known
_INNER, _OUTER = 0.36, 0.43  # its letters over the budget: the inner ones, and the last beyond 1
_UNBIASED = 1e-7  # sum of the biases that rounding to integers can still make up for


class _Effort(NamedTuple):
    """How long to search: steps from every start, starts that are followed on, and steps of each of them."""

    first: int
    kept: int
    most: int


def _effort(inequalities: int) -> _Effort:
    """Return the effort for a program with so many inequalities."""
    if inequalities < _SMALL:
        return _Effort(12, 2, 60)
    return _Effort(4, 1, 60) if inequalities < 1 << 13 else _Effort(0, 1, 8)


@dataclass
class _Run:
    """One sequence of steps: letters, their best table, and how far they may move."""

    coordinates: Floats
    value: float
    table: Floats
    slack: float
    radius: float
    done: bool = False


def best(
    shape: tuple[int, int], budget: float, metric: Metric | None, criterion: str
) -> tuple[Floats, Floats]:
    """Search for a table and ascending letters on [0, 1], in floating point.

    Parameters
    ----------
    shape : (int, int)
        Points and letters.
    budget, metric, criterion
        As for `bitldp.design.mvu.design`.

    Raises
    ------
    DesignError
        If the solver fails from every start, or no start reaches letters without bias.
    """
    program = Program(shape, budget, metric, criterion)
    if metric == 1.0 and criterion == "mean" and program.mirrored and budget <= _LITTLE:
        near = _near(program, budget)
        if near is not None and near.slack < _UNBIASED:
            return _whole(program, near)
    runs = [run for start in _starts(program, shape) if (run := _begin(program, start)) is not None]
    if not runs:
        raise DesignError("the linear programs of all starts failed")
    effort = _effort(program.inequalities)
    for run in runs:
        _follow(program, run, effort.first)
    runs.sort(key=lambda run: run.value)
    for run in runs[: effort.kept]:
        _follow(program, run, effort.most)
    unbiased = [run for run in runs if run.slack < _UNBIASED]
    if not unbiased:
        least = min(run.slack for run in runs)
        raise DesignError(f"no start reached letters without bias; the least sum of biases is {least:.3g}")
    result = min(unbiased, key=lambda run: run.value)
    if program.mirrored and result.coordinates.min() < _SAME:
        free = Program(shape, budget, metric, criterion, mirrored=False)
        if free.inequalities < _SMALL:
            lopsided = [_free(free, start) for start in _split(program.basis @ result.coordinates)]
            better = [run for run in lopsided if run is not None and run.value < result.value * (1.0 - _GAIN)]
            if better:
                return _whole(free, min(better, key=lambda run: run.value))
    return _whole(program, result)


def _near(program: Program, budget: float) -> _Run | None:
    """Search from where the optimum lies for a little budget; None where the solver fails there.

    As the budget falls to 0, the best design tends to randomized response: the outermost letters to 1, about
    half the budget above it, and all others to the middle, as fast. From there a few steps reach what the
    search from all starts does, to about 3 parts in a million.
    """
    inner = np.linspace(0.0, _INNER * budget, program.free + 1)[1:-1]
    run = _begin(program, np.append(inner, 1.0 + _OUTER * budget))
    if run is not None:
        run.radius = budget / 4.0
        _follow(program, run, _effort(program.inequalities).most)
    return run


def _split(letters: Floats) -> Iterator[Floats]:
    """Yield letters with one of the two at the middle, which are the same, and one of the others twice."""
    ordered = np.sort(letters)
    half = len(ordered) // 2
    for index in range(half - 1):
        gap = 0.25 * (ordered[index + 1] - ordered[index]) if index + 1 < half - 1 else 0.1
        yield np.sort(np.concatenate([ordered[: half - 1], [ordered[index] + gap, 0.0], ordered[half + 1 :]]))


def _free(program: Program, start: Floats) -> _Run | None:
    """Search from a start; None where it fails or stays biased."""
    run = _begin(program, start)
    if run is None:
        return None
    _follow(program, run, _effort(program.inequalities).most)
    return run if run.slack < _UNBIASED else None


def _starts(program: Program, shape: tuple[int, int]) -> Iterator[Floats]:
    """Yield coordinates to start from: letters of known mechanisms, and evenly spaced ones."""
    letters = shape[1]
    even: Floats = np.arange(letters, dtype=np.float64) - (letters - 1) / 2.0
    # GRR on as many points as letters: its letters are the points, stretched.
    stretch = 1.0 + letters * math.exp(-program.widest) / -math.expm1(-program.widest)
    last = (letters - 1) / 2.0
    for reach in (stretch / (2.0 * program.unit), 1.0, 1.2, 1.4, 1.6):
        yield _coordinates(program, reach / last * even)
    yield _coordinates(program, np.sign(even) * 1.2 * (np.abs(even) + 0.5) / (letters / 2.0))


def _coordinates(program: Program, letters: Floats) -> Floats:
    return letters[program.letters // 2 :] if program.mirrored else letters


def _begin(program: Program, coordinates: Floats) -> _Run | None:
    result = program.held(coordinates)
    if result is None:
        return None
    radius = 0.25 * float(np.abs(coordinates).max())
    return _Run(coordinates, result.value, result.table, result.slack, radius)


def _follow(program: Program, run: _Run, steps: int) -> None:
    """Take up to so many steps: each to the optimum of the linearisation, if that is no worse."""
    for _ in range(steps):
        if run.done:
            return
        ahead = program.moved(run.coordinates, run.table, run.radius)
        if ahead is None:
            run.radius /= 4.0
            continue
        promised = run.value - ahead.value
        if promised < _GAIN * max(1.0, abs(run.value)) or run.radius < 1e-9:
            run.done = True
            return
        coordinates = run.coordinates + ahead.step
        result = program.held(coordinates)
        gained = -1.0 if result is None else run.value - result.value
        if result is None or gained <= 0.05 * promised:
            run.radius /= 4.0
            continue
        run.coordinates, run.value = coordinates, result.value
        run.table, run.slack = result.table, result.slack
        if gained > 0.7 * promised:
            run.radius *= 2.0


def _whole(program: Program, run: _Run) -> tuple[Floats, Floats]:
    """Return all rows, and letters on [0, 1] in ascending order."""
    letters = program.basis @ run.coordinates
    table = np.vstack([run.table, run.table[::-1, ::-1]]) if program.mirrored else run.table
    order = np.argsort(letters, kind="stable")
    return table[:, order], 0.5 + program.unit * letters[order]
