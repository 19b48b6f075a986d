"""Events on whole reports: likelihood ratios of two inputs, cut where they tell most.

The symbols of a report are independent, so its log-likelihood ratio is a sum over them, and by Neyman and
Pearson no event of the same probability under one input is rarer under the other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.audit.events import Finding, allowed, clopper_pearson, logs
from bitldp.mechanism.law import Experiment

__all__ = ["Cuts"]

_FLOOR = 2.0**-80  # stands for the probability 0 in a score; below every positive multiple of 2**-64
_DEVIATIONS = (-1.0, 0.0, 1.0, 2.0, 3.0)  # from its mean, where a sum of scores is cut
_CANDIDATES = 64  # cuts that are looked at before one is chosen


class _Side:
    """Events "the score is at least t" that speak for `a`, one of two inputs, against `b`.

    For reports of one symbol, t is where the bound would be largest if the counts were as expected. For
    several, some standard deviations of a normal approximation from the mean, and the largest score. The
    approximation decides how telling the events are; the bounds hold for any t.
    """

    def __init__(
        self, law: Experiment, weights: list[NDArray[np.float64]], a: int, b: int, n: int, tail: float
    ) -> None:
        self.a, self.b = a, b
        self.most = sum(float(each.max(axis=1).sum()) for each in weights)
        # a sum of floats in another order may come out a little lower
        slack = 1e-9 * (1.0 + sum(float(np.abs(each).max(axis=1).sum()) for each in weights))
        self.law: NDArray[np.float64] | None = None  # P(score >= t) and P(score < t), by input, of one symbol
        if law.symbols == 1:
            rows = law.blocks[0].table[[a, b], 0]
            self.cuts = [_best(rows, weights[0][0], n, tail, slack)]
            above = weights[0][0] >= self.cuts[0]
            self.law = np.stack([rows[:, above].sum(axis=1), rows[:, ~above].sum(axis=1)])
        else:
            mean, deviation = _moments(law, weights, a)
            top = self.most - slack
            self.cuts = sorted({top, *(min(mean + z * deviation, top) for z in _DEVIATIONS)})
        self.counts = np.zeros((2, len(self.cuts)), np.int64)

    def findings(self, n: int, tail: float, record: float) -> Iterator[Finding]:
        """Yield what the events show; see `Cuts.findings`."""
        low, high = clopper_pearson(self.counts, n, tail)
        event = "the log-likelihood ratio of the report is {} {:.6g}"
        if self.law is None:
            most = min(record, self.most * (1.0 + 1e-9) + 1e-9)
            for place, cut in enumerate(self.cuts):
                lower = float(logs(low[0, place]) - logs(high[1, place]))
                yield Finding(lower, most, self.a, self.b, event.format("at least", cut))
            return
        for word, least, largest, law in (
            ("at least", low[:, 0], high[:, 0], self.law[0]),
            ("below", 1.0 - high[:, 0], 1.0 - low[:, 0], self.law[1]),
        ):
            for one, other, a, b in ((0, 1, self.a, self.b), (1, 0, self.b, self.a)):
                lower = float(logs(least[one]) - logs(largest[other]))
                # the sums over cells are right to 1e-9 by far
                exact = float(allowed(logs(law[one]), logs(law[other]), record)) + 1e-9
                yield Finding(lower, min(exact, record), a, b, event.format(word, self.cuts[0]))


def _best(
    rows: NDArray[np.float64], weights: NDArray[np.float64], n: int, tail: float, slack: float
) -> float:
    levels = np.unique(weights)[::-1]
    few = np.linspace(0, len(levels) - 1, min(_CANDIDATES, len(levels))).astype(int)
    cuts = levels[few] - slack
    masses = np.array([rows[:, weights >= cut].sum(axis=1) for cut in cuts])
    low, high = clopper_pearson(np.clip(np.rint(masses * n), 0, n).astype(np.int64), n, tail)
    return float(cuts[int(np.argmax(logs(low[:, 0]) - logs(high[:, 1])))])


def _moments(law: Experiment, weights: list[NDArray[np.float64]], a: int) -> tuple[float, float]:
    """Return mean and standard deviation of the score of input a."""
    mean = variance = 0.0
    for each, block in zip(weights, law.blocks, strict=True):
        first = (block.table[a] * each).sum(axis=1)
        mean += float(first.sum())
        variance += float(((block.table[a] * each**2).sum(axis=1) - first**2).sum())
    return mean, math.sqrt(max(variance, 0.0))


class Cuts:
    """Events on whole reports for one pair of inputs, in both orders.

    Parameters
    ----------
    law : Experiment
        The law.
    a, b : int
        Numbers of the two inputs.
    n : int
        Reports of each input.
    tail : float
        Error probability of one bound, roughly.
    """

    def __init__(self, law: Experiment, a: int, b: int, n: int, tail: float) -> None:
        self._pair = (a, b)
        self._weights = [
            np.log(np.maximum(block.table[a], _FLOOR)) - np.log(np.maximum(block.table[b], _FLOOR))
            for block in law.blocks
        ]
        self._for_a = _Side(law, self._weights, a, b, n, tail)
        self._for_b = _Side(law, [-each for each in self._weights], b, a, n, tail)

    @property
    def bounds(self) -> int:
        """How many one-sided confidence bounds the events need."""
        return sum(len(side.cuts) * (2 if side.law is None else 4) for side in (self._for_a, self._for_b))

    def add(self, given: int, symbols: list[NDArray[Any]]) -> None:
        """Add reports of an input; reports of inputs outside the pair are ignored."""
        if given not in self._pair:
            return
        scores = np.zeros(len(symbols[0]))
        for weights, block in zip(self._weights, symbols, strict=True):
            if weights.shape[1] == 2:
                scores += block @ (weights[:, 1] - weights[:, 0]) + weights[:, 0].sum()
            else:
                scores += weights[np.arange(len(weights)), block].sum(axis=1)
        for side, own in ((self._for_a, scores), (self._for_b, -scores)):
            side.counts[int(given == side.b)] += [np.count_nonzero(own >= cut) for cut in side.cuts]

    def findings(self, n: int, tail: float, record: float) -> Iterator[Finding]:
        """Yield the findings from `n` reports of each input; `record` is the exact epsilon.

        Of one symbol, the law gives the probability of the event, so that it and its complement are compared
        in both orders of the inputs; of several, only that its log-ratio is at most the largest score.
        """
        yield from self._for_a.findings(n, tail, record)
        yield from self._for_b.findings(n, tail, record)
