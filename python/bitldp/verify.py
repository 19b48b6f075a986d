"""Recomputes the epsilon of a privacy report from the integers in it, by itself.

For auditors. This file uses the standard library and nothing of bitldp, so that it can be read alone.

A report (`OUTPUT.privacy.json`) says for each mechanism the law that was sampled, in integers over 2**64.
Here the largest ratio of the probabilities of a report under two inputs is formed as a fraction; those of
independent symbols are multiplied; the logarithm, to 50 digits, must be at most the epsilon that the report
prints, and not below it by more than rounding. Digests of the plan, of the report itself and, where it is
given, of the output must agree.

What this does not show: that the output was made by that law. Its digest says which file the report is about.

    python -m bitldp.verify released.csv.privacy.json released.csv
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

__all__ = ["Finding", "Unproven", "delta_of", "epsilon_of", "verify"]

ONE = 1 << 64
ROUNDING = Decimal("1e-9")  # a printed epsilon may be above the exact one by so much
_CONTEXT = Context(prec=50)
_BLOCK = 1 << 20

Finding = tuple[bool, str]
"""A flag, true if something is as the report says, and a sentence about it."""


def verify(report: Mapping[str, Any], output: Path | None = None) -> list[Finding]:
    """Check a privacy report.

    Parameters
    ----------
    report : mapping
        The JSON values of a report.
    output : pathlib.Path, optional
        The released file.

    Returns
    -------
    list of (bool, str)
        What was checked; the report is proven if every first entry is true.
    """
    result = [_digests(report)]
    if output is not None:
        same = _sha256(output) == report.get("output_sha256")
        result.append((same, f"the output is {'' if same else 'NOT '}the file that the report is about"))
    total = Decimal(0)
    for number, mechanism in enumerate(report["mechanisms"], 1):
        name = f"{number}. {mechanism['mechanism']} on {', '.join(mechanism['columns'][:3])}"
        printed = _decimal(mechanism["epsilon_exact"]["record"])
        try:
            if mechanism["delta"]:
                result.append(_delta_agrees(name, mechanism))
                total += printed
                continue
            exact = epsilon_of(mechanism["law"])
        except Unproven as reason:
            result.append((False, f"{name}: not proven, {reason}"))
            total += printed
            continue
        result.append(
            (
                _agrees(printed, exact),
                f"{name}: epsilon {exact:.12g} from its integers, printed {printed:.15g}",
            )
        )
        total += exact
    printed = _decimal(report["total_per_record"]["epsilon_exact"])
    result.append(
        (_agrees(printed, total), f"a record: epsilon {total:.12g} together, printed {printed:.15g}")
    )
    return result


class Unproven(Exception):  # noqa: N818
    """A law that the report does not hold in integers."""


def epsilon_of(law: Sequence[Mapping[str, Any]]) -> Decimal:
    """Return the exact epsilon of a mechanism's law: the sum over its independent symbols.

    Raises
    ------
    Unproven
        For a law that is not given in integers, or not known here.
    """
    return sum((_epsilon(symbols) for symbols in law), Decimal(0))


def delta_of(law: Sequence[Mapping[str, Any]], epsilon: float) -> Decimal:
    """Return the exact delta of a number with integer noise at an epsilon, split evenly over its symbols.

    It is the sum of what the probabilities of reports under one input exceed e**epsilon times those under
    another by; with noise that falls off to both sides, the ends of the inputs are worst.

    Raises
    ------
    Unproven
        For a law of another kind.
    """
    times = sum(int(symbols["times"]) for symbols in law)
    growth = Fraction(_CONTEXT.exp(_CONTEXT.divide(Decimal(epsilon), Decimal(times))))
    total = Fraction(0)
    for symbols in law:
        (one,) = symbols["laws"]
        if one["law"] != "shift":
            raise Unproven("a delta is recomputed for integer noise alone")
        low, high = _shifted(one, 0), _shifted(one, int(one["inputs"]) - 1)
        worst = max(
            sum(
                (max(Fraction(a) - growth * b, Fraction(0)) for a, b in zip(first, other, strict=True)),
                Fraction(0),
            )
            for first, other in ((low, high), (high, low))
        )
        total += int(symbols["times"]) * worst / ONE
    return _CONTEXT.divide(Decimal(total.numerator), Decimal(total.denominator))


def _delta_agrees(name: str, mechanism: Mapping[str, Any]) -> Finding:
    printed, epsilon = Decimal(float(mechanism["delta"])), float(mechanism["epsilon_exact"]["record"])
    exact = delta_of(mechanism["law"], epsilon)
    said = f"{name}: delta {exact:.6g} from its integers at epsilon {epsilon:.12g}, printed {printed:.6g}"
    return exact <= printed, said


def _digests(report: Mapping[str, Any]) -> Finding:
    """Check the digest that a report has of itself, and of its plan."""
    rest = {name: value for name, value in report.items() if name != "report_sha256"}
    same = _canonical(rest) == report.get("report_sha256")
    plan = report.get("plan")
    if same and plan is not None:
        same = _canonical(plan) == report.get("plan_sha256")
    return same, "the report is as it was written" if same else "the report was CHANGED after it was written"


def _canonical(values: Any) -> str:
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _sha256(path: Path) -> str:
    result = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            result.update(block)
    return result.hexdigest()


def _decimal(value: Any) -> Decimal:
    """Return a printed number exactly; infinity is a word."""
    return Decimal("Infinity") if value == "infinity" else Decimal(float(value))


def _agrees(printed: Decimal, exact: Decimal) -> bool:
    if exact.is_infinite() or printed.is_infinite():
        return printed == exact
    return exact <= printed + exact * Decimal("1e-40") and printed <= exact + ROUNDING * max(
        Decimal(1), exact
    )


def _epsilon(symbols: Mapping[str, Any]) -> Decimal:
    """Return the exact epsilon of independent symbols: how many, times the worst of their laws."""
    worst = max((_ratio(law) for law in symbols["laws"]), default=Fraction(1))
    if worst == 0:
        return Decimal("Infinity")
    logarithm = _CONTEXT.subtract(
        _CONTEXT.ln(Decimal(worst.numerator)), _CONTEXT.ln(Decimal(worst.denominator))
    )
    return logarithm * int(symbols["times"])


# -- the largest ratio of a report's probabilities under two inputs, law by law; 0 stands for infinity


def _ratio(law: Mapping[str, Any]) -> Fraction:
    try:
        rule = _RULES[law["law"]]
    except KeyError:
        raise Unproven(f"the law {law.get('law')!r} is not known here") from None
    return rule(law)


def _of(more: int | Fraction, less: int | Fraction) -> Fraction:
    """Return the ratio of two probabilities, the larger over the smaller; 0 where one alone is 0."""
    more, less = max(more, less), min(more, less)
    if more == less:
        return Fraction(1)
    return Fraction(0) if less == 0 else Fraction(more) / Fraction(less)


def _worst(ratios: Sequence[Fraction]) -> Fraction:
    return Fraction(0) if 0 in ratios else max(ratios, default=Fraction(1))


def _by_report(rows: Sequence[Sequence[int]]) -> list[Fraction]:
    """Return the largest ratio of each report of a table."""
    return [_of(max(column), min(column)) for column in zip(*rows, strict=True)]


def _window(law: Mapping[str, Any]) -> Fraction:
    """Law of a window: `width` of `cells` share the chance high/2**64 evenly, the others the rest."""
    cells, width, high = (int(law[name]) for name in ("cells", "width", "high"))
    if law.get("mute") or cells == width:
        return Fraction(1)
    return _of(Fraction(high, width), Fraction(ONE - high, cells - width))


def _matrix(law: Mapping[str, Any]) -> Fraction:
    """Law of a table: row x holds the weights of the reports of input x, and adds up to 2**64."""
    rows = [[int(weight) for weight in row] for row in law["weights"]]
    if any(sum(row) != ONE or min(row) < 0 for row in rows):
        raise Unproven("a row of its table does not add up to 2**64")
    return _worst(_by_report(rows))


def _bits(law: Mapping[str, Any]) -> Fraction:
    """Law of independent bits: each is reported as 1 with p/2**64 where it is 1, with q/2**64 where 0."""
    product = Fraction(1)
    for ones, zeros in law["thresholds"]:
        product *= _bit(int(ones), int(zeros))
    return product


def _bit(p: int, q: int) -> Fraction:
    return _worst([_of(p, q), _of(ONE - p, ONE - q)])


def _unary(law: Mapping[str, Any]) -> Fraction:
    """Law of one bit for each category: two categories differ in two bits, (1, 0) and (0, 1)."""
    p, q = int(law["p"]), int(law["q"])
    return _of(p * (ONE - q), q * (ONE - p))


def _shift(law: Mapping[str, Any]) -> Fraction:
    """Law of a number with integer noise: what leaves the range of reports is put at its ends."""
    if law.get("mute"):
        return Fraction(1)
    weights = [int(weight) for weight in law["weights"]]
    inputs = int(law["inputs"])
    if sum(weights) != ONE:
        raise Unproven("the weights of its noise do not add up to 2**64")
    rows = [_shifted(law, x) for x in range(inputs)]
    return _worst(_by_report(rows))


def _shifted(law: Mapping[str, Any], x: int) -> list[int]:
    """Return the law of the reports of one input."""
    outputs, first = int(law["outputs"]), x - int(law["reach"]) + int(law["offset"])
    row = [0] * outputs
    for place, weight in enumerate(law["weights"], first):
        row[min(max(place, 0), outputs - 1)] += int(weight)
    return row


def _mixture(law: Mapping[str, Any]) -> Fraction:
    """Law of a coin: heads, a report of a window; tails, one of a table, whose first column is heads."""
    window, rows = law["window"], [[int(weight) for weight in row] for row in law["weights"]]
    cells, width, high = (int(window[name]) for name in ("cells", "width", "high"))
    heads = [row[0] for row in rows]
    inside, outside = Fraction(high, width * ONE), Fraction(ONE - high, (cells - width) * ONE)
    chances = [inside, outside]
    tails = _by_report(rows)[1:]
    if window.get("mute"):
        return _worst([_of(max(heads), min(heads)), *tails])
    return _worst([_of(max(heads) * max(chances), min(heads) * min(chances)), *tails])


def _cube(law: Mapping[str, Any]) -> Fraction:
    """Law of a corner: those that agree with the record in `near` places or more share high/2**64."""
    if law.get("mute"):
        return Fraction(1)
    bits, near, far, high = (int(law[name]) for name in ("bits", "near", "far", "high"))
    close = sum(comb(bits, i) for i in range(near, bits + 1))
    away = sum(comb(bits, i) for i in range(far + 1))
    ties = sum(comb(bits, i) for i in range(near, far + 1))
    inside, outside = Fraction(high, close), Fraction(ONE - high, away)
    both = [inside + outside] if ties else []
    return _of(max([inside, outside, *both]), min([inside, outside, *both]))


def _select(law: Mapping[str, Any]) -> Fraction:
    """Law of a rank: every coordinate may have every rank, so that any two weights may meet."""
    weights = [int(weight) for weight in law["weights"]]
    return _of(max(weights), min(weights))


_RULES: dict[str, Callable[[Mapping[str, Any]], Fraction]] = {
    "window": _window,
    "matrix": _matrix,
    "bits": _bits,
    "unary": _unary,
    "shift": _shift,
    "mixture": _mixture,
    "cube": _cube,
    "select": _select,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a report from a shell; 0 if it is proven, 1 if not."""
    parser = argparse.ArgumentParser(
        prog="bitldp verify", description="Recompute the epsilon of a privacy report."
    )
    parser.add_argument("report", type=Path, help="OUTPUT.privacy.json")
    parser.add_argument("output", type=Path, nargs="?", help="The released file.")
    given = parser.parse_args(arguments)
    try:
        result = verify(json.loads(given.report.read_text(encoding="utf-8")), given.output)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        print(
            f"error: {given.report}: not a privacy report that can be checked ({type(error).__name__})",
            file=sys.stderr,
        )
        return 1
    for good, sentence in result:
        print(f"{'ok   ' if good else 'FAIL '} {sentence}")
    proven = all(good for good, _ in result)
    print("proven" if proven else "NOT proven")
    return 0 if proven else 1


if __name__ == "__main__":
    raise SystemExit(main())
