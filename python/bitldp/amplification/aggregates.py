"""Central privacy of a sum or a histogram of reports, from the integers of the local law."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix, Shift, Window
from bitldp.amplification._binary import Binary
from bitldp.amplification._datasets import Datasets, work
from bitldp.amplification._sums import blanketed, noised
from bitldp.base import checks
from bitldp.channels.noise import is_log_concave
from bitldp.release.shift import law_of

__all__ = [
    "shuffled_histogram_central_delta",
    "shuffled_histogram_central_epsilon",
    "summed_central_delta",
    "summed_central_epsilon",
]

_WORK = float(1 << 25)  # chances of all data sets that are looked at one by one
_FEW = 1000  # users of whom all data sets of two records are looked at; of more, some at a time
_ROUNDED = 1e-2  # of delta, that rounding may be
_USERS = 1 << 24
_HALVINGS = 40
_CLOSE = 1e-4  # relative, of an epsilon that is searched


def summed_central_epsilon(mechanism: Any, n: int, delta: float) -> float:
    """Return the central epsilon of the sum of n reports, if nothing but the sum is seen.

    Parameters
    ----------
    mechanism : Mechanism or channel
        What every user reports one number or category with: a mechanism of one column whose law is a
        `Window`, a `Matrix` or a `Shift`, or such a channel.
    n : int
        Users, each of whom sends one report, 1 to 2**24.
    delta : float
        Delta of the central guarantee, in (0, 1).

    Returns
    -------
    float
        Epsilon, rounded up and never above the local one: the sum of the codes is (epsilon,
        delta)-differentially private between data sets that differ in the record of one user.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, or a mechanism of several columns or of another law.

    Notes
    -----
    Assumptions, none of which this package can check: whoever adds up the reports (a secure aggregation)
    shows nothing but the sum; all n users report, with the same mechanism, each with fresh randomness, and do
    not tell. Users who collude or drop out must be subtracted from n. Against all others only the local
    epsilon holds. Do not charge this to a ledger of local releases.

    For noise that is added and never clamped (`Shift`, log-concave), the others' records only move the sum,
    and delta is that of the n-fold convolution of the integers. Otherwise the largest delta of every pair of
    neighbouring data sets is found, where they are not too many; of reports of two values by two inputs for
    any n, within 0.2 % of epsilon (data sets are bounded some at a time); else the bound of
    `shuffled_histogram_central_epsilon`, of which a sum is a function.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.amplification import summed_central_epsilon
    >>> round(summed_central_epsilon(bitldp.WarnerRR(1.0), 100, 1e-6), 3)
    0.484
    """
    return _epsilon(_law(mechanism), _users(n), _chance(delta), True)


def summed_central_delta(mechanism: Any, n: int, epsilon: float) -> float:
    """Return the central delta of the sum of n reports at an epsilon; see `summed_central_epsilon`.

    Parameters
    ----------
    mechanism, n
        As of `summed_central_epsilon`.
    epsilon : float
        Finite, zero or more.
    """
    return _delta(_law(mechanism), _users(n), checks.budget("epsilon", epsilon), True)


def shuffled_histogram_central_epsilon(mechanism: Any, n: int, delta: float) -> float:
    """Return the central epsilon of n reports of which an honest shuffler shows how often there is each.

    Parameters
    ----------
    mechanism, n, delta
        As of `summed_central_epsilon`.

    Returns
    -------
    float
        Epsilon, rounded up and never above the local one.

    Raises
    ------
    ValueError, TypeError
        As of `summed_central_epsilon`.

    Notes
    -----
    Assumptions: those of `bitldp.amplification.shuffled_central_epsilon`. That bound is a formula for any
    mechanism of a local epsilon; this one knows the law. It is the exact delta of the worst pair of
    neighbouring data sets where there are not too many (a few users, or few reports). Else the blanket of the
    law is accounted: what every record reports with the same chance, which hides a user (Balle, Bell, Gascon
    and Nissim, "The privacy blanket of the shuffle model", CRYPTO 2019). That is an upper bound, tight but
    for what the others' own records hide.

    Examples
    --------
    >>> import bitldp
    >>> from bitldp.amplification import shuffled_central_epsilon, shuffled_histogram_central_epsilon
    >>> round(shuffled_histogram_central_epsilon(bitldp.GRR(10, epsilon=1.0), 100_000, 1e-6), 4)
    0.0066
    >>> round(shuffled_central_epsilon(1.0, 100_000, 1e-6), 4)
    0.0726
    """
    return _epsilon(_law(mechanism), _users(n), _chance(delta), False)


def shuffled_histogram_central_delta(mechanism: Any, n: int, epsilon: float) -> float:
    """Return the central delta at an epsilon; see `shuffled_histogram_central_epsilon`.

    Parameters
    ----------
    mechanism, n
        As of `summed_central_epsilon`.
    epsilon : float
        Finite, zero or more.
    """
    return _delta(_law(mechanism), _users(n), checks.budget("epsilon", epsilon), False)


def _users(n: Any) -> int:
    return checks.integer("n", n, 1, _USERS)


def _chance(delta: Any) -> float:
    return checks.chance("delta", delta)


def _law(mechanism: Any) -> Any:
    """Return the channel of one report."""
    channel: Any = mechanism
    if not isinstance(mechanism, (Matrix, Shift, Window)):
        if getattr(mechanism, "columns", 1) != 1:
            raise ValueError("mechanism: must report one number or category, not several columns")
        channel = getattr(mechanism, "channel", None)
        if channel is None:
            channels = list(getattr(mechanism, "channels", ()))
            channel = channels[0] if len(channels) == 1 else None
    if not isinstance(channel, (Matrix, Shift, Window)):
        name = type(mechanism).__name__
        raise TypeError(f"mechanism: its law must be one Matrix, Shift or Window, not {name}")
    return channel


def _is_free(channel: Any) -> bool:
    """Whether noise is added that is never clamped."""
    return (
        isinstance(channel, Shift)
        and not channel.mute
        and channel.offset == channel.reach
        and channel.outputs == channel.inputs + 2 * channel.reach
        and is_log_concave(channel.weights())
    )


def _rows(channel: Any) -> NDArray[np.float64]:
    """Return the different rows of the law."""
    rows: NDArray[np.float64] = np.unique(channel.probabilities(), axis=0)
    return rows


def _exact(channel: Any, n: int, summed: bool, delta: float) -> Datasets | None:
    """Return all data sets, if they are not too many."""
    rows = _rows(channel)
    if work(rows, n, summed) > _WORK or (rows.shape == (2, 2) and n > _FEW):
        return None
    found = Datasets(rows, n, summed)
    # of many users, what the rounding of a transform may be is more than a small delta
    return found if found.slack * math.exp(min(channel.epsilon, 700.0)) <= _ROUNDED * delta else None


def _bound(channel: Any, n: int, summed: bool) -> Callable[[float], float]:
    """Return delta as a function of epsilon, for many users."""
    if summed and _is_free(channel):
        noise, steps = law_of(channel), channel.inputs - 1
        return lambda epsilon: noised(noise, steps, n, epsilon)
    rows = _rows(channel)
    if rows.shape == (2, 2):
        return Binary(rows, n).delta
    return lambda epsilon: blanketed(rows, n, epsilon)


def _delta(channel: Any, n: int, epsilon: float, summed: bool) -> float:
    if epsilon >= channel.epsilon:
        return 0.0
    exact = None if summed and _is_free(channel) else _exact(channel, n, summed, math.inf)
    if exact is None:
        return _bound(channel, n, summed)(epsilon)
    found = exact.delta(epsilon)
    return found if exact.slack <= _ROUNDED * found else min(found, _bound(channel, n, summed)(epsilon))


def _epsilon(channel: Any, n: int, delta: float, summed: bool) -> float:
    local = float(channel.epsilon)
    if local == 0.0:
        return 0.0
    exact = None if summed and _is_free(channel) else _exact(channel, n, summed, delta)
    if exact is not None:
        return exact.epsilon(delta, local)
    rows = _rows(channel)
    if rows.shape == (2, 2) and not (summed and _is_free(channel)):
        return Binary(rows, n).epsilon(delta, local)
    reached = _bound(channel, n, summed)
    low, high = 0.0, local
    if math.isinf(local):  # noise that is cut off
        high = 1.0
        while reached(high) > delta:
            low, high = high, 2.0 * high
            if high > 700.0:
                return math.inf
    for _ in range(_HALVINGS):
        if high - low <= _CLOSE * high:
            break
        middle = (low + high) / 2.0
        low, high = (low, middle) if reached(middle) <= delta else (middle, high)
    return high
