"""What one run of ``bitldp perturb`` does to which columns, decided and checked before any record is read."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import bitldp
from bitldp import _core
from bitldp.base.errors import PlanError
from bitldp.cli.catalogue.entries import entries, entry
from bitldp.cli.catalogue.entry import Entry
from bitldp.cli.options import MOST_CATEGORIES, bounded
from bitldp.cli.perturb.files import UsageError
from bitldp.cli.perturb.request import Request
from bitldp.tables.cells import Codec, Labels, Numbers, Points, Reals
from bitldp.tables.column import Column
from bitldp.tables.part import Part, form
from bitldp.tables.plan import TablePlan
from bitldp.tables.planned import Planned
from bitldp.tables.release import TableRelease
from bitldp.tables.worth import worth

__all__ = ["Part", "Plan", "batch_rows", "build_plan"]

#: Bytes of input and output that one batch should hold.
BATCH_BYTES = 1 << 25
_MOST_ROWS = 1 << 16
_VECTORS = {
    "ball": "vectors of a ball",
    "scores": "vectors of which a dimension is chosen",
    "words": "words",
    "record": "records of several attributes",
}
_POINTS = ("low", "high", "points")


@dataclass(frozen=True)
class Plan:
    """Every part of a run, the columns kept, and the rows of a batch."""

    parts: tuple[Part, ...]
    keep: tuple[str, ...]
    rows: int
    warnings: tuple[str, ...]
    release: TableRelease | None = None  # of a plan's file
    array: bool = False  # whether the columns are those of an array, without names

    @property
    def table_plan(self) -> Planned:
        """The same as a plan of tables, which a report holds and estimates are made by."""
        if self.release is not None:
            return self.release.plan
        return TablePlan([Column.of(part) for part in self.parts], self.keep)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read."""
        if self.release is not None:
            return self.release.reads
        return (*(name for part in self.parts for name in part.codec.columns), *self.keep)


def build_plan(
    request: Request, names: Sequence[str], width: int | None = None, *, listed: bool = True
) -> Plan:
    """Choose the mechanisms of a run.

    Parameters
    ----------
    request : Request
    names : sequence of str
        The columns of the file.
    width : int, optional
        Number of columns of an array, whose columns are "0", "1" and so on; then no columns means all.
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
    columns = request.columns or (tuple(names) if width is not None else ())
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
        raise UsageError("--label and --label-epsilon go together: the label has a budget of its own")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", bitldp.PrivacyClaimWarning)
        made = _mechanisms(request, chosen)
        if request.label is not None and not labelled:
            labels = Labels(label, _dictionary(request, request.label))
            made.append((_label_rr(len(labels.categories), request.label_epsilon or 0.0), labels))

    dictionaries = {name for _, codec in made if isinstance(codec, Labels) for name in codec.columns}
    for name in request.categories:
        if (name is None and not dictionaries) or (name is not None and name not in dictionaries):
            raise UsageError(
                f"--categories: {chosen.name} takes numbers{'' if name is None else f' in {name!r}'}"
            )

    seeds: Sequence[np.random.SeedSequence | None] = [None] * len(made)
    if request.seed is not None:
        seeds = np.random.SeedSequence(request.seed).spawn(len(made))
    parts = []
    for (mechanism, codec), seed in zip(made, seeds, strict=True):
        bits_of_label = codec.columns == label and request.output == "bits"
        output = _form(chosen.name, mechanism, None if bits_of_label else request.output)
        decode = request.decode if codec.columns != label else None
        value = worth(chosen.name, mechanism, codec, output, decode, _option)
        parts.append(Part(mechanism, codec, output, value, seed, request.threads))
    texts = tuple(dict.fromkeys(str(warning.message) for warning in caught))
    rows = batch_rows(parts, request.seed is not None)
    return Plan(tuple(parts), request.keep, rows, texts, array=width is not None)


def _option(setting: str, value: str = "") -> str:
    """Return a setting of a column as it is typed."""
    return f"--{setting} {value}".rstrip()


def _label_rr(classes: int, epsilon: float) -> Any:
    try:
        return bitldp.LabelRR(classes, epsilon=epsilon)
    except ValueError as error:
        raise UsageError(f"--label-epsilon: {error}") from None


def _mechanisms(request: Request, chosen: Entry) -> list[tuple[Any, Codec]]:
    """Return the mechanisms of the columns, and how these become what they take."""
    columns, options = request.columns, dict(request.options)
    gridded = any(name in options for name in _POINTS)
    on_points = chosen.kind.takes == "points" or (chosen.kind.on_points and gridded)
    ends = {name: options.pop(name) for name in _POINTS if name in options} if chosen.kind.on_points else {}
    chosen.check(options, entries())
    options |= ends
    codec: Codec
    if chosen.kind.takes == "numbers":
        codec = Numbers(columns)
        if "label_epsilon" not in chosen.options:
            return [(chosen.construct(request.epsilon, len(columns), options), codec)]
        labels = Labels((request.label or "",), _dictionary(request, request.label or ""))
        options |= {"classes": len(labels.categories), "label_epsilon": request.label_epsilon}
        both = chosen.construct(request.epsilon, len(columns), options)
        return list(zip(both.parts, (codec, labels), strict=True))
    if chosen.kind.takes == "reals":
        low, high = _range(chosen, options, "--low and --high")
        mechanism = chosen.construct(request.epsilon, len(columns), options)
        return [(mechanism, Reals(columns, low, high, mechanism.k or len(columns), mechanism.clip))]
    share = request.epsilon if options.get("unit") == "feature" else _share(request.epsilon, len(columns))
    if not on_points:
        dictionaries = [Labels((name,), _dictionary(request, name)) for name in columns]
        made = [chosen.construct(share, len(each.categories), options) for each in dictionaries]
        return [
            (mechanism, replace(codec, parts=mechanism.report_names))
            for mechanism, codec in zip(made, dictionaries, strict=True)
        ]
    low, high = _range(chosen, options, "--low, --high and --points")
    points = options.pop("points", None)
    if points is None:
        raise UsageError(f"{chosen.name} on numbers needs the public range: --low, --high and --points")
    if points < 2:
        raise UsageError(f"--points: must be at least 2, got {points}")
    bounded("--points", points, MOST_CATEGORIES)
    # A mechanism of points takes real numbers and puts them on its points itself.
    indices = chosen.kind.on_points
    if indices:
        options = {name: value for name, value in options.items() if name not in _POINTS}
    mechanisms = [chosen.construct(share, points, options) for _ in columns]
    codecs = [Points((name,), low, high, points, indices) for name in columns]
    return list(zip(mechanisms, codecs, strict=True))


def _range(chosen: Entry, options: Mapping[str, Any], asked: str) -> tuple[float, float]:
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
            "FILE; a list learned from private data would reveal which values occur in it"
        )
    return categories


def _form(name: str, mechanism: Any, output: str | None) -> str:
    """Return the form of a part's columns, or refuse one that it does not have."""
    try:
        return form(name, mechanism, output)
    except PlanError as error:
        raise UsageError(f"--{error}".replace("spend sample", "--spend sample")) from None


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
        categories={None if name is None else own(name): found for name, found in request.categories.items()},
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
                    problem = f"no such column among the {len(names)} in the first line; is there a header?"
                raise UsageError(f"{option} {name}: {problem}{shown if listed else ''}")
            if name in seen:
                raise UsageError(f"{option} {name}: named twice among --columns, --label and --keep")
            seen.add(name)


def batch_rows(parts: Sequence[Part], seeded: bool) -> int:
    """Return the rows of a batch: constant for a run, so that memory does not grow with the file.

    A seeded run takes whole chunks of the keystream for every part, so that its output does not depend on the
    size of the batches.
    """
    rows = min(_MOST_ROWS, max(1, BATCH_BYTES // sum(part.width for part in parts)))
    if not seeded:
        return rows
    unit = max(_core.CHUNK // math.gcd(_core.CHUNK, part.per_row) for part in parts)
    return max(unit, rows // unit * unit)
