"""FedSel without messages: its rounds on tables of a batch's gradients, one record a client, for the figures.

The same selections, values, memories and rates as the federated system; what is left out is the wire, the
ledgers and the folders of clients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from bitldp.federated import simulate
from bitldp.selection import FedSel
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from bitldp_papers.fedsel.settings import FedSelSettings, codec, selecting, selection
from bitldp_papers.models import linear
from bitldp_papers.run.share import loaded, shuffled

__all__ = ["descend"]

Rows = NDArray[np.float64]
_Update = Callable[[Rows, NDArray[np.intp], np.random.SeedSequence], Rows]


def descend(settings: FedSelSettings, *, every: int = 0) -> list[dict[str, float]]:
    """Return the scores on test records after each `every` rounds, and after the last.

    Parameters
    ----------
    settings : FedSelSettings
        Of two classes; each client holds one record, the first `clients` of those that the seed shuffles.
    every : int
        Rounds from one score to the next; 0: the last alone.

    Returns
    -------
    list of dict
        "round", "accuracy" and "auc".

    Raises
    ------
    ValueError
        For more clients than records, or more than two classes.
    """
    data, train, test = loaded(settings.data)
    if data.classes != 2:
        raise ValueError(f"data: {settings.data} has {data.classes} classes, and two are needed")
    if settings.clients > len(train):
        raise ValueError(f"clients: {settings.clients} are more than the {len(train)} records")
    held = shuffled(len(train), settings.seed)[: settings.clients]
    x_test = linear.design(test, settings.lowest)
    weights = np.zeros((x_test.shape[1], 1))
    step, found = _update(settings, weights.size), []
    for turn in range(1, settings.rounds + 1):
        who = _batch(settings, turn)
        x = linear.design(train[held[who]], settings.lowest)
        y = linear.targets(data.train_labels[held[who]], 1)
        rows = settings.client_rate * linear.gradients(weights, x, y, settings.model, settings.ridge)
        rng = np.random.SeedSequence(settings.seed, spawn_key=(0xFED, turn))
        weights -= settings.server_rate * step(rows, who, rng)[:, None]
        if turn == settings.rounds or (every and turn % every == 0):
            scores = (x_test @ weights)[:, 0]
            right = float(np.mean((scores > 0.0) == data.test_labels))
            found.append(
                {"round": turn, "accuracy": right, "auc": float(roc_auc_score(data.test_labels, scores))}
            )
    return found


def _batch(settings: FedSelSettings, turn: int) -> NDArray[np.intp]:
    """Return the clients of a round: each takes part once in an epoch."""
    epoch, place = divmod(turn - 1, settings.epoch)
    rng = np.random.default_rng(np.random.SeedSequence([settings.seed, 0xE90C, epoch]))
    return np.sort(np.array_split(rng.permutation(settings.clients), settings.epoch)[place])


def _update(settings: FedSelSettings, size: int) -> _Update:
    """Return the function from a batch's gradients to what the server subtracts, but for the rate."""
    if settings.mechanism == "full":
        return lambda rows, who, rng: rows.mean(axis=0)
    if settings.mechanism == "random":
        return lambda rows, who, rng: _random(rows, rng)
    if settings.mechanism in ("flat", "compressed"):
        used = codec(settings)
        return lambda rows, who, rng: simulate(used, rows, rng=rng).value
    if settings.private:
        clients = _Clients(settings, size)
        return clients.released
    return _Plain(settings, size).updates


def _random(rows: Rows, rng: np.random.SeedSequence) -> Rows:
    """Return the mean of one coordinate of each row, drawn at random and d times as large."""
    size = rows.shape[1]
    places = np.random.default_rng(rng).integers(size, size=len(rows))
    sums = np.bincount(places, size * rows[np.arange(len(rows)), places], size)
    return sums / len(rows)


class _Clients:
    """All clients' memories, where they take part more than once; else none is kept."""

    def __init__(self, settings: FedSelSettings, size: int) -> None:
        self._like = selecting(settings, size)
        self._all: FedSel | None = self._like.fresh(settings.clients) if settings.releases > 1 else None

    def released(self, rows: Rows, who: NDArray[np.intp], rng: np.random.SeedSequence) -> Rows:
        """Return the mean of what the batch's reports are worth."""
        if self._all is None:
            reports = self._like.fresh(len(rows)).release(rows, rng=rng)
        else:
            reports = self._all.release(rows, clients=who, rng=rng)
        value: Rows = self._like.stages.aggregate(reports).value
        return value


class _Plain:
    """Selection without a perturbed value: the largest coordinate, or the one that the selection names."""

    def __init__(self, settings: FedSelSettings, size: int) -> None:
        self._settings = settings
        self._chosen: Any = None if settings.mechanism == "top" else selection(settings, size)
        self._residual = np.zeros((settings.clients, size))

    def updates(self, rows: Rows, who: NDArray[np.intp], rng: np.random.SeedSequence) -> Rows:
        """Return the mean of the clients' sparse updates."""
        before = self._residual[who]
        after = before + rows
        if self._chosen is None:
            places = np.abs(after).argmax(axis=1)
        else:
            places = self._chosen.randomize(after, rng=rng).astype(np.intp)
        size, sent = rows.shape[1], np.flatnonzero(places < rows.shape[1])
        places = places[sent]
        moved = after[sent, places] + self._settings.momentum * before[sent, places]
        after[sent, places] = 0.0
        self._residual[who] = after
        return np.bincount(places, moved, size) / len(rows)
