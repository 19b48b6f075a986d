"""Bounds on the total variance of any epsilon-LDP mechanism for linear questions: the dual program.

For any vector l, number b and matrix B = Y Y^T: if x_S^T B x_S + l . x_S <= b for all sets S, then every
channel has tr(B X) <= b, since sum_S p_S x_S = 0 (`bitldp.design.workload` has the symbols), and by Cauchy
and Schwarz

    tr(A X^-1) >= tr(L^T Y)^2 / tr(Y^T X Y) >= tr(L^T Y)^2 / b     with A = L L^T.

So a bound takes the largest value of a quadratic over all sets. Up to 20 inputs it is found by looking at all
of them: `exact_bound`. `spectral_bound` replaces it by something that no set exceeds, at any number of
inputs. What a search finds is no bound, and is used to generate columns alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ALL_PRICED",
    "Dual",
    "WorkloadProgram",
    "climbed",
    "every_violation",
    "exact_bound",
    "spectral_bound",
    "subsets",
]

Floats = NDArray[np.float64]
Sets = NDArray[np.bool_]

ALL_PRICED = 20
"""Inputs up to which all sets are looked at: 2**20 of them take a fifth of a second."""

_ROUNDING = 1e-9  # relative: by which a bound is lowered; k^2 operations on doubles miss by less than 1e-10
_CLIMBS = 200  # starts of a search
_ASCENTS = 100
_NOTHING = 1e-12  # relative: eigenvalues below count as 0, which lowers a bound


class WorkloadProgram:
    """Questions and a budget, in coordinates orthogonal to the vector of ones.

    Parameters
    ----------
    gram : ndarray of float64, shape (k, k)
        W^T W of the questions W.
    epsilon : float
        Privacy budget, above zero.

    Attributes
    ----------
    gram : ndarray of float64, shape (k - 1, k - 1)
        The same without the ones, of trace 1.
    scale : float
        Its trace before.
    share : float
        The part of the inputs in a set that says most: 1/(e^(epsilon/2) + 1).
    """

    def __init__(self, gram: Floats, epsilon: float) -> None:
        self.size, self.epsilon = len(gram), epsilon
        self.share = 1.0 / (1.0 + math.exp(epsilon / 2.0))
        self.growth = math.expm1(epsilon) * (1.0 + 1e-15)  # rounded up: of a bound for all at most as private
        corner = np.hstack([np.ones((self.size, 1)), np.eye(self.size)[:, :-1]])
        self.basis: Floats = np.linalg.qr(corner)[0][:, 1:]
        reduced = self.basis.T @ gram @ self.basis
        self.scale = float(np.trace(reduced))
        self.gram: Floats = (reduced + reduced.T) / (2.0 * self.scale)

    def evidence(self, sets: Sets) -> Floats:
        """Return x_S of each set, shape (N, k - 1)."""
        inside = sets.astype(np.float64)
        mean = 1.0 + self.growth * inside.mean(axis=1)
        return (inside @ self.basis) * (self.growth / mean)[:, None]


@dataclass(frozen=True)
class Dual:
    """Prices at which an optimal design has no set above zero.

    Attributes
    ----------
    objective : float
        tr(A X^-1) of the design they come from.
    directions : ndarray of float64, shape (k - 1, k - 1)
        Y.
    slope : ndarray of float64, shape (k - 1,)
        l.
    level : float
        b, as far as the columns of the design know it.
    overlap : float
        tr(L^T Y).
    """

    objective: float
    directions: Floats
    slope: Floats
    level: float
    overlap: float

    @classmethod
    def of(cls, program: WorkloadProgram, x: Floats, chances: Floats, prices: Floats | None = None) -> Dual:
        """Return the dual of a design; without prices, those that fit its likely columns best."""
        values, vectors = np.linalg.eigh(program.gram)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        inverse = np.linalg.pinv((x * chances[:, None]).T @ x, rcond=1e-12, hermitian=True)
        directions = inverse @ root
        if prices is None:
            rows = np.hstack([np.ones((len(x), 1)), x]) * np.sqrt(chances)[:, None]
            price = -np.square(x @ directions).sum(axis=1) * np.sqrt(chances)
            prices = np.linalg.lstsq(rows, price, rcond=None)[0]
        objective = float(np.sum(root * directions))
        return cls(objective, directions, prices[1:], -float(prices[0]), objective)

    def violation(self, x: Floats) -> Floats:
        """Return by how much each column exceeds the level: x^T B x + l . x - b."""
        return np.asarray(np.square(x @ self.directions).sum(axis=1) + x @ self.slope - self.level)


class Certified(NamedTuple):
    """A bound, and how it was found.

    Attributes
    ----------
    bound : float
        No channel has a smaller tr(A X^-1), for the program's gram matrix of trace 1.
    level : float
        The b that holds for all sets, or for all reports.
    """

    bound: float
    level: float


def subsets(size: int) -> Sets:
    """Return all subsets, shape (2**size, size): bit i of the row's number is input i."""
    return (np.arange(1 << size)[:, None] >> np.arange(size)) & 1 == 1


def every_violation(program: WorkloadProgram, dual: Dual) -> Floats:
    """Return `Dual.violation` of all subsets, shape (2**k,), by doubling: k^2/2 passes without a product."""
    matrix = program.basis @ dual.directions
    matrix = matrix @ matrix.T
    linear = program.basis @ dual.slope
    quadratic, slope, width = np.zeros(1), np.zeros(1), np.zeros(1)
    for last in range(program.size):
        cross = np.zeros(1)
        for each in range(last):
            cross = np.concatenate([cross, cross + matrix[last, each]])
        quadratic = np.concatenate([quadratic, quadratic + 2.0 * cross + matrix[last, last]])
        slope = np.concatenate([slope, slope + linear[last]])
        width = np.concatenate([width, width + 1.0])
    factor = program.growth / (1.0 + program.growth * width / program.size)
    return np.asarray(np.square(factor) * quadratic + factor * slope - dual.level)


def exact_bound(program: WorkloadProgram, dual: Dual) -> Certified:
    """Return the bound of a dual, its level raised by the set that exceeds it most."""
    level = dual.level + max(0.0, float(every_violation(program, dual).max()))
    return Certified(dual.overlap**2 / level * (1.0 - _ROUNDING), level)


def climbed(program: WorkloadProgram, dual: Dual, starts: Sets, least: float) -> Sets:
    """Return sets that break the dual by more than `least`, climbing by one input more or less."""
    matrix = program.basis @ dual.directions
    matrix = matrix @ matrix.T
    linear, diagonal = program.basis @ dual.slope, np.diag(matrix)
    size, growth = program.size, program.growth
    directions = np.linalg.eigh(matrix)[1][:, -24:].T
    ranks = np.argsort(np.argsort(directions, axis=1), axis=1)
    width = min(max(1, round(program.share * size)), size - 1)
    sets = np.concatenate([starts[: _CLIMBS - 2 * len(ranks)], ranks < width, ranks >= size - width])
    inside = sets.astype(np.float64)
    along = inside @ matrix
    found: list[Floats] = [inside.copy()]
    for _ in range(2 * size):
        quadratic, slope, widths = (inside * along).sum(1), inside @ linear, inside.sum(1)
        sign = 1.0 - 2.0 * inside
        moved = quadratic[:, None] + 2.0 * sign * along + diagonal
        sloped, sized = slope[:, None] + sign * linear, widths[:, None] + sign
        factor = growth / (1.0 + growth * sized / size)
        gain = np.square(factor) * moved + factor * sloped
        here = growth / (1.0 + growth * widths / size)
        gain -= (np.square(here) * quadratic + here * slope)[:, None]
        chosen = gain.argmax(axis=1)
        rows = np.flatnonzero(gain[np.arange(len(gain)), chosen] > 1e-9 * abs(dual.level))
        if not len(rows):
            break
        turned = sign[rows, chosen[rows]]
        inside[rows, chosen[rows]] += turned
        along[rows] += turned[:, None] * matrix[chosen[rows]]
        found.append(inside[rows].copy())
    result = np.unique(np.concatenate(found) > 0.5, axis=0)
    result = result[(result.sum(axis=1) > 0) & (result.sum(axis=1) < size)]
    broken = dual.violation(program.evidence(result))
    order = np.argsort(-broken)[: 2 * size]
    return result[order[broken[order] > least]]


def spectral_bound(program: WorkloadProgram) -> float:
    """Return a bound that holds at any number of inputs, from eigenvalues alone.

    Returns
    -------
    float
        At most the optimum for the program's gram matrix of trace 1; near it while e^(epsilon/2) is well
        below the number of inputs.

    Notes
    -----
    The chances of a report, u_i for input i and least 1, have (u_i - 1)(u_i - e^eps) <= 0. With weights
    d_i >= 0 of sum D, and h = cosh(eps/2)^2 = (1 + e^eps)^2/(4 e^eps),

        sum d_i u_i^2 <= (1 + e^eps) (d . u) - e^eps D <= h (d . u)^2/D,

    the latter since a square is not negative. This is u^T T u <= 0 for T = diag(d) - h d d^T/D, whatever the
    scale of u: it holds for the evidence r_S. Over all reports M = 1 1^T + X has tr(T M) <= 0, where 1^T T 1
    = (1 - h) D, so that tr(T X) <= (h - 1) D = sinh(eps/2)^2 D. Where T, orthogonal to the ones, has no
    negative eigenvalue,

        tr(A X^-1) >= tr((L^T T L)^(1/2))^2 / tr(T X) >= tr((L^T T L)^(1/2))^2 / (sinh(eps/2)^2 D).

    Any d gives a bound; it begins with equal weights (T the identity) and climbs.
    """
    size, basis = program.size, program.basis
    values, vectors = np.linalg.eigh(program.gram)
    root = basis @ (
        vectors[:, values > _NOTHING * values[-1]] * np.sqrt(values[values > _NOTHING * values[-1]])
    )
    flat = math.cosh(program.epsilon / 2.0) ** 2
    most = math.sinh(program.epsilon / 2.0) ** 2

    def judged(weights: Floats) -> tuple[float, Floats]:
        """Return the bound of weights, and the slopes of its logarithm; -1 where they give none."""
        total = float(weights.sum())
        table = np.diag(weights) - flat * np.outer(weights, weights) / total
        if np.linalg.eigvalsh(basis.T @ table @ basis)[0] < 1e-9:
            return -1.0, weights
        squares, turn = np.linalg.eigh(root.T @ table @ root)
        squares = np.maximum(squares, 0.0)
        norm = float(np.sqrt(squares).sum())
        spread = root @ (turn / np.maximum(squares, _NOTHING * squares[-1]) ** 0.25)
        along = spread @ (spread.T @ weights)
        slopes = (
            np.square(spread).sum(axis=1) - 2.0 * flat * along / total + flat * (weights @ along) / total**2
        )
        return norm**2 / (most * total), slopes / norm - 1.0 / total

    weights = np.ones(size)
    bound, slopes = judged(weights)
    step = 0.5
    for _ in range(_ASCENTS):
        trial = weights * np.exp(np.clip(step * size * slopes * weights, -1.0, 1.0))
        trial /= trial.mean()
        reached, along = judged(trial)
        if reached > bound:
            small = reached < bound * (1.0 + 1e-7)
            bound, slopes, weights, step = reached, along, trial, 1.5 * step
            if small:
                break
        else:
            step /= 2.0
            if step < 1e-4:
                break
    return bound * (1.0 - _ROUNDING)
