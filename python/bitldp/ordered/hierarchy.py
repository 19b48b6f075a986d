"""The hierarchy: ranges of ordered values, from reports about the nodes of a tree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitldp.base import checks
from bitldp.categorical.blocks import BlockDesign
from bitldp.client.program import ClientProgram
from bitldp.client.record import ClientRecord, Type
from bitldp.estimate.estimates import Estimate
from bitldp.letters.reach import Reach, checked_part
from bitldp.mechanism.attributes.shared import SharedBudget
from bitldp.mechanism.base import Takes
from bitldp.mechanism.described import spreads
from bitldp.mechanism.law import Experiment, Pair
from bitldp.mechanism.parameters import Budget, FieldId, at_least, whole
from bitldp.ordered.ranges import (
    MOST_LEAVES,
    Consistency,
    NodeLaw,
    RangeAccumulator,
    Tree,
    furthest,
    inside,
    sets_law,
    spread_of,
    typical_ends,
    typical_spread,
)
from bitldp.release.base import Call

__all__ = ["Hierarchy"]

_MOST = 1_000_000  # values


@dataclass(frozen=True, eq=False, repr=False)
class Hierarchy(SharedBudget):
    """Hierarchy of ranges: for unbiased shares of any range, and quantiles, of ordered values.

    Values are the leaves of a tree, and each node stands for a range of values. A public random number
    selects the level at which a record answers, with a block design over the nodes of that level.

    Parameters
    ----------
    categories : int
        Values: integers 0 to size - 1, in order; 2 to 1,000,000.
    epsilon : float
        Exact epsilon of a record, finite, zero or more: a record answers once, with all of it.
    branching : int
        Children of a node, B, 2 to 1024. A smaller B means more levels, and so fewer reports about each. A
        larger B means that a range consists of more nodes. From 2 to 6 the errors differ by 10 to 20 %.

    Raises
    ------
    ValueError, TypeError
        For a parameter out of its range; the message names it.

    Notes
    -----
    Neighbouring records hold any two values; which level was drawn is public and independent of the value. A
    report is a pair (indices, codes) of shape (n, 1) each: the level, counted from the top, and the code of
    the mechanism of that level in `attributes`. The estimates of all levels are averaged and made consistent:
    the shares of a node's children add up to its own, and all shares to 1. They are unbiased, so a share may
    be below 0. Standard errors are in closed form, and cover random bits and the sampling of records.
    Sources: Kulkarni, Cormode and Srivastava, "Answering range queries under local differential privacy",
    VLDB 2019; Hay et al., VLDB 2010 (consistency).

    Examples
    --------
    >>> import numpy as np, bitldp
    >>> minutes = np.random.default_rng(1).normal(700.0, 120.0, 100_000).clip(0, 1439).astype(int)
    >>> mechanism = bitldp.Hierarchy(1440, epsilon=2.0)
    >>> reports = mechanism.randomize(minutes, rng=2)
    >>> noon = mechanism.estimate_range(reports, 720, 840)
    >>> bool(abs(noon.value - np.mean((minutes >= 720) & (minutes < 840))) < 4.0 * noon.stderr)
    True
    >>> bool(abs(mechanism.estimate_quantile(reports, 0.5).value - 700.0) < 20.0)
    True
    """

    categories: Annotated[int, at_least(2, _MOST), FieldId("size")]
    _: KW_ONLY
    epsilon: Budget
    branching: Annotated[int, whole(2, 1024)] = 4

    _takes: ClassVar[Takes | None] = "ordered"
    _no_mean: ClassVar[str] = "its reports are about ranges; use estimate_range or estimate_quantile"
    _tree: Tree = field(init=False, repr=False, compare=False)
    _laws: tuple[NodeLaw, ...] = field(init=False, repr=False, compare=False)
    _consistency: Consistency | None = field(init=False, repr=False, compare=False)

    def _build(self) -> None:
        tree = Tree(self.categories, self.branching)
        self._set(_tree=tree, spend="sample", k=1)  # as the parameters of `Attributes`
        oracles = [part for part in self._spend(len(tree.sizes)) if isinstance(part, BlockDesign)]
        laws = tuple(
            sets_law(*each.probabilities(), each.blocks.cells, each.blocks.width) for each in oracles
        )
        informative = self.guarantee.record > 0.0
        consistency = Consistency(tree, [law.node() for law in laws]) if informative else None
        self._set(_laws=laws, _consistency=consistency)

    def _of(self, epsilon: float) -> list[Any]:
        return [BlockDesign(size, epsilon=epsilon) for size in self._tree.sizes]

    @classmethod
    def _usual(cls, epsilon: float, size: int | None = None) -> dict[str, Any]:
        """Return the parameters of an example: a hundred values."""
        return {"epsilon": epsilon, "categories": 100}

    @property
    def levels(self) -> tuple[int, ...]:
        """Number of nodes of each level, from the top down to the values themselves."""
        return self._tree.sizes

    def _ends(self) -> tuple[Any, Any]:
        return 0, self.categories - 1

    def _values(self, record: Any) -> list[Any]:
        value = checks.codes("pair", np.atleast_1d(record), self.categories).astype(np.int64)
        return self._tree.ancestors(value)[0].tolist()

    def extremes(self, pair: Pair | None = None) -> Experiment | None:
        """Return two values, and the law of their reports unless they share a node.

        See `Mechanism.extremes`.
        """
        ends = self._ends() if pair is None else pair
        one, other = map(self._values, ends)
        if any(mine == theirs for mine, theirs in zip(one, other, strict=True)):
            return Experiment(ends, ("one value", "another"))  # a level's law is of two of its nodes
        return super().extremes(pair)

    def _admit(self, x: Any) -> NDArray[Any]:
        values = checks.plain("x", x)
        return values[:, None] if values.ndim == 1 else values  # records of one value, at several levels

    def _program(self, numbers: Type) -> ClientProgram:
        levels = range(len(self.levels) - 1, -1, -1)  # above the values
        cells = tuple(((0, 1, self.branching**level, 1),) for level in levels)
        record = ClientRecord.of_codes(self.categories)
        return replace(super()._program(numbers), record=record, cells=cells)

    def _perturb(self, x: NDArray[Any], call: Call) -> Any:
        if x.ndim > 2 or (x.ndim == 2 and x.shape[1] != 1):
            raise ValueError(f"x: shape must be (n,) or (n, 1), got {x.shape}")
        values = checks.codes("x", x.reshape(-1), self.categories).astype(np.int64)
        return self._released([(0, self._tree.ancestors(values))], len(values), call)

    def _check_informative(self) -> Consistency:
        if self._consistency is None:
            raise self._uninformative("values")
        return self._consistency

    def accumulator(self) -> RangeAccumulator:
        """Return an empty accumulator of all levels; see `Mechanism.accumulator`."""
        return RangeAccumulator(self, self._check_informative(), self._laws)

    def estimate_range(self, reports: Any, start: ArrayLike, stop: ArrayLike) -> Estimate:
        """Estimate the share of the records whose value is at least `start` and below `stop`, without bias.

        Parameters
        ----------
        reports : SampledReports
            Reports of n >= 1 records, as `randomize` gives them.
        start, stop : array_like of int
            Ends of ranges, 0 to size, any shapes that broadcast.

        Returns
        -------
        Estimate
            Shares, in that shape. Multiply them by the number of records to get counts.

        Raises
        ------
        ValueError, TypeError
            If no unbiased decode exists (epsilon 0), for a level without reports, for a report or an end out
            of range, or a `stop` below its `start`.
        """
        return self.accumulator()._filled(reports).estimate_range(start, stop)

    def estimate_quantile(self, reports: Any, q: ArrayLike) -> Estimate:
        """Estimate quantiles: the values below which shares `q` of the records lie; 0.5 is the median.

        Parameters
        ----------
        reports : SampledReports
            As for `estimate_range`.
        q : array_like of float
            Shares, 0 to 1, any shape.

        Returns
        -------
        Estimate
            Shape of `q`: numbers from 0 to size. Records of value v count as spread evenly from v to v + 1.
            The standard error is that of the distribution function at the quantile, divided by its slope.

        Raises
        ------
        ValueError, TypeError
            If no unbiased decode exists (epsilon 0), for a level without reports, for a report or an end out
            of range, or a `stop` below its `start`.
            Also for a `q` out of its range.
        """
        shares = np.asarray(q)  # looked at before the reports are
        return self.accumulator()._filled(reports).estimate_quantile(shares)

    def estimate_frequencies(self, reports: Any, *, project: bool = False) -> Estimate:
        """Estimate the share of every value, without bias and consistent with `estimate_range`.

        Parameters
        ----------
        reports : SampledReports
            As for `estimate_range`.
        project : bool
            Not offered.

        Returns
        -------
        Estimate
            Shape (size,), for a size of at most 4096.

        Raises
        ------
        ValueError, TypeError
            If no unbiased decode exists (epsilon 0), for a level without reports, for a report or an end out
            of range, or a `stop` below its `start`.
            Also for a larger size.
        """
        return self.accumulator()._filled(reports).estimate(project=project)

    def range_variance(self, start: ArrayLike, stop: ArrayLike) -> NDArray[np.float64]:
        """Return n times the variance of the estimated share of a range, in closed form.

        Parameters
        ----------
        start, stop : array_like of int
            Ends of ranges, as in `estimate_range`.

        Returns
        -------
        ndarray of float64
            In the shape that they broadcast to. It assumes that all values are equally frequent and that
            every level has equally many of the n reports. The sampling of records is included.

        Raises
        ------
        ValueError
            If no unbiased decode exists (epsilon 0), or for an end out of range.
        """
        consistency = self._check_informative()
        starts, stops = np.broadcast_arrays(
            checks.codes("start", start, self.categories + 1), checks.codes("stop", stop, self.categories + 1)
        )
        levels, shares = len(self.levels), np.full(self.categories, 1.0 / self.categories)
        reports = np.full(levels, 1.0 / levels)
        result = [
            spread_of(consistency, self._laws, queries, shares, reports)
            for queries in inside(starts.ravel(), stops.ravel(), self.categories)
        ]
        return np.concatenate([np.zeros(0), *result]).reshape(starts.shape)

    def _typical(self) -> NDArray[np.float64]:
        """Return the variances of ranges between ends that are spread evenly over the values."""
        return typical_spread(self._check_informative(), self._laws)

    def _mean_of(self, parts: Sequence[Any], scale: float) -> float:
        return float(self._typical().mean())

    def mean_variance(self) -> float:
        """Return the mean of `range_variance` over ranges whose ends are spread evenly over the values.

        See `Mechanism.mean_variance`.
        """
        return float(self._typical().mean())

    def worst_variance(self) -> float:
        """Return the largest `range_variance` of those ranges; see `Mechanism.worst_variance`."""
        return float(self._typical().max())

    def range_influence(self, share: float, start: ArrayLike, stop: ArrayLike) -> NDArray[np.float64]:
        """Return how far a share of lying clients may move the estimated share of a range, at most.

        Parameters
        ----------
        share : float
            Liars among the clients, 0 to 1.
        start, stop : array_like of int
            Ends of ranges, as in `estimate_range`.

        Returns
        -------
        ndarray of float64
            In the shape that they broadcast to: a bound that holds whatever the honest shares are. Liars
            choose the level of their reports, so the bound grows with the number of levels.

        Raises
        ------
        ValueError
            If no unbiased decode exists (epsilon 0), or for a share or an end out of range.
        """
        consistency, part = self._check_informative(), checked_part("share", share)
        starts, stops = np.broadcast_arrays(
            checks.codes("start", start, self.categories + 1), checks.codes("stop", stop, self.categories + 1)
        )
        sizes = [each._support_sizes() for each in self._parts if isinstance(each, BlockDesign)]
        result = [
            furthest(consistency, self._laws, sizes, queries)
            for queries in inside(starts.ravel(), stops.ravel(), self.categories)
        ]
        return part * np.concatenate([np.zeros(0), *result]).reshape(starts.shape)

    def _reach(self, total: bool = False) -> tuple[Reach]:
        """Return a bound for ranges between ends that are spread evenly over the values."""
        if total:
            raise ValueError(f"{type(self).__name__}: of ranges, whose sums are ranges or overlap")
        return (Reach(np.array([[self._furthest]]), ends=(0.0, 0.0)),)

    @cached_property
    def _furthest(self) -> float:
        return float(self.range_influence(1.0, *typical_ends(self.categories, MOST_LEAVES)).max())

    def _facts(self, users: int | None = None) -> dict[str, Any]:
        """Return the errors of the share of a range; see `Mechanism._facts`."""
        try:
            deviations = {
                "of_the_worst_range": math.sqrt(self.worst_variance()),
                "on_average": math.sqrt(self.mean_variance()),
            }
        except ValueError as error:
            return {"errors": {"unbiased": str(error)}}
        return {"errors": {**spreads("a_range", deviations, users), "levels": len(self.levels)}}
