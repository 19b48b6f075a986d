"""The minimax mechanism: of all unbiased laws on a grid, the one of least worst-case variance."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Grid
from bitldp.base.arrays import readonly
from bitldp.letters import solve
from bitldp.letters.spread import Spread
from bitldp.mechanism.designed import Designed, DesignTable
from bitldp.mechanism.numeric import Numeric
from bitldp.mechanism.parameters import optional, whole
from bitldp.release.base import Interval, Release, equidistant

__all__ = ["MinimaxVariance"]

_SOLVED = 24  # points: a program of a second or two; with more, of minutes
_MOST = 513
_LEAST, _LARGEST = 0.05, 12.0  # budgets of a number for which the program is well scaled
_MARGIN = 1e-9  # relative: how far below the budget a law of floats is made
_UNBIASED = 1e-13  # a bias that rounding to doubles leaves, and no more
_GRIDS = ((6.0, 65), (8.5, 129), (math.inf, 257))  # up to a budget: points whose dither costs about 1 %


@lru_cache(maxsize=32)
def _solved(points: int, epsilon: float) -> DesignTable:
    """Make the table once for all mechanisms of these parameters, and find the letters of the integers."""
    from bitldp.design import DesignError, sliding
    from bitldp.design.exact import settled
    from bitldp.design.minimax import least_worst

    if points <= _SOLVED:
        draft = least_worst(points, epsilon)
        channel, approximate = draft.channel, draft.letters
    else:
        law, approximate = sliding.law(points, epsilon * (1.0 - _MARGIN))
        channel = settled(law, epsilon)
    table, targets = channel.probabilities(), np.linspace(-1.0, 1.0, points)
    letters: NDArray[np.float64] | None = approximate
    if np.abs(table @ approximate - targets).max() > _UNBIASED:
        # Integers had to be moved to keep the budget.
        letters = solve.letters(table, targets, approximate)
    if letters is None:
        raise DesignError("the integers of the minimax release have no unbiased letters")
    return DesignTable(channel, readonly(letters))


@dataclass(frozen=True, eq=False, repr=False)
class MinimaxVariance(Designed, Numeric):
    """Minimax mechanism: least worst-case variance of a number, from a table that is solved in advance.

    Parameters
    ----------
    epsilon : float
        Privacy budget of one `unit`; that of one released number must be from 0.05 to 12. The exact epsilon
        never exceeds it. It is lower by at most a relative 1.1e-9, or 1.1e-8 if a solver runs (`grid_points`
        up to 24).
    grid_points : int, optional
        Points of the grid, 2 to 513. More points add less dither. None: 65 to 257 points, depending on the
        budget of a number, so that the dither costs about 1 %. Up to 24 points, the program is solved on
        request, which needs SciPy and takes about a second. Above 24, the solution is derived from one that
        ships with bitldp.
    features, interval, spend, k, clip, unit
        As of `Numeric`.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.
    MissingExtraError
        Up to 24 points without SciPy: ``pip install "bitldp[design]"``.
    DesignError
        If the solver fails; nothing is returned in its place.

    Notes
    -----
    Neighbouring records differ in any way. A linear program over letters and their probabilities minimises
    the largest variance of any number, including the dither. The letters are then solved for again from the
    integer probabilities, so that their mean is the number to 1e-9. The variance hardly depends on the
    number, so the worst case is nearly every case.

    With many points, the likely letters of a number are neighbours in the program's solution: a window of m
    letters out of 128, which slides with the number (`bitldp.design.sliding`). Letters and m are interpolated
    between the budgets for which they were solved. At every budget from 0.25 to 10, the worst case is within
    1 % of the program's own with 65 points and 161 letters. Above a budget of 6 it is below the program's,
    where more points cost less dither. No unbiased mechanism on as many points is better by more than that.

    A different solver version may find a different table with the same variance. Share one mechanism between
    client and server as a pickle, which holds the table; `fingerprint` identifies it. The sampler reads the
    table row of the number's point. With more than 32 points this is not constant-time.

    Inputs are placed on the grid with a resolution of 2**-32 of a step, in the precision of their dtype.

    Examples
    --------
    >>> from bitldp import Hybrid, MinimaxVariance
    >>> [round(kind(epsilon=2.0).worst_variance(), 3) for kind in (Hybrid, MinimaxVariance)]
    [1.043, 0.866]
    """

    _lasting: ClassVar[str] = "bitldp.numeric.minimax.MinimaxVariance"

    _: KW_ONLY
    _command: ClassVar[str] = "minimax"

    grid_points: Annotated[int | None, optional(whole(2, _MOST))] = None

    def _released(self, epsilon: float, interval: Interval) -> Release:
        if not _LEAST <= epsilon <= _LARGEST:
            raise ValueError(
                f"epsilon: {_LEAST} to {_LARGEST} for one released number, got {epsilon:.6g}; below, Duchi's "
                "mechanism is as good, and Piecewise takes any budget"
            )
        points = self.grid_points or next(count for budget, count in _GRIDS if epsilon <= budget)
        channel, letters = self._table(lambda: _solved(points, epsilon))
        low, high = interval
        count = channel.inputs
        if letters is None or count != points or channel.epsilon > epsilon:
            raise ValueError("grid_points: the stored table belongs to other parameters")
        moments = channel.probabilities() @ np.square(letters)
        half = (high - low) / 2.0
        positions = equidistant(interval, count)
        return Release(
            channel,
            channel.epsilon,
            channel.outputs,
            Grid(count, low=low, high=high),
            positions,
            readonly(low + half + half * letters),
            Spread(positions, readonly(half * half * moments)),
        )
