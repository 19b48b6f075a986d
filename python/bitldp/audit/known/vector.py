"""What an audit knows of the mechanisms for vectors: records at opposite ends of the ball."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.audit.known.setting import setting
from bitldp.audit.law import Block, Setting
from bitldp.compression.ball.base import Ball
from bitldp.compression.ball.cldp import CLDP, signs
from bitldp.record.signs import SampledSigns

_MOST = 1 << 22  # entries of a table that is still made


@setting.register
def _(mechanism: Ball, pair: tuple[Any, Any] | None) -> Setting | None:
    if mechanism._conditional and mechanism.delta == 0.0:
        return None  # the coordinates of a report are not independent
    inputs = ends_of_ball(mechanism.features, mechanism.radius) if pair is None else _given(mechanism, pair)
    rows = mechanism.probabilities()
    places = (inputs / mechanism.radius + 1.0) * ((len(rows) - 1) / 2.0)
    low = np.clip(np.floor(places).astype(int), 0, len(rows) - 2)
    upper = np.clip(places - low, 0.0, 1.0)[..., None]
    table = (1.0 - upper) * rows[low] + upper * rows[low + 1]

    def describe(symbol: int, value: int) -> str:
        return f"coordinate {symbol} is reported as {value}"

    return Setting(list(inputs), _names(pair), [Block(table, describe)], [(0, 1)], {"output": "codes"})


@setting.register
def _(mechanism: CLDP, pair: tuple[Any, Any] | None) -> Setting | None:
    if 4 * mechanism._rows > _MOST:
        return None
    inputs = ends_of_ball(mechanism.features, mechanism.radius)
    if pair is not None:
        inputs = np.stack([mechanism._records(each)[0] for each in pair])
    ends = mechanism.probabilities()  # of the coefficients -R and R
    matrix = signs(np.arange(mechanism._rows), mechanism.features)
    upper = np.clip((inputs @ matrix.T / mechanism.radius + 1.0) / 2.0, 0.0, 1.0)[..., None]
    table = ((1.0 - upper) * ends[0] + upper * ends[1]) / mechanism._rows
    rows = table.reshape(2, 1, -1)

    def describe(symbol: int, value: int) -> str:
        return f"coefficient {value >> 1} is reported {'-+'[value & 1]}"

    return Setting(list(inputs), _names(pair), [Block(rows, describe)], [(0, 1)], {"output": "codes"})


@setting.register
def _(mechanism: SampledSigns, pair: tuple[Any, Any] | None) -> None:
    """Leave it to the search: which coordinates were sampled is a part of the report."""


def ends_of_ball(features: int, radius: float) -> NDArray[np.float64]:
    """Return two opposite vectors of a ball, shape (2, features)."""
    inputs = np.zeros((2, features))
    inputs[:, 0] = radius, -radius
    return inputs


def _given(mechanism: Ball, pair: tuple[Any, Any]) -> NDArray[np.float64]:
    return np.stack([mechanism._inside(each).reshape(-1) for each in pair])


def _names(pair: Any) -> list[str]:
    return ["one end of the ball", "the opposite end"] if pair is None else ["pair[0]", "pair[1]"]
