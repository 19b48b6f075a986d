"""Linkage: an attacker who holds candidate records says which of them a released one is of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bitldp_papers.attacks.subjects import HONEST, Attacked, Subject, attacked_records, likelihoods, ranks

__all__ = ["linkage"]


def linkage(
    data: str = "digits",
    *,
    seeds: Sequence[int] = (1, 2, 3),
    epsilons: Sequence[float] = HONEST,
    trials: int = 500,
    rounds: int = 1,
) -> Iterator[Attacked]:
    """Release records, and look for the source of each among all test records.

    Parameters
    ----------
    data : str
        A data set of `bitldp_papers.data`; its test records are the candidates.
    seeds : sequence of int
        Of which records are released, and of their release.
    epsilons : sequence of float
        True budgets of a record in all rounds, beside the papers' settings.
    trials : int
        Records that are released for each seed, drawn one by one.
    rounds : int
        How often each of them is released afresh. The papers' settings are those of one round.

    Yields
    ------
    Attacked
        The attacker names the likeliest candidate. ``"among ten"`` is the share of records that are among
        the ten likeliest.
    """
    candidates, subjects = attacked_records(data, epsilons, rounds)
    for subject in subjects:
        found = [_ranks(subject, candidates, seed, trials, rounds) for seed in seeds]
        yield Attacked(
            subject.name,
            subject.claimed,
            subject.exact(rounds),
            tuple(int((each == 0).sum()) for each in found),
            trials,
            len(candidates),
            rounds,
            {"among ten": float(np.mean([np.mean(each < 10) for each in found]))},
        )


def _ranks(subject: Subject, candidates: np.ndarray, seed: int, trials: int, rounds: int) -> np.ndarray:
    """Return how many candidates the attacker names before the source of each report."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0xA77A,)))
    own = rng.integers(0, len(candidates), trials)
    known = candidates * np.float32(subject.scale)
    key = np.random.SeedSequence(seed, spawn_key=(0x5EED,))
    return ranks(likelihoods(subject, known[own], known, rounds, key), own, rng)
