"""Records whose attributes share one budget: all of them, or those that are drawn for a record."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from bitldp.base import checks
from bitldp.mechanism.attributes.base import Attributes
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import Guarantee, added, composed, share

__all__ = ["SharedBudget"]


class SharedBudget(Attributes):
    """Base of the records whose budget is divided among the attributes that are released.

    Not a dataclass: a subclass calls `_spend` while it is built, and says what `_of` and `_mean_of` are.
    """

    @abstractmethod
    def _of(self, epsilon: float) -> list[Any]:
        """Return the mechanisms of all attributes, each at a budget."""

    @abstractmethod
    def _mean_of(self, parts: Sequence[Any], scale: float) -> float:
        """Return the mean variance of attributes that are released with the chance 1/scale."""

    def _sampled(self, count: int) -> int | None:
        """Return how many attributes of a record are released; None where all are."""
        if self.spend == "split":
            if self.k is not None:
                raise ValueError("k: is for spend='sample'; with spend='split' every attribute is released")
            return None
        if self.k is not None:
            return checks.integer("k", self.k, 1, count)
        best, least = 1, math.inf
        for k in range(1, count + 1 if self.epsilon > 0.0 else 1):
            result = self._mean_of(self._of(share(self.epsilon, k)), count / k)
            if result > least:  # more budget for fewer, or less for more: there is one summit
                break
            best, least = k, result
        return best

    def _spend(self, count: int) -> Sequence[Mechanism]:
        """Share the budget among `count` attributes; return the mechanism of each."""
        k = self._sampled(count)
        parts = self._of(share(self.epsilon, k or count))
        exact = sorted((each.guarantee.record for each in parts), reverse=True)
        alike = exact[0] == exact[-1]
        released = k or count
        guarantee = Guarantee.judge(
            self.epsilon,
            (
                max(each.guarantee.bit for each in parts),
                exact[0],
                composed(exact[0], released) if alike else added(*exact[:released]),
            ),
            given="; ".join(dict.fromkeys(each.guarantee.given for each in parts if each.guarantee.given)),
        )
        self._set(k=k, _guarantee=guarantee)
        self._keep(parts)
        return parts

    def mean_variance(self) -> float:
        """Return the mean `variance` over entries and uniform inputs; see `Mechanism.mean_variance`."""
        return self._mean_of(self._parts, self._scale)
