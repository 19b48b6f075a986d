"""Two inputs that are far apart, for an audit of a mechanism whose law is not known."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from bitldp.audit.known.selection import opposite_vectors
from bitldp.audit.known.vector import ends_of_ball
from bitldp.compression.ball.base import Ball
from bitldp.selection.baselines import Compressed
from bitldp.selection.two_stage import TwoStage

__all__ = ["far_apart"]

_FAR = 4.0  # bounds that a projected number is moved by, so that it is clipped


@singledispatch
def far_apart(mechanism: Any) -> tuple[tuple[Any, Any], tuple[str, str]] | None:
    """Return two inputs and their names: the ends of an interval; None where nothing says what they are."""
    interval = getattr(mechanism, "interval", getattr(mechanism, "_ends", None))
    if not isinstance(interval, tuple):
        return None
    low, high = (float(end) for end in interval)
    features = getattr(mechanism, "features", 1)
    inputs = (low, high) if features == 1 else (np.full(features, low), np.full(features, high))
    return inputs, (f"every value {low:g}", f"every value {high:g}")


@far_apart.register
def _(mechanism: Ball) -> tuple[tuple[Any, Any], tuple[str, str]]:
    first, second = ends_of_ball(mechanism.features, mechanism.radius)
    return (first, second), ("one end of the ball", "the opposite end")


@far_apart.register
def _(mechanism: TwoStage) -> tuple[tuple[Any, Any], tuple[str, str]]:
    inputs, names = opposite_vectors(mechanism.selection.channel.dimensions)
    return (inputs[0], inputs[1]), (names[0], names[1])


@far_apart.register
def _(mechanism: Compressed) -> tuple[tuple[Any, Any], tuple[str, str]]:
    ones = np.full(mechanism.compressed, _FAR * mechanism.bound)
    whole = ones @ np.linalg.pinv(mechanism.projection)
    return (whole, -whole), ("every projected number high", "every projected number low")
