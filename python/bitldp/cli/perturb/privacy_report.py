"""Sentences about the privacy of a run, and the report beside its output, with the laws in integers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import singledispatch
from typing import Any, NamedTuple, Protocol

import numpy as np

import bitldp
from bitldp import _core
from bitldp._core import Bits, Cap, Cube, Design, Matrix, Mixture, Select, Shift, Subset, Unary, Window
from bitldp.cli.perturb.request import Request
from bitldp.ledger.budget import LedgerState
from bitldp.ledger.entry import Entry, to_json
from bitldp.mechanism.attributes.base import Attributes
from bitldp.privacy import total
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.column import canonical_digest
from bitldp.tables.plan import TablePlan, TableRelease
from bitldp.tables.pseudonyms import LINKED, linked_name

__all__ = ["Charged", "Watcher", "law_of", "moved_note", "privacy_report", "said_before"]

_MOST = 1 << 16  # integers of a law that a report holds


class Charged(NamedTuple):
    """Charges of a ledger for a run by their numbers in it, and how far the ledger had come after them."""

    entries: dict[int, Entry]
    state: LedgerState


def _decoding(codec: ColumnCodec) -> dict[str, Any]:
    """Return what the columns stand for, and how to estimate from them."""
    decoding = codec.decoding
    biased = {"decode": decoding.decode, "bias_bound": decoding.bias} if decoding.decode else {}
    return {**biased, "to_estimate": decoding.estimate}


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Write infinities as text: JSON has none."""
    infinite = {
        name: "infinity" for name, value in values.items() if isinstance(value, float) and math.isinf(value)
    }
    return values | infinite


def privacy_report(
    request: Request,
    plan: TablePlan,
    release: TableRelease | None,
    rows: int,
    sha256: str,
    *,
    array: bool,
    charge: Charged | None = None,
    files: Sequence[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return the privacy report: what was released at which epsilon; never a key, a seed or a value.

    Parameters
    ----------
    request : Request
    plan : TablePlan
    release : TableRelease or None
        That of a plan's file; None where options said what is released.
    rows : int
        Number of records.
    sha256 : str
        Digest of the output.
    array : bool
        Whether the columns are those of an array, without names.
    charge : Charged, optional
        Of a ledger, if one was charged.
    files : sequence of dict, optional
        Names, rows and digests of the files of a folder.
    """
    guarantees = [codec.mechanism.guarantee for codec in plan.codecs]
    whole = total(guarantees, [codec.released for codec in plan.codecs])
    report = {
        "tool": "bitldp",
        "version": bitldp.__version__,
        "isa": _core.isa(),
        "mechanism": request.mechanism or "plan",
        "release": None if release is None else release.id,
        "repeatable": release is not None and release.repeatable,
        "snapshot": request.release.snapshot,
        "plan": None if array else plan.fingerprint(),
        "plan_sha256": None if array else plan.digest,
        "output": request.target.name,
        "output_sha256": sha256,
        **({} if files is None else {"files": list(files)}),
        "rows": rows,
        "mechanisms": [
            {
                "mechanism": type(codec.mechanism).__name__,
                "columns": list(codec.columns),
                "output": codec.output,
                "parameters": codec.mechanism.fingerprint()["parameters"],
                **codec.public,
                **_decoding(codec),
                "epsilon_claimed": _plain(asdict(guarantee))["claimed"],
                "claim_covers": guarantee.unit,
                "epsilon_exact": {
                    name: _plain(asdict(guarantee))[name] for name in ("bit", "feature", "record")
                },
                "law": law_of(codec.mechanism),
                "given": guarantee.given,
                "delta": guarantee.delta,
                "holds": guarantee.holds,
            }
            for codec, guarantee in zip(plan.codecs, guarantees, strict=True)
        ],
        "total_per_record": {
            **{
                name: _plain(asdict(whole))[key]
                for name, key in (
                    ("epsilon_claimed", "claimed"),
                    ("epsilon_exact", "record"),
                    ("delta", "delta"),
                    ("holds", "holds"),
                )
            },
            # What the exact epsilon takes as public or as known; a reader must not miss it.
            "given": "; ".join(dict.fromkeys(g.given for g in guarantees if g.given)),
        },
        **_memoized(release),
        **_charged(charge),
        "kept_unperturbed": list(plan.keep),
        **({"linked_by": list(map(linked_name, plan.keep_as))} if plan.keep_as else {}),
        "seeded": request.seed is not None,
        "notes": [
            "Local differential privacy of one row against any other row, in its perturbed columns.",
            "Another release about the same rows adds its own epsilon."
            if release is None or release.days is None
            else 'Other snapshots of this series are memoized: the entry "memoized" describes them all.',
            *(["Rows are in the files, and in the order, that they were in."] if files is not None else []),
            *(["Kept columns have no privacy, and may identify the person of a row."] if plan.keep else []),
            *([LINKED] if plan.keep_as else []),
            *(
                ["Made with a fixed seed: for tests only, without privacy."]
                if request.seed is not None
                else []
            ),
        ],
    }
    return {**report, "report_sha256": canonical_digest(report)}


def _memoized(release: TableRelease | None) -> dict[str, Any]:
    """Return what all snapshots of a memoized release cost together; nothing of what its store holds."""
    if release is None or release.days is None:
        return {}
    every = _plain(asdict(release.guarantee))
    said = {name: every[name] for name in ("delta", "given")}
    return {
        "memoized": {
            "series": release.series,
            "most": release.days.most,
            "epsilon_exact": every["record"],
            **said,
        }
    }


def _charged(charge: Charged | None) -> dict[str, Any]:
    """Return what a ledger was charged, and its state then, which a later run can ask for.

    Who charged it is for those who have the ledger, and in no report.
    """
    if charge is None:
        return {}
    entries = [{"number": key, **to_json(replace(each, user=""))} for key, each in charge.entries.items()]
    return {"ledger": entries, "ledger_state": charge.state._asdict()}


# -- the law of a mechanism, for `bitldp.verify`


def law_of(mechanism: Any) -> list[dict[str, Any]]:
    """Return the independent symbols of a report: their laws in integers over 2**64, and how many there are.

    Of a record's attributes of which some are drawn, `each` says how many have each law. A law of more than
    65,536 integers, and one that is known by its guarantee alone, is named and not proven.
    """
    symbols = mechanism._symbols()
    if not symbols:  # nothing is told of the input
        return [{"times": 1, "laws": [{"law": "mute"}]}]
    if isinstance(mechanism, Attributes) and mechanism.spend == "sample":
        runs = [(run.mechanism._symbols()[0].laws, run.stop - run.start) for run in mechanism._runs]
        laws = [_bounded(law) for (law,), _ in runs]
        return [{"times": mechanism.k, "laws": laws, "each": [count for _, count in runs]}]
    return [{"times": times, "laws": [_bounded(law) for law in laws]} for laws, times in symbols]


def _bounded(law: Any) -> dict[str, Any]:
    if isinstance(law, Matrix) and law.inputs * law.outputs > _MOST:
        return {"law": "a large table", "epsilon": law.epsilon}
    if isinstance(law, Shift) and law.outputs * law.inputs > _MOST * 64:
        return {"law": "a long noise", "epsilon": law.epsilon}
    return _integers(law)


def _window(cells: int, width: int, law: Any) -> dict[str, Any]:
    return {"law": "window", "cells": cells, "width": width, "high": str(law.high), "mute": law.mute}


def _table(law: Matrix) -> list[list[str]]:
    return [[str(weight) for weight in row] for row in law.weights()]


@singledispatch
def _integers(law: Any) -> dict[str, Any]:
    return {"law": "promised", "epsilon": getattr(law, "record", None)}


@_integers.register(Window)
@_integers.register(Design)
def _(law: Window | Design) -> dict[str, Any]:
    return _window(law.cells, law.width, law)


@_integers.register
def _(law: Subset) -> dict[str, Any]:
    # A subset holds the input with the chance `high`; those that do are to those that do not as w to k - w.
    return _window(law.elements, law.size, law)


@_integers.register
def _(law: Matrix) -> dict[str, Any]:
    return {"law": "matrix", "weights": _table(law)}


@_integers.register
def _(law: Bits) -> dict[str, Any]:
    pattern = law.pattern
    features = [law.features] if pattern is None else np.bincount(pattern).tolist()
    return {
        "law": "bits",
        "thresholds": [
            [str(p), str(q)]
            for each, count in zip(law.thresholds(), features, strict=False)
            for _ in range(count)
            for p, q in each
        ],
    }


@_integers.register
def _(law: Unary) -> dict[str, Any]:
    p, q = law.thresholds()
    return {"law": "unary", "p": str(p), "q": str(q)}


@_integers.register
def _(law: Shift) -> dict[str, Any]:
    return {
        "law": "shift",
        "inputs": law.inputs,
        "outputs": law.outputs,
        "reach": law.reach,
        "offset": law.offset,
        "mute": law.mute,
        "weights": [str(weight) for weight in law.weights()],
    }


@_integers.register
def _(law: Mixture) -> dict[str, Any]:
    return {"law": "mixture", "window": _integers(law.window), "weights": _table(law.matrix)}


@_integers.register
def _(law: Cube) -> dict[str, Any]:
    return {
        "law": "cube",
        "bits": law.bits,
        "near": law.near,
        "far": law.far,
        "high": str(law.high),
        "mute": law.mute,
    }


@_integers.register
def _(law: Cap) -> dict[str, Any]:
    return {
        "law": "cap",
        "windows": [list(each) for each in law.windows],
        "subsets": [list(each) for each in law.subsets],
        "hits": law.hits,
        "high": str(law.high),
        "mute": law.mute,
    }


@_integers.register
def _(law: Select) -> dict[str, Any]:
    # Runs of ranks share a weight: each weight once is enough.
    return {"law": "select", "weights": sorted({str(weight) for weight in law.weights().tolist()})}


# -- what is said before and after


class Watcher(Protocol):
    """Where a run reports to while it goes on."""

    def warn(self, sentence: str) -> None:
        """Show a warning before the run starts."""
        ...

    def note(self, sentence: str) -> None:
        """Show what the user may not expect of the run."""
        ...

    def progress(self, position: int, total: int) -> None:
        """Show how much of the input has been read."""
        ...


def said_before(request: Request, plan: TablePlan, warnings: Sequence[str], watcher: Watcher) -> None:
    """Show warnings and notes before a run starts."""
    for sentence in (*warnings, *_warnings(request, plan)):
        watcher.warn(sentence)
    for sentence in _notes(plan):
        watcher.note(sentence)
    if request.ledger is None and request.seed is None:
        watcher.note("no ledger was named, so nothing counts what these rows have spent")


def _warnings(request: Request, plan: TablePlan) -> Iterator[str]:
    yield from dict.fromkeys(codec.decoding.sentence for codec in plan.codecs if codec.decoding.alarming)
    if plan.keep:
        where = "--keep" if request.plan is None else "keep"
        yield f"released as they are, without any privacy: {', '.join(plan.keep)} ({where})"
    for name in plan.keep_as:
        yield f"{name} leaves as a pseudonym (keep_as). {LINKED}"
    if request.seed is not None:
        yield (
            "--seed is for tests: two outputs under one seed reveal where their inputs differ, and whoever "
            "knows the seed can undo the noise"
        )


def _notes(plan: TablePlan) -> Iterator[str]:
    for codec in plan.codecs:
        yield from codec.notes
    sentences = (each.decoding.sentence for each in plan.codecs if not each.decoding.alarming)
    yield from dict.fromkeys(filter(None, sentences))


def moved_note(plan: TablePlan, moved: Sequence[int], watcher: Watcher, where: str = "") -> None:
    """Say how many numbers were outside a range: to whoever has the data, and in no file that leaves."""
    for codec, count in zip(plan.codecs, moved, strict=True):
        if count:
            columns = ", ".join(codec.columns)
            watcher.note(
                f"{count:,} numbers of {columns} were outside the range, and moved to its ends{where}"
            )
