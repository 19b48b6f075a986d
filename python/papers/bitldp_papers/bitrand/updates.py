"""Updates of BitRand's baselines: LDP-FL's weights by layer, and the anonymiser that splits and shuffles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from bitldp.federated import DecodingStrategy, ReportMean
from flwr.app import Message
from numpy.typing import NDArray

__all__ = ["Layers", "Shuffled", "shuffled"]

Arrays = Sequence[NDArray[np.floating]]

_BLOCK = 1 << 22  # numbers that are shuffled at a time


class Layers:
    """Ranges of LDP-FL's weights by layer: [c - r, c + r], which the public initial model gives.

    Parameters
    ----------
    initial : sequence of ndarray
        Weights and biases by turns, as in `nets.initial`; a layer's bias shares the range of its weights.
    spread : float
        r in units of sqrt(2/inputs), the standard deviation that weights of a ReLU layer begin with; c is 0.

    Notes
    -----
    Sun et al. release a weight of [c - r, c + r] as c +- r (e^eps + 1)/(e^eps - 1). Here a client hands
    (w - c)/r to a release on [-1, 1], and the server puts the mean back: the same letters.
    """

    def __init__(self, initial: Arrays, spread: float) -> None:
        weights = [array for array in initial for _ in range(2) if array.ndim == 2]
        self.centers = [0.0] * len(weights)
        self.radii = [spread * float(np.sqrt(2.0 / len(array))) for array in weights]

    def standardized(self, model: Arrays) -> list[NDArray[np.float32]]:
        """Return (w - c)/r of each layer, clipped to [-1, 1]."""
        return [
            np.clip((array - c) / r, -1.0, 1.0).astype(np.float32)
            for array, c, r in zip(model, self.centers, self.radii, strict=True)
        ]

    def restored(self, model: Arrays) -> list[NDArray[np.float32]]:
        """Return c + r v of each layer."""
        return [
            (c + r * array).astype(np.float32)
            for array, c, r in zip(model, self.centers, self.radii, strict=True)
        ]


def shuffled(reports: NDArray[np.floating], rng: np.random.Generator | None = None) -> NDArray[np.floating]:
    """Split reports into their coordinates and shuffle each over the clients: no row is a client's any more.

    Parameters
    ----------
    reports : ndarray, shape (clients, coordinates)
        Replaced in place, and returned.
    rng : Generator, optional
        Of the shuffle; the operating system's entropy by default.
    """
    source = np.random.default_rng() if rng is None else rng
    width = max(1, _BLOCK // len(reports))
    for start in range(0, reports.shape[1], width):
        part = reports[:, start : start + width]
        part[:] = source.permuted(part, axis=0)
    return reports


class Shuffled(DecodingStrategy):
    """A decoding strategy behind an anonymiser: it averages shuffled coordinates, not reports.

    In one process the anonymiser is this object: reports come in, are decoded, split and shuffled, and only
    then is anything averaged. In a network it has to be a party of its own, which is trusted not to tell.

    Parameters
    ----------
    anonymiser : bool
        Whether to shuffle.
    layers : Layers, optional
        LDP-FL: what the mean is put back by.
    **options
        As of `DecodingStrategy`.
    """

    def __init__(self, mechanism: Any, *, anonymiser: bool, layers: Layers | None, **options: Any) -> None:
        super().__init__(mechanism, **options)
        self._anonymiser, self._layers = anonymiser, layers

    def _collect(self, plan: Any, replies: Iterable[Message]) -> tuple[ReportMean, dict[str, int]]:
        """Decode the replies, and shuffle them before they are averaged."""
        if not self._anonymiser:
            return super()._collect(plan, replies)
        keeper = _Keeper(plan)
        _, counts = super()._collect(keeper, replies)  # type: ignore[arg-type]  # decodes like one
        mean = ReportMean(plan.header.coordinates)
        if keeper.kept:
            for row in shuffled(np.stack(keeper.kept)):
                mean.add(row.astype(np.float64), 1.0)
        return mean, counts

    def updated(self, layout: Any, mean: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the new arrays of the model."""
        arrays = super().updated(layout, mean)
        if self._layers is None:
            return arrays
        return dict(zip(arrays, self._layers.restored(list(arrays.values())), strict=True))


class _Keeper:
    """Plan that keeps the vectors it decodes, for the anonymiser, in single precision."""

    def __init__(self, plan: Any) -> None:
        self.header = plan.header
        self._plan = plan
        self.kept: list[NDArray[np.float32]] = []

    def decoded(self, codes: Any) -> NDArray[np.float64]:
        """Decode reports as whole vectors, and keep them."""
        vectors: NDArray[np.float64] = self._plan.values(codes)
        self.kept += list(vectors.astype(np.float32))
        return vectors
