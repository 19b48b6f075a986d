"""LDPFL (Algorithm 1): clients train together on randomized outputs of their own convolutions.

Each client trains a convolutional network on its own records, encodes the flattened output of its
convolutions to bits, randomizes them once (UER) and trains a dense network on them by federated averaging;
the update of one client, drawn anew in every round, is dropped. Flower's own commands start the same apps:
``bitldp.papers.ldpfl:server_app`` and ``:client_app``.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray

import bitldp
from bitldp.base import checks
from bitldp.base.files import replacing
from bitldp.federated import PrivateData
from bitldp.mechanism.base import Mechanism
from bitldp.papers.ldpfl import extractor
from bitldp.papers.models import nets
from bitldp.papers.run.client import Client, answered, silent
from bitldp.papers.run.drive import Privacy, drive, turn_of
from bitldp.papers.run.settings import Settings
from bitldp.papers.run.share import loaded
from bitldp.papers.run.system import System
from bitldp.privacy import PrivacyClaimWarning

__all__ = ["SYSTEM", "LDPFLSettings", "client_app", "server_app"]

NAME = "ldpfl"

#: What randomizes the bits, by the name in the settings; "noiseless" leaves them as they are.
MECHANISMS: dict[str, Callable[..., Mechanism]] = {
    "uer-paper": lambda features, **words: bitldp.UER(features, calibration="paper", **words),
    "moue-paper": lambda features, **words: bitldp.MOUE(features, calibration="paper", **words),
    "moue": bitldp.MOUE,
}
WITHOUT = "noiseless"
_FEWEST = 3  # clients, for one to be dropped


@dataclass(frozen=True, kw_only=True)
class LDPFLSettings(Settings):
    """Settings of the system `ldpfl`.

    Attributes
    ----------
    mechanism : str
        One of `MECHANISMS`, or "noiseless".
    epsilon : float
        What the paper's theorem, or the exact calibration, promises for a record's bits.
    alpha : float
        As of `MOUE`.
    bits, integer_bits : int
        Of the fixed-point code (sign, whole, fraction) of an extracted feature.
    filters, extractor_epochs : int
        Of the client's own convolutional network.
    hidden, epochs, batch : int
        Units of the dense network's layer, and its training in a round.
    rate, extractor_rate : float
        Step sizes.
    """

    mechanism: str = "uer-paper"
    epsilon: float = 0.5
    alpha: float = 10.0
    bits: int = 10
    integer_bits: int = 4
    filters: int = 32
    extractor_epochs: int = 50
    extractor_rate: float = 0.01
    hidden: int = 512
    clients: int = 10
    rounds: int = 80
    epochs: int = 20
    batch: int = 64
    rate: float = 0.01

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "clients": 3,
            "rounds": 10,
            "filters": 16,
            "extractor_epochs": 30,
            "hidden": 128,
            "epochs": 5,
            "rate": 0.05,
        }
    }

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        checks.choice("mechanism", self.mechanism, (*MECHANISMS, WITHOUT))
        for name in ("filters", "extractor_epochs", "hidden", "epochs", "batch"):
            checks.integer(name, getattr(self, name), 1)
        for name in ("rate", "extractor_rate"):
            checks.positive(name, getattr(self, name))
        self.codec()  # refuses bits that do not fit each other

    def codec(self) -> bitldp.FixedPoint:
        """Return the codec of an extracted feature."""
        return bitldp.FixedPoint(self.bits, integer_bits=self.integer_bits, sign="ldpfl")

    def build(self, features: int) -> Mechanism:
        """Return the mechanism for the bits of `features` extracted features."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyClaimWarning)  # the summary shows both epsilons
            return MECHANISMS[self.mechanism](
                features,
                bits=self.bits,
                integer_bits=self.integer_bits,
                epsilon=self.epsilon,
                alpha=self.alpha,
            )

    def flat(self) -> int:
        """Return the number of features that the convolutions make of an image."""
        _, train, _ = loaded(self.data)
        probe = extractor.fitted(
            train[:1], np.zeros(1, int), classes=2, filters=self.filters, epochs=0, rate=1.0, seed=0
        )
        return int(probe[-2].shape[0])


def _plain_bits(settings: LDPFLSettings, features: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return the bits of features without noise, most significant first, as a mechanism lays them."""
    words = settings.codec().encode(features)
    places = np.arange(settings.bits - 1, -1, -1)
    return (words[..., None] >> places & 1).astype(np.uint8).reshape(len(features), -1)


def _extractor(settings: LDPFLSettings, client: Client) -> list[NDArray[np.float32]]:
    """Return the client's own network; trained once, then kept in its folder."""
    path = client.home / "extractor.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            return [file[name] for name in sorted(file.files)]
    held = client.holding(settings)
    data, _, _ = loaded(settings.data)
    network = extractor.fitted(
        held.x,
        held.y,
        classes=data.classes,
        filters=settings.filters,
        epochs=settings.extractor_epochs,
        rate=settings.extractor_rate,
        seed=client.training_seed(settings, 0),
    )
    with replacing(path) as file:
        np.savez(file, **{f"{place:03}": array for place, array in enumerate(network)})  # type: ignore[arg-type]
    return network


def _bits(settings: LDPFLSettings, client: Client) -> NDArray[Any]:
    """Return the bits that the client trains on: randomized once, the first time."""

    def features() -> NDArray[np.float32]:
        return extractor.extract(_extractor(settings, client), client.holding(settings).x)

    if settings.mechanism == WITHOUT:
        return _plain_bits(settings, features())
    mechanism = settings.build(settings.flat())
    kept = PrivateData(
        client.home / "released.npz",
        mechanism,
        output="bits",
        ledger=client.home / "ledger.json",
        create=client.create,
        budget=min(client.budget, mechanism.guarantee.record),
    )
    released: NDArray[Any] = kept.get(lambda: (features(), None), rng=client.release_seed(settings)).features
    return released


@lru_cache(maxsize=64)
def _test_bits(settings: LDPFLSettings, client: Client) -> NDArray[np.uint8]:
    """Return the bits of the public test records, seen through the client's own convolutions."""
    _, _, test = loaded(settings.data)
    return _plain_bits(settings, extractor.extract(_extractor(settings, client), test))


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
        client.holding(settings).y,
        epochs=settings.epochs,
        batch=settings.batch,
        rate=settings.rate,
        seed=client.training_seed(settings, turn_of(message)),
    )
    return answered(message, model)


@client_app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Score the network on public test records, seen through the client's own convolutions."""
    settings = LDPFLSettings.of(context.run_config)
    client = Client.of(context, NAME)
    client.expose("the accuracy of its own extractor")
    data, _, _ = loaded(settings.data)
    record = message.content["arrays"]
    assert isinstance(record, ArrayRecord)
    bits = _test_bits(settings, client)
    model = record.to_numpy_ndarrays()
    scores: dict[str, Any] = {**nets.scores(model, bits, data.test_labels), "num-examples": 1}
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
        if len(came) >= _FEWEST:
            came.pop(random.Random(f"bitldp {self._seed} {server_round}").randrange(len(came)))
        return super().aggregate_train(server_round, came)


server_app = ServerApp()


def _privacy(settings: LDPFLSettings) -> Privacy:
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
    data, _, _ = loaded(settings.data)
    sizes = (settings.flat() * settings.bits, settings.hidden, data.classes)
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
        initial=list(nets.initial(sizes, settings.seed)),
        evaluate=None,
        privacy=_privacy(settings),
    )


SYSTEM = System(
    name=NAME,
    summary="flattened features of a network of one's own, randomized as bits (LDPFL, Algorithm 1)",
    settings=LDPFLSettings,
    client_app=client_app,
    server_app=server_app,
    choices={"mechanism": (*MECHANISMS, WITHOUT)},
)
