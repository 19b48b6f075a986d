"""BRR-SGD: each client's gradient, clipped by an adaptive threshold, every coordinate through BRR."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
from bitldp.base.keys import RandomSource
from bitldp.federated import UpdateCodec
from bitldp.mechanism.base import Mechanism
from bitldp.points import BRR
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray

from bitldp_papers.brr.settings import SPLIT, WITHOUT, BRRSettings, needed, privacy
from bitldp_papers.models import cnn, nets
from bitldp_papers.run.rounds import Descent, Mod, Privacy, Rows, Turn, course
from bitldp_papers.run.share import Holding, holdings, loaded
from bitldp_papers.run.vectors import Model, flat, shaped, stepped

__all__ = ["Gradients", "descend", "gain", "next_clip", "sign_split"]

CLIP = "clip"
NETS: Mapping[str, ModuleType] = {"dense": nets, "cnn": cnn}


def gain(mechanism: Mechanism) -> float:
    """Return the share of a small number that the mean of its reports keeps: public, from the law alone.

    Parameters
    ----------
    mechanism : Mechanism
        On [-1, 1].

    Returns
    -------
    float
        1 for a mechanism whose decoded reports are right on average. Of BRR with m >= 2 the slope about 0 of
        the mean report, in (0, 1): a window of m candidates that moves by one candidate moves the mean by
        m (p - q) of one.

    Raises
    ------
    ValueError
        At epsilon 0, where the reports do not depend on the number.
    """
    if not isinstance(mechanism, BRR) or mechanism.m == 1:
        return 1.0
    law = mechanism.channel.probabilities()
    points = np.linspace(-1.0, 1.0, len(law))
    slopes = np.diff(law @ points) / np.diff(points)
    middle = len(points) // 2
    slope = float(slopes[(len(points) - 2) // 2 : middle + len(points) % 2].mean())
    if not slope > 0.0:
        raise ValueError("epsilon: at 0 the reports do not depend on the number")
    return slope


def next_clip(settings: BRRSettings, clip: float, mean: NDArray[np.float64], stderr: float) -> float:
    """Return the next threshold, max(rho C + (1 - rho) norm, C_min), from the mean of released gradients.

    Parameters
    ----------
    settings : BRRSettings
    clip : float
        The threshold C of the round.
    mean : ndarray, shape (size,)
        Mean of the reports, corrected.
    stderr : float
        Its standard error, root mean square over the coordinates: noise adds its variance to the square of
        the norm, and C would chase its own noise.
    """
    square = max(float(mean @ mean) - len(mean) * stderr**2, 0.0)
    norm = float(np.sqrt(square / (len(mean) if settings.norm == "linf" else 1)))
    return max(settings.decay * clip + (1.0 - settings.decay) * norm, settings.clip_least)


def sign_split(
    settings: BRRSettings, rows: NDArray[np.float64], clip: float, *, rng: RandomSource
) -> NDArray[np.float64]:
    """Return gradients as the paper's BRR-SGD perturbs them, shape (n, size): the sign is no secret.

    A coordinate clipped to [-C, C] (or to the gradient's norm C, as the settings say) goes to a point of
    [0, C] or of [-C, 0], whichever it is in (Section 5.5): two inputs of different signs share no report, so
    that the exact epsilon is infinite.
    """
    if settings.norm == "linf":
        shares = np.clip(rows / clip, -1.0, 1.0)
    else:
        shares = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), clip)
    mechanism = settings.build(rows.shape[1], 1)
    sizes = mechanism.decode(mechanism.randomize(np.abs(shares), rng=rng))
    return np.where(shares < 0.0, -clip, clip) * sizes


class Gradients(Descent[BRRSettings]):
    """Gradients through BRR, clipped by a threshold that follows the norm of their mean.

    C_t = max(rho C_{t-1} + (1 - rho) norm, C_min), with the norm of the mean of the *released* gradients,
    corrected by their public gain, less what its standard error adds. The paper takes the mean norm of the
    gradients themselves: that would be a release of its own.
    """

    def __init__(self, settings: BRRSettings) -> None:
        super().__init__(settings)
        self.clip = settings.clip

    @property
    def rate(self) -> float:
        return self.settings.rate

    @property
    def net(self) -> ModuleType:
        """Network of the settings."""
        return NETS[self.settings.net]

    @cached_property
    def size(self) -> int:
        """Number of coordinates of a gradient."""
        return sum(array.size for array in self.initial())

    @cached_property
    def gain(self) -> float:
        """Divisor of the mean of decoded reports: `gain`, where the settings correct."""
        mechanism = self.settings.build(self.size, self.settings.rounds)
        return gain(mechanism) if self.settings.corrected else 1.0

    def initial(self) -> Model:
        settings = self.settings
        data, train, _ = loaded(settings.data)
        if settings.net == "cnn":
            if train.shape[1] != cnn.PIXELS:
                raise ValueError(f"net: 'cnn' needs images of 28 x 28, and {settings.data} has none")
            return list(cnn.initial(data.classes, settings.seed))
        return list(nets.initial((train.shape[1], settings.hidden, data.classes), settings.seed))

    def privacy(self) -> Privacy:
        return privacy(
            self.settings,
            self.size,
            self.settings.rounds,
            covers="all records of a client together, against any others",
            not_covered="that the client takes part",
        )

    def _scaled(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return features of [-1, 1] moved to [lowest, 1]."""
        moved: NDArray[np.float32] = 1.0 - (1.0 - x) * np.float32((1.0 - self.settings.lowest) / 2.0)
        return moved

    @cached_property
    def _test(self) -> tuple[NDArray[np.float32], NDArray[Any]]:
        data, _, test = loaded(self.settings.data)
        return self._scaled(test), data.test_labels

    def scores(self, model: Sequence[NDArray[Any]]) -> Mapping[str, float]:
        scores: dict[str, float] = self.net.scores(model, *self._test)
        return scores

    def codec(self) -> UpdateCodec:
        # BRR with m >= 2 pulls towards the middle, by a gain that is public: see `gain`.
        return UpdateCodec(
            lambda size: self.settings.build(size, self.settings.rounds),
            clip=self.clip,
            norm=self.settings.norm,  # type: ignore[arg-type]
            update="gradient",
            allow_biased=True,
        )

    def mod(self, turn: Turn) -> Mod | None:
        if not self.settings.private:
            return None
        self.clip = float(turn.config[CLIP])
        return turn.client.update_mod(self.settings, self.codec(), needed(self.settings, self.size))

    def gradient(self, model: Model, held: Holding, seed: np.random.SeedSequence) -> NDArray[Any]:
        """Return a client's gradient over records that are drawn anew in each round."""
        rows = np.random.default_rng(seed).permutation(len(held.x))[: self.settings.batch]
        return flat(self.net.gradient(model, self._scaled(held.x[rows]), held.y[rows]))

    def train(self, turn: Turn) -> Model:
        """Return the client's gradient; without privacy the model after a step along it."""
        settings, client, model = self.settings, turn.client, turn.arrays()
        gradient = self.gradient(model, client.holding(settings), client.training_seed(settings, turn.number))
        if settings.mechanism == SPLIT:
            rng = client.release_seed(settings, turn.number)
            released = sign_split(
                settings, gradient[None].astype(np.float64), float(turn.config[CLIP]), rng=rng
            )
            return shaped(released[0].astype(np.float32), model)
        if not settings.private:
            return stepped(model, self.rate * gradient)
        return shaped(gradient, model)

    def strategy(self, first_round: int, rows: Rows) -> FedAvg:
        known = [row[CLIP] for row in rows if row.get(CLIP) is not None]
        self.clip = float(known[-1]) if known else self.settings.clip
        if self.settings.mechanism == SPLIT:
            return SplitClip(self, **self.settings.federation())
        return super().strategy(first_round, rows)

    def announced(self) -> dict[str, Any]:
        return {CLIP: self.clip}

    def corrected(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        return mean / self.gain if self.settings.private else mean

    def follow(self, mean: NDArray[np.float64], stderr: float) -> dict[str, float]:
        """Adapt the threshold; return it and the standard error for the metrics."""
        stderr = stderr / self.gain if self.settings.private else 0.0
        self.clip = next_clip(self.settings, self.clip, mean, stderr)
        return {"stderr": stderr, CLIP: self.clip}

    @cached_property
    def _held(self) -> list[Holding]:
        return holdings(self.settings.data, self.settings.clients, seed=self.settings.seed)

    def mean(self, model: Model, turn: int) -> tuple[NDArray[np.float64], float]:
        """Release the gradients of all clients."""
        settings = self.settings
        rows = np.empty((settings.clients, self.size))
        for index, held in enumerate(self._held):
            seed = np.random.SeedSequence(settings.seed, spawn_key=(1, index, turn))
            rows[index] = self.gradient(model, held, seed)
        rng = np.random.SeedSequence(settings.seed, spawn_key=(2, turn))
        if settings.mechanism == WITHOUT:
            return rows.mean(axis=0), 0.0
        if settings.mechanism == SPLIT:
            return sign_split(settings, rows, self.clip, rng=rng).mean(axis=0), 0.0
        return self.simulated(rows, rng)


class SplitClip(FedAvg):
    """Gradient descent on the paper's own reports, signs and all, with a threshold that follows."""

    def __init__(self, rounds: Gradients, **options: Any) -> None:
        super().__init__(**options)
        self._rounds = rounds
        self._model: Model = []

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send the clients the threshold of the round."""
        config.update(self._rounds.announced())
        self._model = arrays.to_numpy_ndarrays()
        return super().configure_train(server_round, arrays, config, grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Average the gradients, take a step, adapt the threshold, and file it with the metrics."""
        arrays, metrics = super().aggregate_train(server_round, replies)
        if arrays is None or metrics is None:
            return arrays, metrics
        mean = flat(arrays.to_numpy_ndarrays())
        metrics[CLIP] = self._rounds.follow(mean.astype(np.float64), 0.0)[CLIP]
        model = stepped(self._model, self._rounds.rate * mean)
        named = {name: Array(array) for name, array in zip(arrays, model, strict=True)}
        return ArrayRecord(named), metrics


def descend(settings: BRRSettings, *, every: int = 10) -> list[dict[str, Any]]:
    """Return the scores of a run of ``task="sgd"`` without messages: `course`."""
    return course(Gradients(settings), every=every)
