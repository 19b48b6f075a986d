"""Mechanisms whose table a solver made: it travels with them, since another solver may make another."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitldp._core import Matrix
from bitldp.mechanism.base import Mechanism


class DesignTable(NamedTuple):
    """A designed channel, and the letters that came with it (none where reports stand for themselves)."""

    channel: Matrix
    letters: NDArray[np.float64] | None


@dataclass(frozen=True, eq=False, repr=False)
class Designed(Mechanism):
    """Base of the mechanisms with designed tables.

    A pickle holds the parameters, and the integers and letters of the tables; what is unpickled has the same
    law, whatever solver is installed. The `fingerprint` has a digest of them, so that reports of different
    tables are never added up.
    """

    # The tables in the order in which they were made, and those that a pickle brought.
    _made: list[DesignTable] = field(init=False, repr=False, compare=False)
    _held: Sequence[DesignTable] = field(default=(), init=False, repr=False, compare=False)

    def _settle(self) -> None:
        self._set(_made=[])
        super()._settle()

    def _table(self, make: Callable[[], DesignTable]) -> DesignTable:
        """Return the next table: the one that came with the pickle, or a new one."""
        place = len(self._made)
        table = self._held[place] if self._held else make()
        self._made.append(table)
        return table

    def fingerprint(self) -> dict[str, Any]:
        """Return name and parameters as JSON values, and a digest of the designed integers and letters."""
        digest = hashlib.sha256(repr(self._plain_tables()).encode())
        return {**super().fingerprint(), "design": digest.hexdigest()}

    def _plain_tables(self) -> list[tuple[list[list[int]], list[float] | None]]:
        return [
            (table.channel.weights(), None if table.letters is None else table.letters.tolist())
            for table in self._made
        ]

    def __reduce__(self) -> tuple[Callable[..., Mechanism], tuple[Any, ...]]:
        return _rebuild, (type(self), dict(self.parameters), self._plain_tables())


def _rebuild(
    kind: type[Designed],
    parameters: dict[str, Any],
    tables: list[tuple[list[list[int]], list[float] | None]],
) -> Mechanism:
    mechanism = object.__new__(kind)
    for name, value in parameters.items():
        object.__setattr__(mechanism, name, value)
    held = [
        DesignTable(Matrix.from_weights(weights), None if letters is None else np.array(letters))
        for weights, letters in tables
    ]
    object.__setattr__(mechanism, "_held", held)
    mechanism._settle()
    return mechanism
