"""Candidates for each task, one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bitldp.categorical.responses import GRR, WarnerRR
from bitldp.categorical.unary import OUE, SUE
from bitldp.compression import MVU, GeneralizedRR
from bitldp.compression import best_bits as best_response_bits
from bitldp.mechanism.base import Mechanism
from bitldp.mechanism.numeric import sampled_features
from bitldp.numeric import (
    BitBudgets,
    Duchi,
    Hybrid,
    Laplace,
    MinimaxVariance,
    Piecewise,
    PiecewiseSub,
    ThreeOutputs,
)
from bitldp.points.brr import BRR
from bitldp.points.exponential import Exponential
from bitldp.points.lsrr import LSRR
from bitldp.points.optimal import OptimalUtility
from bitldp.privacy import share
from bitldp.record.privunit import HypercubePrivUnit
from bitldp.record.signs import SampledSigns

__all__ = ["REGISTRY", "Maker", "Question"]


@dataclass(frozen=True)
class Question:
    """What is compared: a record, its budget, and what counts; checked, with the defaults filled in."""

    epsilon: float
    features: int
    categories: int
    candidates: Any
    interval: tuple[float, float]
    metric: Any
    criterion: Literal["mean", "worst"]
    thorough: bool


Maker = Callable[[Question], Mechanism]


def _numeric(kind: Any, spend: str, **options: Any) -> Maker:
    def make(s: Question) -> Mechanism:
        if s.features == 1 and spend == "sample":
            raise ValueError("a record of one number has nothing to sample")
        made: Mechanism = kind(s.epsilon, features=s.features, spend=spend, interval=s.interval, **options)
        return made

    return make


def _response(spend: str) -> Maker:
    """Return the maker of GRR on a grid, whose best number of points depends on a number's budget."""

    def make(s: Question) -> Mechanism:
        sampled = sampled_features(s.epsilon, s.features) if spend == "sample" else s.features
        return _numeric(
            GeneralizedRR,
            spend,
            bits=best_response_bits(GeneralizedRR, s.epsilon / sampled, criterion=s.criterion),
        )(s)

    return make


def _fine_mvu(spend: str) -> Maker:
    """Return the maker of MVU in 5 bits, which takes a few seconds the first time at a budget."""

    def make(s: Question) -> Mechanism:
        parts = sampled_features(s.epsilon, s.features) if spend == "sample" else s.features
        if s.epsilon / parts < 1.0:
            raise ValueError("with less than 1 to spend on a number, 3 bits are as good as 5")
        if not s.thorough:
            raise ValueError("takes seconds to design; thorough=True compares it, too")
        return _numeric(MVU, spend, input_bits=6, output_bits=5)(s)

    return make


def _whole(kind: Any) -> Maker:
    """Return the maker of a mechanism that releases a record as a whole."""
    return lambda s: kind(s.features, epsilon=s.epsilon, interval=s.interval)


def _candidate(kind: Any, **options: Any) -> Maker:
    def make(s: Question) -> Mechanism:
        made: Mechanism = kind(
            s.candidates, epsilon=s.epsilon, metric=s.metric, features=s.features, **options
        )
        return made

    return make


def _single(kind: Any) -> Maker:
    """Return the maker of a mechanism of one category a record, which has no features."""

    def make(s: Question) -> Mechanism:
        made: Mechanism = kind(s.categories, epsilon=share(s.epsilon, s.features))
        if s.features > 1:
            raise ValueError(
                f"releases one category; {s.features} of {kind.__name__}({s.categories}, "
                f"epsilon={made.guarantee.record:.6g}), one a feature, have "
                f"mean {made.mean_variance():.4g} and worst {made.worst_variance():.4g}"
            )
        return made

    return make


def _warner(s: Question) -> Mechanism:
    if s.categories != 2 or s.features > 1:
        raise ValueError("is for one answer of two categories")
    return WarnerRR(s.epsilon)


_KINDS: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("Duchi", Duchi, {}),
    ("Piecewise", Piecewise, {}),
    ("PiecewiseSub", PiecewiseSub, {}),
    ("Hybrid", Hybrid, {}),
    ("ThreeOutputs", ThreeOutputs, {}),
    ("Laplace", Laplace, {}),
    ("BitBudgets", BitBudgets, {}),
    ("MinimaxVariance", MinimaxVariance, {}),
    ("MVU 3 -> 3 bits", MVU, {"input_bits": 3, "output_bits": 3}),
)

REGISTRY: Mapping[str, tuple[tuple[str, Maker], ...]] = {
    "mean": (
        *((f"{name}, {how}", _numeric(kind, how, **more)) for name, kind, more in _KINDS
          for how in ("split", "sample")),
        *((f"MVU 6 -> 5 bits, {how}", _fine_mvu(how)) for how in ("split", "sample")),
        *((f"GeneralizedRR, {how}", _response(how)) for how in ("split", "sample")),
        ("HypercubePrivUnit, record", _whole(HypercubePrivUnit)),
        ("SampledSigns, record", _whole(SampledSigns)),
        ("Duchi, record", lambda s: Duchi(s.epsilon, features=s.features, spend="cube", interval=s.interval)),
    ),
    "frequency": (
        ("GRR", lambda s: GRR(s.categories, epsilon=s.epsilon, features=s.features)),
        ("OUE", _single(OUE)),
        ("SUE", _single(SUE)),
        ("WarnerRR", _warner),
    ),
    "point": (
        ("OptimalUtility", _candidate(OptimalUtility)),
        ("BRR, best m", _candidate(BRR, m="best")),
        ("BRR, paper's m", _candidate(BRR, m="paper")),
        ("GRR (BRR, m = 1)", _candidate(BRR, m=1)),
        ("Exponential", _candidate(Exponential)),
        ("LSRR", _candidate(LSRR)),
    ),
    "label": (
        ("GRR", lambda s: GRR(s.categories, epsilon=s.epsilon)),
        ("WarnerRR", _warner),
    ),
}  # fmt: skip
