"""The plan of a run by options (``--mechanism``), decided and checked before any record is read."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import bitldp
from bitldp.base.errors import PlanError
from bitldp.cli.catalogue import MOST_CATEGORIES, CatalogueEntry, bounded, entries, entry
from bitldp.cli.commands import delimiter_hint
from bitldp.cli.errors import UsageError
from bitldp.cli.perturb.request import Request
from bitldp.mechanism.base import Mechanism
from bitldp.tables.codec import ColumnSettings
from bitldp.tables.column import Column
from bitldp.tables.plan import TablePlan

__all__ = ["plan_of_options"]

_VECTORS = {
    "ball": "vectors of a ball",
    "scores": "vectors of which a dimension is chosen",
    "ordered": "ordered values",
    "words": "words",
    "record": "records of several attributes",
}
_POINTS = ("low", "high", "points")


@dataclass(frozen=True, repr=False)
class OptionColumn(Column):
    """A column that options describe: errors name the options, and the mechanism as it was asked for."""

    command: str = field(default="", kw_only=True)

    def settings(self, mechanism: Mechanism) -> ColumnSettings:
        """Return the settings of the mechanism of the column."""
        return replace(super().settings(mechanism), mechanism=self.command, spelled=_option)


def plan_of_options(
    request: Request, names: Sequence[str], *, array: bool = False, listed: bool = True
) -> tuple[TablePlan, tuple[str, ...]]:
    """Return the plan that options describe, and warnings of its mechanisms.

    Parameters
    ----------
    request : Request
    names : sequence of str
        The columns of the file.
    array : bool
        Whether no columns means all: those of an array have no names.
    listed : bool
        Whether an error may list the columns of the file: the first line of a text without a header is
        somebody's record.

    Raises
    ------
    UsageError
        For columns that do not exist or are named twice, options that do not fit the mechanism, and
        parameters that its constructor refuses.
    """
    chosen = entry(request.mechanism)
    if not chosen.perturbs:
        raise UsageError(f"{chosen.name} takes no columns of a file, but {_VECTORS[chosen.takes[0]]}")
    columns = request.columns or (tuple(names) if array else ())
    if not columns:
        raise UsageError(
            "--columns: name the columns to perturb; all others are dropped unless --keep names them"
        )
    request = _resolved(replace(request, columns=columns), names)
    columns = request.columns
    label = () if request.label is None else (request.label,)
    _check_columns(names, columns, label, request.keep, listed=listed)
    labelled = "label_epsilon" in chosen.options
    if labelled and request.label is None:
        raise UsageError(f"{chosen.name} perturbs a label too: name its column with --label")
    if (request.label is None) != (request.label_epsilon is None):
        raise UsageError("--label and --label-epsilon need each other: the label has its own budget")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", bitldp.PrivacyClaimWarning)
        made = _mechanisms(request, chosen)
        if request.label is not None and not labelled:
            listed_labels = _dictionary(request, request.label)
            label_rr = _label_rr(len(listed_labels), request.label_epsilon or 0.0)
            made.append((label_rr, label, listed_labels, None))

    dictionaries = {names[0] for _, names, categories, _ in made if categories is not None}
    for name in request.categories:
        if (name is None and not dictionaries) or (name is not None and name not in dictionaries):
            raise UsageError(
                f"--categories: {chosen.name} takes numbers{'' if name is None else f' in {name!r}'}"
            )
    described = []
    for mechanism, those, categories, interval in made:
        of_label = those == label
        column = OptionColumn(
            mechanism,
            those,
            categories=categories,
            interval=interval,
            output=None if of_label and request.output == "bits" else request.output,  # type: ignore[arg-type]
            decode=None if of_label else request.decode,  # type: ignore[arg-type]
            command=chosen.name,
        )
        described.append(column.explicit())
    try:
        plan = TablePlan(described, request.keep)
    except PlanError:
        raise UsageError("--output bits: a column made for a bit has the name of another column") from None
    return plan, tuple(dict.fromkeys(str(warning.message) for warning in caught))


def _option(setting: str, value: str = "") -> str:
    """Return a setting of a column as it is typed."""
    return f"--{setting} {value}".rstrip()


def _label_rr(classes: int, epsilon: float) -> Any:
    try:
        return bitldp.LabelRR(classes, epsilon=epsilon)
    except ValueError as error:
        raise UsageError(f"--label-epsilon: {error}") from None


#: A mechanism, its columns, their public list, and their interval where the mechanism has none.
_Described = tuple[Any, tuple[str, ...], tuple[str, ...] | None, tuple[float, float] | None]


def _mechanisms(request: Request, chosen: CatalogueEntry) -> list[_Described]:
    """Return the mechanisms of the columns, and how these become what they take."""
    columns, options = request.columns, dict(request.options)
    gridded = any(name in options for name in _POINTS)
    on_points = chosen.kind._takes == "points" or (chosen.kind._on_points and gridded)
    ends = {name: options.pop(name) for name in _POINTS if name in options} if chosen.kind._on_points else {}
    chosen.check(options, entries())
    options |= ends
    if chosen.kind._takes == "numbers":
        if "label_epsilon" not in chosen.options:
            return [(chosen.construct(request.epsilon, len(columns), options), columns, None, None)]
        categories = _dictionary(request, request.label or "")
        options |= {"categories": len(categories), "label_epsilon": request.label_epsilon}
        features, label = chosen.construct(request.epsilon, len(columns), options)._members
        return [(features, columns, None, None), (label, (request.label or "",), categories, None)]
    if chosen.kind._takes == "reals":
        _range(chosen, options, "--low and --high")
        return [(chosen.construct(request.epsilon, len(columns), options), columns, None, None)]
    share = request.epsilon if options.get("unit") == "feature" else _share(request.epsilon, len(columns))
    if not on_points:
        lists = [_dictionary(request, name) for name in columns]
        made = [chosen.construct(share, len(each), options) for each in lists]
        return [
            (mechanism, (name,), each, None)
            for mechanism, name, each in zip(made, columns, lists, strict=True)
        ]
    interval = _range(chosen, options, "--low, --high and --points")
    points = options.pop("points", None)
    if points is None:
        raise UsageError(f"{chosen.name} on numbers needs the public range: --low, --high and --points")
    if points < 2:
        raise UsageError(f"--points: must be at least 2, got {points}")
    bounded("--points", points, MOST_CATEGORIES)
    # A mechanism of points takes real numbers and puts them on its points itself.
    indexed = chosen.kind._on_points
    if indexed:
        options = {name: value for name, value in options.items() if name not in _POINTS}
    return [
        (chosen.construct(share, points, options), (name,), None, interval if indexed else None)
        for name in columns
    ]


def _range(chosen: CatalogueEntry, options: Mapping[str, Any], asked: str) -> tuple[float, float]:
    """Return the public range of numbers; refuse one that is not given, or is none."""
    low, high = options.get("low"), options.get("high")
    if low is None or high is None:
        raise UsageError(f"{chosen.name} on numbers needs the public range: {asked}")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError("--low must be below --high, both finite")
    return low, high


def _share(epsilon: float, columns: int) -> float:
    """Split the budget of a record over columns perturbed one by one; the parts never add up to more."""
    share = epsilon / columns
    while share > 0 and math.fsum([share] * columns) > epsilon:
        share = math.nextafter(share, 0.0)
    return share


def _dictionary(request: Request, column: str) -> tuple[str, ...]:
    """Return the public categories of a column."""
    categories = request.categories.get(column, request.categories.get(None))
    if categories is None:
        raise UsageError(
            f"column {column!r} needs its public list of categories, --categories A,B,C or --categories-file "
            "FILE; a list taken from the data would reveal which values occur"
        )
    return categories


def _resolved(request: Request, names: Sequence[str]) -> Request:
    """Return the request with the file's own spelling of its columns, which may have spaces at the ends."""
    there = set(names)
    alike: dict[str, list[str]] = {}
    for other in names:
        alike.setdefault(other.strip(), []).append(other)

    def own(name: str) -> str:
        those = alike.get(name.strip(), [])
        return those[0] if name not in there and len(those) == 1 else name

    return replace(
        request,
        columns=tuple(map(own, request.columns)),
        keep=tuple(map(own, request.keep)),
        label=None if request.label is None else own(request.label),
        categories={
            None if name is None else own(name): listed for name, listed in request.categories.items()
        },
    )


def _check_columns(
    names: Sequence[str], columns: Sequence[str], label: Sequence[str], keep: Sequence[str], *, listed: bool
) -> None:
    """Refuse columns that the file does not have once; say what it has only where names are `listed`."""
    times = Counter(names)
    shown = f"; the file has {', '.join(names[:20])}{' ...' if len(names) > 20 else ''}"
    seen: set[str] = set()
    for option, group in (("--columns", columns), ("--label", label), ("--keep", keep)):
        for name in group:
            if times[name] != 1:
                if times[name]:
                    problem = "the file has several columns of that name"
                elif listed:
                    problem = "no such column"
                else:
                    found = f"among the {len(names)} in the first line; is there a header?"
                    problem = f"no such column {found}{delimiter_hint(names)}"
                raise UsageError(f"{option} {name}: {problem}{shown if listed else ''}")
            if name in seen:
                raise UsageError(f"{option} {name}: named twice among --columns, --label and --keep")
            seen.add(name)
