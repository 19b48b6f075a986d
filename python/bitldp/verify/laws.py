"""Epsilon of a law from its integers, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from math import prod
from typing import Any

from .findings import Lie, Unproven, must

__all__ = [
    "CONTEXT",
    "ONE",
    "agrees",
    "decimal",
    "epsilon_of",
    "epsilons_of_features",
    "of_bit",
    "of_law",
    "of_rows",
    "rows",
    "share_of_cap",
    "shifted",
    "sizes",
    "weights",
    "well_formed",
    "whole",
]

Law = Mapping[str, Any]
"""A law as a report has it: its name, and integers over 2**64."""

ONE = 1 << 64
CONTEXT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)
_ROUNDING = Decimal("1e-9")  # a printed epsilon may be above the exact one by so much
_LAST = Decimal("1e-40")  # relative: of the logarithms here
_MOST = 1 << 23  # numbers of one law that are still looked at


def decimal(value: Any) -> Decimal:
    """Return a printed number exactly; infinity is a word."""
    if value == "infinity":
        return Decimal("Infinity")
    must(not isinstance(value, bool) and isinstance(value, (int, float)), "a number is none")
    return Decimal(value)


def whole(value: Any) -> int:
    """Return an integer of a report: as a number, or as the digits of one that no double holds."""
    text = isinstance(value, str) and value.isascii() and value.isdigit()
    must(text or type(value) is int, "an integer is none")
    return int(value)


def agrees(printed: Decimal, exact: Decimal) -> bool:
    """Tell whether a printed epsilon is the exact one: not below it, and not above it but by rounding."""
    if exact.is_infinite() or printed.is_infinite():
        return printed == exact
    with localcontext(CONTEXT):
        return exact <= printed + exact * _LAST and printed <= exact + _ROUNDING * max(Decimal(1), exact)


def well_formed(law: Any) -> None:
    """Refuse a list of laws that is empty, or says none."""
    must(isinstance(law, list) and len(law) > 0, "its law is empty")
    for symbols in law:
        times, laws = symbols["times"], symbols["laws"]
        must(type(times) is int and times >= 1, "times is not a number of symbols")
        must(isinstance(laws, list) and len(laws) > 0, "a symbol has no law")
        each = symbols.get("each", [times] * len(laws))
        must(len(each) == len(laws) and all(type(n) is int and n >= 1 for n in each), "each is no number")
        must(sum(each) >= times, "more attributes are drawn than there are")


def epsilon_of(law: Sequence[Law]) -> Decimal:
    """Return the exact epsilon of a mechanism's law: the sum over its independent symbols.

    Of alternatives, one of which applies, it is that of the worst. Of attributes, some of which are drawn, it
    is the sum of as many of the worst.

    Raises
    ------
    Unproven
        For a law that is not given in integers, or not known here.
    """
    total = Decimal(0)
    for symbols in law:
        left = whole(symbols["times"])
        costs = [of_law(one) for one in symbols["laws"]]
        counts = symbols.get("each", [left] * len(costs))
        for cost, count in sorted(zip(costs, counts, strict=True), reverse=True):
            total = CONTEXT.add(total, CONTEXT.multiply(cost, Decimal(min(left, count))))
            left -= min(left, count)
    return total


def of_law(law: Law) -> Decimal:
    """Return the exact epsilon of one symbol."""
    try:
        rule = _RULES[law["law"]]
    except KeyError:
        raise Unproven(f"the law {law.get('law')!r} is not known here") from None
    return _logarithm(rule(law))


def of_bit(law: Law) -> Decimal:
    """Return the exact epsilon of the worst bit of a symbol; a symbol that has none is one."""
    if law["law"] == "bits":
        return max(
            _logarithm(_bit(whole(p), whole(q))) for p, q in {tuple(pair) for pair in law["thresholds"]}
        )
    return _logarithm(_bit(whole(law["p"]), whole(law["q"]))) if law["law"] == "unary" else of_law(law)


def epsilons_of_features(law: Law, bits: int) -> Iterator[Decimal]:
    """Yield the exact epsilon of each feature of independent bits."""
    pairs = [(whole(p), whole(q)) for p, q in law["thresholds"]]
    losses = {pair: _logarithm(_bit(*pair)) for pair in set(pairs)}
    for start in range(0, len(pairs), bits):
        yield sum((losses[pair] for pair in pairs[start : start + bits]), Decimal(0))


def of_rows(table: Sequence[Sequence[int]]) -> Decimal:
    """Return the exact epsilon between the rows of a table."""
    return _logarithm(_worst(_by_report(table)))


def _logarithm(ratio: Fraction) -> Decimal:
    if ratio == 0:
        return Decimal("Infinity")
    return CONTEXT.subtract(CONTEXT.ln(Decimal(ratio.numerator)), CONTEXT.ln(Decimal(ratio.denominator)))


# -- the largest ratio of a report's probabilities under two inputs, law by law; 0 stands for infinity


def _of(more: int | Fraction, less: int | Fraction) -> Fraction:
    """Return the ratio of two probabilities, the larger over the smaller; 0 where one alone is 0."""
    more, less = max(more, less), min(more, less)
    must(less >= 0, "a chance is below 0")
    if more == less:
        return Fraction(1)
    return Fraction(0) if less == 0 else Fraction(more) / Fraction(less)


def _worst(ratios: Sequence[Fraction]) -> Fraction:
    return Fraction(0) if 0 in ratios else max(ratios, default=Fraction(1))


def _by_report(table: Sequence[Sequence[int]]) -> list[Fraction]:
    """Return the largest ratio of each report of a table."""
    return [_of(max(column), min(column)) for column in zip(*table, strict=True)]


def _window(law: Law) -> Fraction:
    """Law of a window: `width` of `cells` share the chance high/2**64 evenly, the others the rest."""
    cells, width, high = (whole(law[name]) for name in ("cells", "width", "high"))
    if law.get("mute"):
        return Fraction(1)
    must(0 < width < cells and 0 <= high <= ONE, "a window is of none, of all, or of no chance")
    return _of(Fraction(high, width), Fraction(ONE - high, cells - width))


def weights(law: Law) -> list[list[int]]:
    """Return the integers of a table: row x those of input x, which add up to 2**64."""
    table = [[whole(weight) for weight in row] for row in law["weights"]]
    if not table or any(sum(row) != ONE or min(row) < 0 for row in table):
        raise Lie("a row of its table does not add up to 2**64")
    return table


def _matrix(law: Law) -> Fraction:
    """Law of a table: the chances of the reports of each input."""
    return _worst(_by_report(weights(law)))


def _bits(law: Law) -> Fraction:
    """Law of independent bits: each is reported as 1 with p/2**64 where it is 1, with q/2**64 where 0."""
    must(len(law["thresholds"]) > 0, "there are no bits")
    product = Fraction(1)
    for ones, zeros in law["thresholds"]:
        product *= _bit(whole(ones), whole(zeros))
    return product


def _bit(p: int, q: int) -> Fraction:
    return _worst([_of(p, q), _of(ONE - p, ONE - q)])


def _unary(law: Law) -> Fraction:
    """Law of one bit for each category: two categories differ in two bits, (1, 0) and (0, 1)."""
    p, q = whole(law["p"]), whole(law["q"])
    must(0 <= p <= ONE and 0 <= q <= ONE, "a chance is above 1")
    return _of(p * (ONE - q), q * (ONE - p))


def _shift(law: Law) -> Fraction:
    """Law of a number with integer noise: what leaves the range of reports is put at its ends."""
    if law.get("mute"):
        return Fraction(1)
    inputs = whole(law["inputs"])
    must(inputs > 1, "there is one number alone")
    if inputs * whole(law["outputs"]) > _MOST:
        raise Unproven("the noise is too long to compare all inputs")
    return _worst(_by_report([shifted(law, x) for x in range(inputs)]))


def shifted(law: Law, x: int) -> list[int]:
    """Return the law of the reports of one input of a number with integer noise."""
    outputs, first = whole(law["outputs"]), x - whole(law["reach"]) + whole(law["offset"])
    must(0 < outputs <= _MOST, "there are no reports, or too many")
    noise = [whole(weight) for weight in law["weights"]]
    must(sum(noise) == ONE and min(noise) >= 0, "the weights of its noise do not add up to 2**64")
    row = [0] * outputs
    for position, weight in enumerate(noise, first):
        row[min(max(position, 0), outputs - 1)] += weight
    return row


def _mixture(law: Law) -> Fraction:
    """Law of a choice: a report of a window, or one of a table whose first column is that choice."""
    window, table = law["window"], weights(law)
    heads = [row[0] for row in table]
    tails = _by_report(table)[1:]
    if window.get("mute"):
        return _worst([_of(max(heads), min(heads)), *tails])
    inside = Fraction(whole(window["high"]), whole(window["width"]))
    outside = Fraction(ONE - whole(window["high"]), whole(window["cells"]) - whole(window["width"]))
    chances = [inside, outside]
    return _worst([_of(max(heads) * max(chances), min(heads) * min(chances)), *tails])


def _cube(law: Law) -> Fraction:
    """Law of a corner: those that agree with the record in `near` bits or more share high/2**64."""
    if law.get("mute"):
        return Fraction(1)
    close, away, ties = sizes(law)
    inside, outside = Fraction(whole(law["high"]), close), Fraction(ONE - whole(law["high"]), away)
    chances = [inside, outside, *([inside + outside] if ties else [])]
    return _of(max(chances), min(chances))


def sizes(law: Law) -> tuple[int, int, int]:
    """Return how many corners are near, how many are far, and how many are both."""
    bits, near, far = (whole(law[name]) for name in ("bits", "near", "far"))
    must(0 < near <= bits and near <= far + 1, "some corners are neither near nor far")
    must(far <= bits, "more bits are to agree than there are")
    close, away = _agreeing(bits, near), (1 << bits) - _agreeing(bits, far + 1)
    return close, away, close + away - (1 << bits)


def _agreeing(bits: int, least: int) -> int:
    """Return how many corners agree with a record in `least` bits or more."""
    if least > bits:
        return 0
    if 2 * least <= bits:  # as many corners differ in so many bits as agree in them
        return (1 << bits) - _agreeing(bits, bits - least + 1)
    middle = (bits + 1) // 2
    central = _binomial(bits, middle)
    half = ((1 << bits) + (central if bits % 2 == 0 else 0)) // 2  # that agree in `middle` bits or more
    inward = least - middle < bits - least
    total, term = 0, central if inward else 1
    for i in range(middle, least) if inward else range(bits - least + 1):
        total += term
        term = term * (bits - i) // (i + 1)
    return half - total if inward else total


def _binomial(n: int, k: int) -> int:
    """Return C(n, k) from its prime powers: `math.comb` takes time quadratic in its bits."""
    prime = bytearray([1]) * (n + 1)
    factors = [1]
    for p in range(2, n + 1):
        if prime[p]:
            prime[p * p :: p] = bytes(len(range(p * p, n + 1, p)))
            power = p  # of p in C(n, k), by Kummer's theorem: one for each carry
            while power <= n:
                if k % power + (n - k) % power >= power:
                    factors.append(p)
                power *= p
    while len(factors) > 1:
        factors = [prod(factors[i : i + 2]) for i in range(0, len(factors), 2)]
    return factors[0]


def _cap(law: Law) -> Fraction:
    """Law of a cap: uniform on a set about the input with chance high/2**64, otherwise on all reports."""
    share, high = share_of_cap(law), whole(law["high"])
    must(0 <= high <= ONE, "a chance is above 1")
    outside = (ONE - high) * share
    return Fraction(1) if law.get("mute") or share == 1 else _of(high + outside, outside)


def share_of_cap(law: Law) -> Fraction:
    """Return the share of all reports that is in the set about an input."""
    share = Fraction(1)
    for points, reach in law["windows"]:
        must(whole(points) > 0, "a window has no points")
        share *= Fraction(2 * whole(reach) + 1, whole(points) + 2 * whole(reach))
    counts = [1]  # of lists of subsets, by how many of them hold the input
    for elements, size in law["subsets"]:
        k, w = whole(elements), whole(size)
        must(0 < w < k, "a subset is of none, or of all")
        missed, hit = [(k - w) * each for each in counts], [w * each for each in counts]
        counts = [a + b for a, b in zip([*missed, 0], [0, *hit], strict=True)]
    hits = whole(law["hits"])
    must(hits < len(counts), "more subsets must hold the input than there are")
    return share * Fraction(sum(counts[hits:]), sum(counts))


def _mute(law: Law) -> Fraction:
    """Law that leaves its input out."""
    return Fraction(1)


_RULES: dict[str, Callable[[Law], Fraction]] = {
    "window": _window,
    "matrix": _matrix,
    "bits": _bits,
    "unary": _unary,
    "shift": _shift,
    "mixture": _mixture,
    "cube": _cube,
    "cap": _cap,
    "mute": _mute,
}


# -- the chances themselves, of a few inputs


def rows(law: Law) -> Iterator[tuple[float, list[Any]]]:
    """Yield where in the interval a number is, and the weights of its reports, for two or three numbers."""
    kind = law["law"]
    if kind == "mixture":
        (_, first), *_, (_, last) = rows(law["window"])
        for at, own, (head, *tails) in zip((0.0, 1.0), (first, last), weights(law), strict=True):
            yield at, [head * weight / ONE for weight in own] + tails
    elif kind == "window":
        cells, width, high = (whole(law[name]) for name in ("cells", "width", "high"))
        slides = cells - width
        for start in sorted({0, slides // 2, slides}):
            row = [(ONE - high) / slides] * cells
            row[start : start + width] = [high / width] * width
            yield start / slides, row
    elif kind == "bits":
        top = (1 << len(law["thresholds"])) - 1
        for x in (0, top):
            product = [1.0]
            for ones, zeros in law["thresholds"]:
                p = whole(ones if x else zeros) / ONE
                product = [each * chance for each in product for chance in (1.0 - p, p)]
            yield x / top, [each * ONE for each in product]
    elif kind == "cube":
        bits, near, far = (whole(law[name]) for name in ("bits", "near", "far"))
        close, away, _ = sizes(law)
        inside, outside = Fraction(whole(law["high"]), close), Fraction(ONE - whole(law["high"]), away)
        # A corner agrees in one bit of its own, and in one less of the others.
        others = bits - 1
        kept = float(
            _agreeing(others, near - 1) * inside + ((1 << others) - _agreeing(others, far)) * outside
        )
        yield from ((0.0, [kept, ONE - kept]), (1.0, [ONE - kept, kept]))
    elif kind == "cap":  # of one number
        points, reach = map(whole, law["windows"][0])
        high, cells = whole(law["high"]), points + 2 * reach
        for x in sorted({0, points // 2, points - 1}):
            row = [(ONE - high) / cells] * cells
            row[x : x + 2 * reach + 1] = [(ONE - high) / cells + high / (2 * reach + 1)] * (2 * reach + 1)
            yield x / (points - 1), row
    elif kind in ("shift", "matrix"):
        inputs = whole(law["inputs"]) if kind == "shift" else len(law["weights"])
        for x in sorted({0, inputs // 2, inputs - 1}):
            yield x / (inputs - 1), shifted(law, x) if kind == "shift" else weights(law)[x]
