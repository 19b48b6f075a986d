"""Linkage: an attacker who holds candidate records says which of them a released one is of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from bitldp.privacy import ceiling

from bitldp_papers.attacks.subjects import HONEST, Attacked, Subject, attacked_records, released, scores

__all__ = ["linkage"]


def linkage(
    data: str = "digits",
    *,
    seeds: Sequence[int] = (1, 2, 3),
    epsilons: Sequence[float] = HONEST,
    trials: int = 500,
) -> Iterator[Attacked]:
    """Release records, and look for the source of each among all test records.

    Parameters
    ----------
    data : str
        A data set of `bitldp_papers.data`; its test records are the candidates.
    seeds : sequence of int
        Of which records are released, and of their release.
    epsilons : sequence of float
        True budgets of a record, beside the papers' settings.
    trials : int
        Records that are released for each seed.

    Yields
    ------
    Attacked
        `successes` are the shares of reports whose likeliest candidate is their source. ``"among ten"`` is
        the share whose source is among the ten likeliest.
    """
    candidates, subjects = attacked_records(data, epsilons)
    count = len(candidates)
    for subject in subjects:
        ranks = [_ranks(subject, candidates, seed, min(trials, count)) for seed in seeds]
        yield Attacked(
            subject.name,
            subject.claimed,
            subject.exact,
            tuple(float(np.mean(each == 0)) for each in ranks),
            ceiling(subject.exact, count),
            1.0 / count,
            {"among ten": float(np.mean([np.mean(each < 10) for each in ranks]))},
        )


def _ranks(subject: Subject, candidates: np.ndarray, seed: int, trials: int) -> np.ndarray:
    """Return how many candidates are at least as likely as the source of each report, but for itself."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0xA77A,)))
    chosen = rng.choice(len(candidates), trials, replace=False)
    key = np.random.SeedSequence(seed, spawn_key=(0x5EED,))
    known = candidates * np.float32(subject.scale)
    reports = released(subject.mechanism, known[chosen], key)
    table = scores(subject.mechanism, reports, known)
    own = table[np.arange(trials), chosen]
    # ties count against the attacker: a report that says nothing finds nobody
    return (table >= own[:, None]).sum(axis=1) - 1
