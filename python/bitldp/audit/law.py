"""Prior knowledge of an audit, as data: inputs worth comparing and the law of their reports.

A report is a string of independent symbols: bits, or categories. Its law is one table of probabilities for
each run of symbols with the same alphabet, made from the integers that the sampler compares with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Block", "Setting", "arguments", "neighbours", "worst_pair"]


@dataclass(frozen=True, eq=False)
class Block:
    """Independent symbols with the same alphabet.

    Attributes
    ----------
    table : ndarray of float64, shape (inputs, symbols, values)
        P(symbol has value | input).
    describe : callable
        The event that a symbol (by number) is reported with a value, in words.
    """

    table: NDArray[np.float64]
    describe: Callable[[int, int], str]


@dataclass(frozen=True, eq=False)
class Setting:
    """Inputs to compare, and the law of their reports.

    Attributes
    ----------
    inputs : sequence
        One record each; a tuple holds one for each argument of `randomize`.
    names : sequence of str
        The inputs in words.
    blocks : sequence of Block
        Law of the reports.
    pairs : sequence of (int, int)
        Pairs of inputs whose whole reports are compared.
    options : mapping
        Options of `randomize`, such that a report is the symbols of the blocks.
    groups : sequence of int
        Inputs are compared only within their group (the public region); empty: all of them.
    """

    inputs: Sequence[Any]
    names: Sequence[str]
    blocks: Sequence[Block]
    pairs: Sequence[tuple[int, int]]
    options: Mapping[str, Any] = field(default_factory=dict)
    groups: Sequence[int] = ()

    @property
    def symbols(self) -> int:
        """Symbols of a report."""
        return sum(block.table.shape[1] for block in self.blocks)

    def comparable(self) -> list[tuple[int, int]]:
        """Return the ordered pairs of inputs whose symbols are compared."""
        count, groups = len(self.inputs), self.groups or [0] * len(self.inputs)
        return [(a, b) for a in range(count) for b in range(count) if a != b and groups[a] == groups[b]]

    def split(self, reports: Any) -> list[NDArray[Any]]:
        """Return the symbols of reports, shape (n, symbols) for each block; bits as float64, for sums."""
        parts = reports if isinstance(reports, tuple) else (reports,)
        symbols: list[NDArray[Any]] = []
        for part, block in zip(parts, self.blocks, strict=True):
            table = np.asarray(part).reshape(-1, block.table.shape[1])
            symbols.append(table.astype(np.float64) if block.table.shape[2] == 2 else table)
        return symbols


def arguments(record: Any, rows: int) -> tuple[NDArray[Any], ...]:
    """Return the arguments of `randomize` for `rows` copies of a record."""
    parts = record if isinstance(record, tuple) else (record,)
    return tuple(np.repeat(np.asarray(part)[None], rows, axis=0) for part in parts)


def neighbours(count: int) -> list[tuple[int, int]]:
    """Return the pairs (0, 1), (2, 3), ... of `count` inputs."""
    return [(a, a + 1) for a in range(0, count, 2)]


def worst_pair(rows: NDArray[np.float64]) -> tuple[int, int]:
    """Return the pair of rows with the largest finite log-ratio in the likeliest cells."""
    best, pair = (-np.inf, -np.inf), (0, 1)
    logs = np.log(np.maximum(rows, 2.0**-80))
    for a in range(len(rows)):
        gaps = logs[a] - logs
        top = np.where(gaps < 40.0, gaps, -np.inf).max(axis=1)
        mass = np.where(gaps > top[:, None] - 1e-9, rows[a], 0.0).sum(axis=1)
        for b in np.lexsort((mass, top.round(9)))[-1:]:
            if b != a and (float(top[b].round(9)), float(mass[b])) > best:
                best, pair = (float(top[b].round(9)), float(mass[b])), (a, int(b))
    return pair
