"""Audits of mechanisms whose law is not known: what separates two inputs is learned from reports.

All audits are seeded. Unless a test says otherwise they hold at confidence 0.999, so a correct mechanism
fails one with probability at most 0.001, once and for all when its seed is chosen.
"""

from __future__ import annotations

import math

import bitldp
import numpy as np
import pytest
from bitldp._core import Matrix
from bitldp.audit import audit
from bitldp.audit.events import clopper_pearson
from bitldp.audit.run import ReportSource, learn
from scipy import stats
from support import faults
from support.hidden import Hidden, Laplace


def test_unknown_laws_are_searched():
    """Of n = 40,000 reports, half are for the search."""
    for mechanism, pair in (
        (Hidden(bitldp.GRR(10, epsilon=1.0)), (2, 7)),
        (Hidden(bitldp.OUE(6, epsilon=1.0)), (0, 5)),
        (Hidden(bitldp.BRR(30, epsilon=1.0)), (0, 29)),
        (Laplace(epsilon=1.0), None),
    ):
        result = audit(mechanism, n=40_000, rng=6, pair=pair)
        assert result.passed
        assert 0.8 < result.lower <= 1.0
        assert "other half" in result.event


def test_faults_of_unknown_laws_are_caught():
    """Of n = 20,000 reports, half are for the search."""
    for mechanism, pair in (
        (Laplace(epsilon=1.0, factor=0.5), None),
        (Laplace(2.0, 4, unprotected=True), None),
        (Hidden(faults.LastCategoryUnprotected(6, epsilon=1.0)), (0, 5)),
        (Hidden(bitldp.GRR(10, epsilon=1.0), record=0.7), (3, 4)),
    ):
        result = audit(mechanism, n=20_000, rng=1, pair=pair)
        assert not result.passed, result
        assert result.exact == mechanism.guarantee.record


def test_a_search_does_not_count_what_it_learned_from():
    """60 audits at confidence 0.9 of a law with many rare values: P(more than 14 fail) < 1e-3 at most.

    In the reports that it was learned from, the very same score shows far more than there is.
    """
    mechanism = Hidden(bitldp.GRR(400, epsilon=0.01))
    failed = sum(not audit(mechanism, n=1_000, confidence=0.9, rng=s, pair=(0, 1)).passed for s in range(60))
    assert failed <= int(stats.binom.isf(1e-3, 60, 0.1)) == 14

    class Recorded(ReportSource):
        def blocks(self, record, count):
            for reports in super().blocks(record, count):
                drawn[record].append(reports)
                yield reports

    drawn = [[], []]
    score, _ = learn(Recorded(mechanism, {}, 1), (0, 1), 500, 0.01)
    learned_from = [np.concatenate(reports)[:250] for reports in drawn]
    for_a, for_b = (np.count_nonzero(score(reports) > 0.0) for reports in learned_from)
    low, high = clopper_pearson(np.array([for_a, for_b]), 250, 0.01)
    assert np.log(low[0] / high[1]) > 0.1  # ten times what there is


def test_delta_is_granted():
    """Noise of too small a scale keeps (1, 0.1), but not 1; of a quarter of the scale, neither."""
    assert audit(Laplace(epsilon=1.0, factor=0.9, delta=0.1), n=40_000, rng=1).passed
    assert not audit(Laplace(epsilon=1.0, factor=0.9), n=400_000, rng=1).passed
    assert not audit(Laplace(epsilon=1.0, factor=0.25, delta=0.1), n=40_000, rng=1).passed


def test_a_mechanism_of_a_matrix_is_known_by_its_channel():
    class Table(Hidden):
        def randomize(self, x, *, rng=None, output="codes"):
            return self.sampled.randomize(x, None, None, faults.key(rng), output, None, None, 0)

    law = np.array([[0.5, 0.3, 0.2, 0.0], [0.25, 0.25, 0.5, 0.0], [0.4, 0.3, 0.3, 0.0]])
    channel = Matrix(law)
    honest = Table(bitldp.WarnerRR(epsilon=1.0), record=channel.epsilon, channel=channel, sampled=channel)
    result = audit(honest, n=50_000, rng=1)
    assert result.passed
    assert 0.9 * channel.epsilon < result.lower <= result.exact == channel.epsilon
    leaky = law.copy()
    leaky[1] = [0.25, 0.25, 0.499, 0.001]  # a report that the law excludes
    faulty = Table(
        bitldp.WarnerRR(epsilon=1.0), record=channel.epsilon, channel=channel, sampled=Matrix(leaky)
    )
    result = audit(faulty, n=50_000, rng=1)
    assert not result.passed
    assert result.exact == -math.inf
    assert result.event == "3 is reported"


def test_a_randomize_that_returns_too_few_reports_is_named():
    class Few(Laplace):
        def randomize(self, x, *, rng=None):
            return np.zeros(3)

    with pytest.raises(ValueError, match="randomize must return one report for each record"):
        audit(Few(epsilon=1.0), n=2_000, pair=(0.0, 1.0))
