"""Mechanisms whose table a solver made: the table travels with them, since another solver may make another."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from bitldp._core import Matrix
from bitldp._mechanism import Mechanism

Table = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Designed(Mechanism):
    """Base of the mechanisms with designed tables.

    A pickle holds the parameters and the integers of the tables; what is unpickled has the same law, whatever
    solver is installed. The `fingerprint` has a digest of the integers, so that reports of different tables
    are never added up.
    """

    _held: ClassVar[list[Table]] = []  # on an instance that is being unpickled: its tables, in order

    def _tables(self) -> Sequence[Matrix]:
        """Return the designed channels, in the order in which `_build` makes them."""
        raise NotImplementedError

    def _designed(self, make: Callable[[], Matrix]) -> Matrix:
        """Return the next table: the one that came with the pickle, or a new one."""
        return Matrix.from_weights(self._held.pop(0)) if self._held else make()

    def fingerprint(self) -> dict[str, Any]:
        """Return name and parameters as JSON values, and a digest of the designed integers."""
        digest = hashlib.sha256()
        for channel in self._tables():
            digest.update(repr(channel.weights()).encode())
        return {**super().fingerprint(), "design": digest.hexdigest()}

    def __reduce__(self) -> tuple[Callable[..., Mechanism], tuple[Any, ...]]:
        tables = [tuple(tuple(row) for row in channel.weights()) for channel in self._tables()]
        return _rebuild, (type(self), dict(self.parameters), tables)


def _rebuild(kind: type[Designed], parameters: dict[str, Any], tables: list[Table]) -> Mechanism:
    mechanism = object.__new__(kind)
    for field in fields(kind):
        object.__setattr__(mechanism, field.name, parameters[field.name])
    object.__setattr__(mechanism, "_held", list(tables))
    mechanism._build()
    return mechanism
