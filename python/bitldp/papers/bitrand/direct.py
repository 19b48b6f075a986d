"""BitRand without messages: the same releases, model and rounds as the apps, all clients at once.

Where every client takes one step on all of its records and holds equally many, the average of the clients'
models is one step on all records together. So a round is one gradient, and what the paper sweeps (ten budgets
by five, by mechanism, by seed) takes minutes in place of days. `tests` compare it with the apps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.papers.bitrand import once, records
from bitldp.papers.bitrand.settings import BitRandSettings
from bitldp.papers.bitrand.system import model, privacy, scorer
from bitldp.papers.bitrand.updates import Layers, shuffled
from bitldp.papers.models import nets
from bitldp.papers.run.share import holding, loaded

__all__ = ["learned", "trained"]

_RELEASE, _LABELS, _SHUFFLE = 0x5EED, 0x1ABE, 0x50FF  # of the seed


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
        return [_released_once(settings)]
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


def _released_once(settings: BitRandSettings) -> NDArray[np.float32]:
    data, train, _ = loaded(settings.data)
    chosen = settings.plan(train.shape[1], data.classes)
    x, y = once.in_ball(train, settings.radius), data.train_labels
    labels = None
    if chosen.labels is None:
        x = once.packed(x, y, data.classes)
    else:
        labels = chosen.labels.randomize(y, rng=_seeded(settings, _LABELS))  # type: ignore[attr-defined]
    reports = chosen.features.randomize(x, rng=_seeded(settings, _RELEASE))  # type: ignore[attr-defined]
    both = [part.reshape(len(x), -1) for part in reports]
    return once.cross(chosen, np.hstack(both), labels, data.classes)


def _released(settings: BitRandSettings) -> tuple[NDArray[np.float32], NDArray[Any]]:
    data, train, _ = loaded(settings.data)
    x = records.randomized(settings, train, rng=_seeded(settings, _RELEASE))
    if not settings.private or not settings.labelled:
        return x, data.train_labels
    labels: Any = settings.label_mechanism(data.classes)
    return x, records.targets(labels, labels.randomize(data.train_labels, rng=_seeded(settings, _LABELS)))


def _by_updates(settings: BitRandSettings, start: list[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
    """Return the model after rounds of released updates, or of LDP-FL's released weights."""
    held = [
        holding(settings.data, place, settings.clients, seed=settings.seed)
        for place in range(settings.clients)
    ]
    xs = [records.plain(settings, each.x) for each in held]
    size = sum(array.size for array in start)
    mechanism: Any = settings.update_mechanism(size)
    layers = Layers(start, settings.spread) if settings.mechanism == "ldp-fl" else None
    clip = settings.update_options()["clip"]
    current = start
    for turn in range(settings.rounds):
        rows = np.empty((settings.clients, size), np.float32)
        for place, (x, each) in enumerate(zip(xs, held, strict=True)):
            slope = nets.gradient(current, x, each.y)
            stepped = [w - settings.rate * g for w, g in zip(current, slope, strict=True)]
            if layers is None:
                rows[place] = _clipped(_flat(stepped) - _flat(current), clip) / clip
            else:
                rows[place] = _flat(layers.standardized(stepped))
        values = mechanism.randomize(rows, rng=_seeded(settings, _RELEASE, turn), output="values")
        if settings.anonymiser:
            values = shuffled(values, np.random.default_rng(_seeded(settings, _SHUFFLE, turn)))
        mean = np.asarray(values, np.float64).mean(axis=0)
        if layers is None:
            mean = _flat(current) + clip * mean
        current = _shaped(mean, start)
        if layers is not None:
            current = layers.restored(current)
    return current


def _flat(arrays: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    return np.concatenate([array.ravel() for array in arrays])


def _clipped(vector: NDArray[np.float32], clip: float) -> NDArray[np.float32]:
    length = float(np.linalg.norm(vector))
    return vector if length <= clip else vector * np.float32(clip / length)


def _shaped(flat: NDArray[np.floating], like: list[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
    ends = np.cumsum([array.size for array in like])[:-1]
    parts = np.split(flat, ends)
    return [part.reshape(array.shape).astype(np.float32) for part, array in zip(parts, like, strict=True)]
