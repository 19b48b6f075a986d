"""Settings of the system `bitrand`, with the paper's and the honest ones as presets."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import bitldp
import numpy as np
from bitldp.base import checks
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import PrivacyClaimWarning, share
from numpy.typing import NDArray

from bitldp_papers.bitrand.once import RecordRelease, record_release
from bitldp_papers.run.settings import Settings

__all__ = [
    "ALPHAS",
    "BITWISE",
    "FEATURES",
    "LABELS",
    "MECHANISMS",
    "NUMERIC",
    "ONCE",
    "PLACES",
    "UPDATES",
    "BitRandSettings",
    "feature_mechanism",
    "largest_value",
]

#: Bit mechanisms on the features of a record, each with the calibration it runs under.
BITWISE: dict[str, tuple[Any, str]] = {
    "bitrand": (bitldp.FRR, "exact"),
    "bitrand-paper": (bitldp.FRR, "paper"),
    "latent": (bitldp.MOUE, "paper"),
    "ome": (bitldp.UER, "paper"),
}
#: The alpha that the paper of BitRand gives its baselines (Appendices I and J).
ALPHAS = {"latent": 7.0, "ome": 1.0}
#: Mechanisms on numbers, for features.
NUMERIC: dict[str, Any] = {
    "duchi": bitldp.Duchi,
    "pm": bitldp.Piecewise,
    "pm-sub": bitldp.PiecewiseSub,
    "hm": bitldp.Hybrid,
    "three-outputs": bitldp.ThreeOutputs,
}
FEATURES = (*BITWISE, *NUMERIC)
#: Mechanisms of an update, coordinate by coordinate.
UPDATES: dict[str, Any] = {**NUMERIC, "ldp-fl": bitldp.LDPFLDuchi}
#: Runs without any release.
WITHOUT = ("noiseless", "random")
#: Records released once at a true epsilon, for a linear classifier: how features and label share it.
ONCE = {"once": "best", "once-joint": "joint", "once-split": "split"}
LABELS = ("label-rr", "label-laplace")
PLACES = ("features", "updates")
MECHANISMS = tuple(dict.fromkeys((*FEATURES, *UPDATES, *ONCE, *WITHOUT)))

#: About 1/(size of a feature), where a description of the data says it: AG has 384 numbers of norm 1.
_USUAL_SCALE = {"ag_news": 8.0}


@dataclass(frozen=True, kw_only=True)
class BitRandSettings(Settings):
    """Settings of the system `bitrand`.

    Attributes
    ----------
    mechanism : str
        One of `FEATURES` or, with ``place="updates"``, of `UPDATES`; one of `ONCE`; "noiseless" or "random".
    place : {"features", "updates"}
        Whether records are released once, or the client's update in every round.
    epsilon : float
        Budget of the features of a record (with one of `ONCE`, of features and label together); with
        ``place="updates"``, of all updates of a client.
    label : {"label-rr", "label-laplace"}
        Mechanism of the label of a record. The noisy vectors of label-Laplace train as soft labels.
    label_epsilon : float
        Its budget; inf: labels leave as they are, which the run says.
    anonymiser : bool
        Updates: whether they are split and shuffled over the clients (Sun et al.) by a party that is neither
        client nor aggregator, so that, as they argue, every coordinate of every round may spend the whole
        budget. That is what is claimed; the exact epsilon is local, and adds up.
    bits, integer_bits : int
        Of the fixed-point code of a feature.
    input_scale : float
        Factor of features of [-1, 1] before they are encoded: public. 0: the one that fills the code,
        2**integer_bits times what is known of the size of the data's features. A feature of size .05 drowns
        in the paper's step of 1/16 (10 bits, 5 of them integer).
    alpha : float
        Of "latent" and "ome"; 0: the paper's 7 and 1.
    corrected : bool
        Whether these two run on the budget whose corrected epsilon (the paper's Theorems 5 and 6) is
        `epsilon`, as in the paper.
    hidden : int
        Units of each of the two layers.
    epochs, batch : int
        Of a client's training in a round; a batch of 0: all records in one step.
    rate, clip : float
        Step size; l2 norm that an update is clipped to.
    spread : float
        LDP-FL: the weights of a layer are clipped to c +- r, c = 0 and r this many times sqrt(2/inputs), the
        standard deviation that weights of such a layer begin with.
    radius : float
        Of the l2 ball that feature vectors are scaled to where they lie outside, for those of `ONCE`.
    records, tested : int
        Records that all clients hold together, and test records that score; 0: all there are.
    """

    mechanism: str = "bitrand"
    place: str = "features"
    epsilon: float = 100.0
    label: str = "label-rr"
    label_epsilon: float = 2.0
    anonymiser: bool = False
    bits: int = 10
    integer_bits: int = 0
    input_scale: float = 1.0
    alpha: float = 0.0
    corrected: bool = True
    hidden: int = 1500
    clients: int = 20
    rounds: int = 50
    epochs: int = 1
    batch: int = 32
    rate: float = 0.05
    clip: float = 1.0
    spread: float = 2.0
    radius: float = 1.0
    records: int = 0
    tested: int = 0

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "epsilon": 300.0,
            "clients": 10,
            "rounds": 15,
            "hidden": 128,
            "epochs": 2,
            "rate": 0.1,
        },
        "paper": {
            "data": "ag_news",
            "mechanism": "bitrand-paper",
            "epsilon": 1.0,
            "label_epsilon": math.inf,
            "integer_bits": 5,
            "input_scale": 0.0,
            "clients": 186,  # 43 records each
            "rounds": 200,
            "batch": 0,
            "rate": 0.1,
        },
        "honest": {"data": "ag_news", "mechanism": "once", "epsilon": 8.0, "clients": 186, "rounds": 1},
    }
    differences: ClassVar[str] = (
        "AG is MiniLM embeddings of 384 numbers and 8,000 records (the paper: BERT's 768, 120,000 records, "
        "43 a client); features are scaled to fill the paper's code (input_scale); the rate is .1, for "
        "features that were divided by the code's range; the number of rounds is not in the paper; SEC, "
        "FEMNIST and CelebA are not public or not at hand: breast_cancer, mnist and adult stand in"
    )

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        checks.choice("place", self.place, PLACES)
        table = (*FEATURES, *ONCE) if self.place == "features" else tuple(UPDATES)
        checks.choice("mechanism", self.mechanism, (*table, *WITHOUT))
        checks.choice("label", self.label, LABELS)
        if self.label_epsilon != math.inf:
            checks.budget("label_epsilon", self.label_epsilon)
        if self.anonymiser and self.place != "updates":
            raise ValueError("anonymiser: needs place='updates'")
        if self.once and self.rounds != 1:
            raise ValueError(f"rounds: must be 1 with mechanism={self.mechanism!r}: each record reports once")
        for name in ("hidden", "epochs"):
            checks.integer(name, getattr(self, name), 1)
        checks.integer("batch", self.batch, 0)
        for name in ("rate", "clip", "spread", "radius"):
            checks.positive(name, getattr(self, name))
        for name in ("input_scale", "alpha"):
            checks.budget(name, getattr(self, name))
        for name in ("records", "tested"):
            checks.integer(name, getattr(self, name), 0)

    @property
    def private(self) -> bool:
        """True where anything is released through a mechanism."""
        return self.mechanism not in WITHOUT

    @property
    def once(self) -> bool:
        """True where each record reports once, for a linear classifier."""
        return self.mechanism in ONCE

    @property
    def labelled(self) -> bool:
        """True where a mechanism releases the labels of records."""
        return self.label_epsilon != math.inf

    @property
    def most(self) -> int | None:
        """The most records that all clients hold together."""
        return self.records or None

    @property
    def factor(self) -> float:
        """Factor of features of [-1, 1] that brings them into the code's range."""
        return self.input_scale or 2.0**self.integer_bits * _USUAL_SCALE.get(self.data, 1.0)

    def record_release(self, features: int, classes: int) -> RecordRelease:
        """Return the release of a record, with one of `ONCE`."""
        return record_release(features, classes, self.epsilon, self.radius, ONCE[self.mechanism])

    def features_mechanism(self, features: int) -> Mechanism:
        """Return the mechanism for the features of a record."""
        return feature_mechanism(
            self.mechanism,
            features,
            self.epsilon,
            bits=self.bits,
            integer_bits=self.integer_bits,
            alpha=self.alpha,
            correct=self.corrected,
        )

    def label_mechanism(self, classes: int) -> Mechanism:
        """Return the mechanism for the label of a record."""
        kind = bitldp.LabelRR if self.label == "label-rr" else bitldp.LabelLaplace
        mechanism: Mechanism = kind(classes, epsilon=self.label_epsilon)
        return mechanism

    def update_mechanism(self, size: int) -> Mechanism:
        """Return the mechanism for one update of `size` coordinates."""
        kind = UPDATES[self.mechanism]
        if self.anonymiser:
            mechanism: Mechanism = kind(epsilon=self.epsilon, features=size, unit="feature")
        else:
            mechanism = kind(epsilon=share(self.epsilon, self.rounds), features=size, spend="sample")
        return mechanism

    def update_options(self) -> dict[str, Any]:
        """Return the options that both sides of a release of updates share."""
        if self.mechanism == "ldp-fl":  # weights, each layer standardised by its public range
            return {"clip": 1.0, "norm": "linf", "update": "replace"}
        return {"clip": self.clip, "norm": "l2"}


def feature_mechanism(
    name: str,
    features: int,
    epsilon: float,
    *,
    bits: int,
    integer_bits: int,
    alpha: float,
    correct: bool,
) -> Mechanism:
    """Return the mechanism of one of `FEATURES` for a record.

    Parameters
    ----------
    name : str
    features : int
    epsilon : float
        Claimed for the record: the exact one for all but the paper's own calibrations.
    bits, integer_bits : int
        Of the fixed-point code, where the mechanism is one of `BITWISE`.
    alpha : float
        Of LATENT and OME; 0 for the paper's.
    correct : bool
        Whether LATENT and OME get the budget whose corrected epsilon (Theorems 5 and 6) is `epsilon`, as in
        the paper, or `epsilon` itself.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyClaimWarning)  # the summary shows both epsilons
        if name in NUMERIC:
            numeric: Mechanism = NUMERIC[name](epsilon=epsilon, features=features)
            return numeric
        kind, calibration = BITWISE[name]
        words: dict[str, Any] = {"bits": bits, "integer_bits": integer_bits, "calibration": calibration}
        if name in ALPHAS:
            words |= {"alpha": alpha or ALPHAS[name], "calibration": "corrected" if correct else "paper"}
        made: Mechanism = kind(features, epsilon=epsilon, **words)
        return made


def largest_value(mechanism: Mechanism, integer_bits: int) -> float:
    """Return the largest number that a released feature can be: public, and the divisor of training.

    2**m for a code word of m integer bits; the largest letter of a mechanism on numbers, which at a small
    epsilon for many features is far beyond the interval of the features (2 r/epsilon for Duchi's).
    """
    if type(mechanism) in {kind for kind, _ in BITWISE.values()}:
        return 2.0**integer_bits
    letters: NDArray[np.float64] = np.asarray(mechanism.letters)  # type: ignore[attr-defined]
    return max(1.0, float(np.abs(letters).max()))
