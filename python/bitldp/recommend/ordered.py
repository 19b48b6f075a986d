"""Candidates for ordered values and unknown words, and what they are compared by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.categorical.blocks import BlockDesign
from bitldp.categorical.responses import GRR
from bitldp.categorical.subset import SubsetSelection
from bitldp.mechanism.base import Mechanism
from bitldp.ordered.heavy_hitters import HeavyHitters
from bitldp.ordered.hierarchy import Hierarchy
from bitldp.ordered.ranges import NodeLaw, inside, sets_law, typical_ends
from bitldp.ordered.square_wave import SquareWave
from bitldp.recommend.question import Question
from bitldp.record.choice import ORACLES, oracle

__all__ = ["ORDERED", "node_law", "range_spread"]

Maker = Callable[[Question], Mechanism]

_CELLS = 256  # of a tree over the cells of an interval
_QUICK, _USUAL = 1 << 16, (2, 4, 8)  # values and branchings whose errors are found at once
_MOST_FLAT = 4096  # values whose shares are added up one by one
_MOST_LISTED = 1_000_000  # words that a server counts one by one
_SECONDS = 8  # bits of a step: a search among a million records takes seconds; each more doubles it


def _wave(cells: int) -> Maker:
    return lambda s: SquareWave(s.epsilon, interval=s.interval, cells=cells)


def _tree(branching: int) -> Maker:
    """Return the maker of a tree over values, or over the cells of an interval."""

    def make(s: Question) -> Mechanism:
        size = s.size or _CELLS
        if size < branching > 2:
            raise ValueError(f"has {branching} children a node, more than there are values")
        if size > _QUICK and branching not in _USUAL and not s.thorough:
            raise ValueError("takes seconds to measure; thorough=True compares it, too")
        return Hierarchy(size, epsilon=s.epsilon, branching=branching)

    return make


def _bins(count: int) -> Maker:
    return lambda s: oracle("best", count, s.epsilon)


def _flat(kind: Any) -> Maker:
    """Return the maker of an oracle for every value, whose shares are added up."""

    def make(s: Question) -> Mechanism:
        if s.size > _MOST_FLAT:
            raise ValueError(f"is for at most {_MOST_FLAT} values: a range's errors add up")
        made: Mechanism = kind(s.size, epsilon=s.epsilon)
        return made

    return make


def _biased(s: Question) -> Mechanism:
    raise ValueError("has a bias, toward distributions without gaps and steps; ask for task 'distribution'")


def _words(step: int) -> Maker:
    def make(s: Question) -> Mechanism:
        if step > _SECONDS and not s.thorough:
            raise ValueError("the server searches for minutes; thorough=True compares it, too")
        return HeavyHitters(s.epsilon, bits=(s.size - 1).bit_length(), step=step)

    return make


def _listed(kind: Any) -> Maker:
    """Return the maker of an oracle for words that can still be listed."""

    def make(s: Question) -> Mechanism:
        if s.size > _MOST_LISTED:
            raise ValueError(f"is for at most {_MOST_LISTED:,} words: the server lists them all")
        made: Mechanism = kind(s.size, epsilon=s.epsilon)
        return made

    return make


ORDERED: Mapping[str, tuple[tuple[str, Maker], ...]] = {
    "distribution": (
        *((f"SquareWave, {cells} cells", _wave(cells)) for cells in (256, 512, 1024)),
        *((f"Hierarchy of {_CELLS} cells, by {each}", _tree(each)) for each in (2, 4, 8, 16)),
        *((f"best oracle, {count} bins", _bins(count)) for count in (8, 16, 32, 64)),
    ),
    "range": (
        *((f"Hierarchy, by {each}", _tree(each)) for each in (2, 3, 4, 5, 6, 8, 16)),
        *((f"{name}, added up", _flat(kind)) for name, kind in ORACLES.items()),
        ("SquareWave", _biased),
    ),
    "top": (
        *((f"HeavyHitters, steps of {each} bits", _words(each)) for each in (4, 6, 8, 10, 12)),
        *((f"{name}, all words", _listed(kind)) for name, kind in ORACLES.items()),
    ),
}


def node_law(mechanism: Any) -> NodeLaw:
    """Return for which categories a report of one of `ORACLES` counts, alone and by twos."""
    if isinstance(mechanism, BlockDesign):
        return sets_law(*mechanism.probabilities(), mechanism.blocks.cells, mechanism.blocks.width)
    size = mechanism.categories
    if isinstance(mechanism, SubsetSelection):
        return sets_law(*mechanism.probabilities(), size, mechanism.size)
    if isinstance(mechanism, GRR):
        p = 1.0 / (1.0 + (size - 1) * math.exp(-mechanism.guarantee.record))
        return sets_law(p, (1.0 - p) / (size - 1), size, 1)
    p, q = mechanism.probabilities()  # of independent bits
    return NodeLaw(p, q, p * q, q * q)


def range_spread(mechanism: Any) -> NDArray[np.float64]:
    """Return n times the variance of the shares of typical ranges, all values being as frequent."""
    if isinstance(mechanism, Hierarchy):
        return mechanism.range_variance(*typical_ends(mechanism.size))
    law, size = node_law(mechanism), mechanism.categories
    shares = np.full(size, 1.0 / size)
    return np.concatenate([law.variance(each, shares) for each in inside(*typical_ends(size), size)])
