"""Rounds of a system, written once: Flower apps drive them between clients, a loop in one process.

A system is a `Round`: the client's step (`train`), the randomizer (`mod`) and the server's step (`strategy`).
`run.system.System` makes its two apps. `Descent` is the round of gradient descent, which `course` drives
without messages, with the same gradients, mechanisms and steps; the wire, the ledgers and the folders of
clients are left out there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from bitldp.federated import DecodingStrategy, Layout, UpdateCodec, simulate
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord
from flwr.clientapp.typing import ClientAppCallable
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg
from numpy.typing import NDArray

from bitldp_papers.run.client import Client
from bitldp_papers.run.settings import Settings
from bitldp_papers.run.vectors import Model, stepped

__all__ = [
    "NO_PRIVACY",
    "SHUFFLED_DELTA",
    "Descent",
    "DescentStrategy",
    "Mod",
    "Privacy",
    "Round",
    "Rows",
    "Turn",
    "course",
    "turn_of",
]

S = TypeVar("S", bound=Settings)
Rows = Sequence[Mapping[str, Any]]
Mod = Callable[[Message, Context, ClientAppCallable], Message]


@dataclass(frozen=True)
class Privacy:
    """Privacy that a run promises a client.

    Attributes
    ----------
    claimed : float
        Epsilon that the paper, or the setting, claims.
    record : float
        Exact epsilon of everything that a client releases in all rounds; infinite without privacy.
    delta : float
    covers : str
        Whom `record` protects: neighbouring inputs.
    not_covered : str
        Data that leave a client beside it; empty where none do.
    claimed_for : str
        Coverage of `claimed`, where that is less than all that a client (or one of its records) releases;
        empty where the claim is about the same as `record`.
    shuffled : float, optional
        CENTRAL epsilon of all reports of the run, at a delta of 1e-6, if one honest party puts them in random
        order once and nobody sees them before. None where clients report in rounds that depend on each
        other, or where no bound is known.
    """

    claimed: float
    record: float
    delta: float = 0.0
    covers: str = "one client's data against any other"
    not_covered: str = ""
    claimed_for: str = ""
    shuffled: float | None = None


SHUFFLED_DELTA = 1e-6

#: Of a run without any mechanism.
NO_PRIVACY = Privacy(claimed=np.inf, record=np.inf, covers="nothing: this run has no privacy")


def turn_of(message: Message) -> int:
    """Return the number of a training message's round, from 1 at the beginning of the run."""
    config: Any = message.content["config"]
    return int(config["server-round"])


@dataclass(frozen=True)
class Turn:
    """One client's part in one round: who it is, and the message that asks it."""

    client: Client
    message: Message
    context: Context

    @property
    def number(self) -> int:
        """Number of the round; see `turn_of`."""
        return turn_of(self.message)

    @property
    def config(self) -> Mapping[str, Any]:
        """Values that the server sent beside the arrays."""
        config: Any = self.message.content["config"]
        return config

    def arrays(self, record: str = "arrays") -> Model:
        """Return the arrays of a record of the message."""
        arrays = self.message.content[record]
        if not isinstance(arrays, ArrayRecord):
            raise TypeError(f"{record}: must be an ArrayRecord")
        return arrays.to_numpy_ndarrays()


class Round(ABC, Generic[S]):
    """Steps of a system under its settings.

    Parameters
    ----------
    settings : Settings
        Of the run; clients and server read them from the run's configuration.

    Attributes
    ----------
    metric : str
        Name of the score that the summary gives.
    clients_score : bool
        Whether the clients score the model in the apps (`score`), and not the server (`scores`).
    """

    metric = "accuracy"
    clients_score = False

    def __init__(self, settings: S) -> None:
        self.settings = settings

    @abstractmethod
    def initial(self) -> Model:
        """Return the model before the first round."""

    @abstractmethod
    def privacy(self) -> Privacy:
        """Return the cost of all rounds together for a client, or for one of its records."""

    @abstractmethod
    def scores(self, model: Sequence[NDArray[Any]]) -> Mapping[str, float]:
        """Return the scores of a model on clean test records, by name."""

    @abstractmethod
    def train(self, turn: Turn) -> Sequence[NDArray[Any]] | Mapping[str, NDArray[Any]]:
        """Return the client's answer to a round, which `mod` releases; without names, those that came."""

    def exposed(self) -> str:
        """Return the data that leave a client without a mechanism; empty where none do."""
        return "" if self.settings.private else "what it computes from its records as they are"

    def mod(self, turn: Turn) -> Mod | None:
        """Return the mod that releases the client's answer; None where it is made of released records."""
        return None

    def score(self, turn: Turn) -> Mapping[str, float]:
        """Return the scores that a client reports of the model it was sent."""
        raise NotImplementedError("this system's clients report no scores")

    def strategy(self, first_round: int, rows: Rows) -> FedAvg:
        """Return the server's strategy for a run that begins with a round, after the metrics of others."""
        return FedAvg(**self.settings.federation())

    def caveat(self) -> str:
        """Return the caveat of the score; empty where there is none."""
        return ""

    def constant(self) -> float | None:
        """Return the error of the best constant of the training part; None where the score is no error."""
        return None

    def played(self, model: Model, turn: int) -> Model:
        """Return the model after a round of all clients in this process, without messages."""
        raise NotImplementedError("this system's rounds have messages")


class Descent(Round[S]):
    """Round of gradient descent: the server steps along the mean of the clients' released gradients."""

    @property
    @abstractmethod
    def rate(self) -> float:
        """Factor of the mean gradient before it is subtracted."""

    @abstractmethod
    def codec(self) -> UpdateCodec:
        """Return the codec of both sides for the round that comes."""

    @abstractmethod
    def mean(self, model: Model, turn: int) -> tuple[NDArray[np.float64], float]:
        """Return the decoded mean of all clients' gradients in this process, and its standard error."""

    def corrected(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the estimate of the mean gradient, from the decoded mean of the reports."""
        return mean

    def announced(self) -> dict[str, Any]:
        """Return the values that the server sends the clients beside the model."""
        return {}

    def follow(self, mean: NDArray[np.float64], stderr: float) -> dict[str, float]:
        """Prepare the next round from a corrected mean; return the metrics that it adds to the round's."""
        return {}

    def strategy(self, first_round: int, rows: Rows) -> FedAvg:
        """Return steps along decoded means; without privacy the mean of the clients' models."""
        if not self.settings.private:
            return super().strategy(first_round, rows)
        return DescentStrategy(self, first_round=first_round, **self.settings.federation())

    def simulated(
        self, rows: NDArray[Any], seed: np.random.SeedSequence
    ) -> tuple[NDArray[np.float64], float]:
        """Return the decoded mean of clients' rows, released as in the apps, and its standard error."""
        result = simulate(self.codec(), rows, rng=seed)
        stderr = float(np.sqrt(np.mean(np.square(result.stderr)))) if result.clients > 1 else 0.0
        return result.value, stderr

    def played(self, model: Model, turn: int) -> Model:
        """Return the model after a step; see `Round.played`."""
        mean, stderr = self.mean(model, turn)
        mean = self.corrected(mean)
        self.follow(mean, stderr)
        return stepped(model, self.rate * mean)


class DescentStrategy(DecodingStrategy):
    """The server's side of a `Descent`: decoded means, corrected, and a step along them."""

    def __init__(self, rounds: Descent[Any], **options: Any) -> None:
        super().__init__(rounds.codec(), rate=-rounds.rate, **options)
        self._rounds = rounds
        self._mean: NDArray[np.float64] = np.zeros(0)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send the model, and the values that the round announces."""
        self.codec = self._rounds.codec()
        config.update(self._rounds.announced())
        return super().configure_train(server_round, arrays, config, grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Average, step, and let the next round follow from the mean."""
        arrays, metrics = super().aggregate_train(server_round, replies)
        if metrics is not None:
            stderr: Any = metrics.get("stderr", 0.0)
            metrics.update(self._rounds.follow(self._mean, float(stderr)))
        return arrays, metrics

    def updated(self, layout: Layout, mean: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Take a step along the corrected mean."""
        self._mean = self._rounds.corrected(mean)
        return super().updated(layout, self._mean)


def course(rounds: Round[Any], *, every: int = 0) -> list[dict[str, Any]]:
    """Return the scores of a run in this process, without messages.

    Parameters
    ----------
    rounds : Round
        Of a system whose rounds can be `played`. Releases take their randomness from the settings' seed: for
        experiments only.
    every : int
        Rounds from one score to the next, from round 0 on; 0: after the last round alone.

    Returns
    -------
    list of dict
        "round", and the scores by name; the last round's in any case.

    Raises
    ------
    ValueError
        For settings that have no such form.
    """
    model, last = rounds.initial(), rounds.settings.rounds
    rows = [{"round": 0, **rounds.scores(model)}] if every else []
    for turn in range(1, last + 1):
        model = rounds.played(model, turn)
        if turn == last or (every and turn % every == 0):
            rows.append({"round": turn, **rounds.scores(model)})
    return rows
