"""The most frequent words of a released column, which no public list holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from bitldp.base.errors import PlanError
from bitldp.tables import groups
from bitldp.tables.answer import Stacked, TableAnswer
from bitldp.tables.groups import Group
from bitldp.tables.words import WordColumn

__all__ = ["topped"]


class _Asked(Protocol):
    """The part of `bitldp.tables.ReleasedTable` that words are asked of."""

    plan: Any
    _options: dict[str, Any]
    _homes: dict[str, Any]
    _types: list[pa.DataType]

    def _codec(self, column: str) -> Any: ...

    def _counted(
        self, codecs: Iterable[int], kept: Sequence[str], begin: Callable[[], Any]
    ) -> dict[Group, Any]: ...


class _Words:
    """Counts of the reports of one codec."""

    def __init__(self, number: int, codec: WordColumn) -> None:
        self._number, self.counts = number, codec.counts()

    def update(self, reports: dict[int, tuple[Any, str]], n: int) -> None:
        """Add the reports of n records, by codec."""
        if n:
            self.counts.update(reports[self._number][0])


def topped(released: _Asked, column: str, t: int, by: Sequence[str]) -> TableAnswer:
    """Return the most frequent words; see `ReleasedTable.top`."""
    codec = released._codec(column)
    if not isinstance(codec, WordColumn):
        raise PlanError(
            f"column {column!r}: its values are of a public list, or numbers: share({column!r}) tells all of "
            "them; a plan with HeavyHitters would find words that nobody listed"
        )
    for name in by:
        if name not in released.plan.keep:
            raise PlanError(
                f"by: column {name!r} is not kept; a plan that keeps it, or releases {column!r} by GRR or "
                "OUE with a public list of words, would tell them by it"
            )
    number = released._homes[column][1]
    found = released._counted([number], by, lambda: _Words(number, codec))
    estimates = [codec.top(each.counts, t) for each in found.values()]
    sizes = [len(each.value) for each in estimates]
    keys = {
        name: groups.array_of_keys(
            [group[j] for group, size in zip(found, sizes, strict=True) for _ in range(size)],
            released._types[j],
        )
        for j, name in enumerate(by)
    }
    words = [word for each in estimates for word in codec.labelled(each.labels)]
    kind = pa.string() if codec.mechanism.alphabet is not None else pa.uint64()
    limits = Stacked([(size, each.limits) for size, each in zip(sizes, estimates, strict=True)])
    doubts = [codec.doubt(each, j) for each in estimates for j in range(len(each.value))]
    notes = ["; ".join(filter(None, [doubt, codec.filling])) for doubt in doubts]
    return TableAnswer(
        *("share", column, {**keys, column: pa.array(words, kind)}),
        *(np.concatenate([getattr(each, name) for each in estimates]) for name in ("value", "stderr")),
        np.repeat([each.n for each in estimates], sizes),
        notes,
        limits,
        span=(0.0, 1.0),
        **released._options,
    )
