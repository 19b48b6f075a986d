"""What a client of a system knows beside the run's configuration, which the server writes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from flwr.app import Context

from bitldp import _checks
from bitldp.federated.systems._settings import Settings
from bitldp.federated.systems._share import Holding, holding

__all__ = ["Client"]


@dataclass(frozen=True)
class Client:
    """One client of a run.

    Attributes
    ----------
    place, clients : int
        Which one, counted from 0, and of how many: "partition-id" and "num-partitions" of the node.
    home : pathlib.Path
        Its own folder: what it released, and its ledger.
    seeded : bool
        Whether its releases take their randomness from the run's seed: for experiments only.
    budget : float
        The most epsilon that it may spend on the run, whatever the server asks for.
    delta : float
        The most delta, likewise.

    Notes
    -----
    A server could name a seed, a folder or a budget in the run's configuration, so these are taken from
    `Context.node_config` alone: ``flower-supernode --node-config 'home="/var/lib/me" budget=4.0'``, or
    `System.run` in one process.
    """

    place: int
    clients: int
    home: Path
    seeded: bool
    budget: float
    delta: float = math.nextafter(1.0, 0.0)

    @classmethod
    def of(cls, context: Context, system: str) -> Client:
        """Return the client that a context belongs to; its folder is made.

        Raises
        ------
        ValueError, TypeError
            If the node's configuration lacks its place, or has a value of a wrong type.
        """
        node = context.node_config
        clients = _checks.integer("num-partitions", node.get("num-partitions"), 1)
        place = _checks.integer("partition-id", node.get("partition-id"), 0, clients - 1)
        home = Path(str(node.get("home", f".bitldp-fl/{system}"))) / f"{place:05}"
        home.mkdir(parents=True, exist_ok=True)
        budget = node.get("budget", math.inf)
        if isinstance(budget, (bool, str)) or not budget >= 0.0:
            raise ValueError("budget: must be a number, zero or more, in the node's configuration")
        delta = node.get("delta", cls.delta)
        if isinstance(delta, (bool, str)) or not 0.0 <= delta < 1.0:
            raise ValueError("delta: must be a number in [0, 1), in the node's configuration")
        return cls(place, clients, home, node.get("seeded") is True, float(budget), float(delta))

    def holding(self, settings: Settings, most: int | None = None) -> Holding:
        """Return its records, of those that all clients hold."""
        return holding(settings.data, self.place, self.clients, seed=settings.seed, most=most)

    def release_seed(self, settings: Settings, *turn: int) -> np.random.SeedSequence | None:
        """Return where a release takes its randomness from: None is a fresh key of the operating system."""
        if not self.seeded:
            return None
        return np.random.SeedSequence(settings.seed, spawn_key=(0x5EED, self.place, *turn))

    def training_seed(self, settings: Settings, turn: int) -> np.random.SeedSequence:
        """Return the seed of the order in which it goes through its records in a round."""
        return np.random.SeedSequence(settings.seed, spawn_key=(0x02DE, self.place, turn))
