"""Steps of an audit: fresh keys, then events from the law, from a search or from the caller."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitldp.audit.cuts import Cuts
from bitldp.audit.events import Counts, Finding, clopper_pearson, findings_of_symbols
from bitldp.audit.sample import Source
from bitldp.audit.search import learn
from bitldp.base.keys import RandomSource
from bitldp.mechanism.law import Experiment
from bitldp.privacy import Guarantee

__all__ = ["Event", "Run"]

Event = Callable[[Any], NDArray[np.bool_]]
"""Says of reports, as `randomize` returns them, which of them are in the event: shape (n,), bool."""


class Run:
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
    """

    def __init__(
        self, mechanism: Any, guarantee: Guarantee, n: int, confidence: float, rng: RandomSource
    ) -> None:
        self._mechanism = mechanism
        self._guarantee = guarantee
        self._n = n
        self._confidence = confidence
        self._rng = rng

    def _source(self, options: dict[str, Any]) -> Source:
        return Source(self._mechanism, options, self._rng)

    def _most_telling(self, findings: Iterable[Finding]) -> Finding:
        """Return the worst excess, those above the epsilon of a record first; else the largest bound."""

        def rank(finding: Finding) -> tuple[bool, bool, float]:
            wrong = finding.lower > finding.exact
            above = finding.lower > self._guarantee.record
            return wrong, above, finding.lower - (finding.exact if wrong and not above else 0.0)

        return max(findings, key=rank)

    def _stale(self, source: Source, record: Any) -> Finding | None:
        repeated = source.repeats(record, self._n)
        if not repeated:
            return None
        event = f"two calls gave the same {repeated} reports"
        return Finding(math.inf, self._guarantee.record, 0, 0, event)

    def _bound(self, k_a: int, k_b: int, n: int, tail: float) -> float:
        """Return the lower bound of the log-ratio of two counts, less delta."""
        low, high = clopper_pearson(np.array([k_a, k_b]), n, tail)
        likely = float(low[0]) - self._guarantee.delta
        return math.log(likely / float(high[1])) if likely > 0.0 else -math.inf

    def known(self, law: Experiment) -> Finding:
        """Look at the events that a known law gives."""
        source = self._source(dict(law.options))
        stale = self._stale(source, law.inputs[0])
        if stale is not None:
            return stale
        counts = Counts(law.blocks)
        alpha = 1.0 - self._confidence
        # at most 6 cuts for each side of a pair; the tail only has to be near the final one to choose them
        near = alpha / (counts.bounds + 24 * len(law.pairs))
        cuts = [Cuts(law, a, b, self._n, near) for a, b in law.pairs]
        for given, record in enumerate(law.inputs):
            for reports in source.blocks(record, self._n):
                symbols = law.split(reports)
                counts.add(given, symbols)
                for each in cuts:
                    each.add(given, symbols)
        tail = alpha / (counts.bounds + sum(each.bounds for each in cuts))
        record_epsilon = self._guarantee.record
        findings = list(findings_of_symbols(law, counts, self._n, tail, record_epsilon))
        for each in cuts:
            findings += each.findings(self._n, tail, record_epsilon)
        return self._most_telling(findings)

    def searched(self, inputs: tuple[Any, Any]) -> Finding:
        """Find events with one half of the reports, and look at them with the other."""
        source = self._source({})
        stale = self._stale(source, inputs[0])
        if stale is not None:
            return stale
        tail = (1.0 - self._confidence) / 4.0
        half = self._n // 2
        score, cuts = learn(source, inputs, half, tail)
        counts = np.zeros((2, 2), np.int64)  # event, input
        for given, record in enumerate(inputs):
            for reports in source.blocks(record, self._n - half):
                values = score(reports)
                counts[0, given] += np.count_nonzero(values >= cuts[0])
                counts[1, given] += np.count_nonzero(-values >= cuts[1])
        (for_a, a_of_b), (b_of_a, for_b) = counts.tolist()
        left = self._n - half
        event = "the score found in the other half of the reports is at {} {:.6g}"
        findings = [
            Finding(
                self._bound(for_a, a_of_b, left, tail),
                self._guarantee.record,
                0,
                1,
                event.format("least", cuts[0]),
            ),
            Finding(
                self._bound(for_b, b_of_a, left, tail),
                self._guarantee.record,
                1,
                0,
                event.format("most", -cuts[1]),
            ),
        ]
        return self._most_telling(findings)

    def given(self, inputs: tuple[Any, Any], event: Event) -> Finding:
        """Look at an event that the caller gives, for the inputs in both orders."""
        source = self._source({})
        stale = self._stale(source, inputs[0])
        if stale is not None:
            return stale
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
            Finding(
                self._bound(counts[a], counts[b], self._n, tail),
                self._guarantee.record,
                a,
                b,
                "the given event",
            )
            for a, b in ((0, 1), (1, 0))
        ]
        return self._most_telling(findings)
