"""Generated records whose features are of uneven weight, after the procedure that FedSel's experiments name.

Wangni, Wang, Liu and Zhang, "Gradient sparsification for communication-efficient distributed optimization",
NeurIPS 2018, Section 5: with b uniform on [0, 1]^d, and b_i made C1 b_i where b_i <= C2,

    z ~ N(0, I_d),    x = z * b (each coordinate by itself),    y = sign(z . w),    w ~ N(0, I_d).

The smaller C1 and the larger C2, the fewer coordinates matter. FedSel (DASFAA 2020, Section 5.1) takes
d = 100, 300 with C1 of 0.01 and 0.1, C2 of 0.6 and 0.9.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from bitldp.base import checks
from numpy.typing import NDArray

from bitldp_papers.data.dataset import Dataset, Folder

__all__ = ["SYNTHETIC", "synthetic"]

#: Coordinates and records of "syn-L" and "syn-H".
_SIZES = {"L": (100, 60_000), "H": (300, 100_000)}
_SHRUNK, _THRESHOLDS = (0.01, 0.1), (0.6, 0.9)
_REACH = 1.0  # of features: as FedSel clips gradients, beyond which few of z * b lie
_SEED = 20200924  # of the records, which are the same for everybody


def synthetic(
    features: int,
    records: int,
    *,
    shrunk: float,
    threshold: float,
    seed: int = _SEED,
    name: str = "synthetic",
) -> Dataset:
    """Generate a data set of two classes, four fifths of it for training.

    Parameters
    ----------
    features : int
        d, 1 or more.
    records : int
        n, 5 or more.
    shrunk : float
        C1, what the weight of a light feature is multiplied by, in [0, 1].
    threshold : float
        C2, up to which weight a feature is light, in [0, 1]: about the share of light features.
    seed : int
        Of everything that is drawn.
    name : str
        Of the data set.

    Returns
    -------
    Dataset
        Features of float32. The stated range [-1, 1] is public: it is no fact of the records, some of which
        lie beyond.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.
    """
    features = checks.integer("features", features, 1)
    records = checks.integer("records", records, 5)
    for word, value in (("shrunk", shrunk), ("threshold", threshold)):
        if not 0.0 <= checks.real(word, value) <= 1.0:
            raise ValueError(f"{word}: must be in [0, 1]")
    rng = np.random.default_rng(np.random.SeedSequence([checks.integer("seed", seed, 0), features, records]))
    weights = rng.uniform(size=features)
    weights = np.where(weights <= threshold, shrunk * weights, weights).astype(np.float32)
    plane = rng.standard_normal(features, np.float32)
    dense = rng.standard_normal((records, features), np.float32)
    labels: NDArray[np.int64] = (dense @ plane > 0.0).astype(np.int64)
    dense *= weights
    ends = records // 5
    return Dataset(
        name=name,
        task="classification",
        train=dense[ends:],
        test=dense[:ends],
        train_labels=labels[ends:],
        test_labels=labels[:ends],
        low=np.full(features, -_REACH),
        high=np.full(features, _REACH),
        public_ranges=True,
        classes=2,
        columns=tuple(f"x_{index}" for index in range(features)),
    )


def _named(size: str, shrunk: float, threshold: float, folder: Folder) -> Dataset:
    features, records = _SIZES[size]
    return synthetic(features, records, shrunk=shrunk, threshold=threshold, name=folder.name)


#: Loader of each of FedSel's sets, named as in its Table 3: "syn-L-0.01-0.9" is d = 100, C1 = .01, C2 = .9.
SYNTHETIC: dict[str, Callable[[Folder], Dataset]] = {
    f"syn-{size}-{shrunk}-{threshold}": partial(_named, size, shrunk, threshold)
    for size in _SIZES
    for shrunk in _SHRUNK
    for threshold in _THRESHOLDS
}
