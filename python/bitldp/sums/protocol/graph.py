"""Graph of a sum: which clients share masks, and with what chance a server can cut it.

Each client holds out shares of its secrets to `degree` others, which its own fresh nonce chooses among the
whole list, and shares masks with these and with those who chose it. Nobody else has a say in the choice: the
server sends the signed nonces on, and every client computes all of the graph.

A server that names clients as dropped cannot name more than the terms allow, nor so many that a survivor has
fewer than `threshold` survivors among those it chose. To read less than the whole sum, it needs a part S of
the honest survivors without an edge to the other honest ones: then at least `threshold` of those whom a
client of S chose are in S or collude. Of two such parts the smaller has at most half of the honest clients,
and the nonces are independent, so that the chance is at most

    sum over s from 1 to (n - c)/2 of  C(n - c, s) * P(H(n - 1, s - 1 + c, degree) >= threshold)^s

with n clients, c of which collude, and the hypergeometric law H. The term of s = 1 bounds, too, the chance
that colluders hold enough shares of somebody's secrets. It holds for colluders who were chosen before the
nonces. For the complete graph and a threshold above (n + c)/2 every term is zero, whoever colludes.

Source of the argument: Bell et al., CCS 2020, Section 4 and Appendix; the bound is computed here for the
graph as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bitldp.sums.protocol.masks import stream

__all__ = ["chosen", "failure_chance", "least_threshold"]

_SLACK = 1e-9  # relative, of a logarithm: far above the rounding of some hundred doubles


def chosen(nonce: bytes, index: int, clients: int, degree: int) -> NDArray[np.bool_]:
    """Return which clients of the list a client chose, shape (clients,); never itself."""
    result = np.ones(clients, np.bool_)
    result[index] = False
    if degree < clients - 1:
        ranks = stream(nonce, clients, 64).copy()
        ranks[index] = np.iinfo(ranks.dtype).max
        order = np.argsort(ranks, kind="stable")
        order = np.concatenate([order[order != index], [index]])  # itself last, whatever the ranks
        result[order[degree:]] = False
    return result


def edges(nonces: Mapping[int, bytes], clients: int, degree: int) -> dict[int, NDArray[np.bool_]]:
    """Return which clients each present one chose, by its index."""
    return {index: chosen(nonce, index, clients, degree) for index, nonce in nonces.items()}


@lru_cache(maxsize=64)
def failure_chance(clients: int, colluding: int, degree: int, threshold: int) -> float:
    """Return an upper bound of the chance that a server can read less than the whole sum.

    Parameters
    ----------
    clients, colluding : int
        Length of the list, and how many of them work with the server.
    degree, threshold : int
        Clients that each one chooses, and how many of them must be among the survivors.

    Returns
    -------
    float
        Between 0 and 1, rounded up; see the module. 0 is exact.
    """
    total = 0.0
    for part in range(1, (clients - colluding) // 2 + 1):
        tail = _tail(clients - 1, part - 1 + colluding, degree, threshold)
        if tail == 0:
            continue
        power = _log2(Fraction(math.comb(clients - colluding, part))) + part * _log2(tail)
        total += math.inf if power > 0.0 else 2.0**power * (1.0 + _SLACK)
    return min(1.0, total)


@lru_cache(maxsize=64)
def least_threshold(clients: int, colluding: int, degree: int, chance: float) -> int | None:
    """Return the least threshold with a failure chance of at most `chance`; None if none has."""
    low, high = 1, degree + 1
    while low < high:  # the chance falls with the threshold
        middle = (low + high) // 2
        if failure_chance(clients, colluding, degree, middle) <= chance:
            high = middle
        else:
            low = middle + 1
    return low if low <= degree else None


def _tail(population: int, marked: int, draws: int, least: int) -> Fraction:
    """Return P(X >= least) for the hypergeometric number X of marked ones among `draws`."""
    ways = sum(
        math.comb(marked, hits) * math.comb(population - marked, draws - hits)
        for hits in range(max(least, draws - population + marked), min(marked, draws) + 1)
    )
    return Fraction(ways, math.comb(population, draws))


def _log2(number: Fraction) -> float:
    """Return an upper bound of the base-2 logarithm of a fraction above zero."""
    shift = number.numerator.bit_length() - number.denominator.bit_length()
    scaled = number / Fraction(2) ** shift  # in (1/2, 2)
    value = shift + math.log2(scaled)
    return value + _SLACK * max(1.0, abs(value))
