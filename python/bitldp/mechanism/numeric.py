"""Base of the numeric mechanisms: how a record's budget is spent on its numbers."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar, Literal

from bitldp.base import checks
from bitldp.mechanism.base import Takes
from bitldp.mechanism.means import Means
from bitldp.mechanism.parameters import Budget, Features, Flag, Interval, Unit, one_of
from bitldp.privacy import Guarantee, composed, share
from bitldp.release.base import Release

Spend = Annotated[Literal["split", "sample"], one_of("split", "sample")]

_BUDGET_OF_ONE = 2.5  # what a sampled coordinate is given, about: Wang et al., ICDE 2019


@dataclass(frozen=True, eq=False, repr=False)
class Numeric(Means):
    """Base of the mechanisms that release numbers of an interval with letters whose mean is the number."""

    _: KW_ONLY
    epsilon: Budget
    features: Features = 1
    spend: Spend = "split"
    k: int | None = None
    clip: Flag = True
    unit: Unit = "record"
    interval: Interval = (-1.0, 1.0)

    _takes: ClassVar[Takes | None] = "reals"

    @abstractmethod
    def _released(self, epsilon: float, interval: tuple[float, float]) -> Release:
        """Return the release of one number at an exact epsilon."""

    def _build(self) -> None:
        k = None if self.spend != "sample" and self.k is None else self._sampled()
        release, guarantee = self._promise(self.epsilon, k or self.features, self.interval)
        spread = release.spread
        if k is not None and spread is not None:
            # A coordinate is sampled with probability k/d, its letter's deviation from the middle then scaled
            # by d/k: the second moment grows by (k/d) (d/k)^2.
            spread = spread.scaled(self.features / k)
        self._set(k=k, _release=release, _ends=self.interval, _spread=spread, _guarantee=guarantee)

    def _promise(
        self, epsilon: float, parts: int, interval: tuple[float, float]
    ) -> tuple[Release, Guarantee]:
        """Return the release of one of a record's `parts` numbers, and what it promises."""
        release = self._released(share(epsilon, parts) if self.unit == "record" else epsilon, interval)
        exact = release.epsilon
        return release, Guarantee.judge(epsilon, (exact, exact, composed(exact, parts)), unit=self.unit)

    def _sampled(self) -> int | None:
        """Return how many coordinates of a record are released; None where all are."""
        if self.spend != "sample":
            if self.k is not None:
                raise ValueError(
                    f"k: is for spend='sample'; with spend={self.spend!r} every feature is released"
                )
            return None
        if self.k is not None:
            return checks.integer("k", self.k, 1, self.features)
        if self.unit == "feature":
            raise ValueError(
                "k: must be given with unit='feature', which sets no budget of a record to derive it"
            )
        return sampled_features(self.epsilon, self.features)


def sampled_features(epsilon: float, features: int) -> int:
    """Return how many of a record's features are sampled by default: max(1, min(d, floor(epsilon/2.5)))."""
    return max(1, min(features, math.floor(epsilon / _BUDGET_OF_ONE)))
