"""Complete binary trees with a random public structure, and ensembles of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitldp_papers.run.share import loaded

__all__ = ["Structure", "leaves_of", "predicted", "structure", "targets"]


@dataclass(frozen=True)
class Structure:
    """The splits of a complete tree, node by node as in a heap.

    Attributes
    ----------
    features : ndarray of int, shape (2**depth - 1,)
        Which feature a node looks at.
    thresholds : ndarray of float64, shape (2**depth - 1,)
        A record goes right where that feature is above it.
    """

    features: NDArray[np.intp]
    thresholds: NDArray[np.float64]


def structure(seed: int, number: int, depth: int, features: int) -> Structure:
    """Return tree `number` (from 1) of an ensemble: features and thresholds of [-1, 1] uniformly at random.

    A node's threshold is drawn from what the nodes above it leave of the feature's range.
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, number, 0x74EE]))
    nodes = (1 << depth) - 1
    chosen = rng.integers(0, features, nodes)
    thresholds = np.zeros(nodes)
    ranges = {0: np.array([[-1.0, 1.0]] * features)}
    for node in range(nodes):
        low, high = ranges[node][chosen[node]]
        thresholds[node] = low + (high - low) * rng.uniform(0.25, 0.75)
        for child, side in ((2 * node + 1, 1), (2 * node + 2, 0)):
            narrowed = ranges[node].copy()
            narrowed[chosen[node], side] = thresholds[node]
            ranges[child] = narrowed
        del ranges[node]
    return Structure(chosen, thresholds)


def leaves_of(tree: Structure, x: NDArray[np.float32]) -> NDArray[np.intp]:
    """Return the leaf of every record, shape (n,)."""
    nodes = len(tree.features)
    places = np.zeros(len(x), np.intp)
    rows = np.arange(len(x))
    for _ in range(nodes.bit_length()):
        places = 2 * places + 1 + (x[rows, tree.features[places]] > tree.thresholds[places])
    return places - nodes


def predicted(
    trees: Sequence[Structure], values: NDArray[np.float64], x: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return the sum of the trees' leaves, row t of `values` holding those of tree t, shape (n,)."""
    total = np.zeros(len(x))
    for tree, leaves in zip(trees, values, strict=False):
        total += leaves[leaves_of(tree, x)]
    return total


def targets(name: str, labels: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return labels or targets of a data set scaled to [-1, 1] by the range of its training part."""
    data, _, _ = loaded(name)
    low, high = float(data.train_labels.min()), float(data.train_labels.max())
    return (np.asarray(labels, np.float64) - low) / (high - low) * 2.0 - 1.0
