"""Settings of the system `mvu`, and the mechanism that keeps its budget over all rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

from bitldp.accounting import ORDERS, concentration, from_renyi
from bitldp.base import checks
from bitldp.compression import (
    CLDP,
    BallGaussian,
    CrossPolytope,
    InterpolatedMVU,
    SignSGD,
    Skellam,
    VectorMVU,
)
from bitldp.design import DesignError
from bitldp.federated import Composed, UpdateCodec, composed
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import share

from bitldp_papers.mvu.inputs import FEATURES, inputs
from bitldp_papers.run.settings import Settings

__all__ = ["DITHERS", "LEVELS", "MAJORITIES", "MECHANISMS", "NAME", "SIGNS", "WITHOUT", "MVUSettings"]

NAME = "mvu"
WITHOUT = "noiseless"
#: Of these the server follows the majority of the signs; of the other signs it takes the mean.
MAJORITIES = ("signsgd", "signsgd-noise")
#: As in the paper: accounted is the Gaussian noise under the signs, and not the bits that are sent.
NOISE = ("signsgd-noise", "signsgd-mean-noise")
SIGNS = ("signsgd", "signsgd-mean", *NOISE)
#: These have a pure epsilon.
PURE = ("cldp", "polytope")
MECHANISMS = ("mvu", "interpolated", *SIGNS, "gaussian", "skellam", *PURE, WITHOUT)
LEVELS = ("example", "client")
DITHERS = ("unbiased", "conditional")

_TRIES = 40
_WORTH = 1.05  # a bit more must lower the variance by that factor
_MOST_BITS = 4  # that are tried where the variance chooses
_HALVINGS = 12
_LESS = 1.0 - 1e-6


@dataclass(frozen=True, kw_only=True)
class MVUSettings(Settings):
    """Settings of the system `mvu`.

    Attributes
    ----------
    mechanism : str
        "mvu", "interpolated" (`InterpolatedMVU`), "signsgd" (the server follows the majority of the signs),
        "signsgd-mean" (it averages them), the same two with "-noise" (the Gaussian noise under the signs
        keeps the budget, as in the paper: the bits that are sent cost less), "gaussian", "skellam", "cldp",
        "polytope" (`CrossPolytope`, which is none of the paper's), or
        "noiseless", which clips all the same.
    level : {"example", "client"}
        Whose gradients are released: of each of `batch` records, which take turns, or the mean over `batch`
        records as one. `epsilon` then covers one record, or all records of a client.
    epsilon, delta : float
        Of everything that is released about a record (a client) in all rounds.
    input_bits, output_bits : int
        Of MVU: b_in and b, of a coordinate. b bits are sent; a larger b_in makes the bound of the privacy
        tighter where epsilon is large. ``output_bits=0``: "mvu" takes a bit more, as `InterpolatedMVU`, for
        as long as each lowers the variance by 5 %; "interpolated" takes 3 in place of 0
        and 1.
    dither : {"unbiased", "conditional"}
        Of MVU: see `VectorMVU`; the paper's is "conditional".
    noise_bits : int
        Bits of a coordinate with Gaussian and Skellam noise, which need many; 0: as many as cost 1 % of the
        variance.
    features : {"features", "convolutions"}
        Inputs of the model: a record's features, or a fixed random convolution of an image, which stands
        in for the paper's scattering network.
    clip : float
        Norm that a gradient is clipped to: l2, but l1 with "cldp".
    hidden : int
        Units of the layer between features and classes; 0 is none, a linear classifier as in the paper.
    batch : int
        Records of a client in a round.
    rate : float
        Step size.
    """

    data: str = "mnist"
    mechanism: str = "mvu"
    level: str = "example"
    epsilon: float = 5.0
    delta: float = 1e-5
    input_bits: int = 4
    output_bits: int = 1
    dither: str = "unbiased"
    noise_bits: int = 12
    features: str = "features"
    clip: float = 1.0
    hidden: int = 0
    clients: int = 100
    rounds: int = 30
    batch: int = 20
    rate: float = 1.0

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {
            "data": "digits",
            "clients": 10,
            "rounds": 10,
            "batch": 14,
            "rate": 2.0,
        },
        "paper": {"features": "convolutions", "rate": 5.0},
    }
    differences: ClassVar[str] = (
        "a fixed random convolution stands in for the scattering network, CIFAR-10 is left out, and the "
        "paper does not say how many records a round takes; each client releases its gradients by itself, "
        "where the paper's server clips and perturbs; sign baselines are accounted by the bits that are "
        "sent (the paper: by the Gaussian noise under them, --mechanism signsgd-noise)."
    )

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        checks.choice("mechanism", self.mechanism, MECHANISMS)
        checks.choice("level", self.level, LEVELS)
        checks.choice("dither", self.dither, DITHERS)
        if not 0.0 < checks.real("delta", self.delta) < 1.0:
            raise ValueError(f"delta: must be above 0 and below 1, got {self.delta}")
        checks.integer("input_bits", self.input_bits, 1, 6)
        checks.integer("output_bits", self.output_bits, 0, 6)
        if self.mechanism == "interpolated" and self.output_bits > 5:
            raise ValueError("output_bits: 'interpolated' has 2 to 5")
        checks.choice("features", self.features, FEATURES)
        if self.noise_bits:
            checks.integer("noise_bits", self.noise_bits, 4, 16)
        checks.integer("hidden", self.hidden, 0)
        checks.integer("batch", self.batch, 1)
        for name in ("clip", "rate", "epsilon"):
            checks.positive(name, getattr(self, name))

    @property
    def private(self) -> bool:
        """True where anything is released through a mechanism."""
        return self.mechanism != WITHOUT

    @property
    def rows(self) -> int:
        """Number of gradients in a reply."""
        return self.batch if self.level == "example" else 1

    def sizes(self) -> tuple[int, ...]:
        """Return the numbers of features, of hidden units if any, and of classes."""
        data, train, _ = inputs(self.data, self.features)
        return (train.shape[1], *([self.hidden] if self.hidden else []), data.classes)

    def releases(self) -> int:
        """Return the most releases about the same record (or client) in all rounds."""
        if self.level == "client":
            return self.rounds
        _, train, _ = inputs(self.data, self.features)
        return -(-self.rounds * self.batch // max(1, len(train) // self.clients))

    def build(self, size: int, epsilon: float) -> Mechanism:
        """Return the mechanism for one gradient of `size` coordinates at epsilon (and delta)."""
        if self.mechanism == "cldp":
            return CLDP(size, epsilon=epsilon, radius=self.clip)
        if self.mechanism == "polytope":
            return CrossPolytope(size, epsilon=epsilon, radius=self.clip, public_seed=self.seed)
        words: dict[str, Any] = {"epsilon": epsilon, "delta": self.delta, "radius": self.clip}
        if self.mechanism == "interpolated":
            return InterpolatedMVU(size, output_bits=self.output_bits if self.output_bits > 1 else 3, **words)
        if self.mechanism == "mvu":
            bits: Any = {
                "input_bits": self.input_bits,
                "output_bits": self.output_bits,
                "dither": self.dither,
            }
            return VectorMVU(size, **bits, **words)
        if self.mechanism in SIGNS:
            return SignSGD(size, calibration="paper" if self.mechanism in NOISE else "exact", **words)
        kind = BallGaussian if self.mechanism == "gaussian" else Skellam
        return kind(size, output_bits=self.noise_bits or None, **words)

    def release(self, size: int) -> Mechanism:
        """Return the mechanism for a gradient with which all releases together keep the budget."""
        return _chosen(self, size, self.releases())

    def spent(self, size: int) -> Composed:
        """Return the cost of all releases together, by the best accountant."""
        return composed(self.release(size), self.releases(), self.delta)

    def codec(self) -> UpdateCodec:
        """Return the codec that client and server share."""
        return _codec(self)


@lru_cache(maxsize=16)
def _codec(settings: MVUSettings) -> UpdateCodec:
    """Return one codec for all clients of a process, whose plans are then built once."""
    return UpdateCodec(
        settings.release,
        # The ball of the mechanism has the radius of the clip, so nothing is scaled in between.
        clip=settings.clip,
        norm="l1" if settings.mechanism == "cldp" else "l2",
        update="gradient",
        allow_biased=settings.mechanism in SIGNS,
        rows=settings.rows,
    )


@lru_cache(maxsize=16)
def _chosen(settings: MVUSettings, size: int, count: int) -> Mechanism:
    """Return the mechanism of one release, as the settings name it."""
    if settings.mechanism in NOISE:
        noise = _fitted(replace(settings, mechanism="gaussian"), size, count)
        return settings.build(size, noise.parameters["epsilon"])
    if settings.mechanism != "mvu" or settings.output_bits:
        return _fitted(settings, size, count)
    best: Any = _fitted(replace(settings, output_bits=1), size, count)
    for bits in range(2, _MOST_BITS + 1):
        try:
            more: Any = _fitted(replace(settings, mechanism="interpolated", output_bits=bits), size, count)
        except DesignError:  # two bits have no table where the budget is very large
            continue
        if more.worst_variance() * _WORTH > best.worst_variance():
            break
        best = more
    chosen: Mechanism = best
    return chosen


@lru_cache(maxsize=16)
def _fitted(settings: MVUSettings, size: int, count: int) -> Mechanism:
    """Return the mechanism of the largest epsilon, nearly, of which `count` releases keep the budget."""
    epsilon, delta = settings.epsilon, settings.delta

    def fits(mechanism: Mechanism) -> bool:
        return composed(mechanism, count, delta).epsilon <= epsilon

    if settings.mechanism in PURE:
        return _searched(lambda each: settings.build(size, each), fits, share(epsilon, count), epsilon)
    # All other mechanisms have Rényi divergences of about rho alpha, and so have their compositions.
    rho = concentration(epsilon, delta) / count
    for _ in range(_TRIES):
        each = epsilon if count == 1 else from_renyi([rho * order for order in ORDERS], ORDERS, delta)
        mechanism = settings.build(size, min(each, epsilon))
        if fits(mechanism):
            return mechanism
        rho *= (epsilon / composed(mechanism, count, delta).epsilon) ** 2 * _LESS
    raise ValueError(f"epsilon: no mechanism was found that keeps {epsilon:.6g} in {count} releases")


def _searched(
    build: Callable[[float], Mechanism], fits: Callable[[Mechanism], bool], low: float, high: float
) -> Mechanism:
    """Return the mechanism of the largest epsilon that fits; that of `low` does."""
    best = build(low)
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        tried = build(middle)
        if fits(tried):
            low, best = middle, tried
        else:
            high = middle
    return best
