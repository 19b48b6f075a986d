"""``bitldp explain --all``: every mechanism at one budget, side by side."""

from __future__ import annotations

import warnings
from dataclasses import asdict, replace
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import bitldp
from bitldp.base.extras import MissingExtraError
from bitldp.cli.catalogue.entries import ENTRIES
from bitldp.cli.catalogue.entry import FAMILIES, SIZE_OPTIONS, Entry, Settings
from bitldp.cli.explain.facts import jsonable
from bitldp.cli.options import bounded
from bitldp.cli.perturb.files import UsageError
from bitldp.report.totals import number

__all__ = ["overview", "print_overview"]

#: What an example has where the user says nothing: 8 bits on [-1, 1], so that numbers compare.
_USUAL: dict[str, Any] = {"bits": 8, "integer_bits": 0, "k": 10, "delta": 1e-6}
_SIZES = {"--features": 1, "--classes": 10, "--points": 16}
_DIMENSIONS = 100  # of a vector that one is selected of, and of a whole record


def overview(
    epsilon: float, *, features: int | None, classes: int | None, points: int | None
) -> list[dict[str, Any]]:
    """Compute one row a mechanism.

    Parameters
    ----------
    epsilon : float
        Budget of a record, for all of them.
    features, classes, points : int or None
        Sizes; None stands for 1 number a record (100 for whole records and for selection), 10 categories and
        16 points.

    Returns
    -------
    list of dict
        JSON values: name, family, parameters, exact epsilon by bit, feature and record, delta, bits on the
        wire, worst and mean variance, or the reason why there are none.
    """
    given = {"--features": features, "--classes": classes, "--points": points}
    for option, most in SIZE_OPTIONS.values():
        bounded(option, given[option], most)
        if given[option] is not None and given[option] < 1:  # type: ignore[operator]
            raise UsageError(f"{option}: must be at least 1, got {given[option]}")
    return [_row(entry, epsilon, given) for family in FAMILIES for entry in _members(family)]


def _members(family: str) -> list[Entry]:
    return [entry for entry in ENTRIES.values() if entry.family == family]


def _size(entry: Entry, given: dict[str, int | None]) -> int:
    if entry.name == "warner-rr":
        return 2
    option, _ = SIZE_OPTIONS[entry.inputs[0]]
    size = given[option]
    if size is not None:
        return size
    vectors = entry.family == "record" or entry.inputs[0] in ("ball", "scores")
    return _DIMENSIONS if vectors else _SIZES[option]


def _row(entry: Entry, epsilon: float, given: dict[str, int | None]) -> dict[str, Any]:
    usual = {name: value for name, value in _USUAL.items() if name in entry.options} | dict(entry.usual)
    if "spend" in entry.options:
        usual.pop("k", None)  # how many are sampled; all are released here
    size = _size(entry, given)
    if usual.get("k") is not None:
        below = size - 1 if "scores" in entry.inputs else size  # who selects leaves something out
        usual["k"] = max(1, min(int(usual["k"]), below))
    settings = replace(Settings(epsilon=epsilon), **usual)
    row: dict[str, Any] = {"name": entry.name, "family": entry.family}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bitldp.PrivacyClaimWarning)
            mechanism = _built(entry, settings, size, given["--classes"] or _SIZES["--classes"])
    except (ValueError, UsageError, MissingExtraError) as error:
        return row | {"refused": str(error)}
    described = mechanism.fingerprint()
    row |= {
        "mechanism": described["name"],
        "parameters": described["parameters"],
        "guarantee": asdict(mechanism.guarantee),
        "bits_on_the_wire": mechanism.report_bits,
    }
    try:
        row |= {"worst_variance": mechanism.worst_variance(), "mean_variance": mechanism.mean_variance()}
    except ValueError as error:
        row["no_variance"] = str(error)
    plain: dict[str, Any] = jsonable(row)
    return plain


def _built(entry: Entry, settings: Settings, size: int, classes: int) -> Any:
    if entry.name == "bitrand":
        half = settings.epsilon / 2.0  # for the features, and as much for the label
        return bitldp.BitRand(
            size,
            classes=classes,
            epsilon_x=half,
            epsilon_y=half,
            **settings.given("bits", "integer_bits"),
        )
    return entry.construct(settings, size)


#: Parameters that say nothing new in a table of all mechanisms.
_HIDDEN = {"epsilon", "clip", "unit", "rounding", "infinities", "sign", "spend", "calibration"}


def _short(row: dict[str, Any]) -> str:
    """Return the parameters that tell mechanisms apart, as one line."""
    shown = []
    for name, value in row["parameters"].items():
        if name in _HIDDEN and (name, value) != ("calibration", "paper"):
            continue
        if value is None or isinstance(value, dict) or (name == "features" and value == 1):
            continue
        text = (
            number(value) if isinstance(value, float) else str(value).replace("1.0", "1").replace("0.0", "0")
        )
        shown.append(f"{name} {text}")
    return ", ".join(shown)


def _figure(value: Any) -> str:
    return value if isinstance(value, str) else number(float(value), 4)


_HEADINGS = (
    "exact ε,\nbit",
    "exact ε,\nfeature",
    "exact ε,\nrecord",
    "δ",
    "bits on\nthe wire",
    "worst\nvariance",
    "mean\nvariance",
)


def print_overview(rows: list[dict[str, Any]], console: Console, *, as_json: bool = False) -> None:
    """Print what `overview` returned as one table, or as JSON."""
    if as_json:
        console.print_json(data=rows)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title="Every mechanism at one budget")
    table.add_column("mechanism", no_wrap=True)
    table.add_column("parameters")
    for name in _HEADINGS:
        table.add_column(name, justify="right", no_wrap=True)
    family = None
    notes: list[str] = []
    for row in rows:
        if row["family"] != family:
            if family is not None:
                table.add_section()
            family = row["family"]
        if "refused" in row:
            table.add_row(row["name"], row["refused"])
            continue
        guarantee = row["guarantee"]
        variances = [_figure(row[name]) for name in ("worst_variance", "mean_variance") if name in row]
        if not variances:
            reason = row["no_variance"]
            if reason not in notes:
                notes.append(reason)
            variances = [f"none [{notes.index(reason) + 1}]", ""]
        mark = "" if guarantee["holds"] else " !"
        delta = guarantee["delta"]
        table.add_row(
            row["name"],
            _short(row),
            _figure(guarantee["bit"]),
            _figure(guarantee["feature"]),
            _figure(guarantee["record"]) + mark,
            _figure(delta) if delta else "",
            f"{row['bits_on_the_wire']:,}",
            *variances,
        )
    console.print(table)
    console.print(
        "Variance of one report's unbiased letter: of a number of [-1, 1] (numbers), or of a category's "
        "indicator (categories). ! the claimed ε does not hold."
    )
    for place, reason in enumerate(notes, 1):
        console.print(f"[{place}] {reason}", markup=False)
