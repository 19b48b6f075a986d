"""Codecs of clients: what makes codes of the values of a record, beside those of the core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitldp._core import FixedPoint, Grid
from bitldp.release.draws import whole_numbers

__all__ = ["Codec", "Item", "OneHot", "Placed", "Signs"]

_FINE = 1 << 31  # steps of the chance of a sign


@dataclass(frozen=True)
class Placed:
    """Codec of a number by a draw of its own: dithered to a point, whose bits go into a channel of bits."""

    grid: Grid


@dataclass(frozen=True)
class Signs:
    """Codec of some numbers at once: each dithered to an end of the interval, all together as one symbol."""

    grid: Grid
    columns: int


@dataclass(frozen=True)
class OneHot:
    """Codec of a category: as many entries as there are categories, `top` for its own and 0 elsewhere."""

    categories: int
    top: int


@dataclass(frozen=True)
class Item:
    """Codec of a set: one of its items, drawn in secret.

    Attributes
    ----------
    items : int
        Columns of a record.
    padding : int
        How many items a smaller set is padded to, by dummies behind the items.
    signs : bool
        Whether items have numbers on [-1, 1], NaN where they are not there: a sign is drawn by the number.
    """

    items: int
    padding: int
    signs: bool = False

    @property
    def codes(self) -> int:
        """How many codes there are: items and dummies, or pairs of one and a sign."""
        return (self.items + self.padding) * (1 + self.signs)

    @property
    def streams(self) -> int:
        """Keys, behind those of the channel: of the sign, and of the item."""
        return 1 + self.signs

    def drawn(self, values: NDArray[Any], keys: Sequence[bytes]) -> NDArray[np.int64]:
        """Return the code of each record."""
        members = ~np.isnan(values) if self.signs else values.astype(np.bool_)
        counts = members.sum(axis=1)
        drawn = whole_numbers(keys[-1], len(values), np.maximum(counts, self.padding), 0)
        place = (np.cumsum(members, axis=1) <= drawn[:, None]).sum(axis=1)
        codes = (place + np.maximum(drawn - counts, 0)).astype(np.int64)
        if not self.signs:
            return codes
        held = codes < self.items
        own = np.where(held, values[np.arange(len(values)), np.where(held, codes, 0)], 0.0)
        steps = np.rint((own + 1.0) * (_FINE // 2)).astype(np.int64)
        return 2 * codes + (whole_numbers(keys[0], len(values), _FINE, 0) < steps)


Codec: TypeAlias = Grid | FixedPoint | Signs | OneHot | Placed | Item
"""Maker of codes from the values of a record."""
