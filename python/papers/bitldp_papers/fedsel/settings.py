"""Settings of the system `fedsel`, and the mechanisms that they name."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import bitldp
from bitldp.base import checks
from bitldp.federated import UpdateCodec
from bitldp.mechanism.base import Mechanism
from bitldp.numeric import Piecewise
from bitldp.privacy import PrivacyClaimWarning, composed, share
from bitldp.selection import EXP, PE, PS, Compressed, FedSel, flat, selection_of

from bitldp_papers.run.rounds import NO_PRIVACY, Privacy
from bitldp_papers.run.settings import Settings

__all__ = [
    "MECHANISMS",
    "MODELS",
    "NAME",
    "SELECTIONS",
    "VALUES",
    "FedSelSettings",
    "codec",
    "privacy",
    "selecting",
    "selection",
]

NAME = "fedsel"
#: Releases of a gradient, and the baselines that send it without privacy.
PRIVATE = ("fedsel", "flat", "compressed")
WITHOUT = ("full", "random", "top")
MECHANISMS = (*PRIVATE, *WITHOUT)
SELECTIONS = ("PS", "EXP", "PE")
#: Mechanisms of the value of a coordinate; "none" leaves it as it is, to look at the selection alone.
VALUES: dict[str, Any] = {"pm": Piecewise, "hm": bitldp.Hybrid, "duchi": bitldp.Duchi, "none": None}
MODELS = ("logistic", "svm")
SPLITS = ("fixed", "free")
DELAYS = ("gradients", "steps")


@dataclass(frozen=True, kw_only=True)
class FedSelSettings(Settings):
    """Settings of the system `fedsel`.

    Attributes
    ----------
    clients, batch, rounds : int
        Clients that hold the records, those of them that take part in a round, and rounds. A client
        takes part once in each epoch, which has clients/batch rounds.
    epsilon : float
        Budget of a client over all rounds together, split evenly over the epochs.
    mechanism : {"fedsel", "flat", "compressed", "full", "random", "top"}
        Two stages; the baselines of random coordinates and of a random projection; and without privacy, the
        gradient as it is, one coordinate drawn at random (d times as large), or the largest.
    select : {"PS", "EXP", "PE"}
        "fedsel": the selection.
    calibration : {"exact", "paper"}
        "PE": as in `bitldp.selection.PE`.
    values : {"pm", "hm", "duchi", "none"}
        Mechanism of a value. "none" is for "fedsel", where the selection alone gets the whole budget and
        the value leaves as it is: no privacy.
    k : int
        "PS" and "PE": coordinates that count as large; 0 for a tenth of them.
    split : {"fixed", "free"}
        "fedsel": whether the selection gets the share `mu` of a round's budget, or what
        `bitldp.selection.split_budget` leaves it, with `threshold`.
    mu, threshold : float
    momentum : float
        "fedsel" and "top": the factor eta.
    delay : {"gradients", "steps"}
        "fedsel" and "top": what a client accumulates until it is sent. "steps", the gradient times the rate,
        is the competitor of Section 5.3.
    c : int
        "flat" and "compressed": coordinates that are released.
    ratio : float
        "compressed": numbers after the projection, of those before.
    model : {"logistic", "svm"}
        Loss. Of more than two classes, each is separated from all others.
    rate, ridge : float
        Step size alpha; weight lambda of the squared norm.
    lowest : float
        Features are scaled to [lowest, 1]. At 0, a category's indicator that is off takes no part.

    Notes
    -----
    Defaults are the paper's where it states them (Section 5.1: a batch of a hundredth of the clients, one
    epoch, k = d/10, mu = 0.1, lambda = 0.0001, theta = 0.2); it states neither alpha nor eta.
    """

    data: str = "adult"
    clients: int = 32561
    batch: int = 326
    rounds: int = 100
    epsilon: float = 2.0
    mechanism: str = "fedsel"
    select: str = "PS"
    calibration: str = "exact"
    values: str = "pm"
    k: int = 0
    split: str = "fixed"
    mu: float = 0.1
    threshold: float = 0.2
    momentum: float = 0.1
    delay: str = "gradients"
    c: int = 1
    ratio: float = 0.1
    model: str = "logistic"
    rate: float = 3.0
    ridge: float = 1e-4
    lowest: float = -1.0

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "data": "breast_cancer",
            "clients": 450,
            "batch": 45,
            "rounds": 20,
            "epsilon": 8.0,
            "rate": 10.0,
        },
        "paper": {"rate": 1.0},
    }
    differences: ClassVar[str] = (
        "KDD99 is not there; Adult has 108 features where the paper counts 123, Bank 51 where it counts 32, "
        "and the split is the source's (Adult) or four to one, where the paper takes means of ten times five "
        "folds; alpha (1 here) and eta (.1) are not in the paper. At rate .1 random coordinates are ahead. "
        "Print the majority class beside an accuracy: Adult .764, Bank .880."
    )

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        checks.integer("batch", self.batch, 1, self.clients)
        for name, words in {
            "mechanism": MECHANISMS,
            "select": SELECTIONS,
            "calibration": ("exact", "paper"),
            "values": tuple(VALUES),
            "split": SPLITS,
            "delay": DELAYS,
            "model": MODELS,
        }.items():
            checks.choice(name, getattr(self, name), words)
        if self.values == "none" and self.mechanism in ("flat", "compressed"):
            raise ValueError(f"values: 'none' is not for mechanism={self.mechanism!r}; that is 'random'")
        if self.calibration == "paper" and self.select != "PE":
            raise ValueError("calibration: 'paper' needs select='PE'; the claims of the others hold")
        checks.positive("epsilon", self.epsilon)
        checks.integer("k", self.k, 0)
        checks.integer("c", self.c, 1)
        checks.budget("momentum", self.momentum)
        for name in ("rate", "ratio"):
            checks.positive(name, getattr(self, name))
        checks.budget("ridge", self.ridge)
        for name in ("mu", "threshold"):
            if not 0.0 <= checks.real(name, getattr(self, name)) < 1.0:
                raise ValueError(f"{name}: must be in [0, 1)")
        if not self.ratio <= 1.0:
            raise ValueError("ratio: must be at most 1")
        if not -1.0 <= checks.real("lowest", self.lowest) <= 0.0:
            raise ValueError("lowest: must be between -1 and 0")

    @property
    def private(self) -> bool:
        """True where everything that leaves a client goes through a mechanism."""
        return self.mechanism in PRIVATE and self.values != "none"

    @property
    def accumulates(self) -> bool:
        """True where a client keeps what it has not sent yet."""
        return self.mechanism in ("fedsel", "top")

    @property
    def epoch(self) -> int:
        """Number of rounds in which every client takes part once."""
        return -(-self.clients // self.batch)

    @property
    def releases(self) -> int:
        """Number of releases of a client at most: epochs, E."""
        return -(-self.rounds // self.epoch)

    @property
    def client_rate(self) -> float:
        """Factor of a client's gradient before it is accumulated."""
        return self.rate if self.accumulates and self.delay == "steps" else 1.0

    @property
    def server_rate(self) -> float:
        """Factor of the mean update before it is subtracted."""
        return self.rate / self.client_rate

    def top(self, size: int) -> int | None:
        """Return how many of `size` coordinates count as large, where the selection asks for it."""
        return None if self.k == 0 or self.select == "EXP" else min(self.k, size - 1)

    def build(self, size: int) -> Mechanism:
        """Return the mechanism for one gradient of `size` coordinates."""
        if self.mechanism == "fedsel":
            return selecting(self, size).stages
        epsilon, values = share(self.epsilon, self.releases), VALUES[self.values]
        if self.mechanism == "flat":
            return flat(size, epsilon=epsilon, c=min(self.c, size), release=values)
        compressed = min(size, max(2, math.ceil(self.ratio * size)))
        return Compressed(
            size,
            compressed=compressed,
            epsilon=epsilon,
            public_seed=self.seed,
            c=min(self.c, compressed),
            release=values,
        )


@lru_cache(maxsize=8)
def selecting(settings: FedSelSettings, size: int) -> FedSel:
    """Return FedSel for gradients of `size` coordinates; its `fresh` makes a client."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyClaimWarning)  # the summary shows both epsilons
        return FedSel(
            size,
            epsilon=settings.epsilon,
            rounds=settings.releases,
            select=settings.select,  # type: ignore[arg-type]
            k=settings.top(size),
            release=VALUES[settings.values],
            mu=settings.mu if settings.split == "fixed" else None,
            batch=settings.batch,
            threshold=settings.threshold,
            momentum=settings.momentum,
            calibration=settings.calibration,  # type: ignore[arg-type]
        )


@lru_cache(maxsize=8)
def selection(settings: FedSelSettings, size: int) -> EXP | PE | PS:
    """Return the selection that has the whole budget, for ``values="none"``."""
    epsilon = share(settings.epsilon, settings.releases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyClaimWarning)
        return selection_of(settings.select, size, settings.top(size), epsilon, settings.calibration)  # type: ignore[arg-type]


@lru_cache(maxsize=8)
def codec(settings: FedSelSettings) -> UpdateCodec:
    """Return the codec of both sides for gradients whose coordinates are clipped to [-1, 1]."""
    return UpdateCodec(
        settings.build,
        clip=1.0,
        norm="linf",
        update="gradient",
        interval=(-1.0, 1.0),
        allow_biased=settings.mechanism != "flat",
    )


def privacy(settings: FedSelSettings, size: int) -> Privacy:
    """Return the cost of all rounds together for a client."""
    if not settings.private:
        return NO_PRIVACY
    times = "in its one round" if settings.releases == 1 else f"in all {settings.releases} of its rounds"
    return Privacy(
        claimed=settings.epsilon,
        record=composed(settings.build(size).guarantee.record, settings.releases),
        covers=f"all that a client holds, {times}, against anything else",
        not_covered="that the client takes part, and in which rounds",
    )
