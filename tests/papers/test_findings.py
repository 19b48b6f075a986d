"""Findings: what scores say of a statement, and that the spread decides."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

from bitldp_papers.figures import (
    Compared,
    FigureResult,
    Finding,
    Formula,
    Printed,
    ReadOff,
    agreeing,
    everywhere,
    gain,
    ordered,
    p_value,
    printed_row,
    sure,
    trained,
)
from bitldp_papers.figures.findings import summary_of
from bitldp_papers.page.parts import agreement

PRINTED = Printed("46.03", "b08b71cebdac")
HIGH, LOW, NEAR = (0.9, 0.91, 0.92), (0.5, 0.52, 0.51), (0.89, 0.93, 0.9)


def test_a_printed_number_has_its_value_and_its_rounding() -> None:
    assert PRINTED.value == 46.03
    assert PRINTED.half_unit == pytest.approx(0.005)
    assert Printed("4,311", "0", 0.01).value == pytest.approx(43.11)
    assert [each.text for each in printed_row("1.5 -2", "0")] == ["1.5", "-2"]
    with pytest.raises(ValueError, match="above zero"):
        ReadOff(1.0, 0.0)


@pytest.mark.parametrize(
    ("paper", "ours", "spread", "tolerance", "agrees"),
    [
        (PRINTED, 46.4, None, None, True),  # 1 %
        (PRINTED, 47.0, None, None, False),
        (PRINTED, 47.0, 0.4, None, None),  # within two deviations
        (PRINTED, 47.0, 0.2, None, False),
        (PRINTED, 47.0, None, 1.0, True),
        (Printed("0.1", "0"), 0.14, None, None, True),  # half a unit of its last digit
        (Printed("0.1", "0"), 0.16, None, None, False),
        (ReadOff(0.94, 0.02), 0.965, None, None, True),
        (ReadOff(0.94, 0.02), 0.975, None, None, False),
        (Formula(1.0), 1.0, None, None, None),
        (None, 1.0, None, None, None),
        (PRINTED, "46.03", None, None, None),
    ],
)
def test_a_number_agrees_within_its_tolerance(paper, ours, spread, tolerance, agrees) -> None:
    compared = Compared("it", paper, ours, spread, tolerance=tolerance)
    assert compared.agrees is agrees
    untrained = replace(compared, reached=False)
    assert untrained.agrees is None
    assert untrained.document() == {**compared.document(), "agrees": None, "reached": False}
    assert agreement(untrained.document()) == "not reached"


def test_the_kinds_are_kept_apart() -> None:
    documents = [
        Compared("it", paper, 1.0).document() for paper in (PRINTED, ReadOff(2.0, 0.1), Formula(3.0))
    ]
    assert [each["kind"] for each in documents] == ["printed", "drawn", "formula"]
    assert [each["paper"] for each in documents] == [46.03, 2.0, None]
    assert documents[0]["text"] == "46.03"
    assert documents[1]["within"] == 0.1
    assert documents[2]["formula"] == 3.0
    for paper in (3.0, "3.0"):  # nobody has looked it up
        with pytest.raises(TypeError, match="paper: must be Printed"):
            Compared("it", paper, 1.0)


def test_the_best_is_decided_by_the_spread() -> None:
    best = ordered("A is best", {"A": HIGH, "B": LOW, "C": (0.1, 0.2, 0.1)}, "A", (1, 2, 3))
    assert (best.holds, best.word) == (True, "holds")
    assert "against B, 3 seeds" in best.because
    assert ordered("", {"A": LOW, "B": HIGH, "C": NEAR}, "A").holds is False
    assert ordered("", {"A": HIGH, "B": NEAR}, "A").holds is None
    assert ordered("", {"A": HIGH, "B": LOW, "C": NEAR}, "A").holds is None  # C leaves it open
    assert ordered("", {"A": LOW, "B": HIGH}, "A", higher=False).holds is True
    assert ordered("", {"A": HIGH[:1], "B": LOW[:1]}, "A").holds is None  # one seed decides nothing
    with pytest.raises(ValueError, match="each seed"):
        ordered("", {"A": HIGH, "B": LOW[:2]}, "A")
    with pytest.raises(ValueError, match="each seed"):
        ordered("", {"A": HIGH, "B": LOW}, "A", (1, 2))
    with pytest.raises(ValueError, match="several methods"):
        ordered("", {"A": HIGH}, "B")


@pytest.mark.parametrize(
    ("differences", "word"),
    [
        ((46.0, 45.0, 47.5), "holds"),
        ((44.0, 40.0, 43.0), "sign holds, size not decided"),
        ((60.0, 61.0, 62.0), "holds"),
        ((7.0, 7.2, 7.4), "sign holds, size does not"),
        ((-7.0, -7.2, -7.4), "does not hold"),
        ((20.0, 1.0, -5.0), "not decided"),
        ((46.0,), "not decided"),
    ],
)
def test_a_gain_has_a_sign_and_a_size(differences, word) -> None:
    found = gain("it gains", PRINTED, differences, 5.0)
    assert found.word == word
    assert "+46.03 printed" in found.because
    lost = gain("it loses", Printed("-46.03", "0"), [-each for each in differences], 5.0)
    assert lost.word == word


def test_a_gain_may_be_a_tenth_smaller_by_default() -> None:
    assert gain("", PRINTED, (41.9, 42.0, 42.1)).word == "holds"
    assert gain("", PRINTED, (40.9, 41.0, 41.1)).word == "sign holds, size does not"
    assert gain("", None, (1.0, 1.1, 0.9)).word == "holds"


def test_two_runs_seldom_contradict_each_other() -> None:
    """Differences of three seeds about 0, and about half a printed gain: 300 pairs of runs, at most 3 flip.

    Each way is decided with a chance of 2.5 %, so that a pair flips with .125 %: more than 3 with 1e-4.
    """
    rng = np.random.default_rng(5)
    half = Printed("2", "0")
    for middle, decide in ((0.0, None), (1.8, half)):
        words = [
            [gain("", decide, (middle + rng.normal(size=3)).tolist()).holds for _ in range(2)]
            for _ in range(300)
        ]
        assert sum(set(pair) == {True, False} for pair in words) <= 3
        assert sum(pair[0] is None for pair in words) > 250


def test_numbers_agree_or_are_not_printed() -> None:
    good, bad = Compared("good", PRINTED, 46.0), Compared("bad", PRINTED, 40.0)
    assert agreeing([good, good]).holds is True
    found = agreeing([good, bad, Compared("formula", Formula(1.0), 2.0)])
    assert found.holds is False
    assert "1 of 2 agree; bad: 40 against 46.03" in found.because
    assert agreeing([Compared("it", Formula(1.0), 1.0)]).word == "not printed"
    assert agreeing([Compared("it", PRINTED, 47.0, 0.4)]).word == "not decided"


def test_what_learned_nothing_gives_no_verdict() -> None:
    finding = ordered("A is best", {"A": HIGH, "B": LOW}, "A")
    assert trained(finding, HIGH, 0.5, 0.95) is finding
    assert trained(finding, HIGH, 0.5, 0.5).word == "not reached in this form"
    assert trained(finding, HIGH, 0.5, 0.7, reach=0.8).word == "not reached in this form"
    assert trained(finding, HIGH, 0.95, 0.97).word == "a constant does better"
    assert trained(finding, [0.95] * 3, 0.95, 0.97).word == "a constant does better"  # it is the constant
    assert trained(finding, (0.9, 0.99, 0.95), 0.94, 0.97).word == "not decided"
    assert trained(finding, (0.2, 0.21, 0.22), 0.5, 0.1, higher=False) is finding
    assert trained(finding, (0.2, 0.21, 0.22), 0.1, 0.05, higher=False).word == "a constant does better"


def test_p_needs_five_seeds() -> None:
    assert p_value(HIGH, LOW) is None
    assert p_value((*HIGH, 0.9, 0.93), (*LOW, 0.5, 0.49)) < 1e-3
    assert sure((1.0, 1.0, 1.0)) == (1.0, 0.0)
    assert sure((0.0, 2.0))[1] == pytest.approx(12.706, rel=1e-3)
    assert math.isinf(sure((1.0,))[1])


def test_a_verdict_is_made_of_findings() -> None:
    some = [Finding("it is", True, "so"), Finding("it was", False, "no", "sign holds, size does not")]
    result = FigureResult([], findings=some)
    assert result.verdict == "holds: it is (so); sign holds, size does not: it was (no)"
    document = result.document()
    assert document["summary"] == "holds (1), sign holds, size does not (1)"
    assert document["findings"][0] == {"says": "it is", "holds": True, "because": "so", "word": "holds"}
    assert summary_of(["holds", "holds"]) == "holds"
    with pytest.raises(ValueError, match="word: must be one of"):
        Finding("", False, "", "holds")


def test_what_is_said_of_every_setting_is_decided_by_the_spread_of_each() -> None:
    above, below, open_ = (0.1, 0.11, 0.12), (-0.1, -0.11, -0.12), (0.1, -0.09, 0.02)
    assert everywhere("better", {"a": above, "b": above}).holds is True
    assert everywhere("better", {"a": above, "b": open_}).holds is None
    found = everywhere("better", {"a": above, "b": below, "c": open_})
    assert found.holds is False
    assert "above in 1 of 3; b: -0.11" in found.because
    # Many looks: of one setting in twenty that is a little below, none is surely so.
    little = (-0.10, -0.11, -0.17)
    assert everywhere("better", {"a": little}).holds is False
    assert everywhere("better", {"a": little, **{str(each): above for each in range(19)}}).holds is None
    assert sure(above, 20)[1] > 2.0 * sure(above)[1]
    with pytest.raises(ValueError, match="differences: must be of one setting"):
        everywhere("better", {})
