"""Public regions of places, by common prefixes of their codes; the places and codes of Gowalla."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from bitldp.base import checks
from numpy.typing import NDArray

from bitldp_papers.data.dataset import Folder
from bitldp_papers.data.sources import CHECKSUMS

__all__ = ["Places", "gowalla_places", "regions_by_prefix"]

_STEP = 2  # characters by which a prefix is shortened: one level of map tiles


@dataclass(frozen=True, eq=False, repr=False)
class Places:
    """Places with their hierarchical codes.

    Attributes
    ----------
    points : ndarray of float64, shape (n, 2)
        Two coordinates, in the units of the source.
    codes : tuple of str
        A code of zeros and ones for each, all of one length.
    """

    points: NDArray[np.float64]
    codes: tuple[str, ...]

    def __repr__(self) -> str:
        """Return how many there are."""
        return f"Places({len(self.points)})"


def gowalla_places(*, folder: str | os.PathLike[str] | None = None) -> Places:
    """Load the 1,000 places of Gowalla that BRR's authors drew, with the codes that they published.

    Parameters
    ----------
    folder : path, optional
        Where the data sets lie; ``BITLDP_DATA`` by default.

    Returns
    -------
    Places

    Raises
    ------
    DatasetError
        If the folder or a file is missing, or a checksum is wrong.

    Notes
    -----
    The authors rescaled both coordinates to 20..80, so no distance is in kilometres.
    """
    files = Folder("gowalla", folder)
    sums = CHECKSUMS["gowalla"]
    points = np.loadtxt(files.verified("data_gowalla.txt", sums), delimiter=",")
    codes = files.verified("data_gowalla_encode.txt", sums).read_text(encoding="ascii").split()
    return Places(points, tuple(codes))


def regions_by_prefix(codes: Sequence[str], *, least: int = 6) -> NDArray[np.str_]:
    """Part places into regions: each code's longest prefix that enough codes share, nested ones merged.

    Parameters
    ----------
    codes : sequence of str
        Public codes, all of one even length.
    least : int
        How many codes, 1 or more and at most all, must share a prefix.

    Returns
    -------
    ndarray of str, shape (n,)
        The prefix that names the region of each place: as `regions` of `bitldp.BRR`.

    Raises
    ------
    ValueError, TypeError
        For codes of different or odd lengths, or too few of them.

    Notes
    -----
    A prefix is shortened by two characters, one level of map tiles, until `least` codes share it; where one
    region's prefix begins another's, the two are one. So BRR's authors do it, who come by their regions in a
    random order (arXiv:2504.20926, Fig. 6, with `least` 6); the outcome does not depend on the order.
    """
    lengths = {len(code) for code in codes}
    if len(lengths) != 1 or next(iter(lengths)) % _STEP:
        raise ValueError("codes: must be strings of one even length")
    least = checks.integer("least", least, 1, len(codes))
    prefixes: dict[int, str] = {}
    for length in range(lengths.pop(), -1, -_STEP):
        shared = Counter(code[:length] for code in codes)
        for index, code in enumerate(codes):
            if index not in prefixes and shared[code[:length]] >= least:
                prefixes[index] = code[:length]
    kept = set(prefixes.values())
    return np.array([_shortest(prefixes[index], kept) for index in range(len(codes))])


def _shortest(prefix: str, kept: set[str]) -> str:
    """Return the shortest beginning of a prefix that is a region by itself."""
    return next(prefix[:end] for end in range(0, len(prefix) + 1, _STEP) if prefix[:end] in kept)
