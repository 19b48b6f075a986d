"""Minimum variance unbiased mechanism: a number becomes b bits with the least variance that was found."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Annotated

from bitldp.compression.designs import designed, tabled
from bitldp.design.mvu import BITS, load_or_solve
from bitldp.mechanism.designed import Designed, DesignTable
from bitldp.mechanism.numeric import Numeric
from bitldp.mechanism.parameters import Criterion, Interval, whole
from bitldp.release.base import Release
from bitldp.release.table import silent

__all__ = ["MVU"]


@lru_cache(maxsize=64)
def _solved(bits: tuple[int, int], epsilon: float, objective: str) -> DesignTable:
    return tabled(load_or_solve(*bits, epsilon, objective=objective))


@dataclass(frozen=True, eq=False, repr=False)
class MVU(Designed, Numeric):
    """MVU: numbers in a few bits with the least variance, by a program that was solved before.

    Parameters
    ----------
    epsilon : float
        Exact epsilon of one `unit`, finite, zero or more. A number's share must be 0 or at least 1e-4 (1e-9
        with one output bit); at most 16 of it is spent.
    input_bits : int
        Bits of the grid, b_in, 1 to 8: a number is dithered to one of 2**b_in points.
    output_bits : int
        Bits of a report, b_out, 1 to 8.
    objective : {"mean", "worst"}
        What is minimised: the sum of the variances at the points, or the largest variance of any number.
    interval : (float, float)
        Where every number lies.
    features, spend, k, clip, unit
        As for `bitldp.Duchi`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.
    DesignError
        If the solver finds no mechanism.
    MissingExtraError
        If a design must be solved, and the extra ``design`` (SciPy) is not installed.

    Notes
    -----
    Neighbouring records differ in any way. Designs for up to 3 bits and common budgets of a number are
    shipped with the package; others are solved when they are first asked for (seconds up to 7 input and 5
    output bits, minutes beyond), then cached on disk: see `bitldp.design.mvu.load_or_solve`. With one output
    bit the mechanism is randomized response of the dithered number.

    Another version of the solver may find another table of about the same variance. So where the design is
    not one of those shipped, client and server share one mechanism as a pickle, which holds the table;
    `fingerprint` tells tables apart. Source: Chaudhuri, Guo and Rabbat,
    "Privacy-aware compression for federated data analysis" (UAI 2022), Section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from bitldp.compression import MVU
    >>> mechanism = MVU(1.0, input_bits=3, output_bits=3)
    >>> reports = mechanism.randomize(np.full(80_000, 0.25), rng=1, output="packed")
    >>> len(reports)
    30000
    """

    _: KW_ONLY
    input_bits: Annotated[int, whole(1, BITS)] = 3
    output_bits: Annotated[int, whole(1, BITS)] = 3
    objective: Criterion = "mean"
    interval: Interval = (-1.0, 1.0)

    def _released(self, epsilon: float, interval: Interval) -> Release:
        bits = (self.input_bits, self.output_bits)
        if epsilon == 0.0:
            return silent(1 << bits[0], 1 << bits[1], interval)
        table = self._table(lambda: _solved(bits, epsilon, self.objective))
        if table.channel.epsilon > epsilon:
            raise ValueError("epsilon: the table that came with the parameters exceeds it")
        return designed(table, bits, interval)
