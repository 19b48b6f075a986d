"""The small convolutional network of DP-SGD's examples on 28 x 28 images, in jax.

Two convolutions (16 of 8 x 8, 32 of 4 x 4, stride 2), each followed by the largest of 2 x 2 neighbours, then
32 units: 26,010 parameters, a flat list of NumPy arrays as in `nets`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

__all__ = ["PIXELS", "gradient", "initial", "scores"]

#: Pixels of a row and of a column.
SIDE = 28
PIXELS = SIDE * SIDE
#: Height, width, channels in and out of the kernels; units in and out of the layers behind them.
_KERNELS = ((8, 8, 1, 16), (4, 4, 16, 32))
_UNITS = 32
_FLAT = 4 * 4 * 32
_BLOCK = 2000  # images that are scored together

Parameters = list[NDArray[np.float32]]


def initial(classes: int, seed: int) -> Parameters:
    """Return kernels, weights and biases, scaled for ReLU (He et al. 2015), from NumPy's generator."""
    rng = np.random.default_rng(np.random.SeedSequence([seed, 0xC44]))
    shapes = (*_KERNELS, (_FLAT, _UNITS), (_UNITS, classes))
    layers: Parameters = []
    for shape in shapes:
        scale = np.sqrt(2.0 / np.prod(shape[:-1]))
        layers += [rng.normal(0.0, scale, shape).astype(np.float32), np.zeros(shape[-1], np.float32)]
    layers[-2] *= np.float32(0.1)  # near-uniform first predictions
    return layers


def _largest(x: Any) -> Any:
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 1, 1, 1), "VALID")


def _logits(parameters: Any, x: Any) -> Any:
    images = x.reshape(-1, SIDE, SIDE, 1)
    for layer, padding in ((0, "SAME"), (2, "VALID")):
        words: dict[str, Any] = {
            "window_strides": (2, 2),
            "padding": padding,
            "dimension_numbers": ("NHWC", "HWIO", "NHWC"),
        }
        images = jax.lax.conv_general_dilated(images, parameters[layer], **words) + parameters[layer + 1]
        images = _largest(jax.nn.relu(images))
    hidden = jax.nn.relu(images.reshape(len(images), -1) @ parameters[4] + parameters[5])
    return hidden @ parameters[6] + parameters[7]


def _loss(parameters: Any, x: Any, y: Any) -> Any:
    logs = jax.nn.log_softmax(_logits(parameters, x))
    return -jnp.mean(jnp.take_along_axis(logs, y[:, None], axis=1))


_gradient = jax.jit(jax.grad(_loss))
_predict = jax.jit(_logits)


def gradient(parameters: Parameters, x: NDArray[Any], y: NDArray[Any]) -> Parameters:
    """Return the gradient of the mean cross-entropy over images of shape (n, 784)."""
    slopes = _gradient(parameters, jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.int32))
    return [np.asarray(each, np.float32) for each in slopes]


def scores(parameters: Parameters, x: NDArray[Any], y: NDArray[Any]) -> dict[str, float]:
    """Return the accuracy and the loss of a model."""
    parts = [
        np.asarray(_predict(parameters, jnp.asarray(x[i : i + _BLOCK]))) for i in range(0, len(x), _BLOCK)
    ]
    logits = np.concatenate(parts).astype(np.float64)
    shifted = logits - logits.max(axis=1, keepdims=True)
    losses = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(y)), y]
    return {"accuracy": float(np.mean(logits.argmax(axis=1) == y)), "loss": float(losses.mean())}
