"""A client of a run: its number, folder and budget, none of which the server may write."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bitldp.base import checks
from bitldp.base.files import locked, replacing
from bitldp.federated import (
    BUDGET_SENTENCE,
    FAILURE_SENTENCE,
    PrivateData,
    PrivateUpdateMod,
    UpdateCodec,
    flower,
    to_record,
)
from bitldp.ledger import BudgetExceededError, Ledger
from bitldp.mechanism.base import Mechanism
from flwr.app import Context, Message, MetricRecord, RecordDict
from flwr.clientapp.typing import ClientAppCallable

from bitldp_papers.run.settings import Settings
from bitldp_papers.run.share import Holding, holding

__all__ = ["Client", "answered", "silent"]

log = logging.getLogger("bitldp.federated")


def answered(message: Message, arrays: Mapping[str, Any] | Sequence[Any]) -> Message:
    """Return the reply to a training message: arrays (a sequence gets the names that came), and one example.

    How many records a client holds is its own affair, so every client counts the same.
    """
    if not isinstance(arrays, Mapping):
        arrays = dict(zip(message.content["arrays"].keys(), arrays, strict=True))
    content = RecordDict({"arrays": to_record(arrays)})
    content["metrics"] = MetricRecord({"num-examples": 1})
    return Message(content, reply_to=message)


def silent(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Answer an exception of a client by a fixed sentence: Flower would send the server its text.

    The first mod of every system's client app.
    """
    try:
        return call_next(message, context)
    except BudgetExceededError as error:
        code, sentence, kind = flower.REFUSED, BUDGET_SENTENCE, type(error).__name__
    except Exception as error:  # of any kind: nothing of it may leave
        code, sentence, kind = flower.FAILED, FAILURE_SENTENCE, type(error).__name__
    log.warning("%s (%s)", sentence, kind)
    return flower.refusal(message, code, sentence)


@dataclass(frozen=True)
class Client:
    """One client of a run.

    Attributes
    ----------
    index, clients : int
        Its number, counted from 0, and how many there are: "partition-id" and "num-partitions" of the node.
    folder : pathlib.Path
        Its own, inside the node's "home": its releases, and its ledger.
    seeded : bool
        Whether its releases take their randomness from the run's seed: for experiments only.
    budget : float
        The most epsilon that it may spend, in all runs that share its folder and whatever a server asks for.
        A client with a finite one takes no part in a run that lets anything leave that no mechanism released
        (a baseline without privacy; labels that train a model as they are), unless `uncovered`.
    delta : float
        The most delta, likewise.
    uncovered : bool
        Whether it takes part in such a run all the same.
    create : bool
        Whether it begins its ledger where its folder has none. One with a finite budget does not, unless its
        node says so: a folder that was emptied, or is not mounted, would grant that budget again.

    Notes
    -----
    A server could name a seed, a folder or a budget in the run's configuration, so these are taken from
    `Context.node_config` alone: ``flower-supernode --node-config 'home="/var/lib/me" budget=4.0'``, or
    `System.run` in one process.
    """

    index: int
    clients: int
    folder: Path
    seeded: bool
    budget: float
    delta: float = math.nextafter(1.0, 0.0)
    uncovered: bool = False
    create: bool = True

    @classmethod
    def of(cls, context: Context, system: str) -> Client:
        """Return the client of a context, and make its folder.

        Raises
        ------
        ValueError, TypeError
            If the node's configuration lacks its number, or has a value of a wrong type.
        BudgetExceededError
            If its ledger was begun with more than its budget of now.
        """
        node = context.node_config
        clients = checks.integer("num-partitions", node.get("num-partitions"), 1)
        index = checks.integer("partition-id", node.get("partition-id"), 0, clients - 1)
        folder = Path(str(node.get("home", f".bitldp-fl/{system}"))) / f"{index:05}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        budget = node.get("budget", math.inf)
        if isinstance(budget, (bool, str)) or not budget >= 0.0:
            raise ValueError("budget: must be a number, zero or more, in the node's configuration")
        delta = node.get("delta", cls.delta)
        if isinstance(delta, (bool, str)) or not 0.0 <= delta < 1.0:
            raise ValueError("delta: must be a number in [0, 1), in the node's configuration")
        ledger = folder / "ledger.json"
        if budget < math.inf and ledger.exists() and Ledger.load(ledger).budget > budget:
            raise BudgetExceededError(
                "budget: the ledger was created with a larger budget than the node's configuration has"
            )
        seeded, uncovered = node.get("seeded") is True, node.get("uncovered") is True
        create = budget == math.inf or node.get("create") is True
        return cls(index, clients, folder, seeded, float(budget), float(delta), uncovered, create)

    @property
    def ledger(self) -> Path:
        """File of the client's ledger."""
        return self.folder / "ledger.json"

    def expose(self, content: str) -> None:
        """Agree to a release without a mechanism, or refuse it.

        Raises
        ------
        BudgetExceededError
            If the client has a finite budget, and does not take part in such runs.
        """
        if self.budget < math.inf and not self.uncovered:
            raise BudgetExceededError(
                f"budget: {content} would leave this client without any mechanism; uncovered=true in the "
                "node's configuration allows it"
            )

    def holding(self, settings: Settings, most: int | None = None) -> Holding:
        """Return the client's records, of those that all clients hold.

        Raises
        ------
        ValueError
            If its folder belongs to other records: what was released of those would be mixed with these.
        """
        self.same(settings, most)
        return holding(settings.data, self.index, self.clients, seed=settings.seed, most=most)

    def same(self, settings: Settings, most: int | None = None) -> None:
        """Raise unless the folder belongs to the records that the settings deal to this client."""
        dealt = {"data": settings.data, "seed": settings.seed, "clients": self.clients, "most": most}
        path = self.folder / "holding.json"
        with locked(path):
            if not path.exists():
                with replacing(path) as file:
                    file.write(json.dumps(dealt).encode())
            elif json.loads(path.read_text(encoding="utf-8")) != dealt:
                raise ValueError(
                    f"home: {self.folder} belongs to other records; give this run another folder"
                )

    def update_mod(self, settings: Settings, codec: UpdateCodec, needed: float) -> PrivateUpdateMod:
        """Return the mod that releases an update in every round, where all need an epsilon together."""
        return PrivateUpdateMod(
            codec,
            budget=min(needed, self.budget),
            ledger=self.ledger,
            create=self.create,
            rng=settings.seed if self.seeded else None,
            repeat=self.folder / "last-report.npz",
        )

    def private_data(self, mechanism: Mechanism, needed: float, **options: Any) -> PrivateData:
        """Return the client's records as a mechanism releases them, once, at an epsilon of so much."""
        return PrivateData(
            self.folder / "released.npz",
            mechanism,
            ledger=self.ledger,
            create=self.create,
            budget=min(self.budget, needed),
            **options,
        )

    def release_seed(self, settings: Settings, *turn: int) -> np.random.SeedSequence | None:
        """Return the seed of a release; None is a fresh key of the operating system."""
        if not self.seeded:
            return None
        return np.random.SeedSequence(settings.seed, spawn_key=(0x5EED, self.index, *turn))

    def training_seed(self, settings: Settings, turn: int) -> np.random.SeedSequence:
        """Return the seed of the order of the records in a round."""
        return np.random.SeedSequence(settings.seed, spawn_key=(0x02DE, self.index, turn))
