"""The most frequent words of a released column, which no public list holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bitldp.base.errors import PlanError
from bitldp.tables.answer import Stacked, TableAnswer
from bitldp.tables.codec import ColumnCodec
from bitldp.tables.counting import Counting
from bitldp.tables.words import WordColumn

__all__ = ["topped", "word_column"]


def word_column(codec: ColumnCodec, column: str, by: Sequence[str], keep: Sequence[str]) -> WordColumn:
    """Return the codec of a column of words, of which groups of kept columns are asked.

    Raises
    ------
    PlanError
        For another column, and for a group that is not kept.
    """
    if not isinstance(codec, WordColumn):
        raise PlanError(
            f"column {column!r}: its values are of a public list, or numbers: share({column!r}) gives "
            f"the shares of all; a plan with HeavyHitters would find words without a list"
        )
    for name in by:
        if name not in keep:
            raise PlanError(
                f"by: column {name!r} is not kept; a plan that keeps it, or releases {column!r} by GRR or "
                "OUE with a public list of words, would give them by it"
            )
    return codec


def topped(codec: WordColumn, counted: Counting, most: int, options: dict[str, Any]) -> TableAnswer:
    """Return the most frequent words of each group; see `ReleasedTable.top`."""
    (column,) = codec.columns
    estimates = [codec.top(each.counts, most) for each in counted.sums()]
    sizes = [len(each.value) for each in estimates]
    words = [word for each in estimates for word in codec.labelled(each.labels)]
    doubts = [codec.doubt(each, j) for each in estimates for j in range(len(each.value))]
    kind = pa.string() if codec.mechanism.alphabet is not None else pa.uint64()
    groups = {
        name: keys.take(pa.array(np.repeat(np.arange(len(sizes)), sizes)))
        for name, keys in counted.keys([("", (None,))]).items()
    }
    value, stderr = (
        np.concatenate([getattr(each, name) for each in estimates]) for name in ("value", "stderr")
    )
    limits = [
        (size, each.limits)
        for size, each in zip(sizes, estimates, strict=True)
        if each.limits is not None  # as all of them have
    ]
    return TableAnswer(
        *("share", column, {**groups, column: pa.array(words, kind)}, value, stderr),
        np.repeat([each.n for each in estimates], sizes),
        ["; ".join(filter(None, [doubt, codec.filling])) for doubt in doubts],
        Stacked(limits),
        span=(0.0, 1.0),
        **options,
    )
