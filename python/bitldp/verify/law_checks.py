"""Checks of one stated law: whether its integers are those of a kind, a size and an epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from .findings import Unproven, must
from .laws import CONTEXT, ONE, of_law, share_of_cap, sizes, weights, whole

__all__ = [
    "BUDGET",
    "NEAR",
    "Check",
    "bits_of",
    "bitwise_of",
    "close",
    "cube_of",
    "exp",
    "geometric_of",
    "is_a",
    "is_near",
    "muted",
    "table_of",
    "unary_of",
    "window_of",
    "within",
]

Check = Callable[[Mapping[str, Any]], bool]
"""Compares a stated law with the parameters': true if it was built again, false if it is taken as stated."""

_COARSE = Decimal(2) ** -52  # of a chance: doubles near 1 stand no closer
NEAR = Decimal("1e-8")
"""Relative error of a chance that doubles leave."""
BUDGET = 18.0
"""Epsilon of one symbol above which doubles near 1 make tables more private than their budget."""
_NAMED = ("a large table", "a long noise", "promised")  # laws without their integers


def close(stated: Any, ideal: Decimal, scale: int = ONE) -> bool:
    """Tell whether an integer is a chance, within the rounding of doubles."""
    found = Decimal(whole(stated)) / scale
    return abs(found - ideal) <= _COARSE + NEAR * min(abs(ideal), abs(1 - ideal))


def exp(x: Any) -> Decimal:
    """Return e to a power, in the context of the laws."""
    return CONTEXT.exp(Decimal(x))


def is_a(law: Mapping[str, Any], name: str, **exactly: Any) -> None:
    """Refuse a law of another kind, or with another field than those that its parameters give."""
    if law["law"] in _NAMED:
        raise Unproven(f"its law is named ({law['law']}), and not given in integers")
    must(law["law"] == name, f"its law is of the kind {law['law']!r}, by its parameters {name!r}")
    for key, value in exactly.items():
        must(value is None or law[key] == value, f"{key} of its law is {law[key]}, by its parameters {value}")


def muted(law: Mapping[str, Any], epsilon: float) -> bool:
    """Tell whether a law leaves its input out, as it must at epsilon 0, and never above."""
    must(type(law.get("mute", False)) is bool, "mute is neither true nor false")
    mute = law["law"] == "mute" or law.get("mute", False)
    must(not mute or epsilon == 0, "its law is mute, and its budget is not 0")
    return bool(mute)


def within(law: Mapping[str, Any], epsilon: float) -> None:
    """Refuse a law whose epsilon is above a budget."""
    must(of_law(law) <= Decimal(epsilon), f"its law has an epsilon above the {epsilon:.6g} of its parameters")


def window_of(cells: int | None, width: int | None, epsilon: float, least: int = 2) -> Check:
    """Return the check of a window: some of the cells at weight e^epsilon, the others at 1."""

    def check(law: Mapping[str, Any]) -> bool:
        if muted(law, epsilon):
            return True
        is_a(law, "window", cells=cells, width=width)
        count, inside = whole(law["cells"]), whole(law["width"])
        must(count >= least and 0 < inside < count, "its window has another size than its parameters say")
        fading = exp(-Decimal(epsilon))
        ideal = inside / (inside + (count - inside) * fading)
        must(close(law["high"], ideal), "its law is not that of the epsilon of its parameters")
        within(law, epsilon)
        return True

    return check


def table_of(inputs: int | None, outputs: int | None, epsilon: float) -> Check:
    """Return the check of a table that was solved, or that its parameters name by a digest alone."""

    def check(law: Mapping[str, Any]) -> bool:
        if muted(law, epsilon):
            return True
        is_a(law, "matrix")
        table = weights(law)
        same = len(table) == (inputs or len(table)) and len(table[0]) == (outputs or len(table[0]))
        must(same, "its table has another size than its parameters say")
        within(law, epsilon)
        least = epsilon * (1 - 1e-5) - 1e-6 if epsilon <= BUDGET else 0.0
        must(of_law(law) >= Decimal(least), f"its table has an epsilon far below the {epsilon:.6g} asked for")
        return False

    return check


def bits_of(chances: Callable[[], list[tuple[Decimal, Decimal]]], epsilon: float | None) -> Check:
    """Return the check of independent bits; an epsilon of None is for those whose claim does not hold."""

    def check(law: Mapping[str, Any]) -> bool:
        is_a(law, "bits")
        wanted = chances()
        must(len(law["thresholds"]) == len(wanted), "it has another number of bits than its parameters say")
        for (p, q), (one, zero) in zip(law["thresholds"], wanted, strict=True):
            must(close(p, one) and close(q, zero), "its law is not that of the epsilon of its parameters")
        if epsilon is not None:
            within(law, epsilon)
        return True

    return check


def unary_of(epsilon: float, even: bool) -> Check:
    """Return the check of one bit a category: even odds for ones (OUE), or both alike (SUE)."""

    def check(law: Mapping[str, Any]) -> bool:
        is_a(law, "unary")
        one = Decimal("0.5") if even else 1 / (1 + exp(-Decimal(epsilon) / 2))
        zero = 1 / (1 + exp(epsilon)) if even else 1 - one
        good = close(law["p"], one) and close(law["q"], zero)
        must(good and (not even or whole(law["p"]) == ONE // 2), "its law is not that of its epsilon")
        within(law, epsilon)
        return True

    return check


def geometric_of(epsilon: float) -> Check:
    """Return the check of two-sided geometric noise on a grid of 8 steps a scale."""
    steps = min(max(1, math.ceil(8 * min(epsilon, 4095))), 4095)
    beyond = math.ceil(min(5000, max(1.0, 5.0 * steps / max(epsilon, 1e-9))))
    reach = steps + beyond

    def check(law: Mapping[str, Any]) -> bool:
        is_a(law, "shift", inputs=steps + 1, outputs=steps + 1 + 2 * beyond, reach=reach, offset=beyond)
        must(len(law["weights"]) == 2 * reach + 1, "its noise has another reach than its parameters say")
        if muted(law, epsilon):
            return True
        fading = exp(-Decimal(epsilon) / steps)
        for place, weight in enumerate(law["weights"], -reach):
            ideal = ONE * fading ** abs(place) / (1 + fading) * (1 if abs(place) == reach else 1 - fading)
            near = abs(whole(weight) - ideal) <= 2 * reach + 3 + ideal * Decimal("1e-6")
            must(near or epsilon > 25, "its noise is not that of the epsilon of its parameters")
        within(law, epsilon)
        return True

    return check


def cube_of(bits: int, near: int, epsilon: float, paper: bool) -> Check:
    """Return the check of signs of which many agree with the record; `paper` is for the claim as printed."""

    def check(law: Mapping[str, Any]) -> bool:
        if muted(law, epsilon):
            return True
        is_a(law, "cube", bits=bits, near=near, far=bits // 2 if paper else near - 1)
        few, many, _ = sizes(law)
        ratio = Decimal(1) if paper else CONTEXT.divide(Decimal(many), Decimal(few))
        ideal = 1 / (1 + ratio * exp(-Decimal(epsilon)))
        must(close(law["high"], ideal), "its law is not that of the epsilon of its parameters")
        if not paper:
            within(law, epsilon)
        return True

    return check


def is_near(law: Mapping[str, Any], epsilon: float) -> bool:
    """Check the chance of a cap: that of the epsilon of its parameters."""
    share = share_of_cap(law)
    odds = (exp(epsilon) - 1) * CONTEXT.divide(Decimal(share.numerator), Decimal(share.denominator))
    must(close(law["high"], odds / (1 + odds)), "its law is not that of the epsilon of its parameters")
    within(law, epsilon)
    return True


def bitwise_of(bits: int, epsilon: float) -> Check:
    """Return the check of a table of code words whose bits are kept or flipped one by one."""

    def check(law: Mapping[str, Any]) -> bool:
        is_a(law, "matrix")
        table, count = weights(law), 1 << bits
        must([len(row) for row in table] == [count] * count, "its table has another size")
        keep = 1 / (1 + exp(-Decimal(min(epsilon / bits, 30.0))))
        chances = [keep ** (bits - n) * (1 - keep) ** n for n in range(bits + 1)]
        for x, row in enumerate(table):
            good = all(close(w, chances[bin(x ^ y).count("1")]) for y, w in enumerate(row))
            must(good, "its table is not that of the epsilon of its parameters")
        within(law, epsilon)
        return True

    return check
