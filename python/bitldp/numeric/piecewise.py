"""Piecewise mechanisms: a report near the number is e^epsilon times as likely as one far from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from bitldp.mechanism.numeric import Numeric
from bitldp.release.base import Interval, Release
from bitldp.release.window import windowed

__all__ = ["Piecewise", "PiecewiseSub"]

_LEAST_WINDOW = 16  # cells; the variance is then that of the continuous law to a few parts in a thousand
_SHORTEST, _LONGEST = 8, 16  # bits of a packed report


def cells(share: float, spare: int = 0) -> tuple[int, int]:
    """Return (N, m): how many cells the report has, and how many of them the window has.

    The continuous law puts the share m/N = 1/(t + 1) of the reports in the window. On the fewest bits, from 8
    to 16, that give the window 16 cells, m is as large as it can be, and N the nearest to m (t + 1). `spare`
    codes are left free. With 16 bits and a share below 2**-16, the window is one cell, and the variance stays
    that of the finest grid.
    """
    most, width = 0, 0
    for bits in range(_SHORTEST, _LONGEST + 1):
        most = (1 << bits) - spare
        width = math.floor(most * share)
        if width >= _LEAST_WINDOW:
            break
    return (most, 1) if width == 0 else (min(most, round(width / share)), width)


def window_share(epsilon: float, root: int) -> float:
    """Return 1/(t + 1) for t = e^(epsilon/root), without overflow."""
    fading = math.exp(-epsilon / root)
    return fading / (1.0 + fading)


@dataclass(frozen=True, eq=False, repr=False)
class Piecewise(Numeric):
    """Piecewise mechanism (PM): reports a number, more likely one near the truth; good at large epsilon.

    The window around the number lies on a fine grid, with t = e^(eps/2).

    Parameters
    ----------
    epsilon, features, interval, spend, k, clip, unit
        As of `Numeric`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, or an interval too narrow for its distance from 0; the message names
        it.

    Notes
    -----
    Neighbouring records differ in any way. On [-1, 1] the continuous mechanism reports a number of [-A, A], A
    = (e^eps + t)(t + 1)/(t (e^eps - 1)), and has the variance x^2/(t - 1) + (t + 3)/(3 (t - 1)^2). Here [-A,
    A] is cut into at most 65536 cells, and a report is one of them. The window slides over the cells with the
    number, and the letters have exactly the number as their mean. The variance (`variance`) is within 1 % of
    that of the continuous mechanism as long as a number has an epsilon of at most 20. Above, the finest grid
    determines it. Source: Wang et al., "Collecting and analyzing multidimensional data with local
    differential privacy", ICDE 2019, Algorithm 2.

    Inputs are placed on the grid with a resolution of 2**-32 of a step, in the precision of their dtype.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> from bitldp.numeric import Piecewise
    >>> mechanism = Piecewise(epsilon=2.0, features=768, spend="sample")
    >>> mechanism.k, round(mechanism.worst_variance() / mechanism.features, 2)
    (1, 2.23)
    """

    _lasting: ClassVar[str] = "bitldp.numeric.piecewise.Piecewise"

    def _released(self, epsilon: float, interval: Interval) -> Release:
        return windowed(*cells(window_share(epsilon, 2)), epsilon, interval)


@dataclass(frozen=True, eq=False, repr=False)
class PiecewiseSub(Numeric):
    """Suboptimal piecewise mechanism (PM-SUB): like the piecewise mechanism, with a wider window.

    Same as `Piecewise`, with t = e^(eps/3).

    Parameters
    ----------
    epsilon, features, interval, spend, k, clip, unit
        As of `Numeric`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range, or an interval too narrow for its distance from 0; the message names
        it.

    Notes
    -----
    Neighbouring records differ in any way. The grid is that of `Piecewise`. Source: Zhao et al., "Local
    differential privacy-based federated learning for Internet of Things", IEEE Internet of Things Journal 8
    (2021).
    """

    _lasting: ClassVar[str] = "bitldp.numeric.piecewise.PiecewiseSub"

    def _released(self, epsilon: float, interval: Interval) -> Release:
        return windowed(*cells(window_share(epsilon, 3)), epsilon, interval)
