"""Rounds of gradients: each cohort of clients reports the mean of its features, or a gradient, once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp_papers.honest.features import Array, unit
from bitldp_papers.honest.records import HonestRecords, released
from bitldp_papers.honest.settings import HonestSettings

__all__ = ["RoundsServer", "gradients", "softmax"]


class RoundsServer:
    """Server of a linear model that is trained by clients' gradients.

    Parameters
    ----------
    settings : HonestSettings
    records : HonestRecords

    Attributes
    ----------
    state : dict of str to ndarray
        What a run goes on from: the mean of the features, the weights, the last step, a sum of either.
    """

    def __init__(self, settings: HonestSettings, records: HonestRecords) -> None:
        self.settings, self.records = settings, records
        features = records.train.shape[1]
        zeros = np.zeros((features, records.classes))
        self.state: dict[str, NDArray[Any]] = {
            "mean": np.zeros(features, np.float32),
            "weights": zeros,
            "moved": zeros,
            "summed": zeros,
        }
        self._rate = settings.step(zeros.size)

    def reported(self, turn: int, cohort: NDArray[np.intp], rng: Any, threads: int) -> dict[str, Any]:
        """Let a cohort report, learn from it, and return the metrics of the round."""
        x, y = self.records.train[cohort], self.records.labels[cohort]
        if turn <= self.settings.centring:
            return self._centred(x, turn, rng, threads)
        return self._stepped(x, y, turn, rng, threads)

    def accuracy(self, turn: int) -> float:
        """Return the accuracy on clean test records of the model that would be handed out now."""
        count = turn - (self.settings.rounds - self.settings.averaged)
        weights = self.state["summed"] / count if count > 0 else self.state["weights"]
        scores = _prepared(self.records.test, self.state["mean"]) @ weights.astype(np.float32)
        return float(np.mean(scores.argmax(axis=1) == self.records.test_labels))

    def _centred(self, x: Array, turn: int, rng: Any, threads: int) -> dict[str, Any]:
        """Let a cohort report its features, and add them to the mean of those that did before.

        The mean is shrunk by what the noise is known to add to its square (James and Stein), so that little
        is taken off where little is known.
        """
        state, size = self.state, x.shape[1]
        reported, metrics = released(self.settings, lambda a, b: x[a:b], size, len(x), 1.0, rng, threads)
        pad = ((0, 0), (0, state["weights"].shape[1] - 1))
        state["summed"] = state["summed"] + np.pad(reported[:, None], pad)
        mean = state["summed"][:, 0] / turn
        noise = size * metrics.get("stderr", 0.0) ** 2 / turn
        kept = max(0.0, 1.0 - noise / max(float(mean @ mean), 1e-300))
        state["mean"] = (mean * kept).astype(np.float32)
        if turn == self.settings.centring:
            state["summed"] = np.zeros_like(state["weights"])
        return metrics

    def _stepped(self, x: Array, y: NDArray[np.int64], turn: int, rng: Any, threads: int) -> dict[str, Any]:
        """Let a cohort report its gradients, and take a step."""
        settings, state = self.settings, self.state
        features = _prepared(x, state["mean"])

        def rows(start: int, stop: int) -> NDArray[np.float32]:
            return gradients(features[start:stop], y[start:stop], state["weights"])

        size = state["weights"].size
        step, metrics = released(settings, rows, size, len(x), settings.clip, rng, threads)
        state["moved"] = settings.momentum * state["moved"] + step.reshape(state["weights"].shape)
        state["weights"] = state["weights"] - self._rate * state["moved"]
        if turn > settings.rounds - settings.averaged:
            state["summed"] = state["summed"] + state["weights"]
        return metrics


def _prepared(x: Array, mean: Array) -> Array:
    """Return features less the mean, of length 1, as each client computes them for itself."""
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
