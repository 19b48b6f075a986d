"""FedSel (Algorithm 1): in each epoch a client sends one perturbed coordinate of its accumulated gradient.

Linear models by federated stochastic gradient descent: each round asks a batch of the clients, each epoch all
of them. Beside the two stages are the baselines of the paper: random coordinates, a random projection, and
gradients without privacy. Flower's own commands start the same two apps:
``bitldp_papers.fedsel:server_app`` and ``:client_app``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from bitldp.base.lock import locked
from bitldp.federated import DecodingStrategy, Layout, from_record
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from bitldp_papers.fedsel.client import MEMORY, Memory, identity_of, question_of, update_mod
from bitldp_papers.fedsel.settings import (
    MECHANISMS,
    MODELS,
    NAME,
    SELECTIONS,
    VALUES,
    FedSelSettings,
    codec,
    privacy,
    selection,
)
from bitldp_papers.models import linear as _model
from bitldp_papers.run.client import Client, answered, silent
from bitldp_papers.run.drive import Rows, drive, turn_of
from bitldp_papers.run.share import loaded
from bitldp_papers.run.system import System

__all__ = ["SYSTEM", "FedSelSettings", "client_app", "server_app"]

_SPARSE = (
    "the mean of the sparse updates is a biased estimate of the mean gradient, on purpose: coordinates that "
    "are seldom selected count less"
)
_CAVEATS = {
    "fedsel": _SPARSE,
    "top": _SPARSE,
    "compressed": "the estimate of the mean gradient is biased: a random projection cannot be undone",
}


def _initial(settings: FedSelSettings) -> NDArray[np.float32]:
    data, train, _ = loaded(settings.data)
    return _model.initial(train.shape[1], data.classes)


def _mod(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Release the gradient, unless the settings say that there is no privacy."""
    settings = FedSelSettings.of(context.run_config)
    client = Client.of(context, NAME)
    if not settings.private:
        client.expose("what it computes from its records as they are")
        return call_next(message, context)
    return update_mod(settings, client, _initial(settings).size)(message, context, call_next)


client_app = ClientApp(mods=[silent, _mod])


def _gradient(settings: FedSelSettings, client: Client, weights: NDArray[Any]) -> NDArray[np.float64]:
    held = client.holding(settings)
    x, y = _model.design(held.x, settings.lowest), _model.targets(held.y, weights.shape[1])
    return settings.client_rate * _model.gradient(weights, x, y, settings.model, settings.ridge)


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Return the gradient of the client's loss; without privacy, the model after a step along its update."""
    settings = FedSelSettings.of(context.run_config)
    client = Client.of(context, NAME)
    record = message.content["arrays"]
    assert isinstance(record, ArrayRecord)
    model = from_record(record)
    (name, weights), *others = model.items()
    if others:
        raise ValueError("arrays: a linear model has one")
    found = _gradient(settings, client, weights)
    if not settings.private:
        found = weights - settings.server_rate * _plain(settings, client, message, model, found)
    return answered(message, {name: found.astype(weights.dtype)})


def _plain(
    settings: FedSelSettings,
    client: Client,
    message: Message,
    model: Mapping[str, NDArray[Any]],
    gradient: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the update of a client without privacy, or with a private selection alone."""
    if settings.mechanism == "full":
        return gradient
    layout = Layout.of(model)
    if settings.mechanism == "random":
        place = int(
            np.random.default_rng(client.training_seed(settings, turn_of(message))).integers(layout.size)
        )
        return _sparse(gradient, place, layout.size * gradient.flat[place])
    path = client.home / MEMORY
    identity, question = identity_of(settings, layout), question_of(message, layout, model)
    with locked(path):
        memory = Memory.load(path, identity, layout.size)
        if memory.question == question:  # asked again after a restart of the server
            return np.frombuffer(memory.answer).reshape(gradient.shape)
        residual = memory.residual + gradient.reshape(1, -1)
        place = _selected(settings, client, message, residual)
        moved = residual + settings.momentum * memory.residual
        update = np.zeros(gradient.shape)
        if place < layout.size:
            update = _sparse(gradient, place, moved[0, place])
            residual[0, place] = 0.0
        Memory(residual, memory.released + 1, question, update.tobytes()).save(path, identity)
    return update


def _selected(
    settings: FedSelSettings, client: Client, message: Message, residual: NDArray[np.float64]
) -> int:
    """Return the place of the largest coordinate, or of the one that the selection alone names."""
    if settings.mechanism == "top":
        return int(np.argmax(np.abs(residual)))
    chosen = selection(settings, residual.shape[1])
    return int(chosen.randomize(residual, rng=client.release_seed(settings, turn_of(message)), threads=1)[0])


def _sparse(like: NDArray[np.float64], place: int, value: float) -> NDArray[np.float64]:
    update = np.zeros(like.shape)
    update.flat[place] = value
    return update


server_app = ServerApp()


class Epochs(FedAvg):
    """Federated averaging with a batch of clients in each round, and each client once in an epoch."""

    def __init__(self, settings: FedSelSettings, **options: Any) -> None:
        super().__init__(
            fraction_train=1.0,
            fraction_evaluate=0.0,
            min_train_nodes=1,
            min_available_nodes=settings.clients,
            **options,
        )
        self._settings = settings
        self._met = False

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Choose the batch of a round by its number and the seed alone."""
        nodes = sorted(grid.get_node_ids())
        while not self._met and len(nodes) < self._settings.clients:
            time.sleep(1.0)  # until they are there; later on, nobody waits for those who left
            nodes = sorted(grid.get_node_ids())
        self._met = True
        epoch, place = divmod(server_round - 1, self._settings.epoch)
        rng = np.random.default_rng(np.random.SeedSequence([self._settings.seed, 0xE90C, epoch]))
        batch = np.array_split(rng.permutation(len(nodes)), self._settings.epoch)[place]
        config["server-round"] = server_round
        content = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config})
        return [
            Message(content=content, message_type=MessageType.TRAIN, dst_node_id=nodes[each])
            for each in np.sort(batch)
        ]


class DecodingEpochs(DecodingStrategy, Epochs):
    """Epochs of private reports, whose mean, times the rate, is subtracted."""


@lru_cache(maxsize=2)
def _test(settings: FedSelSettings) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[Any]]:
    data, _, test = loaded(settings.data)
    outputs = _initial(settings).shape[1]
    x = _model.design(test, settings.lowest)
    return x, _model.targets(data.test_labels, outputs), data.test_labels


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    """Average the clients' updates round by round."""
    settings = FedSelSettings.of(context.run_config)
    data, _, _ = loaded(settings.data)
    if data.task != "classification":
        raise ValueError(f"data: {settings.data} has no classes to tell apart")
    weights = _initial(settings)

    def strategy(first_round: int, rows: Rows) -> FedAvg:
        if not settings.private:
            return Epochs(settings)
        return DecodingEpochs(
            codec(settings), rate=-settings.server_rate, first_round=first_round, settings=settings
        )

    def evaluate(model: list[NDArray[Any]]) -> Mapping[str, float]:
        x, y, labels = _test(settings)
        found = {
            "accuracy": _model.accuracy(model[0], x, labels),
            "loss": _model.loss(model[0], x, y, settings.model),
        }
        if data.classes == 2:
            found["auc"] = float(roc_auc_score(labels, (x @ model[0])[:, 0]))
        return found

    drive(
        grid,
        settings,
        system=NAME,
        strategy=strategy,
        initial=[weights],
        evaluate=evaluate,
        privacy=privacy(settings, weights.size),
        caveat=_CAVEATS.get(settings.mechanism, ""),
    )


SYSTEM = System(
    name=NAME,
    summary="one coordinate of each client's gradient, selected and perturbed (FedSel, Algorithm 1)",
    settings=FedSelSettings,
    client_app=client_app,
    server_app=server_app,
    choices={"mechanism": MECHANISMS, "select": SELECTIONS, "values": tuple(VALUES), "model": MODELS},
)
