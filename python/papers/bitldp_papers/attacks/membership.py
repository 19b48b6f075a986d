"""Membership: an attacker says whether a report is of a person whose record it holds, or of somebody else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from bitldp.privacy import ceiling

from bitldp_papers.attacks.subjects import HONEST, Attacked, Subject, attacked_records, released, scores

__all__ = ["membership"]


def membership(
    data: str = "digits",
    *,
    seeds: Sequence[int] = (1, 2, 3),
    epsilons: Sequence[float] = HONEST,
    trials: int = 500,
) -> Iterator[Attacked]:
    """Release records of targets or of others, as a coin has it, and let the attacker call the coin.

    The attacker holds the target's record and that of the other person, and says which of the two is the
    likelier source.

    Parameters
    ----------
    data, seeds, epsilons
        As of `linkage`.
    trials : int
        Pairs for each seed.

    Yields
    ------
    Attacked
        `successes` are shares of coins called right; the ceiling is e^epsilon/(1 + e^epsilon). "advantage" is
        the share of targets found less that of others taken for them: 2 times the success less 1.
    """
    candidates, subjects = attacked_records(data, epsilons)
    for subject in subjects:
        successes = tuple(_called(subject, candidates, seed, trials) for seed in seeds)
        yield Attacked(
            subject.name,
            subject.claimed,
            subject.exact,
            successes,
            ceiling(subject.exact, 2),
            0.5,
            {"advantage": 2.0 * float(np.mean(successes)) - 1.0},
        )


def _called(subject: Subject, candidates: np.ndarray, seed: int, trials: int) -> float:
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0xA77B,)))
    pairs = np.array([rng.choice(len(candidates), 2, replace=False) for _ in range(trials)])
    other = rng.integers(0, 2, trials)
    known = candidates * np.float32(subject.scale)
    x = known[pairs[np.arange(trials), other]]
    reports = released(subject.mechanism, x, np.random.SeedSequence(seed, spawn_key=(0x5EEE,)))
    both, columns = np.unique(pairs, return_inverse=True)
    table = scores(subject.mechanism, reports, known[both])
    first, second = (table[np.arange(trials), columns.reshape(trials, 2)[:, side]] for side in (0, 1))
    calls = np.where(first == second, rng.integers(0, 2, trials), (second > first).astype(np.int64))
    return float(np.mean(calls == other))
