"""Rényi divergences of integer laws, over all pairs of inputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.accounting.laws import parts
from bitldp.accounting.loss_table import Curve, LossTable, Normal

__all__ = ["ORDERS", "check_orders", "renyi"]

ORDERS: tuple[float, ...] = tuple(float(1.0 + 2.0 ** (k / 4.0)) for k in range(-24, 45))
"""The Rényi orders that accounting looks at: 1 + 2^(k/4), from about 1.016 to 2049."""

_UP = 1.0 + 2.0**-48  # more than the rounding of a few products
_UNIT = 2.0**-49  # of a logarithm: what it may be off, and a sum, by eighths
_SAFE = 300.0  # exponents up to which powers of the rows are formed themselves; doubles end at e^709


def renyi(release: Any, orders: ArrayLike = ORDERS) -> NDArray[np.float64]:
    """Return the Rényi divergence of a release at some orders, for the worst pair of records.

    Parameters
    ----------
    release : Mechanism, channel or Guarantee
        A mechanism, one of `bitldp.channels`, or a guarantee, for which the worst law that it allows is used.
    orders : array_like of float
        Orders alpha, each finite and above 1, shape (n,) or ().

    Returns
    -------
    ndarray of float64
        Same shape: ``max over records x, x' of 1/(alpha - 1) ln sum_y P(y|x)^alpha P(y|x')^(1 - alpha)``,
        rounded up. Infinite if some report excludes some record, and for a guarantee with a delta.

    Raises
    ------
    ValueError
        For an order of 1 or less, or one that is not finite.
    TypeError
        For a release of another kind.

    Notes
    -----
    Neighbouring records differ in any way. The symbols of a report are independent, and each may have its
    worst pair of inputs. The divergence of a record is therefore the sum over its symbols, and exact, except
    for a few units in the last place of alpha/(alpha - 1) that cover the rounding of floats. The divergence
    of order alpha is at most the exact epsilon e and alpha e^2/2 (Bun and Steinke, "Concentrated differential
    privacy", TCC 2016, Proposition 3.3); the result never exceeds these. A mechanism whose records are
    bounded together (in a ball) may have its own `renyi`; its documentation says what is exact.

    Source of the definition: Mironov, "Rényi differential privacy", CSF 2017.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.accounting import renyi
    >>> renyi(bitldp.WarnerRR(epsilon=1.0), [2.0, 32.0]).round(6).tolist()
    [0.735326, 0.989895]
    """
    alphas = check_orders(orders)
    if hasattr(release, "renyi"):
        own: NDArray[np.float64] = release.renyi(alphas)
        return own
    flat = np.atleast_1d(alphas)
    totals = np.zeros(len(flat))
    for part in parts(release):
        totals += part.times * of_tables(part.tables, flat)
    return (totals * _UP).reshape(alphas.shape)


def check_orders(orders: Any) -> NDArray[np.float64]:
    """Return Rényi orders as an array, or raise."""
    try:
        alphas = np.asarray(orders, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("orders: must be real numbers") from None
    if alphas.ndim > 1 or alphas.size == 0:
        raise ValueError(f"orders: shape must be (n,) with n >= 1, or (), got {alphas.shape}")
    if not (np.isfinite(alphas) & (alphas > 1.0)).all():
        raise ValueError("orders: must all be finite and above 1")
    return alphas


def of_tables(tables: Sequence[LossTable | Normal | Curve], alphas: Iterable[float]) -> NDArray[np.float64]:
    """Return the divergence of one symbol at every order: the worst of its tables."""
    return np.array([max(of_table(table, float(alpha)) for table in tables) for alpha in alphas])


def of_table(table: LossTable | Normal | Curve, alpha: float) -> float:
    """Return the divergence of the worst pair of rows, rounded up."""
    if isinstance(table, Curve):
        raise TypeError("release: a curve of delta alone has no Rényi divergence")
    if isinstance(table, Normal):
        return alpha * table.mu * table.mu / 2.0 * _UP
    if math.isinf(table.epsilon):
        return math.inf
    epsilon = table.epsilon
    return min(float(divergences(table, alpha).max()), epsilon, alpha * epsilon * epsilon / 2.0)


def divergences(table: LossTable, alpha: float) -> NDArray[np.float64]:
    """Return the divergence of every pair of rows, shape (inputs, inputs), rounded up.

    Only for tables whose rows exclude the same values. Rows are first divided by the geometric mean of the
    largest and the smallest chance of each value, so that their logarithms are within epsilon/2, and the sums
    are a product of two matrices; where powers of e^(epsilon/2) would leave the range of doubles, by
    logarithms.
    """
    logs = np.log(table.rows)
    center = (logs.max(axis=0) + logs.min(axis=0)) / 2.0
    offsets = logs - center
    if alpha * float(np.abs(offsets).max(initial=0.0)) < _SAFE:
        sums = np.exp(alpha * offsets + center) @ np.exp((1.0 - alpha) * offsets).T
        exponents = np.log(sums)
    else:
        exponents = np.stack([_log_sums(alpha * row + (1.0 - alpha) * logs) for row in logs])
    # each logarithm is off by less than 2 units in its last place, times alpha; a sum by one unit a term
    slack = (alpha * (1.0 + float(np.abs(logs).max())) + logs.shape[1] / 8.0) * _UNIT
    result: NDArray[np.float64] = np.maximum(exponents + slack, 0.0) / (alpha - 1.0)
    np.fill_diagonal(result, 0.0)
    return result


def _log_sums(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    top = exponents.max(axis=1, keepdims=True)
    sums: NDArray[np.float64] = top[:, 0] + np.log(np.exp(exponents - top).sum(axis=1))
    return sums
