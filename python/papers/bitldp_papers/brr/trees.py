"""Boosted regression trees whose leaves are perturbed: federated, and by one curator (DPBoost).

Federated: a tree's structure is drawn at random from the public ranges of the features, so it says nothing of
the data and the whole budget goes into the leaves. A client's leaf is the regularised mean of the residuals
of its records there, clipped to a threshold that shrinks from tree to tree (geometric leaf clipping).

DPBoost (BRR, Section 5.4): one curator holds all records. Each tree is grown on records of its own, so that
all trees together cost what one does; half of that goes into the splits, level by level, and half into the
leaves. Source of both: Li, Wu, Wen and He, "Privacy-preserving gradient boosting decision trees", AAAI 2020.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import bitldp
import numpy as np
from bitldp.base import checks
from bitldp.channels import Matrix
from bitldp.federated import DecodingStrategy, UpdateCodec, to_record
from bitldp.mechanism.base import Mechanism
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray

from bitldp_papers.brr.settings import BRRSettings, needed, privacy
from bitldp_papers.brr.sgd import gain
from bitldp_papers.run.rounds import Mod, Privacy, Round, Rows, Turn
from bitldp_papers.run.share import loaded
from bitldp_papers.run.vectors import Model

__all__ = [
    "LEAVES",
    "Boosted",
    "Structure",
    "Trees",
    "boost",
    "leaf_sensitivity",
    "leaves_of",
    "predicted",
    "structure",
    "targets",
    "tree_sizes",
]

Floats = NDArray[np.float64]

#: Releases of a leaf of DPBoost.
LEAVES = ("brr", "brr-corrected", "laplace", "noiseless")

_ENSEMBLE, _LEAVES = "ensemble", "leaves"  # records of a message
_BINS = 16  # of a feature's public range, between which a split may be
_LARGEST = 1.0  # g*, the largest gradient of a record that is not filtered: targets are of [-1, 1]
_SPLIT = 0.5  # of a tree's budget


@dataclass(frozen=True)
class Structure:
    """The splits of a complete tree, node by node as in a heap.

    Attributes
    ----------
    features : ndarray of int, shape (2**depth - 1,)
        Feature that a node looks at.
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
    node = np.zeros(len(x), np.intp)
    rows = np.arange(len(x))
    for _ in range(nodes.bit_length()):
        node = 2 * node + 1 + (x[rows, tree.features[node]] > tree.thresholds[node])
    return node - nodes


def predicted(
    trees: Sequence[Structure], values: NDArray[np.float64], x: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return the sum of the trees' leaves, row t of `values` holding those of tree t, shape (n,)."""
    total = np.zeros(len(x))
    for tree, leaves in zip(trees, values, strict=False):
        total += leaves[leaves_of(tree, x)]
    return total


def targets(name: str, labels: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return labels or targets of a data set scaled to [-1, 1] by their public range.

    Where there is none it is learned from the training part, which the summary says.
    """
    data, _, _ = loaded(name)
    if data.classes:
        low, high = 0.0, data.classes - 1.0
    else:
        low, high = data.targets or (float(data.train_labels.min()), float(data.train_labels.max()))
    return (np.asarray(labels, np.float64) - low) / (high - low) * 2.0 - 1.0


def mean_error(name: str) -> float:
    """Return the error on test records of the constant that is the mean of the training targets."""
    data, _, _ = loaded(name)
    truth = targets(name, data.test_labels)
    return float(np.sqrt(np.mean(np.square(truth - targets(name, data.train_labels).mean()))))


class Trees(Round[BRRSettings]):
    """One new tree in each round, whose leaves are the clients' mean leaves times the rate."""

    metric = "rmse"

    def initial(self) -> Model:
        return [np.zeros((self.settings.rounds, 1 << self.settings.depth))]

    def privacy(self) -> Privacy:
        data, _, _ = loaded(self.settings.data)
        return privacy(
            self.settings,
            1 << self.settings.depth,
            self.settings.rounds,
            covers="all records of a client together, against any others",
            not_covered="that the client takes part"
            + (
                "" if data.classes or data.targets else "; the range of the targets, learned from all records"
            ),
        )

    @cached_property
    def _test(self) -> tuple[list[Structure], NDArray[np.float32], Floats]:
        data, _, test = loaded(self.settings.data)
        trees = self._structures(self.settings.rounds, test.shape[1])
        return trees, test, targets(self.settings.data, data.test_labels)

    def _structures(self, count: int, features: int) -> list[Structure]:
        settings = self.settings
        return [structure(settings.seed, number, settings.depth, features) for number in range(1, count + 1)]

    def scores(self, model: Sequence[NDArray[Any]]) -> Mapping[str, float]:
        trees, test, truth = self._test
        return {"rmse": float(np.sqrt(np.mean(np.square(predicted(trees, model[0], test) - truth))))}

    def constant(self) -> float:
        return mean_error(self.settings.data)

    def clip(self, number: int) -> float:
        """Return the threshold of the leaves of a tree."""
        return float(self.settings.clip * (1.0 - self.settings.shrink) ** (number - 1))

    def codec(self, number: int) -> UpdateCodec:
        """Return the codec of both sides for the leaves of a tree."""
        return UpdateCodec(
            lambda size: self.settings.build(size, self.settings.rounds),
            clip=self.clip(number),
            norm="linf",
            update="gradient",
            allow_biased=True,
        )

    def _number(self, turn: Turn) -> int:
        """Return the number of a tree: no server has a client grow more than there are."""
        return checks.integer("server-round", turn.number, 1, self.settings.rounds)

    def mod(self, turn: Turn) -> Mod | None:
        if not self.settings.private:
            return None
        spent = needed(self.settings, 1 << self.settings.depth)
        return turn.client.update_mod(self.settings, self.codec(self._number(turn)), spent)

    def train(self, turn: Turn) -> Mapping[str, NDArray[Any]]:
        """Return the leaves of this round's tree, fitted to the residuals of the trees before it."""
        settings, number = self.settings, self._number(turn)
        values = turn.arrays(_ENSEMBLE)[0]
        held = turn.client.holding(settings)
        trees = self._structures(number, held.x.shape[1])
        rest = targets(settings.data, held.y) - predicted(trees[:-1], values, held.x)
        leaf = leaves_of(trees[-1], held.x)
        count, clip = 1 << settings.depth, self.clip(number)
        sums, sizes = np.bincount(leaf, rest, count), np.bincount(leaf, minlength=count)
        return {_LEAVES: np.clip(sums / (sizes + settings.ridge), -clip, clip)}

    def strategy(self, first_round: int, rows: Rows) -> FedAvg:
        return Boosting(self, first_round=first_round, **self.settings.federation())


class Boosting(DecodingStrategy):
    """The server's side of `Trees`: it sends the ensemble, and puts the mean leaves into it."""

    def __init__(self, rounds: Trees, **options: Any) -> None:
        super().__init__(rounds.codec(1), **options)
        self._rounds = rounds
        self._values: Floats = np.zeros(0)
        self._now = 0

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send the ensemble so far, and ask for the leaves of the next tree."""
        self._now = self._turn(server_round)
        self.codec = self._rounds.codec(self._now)
        self._values = arrays.to_numpy_ndarrays()[0]
        asked = to_record({_LEAVES: np.zeros(self._values.shape[1])})
        messages = list(super().configure_train(server_round, asked, config, grid))
        for message in messages:
            message.content[_ENSEMBLE] = ArrayRecord({"000": Array(self._values)})
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Put the mean leaves into the ensemble."""
        settings = self._rounds.settings
        if settings.private:
            arrays, metrics = super().aggregate_train(server_round, replies)
        else:
            arrays, metrics = FedAvg.aggregate_train(self, server_round, replies)
        if arrays is None:
            return None, metrics
        values = self._values.copy()
        values[self._now - 1] = settings.rate * arrays.to_numpy_ndarrays()[0]
        return ArrayRecord({"000": Array(values)}), metrics


@dataclass(frozen=True)
class Boosted:
    """Trees, and the numbers that their leaves add to a prediction.

    Attributes
    ----------
    trees : tuple of Structure
    values : ndarray of float64, shape (trees, 2**depth)
        Of each leaf.
    """

    trees: tuple[Structure, ...]
    values: Floats

    def predict(self, x: NDArray[np.float32]) -> Floats:
        """Return the sum of the trees' leaves, shape (n,)."""
        return predicted(self.trees, self.values, x)


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
    leaves : {"brr", "brr-corrected", "laplace", "noiseless"}
        Release of a leaf; "brr-corrected" divides BRR's by its public gain about 0, which the paper does not
        do; "noiseless" takes the best splits and the leaves as they are.
    trees, depth : int
        Number of trees, and depth of each.
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
    grown: list[Structure] = []
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
        leaf = leaves_of(tree, x[some])
        sums = np.bincount(leaf, slopes, 1 << depth)
        sizes = np.bincount(leaf, minlength=1 << depth)
        wide = leaf_sensitivity(turn, shrinkage, ridge) / 2.0
        plain = -sums / (sizes + ridge)
        if leaves == "noiseless":
            values[turn - 1] = shrinkage * plain
        else:
            mechanism = _leaf(leaves, (1.0 - _SPLIT) * epsilon, wide, points)
            released = mechanism.decode(mechanism.randomize(np.clip(plain, -wide, wide), rng=rng))
            left = gain(mechanism) if leaves == "brr-corrected" else 1.0
            values[turn - 1] = shrinkage / left * np.asarray(released, np.float64)
        grown.append(tree)
        scores += values[turn - 1][leaves_of(tree, x)]
    return Boosted(tuple(grown), values)


def _leaf(leaves: str, epsilon: float, wide: float, points: int) -> Mechanism:
    """Return the mechanism of a leaf of [-wide, wide]."""
    if leaves == "laplace":
        return bitldp.Laplace(epsilon=epsilon, interval=(-wide, wide))
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
        split = int(gains.argmax()) if np.isinf(epsilon) else _drawn(gains.ravel(), epsilon, rng)
        chosen[node], cuts[node] = divmod(split, _BINS - 1)
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
    """Return an index with chance proportional to e^(epsilon gain/(2 * 3 g*^2)), from integer weights."""
    weights = np.exp((gains - gains.max()) * (epsilon / (6.0 * _LARGEST**2)))
    table = Matrix((weights / weights.sum())[None])
    return int(table.randomize(np.zeros(1, np.uint8), None, None, rng.bytes(32), "codes", None, 1, 0)[0])
