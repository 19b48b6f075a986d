"""Inversion: an attacker computes a client's record from its update, the gradient of one record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import bitldp
import numpy as np
from bitldp.federated import ReportForm, letters_of
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import ceiling
from numpy.typing import NDArray

from bitldp_papers.attacks.subjects import HONEST, Attacked, records

__all__ = ["inversion"]


@dataclass(frozen=True)
class Update:
    """Release of updates: a mechanism of numbers within the clip, or none."""

    name: str
    claimed: float
    mechanism: Mechanism | None

    @property
    def exact(self) -> float:
        """Exact epsilon of the whole update."""
        return math.inf if self.mechanism is None else self.mechanism.guarantee.record

    def decoded(self, updates: NDArray[np.float32], rng: np.random.SeedSequence) -> NDArray[np.float64]:
        """Return updates as a server decodes them."""
        if self.mechanism is None:
            return np.asarray(updates, np.float64)
        form = ReportForm(self.mechanism)
        reports = self.mechanism.randomize(updates, rng=rng, output=form.output)
        letters = letters_of(self.mechanism, allow_biased=True)(reports)
        return np.asarray(letters, np.float64).reshape(updates.shape)


def released_updates(size: int, epsilons: Sequence[float]) -> list[Update]:
    """Return the ways in which updates of `size` coordinates leave clients.

    Coordinates of an update of norm 1 are about 1/sqrt(size); the public range of one is thrice that.
    """
    updates = [Update("clipped, no noise", math.inf, None)]
    ends = (-3.0 / math.sqrt(size), 3.0 / math.sqrt(size))
    for claimed in (1.0, 4.0):
        # Behind an anonymiser every coordinate spends the whole budget (Sun et al., as BitRand runs it).
        each: Mechanism = bitldp.Duchi(
            epsilon=claimed, features=size, unit="feature", spend="split", interval=ends
        )
        updates.append(Update("Duchi, the budget a coordinate", claimed, each))
        each = bitldp.BRR(21, epsilon=claimed, m="paper", interval=ends, features=size, unit="feature")
        updates.append(Update("BRR, the budget a coordinate", claimed, each))
    for epsilon in epsilons:
        updates.append(Update("CrossPolytope", epsilon, bitldp.CrossPolytope(size, epsilon=epsilon)))
    return updates


def inversion(
    data: str = "digits",
    *,
    seeds: Sequence[int] = (1, 2, 3),
    epsilons: Sequence[float] = HONEST,
    trials: int = 200,
) -> Iterator[Attacked]:
    """Release the first gradient of clients with one record each, and compute the records from it.

    The gradient of the log loss of a linear model is the record times the errors of the classes: a table of
    rank one. Its largest singular vector is the record, up to a sign, which the label's column tells: that
    error alone is negative. Who holds candidates looks for the one whose gradient, with any label, has the
    largest product with what came.

    Parameters
    ----------
    data, seeds, epsilons
        As of `linkage`; a data set with classes.
    trials : int
        Updates for each seed.

    Yields
    ------
    Attacked
        `successes` are shares of updates whose record is found among all test records; "cosine" is the mean
        cosine of the computed record and the true one, "label" the share of labels that are right.

    Raises
    ------
    ValueError
        For a data set without classes.
    """
    candidates, given, classes = records(data)
    if not classes:
        raise ValueError(f"data: {data} has no classes")
    labels = np.asarray(given, np.int64)
    count, size = len(candidates), candidates.shape[1] * classes
    for update in released_updates(size, epsilons):
        shares = np.array([_inverted(update, candidates, labels, classes, seed, trials) for seed in seeds])
        yield Attacked(
            update.name,
            update.claimed,
            update.exact,
            tuple(shares[:, 0].tolist()),
            ceiling(update.exact, count),
            1.0 / count,
            {"cosine": float(shares[:, 1].mean()), "label": float(shares[:, 2].mean())},
        )


def _inverted(
    update: Update,
    candidates: NDArray[np.float32],
    labels: NDArray[np.int64],
    classes: int,
    seed: int,
    trials: int,
) -> tuple[float, float, float]:
    """Return shares of records found, the mean cosine, and the share of labels found."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0xA77C,)))
    chosen = rng.choice(len(candidates), min(trials, len(candidates)), replace=False)
    x, y = candidates[chosen], labels[chosen]
    errors = np.full((classes, classes), 1.0 / classes, np.float32) - np.eye(classes, dtype=np.float32)
    tables = x[:, :, None] * errors[y][:, None, :]  # of the model that is all zeros
    key = np.random.SeedSequence(seed, spawn_key=(0x5EEF,))
    decoded = update.decoded(tables.reshape(len(x), -1), key).reshape(tables.shape)
    right = np.empty((len(x), 2), bool)
    for index, table in enumerate(decoded):
        products = candidates @ (table @ errors).astype(np.float32)  # with each label in turn
        best = int(products.argmax())
        right[index] = best // classes == chosen[index], best % classes == y[index]
    left, _, shares = np.linalg.svd(decoded, full_matrices=False)
    largest = np.take_along_axis(shares[:, 0], np.abs(shares[:, 0]).argmax(axis=1)[:, None], axis=1)
    cosine = np.einsum("ij,ij->i", left[:, :, 0] * -np.sign(largest), x)
    return float(right[:, 0].mean()), float(cosine.mean()), float(right[:, 1].mean())
