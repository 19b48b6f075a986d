"""BitRand without messages: the same releases, model and rounds as the apps, all clients at once.

Where every client takes one step on all of its records and holds equally many, the average of the clients'
models is one step on all records together. So a round is one gradient, and what the paper sweeps (ten budgets
by five, by mechanism, by seed) takes minutes in place of days. `tests` compare it with the apps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp_papers.bitrand import once, records
from bitldp_papers.bitrand.settings import BitRandSettings
from bitldp_papers.bitrand.system import model, privacy, scorer
from bitldp_papers.bitrand.updates import Layers
from bitldp_papers.models import nets
from bitldp_papers.run.share import holding, loaded

__all__ = ["learned", "trained"]

_RELEASE, _LABELS = 0x5EED, 0x1ABE  # of the seed
_BLOCK = 1 << 24  # numbers of updates that are held at a time


def learned(settings: BitRandSettings) -> dict[str, float]:
    """Return the scores of a whole run, with its claimed and its exact epsilon.

    Parameters
    ----------
    settings : BitRandSettings
        With ``batch=0`` and ``epochs=1``: one step a client and round. Releases take their randomness from
        the seed: for experiments only.

    Returns
    -------
    dict
        "accuracy" and "auc" on clean test records, "randomized-accuracy" and "randomized-auc" on test records
        that were released alike, where features are; "loss"; "claimed" and "exact", epsilons.

    Raises
    ------
    ValueError
        For settings whose rounds are not one step of each client.
    """
    about = privacy(settings)
    found = scorer(settings)(trained(settings))
    return {**found, "claimed": about.claimed, "exact": about.record}


def trained(settings: BitRandSettings) -> list[NDArray[np.float32]]:
    """Return the model after all rounds; see `learned`."""
    if not settings.once and (settings.batch, settings.epochs) != (0, 1):
        raise ValueError("batch, epochs: must be 0 and 1, so that a round is one step on all records")
    if settings.once:
        return _released_once(settings)
    start = model(settings)
    if settings.mechanism == "random":
        return start
    if settings.private and settings.place == "updates":
        return _by_updates(settings, start)
    x, y = _released(settings)
    return nets.train(
        start, x, y, epochs=settings.rounds, batch=len(x), rate=settings.rate, seed=settings.seed
    )


def _seeded(settings: BitRandSettings, what: int, *more: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(settings.seed, spawn_key=(what, *more))


def _released_once(settings: BitRandSettings) -> list[NDArray[np.float32]]:
    data, train, _ = loaded(settings.data)
    chosen = settings.plan(train.shape[1], data.classes)
    found = []
    for place in range(settings.clients):
        held = holding(settings.data, place, settings.clients, seed=settings.seed)
        x, labels = once.in_ball(held.x, settings.radius), None
        if chosen.labels is None:
            x = once.packed(x, held.y, data.classes)
        else:
            source: Any = chosen.labels
            labels = source.randomize(held.y, rng=_seeded(settings, _LABELS, place))
        mechanism: Any = chosen.features
        reports = mechanism.randomize(x, rng=_seeded(settings, _RELEASE, place))
        flat = np.hstack([part.reshape(len(x), -1) for part in reports])
        found.append(once.replied(once.cross(chosen, flat, labels, data.classes)))
    return [np.mean(each, axis=0) for each in zip(*found, strict=True)]


def _released(settings: BitRandSettings) -> tuple[NDArray[np.float32], NDArray[Any]]:
    data, train, _ = loaded(settings.data)
    x = records.randomized(settings, train, rng=_seeded(settings, _RELEASE))
    if not settings.private or not settings.labelled:
        return x, data.train_labels
    labels: Any = settings.label_mechanism(data.classes)
    return x, records.targets(labels, labels.randomize(data.train_labels, rng=_seeded(settings, _LABELS)))


def _by_updates(settings: BitRandSettings, start: list[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
    """Return the model after rounds of released updates, or of LDP-FL's released weights.

    An anonymiser shuffles each coordinate over the clients, which leaves the mean, all that the server takes:
    it is left out here, and not in the apps.
    """
    x, y = _alike(settings)
    size = sum(array.size for array in start)
    mechanism: Any = settings.update_mechanism(size)
    layers = Layers(start, settings.spread) if settings.mechanism == "ldp-fl" else None
    clip = settings.update_options()["clip"]
    block = max(1, _BLOCK // size)
    current = start
    for turn in range(settings.rounds):
        total = np.zeros(size)
        for first in range(0, len(x), block):
            slopes = nets.group_gradients(current, x[first : first + block], y[first : first + block])
            if layers is None:
                rows = _clipped(-settings.rate * _flat(slopes), clip) / np.float32(clip)
            else:
                stepped = [w - settings.rate * g for w, g in zip(current, slopes, strict=True)]
                rows = _flat(layers.standardized(stepped))
            seed = _seeded(settings, _RELEASE, turn, first)
            total += mechanism.randomize(rows, rng=seed, output="values").sum(axis=0, dtype=np.float64)
        mean = total / len(x)
        if layers is None:
            current = _shaped(np.concatenate([array.ravel() for array in current]) + clip * mean, start)
        else:
            current = layers.restored(_shaped(mean, start))
    return current


def _alike(settings: BitRandSettings) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Return every client's records, (clients, n, features) and (clients, n); all hold as many."""
    held = [
        holding(settings.data, place, settings.clients, seed=settings.seed)
        for place in range(settings.clients)
    ]
    least = min(len(each.x) for each in held)
    return (
        np.stack([records.plain(settings, each.x[:least]) for each in held]),
        np.stack([each.y[:least] for each in held]),
    )


def _flat(arrays: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    return np.concatenate([array.reshape(len(array), -1) for array in arrays], axis=1)


def _clipped(rows: NDArray[np.float32], clip: float) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * np.minimum(1.0, clip / np.maximum(lengths, 1e-30)).astype(np.float32)


def _shaped(flat: NDArray[np.floating], like: list[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
    ends = np.cumsum([array.size for array in like])[:-1]
    parts = np.split(flat, ends)
    return [part.reshape(array.shape).astype(np.float32) for part, array in zip(parts, like, strict=True)]
