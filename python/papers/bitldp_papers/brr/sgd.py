"""BRR-SGD: each client's gradient, clipped by an adaptive threshold, every coordinate through BRR."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from bitldp.federated import DecodingStrategy, Layout, PrivateUpdateMod, UpdateCodec
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray

from bitldp_papers.brr.settings import NAME, SPLIT, BRRSettings, privacy, update_mod
from bitldp_papers.brr.steps import next_clip, scaled, sign_split, worth
from bitldp_papers.models import cnn, nets
from bitldp_papers.run.client import Client, answered
from bitldp_papers.run.drive import Rows, drive, turn_of
from bitldp_papers.run.share import loaded

__all__ = ["NETS", "codec", "initial", "mod", "serve", "train"]

CLIP = "clip"
NETS: Mapping[str, ModuleType] = {"dense": nets, "cnn": cnn}


def codec(settings: BRRSettings, clip: float) -> UpdateCodec:
    """Return the codec of both sides for the threshold of a round."""
    # BRR with m >= 2 pulls towards the middle, by a gain that is public: see `worth`.
    return UpdateCodec(
        lambda size: settings.build(size, settings.rounds),
        clip=clip,
        norm=settings.norm,  # type: ignore[arg-type]
        update="gradient",
        allow_biased=True,
    )


def _last(settings: BRRSettings, rows: Rows) -> float:
    """Return the threshold that a run goes on with."""
    known = [row[CLIP] for row in rows if row.get(CLIP) is not None]
    return float(known[-1]) if known else settings.clip


def initial(settings: BRRSettings) -> list[NDArray[np.float32]]:
    """Return the model that a run starts with."""
    data, train_, _ = loaded(settings.data)
    if settings.net == "cnn":
        if train_.shape[1] != cnn.PIXELS:
            raise ValueError(f"net: 'cnn' needs images of 28 x 28, and {settings.data} has none")
        return cnn.initial(data.classes, settings.seed)
    return nets.initial((train_.shape[1], settings.hidden, data.classes), settings.seed)


def mod(settings: BRRSettings, client: Client, message: Message) -> PrivateUpdateMod | None:
    """Return the mod that releases the gradient, clipped by the threshold that the server names."""
    if not settings.private:
        return None
    config: Any = message.content["config"]
    size = sum(array.size for array in initial(settings))
    return update_mod(settings, client, codec(settings, float(config[CLIP])), size)


def train(settings: BRRSettings, client: Client, message: Message) -> Message:
    """Return the gradient over records of the client that are drawn anew in each round."""
    held = client.holding(settings)
    rng = np.random.default_rng(client.training_seed(settings, turn_of(message)))
    places = rng.permutation(len(held.x))[: settings.batch]
    record = message.content["arrays"]
    assert isinstance(record, ArrayRecord)
    model = record.to_numpy_ndarrays()
    slope = NETS[settings.net].gradient(model, scaled(settings, held.x[places]), held.y[places])
    if settings.mechanism == SPLIT:
        config: Any = message.content["config"]
        slope = _split(settings, client, turn_of(message), slope, float(config[CLIP]))
    elif not settings.private:  # averaged as it is, into a model
        slope = [
            (array - settings.rate * step).astype(np.float32)
            for array, step in zip(model, slope, strict=True)
        ]
    return answered(message, slope)


def _split(
    settings: BRRSettings, client: Client, turn: int, slope: list[NDArray[np.float32]], clip: float
) -> list[NDArray[np.float32]]:
    """Return a gradient whose sizes went through BRR on [0, C], and whose signs stay: no privacy."""
    flat = np.concatenate([array.ravel() for array in slope]).astype(np.float64)
    released = sign_split(settings, flat[None], clip, rng=client.release_seed(settings, turn))[0]
    parts = np.split(released, np.cumsum([array.size for array in slope])[:-1])
    return [part.reshape(array.shape).astype(np.float32) for part, array in zip(parts, slope, strict=True)]


class AdaptiveClip(DecodingStrategy):
    """Gradient descent on decoded means, with a threshold that follows their norm.

    C_t = max(rho C_{t-1} + (1 - rho) norm, C_min), with the norm of the mean of the *released* gradients,
    corrected by their public gain, less what its standard error adds. The paper takes the mean norm of the
    gradients themselves: that would be a release of its own.
    """

    def __init__(self, settings: BRRSettings, rows: Rows, **options: Any) -> None:
        self._settings, self._clip = settings, _last(settings, rows)
        self._worth = worth(
            settings, settings.build(sum(array.size for array in initial(settings)), settings.rounds)
        )
        super().__init__(codec(settings, self._clip), rate=-settings.rate, **options)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send the clients the threshold of the round."""
        self.codec = codec(self._settings, self._clip)
        config[CLIP] = self._clip
        return super().configure_train(server_round, arrays, config, grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Average, adapt the threshold, and file it with the metrics."""
        arrays, metrics = super().aggregate_train(server_round, replies)
        if metrics is None:
            return arrays, metrics
        raw: Any = metrics.get("stderr", 0.0)
        stderr = float(raw) / self._worth
        self._clip = next_clip(self._settings, self._clip, self._mean, stderr)
        metrics["stderr"] = stderr
        metrics[CLIP] = self._clip
        return arrays, metrics

    def updated(self, layout: Layout, mean: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Take a step, and remember it."""
        self._mean = mean / self._worth
        return super().updated(layout, self._mean)


class SplitClip(FedAvg):
    """Gradient descent on what the paper's BRR-SGD sends, signs and all, with a threshold that follows."""

    def __init__(self, settings: BRRSettings, rows: Rows, **options: Any) -> None:
        super().__init__(**options)
        self._settings, self._clip = settings, _last(settings, rows)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send the clients the threshold of the round."""
        config[CLIP] = self._clip
        self._model = arrays.to_numpy_ndarrays()
        return super().configure_train(server_round, arrays, config, grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Average the gradients, take a step, adapt the threshold, and file it with the metrics."""
        found, metrics = super().aggregate_train(server_round, replies)
        if found is None or metrics is None:
            return found, metrics
        slopes = found.to_numpy_ndarrays()
        mean = np.concatenate([array.ravel() for array in slopes]).astype(np.float64)
        self._clip = next_clip(self._settings, self._clip, mean, 0.0)
        metrics[CLIP] = self._clip
        stepped = {
            name: Array((array - self._settings.rate * slope).astype(array.dtype))
            for name, array, slope in zip(found, self._model, slopes, strict=True)
        }
        return ArrayRecord(stepped), metrics


def serve(settings: BRRSettings, grid: Grid) -> None:
    """Run the rounds."""
    data, _, test = loaded(settings.data)
    model = initial(settings)

    def strategy(first_round: int, rows: Rows) -> FedAvg:
        options = settings.federation()
        if settings.mechanism == SPLIT:
            return SplitClip(settings, rows, **options)
        if not settings.private:
            return FedAvg(**options)
        return AdaptiveClip(settings, rows, first_round=first_round, **options)

    drive(
        grid,
        settings,
        system=NAME,
        strategy=strategy,
        initial=list(model),
        evaluate=partial(NETS[settings.net].scores, x=scaled(settings, test), y=data.test_labels),
        privacy=privacy(
            settings,
            sum(array.size for array in model),
            settings.rounds,
            covers="all records of a client together, against any others",
            not_covered="that the client takes part",
        ),
    )
