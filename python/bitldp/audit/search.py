"""Search for a telling event where the law of a mechanism is not known, in one half of the reports.

A report is read as a string of symbols, one for each number in it (numbers with many values are cut at
quantiles). A first quarter of the reports gives the frequencies of each symbol's values, hence the scores
ln f_a(value)/f_b(value); a second one where the sum of the scores is cut. Only the other half is counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.audit.events import clopper_pearson, logs
from bitldp.audit.sample import Source, parts

__all__ = ["Score", "learn"]

_DISTINCT = 256  # values of a number that are told apart; where there are more, quantiles are
_QUANTILES = 64
_SAMPLE = 4096  # reports that the values are read from
_CUTS = 200


def _numbers(reports: Any) -> NDArray[np.float64]:
    """Return reports as rows of numbers."""
    return np.concatenate([each.reshape(len(each), -1).astype(np.float64) for each in parts(reports)], axis=1)


class Score:
    """Score of a report: the sum of scores of the cells in which its numbers lie.

    Parameters
    ----------
    edges : list of ndarray
        Ascending cuts of each number; cell i holds the values from cut i - 1 up to below cut i.
    weights : list of ndarray
        Score of each cell.
    """

    def __init__(self, edges: list[NDArray[np.float64]], weights: list[NDArray[np.float64]]) -> None:
        self._edges = edges
        self._weights = weights

    def __call__(self, reports: Any) -> NDArray[np.float64]:
        """Return the score of each report."""
        table = _numbers(reports)
        total = np.zeros(len(table))
        for column, edges, weights in zip(table.T, self._edges, self._weights, strict=True):
            total += weights[np.searchsorted(edges, column, side="right")]
        return total


def _edges(column: NDArray[np.float64]) -> NDArray[np.float64]:
    distinct = np.unique(column)
    if len(distinct) > _DISTINCT:
        distinct = np.unique(np.quantile(column, np.linspace(0.0, 1.0, _QUANTILES + 1)))
    return distinct[1:]


def learn(source: Source, inputs: tuple[Any, Any], n: int, tail: float) -> tuple[Score, list[float]]:
    """Learn a score from reports, and a cut of it for each direction.

    Parameters
    ----------
    source : Source
        Of reports; those drawn here are used for nothing else.
    inputs : tuple
        The two inputs, a and b.
    n : int
        Reports of each input to draw.
    tail : float
        Error probability of a bound, on which the best cut depends.

    Returns
    -------
    score : Score
        Large for reports that speak for a.
    cuts : list of float
        Where ``score >= cuts[0]`` speaks best for a, and ``-score >= cuts[1]`` for b.
    """
    first = max(1, n // 2)
    edges: list[NDArray[np.float64]] = []
    counts: list[list[NDArray[np.int64]]] = []
    sample = [_take(source, record, min(first, _SAMPLE)) for record in inputs]
    edges = [_edges(column) for column in np.concatenate(sample).T]
    for record, drawn in zip(inputs, sample, strict=True):
        mine = [np.zeros(len(cuts) + 1, np.int64) for cuts in edges]
        _count(mine, edges, drawn)
        for block in source.blocks(record, first - len(drawn)):
            _count(mine, edges, _numbers(block))
        counts.append(mine)
    # half a report is added to every cell, so that one that was never seen has a finite score
    weights = [np.log((a + 0.5) / (b + 0.5)) for a, b in zip(*counts, strict=True)]
    score = Score(edges, weights)
    second = max(1, n - first)
    for_a, for_b = (
        np.concatenate([score(block) for block in source.blocks(record, second)]) for record in inputs
    )
    return score, [_cut(for_a, for_b, tail), _cut(-for_b, -for_a, tail)]


def _take(source: Source, record: Any, count: int) -> NDArray[np.float64]:
    return np.concatenate([_numbers(block) for block in source.blocks(record, count)])


def _count(
    counts: list[NDArray[np.int64]], edges: list[NDArray[np.float64]], table: NDArray[np.float64]
) -> None:
    for cells, cuts, column in zip(counts, edges, table.T, strict=True):
        np.add(
            cells, np.bincount(np.searchsorted(cuts, column, side="right"), minlength=len(cells)), out=cells
        )


def _cut(own: NDArray[np.float64], other: NDArray[np.float64], tail: float) -> float:
    """Return the cut whose bound on these scores is the largest."""
    cuts = np.unique(np.quantile(own, np.linspace(0.0, 1.0, _CUTS), method="lower"))
    above = [len(scores) - np.searchsorted(np.sort(scores), cuts) for scores in (own, other)]
    low, _ = clopper_pearson(above[0], len(own), tail)
    _, high = clopper_pearson(above[1], len(other), tail)
    return float(cuts[int(np.argmax(logs(low) - logs(high)))])
