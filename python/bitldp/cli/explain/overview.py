"""``bitldp explain --all``: every mechanism at one budget, side by side."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bitldp.base.documents import jsonable
from bitldp.base.errors import MissingExtraError
from bitldp.cli.catalogue.entries import entries
from bitldp.cli.catalogue.entry import MOST, Entry
from bitldp.cli.catalogue.fields import shown
from bitldp.cli.options import bounded
from bitldp.cli.perturb.files import UsageError
from bitldp.cli.screen import print_whole
from bitldp.privacy import PrivacyClaimWarning
from bitldp.report.totals import number

__all__ = ["overview", "print_overview"]


def overview(epsilon: float, sizes: Mapping[str, int]) -> list[dict[str, Any]]:
    """Compute one row a mechanism.

    Parameters
    ----------
    epsilon : float
        Budget of a record, for all of them.
    sizes : mapping of str to int
        Of "features", "classes" and "points", those that are given; else the usual ones of each mechanism.

    Returns
    -------
    list of dict
        JSON values: name, family, parameters, exact epsilon by bit, feature and record, delta, bits on the
        wire, worst and mean variance, or the reason why there are none.
    """
    for name, size in sizes.items():
        bounded(shown(name), size, MOST[name])
        if size < 1:
            raise UsageError(f"{shown(name)}: must be at least 1, got {size}")
    return [_row(entry, epsilon, sizes) for entry in entries().values()]


def _row(entry: Entry, epsilon: float, sizes: Mapping[str, int]) -> dict[str, Any]:
    row: dict[str, Any] = {"name": entry.name, "family": entry.family}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyClaimWarning)
            mechanism = entry.example(epsilon, sizes)
    except (UsageError, MissingExtraError) as error:
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
    print_whole(console, table)
    console.print(
        "Variance of one report's unbiased letter: of a number of [-1, 1] (numbers), or of a category's "
        "indicator (categories). ! the claimed ε does not hold."
    )
    for place, reason in enumerate(notes, 1):
        console.print(f"[{place}] {reason}", markup=False)
