"""LDPFL (Algorithm 1): clients train together on randomized outputs of their own convolutions.

Each client trains a convolutional network on its own records, encodes the flattened output of its
convolutions to bits, randomizes them once (UER) and trains a dense network on them by federated averaging;
the update of one client, drawn anew in every round, is dropped. Flower's own commands start the same apps:
``bitldp_papers.ldpfl:server_app`` and ``:client_app``.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from bitldp.base.files import replacing
from bitldp.federated import PrivateData
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray

from bitldp_papers.ldpfl import extractor, features
from bitldp_papers.ldpfl.settings import MECHANISMS, STARTS, WITHOUT, LDPFLSettings
from bitldp_papers.models import nets
from bitldp_papers.models.steps import OPTIMIZERS
from bitldp_papers.run.client import Client, answered, silent
from bitldp_papers.run.drive import Privacy, drive, turn_of
from bitldp_papers.run.share import loaded
from bitldp_papers.run.system import System

__all__ = ["FEWEST", "SYSTEM", "DropOne", "client_app", "initial", "privacy", "server_app"]

NAME = "ldpfl"

FEWEST = 3  # clients, for one to be dropped


def _extractor(settings: LDPFLSettings, client: Client) -> list[NDArray[np.float32]]:
    """Return the client's own network; trained once, then kept in its folder."""
    path = client.home / "extractor.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            return [file[name] for name in sorted(file.files)]
    held = client.holding(settings, settings.most)
    network = features.own_network(settings, held.x, held.y, client.training_seed(settings, 0))
    with replacing(path) as file:
        np.savez(file, **{f"{place:03}": array for place, array in enumerate(network)})  # type: ignore[arg-type]
    return network


def _bits(settings: LDPFLSettings, client: Client) -> NDArray[Any]:
    """Return the bits that the client trains on: randomized once, the first time."""

    def original() -> NDArray[np.float32]:
        held = client.holding(settings, settings.most)
        return extractor.extract(settings.network(), _extractor(settings, client), held.x)

    if settings.mechanism == WITHOUT:
        return features.plain_bits(settings, original())
    mechanism = settings.build(settings.flat())
    kept = PrivateData(
        client.home / "released.npz",
        mechanism,
        output="bits",
        ledger=client.home / "ledger.json",
        create=client.create,
        budget=min(client.budget, mechanism.guarantee.record),
    )
    released: NDArray[Any] = kept.get(lambda: (original(), None), rng=client.release_seed(settings)).features
    return released


@lru_cache(maxsize=64)
def _test_bits(settings: LDPFLSettings, client: Client) -> NDArray[np.uint8]:
    """Return the bits of the public test records, seen through the client's own convolutions."""
    return features.test_bits(settings, _extractor(settings, client))


client_app = ClientApp(mods=[silent])


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Train the received dense network on the client's randomized bits and its true labels."""
    settings = LDPFLSettings.of(context.run_config)
    client = Client.of(context, NAME)
    client.expose("a model trained on the true labels")
    record = message.content["arrays"]
    assert isinstance(record, ArrayRecord)
    model = nets.train(
        record.to_numpy_ndarrays(),
        _bits(settings, client),
        client.holding(settings, settings.most).y,
        epochs=settings.epochs,
        batch=settings.batch,
        rate=settings.rate,
        optimizer=settings.optimizer,
        seed=client.training_seed(settings, turn_of(message)),
    )
    return answered(message, model)


@client_app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Score the network on public test records, seen through the client's own convolutions."""
    settings = LDPFLSettings.of(context.run_config)
    client = Client.of(context, NAME)
    client.expose("the accuracy of its own extractor")
    record = message.content["arrays"]
    assert isinstance(record, ArrayRecord)
    bits, (_, labels) = _test_bits(settings, client), features.tested(settings)
    scores: dict[str, Any] = {**nets.scores(record.to_numpy_ndarrays(), bits, labels), "num-examples": 1}
    return Message(RecordDict({"metrics": MetricRecord(scores)}), reply_to=message)


class DropOne(FedAvg):
    """Federated averaging without one client's update, drawn by `seed` anew in each round."""

    def __init__(self, seed: int, **options: Any) -> None:
        super().__init__(**options)
        self._seed = seed

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Average all replies but one."""
        came = [reply for reply in replies if not reply.has_error()]  # who failed is dropped already
        if len(came) >= FEWEST:
            came.pop(random.Random(f"bitldp {self._seed} {server_round}").randrange(len(came)))
        return super().aggregate_train(server_round, came)


server_app = ServerApp()


def initial(settings: LDPFLSettings) -> list[NDArray[np.float32]]:
    """Return the dense network before the first round."""
    data, _, _ = loaded(settings.data)
    return nets.initial((settings.flat() * settings.bits, settings.hidden, data.classes), settings.seed)


def privacy(settings: LDPFLSettings) -> Privacy:
    """Return what the release of a record's bits costs."""
    if settings.mechanism == WITHOUT:
        return Privacy(claimed=np.inf, record=np.inf, covers="nothing: this run has no privacy")
    exact = settings.build(settings.flat()).guarantee
    return Privacy(
        claimed=settings.epsilon,
        record=exact.record,
        covers="the extracted features of one record, given a fixed extractor",
        not_covered="the extractor, which is trained on the same records; the labels, which train the dense "
        "network as they are; the accuracy that clients report; how many records a client holds",
    )


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    """Average the clients' dense networks round by round."""
    settings = LDPFLSettings.of(context.run_config)
    nodes = settings.clients
    drive(
        grid,
        settings,
        system=NAME,
        strategy=lambda first_round, rows: DropOne(
            settings.seed,
            fraction_train=1.0,
            fraction_evaluate=1.0,
            min_train_nodes=nodes,
            min_evaluate_nodes=nodes,
            min_available_nodes=nodes,
        ),
        initial=list(initial(settings)),
        evaluate=None,
        privacy=privacy(settings),
    )


SYSTEM = System(
    name=NAME,
    summary="flattened features of a network of one's own, randomized as bits (LDPFL, Algorithm 1)",
    settings=LDPFLSettings,
    client_app=client_app,
    server_app=server_app,
    choices={
        "mechanism": (*MECHANISMS, WITHOUT),
        "extractor_start": STARTS,
        "extractor_optimizer": OPTIMIZERS,
        "optimizer": OPTIMIZERS,
    },
)
