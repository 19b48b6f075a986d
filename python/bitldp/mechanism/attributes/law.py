"""Law of a record's reports: those of its attributes, beside each other or behind a public coin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.mechanism.law import TABLE, Block, Experiment

__all__ = ["experiment"]


@dataclass(frozen=True, eq=False)
class AllAttributes(Experiment):
    """The symbols of every attribute of a record, one after the other."""

    record: Any = None
    parts: Sequence[Experiment] = ()

    def split(self, reports: Any) -> list[NDArray[Any]]:
        found = zip(self.parts, self.record.answers(reports), strict=True)
        return [symbols for part, own in found for symbols in part.split(own.reports)]


@dataclass(frozen=True, eq=False)
class OneAttribute(AllAttributes):
    """One symbol a record: which attribute was drawn, and the symbol of its report."""

    starts: NDArray[np.int64] | None = None

    def split(self, reports: Any) -> list[NDArray[Any]]:
        assert self.starts is not None  # given with the blocks
        found = np.zeros((len(reports[0]), 1), np.int64)
        for start, part, own in zip(self.starts, self.parts, self.record.answers(reports), strict=False):
            if len(own.records):
                (symbols,) = part.split(own.reports)
                found[own.records] = start + symbols.astype(np.int64)
        return [found]


def experiment(record: Any, ends: tuple[Any, Any], pairs: Sequence[tuple[Any, Any]]) -> Experiment:
    """Return the experiment of two records, given the pair of values of each attribute.

    Parameters
    ----------
    record : Attributes
        Whose reports they are.
    ends : tuple
        The two records.
    pairs : sequence of (value, value)
        Of each attribute.

    Returns
    -------
    Experiment
        Without a law where that of some attribute is unknown, where several are sampled, or where the report
        of the one that is sampled is several symbols.
    """
    names = ("the first of every attribute", "the last of every attribute")
    plain = Experiment(ends, names)
    parts = [part.extremes(pair) for part, pair in zip(record.attributes, pairs, strict=True)]
    known = [part for part in parts if part is not None and part.blocks]
    if len(known) < len(parts):
        return plain
    if record.k is None:
        blocks = [_named(place, block) for place, part in enumerate(known) for block in part.blocks]
        # worst between the two records in either order, whatever the parts would compare
        return AllAttributes(ends, names, blocks, [(0, 1)], record=record, parts=known)
    tables = [block.table for part in known for block in part.blocks]
    single = all(len(part.blocks) == 1 for part in known) and all(each.shape[1] == 1 for each in tables)
    if record.k != 1 or not single or sum(each.size for each in tables) > TABLE:
        return plain
    joint = np.concatenate(tables, axis=2) / len(tables)
    starts = np.cumsum([0, *(each.shape[2] for each in tables)])

    def describe(_: int, value: int) -> str:
        attribute = int(np.searchsorted(starts, value, side="right")) - 1
        event = known[attribute].blocks[0].describe(0, int(value - starts[attribute]))
        return f"attribute {attribute} is drawn, and {event}"

    blocks = [Block(joint, describe)]
    return OneAttribute(ends, names, blocks, [(0, 1)], record=record, parts=known, starts=starts)


def _named(place: int, block: Block) -> Block:
    return Block(block.table, lambda symbol, value: f"attribute {place}: {block.describe(symbol, value)}")
