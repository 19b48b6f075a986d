"""What an audit knows of selections: the law of the ranks, for vectors whose order is reversed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.audit.known.setting import setting
from bitldp.audit.law import Block, Setting, worst_pair
from bitldp.selection.base import Selection
from bitldp.selection.two_stage import TwoStage

__all__: list[str] = []

_PRINTED = 1 << 13  # codes of a law that is still written out


def opposite_vectors(dimensions: int) -> tuple[list[NDArray[np.float64]], list[str]]:
    """Return vectors of opposite order, all magnitudes above 1, and one of equal magnitudes."""
    rising = 1.0 + np.arange(1, dimensions + 1) / dimensions
    vectors = [rising, -rising[::-1], np.full(dimensions, 1.5)]
    return vectors, ["rising magnitudes", "falling magnitudes, negative", "equal magnitudes"]


def _block(mechanism: Selection, vectors: list[NDArray[np.float64]]) -> Block:
    """Return the law of the index."""
    none = mechanism.channel.dimensions

    def describe(_: int, value: int) -> str:
        return "none is selected" if value == none else f"coordinate {value} is selected"

    return Block(mechanism.law(np.stack(vectors))[:, None, :], describe)


def _inputs(pair: tuple[Any, Any] | None, dimensions: int) -> tuple[list[NDArray[np.float64]], list[str]]:
    if pair is None:
        return opposite_vectors(dimensions)
    vectors = [np.asarray(each, dtype=np.float64) for each in pair]
    if any(each.shape != (dimensions,) for each in vectors):
        raise ValueError(f"pair: two vectors of shape ({dimensions},) are needed")
    return vectors, ["pair[0]", "pair[1]"]


@setting.register
def _(mechanism: Selection, pair: tuple[Any, Any] | None) -> Setting:
    vectors, names = _inputs(pair, mechanism.channel.dimensions)
    block = _block(mechanism, vectors)
    return Setting(vectors, names, [block], [worst_pair(block.table[:, 0])], {"output": "codes"})


@setting.register
def _(mechanism: TwoStage, pair: tuple[Any, Any] | None) -> Setting | None:
    # Values beyond the interval, all of one sign, are reported alike wherever they are: then the code does
    # not depend on the index, and the law is a product. With a report of none it is not.
    selection, values = mechanism.selection, mechanism.values
    low, high = values._ends
    if (
        pair is not None
        or selection.channel.nothing is not None
        or (low, high) != (-1.0, 1.0)
        or values.alphabet > _PRINTED
    ):
        return None
    vectors, names = opposite_vectors(selection.channel.dimensions)
    law = values._scalar.probabilities()
    rows = np.stack([law[-1], law[0], law[-1]])

    def describe(_: int, value: int) -> str:
        return f"the value is reported as {value}"

    blocks = [_block(selection, vectors), Block(rows[:, None, :], describe)]
    return Setting(vectors, names, blocks, [(0, 1)], {"output": "codes"})
