"""Runs of a system with several seeds and mechanisms, and the comparison of their scores."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from bitldp_papers.run.drive import Summary, folder_of
from bitldp_papers.run.settings import Settings
from bitldp_papers.run.system import Runnable

__all__ = ["Scored", "compare", "paired", "run_many"]


def run_many(
    system: Runnable,
    settings: Settings,
    seeds: Iterable[int],
    mechanisms: Iterable[str] = (),
    *,
    each: Callable[[Settings], Summary] | None = None,
    **options: Any,
) -> list[Summary]:
    """Run a system with each of several seeds, and each of several mechanisms.

    Parameters
    ----------
    system : Runnable
    settings : Settings
        Of all runs; their `seed` and `mechanism` give way. Each is kept in ``out/MECHANISM/seed-N``, so that
        with `resume` those that ended are read, and not run again.
    seeds : iterable of int
        The same for every mechanism: of each pair of scores, both have the same deal of records and the same
        initial model.
    mechanisms : iterable of str
        Values of the setting `mechanism`; none: that of `settings`.
    each : callable, optional
        Runs one; by default ``system.run(settings, **options)``.
    **options
        Of `System.run`.

    Returns
    -------
    list of Summary
        All seeds of the first mechanism, then all of the second, ...

    Raises
    ------
    ValueError, TypeError, RoundFailedError
        As of `System.run`. Every mechanism is checked before the first run.
    """
    run = each or (lambda chosen: system.run(chosen, **options))
    names, turns = tuple(mechanisms), tuple(seeds)
    if names and "mechanism" not in {field.name for field in fields(settings)}:
        raise ValueError(f"mechanisms: {system.name} has no such setting")
    folder = Path(folder_of(settings, system.name))
    chosen: list[Settings] = []
    for name in names or (getattr(settings, "mechanism", ""),):
        words: dict[str, Any] = {"mechanism": name} if names else {}
        for seed in turns:
            path = folder / name / f"seed-{seed}"
            chosen.append(replace(settings, seed=seed, out=str(path), **words))
    return [run(one) for one in chosen]


@dataclass(frozen=True)
class Scored:
    """Scores of one mechanism over several seeds.

    Attributes
    ----------
    mechanism : str
    metric : str
    scores : tuple of float
        By seed.
    mean, deviation : float
        The mean, and the standard deviation between seeds (of a sample, by n - 1); NaN of one seed.
    difference : float
        Of the mean to that of the first mechanism.
    p : float
        Of a paired two-sided t-test against the first mechanism: how often a difference as large would be
        seen if there were none. NaN for the first, and with fewer than two seeds.
    """

    mechanism: str
    metric: str
    scores: tuple[float, ...]
    mean: float
    deviation: float
    difference: float
    p: float


def compare(summaries: Sequence[Summary]) -> list[Scored]:
    """Return the mean and the spread of each mechanism's scores, and a test of each against the first.

    Parameters
    ----------
    summaries : sequence of Summary
        As of `run_many`: the same seeds in the same order for each mechanism.

    Returns
    -------
    list of Scored
        In the order of the mechanisms.
    """
    scores: dict[str, list[Summary]] = {}
    for summary in summaries:
        scores.setdefault(summary.mechanism, []).append(summary)
    first = tuple(each.score for each in next(iter(scores.values())))
    compared = []
    for index, (mechanism, those) in enumerate(scores.items()):
        own = tuple(each.score for each in those)
        compared.append(
            Scored(
                mechanism=mechanism,
                metric=those[0].metric,
                scores=own,
                mean=statistics.fmean(own),
                deviation=statistics.stdev(own) if len(own) > 1 else math.nan,
                difference=statistics.fmean(own) - statistics.fmean(first),
                p=paired(own, first) if index and len(own) > 1 else math.nan,
            )
        )
    return compared


def paired(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the p-value of a paired two-sided t-test of two series, at least two of each.

    Where all differences are the same there is no spread to hold them against: 1 if they are zero, else 0.
    """
    from scipy.stats import ttest_rel  # scikit-learn brings it

    differences = {a - b for a, b in zip(ours, theirs, strict=True)}
    if len(differences) == 1:
        return 1.0 if differences == {0.0} else 0.0
    return float(ttest_rel(ours, theirs).pvalue)
