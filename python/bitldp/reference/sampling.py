"""Sampling from any row-stochastic table, in NumPy: alias tables, inversion, dithered inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def dither(
    x: NDArray[Any], points: int, low: float, high: float, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Round real values to one of their two neighbours on a grid, so that the mean stays.

    Parameters
    ----------
    x : ndarray of float32 or float64
        Values, any shape; those outside the interval are clipped to it.
    points : int
        Points of the grid, ends included.
    low, high : float
        The interval.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of intp
        Index of a grid point, same shape: x between the points a < b goes to b with probability
        (x - a)/(b - a), else to a.
    """
    position = (np.clip(x, low, high) - x.dtype.type(low)) * x.dtype.type((points - 1) / (high - low))
    below = np.floor(position)
    up = rng.random(x.shape, dtype=np.float32) < position - below
    index: NDArray[np.intp] = np.minimum(below.astype(np.intp) + up, points - 1)
    return index


def alias_table(probabilities: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Build Walker's alias table of every row.

    Parameters
    ----------
    probabilities : ndarray of float64, shape (R, C)
        Rows that sum to 1.

    Returns
    -------
    threshold : ndarray of float64, shape (R, C)
        Probability that a column, once drawn, is the report.
    alias : ndarray of unsigned int, shape (R, C)
        The report otherwise, in the smallest dtype.

    Notes
    -----
    Source: Vose, "A linear algorithm for generating random numbers with a given distribution", IEEE
    Transactions on Software Engineering 17 (1991).
    """
    rows, columns = probabilities.shape
    threshold = np.ones((rows, columns))
    alias = np.tile(np.arange(columns, dtype=np.min_scalar_type(columns - 1)), (rows, 1))
    for row, law in enumerate(probabilities * columns):
        small = [column for column in range(columns) if law[column] < 1.0]
        large = [column for column in range(columns) if law[column] >= 1.0]
        while small and large:
            poor, rich = small.pop(), large[-1]
            threshold[row, poor] = law[poor]
            alias[row, poor] = rich
            law[rich] -= 1.0 - law[poor]
            if law[rich] < 1.0:
                small.append(large.pop())
    return threshold, alias


def matrix_alias(
    rows: NDArray[np.intp],
    table: tuple[NDArray[np.float64], NDArray[Any]],
    rng: np.random.Generator,
) -> NDArray[Any]:
    """Sample a table's rows by its alias table.

    Parameters
    ----------
    rows : ndarray of intp
        Inputs, any shape.
    table : tuple of ndarray
        What `alias_table` returned.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of unsigned int
        Reports, same shape, dtype of the alias table.
    """
    threshold, alias = table
    columns = threshold.shape[1]
    column = rng.integers(0, columns, rows.shape, dtype=alias.dtype)
    cell = rows * columns + column
    return np.where(rng.random(rows.shape) < threshold.ravel()[cell], column, alias.ravel()[cell])


def matrix_inversion(
    rows: NDArray[np.intp], probabilities: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.intp]:
    """Sample a table's rows by inverting their distribution functions.

    Parameters
    ----------
    rows, rng
        As of `matrix_alias`.
    probabilities
        As of `alias_table`.

    Returns
    -------
    ndarray of intp
        Reports, same shape.

    Notes
    -----
    Row r of the distribution functions is raised by r, which makes one ascending list of all of them.
    """
    count, columns = probabilities.shape
    steps = np.cumsum(probabilities, axis=1)
    steps = np.minimum(steps / steps[:, -1:], 1.0) + np.arange(count)[:, None]
    index = np.searchsorted(steps.ravel(), rng.random(rows.shape) + rows, side="right")
    reports: NDArray[np.intp] = np.clip(index - rows * columns, 0, columns - 1)
    return reports
