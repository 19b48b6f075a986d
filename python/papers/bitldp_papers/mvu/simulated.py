"""DP-SGD with MVU without messages: the rounds of `mvu` on tables of gradients, for the figures.

The same mechanisms, clip, accounting and steps as the federated system, of records that are released at
most as often; what is left out is the wire, the ledgers and the folders of clients.
"""

from __future__ import annotations

import numpy as np
from bitldp.federated import simulate
from numpy.typing import NDArray

from bitldp_papers.models import nets
from bitldp_papers.mvu.inputs import inputs
from bitldp_papers.mvu.settings import MVUSettings
from bitldp_papers.mvu.steps import corrected
from bitldp_papers.run.share import shuffled

__all__ = ["descend"]


def descend(settings: MVUSettings, *, every: int = 0) -> list[tuple[int, float]]:
    """Return the accuracy on test records after each `every` rounds, and after the last.

    Parameters
    ----------
    settings : MVUSettings
        With ``level="example"``: each round releases the gradients of ``clients * batch`` records.
    every : int
        Rounds from one score to the next; 0: the last alone.

    Returns
    -------
    list of (int, float)
        Rounds done, and the share of test records whose class is predicted.

    Raises
    ------
    ValueError
        For ``level="client"``.
    """
    if settings.level != "example":
        raise ValueError("level: must be 'example'")
    data, train, test = inputs(settings.data, settings.features)
    model = nets.initial(settings.sizes(), settings.seed)
    ends = np.cumsum([array.size for array in model])
    order = shuffled(len(train), settings.seed)
    records, found = settings.clients * settings.batch, []
    for turn in range(1, settings.rounds + 1):
        # All in turn; a new pass goes through them in the same order.
        some = order[np.arange((turn - 1) * records, turn * records) % len(order)]
        rows = nets.example_gradients(model, train[some], data.train_labels[some])
        mean = _mean(settings, rows, np.random.SeedSequence(settings.seed, spawn_key=(0x31, turn)))
        steps = np.split(settings.rate * mean, ends[:-1])
        model = [
            (array - step.reshape(array.shape)).astype(np.float32)
            for array, step in zip(model, steps, strict=True)
        ]
        if turn == settings.rounds or (every and turn % every == 0):
            found.append((turn, nets.scores(model, test, data.test_labels)["accuracy"]))
    return found


def _mean(
    settings: MVUSettings, rows: NDArray[np.float32], rng: np.random.SeedSequence
) -> NDArray[np.float64]:
    """Return the step that the server makes of the reports."""
    if not settings.private:
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        clipped: NDArray[np.float64] = rows * np.minimum(1.0, settings.clip / np.maximum(norms, 1e-30))
        return clipped.mean(axis=0, dtype=np.float64)
    shape = (settings.clients, settings.batch, -1) if settings.batch > 1 else (settings.clients, -1)
    return corrected(settings, simulate(settings.codec(), rows.reshape(shape), rng=rng).value)
