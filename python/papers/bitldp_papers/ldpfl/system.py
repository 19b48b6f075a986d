"""LDPFL (Algorithm 1): clients train together on randomized outputs of their own convolutions.

Each client trains a convolutional network on its own records, encodes the flattened output of its
convolutions to bits, randomizes them once (UER) and trains a dense network on them by federated averaging;
the update of one client, drawn anew in every round, is dropped. Flower's own commands start the same apps:
``bitldp_papers.ldpfl:server_app`` and ``:client_app``.

Without messages (`learned`), what a sweep shares (a client's network does not depend on epsilon or alpha) is
computed once a process.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from bitldp.base.files import replacing
from flwr.app import ArrayRecord, Message, MetricRecord
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray

from bitldp_papers.ldpfl import extractor
from bitldp_papers.ldpfl.settings import MECHANISMS, STARTS, WITHOUT, LDPFLSettings
from bitldp_papers.models import nets
from bitldp_papers.models.steps import OPTIMIZERS
from bitldp_papers.run.client import Client
from bitldp_papers.run.rounds import NO_PRIVACY, Privacy, Round, Rows, Turn, course
from bitldp_papers.run.share import Holding, holding, loaded
from bitldp_papers.run.system import System
from bitldp_papers.run.vectors import Model

__all__ = [
    "SYSTEM",
    "DropOne",
    "OwnNetwork",
    "client_app",
    "fitted_network",
    "learned",
    "looked",
    "of_networks",
    "own_networks",
    "server_app",
    "tested",
]

FEWEST = 3  # clients, for one to be dropped
_SHARED = 0x57A7  # of the seed of the weights that all clients begin from
_RELEASE, _TRAIN = 0x5EED, 0x02DE  # of the seed, without messages


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
    shifts = np.arange(settings.bits - 1, -1, -1)
    return (words[..., None] >> shifts & 1).astype(np.uint8).reshape(len(features), -1)


def tested(settings: LDPFLSettings) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Return the public test records that clients look at, and their labels."""
    data, _, test = loaded(settings.data)
    count = settings.tested or len(test)
    return test[:count], data.test_labels[:count]


def holding_of(settings: LDPFLSettings, client: Client) -> Holding:
    """Return the records of a client that takes part."""
    return replace(client, clients=settings.dealt or client.clients).holding(settings, settings.most)


def kept_network(settings: LDPFLSettings, client: Client) -> list[NDArray[np.float32]]:
    """Return the client's own network; trained once, then kept in its folder."""
    path = client.folder / "extractor.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            return [file[name] for name in sorted(file.files)]
    held = holding_of(settings, client)
    network = own_network(settings, held.x, held.y, client.training_seed(settings, 0))
    with replacing(path) as file:
        np.savez(file, **{f"{index:03}": array for index, array in enumerate(network)})  # type: ignore[arg-type]
    return network


@lru_cache(maxsize=64)
def _test_bits(settings: LDPFLSettings, client: Client) -> NDArray[np.uint8]:
    """Return the bits of the public test records, seen through the client's own convolutions."""
    features = extractor.extract(settings.network(), kept_network(settings, client), tested(settings)[0])
    return plain_bits(settings, features)


@dataclass(frozen=True, eq=False)
class OwnNetwork:
    """Results of one client's own network.

    Attributes
    ----------
    features, tests : ndarray of float32, shape (n, flat)
        Of its records and of the test records.
    labels : ndarray of int, shape (n,)
    course : ndarray of float, shape (epochs, 2)
        Accuracy of the network on the client's records and on the test records, after each epoch.
    """

    features: NDArray[np.float32]
    tests: NDArray[np.float32]
    labels: NDArray[Any]
    course: NDArray[np.float64]


def of_networks(settings: LDPFLSettings) -> LDPFLSettings:
    """Return the settings that clients' own networks depend on, the rest as by default."""
    dense = ("bits", "integer_bits", "hidden", "rounds", "epochs", "batch", "rate", "optimizer")
    others = ("mechanism", "epsilon", "alpha", *dense, "out", "resume")
    usual = LDPFLSettings()
    words: dict[str, Any] = {name: getattr(usual, name) for name in others}
    return replace(settings, **words, clients=settings.shares, dealt=settings.shares)


def fitted_network(settings: LDPFLSettings, index: int) -> dict[str, NDArray[Any]]:
    """Return the parameters ("000", ...) of a client's own network, and its "course".

    Parameters
    ----------
    settings : LDPFLSettings
    index : int
        Of the client, from 0.

    Returns
    -------
    dict
        As `OwnNetwork` describes the course: what a sweep keeps, since nothing else takes long.
    """
    network, (tests, labels) = settings.network(), tested(settings)
    held = _held(settings, index)
    seed = np.random.SeedSequence(settings.seed, spawn_key=(_TRAIN, index, 0))
    epochs: list[tuple[float, float]] = []

    def watch(current: Any) -> None:
        some = slice(len(labels))
        own = extractor.accuracy(network, current, held.x[some], held.y[some])
        epochs.append((own, extractor.accuracy(network, current, tests, labels)))

    trained = own_network(settings, held.x, held.y, seed, watch)
    return {**{f"{i:03}": array for i, array in enumerate(trained)}, "course": np.array(epochs)}


def looked(settings: LDPFLSettings, index: int, fitted: Mapping[str, NDArray[Any]]) -> OwnNetwork:
    """Return what a client's own network, as in `fitted_network`, makes of its records and the tests."""
    network, held = settings.network(), _held(settings, index)
    trained = [fitted[name] for name in sorted(fitted) if name != "course"]
    own, seen = (extractor.extract(network, trained, each) for each in (held.x, tested(settings)[0]))
    return OwnNetwork(own, seen, held.y, fitted["course"])


def _held(settings: LDPFLSettings, index: int) -> Holding:
    return holding(settings.data, index, settings.shares, seed=settings.seed, most=settings.most)


def own_networks(settings: LDPFLSettings) -> tuple[OwnNetwork, ...]:
    """Return the networks of all clients of a run; those that are the same are trained once."""
    chosen = of_networks(settings)
    return tuple(_own_network(chosen, index) for index in range(settings.clients))


@lru_cache(maxsize=64)
def _own_network(settings: LDPFLSettings, index: int) -> OwnNetwork:
    return looked(settings, index, fitted_network(settings, index))


class LDPFLRound(Round[LDPFLSettings]):
    """A dense network, trained on the bits of the clients' extracted features.

    Parameters
    ----------
    settings : LDPFLSettings
    networks : sequence of OwnNetwork, optional
        Without messages, the clients' own networks where they are known: else `own_networks`.
    """

    clients_score = True

    def __init__(self, settings: LDPFLSettings, networks: Sequence[OwnNetwork] | None = None) -> None:
        super().__init__(settings)
        self._networks = networks

    def initial(self) -> Model:
        settings = self.settings
        data, _, _ = loaded(settings.data)
        sizes = (settings.flat() * settings.bits, settings.hidden, data.classes)
        return list(nets.initial(sizes, settings.seed))

    def privacy(self) -> Privacy:
        settings = self.settings
        if settings.mechanism == WITHOUT:
            return NO_PRIVACY
        return Privacy(
            claimed=settings.epsilon,
            record=settings.build(settings.flat()).guarantee.record,
            covers="the extracted features of one record, given a fixed extractor",
            not_covered="the extractor, which is trained on the same records; the labels, which train the "
            "dense network as they are; the accuracy that clients report; how many records a client holds",
        )

    def exposed(self) -> str:
        return "a model trained on the true labels, and the accuracy of its own extractor"

    def _bits(self, client: Client) -> NDArray[Any]:
        """Return the bits that the client trains on: randomized once, the first time."""
        settings = self.settings

        def original() -> NDArray[np.float32]:
            held = holding_of(settings, client)
            return extractor.extract(settings.network(), kept_network(settings, client), held.x)

        if settings.mechanism == WITHOUT:
            return plain_bits(settings, original())
        mechanism = settings.build(settings.flat())
        kept = client.private_data(mechanism, mechanism.guarantee.record, output="bits")
        released = kept.get(lambda: (original(), None), rng=client.release_seed(settings))
        return released.features

    def fitted(
        self, model: Model, bits: NDArray[Any], labels: NDArray[Any], seed: np.random.SeedSequence
    ) -> Model:
        """Return the dense network after a client's training."""
        settings = self.settings
        trained = nets.train(
            model,
            bits,
            labels,
            epochs=settings.epochs,
            batch=settings.batch,
            rate=settings.rate,
            optimizer=settings.optimizer,
            seed=seed,
        )
        return list(trained)

    def train(self, turn: Turn) -> Model:
        """Train the received dense network on the client's randomized bits and its true labels."""
        settings, client = self.settings, turn.client
        labels = holding_of(settings, client).y
        seed = client.training_seed(settings, turn.number)
        return self.fitted(turn.arrays(), self._bits(client), labels, seed)

    def score(self, turn: Turn) -> Mapping[str, float]:
        """Return the scores on public test records, seen through the client's own convolutions."""
        bits = _test_bits(self.settings, turn.client)
        return nets.scores(turn.arrays(), bits, tested(self.settings)[1])

    def strategy(self, first_round: int, rows: Rows) -> FedAvg:
        scored = {"fraction_evaluate": 1.0, "min_evaluate_nodes": self.settings.clients}
        return DropOne(self.settings.seed, **{**self.settings.federation(), **scored})

    # All clients in this process.

    @cached_property
    def _clients(self) -> list[tuple[NDArray[np.uint8], NDArray[Any], NDArray[np.uint8]]]:
        """Bits of each client's records, their labels, and the bits of the test records."""
        settings, clients = self.settings, []
        for index, own in enumerate(self._networks or own_networks(settings)):
            bits = plain_bits(settings, own.features) if settings.mechanism == WITHOUT else None
            if bits is None:
                mechanism: Any = settings.build(settings.flat())
                seed = np.random.SeedSequence(settings.seed, spawn_key=(_RELEASE, index))
                bits = mechanism.randomize(own.features, rng=seed, output="bits")
            clients.append((bits, own.labels, plain_bits(settings, own.tests)))
        return clients

    def scores(self, model: Sequence[NDArray[Any]]) -> Mapping[str, float]:
        labels = tested(self.settings)[1]
        scores = [nets.scores(list(model), tests, labels) for _, _, tests in self._clients]
        return {name: float(np.mean([each[name] for each in scores])) for name in ("accuracy", "loss")}

    def played(self, model: Model, turn: int) -> Model:
        """Return the mean of the clients' networks, but for the one that is dropped."""
        seed = self.settings.seed
        models = [
            self.fitted(model, bits, labels, np.random.SeedSequence(seed, spawn_key=(_TRAIN, index, turn)))
            for index, (bits, labels, _) in enumerate(self._clients)
        ]
        return [np.mean(layers, axis=0) for layers in zip(*without_one(models, seed, turn), strict=True)]


def without_one(answers: list[Any], seed: int, turn: int) -> list[Any]:
    """Return a round's answers without one, which is drawn anew in each round; few are kept as they are."""
    if len(answers) < FEWEST:
        return answers
    dropped = random.Random(f"bitldp {seed} {turn}").randrange(len(answers))
    return [*answers[:dropped], *answers[dropped + 1 :]]


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
        return super().aggregate_train(server_round, without_one(came, self._seed, server_round))


def learned(settings: LDPFLSettings, networks: Sequence[OwnNetwork] | None = None) -> dict[str, Any]:
    """Return the course of a run without messages: scores after each round, and the epsilons.

    Parameters
    ----------
    settings : LDPFLSettings
        Releases take their randomness from its seed: for experiments only.
    networks : sequence of OwnNetwork, optional
        The clients' own networks; by default as in `own_networks`.

    Returns
    -------
    dict
        "accuracy" and "loss", lists by round, on clean test records seen through each client's own network,
        averaged over the clients; "claimed" and "exact" epsilon of a record's features.
    """
    rounds = LDPFLRound(settings, networks)
    rows, about = course(rounds, every=1)[1:], rounds.privacy()
    scores = {name: [row[name] for row in rows] for name in ("accuracy", "loss")}
    return {**scores, "claimed": about.claimed, "exact": about.record}


SYSTEM = System(
    name="ldpfl",
    summary="flattened features of a network of one's own, randomized as bits (LDPFL, Algorithm 1)",
    settings=LDPFLSettings,
    rounds=LDPFLRound,
    choices={
        "mechanism": (*MECHANISMS, WITHOUT),
        "extractor_start": STARTS,
        "extractor_optimizer": OPTIMIZERS,
        "optimizer": OPTIMIZERS,
    },
)
client_app, server_app = SYSTEM.client_app, SYSTEM.server_app
