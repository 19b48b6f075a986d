"""Settings of the deployment `honest`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bitldp.base import checks
from bitldp.compression import CrossPolytope
from bitldp.federated import UpdateCodec

from bitldp_papers.honest.features import FEATURES
from bitldp_papers.run.settings import Settings

__all__ = ["MECHANISMS", "HonestSettings"]

WITHOUT = "noiseless"
MECHANISMS = ("polytope", WITHOUT)


@dataclass(frozen=True, kw_only=True)
class HonestSettings(Settings):
    """Settings of the deployment `honest`.

    Attributes
    ----------
    clients, rounds : int
        Clients, each with one record, and cohorts of (nearly) equal size in which they take part:
        each client once. Where they are more than the records, these are dealt again.
    epsilon : float
        Of a client, for the whole run: all that it ever sends is one report.
    mechanism : {"polytope", "noiseless"}
        `CrossPolytope`, each client with a public rotation of its own; or updates that are only clipped.
    features : {"edges", "pixels", "given"}
        Public features of an image: directions of edges, or pixels pooled to 8 x 8. Or the numbers of any
        record as they are given, scaled to length 1.
    pool : str
        Public records without labels: test:N, so many of the test records, which are then not scored, or a
        .csv, .parquet or .npz file of records of the same columns. With one, a client reports its class
        beside where its record lies on the pool's graph, and the server reads off class means: nothing goes
        back to clients, and rounds only says in how many parts the reports are read. Empty: no pool, and
        rounds of gradients.
    coordinates : int
        Of the pool's graph, at most.
    diffusion : float
        Steps of the walk on the graph for each unit of the noise that reports are known to leave in a score:
        see PoolServer.steps. It was chosen on MNIST, Fashion-MNIST and AG News, as coordinates was.
    centring : int
        Rounds before the training, whose clients report their features themselves, for the common mean that
        the others take off. 0: none is taken off.
    noise : float
        Standard deviation of the noise in a score that all rounds together leave: the step size follows from
        it and from the variance of the mechanism, so that nothing is tuned on private data.
    rate : float
        The largest step size: what is used without noise.
    momentum : float
        Share of a step that is kept in the next, from 0 to below 1.
    clip : float
        Norm that a gradient is clipped to: l2.
    average : float
        Share of the training's last rounds whose models are averaged, from 0 (the last one alone) to 1.
    """

    data: str = "mnist"
    clients: int = 60_000
    rounds: int = 60
    epsilon: float = 4.0
    mechanism: str = "polytope"
    features: str = "edges"
    pool: str = ""
    coordinates: int = 100
    diffusion: float = 50.0
    centring: int = 3
    noise: float = 1.0
    rate: float = 3.0
    momentum: float = 0.9
    clip: float = 0.5
    average: float = 0.0

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"data": "digits", "clients": 20_000, "rounds": 20, "centring": 2},
        "pixels": {"features": "pixels"},
        "pool": {"pool": "test:2000"},
    }

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        checks.choice("mechanism", self.mechanism, MECHANISMS)
        checks.choice("features", self.features, FEATURES)
        checks.integer("rounds", self.rounds, 1, self.clients)
        checks.integer("coordinates", self.coordinates, 1, 1 << 12)
        checks.integer("centring", self.centring, 0, None if self.pool else self.rounds - 1)
        if self.pool.startswith("test:") and not self.pool.removeprefix("test:").isdecimal():
            raise ValueError("pool: must be test:N, a file, or empty")
        for name in ("epsilon", "noise", "rate", "clip", "diffusion"):
            checks.positive(name, getattr(self, name))
        if not 0.0 <= checks.real("momentum", self.momentum) < 1.0:
            raise ValueError("momentum: must be in [0, 1)")
        if not 0.0 <= checks.real("average", self.average) <= 1.0:
            raise ValueError("average: must be in [0, 1]")

    @property
    def private(self) -> bool:
        """True where updates are released through a mechanism."""
        return self.mechanism != WITHOUT

    @property
    def training(self) -> int:
        """Rounds that train."""
        return self.rounds - self.centring

    @property
    def averaged(self) -> int:
        """Rounds whose models are averaged."""
        return max(1, math.ceil(self.average * self.training))

    def codec(self, clip: float) -> UpdateCodec:
        """Return the codec of client and server for vectors of at most a norm."""
        return UpdateCodec(
            lambda size: CrossPolytope(size, epsilon=self.epsilon, radius=clip), clip=clip, update="gradient"
        )

    def step(self, size: int) -> float:
        """Return the step size for gradients of `size` coordinates.

        Each of T rounds of n clients leaves noise of variance v/n in a coordinate of the mean gradient; by
        momentum a round's part ends up in the weights 1/(1 - momentum) times. A score is the product of the
        weights with features of length 1, so its noise is that of one coordinate of the weights:
        rate/(1 - momentum) sqrt(T v/n).
        """
        if not self.private:
            return self.rate
        mechanism = CrossPolytope(size, epsilon=self.epsilon, radius=self.clip)
        each = mechanism.total_variance() / size
        spread = math.sqrt(self.training * each / (self.clients // self.rounds))
        return min(self.rate, self.noise * (1.0 - self.momentum) / spread)
