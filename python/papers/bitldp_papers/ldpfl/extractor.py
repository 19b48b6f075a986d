"""Training of a client's convolutional network, and the flattened output of its convolutions.

The steps are jitted one by one and repeated in Python. Inside `jax.lax.scan` the gradients of
convolutions are some twenty times slower on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bitldp_papers.ldpfl.network import Network
from bitldp_papers.models.steps import Step, stepper

__all__ = ["Training", "accuracy", "extract", "fitted"]

Parameters = list[NDArray[np.float32]]

_KEEP = 0.9  # of the running mean and variance of a batch normalisation, in each step
_DEGREES, _SHIFT = 15.0, 0.1  # augmentation, as in the paper


@dataclass(frozen=True)
class Training:
    """How a network is trained.

    Attributes
    ----------
    epochs : int
    rate : float
    optimizer : {"sgd", "adam", "rmsprop"}
        "sgd" has a momentum of .9.
    ridge : float
        Of the l2 penalty on kernels.
    augment : bool
        Whether images are turned by up to 15 degrees and shifted by up to a tenth of their side.
    batch : int
    """

    epochs: int
    rate: float
    optimizer: str = "sgd"
    ridge: float = 0.0
    augment: bool = False
    batch: int = 64


def _moved(images: Any, angles: Any, shifts: Any) -> Any:
    """Return images turned (by radians) and shifted (by shares of their side); the nearest edge fills."""
    side = images.shape[1]
    middle = (side - 1) / 2.0
    down, across = jnp.meshgrid(jnp.arange(side) - middle, jnp.arange(side) - middle, indexing="ij")

    def one(image: Any, angle: Any, shift: Any) -> Any:
        cos, sin = jnp.cos(angle), jnp.sin(angle)
        places = [
            cos * down - sin * across + middle + shift[0] * side,
            sin * down + cos * across + middle + shift[1] * side,
        ]
        look = partial(jax.scipy.ndimage.map_coordinates, coordinates=places, order=1, mode="nearest")
        return jax.vmap(look, in_axes=2, out_axes=2)(image)

    return jax.vmap(one)(images, angles, shifts)


@lru_cache(maxsize=16)
def _stepped(network: Network, training: Training) -> tuple[Step, Callable[..., Any]]:
    """Return the optimizer, and one jitted step of it."""
    step = stepper(training.optimizer)
    running = network.running

    def loss(parameters: Any, images: Any, y: Any) -> tuple[Any, Any]:
        features, seen = network.features(parameters, images, training=True)
        logs = jax.nn.log_softmax(features @ parameters[-2] + parameters[-1])
        kernels = sum(jnp.sum(jnp.square(each)) for each in parameters if each.ndim == 4)
        return -jnp.mean(jnp.take_along_axis(logs, y[:, None], 1)) + training.ridge * kernels, seen

    def one(parameters: Any, state: Any, images: Any, y: Any, angles: Any, shifts: Any) -> Any:
        if training.augment:
            images = _moved(images, angles, shifts)
        slope, seen = jax.grad(loss, has_aux=True)(parameters, images, y)
        after, state = step.take(parameters, slope, state, training.rate)
        for place, value in zip(running, seen, strict=True):  # no gradient, a running average
            after[place] = _KEEP * parameters[place] + (1.0 - _KEEP) * value
        return after, state

    return step, jax.jit(one, donate_argnums=(0, 1))


@lru_cache(maxsize=16)
def _extractor(network: Network) -> Callable[..., Any]:
    return jax.jit(lambda parameters, images: network.features(parameters, images, training=False)[0])


def _images(network: Network, x: NDArray[Any]) -> NDArray[np.float32]:
    """Return images with values of [0, 1], from rows scaled to [-1, 1]."""
    shape = (-1, network.side, network.side, network.channels)
    return ((x + 1.0) / 2.0).astype(np.float32).reshape(shape)


def fitted(
    network: Network,
    x: NDArray[Any],
    y: NDArray[Any],
    training: Training,
    *,
    start: int,
    seed: Any,
    watch: Callable[[Sequence[Any]], None] | None = None,
) -> Parameters:
    """Return a network trained on square images.

    Parameters
    ----------
    network : Network
    x : ndarray, shape (n, side * side * channels)
        Images, scaled to [-1, 1].
    y : ndarray of int, shape (n,)
    training : Training
    start : int or SeedSequence
        Of the initial weights.
    seed : int or SeedSequence
        Of the order of the records and of the augmentation.
    watch : callable, optional
        Called with the parameters after each epoch.
    """
    images, labels = _images(network, x), np.asarray(y, np.int32)
    step, take = _stepped(network, training)
    current: Any = [jnp.asarray(each) for each in network.initial(np.random.default_rng(start))]
    state = step.begin(current)
    size = min(training.batch, len(x))
    rng = np.random.default_rng(seed)
    for _ in range(training.epochs):
        order = rng.permutation(len(x))
        for begin in range(0, len(x) - size + 1, size):
            places = order[begin : begin + size]
            angles = rng.uniform(-1.0, 1.0, size).astype(np.float32) * np.float32(np.deg2rad(_DEGREES))
            shifts = rng.uniform(-_SHIFT, _SHIFT, (size, 2)).astype(np.float32)
            current, state = take(current, state, images[places], labels[places], angles, shifts)
        if watch is not None:
            watch(current)
    return [np.asarray(each) for each in current]


def extract(
    network: Network, parameters: Sequence[Any], x: NDArray[Any], *, batch: int = 1024
) -> NDArray[np.float32]:
    """Return the flattened output of the convolutions, shape (n, flat); zero or more each."""
    images, look = _images(network, x), _extractor(network)
    parts = [np.asarray(look(list(parameters), images[i : i + batch])) for i in range(0, len(images), batch)]
    return np.concatenate(parts)


def accuracy(network: Network, parameters: Sequence[Any], x: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the share of images whose class the network itself predicts."""
    scores = extract(network, parameters, x) @ np.asarray(parameters[-2]) + np.asarray(parameters[-1])
    return float(np.mean(scores.argmax(axis=1) == y))
