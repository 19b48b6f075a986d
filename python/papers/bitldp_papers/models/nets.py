"""Dense ReLU networks in jax; parameters are a flat list of NumPy arrays, as Flower sends them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from bitldp_papers.models.steps import stepper

__all__ = [
    "accuracy",
    "example_gradients",
    "gradient",
    "group_gradients",
    "initial",
    "judged",
    "logits",
    "loss",
    "scores",
    "train",
]

Parameters = list[NDArray[np.float32]]


def initial(sizes: Sequence[int], seed: int) -> Parameters:
    """Return weights and biases by layer, shapes (in, out) and (out,), scaled for ReLU (He et al. 2015).

    Parameters
    ----------
    sizes : sequence of int
        Features, units of each hidden layer, classes.
    seed : int
        Of NumPy's generator, so that a model does not depend on the version of jax.
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, 0x1417]))
    layers: Parameters = []
    for fan_in, fan_out in pairwise(sizes):
        scale = np.sqrt(2.0 / fan_in)
        layers += [
            rng.normal(0.0, scale, (fan_in, fan_out)).astype(np.float32),
            np.zeros(fan_out, np.float32),
        ]
    layers[-2] *= np.float32(0.1)  # near-uniform first predictions
    return layers


def _logits(parameters: Any, x: Any) -> Any:
    x = x.astype(jnp.float32)  # bits stay bytes until here
    for layer in range(0, len(parameters) - 2, 2):
        x = jax.nn.relu(x @ parameters[layer] + parameters[layer + 1])
    return x @ parameters[-2] + parameters[-1]


def _loss(parameters: Any, x: Any, y: Any) -> Any:
    logs = jax.nn.log_softmax(_logits(parameters, x))
    if y.ndim == 2:  # soft labels
        return -jnp.mean(jnp.sum(y * logs, axis=1))
    return -jnp.mean(jnp.take_along_axis(logs, y[:, None], axis=1))


_gradient = jax.jit(jax.grad(_loss))
_value = jax.jit(_loss)
_predict = jax.jit(lambda parameters, x: jnp.argmax(_logits(parameters, x), axis=1))
_forward = jax.jit(_logits)
_groups = jax.jit(jax.vmap(jax.grad(_loss), in_axes=(None, 0, 0)))
_each = jax.jit(jax.vmap(lambda p, x, y: jax.grad(_loss)(p, x[None], y[None]), in_axes=(None, 0, 0)))


@partial(jax.jit, donate_argnums=(0, 1), static_argnames=("optimizer",))
def _epoch(parameters: Any, state: Any, x: Any, y: Any, batches: Any, rate: Any, optimizer: str) -> Any:
    """Take one step for each row of `batches`, which holds rows of x and y."""
    chosen = stepper(optimizer, momentum=0.0)

    def step(current: Any, rows: Any) -> tuple[Any, None]:
        slope = jax.grad(_loss)(current[0], x[rows], y[rows])
        return chosen.take(current[0], slope, current[1], rate), None

    return jax.lax.scan(step, (parameters, state), batches)[0]


def _inputs(x: NDArray[Any]) -> Any:
    """Return records for jax: bits as bytes, an eighth of the memory, all else as floats."""
    return jnp.asarray(x, jnp.uint8 if x.dtype == np.uint8 else jnp.float32)


def _numpy(parameters: Any) -> Parameters:
    return [np.asarray(each, dtype=np.float32) for each in parameters]


def train(
    parameters: Parameters,
    x: NDArray[Any],
    y: NDArray[Any],
    *,
    epochs: int,
    batch: int,
    rate: float,
    seed: Any,
    optimizer: str = "sgd",
) -> Parameters:
    """Return the parameters after stochastic gradient descent on the cross-entropy.

    Parameters
    ----------
    parameters : list of ndarray of float32
        As of `initial`; left as they are.
    x : ndarray, shape (n, features); y : ndarray, shape (n,) of classes, or (n, classes) of soft labels
    epochs : int
        Times that the records are gone through, each in a new order.
    batch : int
        Records of a step; the last ones of an epoch that fill no batch are left out of it.
    rate : float
        Step size.
    seed : int or SeedSequence
        Of the orders.
    optimizer : {"sgd", "adam", "rmsprop"}
        As of `stepper`, "sgd" without momentum; its state begins anew in each call.
    """
    size = min(batch, len(x))
    steps = len(x) // size
    rng = np.random.default_rng(seed)
    current: Any = [jnp.asarray(each) for each in parameters]
    features, labels = _inputs(x), jnp.asarray(y, jnp.float32 if y.ndim == 2 else jnp.int32)
    state = stepper(optimizer, momentum=0.0).begin(current)
    for _ in range(epochs):
        order = jnp.asarray(rng.permutation(len(x))[: steps * size].reshape(steps, size))
        current, state = _epoch(current, state, features, labels, order, jnp.float32(rate), optimizer)
    return _numpy(current)


def gradient(parameters: Parameters, x: NDArray[Any], y: NDArray[Any]) -> Parameters:
    """Return the gradient of the mean cross-entropy over records."""
    return _numpy(_gradient(parameters, _inputs(x), jnp.asarray(y, jnp.int32)))


def example_gradients(parameters: Parameters, x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float32]:
    """Return the gradient of each record's cross-entropy, flattened: shape (n, parameters)."""
    slopes = _each(parameters, _inputs(x), jnp.asarray(y, jnp.int32))
    return np.concatenate([np.asarray(each).reshape(len(x), -1) for each in slopes], axis=1)


def group_gradients(parameters: Parameters, x: NDArray[Any], y: NDArray[Any]) -> list[NDArray[np.float32]]:
    """Return the gradients of the mean cross-entropy of several groups of records.

    Parameters
    ----------
    parameters : list of ndarray of float32
    x : ndarray, shape (groups, n, features); y : ndarray of int, shape (groups, n)

    Returns
    -------
    list of ndarray
        As the parameters, each with an axis for the groups in front.
    """
    return [np.asarray(each) for each in _groups(parameters, _inputs(x), jnp.asarray(y, jnp.int32))]


def loss(parameters: Parameters, x: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the mean cross-entropy over records."""
    return float(_value(parameters, _inputs(x), jnp.asarray(y, jnp.int32)))


def accuracy(parameters: Parameters, x: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the share of records whose class is predicted."""
    return float(np.mean(np.asarray(_predict(parameters, _inputs(x))) == y))


def scores(parameters: Parameters, x: NDArray[Any], y: NDArray[Any]) -> dict[str, float]:
    """Return the accuracy and the loss of a model."""
    return {"accuracy": accuracy(parameters, x, y), "loss": loss(parameters, x, y)}


def logits(parameters: Parameters, x: NDArray[Any]) -> NDArray[np.float32]:
    """Return the score of each class for each record, shape (n, classes)."""
    return np.asarray(_forward(parameters, _inputs(x)))


def judged(table: NDArray[np.floating], y: NDArray[Any]) -> dict[str, float]:
    """Return the accuracy and the AUC of scores by class.

    Parameters
    ----------
    table : ndarray, shape (n, classes)
        The larger, the likelier; finite.
    y : ndarray of int, shape (n,)

    Returns
    -------
    dict
        "accuracy", and "auc": the area under the ROC curve, of each class against the rest, averaged over
        the classes that occur (of the two there are, it is the same for either).
    """
    ranks = table - np.logaddexp.reduce(np.asarray(table, np.float64), axis=1, keepdims=True)
    areas = [roc_auc_score(y == c, ranks[:, c]) for c in range(table.shape[1]) if 0 < np.sum(y == c) < len(y)]
    return {"accuracy": float(np.mean(table.argmax(axis=1) == y)), "auc": float(np.mean(areas))}
