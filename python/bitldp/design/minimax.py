"""Solver for the unbiased release of a number with the least worst-case variance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix
from bitldp.base.errors import require
from bitldp.design import DesignError
from bitldp.design.exact import settled

__all__ = ["Draft", "least_worst"]

_FIRST = 161  # letters of the first program, evenly spaced
_REACH = 1.6  # times Duchi's letter: the outermost of them
_ROUNDS = 1  # of refinement: letters about the ones in use, four times as close
_BETWEEN = 8  # numbers of each step of the grid at which the variance is bounded
_MARGIN = 1e-8  # relative: how far below the budget the program is solved
_USED = 1e-8  # a letter that no input reports more often is not in use


@dataclass(frozen=True, eq=False)
class Draft:
    """Solution on [-1, 1], in floating point.

    Attributes
    ----------
    channel : Matrix
        Integers whose exact epsilon is at most the budget.
    letters : ndarray of float64, shape (reports,)
        Letters of the program, ascending; those of the integers are solved for afterwards.
    worst : float
        The optimum: the largest variance of any number, up to the letters' spacing.
    """

    channel: Matrix
    letters: NDArray[np.float64]
    worst: float


def least_worst(points: int, epsilon: float) -> Draft:
    """Solve for the release on equidistant points of [-1, 1] with the least worst variance, dither included.

    Parameters
    ----------
    points : int
        Points that a number is dithered to, 2 or more.
    epsilon : float
        Privacy budget, above zero.

    Returns
    -------
    Draft

    Raises
    ------
    MissingExtraError
        Without SciPy.
    DesignError
        If the solver fails. No iterate is returned in its place.
    """
    require("the minimax design", ("scipy",), "design")
    growth = math.expm1(epsilon * (1.0 - _MARGIN))
    reach = _REACH * (growth + 2.0) / growth
    letters = np.linspace(0.0, reach, _FIRST // 2 + 1)
    step = float(letters[1])
    for _ in range(_ROUNDS):
        law, _ = _program(points, growth, letters)
        used = letters[_half(law, letters).max(axis=0) > _USED]
        step /= 4.0
        letters = np.unique((used[:, None] + step * np.arange(-3, 4)).ravel().round(12))
        letters = letters[letters >= 0.0]
    law, worst = _program(points, growth, letters)
    both = np.concatenate([-letters[letters > 0.0][::-1], letters])
    used = law.max(axis=0) > _USED
    return Draft(settled(law[:, used], epsilon), both[used], worst)


def _half(law: NDArray[np.float64], letters: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the columns of the letters of zero or more."""
    return law[:, law.shape[1] - len(letters) :]


def _program(points: int, growth: float, letters: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return the best law with letters that are given (zero or more; their negatives count as given, too).

    The problem is its own mirror image, and so is its solution: only inputs of [-1, 0] have rows, and a
    letter and its negative share the least entry c of their columns. With P[i, j] = c_j + s_ij, privacy is
    ``0 <= s_ij <= (e^eps - 1) c_j``. The second moments M_i are linear in P, dither interpolates them
    linearly, and V is at least M(x) - x^2 for x between the points.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    both = np.concatenate([-letters[letters > 0.0][::-1], letters])
    count, rows = len(both), points - points // 2
    shared = np.minimum(np.arange(count), count - 1 - np.arange(count))
    classes = int(shared.max()) + 1
    spread = sparse.csr_matrix((np.ones(count), (np.arange(count), shared)), shape=(count, classes))
    entries = rows * count
    floors = sparse.kron(np.ones((rows, 1)), spread, format="csr")  # c_j of every entry

    def sums(values: NDArray[np.float64]) -> sparse.csr_matrix:
        """Return the rows that sum P[i, j] values_j over j."""
        table = sparse.kron(sparse.identity(rows), values[None, :], format="csr")
        return sparse.hstack([table, table @ floors, sparse.csr_matrix((rows, 1))], format="csr")

    places = np.linspace(-1.0, 1.0, points)
    mixes, squares = [], []
    for i in range(rows):
        following = min(i + 1, points - 2 - i)  # the next row, or the mirror image of one
        for up in np.arange(_BETWEEN) / _BETWEEN:
            mix = np.zeros(rows)
            mix[i] += 1.0 - up
            mix[following] += up
            mixes.append(mix)
            squares.append(float((1.0 - up) * places[i] + up * places[i + 1]) ** 2)
    moments = sparse.csr_matrix(np.array(mixes)) @ sums(np.square(both))
    bound = sparse.csr_matrix(np.ones((len(mixes), 1)))
    variance = sparse.hstack([moments[:, :-1], -bound], format="csr")
    privacy = sparse.hstack(
        [sparse.identity(entries), -growth * floors, sparse.csr_matrix((entries, 1))], format="csr"
    )
    found = linprog(
        np.append(np.zeros(entries + classes), 1.0),
        A_ub=sparse.vstack([privacy, variance], format="csr"),
        b_ub=np.concatenate([np.zeros(entries), squares]),
        A_eq=sparse.vstack([sums(np.ones(count)), sums(both)], format="csr"),
        b_eq=np.concatenate([np.ones(rows), places[:rows]]),
        method="highs-ds",
    )
    if found.status != 0:
        raise DesignError(f"the linear program of the minimax release failed: {found.message}")
    upper = found.x[:entries].reshape(rows, count) + (floors @ found.x[entries:-1]).reshape(rows, count)
    law = np.vstack([upper, upper[: points // 2][::-1, ::-1]])
    return law, float(found.x[-1])
