"""Solver for the release of least expected loss under local differential privacy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix
from bitldp.base.extras import require
from bitldp.design import DesignError
from bitldp.design._settled import settled

__all__ = ["least_loss"]

_MARGIN = 1e-7  # relative: how far below the budget the program is solved, so that rounding stays within it


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
