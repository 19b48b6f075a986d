"""Amplification by shuffling: a bound in the CENTRAL model, not a guarantee of a mechanism.

Everything else in this package is local: it holds against whoever sees a single report and knows whose it is.
The bound here does not. It needs a party between the users and the server that is trusted to shuffle.
"""

from __future__ import annotations

import math

from bitldp.base import checks

__all__ = ["shuffled_central_epsilon"]

_MARGIN = 1.0 + 2.0**-40  # more than the rounding of the formula, where ln(n) of any double n costs most


def shuffled_central_epsilon(local_epsilon: float, n: int, delta: float) -> float:
    """Bound the central epsilon of n reports that an honest shuffler has put in random order.

    Parameters
    ----------
    local_epsilon : float
        Exact local epsilon of each user's whole report (``guarantee.record`` of the mechanism), finite, zero
        or more.
    n : int
        Users, each of whom sends one report, 1 or more.
    delta : float
        Delta of the central guarantee, in (0, 1).

    Returns
    -------
    float
        Epsilon, rounded up: the shuffled reports are (epsilon, delta)-differentially private between data
        sets that differ in the record of one user. Never more than `local_epsilon`.

    Raises
    ------
    ValueError
        If the condition of the theorem does not hold, n >= 16 ln(2/delta) e^local_epsilon, or for a parameter
        out of its range. There is no fallback bound.
    TypeError
        For a parameter of the wrong kind.

    Notes
    -----
    The result relies on assumptions that this package cannot check:

    - The shuffler is honest: it puts the reports in a uniformly random order, and removes everything else
      that identifies the sender (address, time, order of arrival). The server sees its output only, and does
      not collude with it.
    - All n users report, with the same mechanism, each with fresh randomness. Users who collude with the
      server or drop out must be subtracted from n beforehand.

    With L the local epsilon, the bound is::

        ln(1 + (e^L - 1)/(e^L + 1) (8 sqrt(e^L ln(4/delta))/sqrt(n) + 8 e^L/n))

    on the condition that L <= ln(n/(16 ln(2/delta))).

    This is not a local guarantee: against the shuffler, or anyone who can link a report to its sender, only
    `local_epsilon` holds. Do not charge it to a ledger of local releases.

    Source: Feldman, McMillan and Talwar, "Hiding among the clones: a simple and nearly optimal analysis of
    privacy amplification by shuffling", FOCS 2021, Theorem 3.1.

    Examples
    --------
    >>> from bitldp.amplification import shuffled_central_epsilon
    >>> round(shuffled_central_epsilon(1.0, 100_000, 1e-6), 4)
    0.0726
    """
    epsilon = checks.budget("local_epsilon", local_epsilon)
    n = checks.integer("n", n, 1)
    delta = checks.real("delta", delta)
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta: must be above 0 and below 1, got {delta}")
    # compared in logarithms, since e^epsilon may exceed every double
    needed = math.log(16.0 * (math.log(2.0) - math.log(delta))) + epsilon
    if not needed * _MARGIN <= math.log(n):
        users = f"{math.ceil(math.exp(needed))}" if needed < 50.0 else f"e^{needed:.6g}"
        raise ValueError(f"n: the bound needs 16 ln(2/delta) e^local_epsilon = {users} users, got {n}")
    share = math.exp(epsilon - math.log(n))  # e^epsilon/n, at most 1/16 here
    log_four = math.log(4.0) - math.log(delta)
    bound = math.log1p(math.tanh(epsilon / 2.0) * (8.0 * math.sqrt(share * log_four) + 8.0 * share))
    return min(bound * _MARGIN, epsilon)
