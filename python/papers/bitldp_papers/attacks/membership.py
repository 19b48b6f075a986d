"""Membership: an attacker says whether a report is of a person whose record it holds, or of somebody else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bitldp_papers.attacks.subjects import HONEST, Attacked, Subject, attacked_records, likelihoods, ranks

__all__ = ["membership"]


def membership(
    data: str = "digits",
    *,
    seeds: Sequence[int] = (1, 2, 3),
    epsilons: Sequence[float] = HONEST,
    trials: int = 500,
    rounds: int = 1,
) -> Iterator[Attacked]:
    """Release records of targets or of others, as a coin has it, and let the attacker call the coin.

    The attacker holds the target's record and that of the other person, and says which of the two is the
    likelier source.

    Parameters
    ----------
    data, seeds, epsilons, rounds
        As of `linkage`.
    trials : int
        Pairs for each seed.

    Yields
    ------
    Attacked
        Of two candidates. "advantage" is the share of targets found less that of others taken for them: 2
        times the success less 1.
    """
    candidates, subjects = attacked_records(data, epsilons, rounds)
    for subject in subjects:
        wins = tuple(_called(subject, candidates, seed, trials, rounds) for seed in seeds)
        yield Attacked(
            subject.name,
            subject.claimed,
            subject.exact(rounds),
            wins,
            trials,
            2,
            rounds,
            {"advantage": 2.0 * float(np.mean(wins)) / trials - 1.0},
        )


def _called(subject: Subject, candidates: np.ndarray, seed: int, trials: int, rounds: int) -> int:
    """Return how many coins were called right."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0xA77B,)))
    pairs = np.array([rng.choice(len(candidates), 2, replace=False) for _ in range(trials)])
    other = rng.integers(0, 2, trials)
    known = candidates * np.float32(subject.scale)
    x = known[pairs[np.arange(trials), other]]
    both, columns = np.unique(pairs, return_inverse=True)
    key = np.random.SeedSequence(seed, spawn_key=(0x5EEE,))
    table = likelihoods(subject, x, known[both], rounds, key)
    two = np.take_along_axis(table, columns.reshape(trials, 2), axis=1)
    return int((ranks(two, other, rng) == 0).sum())
