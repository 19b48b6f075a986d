"""Reports of a client's number of examples, which is private, too."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from bitldp.base import checks
from bitldp.base.keys import RandomSource
from bitldp.categorical.responses import GRR
from bitldp.mechanism.base import Mechanism

__all__ = ["Bucketed", "Examples", "Randomized"]

POWERS = tuple(4**power for power in range(13))
"""Default edges of the buckets: 1, 4, 16, ... 4**12."""


@dataclass(frozen=True)
class Bucketed:
    """Bucket of the number of examples: coarser, but not differentially private.

    Parameters
    ----------
    edges : sequence of int
        Ascending, the first one 1 or more; smaller numbers are reported as the first edge.
    """

    edges: Sequence[int] = POWERS

    def __post_init__(self) -> None:
        """Check the edges."""
        edges = tuple(checks.integer("edges", edge, 1) for edge in self.edges)
        if not edges or any(low >= high for low, high in pairwise(edges)):
            raise ValueError("edges: must be ascending, one or more")
        object.__setattr__(self, "edges", edges)

    @property
    def mechanism(self) -> Mechanism | None:
        """Mechanism that releases the bucket, or None."""
        return None

    def bucket(self, count: int) -> int:
        """Return the bucket of a number."""
        return max(0, bisect_right(self.edges, count) - 1)

    def report(self, count: int, rng: RandomSource) -> int:
        """Return the number to report for a number of examples."""
        return self.edges[self.bucket(count)]


@dataclass(frozen=True)
class Randomized(Bucketed):
    """Bucket of the number of examples by randomized response (`bitldp.GRR`), charged in every round.

    Parameters
    ----------
    edges : sequence of int
        Two or more, ascending, the first one 1 or more; smaller numbers count as the first edge.
    epsilon : float
        Exact epsilon of one report.

    Notes
    -----
    Weights that are randomized are right only on average over the population of buckets; as weights of a mean
    they pull it toward equal weights.
    """

    edges: Sequence[int] = POWERS
    epsilon: float = 1.0

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
        if len(self.edges) < 2:
            raise ValueError("edges: two or more are needed")
        GRR(len(self.edges), epsilon=self.epsilon)

    @property
    def mechanism(self) -> GRR:
        """Mechanism that releases the bucket."""
        return GRR(len(self.edges), epsilon=self.epsilon)

    def report(self, count: int, rng: RandomSource) -> int:
        """Return the number to report for a number of examples."""
        released = self.mechanism.randomize([self.bucket(count)], rng=rng)
        return self.edges[int(released[0])]


Examples = Literal["fixed", "exact"] | int | Bucketed
"""Statement of the number of examples: 1, the number itself, a public number, or a bucket."""


def said(examples: Examples, metrics: Mapping[str, Any], rng: RandomSource) -> int:
    """Return the number of examples to report, given the client's metrics."""
    if isinstance(examples, int):
        return examples
    if examples == "fixed":
        return 1
    count = metrics["num-examples"]
    if isinstance(count, bool) or not (math.isfinite(count) and count >= 0 and count == int(count)):
        raise ValueError("num-examples: must be a whole number")
    return examples.report(int(count), rng) if isinstance(examples, Bucketed) else int(count)


def check(examples: Any) -> None:
    """Refuse anything but `Examples`."""
    if isinstance(examples, Bucketed):
        return
    if isinstance(examples, str):
        checks.choice("examples", examples, ("fixed", "exact"))
        return
    checks.integer("examples", examples, 1)
