"""Settings of the system `ldpfl`, with the paper's as a preset."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import bitldp
from bitldp.base import checks
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import PrivacyClaimWarning

from bitldp_papers.ldpfl.extractor import Network, Training, network_of
from bitldp_papers.models.steps import OPTIMIZERS
from bitldp_papers.run.settings import Settings
from bitldp_papers.run.share import loaded

__all__ = ["MECHANISMS", "STARTS", "WITHOUT", "LDPFLSettings"]

#: Mechanisms of the bits, by the name in the settings; "noiseless" leaves them as they are.
MECHANISMS: dict[str, Callable[..., Mechanism]] = {
    "uer-paper": lambda features, **words: bitldp.UER(features, calibration="paper", **words),
    "moue-paper": lambda features, **words: bitldp.MOUE(features, calibration="paper", **words),
    "moue": bitldp.MOUE,
}
WITHOUT = "noiseless"
STARTS = ("shared", "own")


@dataclass(frozen=True, kw_only=True)
class LDPFLSettings(Settings):
    """Settings of the system `ldpfl`.

    Attributes
    ----------
    mechanism : str
        One of `MECHANISMS`, or "noiseless".
    epsilon : float
        Promised for a record's bits, by the paper's theorem or the exact calibration.
    alpha : float
        As of `MOUE`.
    bits, integer_bits : int
        Of the fixed-point code (sign, whole, fraction) of an extracted feature.
    records, tested : int
        Records that all clients hold together, and test records that each looks at; 0: all there are.
    dealt : int
        Clients that the records are dealt to, of whom the first take part: with 50, each of two clients holds
        what it holds as one of fifty, as in the paper. 0: those that take part.
    filters, blocks : int
        Of the client's own convolutional network: filters of the first block (each next one has twice as
        many), and 2 or 3 blocks, as in the paper's Figs. 3 and 4.
    extractor_epochs, extractor_rate, extractor_optimizer : int, float, str
        Of its training.
    extractor_start : {"shared", "own"}
        Whether all clients begin it from the same weights, which are public and cost no privacy, or each from
        weights of its own, whose features mean something else for each client.
    batch_norm, augment : bool
        Whether it normalises by batch, and sees images turned by up to 15 degrees and shifted by up to .1.
    ridge : float
        L2 penalty on its kernels.
    hidden, epochs, batch : int
        Units of the dense network's layer, and its training in a round.
    rate, optimizer : float, str
        Of that training; "sgd" has no momentum.
    """

    mechanism: str = "uer-paper"
    epsilon: float = 0.5
    alpha: float = 10.0
    bits: int = 10
    integer_bits: int = 4
    records: int = 0
    tested: int = 0
    dealt: int = 0
    filters: int = 32
    blocks: int = 2
    extractor_epochs: int = 50
    extractor_rate: float = 0.01
    extractor_optimizer: str = "sgd"
    extractor_start: str = "shared"
    batch_norm: bool = False
    augment: bool = False
    ridge: float = 0.0
    hidden: int = 512
    clients: int = 10
    rounds: int = 80
    epochs: int = 20
    batch: int = 64
    rate: float = 0.01
    optimizer: str = "sgd"

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "clients": 3,
            "rounds": 10,
            "filters": 16,
            "extractor_epochs": 30,
            "hidden": 128,
            "epochs": 5,
            "rate": 0.05,
        },
        "paper": {
            "data": "mnist",
            "clients": 2,
            "rounds": 100,
            "extractor_rate": 0.001,
            "extractor_optimizer": "rmsprop",
            "batch_norm": True,
            "augment": True,
            "ridge": 1e-4,
            "rate": 0.001,
            "optimizer": "adam",
        },
        "paper-fashion": {
            "data": "fashion_mnist",
            "clients": 10,
            "rounds": 80,
            "blocks": 3,
            "extractor_rate": 0.001,
            "extractor_optimizer": "rmsprop",
            "batch_norm": True,
            "augment": True,
            "ridge": 1e-4,
            "rate": 0.001,
        },
    }
    differences: ClassVar[str] = (
        "clients test on the public test set, not on a tenth of their records, and train on all of those; "
        "CIFAR-10 and SVHN are not at hand: fashion_mnist and mnist stand in. On a CPU the clients' networks "
        "take hours; minutes with --set records=10000 --set extractor_epochs=3 "
        "--set extractor_optimizer=sgd --set extractor_rate=0.03 --set batch_norm=false --set augment=false "
        "--set optimizer=sgd --set rate=0.1"
    )

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        checks.choice("mechanism", self.mechanism, (*MECHANISMS, WITHOUT))
        checks.choice("extractor_start", self.extractor_start, STARTS)
        for name in ("extractor_optimizer", "optimizer"):
            checks.choice(name, getattr(self, name), OPTIMIZERS)
        for name in ("filters", "extractor_epochs", "hidden", "epochs", "batch"):
            checks.integer(name, getattr(self, name), 1)
        checks.integer("blocks", self.blocks, 2, 3)
        for name in ("records", "tested"):
            checks.integer(name, getattr(self, name), 0)
        for name in ("rate", "extractor_rate"):
            checks.positive(name, getattr(self, name))
        checks.budget("ridge", self.ridge)
        checks.integer("dealt", self.dealt, 0)
        if 0 < self.dealt < self.clients:
            raise ValueError(f"dealt: must be 0, or at least the {self.clients} clients that take part")
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

    @property
    def most(self) -> int | None:
        """The most records that all clients hold together."""
        return self.records or None

    @property
    def shares(self) -> int:
        """The number of clients that the records are dealt to."""
        return self.dealt or self.clients

    @property
    def training(self) -> Training:
        """Training of a client's own network."""
        return Training(
            self.extractor_epochs,
            self.extractor_rate,
            self.extractor_optimizer,
            self.ridge,
            self.augment,
        )

    def network(self) -> Network:
        """Return the client's own network."""
        data, train, _ = loaded(self.data)
        return network_of(
            train.shape[1],
            classes=data.classes,
            filters=self.filters,
            blocks=self.blocks,
            norm=self.batch_norm,
        )

    def flat(self) -> int:
        """Return the number of features that the convolutions make of an image."""
        return self.network().flat
