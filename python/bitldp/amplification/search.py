"""Search for the least epsilon at which a delta is small enough."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["least_epsilon"]

_HALVINGS = 40
_COARSE = 4.0  # by which epsilon is lowered until delta is too large


def least_epsilon(
    reached: Callable[[float], float],
    delta: float,
    low: float,
    local: float,
    *,
    close: float,
    halvings: int = _HALVINGS,
) -> float:
    """Return about the least epsilon from `low` to `local` whose delta is small enough, rounded up."""
    high = local
    if math.isinf(local):  # noise that is cut off
        high = max(1.0, low)
        while reached(high) > delta:
            low, high = high, 2.0 * high
            if high > 700.0:
                return math.inf
    above, below = 0.0, 0.0  # delta at both ends, where it is known
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
