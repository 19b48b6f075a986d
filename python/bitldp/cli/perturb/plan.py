"""What one run of ``bitldp perturb`` does to which columns, decided and checked before any record is read."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bitldp
from bitldp import _core
from bitldp.cli.catalogue.entries import check, entry
from bitldp.cli.catalogue.entry import Entry, Settings
from bitldp.cli.options import MOST_CATEGORIES, bounded
from bitldp.cli.perturb.columns import Codec, Labels, Numbers, Points, Reals
from bitldp.cli.perturb.files import UsageError

__all__ = ["OUTPUTS", "Part", "Plan", "Request", "build_plan"]

#: Forms of the output.
OUTPUTS = ("values", "codes", "bits")
#: Bytes of input and output that one batch should hold.
BATCH_BYTES = 1 << 22
_MOST_ROWS = 1 << 18


@dataclass(frozen=True, kw_only=True)
class Request:
    """The command line of one run.

    Attributes
    ----------
    source, target : pathlib.Path
    mechanism : str
        A name of the catalogue.
    settings : Settings
    columns, keep : tuple of str
        Columns to perturb (empty: all, for an array) and to pass through unperturbed.
    label : str or None
        Column perturbed by label-RR with ``settings.label_epsilon``.
    categories : mapping of str or None to tuple of str
        Public dictionary by column; that of None serves every column without one of its own.
    points : int or None
        Number of points of the public interval ``settings.low`` to ``settings.high``.
    output : str or None
        One of `OUTPUTS`; None is the mechanism's own form.
    """

    source: Path
    target: Path
    mechanism: str
    settings: Settings
    columns: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    label: str | None = None
    categories: Mapping[str | None, tuple[str, ...]] = field(default_factory=dict)
    points: int | None = None
    output: str | None = None
    delimiter: str = ","
    threads: int | None = None
    seed: int | None = None
    force: bool = False


@dataclass(frozen=True)
class Part:
    """One mechanism on the columns that it perturbs together.

    Attributes
    ----------
    mechanism : Mechanism
    codec : Codec
    output : str
        Form of its columns in the file.
    rng : numpy.random.SeedSequence or None
        None: fresh keys of the operating system for every batch.
    """

    mechanism: Any
    codec: Codec
    output: str
    rng: np.random.SeedSequence | None
    threads: int | None

    @property
    def per_row(self) -> int:
        """Values of a chunk of the keystream that one row takes."""
        return self.codec.released if isinstance(self.codec, Reals) else len(self.codec.columns)

    @property
    def width(self) -> int:
        """Bytes of a row's input and output, about."""
        columns = len(self.codec.columns)
        if self.output != "bits":
            return 16 * columns
        bits = self.mechanism.bits if isinstance(self.codec, Numbers) else self.mechanism.categories
        return (16 + int(bits)) * columns

    def randomize(self, x: NDArray[Any], first: int) -> NDArray[Any]:
        """Randomize the rows from number `first` (counted from 0) on."""
        options: dict[str, Any] = {"threads": self.threads}
        if self.rng is not None:
            # A seed makes one stream for the whole file: a batch takes the chunks after those of the rows
            # before it.
            options |= {"rng": self.rng, "first_chunk": first * self.per_row // _core.CHUNK}
        if isinstance(self.codec, Numbers):
            options["output"] = self.output
        elif self.output == "bits":
            options["output"] = "bits"
        reports: NDArray[Any] = self.mechanism.randomize(x, **options)
        return reports


@dataclass(frozen=True)
class Plan:
    """Every part of a run, the columns kept, and the rows of a batch."""

    parts: tuple[Part, ...]
    keep: tuple[str, ...]
    rows: int
    warnings: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns to read."""
        return (*(name for part in self.parts for name in part.codec.columns), *self.keep)


def build_plan(request: Request, names: Sequence[str], width: int | None = None) -> Plan:
    """Choose the mechanisms of a run.

    Parameters
    ----------
    request : Request
    names : sequence of str
        The columns of the file.
    width : int, optional
        Number of columns of an array, whose columns are "0", "1" and so on; then no columns means all.

    Raises
    ------
    UsageError
        For columns that do not exist or are named twice, options that do not fit the mechanism, and
        parameters that its constructor refuses.
    """
    chosen = entry(request.mechanism)
    check(chosen, request.settings)
    columns = request.columns or (tuple(names) if width is not None else ())
    if not columns:
        raise UsageError(
            "--columns: name the columns to perturb; all others are dropped unless --keep names them"
        )
    request = _resolved(replace(request, columns=columns), names)
    columns = request.columns
    label = () if request.label is None else (request.label,)
    # The first line of a CSV file without a header is somebody's record.
    _check_columns(names, columns, label, request.keep, listed=request.source.suffix.lower() != ".csv")
    if "label_epsilon" in chosen.options and request.label is None:
        raise UsageError(f"{chosen.name} perturbs a label too: name its column with --label")
    if (request.label is None) != (request.settings.label_epsilon is None):
        raise UsageError("--label and --label-epsilon go together: the label has a budget of its own")

    specs = _specs(request, chosen, columns)
    if request.label is not None:
        label_settings = Settings(epsilon=request.settings.label_epsilon or 0.0)
        labels = Labels(label, _dictionary(request, request.label))
        specs.append((entry("label-rr"), label_settings, labels, len(labels.categories)))

    dictionaries = {name for _, _, codec, _ in specs if isinstance(codec, Labels) for name in codec.columns}
    for name in request.categories:
        if (name is None and not dictionaries) or (name is not None and name not in dictionaries):
            raise UsageError(
                f"--categories: {chosen.name} takes numbers{'' if name is None else f' in {name!r}'}"
            )

    seeds: Sequence[np.random.SeedSequence | None] = [None] * len(specs)
    if request.seed is not None:
        seeds = np.random.SeedSequence(request.seed).spawn(len(specs))
    parts = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", bitldp.PrivacyClaimWarning)
        for (of, settings, codec, size), seed in zip(specs, seeds, strict=True):
            is_label = codec.columns == label
            output = _form(of, codec, None if is_label and request.output == "bits" else request.output)
            mechanism = of.construct(settings, size)
            parts.append(Part(mechanism, codec, output, seed, request.threads))
    texts = tuple(dict.fromkeys(str(warning.message) for warning in caught))
    return Plan(tuple(parts), request.keep, _batch_rows(parts, request.seed is not None), texts)


_Spec = tuple[Entry, Settings, Codec, int]


def _specs(request: Request, chosen: Entry, columns: tuple[str, ...]) -> list[_Spec]:
    """Return the mechanism, its settings, codec and size for the columns other than the label."""
    settings = request.settings
    low, high, points = settings.low, settings.high, request.points
    gridded = (low, high, points) != (None, None, None)
    if "numbers" in chosen.inputs:
        if gridded:
            raise UsageError(f"--low, --high and --points do not apply to {chosen.name}; see --integer-bits")
        return [(chosen, settings, Numbers(columns), len(columns))]
    if "reals" in chosen.inputs:
        if points is not None:
            raise UsageError(f"--points does not apply to {chosen.name}")
        ends = _range(chosen, settings, "--low and --high")
        mechanism = chosen.construct(settings, len(columns))
        return [(chosen, settings, Reals(columns, *ends, mechanism.k or len(columns)), len(columns))]
    share = _share(settings, len(columns))
    if "points" in chosen.inputs and (gridded or "categories" not in chosen.inputs):
        options = "--low, --high and --points"
        ends = _range(chosen, settings, options)
        if points is None:
            raise UsageError(f"{chosen.name} on numbers needs the public range: {options}")
        if points < 2:
            raise UsageError(f"--points: must be at least 2, got {points}")
        bounded("--points", points, MOST_CATEGORIES)
        # BRR takes real numbers and puts them on its points itself.
        indices = "categories" in chosen.inputs
        return [(chosen, share, Points((name,), *ends, points, indices), points) for name in columns]
    if gridded:
        raise UsageError(f"--low, --high and --points do not apply to {chosen.name}")
    dictionaries = [Labels((name,), _dictionary(request, name)) for name in columns]
    return [(chosen, share, labels, len(labels.categories)) for labels in dictionaries]


def _range(chosen: Entry, settings: Settings, options: str) -> tuple[float, float]:
    """Return the public range of numbers; refuse one that is not given, or is none."""
    low, high = settings.low, settings.high
    if low is None or high is None:
        raise UsageError(f"{chosen.name} on numbers needs the public range: {options}")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError("--low must be below --high, both finite")
    return low, high


def _share(settings: Settings, columns: int) -> Settings:
    """Split the budget of a record over columns perturbed one by one; the parts never add up to more."""
    if settings.unit == "feature" or columns == 1:
        return settings
    share = settings.epsilon / columns
    while share > 0 and math.fsum([share] * columns) > settings.epsilon:
        share = math.nextafter(share, 0.0)
    return replace(settings, epsilon=share)


def _dictionary(request: Request, column: str) -> tuple[str, ...]:
    """Return the public categories of a column."""
    categories = request.categories.get(column, request.categories.get(None))
    if categories is None:
        raise UsageError(
            f"column {column!r} needs its public list of categories, --categories A,B,C or --categories-file "
            "FILE; a list learned from private data would reveal which values occur in it"
        )
    return categories


def _form(of: Entry, codec: Codec, output: str | None) -> str:
    """Return the form of a part's columns, or refuse one that it does not have."""
    if of.unary:
        if output not in (None, "bits"):
            raise UsageError(
                f"--output {output}: a report of {of.name} is one bit for each category; use bits"
            )
        return "bits"
    if output == "codes" and isinstance(codec, Reals) and codec.released < len(codec.columns):
        raise UsageError("--output codes: with --spend sample a report is indices and codes; use values")
    if output == "bits" and (isinstance(codec, Reals) or not isinstance(codec, Numbers)):
        raise UsageError(f"--output bits: {of.name} reports one symbol; use values or codes")
    return output or "values"


def _resolved(request: Request, names: Sequence[str]) -> Request:
    """Return the request with the file's own spelling of its columns, which may have spaces at the ends."""

    def own(name: str) -> str:
        alike = [other for other in names if other.strip() == name.strip()]
        return alike[0] if name not in names and len(alike) == 1 else name

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
    shown = f"; the file has {', '.join(names[:20])}{' ...' if len(names) > 20 else ''}"
    seen: set[str] = set()
    for option, group in (("--columns", columns), ("--label", label), ("--keep", keep)):
        for name in group:
            if names.count(name) != 1:
                if name in names:
                    problem = "the file has several columns of that name"
                elif listed:
                    problem = "no such column"
                else:
                    problem = f"no such column among the {len(names)} in the first line; is there a header?"
                raise UsageError(f"{option} {name}: {problem}{shown if listed else ''}")
            if name in seen:
                raise UsageError(f"{option} {name}: named twice among --columns, --label and --keep")
            seen.add(name)


def _batch_rows(parts: Sequence[Part], seeded: bool) -> int:
    """Return the rows of a batch: constant for a run, so that memory does not grow with the file.

    A seeded run takes whole chunks of the keystream for every part, so that its output does not depend on the
    size of the batches.
    """
    rows = min(_MOST_ROWS, max(1, BATCH_BYTES // sum(part.width for part in parts)))
    if not seeded:
        return rows
    unit = max(_core.CHUNK // math.gcd(_core.CHUNK, part.per_row) for part in parts)
    return max(unit, rows // unit * unit)
