"""Linear models with an l2 penalty: logistic regression and the support vector machine, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["accuracy", "design", "gradient", "gradients", "initial", "loss", "targets"]

Floats = NDArray[np.float64]


def initial(features: int, classes: int) -> NDArray[np.float32]:
    """Return a model of zeros, shape (features + 1, outputs); two classes share one output."""
    return np.zeros((features + 1, 1 if classes == 2 else classes), np.float32)


def design(x: NDArray[Any], lowest: float) -> Floats:
    """Return features of [-1, 1] moved to [lowest, 1], with a last column of ones for the intercept."""
    scaled = 1.0 - (1.0 - np.asarray(x, np.float64)) * ((1.0 - lowest) / 2.0)
    return np.hstack([scaled, np.ones((len(x), 1))])


def targets(labels: NDArray[Any], outputs: int) -> Floats:
    """Return 1 for the class that an output stands for and -1 for the others, shape (n, outputs)."""
    classes = np.arange(outputs) if outputs > 1 else np.array([1])
    return np.where(np.asarray(labels)[:, None] == classes, 1.0, -1.0)


def gradient(weights: NDArray[Any], x: Floats, y: Floats, model: str, ridge: float) -> Floats:
    """Return the gradient of the mean loss with its penalty, shape (features + 1, outputs).

    Parameters
    ----------
    weights : ndarray, shape (features + 1, outputs)
    x, y : ndarray
        As of `design` and `targets`.
    model : {"logistic", "svm"}
        The loss of a margin m = y x.w: ln(1 + e^-m), or max(0, 1 - m).
    ridge : float
        Lambda; the penalty is lambda |w|^2/2.
    """
    w = np.asarray(weights, np.float64)
    step: Floats = ridge * w - x.T @ _pulls(w, x, y, model) / len(x)
    return step


def gradients(weights: NDArray[Any], x: Floats, y: Floats, model: str, ridge: float) -> Floats:
    """Return the gradient of each record's loss with the penalty, flattened: shape (n, weights).

    Parameters
    ----------
    weights, x, y, model, ridge
        As of `gradient`.
    """
    w = np.asarray(weights, np.float64)
    steps: Floats = ridge * w - x[:, :, None] * _pulls(w, x, y, model)[:, None, :]
    return steps.reshape(len(x), -1)


def _pulls(w: Floats, x: Floats, y: Floats, model: str) -> Floats:
    """Return minus the derivative of each record's loss by each output, shape (n, outputs)."""
    margins = y * (x @ w)
    # 1/(1 + e^m), which does not overflow
    slopes = 0.5 - 0.5 * np.tanh(0.5 * margins) if model == "logistic" else (margins < 1.0).astype(float)
    pulls: Floats = y * slopes
    return pulls


def loss(weights: NDArray[Any], x: Floats, y: Floats, model: str) -> float:
    """Return the mean loss without the penalty, summed over the outputs."""
    margins = y * (x @ np.asarray(weights, np.float64))
    each = np.logaddexp(0.0, -margins) if model == "logistic" else np.maximum(0.0, 1.0 - margins)
    return float(each.sum(axis=1).mean())


def accuracy(weights: NDArray[Any], x: Floats, labels: NDArray[Any]) -> float:
    """Return the share of records whose class is predicted."""
    scores = x @ np.asarray(weights, np.float64)
    predicted = (scores[:, 0] > 0.0) if scores.shape[1] == 1 else scores.argmax(axis=1)
    return float(np.mean(predicted == labels))
