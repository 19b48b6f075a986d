"""Data sets for experiments: scikit-learn's bundled ones, and real ones from a local folder.

Nothing is shipped and nothing is downloaded. `load` reads ``digits``, ``breast_cancer`` and ``wine`` from
an installed scikit-learn, generates those whose names begin with ``syn-`` (`synthetic`), and reads the
others from the folder that the environment variable ``BITLDP_DATA`` points to, one sub-folder a data set,
each file verified by its SHA-256 before it is used. `read` makes a data set of anybody's file, and `using`
lets a name stand for one. `NEEDED` lists the papers' sets that a user has to bring, and in which form.

Every data set states a range for each feature. A range that was learned from the records is itself a release
of private data; those of the folder's tabular sets are (they are what the experiments of the papers do), and
are marked ``public_ranges=False``.
"""

from __future__ import annotations

import os

from bitldp_papers.data.dataset import Dataset, DatasetError, Folder
from bitldp_papers.data.files import SUFFIXES, PublicRanges, read, vectors
from bitldp_papers.data.given import given, reserve, using
from bitldp_papers.data.needed import NEEDED, NeededData
from bitldp_papers.data.regions import Places, gowalla_places, regions_by_prefix
from bitldp_papers.data.sources import LOADERS as _SOURCES
from bitldp_papers.data.synthetic import SYNTHETIC, synthetic

__all__ = [
    "NEEDED",
    "SUFFIXES",
    "Dataset",
    "DatasetError",
    "NeededData",
    "Places",
    "PublicRanges",
    "gowalla_places",
    "load",
    "names",
    "read",
    "regions_by_prefix",
    "synthetic",
    "using",
    "vectors",
]

LOADERS = {**_SOURCES, **SYNTHETIC}
reserve([*LOADERS, *NEEDED])


def names() -> tuple[str, ...]:
    """Return every name that `load` accepts."""
    return tuple(LOADERS)


def load(name: str, *, folder: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a data set.

    Parameters
    ----------
    name : str
        One of `names`, or what `using` gave.
    folder : path, optional
        Where the data sets lie that scikit-learn does not bundle; ``BITLDP_DATA`` by default.

    Returns
    -------
    Dataset
        Split as its source splits it, otherwise four to one in a fixed random order.

    Raises
    ------
    ValueError
        For an unknown name.
    DatasetError
        If the folder or a file is missing, a checksum is wrong, or scikit-learn is not installed; of a set in
        `NEEDED`, which file is needed.
    """
    if (mine := given(name)) is not None:
        return mine
    if name in NEEDED:
        raise DatasetError(NEEDED[name].sentence)
    if name not in LOADERS:
        raise ValueError(f"name: no data set {name!r}; there are {', '.join(LOADERS)}")
    return LOADERS[name](Folder(name, folder))
