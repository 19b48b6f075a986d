"""DPBoost: boosted regression trees under central privacy, with Laplace or BRR leaves (BRR, Section 5.4).

One curator holds all records. Each tree is grown on records of its own, so that all trees together cost
what one does; half of that goes into the splits, level by level, and half into the leaves. Source: Li, Wu,
Wen and He, "Privacy-preserving gradient boosting decision trees", AAAI 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import bitldp
import numpy as np
from bitldp.base import checks
from bitldp.channels import Matrix
from bitldp.mechanism.base import Mechanism
from numpy.typing import NDArray

from bitldp_papers.models.trees import Structure, leaves_of

__all__ = ["LEAVES", "Boosted", "boost", "leaf_sensitivity", "tree_sizes"]

Floats = NDArray[np.float64]
LEAVES = ("brr", "laplace", "noiseless")
_BINS = 16  # of a feature's public range, between which a split may be
_LARGEST = 1.0  # g*, the largest gradient of a record that is not filtered: targets are of [-1, 1]
_SPLIT = 0.5  # of a tree's budget


@dataclass(frozen=True)
class Boosted:
    """Trees and what a record gets from each.

    Attributes
    ----------
    trees : tuple of Structure
    values : ndarray of float64, shape (trees, 2**depth)
        What each leaf adds to a prediction.
    """

    trees: tuple[Structure, ...]
    values: Floats

    def predict(self, x: NDArray[np.float32]) -> Floats:
        """Return the sum of the trees' leaves, shape (n,)."""
        total = np.zeros(len(x))
        for tree, leaves in zip(self.trees, self.values, strict=True):
            total += leaves[leaves_of(tree, x)]
        return total


def leaf_sensitivity(turn: int, shrinkage: float, ridge: float) -> float:
    """Return min(g*/(1 + lambda), 2 g* (1 - eta)^(t - 1)), by how much a record changes a leaf of tree t."""
    return min(_LARGEST / (1.0 + ridge), 2.0 * _LARGEST * (1.0 - shrinkage) ** (turn - 1))


def tree_sizes(records: int, trees: int, shrinkage: float) -> list[int]:
    """Return how many records each tree is grown on: n eta (1 - eta)^(t - 1)/(1 - (1 - eta)^T)."""
    whole = 1.0 - (1.0 - shrinkage) ** trees
    return [int(records * shrinkage * (1.0 - shrinkage) ** turn / whole) for turn in range(trees)]


def boost(
    x: NDArray[np.float32],
    y: Floats,
    *,
    epsilon: float,
    leaves: str,
    trees: int = 50,
    depth: int = 5,
    shrinkage: float = 0.1,
    ridge: float = 0.1,
    points: int = 21,
    seed: int = 1,
) -> Boosted:
    """Grow an ensemble.

    Parameters
    ----------
    x : ndarray of float32, shape (n, features)
        Of [-1, 1].
    y : ndarray of float64, shape (n,)
        Targets, of [-1, 1].
    epsilon : float
        Budget of the whole ensemble, above zero. Neighbours: the same records with one more, whose tree is
        drawn without looking at it.
    leaves : {"brr", "laplace", "noiseless"}
        What releases a leaf; "noiseless" takes the best splits and the leaves as they are.
    trees, depth : int
        How many, and how deep each is.
    shrinkage, ridge : float
        eta, in (0, 1), also the rate of the ensemble; lambda, above zero.
    points : int
        Of BRR.
    seed : int
        Of everything that is drawn; for experiments.

    Returns
    -------
    Boosted

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range.

    Notes
    -----
    A tree's gradients above g* = 1 are filtered out. A level's split is drawn by the exponential mechanism
    (through a table of integer weights) with sensitivity 3 g*^2 of the gain
    G_L^2/(n_L + lambda) + G_R^2/(n_R + lambda), a leaf -G/(n + lambda) is clipped to a range as wide as
    `leaf_sensitivity` and released by a mechanism whose epsilon is of any two values of that range.
    """
    checks.choice("leaves", leaves, LEAVES)
    checks.positive("epsilon", epsilon)
    rng = np.random.default_rng(np.random.SeedSequence([seed, 0xB0057]))
    order = rng.permutation(len(x))
    bins = np.clip(((np.asarray(x, np.float64) + 1.0) * (_BINS / 2.0)).astype(np.intp), 0, _BINS - 1)
    found: list[Structure] = []
    values = np.zeros((trees, 1 << depth))
    scores, start = np.zeros(len(x)), 0
    for turn, size in enumerate(tree_sizes(len(x), trees, shrinkage), 1):
        some = order[start : start + size] if leaves != "noiseless" else order
        start += size
        slopes = scores[some] - y[some]
        kept = np.abs(slopes) <= _LARGEST
        some, slopes = some[kept], slopes[kept]
        budget = np.inf if leaves == "noiseless" else _SPLIT * epsilon / depth
        tree = _grown(bins[some], slopes, depth, budget, ridge, rng)
        places = leaves_of(tree, x[some])
        sums = np.bincount(places, slopes, 1 << depth)
        sizes = np.bincount(places, minlength=1 << depth)
        wide = leaf_sensitivity(turn, shrinkage, ridge) / 2.0
        plain = -sums / (sizes + ridge)
        if leaves == "noiseless":
            values[turn - 1] = shrinkage * plain
        else:
            mechanism = _leaf(leaves, (1.0 - _SPLIT) * epsilon, wide, points)
            released = mechanism.decode(mechanism.randomize(np.clip(plain, -wide, wide), rng=rng))
            values[turn - 1] = shrinkage * np.asarray(released, np.float64)
        found.append(tree)
        scores += values[turn - 1][leaves_of(tree, x)]
    return Boosted(tuple(found), values)


def _leaf(leaves: str, epsilon: float, wide: float, points: int) -> Mechanism:
    """Return what releases a leaf of [-wide, wide]."""
    if leaves == "laplace":
        return bitldp.Laplace(epsilon, interval=(-wide, wide))
    return bitldp.BRR(points, epsilon=epsilon, interval=(-wide, wide))


def _grown(
    bins: NDArray[np.intp], slopes: Floats, depth: int, epsilon: float, ridge: float, rng: np.random.Generator
) -> Structure:
    """Return a tree of splits between bins: the best ones at infinite epsilon, else drawn by their gains."""
    nodes, features = (1 << depth) - 1, bins.shape[1]
    chosen, cuts = np.zeros(nodes, np.intp), np.zeros(nodes, np.intp)
    at = np.zeros(len(bins), np.intp)
    columns = np.arange(features) * _BINS
    for node in range(nodes):
        mine = np.flatnonzero(at == node)
        cells = (bins[mine] + columns).ravel()
        sums = np.bincount(cells, np.repeat(slopes[mine], features), features * _BINS)
        counts = np.bincount(cells, minlength=features * _BINS)
        gains = _gains(sums.reshape(features, _BINS), counts.reshape(features, _BINS), ridge)
        place = int(gains.argmax()) if np.isinf(epsilon) else _drawn(gains.ravel(), epsilon, rng)
        chosen[node], cuts[node] = divmod(place, _BINS - 1)
        right = bins[mine, chosen[node]] > cuts[node]
        at[mine] = 2 * node + 1 + right
    edges = np.nextafter((cuts + 1) * (2.0 / _BINS) - 1.0, -np.inf)  # a record on an edge is right of it
    return Structure(chosen, edges)


def _gains(sums: NDArray[Any], counts: NDArray[Any], ridge: float) -> Floats:
    """Return the gain of every split, shape (features, bins - 1)."""
    left, number = sums.cumsum(axis=1)[:, :-1], counts.cumsum(axis=1)[:, :-1]
    rest, others = sums.sum(axis=1)[:, None] - left, counts.sum(axis=1)[:, None] - number
    return np.asarray(left**2 / (number + ridge) + rest**2 / (others + ridge))


def _drawn(gains: Floats, epsilon: float, rng: np.random.Generator) -> int:
    """Return a place with chance proportional to e^(epsilon gain/(2 * 3 g*^2)), from integer weights."""
    weights = np.exp((gains - gains.max()) * (epsilon / (6.0 * _LARGEST**2)))
    table = Matrix((weights / weights.sum())[None])
    return int(table.randomize(np.zeros(1, np.uint8), None, None, rng.bytes(32), "codes", None, 1, 0)[0])
