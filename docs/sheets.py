"""Keep what the page of a family shows of each mechanism: its error by epsilon, and its law.

    python docs/sheets.py [--check]

Closed forms of the example that `bitldp explain --all` prints, at five budgets, are kept in
docs/figures/mechanisms.json: some mechanisms solve a design for each, which would take the site a minute.
With ``--check`` what is quick is computed again and compared.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
from bitldp.cli.catalogue import entries
from bitldp.mechanism.base import Mechanism

sys.path.insert(0, str(Path(__file__).parent))

from record import differs, plain

KEPT = Path(__file__).parent / "figures" / "mechanisms.json"
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
LAW = 1.0  # epsilon of the laws that are drawn

#: Mechanisms whose designs or sums take seconds; a check leaves them out.
SLOW = {"Skellam", "VectorMVU", "SignSGD", "InterpolatedMVU", "MetricMVU", "BallGaussian"}

#: What there is no command for.
BESIDE = {
    **dict.fromkeys(("HDG", "ItemSet", "KeyValue", "MatrixResponse"), "categories"),
    "TwoStage": "scores",
}

_MOST = 60  # points of a law that are drawn
_VARIANCE = {
    "numbers": "variance of a number's letter",
    "reals": "variance of a number's letter",
    "categories": "variance of a category's indicator",
    "ball": "variance of a coordinate",
    "words": "variance of a word's indicator",
    "record": "mean variance of an answer",
    "scores": "variance of an indicator",
}
_OF = {"HDG": "mean variance of a range's indicator", "WorkloadDesign": "mean variance of an answer"}
_CHANCES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "EXP": ("chance of one of the ten largest", lambda law: law[90:].sum()),
    "SignSGD": ("chance that a full coordinate's sign is true", lambda law: law[-1].max()),
}


def sheets(*, slow: bool = True) -> dict[str, Any]:
    """Return what is kept of each mechanism, by the name of its class."""
    result: dict[str, Any] = {}
    for name, takes, build in _builders():
        if name not in result and (slow or name not in SLOW):
            result[name] = plain(_sheet(name, takes, [build(epsilon) for epsilon in EPSILONS]))
    return result


def _builders() -> Iterator[tuple[str, str, Any]]:
    for entry in entries().values():
        takes = "points" if entry.family == "points" else str(entry.kind._takes)
        takes = "record" if takes == "ordered" else takes  # its numbers are of answers
        yield entry.kind.__name__, takes, lambda epsilon, entry=entry: entry.example(epsilon, {})
    for name, takes in BESIDE.items():
        kind: Any = getattr(bitldp, name)
        yield name, takes, lambda epsilon, kind=kind: kind(**kind._usual(epsilon))


def _sheet(name: str, takes: str, built: list[Mechanism]) -> dict[str, Any]:
    measure, values = _errors(name, takes, built)
    shown = built[EPSILONS.index(LAW)]
    guarantee, proof = shown.guarantee, getattr(shown, "certificate", None)
    return {
        **({} if proof is None else {"proof": str(proof)}),
        "takes": takes,
        "setting": _setting(shown),
        "measure": measure,
        "exact": [each.guarantee.record for each in built],
        "values": values,
        "bits": shown.report_bits,
        "guarantee": {
            "claimed": guarantee.claimed,
            "record": guarantee.record,
            "feature": guarantee.feature,
            "bit": guarantee.bit,
            "delta": guarantee.delta,
            "holds": guarantee.holds,
        },
        "law": _law(takes, shown),
    }


def _errors(name: str, takes: str, built: list[Any]) -> tuple[str, list[float]]:
    """Return what is drawn against epsilon, and its values."""
    if takes == "points":
        return "expected steps from the truth", [each.expected_error() for each in built]
    if name in _CHANCES:
        measure, chance = _CHANCES[name]
        return measure, [float(chance(each.probabilities())) for each in built]
    if name == "TwoStage":
        even = np.linspace(-1.0, 1.0, built[0].features)[None]
        return "mean variance of a coordinate", [float(each.variance(even).mean()) for each in built]
    if name == "KeyValue":
        return "variance of a rare key's indicator", [each.frequency_variance() for each in built]
    return _OF.get(name, _VARIANCE[takes]), [each.mean_variance() for each in built]


#: Parameters that say nothing of the example.
_HIDDEN = {"epsilon", "epsilon_x", "epsilon_y", "clip", "unit", "rounding", "infinities", "sign", "seed"}


def _setting(mechanism: Mechanism) -> str:
    """Return the parameters of the example that tell it from others."""
    result = []
    for name, value in mechanism.fingerprint()["parameters"].items():
        said = isinstance(value, (int, float, str, list)) and not isinstance(value, bool)
        if said and name not in _HIDDEN and (name, value) != ("features", 1):
            shown = f"{value:g}" if isinstance(value, float) else str(value).replace("'", "")
            result.append(f"{name} {shown.replace('.0,', ',').replace('.0]', ']')}")
    return ", ".join(result)


def _law(takes: str, mechanism: Any) -> dict[str, Any] | None:
    """Return the law of a report as a panel, where there is one that a picture can show."""
    try:
        table = mechanism.probabilities
        table = table() if callable(table) else table
    except AttributeError:
        return None
    panel: dict[str, Any] = {"title": f"The law at ε {LAW:g}", "y": {"label": "chance of the report"}}
    if isinstance(table, tuple) and np.ndim(table[0]) == 3:  # of bits, and of a label
        table = table[0]
    if np.ndim(table) == 3:
        positions = list(range(np.shape(table)[1]))
        panel |= {"x": {"label": "bit, from the sign on"}, "y": {"label": "chance of a reported 1"}}
        panel["lines"] = [
            {"name": f"where the bit is {bit}", "x": positions, "y": list(table[0, :, bit])} for bit in (1, 0)
        ]
    elif np.ndim(table) == 2:
        panel |= {"x": {"label": "report"}, "lines": _rows(takes, mechanism, np.asarray(table))}
    elif isinstance(table, tuple) or np.size(table) == 2:
        p, q = (float(np.ravel(each)[0]) for each in table)
        names = {"0": "the truth's", "1": "any other"}
        panel |= {"x": {"label": "cell", "range": [-0.5, 1.5], "names": names}}
        panel |= {"y": {"label": "chance of a reported 1", "range": [0.0, 1.05 * max(p, q)]}}
        panel["lines"] = [{"name": "", "x": [0, 1], "y": [p, q], "kind": "dots"}]
    else:
        positions, chances = _thin(np.arange(np.size(table)), np.asarray(table))
        label = "rank, 0 the smallest" if takes == "scores" else "direction, nearest first"
        panel |= {
            "x": {"label": label},
            "lines": [{"name": "", "x": positions, "y": chances, "kind": "step"}],
        }
    return panel


def _rows(takes: str, mechanism: Any, table: Any) -> list[dict[str, Any]]:
    """Return the law of a report of the first, the middle and the last input."""
    codes = np.arange(table.shape[1], dtype=float)
    worth = codes
    if takes in ("reals", "ball", "points"):
        with_letters = getattr(mechanism, "letters", None) if takes != "points" else None
        if with_letters is not None and np.shape(with_letters) == codes.shape:
            worth = np.asarray(with_letters, float)
    order = np.argsort(worth)
    rows = {0: "the least input", len(table) // 2: "the middle one", len(table) - 1: "the greatest"}
    if len(table) == 2:
        rows = {0: "the least input", 1: "the greatest"}
    if takes == "categories":
        rows = {0: "the first category", len(table) - 1: "the last"}
    result = []
    for row, name in rows.items():
        x, y = _thin(worth[order], table[row][order])
        result.append({"name": name, "x": x, "y": y} | ({"kind": "dots"} if len(x) <= 24 else {}))
    return result


def _thin(x: Any, y: Any) -> tuple[list[float], list[float]]:
    """Return at most `_MOST` points, the ends and the middle of the mass among them."""
    likely = np.flatnonzero(y > y.max() * 1e-6)
    x, y = x[likely[0] : likely[-1] + 1], y[likely[0] : likely[-1] + 1]
    kept = np.unique(np.linspace(0, len(x) - 1, _MOST).round().astype(int))
    return [float(each) for each in x[kept]], [float(each) for each in y[kept]]


def main(arguments: list[str]) -> int:
    """Keep the sheets, or compare those that were kept; return 1 where they differ."""
    warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
    if arguments == ["--check"]:
        kept = json.loads(KEPT.read_text(encoding="utf-8"))
        new = sheets(slow=False)
        missing = sorted(set(kept) ^ (set(new) | SLOW))
        wrong = [f"{name}: is kept and not made, or made and not kept" for name in missing]
        wrong += [line for name in new if name in kept for line in differs(kept[name], new[name], name)]
        print("\n".join(wrong[:20]) or "as kept")
        return bool(wrong)
    lines = (
        f"{json.dumps(name)}: {json.dumps(one, ensure_ascii=False, separators=(',', ':'))}"
        for name, one in sorted(sheets().items())
    )
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
