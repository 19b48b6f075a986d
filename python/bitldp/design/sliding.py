"""The minimax release as a window that slides over letters: its law, and the shapes that are shipped.

The linear program of `bitldp.design.minimax` has a solution of this form (Lagrange's conditions make the
likely letters of every input an interval): n letters with the same least chance d; an input is reported with
e^eps times that chance within a window of m letters in a row, partly at its two ends. Its place is where the
mean of the letters is the input. So a release has few parameters, the letters and n/m; those of the least
worst variance change slowly with epsilon, are shipped for some, and interpolated between them.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FILE",
    "LETTERS",
    "SHAPE_BUDGETS",
    "Shape",
    "best_shape",
    "encoded_shape",
    "law",
    "shape",
    "worst",
]


FILE = "minimax.json"
LETTERS = 128
"""Letters of a shape: half of them above the middle, the others mirrored."""

_FINE = 9  # widths that are tried between two shipped ones
_PLACES = 65  # of the window, from the middle to the end, at which the variance is looked at

Floats = NDArray[np.float64]


class Shape(NamedTuple):
    """A window and the letters that it slides over.

    Attributes
    ----------
    width : float
        m, in letters.
    letters : ndarray of float64, shape (LETTERS/2,)
        Those above the middle, ascending, in units of any size.
    """

    width: float
    letters: Floats


def coverage(width: float, places: Floats) -> Floats:
    """Return which share of each letter is within windows that begin at `places`, shape (places, LETTERS)."""
    cells = np.arange(LETTERS)
    ends = np.minimum(cells + 1, places[:, None] + width) - np.maximum(cells, places[:, None])
    return np.clip(ends, 0.0, 1.0)


def rows(width: float, places: Floats, epsilon: float) -> Floats:
    """Return the laws of the windows that begin at `places`: each letter's chance."""
    growth = math.expm1(epsilon)
    least = 1.0 / (growth * width + LETTERS)
    return least * (1.0 + growth * coverage(width, places))


def worst(found: Shape, epsilon: float) -> float:
    """Return the largest variance of any place of the window, in units of the largest mean, squared."""
    places = np.linspace(0.0, (LETTERS - found.width) / 2.0, _PLACES)
    table, letters = rows(found.width, places, epsilon), mirrored(found.letters)
    means = table @ letters
    return float(((table @ np.square(letters) - np.square(means)) / np.square(means[0])).max())


def mirrored(letters: Floats) -> Floats:
    """Return all letters, ascending."""
    return np.concatenate([-letters[::-1], letters])


def shape(epsilon: float) -> Shape:
    """Return the shape of about the least worst variance, between those that are shipped.

    Parameters
    ----------
    epsilon : float
        From the least to the largest budget of those shipped.
    """
    budgets, shapes = _shipped()
    upper = min(max(1, int(np.searchsorted(budgets, epsilon))), len(budgets) - 1)
    low, high = shapes[upper - 1], shapes[upper]
    share = (epsilon - budgets[upper - 1]) / (budgets[upper] - budgets[upper - 1])
    between = (1.0 - share) * low.letters + share * high.letters
    tried = [
        Shape(float(width), letters)
        for width in np.linspace(low.width, high.width, _FINE)
        for letters in (low.letters, between, high.letters)
    ]
    return min(tried, key=lambda each: worst(each, epsilon))


def law(points: int, epsilon: float) -> tuple[Floats, Floats]:
    """Return the release of a number of [-1, 1] on equidistant points.

    Parameters
    ----------
    points : int
        Points that a number is dithered to, 2 or more.
    epsilon : float
        As of `shape`.

    Returns
    -------
    table : ndarray of float64, shape (points, letters)
        P(letter | point).
    letters : ndarray of float64, shape (letters,)
        Ascending; their mean is the point.
    """
    found = shape(epsilon)
    letters = mirrored(found.letters)
    last = LETTERS - found.width
    scale = float((rows(found.width, np.array([last]), epsilon) @ letters)[0])
    # The mean is linear in the place of the window between those where an end of it meets a letter's end.
    knots = np.arange(LETTERS + 1.0)
    knots = np.unique(np.clip(np.concatenate([knots, knots - found.width]), 0.0, last))
    means = np.maximum.accumulate(rows(found.width, knots, epsilon) @ letters / scale)
    middle = np.linspace(-1.0, 1.0, points)
    table = rows(found.width, np.interp(middle, means, knots), epsilon)
    distinct, place = np.unique(letters, return_inverse=True)
    merged = np.zeros((points, len(distinct)))
    np.add.at(merged.T, place, table.T)
    return merged, distinct / scale


@lru_cache(maxsize=1)
def _shipped() -> tuple[Floats, tuple[Shape, ...]]:
    text = (resources.files("bitldp.design") / "shipped" / FILE).read_text(encoding="ascii")
    found = json.loads(text)["shapes"]
    shapes = tuple(Shape(each["width"], np.array(each["letters"])) for each in found)
    return np.array([each["epsilon"] for each in found]), shapes


SHAPE_BUDGETS = tuple(
    float(each)
    for each in np.unique(np.concatenate([[0.05, 0.1, 0.2, 0.3, 0.4], np.arange(0.5, 12.01, 0.125)]))
)
_STARTS = LETTERS // 2 + 1
_HALF = LETTERS // 2
_DIGITS = 4  # of a letter: rounding is far below the flatness of the optimum


def _solved_shape(width: float, epsilon: float, start: Floats) -> Shape:
    """Return the letters of the least worst variance for a width: a convex program."""
    from scipy.optimize import minimize

    places = np.linspace(0.0, (LETTERS - width) / 2.0, _STARTS)
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
        "jac": lambda z: np.hstack([-slopes(z[:-1]), np.ones((_STARTS, 1))]) / unit,
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


def best_shape(epsilon: float, near: float | None = None) -> Shape:
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
            found = [_solved_shape(LETTERS / ratio, epsilon, start) for start in starts]
            # of as good ones the first, whose letters are fewer where many are
            tried[ratio] = min(found, key=lambda each: float(f"{worst(each, epsilon):.5g}"))
        return worst(tried[ratio], epsilon)

    ratios = np.linspace(1.9, 3.0, 23) if near is None else np.linspace(0.97 * near, 1.1 * near, 14)
    chosen, step = min(ratios.tolist(), key=at), float(ratios[1] - ratios[0])
    for _ in range(4):
        step /= 2.0
        chosen = min((chosen - step, chosen, chosen + step), key=at)
    return tried[chosen]


def encoded_shape(epsilon: float, found: Shape) -> dict[str, Any]:
    """Return a shape as a JSON value."""
    return {"epsilon": epsilon, "width": round(found.width, 6), "letters": found.letters.tolist()}
