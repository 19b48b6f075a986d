"""Attacks on what clients send: what the papers' settings leave, and never more than epsilon allows."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

import bitldp
from bitldp_papers.attacks import ATTACKS, Attacked, ceiling, inversion, linkage
from bitldp_papers.attacks.outcomes import outcome
from bitldp_papers.attacks.subjects import records, released, scores
from bitldp_papers.data import load


@pytest.fixture(scope="module")
def found() -> dict[str, list[Attacked]]:
    """Return each attack on digits: 3 seeds of 200 trials."""
    return {name: list(attack("digits", trials=200)) for name, attack in ATTACKS.items()}


def test_no_attack_beats_its_ceiling(found: dict[str, list[Attacked]]) -> None:
    """600 trials each: within 4 standard errors of the largest chance (27 cases, alpha below 1e-3)."""
    for attacked in found.values():
        for each in attacked:
            spread = math.sqrt(max(each.ceiling * (1.0 - each.ceiling), 1e-3) / 600)
            assert each.mean <= each.ceiling + 4.0 * spread, each
            assert each.exact <= each.claimed or each.exact > 100.0


def test_the_papers_settings_are_found_out(found: dict[str, list[Attacked]]) -> None:
    """Measured, 360 candidates: f-RR .73 and .9, UER 1; pairs .99 and more; gradients .16 to 1."""
    of = {(name, each.mechanism, each.claimed): each for name, attacked in found.items() for each in attacked}
    assert of["linkage", "f-RR, BitRand's setting", 1.0].mean > 0.75
    assert of["linkage", "UER, LDPFL's setting", 0.5].mean > 0.95
    assert of["membership", "f-RR, BitRand's setting", 0.1].mean > 0.95
    assert of["membership", "f-RR, BitRand's setting", 1.0].exact > 200.0
    plain = of["inversion", "clipped, no noise", math.inf]
    assert plain.mean == 1.0
    assert plain.more["cosine"] > 0.9999
    assert of["inversion", "BRR, the budget a coordinate", 4.0].mean > 0.9
    assert of["inversion", "CrossPolytope", 1.0].mean < 0.03


def test_the_ceiling_is_what_epsilon_allows() -> None:
    assert ceiling(0.0, 50) == pytest.approx(0.02)
    assert ceiling(math.inf, 50) == 1.0
    assert ceiling(5000.0, 7600) == 1.0
    e = math.exp(3.0)
    assert ceiling(3.0, 7600) == pytest.approx(e / (e + 7599))


def test_the_score_of_bits_is_their_likelihood() -> None:
    mechanism = bitldp.FRR(features=2, bits=4, integer_bits=1, epsilon=3.0, calibration="exact")
    x = np.array([[0.5, -1.25], [1.75, 0.25], [-0.5, 1.0]], np.float32)
    reports = released(mechanism, x, np.random.SeedSequence(1))
    own = mechanism.codec.encode(x)
    bits = ((own[:, :, None] >> np.array([3, 2, 1, 0], np.uint16)) & 1).reshape(3, 8)
    law = np.broadcast_to(mechanism.probabilities(), (2, 4, 2)).reshape(8, 2)
    exact = np.array(
        [
            [
                sum(
                    math.log(law[k, 1 - bits[c, k]] if report[k] else 1.0 - law[k, 1 - bits[c, k]])
                    for k in range(8)
                )
                for c in range(3)
            ]
            for report in reports
        ]
    )
    # up to what is common to all candidates
    apart = exact - scores(mechanism, reports, x)
    assert apart == pytest.approx(np.broadcast_to(apart[:, :1], apart.shape), abs=1e-5)


def test_a_report_that_says_nothing_finds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[linkage.__module__]
    monkeypatch.setattr(module, "scores", lambda mechanism, reports, known: np.zeros((100, len(known))))
    assert all(each.mean == 0.0 for each in linkage("digits", seeds=(1,), trials=100))


def test_candidates_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates, labels, classes = records("digits")
    assert len(np.unique(candidates, axis=0)) == len(candidates) == len(labels)
    assert classes == 10
    assert np.linalg.norm(candidates, axis=1) == pytest.approx(np.ones(len(candidates)), rel=1e-5)
    other = replace(load("digits"), task="regression", classes=0)
    monkeypatch.setattr(sys.modules[records.__module__], "load", lambda name: other)
    with pytest.raises(ValueError, match="targets has no classes"):
        next(inversion("targets"))


@pytest.mark.parametrize("name", ATTACKS)
def test_an_outcome_says_what_it_is_beside_the_ceiling(name: str, found: dict[str, list[Attacked]]) -> None:
    result = outcome(name, "digits", found[name], 200)
    assert len(result.rows) == len(result.compared) == len(found[name])
    assert "claimed" in result.verdict
    assert "no attack succeeds more often" in result.honest


@pytest.mark.skipif(not os.environ.get("BITLDP_DATA"), reason="needs BITLDP_DATA: AG's news")
def test_released_news_are_found_among_7600() -> None:
    """The trial: top-1 of .9985 at claimed 1 (exact 1,655), and at claimed .1."""
    attacked = {
        (each.mechanism, each.claimed): each for each in linkage("ag_news", epsilons=(1.0,), trials=500)
    }
    for claimed in (0.1, 1.0):
        assert attacked["f-RR, BitRand's setting", claimed].mean >= 0.99
    assert attacked["f-RR, BitRand's setting", 1.0].exact == pytest.approx(1655.0, rel=1e-3)
    assert attacked["CrossPolytope", 1.0].mean <= 0.005
