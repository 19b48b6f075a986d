"""Shares of ranges from reports about the nodes of a tree: consistent estimates and standard errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.estimate.estimates import LIARS, Estimate
from bitldp.mechanism.attributes.base import AttributesAccumulator

__all__ = [
    "MOST_LEAVES",
    "Consistency",
    "NodeLaw",
    "RangeAccumulator",
    "Tree",
    "furthest",
    "inside",
    "sets_law",
    "spread_of",
    "typical_ends",
    "typical_spread",
]

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
        result = [leaves]
        for _ in self.sizes[1:]:
            result.insert(0, result[0] // self.branching)
        return np.stack(result, axis=-1)

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of the children of each node of the level above, on the last axis."""
        starts = np.arange(0, values.shape[-1], self.branching)
        return np.add.reduceat(values, starts, axis=-1)

    def children(self, values: NDArray[np.float64], level: int) -> NDArray[np.float64]:
        """Return the value of the parent of each node of a level, on the last axis."""
        return np.repeat(values, self.branching, axis=-1)[..., : self.sizes[level]]

    def levels(self, leaves: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return the sums of leaves below each node, level by level from the top down."""
        result = [leaves]
        for _ in self.sizes[1:]:
            result.insert(0, self.sums(result[0]))
        return result


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
        self._own: list[NDArray[np.float64]] = [np.ones(tree.sizes[-1])]  # weight of a node itself
        self._share: list[NDArray[np.float64]] = []  # share of a node in its parent's difference
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
        result = averaged[0] + (1.0 - averaged[0].sum()) * self._share[0]
        for level in range(1, len(tree.sizes)):
            excess = tree.children(result - sums[level - 1], level)
            result = averaged[level] + excess * self._share[level]
        return result

    def weights(self, queries: Rows) -> list[Rows]:
        """Return the weight of each node's estimate in sums of consistent leaves, but for a constant.

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
        result: list[Rows] = []
        for level in range(last, 0, -1):
            taken = tree.sums(asked * self._share[level])
            result.insert(0, asked - tree.children(taken, level))
            asked = taken
        result.insert(0, asked - (asked * self._share[0]).sum(axis=-1, keepdims=True))
        for level in range(last):
            own = self._own[level]
            result[level + 1] = result[level + 1] + tree.children(result[level] * (1.0 - own), level + 1)
            result[level] = result[level] * own
        return result


MOST_LEAVES = 4096
"""Leaves whose standard errors are still found one by one."""

_TYPICAL, _FEW = 24, 8  # ends of ranges whose variances are averaged, and of very many values
_MANY = 1 << 16
_BLENDED = 4.0  # records of any value that are counted with those of a standard error
_BLOCK = 1 << 21  # weights that are held at once: 16 MB a level


class NodeLaw(NamedTuple):
    """Chances that a report counts for nodes of its level, one by one and two together.

    Attributes
    ----------
    own, other : float
        Chance that it counts for the node that the record is below, and for another one.
    with_own, others : float
        Chance that it counts for both of two nodes, one of which the record is below, or none (the mean over
        all records that are below neither).
    """

    own: float
    other: float
    with_own: float
    others: float

    def node(self) -> float:
        """Return the variance of a report's indicator of a node that nobody is below."""
        return self.other * (1.0 - self.other) / (self.own - self.other) ** 2

    def variance(self, weights: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variance of one report's weighted indicators, over random bits and records.

        Parameters
        ----------
        weights : ndarray of float64, shape (m, nodes)
            What each node weighs.
        shares : ndarray of float64, shape (nodes,)
            Share of the records below each node; they sum to 1.

        Notes
        -----
        With S the sum of the weights w_v of the nodes that a report counts for, and W_k the sum of all w_v^k,
        a record below x has E[S] = w_x p + (W_1 - w_x) q and

            E[S^2] = w_x^2 p + (W_2 - w_x^2) q + 2 w_x (W_1 - w_x) r + ((W_1 - w_x)^2 - W_2 + w_x^2) s

        for p, q, r, s the four chances. Both are averaged over records; the indicators are S/(p - q), but for
        a constant.
        """
        squares = np.square(weights)
        one, met = weights.sum(axis=-1), weights @ shares
        return np.maximum(self._joint(one, one, met, met, squares.sum(axis=-1), squares @ shares), 0.0)

    def of_counts(self, counts: NDArray[Any], size: int) -> NDArray[np.float64]:
        """Return the variance of a report's indicators of so many of `size` nodes, all being as frequent."""
        one, met = counts.astype(np.float64), counts / size
        return np.maximum(self._joint(one, one, met, met, one, met), 0.0)

    def covariance(self, weights: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the covariances of such sums, shape (m, m); its diagonal is `variance`."""
        one, met = weights.sum(axis=-1), weights @ shares
        products = weights @ weights.T
        alike = bool((shares == shares[0]).all())  # but for the last one, where the leaves do not fill a tree
        met_twice = shares[0] * products if alike else (weights * shares) @ weights.T
        return self._joint(one[:, None], one, met[:, None], met, products, met_twice)

    def _joint(self, one: Any, other_one: Any, met: Any, other_met: Any, two: Any, met_twice: Any) -> Any:
        p, q, r, s = self
        mean, other_mean = met * p + (one - met) * q, other_met * p + (other_one - other_met) * q
        crossed = one * other_met + other_one * met
        second = met_twice * p + (two - met_twice) * q
        second = second + r * (crossed - 2.0 * met_twice)
        second = second + s * (one * other_one - two - crossed + 2.0 * met_twice)
        return (second - mean * other_mean) / (p - q) ** 2


def sets_law(p: float, q: float, cells: int, width: int) -> NodeLaw:
    """Return the chances that the reports of a design count for one category, and for two together.

    Parameters
    ----------
    p, q : float
        Chances that a report counts for the category that a record has, and for another one.
    cells, width : int
        A report counts for `width` categories, one of `cells` sets of them; or for those, of `width` sets of
        `cells`, that hold the reported cell. Any two share width (width - 1)/(cells - 1) on average.

    Notes
    -----
    So a report that counts for one counts for another, too, with the share (width - 1)/(cells - 1). All sets
    are as likely over all records, so the chance that a report counts for two given categories, summed over
    the records, is what two sets share. Width 1 is randomized response: a report counts for one alone.
    """
    shared = width * (width - 1) / (cells - 1)
    with_own = p * shared / width
    return NodeLaw(p, q, with_own, (shared - 2.0 * with_own) / (cells - 2) if cells > 2 else 0.0)


def typical_ends(size: int, many: int = _MANY) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return starts and stops of ranges between ends that are spread evenly over so many values.

    They are 24 at most, and 8 of more than `many` values.
    """
    ends = _even_ends(size, many)
    first, second = np.triu_indices(len(ends), 1)
    return ends[first], ends[second]


def _even_ends(size: int, many: int = _MANY) -> NDArray[np.int64]:
    count = min(size + 1, _TYPICAL if size <= many else _FEW)
    return np.unique(np.linspace(0, size, count).round().astype(np.int64))


def typical_spread(consistency: Consistency, laws: tuple[NodeLaw, ...]) -> NDArray[np.float64]:
    """Return n times the variances of `typical_ends`, all values and levels being as frequent.

    A range is what is below its stop without what is below its start, and a variance is a quadratic form: so
    the covariances of the ends tell all of them, which are a tenth as many queries.
    """
    size = consistency.tree.sizes[-1]
    ends = _even_ends(size)
    shares = consistency.tree.levels(np.full(size, 1.0 / size))
    below = (np.arange(size) < ends[1:-1, None]).astype(np.float64)  # below the others is nothing, or all
    joint = np.zeros((len(ends),) * 2)
    for law, weights, known in zip(laws, consistency.weights(below), shares, strict=True):
        joint[1:-1, 1:-1] += law.covariance(weights, known) * len(laws)
    own = np.diagonal(joint)
    first, second = np.triu_indices(len(ends), 1)
    result: NDArray[np.float64] = np.maximum(own[first] + own[second] - 2.0 * joint[first, second], 0.0)
    return result


def inside(starts: NDArray[Any], stops: NDArray[Any], size: int) -> Iterator[NDArray[np.float64]]:
    """Yield the sums that ranges are, as 0 and 1 for each of `size` values, some ranges at a time."""
    positions, step = np.arange(size), max(1, _BLOCK // size)
    for first in range(0, len(starts), step):
        those = slice(first, first + step)
        yield ((positions >= starts[those, None]) & (positions < stops[those, None])).astype(np.float64)


def spread_of(
    consistency: Consistency,
    laws: tuple[NodeLaw, ...],
    queries: NDArray[np.float64],
    shares: NDArray[np.float64],
    reports: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the variance of sums of consistent leaves.

    Parameters
    ----------
    consistency : Consistency
        How they are made.
    laws : tuple of NodeLaw
        Of the reports about each level.
    queries : ndarray of float64, shape (m, leaves)
        What each leaf weighs in each sum.
    shares : ndarray of float64, shape (leaves,)
        Share of the records at each leaf: zero or more, of sum 1.
    reports : ndarray of float64, shape (levels,)
        How many reports there are about each level.
    """
    known = consistency.tree.levels(shares)
    result = np.zeros(len(queries))
    step = max(1, _BLOCK // queries.shape[1])
    for start in range(0, len(queries), step):
        weights = consistency.weights(queries[start : start + step])
        for level, law in enumerate(laws):
            result[start : start + step] += law.variance(weights[level], known[level]) / reports[level]
    return result


def furthest(
    consistency: Consistency,
    laws: tuple[NodeLaw, ...],
    sizes: Sequence[tuple[int, int]],
    queries: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return how far from the honest share a report may decode to at most, for sums of consistent leaves.

    Parameters
    ----------
    consistency, laws, queries
        As of `spread_of`.
    sizes : sequence of (int, int)
        For how few and for how many nodes a report about each level counts.

    Returns
    -------
    ndarray of float64, shape (m,)
        A bound: a report counts for the nodes of the largest weights, or of the least, whichever they are.
        One level of L has 1/L of the honest reports, and as many of the lies as liars like: of a share s of
        liars, at most L s of the reports of one level, and no more of all levels together. L times is said.
    """
    result = np.zeros(len(queries))
    for level, weights in enumerate(consistency.weights(queries)):
        p, q = laws[level].own, laws[level].other
        ordered = np.sort(weights, axis=1)
        sums = np.pad(np.cumsum(ordered, axis=1), ((0, 0), (1, 0)))
        all_of, (few, many) = sums[:, -1], sizes[level]
        nodes = ordered.shape[1]
        most = np.maximum(all_of - sums[:, nodes - many], all_of - sums[:, nodes - few])
        least = np.minimum(sums[:, many], sums[:, few])
        up = (most - q * all_of) / (p - q) - ordered[:, 0]
        down = ordered[:, -1] - (least - q * all_of) / (p - q)
        result = np.maximum(result, np.maximum(up, down))
    return result * len(laws)


class RangeAccumulator(AttributesAccumulator):
    """Counts of reports about each level of a tree, of which shares of ranges are estimated.

    Parameters
    ----------
    mechanism : Hierarchy
        Whose reports are accumulated.
    consistency : Consistency
        How estimates of all levels become one.
    laws : tuple of NodeLaw
        Of the reports about each level.
    """

    kind = "ranges"

    mechanism: Any  # a `Hierarchy`, which stands above this file

    def __init__(self, mechanism: Any, consistency: Consistency, laws: tuple[NodeLaw, ...]) -> None:
        super().__init__(mechanism)
        self._consistency, self._laws = consistency, laws
        self._size = consistency.tree.sizes[-1]

    def _leaves(self) -> NDArray[np.float64]:
        """Return the consistent share of every leaf."""
        if not self.n:
            raise ValueError("reports: at least one is needed for an estimate")
        for level, each in enumerate(self.attributes):
            if not each.n:
                raise ValueError(f"reports: none is about level {level} of {len(self.attributes)}")
        return self._consistency.leaves([each.estimate().value for each in self.attributes])

    def _stderr(self, queries: NDArray[np.float64], leaves: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the standard errors of sums of leaves, at the shares that are estimated.

        A few more records of any value are counted with them: of few records some values are missing by
        chance, and a share of 0 would have no error (as Agresti and Coull count them, 1998).
        """
        shares = np.maximum(leaves, 0.0)
        reports = np.array([each.n for each in self.attributes], np.float64)
        known = float(reports.min())
        shares = (known * shares / shares.sum() + _BLENDED / len(shares)) / (known + _BLENDED)
        spread = spread_of(self._consistency, self._laws, queries, shares, reports)
        return np.sqrt(spread)

    def estimate(self, *, project: bool = False) -> Estimate:
        """Estimate the share of every value; see `Hierarchy.estimate_frequencies`."""
        if project:
            raise ValueError("project: not supported, for shares are consistent with those of ranges")
        if self._size > MOST_LEAVES:
            raise ValueError(
                f"categories: {self._size} values are too many to be asked for one by one; {MOST_LEAVES} "
                "are not. Ask for ranges of them"
            )
        leaves = self._leaves()
        every = np.arange(self._size)
        return Estimate(
            leaves,
            self._stderr(np.eye(self._size), leaves),
            self.n,
            influence=self._moved(every, every + 1),
        )

    def estimate_sum(self, weights: ArrayLike) -> Estimate:
        """Estimate the sums of the shares of all values, each times a weight: a mean, where these are values.

        Parameters
        ----------
        weights : array_like of float, shape (m, categories)
            What each value counts for in each sum.

        Returns
        -------
        Estimate
            Shape (m,), without bias.

        Raises
        ------
        ValueError, TypeError
            As of `Hierarchy.estimate_range`, and for weights of another shape.
        """
        rows = np.atleast_2d(checks.numbers("weights", weights)).astype(np.float64)
        if rows.ndim != 2 or rows.shape[1] != self._size:
            raise ValueError(f"weights: shape must be (m, {self._size}), got {rows.shape}")
        leaves = self._leaves()
        sizes = [each._support_sizes() for each in self.mechanism.mechanisms]
        moved = LIARS * float(furthest(self._consistency, self._laws, sizes, rows).max(initial=0.0))
        return Estimate(rows @ leaves, self._stderr(rows, leaves), self.n, influence=moved)

    def _moved(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> float:
        """Return how far liars could have moved the share of any of some ranges."""
        return float(self.mechanism.range_influence(LIARS, starts, stops).max(initial=0.0))

    def estimate_range(self, start: ArrayLike, stop: ArrayLike) -> Estimate:
        """Estimate the share of records of ranges; see `Hierarchy.estimate_range`."""
        starts, stops = np.broadcast_arrays(
            checks.codes("start", start, self._size + 1), checks.codes("stop", stop, self._size + 1)
        )
        if (starts > stops).any():
            raise ValueError("stop: must not be below start")
        leaves = self._leaves()
        below = np.concatenate([[0.0], np.cumsum(leaves)])
        value = np.asarray(below[stops] - below[starts])
        spread = self._ranges(starts, stops, leaves)
        return Estimate(value, spread, self.n, influence=self._moved(starts, stops))

    def _ranges(
        self, starts: NDArray[Any], stops: NDArray[Any], leaves: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the standard errors of ranges, in their shape."""
        blocks = inside(starts.ravel(), stops.ravel(), self._size)
        result = [self._stderr(queries, leaves) for queries in blocks]
        return np.concatenate([np.zeros(0), *result]).reshape(starts.shape)

    def estimate_quantile(self, q: ArrayLike) -> Estimate:
        """Estimate quantiles; see `Hierarchy.estimate_quantile`."""
        shares = checks.numbers("q", q).astype(np.float64)
        if not ((shares >= 0.0) & (shares <= 1.0)).all():  # written so that NaN fails
            raise ValueError("q: must be from 0 to 1")
        leaves = self._leaves()
        below = np.maximum.accumulate(np.concatenate([[0.0], np.cumsum(leaves)]))
        edges = np.arange(self._size + 1, dtype=np.float64)
        value = np.asarray(np.interp(shares, below, edges))
        stops = np.rint(value).astype(np.int64)
        spread = self._ranges(np.zeros_like(stops), stops, leaves)
        # Where the distribution function, moved by its own standard error, would have crossed the share.
        ends = [np.interp(shares + sign * spread, below, edges) for sign in (-1.0, 1.0)]
        return Estimate(value, np.asarray(ends[1] - ends[0]) / 2.0, self.n)
