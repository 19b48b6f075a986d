"""Optimizers of the papers' networks, each a pair of functions over lists of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

__all__ = ["OPTIMIZERS", "Step", "stepper"]

#: The names that `stepper` knows.
OPTIMIZERS = ("sgd", "adam", "rmsprop")

_MOMENTUM = 0.9
_FIRST, _SECOND = 0.9, 0.999  # Adam's betas
_KEEP = 0.9  # RMSprop's rho
_TINY = 1e-8


class Step(NamedTuple):
    """An optimizer: ``begin(parameters)`` is its state, ``take(parameters, slope, state, rate)`` a step."""

    begin: Callable[[Any], Any]
    take: Callable[[Any, Any, Any, Any], tuple[list[Any], Any]]


def stepper(name: str, momentum: float = _MOMENTUM) -> Step:
    """Return an optimizer by its name.

    Parameters
    ----------
    name : {"sgd", "adam", "rmsprop"}
        Adam: Kingma and Ba 2015, betas .9 and .999. RMSprop: Tieleman and Hinton 2012, rho .9.
    momentum : float
        Of "sgd".
    """
    return {"sgd": _sgd(momentum), "adam": _adam(), "rmsprop": _rmsprop()}[name]


def _zeros(parameters: Any) -> list[Any]:
    return [jnp.zeros_like(each) for each in parameters]


def _sgd(momentum: float) -> Step:
    def take(parameters: Any, slope: Any, state: Any, rate: Any) -> tuple[list[Any], Any]:
        speed = [momentum * v - rate * g for v, g in zip(state, slope, strict=True)]
        return [p + v for p, v in zip(parameters, speed, strict=True)], speed

    return Step(_zeros, take)


def _adam() -> Step:
    def begin(parameters: Any) -> Any:
        return _zeros(parameters), _zeros(parameters), jnp.float32(0.0)

    def take(parameters: Any, slope: Any, state: Any, rate: Any) -> tuple[list[Any], Any]:
        first, second, turn = state
        turn = turn + 1.0
        first = [_FIRST * m + (1.0 - _FIRST) * g for m, g in zip(first, slope, strict=True)]
        second = [_SECOND * v + (1.0 - _SECOND) * g * g for v, g in zip(second, slope, strict=True)]
        scale = rate * jnp.sqrt(1.0 - _SECOND**turn) / (1.0 - _FIRST**turn)
        after = [
            p - scale * m / (jnp.sqrt(v) + _TINY) for p, m, v in zip(parameters, first, second, strict=True)
        ]
        return after, (first, second, turn)

    return Step(begin, take)


def _rmsprop() -> Step:
    def take(parameters: Any, slope: Any, state: Any, rate: Any) -> tuple[list[Any], Any]:
        state = [_KEEP * v + (1.0 - _KEEP) * g * g for v, g in zip(state, slope, strict=True)]
        return [
            p - rate * g / (jnp.sqrt(v) + _TINY) for p, g, v in zip(parameters, slope, state, strict=True)
        ], state

    return Step(_zeros, take)
