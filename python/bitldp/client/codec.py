"""Codecs of clients: what makes codes of the values of a record, beside those of the core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitldp._core import FixedPoint, Grid
from bitldp.release.draws import sampled_items, signed_items

__all__ = ["Codec", "Item", "OneHot", "Placed", "Signs"]


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
        items = sampled_items(members, self.padding, keys[-1], 0)
        return signed_items(items, values, keys[0], 0) if self.signs else items


Codec: TypeAlias = Grid | FixedPoint | Signs | OneHot | Placed | Item
"""Maker of codes from the values of a record."""
