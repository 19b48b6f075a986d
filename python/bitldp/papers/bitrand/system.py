"""BitRand (Algorithm 1): records are randomized once, bit by bit, and train a network in all rounds.

Beside it are the baselines of the paper: other mechanisms on the features, or on the updates with and without
an anonymiser, and training without privacy. Flower's own commands start the same two apps:
``bitldp.papers.bitrand:server_app`` and ``:client_app``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from flwr.app import ArrayRecord, Context, Message
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import ClientAppCallable
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray

import bitldp
from bitldp.base import checks
from bitldp.federated import DecodingStrategy, PrivateData, PrivateUpdateMod
from bitldp.mechanism.base import Mechanism
from bitldp.papers.models import nets
from bitldp.papers.run.client import Client, answered, silent
from bitldp.papers.run.drive import Privacy, Rows, drive, turn_of
from bitldp.papers.run.settings import Settings
from bitldp.papers.run.share import Holding, loaded
from bitldp.papers.run.system import System
from bitldp.privacy import PrivacyClaimWarning, added, composed, share

__all__ = ["SYSTEM", "BitRandSettings", "client_app", "server_app"]

NAME = "bitrand"

Build = Callable[[int, float, Mapping[str, Any]], Mechanism]


def _bits(kind: Any, **fixed: Any) -> Build:
    return lambda features, epsilon, words: kind(features, epsilon=epsilon, **words, **fixed)


def _numbers(kind: Any) -> Build:
    return lambda features, epsilon, words: kind(epsilon, features=features)


#: What releases the features of a record, by the name in the settings.
FEATURES: dict[str, Build] = {
    "bitrand": _bits(bitldp.FRR),
    "bitrand-paper": _bits(bitldp.FRR, calibration="paper"),
    "latent": _bits(bitldp.MOUE),
    "ome": _bits(bitldp.UER, calibration="paper"),
    "duchi": _numbers(bitldp.Duchi),
    "pm": _numbers(bitldp.Piecewise),
    "pm-sub": _numbers(bitldp.PiecewiseSub),
    "hm": _numbers(bitldp.Hybrid),
    "three-outputs": _numbers(bitldp.ThreeOutputs),
}
#: What releases an update, coordinate by coordinate.
UPDATES: dict[str, Any] = {
    "duchi": bitldp.Duchi,
    "pm": bitldp.Piecewise,
    "pm-sub": bitldp.PiecewiseSub,
    "hm": bitldp.Hybrid,
    "three-outputs": bitldp.ThreeOutputs,
    "ldp-fl": bitldp.LDPFLDuchi,
}
#: Runs without any release.
WITHOUT = ("noiseless", "random")
LABELS = ("label-rr", "label-laplace")
PLACES = ("features", "updates")


@dataclass(frozen=True, kw_only=True)
class BitRandSettings(Settings):
    """Settings of the system `bitrand`.

    Attributes
    ----------
    mechanism : str
        One of `FEATURES` or, with ``place="updates"``, of `UPDATES`; or "noiseless", or "random".
    place : {"features", "updates"}
        Whether records are released once, or the client's update in every round.
    epsilon : float
        Budget of the features of a record; with ``place="updates"``, of all updates of a client.
    label : {"label-rr", "label-laplace"}
        What releases the label of a record.
    label_epsilon : float
        Its budget.
    anonymiser : bool
        Updates: whether they are split and shuffled, so that (as Sun et al. argue) every coordinate of every
        round may spend the whole budget. That is what is claimed; the exact epsilon adds up.
    bits, integer_bits : int
        Of the fixed-point code of a feature in [-1, 1].
    hidden : int
        Units of each of the two layers.
    epochs, batch : int
        Of a client's training in a round.
    rate, clip : float
        Step size; l2 norm that an update is clipped to.
    """

    mechanism: str = "bitrand"
    place: str = "features"
    epsilon: float = 100.0
    label: str = "label-rr"
    label_epsilon: float = 2.0
    anonymiser: bool = False
    bits: int = 10
    integer_bits: int = 0
    hidden: int = 1500
    clients: int = 20
    rounds: int = 50
    epochs: int = 1
    batch: int = 32
    rate: float = 0.05
    clip: float = 1.0

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "epsilon": 300.0,
            "clients": 10,
            "rounds": 15,
            "hidden": 128,
            "epochs": 2,
            "rate": 0.1,
        }
    }

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        checks.choice("place", self.place, PLACES)
        table = FEATURES if self.place == "features" else UPDATES
        checks.choice("mechanism", self.mechanism, (*table, *WITHOUT))
        checks.choice("label", self.label, LABELS)
        checks.budget("label_epsilon", self.label_epsilon)
        if self.anonymiser and self.place != "updates":
            raise ValueError("anonymiser: is for place='updates'")
        for name in ("hidden", "epochs", "batch"):
            checks.integer(name, getattr(self, name), 1)
        for name in ("rate", "clip"):
            checks.positive(name, getattr(self, name))

    @property
    def private(self) -> bool:
        """Whether anything is released through a mechanism."""
        return self.mechanism not in WITHOUT

    def features_mechanism(self, features: int) -> Mechanism:
        """Return the mechanism for the features of a record."""
        words = {"bits": self.bits, "integer_bits": self.integer_bits}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyClaimWarning)  # the summary shows both epsilons
            return FEATURES[self.mechanism](features, self.epsilon, words)

    def label_mechanism(self, classes: int) -> Mechanism:
        """Return the mechanism for the label of a record."""
        kind = bitldp.LabelRR if self.label == "label-rr" else bitldp.LabelLaplace
        mechanism: Mechanism = kind(classes, epsilon=self.label_epsilon)
        return mechanism

    def update_mechanism(self, size: int) -> Mechanism:
        """Return the mechanism for one update of `size` coordinates."""
        kind = UPDATES[self.mechanism]
        if self.anonymiser:
            mechanism: Mechanism = kind(self.epsilon, features=size, unit="feature")
        else:
            mechanism = kind(share(self.epsilon, self.rounds), features=size, spend="sample")
        return mechanism

    def update_options(self) -> dict[str, Any]:
        """Return the options that both sides of a release of updates share."""
        return {"clip": self.clip, "norm": "l2"}


def _private_mod(settings: BitRandSettings, client: Client) -> PrivateUpdateMod:
    size = sum(array.size for array in _model(settings))
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


def _records(settings: BitRandSettings, client: Client) -> Holding:
    """Return what a client trains on: its records as they were released, or as they are."""
    if not settings.private:
        client.expose("a model trained on the records as they are")
    if not settings.private or settings.place == "updates":
        return client.holding(settings)
    client.same(settings)
    data, train, _ = loaded(settings.data)
    features, labels = settings.features_mechanism(train.shape[1]), settings.label_mechanism(data.classes)
    kept = PrivateData(
        client.home / "released.npz",
        features,
        labels=labels,
        ledger=client.home / "ledger.json",
        create=client.create,
        budget=min(client.budget, added(features.guarantee.record, labels.guarantee.record)),
    )

    def original() -> tuple[NDArray[Any], NDArray[Any]]:
        held = client.holding(settings)
        return held.x, held.y

    released = kept.get(original, rng=client.release_seed(settings))
    assert released.labels is not None
    return Holding(np.asarray(released.features, np.float32), labels.decode(released.labels))


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Train the received model on the client's records."""
    settings = BitRandSettings.of(context.run_config)
    client = Client.of(context, NAME)
    record = message.content["arrays"]
    assert isinstance(record, ArrayRecord)
    model = record.to_numpy_ndarrays()
    if settings.mechanism != "random":
        records = _records(settings, client)
        model = nets.train(
            model,
            records.x,
            records.y,
            epochs=settings.epochs,
            batch=settings.batch,
            rate=settings.rate,
            seed=client.training_seed(settings, turn_of(message)),
        )
    return answered(message, model)


server_app = ServerApp()


def _model(settings: BitRandSettings) -> list[NDArray[np.float32]]:
    data, train, _ = loaded(settings.data)
    return nets.initial((train.shape[1], settings.hidden, settings.hidden, data.classes), settings.seed)


def _privacy(settings: BitRandSettings) -> Privacy:
    """Return what all rounds together cost a client, or one of its records."""
    if not settings.private:
        if settings.mechanism == "random":
            return Privacy(claimed=0.0, record=0.0, covers="all records: nothing of them is looked at")
        return Privacy(claimed=np.inf, record=np.inf, covers="nothing: this run has no privacy")
    data, train, _ = loaded(settings.data)
    if settings.place == "features":
        parts = (settings.features_mechanism(train.shape[1]), settings.label_mechanism(data.classes))
        return Privacy(
            claimed=added(settings.epsilon, settings.label_epsilon),
            record=added(*(part.guarantee.record for part in parts)),
            covers="one record (features and label) of a client against any other",
            not_covered="that the client takes part, and how many records it holds",
        )
    one = settings.update_mechanism(sum(array.size for array in _model(settings))).guarantee
    return Privacy(
        claimed=settings.epsilon,
        record=composed(one.record, settings.rounds),
        covers="all records of a client together, against any others",
        not_covered="that the client takes part",
    )


@server_app.main()
def main(grid: Grid, context: Context) -> None:
    """Average the clients' models, or the means of their released updates, round by round."""
    settings = BitRandSettings.of(context.run_config)
    data, _, test = loaded(settings.data)
    options = settings.federation()

    def strategy(first_round: int, rows: Rows) -> FedAvg:
        if settings.place == "features" or not settings.private:
            return FedAvg(**options)
        return DecodingStrategy(
            settings.update_mechanism, first_round=first_round, **settings.update_options(), **options
        )

    drive(
        grid,
        settings,
        system=NAME,
        strategy=strategy,
        initial=list(_model(settings)),
        evaluate=partial(nets.scores, x=test, y=data.test_labels),
        privacy=_privacy(settings),
    )


SYSTEM = System(
    name=NAME,
    summary="records randomized once, bit by bit, and a dense network trained on them (BitRand, Algorithm 1)",
    settings=BitRandSettings,
    client_app=client_app,
    server_app=server_app,
    choices={
        "mechanism": tuple(dict.fromkeys((*FEATURES, *UPDATES, *WITHOUT))),
        "place": PLACES,
        "label": LABELS,
    },
)
