"""The law that the parameters of each mechanism make, built again by formulas of this file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from .findings import Unproven, must
from .law_checks import (
    BUDGET,
    NEAR,
    Check,
    bits_of,
    bitwise_of,
    close,
    cube_of,
    exp,
    geometric_of,
    is_a,
    is_near,
    muted,
    table_of,
    unary_of,
    window_of,
    within,
)
from .laws import CONTEXT, ONE, epsilon_of, of_law, of_rows, weights, whole

__all__ = [
    "BITS",
    "CODES",
    "HASHES",
    "RECORDS",
    "SIZES",
    "WORDS",
    "checked",
    "claimed",
    "given",
    "known",
    "numbers_of",
]

Parameters = Mapping[str, Any]
_Wanted = list[tuple[int, Check]]
"""How many symbols are alike, and their check."""

WORDS = ("FRR", "MOUE", "SymmetricRR", "UER")
BITS = ("OUE", "RAPPOR", "SUE", "SubsetSelection")  # a report is a bit for each category
HASHES = ("LOLOHA", "OLH")  # a report is a function and a value
# Reports that are no category and no number:
CODES = ("BlockDesign", "HadamardResponse", "WorkloadDesign", *HASHES, *WORDS)
_ATTRIBUTES = ("CategoricalRecord", "MixedRecord")  # each by a mechanism of its own
RECORDS = (*_ATTRIBUTES, "MixedCap", "RecordCap")
SIZES = ("categories", "classes", "candidates", "size")

_ONE_HOT = "one-hot input"
_GIVEN = {
    **dict.fromkeys(("OUE", "SUE", "LabelLaplace"), _ONE_HOT),
    "LOLOHA": (
        "all reports while the hashed value stays: each other hashed value costs the same once more, and the "
        "reports show when it changes"
    ),
    "RAPPOR": f"{_ONE_HOT}, and all reports of one value together: a value that changes counts once more",
}


def known(kind: str) -> bool:
    """Tell whether the law of a mechanism can be built here."""
    return kind in _MECHANISMS


def checked(kind: str, p: Parameters, law: Sequence[Mapping[str, Any]]) -> bool:
    """Compare a mechanism's law with its parameters; return whether all of it was built again.

    Raises
    ------
    Lie
        If it is another.
    Unproven
        If the parameters are known by a digest alone, or the mechanism is not known here.
    """
    if not known(kind):
        exact = f"the law that is stated has epsilon {epsilon_of(law):.6g}"
        raise Unproven(f"the mechanism {kind!r} is not known here; {exact}")
    epsilon = p["epsilon"]
    number = isinstance(epsilon, (int, float)) and not isinstance(epsilon, bool)
    must(number and math.isfinite(epsilon) and epsilon >= 0, "its epsilon is no budget")
    if epsilon == 0 and [one["law"] for symbols in law for one in symbols["laws"]] == ["mute"]:
        return True
    wanted = [(count, check) for count, check in _MECHANISMS[kind](p) if count]
    rebuilt = []
    for stated, laws in _stated(law, p["k"] if kind in _ATTRIBUTES else None):
        chosen = _ways(p) if kind == "RecordCap" else 1
        must(len(laws) == chosen or p.get("regions") is not None, "there is no choice among so many laws")
        left = stated
        while left:
            must(bool(wanted), "its law has more symbols than its parameters")
            count, check = wanted.pop(0)
            rebuilt += [check(one) for one in laws]
            if count > left:
                wanted.insert(0, (count - left, check))
            left -= min(left, count)
    must(not wanted, "its law has fewer symbols than its parameters")
    return all(rebuilt)


def _stated(law: Sequence[Mapping[str, Any]], drawn: Any) -> Iterator[tuple[int, list[Any]]]:
    """Yield how often, and by which laws, symbols are stated: each attribute of which some are drawn."""
    if drawn is None:
        must(not any("each" in symbols for symbols in law), "no attributes are drawn")
        yield from ((symbols["times"], symbols["laws"]) for symbols in law)
        return
    must(len(law) == 1 and law[0]["times"] == drawn, "another number of attributes is drawn")
    yield from ((count, [one]) for count, one in zip(law[0]["each"], law[0]["laws"], strict=True))


def claimed(kind: str, p: Parameters) -> Decimal:
    """Return the epsilon that a mechanism claims."""
    if kind == "MetricMVU":
        return Decimal(_farthest(p)) * int(p["features"])
    if kind == "MetricPoints":
        return Decimal(p["epsilon"] * _step(p) * (p["candidates"] - 1)) * int(p["features"])
    return Decimal(p["epsilon"])


def given(kind: str, p: Parameters, law: Sequence[Mapping[str, Any]]) -> str:
    """Return what the exact epsilon of a mechanism takes as public or as known."""
    if kind == "MetricMVU":
        table = weights(law[0]["laws"][0])
        near = max(of_rows(pair) for pair in pairwise(table))
        slope = math.expm1(near) * (len(table) - 1) / (p["interval"][1] - p["interval"][0])
        return (
            f"under a metric: {p['epsilon']:.6g} times the distance of points of the grid, and {slope:.6g} "
            "times the length between any other numbers, where the dither mixes; shown for the greatest "
            "distance"
        )
    if kind == "MetricPoints":
        return (
            f"under a metric: {p['epsilon']:.6g} times the distance of candidates; shown for the greatest "
            "distance"
        )
    if p.get("regions") is not None:
        return "given the public region"
    oracles = p["oracle"] if kind in RECORDS and "oracle" in p else [kind]
    oracles = [oracles] if isinstance(oracles, str) else oracles
    return "; ".join(dict.fromkeys(_GIVEN[each] for each in oracles if each in _GIVEN))


def _record_cap(p: Parameters) -> _Wanted:
    """Return the law of attributes that are drawn in public: subsets, of which enough hold the record's."""
    epsilon = p["epsilon"]
    members = Counter(zip(numbers_of(p["attributes"]), p["subset"], strict=True))

    def check(law: Mapping[str, Any]) -> bool:
        if muted(law, epsilon):
            return True
        is_a(law, "cap", windows=[], hits=p["hits"])
        drawn = Counter((whole(k), whole(w)) for k, w in law["subsets"])
        must(drawn.total() == p["m"] and drawn <= members, "its law is of other attributes than are drawn")
        return is_near(law, epsilon)

    return [(1, check)]


def _mixed_cap(p: Parameters) -> _Wanted:
    """Return the law of numbers and attributes that are near a record all at once, or anywhere."""
    epsilon = p["epsilon"]
    subsets = [[k, w] for k, w in zip(numbers_of(p["attributes"]), p["subset"], strict=True)]
    windows = [[p["levels"], p["reach"]]] * p["features"]

    def check(law: Mapping[str, Any]) -> bool:
        if muted(law, epsilon):
            return True
        pairs = {name: [list(each) for each in law[name]] for name in ("windows", "subsets")}
        is_a({**law, **pairs}, "cap", windows=windows, subsets=subsets, hits=p["hits"])
        return is_near(law, epsilon)

    return [(1, check)]


def _joint_window(p: Parameters, epsilon: float) -> Check:
    """Return the check of windows of as many numbers as are drawn, near a record all at once."""

    def check(law: Mapping[str, Any]) -> bool:
        if muted(law, epsilon):
            return True
        windows = [list(each) for each in law["windows"]]
        wanted = [[p["levels"], p["reach"]]] * p["k"]
        is_a({**law, "windows": windows}, "cap", subsets=[], hits=0, windows=wanted)
        return is_near(law, epsilon)

    return check


def _ways(p: Parameters) -> int:
    """Return how many laws there are: one for each number of drawn attributes of each kind."""
    ways = [1] + [0] * p["m"]
    for count in Counter(zip(numbers_of(p["attributes"]), p["subset"], strict=True)).values():
        ways = [sum(ways[max(0, drawn - count) : drawn + 1]) for drawn in range(p["m"] + 1)]
    return ways[p["m"]]


def numbers_of(attributes: Sequence[Any]) -> list[int]:
    """Return how many categories each attribute has: a number, or the digest of its labels."""
    return [each["labels"] if isinstance(each, Mapping) else each for each in attributes]


def _hybrid(epsilon: float) -> Check:
    if epsilon <= 0.61:
        return window_of(2, 1, epsilon)
    window = window_of(*_cells(epsilon, 2, 2), epsilon)

    def check(law: Mapping[str, Any]) -> bool:
        is_a(law, "mixture")
        window(law["window"])
        rest, fading = (max(exp(-Decimal(each)), Decimal(2) ** -32) for each in (epsilon / 2, epsilon))
        chances = [1 - rest, rest / (1 + fading), rest * fading / (1 + fading)]
        table = weights(law)
        must([len(row) for row in table] == [3, 3], "its choice has another size than its parameters say")
        for row in (table[0], [table[1][i] for i in (0, 2, 1)]):
            good = all(map(close, row, chances))
            must(good, "its law is not that of the epsilon of its parameters")
        within(law, epsilon)
        return True

    return check


def _noise(p: Parameters) -> Check:
    def check(law: Mapping[str, Any]) -> bool:
        is_a(law, "shift", mute=False)
        return False  # its width was searched; delta is that of the integers

    return check


def part(epsilon: float, parts: int) -> float:
    """Return the largest double of which as many parts are within a budget."""
    each = epsilon / parts
    while Fraction(each) * parts > Fraction(epsilon):
        each = math.nextafter(each, 0.0)
    return each


def _parts(p: Parameters) -> tuple[int, float]:
    """Return how many numbers of a record are released, and the budget of each."""
    count = p["features"] if p.get("k") is None else p["k"]
    must(type(count) is int and 1 <= count <= p["features"], "it releases no number of a record's columns")
    return count, part(p["epsilon"], count) if p["unit"] == "record" else p["epsilon"]


def _each(make: Callable[[Parameters, float], Check]) -> Callable[[Parameters], _Wanted]:
    """Return the law of a mechanism whose numbers are released one by one."""

    def wanted(p: Parameters) -> _Wanted:
        count, epsilon = _parts(p)
        return [(count, make(p, epsilon))]

    return wanted


def _once(make: Callable[[Parameters, float], Check]) -> Callable[[Parameters], _Wanted]:
    """Return the law of a mechanism that releases a record as one symbol."""
    return lambda p: [(1, make(p, p["epsilon"]))]


def _cells(epsilon: float, root: int, spare: int = 0) -> tuple[int, int]:
    """Return the cells and the width of the piecewise mechanism's window, a share 1/(e^(eps/root) + 1)."""
    share = 1.0 / (1.0 + math.exp(min(epsilon / root, 700.0)))
    for bits in range(8, 17):
        most = (1 << bits) - spare
        if math.floor(most * share) >= 16 or bits == 16:
            break
    width = math.floor(most * share)
    return (min(most, round(width / share)), width) if width else (most, 1)


def _size(p: Parameters) -> int | None:
    """Return how many categories or points there are, where that is a number."""
    return next((p[name] for name in SIZES if type(p.get(name)) is int), None)


def _beta(p: Parameters) -> Check:
    """Return the check of label-RR: of the paper's beta, an epsilon of abs(beta + ln(C - 1))."""
    classes, epsilon, beta = _size(p) or 2, p["epsilon"], p["beta"]
    if beta is None:
        return window_of(classes, 1, epsilon)

    def check(law: Mapping[str, Any]) -> bool:
        if law.get("mute") is True:
            must(abs(beta + math.log(classes - 1)) < 1e-9, "its law is mute, and its budget is not 0")
            return True
        is_a(law, "window", cells=classes, width=1)
        must(close(law["high"], 1 / (1 + exp(-beta))), "its law is not that of its beta")
        return True

    return check


def _wave(p: Parameters, epsilon: float) -> Check:
    fading = math.exp(-epsilon)
    half = 0.5 * (1.0 - epsilon / 3.0) / (1.0 + epsilon / 3.0)
    if epsilon >= 1e-4:
        half = (epsilon + math.expm1(-epsilon)) * fading / (2.0 * (1.0 - (1.0 + epsilon) * fading))
    width = max(1, round(2.0 * half * p["cells"]))
    return window_of(p["cells"] + width - 1, width, epsilon)


def _frr(p: Parameters) -> _Wanted:
    r, bits, epsilon = p["features"], p["bits"], p["epsilon"]

    def chances() -> list[tuple[Decimal, Decimal]]:
        if p["calibration"] == "paper":
            steps = [Decimal(epsilon) * i / bits for i in range(bits)]
            total = sum((exp(2 * step) for step in steps), Decimal(0))
            first = CONTEXT.ln((Decimal(epsilon) + r * bits) / (2 * r * total)) / 2
            losses = [-(first + step) for step in steps]
        else:
            each = 2 * Decimal(epsilon) / (r if p["unit"] == "record" else 1) / (bits + 1)
            losses = [each * (bits - i) / bits for i in range(bits)]
        return [(1 / (1 + exp(-loss)), 1 / (1 + exp(loss))) for loss in losses] * int(r)

    return [(1, bits_of(chances, epsilon if (p["calibration"], p["unit"]) == ("exact", "record") else None))]


def _symmetric(p: Parameters) -> _Wanted:
    r, bits, epsilon = p["features"], p["bits"], p["epsilon"]

    def chances() -> list[tuple[Decimal, Decimal]]:
        loss = Decimal(epsilon) / (r * bits if p["unit"] == "record" else bits)
        return [(1 / (1 + exp(-loss)), 1 / (1 + exp(loss)))] * (r * bits)

    return [(1, bits_of(chances, epsilon if p["unit"] == "record" else None))]


def _rare(p: Parameters) -> _Wanted:
    """Return the law of MOUE, and of UER, which differs from it in the chances of ones."""
    r, bits, alpha, way = p["features"], p["bits"], Decimal(p["alpha"]), p["calibration"]

    def formula() -> Decimal:
        """Return the epsilon of the paper's formula, or the one that it corrects to the budget."""
        epsilon = Decimal(p["epsilon"])
        low, high = (Decimal(0), epsilon / 2) if way == "corrected" else (epsilon, epsilon)
        for _ in range(120 if low < high else 0):
            middle = (low + high) / 2
            fading = exp(-middle / (r * bits))
            more = (1 + alpha) / alpha * (fading + alpha) / (fading + 1) * middle > epsilon
            low, high = (low, middle) if more else (middle, high)
        return high

    def chances() -> list[tuple[Decimal, Decimal]]:
        if way == "exact":
            p_one = 1 / (1 + alpha)
            each = min(Decimal(p["epsilon"]) / (r * bits if p["unit"] == "record" else bits), 700)
            q = max(p_one * exp(-each), 1 - (1 - p_one) * exp(each), Decimal(2) ** -60)
            return [(p_one, q)] * (r * bits)
        fading = exp(-formula() / (r * bits))
        q = max(fading / (fading + alpha), Decimal(2) ** -60)
        ones = [alpha / (1 + alpha), 1 / (1 + alpha**3)] if "odd" in p else [1 / (1 + alpha)] * 2
        # Where words have an odd number of bits, every second one begins with the other chance; the report
        # lists those that begin alike one after the other.
        words = [*range(0, r, 2), *range(1, r, 2)] if bits % 2 else range(r)
        return [(ones[(word * bits + i) % 2], q) for word in words for i in range(bits)]

    kept = p["unit"] == "record" and (way == "exact" or (way == "paper" and "odd" not in p))
    return [(1, bits_of(chances, p["epsilon"] if kept else None))]


def _budgets(p: Parameters, epsilon: float) -> Check:
    def check(law: Mapping[str, Any]) -> bool:
        is_a(law, "bits")
        must(len(law["thresholds"]) == p["bits"], "it has another number of bits than its parameters say")
        must(
            all(whole(a) + whole(b) == ONE for a, b in law["thresholds"]), "its bits are not kept and flipped"
        )
        within(law, epsilon)
        low = of_law(law) >= Decimal(epsilon) * (1 - NEAR) or epsilon > BUDGET
        must(low, "its law is not that of the epsilon of its parameters")
        return False

    return check


def _duchi(p: Parameters) -> _Wanted:
    if p["spend"] != "cube":
        return _each(lambda p, epsilon: window_of(2, 1, epsilon))(p)
    bits, paper = p["features"], p["calibration"] == "paper"
    return [(1, cube_of(bits, (bits + 1) // 2 if paper else bits // 2 + 1, p["epsilon"], paper))]


def _brr(p: Parameters, epsilon: float) -> Check:
    whole = p["regions"] is None
    return window_of(_size(p) if whole else None, p["m"] if type(p["m"]) is int else None, epsilon)


def _farthest(p: Parameters) -> float:
    """Return the epsilon of a metric for the greatest distance."""
    low, high = p["interval"]
    if not isinstance(p["metric"], (int, float)):
        raise Unproven("the metric is known by its digest alone")
    return float(p["epsilon"] * math.pow(high - low, p["metric"]))


def _metric(p: Parameters, epsilon: float) -> Check:
    return table_of(1 << p["input_bits"], 1 << p["output_bits"], _farthest(p))


def _step(p: Parameters) -> float:
    """Return the distance of neighbours, for equidistant points of a line."""
    if type(p["candidates"]) is not int or p["metric"] not in ("euclidean", "manhattan"):
        raise Unproven("the points or their metric are known by a digest alone")
    low, high = p["interval"] or (0.0, p["candidates"] - 1.0)
    return float(high - low) / (p["candidates"] - 1)


def _metric_points(p: Parameters) -> _Wanted:
    """Return the law of points of a line: what neighbours keep by the step, all keep by the distance."""
    count, budget = p["candidates"], Decimal(p["epsilon"] * _step(p) * (1.0 + 1e-15 * p["candidates"]))

    def check(law: Mapping[str, Any]) -> bool:
        if law.get("mute") is True:
            return True
        is_a(law, "matrix")
        table = weights(law)
        must(len(table) == len(table[0]) == count, "its table has another size than its parameters say")
        far = any(of_rows(pair) > budget for pair in pairwise(table))
        must(not far, "two neighbours are further apart than epsilon times their distance")
        return False

    return [(p["features"], check)]


_ORACLES: dict[str, Callable[[int, float], Check]] = {
    "GRR": lambda size, epsilon: window_of(size, 1, epsilon),
    "OUE": lambda size, epsilon: unary_of(epsilon, True),
    "SUE": lambda size, epsilon: unary_of(epsilon, False),
    "SubsetSelection": lambda size, epsilon: window_of(size, None, epsilon),
    "BlockDesign": lambda size, epsilon: window_of(None, None, epsilon, least=size),
}


def _attributes(p: Parameters) -> _Wanted:
    """Return the laws of a record's attributes: first its numbers, then its categories."""
    lists, numbers = p["sizes"], p.get("features", 0)
    epsilon = part(p["epsilon"], p["k"] or numbers + len(lists))
    oracles = [p["oracle"]] * len(lists) if isinstance(p["oracle"], str) else p["oracle"]
    wanted: _Wanted = []
    if numbers:
        alone = {
            "epsilon": epsilon,
            "features": 1,
            "unit": "record",
            "spend": "split",
            "calibration": "exact",
        }
        wanted += [(numbers, _MECHANISMS[p["number"]](alone)[0][1])]
    return wanted + [(1, _ORACLES[name](size, epsilon)) for name, size in zip(oracles, lists, strict=True)]


_MECHANISMS: dict[str, Callable[[Parameters], _Wanted]] = {
    "BRR": _each(_brr),
    "BitBudgets": _each(_budgets),
    "BitwiseRR": _each(lambda p, epsilon: bitwise_of(p["bits"], epsilon)),
    "BlockDesign": _once(lambda p, epsilon: window_of(None, None, epsilon, least=_size(p) or 2)),
    "CategoricalRecord": _attributes,
    "Duchi": _duchi,
    "Exponential": _each(lambda p, epsilon: table_of(_size(p), _size(p), epsilon)),
    "FRR": _frr,
    "GRR": _each(lambda p, epsilon: window_of(_size(p), 1, epsilon)),
    "Gaussian": _each(lambda p, epsilon: _noise(p)),
    "GeneralizedRR": _each(lambda p, epsilon: window_of(1 << p["bits"], 1, epsilon)),
    "HadamardResponse": _once(lambda p, epsilon: window_of(None, None, epsilon, least=_size(p) or 2)),
    "Hybrid": _each(lambda p, epsilon: _hybrid(epsilon)),
    "HypercubePrivUnit": _once(lambda p, epsilon: cube_of(p["features"], p["threshold"], epsilon, False)),
    "JointWindow": _once(_joint_window),
    "LDPFLDuchi": _each(lambda p, epsilon: window_of(2, 1, epsilon)),
    "LOLOHA": _once(lambda p, epsilon: window_of(p["cells"], 1, epsilon)),
    "LSRR": _each(lambda p, epsilon: table_of(_size(p), _size(p), epsilon)),
    "LabelLaplace": lambda p: [(2, geometric_of(part(p["epsilon"], 2)))],
    "LabelRR": lambda p: [(1, _beta(p))],
    "Laplace": _each(lambda p, epsilon: geometric_of(epsilon)),
    "MOUE": _rare,
    "MVU": _each(lambda p, epsilon: table_of(1 << p["input_bits"], 1 << p["output_bits"], epsilon)),
    "MetricMVU": _each(_metric),
    "MetricPoints": _metric_points,
    "MinimaxVariance": _each(lambda p, epsilon: table_of(p["grid_points"], None, epsilon)),
    "MixedCap": _mixed_cap,
    "MixedRecord": _attributes,
    "OLH": _once(
        lambda p, epsilon: window_of(
            max(2, min(_size(p) or 2, round(math.exp(min(epsilon, 60.0))) + 1)), 1, epsilon
        )
    ),
    "OUE": _once(lambda p, epsilon: unary_of(epsilon, True)),
    "OptimalUtility": _each(lambda p, epsilon: table_of(_size(p), _size(p), epsilon)),
    "Piecewise": _each(lambda p, epsilon: window_of(*_cells(epsilon, 2), epsilon)),
    "PiecewiseSub": _each(lambda p, epsilon: window_of(*_cells(epsilon, 3), epsilon)),
    "RAPPOR": _once(lambda p, epsilon: unary_of(epsilon, False)),
    "RecordCap": _record_cap,
    "SUE": _once(lambda p, epsilon: unary_of(epsilon, False)),
    "SampledSigns": _once(lambda p, epsilon: window_of(1 << p["k"], 1, epsilon)),
    "SquareWave": _each(_wave),
    "SubsetSelection": _once(lambda p, epsilon: window_of(_size(p), None, epsilon)),
    "SymmetricRR": _symmetric,
    "ThreeOutputs": _each(lambda p, epsilon: table_of(3, 3, epsilon)),
    "UER": lambda p: _rare({**p, "odd": True}),
    "WorkloadDesign": _once(lambda p, epsilon: table_of(_size(p), None, epsilon)),
    "WarnerRR": _once(lambda p, epsilon: window_of(2, 1, epsilon)),
}
