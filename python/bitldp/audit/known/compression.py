"""What an audit knows of the mechanisms of privacy-aware compression: the rows of their points."""

from __future__ import annotations

from typing import Any

import numpy as np

from bitldp.audit.known.setting import setting
from bitldp.audit.law import Block, Setting, worst_pair
from bitldp.base import checks
from bitldp.compression.metric import MetricMVU
from bitldp.compression.mvu import MVU
from bitldp.compression.response import BitwiseRR, GeneralizedRR

_MOST = 32  # points that are compared with each other where there are more


@setting.register(BitwiseRR)
@setting.register(GeneralizedRR)
@setting.register(MVU)
@setting.register(MetricMVU)
def _(mechanism: BitwiseRR | GeneralizedRR | MVU | MetricMVU, pair: tuple[Any, Any] | None) -> Setting | None:
    if mechanism.k is not None:  # which features are reported is a part of the report
        return None
    points, features = mechanism.points, mechanism.features
    chosen = np.unique(np.linspace(0, len(points) - 1, min(_MOST, len(points))).round().astype(int))
    if pair is not None:
        values = [np.unique(checks.plain("pair", each)) for each in pair]
        places = [np.flatnonzero(points == value) if len(value) == 1 else () for value in values]
        if any(len(place) != 1 for place in places):  # between the points, or not the same in every feature
            return None
        chosen = np.concatenate(places)
    rows = mechanism.probabilities()[chosen]
    every = "" if features == 1 else "every feature "

    def describe(symbol: int, code: int) -> str:
        return f"{code} is reported" if features == 1 else f"feature {symbol} is reported as {code}"

    return Setting(
        [float(x) if features == 1 else np.full(features, x) for x in points[chosen]],
        [f"{every}{x:g}" for x in points[chosen]],
        [Block(np.repeat(rows[:, None, :], features, axis=1), describe)],
        [worst_pair(rows)],
        {"output": "codes"},
    )
