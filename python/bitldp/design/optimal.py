"""Solvers for releases of the least expected loss: exactly for some candidates, nearly for many.

The program of `least_loss` has as many variables as there are pairs of candidates. Its optimum is a sum of
columns: report y with a weight c, e^epsilon times as often from a set S of inputs as from the others. So

    minimise sum c (sum_x L[x, y] (1 + g 1[x in S]))   with   sum c (1 + g 1[x in S]) = 1 for every x,

L[x, y] = prior[x] loss[x, y], g = e^epsilon - 1. Its dual has one number a_x an input: maximise sum a_x with
f_y(a) = sum_x (L - a)[x, y] + g min(0, (L - a)[x, y]) >= 0 for every y; the best S of a report are the inputs
of L < a. Columns are generated (Gilmore and Gomory 1961) within a box about the best a so far, which keeps
a from wandering (Marsten, Hogan and Blankenship 1975); a starts from a fourth of the candidates. Any a,
lowered until all f_y are zero or more, is a bound. Any weights are a law: an input reports the nearest first
at the higher rate, as far as its chances reach. So the search stops where the two are near enough.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix
from bitldp.base.errors import require
from bitldp.design import DesignError
from bitldp.design.exact import settled

__all__ = ["GAP", "NearlyLeast", "least_loss", "nearly_least_loss"]

_MARGIN = 1e-7  # relative: how far below the budget the law is, so that rounding stays within it


def least_loss(
    losses: NDArray[np.float64], epsilon: float, prior: NDArray[np.float64] | None = None
) -> Matrix:
    """Solve for the channel of integers with the least expected loss at an exact epsilon.

    Parameters
    ----------
    losses : ndarray of float64, shape (inputs, reports)
        Loss of each report for each input, finite.
    epsilon : float
        Privacy budget, above zero.
    prior : ndarray of float64, shape (inputs,), optional
        How often each input occurs: zero or more, not all zero. None: all alike.

    Returns
    -------
    Matrix
        The exact epsilon of its integers is at most `epsilon`, and within a relative 1e-6 of it where the
        optimum uses the whole budget.

    Raises
    ------
    MissingExtraError
        Without SciPy.
    DesignError
        If the solver fails. No iterate is returned in its place.

    Notes
    -----
    With P[x, y] = c_y + s_xy the privacy of column y is ``0 <= s_xy <= (e^eps - 1) c_y``: one row an entry in
    place of one for each pair of inputs. The program is solved by HiGHS' dual simplex.
    """
    require("the optimal design", ("scipy",), "design")
    from scipy import sparse
    from scipy.optimize import linprog

    inputs, reports = losses.shape
    weights = np.full(inputs, 1.0 / inputs) if prior is None else prior / prior.sum()
    scale = float(np.abs(losses).max()) or 1.0
    costs = weights[:, None] * ((losses - losses.min(axis=1, keepdims=True)) / scale)
    growth = math.expm1(epsilon * (1.0 - _MARGIN))
    entries = sparse.identity(inputs * reports, format="csr")
    columns = sparse.kron(np.ones((inputs, 1)), sparse.identity(reports), format="csr")
    rows = sparse.kron(sparse.identity(inputs), np.ones((1, reports)), format="csr")
    found = linprog(
        np.concatenate([costs.ravel(), costs.sum(axis=0)]),
        A_ub=sparse.hstack([entries, -growth * columns], format="csr"),
        b_ub=np.zeros(inputs * reports),
        A_eq=sparse.hstack([rows, np.ones((inputs, reports))], format="csr"),
        b_eq=np.ones(inputs),
        method="highs-ds",
    )
    if found.status != 0:
        raise DesignError(f"the linear program of the optimal release failed: {found.message}")
    law = found.x[: inputs * reports].reshape(inputs, reports) + found.x[inputs * reports :]
    return settled(law, epsilon)


GAP = 3e-3
"""Relative: how far above its bound an expected loss may be."""

_ROUNDS = 100
_COARSE = 150  # candidates that are not thinned out first
_FACTORS = (0.6, 0.8, 0.92, 1.0, 1.08, 1.2, 1.5)  # radii of the first sets
_BOX = 0.3  # relative: of the first box, where nothing is known

Floats = NDArray[np.float64]


class NearlyLeast(NamedTuple):
    """A release, and what no release can beat.

    Attributes
    ----------
    channel : Matrix
        The law in integers, its exact epsilon at most the budget.
    loss : float
        Its expected loss, before rounding to integers.
    bound : float
        No law of that epsilon has a lower one: the sum of the prices.
    prices : ndarray of float64, shape (N,)
        The a of the dual program, at which every f_y is zero or more: what proves the bound.
    """

    channel: Matrix
    loss: float
    bound: float
    prices: Floats


def nearly_least_loss(losses: Floats, epsilon: float, prior: Floats | None = None) -> NearlyLeast:
    """Search for a channel of integers whose expected loss is within `GAP` of a bound on the least.

    Parameters
    ----------
    losses : ndarray of float64, shape (N, N)
        Loss of each report for each input, finite.
    epsilon : float
        Privacy budget, above zero; between any two inputs.
    prior : ndarray of float64, shape (N,), optional
        How often each input occurs: zero or more, not all zero. None: all alike.

    Returns
    -------
    NearlyLeast

    Raises
    ------
    MissingExtraError
        Without SciPy.
    DesignError
        If the solver fails, or does not come within `GAP`. No iterate is returned in its place.
    """
    require("the optimal design", ("scipy",), "design")
    count = len(losses)
    weights = np.full(count, 1.0 / count) if prior is None else prior / prior.sum()
    least = losses.min(axis=1)
    scale = float(np.abs(losses).max()) or 1.0
    relative = (losses - least[:, None]) / scale
    # Sums over inputs in the order of their distance from one that is far from another: sets are then runs.
    order = np.argsort(relative[:, int(np.argmax(relative[:, 0]))], kind="stable")
    search = _Search(relative[order][:, order], epsilon, weights[order], GAP)
    search.run()
    law, prices = np.empty((count, count)), np.empty(count)
    law[np.ix_(order, order)] = search.law(search.weights)
    prices[order] = search.prices
    prices = scale * prices + weights * least
    loss = scale * search.loss + float(weights @ least)
    return NearlyLeast(settled(law, epsilon), loss, float(prices.sum()), prices)


class _Search:
    """Columns, the best bound, and the best weights of reports.

    Parameters
    ----------
    losses : ndarray of float64, shape (N, N)
        Zero or more; neighbouring rows better have similar sets.
    epsilon, prior, gap
        Of the program.
    """

    def __init__(self, losses: Floats, epsilon: float, prior: Floats, gap: float) -> None:
        self._losses, self._prior, self._gap, self._epsilon = losses, prior, gap, epsilon
        self._costs = prior[:, None] * losses
        self._low = math.exp(-epsilon)  # all is in units of the higher rate
        self._held = math.exp(-epsilon * (1.0 - _MARGIN))  # of the law itself
        self._nearest = np.argsort(losses, axis=1, kind="stable")
        self._even = 0.9 * prior + 0.1 / len(prior)  # along which a is lowered, and by which the box is wide
        self._sets: list[tuple[int, bytes]] = []
        self._seen: set[tuple[int, bytes]] = set()
        self.weights, self.prices = np.zeros(len(prior)), np.zeros(len(prior))
        self.loss, self.bound = math.inf, 0.0

    def run(self) -> Floats:
        """Search until loss and bound are near; return the radius of each input, a over its prior."""
        count = len(self._prior)
        radius, width, factors = self._start()
        self._try(self._prior * radius)
        self._add(np.zeros((count, count), np.bool_), [int(self._costs.sum(axis=0).argmin())])
        for factor in factors:
            self._add(self._losses < factor * radius[:, None], range(count))
        for _ in range(_ROUNDS):
            box = width * max(self.bound, 1e-12) * self._even
            value, found = self._master(box)
            before = self.bound
            self._try(found)
            self._try((found + self.prices) / 2.0)
            if math.isfinite(self.loss) and self.loss - self.bound <= self._gap * self.loss:
                return np.asarray(self.prices / np.maximum(self._prior, 1e-300))
            width *= 1.5 if self.bound - before >= 0.3 * (value - before) else 0.7
            self._thin()
        raise DesignError(f"the release did not come within {self._gap:g} of the least loss")

    def _start(self) -> tuple[Floats, float, tuple[float, ...]]:
        """Return the first radii, the width of the first box, and of which parts of them sets are made."""
        count = len(self._prior)
        if count <= _COARSE:
            low, high = 0.0, float(self._losses.max())
            for _ in range(40):
                middle = (low + high) / 2.0
                fits = self._slopes(self._prior * middle)[0].min() >= 0.0
                low, high = (middle, high) if fits else (low, middle)
            return np.full(count, low), _BOX, _FACTORS
        some = np.unique(np.linspace(0, count - 1, count // 4).round().astype(np.int64))
        near = self._losses[:, some].argmin(axis=1)
        prior: Floats = np.bincount(near, self._prior, len(some)).astype(np.float64)
        coarse = _Search(self._losses[np.ix_(some, some)], self._epsilon, prior, 2.0 * self._gap)
        radius = np.clip(coarse.run()[near], 0.0, self._losses.max())
        return radius, _BOX / 3.0, (0.8, 0.95, 1.0, 1.05, 1.2)

    def _slopes(self, a: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Return f_y of each report, and the best set of each, as columns."""
        gaps = self._costs - a[:, None]
        inside = gaps < 0.0
        return self._low * gaps.sum(axis=0) + (1.0 - self._low) * np.minimum(gaps, 0.0).sum(axis=0), inside

    def _try(self, a: Floats) -> None:
        """Add the columns that a asks for, lower it until it is a bound, and keep it if it is the best."""
        found, inside = self._slopes(a)
        self._add(inside, np.flatnonzero(found < -1e-11 * max(self.bound, 1e-12)).tolist())
        for _ in range(_ROUNDS):
            if found.min() >= -1e-15:
                break
            rise = self._low * self._even.sum() + (1.0 - self._low) * (self._even @ inside)
            a = a - max(float((-found / rise).max()), 1e-15) * self._even  # convex: never too far
            found, inside = self._slopes(a)
        else:
            return
        if a.sum() > self.bound:
            self.bound, self.prices = float(a.sum()), a

    def _add(self, sets: NDArray[np.bool_], reports: Any) -> None:
        for report in reports:
            key = (int(report), sets[:, report].tobytes())
            if key not in self._seen:
                self._seen.add(key)
                self._sets.append(key)

    def _columns(self) -> tuple[NDArray[np.intp], NDArray[np.bool_], Floats]:
        """Return report, set and cost of each column."""
        reports = np.array([report for report, _ in self._sets])
        sets = np.frombuffer(b"".join(each for _, each in self._sets), np.bool_)
        sets = sets.reshape(len(reports), -1)
        inside = np.einsum("kx,xk->k", sets, self._costs[:, reports])
        return reports, sets, self._low * self._costs.sum(axis=0)[reports] + (1.0 - self._low) * inside

    def _master(self, box: Floats) -> tuple[float, Floats]:
        """Solve for weights of the columns, a row being missed at the price of the box; return value and a.

        Rows are subtracted from one another, so that a column has an entry for each end of a run in its set.
        """
        from scipy import sparse
        from scipy.optimize import linprog

        reports, sets, costs = self._columns()
        count = len(self._prior)
        first = self._low + (1.0 - self._low) * sets[:, :1]
        steps = (1.0 - self._low) * np.diff(sets.astype(np.int8), axis=1)
        missed = sparse.diags([np.ones(count), -np.ones(count - 1)], [0, -1])
        rows = sparse.csc_matrix(np.concatenate([first, steps], axis=1).T)
        found = linprog(
            np.concatenate([costs, self.prices + box, box - self.prices]),
            A_eq=sparse.hstack([rows, missed, -missed], format="csc"),
            b_eq=np.eye(1, count)[0],
            method="highs-ds",
        )
        if found.status != 0:
            raise DesignError(f"the linear program of the release failed: {found.message}")
        weights = self._low * np.bincount(reports, found.x[: len(reports)], count).astype(np.float64)
        if weights.any():  # else the box was so cheap that all rows are missed
            loss = float(np.sum(self._costs * self.law(weights)))
            if loss < self.loss:
                self.loss, self.weights = loss, weights
        prices = found.eqlin.marginals
        return float(found.fun), np.append(prices[:-1] - prices[1:], prices[-1])

    def _thin(self) -> None:
        """Leave out the columns that the best a finds worst, where there are many."""
        count = len(self._prior)
        if len(self._sets) > 6 * count:
            _, sets, costs = self._columns()
            worth = costs - self._low * self.prices.sum() - (1.0 - self._low) * (sets @ self.prices)
            worth[0] = -math.inf  # with which every row can be filled
            self._sets = [self._sets[place] for place in np.sort(np.argsort(worth)[: 4 * count])]
            self._seen = set(self._sets)

    def law(self, weights: Floats) -> Floats:
        """Return the best law whose reports have these lower rates: P[x, y] from c_y to e^epsilon c_y.

        Parameters
        ----------
        weights : ndarray of float64, shape (N,)
            Rates c; scaled where they are too much or too little.
        """
        total = float(weights.sum())
        weights = weights * (min(max(total, self._held), 1.0) / total)
        growth = (1.0 - self._held) / self._held
        rates = weights[self._nearest]
        before = np.cumsum(rates, axis=1) - rates
        raised = np.clip((1.0 - weights.sum()) / growth - before, 0.0, rates)
        law = np.empty_like(self._losses)
        np.put_along_axis(law, self._nearest, rates + growth * raised, axis=1)
        return law
