"""The minimax mechanism: of all unbiased laws on a grid, the one of least worst-case variance."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np

from bitldp._core import Grid
from bitldp.base.arrays import readonly
from bitldp.letters import solve
from bitldp.letters.spread import Spread
from bitldp.mechanism.designed import Designed, Table
from bitldp.mechanism.numeric import Numeric
from bitldp.mechanism.parameters import whole
from bitldp.release.base import Interval, Release, equidistant

__all__ = ["MinimaxVariance"]

_MOST = 24  # points: a program of a second or two; with more, of minutes
_LEAST, _LARGEST = 0.05, 12.0  # budgets of a number for which the program is well scaled


@lru_cache(maxsize=32)
def _solved(points: int, epsilon: float) -> Table:
    """Solve once for all mechanisms of these parameters, and find the letters of the integers."""
    from bitldp.design import DesignError
    from bitldp.design.minimax import least_worst

    draft = least_worst(points, epsilon)
    law = draft.channel.probabilities()
    letters = solve.letters(law, np.linspace(-1.0, 1.0, points), draft.letters)
    if letters is None:
        raise DesignError("the integers of the minimax release have no unbiased letters")
    return Table(draft.channel, readonly(letters))


@dataclass(frozen=True, eq=False, repr=False)
class MinimaxVariance(Designed, Numeric):
    """Minimax mechanism: the least worst-case variance, by a linear program (needs SciPy).

    Parameters
    ----------
    epsilon : float
        Exact epsilon of one `unit`; that of one released number must be from 0.05 to 12.
    grid_points : int
        Points of the grid, 2 to 24. More of them cost less dither and more time to design.
    features, interval, spend, k, clip, unit
        As of `Duchi`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.
    MissingExtraError
        Without SciPy: ``pip install "bitldp[design]"``.
    DesignError
        If the solver fails; nothing is returned in its place.

    Notes
    -----
    Neighbouring records differ in any way. A linear program over letters and their probabilities minimises
    the largest variance of any number, the dither included; the letters of the integers are then solved for
    again, so that their mean is the number to 1e-9. No unbiased mechanism on these points has a smaller
    worst-case variance, but for the spacing of the letters that the program chooses from (below 0.1 %). The
    worst case is nearly every case: the variance hardly depends on the number. A design takes about a
    second.

    Another version of the solver may find another table of the same variance. So client and server share one
    mechanism as a pickle, which holds the table; `fingerprint` tells tables apart.

    An input is placed with a resolution of 2**-32 of a step of the grid, in the precision of its dtype.

    Examples
    --------
    >>> from bitldp import Hybrid, MinimaxVariance
    >>> [round(kind(2.0).worst_variance(), 3) for kind in (Hybrid, MinimaxVariance)]
    [1.043, 0.868]
    """

    _: KW_ONLY
    command: ClassVar[str] = "minimax"

    grid_points: Annotated[int, whole(2, _MOST)] = 16

    def _released(self, epsilon: float, interval: Interval) -> Release:
        if not _LEAST <= epsilon <= _LARGEST:
            raise ValueError(
                f"epsilon: {_LEAST} to {_LARGEST} for one released number, got {epsilon:.6g}; below, Duchi's "
                "mechanism is as good, and Piecewise takes any budget"
            )
        channel, letters = self._table(lambda: _solved(self.grid_points, epsilon))
        low, high = interval
        count = channel.inputs
        if letters is None or count != self.grid_points or channel.epsilon > epsilon:
            raise ValueError("grid_points: the table that came with the parameters is of others")
        moments = channel.probabilities() @ np.square(letters)
        half = (high - low) / 2.0
        places = equidistant(interval, count)
        return Release(
            channel,
            channel.epsilon,
            channel.outputs,
            Grid(count, low=low, high=high),
            places,
            readonly(low + half + half * letters),
            Spread(places, readonly(half * half * moments)),
        )
