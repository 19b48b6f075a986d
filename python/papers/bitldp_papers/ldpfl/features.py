"""What a client of LDPFL makes of its images: its own network, the features, and their bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp_papers.ldpfl import extractor
from bitldp_papers.ldpfl.settings import LDPFLSettings
from bitldp_papers.run.share import loaded

__all__ = ["own_network", "plain_bits", "test_bits", "tested"]

_SHARED = 0x57A7  # of the seed of the weights that all clients begin from


def own_network(
    settings: LDPFLSettings,
    x: NDArray[Any],
    y: NDArray[Any],
    seed: np.random.SeedSequence,
    watch: Callable[[Sequence[Any]], None] | None = None,
) -> list[NDArray[np.float32]]:
    """Return a client's own network, trained on its records; `seed` is the client's."""
    public = np.random.SeedSequence([settings.seed, _SHARED])
    start: Any = public if settings.extractor_start == "shared" else seed.spawn(1)[0]
    return extractor.fitted(settings.network(), x, y, settings.training, start=start, seed=seed, watch=watch)


def plain_bits(settings: LDPFLSettings, features: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return the bits of features without noise, most significant first, as a mechanism lays them."""
    words = settings.codec().encode(features)
    places = np.arange(settings.bits - 1, -1, -1)
    return (words[..., None] >> places & 1).astype(np.uint8).reshape(len(features), -1)


def tested(settings: LDPFLSettings) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Return the public test records that clients look at, and their labels."""
    data, _, test = loaded(settings.data)
    count = settings.tested or len(test)
    return test[:count], data.test_labels[:count]


def test_bits(settings: LDPFLSettings, network: Sequence[Any]) -> NDArray[np.uint8]:
    """Return the bits of the test records, seen through a client's own convolutions."""
    return plain_bits(settings, extractor.extract(settings.network(), network, tested(settings)[0]))
