"""Deployment `honest`: a linear model of public features, learned from one report of each client."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.base.files import fleeting
from bitldp.federated import simulate
from bitldp.federated import Layout
from bitldp.ledger import Ledger
from bitldp_papers.honest.features import FEATURES, edges, pixels, unit
from bitldp_papers.honest.settings import MECHANISMS, NAME, HonestSettings
from bitldp_papers.run.drive import Privacy, Summary, Watcher, finished, folder_of
from bitldp_papers.run.folder import RunFolder
from bitldp_papers.run.settings import Settings
from bitldp_papers.run.share import loaded
from bitldp_papers.run.system import Runnable

__all__ = ["SYSTEM", "Honest"]

Array = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Records:
    """Features of both parts of a data set, and their classes."""

    train: Array
    labels: NDArray[np.int64]
    test: Array
    test_labels: NDArray[np.int64]
    classes: int

    @classmethod
    @lru_cache(maxsize=2)
    def of(cls, name: str, kind: str) -> Records:
        """Return one of the kinds of features of a data set of square images; a process makes them once.

        Raises
        ------
        ValueError
            If its records are no square images with classes.
        """
        data, train, test = loaded(name)
        side = round(train.shape[1] ** 0.5)
        if side * side != train.shape[1] or not data.classes:
            raise ValueError(f"data: {name} has no square images with classes")
        of = edges if kind == "edges" else pixels

        def features(x: Array) -> Array:
            return of(((x + 1.0) / 2.0).reshape(-1, side, side))

        labels = (np.asarray(each, np.int64) for each in (data.train_labels, data.test_labels))
        first, second = labels
        return cls(features(train), first, features(test), second, data.classes)


@dataclass
class State:
    """What a server keeps between rounds: the mean of the features, the weights, the last step, a sum."""

    mean: Array
    weights: NDArray[np.float64]
    moved: NDArray[np.float64]
    summed: NDArray[np.float64]

    @classmethod
    def new(cls, features: int, classes: int) -> State:
        """Return the state before the first round."""
        zeros = np.zeros((features, classes))
        return cls(np.zeros(features, np.float32), zeros, zeros, zeros)


@dataclass(frozen=True)
class Honest(Runnable):
    """Simulation of the deployment: cohorts of clients, each of which takes part in one round."""

    def run(
        self,
        settings: Settings,
        *,
        threads: int = 1,
        seeded: bool = False,
        watcher: Watcher | None = None,
        stop: Callable[[], None] | None = None,
        durable: bool = False,
    ) -> Summary:
        """Run the rounds; see `System.run`. Nothing but the server's files is kept: no client has any."""
        assert isinstance(settings, HonestSettings)
        if durable:
            return self._run(settings, threads, seeded, watcher, stop)
        with fleeting():
            return self._run(settings, threads, seeded, watcher, stop)

    def _run(
        self,
        settings: HonestSettings,
        threads: int,
        seeded: bool,
        watcher: Watcher | None,
        stop: Callable[[], None] | None,
    ) -> Summary:
        start = time.perf_counter()
        records = Records.of(settings.data, settings.features)
        folder = RunFolder(folder_of(settings, self.name), settings.lasting(), resume=settings.resume)
        state, done = State.new(records.train.shape[1], records.classes), 0
        if folder.checkpoint is not None:
            state, done = State(**folder.checkpoint.arrays), folder.checkpoint.round
        members = dealt(len(records.train), settings)
        rate = settings.step(state.weights.size)
        for turn in range(done + 1, settings.rounds + 1):
            if stop is not None:
                stop()
            coins = np.random.SeedSequence(settings.seed, spawn_key=(0x5EED, turn)) if seeded else None
            cohort = members[turn - 1]
            x, y = records.train[cohort], records.labels[cohort]
            if turn <= settings.centring:
                row = _centred(settings, state, x, turn, coins, threads)
            else:
                row = _stepped(settings, state, x, y, turn, rate, coins, threads)
            folder.record({"round": turn, **_scores(settings, state, records, turn), **row}, vars(state))
            if watcher is not None:
                watcher(folder.rows[-1])
        exact = max(row.get("spent", 0.0) for row in folder.rows)
        caveat = ""
        if settings.clients > len(records.train):
            caveat = f"{settings.clients} clients hold {len(records.train)} records, which are dealt again"
        return finished(
            folder,
            settings,
            system=self.name,
            privacy=_privacy(settings, exact),
            seconds=time.perf_counter() - start,
            caveat=caveat,
        )


def dealt(records: int, settings: HonestSettings) -> list[NDArray[np.intp]]:
    """Return the records of the clients of each round: each once, before any is dealt again."""
    rng = np.random.default_rng(np.random.SeedSequence([settings.seed, 0xDA7A]))
    deals = [rng.permutation(records) for _ in range(-(-settings.clients // records))]
    return np.array_split(np.concatenate(deals)[: settings.clients], settings.rounds)


def prepared(x: Array, mean: Array) -> Array:
    """Return features less the mean, of length 1: what each client computes for itself."""
    return unit(x - mean) if mean.any() else x


def softmax(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the probabilities of classes, shape (n, classes)."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: NDArray[np.floating] = powers / powers.sum(axis=1, keepdims=True)
    return shares


def gradients(x: Array, y: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the gradient of each record's log loss, shape (n, features * classes)."""
    errors = softmax(x @ weights.astype(np.float32))
    errors[np.arange(len(y)), y] -= 1.0
    rows: NDArray[np.float32] = (x[:, :, None] * errors[:, None, :]).reshape(len(x), -1)
    return rows


def _released(
    settings: HonestSettings,
    rows: Callable[[int, int], NDArray[Any]],
    size: int,
    clients: int,
    clip: float,
    coins: Any,
    threads: int,
) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Return the mean of the clients' clipped vectors, as a server has it, and the metrics of the round."""
    codec = settings.codec(clip)
    if settings.private:
        ledger = Ledger(settings.epsilon)  # of this cohort, whose clients have taken no part before
        found = simulate(codec, rows, clients=clients, ledger=ledger, rng=coins, threads=threads)
        spread = float(np.sqrt(np.mean(np.square(found.stderr))))
        metrics = {"stderr": spread, "bytes-up": found.bytes_up, "spent": ledger.spent}
        return found.value, {"reports": clients, **metrics}
    plan = codec.plan(Layout(("update",), ((size,),), ("<f8",)))
    mean = plan.clipped_rows(np.asarray(rows(0, clients), np.float64)).mean(axis=0)
    return mean, {"reports": clients, "bytes-up": 8 * size * clients}


def _centred(
    settings: HonestSettings, state: State, x: Array, turn: int, coins: Any, threads: int
) -> dict[str, Any]:
    """Let a cohort report its features, and add them to the mean of those that did before.

    The mean is shrunk by what the noise is known to add to its square (James and Stein), so that little is
    taken off where little is known.
    """
    size = x.shape[1]
    found, metrics = _released(settings, lambda a, b: x[a:b], size, len(x), 1.0, coins, threads)
    state.summed = state.summed + np.pad(found[:, None], ((0, 0), (0, state.weights.shape[1] - 1)))
    mean = state.summed[:, 0] / turn
    noise = size * metrics.get("stderr", 0.0) ** 2 / turn
    state.mean = (mean * max(0.0, 1.0 - noise / max(float(mean @ mean), 1e-300))).astype(np.float32)
    if turn == settings.centring:
        state.summed = np.zeros_like(state.weights)
    return metrics


def _stepped(
    settings: HonestSettings,
    state: State,
    x: Array,
    y: NDArray[np.int64],
    turn: int,
    rate: float,
    coins: Any,
    threads: int,
) -> dict[str, Any]:
    """Let a cohort report its gradients, and take a step."""
    features = prepared(x, state.mean)

    def rows(start: int, stop: int) -> NDArray[np.float32]:
        return gradients(features[start:stop], y[start:stop], state.weights)

    found, metrics = _released(settings, rows, state.weights.size, len(x), settings.clip, coins, threads)
    state.moved = settings.momentum * state.moved + found.reshape(state.weights.shape)
    state.weights = state.weights - rate * state.moved
    if turn > settings.rounds - settings.averaged:
        state.summed = state.summed + state.weights
    return metrics


def _scores(settings: HonestSettings, state: State, records: Records, turn: int) -> Mapping[str, float]:
    """Return the accuracy on clean test records of the model that would be handed out now."""
    count = turn - (settings.rounds - settings.averaged)
    weights = state.summed / count if count > 0 else state.weights
    scores = prepared(records.test, state.mean) @ weights.astype(np.float32)
    return {"accuracy": float(np.mean(scores.argmax(axis=1) == records.test_labels))}


def _privacy(settings: HonestSettings, exact: float) -> Privacy:
    if not settings.private:
        return Privacy(np.inf, np.inf, covers="nothing: this run has no privacy")
    return Privacy(
        settings.epsilon,
        exact,
        covers="a client (its record, its label): all that it sends in the whole run, against any other",
        not_covered="that the client takes part, and in which round",
    )


SYSTEM = Honest(
    name=NAME,
    summary="one report of each client in its life, at a client's true epsilon (none of the papers')",
    settings=HonestSettings,
    choices={"mechanism": MECHANISMS, "features": FEATURES},
)
