"""The face of an audit: its line, its JSON, and the arguments that it refuses.

All audits are seeded. Unless a test says otherwise they hold at confidence 0.999, so a correct mechanism
fails one with probability at most 0.001, once and for all when its seed is chosen.
"""

from __future__ import annotations

import json
import math

import bitldp
import numpy as np
import pytest
from bitldp.audit import AuditResult, audit
from bitldp.base import errors
from support.hidden import Hidden


def test_the_result_is_one_line_and_json():
    result = audit(bitldp.GRR(4, epsilon=1.0), n=5_000, rng=1)
    assert isinstance(result, AuditResult)
    text = str(result)
    assert "\n" not in text
    for part in (
        "GRR: epsilon >= 0.",
        "exact for this event 1",
        "claimed 1",
        "n = 5000",
        "passes",
        "would have been seen",
    ):
        assert part in text
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["passed"] is True
    assert 0.0 < plain["detectable"] < 1.0
    assert plain["lower"] == result.lower
    assert plain["guarantee"]["record"] == 1.0
    with pytest.raises(AttributeError):
        result.lower = 0.0


def test_a_given_pair_is_not_shown():
    result = audit(bitldp.FRR(1, epsilon=1.0), n=500, rng=1, pair=(np.array([13.25]), np.array([-7.5])))
    for text in (repr(result), str(result), json.dumps(result.to_dict())):
        assert "13.25" not in text
        assert "pair[0]" in text


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n": 99}, ValueError, "n: must be at least 100, got 99"),
        ({"n": 1e4}, TypeError, "n: must be an integer"),
        ({"confidence": 1.0}, ValueError, r"confidence: must be in \[0.5, 1\), got 1.0"),
        ({"confidence": math.nan}, ValueError, "confidence: must be finite"),
        ({"confidence": 0.4}, ValueError, "confidence: must be in"),
        ({"rng": 1.5}, TypeError, "rng: must be None, an int"),
        ({"pair": [0, 1]}, TypeError, "pair: must be a tuple of two inputs"),
        ({"pair": (0, 1, 2)}, TypeError, "pair: must be a tuple of two inputs"),
        ({"pair": (0, 9)}, ValueError, r"pair: the integer at index \(0,\) is outside \[0, 4\)"),
        ({"event": "first"}, TypeError, "event: must be callable"),
        ({"event": lambda reports: 3}, ValueError, r"event: must return bool of shape \(16,\)"),
        ({"event": lambda reports: reports}, ValueError, "event: must return bool .* got uint8"),
    ],
)
def test_bad_arguments_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        audit(bitldp.GRR(4, epsilon=1.0), **{"n": 1_000, "rng": 1, **options})


def test_what_is_no_mechanism_is_refused():
    with pytest.raises(TypeError, match="mechanism: must have a guarantee"):
        audit(3)
    with pytest.raises(ValueError, match="pair: is needed"):
        audit(Hidden(bitldp.WarnerRR(epsilon=1.0)), n=1_000)

    class Short(Hidden):
        def randomize(self, x, *, rng=None):
            return super().randomize(x, rng=rng)[1:]

    with pytest.raises(ValueError, match="one report for each record"):
        audit(Short(bitldp.WarnerRR(epsilon=1.0)), n=1_000, pair=(0, 1))


def test_without_scipy_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(errors, "missing", list)
    with pytest.raises(
        errors.MissingExtraError, match=r'the audit needs scipy: pip install "bitldp\[design\]"'
    ):
        audit(bitldp.WarnerRR(epsilon=1.0))
