"""Layers of a client's convolutional network.

Blocks of two convolutions and a max pool, as in the paper's Figs. 3 and 4: two blocks without padding
(28 x 28 gives 4 x 4 x 64 = 1024 numbers), or three with it (28 x 28: 1152, 32 x 32 x 3: 2048). Below 20
pixels a side a block has one convolution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

__all__ = ["Network", "network_of"]

Parameters = list[NDArray[np.float32]]

_LARGE = 20  # pixels of a side from which on a block has two convolutions, as in the paper
_TINY = 1e-3


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
        found = []
        for block in range(self.blocks):
            for turn in range(twice):
                pool, last = turn == twice - 1, block == self.blocks - 1
                found.append((self.filters << block, pool, self.norm and not (pool and last)))
        return found

    @property
    def padding(self) -> str:
        """Of every convolution."""
        return "VALID" if self.blocks == 2 and self.side >= _LARGE else "SAME"

    @property
    def flat(self) -> int:
        """How many numbers the convolutions make of an image."""
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
        """Places of the running means and variances among the parameters."""
        places, place = [], 0
        for _, _, norm in self.plan:
            place += 2
            if norm:
                places += [place + 2, place + 3]
                place += 4
        return places


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
        f"data: its records are no square images of 4 x 4 pixels or more, but {features} numbers"
    )
