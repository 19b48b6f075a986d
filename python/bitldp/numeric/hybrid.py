"""Hybrid mechanism: a random choice that does not depend on the data picks one of two releases."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp._core import Grid, Matrix, Mixture
from bitldp.base.arrays import readonly
from bitldp.letters.spread import Spread
from bitldp.mechanism.numeric import Numeric
from bitldp.numeric.piecewise import cells, window_share
from bitldp.privacy import ONE, calibrated
from bitldp.release.base import Call, Direct, Interval, Release
from bitldp.release.window import windowed

__all__ = ["Hybrid"]

_DUCHI_ONLY = 0.61  # epsilon up to which Duchi's mechanism alone has the least worst-case variance
_RAREST = 2.0**-32  # least chance of Duchi's mechanism, and of its false answer: neither vanishes


def choice_channel(epsilon: float) -> Matrix:
    """Return the choice with Duchi's two answers: chance 1 - e^(-eps/2) for "piecewise", the rest e^eps : 1.

    The two rows are mirrored to the integer, and so equal in their first entry: a row's rounding to 2^-64 is
    made up for by its largest entry, which is the first one in both, or Duchi's true answer in both.
    """
    rest = max(math.exp(-epsilon / 2.0), _RAREST)

    def build(target: float) -> Matrix:
        fading = max(math.exp(-target), _RAREST)
        true, false = rest / (1.0 + fading), rest * fading / (1.0 + fading)
        return Matrix(np.array([[1.0 - rest, true, false], [1.0 - rest, false, true]]))

    return calibrated(build, epsilon, lambda channel: channel.epsilon)


@lru_cache(maxsize=64)
def mixed(epsilon: float, interval: Interval) -> Release:
    """Return the hybrid release: its exact epsilon is that of the worse part, which the report names.

    Given that Duchi's mechanism answers, its letters are as there, +-C half-lengths from the middle with
    C = (true + false)/(true - false): a quotient of the choice's integers.
    """
    if epsilon <= _DUCHI_ONLY:
        return windowed(2, 1, epsilon, interval)
    piecewise = windowed(*cells(window_share(epsilon, 2), spare=2), epsilon, interval)
    choice = choice_channel(epsilon)
    if piecewise.letters is None or piecewise.spread is None:
        raise ValueError(f"epsilon: {epsilon} is too small for a window in units of 2**-64")
    low, high = interval
    chance, true, false = choice.weights()[0]
    reach = (high - low) / 2.0 * ((true + false) / (true - false))
    middle = low + (high - low) / 2.0
    letters = np.concatenate([piecewise.letters, [middle - reach, middle + reach]])
    moments = chance / ONE * piecewise.spread.moments + (true + false) / ONE * (reach * reach)
    return HybridRelease(
        Mixture(piecewise.channel, choice),
        max(piecewise.epsilon, choice.epsilon),
        len(letters),
        None,
        piecewise.points,
        readonly(letters),
        Spread(piecewise.spread.points, readonly(moments)),
        piecewise=piecewise,
        ends=Grid(2, low=low, high=high),
    )


@dataclass(frozen=True, eq=False, repr=False)
class Hybrid(Numeric):
    """Hybrid mechanism (HM): piecewise or Duchi's mechanism at random; one variance for all numbers.

    The piecewise mechanism is chosen with probability 1 - e^(-eps/2).

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
    Neighbouring records differ in any way. The choice between the two does not depend on the input, and the
    report shows which one was made. The exact epsilon is therefore the larger of the two. With this
    probability, the variance is the same for every x. If one number has a budget of 0.61 or less, this is
    Duchi's mechanism. Source: Wang et al., "Collecting and analyzing multidimensional data with local
    differential privacy", ICDE 2019.

    Inputs are placed on the grid with a resolution of 2**-32 of a step, in the precision of their dtype.

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> from bitldp.numeric import Hybrid
    >>> mechanism = Hybrid(epsilon=2.0)
    >>> mechanism.variance([-1.0, 0.0, 1.0]).round(2).tolist()
    [1.04, 1.04, 1.04]
    """

    _lasting: ClassVar[str] = "bitldp.numeric.hybrid.Hybrid"

    def _released(self, epsilon: float, interval: Interval) -> Release:
        return mixed(epsilon, interval)


@dataclass(frozen=True, eq=False)
class HybridRelease(Release):
    """A release by the piecewise mechanism or by Duchi's, at random.

    The report tells which: codes below N are the piecewise one's cells, the last two are Duchi's points. The
    choice is a channel of two inputs, Duchi's points, and three answers: the piecewise mechanism decides (as
    likely for both inputs), low, high. The channel is the `Mixture` of both.
    """

    _: KW_ONLY
    piecewise: Release
    ends: Grid

    streams: ClassVar[int] = 2

    @property
    def channels(self) -> tuple[Any, ...]:
        return (*self.piecewise.channels, self.channel.matrix)

    @property
    def grids(self) -> tuple[Grid | None, Grid | None]:
        return self.piecewise.codec, self.ends

    def randomize(self, x: ArrayLike, call: Call) -> NDArray[Any]:
        keys, output, out, threads, first_chunk = call
        return self.channel.randomize(
            x, self.grids, self.letters, (keys[0], keys[1]), output, out, threads, first_chunk
        )

    def direct(self, columns: int) -> Direct | None:
        rest = (self.grids, None, (None, None), "codes", None, None, 0)
        return Direct.of(self.channel.randomize, rest, "codes", columns)

    def probabilities(self) -> NDArray[np.float64]:
        law = self.channel.matrix.probabilities()
        points = self.piecewise.probabilities()
        shares = np.linspace(0.0, 1.0, len(points))[:, None]  # chance of the dither to the upper end
        dithered = (1.0 - shares) * law[0, 1:] + shares * law[1, 1:]
        return np.hstack([law[0, 0] * points, dithered])
