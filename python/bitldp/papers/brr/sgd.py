"""BRR-SGD: each client's gradient, clipped by an adaptive threshold, every coordinate through BRR."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray

from bitldp.federated import DecodingStrategy, Layout, PrivateUpdateMod, UpdateCodec
from bitldp.papers.brr.settings import NAME, BRRSettings, privacy, update_mod
from bitldp.papers.models import nets
from bitldp.papers.run.client import Client, answered
from bitldp.papers.run.drive import Rows, drive, turn_of
from bitldp.papers.run.share import loaded

__all__ = ["mod", "serve", "train"]

CLIP = "clip"


def _codec(settings: BRRSettings, clip: float) -> UpdateCodec:
    # BRR with m >= 2 pulls towards the middle: the mean of what it reports is a step, if a shorter one.
    return UpdateCodec(
        lambda size: settings.build(size, settings.rounds),
        clip=clip,
        norm=settings.norm,  # type: ignore[arg-type]
        update="gradient",
        allow_biased=True,
    )


def _model(settings: BRRSettings) -> list[NDArray[np.float32]]:
    data, train_, _ = loaded(settings.data)
    return nets.initial((train_.shape[1], settings.hidden, data.classes), settings.seed)


def mod(settings: BRRSettings, client: Client, message: Message) -> PrivateUpdateMod | None:
    """Return the mod that releases the gradient, clipped by the threshold that the server names."""
    if not settings.private:
        return None
    config: Any = message.content["config"]
    size = sum(array.size for array in _model(settings))
    return update_mod(settings, client, _codec(settings, float(config[CLIP])), size)


def train(settings: BRRSettings, client: Client, message: Message) -> Message:
    """Return the gradient over records of the client that are drawn anew in each round."""
    held = client.holding(settings)
    rng = np.random.default_rng(client.training_seed(settings, turn_of(message)))
    places = rng.permutation(len(held.x))[: settings.batch]
    record = message.content["arrays"]
    assert isinstance(record, ArrayRecord)
    slope = nets.gradient(record.to_numpy_ndarrays(), held.x[places], held.y[places])
    if not settings.private:  # averaged as it is, into a model
        before = record.to_numpy_ndarrays()
        slope = [
            (array - settings.rate * step).astype(np.float32)
            for array, step in zip(before, slope, strict=True)
        ]
    return answered(message, slope)


class AdaptiveClip(DecodingStrategy):
    """Gradient descent on decoded means, with a threshold that follows their norm.

    C_t = max(rho C_{t-1} + (1 - rho) norm, C_min), with the norm of the mean of the *released* gradients,
    less what its standard error adds. The paper takes the mean norm of the gradients themselves: that would
    be a release of its own. Nor is the range chosen by the sign of a coordinate, which would tell the sign.
    """

    def __init__(self, settings: BRRSettings, rows: Rows, **options: Any) -> None:
        last = [row[CLIP] for row in rows if row.get(CLIP) is not None]
        self._settings, self._clip = settings, last[-1] if last else settings.clip
        super().__init__(_codec(settings, self._clip), rate=-settings.rate, **options)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send the clients the threshold of the round."""
        self.codec = _codec(self._settings, self._clip)
        config[CLIP] = self._clip
        return super().configure_train(server_round, arrays, config, grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Average, adapt the threshold, and file it with the metrics."""
        arrays, metrics = super().aggregate_train(server_round, replies)
        if metrics is None:
            return arrays, metrics
        # The noise adds its own variance to the square of the norm: without it, C would chase its own noise.
        noise: Any = metrics.get("stderr", 0.0)
        square = float(self._mean @ self._mean) - len(self._mean) * noise**2
        norm = float(np.sqrt(max(square, 0.0)))
        if self._settings.norm == "linf":
            norm /= np.sqrt(len(self._mean))  # of a coordinate, root mean square
        decay = self._settings.decay
        self._clip = max(decay * self._clip + (1.0 - decay) * norm, self._settings.clip_least)
        metrics[CLIP] = self._clip
        return arrays, metrics

    def updated(self, layout: Layout, mean: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Take a step, and remember it."""
        self._mean = mean
        return super().updated(layout, mean)


def serve(settings: BRRSettings, grid: Grid) -> None:
    """Run the rounds."""
    data, _, test = loaded(settings.data)
    model = _model(settings)

    def strategy(first_round: int, rows: Rows) -> FedAvg:
        options = settings.federation()
        if not settings.private:
            return FedAvg(**options)
        return AdaptiveClip(settings, rows, first_round=first_round, **options)

    drive(
        grid,
        settings,
        system=NAME,
        strategy=strategy,
        initial=list(model),
        evaluate=partial(nets.scores, x=test, y=data.test_labels),
        privacy=privacy(
            settings,
            sum(array.size for array in model),
            settings.rounds,
            covers="all records of a client together, against any others",
            not_covered="that the client takes part",
        ),
    )
