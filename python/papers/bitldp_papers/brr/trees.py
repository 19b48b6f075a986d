"""Boosted regression trees whose leaves are perturbed, after DPBoost (Li et al., AAAI 2020).

A tree's structure is drawn at random from the public ranges of the features, so it says nothing of the data
and the whole budget goes into the leaves. A client's leaf is the regularised mean of the residuals of its
records there, clipped to a threshold that shrinks from tree to tree (geometric leaf clipping).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from bitldp.base import checks
from bitldp.federated import DecodingStrategy, PrivateUpdateMod, UpdateCodec, to_record
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray

from bitldp_papers.brr.settings import NAME, BRRSettings, privacy, update_mod
from bitldp_papers.models.trees import leaves_of, predicted, structure, targets
from bitldp_papers.run.client import Client, answered
from bitldp_papers.run.drive import Rows, drive, turn_of
from bitldp_papers.run.share import loaded

__all__ = ["mod", "serve", "train"]

ENSEMBLE, LEAVES = "ensemble", "leaves"


def _clip(settings: BRRSettings, turn: int) -> float:
    return float(settings.clip * (1.0 - settings.shrink) ** (turn - 1))


def _codec(settings: BRRSettings, turn: int) -> UpdateCodec:
    return UpdateCodec(
        lambda size: settings.build(size, settings.rounds),
        clip=_clip(settings, turn),
        norm="linf",
        update="gradient",
        allow_biased=True,
    )


def _turn(settings: BRRSettings, message: Message) -> int:
    """Return the number of a tree: no server has a client grow more than there are."""
    return checks.integer("server-round", turn_of(message), 1, settings.rounds)


def mod(settings: BRRSettings, client: Client, message: Message) -> PrivateUpdateMod | None:
    """Return the mod that releases the leaves of a round's tree."""
    if not settings.private:
        return None
    return update_mod(settings, client, _codec(settings, _turn(settings, message)), 1 << settings.depth)


def train(settings: BRRSettings, client: Client, message: Message) -> Message:
    """Return the leaves of this round's tree, fitted to the residuals of the trees before it."""
    turn = _turn(settings, message)
    record = message.content[ENSEMBLE]
    assert isinstance(record, ArrayRecord)
    values = record.to_numpy_ndarrays()[0]
    held = client.holding(settings)
    y = targets(settings.data, held.y)
    trees = [
        structure(settings.seed, number, settings.depth, held.x.shape[1]) for number in range(1, turn + 1)
    ]
    rest = y - predicted(trees[:-1], values, held.x)
    places = leaves_of(trees[-1], held.x)
    count = 1 << settings.depth
    sums, sizes = np.bincount(places, rest, count), np.bincount(places, minlength=count)
    leaves = np.clip(sums / (sizes + settings.ridge), -_clip(settings, turn), _clip(settings, turn))
    return answered(message, {LEAVES: leaves})


class Boosting(DecodingStrategy):
    """One new tree in each round, whose leaves are the clients' mean leaves times the rate."""

    def __init__(self, settings: BRRSettings, **options: Any) -> None:
        super().__init__(_codec(settings, 1), **options)
        self._settings = settings
        self._values: NDArray[np.float64] = np.zeros(0)
        self._now = 0

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send the ensemble so far, and ask for the leaves of the next tree."""
        self._now = self._turn(server_round)
        self.codec = _codec(self._settings, self._now)
        self._values = arrays.to_numpy_ndarrays()[0]
        asked = to_record({LEAVES: np.zeros(1 << self._settings.depth)})
        messages = list(super().configure_train(server_round, asked, config, grid))
        for message in messages:
            message.content[ENSEMBLE] = ArrayRecord({"000": Array(self._values)})
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Put the mean leaves into the ensemble."""
        if self._settings.private:
            arrays, metrics = super().aggregate_train(server_round, replies)
        else:
            arrays, metrics = FedAvg.aggregate_train(self, server_round, replies)
        if arrays is None:
            return None, metrics
        values = self._values.copy()
        values[self._now - 1] = self._settings.rate * arrays.to_numpy_ndarrays()[0]
        return ArrayRecord({"000": Array(values)}), metrics


def serve(settings: BRRSettings, grid: Grid) -> None:
    """Grow the trees."""
    data, train_, test = loaded(settings.data)
    truth = targets(settings.data, data.test_labels)
    trees = [
        structure(settings.seed, number, settings.depth, train_.shape[1])
        for number in range(1, settings.rounds + 1)
    ]

    def evaluate(current: list[NDArray[Any]]) -> Mapping[str, float]:
        return {"rmse": float(np.sqrt(np.mean(np.square(predicted(trees, current[0], test) - truth))))}

    def strategy(first_round: int, rows: Rows) -> FedAvg:
        return Boosting(settings, first_round=first_round, **settings.federation())

    drive(
        grid,
        settings,
        system=NAME,
        strategy=strategy,
        initial=[np.zeros((settings.rounds, 1 << settings.depth))],
        evaluate=evaluate,
        metric="rmse",
        privacy=privacy(
            settings,
            1 << settings.depth,
            settings.rounds,
            covers="all records of a client together, against any others",
            not_covered="that the client takes part"
            + ("" if data.classes else "; the range of the targets, which was learned from all records"),
        ),
    )
