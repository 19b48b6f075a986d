"""Solver for the unbiased letters of a finite channel: linear systems, checked after they are solved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-9
"""How far the mean of letters may be from its target, in units of the largest target."""

_MOST_CONDITION = 1e12  # above which rows count as dependent
_STEPS = 3  # of iterative refinement; each gains about ten digits where the system is not hopeless


def letters(
    law: NDArray[np.float64], targets: NDArray[np.float64], near: NDArray[np.float64] | None = None
) -> NDArray[np.float64] | None:
    """Solve ``law @ a = targets`` for the letters a of least variance; None where there are none.

    Parameters
    ----------
    law : ndarray of float64, shape (inputs, reports)
        P(report | input).
    targets : ndarray of float64, shape (inputs,)
        Value of each input.
    near : ndarray of float64, shape (reports,), optional
        Letters to stay near to. None: the middle of the targets, which minimises the variance over uniform
        inputs among all unbiased letters.

    Returns
    -------
    ndarray of float64, shape (reports,), or None
        The mean of the letters is within `TOLERANCE` of every target, residuals being computed in extended
        precision; None if no letters reach that, because the system has no solution or is too near to
        having none.

    Notes
    -----
    With w the column sums, the sum over inputs of the second moments of a is ``sum_j w_j a_j^2``. So
    b = sqrt(w) a of least Euclidean norm is what is asked for: the least-squares solution of least norm.
    """
    middle = (targets.max() + targets.min()) / 2.0
    scale = float(np.abs(targets - middle).max()) or 1.0
    mass = law.sum(axis=0)
    used = mass > 0.0
    root = np.sqrt(mass[used])
    table = law[:, used] / root
    result = np.full(law.shape[1], middle) if near is None else near.astype(np.float64)
    solvers = (_solved, _least) if table.shape[0] == table.shape[1] else (_least,)
    wide = law.astype(np.longdouble)
    for solver in solvers:
        trial = result.copy()
        for _ in range(_STEPS):
            missing = (targets - wide @ trial).astype(np.float64)
            step = solver(table, missing)
            if step is None:
                break
            trial[used] += step / root
        missing = (targets - wide @ trial).astype(np.float64)
        if np.isfinite(trial).all() and np.abs(missing).max() <= TOLERANCE * scale:
            return np.asarray(trial, dtype=np.float64)
    return None


def inverse(law: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Solve ``law @ L = I`` for the letters L, one column for each input; None where there are none.

    Parameters
    ----------
    law : ndarray of float64, shape (N, N)
        P(report | input).

    Returns
    -------
    ndarray of float64, shape (N, N), or None
        Each row is what a report says about every input: its mean is the indicator of the true one, within
        `TOLERANCE`.
    """
    try:
        result = _inverted(law)
    except np.linalg.LinAlgError:
        return None
    unit = np.eye(len(law))
    with np.errstate(over="ignore", invalid="ignore"):
        result += result @ (unit - law @ result)
        missing = np.abs(law @ result - unit).max()
    return result if missing <= TOLERANCE else None


def indicators(law: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Solve ``law @ L = I`` for letters L of least variance over uniform inputs; None where none exist.

    Parameters
    ----------
    law : ndarray of float64, shape (N, reports)
        P(report | input).

    Returns
    -------
    ndarray of float64, shape (reports, N), or None
        As of `inverse`. A report that no input gives decodes to 0.

    Notes
    -----
    With D the mean chance of each report, L is D^-1 P^T (P D^-1 P^T)^-1.
    """
    seen = law.mean(axis=0)
    kept = seen > 0.0
    weighed = law[:, kept] / seen[kept]
    gram = weighed @ law[:, kept].T
    if np.linalg.cond(gram) > _MOST_CONDITION:
        return None
    result = np.zeros((law.shape[1], law.shape[0]))
    result[kept] = np.linalg.solve(gram, weighed).T
    return result


def _inverted(law: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.linalg.inv(law), dtype=np.float64)


def _solved(table: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64] | None:
    try:
        return np.asarray(np.linalg.solve(table, targets), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None


def _least(table: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.linalg.lstsq(table, targets, rcond=None)[0], dtype=np.float64)
