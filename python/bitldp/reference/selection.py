"""Selection of a coordinate, in NumPy: EXP by sorting, PS by partitioning, PE as printed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def among_equals(sizes: NDArray[Any], chosen: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Replace each chosen coordinate by a random one of the same size, which breaks ties at random.

    Parameters
    ----------
    sizes : ndarray of float, shape (n, d)
        Magnitudes.
    chosen : ndarray of int, shape (n,)
        A coordinate of each vector.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int, shape (n,)
    """
    equal = sizes == np.take_along_axis(sizes, chosen[:, None], axis=1)
    counts = np.count_nonzero(equal, axis=1)
    chosen = chosen.copy()
    for row in np.flatnonzero(counts > 1):
        chosen[row] = rng.choice(np.flatnonzero(equal[row]))
    return chosen


def select_by_rank(scores: NDArray[Any], law: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Draw a rank from a law, and return the coordinate whose magnitude has it: EXP.

    Parameters
    ----------
    scores : ndarray of float, shape (n, d)
        Vectors.
    law : ndarray of float64, shape (d,)
        Probability of each rank, smallest magnitude first.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int, shape (n,)
    """
    sizes = np.abs(scores)
    ranks = np.searchsorted(np.cumsum(law)[:-1], rng.random(len(scores)), side="right")
    order = np.argsort(sizes, axis=1)
    return among_equals(sizes, order[np.arange(len(scores)), ranks], rng)


def select_top(scores: NDArray[Any], k: int, p: float, rng: np.random.Generator) -> NDArray[Any]:
    """Return one of the k largest coordinates with probability p, else one of the others: PS.

    Parameters
    ----------
    scores, rng
        As of `select_by_rank`.
    k : int
        How many coordinates are large.
    p : float
        Probability to take one of them, e^eps k/(d - k + e^eps k).

    Returns
    -------
    ndarray of int, shape (n,)
    """
    n, d = scores.shape
    sizes = np.abs(scores)
    order = np.argpartition(sizes, d - k, axis=1)
    inside = rng.random(n) < p
    rank = np.where(inside, rng.integers(d - k, d, n), rng.integers(0, d - k, n))
    return among_equals(sizes, order[np.arange(n), rank], rng)


def perturbed_encoding(scores: NDArray[Any], k: int, p: float, rng: np.random.Generator) -> NDArray[Any]:
    """Perturb the bits "is among the k largest" one by one, and return one of the ones: PE as printed.

    Parameters
    ----------
    scores, k, rng
        As of `select_top`.
    p : float
        Probability to keep a bit.

    Returns
    -------
    ndarray of int, shape (n,)
        d where there is no one.
    """
    n, d = scores.shape
    order = np.lexsort((rng.random((n, d)), np.abs(scores)), axis=1)
    bits = np.zeros((n, d), np.bool_)
    np.put_along_axis(bits, order[:, d - k :], True, axis=1)
    bits ^= rng.random((n, d)) >= p
    drawn = np.where(bits, rng.random((n, d)), -1.0)
    chosen: NDArray[Any] = np.where(bits.any(axis=1), drawn.argmax(axis=1), d)
    return chosen
