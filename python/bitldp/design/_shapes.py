"""Solver of the shapes that `bitldp.design.sliding` interpolates: offline, with SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from bitldp.design.sliding import LETTERS, Floats, Shape, rows, worst

__all__ = ["BUDGETS", "best", "encoded"]

BUDGETS = tuple(
    float(each)
    for each in np.unique(np.concatenate([[0.05, 0.1, 0.2, 0.3, 0.4], np.arange(0.5, 12.01, 0.125)]))
)
_PLACES = LETTERS // 2 + 1
_HALF = LETTERS // 2
_DIGITS = 4  # of a letter: rounding is far below the flatness of the optimum


def _solve(width: float, epsilon: float, start: Floats) -> Shape:
    """Return the letters of the least worst variance for a width: a convex program."""
    from scipy.optimize import minimize

    places = np.linspace(0.0, (LETTERS - width) / 2.0, _PLACES)
    table = rows(width, places, epsilon)
    mean = table[:, _HALF:] - table[:, :_HALF][:, ::-1]
    square = table[:, _HALF:] + table[:, :_HALF][:, ::-1]
    first = -mean[0]  # the window at the low end is for -1

    def variance(letters: Floats) -> Floats:
        found: Floats = square @ np.square(letters) - np.square(mean @ letters)
        return found

    def slopes(letters: Floats) -> Floats:
        found: Floats = 2.0 * square * letters - 2.0 * (mean @ letters)[:, None] * mean
        return found

    begin = start / (first @ start)
    unit = float(variance(begin).max())
    down = np.append(np.zeros(_HALF), 1.0 / unit)
    bound = {
        "type": "ineq",
        "fun": lambda z: (z[-1] - variance(z[:-1])) / unit,
        "jac": lambda z: np.hstack([-slopes(z[:-1]), np.ones((_PLACES, 1))]) / unit,
    }
    end = {
        "type": "eq",
        "fun": lambda z: np.array([first @ z[:-1] - 1.0]),
        "jac": lambda z: np.append(first, 0.0)[None],
    }
    found = minimize(
        lambda z: z[-1] / unit,
        np.append(begin, unit),
        jac=lambda z: down,
        constraints=[bound, end],
        method="SLSQP",
        options={"maxiter": 300, "ftol": 1e-9},
    )
    letters = np.sort(np.maximum(found.x[:-1], 0.0))
    return Shape(width, np.round(letters / letters[-1], _DIGITS))


def best(epsilon: float, near: float | None = None) -> Shape:
    """Search for the shape of least worst variance.

    Parameters
    ----------
    epsilon : float
        Budget of a number.
    near : float, optional
        n/m of a smaller budget, from which on it is searched.
    """
    tried: dict[float, Shape] = {}
    starts: list[Floats] = [np.ones(_HALF), np.arange(_HALF, dtype=np.float64) + 0.5]

    def at(ratio: float) -> float:
        if ratio not in tried:
            found = [_solve(LETTERS / ratio, epsilon, start) for start in starts]
            # of as good ones the first, whose letters are fewer where many are
            tried[ratio] = min(found, key=lambda each: float(f"{worst(each, epsilon):.5g}"))
        return worst(tried[ratio], epsilon)

    ratios = np.linspace(1.9, 3.0, 23) if near is None else np.linspace(0.97 * near, 1.1 * near, 14)
    chosen, step = min(ratios.tolist(), key=at), float(ratios[1] - ratios[0])
    for _ in range(4):
        step /= 2.0
        chosen = min((chosen - step, chosen, chosen + step), key=at)
    return tried[chosen]


def encoded(epsilon: float, found: Shape) -> dict[str, Any]:
    """Return a shape as a JSON value."""
    return {"epsilon": epsilon, "width": round(found.width, 6), "letters": found.letters.tolist()}
