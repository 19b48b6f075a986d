"""BRR-SGD without messages: the rounds of `sgd` on tables of all clients' gradients, for the figures.

The same mechanism, clip, letters, gain and threshold as the federated system; what is left out is the wire,
the ledgers and the folders of clients.
"""

from __future__ import annotations

import numpy as np
from bitldp.federated import simulate
from numpy.typing import NDArray

from bitldp_papers.brr.settings import SPLIT, WITHOUT, BRRSettings
from bitldp_papers.brr.sgd import NETS, codec, initial
from bitldp_papers.brr.steps import next_clip, scaled, sign_split, worth
from bitldp_papers.run.share import holding, loaded

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
    clip = settings.clip
    found = [(0, net.scores(model, test, data.test_labels)["accuracy"])]
    for turn in range(1, settings.rounds + 1):
        rows = np.empty((settings.clients, int(ends[-1])))
        for place, own in enumerate(held):
            rng = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(1, place, turn)))
            some = rng.permutation(len(own.x))[: settings.batch]
            slope = net.gradient(model, scaled(settings, own.x[some]), own.y[some])
            rows[place] = np.concatenate([array.ravel() for array in slope])
        mean, stderr = _mean(settings, rows, clip, np.random.SeedSequence(settings.seed, spawn_key=(2, turn)))
        clip = next_clip(settings, clip, mean, stderr)
        steps = np.split(settings.rate * mean, ends[:-1])
        model = [
            (array - step.reshape(array.shape)).astype(np.float32)
            for array, step in zip(model, steps, strict=True)
        ]
        if turn % every == 0 or turn == settings.rounds:
            found.append((turn, net.scores(model, test, data.test_labels)["accuracy"]))
    return found


def _mean(
    settings: BRRSettings, rows: NDArray[np.float64], clip: float, rng: np.random.SeedSequence
) -> tuple[NDArray[np.float64], float]:
    """Return what the server makes of the clients' gradients, and the standard error that it knows of."""
    if settings.mechanism == WITHOUT:
        return rows.mean(axis=0), 0.0
    if settings.mechanism == SPLIT:
        return sign_split(settings, rows, clip, rng=rng).mean(axis=0), 0.0
    found = simulate(codec(settings, clip), rows, rng=rng)
    factor = worth(settings, settings.build(rows.shape[1], settings.rounds))
    stderr = float(np.sqrt(np.mean(np.square(found.stderr)))) if found.clients > 1 else 0.0
    return found.value / factor, stderr / factor
