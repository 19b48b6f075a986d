"""BitRand (Algorithm 1): records are randomized once, bit by bit, and train a network in all rounds.

Beside it are the baselines of the paper: other mechanisms on the features, or on the updates with and without
an anonymiser, and training without privacy; and the honest deployment (`once`), which releases a record once
at an epsilon that is true. Flower's own commands start the same two apps:
``bitldp_papers.bitrand:server_app`` and ``:client_app``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from bitldp.federated import PrivateData, PrivateUpdateMod
from bitldp.federated.client.data import Released
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import added, composed
from flwr.app import ArrayRecord, Context, Message
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray

from bitldp_papers.bitrand import once, records
from bitldp_papers.bitrand.settings import LABELS, MECHANISMS, PLACES, BitRandSettings
from bitldp_papers.bitrand.updates import Layers, Shuffled
from bitldp_papers.models import nets
from bitldp_papers.run.client import Client, answered, silent
from bitldp_papers.run.drive import Privacy, Rows, drive, turn_of
from bitldp_papers.run.share import Holding, loaded
from bitldp_papers.run.system import System

__all__ = ["SYSTEM", "client_app", "model", "privacy", "scorer", "server_app"]

NAME = "bitrand"
_TEST = 0x7E57  # of the seed of the randomized test records


def _private_mod(settings: BitRandSettings, client: Client) -> PrivateUpdateMod:
    size = sum(array.size for array in model(settings))
    budget = composed(settings.update_mechanism(size).guarantee.record, settings.rounds)
    return PrivateUpdateMod(
        settings.update_mechanism,
        budget=min(budget, client.budget),
        ledger=client.home / "ledger.json",
        create=client.create,
        rng=settings.seed if client.seeded else None,
        repeat=client.home / "last-report.npz",
        **settings.update_options(),
    )


def _mod(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Release updates, where the settings say so; else a reply is computed from released records alone."""
    settings = BitRandSettings.of(context.run_config)
    if settings.place == "features" or not settings.private:
        return call_next(message, context)
    return _private_mod(settings, Client.of(context, NAME))(message, context, call_next)


client_app = ClientApp(mods=[silent, _mod])


def _kept(
    settings: BitRandSettings, client: Client, features: Mechanism, labels: Mechanism | None, output: str
) -> Released:
    """Return the client's records as they were released, once."""
    client.same(settings)
    data, _, _ = loaded(settings.data)
    cost = added(features.guarantee.record, 0.0 if labels is None else labels.guarantee.record)

    def original() -> tuple[NDArray[Any], NDArray[Any] | None]:
        held = client.holding(settings)
        if not settings.once:
            return records.sources(settings, held.x), held.y if labels is not None else None
        inside = once.in_ball(held.x, settings.radius)
        if labels is not None:
            return inside, held.y
        return once.packed(inside, held.y, data.classes), None

    kept = PrivateData(
        client.home / "released.npz",
        features,
        labels=labels,
        output=output,
        ledger=client.home / "ledger.json",
        create=client.create,
        budget=min(client.budget, cost),
    )
    return kept.get(original, rng=client.release_seed(settings))


def _records(settings: BitRandSettings, client: Client) -> Holding:
    """Return what a client trains on: its records as they were released, or as they are."""
    if not settings.private:
        client.expose("a model trained on the records as they are")
    if not settings.private or settings.place == "updates":
        held = client.holding(settings)
        return Holding(records.plain(settings, held.x), held.y)
    data, train, _ = loaded(settings.data)
    features = settings.features_mechanism(train.shape[1])
    labels = settings.label_mechanism(data.classes) if settings.labelled else None
    if labels is None:
        client.expose("a model trained on the labels as they are")
    released = _kept(settings, client, features, labels, "values")
    x = records.release(settings, np.asarray(released.features), features)
    if labels is None:
        return Holding(x, client.holding(settings).y)
    assert released.labels is not None
    return Holding(x, records.targets(labels, released.labels))


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Train the received model on the client's records, or sum up what they are worth."""
    settings = BitRandSettings.of(context.run_config)
    client = Client.of(context, NAME)
    record = message.content["arrays"]
    assert isinstance(record, ArrayRecord)
    current = record.to_numpy_ndarrays()
    if settings.once:
        data, train, _ = loaded(settings.data)
        chosen = settings.plan(train.shape[1], data.classes)
        released = _kept(settings, client, chosen.features, chosen.labels, "codes")
        found = once.cross(chosen, released.features, released.labels, data.classes)
        return answered(message, once.replied(found))
    if settings.mechanism != "random":
        held = _records(settings, client)
        current = nets.train(
            current,
            held.x,
            held.y,
            epochs=settings.epochs,
            batch=settings.batch or len(held.x),
            rate=settings.rate,
            seed=client.training_seed(settings, turn_of(message)),
        )
    if settings.mechanism == "ldp-fl":
        current = list(Layers(model(settings), settings.spread).standardized(current))
    return answered(message, current)


server_app = ServerApp()


def model(settings: BitRandSettings) -> list[NDArray[np.float32]]:
    """Return the model before the first round."""
    data, train, _ = loaded(settings.data)
    if settings.once:
        return once.replied(np.zeros((train.shape[1], data.classes), np.float32))
    return nets.initial((train.shape[1], settings.hidden, settings.hidden, data.classes), settings.seed)


def privacy(settings: BitRandSettings) -> Privacy:
    """Return what all rounds together cost a client, or one of its records."""
    if not settings.private:
        if settings.mechanism == "random":
            return Privacy(claimed=0.0, record=0.0, covers="all records: nothing of them is looked at")
        return Privacy(claimed=np.inf, record=np.inf, covers="nothing: this run has no privacy")
    data, train, _ = loaded(settings.data)
    aside = "that the client takes part, and how many records it holds"
    if settings.once:
        return Privacy(
            claimed=settings.epsilon,
            record=settings.plan(train.shape[1], data.classes).epsilon,
            covers="one record (features and label) of a client against any other",
            not_covered=aside,
        )
    if settings.place == "features":
        features = settings.features_mechanism(train.shape[1]).guarantee.record
        if not settings.labelled:
            return Privacy(
                claimed=settings.epsilon,
                record=features,
                covers="the features of one record of a client against any others",
                not_covered=f"the labels, which train the network as they are (label_epsilon=inf); {aside}",
                claimed_for="",
            )
        return Privacy(
            claimed=added(settings.epsilon, settings.label_epsilon),
            record=added(features, settings.label_mechanism(data.classes).guarantee.record),
            covers="one record (features and label) of a client against any other",
            not_covered=aside,
        )
    one = settings.update_mechanism(sum(array.size for array in model(settings))).guarantee
    return Privacy(
        claimed=settings.epsilon,
        record=composed(one.record, settings.rounds),
        covers="all records of a client together, against any others",
        not_covered="that the client takes part",
    )


def scorer(settings: BitRandSettings) -> Any:
    """Return a function of a model: its scores on the test records, clean and (where they are) randomized."""
    data, _, test = loaded(settings.data)
    if settings.once:
        inside = once.in_ball(test, settings.radius)

        def linear(current: list[NDArray[Any]]) -> Mapping[str, float]:
            return nets.judged(once.scores_of(current, inside, settings.clients), data.test_labels)

        return linear
    clean = records.plain(settings, test)
    noisy = None
    if settings.private and settings.place == "features":
        noisy = records.randomized(settings, test, rng=np.random.SeedSequence([settings.seed, _TEST]))

    def dense(current: list[NDArray[Any]]) -> Mapping[str, float]:
        found = dict(nets.judged(nets.logits(current, clean), data.test_labels))
        if noisy is not None:
            other = nets.judged(nets.logits(current, noisy), data.test_labels)
            found |= {f"randomized-{name}": other[name] for name in ("accuracy", "auc")}
        return {**found, "loss": nets.loss(current, clean, data.test_labels)}

    return dense


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    """Average the clients' models, or the means of their released updates, round by round."""
    settings = BitRandSettings.of(context.run_config)
    options = settings.federation()

    def strategy(first_round: int, rows: Rows) -> FedAvg:
        if settings.place == "features" or not settings.private:
            return FedAvg(**options)
        layers = Layers(model(settings), settings.spread) if settings.mechanism == "ldp-fl" else None
        return Shuffled(
            settings.update_mechanism,
            anonymiser=settings.anonymiser,
            layers=layers,
            first_round=first_round,
            **settings.update_options(),
            **options,
        )

    drive(
        grid,
        settings,
        system=NAME,
        strategy=strategy,
        initial=list(model(settings)),
        evaluate=scorer(settings),
        privacy=privacy(settings),
        caveat=_caveat(settings),
    )


def _caveat(settings: BitRandSettings) -> str:
    """Say what was chosen, and what the score is of."""
    data, train, _ = loaded(settings.data)
    if settings.once:
        return f"released as: {settings.plan(train.shape[1], data.classes)}"
    if not settings.private or settings.place == "updates":
        return ""
    said = "accuracy is on clean test records, randomized-accuracy on test records that were released alike"
    return said if math.isfinite(settings.label_epsilon) else f"labels leave as they are; {said}"


SYSTEM = System(
    name=NAME,
    summary="records randomized once, bit by bit, and a dense network trained on them (BitRand, Algorithm 1)",
    settings=BitRandSettings,
    client_app=client_app,
    server_app=server_app,
    choices={"mechanism": MECHANISMS, "place": PLACES, "label": LABELS},
)
