"""Windows in NumPy: GRR, BRR on a line and by any order of the candidates, and of several numbers at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def grr(x: NDArray[Any], categories: int, p: float, rng: np.random.Generator) -> NDArray[Any]:
    """Report the true category with probability p, and otherwise one of the others.

    Parameters
    ----------
    x : ndarray of int
        Categories, 0 to `categories` - 1, any shape.
    categories : int
        Categories C.
    p : float
        Probability of the true one, e^eps/(e^eps + C - 1).
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray
        Reports, shape and dtype of `x`.
    """
    truthful = rng.random(x.shape) < p
    other = rng.integers(0, categories - 1, x.shape, dtype=x.dtype)
    other += other >= x
    return np.where(truthful, x, other)


def window_starts(x: NDArray[Any], cells: int, width: int) -> NDArray[Any]:
    """Return the first cell of each input's window: the nearest `width` cells, shifted inside at the edges.

    Parameters
    ----------
    x : ndarray of int
        Cells, 0 to `cells` - 1, any shape.
    cells, width : int
        Cells N, and how many of them (m) a window has.

    Returns
    -------
    ndarray of intp
        Same shape. With an even width the tie between two equally near cells goes to the lower index.
    """
    return np.clip(x.astype(np.intp) - width // 2, 0, cells - width)


def window(x: NDArray[Any], cells: int, width: int, high: float, rng: np.random.Generator) -> NDArray[Any]:
    """Report a cell near the truth with probability `high`, otherwise one of the others; uniform within each.

    Parameters
    ----------
    x, cells, width
        As of `window_starts`, with a width below N.
    high : float
        Probability of the window, m e^eps/(m e^eps + N - m).
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray
        Reports, shape and dtype of `x`.
    """
    start = window_starts(x, cells, width)
    inside = rng.random(x.shape) < high
    near = start + rng.integers(0, width, x.shape)
    far = rng.integers(0, cells - width, x.shape)
    far += width * (far >= start)
    return np.where(inside, near, far).astype(x.dtype)


def joint_window(
    x: NDArray[Any], points: int, reach: int, share: float, rng: np.random.Generator
) -> NDArray[Any]:
    """Report cells near all numbers of a record with probability `share`, otherwise any cells.

    Parameters
    ----------
    x : ndarray of int, shape (n, k)
        Points, 0 to `points` - 1.
    points, reach : int
        Points P of a number, and cells on each side of its own that are near; a report has P + 2 reach.
    share : float
        Probability that a record's report is drawn near it.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of intp, shape (n, k)
        Cells, 0 to P + 2 reach - 1; that of `x` is x + reach.
    """
    inside = rng.random((len(x), 1)) < share
    near = x + rng.integers(0, 2 * reach + 1, x.shape)
    return np.where(inside, near, rng.integers(0, points + 2 * reach, x.shape))


def ordered_window(
    x: NDArray[Any], order: NDArray[Any], width: int, high: float, rng: np.random.Generator
) -> NDArray[Any]:
    """Report one of the input's `width` best cells with probability `high`, otherwise one of the others.

    Parameters
    ----------
    x : ndarray of int
        Cells, 0 to N - 1, any shape.
    order : ndarray of int, shape (N, N)
        Row x lists the cells from best to worst for the input x.
    width : int
        How many of them (m < N) make the window.
    high : float
        Probability of the window.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray
        Reports, shape of `x`, dtype of `order`.
    """
    inside = rng.random(x.shape) < high
    near = rng.integers(0, width, x.shape)
    far = rng.integers(width, len(order), x.shape)
    reports: NDArray[Any] = order[x, np.where(inside, near, far)]
    return reports


def categories_cap(
    x: NDArray[Any], categories: int, hits: int, high: float, rng: np.random.Generator
) -> NDArray[Any]:
    """Return records of categories, with probability `high` uniform among those of `hits` or more true ones.

    Parameters
    ----------
    x : ndarray of int, shape (n, m)
        Records of m categories each.
    categories : int
        Categories of each, 2 or more.
    hits : int
        Least true ones of the likely set, 1 to m.
    high : float
        How often a report is drawn from it; else it is uniform among all.
    rng : Generator
        Where the randomness comes from.

    Returns
    -------
    ndarray, shape (n, m)
        The number of true ones is drawn by inversion; which they are are those of the smallest keys.
    """
    n, m = x.shape
    share, counts = 1.0 / categories, np.arange(m + 1)
    law = np.array([math.comb(m, a) * share**a * (1.0 - share) ** (m - a) for a in range(m + 1)])
    likely = np.where(counts >= hits, law, 0.0)
    mixed = high * likely / likely.sum() + (1.0 - high) * law
    true: NDArray[Any] = np.searchsorted(np.cumsum(mixed)[:-1], rng.random((n,)), side="right")
    ranks = np.argsort(np.argsort(rng.random((n, m), dtype=np.float32), axis=1), axis=1)
    others = rng.integers(0, categories - 1, (n, m), dtype=x.dtype)
    return np.where(ranks < true[:, None], x, others + (others >= x))
