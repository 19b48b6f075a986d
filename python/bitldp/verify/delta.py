"""Delta of several numbers with integer noise: the law of the sum of their losses, by exact convolution."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any

from .findings import Unproven, must
from .laws import CONTEXT, ONE, shifted, whole

__all__ = ["delta_of"]

_SLACK = Decimal("1e-7")  # of epsilon: what all losses together may be rounded up by
_DIGITS = 40  # of a chance
_UNIT = 10**_DIGITS
_RARE = 10 ** (_DIGITS - 24)  # chances of 1e-24 in all are moved where they count more
_LONGEST = 1 << 17  # losses of a sum


def delta_of(law: Sequence[Mapping[str, Any]], epsilon: float | Decimal) -> Decimal:
    """Return the delta of numbers with integer noise at an epsilon: of all of them together.

    It is the chance under one record that exceeds e**epsilon times that under another. Noise that is
    log-concave, which is checked, is told apart best between the two ends of the inputs, for every number.
    For one number the sum over its reports is exact. For several, the loss of a record is a sum of
    independent ones: each is rounded up to a lattice (those of Gaussian noise lie on one), their law is
    convolved in integers, and delta is bounded from above, by less than 1e-5 of itself.

    Raises
    ------
    Unproven
        For another law, or for more numbers than are convolved here.
    """
    if len(law) != 1 or len(law[0]["laws"]) != 1 or law[0]["laws"][0]["law"] != "shift":
        raise Unproven("a delta is recomputed for integer noise alone")
    one, times = law[0]["laws"][0], whole(law[0]["times"])
    weights = [whole(weight) for weight in one["weights"]]
    low, high = shifted(one, 0), shifted(one, whole(one["inputs"]) - 1)
    inside = weights[next(i for i, w in enumerate(weights) if w) : len(weights)]
    concave = all(b * b >= a * c for a, b, c in zip(inside, inside[1:], inside[2:], strict=False))
    must(concave and weights == weights[::-1], "its noise is not log-concave, or not symmetric")
    if times == 1:
        growth = CONTEXT.exp(Decimal(epsilon))
        above = (a - CONTEXT.multiply(growth, b) for a, b in zip(low, high, strict=True))
        return CONTEXT.divide(sum((each for each in above if each > 0), Decimal(0)), Decimal(ONE))
    steps, reach = whole(one["inputs"]) - 1, whole(one["reach"])
    unclamped = (whole(one["offset"]), whole(one["outputs"])) == (reach, steps + 1 + 2 * reach)
    must(unclamped and 2 * reach + 1 == len(weights) and steps < reach, "its noise is clamped")
    return _joint(weights, steps, times, Decimal(epsilon))


def _joint(weights: Sequence[int], steps: int, times: int, epsilon: Decimal) -> Decimal:
    """Return an upper bound of the delta of `times` numbers that each move by `steps`."""
    logarithms = {w: CONTEXT.ln(Decimal(w)) for w in set(weights) if w}
    losses = [
        (w, logarithms[w] - logarithms[other])
        for w, other in zip(weights[steps:], weights, strict=False)
        if w and other
    ]
    unseen = sum(weights) - sum(w for w, _ in losses)  # reports that the other end never gives
    middle = len(losses) // 2
    base, spacing = losses[middle][1], losses[middle][1] - losses[middle + 1][1]
    slack = _SLACK * epsilon / times
    mass: dict[int, int] = {}
    for w, loss in losses:
        point = -math.floor((base + slack - loss) / spacing)
        mass[point] = mass.get(point, 0) + w
    lowest = -max(mass)  # losses farther below are raised to it
    first = max(min(mass), lowest - steps)
    each = [0] * (max(mass) - first + 1)
    for point, w in mass.items():
        each[max(point, first) - first] += -(-w * _UNIT // ONE)
    result = _power(_Law(each, first, -(-unseen * _UNIT // ONE)), times)
    start = times * (base + slack) + spacing * result.first
    skipped = max(0, int((epsilon - start) / spacing))
    weight, ratio = CONTEXT.exp(epsilon - start - spacing * skipped), CONTEXT.exp(-spacing)
    total = Decimal(result.infinite)
    for chance in result.chances[skipped:]:
        if weight < 1:
            total = CONTEXT.add(total, CONTEXT.multiply(Decimal(chance), 1 - weight))
        weight = CONTEXT.multiply(weight, ratio)
    return min(Decimal(1), CONTEXT.divide(total, Decimal(_UNIT)))


class _Law:
    """Law of a loss: chances of lattice points from `first` on, and of an infinite loss, in 1e-40."""

    def __init__(self, chances: list[int], first: int, infinite: int) -> None:
        rare = top = 0
        while rare + chances[-1 - top] <= _RARE:
            rare += chances[-1 - top]
            top += 1
        infinite += rare
        rare = bottom = 0
        while rare + chances[bottom] <= _RARE:
            rare += chances[bottom]
            bottom += 1
        self.chances = chances[bottom : len(chances) - top]
        self.chances[0] += rare
        self.first, self.infinite = first + bottom, infinite
        if len(self.chances) > _LONGEST:
            raise Unproven("it is of more numbers than are convolved here")


def _power(law: _Law, times: int) -> _Law:
    """Return the law of the sum of `times` independent losses."""
    result: _Law | None = None
    while True:
        if times & 1:
            result = law if result is None else _sum(result, law)
        times >>= 1
        if not times:
            assert result is not None
            return result
        law = _sum(law, law)


def _sum(a: _Law, b: _Law) -> _Law:
    """Return the law of a sum: polynomials as decimals, whose digits are far enough apart not to mix."""
    width = 2 * _DIGITS + 10
    count = len(a.chances) + len(b.chances) - 1
    context = Context(prec=width * (count + 2), Emax=MAX_EMAX, Emin=MIN_EMIN)
    one, other = (Decimal("".join(f"{chance:0{width}d}" for chance in each.chances)) for each in (a, b))
    digits = format(context.multiply(one, other), "f").zfill(width * count)
    # Whatever is behind the digits that are kept is rounded up.
    chances = [int(digits[i : i + width - _DIGITS]) + 1 for i in range(0, width * count, width)]
    return _Law(chances, a.first + b.first, a.infinite + b.infinite)
