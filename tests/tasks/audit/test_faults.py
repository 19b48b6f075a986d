"""Audits find planted faults: probabilities off by a little, unprotected parts, keys that repeat.

All audits are seeded. Unless a test says otherwise they hold at confidence 0.999, so a correct mechanism
fails one with probability at most 0.001, once and for all when its seed is chosen.
"""

from __future__ import annotations

import math

import bitldp
import numpy as np
import pytest
from bitldp.audit import audit
from support import faults
from support.hidden import Hidden

FAULTS = [
    # a mechanism with a fault, the same without, reports of each input, whether epsilon itself is exceeded
    (faults.LastBitUnprotected, bitldp.FRR, (4,), {"epsilon": 4.0}, 10_000, True),
    (faults.LastCategoryUnprotected, bitldp.OUE, (12,), {"epsilon": 2.0}, 10_000, True),
    (faults.SwappedOUE, bitldp.OUE, (8,), {"epsilon": 1.0}, 10_000, False),
    (faults.SwappedMOUE, bitldp.MOUE, (2,), {"bits": 6, "integer_bits": 2, "epsilon": 6.0}, 100_000, False),
    (faults.SwappedGRR, bitldp.GRR, (10,), {"epsilon": 1.0}, 10_000, True),
    (faults.WindowTooWide, bitldp.BRR, (30,), {"epsilon": 1.5}, 20_000, False),
    (faults.WindowTooHeavy, bitldp.BRR, (12,), {"epsilon": 2.0}, 50_000, True),
    (faults.ByteThresholds, bitldp.WarnerRR, (), {"epsilon": 6.0}, 20_000, True),
    (faults.CoarseThresholds, bitldp.OUE, (6,), {"epsilon": 3.0}, 50_000, False),
    (faults.SilentAtNoRange, bitldp.BRR, (21,), {"epsilon": 1.0, "interval": (-1.0, 1.0)}, 2_000, True),
    (faults.SilentAtZero, bitldp.FRR, (3,), {"epsilon": 5.0}, 3_000, True),
    (faults.OncePerCall, bitldp.GRR, (3,), {"epsilon": 1.0}, 2_000, True),
]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    ("faulty", "right", "place", "named", "n", "above"), FAULTS, ids=[f[0].__name__ for f in FAULTS]
)
def test_faults_are_caught(faulty, right, place, named, n, above, seed):
    result = audit(faulty(*place, **named), n=n, rng=seed)
    assert not result.passed, result
    assert result.lower > result.exact
    assert "FAILS" in str(result)
    if above:
        assert result.lower > result.guarantee.record
    assert audit(right(*place, **named), n=n, rng=seed).passed


@pytest.mark.parametrize(
    "mechanism",
    [
        faults.StaleFRR(4, epsilon=2.0),
        faults.StaleOUE(5, epsilon=1.0),
        faults.StaleBRR(30, epsilon=2.0),
        faults.StaleBitRand(2, categories=3, epsilon_x=3.0, epsilon_y=1.0),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_a_stale_key_is_caught(mechanism):
    for options in ({}, {"rng": 4}, {"event": lambda reports: np.zeros(len(reports[0]), bool)}):
        result = audit(mechanism, n=1_000, **options)
        assert not result.passed
        assert result.lower == math.inf
        assert result.event == "two calls gave the same 64 reports"
        assert result.to_dict()["lower"] == "infinity"


def test_a_stale_key_is_caught_where_epsilon_is_infinite():
    class StaleWarner(faults.Stale, Hidden):
        pass

    assert not audit(StaleWarner(bitldp.WarnerRR(epsilon=1.0), record=math.inf), n=1_000, pair=(0, 1)).passed


def test_rare_changes_are_no_stale_key():
    """At epsilon 30 two calls agree, and nothing is concluded from it."""
    result = audit(bitldp.WarnerRR(epsilon=30.0), n=2_000, rng=1)
    assert result.passed
    assert result.lower > 4.0
