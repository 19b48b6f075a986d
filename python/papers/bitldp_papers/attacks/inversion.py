"""Inversion: an attacker computes a client's record from its updates, gradients of one record."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import bitldp
import numpy as np
from bitldp.federated import letters_of
from bitldp.mechanism.base import Mechanism
from bitldp.privacy import composed, share
from numpy.typing import NDArray

from bitldp_papers.attacks.likelihood import evidence, form_of
from bitldp_papers.attacks.subjects import HONEST, Attacked, ranks, records

__all__ = ["inversion"]

#: Epsilons that papers claim of one release; infinite: updates are clipped, and no noise is added.
CLAIMED = (math.inf, 0.3, 1.0, 4.0)
_RATE = 1.0  # of the server's steps
_CLIP = 1.0  # norm of an update
_TOGETHER = 1 << 23  # numbers of updates that are made together


@dataclass(frozen=True)
class Update:
    """Release of an update in one round: a mechanism of numbers within the clip, or none."""

    name: str
    claimed: float
    mechanism: Mechanism | None

    def exact(self, rounds: int) -> float:
        """Return the exact epsilon of the updates of so many rounds."""
        return math.inf if self.mechanism is None else composed(self.mechanism.guarantee.record, rounds)

    def reports(self, updates: NDArray[np.float32], rng: np.random.SeedSequence) -> Any:
        """Return reports about updates."""
        if self.mechanism is None:
            return updates
        return self.mechanism.randomize(updates, rng=rng, output=form_of(self.mechanism))

    def decoded(self, reports: Any, size: int) -> NDArray[np.float64]:
        """Return updates as a server decodes them, shape (clients, size)."""
        if self.mechanism is None:
            return np.asarray(reports, np.float64)
        letters = letters_of(self.mechanism, allow_biased=True)(reports)
        return np.asarray(letters, np.float64).reshape(-1, size)

    def evidence(self, reports: Any, updates: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the log-likelihood of updates after reports; without noise, less than 0 but of the same."""
        if self.mechanism is not None:
            return evidence(self.mechanism, reports, updates)
        apart = np.square(updates).sum(axis=1) - 2.0 * (reports @ updates.T)
        return -(apart + np.square(reports).sum(axis=1)[:, None]) / _EXACT


_EXACT = 1e-6  # squared distance at which updates of single precision are the same


def released_updates(
    size: int, epsilons: Sequence[float], rounds: int, claims: Sequence[float] = CLAIMED
) -> list[Update]:
    """Return the ways in which updates of `size` coordinates leave clients in one of so many rounds.

    Coordinates of an update of norm 1 are about 1/sqrt(size); the public range of one is thrice that.
    """
    updates = []
    ends = (-3.0 / math.sqrt(size), 3.0 / math.sqrt(size))
    words: dict[str, Any] = {"features": size, "unit": "feature", "interval": ends}
    for claimed in claims:
        if claimed == math.inf:
            updates.append(Update("clipped, no noise", claimed, None))
            continue
        # Behind an anonymiser every coordinate spends the whole budget (Sun et al., as BitRand runs it).
        each: Mechanism = bitldp.Duchi(epsilon=claimed, spend="split", **words)
        updates.append(Update("Duchi, the budget a coordinate", claimed, each))
        each = bitldp.BRR(21, epsilon=claimed, m="paper", **words)
        updates.append(Update("BRR, the budget a coordinate", claimed, each))
    for epsilon in epsilons:
        polytope = bitldp.CrossPolytope(size, epsilon=share(epsilon, rounds), radius=_CLIP)
        updates.append(Update("CrossPolytope", epsilon, polytope))
    return updates


def inversion(
    data: str = "digits",
    *,
    seeds: Sequence[int] = (1, 2, 3),
    epsilons: Sequence[float] = HONEST,
    trials: int = 200,
    rounds: int = 1,
    claims: Sequence[float] = CLAIMED,
) -> Iterator[Attacked]:
    """Let clients with one record each train a linear model, and compute the records from their updates.

    In each round every client releases the clipped gradient of the log loss at the model that the server
    sent, and the server takes a step along the mean of what it decodes: the next model, and so the next
    gradient, depend on all reports before. The attacker is the server. For each of its candidates, with any
    label, it knows the gradient of every round, and adds the log-likelihoods of the reports that came; the
    likeliest record, over all labels, is its answer.

    Parameters
    ----------
    data, seeds, epsilons, rounds
        As of `linkage`; a data set with classes. The papers' settings are those of one round.
    trials : int
        Clients for each seed, who take part in all rounds.
    claims : sequence of float
        Which of `CLAIMED` are attacked.

    Yields
    ------
    Attacked
        Found among all test records. "label" is the share of labels that are right. "cosine" is the mean
        cosine of the true record and one that is computed without candidates: the gradient of one record is
        a table of rank one, the record times the errors of the classes. Its largest singular vector, of the
        mean of all rounds, is the record up to a sign, which the label's column has: that error alone is
        negative.

    Raises
    ------
    ValueError
        For a data set without classes.
    """
    candidates, given, classes = records(data)
    if not classes:
        raise ValueError(f"data: {data} has no classes: linkage and membership attack its records")
    labels = np.asarray(given, np.int64)
    size = candidates.shape[1] * classes
    for update in released_updates(size, epsilons, rounds, claims):
        found = [_Run(update, candidates, labels, classes, seed, trials).attacked(rounds) for seed in seeds]
        wins, cosines, right = zip(*found, strict=True)
        yield Attacked(
            update.name,
            update.claimed,
            update.exact(rounds),
            wins,
            trials,
            len(candidates),
            rounds,
            {"cosine": float(np.mean(cosines)), "label": float(np.mean(right))},
        )


class _Run:
    """Training that is attacked: clients with a record each, and what the server makes of their reports."""

    def __init__(
        self,
        update: Update,
        candidates: NDArray[np.float32],
        labels: NDArray[np.int64],
        classes: int,
        seed: int,
        trials: int,
    ) -> None:
        self.update, self.candidates, self.classes = update, candidates, classes
        self.rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0xA77C,)))
        self.key = np.random.SeedSequence(seed, spawn_key=(0x5EEF,))
        self.own = self.rng.integers(0, len(candidates), trials)
        self.labels = labels[self.own]

    def attacked(self, rounds: int) -> tuple[int, float, float]:
        """Return how many records are found, the mean cosine, and the share of labels found."""
        clients, size = len(self.own), self.candidates.shape[1] * self.classes
        model = np.zeros((self.candidates.shape[1], self.classes))
        # of each client: every candidate, with every label
        total = np.zeros((clients, len(self.candidates), self.classes))
        mean = np.zeros((clients, size))
        for key in self.key.spawn(rounds):
            errors = self._errors(model)
            updates = _updates(self.candidates[self.own], errors[self.own, self.labels])
            reports = self.update.reports(updates, key)
            step = max(1, _TOGETHER // (size * self.classes))
            for start in range(0, len(self.candidates), step):
                part = slice(start, start + step)
                each = _updates(
                    np.repeat(self.candidates[part], self.classes, axis=0),
                    errors[part].reshape(-1, self.classes),
                )
                total[:, part] += self.update.evidence(reports, each).reshape(clients, -1, self.classes)
            decoded = self.update.decoded(reports, size)
            model -= _RATE * decoded.mean(axis=0).reshape(model.shape)
            mean += decoded / rounds
        largest = total.max(axis=(1, 2), keepdims=True)
        likely = np.exp(total - largest)
        found = ranks(np.log(np.maximum(likely.sum(axis=2), 1e-300)), self.own, self.rng) == 0
        right = likely.sum(axis=1).argmax(axis=1) == self.labels
        return int(found.sum()), self._cosine(mean.reshape(-1, *model.shape)), float(right.mean())

    def _errors(self, model: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return the errors of the classes, for each candidate and label, (candidates, labels, classes)."""
        scores = self.candidates @ model
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return np.asarray(shares[:, None, :] - np.eye(self.classes), np.float32)

    def _cosine(self, tables: NDArray[np.float64]) -> float:
        """Return the mean cosine of the clients' records and those that are computed from their updates."""
        left, _, shares = np.linalg.svd(tables, full_matrices=False)
        largest = np.take_along_axis(shares[:, 0], np.abs(shares[:, 0]).argmax(axis=1)[:, None], axis=1)
        found = left[:, :, 0] * -np.sign(largest)
        return float(np.einsum("ij,ij->i", found, self.candidates[self.own]).mean())


def _updates(x: NDArray[np.float32], errors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the clipped gradients of records with the errors of their classes, shape (n, size)."""
    tables = (x[:, :, None] * errors[:, None, :]).reshape(len(x), -1)
    lengths = np.linalg.norm(tables, axis=1, keepdims=True)
    return np.asarray(tables / np.maximum(lengths / _CLIP, 1.0), np.float32)
