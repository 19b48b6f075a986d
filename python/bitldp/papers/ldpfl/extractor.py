"""Small convolutional network in jax, and the flattened output of its convolutions."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

__all__ = ["extract", "fitted"]

Parameters = list[NDArray[np.float32]]

_LARGE = 20  # pixels of a side from which on two convolutions without padding make a block, as in the paper
_MOMENTUM = 0.9


def _initial(side: int, classes: int, filters: int, rng: np.random.Generator) -> Parameters:
    """Return two blocks of convolutions and a last dense layer."""
    twice = 2 if side >= _LARGE else 1
    layers: Parameters = []
    channels, width = 1, side
    for out in (filters, 2 * filters):
        for _ in range(twice):
            scale = np.sqrt(2.0 / (9 * channels))
            layers += [
                rng.normal(0.0, scale, (3, 3, channels, out)).astype(np.float32),
                np.zeros(out, np.float32),
            ]
            channels = out
            width -= 2 if twice == 2 else 0
        width //= 2
    flat = width * width * channels
    return [
        *layers,
        rng.normal(0.0, np.sqrt(1.0 / flat), (flat, classes)).astype(np.float32),
        np.zeros(classes, np.float32),
    ]


def _features(parameters: Any, images: Any) -> Any:
    """Return the flattened output of the last block, shape (n, flat)."""
    pairs = (len(parameters) - 2) // 2
    padding = "VALID" if pairs == 4 else "SAME"
    x = images
    for place in range(pairs):
        kernel, bias = parameters[2 * place], parameters[2 * place + 1]
        x = jax.lax.conv_general_dilated(
            x, kernel, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x + bias)
        if (place + 1) % (pairs // 2) == 0:
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.reshape(x.shape[0], -1)


def _loss(parameters: Any, images: Any, y: Any) -> Any:
    logs = jax.nn.log_softmax(_features(parameters, images) @ parameters[-2] + parameters[-1])
    return -jnp.mean(jnp.take_along_axis(logs, y[:, None], axis=1))


@partial(jax.jit, donate_argnums=(0, 1))
def _epoch(parameters: Any, speed: Any, images: Any, y: Any, batches: Any, rate: Any) -> Any:
    def step(state: Any, places: Any) -> tuple[Any, None]:
        current, moving = state
        slope = jax.grad(_loss)(current, images[places], y[places])
        moving = [_MOMENTUM * v - rate * g for v, g in zip(moving, slope, strict=True)]
        return ([p + v for p, v in zip(current, moving, strict=True)], moving), None

    return jax.lax.scan(step, (parameters, speed), batches)[0]


_extract = jax.jit(_features)


def _images(x: NDArray[Any]) -> NDArray[np.float32]:
    """Return square images with values of [0, 1], from rows scaled to [-1, 1]."""
    side = round(x.shape[1] ** 0.5)
    if side * side != x.shape[1] or side < 4:
        raise ValueError(
            f"data: its records are no square images of 4 x 4 pixels or more, but {x.shape[1]} numbers"
        )
    return ((x + 1.0) / 2.0).astype(np.float32).reshape(-1, side, side, 1)


def fitted(
    x: NDArray[Any], y: NDArray[Any], *, classes: int, filters: int, epochs: int, rate: float, seed: Any
) -> Parameters:
    """Return a network trained on square images by stochastic gradient descent with momentum.

    Parameters
    ----------
    x : ndarray, shape (n, side * side)
        Images, scaled to [-1, 1].
    y : ndarray of int, shape (n,)
    classes, filters : int
        Classes, and filters of the first block; the second has twice as many.
    epochs : int
    rate : float
    seed : int or SeedSequence
    """
    images = _images(x)
    rng = np.random.default_rng(seed)
    current: Any = [jnp.asarray(each) for each in _initial(images.shape[1], classes, filters, rng)]
    speed: Any = [jnp.zeros_like(each) for each in current]
    size = min(64, len(x))
    steps = len(x) // size
    device, labels = jnp.asarray(images), jnp.asarray(y, jnp.int32)
    for _ in range(epochs):
        order = rng.permutation(len(x))[: steps * size].reshape(steps, size)
        current, speed = _epoch(current, speed, device, labels, jnp.asarray(order), jnp.float32(rate))
    return [np.asarray(each) for each in current]


def extract(parameters: Parameters, x: NDArray[Any], *, batch: int = 4096) -> NDArray[np.float32]:
    """Return the flattened output of the convolutions, shape (n, flat); zero or more each."""
    images = _images(x)
    parts = [np.asarray(_extract(parameters, images[i : i + batch])) for i in range(0, len(images), batch)]
    return np.concatenate(parts)
