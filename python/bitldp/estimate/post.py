"""Post-processing of frequencies: nearer to the truth on average, and biased; it costs no privacy.

An unbiased estimate may have frequencies below 0, and they need not sum to 1. What is here trades that
unbiasedness for frequencies that could be those of records. Sums, differences and tests of such values are
off in one direction, however many records there are of a rare category; so it is never done unasked.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.estimate.estimates import Estimate, project_simplex
from bitldp.estimate.means import countable
from bitldp.estimate.statistics import counts_of

__all__ = ["likeliest_frequencies", "maximum_likelihood", "norm_sub"]

_ROUNDS = 200_000  # of the iteration; thousands are usual where the law says little
_LAW = 1e-9  # how far a row of a law may be from a sum of 1


def norm_sub(values: ArrayLike, total: float = 1.0) -> NDArray[np.float64]:
    """Make frequencies or counts consistent by Norm-Sub: none below zero, with a given sum. Biased.

    Parameters
    ----------
    values : array_like of float, shape (..., k)
        Unbiased estimates on the last axis, finite.
    total : float
        Sum of the result, above zero: 1 for frequencies, the number of records for counts.

    Returns
    -------
    ndarray of float64
        Same shape: ``max(v - t, 0)`` with the one t that makes the sum right. That is the nearest point of
        the simplex, so with a total of 1 it is `project_simplex`.

    Raises
    ------
    ValueError, TypeError
        For a scalar, an empty last axis, a value that is not finite, or a total of zero or less.

    Notes
    -----
    This is post-processing: epsilon does not change, and the result is biased. Rare categories are pulled to
    0, and the excess is subtracted equally from all others. Source: Wang, Lopuhaa-Zwakenberg, Li, Skoric and
    Li, "Locally differentially private frequency estimation with consistency", NDSS 2020.

    Examples
    --------
    >>> import bitldp
    >>> bitldp.norm_sub([0.75, 0.5, -0.25]).tolist()
    [0.625, 0.375, 0.0]
    """
    whole = checks.positive("total", total)
    scaled: NDArray[np.float64] = whole * project_simplex(np.asarray(values, dtype=np.float64) / whole)
    return scaled


def maximum_likelihood(
    counts: ArrayLike, law: ArrayLike, *, tolerance: float = 1e-3, rounds: int = _ROUNDS
) -> NDArray[np.float64]:
    """Find the frequencies that make counts of reports most likely, by expectation maximization. Biased.

    Parameters
    ----------
    counts : array_like of int, shape (..., m)
        Number of times that each of m reports occurred.
    law : array_like of float, shape (k, m)
        P(report | value), each row with the sum 1.
    tolerance : float
        By how much the log-likelihood may fall short of its largest value, above zero. What 0.001 leaves is
        far below what chance does to the reports.
    rounds : int
        The most rounds of the iteration, 1 or more.

    Returns
    -------
    ndarray of float64, shape (..., k)
        Frequencies of the values: zero or more, with the sum 1.

    Raises
    ------
    ValueError, TypeError
        For counts and a law that do not fit together, for no reports, or for a report that the law excludes.
    RuntimeError
        If the rounds do not suffice. No iterate is returned in place of the maximum.

    Notes
    -----
    This is post-processing: epsilon does not change, and the result is biased (it lies on the simplex, and so
    is pushed away from its border). If the law has less than full rank, the maximum is not unique, and the
    result is the one that the iteration reaches from equal frequencies.

    With f the frequencies, m_y = sum_x f_x P(y|x) and D_x = sum_y (c_y/n) P(y|x)/m_y, a round is
    f_x <- f_x D_x (Dempster, Laird and Rubin 1977). The log-likelihood is concave in f, and its gradient is
    n D, so that it is within n (max D - 1) of its maximum: that is what `tolerance` bounds.
    """
    table, seen = np.asarray(law, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or table.size == 0 or not (table >= 0.0).all():
        raise ValueError(f"law: must be a table of probabilities, got shape {table.shape}")
    if not np.abs(table.sum(axis=1) - 1.0).max() <= _LAW:
        raise ValueError("law: every row must have the sum 1")
    if seen.ndim == 0 or seen.shape[-1] != table.shape[1]:
        raise ValueError(f"counts: the last axis must be of length {table.shape[1]}, got shape {seen.shape}")
    if not (np.isfinite(seen) & (seen >= 0.0)).all():
        raise ValueError("counts: must be finite, zero or more")
    gap, most = checks.positive("tolerance", tolerance), checks.integer("rounds", rounds, 1)
    rows = [_likeliest(row, table, gap, most) for row in seen.reshape(-1, table.shape[1])]
    return np.array(rows).reshape(*seen.shape[:-1], len(table))


def _likeliest(
    counts: NDArray[np.float64], law: NDArray[np.float64], gap: float, rounds: int
) -> NDArray[np.float64]:
    n = float(counts.sum())
    if n == 0.0:
        raise ValueError("counts: at least one report is needed for an estimate")
    met = counts > 0.0
    shares, table = counts[met] / n, np.ascontiguousarray(law[:, met])
    if not (table.max(axis=0) > 0.0).all():
        raise ValueError("counts: there are reports that no value can have")
    result = np.full(len(law), 1.0 / len(law))
    for _ in range(rounds):
        slopes = table @ (shares / (result @ table))
        if n * (float(slopes.max()) - 1.0) <= gap:
            return result
        result *= slopes
        result /= result.sum()  # which it is already, but for rounding
    raise RuntimeError(f"the likelihood is not within {gap:g} of its maximum after {rounds} rounds")


def likeliest_frequencies(
    mechanism: Any, reports: ArrayLike, *, tolerance: float = 1e-3, rounds: int = _ROUNDS
) -> Estimate:
    """Estimate frequencies from reports by maximum likelihood: `maximum_likelihood`. Biased.

    Parameters
    ----------
    mechanism : Mechanism
        Whose reports they are: one of a table, that is with `probabilities` of shape (inputs, codes) and one
        code for each value, such as `bitldp.GRR`, `bitldp.BRR` or a numeric one, whose inputs are its
        `points`.
    reports : array_like of int
        Codes of n >= 1 records, as `randomize` gives them.
    tolerance : float
        By how much the log-likelihood may fall short of its largest value, above zero. What 0.001 leaves is
        far below what chance does to the reports.
    rounds : int
        The most rounds of the iteration, 1 or more.

    Returns
    -------
    Estimate
        `value` of shape (inputs,), or (features, inputs) for several features; with the labels, where the
        mechanism has any. `stderr` is NaN: the estimate is biased, and no standard error says how far off it
        is. `post` says so when it is printed.

    Raises
    ------
    TypeError
        For a mechanism without such a table.
    ValueError
        For no reports, or for a report out of range.
    RuntimeError
        If the rounds do not suffice. No iterate is returned in place of the maximum.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> mechanism = bitldp.GRR(4, epsilon=1.0)
    >>> reports = mechanism.randomize(np.repeat([0, 1], 5000), rng=1)
    >>> estimate = bitldp.likeliest_frequencies(mechanism, reports)
    >>> bool(estimate.value.min() >= 0.0), round(float(estimate.value.sum()), 6)
    (True, 1.0)
    """
    parts: Any = getattr(mechanism, "_report_parts", ())
    law: NDArray[Any] = np.zeros(0)
    if len(parts) == 1:
        law = np.asarray(mechanism.probabilities())
    if law.ndim != 2 or math.ceil(math.log2(max(2, law.shape[1]))) != max(1, parts[0][1]):
        name = type(mechanism).__name__
        raise TypeError(f"mechanism: {name} has no table of the codes that it reports, one a value")
    columns = parts[0][0]
    codes = countable("reports", reports)
    checks.records("reports", codes, columns)
    records = codes.size // columns
    if not records:
        raise ValueError("reports: at least one is needed for an estimate")
    counts = counts_of(codes, columns, law.shape[1], "codes", records, None)
    value = maximum_likelihood(counts, law, tolerance=tolerance, rounds=rounds)
    value = value[0] if columns == 1 else value
    unknown = np.full_like(value, np.nan)
    labels = getattr(mechanism, "labels", None)
    return Estimate(value, unknown, records, labels=labels, post="maximum likelihood")
