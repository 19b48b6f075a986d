"""Fill the numbers of the documents from the records that measured them: ``make numbers``.

    python docs/fill.py [--check]

What stands between ``<!-- NAME:begin -->`` and ``<!-- NAME:end -->`` is written here and nowhere else. With
``--check`` nothing is written; a document that differs is named, and the exit code is 1.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import bitldp
import numpy as np
from bitldp import report

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "benches" / "records"
RECORD = RECORDS / "paper.json"


def _checks() -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = json.loads(RECORD.read_text(encoding="utf-8"))
    return result


def _number(value: Any, digits: int = 3) -> str:
    return "" if value is None else "∞" if value == "infinity" else report.number(float(value), digits)


def _measured(number: dict[str, Any]) -> str:
    spread = "" if number["spread"] is None else f" ± {_number(number['spread'], 2)}"
    return f"{_number(number['mean'])}{spread}"


def headlines() -> str:
    """Return a line a headline: what must be so, what was seen of each of its parts, over how many seeds."""
    lines = ["| Headline | Finding | Because | Seeds |", "| --- | --- | --- | ---: |"]
    for check in _checks():
        for index, each in enumerate(check["findings"]):
            head, seeds = (check["must"], check["seeds"]) if index == 0 else ("", "")
            lines.append(f"| {head} | {each['word']}: {each['says']} | {each['because']} | {seeds} |")
    return "\n".join(lines)


def numbers() -> str:
    """Return every number behind the headlines, beside the best constant, the claimed and the exact ε."""
    lines = [
        "| Of | Setting | Measured | A constant | Claimed ε | Exact ε |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {each['name']} | {number['what']} | {_measured(number)} "
        f"| {_number(number.get('constant', each['constant']))} "
        f"| {_number(number['claimed'])} | {_number(number['exact'], 4)} |"
        for each in _checks()
        for number in each["numbers"]
    ]
    return "\n".join(lines)


def arm() -> str:
    """Return instructions and estimated cycles of a value on AArch64, as last recorded."""
    last = json.loads((RECORDS / "arm.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    lines = [
        "| Case | of a | NumPy | portable | NEON | cycles: N1 | M1 | without keystream | cycles: N1 | M1 |",
        "| --- | --- " + "| ---: " * 8 + "|",
    ]
    for name, case in last["cases"].items():
        neon, rest = case["neon"], case["neon, keystream left out"]
        figures = [
            case["numpy"]["instructions"],
            case["scalar"]["instructions"],
            *(each for part in (neon, rest) for each in (part["instructions"], *part["cycles"].values())),
        ]
        lines.append(f"| {name} | {case['of a']} | {' | '.join(map(_number, figures))} |")
    return "\n".join(lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table of numbers, in two or three digits."""
    lines = [head, ["---:"] * len(head)]
    lines += [[each if isinstance(each, str) else _number(each) for each in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shares_of_liars() -> str:
    """Return what 1 % of liars move of the share of one of 64 categories, and of a set of them."""
    kinds = (
        bitldp.GRR,
        bitldp.OUE,
        bitldp.SUE,
        bitldp.SubsetSelection,
        bitldp.OLH,
        bitldp.BlockDesign,
        bitldp.HadamardResponse,
    )
    rows = [
        [f"{epsilon:g}", what, *(kind(64, epsilon=epsilon).influence(0.01, total=total) for kind in kinds)]
        for epsilon in LIARS_AT
        for what, total in (("one share", False), ("a set of them", True))
    ]
    return _table(["ε", "moved", *(kind.__name__ for kind in kinds)], rows)


def means_of_liars() -> str:
    """Return what 1 % of liars move of a mean on [-1, 1]: at worst, and where the honest mean is 0."""
    kinds: list[Any] = [getattr(bitldp, name) for name in OF_NUMBERS]
    rows = [
        [f"{epsilon:g}", what, *(kind(epsilon=epsilon).influence(0.01, mean=mean) for kind in kinds)]
        for epsilon in LIARS_AT
        for what, mean in (("at worst", None), ("0", 0.0))
    ]
    return _table(["ε", "honest mean", *OF_NUMBERS], rows)


def errors_of_numbers() -> str:
    """Return mean and worst variance, and bits, of a number of [-1, 1]."""
    rows = []
    for epsilon in (0.5, 1.0, 2.0, 4.0, 8.0):
        built = [getattr(bitldp, name)(epsilon=epsilon) for name in OF_NUMBERS]
        figures = (
            f"{_number(each.mean_variance())}/{_number(each.worst_variance())} in {each.report_bits}"
            for each in built
        )
        rows.append([f"{epsilon:g}", *figures])
    return _table(["ε", *OF_NUMBERS], rows)


def features_of_bitrand() -> str:
    """Return the exact epsilon of BitRand's f-RR at a claimed 1, by features of a record."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
        rows = [
            [f"{features:,}", what, bitldp.FRR(features, epsilon=1.0, calibration="paper").guarantee.record]
            for features, what in (
                (1000, "the example of its Theorem 2"),
                (768, "embeddings of text, its figures"),
                (384, "the records of the headlines above, and of the linkage attack"),
            )
        ]
    head = ["Features r", "Where", "Exact ε of a record"]
    return _table(head, ([*each[:2], f"{each[2]:,.0f}"] for each in rows))


def learned(data: str, learner: str) -> dict[str, Any]:
    """Return what one report of each client taught: the last record, with more seeds of those before it."""
    lines = (RECORDS / "honest_learning.jsonl").read_text(encoding="utf-8").splitlines()
    kept = [each for each in map(json.loads, lines) if (each["data"], each["learner"]) == (data, learner)]
    result: dict[str, Any] = kept.pop()
    for each in reversed(kept):
        alike = all(each[name] == result[name] for name in ("clients", "pool"))
        rows = {row["epsilon"]: row["scores"] for row in each["rows"]}
        if not alike or rows.keys() != {row["epsilon"] for row in result["rows"]}:
            break
        new = [index for index, seed in enumerate(each["seeds"]) if seed not in result["seeds"]]
        result["seeds"] += [each["seeds"][index] for index in new]
        for row in result["rows"]:
            row["scores"] += [rows[row["epsilon"]][index] for index in new]
    return result


def _scores(data: str, learner: str) -> list[str]:
    """Return the median accuracy at each epsilon, with the 10 and 90 % quantiles over the seeds."""
    rows = learned(data, learner)["rows"]
    if len(rows[0]["scores"]) == 1:
        return [f"{row['scores'][0]:.3f}" for row in rows]
    quantiles = [np.quantile(row["scores"], (0.1, 0.5, 0.9)) for row in rows]
    return [f"{middle:.3f} ({low:.3f} to {high:.3f})" for low, middle, high in quantiles]


def by_rounds() -> str:
    """Return what rounds of gradients learn, by the epsilon of a client."""
    kept = learned("mnist", "rounds")
    head = ["ε of a client", "Seeds", *(f"{row['epsilon']:g}" for row in kept["rows"]), "no noise"]
    rows = []
    for key, name in {**IMAGES, **HELD_BACK}.items():
        seeds, fewer = _seeds(key, "rounds"), _seeds(key, "noiseless")
        (quiet,) = _scores(key, "noiseless")
        rows.append(
            [name, seeds, *_scores(key, "rounds"), quiet if fewer == seeds else f"{quiet}, {fewer} seeds"]
        )
    return _table(head, rows)


def _seeds(data: str, learner: str) -> str:
    return str(len(learned(data, learner)["seeds"]))


def _steps(epsilon: float, clients: int, coordinates: int = 100, classes: int = 10) -> float:
    """Return the steps of a walk on a pool of 2,000: as `steps_of` of bitldp_papers.honest.pool does."""
    size = coordinates * classes
    variance = bitldp.CrossPolytope(size, epsilon=epsilon).total_variance() / size
    return 50.0 * float(np.sqrt(variance / clients * classes * (classes - 1)))


def by_pool() -> str:
    """Return what the graph of a public pool makes of it, beside rounds, and what one shuffle adds."""
    kept = learned("mnist", "pool")
    head = ["ε of a client", "Clients", "Seeds", *(f"{row['epsilon']:g}" for row in kept["rows"])]
    rows = []
    for key, name in {**IMAGES, "ag_news": "AG News", **HELD_BACK}.items():
        for learner in ("pool",) if key == "ag_news" else ("pool", "rounds"):
            clients = f"{learned(key, learner)['clients']:,}"
            rows.append([f"{name}, {learner}", clients, _seeds(key, learner), *_scores(key, learner)])
    shuffled = ["none" if row["shuffled"] is None else f"{row['shuffled']:.3f}" for row in kept["rows"]]
    rows.append(["central ε of one shuffle, δ 10⁻⁶", f"{kept['clients']:,}", "", *shuffled])
    steps = [f"{_steps(row['epsilon'], kept['clients']):.1f}" for row in kept["rows"]]
    rows.append(["steps of the walk, 10 classes", f"{kept['clients']:,}", "", *steps])
    return _table(head, rows)


def extras() -> str:
    """Return packages and megabytes of each extra in an empty environment, as last measured."""
    kept = json.loads((RECORDS / "extras.json").read_text(encoding="utf-8"))
    lines = [
        f"| {kept['system']}, Python {kept['python']} | Packages | MB | Largest, in MB |",
        "| --- | ---: | ---: | --- |",
    ]
    for name, figures in kept["extras"].items():
        largest = ", ".join(f"{library} {size}" for library, size in figures["largest"])
        title = f"`bitldp[{name}]`" if name else "`bitldp`"
        lines.append(f"| {title} | {figures['packages']} | {figures['megabytes']} | {largest} |")
    return "\n".join(lines)


def release() -> str:
    """Return what was built, checked and run of each distribution, and the reason where it was not."""
    kept = json.loads((RECORDS / "release.json").read_text(encoding="utf-8"))
    lines = [f"| On {kept['system']} | Built | Checked | Run | Day |", "| --- | --- | --- | --- | --- |"]
    for name, row in kept["rows"].items():
        day = row.get("date", "not tried yet")
        day += "" if row.get("profile", "release") == "release" else f", profile {row['profile']}"
        cells = [row.get(column, ("", "")) for column in ("built", "checked", "run")]
        said = (text if word == "yes" else f"{word}: {text}" if word else "" for word, text in cells)
        lines.append(f"| {' | '.join([name, *said, day])} |")
    return "\n".join(lines)


def by_sums() -> str:
    """Return what one secure sum teaches of MNIST: the last record of each setting."""
    lines = (RECORDS / "sum_learning.jsonl").read_text(encoding="utf-8").splitlines()
    kept: dict[tuple[int, str], dict[float, str]] = {}
    for line in lines:
        record = json.loads(line)
        for clients, epsilon, mean, spread, seeds, _ in record["rows"]:
            cell = f"{mean:.3f} ± {spread:.3f} ({seeds})"
            kept.setdefault((clients, record.get("mechanism", "")), {})[epsilon] = cell
    epsilons = (0.5, 1.0, 2.0)
    rows = [
        [f"{clients:,}, {f'`--mechanism {mechanism}`' if mechanism else 'the default'}"]
        + [cells[epsilon] for epsilon in epsilons]
        for (clients, mechanism), cells in sorted(kept.items())
    ]
    return _table(["Clients, central ε", *(f"{each:g}" for each in epsilons)], rows)


HELD_BACK = {"letters.csv": "Letters (held back)"}
IMAGES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST"}
LIARS_AT = (0.5, 1.0, 4.0)
OF_NUMBERS = ("Duchi", "Piecewise", "PiecewiseSub", "Hybrid", "ThreeOutputs", "MinimaxVariance", "Laplace")

#: What stands between which marks of which document.
FILLED: dict[str, dict[str, Callable[[], str]]] = {
    "docs/guides/install.md": {"extras": extras},
    "docs/guides/speed.md": {"arm": arm},
    "docs/guides/liars.md": {"shares": shares_of_liars, "means": means_of_liars},
    "docs/federated.md": {"rounds": by_rounds, "pool": by_pool, "sums": by_sums},
    "docs/internals/release.md": {"release": release},
    "docs/numeric.md": {"errors": errors_of_numbers},
    "docs/papers.md": {
        "headlines": headlines,
        "numbers": numbers,
        "features": features_of_bitrand,
        "verdicts": report.verdicts_markdown,
    },
}


def filled(text: str, name: str, inside: str) -> str:
    """Return a document with what stands between the marks of `name` replaced.

    Raises
    ------
    ValueError
        If the document has not one such place.
    """
    marks = rf"(<!-- {name}:begin -->\n).*?(<!-- {name}:end -->)"
    result, times = re.subn(marks, lambda match: f"{match[1]}{inside}\n{match[2]}", text, flags=re.DOTALL)
    if times != 1:
        raise ValueError(f"{name}: the document has {times} places for it, not one")
    return result


def main(arguments: Sequence[str]) -> int:
    """Fill or check every document; return 1 if one differs from what was measured."""
    differs = 0
    for document, parts in FILLED.items():
        path = ROOT / document
        text = wanted = path.read_text(encoding="utf-8")
        for name, inside in parts.items():
            wanted = filled(wanted, name, inside())
        if "--check" not in arguments:
            path.write_text(wanted, encoding="utf-8")
        elif wanted != text:
            differs = 1
            print(f"{document}: is not what was measured; python docs/fill.py", file=sys.stderr)
    return differs


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
