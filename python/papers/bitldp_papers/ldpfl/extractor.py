"""A client's own convolutional network: layers, training, and the flattened output of its convolutions.

Blocks of two convolutions and a max pool, as in the paper's Figs. 3 and 4: two blocks without padding
(28 x 28 gives 4 x 4 x 64 = 1024 numbers), or three with it (28 x 28: 1152, 32 x 32 x 3: 2048). Below 20
pixels a side a block has one convolution. The steps of the training are jitted one by one and repeated in
Python: inside `jax.lax.scan` the gradients of convolutions are some twenty times slower on a CPU.
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

from bitldp_papers.models.steps import Step, stepper

__all__ = ["Network", "Training", "accuracy", "extract", "fitted", "network_of"]

Parameters = list[NDArray[np.float32]]

_LARGE = 20  # pixels of a side from which on a block has two convolutions, as in the paper
_TINY = 1e-3
_KEEP = 0.9  # of the running mean and variance of a batch normalisation, in each step
_DEGREES, _SHIFT = 15.0, 0.1  # augmentation, as in the paper


@dataclass(frozen=True)
class Network:
    """Layers of a client's network.

    Attributes
    ----------
    side, channels : int
        Of an image.
    classes, filters, blocks : int
        Filters of the first block; each block has twice as many as the one before. 2 blocks or 3.
    norm : bool
        Whether activations are normalised by batch.
    """

    side: int
    channels: int
    classes: int
    filters: int = 32
    blocks: int = 2
    norm: bool = False

    @property
    def plan(self) -> list[tuple[int, bool, bool]]:
        """Filters of each convolution, whether a pool follows it, and whether a normalisation does."""
        twice = 2 if self.side >= _LARGE else 1
        layers = []
        for block in range(self.blocks):
            for turn in range(twice):
                pool, last = turn == twice - 1, block == self.blocks - 1
                layers.append((self.filters << block, pool, self.norm and not (pool and last)))
        return layers

    @property
    def padding(self) -> str:
        """Padding of every convolution."""
        return "VALID" if self.blocks == 2 and self.side >= _LARGE else "SAME"

    @property
    def flat(self) -> int:
        """Number of features that the convolutions make of an image."""
        width = self.side
        for _, pool, _ in self.plan:
            width -= 2 if self.padding == "VALID" else 0
            width //= 2 if pool else 1
        return width * width * self.plan[-1][0]

    def initial(self, rng: np.random.Generator) -> Parameters:
        """Return kernels and biases (with scale, shift, mean and variance where normalised), and the head."""
        layers: Parameters = []
        channels = self.channels
        for filters, _, norm in self.plan:
            scale = np.sqrt(2.0 / (9 * channels))
            layers += [rng.normal(0.0, scale, (3, 3, channels, filters)).astype(np.float32)]
            layers += [np.zeros(filters, np.float32)]
            if norm:
                layers += [make(filters, np.float32) for make in (np.ones, np.zeros, np.zeros, np.ones)]
            channels = filters
        head = rng.normal(0.0, np.sqrt(1.0 / self.flat), (self.flat, self.classes)).astype(np.float32)
        return [*layers, head, np.zeros(self.classes, np.float32)]

    def features(self, parameters: Any, images: Any, *, training: bool) -> tuple[Any, list[Any]]:
        """Return the flattened output, zero or more each, and the means and variances of this batch."""
        left = iter(parameters)
        seen: list[Any] = []
        x = images
        for _, pool, norm in self.plan:
            kernel, bias = next(left), next(left)
            x = jax.lax.conv_general_dilated(
                x, kernel, (1, 1), self.padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = jax.nn.relu(x + bias)
            if pool:
                x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            if norm:
                scale, shift, mean, variance = (next(left) for _ in range(4))
                if training:
                    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
                    seen += [mean, variance]
                x = (x - mean) * jax.lax.rsqrt(variance + _TINY) * scale + shift
        return x.reshape(x.shape[0], -1), seen

    @property
    def running(self) -> list[int]:
        """Indices of the running means and variances among the parameters."""
        indices, index = [], 0
        for _, _, norm in self.plan:
            index += 2
            if norm:
                indices += [index + 2, index + 3]
                index += 4
        return indices


def network_of(features: int, **words: Any) -> Network:
    """Return the network for rows of so many numbers: square images of one channel or of three.

    Raises
    ------
    ValueError
        For rows that are neither.
    """
    for channels in (1, 3):
        side = round((features / channels) ** 0.5)
        if side >= 4 and channels * side * side == features:
            return Network(side, channels, **words)
    raise ValueError(
        f"data: its records are not square images of 4 x 4 pixels or more, but {features} numbers"
    )


@dataclass(frozen=True)
class Training:
    """Training of a network.

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
        positions = [
            cos * down - sin * across + middle + shift[0] * side,
            sin * down + cos * across + middle + shift[1] * side,
        ]
        look = partial(jax.scipy.ndimage.map_coordinates, coordinates=positions, order=1, mode="nearest")
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
        for index, value in zip(running, seen, strict=True):  # no gradient, a running average
            after[index] = _KEEP * parameters[index] + (1.0 - _KEEP) * value
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
            rows = order[begin : begin + size]
            angles = rng.uniform(-1.0, 1.0, size).astype(np.float32) * np.float32(np.deg2rad(_DEGREES))
            shifts = rng.uniform(-_SHIFT, _SHIFT, (size, 2)).astype(np.float32)
            current, state = take(current, state, images[rows], labels[rows], angles, shifts)
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
