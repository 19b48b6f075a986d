"""Training on records released once through BRR, feature by feature (DNN-DP)."""

from __future__ import annotations

from functools import partial
from typing import Any

from bitldp.federated import PrivateData
from flwr.app import ArrayRecord, Message
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray

from bitldp_papers.brr.settings import NAME, BRRSettings, privacy
from bitldp_papers.models import nets
from bitldp_papers.run.client import Client, answered
from bitldp_papers.run.drive import drive, turn_of
from bitldp_papers.run.share import loaded

__all__ = ["mod", "serve", "train"]


def mod(settings: BRRSettings, client: Client, message: Message) -> None:
    """Return no mod: what is sent is computed from released features."""


def _features(settings: BRRSettings, client: Client) -> NDArray[Any]:
    if not settings.private:
        return client.holding(settings).x
    _, train_, _ = loaded(settings.data)
    mechanism = settings.build(train_.shape[1], 1)
    kept = PrivateData(
        client.home / "released.npz",
        mechanism,
        ledger=client.home / "ledger.json",
        create=client.create,
        budget=min(client.budget, mechanism.guarantee.record),
    )
    released: NDArray[Any] = kept.get(
        lambda: (client.holding(settings).x, None), rng=client.release_seed(settings)
    ).features
    return released


def train(settings: BRRSettings, client: Client, message: Message) -> Message:
    """Train the received model on the client's released features and its true labels."""
    client.expose("a model trained on the true labels")
    record = message.content["arrays"]
    assert isinstance(record, ArrayRecord)
    model = nets.train(
        record.to_numpy_ndarrays(),
        _features(settings, client),
        client.holding(settings).y,
        epochs=settings.epochs,
        batch=settings.batch,
        rate=0.05 * settings.rate,
        seed=client.training_seed(settings, turn_of(message)),
    )
    return answered(message, model)


def serve(settings: BRRSettings, grid: Grid) -> None:
    """Run the rounds."""
    data, train_, test = loaded(settings.data)

    drive(
        grid,
        settings,
        system=NAME,
        strategy=lambda first_round, rows: FedAvg(**settings.federation()),
        initial=list(
            nets.initial((train_.shape[1], settings.hidden, settings.hidden, data.classes), settings.seed)
        ),
        evaluate=partial(nets.scores, x=test, y=data.test_labels),
        privacy=privacy(
            settings,
            train_.shape[1],
            1,
            covers="the features of one record of a client against any others",
            not_covered="the labels, which train the network as they are; how many records a client holds",
        ),
    )
