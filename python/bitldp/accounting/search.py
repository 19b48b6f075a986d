"""Search for the least epsilon at which a delta is small enough."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["least_epsilon"]

_HALVINGS = 40
_NEAR = 2e-3  # relative, of a guess
_COARSE = 4.0  # by which epsilon is lowered until delta is too large


def least_epsilon(  # noqa: PLR0912 - one search, whose next point is chosen in several ways
    reached: Callable[[float], float],
    delta: float,
    low: float,
    local: float,
    *,
    close: float,
    halvings: int = _HALVINGS,
    near: float = math.inf,
) -> float:
    """Return about the least epsilon from `low` to `local` whose delta is small enough, rounded up.

    It may be near to a guess, which is tried first.
    """
    high = local
    if math.isinf(local):  # noise that is cut off
        high = max(1.0, low)
        while reached(high) > delta:
            low, high = high, 2.0 * high
            if high > 700.0:
                return math.inf
    above, below = 0.0, 0.0  # delta at both ends, where it is known
    for guess in (near * (1.0 + _NEAR), near * (1.0 - _NEAR)):
        if low < guess < high:
            found = reached(guess)
            if found <= delta:
                high, below = guess, found
            else:
                low, above = guess, found
    for turn in range(halvings):
        if high - low <= close * high:
            break
        middle = (low + high) / 2.0
        if close and low == 0.0:
            middle = high / _COARSE
        elif close and above > delta > below > 0.0 and turn % 3:
            # delta falls about as an exponential; a little to one side, then to the other
            share = math.log(above / delta) / math.log(above / below)
            aside = 0.4 * close * high * (1.0 if turn % 3 == 1 else -1.0)
            middle = min(max(low + share * (high - low) + aside, low + aside * aside), high)
        found = reached(middle)
        if found <= delta:
            high, below = middle, found
        else:
            low, above = middle, found
    return high
