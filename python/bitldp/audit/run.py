"""Run of an audit: reports drawn with fresh keys, events from the law, from a search or from the caller.

*Known law.* The symbols of a report are independent, so its log-likelihood ratio is a sum over them, and by
Neyman and Pearson no event of the same probability under one input is rarer under the other: events on whole
reports are this ratio, cut where it tells most.

Two symbols that share random bits show it in no symbol by itself: `PairEvents` counts them together.

*Search.* A report is read as a string of symbols, one for each number in it (numbers with many values are cut
at quantiles), and one for each two neighbours among the first ones: whether they are equal. A first quarter
of the reports gives the frequencies of the values of each symbol, hence the scores ln f_a(value)/f_b(value);
a second one where the sum of the scores is cut. Only the other half is counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.audit.events import (
    Counts,
    Evidence,
    PairEvents,
    allowed,
    clopper_pearson,
    findings_of_symbols,
    logs,
)
from bitldp.base.keys import RandomSource, keys
from bitldp.mechanism.frequencies import Labelled
from bitldp.mechanism.law import Experiment, arguments
from bitldp.privacy import Guarantee

__all__ = ["AuditRun", "Cuts", "Event", "ReportSource", "Score", "drawn_pairs", "learn"]


_BLOCK = 1 << 18  # symbols that are held at once
_CHANCE = 1e-9  # of calling a mechanism stale that is not


def _parts(reports: Any) -> tuple[NDArray[Any], ...]:
    """Return reports as a tuple of arrays, even if there is just one."""
    return tuple(np.asarray(each) for each in (reports if isinstance(reports, tuple) else (reports,)))


class ReportSource:
    """Source of the reports of an audit.

    Parameters
    ----------
    mechanism
        What has `randomize`.
    options : dict
        Options of its `randomize`.
    rng : None, int, SeedSequence or Generator
        None: the mechanism takes its own fresh keys. Otherwise each call gets another key of one generator.
    """

    def __init__(self, mechanism: Any, options: dict[str, Any], rng: RandomSource) -> None:
        self._mechanism = mechanism
        self._options = options
        if rng is not None and not isinstance(rng, np.random.Generator):
            keys(rng, 1)  # refuses what is no source of randomness
            rng = np.random.default_rng(rng)
        self._rng = rng

    def _call(self, record: Any, rows: int, rng: RandomSource) -> Any:
        given = arguments(record, rows)
        if isinstance(self._mechanism, Labelled):  # laws speak of codes, clients of labels
            given = tuple(self._mechanism._by_label(each) for each in given)
        return self._mechanism.randomize(*given, rng=rng, **self._options)

    def blocks(self, record: Any, count: int) -> Iterator[Any]:
        """Yield `count` reports of a record, a block at a time.

        Raises
        ------
        ValueError
            If the mechanism does not return one report for each record.
        """
        rows = 16
        while count:
            rows = min(rows, count)
            reports = self._call(record, rows, self._rng)
            if any(each.ndim == 0 or len(each) != rows for each in _parts(reports)):
                raise ValueError(_ONE_EACH)
            yield reports
            count -= rows
            # an input may be wider than its report: a vector, of which one coordinate is selected
            wide = sum(np.size(each) for each in (record if isinstance(record, tuple) else (record,)))
            width = max(1, wide, sum(each.size for each in _parts(reports)) // rows)
            rows = max(1, _BLOCK // width)

    def repeats(self, record: Any, most: int) -> int:
        """Return how many reports a second call repeated beyond chance; 0 where chance explains them.

        Both calls are made as an application makes them, without `rng`. How often two independent reports
        agree is bounded from the pairs within one call; if the chance that all of them agree is still above
        1e-9 at `most` reports (a mechanism of large epsilon hardly ever changes its input), nothing is
        concluded.
        """
        rows = min(64, most)
        while True:
            first, second = (_parts(self._call(record, rows, None)) for _ in range(2))
            if not all(np.array_equal(one, other) for one, other in zip(first, second, strict=True)):
                return 0
            if any(each.ndim == 0 or len(each) != rows for each in first):
                raise ValueError(_ONE_EACH)
            pairs = rows // 2
            same = np.ones(pairs, dtype=bool)
            for each in first:
                flat = each.reshape(rows, -1)
                same &= (flat[:pairs] == flat[pairs : 2 * pairs]).all(axis=1)
            _, high = clopper_pearson(np.array([np.count_nonzero(same)]), max(1, pairs), _CHANCE / 2.0)
            if pairs and rows * np.log(high[0]) < np.log(_CHANCE / 2.0):
                return rows
            width = sum(each.size for each in first) // rows
            if rows == most or 4 * rows * width > 4 * _BLOCK:
                return 0
            rows = min(4 * rows, most)


_ONE_EACH = "mechanism: randomize must return one report for each record"
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

    def findings(self, n: int, tail: float, record: float) -> Iterator[Evidence]:
        """Yield what the events show; see `Cuts.findings`."""
        low, high = clopper_pearson(self.counts, n, tail)
        event = "the log-likelihood ratio of the report is {} {:.6g}"
        if self.law is None:
            most = min(record, self.most * (1.0 + 1e-9) + 1e-9)
            for index, cut in enumerate(self.cuts):
                lower = float(logs(low[0, index]) - logs(high[1, index]))
                seen = (int(self.counts[0, index]), int(self.counts[1, index]))
                yield Evidence(lower, most, self.a, self.b, event.format("at least", cut), seen, n, tail)
            return
        inside = self.counts[:, 0]
        for word, least, largest, law, counts in (
            ("at least", low[:, 0], high[:, 0], self.law[0], inside),
            ("below", 1.0 - high[:, 0], 1.0 - low[:, 0], self.law[1], n - inside),
        ):
            for one, other, a, b in ((0, 1, self.a, self.b), (1, 0, self.b, self.a)):
                lower = float(logs(least[one]) - logs(largest[other]))
                # the sums over cells are right to 1e-9 by far
                exact = float(allowed(logs(law[one]), logs(law[other]), record)) + 1e-9
                seen = (int(counts[one]), int(counts[other]))
                yield Evidence(
                    lower, min(exact, record), a, b, event.format(word, self.cuts[0]), seen, n, tail
                )


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

    def findings(self, n: int, tail: float, record: float) -> Iterator[Evidence]:
        """Yield the findings from `n` reports of each input; `record` is the exact epsilon.

        Of one symbol, the law gives the probability of the event, so that it and its complement are compared
        in both orders of the inputs; of several, only that its log-ratio is at most the largest score.
        """
        yield from self._for_a.findings(n, tail, record)
        yield from self._for_b.findings(n, tail, record)


_DISTINCT = 256  # values of a number that are told apart; where there are more, quantiles are
_QUANTILES = 64
_SAMPLE = 4096  # reports that the values are read from
_SCORE_CUTS = 200
_EQUAL = 16  # numbers of a report that are compared with the next one


def _numbers(reports: Any) -> NDArray[np.float64]:
    """Return reports as rows of numbers; with them, whether each of the first ones equals the next one."""
    numbers = [each.reshape(len(each), -1).astype(np.float64) for each in _parts(reports)]
    first = [each[:, : _EQUAL + 1] for each in numbers]
    return np.concatenate([*numbers, *(each[:, 1:] == each[:, :-1] for each in first)], axis=1)


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


def learn(source: ReportSource, inputs: tuple[Any, Any], n: int, tail: float) -> tuple[Score, list[float]]:
    """Learn a score from reports, and a cut of it for each direction.

    Parameters
    ----------
    source : ReportSource
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


def _take(source: ReportSource, record: Any, count: int) -> NDArray[np.float64]:
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
    cuts = np.unique(np.quantile(own, np.linspace(0.0, 1.0, _SCORE_CUTS), method="lower"))
    above = [len(scores) - np.searchsorted(np.sort(scores), cuts) for scores in (own, other)]
    low, _ = clopper_pearson(above[0], len(own), tail)
    _, high = clopper_pearson(above[1], len(other), tail)
    return float(cuts[int(np.argmax(logs(low) - logs(high)))])


def drawn_pairs(known: Experiment, rng: np.random.Generator) -> list[tuple[Any, Any]]:
    """Draw inputs to compare besides those of an experiment; none where it compares all there are.

    Of records of several columns one whose columns are alike, and one that has in each column the value of an
    input drawn at random, in the first two those of the two that are far apart. Of categories any two.
    """
    a, b = known.pairs[0]
    records = [each if isinstance(each, tuple) else (each,) for each in known.inputs]
    parts = [np.stack([np.asarray(each) for each in part]) for part in zip(*records, strict=True)]
    if sum(part[0].size for part in parts) == 1:
        return _two_of(parts[0], rng)
    mixed, column = [], 0
    for part in parts:
        rows = part.reshape(len(part), -1)
        drawn = rows[rng.integers(0, len(rows), rows.shape[1]), np.arange(rows.shape[1])]
        if rows.dtype.kind in "iu":
            drawn = rng.integers(rows.min(axis=0), rows.max(axis=0), endpoint=True).astype(rows.dtype)
        for end in range(column, min(2, column + rows.shape[1])):
            drawn[end - column] = rows[(a, b)[end], end - column]
        column += rows.shape[1]
        mixed.append(drawn.reshape(part.shape[1:]))
    return [(known.inputs[a], tuple(mixed) if isinstance(known.inputs[a], tuple) else mixed[0])]


def _two_of(inputs: NDArray[Any], rng: np.random.Generator) -> list[tuple[Any, Any]]:
    """Draw two whole numbers between those of some inputs, where there are others."""
    if inputs.dtype.kind not in "iu":
        return []
    low, high = int(inputs.min()), int(inputs.max())
    count = min(high - low + 1, 1 << 62)  # of words of 64 bits, the first ones
    if count <= len(np.unique(inputs)):
        return []
    one = int(rng.integers(count))
    other = (one + 1 + int(rng.integers(count - 1))) % count
    return [(inputs.dtype.type(low + one), inputs.dtype.type(low + other))]


class _Counted:
    """All events of one known law: those of each symbol, of pairs of symbols, and of whole reports."""

    def __init__(self, law: Experiment, n: int, alpha: float) -> None:
        self._law, self._n = law, n
        self._symbols, self.pairs = Counts(law.blocks), PairEvents(law)
        # at most 6 cuts for each side of a pair; the tail only has to be near the final one to choose them
        near = alpha / (self._symbols.bounds + 24 * len(law.pairs))
        self._cuts = [Cuts(law, a, b, n, near) for a, b in law.pairs]

    @property
    def bounds(self) -> int:
        """How many one-sided confidence bounds the events need, without those of pairs."""
        return self._symbols.bounds + sum(each.bounds for each in self._cuts)

    def add(self, given: int, symbols: list[NDArray[Any]]) -> None:
        """Add reports of an input, as `Experiment.split` gives them."""
        self._symbols.add(given, symbols)
        self.pairs.add(given, symbols)
        for each in self._cuts:
            each.add(given, symbols)

    def findings(self, single: float, double: float, record: float) -> Iterator[Evidence]:
        """Yield findings at the error probabilities of one bound: of `pairs` `double`, else `single`."""
        yield from findings_of_symbols(self._law, self._symbols, self._n, single, record)
        for each in self._cuts:
            yield from each.findings(self._n, single, record)
        yield from self.pairs.findings(self._n, double, record)


Event = Callable[[Any], NDArray[np.bool_]]
"""Says of reports, as `randomize` returns them, which of them are in the event: shape (n,), bool."""


class AuditRun:
    """One audit, and what all ways of finding events share.

    Parameters
    ----------
    mechanism
        What has `randomize`.
    guarantee : Guarantee
        Its guarantee.
    n : int
        Reports of each input.
    confidence : float
        Probability with which all bounds hold together.
    rng : None, int, SeedSequence or Generator
        Where keys come from; None: the mechanism's own.

    Attributes
    ----------
    inputs : Generator
        Where inputs are drawn from.
    """

    def __init__(
        self, mechanism: Any, guarantee: Guarantee, n: int, confidence: float, rng: RandomSource
    ) -> None:
        self._mechanism = mechanism
        self._guarantee = guarantee
        self._n = n
        self._confidence = confidence
        if rng is not None and not isinstance(rng, np.random.Generator):
            keys(rng, 1)  # refuses what is no source of randomness
            rng = np.random.default_rng(rng)
        self._rng = rng
        self.inputs = np.random.default_rng() if rng is None else rng

    def _source(self, options: dict[str, Any]) -> ReportSource:
        return ReportSource(self._mechanism, options, self._rng)

    def _most_telling(self, settings: Sequence[Iterable[Evidence]]) -> tuple[int, Evidence]:
        """Return the worst excess, those above the epsilon of a record first; else the largest bound.

        With it comes the number of its setting.
        """

        def rank(found: tuple[int, Evidence]) -> tuple[bool, bool, float]:
            finding = found[1]
            wrong = finding.lower > finding.exact
            above = finding.lower > self._guarantee.record
            return wrong, above, finding.lower - (finding.exact if wrong and not above else 0.0)

        return max(((each, one) for each, all_ in enumerate(settings) for one in all_), key=rank)

    def _stale(self, source: ReportSource, record: Any) -> Evidence | None:
        repeated = source.repeats(record, self._n)
        if not repeated:
            return None
        event = f"two calls gave the same {repeated} reports"
        return Evidence(math.inf, self._guarantee.record, 0, 0, event)

    def _bound(self, k_a: int, k_b: int, n: int, tail: float) -> float:
        """Return the lower bound of the log-ratio of two counts, less delta."""
        low, high = clopper_pearson(np.array([k_a, k_b]), n, tail)
        likely = float(low[0]) - self._guarantee.delta
        return math.log(likely / float(high[1])) if likely > 0.0 else -math.inf

    def known(self, laws: Sequence[Experiment]) -> tuple[int, Evidence]:
        """Look at the events that known laws give; return the law's number and the finding."""
        source = self._source(dict(laws[0].options))
        stale = self._stale(source, laws[0].inputs[0])
        if stale is not None:
            return 0, stale
        alpha = 1.0 - self._confidence
        counted = [_Counted(law, self._n, alpha) for law in laws]
        for law, events in zip(laws, counted, strict=True):
            for given, record in enumerate(law.inputs):
                for reports in source.blocks(record, self._n):
                    events.add(given, law.split(reports))
        # half of the error probability is of one symbol and of whole reports, half of pairs of symbols
        joint = sum(each.pairs.bounds for each in counted)
        single = alpha / (2.0 if joint else 1.0) / sum(each.bounds for each in counted)
        double = alpha / 2.0 / max(1, joint)
        record_epsilon = self._guarantee.record
        return self._most_telling([each.findings(single, double, record_epsilon) for each in counted])

    def searched(self, settings: Sequence[tuple[Any, Any]]) -> tuple[int, Evidence]:
        """Find events of pairs of inputs with one half of the reports, and look at them with the other."""
        source = self._source({})
        stale = self._stale(source, settings[0][0])
        if stale is not None:
            return 0, stale
        tail = (1.0 - self._confidence) / 4.0 / len(settings)
        return self._most_telling([self._search(source, inputs, tail) for inputs in settings])

    def _search(self, source: ReportSource, inputs: tuple[Any, Any], tail: float) -> list[Evidence]:
        half = self._n // 2
        score, cuts = learn(source, inputs, half, tail)
        counts = np.zeros((2, 2), np.int64)  # event, input
        for given, record in enumerate(inputs):
            for reports in source.blocks(record, self._n - half):
                values = score(reports)
                counts[0, given] += np.count_nonzero(values >= cuts[0])
                counts[1, given] += np.count_nonzero(-values >= cuts[1])
        event, left = "the score found in the other half of the reports is at {} {:.6g}", self._n - half
        return [
            self._finding(0, 1, counts[0, 0], counts[0, 1], left, tail, event.format("least", cuts[0])),
            self._finding(1, 0, counts[1, 1], counts[1, 0], left, tail, event.format("most", -cuts[1])),
        ]

    def _finding(self, a: int, b: int, k_a: int, k_b: int, n: int, tail: float, event: str) -> Evidence:
        lower = self._bound(k_a, k_b, n, tail)
        return Evidence(lower, self._guarantee.record, a, b, event, (int(k_a), int(k_b)), n, tail)

    def given(self, inputs: tuple[Any, Any], event: Event) -> tuple[int, Evidence]:
        """Look at an event that the caller gives, for the inputs in both orders."""
        source = self._source({})
        stale = self._stale(source, inputs[0])
        if stale is not None:
            return 0, stale
        tail = (1.0 - self._confidence) / 4.0
        counts = [0, 0]
        for given, record in enumerate(inputs):
            for reports in source.blocks(record, self._n):
                rows = len(reports[0] if isinstance(reports, tuple) else reports)
                inside = np.asarray(event(reports))
                if inside.shape != (rows,) or inside.dtype != np.bool_:
                    raise ValueError(
                        f"event: must return bool of shape ({rows},), got {inside.dtype} of {inside.shape}"
                    )
                counts[given] += int(np.count_nonzero(inside))
        findings = [
            self._finding(a, b, counts[a], counts[b], self._n, tail, "the given event")
            for a, b in ((0, 1), (1, 0))
        ]
        return self._most_telling([findings])
