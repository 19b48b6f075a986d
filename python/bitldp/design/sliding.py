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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["FILE", "LETTERS", "Shape", "law", "shape", "worst"]

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
