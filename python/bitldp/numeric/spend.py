"""What the numeric mechanisms share: how a record's budget is spent, and how its numbers are released."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal

from bitldp.base import checks
from bitldp.numeric.unbiased import Released
from bitldp.privacy import Guarantee, Unit, composed, share
from bitldp.release.base import Interval, Scalar, checked_interval

Spend = Literal["split", "sample", "cube"]  # the last one is for those that list it in _spends

_BUDGET_OF_ONE = 2.5  # what a sampled coordinate is given, about: Wang et al., ICDE 2019


@dataclass(frozen=True, eq=False, repr=False)
class Numeric(Released):
    """Base of the mechanisms that release numbers of an interval with letters whose mean is the number."""

    epsilon: float
    _: KW_ONLY
    features: int = 1
    spend: Spend = "split"
    k: int | None = None
    clip: bool = True
    unit: Unit = "record"

    _spends: ClassVar[tuple[str, ...]] = ("split", "sample")

    @abstractmethod
    def _release(self, epsilon: float, interval: Interval) -> Scalar:
        """Return the release of one number at an exact epsilon."""

    def _settle(self, interval: Interval) -> None:
        """Check the parameters, build the release of one number, and compose its guarantee."""
        epsilon = checks.budget("epsilon", self.epsilon)
        features = checks.count("features", self.features, 1)
        checks.choice("spend", self.spend, self._spends)
        checks.choice("unit", self.unit, ("record", "feature"))
        clip = checks.flag("clip", self.clip)
        k = self._sampled(epsilon, features)
        scalar, guarantee = self._promise(epsilon, features if k is None else k, interval)
        spread = scalar.spread
        if k is not None and spread is not None:
            # A coordinate is sampled with probability k/d, its letter's deviation from the middle then scaled
            # by d/k: the second moment grows by (k/d) (d/k)^2.
            spread = spread.scaled(features / k)
        self._set(
            epsilon=epsilon,
            features=features,
            k=k,
            clip=clip,
            _scalar=scalar,
            _ends=interval,
            _spread=spread,
            _guarantee=guarantee,
        )

    def _promise(self, epsilon: float, parts: int, interval: Interval) -> tuple[Scalar, Guarantee]:
        """Return the release of one of a record's `parts` numbers, and what it promises."""
        scalar = self._release(share(epsilon, parts) if self.unit == "record" else epsilon, interval)
        exact = scalar.epsilon
        return scalar, Guarantee.judge(epsilon, (exact, exact, composed(exact, parts)), unit=self.unit)

    def _sampled(self, epsilon: float, features: int) -> int | None:
        """Return how many coordinates of a record are released; None where all are."""
        if self.spend != "sample":
            if self.k is not None:
                raise ValueError(
                    f"k: is for spend='sample'; with spend={self.spend!r} every feature is released"
                )
            return None
        if self.k is not None:
            return checks.integer("k", self.k, 1, features)
        if self.unit == "feature":
            raise ValueError(
                "k: must be given with unit='feature', which sets no budget of a record to derive it"
            )
        return max(1, min(features, math.floor(epsilon / _BUDGET_OF_ONE)))


@dataclass(frozen=True, eq=False, repr=False)
class OnInterval(Numeric):
    """Base of those that are given their interval as a pair."""

    _: KW_ONLY
    interval: tuple[float, float] = (-1.0, 1.0)

    def _build(self) -> None:
        interval = checked_interval(self.interval)
        self._set(interval=interval)
        self._settle(interval)
