"""Codecs of clients that the core does not have: they turn the values of a record into codes."""

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
    """Codec of a number: dithered with a key of its own to a point, whose bits go into a channel of bits."""

    grid: Grid


@dataclass(frozen=True)
class Signs:
    """Codec of several numbers: each is dithered to an end of the interval, and all make one code."""

    grid: Grid
    columns: int


@dataclass(frozen=True)
class OneHot:
    """Codec of a category: a vector of one entry a category, `top` for the given one and 0 elsewhere."""

    categories: int
    top: int


@dataclass(frozen=True)
class Item:
    """Codec of a set: draws one of its items in secret.

    Attributes
    ----------
    items : int
        Number of possible items: the columns of a record.
    padding : int
        Number of items that a smaller set is padded to. The dummies have the codes after those of the items.
    signs : bool
        True where each item has a number on [-1, 1], NaN for an item that the set lacks. The code then holds
        a sign, drawn with the number's chance.
    """

    items: int
    padding: int
    signs: bool = False

    @property
    def codes(self) -> int:
        """Number of codes: one for each item and dummy, twice as many with signs."""
        return (self.items + self.padding) * (1 + self.signs)

    @property
    def streams(self) -> int:
        """Number of keys after those of the channel: one for the sign if any and one for the item."""
        return 1 + self.signs

    def drawn(self, values: NDArray[Any], keys: Sequence[bytes]) -> NDArray[np.int64]:
        """Return a code for each record, shape (n,)."""
        members = ~np.isnan(values) if self.signs else values.astype(np.bool_)
        items = sampled_items(members, self.padding, keys[-1], 0)
        return signed_items(items, values, keys[0], 0) if self.signs else items


Codec: TypeAlias = Grid | FixedPoint | Signs | OneHot | Placed | Item
"""Maker of codes from the values of a record."""
