"""BRR-SGD without messages: the rounds of `sgd` on tables of all clients' gradients, for the figures.

The same mechanism, clip, letters, gain and threshold as the federated system; what is left out is the wire,
the ledgers and the folders of clients.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.federated.wire.forms import letters_of
from bitldp.papers.brr.settings import SPLIT, WITHOUT, BRRSettings
from bitldp.papers.brr.sgd import NETS, initial
from bitldp.papers.brr.steps import clipped, next_clip, scaled, sign_split, worth
from bitldp.papers.run.share import holding, loaded

__all__ = ["descend"]


def descend(settings: BRRSettings, *, every: int = 10) -> list[tuple[int, float]]:
    """Return the accuracy on test records before the first round and after each `every` rounds.

    Parameters
    ----------
    settings : BRRSettings
        With ``task="sgd"``.
    every : int
        Rounds from one score to the next; the last round is scored in any case.

    Returns
    -------
    list of (int, float)
        Rounds done, and the share of test records whose class is predicted.
    """
    data, _, test = loaded(settings.data)
    test = scaled(settings, test)
    net, model = NETS[settings.net], initial(settings)
    ends = np.cumsum([array.size for array in model])
    held = [
        holding(settings.data, place, settings.clients, seed=settings.seed)
        for place in range(settings.clients)
    ]
    release = _release(settings, int(ends[-1]))
    clip, found = settings.clip, []
    for turn in range(settings.rounds + 1):
        if turn % every == 0 or turn == settings.rounds:
            found.append((turn, net.scores(model, test, data.test_labels)["accuracy"]))
        if turn == settings.rounds:
            return found
        rows = np.empty((settings.clients, int(ends[-1])))
        for place, own in enumerate(held):
            rng = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(1, place, turn)))
            some = rng.permutation(len(own.x))[: settings.batch]
            slope = net.gradient(model, scaled(settings, own.x[some]), own.y[some])
            rows[place] = np.concatenate([array.ravel() for array in slope])
        released = release(rows, clip, np.random.SeedSequence(settings.seed, spawn_key=(2, turn)))
        mean = released.mean(axis=0)
        stderr = float(np.sqrt(released.var(axis=0, ddof=1).mean() / len(rows))) if len(rows) > 1 else 0.0
        clip = next_clip(settings, clip, mean, 0.0 if settings.mechanism == SPLIT else stderr)
        steps = np.split(settings.rate * mean, ends[:-1])
        model = [
            (array - step.reshape(array.shape)).astype(np.float32)
            for array, step in zip(model, steps, strict=True)
        ]
    raise AssertionError  # the last round returns


def _release(settings: BRRSettings, size: int) -> Any:
    """Return the function from gradients and a threshold to what the server makes of their reports."""
    if settings.mechanism == WITHOUT:
        return lambda rows, clip, rng: rows
    if settings.mechanism == SPLIT:
        return lambda rows, clip, rng: sign_split(settings, rows, clip, rng=rng)
    mechanism = settings.build(size, settings.rounds)
    letters = letters_of(mechanism, allow_biased=True)
    factor = worth(settings, settings.build(1, settings.rounds) if settings.unit == "feature" else mechanism)

    def release(rows: NDArray[np.float64], clip: float, rng: np.random.SeedSequence) -> NDArray[np.float64]:
        reports = mechanism.randomize(clipped(rows, clip, settings.norm), rng=rng)
        return np.asarray(letters(reports), np.float64) * (clip / factor)

    return release
