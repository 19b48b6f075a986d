"""Settings of the system `brr`, and the mechanism that all its tasks use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import bitldp
import numpy as np
from bitldp.base import checks
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import composed, share

from bitldp_papers.run.rounds import NO_PRIVACY, Privacy
from bitldp_papers.run.settings import Settings

__all__ = [
    "MECHANISMS",
    "NAME",
    "NETS",
    "SPLIT",
    "TASKS",
    "UNITS",
    "WITHOUT",
    "BRRSettings",
    "needed",
    "privacy",
]

NAME = "brr"
TASKS = ("sgd", "vectors", "trees")
WITHOUT = "noiseless"
#: The paper's ranges of BRR-SGD, [-C, 0] or [0, C] by the sign of a coordinate, which they tell.
SPLIT = "sign-split"
MECHANISMS = ("brr", "brr-best", "grr", "pm", "laplace", SPLIT, WITHOUT)
NETS = ("dense", "cnn")
UNITS = ("feature", "record")


@dataclass(frozen=True, kw_only=True)
class BRRSettings(Settings):
    """Settings of the system `brr`.

    Attributes
    ----------
    task : {"sgd", "vectors", "trees"}
    mechanism : {"brr", "brr-best", "grr", "pm", "laplace", "sign-split", "noiseless"}
        BRR with the paper's m or with the best one; GRR on the same points; the Piecewise Mechanism; discrete
        Laplace noise; the paper's BRR-SGD, whose range depends on a coordinate's sign ("sgd" alone: its exact
        epsilon is infinite); or none.
    unit : {"feature", "record"}
        Coverage of `epsilon`: one number of one release, as in the paper's comparisons, or everything that a
        client (with ``task="vectors"``: one of its records) releases in all rounds.
    points : int
        Points that the range of a number is cut to for BRR and GRR.
    corrected : bool
        "sgd": whether the mean of BRR's reports is divided by its public gain about 0, which the paper does
        not do: at epsilon 1 the mean of its reports is a third of a small number. Leaves of trees are not
        divided: the trees that follow fit what is left.
    net : {"dense", "cnn"}
        "sgd": one hidden layer, or the paper's convolutions, for images of 28 x 28.
    hidden, epochs, batch : int
        Units of the network's layer, and a client's training ("sgd": one gradient over `batch` records).
    rate : float
        Step size; of trees, what a leaf's mean is multiplied by.
    norm : {"l2", "linf"}
        "sgd": which norm of the gradient is clipped; the paper's is l2, which leaves each of many coordinates
        a small part of the range that is cut to points.
    clip, clip_least, decay : float
        "sgd": norm that the first gradient is clipped to, the least such norm C_min, and rho of its moving
        average.
    lowest : float
        "sgd": features are scaled to [lowest, 1], in [-1, 0]; images are of [0, 1] in the paper.
    depth : int
        "trees": of every tree; there are `rounds` trees.
    shrink, ridge : float
        "trees": leaves of tree t are clipped to ``clip (1 - shrink)^(t-1)``; ridge is lambda.
    """

    data: str = "digits"
    task: str = "sgd"
    mechanism: str = "brr"
    unit: str = "feature"
    epsilon: float = 1.0
    points: int = 21
    corrected: bool = True
    net: str = "dense"
    hidden: int = 64
    clients: int = 20
    rounds: int = 100
    epochs: int = 5
    batch: int = 64
    rate: float = 1.0
    norm: str = "l2"
    clip: float = 1.0
    clip_least: float = 0.01
    decay: float = 0.9
    lowest: float = -1.0
    depth: int = 4
    shrink: float = 0.05
    ridge: float = 1.0

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "clients": 20,
            "rounds": 30,
            "hidden": 32,
            "epsilon": 4.0,
            "norm": "linf",
            "clip": 0.05,
        },
        "paper": {
            "data": "mnist",
            "net": "cnn",
            "lowest": 0.0,
            "clients": 10,
            "batch": 128,
            "rounds": 300,
            "epsilon": 0.3,
            "norm": "linf",
            "clip": 0.02,
            "clip_least": 0.02,
            "rate": 0.5,
        },
    }
    differences: ClassVar[str] = (
        "each of 10 clients perturbs its own gradient, where the paper's server perturbs the mean of 2,048 "
        "records' (central privacy, with a 'total budget'); the range is [-C, C], where the paper's tells "
        "the sign (--mechanism sign-split); coordinates are clipped, where the paper clips the norm, which "
        "leaves each of 26,010 coordinates a small part of the range; the mean is divided by BRR's public "
        "gain; the threshold follows what was released; scores are of test records, where the authors' "
        "public code of Fig. 9 scores its training images. Paper's: rate .001, 200 epochs."
    )

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        checks.choice("task", self.task, TASKS)
        checks.choice("mechanism", self.mechanism, MECHANISMS)
        checks.choice("unit", self.unit, UNITS)
        checks.choice("norm", self.norm, ("l2", "linf"))
        checks.choice("net", self.net, NETS)
        if self.mechanism == SPLIT and self.task != "sgd":
            raise ValueError(f"mechanism: {SPLIT!r} is for task='sgd'")
        checks.integer("points", self.points, 2, 1 << 12)
        checks.integer("depth", self.depth, 1, 12)
        for name in ("hidden", "epochs", "batch"):
            checks.integer(name, getattr(self, name), 1)
        for name in ("rate", "clip", "clip_least", "ridge"):
            checks.positive(name, getattr(self, name))
        if not -1.0 <= checks.real("lowest", self.lowest) <= 0.0:
            raise ValueError("lowest: must be between -1 and 0")
        for name in ("decay", "shrink"):
            if not 0.0 <= checks.real(name, getattr(self, name)) < 1.0:
                raise ValueError(f"{name}: must be in [0, 1)")

    @property
    def private(self) -> bool:
        """True where everything that is released goes through a mechanism."""
        return self.mechanism not in (SPLIT, WITHOUT)

    def build(self, features: int, releases: int) -> Mechanism:
        """Return the mechanism for `features` numbers of [-1, 1], one of `releases` that share a budget."""
        epsilon = share(self.epsilon, releases) if self.unit == "record" else self.epsilon
        words: dict[str, Any] = {"features": features, "unit": self.unit}
        if self.mechanism in ("laplace", "pm"):
            kind: Any = bitldp.Laplace if self.mechanism == "laplace" else bitldp.Piecewise
            noisy: Mechanism = kind(epsilon=epsilon, **words)
            return noisy
        width: Any = {"brr-best": "best", "grr": 1}.get(self.mechanism, "paper")
        interval = (0.0, 1.0) if self.mechanism == SPLIT else (-1.0, 1.0)  # of what the sign leaves
        return bitldp.BRR(self.points, epsilon=epsilon, m=width, interval=interval, **words)


def needed(settings: BRRSettings, size: int) -> float:
    """Return the exact epsilon of a release of `size` numbers in every round."""
    return composed(settings.build(size, settings.rounds).guarantee.record, settings.rounds)


def privacy(settings: BRRSettings, size: int, releases: int, *, covers: str, not_covered: str) -> Privacy:
    """Return the cost of `releases` releases of `size` numbers each."""
    if settings.mechanism == SPLIT:
        return Privacy(
            claimed=settings.epsilon,
            record=np.inf,
            covers="nothing: the sign of every number leaves as it is",
            claimed_for="one number of one release",
        )
    if not settings.private:
        return NO_PRIVACY
    exact = settings.build(size, releases).guarantee
    return Privacy(
        claimed=settings.epsilon,
        record=composed(exact.record, releases),
        covers=covers,
        not_covered=not_covered,
        claimed_for="one number of one release" if settings.unit == "feature" else "",
    )
