"""A tree of counts that must add up: the consistent estimate of least variance, and what it weighs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Consistency", "Tree"]

Rows = NDArray[np.float64]
"""One row a query, one column a node."""


class Tree:
    """Nodes with `branching` children each, down to the leaves; the last of a level may have fewer.

    Parameters
    ----------
    size : int
        Leaves, 2 or more.
    branching : int
        Children of a node, 2 or more.
    """

    def __init__(self, size: int, branching: int) -> None:
        sizes = [size]
        while sizes[0] > branching:
            sizes.insert(0, -(-sizes[0] // branching))
        self.sizes: tuple[int, ...] = tuple(sizes)
        self.branching = branching

    def ancestors(self, leaves: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the node of each level that each leaf is below, shape (n, levels), from the top down."""
        found = [leaves]
        for _ in self.sizes[1:]:
            found.insert(0, found[0] // self.branching)
        return np.stack(found, axis=-1)

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of the children of each node of the level above, on the last axis."""
        starts = np.arange(0, values.shape[-1], self.branching)
        return np.add.reduceat(values, starts, axis=-1)

    def children(self, values: NDArray[np.float64], level: int) -> NDArray[np.float64]:
        """Return the value of the parent of each node of a level, on the last axis."""
        return np.repeat(values, self.branching, axis=-1)[..., : self.sizes[level]]

    def levels(self, leaves: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return the sums of leaves below each node, level by level from the top down."""
        found = [leaves]
        for _ in self.sizes[1:]:
            found.insert(0, self.sums(found[0]))
        return found


class Consistency:
    """Weighted averaging: estimates of all nodes become estimates of the leaves that every sum agrees with.

    Each node is estimated by itself, and by its children; both are averaged by their variances, from the
    leaves up. Then what the children of a node differ from it is shared among them by their variances, from
    the top down, where the sum of all is 1. With independent nodes it is the estimate of least variance; with
    any it has no bias, for where the estimates are right on average so are all averages. Sources: Hay et al.,
    "Boosting the accuracy of differentially private histograms through consistency", VLDB 2010, Section 4;
    Kulkarni, Cormode and Srivastava, "Answering range queries under local differential privacy", VLDB 2019.

    Parameters
    ----------
    tree : Tree
        The tree.
    variances : sequence of float
        Of the estimate of a node, by level from the top down, up to one factor.
    """

    def __init__(self, tree: Tree, variances: Sequence[float]) -> None:
        self.tree = tree
        spread = np.full(tree.sizes[-1], float(variances[-1]))
        self._own: list[NDArray[np.float64]] = [np.ones(tree.sizes[-1])]  # what a node itself weighs
        self._share: list[NDArray[np.float64]] = []  # what a node takes of its parent's difference
        for level in range(len(tree.sizes) - 2, -1, -1):
            below = tree.sums(spread)
            self._share.insert(0, spread / tree.children(below, level + 1))
            own = below / (variances[level] + below)
            self._own.insert(0, own)
            spread = own * variances[level]
        self._share.insert(0, spread / spread.sum())

    def leaves(self, estimates: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the consistent leaves of estimates of all nodes, level by level from the top down."""
        tree = self.tree
        averaged = [np.asarray(estimates[-1])]
        sums: list[NDArray[np.float64]] = []
        for level in range(len(tree.sizes) - 2, -1, -1):
            sums.insert(0, tree.sums(averaged[0]))
            own = self._own[level]
            averaged.insert(0, own * estimates[level] + (1.0 - own) * sums[0])
        found = averaged[0] + (1.0 - averaged[0].sum()) * self._share[0]
        for level in range(1, len(tree.sizes)):
            excess = tree.children(found - sums[level - 1], level)
            found = averaged[level] + excess * self._share[level]
        return found

    def weights(self, queries: Rows) -> list[Rows]:
        """Return what each node's estimate weighs in sums of consistent leaves, but for a constant.

        Parameters
        ----------
        queries : ndarray of float64, shape (m, leaves)
            What each leaf weighs in each sum.

        Returns
        -------
        list of ndarray of float64, shape (m, nodes)
            By level from the top down: `leaves`, backwards.
        """
        tree, last = self.tree, len(self.tree.sizes) - 1
        asked: Rows = queries
        found: list[Rows] = []
        for level in range(last, 0, -1):
            taken = tree.sums(asked * self._share[level])
            found.insert(0, asked - tree.children(taken, level))
            asked = taken
        found.insert(0, asked - (asked * self._share[0]).sum(axis=-1, keepdims=True))
        for level in range(last):
            own = self._own[level]
            found[level + 1] = found[level + 1] + tree.children(found[level] * (1.0 - own), level + 1)
            found[level] = found[level] * own
        return found
